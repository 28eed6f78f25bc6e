/* SPDX-License-Identifier: MIT */
/*
 * What `luajit-sysprof record -p` and its agent in the other process share until
 * they have a socket: a block at the start of a region that is mapped there for
 * the purpose, and unmapped by the agent.
 *
 * Included by assembler, too.
 */
#ifndef PRELOAD_ATTACH_BLOCK_H
#define PRELOAD_ATTACH_BLOCK_H

/* Offsets of what tools/commands/attach_stub.S needs. */
#define BLOCK_GET_TLS_BYTES  0
#define BLOCK_INIT_TLS       8
#define BLOCK_CREATE_THREAD  16
#define BLOCK_DETACH_THREAD  24
#define BLOCK_OPEN_LIBRARY   32
#define BLOCK_FIND_SYMBOL    40
#define BLOCK_DESCRIBE_ERROR 48
#define BLOCK_THREAD_BLOCK   56
#define BLOCK_TLS_BYTES_MAX  64
#define BLOCK_THREAD         72
#define BLOCK_STATE          80
#define BLOCK_CODE           84
#define BLOCK_STUB_ID        88
#define BLOCK_OPEN_FLAGS     92
#define BLOCK_SYMBOL         96
#define BLOCK_ERROR          128
#define BLOCK_AGENT          640
#define BLOCK_BYTES          4736

#define BLOCK_ERROR_BYTES 512
#define BLOCK_AGENT_BYTES 4096

/* States. */
#define ATTACH_NOTHING      0
#define ATTACH_THREAD_RUNS  1
#define ATTACH_NO_THREAD    2 /* code: -1 too much TLS, else an errno */
#define ATTACH_NO_AGENT     3 /* the agent could not be loaded: error */
#define ATTACH_READY        4 /* the agent waits for its first message */
#define ATTACH_AGENT_FAILED 5 /* it gives up: error */
#define ATTACH_TLS_TOO_BIG  (-1)

/* The function of the agent that gets the block. */
#define ATTACH_SYMBOL "luajit_sysprof_attach"

#ifndef __ASSEMBLER__

#include <stddef.h>
#include <stdint.h>

struct attach_block {
	/* Functions of the process's C library and dynamic loader. */
	uint64_t get_tls_bytes;  /* _dl_get_tls_static_info */
	uint64_t init_tls;       /* _dl_allocate_tls_init */
	uint64_t create_thread;  /* pthread_create */
	uint64_t detach_thread;  /* pthread_detach */
	uint64_t open_library;   /* dlopen */
	uint64_t find_symbol;    /* dlsym */
	uint64_t describe_error; /* dlerror */
	/* Of the first thread, which is not one of the C library's: what fs
	 * points to, and the room for thread-local variables below. */
	uint64_t thread_block;
	uint64_t tls_bytes_max;
	uint64_t thread;        /* pthread_t of the one that loads the agent */
	volatile int32_t state; /* ATTACH_* */
	int32_t code;
	volatile int32_t stub_id;                /* thread id of that one */
	int32_t open_flags;                      /* of dlopen */
	char symbol[BLOCK_ERROR - BLOCK_SYMBOL]; /* ATTACH_SYMBOL */
	char error[BLOCK_ERROR_BYTES];
	char agent[BLOCK_AGENT_BYTES]; /* path of the agent */
	/* 0 when the first thread has ended. */
	uint64_t first_thread_id_address;
	uint64_t region, region_bytes;
	int32_t socket; /* the recorder's end, which it takes over */
	volatile int32_t abandoned; /* by the recorder: unmap and end */
};

_Static_assert(offsetof(struct attach_block, thread_block) ==
                               BLOCK_THREAD_BLOCK &&
                       offsetof(struct attach_block, thread) == BLOCK_THREAD &&
                       offsetof(struct attach_block, state) == BLOCK_STATE &&
                       offsetof(struct attach_block, open_flags) ==
                               BLOCK_OPEN_FLAGS &&
                       offsetof(struct attach_block, symbol) == BLOCK_SYMBOL &&
                       offsetof(struct attach_block, agent) == BLOCK_AGENT &&
                       offsetof(struct attach_block, first_thread_id_address) ==
                               BLOCK_BYTES,
               "the stub has these offsets");

/*
 * Over the socket, one datagram each. To the agent: at first the settings, lines
 * "NAME=VALUE" with the variables of luajit-sysprof(1), and the descriptor of the
 * dump (but see below); then anything, or the end of the socket, ends the profile. From the
 * agent: a letter and a text.
 */
#define ATTACH_STARTED 'S'
#define ATTACH_REFUSED 'R'
#define ATTACH_ENDED   'E' /* the dump is whole */
#define ATTACH_FAILED  'F' /* it is not */

#define ATTACH_MESSAGE_BYTES 16384

/*
 * If there is LUAJIT_SYSPROF_ROTATE among the settings, what comes with them in
 * place of a dump is a socket, at which the agent asks for dumps. Of one that is to
 * be created it gets an answer, with the descriptor if the code is 0.
 */
struct dump_request {
	uint64_t serial;
	uint64_t device,
		inode; /* of the file to be removed; 0: to be created */
	char path[BLOCK_AGENT_BYTES];
};

struct dump_answer {
	struct dump_request request;
	int32_t code; /* an errno */
};

#endif
#endif
