// SPDX-License-Identifier: MIT
/*
 * Interactive flame graph in one HTML file, with nothing from elsewhere: puts
 * the profile, flame.css and flame.js into page.html. Names come from the
 * profiled program and are hostile: flame_data.h keeps them inside the JSON.
 */
#include "output.h"

#include <string.h>

#include "flame_data.h"
#include "html_page.h"
#include "profile/stack_view.h"

/* Writes the page up to the mark; returns what is behind it. */
static const char *write_up_to(FILE *file, const char *page, const char *mark)
{
	const char *at = strstr(page, mark);

	fwrite(page, 1, (size_t)(at - page), file);
	return at + strlen(mark);
}

void output_html(FILE *file, const struct profile *profile, const char *title)
{
	struct stack_view view;
	const char *page = write_up_to(file, html_page, "@STYLE@");

	stack_view_open(&view, profile, VIEW_BY_FRAME);
	fputs(flame_style, file);
	page = write_up_to(file, page, "@DATA@");
	flame_data_write(file, profile, &view, title);
	page = write_up_to(file, page, "@SCRIPT@");
	fputs(flame_script, file);
	fputs(page, file);
	stack_view_close(&view);
}
