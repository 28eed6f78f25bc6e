// SPDX-License-Identifier: MIT
/* Strings in JSON; see json_text.h. */
#include "json_text.h"

#include <string.h>

/* Length of the character at text; 0: not UTF-8. Names of frames are UTF-8
 * already, file names and compat names may be anything. */
static size_t character_bytes(const unsigned char *text)
{
	size_t count = text[0] < 0x80                       ? 1
	               : text[0] >= 0xc2 && text[0] <= 0xdf ? 2
	               : (text[0] & 0xf0) == 0xe0           ? 3
	               : text[0] >= 0xf0 && text[0] <= 0xf4 ? 4
	                                                    : 0;

	for (size_t i = 1; i < count; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	if ((text[0] == 0xe0 && text[1] < 0xa0) ||
	    (text[0] == 0xed && text[1] > 0x9f) ||
	    (text[0] == 0xf0 && text[1] < 0x90) ||
	    (text[0] == 0xf4 && text[1] > 0x8f))
		return 0; /* overlong, surrogate, or above U+10FFFF */
	return count;
}

void json_write_string(FILE *file, const char *text)
{
	const unsigned char *at = (const unsigned char *)text;

	fputc('"', file);
	while (*at != '\0') {
		size_t bytes = character_bytes(at);

		if (bytes == 0)
			fputs("\\ufffd", file);
		else if (*at < 0x20 || strchr("\"\\<>&\x7f", *at) != NULL)
			fprintf(file, "\\u%04x", *at);
		else
			fwrite(at, 1, bytes, file);
		at += bytes > 0 ? bytes : 1;
	}
	fputc('"', file);
}

void json_write_member(FILE *file, const char *name, uint64_t number,
                       bool is_first)
{
	fprintf(file, "%s\"%s\":%llu", is_first ? "" : ",", name,
	        (unsigned long long)number);
}
