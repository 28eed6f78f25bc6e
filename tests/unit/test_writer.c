// SPDX-License-Identifier: MIT
/*
 * Writer: what goes into a dump for given ring records, and what happens when
 * the stream fails. Sampler, symbols and function names are fakes, so that
 * every byte but the times is known; the dump is told back as text.
 */
#include "writer.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "function_names.h"
#include "labels_sig.h"
#include "sample.h"
#include "host/host_symbols.h"
#include "host/unwind_table.h"
#include "stream/codec.h"

#define DUMP_BYTES_MAX (4u << 20)
#define FILE_BYTES_MAX 65536

/* ---- fakes ---------------------------------------------------------------- */

struct sampler {
	struct ring ring;
	pthread_mutex_t lock; /* guards counters */
	struct sampler_counters counters;
	atomic_bool disabled;
};

static struct sampler fake = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct ring *sampler_ring(struct sampler *sampler)
{
	return &sampler->ring;
}

void sampler_read_counters(const struct sampler *sampler,
                           struct sampler_counters *counters)
{
	(void)sampler;
	pthread_mutex_lock(&fake.lock);
	*counters = fake.counters;
	pthread_mutex_unlock(&fake.lock);
}

void sampler_disable(struct sampler *sampler)
{
	sampler->disabled = true;
}

const char *labels_text(uint32_t label)
{
	return label ? "label" : "";
}

int unwind_tables_refresh(uint64_t needed, uint64_t budget_ns,
                          struct error *error)
{
	(void)needed;
	(void)budget_ns;
	(void)error;
	return 0;
}

size_t unwind_tables_held_bytes(void)
{
	return 0;
}

size_t host_symbols_held_bytes(const struct host_symbols *symbols)
{
	(void)symbols;
	return 0;
}

size_t function_names_held_bytes(const struct function_names *names)
{
	(void)names;
	return 0;
}

struct host_symbols *host_symbols_open(struct error *error)
{
	(void)error;
	return (void *)&fake;
}

void host_symbols_close(struct host_symbols *symbols)
{
	(void)symbols;
}

/* Functions are 0x100 bytes long and named after their start. */
void host_symbols_find(struct host_symbols *symbols, uint64_t address,
                       struct host_symbol *symbol)
{
	(void)symbols;
	symbol->start = address & ~UINT64_C(0xff);
	symbol->end = symbol->start + 0x100;
	snprintf(symbol->name, sizeof(symbol->name), "native_%llx",
	         (unsigned long long)symbol->start);
}

struct function_names *function_names_open(void)
{
	return (void *)&fake;
}

void function_names_close(struct function_names *names)
{
	(void)names;
}

/* The name by which it was called, or one after its first line. */
size_t function_names_find(struct function_names *names,
                           const struct function_facts *function, char *name,
                           size_t capacity)
{
	(void)names;
	name[0] = '\0';
	ck_assert_uint_eq(function->last_line, function->first_line + 9);
	if (function->call_name_bytes > 0)
		return (size_t)snprintf(name, capacity, "%.*s%s",
		                        (int)function->call_name_bytes,
		                        function->call_name,
		                        function->stripped ? " stripped" : "");
	if (function->first_line == 0)
		return 0;
	return (size_t)snprintf(name, capacity, "function_%u",
	                        function->first_line);
}

/* ---- the ring's contents -------------------------------------------------- */

static void *reserve(size_t bytes)
{
	void *record = ring_reserve(&fake.ring, bytes);

	/* Each ck_assert writes to a file of check's, which a test limits. */
	if (!record)
		ck_abort_msg("the ring is full");
	memset(record, 0, bytes);
	return record;
}

static void commit(void *at, size_t bytes, uint32_t kind)
{
	struct ring_record *record = at;

	record->bytes = (uint32_t)(bytes + 7) & ~7u;
	record->kind = kind;
	ring_commit(&fake.ring, record);
}

static void put_called_symbol(uint32_t id, uint64_t prototype,
                              const char *chunk, uint32_t first_line,
                              uint64_t arena_address, const char *call_name,
                              bool stripped)
{
	size_t bytes =
		sizeof(struct lua_symbol) + strlen(chunk) + strlen(call_name);
	struct lua_symbol *symbol = reserve((bytes + 7) & ~UINT64_C(7));

	symbol->id = id;
	symbol->prototype = prototype;
	symbol->arena_address = arena_address;
	symbol->first_line = first_line;
	symbol->line_count = 9;
	symbol->chunk_bytes = (uint32_t)strlen(chunk);
	symbol->call_name_bytes = (uint32_t)strlen(call_name);
	symbol->stripped = stripped;
	memcpy(symbol->chunk, chunk, strlen(chunk));
	memcpy(symbol->chunk + strlen(chunk), call_name, strlen(call_name));
	commit(symbol, bytes, RING_LUA_SYMBOL);
}

static void put_lua_symbol(uint32_t id, uint64_t prototype, const char *chunk,
                           uint32_t first_line, uint64_t arena_address)
{
	put_called_symbol(id, prototype, chunk, first_line, arena_address, "",
	                  false);
}

static void put_trace_symbol(uint32_t number, uint32_t lua_symbol,
                             uint32_t start_line)
{
	struct trace_symbol *trace = reserve(sizeof(*trace));

	trace->trace_number = number;
	trace->lua_symbol = lua_symbol;
	trace->start_line = start_line;
	trace->code = 0x7000;
	trace->code_bytes = 0x80;
	commit(trace, sizeof(*trace), RING_TRACE_SYMBOL);
}

/* Frames leaf first. */
static void put_sample(enum sample_state state, const struct frame *frames,
                       size_t count, uint32_t trace_number)
{
	size_t bytes = sizeof(struct sample) + count * sizeof(*frames);
	struct sample *sample = reserve(bytes);

	sample->state = (uint8_t)state;
	sample->thread_id = 77;
	sample->vm_number = 1;
	sample->coroutine = 0xc0;
	sample->time_ns = 1000;
	sample->frame_count = (uint16_t)count;
	sample->trace_number = trace_number;
	sample->trace_symbol = trace_number > 0 ? 1 : 0;
	memcpy(sample->frames, frames, count * sizeof(*frames));
	commit(sample, bytes, RING_SAMPLE);
	pthread_mutex_lock(&fake.lock);
	fake.counters.samples++;
	fake.counters.by_state[state]++;
	pthread_mutex_unlock(&fake.lock);
}

/* ---- a dump as text -------------------------------------------------------- */

struct text {
	char bytes[1u << 16];
	size_t used;
};

__attribute__((format(printf, 2, 3))) static void
put_text(struct text *text, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	text->used += (size_t)vsnprintf(text->bytes + text->used,
	                                sizeof(text->bytes) - text->used,
	                                format, args);
	va_end(args);
	ck_assert_uint_lt(text->used, sizeof(text->bytes));
}

static unsigned long long number(struct byte_input *in)
{
	uint64_t value;

	ck_assert_msg(byte_input_get_number(in, &value), "number cut short");
	return value;
}

static uint8_t byte(struct byte_input *in)
{
	uint8_t value;

	ck_assert_msg(byte_input_get_byte(in, &value), "byte missing");
	return value;
}

/* To a static buffer, of which two are used in turn. */
static const char *string(struct byte_input *in)
{
	static char strings[2][4096];
	static int next;
	char *to = strings[next ^= 1];
	unsigned long long length = number(in);

	ck_assert_uint_lt(length, sizeof(strings[0]));
	ck_assert(byte_input_get_bytes(in, to, length));
	to[length] = '\0';
	return to;
}

static void put_numbers(struct text *text, struct byte_input *in, int count)
{
	while (count-- > 0)
		put_text(text, " %llx", number(in));
}

static void put_node(struct text *text, struct byte_input *in)
{
	unsigned kind;

	put_text(text, "node under %llu:", number(in));
	kind = byte(in);
	put_text(text, " %u", kind & FRAME_KIND_MASK);
	if (kind & FRAME_FLAG_COMPILED)
		put_text(text, " compiled");
	kind &= FRAME_KIND_MASK;
	put_numbers(text, in,
	            kind == FRAME_LUA || kind == FRAME_MARKER ? 2 : 1);
}

static void put_session(struct text *text, struct byte_input *in)
{
	put_text(text, "session version %llu", number(in));
	ck_assert_uint_eq(number(in), (unsigned long long)getpid());
	put_text(text, " mode %llu", number(in));
	put_text(text, " interval %llu", number(in));
	ck_assert_uint_gt(number(in), 0);
	ck_assert_uint_gt(number(in), 0);
	put_text(text, " %s;", string(in));
	put_text(text, " %s;", string(in));
	ck_assert_int_eq(strncmp(string(in), "luajit-sysprof ", 15), 0);
}

static bool own_code_is_mapped;

/* What is mapped differs from machine to machine; this program always is. */
static void read_mapping(struct byte_input *in)
{
	uint64_t offset = (uint64_t)read_mapping - number(in);

	if (offset < number(in))
		own_code_is_mapped = true;
	number(in);
	number(in);
	ck_assert_uint_le(strlen(string(in)), 20);
	ck_assert_uint_gt(strlen(string(in)), 0);
	ck_assert(byte_input_at_end(in));
}

static void put_item(struct text *text, unsigned kind, struct byte_input *in)
{
	switch (kind) {
	case ITEM_MAPPING:
		read_mapping(in);
		return;
	case ITEM_SESSION:
		put_session(text, in);
		break;
	case ITEM_LUA_SYMBOL:
		put_text(text, "lua");
		put_numbers(text, in, 4);
		put_text(text, " %s", string(in));
		put_text(text, " %s", string(in));
		break;
	case ITEM_FAST_SYMBOL:
		put_text(text, "fast %llu", number(in));
		put_text(text, " %s", string(in));
		break;
	case ITEM_NODE:
		put_node(text, in);
		break;
	case ITEM_SAMPLE:
		number(in); /* the time */
		put_text(text, "facts");
		put_numbers(text, in, 4);
		break;
	case ITEM_LOST:
		put_text(text, "lost");
		put_numbers(text, in, 2);
		break;
	case ITEM_TRACE_CODE:
		put_text(text, "code of trace");
		put_numbers(text, in, 3);
		break;
	case ITEM_END:
		ck_assert(own_code_is_mapped);
		ck_assert_uint_gt(number(in), 0);
		put_text(text, "totals");
		put_numbers(text, in, 2);
		break;
	default:
		ck_abort_msg("item %u", kind);
	}
	put_text(text, "\n");
	ck_assert(byte_input_at_end(in));
}

static void put_items(struct text *text, struct byte_input *in)
{
	static char body[4096];
	unsigned long long end = number(in);

	end += byte_input_offset(in);
	while (byte_input_offset(in) < end) {
		struct byte_input item;
		unsigned kind = byte(in);
		unsigned long long length = number(in);

		ck_assert_uint_lt(length, sizeof(body));
		ck_assert(byte_input_get_bytes(in, body, length));
		byte_input_open_memory(&item, body, length, 0);
		put_item(text, kind, &item);
	}
	ck_assert_uint_eq(byte_input_offset(in), end);
}

static void put_sample_text(struct text *text, unsigned state,
                            struct byte_input *in)
{
	bool has_guest = state >= STATE_LFUNC && state <= STATE_CFUNC;
	unsigned long long address;
	unsigned type;

	put_text(text, "sample %u", state);
	if (state == STATE_TRACE) {
		put_numbers(text, in, 3);
		put_text(text, "\n");
		return;
	}
	while (has_guest && (type = byte(in)) != GUEST_BOTTOM) {
		put_text(text, " [%u", type);
		put_numbers(text, in, type == GUEST_LUA ? 2 : 1);
		put_text(text, "]");
	}
	while ((address = number(in)) != 0)
		put_text(text, " %llx", address);
	put_text(text, "\n");
}

/* False at the end of the input; *ended at the end record. */
static bool put_record(struct text *text, struct byte_input *in, bool *ended)
{
	unsigned long long address;
	unsigned kind;

	if (byte_input_at_end(in))
		return false;
	kind = byte(in);
	if (kind < STATE_COUNT) {
		put_sample_text(text, kind, in);
	} else if (kind == SYSPROF_NEW_PROTO) {
		put_text(text, "proto %llx", number(in));
		put_text(text, " %s", string(in));
		put_text(text, " %lld\n", (long long)number(in));
	} else if (kind == SYSPROF_NEW_C) {
		address = number(in);
		if (address == EXTENSION_ADDRESS)
			put_items(text, in);
		else
			put_text(text, "c %llx %s\n", address, string(in));
	} else if (kind == SYSPROF_NEW_TRACE) {
		put_text(text, "trace");
		put_numbers(text, in, 3);
		put_text(text, "\n");
	} else {
		ck_assert_uint_eq(kind, SYSPROF_END);
		*ended = true;
	}
	return !*ended;
}

/* True: it ends in the end record. */
static bool tell_dump(const void *bytes, size_t count, struct text *text)
{
	static const char head[] = "ljs\3\0\0\0\x80ljp\2\0\0\0";
	static struct byte_input in;
	bool ended = false;

	text->used = 0;
	text->bytes[0] = '\0';
	ck_assert_uint_ge(count, sizeof(head) - 1);
	ck_assert_mem_eq(bytes, head, sizeof(head) - 1);
	byte_input_open_memory(&in, (const char *)bytes + sizeof(head) - 1,
	                       count - (sizeof(head) - 1), 0);
	while (put_record(text, &in, &ended))
		;
	ck_assert(byte_input_at_end(&in));
	return ended;
}

/* ---- the writer under test -------------------------------------------------- */

static struct fast_names fast_names;
static char directory[64];
static char path[96];
static uint8_t dump[DUMP_BYTES_MAX];
static size_t dump_bytes;
static struct text told;

static struct writer_options options_for(uint8_t mode)
{
	fast_names.count = 3;
	strcpy(fast_names.name[2], "string.format");
	return (struct writer_options){
		.sampler = &fake,
		.mode = mode,
		.interval_ns = 10000000,
		.clock_name = "some clock",
		.vm_description = "some VM",
		.fast_names = &fast_names,
	};
}

static void prepare(void)
{
	struct error error;

	strcpy(directory, "/tmp/test_writer.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/dump.bin", directory);
	dump_bytes = 0;
	ck_assert_int_eq(ring_open(&fake.ring, 1u << 20, &error), 0);
}

static void clean_up(void)
{
	unlink(path);
	rmdir(directory);
	ring_close(&fake.ring);
}

static void read_dump_file(void)
{
	FILE *file = fopen(path, "r");

	ck_assert_ptr_nonnull(file);
	dump_bytes = fread(dump, 1, sizeof(dump), file);
	fclose(file);
}

static struct writer *open_or_fail(const struct writer_options *options)
{
	struct error error;
	struct writer *writer = writer_open(options, &error);

	ck_assert_msg(writer != NULL, "%s", error.text);
	return writer;
}

static void close_or_fail(struct writer *writer)
{
	struct error error;

	ck_assert_msg(writer_close(writer, &error) == 0, "%s", error.text);
}

static void sleep_ms(int ms)
{
	struct timespec time = {ms / 1000, ms % 1000 * 1000000L};

	nanosleep(&time, NULL);
}

static const struct frame lua_stack[] = {
	{.kind = FRAME_HOST, .value = 0x5010},
	{.kind = FRAME_FAST, .value = 2},
	{.kind = FRAME_LUA,
         .value = 1,
         .line = 5,
         .flags = FRAME_FLAG_COMPILED},
	{.kind = FRAME_HOST, .value = 0x6020},
	{.kind = FRAME_C, .value = 0x5000},
	{.kind = FRAME_LUA, .value = 2, .line = 1},
	{.kind = FRAME_MARKER, .value = MARKER_TRUNCATED, .line = 7},
	{.kind = FRAME_HOST, .value = 0x50ff},
};

#define LUA_STACK_FRAMES (sizeof(lua_stack) / sizeof(lua_stack[0]))

static void put_everything(void)
{
	put_lua_symbol(1, 0x100, "@a.lua", 3, 0);
	put_lua_symbol(2, 0x200, "@a.lua", 0, 0);
	put_sample(STATE_FFUNC, lua_stack, LUA_STACK_FRAMES, 0);
	put_sample(STATE_FFUNC, lua_stack, LUA_STACK_FRAMES, 0);
	put_sample(STATE_GC, lua_stack + 3, LUA_STACK_FRAMES - 3, 0);
	put_trace_symbol(9, 1, 4);
	put_sample(STATE_TRACE, lua_stack + 2, LUA_STACK_FRAMES - 2, 9);
	put_lua_symbol(3, 0x100, "=x", UINT32_MAX, 0);
	put_sample(STATE_LFUNC,
	           (struct frame[]){{.kind = FRAME_LUA, .value = 3}}, 1, 0);
	put_sample(STATE_INTERP, lua_stack, 0, 0);
}

static const char head_text[] =
	"session version 1 mode 2 interval 10000000 some clock; some VM;\n"
	"fast 2 string.format\n";

/* Numbers are hexadecimal. */
static const char everything_text[] =
	"proto 100 @a.lua 3\n"
	"lua 1 100 3 9 @a.lua function_3\n"
	"proto 200 @a.lua 0\n"
	"lua 2 200 0 9 @a.lua \n"
	"c 5000 native_5000\n"
	"c 6000 native_6000\n"
	"node under 0: 1 50ff\n"
	"node under 1: 5 1 7\n"
	"node under 2: 2 2 1\n"
	"node under 3: 3 5000\n"
	"node under 4: 1 6020\n"
	"node under 5: 2 compiled 1 5\n"
	"node under 6: 4 2\n"
	"node under 7: 1 5010\n"
	"facts 4d 1 c0 8\n"
	"sample 2 [3 2] [1 100 3] [2 5000] [1 200 0] 5010 6020 50ff\n"
	"facts 4d 1 c0 8\n"
	"sample 2 [3 2] [1 100 3] [2 5000] [1 200 0] 5010 6020 50ff\n"
	"facts 4d 1 c0 5\n"
	"sample 4 6020 50ff\n"
	"trace 9 100 4\n"
	"code of trace 9 7000 80\n"
	"facts 4d 1 c0 6\n"
	"sample 9 9 100 3\n"
	"proto 100 =x -1\n"
	"lua 3 100 ffffffffffffffff 9 =x function_4294967295\n"
	"node under 0: 2 3 0\n"
	"facts 4d 1 c0 9\n"
	"sample 1 [1 100 ffffffffffffffff]\n"
	"facts 4d 1 c0 0\n"
	"sample 0\n";

START_TEST(ring_contents_become_records_in_order)
{
	struct writer_options options = options_for(LUAM_SYSPROF_CALLGRAPH);
	struct writer *writer;
	char expected[8192];

	options.path = path;
	writer = open_or_fail(&options);
	put_everything();
	pthread_mutex_lock(&fake.lock);
	fake.counters.lost[LOST_RING_FULL] = 3;
	pthread_mutex_unlock(&fake.lock);
	close_or_fail(writer);
	read_dump_file();
	ck_assert(tell_dump(dump, dump_bytes, &told));
	snprintf(expected, sizeof(expected), "%s%slost 1 3\ntotals 6 3\n",
	         head_text, everything_text);
	ck_assert_str_eq(told.bytes, expected);
}
END_TEST

START_TEST(names_of_calls_are_handed_on)
{
	struct writer_options options = options_for(LUAM_SYSPROF_CALLGRAPH);
	struct writer *writer;
	char expected[1024];

	options.path = path;
	writer = open_or_fail(&options);
	put_called_symbol(1, 0x100, "@a.lua", 3, 0, "called", false);
	put_called_symbol(2, 0x200, "@a.lua", 0, 0, "of", true);
	put_called_symbol(3, 0x300, "@a.lua", 4, 0, "", false);
	close_or_fail(writer);
	read_dump_file();
	ck_assert(tell_dump(dump, dump_bytes, &told));
	snprintf(expected, sizeof(expected), "%s%s", head_text,
	         "proto 100 @a.lua 3\nlua 1 100 3 9 @a.lua called\n"
	         "proto 200 @a.lua 0\nlua 2 200 0 9 @a.lua of stripped\n"
	         "proto 300 @a.lua 4\nlua 3 300 4 9 @a.lua function_4\n"
	         "totals 0 0\n");
	ck_assert_str_eq(told.bytes, expected);
}
END_TEST

START_TEST(leaf_mode_has_no_native_frames_in_the_known_records)
{
	struct writer_options options = options_for(LUAM_SYSPROF_LEAF);
	struct writer *writer;

	options.path = path;
	writer = open_or_fail(&options);
	put_lua_symbol(1, 0x100, "@a.lua", 3, 0);
	put_sample(STATE_LFUNC, lua_stack + 2, 2, 0);
	close_or_fail(writer);
	read_dump_file();
	ck_assert(tell_dump(dump, dump_bytes, &told));
	ck_assert_ptr_nonnull(strstr(told.bytes, "sample 1 [1 100 3]\n"));
	ck_assert_ptr_nonnull(strstr(told.bytes, " mode 1 "));
	ck_assert_ptr_nonnull(strstr(told.bytes, "totals 1 0\n"));
}
END_TEST

START_TEST(running_dump_is_readable_up_to_its_last_record)
{
	struct writer_options options = options_for(LUAM_SYSPROF_CALLGRAPH);
	struct writer *writer;
	char expected[8192];

	options.path = path;
	writer = open_or_fail(&options);
	put_everything();
	sleep_ms(800);
	read_dump_file();
	ck_assert(!tell_dump(dump, dump_bytes, &told));
	snprintf(expected, sizeof(expected), "%s%s", head_text,
	         everything_text);
	ck_assert_str_eq(told.bytes, expected);
	close_or_fail(writer);
}
END_TEST

START_TEST(older_file_is_emptied_and_a_new_one_is_readable_by_all)
{
	struct writer_options options = options_for(LUAM_SYSPROF_LEAF);
	FILE *file = fopen(path, "w");
	struct stat status;

	for (int i = 0; i < 100000; i++)
		fputc('x', file);
	fclose(file);
	options.path = path;
	close_or_fail(open_or_fail(&options));
	read_dump_file();
	ck_assert_uint_lt(dump_bytes, 1000);
	ck_assert(tell_dump(dump, dump_bytes, &told));
	unlink(path);
	umask(022);
	close_or_fail(open_or_fail(&options));
	ck_assert_int_eq(stat(path, &status), 0);
	ck_assert_uint_eq(status.st_mode & 07777, 0644);
}
END_TEST

/* The line of /proc/<pid>/task/<tid>/status that begins with key. */
static void read_status(const char *thread, const char *key, char *line,
                        size_t bytes)
{
	char name[300];
	FILE *file;

	snprintf(name, sizeof(name), "/proc/self/task/%s/status", thread);
	file = fopen(name, "r");
	ck_assert_ptr_nonnull(file);
	while (fgets(line, (int)bytes, file))
		if (strncmp(line, key, strlen(key)) == 0)
			break;
	fclose(file);
}

START_TEST(thread_has_a_name_and_takes_no_signals)
{
	struct writer_options options = options_for(LUAM_SYSPROF_LEAF);
	struct writer *writer;
	char line[256];
	unsigned long long blocked = 0;
	DIR *threads;
	struct dirent *entry;

	options.path = path;
	writer = open_or_fail(&options);
	threads = opendir("/proc/self/task");
	while ((entry = readdir(threads)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		read_status(entry->d_name, "Name:", line, sizeof(line));
		if (strcmp(line, "Name:\tsysprof-writer\n") != 0)
			continue;
		read_status(entry->d_name, "SigBlk:", line, sizeof(line));
		sscanf(line, "SigBlk: %llx", &blocked);
	}
	closedir(threads);
	for (int i = 1; i < SIGRTMIN - 2; i++)
		ck_assert_msg((blocked >> (i - 1) & 1) ==
		                      (i != SIGKILL && i != SIGSTOP &&
		                       i != SIGSEGV && i != SIGBUS &&
		                       i != SIGFPE && i != SIGILL &&
		                       i != SIGTRAP),
		              "signal %d", i);
	close_or_fail(writer);
}
END_TEST

/* ---- failing files ----------------------------------------------------------- */

static void check_refusal(const char *bad_path, int code, const char *text)
{
	struct writer_options options = options_for(LUAM_SYSPROF_LEAF);
	struct error error;
	char expected[256];

	options.path = bad_path;
	ck_assert_ptr_null(writer_open(&options, &error));
	snprintf(expected, sizeof(expected), "%s: %s", bad_path, text);
	ck_assert_str_eq(error.text, expected);
	ck_assert_int_eq(error.sys_errno, code);
	ck_assert_int_eq(error.code, PROFILE_ERRIO);
}

START_TEST(file_that_cannot_be_opened_is_named)
{
	check_refusal("/nowhere/dump.bin", ENOENT, "No such file or directory");
	check_refusal(directory, EISDIR, "Is a directory");
	check_refusal("/dev/full", ENOSPC, "No space left on device");
}
END_TEST

START_TEST(file_that_can_grow_no_more_ends_the_stream)
{
	struct writer_options options = options_for(LUAM_SYSPROF_CALLGRAPH);
	struct rlimit limit = {FILE_BYTES_MAX, FILE_BYTES_MAX};
	struct writer *writer;
	struct error error;
	char expected[256];
	static char chunk[2001];

	options.path = path;
	writer = open_or_fail(&options);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	memset(chunk, 'x', sizeof(chunk) - 1);
	for (unsigned i = 1; i < 100; i++)
		put_lua_symbol(i, i, chunk, 1, 0);
	for (int i = 0; i < 20 && !fake.disabled; i++)
		sleep_ms(100);
	ck_assert(fake.disabled);
	/* What comes after that is swallowed, and does not fill the ring. */
	for (unsigned i = 100; i < 1100; i++) {
		put_lua_symbol(i, i, chunk, 1, 0);
		if (i % 100 == 0)
			sleep_ms(150);
	}
	ck_assert_int_eq(writer_close(writer, &error), -1);
	snprintf(expected, sizeof(expected), "%s: File too large", path);
	ck_assert_str_eq(error.text, expected);
	ck_assert_int_eq(error.sys_errno, EFBIG);
	read_dump_file();
	ck_assert_uint_eq(dump_bytes, FILE_BYTES_MAX);
}
END_TEST

START_TEST(pipe_whose_reader_is_gone_ends_the_stream)
{
	struct writer_options options = options_for(LUAM_SYSPROF_CALLGRAPH);
	struct writer *writer;
	struct error error;
	char expected[256];
	int reader;

	ck_assert_int_eq(mkfifo(path, 0600), 0);
	reader = open(path, O_RDONLY | O_NONBLOCK);
	options.path = path;
	writer = open_or_fail(&options);
	ck_assert_int_gt(read(reader, dump, sizeof(dump)), 15);
	close(reader);
	ck_assert_int_eq(writer_close(writer, &error), -1);
	snprintf(expected, sizeof(expected), "%s: Broken pipe", path);
	ck_assert_str_eq(error.text, expected);
}
END_TEST

/* ---- the host's callback ------------------------------------------------------ */

static size_t callback_limit; /* bytes that it takes in all */
static atomic_uint callback_calls;
static size_t callback_longest;
static void *callback_context;

static size_t take_bytes(const void **data, size_t bytes, void *context)
{
	size_t room = callback_limit - dump_bytes;
	size_t taken = bytes < room ? bytes : room;

	callback_calls++;
	callback_context = context;
	if (bytes > callback_longest)
		callback_longest = bytes;
	memcpy(dump + dump_bytes, *data, taken);
	dump_bytes += taken;
	if (taken < bytes)
		errno = ENOBUFS;
	return taken;
}

static struct writer_options options_with_callback(uint8_t *buffer,
                                                   size_t bytes)
{
	struct writer_options options = options_for(LUAM_SYSPROF_CALLGRAPH);

	options.callback = take_bytes;
	options.context = &callback_calls;
	options.buffer = buffer;
	options.buffer_bytes = bytes;
	callback_limit = sizeof(dump);
	return options;
}

static void check_buffer(size_t bytes)
{
	uint8_t *buffer = malloc(bytes);
	struct writer_options options = options_with_callback(buffer, bytes);
	struct writer *writer = open_or_fail(&options);
	char expected[8192];

	ck_assert_uint_gt(dump_bytes, 15);
	put_everything();
	close_or_fail(writer);
	ck_assert(tell_dump(dump, dump_bytes, &told));
	snprintf(expected, sizeof(expected), "%s%stotals 6 0\n", head_text,
	         everything_text);
	ck_assert_str_eq(told.bytes, expected);
	ck_assert_uint_le(callback_longest, bytes);
	ck_assert_ptr_eq(callback_context, &callback_calls);
	free(buffer);
}

START_TEST(buffer_of_one_byte_is_enough)
{
	check_buffer(1);
}
END_TEST

START_TEST(big_buffer_gets_the_same_stream)
{
	check_buffer(1u << 20);
}
END_TEST

START_TEST(head_that_is_not_taken_is_an_error_of_the_start)
{
	uint8_t buffer[100];
	struct writer_options options = options_with_callback(buffer, 100);
	struct error error;

	callback_limit = 7;
	ck_assert_ptr_null(writer_open(&options, &error));
	ck_assert_int_eq(error.code, PROFILE_ERRIO);
	ck_assert_int_eq(error.sys_errno, ENOBUFS);
	ck_assert_str_eq(error.text,
	                 "the writer callback took less than it was given: "
	                 "No buffer space available");
}
END_TEST

/* Later failures stop the sampler, are told once, and end all calls. */
START_TEST(short_write_ends_the_stream)
{
	static uint8_t buffer[256];
	struct writer_options options = options_with_callback(buffer, 256);
	struct writer *writer = open_or_fail(&options);
	struct error error;
	unsigned calls;

	callback_limit = dump_bytes + 300;
	for (int i = 0; i < 50; i++)
		put_everything();
	for (int i = 0; i < 20 && !fake.disabled; i++)
		sleep_ms(100);
	ck_assert(fake.disabled);
	calls = callback_calls;
	put_everything();
	ck_assert_int_eq(writer_close(writer, &error), -1);
	ck_assert_str_eq(error.text,
	                 "the writer callback took less than it was given: "
	                 "No buffer space available");
	ck_assert_int_eq(error.code, PROFILE_ERRIO);
	ck_assert_int_eq(error.sys_errno, ENOBUFS);
	ck_assert_uint_eq(callback_calls, calls);
}
END_TEST

static size_t end_stream(const void **data, size_t bytes, void *context)
{
	size_t taken = take_bytes(data, bytes, context);

	if (taken < bytes)
		*data = NULL;
	return taken;
}

START_TEST(buffer_taken_away_ends_the_stream)
{
	static uint8_t buffer[256];
	struct writer_options options = options_with_callback(buffer, 256);
	struct writer *writer;
	struct error error;

	options.callback = end_stream;
	writer = open_or_fail(&options);
	callback_limit = dump_bytes;
	put_everything();
	ck_assert_int_eq(writer_close(writer, &error), -1);
	ck_assert_str_eq(error.text,
	                 "the writer callback ended the stream: No buffer "
	                 "space available");
}
END_TEST

/* ---- names for perf ------------------------------------------------------------ */

START_TEST(map_file_names_what_the_arena_stands_for)
{
	struct writer_options options = options_for(LUAM_SYSPROF_CALLGRAPH);
	struct writer *writer;
	char map_path[64];
	FILE *file;
	size_t bytes;
	static char text[8192];

	snprintf(map_path, sizeof(map_path), "/tmp/perf-%ld.map",
	         (long)getpid());
	options.path = path;
	options.names = perf_names_open(
		&(struct perf_names_options){.kind = PERF_NAMES_MAP}, NULL);
	ck_assert_ptr_nonnull(options.names);
	options.fast_address = 0x10000;
	options.marker_address = 0x20000;
	writer = open_or_fail(&options);
	put_lua_symbol(1, 0x100, "@a.lua", 3, 0x30000);
	put_lua_symbol(2, 0x200, "@b.lua", 4, 0);
	close_or_fail(writer);
	file = fopen(map_path, "r");
	ck_assert_ptr_nonnull(file);
	bytes = fread(text, 1, sizeof(text) - 1, file);
	text[bytes] = '\0';
	fclose(file);
	unlink(map_path);
	ck_assert_ptr_nonnull(strstr(text, "10020 10 string.format\n"));
	ck_assert_ptr_nonnull(strstr(text, "20010 10 [truncated]\n"));
	ck_assert_ptr_nonnull(strstr(text, "30000 b function_3 a.lua:3\n"));
	ck_assert_ptr_null(strstr(text, "b.lua"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("writer");
	TCase *tests = tcase_create("writer");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tests, prepare, clean_up);
	tcase_set_timeout(tests, 30);
	tcase_add_test(tests, ring_contents_become_records_in_order);
	tcase_add_test(tests, names_of_calls_are_handed_on);
	tcase_add_test(tests,
	               leaf_mode_has_no_native_frames_in_the_known_records);
	tcase_add_test(tests, running_dump_is_readable_up_to_its_last_record);
	tcase_add_test(tests,
	               older_file_is_emptied_and_a_new_one_is_readable_by_all);
	tcase_add_test(tests, thread_has_a_name_and_takes_no_signals);
	tcase_add_test(tests, file_that_cannot_be_opened_is_named);
	tcase_add_test(tests, file_that_can_grow_no_more_ends_the_stream);
	tcase_add_test(tests, pipe_whose_reader_is_gone_ends_the_stream);
	tcase_add_test(tests, buffer_of_one_byte_is_enough);
	tcase_add_test(tests, big_buffer_gets_the_same_stream);
	tcase_add_test(tests, head_that_is_not_taken_is_an_error_of_the_start);
	tcase_add_test(tests, short_write_ends_the_stream);
	tcase_add_test(tests, buffer_taken_away_ends_the_stream);
	tcase_add_test(tests, map_file_names_what_the_arena_stands_for);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
