// SPDX-License-Identifier: MIT
/* Options of luajit-parse-sysprof; see parse_options.h. */
#include "config.h"

#include "parse_options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parser_command.h"
#include "stream/frame_name.h"

const char parser_name[] = PROGRAM;

#define FOLLOW_NS_DEFAULT 1000000000

enum option_value {
	OPTION_FORMAT = 256,
	OPTION_COMPAT,
	OPTION_LINES,
	OPTION_HOST_ADDRESSES,
	OPTION_INLINES,
	OPTION_BYTECODES,
	OPTION_SYSROOT,
	OPTION_PARTIAL,
	OPTION_STATE,
	OPTION_THREAD,
	OPTION_VM,
	OPTION_COROUTINE,
	OPTION_LABEL,
	OPTION_FROM,
	OPTION_TO,
	OPTION_INCLUDE,
	OPTION_EXCLUDE,
	OPTION_ROOT,
	OPTION_GUEST_ONLY,
	OPTION_HOST_ONLY,
	OPTION_GROUP,
	OPTION_MIN_PERCENT,
	OPTION_ROWS,
	OPTION_DIFF,
	OPTION_FOLLOW,
	OPTION_HELP,
	OPTION_VERSION,
};

static const struct option long_options[] = {
	{"format", required_argument, NULL, OPTION_FORMAT},
	{"compat", no_argument, NULL, OPTION_COMPAT},
	{"output", required_argument, NULL, 'o'},
	{"lines", optional_argument, NULL, OPTION_LINES},
	{"host-addresses", no_argument, NULL, OPTION_HOST_ADDRESSES},
	{"inlines", no_argument, NULL, OPTION_INLINES},
	{"bytecodes", no_argument, NULL, OPTION_BYTECODES},
	{"sysroot", required_argument, NULL, OPTION_SYSROOT},
	{"partial", no_argument, NULL, OPTION_PARTIAL},
	{"state", required_argument, NULL, OPTION_STATE},
	{"thread", required_argument, NULL, OPTION_THREAD},
	{"vm", required_argument, NULL, OPTION_VM},
	{"coroutine", required_argument, NULL, OPTION_COROUTINE},
	{"label", required_argument, NULL, OPTION_LABEL},
	{"from", required_argument, NULL, OPTION_FROM},
	{"to", required_argument, NULL, OPTION_TO},
	{"include", required_argument, NULL, OPTION_INCLUDE},
	{"exclude", required_argument, NULL, OPTION_EXCLUDE},
	{"root", required_argument, NULL, OPTION_ROOT},
	{"guest-only", no_argument, NULL, OPTION_GUEST_ONLY},
	{"host-only", no_argument, NULL, OPTION_HOST_ONLY},
	{"group", required_argument, NULL, OPTION_GROUP},
	{"min-percent", required_argument, NULL, OPTION_MIN_PERCENT},
	{"rows", required_argument, NULL, OPTION_ROWS},
	{"diff", no_argument, NULL, OPTION_DIFF},
	{"follow", optional_argument, NULL, OPTION_FOLLOW},
	{"help", no_argument, NULL, OPTION_HELP},
	{"version", no_argument, NULL, OPTION_VERSION},
	{NULL, 0, NULL, 0},
};

/* ---- telling ----------------------------------------------------------- */

static void print_help(void)
{
	fputs("Usage: " PROGRAM " [OPTION]... FILE...\n"
	      "Prints the stacks of profiles that misc.sysprof wrote, added "
	      "up. FILE - is\n"
	      "standard input.\n"
	      "\n"
	      "  --format=NAME       one of:\n",
	      stdout);
	for (const struct output_format *format = output_formats; format->name;
	     format++)
		printf("      %-12s %s%s\n", format->name, format->help,
		       format == output_formats ? " (default)" : "");
	fputs("  --compat            same as --format=compat\n"
	      "  -o, --output=FILE   write to FILE, not to standard output\n"
	      "  --diff OLD NEW      compare two profiles (folded, top, html, "
	      "svg, json)\n"
	      "  --follow[=SECONDS]  show a profile while it is written\n"
	      "  --partial           print what can be read of a damaged "
	      "profile\n"
	      "Which samples:\n"
	      "  --state=NAME,...    by VM state: LFUNC, GC, TRACE, ...\n"
	      "  --thread=N,...  --vm=N,...  --coroutine=ADDRESS,...\n"
	      "  --label=REGEX       of coroutines with such a label\n"
	      "  --from=TIME --to=TIME     seconds since the start, as in 1.5\n"
	      "  --include=REGEX --exclude=REGEX   stacks with, without such "
	      "a frame\n"
	      "Which frames:\n"
	      "  --lines[=leaf|all]  Lua frames by the line that runs\n"
	      "  --guest-only, --host-only   Lua frames alone, native ones "
	      "alone\n"
	      "  --root=FRAME        from this frame on\n"
	      "  --group=KEY,...     by process, thread, vm, coroutine, label "
	      "or state\n"
	      "  --min-percent=P  --rows=N   leave out what is small\n"
	      "  --host-addresses    native frames as addresses\n"
	      "  --bytecodes         what the interpreter executes, as "
	      "BC_CALL\n"
	      "  --inlines           native frames of inlined functions, too\n"
	      "  --sysroot=DIR       look for object and debug files below "
	      "DIR\n"
	      "  --help, --version\n"
	      "Exit status: 0 good, 1 bad input or I/O error, 2 wrong usage.\n",
	      stdout);
}

static int unknown_format(const char *name)
{
	char known[256] = "";

	for (const struct output_format *format = output_formats; format->name;
	     format++) {
		strcat(known, format == output_formats ? "" : ", ");
		strcat(known, format->name);
	}
	return usage_error("--format: got '%.100s', expected one of %s", name,
	                   known);
}

static int check_name(const struct output_format *format)
{
	if (format == NULL)
		return unknown_format(optarg);
	if (format->write == NULL && format->write_beside == NULL)
		return usage_error(
			"--format=%s: this " PROGRAM
			" was built without it; configure tells what "
			"is missing",
			format->name);
	return -1;
}

/* ---- values ------------------------------------------------------------ */

/* Calls take for each part between commas; stops at the first that is not -1,
 * which is returned. */
static int take_list(struct command *command, const char *list,
                     int (*take)(struct command *command, const char *part))
{
	char *copy = strdup(list);
	char *rest = NULL;
	int code = -1;

	for (char *part = copy ? strtok_r(copy, ",", &rest) : NULL;
	     part != NULL && code < 0; part = strtok_r(NULL, ",", &rest))
		code = take(command, part);
	free(copy);
	return code;
}

static int take_state(struct command *command, const char *name)
{
	char known[128] = "";

	for (uint32_t state = 0; state < STATE_COUNT; state++) {
		if (strcasecmp(name, sample_state_name(state)) == 0) {
			command->load.states |= UINT32_C(1) << state;
			return -1;
		}
		strcat(known, state > 0 ? ", " : "");
		strcat(known, sample_state_name(state));
	}
	return usage_error("--state: got '%.100s', expected names out of %s",
	                   name, known);
}

static const struct {
	const char *name;
	enum select_group group;
} group_names[] = {
	{"process", GROUP_PROCESS}, {"thread", GROUP_THREAD},
	{"vm", GROUP_VM},           {"coroutine", GROUP_COROUTINE},
	{"label", GROUP_LABEL},     {"state", GROUP_STATE},
};

static int take_group(struct command *command, const char *name)
{
	struct selection *selection = &command->selection;

	for (size_t i = 0; i < sizeof(group_names) / sizeof(*group_names);
	     i++) {
		if (strcmp(name, group_names[i].name) != 0)
			continue;
		if (selection->group_count == GROUP_COUNT)
			return usage_error("--group: got more than %d keys",
			                   GROUP_COUNT);
		selection->groups[selection->group_count++] =
			group_names[i].group;
		return -1;
	}
	return usage_error("--group: got '%.100s', expected process, thread, "
	                   "vm, coroutine, label or state",
	                   name);
}

static int add_number(struct load_filter *filter, const char *option,
                      const char *text)
{
	char *end;

	errno = 0;
	uint64_t number = strtoull(text, &end, 0);
	if (errno != 0 || end == text || *end != '\0' || text[0] == '-')
		return usage_error("%s: got '%.100s', expected numbers such "
		                   "as 1234 or 0x7f00",
		                   option, text);
	if (filter->count == LOAD_FILTER_MAX)
		return usage_error("%s: got more than %d numbers", option,
		                   LOAD_FILTER_MAX);
	filter->accepted[filter->count++] = number;
	return -1;
}

static int take_thread(struct command *command, const char *text)
{
	return add_number(&command->load.threads, "--thread", text);
}

static int take_vm(struct command *command, const char *text)
{
	return add_number(&command->load.vms, "--vm", text);
}

static int take_coroutine(struct command *command, const char *text)
{
	return add_number(&command->load.coroutines, "--coroutine", text);
}

static int take_real(double *value, const char *option, const char *text,
                     double least, double most)
{
	char *end;

	*value = strtod(text, &end);
	if (end != text && *end == '\0' && *value >= least && *value <= most)
		return -1;
	return usage_error("%s: got '%.100s', expected a number from %g to %g",
	                   option, text, least, most);
}

static int take_time(uint64_t *time_ns, bool *has_time, const char *option)
{
	double seconds;
	int code = take_real(&seconds, option, optarg, 0, 1e9);

	*time_ns = code < 0 ? (uint64_t)llround(seconds * 1e9) : 0;
	*has_time = true;
	return code;
}

static int take_regex(regex_t *regex, const regex_t **used, const char *option)
{
	char reason[128];
	int error;

	if (*used != NULL)
		return usage_error("%s: given twice; join both with |", option);
	error = regcomp(regex, optarg, REG_EXTENDED | REG_NOSUB);
	if (error == 0) {
		*used = regex;
		return -1;
	}
	regerror(error, regex, reason, sizeof(reason));
	return usage_error("%s: got '%.100s', expected an extended regular "
	                   "expression: %s",
	                   option, optarg, reason);
}

static int take_lines(struct command *command)
{
	if (optarg == NULL || strcmp(optarg, "all") == 0)
		command->selection.lines = LINES_ALL;
	else if (strcmp(optarg, "leaf") == 0)
		command->selection.lines = LINES_LEAF;
	else
		return usage_error("--lines: got '%.100s', expected leaf or "
		                   "all",
		                   optarg);
	return -1;
}

static int take_side(struct command *command, enum select_side side)
{
	if (command->selection.side != SIDE_BOTH &&
	    command->selection.side != side)
		return usage_error("--guest-only and --host-only leave "
		                   "nothing: give one of them");
	command->selection.side = side;
	return -1;
}

static int take_rows(struct command *command)
{
	double rows;
	int code = take_real(&rows, "--rows", optarg, 1, 1e9);

	if (code < 0)
		command->row_limit = (size_t)rows;
	return code;
}

static int take_follow(struct command *command)
{
	double seconds;
	int code;

	command->follow = true;
	command->follow_ns = FOLLOW_NS_DEFAULT;
	if (optarg == NULL)
		return -1;
	code = take_real(&seconds, "--follow", optarg, 0.01, 3600);
	if (code < 0)
		command->follow_ns = (uint64_t)llround(seconds * 1e9);
	return code;
}

/* ---- all of them ------------------------------------------------------- */

static int take_filter(struct command *command, int option)
{
	struct load_options *load = &command->load;

	switch (option) {
	case OPTION_STATE:
		return take_list(command, optarg, take_state);
	case OPTION_THREAD:
		return take_list(command, optarg, take_thread);
	case OPTION_VM:
		return take_list(command, optarg, take_vm);
	case OPTION_COROUTINE:
		return take_list(command, optarg, take_coroutine);
	case OPTION_LABEL:
		return take_regex(&command->label, &command->selection.label,
		                  "--label");
	case OPTION_FROM:
		return take_time(&load->from_ns, &load->has_from, "--from");
	case OPTION_TO:
		return take_time(&load->to_ns, &load->has_to, "--to");
	case OPTION_INCLUDE:
		return take_regex(&command->include,
		                  &command->selection.include, "--include");
	case OPTION_EXCLUDE:
		return take_regex(&command->exclude,
		                  &command->selection.exclude, "--exclude");
	case OPTION_ROOT:
		command->selection.root = optarg;
		return -1;
	case OPTION_GUEST_ONLY:
		return take_side(command, SIDE_GUEST);
	case OPTION_HOST_ONLY:
		return take_side(command, SIDE_HOST);
	case OPTION_GROUP:
		return take_list(command, optarg, take_group);
	case OPTION_MIN_PERCENT:
		return take_real(&command->min_percent, "--min-percent", optarg,
		                 0, 100);
	}
	say("see --help"); /* getopt has told what is wrong */
	return EXIT_USAGE;
}

static int take_option(struct command *command, int option)
{
	switch (option) {
	case OPTION_FORMAT:
		command->format = output_find(optarg);
		return check_name(command->format);
	case OPTION_COMPAT:
		command->format = output_find("compat");
		return -1;
	case 'o':
		command->output = optarg;
		return -1;
	case OPTION_LINES:
		return take_lines(command);
	case OPTION_HOST_ADDRESSES:
		command->load.host_addresses = true;
		return -1;
	case OPTION_INLINES:
		command->load.inlines = true;
		return -1;
	case OPTION_BYTECODES:
		command->load.vm_parts = true;
		return -1;
	case OPTION_SYSROOT:
		command->load.sysroot = optarg;
		return -1;
	case OPTION_PARTIAL:
		command->partial = true;
		return -1;
	case OPTION_ROWS:
		return take_rows(command);
	case OPTION_DIFF:
		command->compare = true;
		return -1;
	case OPTION_FOLLOW:
		return take_follow(command);
	case OPTION_HELP:
		print_help();
		return EXIT_GOOD;
	case OPTION_VERSION:
		puts(PROGRAM " (" PACKAGE_NAME ") " PACKAGE_VERSION);
		return EXIT_GOOD;
	}
	return take_filter(command, option);
}

/* Does the command ask for more than the old parser could tell? */
static bool has_questions(const struct command *command)
{
	const struct load_options *load = &command->load;
	const struct selection *selection = &command->selection;

	return load->states != 0 || load->threads.count > 0 ||
	       load->vms.count > 0 || load->coroutines.count > 0 ||
	       load->has_from || load->has_to || load->host_addresses ||
	       load->inlines || load->vm_parts || load->sysroot ||
	       selection->include || selection->exclude || selection->label ||
	       selection->root || selection->lines != LINES_NONE ||
	       selection->side != SIDE_BOTH || selection->group_count > 0 ||
	       command->min_percent > 0 || command->compare;
}

static int check_inputs(const struct command *command)
{
	size_t stdin_count = 0;

	if (command->input_count == 0)
		return usage_error("expected the FILE of a dump, got none");
	if (command->compare && command->input_count != 2)
		return usage_error("--diff: expected two FILEs, the old and "
		                   "the new one, got %zu",
		                   command->input_count);
	if (command->follow && command->input_count != 1)
		return usage_error("--follow: expected one FILE, got %zu",
		                   command->input_count);
	for (size_t i = 0; i < command->input_count; i++)
		stdin_count += strcmp(command->inputs[i], "-") == 0;
	if (stdin_count > 1)
		return usage_error("standard input (-) can be read only once");
	return -1;
}

static int check_format(struct command *command, bool has_format)
{
	if (command->follow && !has_format)
		command->format = output_find("top");
	if (command->follow && strcmp(command->format->name, "top") != 0)
		return usage_error("--follow shows the top format alone");
	if (command->compare &&
	    (command->format->wants & OUTPUT_CAN_COMPARE) == 0)
		return usage_error("--diff: expected --format=folded, top, "
		                   "html, svg or json, got %s",
		                   command->format->name);
	if (command->format->write_beside && !command->output)
		return usage_error("--format=%s: expected -o FILE, since it "
		                   "puts other files beside that one",
		                   command->format->name);
	command->load.compat = strcmp(command->format->name, "compat") == 0;
	if (command->load.compat && has_questions(command))
		return usage_error("the compat format takes no options that "
		                   "choose samples or frames, such as --lines");
	return -1;
}

static void tell_notice(const char *text)
{
	say("%s", text);
}

/* What the format needs, and what questions need. */
static void settle(struct command *command)
{
	unsigned wants = command->format->wants;
	struct selection *selection = &command->selection;

	command->load.labels = (wants & OUTPUT_WANTS_LABELS) != 0 ||
	                       selection->group_count > 0 || selection->label;
	command->load.notice = tell_notice;
	command->load.moments = (wants & OUTPUT_WANTS_MOMENTS) != 0;
	command->load.native_addresses = (wants & OUTPUT_WANTS_ADDRESSES) != 0;
	if ((wants & OUTPUT_WANTS_LINES) != 0 && selection->lines == LINES_NONE)
		selection->lines = LINES_KEEP;
	command->load.native_lines = selection->lines != LINES_NONE;
	if ((wants & OUTPUT_HAS_ROWS) == 0)
		selection->prune_percent = command->min_percent;
}

int command_parse(struct command *command, int argc, char **argv)
{
	bool has_format = false;
	int option;
	int code;

	command->format = output_formats;
	optind = 0; /* other options may have been read in this process */
	while ((option = getopt_long(argc, argv, "o:", long_options, NULL)) !=
	       -1) {
		has_format |=
			option == OPTION_FORMAT || option == OPTION_COMPAT;
		code = take_option(command, option);
		if (code >= 0)
			return code;
	}
	command->inputs = argv + optind;
	command->input_count = (size_t)(argc - optind);
	code = check_inputs(command);
	if (code < 0)
		code = check_format(command, has_format);
	if (code < 0)
		settle(command);
	return code;
}

void command_free(struct command *command)
{
	if (command->selection.include != NULL)
		regfree(&command->include);
	if (command->selection.exclude != NULL)
		regfree(&command->exclude);
	if (command->selection.label != NULL)
		regfree(&command->label);
}
