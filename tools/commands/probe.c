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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOTE_OWNER  "stapsdt"
#define NOTE_TYPE   3
#define NOTE_PROBE  "luajit_sysprof\0sample"
#define EVENTS_FILE "uprobe_events"
#define PATH_BYTES  4200

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

/* Without O_APPEND all other probes would go. 0 or an errno. */
static int add_line(const char *line)
{
	char path[128];
	int error = 0;
	int fd;

	events_path(path);
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd < 0)
		return errno;
	if (write(fd, line, strlen(line)) != (ssize_t)strlen(line))
		error = errno;
	close(fd);
	return error;
}

int probe_set(const char *library, uint64_t offset)
{
	char line[PATH_BYTES];

	snprintf(line, sizeof(line), "p:luajit_sysprof/sample %s:0x%llx\n",
	         library, (unsigned long long)offset);
	return add_line(line);
}

void probe_remove(void)
{
	add_line("-:luajit_sysprof/sample\n");
}
