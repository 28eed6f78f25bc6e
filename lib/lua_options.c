// SPDX-License-Identifier: MIT
/* Options of the Lua API; see lua_options.h. On the thread that calls Lua. */
#include "lua_options.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <lauxlib.h>

#include "lmisclib.h"

#define VALUE_BYTES       96  /* of a value in a message */
#define VALUE_SHOWN_BYTES 40  /* of a string in a message */
#define NAMES_BYTES       160 /* of all names in a message */

int lua_options_push_failure(lua_State *L, const struct error *error)
{
	lua_pushnil(L);
	lua_pushstring(L, error->text);
	lua_pushinteger(L, error->sys_errno);
	return 3;
}

/* ---- values in messages --------------------------------------------------- */

static void describe_string(char *text, const char *bytes, size_t length)
{
	size_t shown = length < VALUE_SHOWN_BYTES ? length : VALUE_SHOWN_BYTES;
	char *to = text;

	*to++ = '"';
	for (size_t i = 0; i < shown; i++) {
		unsigned char byte = (unsigned char)bytes[i];

		*to++ = isprint(byte) ? (char)byte : '?';
	}
	strcpy(to, shown < length ? "\"..." : "\"");
}

static void describe_number(char *text, lua_Number number)
{
	if (isnan(number))
		strcpy(text, "nan");
	else
		snprintf(text, VALUE_BYTES, "%.14g", number);
}

/* What the caller gave, for a message: "fast" in quotes, 0, true, a table. */
static void describe_value(lua_State *L, int index, char *text)
{
	size_t length;
	const char *bytes;

	switch (lua_type(L, index)) {
	case LUA_TSTRING:
		bytes = lua_tolstring(L, index, &length);
		describe_string(text, bytes, length);
		break;
	case LUA_TNUMBER:
		describe_number(text, lua_tonumber(L, index));
		break;
	case LUA_TBOOLEAN:
		strcpy(text, lua_toboolean(L, index) ? "true" : "false");
		break;
	default:
		snprintf(text, VALUE_BYTES, "a %s", luaL_typename(L, index));
	}
}

int lua_options_refuse(lua_State *L, struct error *error, const char *accepted)
{
	char value[VALUE_BYTES];

	describe_value(L, -1, value);
	return error_set(error, PROFILE_ERRUSE, EINVAL, "%s, got %s", accepted,
	                 value);
}

static bool is_name(const char *const *names, const char *name)
{
	for (; *names; names++)
		if (strcmp(name, *names) == 0)
			return true;
	return false;
}

/* "mode, interval, path" */
static void join_names(const char *const *names, char *text)
{
	size_t used = 0;

	text[0] = '\0';
	for (; *names && used < NAMES_BYTES; names++)
		used += (size_t)snprintf(text + used, NAMES_BYTES - used,
		                         "%s%s", used ? ", " : "", *names);
}

int lua_options_check_names(lua_State *L, int table, const char *const *names,
                            struct error *error)
{
	char name[VALUE_BYTES], known[NAMES_BYTES];

	lua_pushnil(L);
	while (lua_next(L, table) != 0) {
		lua_pop(L, 1);
		if (lua_type(L, -1) == LUA_TSTRING &&
		    is_name(names, lua_tostring(L, -1)))
			continue;
		describe_value(L, -1, name);
		join_names(names, known);
		return error_set(error, PROFILE_ERRUSE, EINVAL,
		                 "unknown option %s; the options are %s", name,
		                 known);
	}
	return 0;
}

void lua_options_push(lua_State *L, int table, const char *name)
{
	lua_pushstring(L, name);
	lua_rawget(L, table);
}

int lua_options_read_path(lua_State *L, const char *default_path,
                          const char **path, struct error *error)
{
	size_t length;

	*path = default_path;
	if (lua_isnil(L, -1))
		return 0;
	if (lua_type(L, -1) != LUA_TSTRING)
		return lua_options_refuse(L, error, "path must be a string");
	*path = lua_tolstring(L, -1, &length);
	if (length == 0 || strlen(*path) != length)
		return lua_options_refuse(L, error,
		                          "path must be the name of a file "
		                          "without NUL bytes");
	return 0;
}

int lua_options_read_flag(lua_State *L, int table, const char *name, bool *flag,
                          struct error *error)
{
	char accepted[VALUE_BYTES];

	lua_options_push(L, table, name);
	*flag = lua_toboolean(L, -1);
	if (lua_isnil(L, -1) || lua_isboolean(L, -1))
		return 0;
	snprintf(accepted, sizeof(accepted), "%s must be true or false", name);
	return lua_options_refuse(L, error, accepted);
}
