// SPDX-License-Identifier: MIT
/*
 * The command luajit-parse-sysprof: reads dumps, writes their stacks in one of the formats
 * of tools/output. The man page doc/luajit-parse-sysprof.1 describes it.
 */
#include "sysprof_command.h"

#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "live.h"
#include "output/output.h"
#include "parse_options.h"
#include "parser_command.h"
#include "profile/load.h"
#include "profile/select.h"
#include "stream/frame_name.h"

#define TITLE_BYTES 512

/* ---- what the output does not show ------------------------------------- */

static void tell_lost(const struct profile *profile, uint64_t read_count)
{
	uint64_t lost = profile_lost_count(profile);

	if (lost == 0)
		return;
	say("lost %llu of %llu samples:", (unsigned long long)lost,
	    (unsigned long long)(lost + read_count));
	for (size_t i = 0; i < PROFILE_LOST_REASONS; i++)
		if (profile->lost[i] > 0)
			say("  %s: %llu", lost_reason_name(i),
			    (unsigned long long)profile->lost[i]);
}

static void tell_gaps(const struct profile_gaps *gaps)
{
	if (gaps->joined_count > 0)
		say("%llu samples have two stacks and do not say how they "
		    "belong together: joined where both name the same C "
		    "function",
		    (unsigned long long)gaps->joined_count);
	if (gaps->unplaced_count > 0)
		say("%llu C functions of Lua stacks are not on the native "
		    "stack: their place is a guess",
		    (unsigned long long)gaps->unplaced_count);
	if (gaps->no_guest_count > 0)
		say("%llu samples have no Lua stack: the format has none for "
		    "their VM states",
		    (unsigned long long)gaps->no_guest_count);
	if (gaps->trace_count > 0)
		say("%llu samples in traces have no stack: only the function "
		    "is known in which the trace starts",
		    (unsigned long long)gaps->trace_count);
	if (gaps->no_facts_count > 0)
		say("%llu samples left out: the format does not tell their "
		    "time, thread, VM or coroutine",
		    (unsigned long long)gaps->no_facts_count);
}

static void tell_marked(const struct profile *profile)
{
	uint64_t marked = profile_marked_count(profile);

	if (marked == 0)
		return;
	say("%llu samples have a stack that is not whole: names in square "
	    "brackets say why",
	    (unsigned long long)marked);
	if (profile->left_out_max > 0)
		say("the deepest stack lacks %llu frames where it is "
		    "[truncated]",
		    (unsigned long long)profile->left_out_max);
}

static void tell_session(const struct profile_session *session,
                         uint64_t read_count)
{
	if (session->ended && session->sample_count != read_count)
		say("the profiler counted %llu samples, the dump has %llu",
		    (unsigned long long)session->sample_count,
		    (unsigned long long)read_count);
}

static void tell_selected(const struct profile *selected, uint64_t read_count)
{
	if (selected->sample_count == 0 && read_count > 0)
		say("none of %llu samples is as the options ask",
		    (unsigned long long)read_count);
}

/* ---- input ------------------------------------------------------------- */

/* All dumps of the command, while they are read. */
struct reading {
	const struct command *command;
	struct profile profile;
	uint64_t read_count;
	bool damaged;
};

static const char *shown_name(const char *input)
{
	return strcmp(input, "-") == 0 ? "standard input" : input;
}

static FILE *open_input(const char *input)
{
	FILE *file = strcmp(input, "-") == 0 ? stdin : fopen(input, "rbe");

	if (file == NULL)
		say("cannot open %s: %s", input, strerror(errno));
	return file;
}

static void tell_dump(struct reading *reading, const char *name,
                      const struct load_result *result)
{
	reading->read_count += result->read_count;
	if (result->complete) {
		tell_session(&reading->profile.session, result->read_count);
		if (result->has_trailing)
			say("%s: ignored what follows the end record", name);
		return;
	}
	reading->damaged = true;
	say("%s", result->error);
	say("%llu samples can be read up to there%s",
	    (unsigned long long)result->read_count,
	    reading->command->partial ? "" : "; --partial prints them");
}

/* False: the input cannot be opened. */
static bool read_input(struct reading *reading, const char *input)
{
	FILE *file = open_input(input);
	struct load_options options = reading->command->load;
	struct load_result result;
	struct progress progress;

	if (file == NULL)
		return false;
	progress_open(&progress, fileno(file));
	options.progress = progress_tell;
	options.progress_context = &progress;
	profile_add_dump(&reading->profile, byte_input_read_file, file,
	                 shown_name(input), &options, &result);
	progress_close(&progress);
	if (file != stdin)
		fclose(file);
	tell_dump(reading, shown_name(input), &result);
	return true;
}

/* ---- output ------------------------------------------------------------ */

static void make_title(char *title, const struct command *command)
{
	const char *first = shown_name(command->inputs[0]);

	if (command->compare)
		snprintf(title, TITLE_BYTES, "%s against %s",
		         shown_name(command->inputs[1]), first);
	else if (command->input_count > 1)
		snprintf(title, TITLE_BYTES, "%s and %zu more", first,
		         command->input_count - 1);
	else
		snprintf(title, TITLE_BYTES, "%s", first);
}

static int write_output(const struct command *command,
                        const struct profile *profile)
{
	FILE *file = open_output(command->output);
	char title[TITLE_BYTES];
	int result = 0;

	if (file == NULL)
		return EXIT_BAD_INPUT;
	make_title(title, command);
	if (command->format->write_beside)
		result = command->format->write_beside(file, profile);
	else
		command->format->write(file, profile, title);
	return close_output(file, command->output, -result);
}

static void select_asked(struct profile *selected,
                         const struct reading *reading)
{
	profile_select(selected, &reading->profile,
	               &reading->command->selection);
	selected->min_percent = reading->command->min_percent;
	selected->row_limit = reading->command->row_limit;
	selected->output_path = reading->command->output;
}

static int print_profile(struct reading *reading)
{
	const struct command *command = reading->command;
	struct profile selected;

	tell_lost(&reading->profile, reading->read_count);
	if (reading->damaged && !command->partial)
		return EXIT_BAD_INPUT;

	select_asked(&selected, reading);
	profile_close(&reading->profile); /* one at a time is enough */
	profile_open(&reading->profile);
	if (!command->load.compat) {
		tell_gaps(&selected.gaps);
		tell_marked(&selected);
		tell_selected(&selected, reading->read_count);
	}
	int code = write_output(command, &selected);
	profile_close(&selected);
	return code;
}

static int print_inputs(struct reading *reading)
{
	const struct command *command = reading->command;

	for (size_t i = 0; i < command->input_count; i++) {
		if (command->compare && i == 1)
			reading->profile.new_from = 1;
		if (!read_input(reading, command->inputs[i]))
			return EXIT_BAD_INPUT;
	}
	return print_profile(reading);
}

/* ---- a profile that is being written ----------------------------------- */

/* Rows that fit beside the headings and the VM states. */
static size_t terminal_rows(void)
{
	const size_t others = 2 + STATE_COUNT + 4;
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 ||
	    size.ws_row < others + 5)
		return 20;
	return size.ws_row - others;
}

static void show_view(void *context)
{
	const struct reading *reading = context;
	struct profile selected;

	select_asked(&selected, reading);
	if (selected.row_limit == 0)
		selected.row_limit = terminal_rows();
	selected.is_live = true;
	if (isatty(STDOUT_FILENO))
		fputs("\033[H\033[2J", stdout);
	printf("%s: %llu samples, %llu lost\n",
	       shown_name(reading->command->inputs[0]),
	       (unsigned long long)reading->profile.sample_count,
	       (unsigned long long)profile_lost_count(&reading->profile));
	reading->command->format->write(stdout, &selected, "");
	fflush(stdout);
	profile_close(&selected);
}

static int follow_input(struct reading *reading)
{
	const struct command *command = reading->command;
	FILE *file = open_input(command->inputs[0]);
	struct load_result result;

	if (file == NULL)
		return EXIT_BAD_INPUT;

	struct follower follower = {
		.file = fileno(file),
		.interval_ns = command->follow_ns,
		.show = show_view,
		.context = reading,
	};
	struct load_options options = command->load;
	options.is_live = true;
	profile_add_dump(&reading->profile, follower_read, &follower,
	                 shown_name(command->inputs[0]), &options, &result);
	if (file != stdin)
		fclose(file);
	show_view(reading);
	tell_dump(reading, shown_name(command->inputs[0]), &result);
	return result.complete || command->partial ? EXIT_GOOD : EXIT_BAD_INPUT;
}

static int run(const struct command *command)
{
	struct reading reading = {.command = command};
	int code;

	profile_open(&reading.profile);
	code = command->follow ? follow_input(&reading)
	                       : print_inputs(&reading);
	profile_close(&reading.profile);
	return code;
}

int sysprof_command(int argc, char **argv)
{
	struct command command = {0};
	int code = command_parse(&command, argc, argv);

	if (code < 0)
		code = run(&command);
	command_free(&command);
	return code;
}
