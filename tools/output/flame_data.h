// SPDX-License-Identifier: MIT
/* The profile as flame.js wants it: JSON in columns, an entry of the view a
 * row. Safe inside HTML and XML. */
#ifndef OUTPUT_FLAME_DATA_H
#define OUTPUT_FLAME_DATA_H

#include <stdio.h>

#include "profile/stack_view.h"

void flame_data_write(FILE *file, const struct profile *profile,
                      const struct stack_view *view, const char *title);

#endif
