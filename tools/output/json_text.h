// SPDX-License-Identifier: MIT
/*
 * Strings in JSON, also where the JSON is inside an HTML page: `<`, `>` and `&`
 * are escaped, so that no name can end a script element.
 */
#ifndef OUTPUT_JSON_TEXT_H
#define OUTPUT_JSON_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* With its quotes. Bytes that are not UTF-8 become U+FFFD. */
void json_write_string(FILE *file, const char *text);
/* `"NAME":NUMBER`, after a comma unless it is the first. */
void json_write_member(FILE *file, const char *name, uint64_t number,
                       bool is_first);

#endif
