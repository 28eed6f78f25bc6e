// SPDX-License-Identifier: MIT
/*
 * Flame graph as one SVG file: a picture, root at the bottom, names in
 * tooltips, that can be embedded anywhere. Opened in a browser, its script puts
 * the interactive graph of the HTML output in the picture's place.
 */
#include "output.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "flame_class.h"
#include "flame_data.h"
#include "html_page.h"
#include "profile/memory.h"
#include "profile/stack_view.h"

#define IMAGE_WIDTH     1200
#define MARGIN          10
#define HEADER_HEIGHT   44
#define ROW_HEIGHT      17
#define CHARACTER_WIDTH 7.3 /* of the 12 px monospace font */
#define WIDTH_MIN       0.3 /* narrower frames are left out */

/* Where things are in the picture. */
struct layout {
	double pixels_per_sample;
	uint32_t rows; /* the root's included */
	bool is_comparison;
};

static void write_escaped(FILE *file, const char *text, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		switch (text[i]) {
		case '<':
			fputs("&lt;", file);
			break;
		case '>':
			fputs("&gt;", file);
			break;
		case '&':
			fputs("&amp;", file);
			break;
		case '"':
			fputs("&quot;", file);
			break;
		default:
			fputc(text[i], file);
		}
	}
}

/* Bytes of the longest beginning with at most `characters` characters. */
static size_t beginning_bytes(const char *text, size_t characters)
{
	size_t bytes = 0;

	while (text[bytes] != '\0') {
		if (((unsigned char)text[bytes] & 0xc0) != 0x80 &&
		    characters-- == 0)
			break;
		bytes++;
	}
	return bytes;
}

static void write_label(FILE *file, const char *name, double x, double y,
                        double width)
{
	if (width < 6 + 3 * CHARACTER_WIDTH)
		return;

	size_t fitting = (size_t)((width - 6) / CHARACTER_WIDTH);
	size_t bytes = beginning_bytes(name, fitting);
	bool cut = name[bytes] != '\0';

	if (cut)
		bytes = beginning_bytes(name, fitting - 2);
	fprintf(file, "<text x=\"%.1f\" y=\"%.1f\">", x + 3, y + 12.5);
	write_escaped(file, name, bytes);
	fprintf(file, "%s</text>", cut ? ".." : "");
}

/* Colour of a frame, of a comparison by what has changed. */
static void write_colour(FILE *file, const struct stack_view *view,
                         const struct stack_entry *entry, bool is_comparison)
{
	const struct stack_entry *root = &view->entries[0];
	uint64_t old_all = root->total - root->new_total;
	double new_share = 0;
	double old_share = 0;

	if (entry->frame == NULL || !is_comparison) {
		fputs(entry->frame ? flame_class_colour(flame_class_of(entry))
		                   : "#dddddd",
		      file);
		return;
	}
	if (root->new_total > 0)
		new_share = (double)entry->new_total / (double)root->new_total;
	if (old_all > 0)
		old_share = (double)(entry->total - entry->new_total) /
		            (double)old_all;

	double change = new_share - old_share;
	double strength = fmin(1, 1.6 * sqrt(fabs(change)));
	int faded = (int)(236 - 170 * strength);
	fprintf(file, change > 0 ? "#e0%02x%02x" : "#%02x%02xd8", faded, faded);
}

static void write_entry(FILE *file, const struct layout *layout,
                        const struct stack_view *view,
                        const struct stack_entry *entry, uint64_t first)
{
	uint64_t all = view->entries[0].total;
	const char *name = entry->frame ? entry->frame->name : "all";
	double x = MARGIN + (double)first * layout->pixels_per_sample;
	double width = (double)entry->total * layout->pixels_per_sample;
	uint32_t row = layout->rows - 1 - entry->depth;
	double y = HEADER_HEIGHT + (double)row * ROW_HEIGHT;

	fputs("<g><title>", file);
	write_escaped(file, name, strlen(name));
	fprintf(file, ": %llu samples, %.2f%%; %llu of its own</title>",
	        (unsigned long long)entry->total,
	        100.0 * (double)entry->total / (double)all,
	        (unsigned long long)entry->self);
	fprintf(file,
	        "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" "
	        "fill=\"",
	        x, y, width, ROW_HEIGHT - 1);
	write_colour(file, view, entry, layout->is_comparison);
	fputs("\"/>", file);
	write_label(file, name, x, y, width);
	fputs("</g>\n", file);
}

static void write_legend(FILE *file, int place, const char *colour,
                         const char *text)
{
	int x = MARGIN + place * 130;

	fprintf(file,
	        "<rect x=\"%d\" y=\"26\" width=\"10\" height=\"10\" "
	        "fill=\"%s\"/><text x=\"%d\" y=\"35\" "
	        "font-size=\"10\">%s</text>\n",
	        x, colour, x + 14, text);
}

static void write_class_legend(FILE *file)
{
	for (int i = 0; i < FLAME_COUNT; i++)
		write_legend(file, i, flame_class_colour((enum flame_class)i),
		             flame_class_name((enum flame_class)i));
}

static void write_comparison_legend(FILE *file)
{
	write_legend(file, 0, "#4242d8", "less than before");
	write_legend(file, 1, "#ececec", "as before");
	write_legend(file, 2, "#e04242", "more than before");
}

static void write_head(FILE *file, const struct layout *layout,
                       const char *title, uint64_t samples)
{
	uint32_t height = HEADER_HEIGHT + layout->rows * ROW_HEIGHT + MARGIN;

	fprintf(file,
	        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
	        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
	        "height=\"%u\" viewBox=\"0 0 %d %u\" "
	        "font-family=\"monospace\" font-size=\"12\">\n"
	        "<g id=\"picture\">\n"
	        "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n"
	        "<text x=\"%d\" y=\"18\" font-size=\"14\">",
	        IMAGE_WIDTH, height, IMAGE_WIDTH, height, MARGIN);
	write_escaped(file, title, strlen(title));
	fprintf(file, ": %llu samples</text>\n", (unsigned long long)samples);
	if (layout->is_comparison)
		write_comparison_legend(file);
	else
		write_class_legend(file);
}

/* First sample of each entry: its parent's, and behind its elder siblings. */
static void write_entries(FILE *file, const struct layout *layout,
                          const struct stack_view *view)
{
	uint64_t *next = memory_zeroed(view->depth + 2, sizeof(*next));

	for (size_t i = 0; i < view->count; i++) {
		const struct stack_entry *entry = &view->entries[i];
		uint64_t first = next[entry->depth];

		next[entry->depth] += entry->total;
		next[entry->depth + 1] = first;
		if ((double)entry->total * layout->pixels_per_sample >=
		    WIDTH_MIN)
			write_entry(file, layout, view, entry, first);
	}
	free(next);
}

/* Puts the interactive graph over the picture, where scripts run. */
static void write_interaction(FILE *file, const struct profile *profile,
                              const struct stack_view *view, const char *title)
{
	fputs("<style>\n", file);
	fputs(flame_style, file);
	fputs("</style>\n"
	      "<foreignObject width=\"100%\" height=\"100%\" "
	      "visibility=\"hidden\">"
	      "<div xmlns=\"http://www.w3.org/1999/xhtml\" id=\"flame\">"
	      "</div></foreignObject>\n"
	      "<script type=\"application/json\" id=\"flame-data\">",
	      file);
	flame_data_write(file, profile, view, title);
	fputs("</script>\n<script><![CDATA[\n"
	      "{\n"
	      "\tconst root = document.documentElement;\n"
	      "\troot.setAttribute(\"width\", \"100%\");\n"
	      "\troot.setAttribute(\"height\", \"100%\");\n"
	      "\troot.removeAttribute(\"viewBox\");\n"
	      "\tdocument.getElementById(\"picture\").remove();\n"
	      "\troot.querySelector(\"foreignObject\")"
	      ".removeAttribute(\"visibility\");\n"
	      "}\n",
	      file);
	fputs(flame_script, file);
	fputs("]]></script>\n", file);
}

void output_svg(FILE *file, const struct profile *profile, const char *title)
{
	struct stack_view view;

	stack_view_open(&view, profile, VIEW_BY_FRAME);
	struct layout layout = {
		.rows = view.depth + 1,
		.is_comparison = profile->new_from > 0,
	};
	if (view.entries[0].total > 0)
		layout.pixels_per_sample = (double)(IMAGE_WIDTH - 2 * MARGIN) /
		                           (double)view.entries[0].total;
	write_head(file, &layout, title, view.entries[0].total);
	write_entries(file, &layout, &view);
	fputs("</g>\n", file);
	write_interaction(file, profile, &view, title);
	fputs("</svg>\n", file);
	stack_view_close(&view);
}
