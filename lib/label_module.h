// SPDX-License-Identifier: MIT
/* The function misc.sysprof.label, for misc_module.c to install. */
#ifndef LIB_LABEL_MODULE_H
#define LIB_LABEL_MODULE_H

#include <lua.h>

/* label(text): text or nil. true; or nil, a message and an errno. */
int label_coroutine(lua_State *L);

#endif
