// SPDX-License-Identifier: MIT
/*
 * All that the profile has, as JSON for scripts; doc/luajit-parse-sysprof.1
 * describes it. One stack a line: tools that read lines can read it too.
 */
#include "output.h"

#include <stdlib.h>

#include "json_text.h"
#include "profile/memory.h"
#include "profile/select.h"
#include "stream/frame_name.h"

#define FORMAT_VERSION 1

static const char *kind_name(uint8_t kind)
{
	switch (kind) {
	case FRAME_HOST:
		return "native";
	case FRAME_LUA:
		return "lua";
	case FRAME_C:
		return "c";
	case FRAME_FAST:
		return "library";
	case FRAME_GROUP:
		return "group";
	}
	return "missing";
}

/* ---- the whole --------------------------------------------------------- */

static void write_session(FILE *file, const struct profile_session *session)
{
	if (!session->known)
		return;
	fputs(",\n\"session\":{", file);
	json_write_member(file, "pid", session->pid, true);
	json_write_member(file, "interval_ns", session->interval_ns, false);
	json_write_member(file, "start_monotonic_ns",
	                  session->start_monotonic_ns, false);
	json_write_member(file, "start_realtime_ns", session->start_realtime_ns,
	                  false);
	if (session->ended)
		json_write_member(file, "stop_monotonic_ns",
		                  session->stop_monotonic_ns, false);
	fputs(",\"clock\":", file);
	json_write_string(file, session->clock ? session->clock : "");
	fputs(",\"vm\":", file);
	json_write_string(file, session->vm ? session->vm : "");
	fputs(",\"writer\":", file);
	json_write_string(file, session->writer ? session->writer : "");
	fputc('}', file);
}

static void write_dumps(FILE *file, const struct profile *profile)
{
	fputs(",\n\"dumps\":[", file);
	for (size_t i = 0; i < profile->dump_count; i++) {
		const struct profile_dump *dump = &profile->dumps[i];

		fputs(i > 0 ? ",{\"file\":" : "{\"file\":", file);
		json_write_string(file, dump->file_name);
		json_write_member(file, "pid", dump->pid, false);
		json_write_member(file, "samples", dump->sample_count, false);
		if (profile->new_from > 0)
			fprintf(file, ",\"side\":\"%s\"",
			        i >= profile->new_from ? "new" : "old");
		fputc('}', file);
	}
	fputc(']', file);
}

static void write_counters(FILE *file, const struct profile *profile)
{
	bool is_first = true;

	json_write_member(file, "samples", profile->sample_count, false);
	fputs(",\n\"states\":{", file);
	for (size_t state = 0; state < STATE_COUNT; state++)
		json_write_member(file, sample_state_name(state),
		                  profile->by_state[state], state == 0);
	fputs("},\n\"lost\":{", file);
	for (size_t i = 0; i < PROFILE_LOST_REASONS; i++) {
		if (profile->lost[i] == 0)
			continue;
		json_write_member(file, lost_reason_name(i), profile->lost[i],
		                  is_first);
		is_first = false;
	}
	fputc('}', file);
}

/* ---- frames and stacks ------------------------------------------------- */

static void write_frame(FILE *file, const struct profile_frame *frame)
{
	fputs("{\"name\":", file);
	json_write_string(file, frame->name);
	fprintf(file, ",\"kind\":\"%s\"", kind_name(frame->kind));
	if (frame->flags & FRAME_FLAG_COMPILED)
		fputs(",\"compiled\":true", file);
	if (frame->flags & PROFILE_FLAG_KERNEL)
		fputs(",\"kernel\":true", file);
	if (frame->file[0] != '\0') {
		fputs(",\"file\":", file);
		json_write_string(file, frame->file);
		json_write_member(file, "first_line", frame->first_line, false);
	}
	if (frame->line > 0)
		json_write_member(file, "line", frame->line, false);
	fputc('}', file);
}

static void write_tag(FILE *file, const struct profile *profile,
                      const struct profile_tag *tag)
{
	fprintf(file, ",\"state\":\"%s\"", sample_state_name(tag->state));
	json_write_member(file, "dump", tag->dump, false);
	if (tag->trace != 0) {
		fputs(",\"trace\":", file);
		json_write_string(file, profile->frames[tag->trace].name);
	}
	if (tag->thread_id != 0)
		json_write_member(file, "thread", tag->thread_id, false);
	if (tag->vm_number != 0)
		json_write_member(file, "vm", tag->vm_number, false);
	if (tag->coroutine != 0)
		fprintf(file, ",\"coroutine\":\"0x%llx\"",
		        (unsigned long long)tag->coroutine);
	if (tag->label != NULL) {
		fputs(",\"label\":", file);
		json_write_string(file, tag->label);
	}
}

/* Frames of the stack of a node into *path, leaf first; returns how many. */
static size_t climb(const struct profile *profile, uint32_t node,
                    uint32_t **path, size_t *capacity)
{
	size_t depth = 0;

	for (; node != PROFILE_ROOT; node = profile->nodes[node].parent) {
		*path = memory_grow(*path, capacity, depth + 1, sizeof(**path));
		(*path)[depth++] = profile->nodes[node].frame;
	}
	return depth;
}

static void write_stacks(FILE *file, const struct profile *profile)
{
	uint32_t *path = NULL;
	size_t capacity = 0;

	fputs("],\n\"stacks\":[", file);
	for (size_t i = 0; i < profile->count_count; i++) {
		const struct profile_count *count = &profile->counts[i];
		size_t depth = climb(profile, count->node, &path, &capacity);

		fputs(i > 0 ? ",\n{\"frames\":[" : "\n{\"frames\":[", file);
		for (size_t frame = depth; frame-- > 0;)
			fprintf(file, "%u%s", path[frame] - 1,
			        frame > 0 ? "," : "");
		fputc(']', file);
		json_write_member(file, "samples", count->samples, false);
		write_tag(file, profile, &profile->tags[count->tag]);
		fputc('}', file);
	}
	free(path);
}

void output_json(FILE *file, const struct profile *profile, const char *title)
{
	fputs("{\"format\":\"luajit-sysprof\",", file);
	json_write_member(file, "version", FORMAT_VERSION, true);
	fputs(",\n\"title\":", file);
	json_write_string(file, title);
	write_counters(file, profile);
	write_dumps(file, profile);
	if (profile->dump_count == 1)
		write_session(file, &profile->session);
	fputs(",\n\"frames\":[", file);
	for (size_t i = 1; i < profile->frame_count; i++) {
		fputs(i > 1 ? ",\n" : "\n", file);
		write_frame(file, &profile->frames[i]);
	}
	write_stacks(file, profile);
	fputs("]}\n", file);
}
