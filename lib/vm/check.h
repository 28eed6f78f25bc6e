// SPDX-License-Identifier: MIT
/*
 * The self-check: does a layout describe this VM? Compares what is read by the
 * layout with what the public API says. Not for the signal handler.
 */
#ifndef VM_CHECK_H
#define VM_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include <lua.h>

#include "code.h"
#include "layout.h"

struct check_failure {
	size_t passed_count; /* checks that agreed before this one */
	char text[128];      /* what did not agree */
};

/*
 * To be called from a C function that the VM has called with L and that knows
 * its own entry address. Leaves the Lua stack with more elements: the caller
 * cuts it. *failure is set where the layout is refused.
 *
 * With the JIT on compiles a loop of Lua, in a VM of its own if there can be one, so
 * that L's has no traces of it. Where that yields a trace, and only there, what
 * the layout says of traces is compared, too: *traces_compared. One at a time.
 */
bool layout_check(lua_State *L, const struct vm_layout *layout,
                  const struct vm_code *code, lua_CFunction self,
                  uint64_t *global_state, bool *traces_compared,
                  struct check_failure *failure);

/* Is L the VM that a check has made? Nobody wants to see it. */
bool layout_check_has_made(const lua_State *L);

#endif
