#!/bin/sh
# SPDX-License-Identifier: MIT
# dnsdist: a name server whose rules are Lua, asked over the loopback interface and
# ended by SIGTERM.
program=dnsdist
. "${top_srcdir:?run by make check}/tests/real/common.sh"
port=53$(($$ % 90 + 10))

write_dnsdist_files $port
"$sysprof" record -i 1 -o dump.bin -- dnsdist --supervised --disable-syslog \
	-C dnsdist.conf >log 2>&1 &
recorder=$!
for _ in 1 2 3 4 5 6 7 8 9 10; do
	[ "$("$LUAJIT" ask.lua $port 1 60 2>/dev/null)" = "1 1" ] && break
	sleep 0.5
done
answers=$("$LUAJIT" ask.lua $port 500 60)
answers=${answers#* }
kill $recorder
wait $recorder || true
[ "$answers" -ge 400 ] || { cat log; fail "only $answers answers"; }
check_whole dump.bin
at_least hot_rule \
	"$(count dump.bin ';start_thread;.*;processQuery;.*;lua_pcall;.* rules.lua:8;hot_rule rules.lua:1')" 100
