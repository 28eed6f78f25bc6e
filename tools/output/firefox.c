// SPDX-License-Identifier: MIT
/*
 * JSON of the Firefox Profiler (https://profiler.firefox.com), its processed
 * format of version 48, which later versions read: a thread for each sampled
 * one, samples in time, categories by kind of code.
 */
#include "output.h"

#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "flame_class.h"
#include "json_text.h"
#include "profile/memory.h"

#define FORMAT_VERSION      48
#define GECKO_VERSION       27
#define NANOSECONDS_IN_MS   1e6
#define INTERVAL_NS_ASSUMED 10000000 /* of dumps that do not tell */

/* Colours are names that the profiler knows. Ordered as enum flame_class. */
static const char *const category_colours[FLAME_COUNT] = {
	[FLAME_LUA] = "yellow",        [FLAME_COMPILED] = "green",
	[FLAME_LIBRARY] = "orange",    [FLAME_NATIVE] = "blue",
	[FLAME_KERNEL] = "lightblue",  [FLAME_GC] = "purple",
	[FLAME_COMPILER] = "magenta",  [FLAME_MARKER] = "grey",
	[FLAME_GROUP] = "transparent",
};

struct firefox {
	FILE *file;
	const struct profile *profile;
	uint8_t *classes;               /* of each node */
	struct profile_moment *moments; /* by thread, then in time */
};

/* ---- categories -------------------------------------------------------- */

static uint8_t *classify_nodes(const struct profile *profile)
{
	struct stack_entry *entries =
		memory_zeroed(profile->node_count, sizeof(*entries));
	uint8_t *classes = memory_zeroed(profile->node_count, 1);

	for (size_t i = 0; i < profile->count_count; i++) {
		const struct profile_count *count = &profile->counts[i];
		struct stack_entry *entry = &entries[count->node];

		entry->total += count->samples;
		entry->by_state[profile->tags[count->tag].state] +=
			count->samples;
	}
	for (size_t i = profile->node_count; i-- > 1;) {
		struct stack_entry *entry = &entries[i];
		struct stack_entry *parent = &entries[profile->nodes[i].parent];

		entry->frame = &profile->frames[profile->nodes[i].frame];
		classes[i] = (uint8_t)flame_class_of(entry);
		parent->total += entry->total;
		for (size_t state = 0; state < STATE_COUNT; state++)
			parent->by_state[state] += entry->by_state[state];
	}
	free(entries);
	return classes;
}

static void write_categories(FILE *file)
{
	fputs("\"categories\":[", file);
	for (int i = 0; i < FLAME_COUNT; i++) {
		fputs(i > 0 ? ",\n{\"name\":" : "\n{\"name\":", file);
		json_write_string(file, flame_class_name((enum flame_class)i));
		fprintf(file,
		        ",\"color\":\"%s\",\"subcategories\":[\"Other\"]}",
		        category_colours[i]);
	}
	fputc(']', file);
}

/* ---- columns ----------------------------------------------------------- */

/* "NAME":[…] with the same value count times. */
static void write_constant(FILE *file, const char *name, const char *value,
                           size_t count)
{
	fprintf(file, ",\n\"%s\":[", name);
	for (size_t i = 0; i < count; i++)
		fprintf(file, "%s%s", i > 0 ? "," : "", value);
	fputc(']', file);
}

static void begin_table(FILE *file, const char *name, size_t count)
{
	fprintf(file, ",\n\"%s\":{\"length\":%zu", name, count);
}

static uint32_t line_number(uint32_t line, uint32_t first_line)
{
	return line > 0 ? line : first_line;
}

/* Frames and functions are one to one. */
static void write_frames(const struct firefox *firefox)
{
	FILE *file = firefox->file;
	const struct profile *profile = firefox->profile;
	size_t count = profile->frame_count - 1;

	begin_table(file, "frameTable", count);
	write_constant(file, "address", "-1", count);
	write_constant(file, "inlineDepth", "0", count);
	write_constant(file, "category", "null", count);
	write_constant(file, "subcategory", "null", count);
	fputs(",\n\"func\":[", file);
	for (size_t i = 0; i < count; i++)
		fprintf(file, "%s%zu", i > 0 ? "," : "", i);
	fputs("],\n\"line\":[", file);
	for (size_t i = 1; i <= count; i++)
		fprintf(file, "%s%u", i > 1 ? "," : "",
		        line_number(profile->frames[i].line,
		                    profile->frames[i].first_line));
	fputc(']', file);
	write_constant(file, "nativeSymbol", "null", count);
	write_constant(file, "innerWindowID", "0", count);
	write_constant(file, "implementation", "null", count);
	write_constant(file, "column", "null", count);
	fputc('}', file);
}

static void write_functions(const struct firefox *firefox)
{
	FILE *file = firefox->file;
	const struct profile *profile = firefox->profile;
	size_t count = profile->frame_count - 1;

	begin_table(file, "funcTable", count);
	fputs(",\n\"name\":[", file);
	for (size_t i = 0; i < count; i++)
		fprintf(file, "%s%zu", i > 0 ? "," : "", i * 2);
	fputs("],\n\"fileName\":[", file);
	for (size_t i = 0; i < count; i++) {
		fputs(i > 0 ? "," : "", file);
		if (profile->frames[i + 1].file[0] != '\0')
			fprintf(file, "%zu", i * 2 + 1);
		else
			fputs("null", file);
	}
	fputs("],\n\"lineNumber\":[", file);
	for (size_t i = 1; i <= count; i++)
		fprintf(file, "%s%u", i > 1 ? "," : "",
		        profile->frames[i].first_line);
	fputc(']', file);
	write_constant(file, "isJS", "false", count);
	write_constant(file, "relevantForJS", "false", count);
	write_constant(file, "resource", "-1", count);
	write_constant(file, "columnNumber", "null", count);
	fputc('}', file);
}

static void write_strings(const struct firefox *firefox)
{
	FILE *file = firefox->file;
	const struct profile *profile = firefox->profile;

	fputs(",\n\"stringArray\":[", file);
	for (size_t i = 1; i < profile->frame_count; i++) {
		fputs(i > 1 ? ",\n" : "\n", file);
		json_write_string(file, profile->frames[i].name);
		fputc(',', file);
		json_write_string(file, profile->frames[i].file);
	}
	fputc(']', file);
}

static void write_stacks(const struct firefox *firefox)
{
	FILE *file = firefox->file;
	const struct profile *profile = firefox->profile;
	size_t count = profile->node_count - 1;

	begin_table(file, "stackTable", count);
	fputs(",\n\"frame\":[", file);
	for (size_t i = 1; i <= count; i++)
		fprintf(file, "%s%u", i > 1 ? "," : "",
		        profile->nodes[i].frame - 1);
	fputs("],\n\"prefix\":[", file);
	for (size_t i = 1; i <= count; i++) {
		fputs(i > 1 ? "," : "", file);
		if (profile->nodes[i].parent != PROFILE_ROOT)
			fprintf(file, "%u", profile->nodes[i].parent - 1);
		else
			fputs("null", file);
	}
	fputs("],\n\"category\":[", file);
	for (size_t i = 1; i <= count; i++)
		fprintf(file, "%s%u", i > 1 ? "," : "", firefox->classes[i]);
	fputc(']', file);
	write_constant(file, "subcategory", "0", count);
	fputc('}', file);
}

/* ---- samples ----------------------------------------------------------- */

/* Whose samples: a thread of a process. */
static bool is_same_thread(const struct profile *profile,
                           const struct profile_moment *a,
                           const struct profile_moment *b)
{
	const struct profile_tag *first = &profile->tags[a->tag];
	const struct profile_tag *second = &profile->tags[b->tag];

	return first->dump == second->dump &&
	       first->thread_id == second->thread_id;
}

static int compare_moments(const void *left, const void *right, void *context)
{
	const struct profile *profile = context;
	const struct profile_moment *a = left;
	const struct profile_moment *b = right;
	const struct profile_tag *first = &profile->tags[a->tag];
	const struct profile_tag *second = &profile->tags[b->tag];

	if (first->dump != second->dump)
		return first->dump < second->dump ? -1 : 1;
	if (first->thread_id != second->thread_id)
		return first->thread_id < second->thread_id ? -1 : 1;
	return a->time_ns < b->time_ns ? -1 : a->time_ns > b->time_ns;
}

static double milliseconds(const struct profile *profile, size_t index,
                           uint64_t time_ns)
{
	uint64_t start = profile->session.start_monotonic_ns;

	if (time_ns == 0) /* the dump does not tell */
		return (double)index * INTERVAL_NS_ASSUMED / NANOSECONDS_IN_MS;
	return time_ns > start ? (double)(time_ns - start) / NANOSECONDS_IN_MS
	                       : 0;
}

static void write_samples(const struct firefox *firefox, size_t first,
                          size_t end)
{
	FILE *file = firefox->file;
	const struct profile_moment *moments = firefox->moments;

	begin_table(file, "samples", end - first);
	fputs(",\n\"stack\":[", file);
	for (size_t i = first; i < end; i++) {
		fputs(i > first ? "," : "", file);
		if (moments[i].node != PROFILE_ROOT)
			fprintf(file, "%u", moments[i].node - 1);
		else
			fputs("null", file);
	}
	fputs("],\n\"time\":[", file);
	for (size_t i = first; i < end; i++)
		fprintf(file, "%s%.6f", i > first ? "," : "",
		        milliseconds(firefox->profile, i - first,
		                     moments[i].time_ns));
	fputs("],\n\"weight\":[", file);
	for (size_t i = first; i < end; i++)
		fprintf(file, "%s%u", i > first ? "," : "", moments[i].samples);
	fputs("],\"weightType\":\"samples\"}", file);
}

static void write_thread(const struct firefox *firefox, size_t first,
                         size_t end)
{
	FILE *file = firefox->file;
	const struct profile *profile = firefox->profile;
	const struct profile_tag *tag =
		&profile->tags[firefox->moments[first].tag];
	unsigned long long pid =
		(unsigned long long)profile->dumps[tag->dump].pid;
	unsigned long long thread = (unsigned long long)tag->thread_id;

	fprintf(file,
	        "{\"processType\":\"default\",\"processStartupTime\":0,"
	        "\"processShutdownTime\":null,\"registerTime\":0,"
	        "\"unregisterTime\":null,\"pausedRanges\":[],"
	        "\"name\":\"thread %llu\",\"isMainThread\":%s,"
	        "\"pid\":\"%llu\",\"tid\":%llu",
	        thread, thread == pid || first == 0 ? "true" : "false", pid,
	        thread);
	write_samples(firefox, first, end);
	fputs(",\n\"markers\":{\"length\":0,\"data\":[],\"name\":[],"
	      "\"startTime\":[],\"endTime\":[],\"phase\":[],"
	      "\"category\":[]}",
	      file);
	write_stacks(firefox);
	write_frames(firefox);
	write_functions(firefox);
	fputs(",\n\"resourceTable\":{\"length\":0,\"lib\":[],\"name\":[],"
	      "\"host\":[],\"type\":[]},\n\"nativeSymbols\":{\"length\":0,"
	      "\"address\":[],\"functionSize\":[],\"libIndex\":[],"
	      "\"name\":[]}",
	      file);
	write_strings(firefox);
	fputc('}', file);
}

static void write_threads(const struct firefox *firefox)
{
	const struct profile *profile = firefox->profile;
	size_t first = 0;

	fputs(",\n\"threads\":[\n", firefox->file);
	for (size_t i = 1; i <= profile->moment_count; i++) {
		if (i < profile->moment_count &&
		    is_same_thread(profile, &firefox->moments[first],
		                   &firefox->moments[i]))
			continue;
		if (first > 0)
			fputs(",\n", firefox->file);
		write_thread(firefox, first, i);
		first = i;
	}
	fputs("]", firefox->file);
}

/* ---- the whole --------------------------------------------------------- */

static void write_meta(const struct firefox *firefox, const char *title)
{
	FILE *file = firefox->file;
	const struct profile_session *session = &firefox->profile->session;
	uint64_t interval_ns = session->interval_ns > 0 ? session->interval_ns
	                                                : INTERVAL_NS_ASSUMED;

	fprintf(file,
	        "\"meta\":{\"version\":%d,\"preprocessedProfileVersion\":%d,"
	        "\"interval\":%.6f,\"startTime\":%.3f,\"processType\":0,"
	        "\"stackwalk\":1,\"debug\":false,\"symbolicated\":true,"
	        "\"usesOnlyOneStackType\":true,"
	        "\"doesNotUseFrameImplementation\":true,"
	        "\"sourceCodeIsNotOnSearchfox\":true,"
	        "\"markerSchema\":[],\"extensions\":{\"length\":0,"
	        "\"baseURL\":[],\"id\":[],\"name\":[]},\"importedFrom\":"
	        "\"" PACKAGE_NAME " " PACKAGE_VERSION "\",\"product\":",
	        GECKO_VERSION, FORMAT_VERSION,
	        (double)interval_ns / NANOSECONDS_IN_MS,
	        (double)session->start_realtime_ns / NANOSECONDS_IN_MS);
	json_write_string(file, title);
	fputs(",\n", file);
	write_categories(file);
	fputc('}', file);
}

void output_firefox(FILE *file, const struct profile *profile,
                    const char *title)
{
	struct firefox firefox = {
		.file = file,
		.profile = profile,
		.classes = classify_nodes(profile),
		.moments = memory_zeroed(profile->moment_count,
	                                 sizeof(*firefox.moments)),
	};

	if (profile->moment_count > 0)
		memcpy(firefox.moments, profile->moments,
		       profile->moment_count * sizeof(*firefox.moments));
	qsort_r(firefox.moments, profile->moment_count,
	        sizeof(*firefox.moments), compare_moments,
	        (void *)(uintptr_t)profile);
	fputc('{', file);
	write_meta(&firefox, title);
	fputs(",\n\"libs\":[],\"pages\":[],\"counters\":[],"
	      "\"profilerOverhead\":[]",
	      file);
	write_threads(&firefox);
	fputs("}\n", file);
	free(firefox.classes);
	free(firefox.moments);
}
