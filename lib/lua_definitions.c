// SPDX-License-Identifier: MIT
/*
 * Lua definitions: a scanner for Lua's tokens, and the few patterns that name
 * a function.
 *
 * The VM takes as first line of `function a.b()` the line of the keyword, and
 * of all others that of the opening parenthesis. Where the two differ there is
 * no name, and none for another function in either line. `x -> x + 1` and
 * `|x, y| -> x + y` of LuaJIT since 2026 are functions, too.
 */
#include "lua_definitions.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define RECENT_TOKENS 64  /* power of two; longer chains of names have none */
#define DEPTH_MAX     512 /* the VM's own limits are lower */

enum token_kind {
	/* Below: single characters stand for themselves. */
	TOKEN_END = 256,
	TOKEN_INVALID,
	TOKEN_NAME,
	TOKEN_STRING, /* short, without escapes; text is what is in it */
	TOKEN_VALUE,  /* any other constant */
	TOKEN_OPERATOR,
	TOKEN_ARROW,
	TOKEN_FUNCTION,
	TOKEN_OPEN,  /* begins a block: if, do, repeat */
	TOKEN_CLOSE, /* ends one: end, until */
	TOKEN_FOR,
	TOKEN_KEYWORD,
};

struct token {
	int kind; /* enum token_kind or a character */
	uint32_t line;
	const char *text;
	size_t bytes;
};

struct scanner {
	const char *at;
	const char *end;
	uint32_t line;
};

struct reader {
	struct scanner scanner;
	struct lua_definitions *definitions;
	uint32_t token_count;
	struct token recent[RECENT_TOKENS]; /* the last ones, cyclic */
	size_t depth;
	unsigned char open[DEPTH_MAX]; /* '{', '(', '[', or 'b' for a block */
	size_t opened_by[DEPTH_MAX]; /* of a block: its definition + 1, or 0 */
	bool out_of_memory;
};

/* --- tokens -------------------------------------------------------------- */

static int peek_at(const struct scanner *scanner, size_t ahead)
{
	if (ahead >= (size_t)(scanner->end - scanner->at))
		return -1;
	return (unsigned char)scanner->at[ahead];
}

static bool is_newline(int c)
{
	return c == '\n' || c == '\r';
}

static bool is_digit(int c)
{
	return c >= '0' && c <= '9';
}

/* Bytes of UTF-8 are letters to LuaJIT. */
static bool is_name_byte(int c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z') || c == '_' || c >= 0x80;
}

/* "\r\n" and "\n\r" are one line end. */
static void skip_newline(struct scanner *scanner)
{
	int first = peek_at(scanner, 0), second = peek_at(scanner, 1);

	scanner->at += is_newline(second) && second != first ? 2 : 1;
	scanner->line++;
}

static void skip_line(struct scanner *scanner)
{
	while (scanner->at < scanner->end && !is_newline(peek_at(scanner, 0)))
		scanner->at++;
}

/* Level of the long bracket that opens here, or -1. */
static int long_bracket_level(const struct scanner *scanner)
{
	int level = 0;

	if (peek_at(scanner, 0) != '[')
		return -1;
	while (peek_at(scanner, (size_t)level + 1) == '=')
		level++;
	return peek_at(scanner, (size_t)level + 1) == '[' ? level : -1;
}

static bool closes_long_bracket(const struct scanner *scanner, int level)
{
	if (peek_at(scanner, 0) != ']')
		return false;
	for (int i = 1; i <= level; i++)
		if (peek_at(scanner, (size_t)i) != '=')
			return false;
	return peek_at(scanner, (size_t)level + 1) == ']';
}

/* False if it never ends. */
static bool skip_long_bracket(struct scanner *scanner, int level)
{
	scanner->at += level + 2;
	while (scanner->at < scanner->end) {
		if (closes_long_bracket(scanner, level)) {
			scanner->at += level + 2;
			return true;
		}
		if (is_newline(peek_at(scanner, 0)))
			skip_newline(scanner);
		else
			scanner->at++;
	}
	return false;
}

/* White space and comments. False if a comment never ends. */
static bool skip_blank(struct scanner *scanner)
{
	while (scanner->at < scanner->end) {
		int c = peek_at(scanner, 0);

		if (is_newline(c)) {
			skip_newline(scanner);
		} else if (c == ' ' || c == '\t' || c == '\v' || c == '\f') {
			scanner->at++;
		} else if (c == '-' && peek_at(scanner, 1) == '-') {
			int level;

			scanner->at += 2;
			level = long_bracket_level(scanner);
			if (level < 0)
				skip_line(scanner);
			else if (!skip_long_bracket(scanner, level))
				return false;
		} else {
			break;
		}
	}
	return true;
}

/* Behind a backslash in a short string. */
static void skip_escape(struct scanner *scanner)
{
	int c = peek_at(scanner, 0);

	if (is_newline(c)) {
		skip_newline(scanner);
	} else if (c == 'z') {
		scanner->at++;
		while ((c = peek_at(scanner, 0)) == ' ' ||
		       (c >= '\t' && c <= '\r'))
			if (is_newline(c))
				skip_newline(scanner);
			else
				scanner->at++;
	} else if (c >= 0) {
		scanner->at++;
	}
}

static int scan_string(struct scanner *scanner, struct token *token)
{
	int quote = peek_at(scanner, 0), c;
	int kind = TOKEN_STRING;

	token->text = ++scanner->at;
	while ((c = peek_at(scanner, 0)) != quote) {
		if (c < 0 || is_newline(c))
			return TOKEN_INVALID;
		scanner->at++;
		if (c == '\\') {
			kind = TOKEN_VALUE;
			skip_escape(scanner);
		}
	}
	token->bytes = (size_t)(scanner->at++ - token->text);
	return kind;
}

/* As loose as LuaJIT's: what a number may look like, not what is one. */
static int scan_number(struct scanner *scanner)
{
	int exponent = 'e', last = 0, c = peek_at(scanner, 0);

	if (c == '0' && (peek_at(scanner, 1) | 0x20) == 'x')
		exponent = 'p';
	while (is_name_byte(c = peek_at(scanner, 0)) || c == '.' ||
	       ((c == '-' || c == '+') && (last | 0x20) == exponent)) {
		last = c;
		scanner->at++;
	}
	return TOKEN_VALUE;
}

static int keyword_kind(const char *text, size_t bytes)
{
	static const struct {
		const char *word;
		int kind;
	} keywords[] = {
		{"function", TOKEN_FUNCTION}, {"if", TOKEN_OPEN},
		{"do", TOKEN_OPEN},           {"repeat", TOKEN_OPEN},
		{"end", TOKEN_CLOSE},         {"until", TOKEN_CLOSE},
		{"for", TOKEN_FOR},           {"and", TOKEN_KEYWORD},
		{"break", TOKEN_KEYWORD},     {"else", TOKEN_KEYWORD},
		{"elseif", TOKEN_KEYWORD},    {"false", TOKEN_KEYWORD},
		{"in", TOKEN_KEYWORD},        {"local", TOKEN_KEYWORD},
		{"nil", TOKEN_KEYWORD},       {"not", TOKEN_KEYWORD},
		{"or", TOKEN_KEYWORD},        {"return", TOKEN_KEYWORD},
		{"then", TOKEN_KEYWORD},      {"true", TOKEN_KEYWORD},
		{"while", TOKEN_KEYWORD},
	};

	for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++)
		if (strlen(keywords[i].word) == bytes &&
		    !memcmp(keywords[i].word, text, bytes))
			return keywords[i].kind;
	return TOKEN_NAME;
}

static int scan_name(struct scanner *scanner)
{
	const char *text = scanner->at;

	while (is_name_byte(peek_at(scanner, 0)))
		scanner->at++;
	return keyword_kind(text, (size_t)(scanner->at - text));
}

/* Operators of several characters must not be taken for `=`, `.` or `:`. */
static int scan_operator(struct scanner *scanner)
{
	int c = peek_at(scanner, 0), next = peek_at(scanner, 1);

	if (c < ' ' || c == 0x7f)
		return TOKEN_INVALID;
	if (next == '=' &&
	    (c == '=' || c == '~' || c == '<' || c == '>' || c == '!')) {
		scanner->at += 2;
		return TOKEN_OPERATOR;
	}
	if (c == '-' && next == '>') {
		scanner->at += 2;
		return TOKEN_ARROW;
	}
	if (c == next && (c == '.' || c == ':')) {
		scanner->at += c == '.' && peek_at(scanner, 2) == '.' ? 3 : 2;
		return TOKEN_OPERATOR;
	}
	scanner->at++;
	return c;
}

static int scan(struct scanner *scanner, struct token *token)
{
	int c = peek_at(scanner, 0);
	int level;

	if (c < 0)
		return TOKEN_END;
	if (c == '"' || c == '\'')
		return scan_string(scanner, token);
	if (is_digit(c) || (c == '.' && is_digit(peek_at(scanner, 1))))
		return scan_number(scanner);
	if (is_name_byte(c))
		return scan_name(scanner);
	level = long_bracket_level(scanner);
	if (level >= 0)
		return skip_long_bracket(scanner, level) ? TOKEN_VALUE
		                                         : TOKEN_INVALID;
	return scan_operator(scanner);
}

/* line is where the token ends, which is what the VM counts by. */
static struct token next_token(struct scanner *scanner)
{
	struct token token = {.kind = TOKEN_INVALID};

	if (skip_blank(scanner)) {
		token.text = scanner->at;
		token.kind = scan(scanner, &token);
		if (token.kind != TOKEN_STRING)
			token.bytes = (size_t)(scanner->at - token.text);
	}
	token.line = scanner->line;
	return token;
}

/* --- names --------------------------------------------------------------- */

static bool reserve(void **items, size_t *capacity, size_t count,
                    size_t item_bytes)
{
	size_t wanted = *capacity ? *capacity : 64;
	void *moved;

	while (wanted < count)
		wanted *= 2;
	if (wanted == *capacity)
		return true;
	moved = realloc(*items, wanted * item_bytes);
	if (!moved)
		return false;
	*items = moved;
	*capacity = wanted;
	return true;
}

/* Copies the parts; false if memory ran out. */
static bool add_name(struct lua_definitions *definitions,
                     const struct token *parts, size_t part_count)
{
	size_t bytes = 1;
	char *name;

	for (size_t i = 0; i < part_count; i++)
		bytes += parts[i].bytes;
	if (definitions->names_bytes + bytes > UINT32_MAX ||
	    !reserve((void **)&definitions->names, &definitions->names_capacity,
	             definitions->names_bytes + bytes, 1))
		return false;
	name = definitions->names + definitions->names_bytes;
	for (size_t i = 0; i < part_count; i++) {
		memcpy(name, parts[i].text, parts[i].bytes);
		name += parts[i].bytes;
	}
	*name = '\0';
	definitions->names_bytes += bytes;
	return true;
}

/* Returns the definition's number from 1; 0 if memory ran out. */
static size_t add_definition(struct reader *reader, uint32_t line,
                             enum lua_definition_kind kind,
                             const struct token *parts, size_t part_count)
{
	struct lua_definitions *definitions = reader->definitions;
	size_t name = definitions->names_bytes;

	if (!reserve((void **)&definitions->items, &definitions->capacity,
	             definitions->count + 1, sizeof(*definitions->items)) ||
	    (part_count > 0 && !add_name(definitions, parts, part_count))) {
		reader->out_of_memory = true;
		return 0;
	}
	definitions->items[definitions->count++] = (struct lua_definition){
		.line = line, .name = (uint32_t)name, .kind = kind};
	return definitions->count;
}

/* A function begins in this line, of which no more can be told, nor of another
 * one that does. */
static void note_unknown(struct reader *reader, uint32_t line)
{
	struct lua_definition *items = reader->definitions->items;
	size_t i = reader->definitions->count;

	while (i > 0 && items[i - 1].line > line)
		i--;
	if (i > 0 && items[i - 1].line == line)
		items[i - 1].kind = LUA_DEFINITION_UNKNOWN;
	else if (i == reader->definitions->count)
		add_definition(reader, line, LUA_DEFINITION_UNKNOWN, NULL, 0);
}

/* A function begins in this line; without parts it has no name. Returns the
 * number of its definition, 0 if it has none. */
static size_t note_function(struct reader *reader, uint32_t line,
                            const struct token *parts, size_t part_count)
{
	const struct lua_definitions *definitions = reader->definitions;
	size_t count = definitions->count;

	if (count > 0 && definitions->items[count - 1].line >= line) {
		note_unknown(reader, line);
		return 0;
	}
	return add_definition(reader, line,
	                      part_count > 0 ? LUA_DEFINITION_NAMED
	                                     : LUA_DEFINITION_UNNAMED,
	                      parts, part_count);
}

/* The token so many places back; 1 is the last one. */
static const struct token *recent(const struct reader *reader, uint32_t back)
{
	static const struct token none = {.kind = TOKEN_END};

	if (back > reader->token_count || back > RECENT_TOKENS)
		return &none;
	return &reader->recent[(reader->token_count - back) % RECENT_TOKENS];
}

static bool is_recent(const struct reader *reader, uint32_t back, int kind,
                      uint32_t line)
{
	const struct token *token = recent(reader, back);

	return token->kind == kind && token->line == line;
}

static int innermost(const struct reader *reader)
{
	return reader->depth == 0 ? 'b' : reader->open[reader->depth - 1];
}

static bool starts_field(const struct token *before)
{
	return before->kind == '{' || before->kind == ',' ||
	       before->kind == ';';
}

/* `["key"] =`, of which `=` is the last token. */
static size_t find_string_key(const struct reader *reader, uint32_t line,
                              struct token *parts)
{
	if (innermost(reader) != '{' || !is_recent(reader, 2, ']', line) ||
	    !is_recent(reader, 3, TOKEN_STRING, line) ||
	    !is_recent(reader, 4, '[', line) ||
	    !starts_field(recent(reader, 5)))
		return 0;
	parts[0] = *recent(reader, 3);
	for (size_t i = 0; i < parts[0].bytes; i++)
		if ((unsigned char)parts[0].text[i] < 0x20)
			return 0;
	return parts[0].bytes > 0 ? 1 : 0;
}

/* `a.b.c =`, of which `=` is the last token: a variable or a table's key. In
 * `a, b = function` the function is a. */
static size_t find_target(const struct reader *reader, uint32_t line,
                          struct token *parts)
{
	const struct token *before;
	uint32_t first = 2;

	if (!is_recent(reader, first, TOKEN_NAME, line))
		return 0;
	while (is_recent(reader, first + 1, '.', line) &&
	       is_recent(reader, first + 2, TOKEN_NAME, line))
		first += 2;
	before = recent(reader, first + 1);
	if (first + 1 > RECENT_TOKENS)
		return 0;
	if (innermost(reader) == '{') {
		if (first != 2 || !starts_field(before))
			return 0;
	} else if (innermost(reader) != 'b' || before->kind == ',' ||
	           before->kind == '.' || before->kind == ':' ||
	           before->kind == TOKEN_FOR) {
		return 0;
	}
	for (uint32_t i = 0; i < first - 1; i++)
		parts[i] = *recent(reader, first - i);
	return first - 1;
}

/* `function a.b:c (`: reads on with a scanner of its own. Returns the number
 * of parts, and the line of the parenthesis. */
static size_t read_name(struct scanner scanner, uint32_t line,
                        struct token *parts, uint32_t *parenthesis_line)
{
	struct token token = next_token(&scanner);
	size_t count = 0;

	while (token.kind == TOKEN_NAME || token.kind == '.' ||
	       token.kind == ':') {
		if (count < RECENT_TOKENS)
			parts[count] = token;
		count++;
		token = next_token(&scanner);
	}
	*parenthesis_line = token.line;
	if (token.kind != '(' || token.line != line || count > RECENT_TOKENS)
		return 0;
	return count;
}

/* Returns the number of the function's definition, 0 if it has none. */
static size_t read_function(struct reader *reader, const struct token *keyword)
{
	struct token parts[RECENT_TOKENS];
	uint32_t line = keyword->line, parenthesis_line;
	size_t count =
		read_name(reader->scanner, line, parts, &parenthesis_line);

	if (parenthesis_line != line) {
		note_unknown(reader, line);
		note_unknown(reader, parenthesis_line);
		return 0;
	}
	if (count == 0 && is_recent(reader, 1, '=', line)) {
		count = find_string_key(reader, line, parts);
		if (count == 0)
			count = find_target(reader, line, parts);
	}
	return note_function(reader, line, parts, count);
}

/* `name ->` or `|names| ->`: it begins in the line of the first token. */
static void read_short_function(struct reader *reader,
                                const struct token *arrow)
{
	uint32_t back = 1;

	if (recent(reader, 1)->kind == '|')
		for (back = 2;
		     back < RECENT_TOKENS && recent(reader, back)->kind != '|';)
			back++;
	for (; back > 0; back--)
		note_unknown(reader, recent(reader, back)->line);
	note_unknown(reader, arrow->line);
}

/* --- text ---------------------------------------------------------------- */

/* definition: number of the one whose body is opened, or 0. */
static bool open_bracket(struct reader *reader, unsigned char bracket,
                         size_t definition)
{
	if (reader->depth == DEPTH_MAX)
		return false;
	reader->opened_by[reader->depth] = definition;
	reader->open[reader->depth++] = bracket;
	return true;
}

static bool close_bracket(struct reader *reader, unsigned char bracket,
                          uint32_t line)
{
	size_t definition;

	if (reader->depth == 0 || reader->open[reader->depth - 1] != bracket)
		return false;
	definition = reader->opened_by[--reader->depth];
	if (definition > 0)
		reader->definitions->items[definition - 1].last_line = line;
	return true;
}

/* False if that cannot be Lua. */
static bool read_token(struct reader *reader, const struct token *token)
{
	switch (token->kind) {
	case TOKEN_INVALID:
		return false;
	case TOKEN_FUNCTION:
		return open_bracket(reader, 'b',
		                    read_function(reader, token)) &&
		       !reader->out_of_memory;
	case TOKEN_ARROW:
		read_short_function(reader, token);
		return !reader->out_of_memory;
	case TOKEN_OPEN:
		return open_bracket(reader, 'b', 0);
	case TOKEN_CLOSE:
		return close_bracket(reader, 'b', token->line);
	case '{':
	case '(':
	case '[':
		return open_bracket(reader, (unsigned char)token->kind, 0);
	case '}':
		return close_bracket(reader, '{', token->line);
	case ')':
		return close_bracket(reader, '(', token->line);
	case ']':
		return close_bracket(reader, '[', token->line);
	default:
		return true;
	}
}

static bool read_text(struct reader *reader)
{
	struct token token = next_token(&reader->scanner);

	while (token.kind != TOKEN_END) {
		if (!read_token(reader, &token))
			return false;
		reader->recent[reader->token_count++ % RECENT_TOKENS] = token;
		token = next_token(&reader->scanner);
	}
	return reader->depth == 0;
}

static void skip_head(struct scanner *scanner)
{
	static const char byte_order_mark[] = "\xef\xbb\xbf";

	if (scanner->end - scanner->at >= 3 &&
	    !memcmp(scanner->at, byte_order_mark, 3))
		scanner->at += 3;
	if (peek_at(scanner, 0) == '#')
		skip_line(scanner);
}

int lua_definitions_read(struct lua_definitions *definitions, const char *text,
                         size_t text_bytes)
{
	struct reader reader = {
		.scanner = {text, text + text_bytes, 1},
		.definitions = definitions,
	};

	*definitions = (struct lua_definitions){0};
	skip_head(&reader.scanner);
	if (read_text(&reader))
		return 0;
	lua_definitions_free(definitions);
	return reader.out_of_memory ? -1 : 0;
}

void lua_definitions_free(struct lua_definitions *definitions)
{
	free(definitions->items);
	free(definitions->names);
	*definitions = (struct lua_definitions){0};
}

enum lua_definition_kind
lua_definitions_find(const struct lua_definitions *definitions, uint32_t line,
                     uint32_t last_line, const char **name)
{
	size_t low = 0, high = definitions->count;
	const struct lua_definition *item;

	*name = NULL;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (definitions->items[middle].line < line)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == definitions->count)
		return LUA_DEFINITION_MISSING;
	item = &definitions->items[low];
	if (item->line != line)
		return LUA_DEFINITION_MISSING;
	if (item->kind != LUA_DEFINITION_UNKNOWN &&
	    item->last_line != last_line)
		return LUA_DEFINITION_MISSING;
	if (item->kind == LUA_DEFINITION_NAMED)
		*name = definitions->names + item->name;
	return item->kind;
}
