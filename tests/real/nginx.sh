#!/bin/sh
# SPDX-License-Identifier: MIT
# nginx with Lua under load: a daemon whose workers are forked, with OpenResty's
# LuaJIT. That one cannot be installed beside LuaJIT's development files, so the
# packages are unpacked here if they are not installed.
program=nginx
. "${top_srcdir:?run by make check}/tests/real/common.sh"
need wrk # makes the load
clean_up()
{
	[ ! -e pid ] || kill "$(cat pid)" 2>/dev/null || :
}

port=83$(($$ % 90 + 10))

unpack_nginx_lua ||
	skip "libnginx-mod-http-lua cannot be downloaded: $(tail -n 1 log)"
root=$work/root
modules=$root/usr/lib/nginx/modules

cat >nginx.conf <<CONF
load_module $modules/ndk_http_module.so;
load_module $modules/ngx_http_lua_module.so;
worker_processes 2;
pid $work/pid;
error_log $work/error.log;
user root;
events { worker_connections 64; }
http {
	access_log off;
	lua_package_path "$root/usr/share/lua/5.1/?.lua;;";
	server {
		listen 127.0.0.1:$port;
		location / { content_by_lua_file $work/content.lua; }
	}
}
CONF
cat >content.lua <<'LUA'
local function hot_page(n)
	local s = 0
	for i = 1, n do s = s + i % 7 end
	return s
end
ngx.say(hot_page(100000))
LUA
LD_LIBRARY_PATH=$(dirname "$(find "$root" -name 'libluajit-5.1.so.2' | head -n 1)") \
	"$sysprof" record -i 1 -o dump.bin -- \
	nginx -e "$work/error.log" -c "$work/nginx.conf" >log 2>&1 ||
	{ cat log error.log; fail "nginx ended with $?"; }
sleep 1
wrk -t1 -c8 -d4s "http://127.0.0.1:$port/" >wrk.log || fail "wrk ended with $?"
requests=$(awk '/requests in/ { print $1 }' wrk.log)
kill "$(cat pid)"
for _ in 1 2 3 4 5 6 7 8 9 10; do
	[ -e pid ] || break
	sleep 0.5
done
sleep 0.5
grep -q 'Non-2xx' wrk.log && fail "bad answers: $(cat wrk.log)"
[ "$requests" -ge 50 ] || fail "only $requests requests were served"
grep -E 'alert|signal 11|core dumped' error.log && fail "a worker died"

workers=0
for dump in dump.bin.*; do
	samples=$(count "$dump" \
		'^_start;.*;main;.*;ngx_http_lua_run_thread;main .*content.lua:0;hot_page .*content.lua:1')
	[ "$samples" -ge 50 ] || continue
	check_whole "$dump"
	workers=$((workers + 1))
done
[ $workers -ge 1 ] || fail "no worker has samples of hot_page"
