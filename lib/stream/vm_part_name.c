// SPDX-License-Identifier: MIT
/* Names of what the VM does; see frame_name.h. */
#include "frame_name.h"

#include <inttypes.h>
#include <stdio.h>

/* Bytecodes of LuaJIT 2.1, up to where the function headers were in the first
 * builds; later builds put more of them there. */
static const char *const bytecodes[] = {
	"ISLT",   "ISGE",  "ISLE",   "ISGT",  "ISEQV",  "ISNEV",  "ISEQS",
	"ISNES",  "ISEQN", "ISNEN",  "ISEQP", "ISNEP",  "ISTC",   "ISFC",
	"IST",    "ISF",   "ISTYPE", "ISNUM", "MOV",    "NOT",    "UNM",
	"LEN",    "ADDVN", "SUBVN",  "MULVN", "DIVVN",  "MODVN",  "ADDNV",
	"SUBNV",  "MULNV", "DIVNV",  "MODNV", "ADDVV",  "SUBVV",  "MULVV",
	"DIVVV",  "MODVV", "POW",    "CAT",   "KSTR",   "KCDATA", "KSHORT",
	"KNUM",   "KPRI",  "KNIL",   "UGET",  "USETV",  "USETS",  "USETN",
	"USETP",  "UCLO",  "FNEW",   "TNEW",  "TDUP",   "GGET",   "GSET",
	"TGETV",  "TGETS", "TGETB",  "TGETR", "TSETV",  "TSETS",  "TSETB",
	"TSETM",  "TSETR", "CALLM",  "CALL",  "CALLMT", "CALLT",  "ITERC",
	"ITERN",  "VARG",  "ISNEXT", "RETM",  "RET",    "RET0",   "RET1",
	"FORI",   "JFORI", "FORL",   "IFORL", "JFORL",  "ITERL",  "IITERL",
	"JITERL", "LOOP",  "ILOOP",  "JLOOP", "JMP",
};

static const char *const headers[VM_HEADER_COUNT] = {
	"FUNCF",  "IFUNCF", "JFUNCF", "FUNCV",
	"IFUNCV", "JFUNCV", "FUNCC",  "FUNCCW",
};

#define BYTECODE_COUNT (sizeof(bytecodes) / sizeof(bytecodes[0]))

size_t frame_name_vm_part(char *name, uint64_t number)
{
	uint64_t part = number - VM_PART_BASE;
	uint64_t bytecode = part - VM_PART_BYTECODE;
	uint64_t header = part - VM_PART_HEADER;

	if (part == VM_PART_EXIT)
		return (size_t)sprintf(name, "lj_vm trace exit");
	if (part == VM_PART_STUB)
		return (size_t)sprintf(name, "lj_vm exit stub");
	if (header < VM_HEADER_COUNT)
		return (size_t)sprintf(name, "BC_%s", headers[header]);
	if (bytecode < BYTECODE_COUNT)
		return (size_t)sprintf(name, "BC_%s", bytecodes[bytecode]);
	return (size_t)sprintf(name, "BC_%" PRIu64, bytecode);
}
