// SPDX-License-Identifier: MIT
/*
 * Names of frames; see frame_name.h for the rules.
 * Never allocates; not for the signal handler (snprintf).
 */
#include "frame_name.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define ELLIPSIS       "..."
#define ELLIPSIS_BYTES 3
#define NAME_BYTES_MIN 3 /* perf drops shorter ones */

/* A name under construction; never overflows. */
struct text {
	char *bytes; /* FRAME_NAME_BYTES of them */
	size_t used;
};

/* Raw bytes that become a part of a name. */
struct raw {
	const unsigned char *bytes;
	size_t count;
	bool native; /* whole name of a symbol: its ending is looked at */
};

static void put_bytes(struct text *text, const char *bytes, size_t count)
{
	size_t room = FRAME_NAME_BYTES - 1 - text->used;

	if (count > room)
		count = room;
	memcpy(text->bytes + text->used, bytes, count);
	text->used += count;
}

static void put(struct text *text, const char *string)
{
	put_bytes(text, string, strlen(string));
}

static void put_number(struct text *text, uint64_t number)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%llu", (unsigned long long)number);
	put(text, digits);
}

static size_t finish(struct text *text)
{
	text->bytes[text->used] = '\0';
	return text->used;
}

/* ---- the alphabet ------------------------------------------------------ */

static size_t utf8_tail_bytes(unsigned char lead)
{
	if (lead >= 0xc2 && lead <= 0xdf)
		return 1;
	if (lead >= 0xe0 && lead <= 0xef)
		return 2;
	if (lead >= 0xf0 && lead <= 0xf4)
		return 3;
	return 0;
}

/* Overlong forms, surrogates and what is above U+10FFFF show in the second
 * byte. */
static bool utf8_second_byte_fits(unsigned char lead, unsigned char second)
{
	switch (lead) {
	case 0xc2:
		return second >= 0xa0; /* below are control characters */
	case 0xe0:
		return second >= 0xa0;
	case 0xed:
		return second <= 0x9f;
	case 0xf0:
		return second >= 0x90;
	case 0xf4:
		return second <= 0x8f;
	}
	return true;
}

/* Length of the good multi-byte character at bytes, 0 if there is none. */
static size_t utf8_character(const unsigned char *bytes, size_t count)
{
	size_t tail = utf8_tail_bytes(bytes[0]);

	if (tail == 0 || tail >= count ||
	    !utf8_second_byte_fits(bytes[0], bytes[1]))
		return 0;
	for (size_t i = 1; i <= tail; i++)
		if ((bytes[i] & 0xc0) != 0x80)
			return 0;
	if (tail == 2 && memcmp(bytes, "\xef\xbf", 2) == 0 && bytes[2] >= 0xbe)
		return 0; /* U+FFFE, U+FFFF: not allowed in XML */
	return tail + 1;
}

static bool is_safe_ascii(unsigned char byte)
{
	return byte >= 0x20 && byte < 0x7f && strchr(";()\"'", byte) == NULL;
}

/* "+0x12ab" from at to the end of the name? */
static bool is_ending_offset(const struct raw *raw, size_t at)
{
	if (raw->count - at < 4 || memcmp(raw->bytes + at, "+0x", 3) != 0)
		return false;
	for (size_t i = at + 3; i < raw->count; i++)
		if (strchr("0123456789abcdefABCDEF", raw->bytes[i]) == NULL ||
		    raw->bytes[i] == 0)
			return false;
	return true;
}

/* The '[' of an ending "_[k]"? */
static bool is_ending_annotation(const struct raw *raw, size_t at)
{
	return at > 0 && raw->count - at == 3 && raw->bytes[at] == '[' &&
	       raw->bytes[at - 1] == '_' && raw->bytes[at + 2] == ']';
}

/* The '>' of "->", at which stackcollapse-perf.pl makes two frames? */
static bool is_arrow_head(const struct raw *raw, size_t at)
{
	return at > 0 && raw->bytes[at] == '>' && raw->bytes[at - 1] == '-';
}

static bool is_outer_space(const struct raw *raw, size_t at)
{
	return raw->bytes[at] == ' ' && (at == 0 || at + 1 == raw->count);
}

/* Spells the character at index *at, moves *at behind it, and returns the
 * length of the spelling, at most 4 bytes. */
static size_t spell(const struct raw *raw, size_t *at, char spelling[8])
{
	const unsigned char *bytes = raw->bytes + *at;
	size_t count = utf8_character(bytes, raw->count - *at);
	bool safe = is_safe_ascii(bytes[0]) && !is_outer_space(raw, *at) &&
	            !is_arrow_head(raw, *at);

	if (raw->native && is_ending_annotation(raw, *at))
		safe = false;
	if (count > 0 || safe) {
		count = count > 0 ? count : 1;
		memcpy(spelling, bytes, count);
		if (raw->native && is_ending_offset(raw, *at))
			spelling[0] = ' ';
		*at += count;
		return count;
	}
	*at += 1;
	return (size_t)snprintf(spelling, 8, "\\x%02x", bytes[0]);
}

/* Puts as many whole characters as fit; an ellipsis stands for the rest. */
static void put_beginning(struct text *text, const struct raw *raw, size_t max)
{
	char spelling[8];
	size_t start = text->used;
	size_t cut = start; /* where an ellipsis still fits */

	for (size_t at = 0; at < raw->count;) {
		size_t bytes = spell(raw, &at, spelling);

		if (text->used - start + bytes > max) {
			text->used = cut;
			put(text, ELLIPSIS);
			return;
		}
		put_bytes(text, spelling, bytes);
		if (text->used - start <= max - ELLIPSIS_BYTES)
			cut = text->used;
	}
}

/* The same, keeping the end. */
static void put_ending(struct text *text, const struct raw *raw, size_t max)
{
	char spelling[8];
	size_t total = 0;

	for (size_t at = 0; at < raw->count;)
		total += spell(raw, &at, spelling);
	if (total > max)
		put(text, ELLIPSIS);

	size_t skipped = total > max ? total - (max - ELLIPSIS_BYTES) : 0;
	size_t passed = 0;
	for (size_t at = 0; at < raw->count;) {
		size_t bytes = spell(raw, &at, spelling);

		if (passed >= skipped)
			put_bytes(text, spelling, bytes);
		passed += bytes;
	}
}

/* ---- Lua functions ----------------------------------------------------- */

/* Functions that the VM ships as bytecode have line -1 and no file. */
static bool is_built_in(uint64_t first_line)
{
	return first_line >= UINT32_C(0x80000000);
}

static bool is_blank(unsigned char byte)
{
	return byte <= ' ';
}

/* First line of a source text that is not blank. */
static void put_source(struct text *text, struct raw raw)
{
	const struct raw whole = raw;

	while (raw.count > 0 && is_blank(raw.bytes[0])) {
		raw.bytes++;
		raw.count--;
	}
	const unsigned char *end =
		raw.count ? memchr(raw.bytes, '\n', raw.count) : NULL;
	if (end != NULL)
		raw.count = (size_t)(end - raw.bytes);
	while (raw.count > 0 && is_blank(raw.bytes[raw.count - 1]))
		raw.count--;

	put(text, "[string");
	if (raw.count > 0) {
		put(text, " ");
		put_beginning(text, &raw, FRAME_NAME_TEXT_MAX - 16);
		if (end != NULL && end + 1 < whole.bytes + whole.count)
			put(text, " " ELLIPSIS);
	}
	put(text, "]");
}

/* "=(command line)" reads better, and is safe, as "[command line]". */
static void put_label(struct text *text, struct raw raw)
{
	bool round = raw.count > 2 && raw.bytes[0] == '(' &&
	             raw.bytes[raw.count - 1] == ')';

	if (round) {
		raw.bytes++;
		raw.count -= 2;
		put(text, "[");
	}
	put_beginning(text, &raw, FRAME_NAME_TEXT_MAX - 2);
	if (round)
		put(text, "]");
}

static void put_chunk(struct text *text, const char *chunk, size_t chunk_bytes)
{
	struct raw raw = {(const unsigned char *)chunk, chunk_bytes, false};
	size_t start = text->used;

	if (chunk_bytes == 0 || (chunk[0] != '@' && chunk[0] != '=')) {
		put_source(text, raw);
		return;
	}
	raw.bytes++;
	raw.count--;
	if (chunk[0] == '@')
		put_ending(text, &raw, FRAME_NAME_TEXT_MAX);
	else
		put_label(text, raw);
	if (text->used == start)
		put(text, "[no name]");
}

size_t frame_name_lua_line(char *name, const char *chunk, size_t chunk_bytes,
                           uint64_t first_line, const char *function,
                           size_t function_bytes, uint64_t line)
{
	struct text text = {name, 0};
	struct raw raw = {(const unsigned char *)function, function_bytes,
	                  false};

	if (is_built_in(first_line)) {
		raw.bytes = (const unsigned char *)chunk;
		raw.count = chunk_bytes;
		if (chunk_bytes > 1 && (chunk[0] == '@' || chunk[0] == '=')) {
			raw.bytes++;
			raw.count--;
		}
		put_beginning(&text, &raw, FRAME_NAME_TEXT_MAX);
		put(&text, text.used > 0 ? " builtin" : "builtin");
		return finish(&text);
	}
	put_beginning(&text, &raw, FRAME_NAME_TEXT_MAX);
	if (text.used == 0)
		put(&text, first_line == 0 ? "main" : "function");
	put(&text, " ");
	put_chunk(&text, chunk, chunk_bytes);
	put(&text, ":");
	put_number(&text, first_line);
	if (line != 0) {
		put(&text, " line ");
		put_number(&text, line);
	}
	return finish(&text);
}

size_t frame_name_lua(char *name, const char *chunk, size_t chunk_bytes,
                      uint64_t first_line, const char *function,
                      size_t function_bytes)
{
	return frame_name_lua_line(name, chunk, chunk_bytes, first_line,
	                           function, function_bytes, 0);
}

size_t frame_name_trace(char *name, uint64_t trace_number, const char *chunk,
                        size_t chunk_bytes, uint64_t line)
{
	struct text text = {name, 0};

	put(&text, "TRACE_");
	put_number(&text, trace_number);
	if (chunk_bytes > 0) {
		put(&text, " ");
		put_chunk(&text, chunk, chunk_bytes);
		if (!is_built_in(line)) {
			put(&text, ":");
			put_number(&text, line);
		}
	}
	return finish(&text);
}

size_t frame_name_source(char *name, const char *chunk, size_t chunk_bytes)
{
	struct text text = {name, 0};

	if (chunk_bytes > 0)
		put_chunk(&text, chunk, chunk_bytes);
	return finish(&text);
}

/* ---- everything else --------------------------------------------------- */

size_t frame_name_native(char *name, const char *symbol, size_t symbol_bytes)
{
	struct text text = {name, 0};
	struct raw raw = {(const unsigned char *)symbol, symbol_bytes, true};
	char short_name[FRAME_NAME_BYTES];

	put_beginning(&text, &raw, FRAME_NAME_TEXT_MAX);
	if (finish(&text) >= NAME_BYTES_MIN)
		return text.used;

	memcpy(short_name, name, text.used + 1);
	text.used = 0;
	put(&text, "[");
	put(&text, short_name[0] != '\0' ? short_name : "no name");
	put(&text, "]");
	return finish(&text);
}

size_t frame_name_address(char *name, uint64_t address)
{
	return (size_t)snprintf(name, FRAME_NAME_BYTES, "0x%llx",
	                        (unsigned long long)address);
}

size_t frame_marker_name(char *name, uint64_t marker, uint64_t count)
{
	static const char *const names[MARKER_COUNT] = {
		[MARKER_TRUNCATED] = "truncated",
		[MARKER_GUEST_NO_BASE] = "Lua stack: no base",
		[MARKER_GUEST_BAD_FRAME] = "Lua stack: broken frame",
		[MARKER_HOST_NO_TABLE] = "native stack: no unwind rule",
		[MARKER_HOST_BAD_READ] = "native stack: not readable",
		[MARKER_HOST_GUESSED] = "native stack: guessed",
		[MARKER_HOST_NO_PROGRESS] = "native stack: no progress",
		[MARKER_SYMBOLS_FULL] = "Lua function: symbol table full",
	};
	struct text text = {name, 0};

	put(&text, "[");
	if (marker < MARKER_COUNT && names[marker] != NULL) {
		put(&text, names[marker]);
	} else {
		put(&text, "marker ");
		put_number(&text, marker);
	}
	if (count > 0) {
		put(&text, ": ");
		put_number(&text, count);
		put(&text, count == 1 ? " frame" : " frames");
	}
	put(&text, "]");
	return finish(&text);
}

const char *lost_reason_name(uint64_t reason)
{
	static const char *const names[LOST_COUNT] = {
		[LOST_RING_FULL] = "ring full",
		[LOST_FOREIGN_THREAD] = "foreign thread",
		[LOST_NESTED] = "nested signal",
		[LOST_FAULTS_BLOCKED] = "faults blocked",
		[LOST_FAULTS_REPLACED] = "fault handler replaced",
		[LOST_LATE] = "late signal",
		[LOST_SIGNAL_REPLACED] = "signal handler replaced",
		[LOST_SIGNAL_BLOCKED] = "signal blocked",
		[LOST_UNWRITTEN] = "dump not written",
	};

	if (reason < LOST_COUNT && names[reason] != NULL)
		return names[reason];
	return "unknown reason";
}

const char *sample_state_name(uint64_t state)
{
	static const char *const names[STATE_COUNT] = {
		[STATE_INTERP] = "INTERP", [STATE_LFUNC] = "LFUNC",
		[STATE_FFUNC] = "FFUNC",   [STATE_CFUNC] = "CFUNC",
		[STATE_GC] = "GC",         [STATE_EXIT] = "EXIT",
		[STATE_RECORD] = "RECORD", [STATE_OPT] = "OPT",
		[STATE_ASM] = "ASM",       [STATE_TRACE] = "TRACE",
	};

	return state < STATE_COUNT ? names[state] : "unknown state";
}
