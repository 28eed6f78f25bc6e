// SPDX-License-Identifier: MIT
/*
 * The probe. Its place is in a note of the library (sys/sdt.h): three
 * addresses, then provider, name and arguments, each ending in NUL. A program
 * that was linked in advance (prelink) has other addresses by now; the second
 * of the three, that of the section .stapsdt.base, tells by how much.
 */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOTE_OWNER  "stapsdt"
#define NOTE_TYPE   3
#define NOTE_PROBE  "luajit_sysprof\0sample"
#define EVENTS_FILE "uprobe_events"
#define GROUP       "luajit_sysprof"
#define EVENT_BYTES 24
#define PATH_BYTES  4200

#define ANSWER_PATIENCE_MS 5000

const char *probe_tracing_directory(void)
{
	static const char *const places[] = {
		"/sys/kernel/tracing",
		"/sys/kernel/debug/tracing",
	};
	char path[128];

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%s/" EVENTS_FILE, places[i]);
		if (access(path, F_OK) == 0)
			return places[i];
	}
	return "";
}

/* ---- the note ---------------------------------------------------------- */

static uint64_t file_offset(Elf *elf, uint64_t address)
{
	size_t count;
	GElf_Phdr segment;

	if (elf_getphdrnum(elf, &count) != 0)
		return 0;
	for (size_t i = 0; i < count; i++)
		if (gelf_getphdr(elf, (int)i, &segment) &&
		    segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
		    address - segment.p_vaddr < segment.p_filesz)
			return address - segment.p_vaddr + segment.p_offset;
	return 0;
}

/* Address of the probe in one note section, 0 if it is not there. */
static uint64_t find_in_notes(Elf_Data *data)
{
	GElf_Nhdr note;
	size_t name, contents, next;

	for (size_t at = 0;
	     (next = gelf_getnote(data, at, &note, &name, &contents)) > 0;
	     at = next) {
		const char *bytes = data->d_buf;
		uint64_t address;

		if (note.n_type != NOTE_TYPE ||
		    strcmp(bytes + name, NOTE_OWNER) != 0 ||
		    note.n_descsz < 24 + sizeof(NOTE_PROBE) ||
		    memcmp(bytes + contents + 24, NOTE_PROBE,
		           sizeof(NOTE_PROBE)) != 0)
			continue;
		memcpy(&address, bytes + contents, sizeof(address));
		return address;
	}
	return 0;
}

static uint64_t find_probe(Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section)) != NULL) {
		Elf_Data *data;
		uint64_t address;

		if (!gelf_getshdr(section, &header) ||
		    header.sh_type != SHT_NOTE ||
		    !(data = elf_getdata(section, NULL)))
			continue;
		address = find_in_notes(data);
		if (address != 0)
			return file_offset(elf, address);
	}
	return 0;
}

uint64_t probe_offset(const char *library)
{
	int fd = open(library, O_RDONLY | O_CLOEXEC);
	uint64_t offset = 0;
	Elf *elf;

	if (fd < 0 || elf_version(EV_CURRENT) == EV_NONE)
		return 0;
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf)
		offset = find_probe(elf);
	elf_end(elf);
	close(fd);
	return offset;
}

/* ---- the kernel's list -------------------------------------------------- */

static void events_path(char path[128])
{
	snprintf(path, 128, "%s/" EVENTS_FILE, probe_tracing_directory());
}

static bool same_file(const char *one, const char *other)
{
	struct stat a, b;

	return strcmp(one, other) == 0 ||
	       (stat(one, &a) == 0 && stat(other, &b) == 0 &&
	        a.st_ino == b.st_ino && a.st_dev == b.st_dev);
}

/* "p:GROUP/EVENT PATH:0xOFFSET ..." */
static bool matches(char *line, const char *library, uint64_t offset,
                    char *name)
{
	char *place = strchr(line, ' ');
	char *colon, *slash;

	if (strncmp(line, "p:", 2) != 0 || !place)
		return false;
	*place++ = '\0';
	place[strcspn(place, " \n")] = '\0';
	colon = strrchr(place, ':');
	slash = strchr(line, '/');
	if (!colon || !slash || strtoull(colon + 1, NULL, 16) != offset)
		return false;
	*colon = '\0';
	*slash = ':';
	if (!same_file(place, library))
		return false;
	snprintf(name, PROBE_NAME_BYTES, "%.100s", line + 2);
	return true;
}

bool probe_find(const char *library, uint64_t offset,
                char name[PROBE_NAME_BYTES])
{
	char line[PATH_BYTES], path[128];
	bool found = false;
	FILE *events;

	events_path(path);
	events = fopen(path, "re");
	while (events && !found && fgets(line, sizeof(line), events))
		found = matches(line, library, offset, name);
	if (events)
		fclose(events);
	return found;
}

/* In the process that may wait for ever: with no descriptor that somebody waits
 * for the end of but its own. */
static void read_list(int answer)
{
	char path[128], byte;
	int fd;

	dup2(answer, STDIN_FILENO);
	close_range(STDIN_FILENO + 1, ~0U, 0);
	events_path(path);
	fd = open(path, O_RDONLY);
	if (fd >= 0 && read(fd, &byte, 1) < 0)
		_exit(1);
	_exit(0);
}

bool probe_list_answers(void)
{
	struct pollfd end;
	bool answers;
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return true;
	pid = fork();
	if (pid == 0)
		read_list(ends[1]);
	close(ends[1]);
	end = (struct pollfd){.fd = ends[0]};
	answers = pid < 0 || poll(&end, 1, ANSWER_PATIENCE_MS) > 0;
	close(ends[0]);
	if (pid > 0 && answers)
		waitpid(pid, NULL, 0);
	return answers;
}

static bool is_taken(const char *event)
{
	char line[PATH_BYTES], start[64];
	bool taken = false;
	FILE *events;

	snprintf(start, sizeof(start), "p:" GROUP "/%s ", event);
	events_path(line);
	events = fopen(line, "re");
	while (events && !taken && fgets(line, sizeof(line), events))
		taken = strncmp(line, start, strlen(start)) == 0;
	if (events)
		fclose(events);
	return taken;
}

/* sample, sample_2, … */
static void choose_event(char event[EVENT_BYTES])
{
	unsigned int number = 1;

	snprintf(event, EVENT_BYTES, "sample");
	while (is_taken(event))
		snprintf(event, EVENT_BYTES, "sample_%u", ++number);
}

/* Without O_APPEND all other probes would go. Locked against other commands: the
 * lines are read before one is written. A descriptor, or -1. */
static int open_events(void)
{
	char path[128];
	int fd;

	events_path(path);
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd >= 0)
		flock(fd, LOCK_EX);
	return fd;
}

static int write_line(int fd, const char *line)
{
	ssize_t length = (ssize_t)strlen(line);

	return write(fd, line, (size_t)length) == length ? 0 : errno;
}

/* A second probe of an event that is being recorded is not placed, and kernels (6.12 to
 * 7.3 at least) fall over it when a recording ends or the next one begins, with a
 * lock held that all of tracing waits for. */
int probe_set(const char *library, uint64_t offset, char name[PROBE_NAME_BYTES])
{
	char line[PATH_BYTES], event[EVENT_BYTES];
	int fd = open_events();
	int error;

	if (fd < 0)
		return errno;
	choose_event(event);
	snprintf(line, sizeof(line), "p:" GROUP "/%s %s:0x%llx\n", event,
	         library, (unsigned long long)offset);
	snprintf(name, PROBE_NAME_BYTES, GROUP ":%s", event);
	error = write_line(fd, line);
	close(fd);
	return error;
}

void probe_remove(const char *name)
{
	char line[PROBE_NAME_BYTES + 4];
	int fd = open_events();

	if (fd < 0)
		return;
	snprintf(line, sizeof(line), "-:%s\n", name);
	line[strcspn(line + 2, ":") + 2] = '/';
	write_line(fd, line);
	close(fd);
}
