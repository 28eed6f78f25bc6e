#!/bin/sh
# SPDX-License-Identifier: MIT
# luajit-sysprof record -p on real programs, idle and at work: an editor, a name
# server with many threads, and the workers of a web server under load. They answer
# before, meanwhile and afterwards.
program=luajit
. "${top_srcdir:?run by make check}/tests/real/common.sh"
pids=
shown=

clean_up()
{
	# shellcheck disable=SC2086
	[ -z "$pids" ] || kill $pids 2>/dev/null || :
}

# attach OPTION... PID: two in a row, so that the libraries are there already.
attach()
{
	"$sysprof" record -i 1 -d 0.2 -o first.bin -p "$1" >log 2>&1 ||
		{ cat log; fail "attaching to $program"; }
	"$sysprof" record -i 1 -d "$2" -o dump.bin -p "$1" >log 2>&1 ||
		{ cat log; fail "attaching to $program once more"; }
	check_whole first.bin
	check_whole dump.bin
	shown="$shown $program"
}

case $("$LUAJIT" -e 'local s = os.clock() repeat until os.clock() - s > 3' &
	sleep 0.5
	"$sysprof" record -d 0.1 -o any.bin -p $! 2>&1) in
*ptrace_scope* | *CAP_SYS_PTRACE* | *"not permitted"*)
	skip "ptrace is not allowed here" ;;
esac

# --- neovim -----------------------------------------------------------------------------

if command -v nvim >/dev/null; then
	program=nvim
	cat >edit.lua <<'LUA'
local function hot_lua(seconds)
	local s, from = 0, os.clock()
	repeat
		for i = 1, 10000 do s = s + i % 7 end
	until os.clock() - from > seconds
	return s
end
-- The loop of events runs first, so that it is met there.
vim.defer_fn(function()
	hot_lua(6)
	io.open("result", "w"):write("done\n")
	vim.cmd("qa!")
end, 2500)
LUA
	HOME=$work nvim --headless -u NONE -c "luafile edit.lua" >nvim.log 2>&1 &
	editor=$!
	pids="$pids $editor"
	sleep 1
	attach $editor 4
	wait $editor || { cat nvim.log; fail "nvim ended with $?"; }
	[ "$(cat result)" = "done" ] || fail "nvim has not done its work"
	at_least "hot_lua in nvim" \
		"$(count dump.bin '^_start;.*;main;.*;hot_lua edit.lua:1')" 5
fi

# --- dnsdist ----------------------------------------------------------------------------

if command -v dnsdist >/dev/null; then
	program=dnsdist
	port=53$(($$ % 90 + 10))
	write_dnsdist_files $port
	dnsdist --supervised --disable-syslog -C dnsdist.conf >dnsdist.log 2>&1 &
	server=$!
	pids="$pids $server"
	sleep 2
	"$LUAJIT" ask.lua $port 1000000 7 >answers &
	asker=$!
	sleep 0.5
	attach $server 4
	wait $asker
	read -r asked answered <answers
	[ "$answered" -ge $((asked - asked / 20)) ] ||
		fail "$answered answers to $asked questions"
	kill $server
	status=0
	wait $server || status=$?
	[ $status = 143 ] || fail "dnsdist ended with $status"
	at_least "hot_rule in dnsdist" \
		"$(count dump.bin ';start_thread;.*;processQuery;.*;hot_rule ')" 5
fi

# --- nginx ------------------------------------------------------------------------------

# attach_to_master MASTER WORKER: the first one only waits for the other one.
attach_to_master()
{
	"$sysprof" record -i 1 -d 0.5 -o master.bin -p "$1" >log 2>&1 ||
		{ cat log; fail "attaching to the master"; }
	check_whole master.bin
	grep -q "left alone: -p $2 " log || { cat log; fail "no word of $2"; }
	"$sysprof" record -i 1 -d 2 -o both.bin -p "$1,$2" >log 2>&1 ||
		{ cat log; fail "attaching to both"; }
	check_whole both.bin."$1"
	check_whole both.bin."$2"
	at_least "hot_page in the worker" \
		"$(count both.bin."$2" ';hot_page ')" 5
}

# attach_with_all PID: the worker has no right to write here.
attach_with_all()
{
	"$sysprof" record -i 1 -d 4 --rotate=1s --perf -o rotated.bin -p "$1" \
		>log 2>&1 || { cat log; fail "attaching with all options"; }
	set -- rotated.bin."$1".*
	[ $# -ge 2 ] || fail "$# dumps"
	for dump; do
		check_whole "$dump"
	done
	at_least "hot_page in the last dumps" \
		"$(for dump; do count "$dump" ';hot_page '; done |
			awk '{ sum += $1 } END { print sum }')" 5
	# The map file is the worker's user's, perf's options say -f then.
	if ! grep -q 'the probe cannot be set' log &&
		"$PERF" script -f -i perf.data -F comm,event,ip,sym >stacks 2>log; then
		at_least "hot_page in perf" "$(grep -c ' hot_page ' stacks)" 5
	fi
}

# What an attach might leave, as lines.
weigh()
{
	grep -E '^Threads' /proc/"$1"/status
	echo "libraries $(grep -c luajit-sysprof /proc/"$1"/maps)"
	find /proc/"$1"/fd -lname '*sysprof*' | wc -l
}

# attach_often PID: some recorders are killed.
attach_often()
{
	weigh "$1" >before
	memory=$(awk '/^RssAnon/ { print $2 }' /proc/"$1"/status)
	for i in $(seq 40); do
		"$sysprof" record -i 1 -d 0.1 -o often.bin -p "$1" >log 2>&1 ||
			{ cat log; fail "attaching for the ${i}th time"; }
		check_whole often.bin
	done
	"$sysprof" record -i 1 -o killed.bin -p "$1" >log 2>&1 &
	recorder=$!
	sleep 2
	kill -9 $recorder
	wait $recorder 2>/dev/null || true
	sleep 2
	check_whole killed.bin
	weigh "$1" >after
	cmp -s before after || { diff before after || true; fail "it has grown"; }
	memory=$(($(awk '/^RssAnon/ { print $2 }' /proc/"$1"/status) - memory))
	[ $memory -lt 4096 ] || fail "$memory KiB more after 40 times"
}

if command -v nginx >/dev/null && command -v wrk >/dev/null && unpack_nginx_lua; then
	program=nginx
	port=84$(($$ % 90 + 10))
	root=$work/root
	modules=$root/usr/lib/nginx/modules
	# The workers are another user's, who may not reach a build directory.
	user=
	setpriv --reuid=65534 --regid=65534 --clear-groups \
		test -r "$top_builddir/preload/.libs/libluajit-sysprof-agent.so" ||
		user="user root;"
	cat >nginx.conf <<CONF
$user
load_module $modules/ndk_http_module.so;
load_module $modules/ngx_http_lua_module.so;
worker_processes 1;
pid $work/pid;
error_log $work/error.log;
events { worker_connections 64; }
http {
	access_log off;
	lua_package_path "$root/usr/share/lua/5.1/?.lua;;";
	server {
		listen 127.0.0.1:$port;
		location / {
			content_by_lua_block {
				local function hot_page(n)
					local s = 0
					for i = 1, n do s = s + i % 7 end
					return s
				end
				ngx.say(hot_page(100000))
			}
		}
	}
}
CONF
	chmod -R a+rX .
	LD_LIBRARY_PATH=$(dirname "$(find "$root" -name 'libluajit-5.1.so.2' |
		head -n 1)") nginx -e "$work/error.log" -c "$work/nginx.conf" \
		>log 2>&1 || { cat log error.log; fail "nginx ended with $?"; }
	pids="$pids $(cat pid)"
	sleep 1
	worker=$(cat /proc/"$(cat pid)"/task/"$(cat pid)"/children)
	worker=${worker%% *}
	# Idle first, in epoll_wait(2).
	attach "$worker" 0.2
	wrk -t1 -c8 -d300s "http://127.0.0.1:$port/" >wrk.log &
	load=$!
	sleep 0.5
	attach "$worker" 4
	attach_to_master "$(cat pid)" "$worker"
	attach_with_all "$worker"
	attach_often "$worker"
	kill -INT $load
	wait $load || fail "wrk ended with $?"
	grep -E 'Non-2xx|Socket errors' wrk.log && fail "bad answers"
	grep -E 'alert|signal|core dumped' error.log && fail "the worker suffered"
	[ -d /proc/"$worker" ] || fail "the worker has ended"
	kill "$(cat pid)"
	at_least "hot_page in nginx" "$(count dump.bin \
		'^_start;.*;main;.*;ngx_http_lua_run_thread;.*;hot_page ')" 5
fi

[ -n "$shown" ] || skip "neither nvim, dnsdist nor nginx is installed"
echo "attached to:$shown"
