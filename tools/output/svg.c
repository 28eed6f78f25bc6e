// SPDX-License-Identifier: MIT
/*
 * Flame graph as one SVG picture: root at the bottom, names in tooltips. No
 * script and nothing from elsewhere, so it can be embedded anywhere.
 */
#include "output.h"

#include <stdlib.h>
#include <string.h>

#include "flame_class.h"
#include "profile/memory.h"
#include "profile/stack_view.h"

#define IMAGE_WIDTH     1200
#define MARGIN          10
#define HEADER_HEIGHT   44
#define ROW_HEIGHT      17
#define CHARACTER_WIDTH 7.3 /* of the 12 px monospace font */
#define WIDTH_MIN       0.1 /* narrower frames are left out */

/* Where things are in the picture. */
struct layout {
	double pixels_per_sample;
	uint32_t rows; /* the root's included */
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

static void write_entry(FILE *file, const struct layout *layout,
                        const struct stack_entry *entry, uint64_t first,
                        uint64_t all)
{
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
	        "fill=\"%s\"/>",
	        x, y, width, ROW_HEIGHT - 1,
	        entry->frame ? flame_class_colour(flame_class_of(entry))
	                     : "#dddddd");
	write_label(file, name, x, y, width);
	fputs("</g>\n", file);
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
	        "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n"
	        "<text x=\"%d\" y=\"18\" font-size=\"14\">",
	        IMAGE_WIDTH, height, IMAGE_WIDTH, height, MARGIN);
	write_escaped(file, title, strlen(title));
	fprintf(file, ": %llu samples</text>\n", (unsigned long long)samples);
	for (int i = 0; i < FLAME_COUNT; i++) {
		enum flame_class class = (enum flame_class)i;
		int x = MARGIN + i * 168;

		fprintf(file,
		        "<rect x=\"%d\" y=\"26\" width=\"10\" height=\"10\" "
		        "fill=\"%s\"/><text x=\"%d\" y=\"35\" "
		        "font-size=\"10\">%s</text>\n",
		        x, flame_class_colour(class), x + 14,
		        flame_class_name(class));
	}
}

/* First sample of each entry: its parent's, and behind its elder siblings. */
static void write_entries(FILE *file, const struct layout *layout,
                          const struct stack_view *view)
{
	uint64_t *next = memory_zeroed(view->depth + 2, sizeof(*next));
	uint64_t all = view->entries[0].total;

	for (size_t i = 0; i < view->count; i++) {
		const struct stack_entry *entry = &view->entries[i];
		uint64_t first = next[entry->depth];

		next[entry->depth] += entry->total;
		next[entry->depth + 1] = first;
		if ((double)entry->total * layout->pixels_per_sample >=
		    WIDTH_MIN)
			write_entry(file, layout, entry, first, all);
	}
	free(next);
}

void output_svg(FILE *file, const struct profile *profile, const char *title)
{
	struct stack_view view;

	stack_view_open(&view, profile, VIEW_BY_FRAME);
	struct layout layout = {.rows = view.depth + 1};
	if (view.entries[0].total > 0)
		layout.pixels_per_sample = (double)(IMAGE_WIDTH - 2 * MARGIN) /
		                           (double)view.entries[0].total;
	write_head(file, &layout, title, view.entries[0].total);
	write_entries(file, &layout, &view);
	fputs("</svg>\n", file);
	stack_view_close(&view);
}
