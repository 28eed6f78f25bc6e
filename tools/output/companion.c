// SPDX-License-Identifier: MIT
/*
 * Companion object: ELF by libelf, and DWARF 4 of one compilation unit, by hand:
 * an abbreviation, a unit without children, and a line program.
 */
#include "companion.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/id_map.h"
#include "profile/memory.h"

#define NOP           0x90
#define OPCODE_BASE   13 /* no special opcodes are used */
#define NOTE_NAME     "GNU"
#define PRODUCER      "luajit-sysprof"
#define ADDRESS_BYTES 8
#define SECTION_NAMES                                                          \
	"\0.text\0.note.gnu.build-id\0.symtab\0.strtab\0"                      \
	".debug_abbrev\0.debug_info\0.debug_line\0.shstrtab"

/* What is used of DWARF 4, by the names of its specification. */
enum dwarf {
	DW_TAG_compile_unit = 0x11,
	DW_CHILDREN_no = 0,
	DW_AT_name = 0x03,
	DW_AT_stmt_list = 0x10,
	DW_AT_low_pc = 0x11,
	DW_AT_high_pc = 0x12,
	DW_AT_language = 0x13,
	DW_AT_producer = 0x25,
	DW_FORM_addr = 0x01,
	DW_FORM_data8 = 0x07,
	DW_FORM_string = 0x08,
	DW_FORM_data1 = 0x0b,
	DW_FORM_sec_offset = 0x17,
	DW_LANG_C99 = 0x0c,
	DW_LNS_copy = 1,
	DW_LNS_advance_pc = 2,
	DW_LNS_advance_line = 3,
	DW_LNS_set_file = 4,
	DW_LNE_end_sequence = 1,
	DW_LNE_set_address = 2,
};

enum section {
	SECTION_NULL,
	SECTION_TEXT,
	SECTION_NOTE,
	SECTION_SYMTAB,
	SECTION_STRTAB,
	SECTION_ABBREV,
	SECTION_INFO,
	SECTION_LINE,
	SECTION_SHSTRTAB,
	SECTION_COUNT
};

/* Bytes under construction. */
struct bytes {
	uint8_t *data;
	size_t used;
	size_t capacity;
};

static void put(struct bytes *bytes, const void *data, size_t count)
{
	bytes->data = memory_grow(bytes->data, &bytes->capacity,
	                          bytes->used + count, 1);
	if (count > 0)
		memcpy(bytes->data + bytes->used, data, count);
	bytes->used += count;
}

static void put_byte(struct bytes *bytes, unsigned byte)
{
	uint8_t narrow = (uint8_t)byte;

	put(bytes, &narrow, 1);
}

static void put_u16(struct bytes *bytes, uint16_t number)
{
	put(bytes, &number, sizeof(number));
}

static void put_u32(struct bytes *bytes, uint32_t number)
{
	put(bytes, &number, sizeof(number));
}

static void put_u64(struct bytes *bytes, uint64_t number)
{
	put(bytes, &number, sizeof(number));
}

static void put_string(struct bytes *bytes, const char *string)
{
	put(bytes, string, strlen(string) + 1);
}

static void put_uleb(struct bytes *bytes, uint64_t number)
{
	for (; number >= 0x80; number >>= 7)
		put_byte(bytes, (unsigned)(number & 0x7f) | 0x80);
	put_byte(bytes, (unsigned)number);
}

static void put_sleb(struct bytes *bytes, int64_t number)
{
	bool more = true;

	while (more) {
		unsigned low = (unsigned)(number & 0x7f);

		number >>= 7;
		more = !((number == 0 && !(low & 0x40)) ||
		         (number == -1 && (low & 0x40)));
		put_byte(bytes, low | (more ? 0x80 : 0));
	}
}

static void patch_u32(struct bytes *bytes, size_t at, size_t number)
{
	uint32_t narrow = (uint32_t)number;

	memcpy(bytes->data + at, &narrow, sizeof(narrow));
}

/* ---- lines ------------------------------------------------------------- */

/* Numbers files from 1 on; names of the table go to the header. */
static uint32_t file_number(struct id_map *files, struct bytes *names,
                            const char *file, uint32_t *count)
{
	bool is_new;
	uint32_t *number =
		id_map_add(files, (uintptr_t)file, 0, *count + 1, &is_new);

	if (!is_new)
		return *number;
	(*count)++;
	put_string(names, file[0] != '\0' ? file : "?");
	put_uleb(names, 0); /* directory, time, length: not known */
	put_uleb(names, 0);
	put_uleb(names, 0);
	return *number;
}

static void put_extended(struct bytes *program, unsigned opcode, size_t bytes)
{
	put_byte(program, 0);
	put_uleb(program, 1 + bytes);
	put_byte(program, opcode);
}

static void put_rows(struct bytes *program, struct bytes *names,
                     const struct companion *companion)
{
	struct id_map files = {0};
	uint32_t file_count = 0, file = 1;
	uint64_t address = 0;
	int64_t line = 1;

	put_extended(program, DW_LNE_set_address, ADDRESS_BYTES);
	put_u64(program, COMPANION_CODE_OFFSET);
	for (size_t i = 0; i < companion->line_count; i++) {
		const struct companion_line *row = &companion->lines[i];
		uint32_t number =
			file_number(&files, names, row->file, &file_count);

		put_byte(program, DW_LNS_advance_pc);
		put_uleb(program, row->offset - address);
		if (number != file) {
			put_byte(program, DW_LNS_set_file);
			put_uleb(program, number);
		}
		put_byte(program, DW_LNS_advance_line);
		put_sleb(program, (int64_t)row->line - line);
		put_byte(program, DW_LNS_copy);
		address = row->offset;
		line = row->line;
		file = number;
	}
	put_byte(program, DW_LNS_advance_pc);
	put_uleb(program, companion->code_bytes - address);
	put_extended(program, DW_LNE_end_sequence, 0);
	id_map_free(&files);
}

static void make_line(struct bytes *line, const struct companion *companion)
{
	static const uint8_t lengths[OPCODE_BASE - 1] = {0, 1, 1, 1, 1, 0,
	                                                 0, 0, 1, 0, 0, 1};
	struct bytes program = {0}, names = {0};
	size_t header;

	put_rows(&program, &names, companion);
	put_u32(line, 0); /* length */
	put_u16(line, 4); /* version */
	put_u32(line, 0); /* length of the header */
	header = line->used;
	put_byte(line, 1); /* bytes of an instruction, at least */
	put_byte(line, 1); /* operations in one */
	put_byte(line, 1); /* rows are statements */
	put_byte(line, 0xfb);
	put_byte(line, 14);
	put_byte(line, OPCODE_BASE);
	put(line, lengths, sizeof(lengths));
	put_byte(line, 0); /* no directories */
	put(line, names.data, names.used);
	put_byte(line, 0); /* no more files */
	patch_u32(line, header - 4, line->used - header);
	put(line, program.data, program.used);
	patch_u32(line, 0, line->used - 4);
	free(program.data);
	free(names.data);
}

static void make_abbrev(struct bytes *abbrev)
{
	static const uint8_t attributes[][2] = {
		{DW_AT_producer, DW_FORM_string},
		{DW_AT_language, DW_FORM_data1},
		{DW_AT_name, DW_FORM_string},
		{DW_AT_stmt_list, DW_FORM_sec_offset},
		{DW_AT_low_pc, DW_FORM_addr},
		{DW_AT_high_pc, DW_FORM_data8},
		{0, 0},
	};

	put_uleb(abbrev, 1);
	put_uleb(abbrev, DW_TAG_compile_unit);
	put_byte(abbrev, DW_CHILDREN_no);
	for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); i++)
		put(abbrev, attributes[i], 2);
	put_byte(abbrev, 0);
}

static void make_info(struct bytes *info, const struct companion *companion)
{
	put_u32(info, 0); /* length */
	put_u16(info, 4); /* version */
	put_u32(info, 0); /* offset of the abbreviations */
	put_byte(info, ADDRESS_BYTES);
	put_uleb(info, 1);
	put_string(info, PRODUCER);
	put_byte(info, DW_LANG_C99);
	put_string(info, "profile");
	put_u32(info, 0); /* offset of the lines */
	put_u64(info, COMPANION_CODE_OFFSET);
	put_u64(info, companion->code_bytes);
	patch_u32(info, 0, info->used - 4);
}

/* ---- sections ---------------------------------------------------------- */

static void make_symbols(struct bytes *symtab, struct bytes *strtab,
                         const struct companion *companion)
{
	Elf64_Sym symbol = {0};

	put(symtab, &symbol, sizeof(symbol));
	put_byte(strtab, 0);
	for (size_t i = 0; i < companion->symbol_count; i++) {
		const struct companion_symbol *from = &companion->symbols[i];

		symbol = (Elf64_Sym){
			.st_name = (Elf64_Word)strtab->used,
			.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			.st_shndx = SECTION_TEXT,
			.st_value = COMPANION_CODE_OFFSET + from->offset,
			.st_size = from->bytes,
		};
		put(symtab, &symbol, sizeof(symbol));
		put_string(strtab, from->name);
	}
}

/* FNV-1a, of all sections, as often as the id has words: it needs not resist
 * anybody. */
static void make_build_id(const struct bytes *sections, uint8_t *build_id)
{
	for (uint32_t word = 0; word < COMPANION_BUILD_ID_BYTES / 4; word++) {
		uint64_t hash = 0xcbf29ce484222325u + word;

		for (int i = 0; i < SECTION_COUNT; i++)
			for (size_t at = 0; at < sections[i].used; at++)
				hash = (hash ^ sections[i].data[at]) *
				       0x100000001b3u;
		hash ^= hash >> 32;
		memcpy(build_id + 4 * (size_t)word, &hash, 4);
	}
}

static void make_note(struct bytes *note, const uint8_t *build_id)
{
	put_u32(note, sizeof(NOTE_NAME));
	put_u32(note, COMPANION_BUILD_ID_BYTES);
	put_u32(note, NT_GNU_BUILD_ID);
	put(note, NOTE_NAME, sizeof(NOTE_NAME));
	put(note, build_id, COMPANION_BUILD_ID_BYTES);
}

static void make_sections(struct bytes *sections,
                          const struct companion *companion, uint8_t *build_id)
{
	struct bytes *text = &sections[SECTION_TEXT];

	text->data = memory_grow(text->data, &text->capacity,
	                         companion->code_bytes + 1, 1);
	memset(text->data, NOP, companion->code_bytes);
	text->used = companion->code_bytes;
	make_symbols(&sections[SECTION_SYMTAB], &sections[SECTION_STRTAB],
	             companion);
	make_abbrev(&sections[SECTION_ABBREV]);
	make_info(&sections[SECTION_INFO], companion);
	make_line(&sections[SECTION_LINE], companion);
	put(&sections[SECTION_SHSTRTAB], SECTION_NAMES, sizeof(SECTION_NAMES));
	make_build_id(sections, build_id);
	make_note(&sections[SECTION_NOTE], build_id);
}

static size_t name_offset(enum section section)
{
	const char *name = SECTION_NAMES;

	for (int i = 0; i < (int)section; i++)
		name += strlen(name) + 1;
	return (size_t)(name - SECTION_NAMES);
}

/* ---- the file ---------------------------------------------------------- */

static const struct section_shape {
	uint32_t type;
	uint64_t flags;
	uint64_t alignment;
	Elf_Type contents;
} shapes[SECTION_COUNT] = {
	[SECTION_TEXT] = {SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 16,
                          ELF_T_BYTE},
	[SECTION_NOTE] = {SHT_NOTE, SHF_ALLOC, 4, ELF_T_BYTE},
	[SECTION_SYMTAB] = {SHT_SYMTAB, 0, 8, ELF_T_SYM},
	[SECTION_STRTAB] = {SHT_STRTAB, 0, 1, ELF_T_BYTE},
	[SECTION_ABBREV] = {SHT_PROGBITS, 0, 1, ELF_T_BYTE},
	[SECTION_INFO] = {SHT_PROGBITS, 0, 1, ELF_T_BYTE},
	[SECTION_LINE] = {SHT_PROGBITS, 0, 1, ELF_T_BYTE},
	[SECTION_SHSTRTAB] = {SHT_STRTAB, 0, 1, ELF_T_BYTE},
};

static bool add_section(Elf *elf, enum section section,
                        const struct bytes *bytes, uint64_t *offset)
{
	const struct section_shape *shape = &shapes[section];
	Elf_Scn *scn = elf_newscn(elf);
	Elf_Data *data = scn ? elf_newdata(scn) : NULL;
	Elf64_Shdr *header = data ? elf64_getshdr(scn) : NULL;

	if (!header)
		return false;
	*offset = (*offset + shape->alignment - 1) & ~(shape->alignment - 1);
	data->d_buf = bytes->data;
	data->d_size = bytes->used;
	data->d_type = shape->contents;
	data->d_align = shape->alignment;
	header->sh_name = (Elf64_Word)name_offset(section);
	header->sh_type = shape->type;
	header->sh_flags = shape->flags;
	header->sh_addralign = shape->alignment;
	header->sh_offset = *offset;
	header->sh_size = bytes->used;
	if (shape->flags & SHF_ALLOC)
		header->sh_addr = *offset;
	if (section == SECTION_SYMTAB) {
		header->sh_link = SECTION_STRTAB;
		header->sh_info = 1; /* the first global symbol */
		header->sh_entsize = sizeof(Elf64_Sym);
	}
	*offset += bytes->used;
	return true;
}

static bool set_headers(Elf *elf, uint64_t code_bytes, uint64_t end)
{
	Elf64_Ehdr *header = elf64_getehdr(elf);
	Elf64_Phdr *segment = elf64_getphdr(elf);

	header->e_type = ET_DYN;
	header->e_machine = EM_X86_64;
	header->e_version = EV_CURRENT;
	header->e_shstrndx = SECTION_SHSTRTAB;
	header->e_phoff = sizeof(*header);
	header->e_shoff = (end + 7) & ~(uint64_t)7;
	*segment = (Elf64_Phdr){
		.p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		/* From the start of the file: libdwfl, in hotspot, takes the
	         * first segment for that. */
		.p_filesz = COMPANION_CODE_OFFSET + code_bytes,
		.p_memsz = COMPANION_CODE_OFFSET + code_bytes,
		.p_align = COMPANION_CODE_OFFSET,
	};
	return elf_update(elf, ELF_C_WRITE) >= 0;
}

static bool write_elf(int fd, const struct bytes *sections)
{
	uint64_t offset = COMPANION_CODE_OFFSET;
	Elf *elf = elf_version(EV_CURRENT) != EV_NONE
	                   ? elf_begin(fd, ELF_C_WRITE, NULL)
	                   : NULL;
	bool good = elf && elf64_newehdr(elf) && elf64_newphdr(elf, 1);
	if (good) {
		elf_flagelf(elf, ELF_C_SET, ELF_F_LAYOUT);
		/* Of this machine's order, or libelf swaps the symbols. */
		elf64_getehdr(elf)->e_ident[EI_DATA] = ELFDATA2LSB;
	}
	for (int i = SECTION_TEXT; good && i < SECTION_COUNT; i++)
		good = add_section(elf, (enum section)i, &sections[i], &offset);
	good = good && set_headers(elf, sections[SECTION_TEXT].used, offset);
	elf_end(elf);
	return good;
}

int companion_write(const struct companion *companion, const char *path,
                    uint8_t build_id[COMPANION_BUILD_ID_BYTES])
{
	struct bytes sections[SECTION_COUNT] = {0};
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	int error = 0;

	if (fd < 0)
		return -errno;
	make_sections(sections, companion, build_id);
	errno = 0;
	if (!write_elf(fd, sections))
		error = errno != 0 ? -errno : -EIO;
	for (int i = 0; i < SECTION_COUNT; i++)
		free(sections[i].data);
	if (close(fd) != 0 && error == 0 && errno != EINTR)
		error = -errno;
	return error;
}
