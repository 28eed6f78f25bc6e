#!/bin/sh
# SPDX-License-Identifier: MIT
# What the unwind tables of real programs cost: 15 ms of CPU time and 2 MiB for
# luajit, 100 ms and 8 MiB for nginx with modules and the 30 libraries they need.
program=nginx
. "${top_srcdir:?run by make check}/tests/real/common.sh"
preload=$top_builddir/tests/real/.libs/tables_at_exit.so

# check NAME OBJECTS MS KIB LOG: no more than that, for at least so many objects.
check()
{
	line=$(grep '^tables of' "$5" | tail -n 1) ||
		{ cat "$5"; fail "$1: no tables"; }
	echo "$1: $line"
	echo "$line" | awk -v objects="$2" -v ms="$3" -v kib="$4" \
		'{ exit !($3 >= objects && $5 <= ms && $7 <= kib) }' ||
		fail "$1: wanted $2 objects in $3 ms and $4 KiB"
}

LD_PRELOAD=$preload "$LUAJIT" -e 'require "ffi"' 2>luajit.log
check luajit 6 15 2048 luajit.log

# Modules that need many libraries, and those of them that are not installed.
packages=$(apt-get install -s --no-install-recommends libnginx-mod-http-geoip \
	libnginx-mod-http-image-filter libnginx-mod-http-xslt-filter \
	libnginx-mod-mail libnginx-mod-stream 2>log | awk '/^Inst/ { print $2 }')
# shellcheck disable=SC2086
unpack_packages $packages ||
	skip "the modules cannot be downloaded: $(tail -n 1 log)"
for module in root/usr/lib/nginx/modules/*.so /usr/lib/nginx/modules/*.so; do
	[ ! -e "$module" ] || echo "load_module $(realpath "$module");"
done >nginx.conf
cat >>nginx.conf <<CONF
pid $work/pid;
error_log $work/error.log;
events { worker_connections 64; }
http { server { listen 127.0.0.1:8399; } }
CONF
libraries=$(find "$work/root/usr/lib" -name 'lib*.so.*' -printf '%h\n' | sort -u |
	tr '\n' ':')
LD_LIBRARY_PATH=$libraries LD_PRELOAD=$preload nginx -t -e "$work/error.log" \
	-c "$work/nginx.conf" 2>nginx.log || { cat nginx.log; fail nginx; }
check nginx 35 100 8192 nginx.log
