#!/bin/sh
# SPDX-License-Identifier: MIT
# Options of luajit-parse-sysprof that choose samples, frames and dumps, on the
# small dump of our encoder, whose stacks are known.
. "${top_srcdir:?run by make check}/tests/common.sh"
command=$parser
. "$top_srcdir/tests/commands.sh"
"$top_builddir/tests/write_small_dump" small >small.bin
"$top_builddir/tests/write_small_dump" hostile >hostile.bin
"$top_builddir/tests/write_small_dump" labelled >labelled.bin

# prints ARGUMENT...: what is printed must be what standard input has.
prints()
{
	cat >expected
	expect 0 "$@"
	diff expected out >difference || fail "$*: $(cat difference)"
}

# --- which samples ------------------------------------------------------------

prints --state=gc,FFUNC small.bin <<'END'
main;lua_pcall;main app.lua:0;fib app.lua:3;string.format 1
main;lua_pcall;main app.lua:0;lj_gc_step 1
END
prints --from=0.025 --to=0.045 small.bin <<'END'
main;lua_pcall;main app.lua:0;fib app.lua:3 1
main;lua_pcall;main app.lua:0;l_burn;[truncated] 1
END
prints --include='^(string|l_burn)' small.bin <<'END'
main;lua_pcall;main app.lua:0;fib app.lua:3;string.format 1
main;lua_pcall;main app.lua:0;l_burn;[truncated] 1
END
prints --exclude='fib|rad|\[' small.bin <<'END'
[no stack] 1
main;lua_pcall;main app.lua:0;lj_gc_step 1
END
prints --label='^/' labelled.bin <<'END'
main app.lua:0 3
END
prints --label='^$' --group=coroutine labelled.bin <<'END'
[coroutine 0x7f0000000100];main app.lua:0 2
END
expect 0 --label=never labelled.bin
[ ! -s out ] || fail "a label that no sample has"
says err "none of 7 samples is as the options ask"
for accepted in --thread=4321 --thread=1,4321 --vm=1 \
	--coroutine=0x7f0000000100 --from=0 --to=3600; do
	expect 0 $accepted small.bin
	[ "$(awk '{ n += $NF } END { print n }' out)" = 7 ] || fail "$accepted"
done
for refused in --thread=1 --vm=2 --coroutine=5 --from=3600 --to=0; do
	expect 0 $refused small.bin
	[ ! -s out ] || fail "$refused prints something"
	says err "none of 7 samples is as the options ask"
done

# --- which frames -------------------------------------------------------------

prints --guest-only small.bin <<'END'
[no stack] 1
main app.lua:0 1
main app.lua:0;fib app.lua:3 2
main app.lua:0;fib app.lua:3;string.format 1
main app.lua:0;l_burn;[truncated] 1
main app.lua:0;rad builtin 1
END
prints --host-only small.bin <<'END'
[no stack] 1
main;lua_pcall 4
main;lua_pcall;l_burn;[truncated] 1
main;lua_pcall;lj_gc_step 1
END
prints --root=fib small.bin <<'END'
fib app.lua:3 2
fib app.lua:3;string.format 1
END
prints --root='fib app.lua:3' --lines=leaf small.bin <<'END'
fib app.lua:3;string.format 1
fib app.lua:3 line 4 1
fib app.lua:3 line 5 1
END
prints --root=fib --lines=all --state=FFUNC small.bin <<'END'
fib app.lua:3 line 5;string.format 1
END
prints --group=process,state --root=fib small.bin <<'END'
[process 4321];[state FFUNC];fib app.lua:3;string.format 1
[process 4321];[state LFUNC];fib app.lua:3 1
[process 4321];[state TRACE];fib app.lua:3 1
END
prints --group=thread,vm,coroutine --include=rad small.bin <<'END'
[thread 4321];[VM 1];[coroutine 0x7f0000000100];main;lua_pcall;main app.lua:0;rad builtin 1
END
prints --group=coroutine,label --label=. labelled.bin <<'END'
[coroutine 0x7f0000000100];[label /item];main app.lua:0 1
[coroutine 0x7f0000000100];[label /search];main app.lua:0 2
[coroutine 0x7f0000000200];[label a\x3bb \x22c\x22];main app.lua:0 2
END
expect 0 --format=json labelled.bin
says out '"coroutine":"0x7f0000000200","label":"a;b \u0022c\u0022"'
[ "$(grep -c '"label"' out)" = 3 ] || fail "labels of other samples, too"
# fib runs interpreted and compiled: two boxes of a flame graph.
prints --min-percent=20 small.bin <<'END'
[no stack] 1
main;lua_pcall;main app.lua:0;[less than 20%] 4
main;lua_pcall;main app.lua:0;fib app.lua:3 1
main;lua_pcall;main app.lua:0;fib app.lua:3;[less than 20%] 1
END
expect 0 --format=top --min-percent=40 --rows=3 small.bin
sed '/^$/q' out | grep -c % >count || true
[ "$(cat count)" = 4 ] || fail "not a heading and three rows"
grep -q 'string.format' out && fail "a row of less than 40 %"

# --- several dumps ------------------------------------------------------------

expect 0 small.bin small.bin
[ "$(awk '{ n += $NF } END { print n }' out)" = 14 ] || fail "not added up"
says err "lost 10 of 24 samples:"
expect 0 --group=process small.bin hostile.bin
says out "[process 4321];main;"
prints --diff small.bin hostile.bin --root=lua_pcall --host-only <<'END'
lua_pcall 4 0
lua_pcall;l_burn;[truncated] 1 0
lua_pcall;lj_gc_step 1 0
lua_pcall;std::map<a, b>::at\x28int\x29\x0a\x3b\x22x\x22 99 0 1
END
expect 0 --diff --format=top small.bin hostile.bin
says out "7 samples before, 1 after"
says out "  85.7%  100.0%   +14.3  main"
says out "  28.6%    0.0%   -28.6    42.9%    0.0%   -42.9  fib app.lua:3"
expect 0 --diff --format=json small.bin hostile.bin
says out '"side":"old"'
says out '"side":"new"'
for format in html svg; do
	expect 0 --diff --format=$format small.bin hostile.bin
	says out '"new_total":[1'
done

# --- a dump that is being written ---------------------------------------------

size=$(wc -c <small.bin)
head -c $((size / 2)) small.bin >growing.bin
timeout 60 "$parser" --follow=0.1 growing.bin >out 2>err &
follower=$!
sleep 0.5
tail -c +$((size / 2 + 1)) small.bin >>growing.bin
wait $follower || fail "--follow fails"
[ "$(grep -c 'samples, .* lost$' out)" -ge 2 ] || fail "not shown again"
tail -n 30 out >last
says last "growing.bin: 7 samples, 5 lost"
says last "fib app.lua:3"
mkfifo pipe
cat small.bin >pipe &
timeout 60 "$parser" --follow=0.1 pipe >out 2>err || fail "--follow of a pipe"
says out "pipe: 7 samples, 5 lost"

# --- wrong usage --------------------------------------------------------------

# refuse TEXT ARGUMENT...
refuse()
{
	text=$1
	shift
	expect 2 "$@"
	says err "$text"
	[ ! -s out ] || fail "prints something: $*"
}

refuse "got 'FOO', expected names out of INTERP, LFUNC" --state=GC,FOO small.bin
refuse "--thread: got 'abc', expected numbers" --thread=abc small.bin
refuse "--vm: got '-1'" --vm=-1 small.bin
refuse "--from: got 'x', expected a number" --from=x small.bin
refuse "--include: got '('" --include='(' small.bin
refuse "--label: got '['" --label='[' small.bin
refuse "--label: given twice" --label=a --label=b small.bin
refuse "given twice" --include=a --include=b small.bin
refuse "--lines: got 'some', expected leaf or all" --lines=some small.bin
refuse "give one of them" --guest-only --host-only small.bin
refuse "--group: got 'day', expected process" --group=day small.bin
refuse "--min-percent: got '101'" --min-percent=101 small.bin
refuse "--diff: expected two FILEs" --diff small.bin
refuse "--diff: expected --format=folded" --diff --format=firefox small.bin \
	hostile.bin
refuse "--follow: expected one FILE" --follow small.bin hostile.bin
refuse "--follow shows the top format alone" --follow --format=svg small.bin
refuse "only once" - -
refuse "the compat format takes no options" --compat --state=GC small.bin
refuse "the compat format takes no options" --compat --label=x small.bin

# --- dumps that do not tell ---------------------------------------------------

# A sample of the format without the extension has no time and no thread.
printf 'ljs\003\0\0\0\200ljp\002\0\0\0\004\005\0\200' >old.bin
expect 0 --thread=1 old.bin
says err "1 samples left out: the format does not tell their time, thread"
prints --group=process old.bin <<'END'
[process of old.bin];0x5 1
END

expect 0 --help
[ "$(wc -l <out)" -le 40 ] || fail "the help does not fit a screen"
[ "$(awk '{ print length }' out | sort -n | tail -n 1)" -le 79 ] ||
	fail "lines of the help are too long"
