// SPDX-License-Identifier: MIT
/*
 * Beacon: what a tracer sees at the probe. The test plays the tracer: it puts a
 * breakpoint on the probe's nop and follows the frame-pointer register in the
 * trap handler, as the kernel does for perf.
 */
#include "perfmap/beacon_sig.h"

#include <check.h>
#include <fcntl.h>
#include <gelf.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "perfmap/beacon_probe_sig.h"

#define NOTE_PROBE            3  /* NT_STAPSDT */
#define PROBE_ADDRESSES_BYTES 24 /* probe, base, semaphore */
#define LINKS_MAX             64

/* Addresses in the program's file: of the probe, and of its function. */
struct probe_place {
	uint64_t probe;
	uint64_t function;
	unsigned probe_count;
};

static struct {
	unsigned hits;
	size_t count;
	uint64_t addresses[LINKS_MAX];
	int descending; /* links that do not lie above the one before */
} seen;

static void read_notes(Elf_Scn *section, struct probe_place *place)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t owner, body, at = 0;
	GElf_Nhdr note;

	while (data &&
	       (at = gelf_getnote(data, at, &note, &owner, &body)) > 0) {
		const char *bytes = data->d_buf;
		const char *provider = bytes + body + PROBE_ADDRESSES_BYTES;

		if (note.n_type != NOTE_PROBE ||
		    strcmp(bytes + owner, "stapsdt") != 0 ||
		    strcmp(provider, "luajit_sysprof") != 0 ||
		    strcmp(provider + strlen(provider) + 1, "sample") != 0)
			continue;
		memcpy(&place->probe, bytes + body, sizeof(place->probe));
		place->probe_count++;
	}
}

static void read_symbols(Elf *elf, Elf_Scn *section, const GElf_Shdr *header,
                         struct probe_place *place)
{
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Sym symbol;

	for (int i = 0; data && gelf_getsym(data, i, &symbol); i++) {
		const char *name =
			elf_strptr(elf, header->sh_link, symbol.st_name);

		if (name && strcmp(name, "luajit_sysprof_sample") == 0) {
			ck_assert_int_eq(GELF_ST_TYPE(symbol.st_info),
			                 STT_FUNC);
			place->function = symbol.st_value;
		}
	}
}

static struct probe_place read_place(void)
{
	struct probe_place place = {0};
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	Elf *elf;

	ck_assert_int_ge(fd, 0);
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	ck_assert_ptr_nonnull(elf);
	while ((section = elf_nextscn(elf, section)) != NULL) {
		gelf_getshdr(section, &header);
		if (header.sh_type == SHT_NOTE)
			read_notes(section, &place);
		if (header.sh_type == SHT_SYMTAB)
			read_symbols(elf, section, &header, &place);
	}
	elf_end(elf);
	close(fd);
	return place;
}

static void follow_chain(int signal, siginfo_t *info, void *context)
{
	ucontext_t *registers = context;
	const struct beacon_link *link;

	(void)signal;
	(void)info;
#if defined(__x86_64__)
	link = (void *)registers->uc_mcontext.gregs[REG_RBP];
#else
	link = (void *)registers->uc_mcontext.regs[29];
	registers->uc_mcontext.pc += 4;
#endif
	seen.hits++;
	seen.count = 0;
	seen.descending = 0;
	for (; link && seen.count < LINKS_MAX; link = link->next) {
		seen.addresses[seen.count++] = link->address;
		seen.descending += link->next && link->next <= link;
	}
}

static void put_breakpoint(void)
{
	struct probe_place place = read_place();
	uintptr_t address, page;
	struct sigaction action = {.sa_sigaction = follow_chain,
	                           .sa_flags = SA_SIGINFO};

	ck_assert_uint_eq(place.probe_count, 1);
	ck_assert_uint_ne(place.function, 0);
	address =
		(uintptr_t)luajit_sysprof_sample + place.probe - place.function;
	page = address & ~(uintptr_t)(sysconf(_SC_PAGESIZE) - 1);
	ck_assert_int_eq(mprotect((void *)page, address + 4 - page,
	                          PROT_READ | PROT_WRITE | PROT_EXEC),
	                 0);
#if defined(__x86_64__)
	ck_assert_uint_eq(*(uint8_t *)address, 0x90);
	*(uint8_t *)address = 0xcc;
#else
	ck_assert_uint_eq(*(uint32_t *)address, 0xd503201f);
	*(uint32_t *)address = 0xd4200000;
	__builtin___clear_cache((char *)address, (char *)address + 4);
#endif
	ck_assert_int_eq(sigaction(SIGTRAP, &action, NULL), 0);
	memset(&seen, 0, sizeof(seen));
}

static struct beacon_chain *chain_new(size_t capacity)
{
	struct beacon_chain *chain =
		malloc(sizeof(*chain) + capacity * sizeof(chain->links[0]));

	ck_assert_ptr_nonnull(chain);
	chain->capacity = capacity;
	return chain;
}

START_TEST(chain_is_seen_at_the_probe)
{
	static const uint64_t addresses[] = {0x1111, 0x2222, 0x7fff12345678};
	struct beacon_chain *chain = chain_new(8);

	put_breakpoint();
	beacon_emit(chain, addresses, 3);
	ck_assert_uint_eq(seen.hits, 1);
	ck_assert_uint_eq(seen.count, 3);
	ck_assert_mem_eq(seen.addresses, addresses, sizeof(addresses));
	ck_assert_int_eq(seen.descending, 0);
	/* A shorter one right after leaves nothing of the longer one. */
	beacon_emit(chain, addresses + 1, 1);
	ck_assert_uint_eq(seen.hits, 2);
	ck_assert_uint_eq(seen.count, 1);
	ck_assert_uint_eq(seen.addresses[0], 0x2222);
	free(chain);
}
END_TEST

START_TEST(chain_is_cut_at_its_capacity)
{
	struct beacon_chain *chain = chain_new(4);
	uint64_t addresses[9];

	for (int i = 0; i < 9; i++)
		addresses[i] = 0x1000u + (unsigned)i;
	put_breakpoint();
	beacon_emit(chain, addresses, 9);
	ck_assert_uint_eq(seen.count, 4);
	ck_assert_uint_eq(seen.addresses[3], 0x1003);
	chain->capacity = 0;
	beacon_emit(chain, addresses, 9);
	ck_assert_uint_eq(seen.hits, 2);
	ck_assert_uint_eq(seen.count, 0);
	free(chain);
}
END_TEST

START_TEST(chain_may_be_empty)
{
	struct beacon_chain *chain = chain_new(4);

	put_breakpoint();
	beacon_emit(chain, NULL, 0);
	ck_assert_uint_eq(seen.hits, 1);
	ck_assert_uint_eq(seen.count, 0);
	free(chain);
}
END_TEST

/* Keeps values in every register and on the stack over the probe. */
START_TEST(caller_keeps_its_registers)
{
	struct beacon_chain *chain = chain_new(4);
	volatile uint64_t seed = 12345;
	uint64_t a = seed * 3, b = seed * 5, c = seed * 7, d = seed * 11,
		 e = seed * 13, f = seed * 17, g = seed * 19, h = seed * 23;
	char below[64];

	memset(below, (int)seed, sizeof(below));
	put_breakpoint();
	for (int i = 0; i < 100; i++) {
		beacon_emit(chain, (const uint64_t[]){1, 2}, 2);
		a += b ^ c;
		d += e ^ f;
		g += h;
	}
	ck_assert_uint_eq(seen.hits, 100);
	ck_assert_uint_eq(a, 12345 * 3 + 100 * ((12345 * 5) ^ (12345 * 7)));
	ck_assert_uint_eq(d, 12345 * 11 + 100 * ((12345 * 13) ^ (12345 * 17)));
	ck_assert_uint_eq(g, 12345 * 19 + 100 * (12345 * 23));
	for (size_t i = 0; i < sizeof(below); i++)
		ck_assert_int_eq(below[i], (char)12345);
	free(chain);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("beacon");
	TCase *tests = tcase_create("beacon");
	SRunner *runner;
	int failed;

	tcase_add_test(tests, chain_is_seen_at_the_probe);
	tcase_add_test(tests, chain_is_cut_at_its_capacity);
	tcase_add_test(tests, chain_may_be_empty);
	tcase_add_test(tests, caller_keeps_its_registers);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
