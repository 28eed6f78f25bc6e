// SPDX-License-Identifier: MIT
/*
 * The byte level of every dump: bytes, ULEB128 numbers, strings.
 * Encoder and decoder side by side; neither allocates, prints or exits.
 *
 *   BYTE  one octet
 *   U     unsigned LEB128 of a 64-bit value, shortest form when written
 *   STR   U length, then that many bytes, no terminator
 */
#ifndef STREAM_CODEC_H
#define STREAM_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define NUMBER_BYTES_MAX 10 /* of a 64-bit U in its shortest form */

/* ---- output ------------------------------------------------------------ */

/*
 * Takes bytes at *data and returns how many it took; fewer are an I/O error.
 * May leave another buffer of the same size in *data, which is filled next;
 * NULL ends the stream. Same shape as luam_Sysprof_writer.
 */
typedef size_t (*byte_output_flusher)(const void **data, size_t bytes,
                                      void *context);

/* Bytes on their way to a flusher. Once failed or ended is set the flusher is
 * never called again and whatever is put is dropped. */
struct byte_output {
	uint8_t *buffer; /* the caller's; NULL once the stream has ended */
	size_t capacity; /* its size, at least 1 */
	size_t used;     /* bytes waiting in buffer */
	byte_output_flusher flusher;
	void *context; /* the flusher's last argument */
	bool failed;   /* a short write */
	bool ended;    /* the flusher took the buffer away */
};

void byte_output_open(struct byte_output *out, uint8_t *buffer, size_t capacity,
                      byte_output_flusher flusher, void *context);

/* Can something still be written? */
bool byte_output_is_open(const struct byte_output *out);

void byte_output_put_byte(struct byte_output *out, uint8_t byte);
void byte_output_put_bytes(struct byte_output *out, const void *bytes,
                           size_t count);
void byte_output_put_number(struct byte_output *out, uint64_t number);
void byte_output_put_string(struct byte_output *out, const char *string,
                            size_t bytes);

/* Hands what waits to the flusher. False if the stream has failed or ended,
 * now or before. */
bool byte_output_flush(struct byte_output *out);

/* The shortest form of number at bytes (room for NUMBER_BYTES_MAX); returns
 * its length. */
size_t number_encode(uint8_t *bytes, uint64_t number);

/* Signed numbers: 0, -1, 1, -2, … become 0, 1, 2, 3, … */
uint64_t number_zigzag(int64_t number);
int64_t number_unzigzag(uint64_t number);

/* ---- input ------------------------------------------------------------- */

enum byte_input_problem {
	INPUT_GOOD,
	INPUT_END,         /* the input ends here */
	INPUT_BAD_NUMBER,  /* a U of more than 64 bits */
	INPUT_READ_FAILED, /* sys_errno tells why */
};

/* Reads up to count bytes, at least one unless the input ends; 0 is the end,
 * and with errno set a failure. */
typedef size_t (*byte_input_reader)(void *context, void *bytes, size_t count);

/* Bytes from memory or from a reader, which may be of a pipe: never seeks.
 * After the first problem every read fails and leaves the problem as it is. */
struct byte_input {
	byte_input_reader reader; /* NULL: memory alone */
	void *context;            /* the reader's first argument */
	const uint8_t *bytes;     /* what has been read, or the memory */
	size_t count;             /* bytes there */
	size_t next;              /* index of the next byte to give out */
	uint64_t base;            /* offset of bytes[0] in the input */
	enum byte_input_problem problem;
	uint64_t problem_offset; /* where the item that failed begins */
	int sys_errno;           /* INPUT_READ_FAILED */
	/* Where the reader's bytes go; see byte_input_open_reader(). */
	uint8_t *chunk;
	size_t chunk_bytes;
};

/* chunk belongs to the caller and outlives the input. */
void byte_input_open_reader(struct byte_input *in, byte_input_reader reader,
                            void *context, uint8_t *chunk, size_t chunk_bytes);
/* The reader of a FILE, which is its context. */
size_t byte_input_read_file(void *file, void *bytes, size_t count);
/* The memory must outlive the input. base is the offset of its first byte in
 * the file that error messages speak of. */
void byte_input_open_memory(struct byte_input *in, const void *bytes,
                            size_t count, uint64_t base);

/* Offset in the file of the next byte. */
uint64_t byte_input_offset(const struct byte_input *in);

/* Is there nothing left? A read error is not an end. */
bool byte_input_at_end(struct byte_input *in);

bool byte_input_get_byte(struct byte_input *in, uint8_t *byte);
/*
 * A number of up to 8 bytes at bytes, where 8 can be read, at once: its length
 * is where the first byte without bit 7 is, and groups of 7 bits move together
 * in three steps. Returns the length; 0: another form.
 */
static inline size_t number_decode_short(const uint8_t *bytes, uint64_t *number)
{
	const uint64_t high_bits = UINT64_C(0x8080808080808080);
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));

	uint64_t ends = ~word & high_bits;
	if (ends == 0)
		return 0;
	word &= ends ^ (ends - 1); /* up to the end's own bit */
	word &= ~high_bits;
	word = (word & UINT64_C(0x007f007f007f007f)) |
	       (word & UINT64_C(0x7f007f007f007f00)) >> 1;
	word = (word & UINT64_C(0x00003fff00003fff)) |
	       (word & UINT64_C(0x3fff00003fff0000)) >> 2;
	*number = (word & UINT64_C(0x000000000fffffff)) |
	          (word & UINT64_C(0x0fffffff00000000)) >> 4;
	return (size_t)__builtin_ctzll(ends) / 8 + 1;
}

/* Takes overlong forms too; bits above the 64th make it INPUT_BAD_NUMBER. */
bool byte_input_get_number(struct byte_input *in, uint64_t *number);

/* The next count bytes in one piece, NULL if they do not come: the input ends,
 * or they are more than its chunk. Nothing is given out, and no problem set. */
const uint8_t *byte_input_peek(struct byte_input *in, size_t count);

/* Copies count bytes to bytes (NULL: skips them). */
bool byte_input_get_bytes(struct byte_input *in, void *bytes, uint64_t count);

/* What went wrong, for people: "the input ends", … */
const char *byte_input_problem_text(const struct byte_input *in);

/* ---- growing strings --------------------------------------------------- */

/* Room for one string at a time, grown only as bytes really arrive, so that a
 * hostile length costs no memory. Tools only: it allocates. */
struct byte_string {
	char *bytes; /* terminated with NUL after length bytes */
	size_t length;
	size_t capacity;
	bool out_of_memory;
};

void byte_string_free(struct byte_string *string);

/* Reads a STR; of more than limit bytes the rest is skipped and dropped.
 * False: see in->problem, or out_of_memory. */
bool byte_input_get_string(struct byte_input *in, struct byte_string *string,
                           size_t limit);

#endif
