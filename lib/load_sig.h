// SPDX-License-Identifier: MIT
/*
 * Loads that cannot fault: they read memory of this process that may not be
 * mapped, and say so instead of crashing.
 *
 * A load is one instruction at a known address. While load_faults_catch() is
 * in force, a handler for SIGSEGV and SIGBUS makes a load that faults return
 * false; every other fault goes to the handler that was there before.
 *
 * Async-signal-safe: load_*() below, as long as SIGSEGV is not blocked.
 */
#ifndef LIB_LOAD_SIG_H
#define LIB_LOAD_SIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"

/* Counted: each catch needs a release. The last one restores the previous
 * handlers, unless somebody else has replaced ours meanwhile. */
int load_faults_catch(struct error *error);
void load_faults_release(void);

/* Is our handler still the installed one? System calls, but async-signal-safe. */
bool load_faults_caught(void);

/* The raw loads (load_sig.c); use the checked ones below. */
int load_raw_u64(const void *address, uint64_t *value);
int load_raw_u32(const void *address, uint32_t *value);
int load_raw_u16(const void *address, uint16_t *value);
int load_raw_u8(const void *address, uint8_t *value);
int load_raw_bytes(void *to, const void *address, size_t bytes);

/* User space of the supported CPUs lies below this; the null page is never
 * ours. Sorting such addresses out here spares most faults. */
#define LOAD_ADDRESS_MIN UINT64_C(0x1000)
#if defined(__aarch64__)
#define LOAD_ADDRESS_END (UINT64_C(1) << 48)
#else
#define LOAD_ADDRESS_END (UINT64_C(1) << 47)
#endif

static inline bool load_address_ok(uint64_t address)
{
	return address >= LOAD_ADDRESS_MIN && address < LOAD_ADDRESS_END;
}

static inline bool load_u64(uint64_t address, uint64_t *value)
{
	return load_address_ok(address) &&
	       load_raw_u64((const void *)address, value);
}

static inline bool load_u32(uint64_t address, uint32_t *value)
{
	return load_address_ok(address) &&
	       load_raw_u32((const void *)address, value);
}

static inline bool load_u16(uint64_t address, uint16_t *value)
{
	return load_address_ok(address) &&
	       load_raw_u16((const void *)address, value);
}

static inline bool load_u8(uint64_t address, uint8_t *value)
{
	return load_address_ok(address) &&
	       load_raw_u8((const void *)address, value);
}

static inline bool load_bytes(void *to, uint64_t address, size_t bytes)
{
	return load_address_ok(address) &&
	       load_raw_bytes(to, (const void *)address, bytes);
}

#endif
