#!/bin/bash
# SPDX-License-Identifier: MIT
# Other builds of LuaJIT than this system's: those of other Debian releases with
# their own libc, other packages of this release, one that is linked statically.
# Each has to be accepted, to have its stacks right at every instruction, the shares
# of programs that know them, no call that did not happen in twenty programs, names
# of functions, and lines of allocations.
#
# Packages come from Debian's mirror, by apt and into this test's directory
# only. What cannot be had is skipped by name. `make check` looks at what needs no
# package, in short; `make check-long` at all.
#
# By hand: OTHER_BUILDS has names of builds, such as "trixie tarantool".
# OTHER_LUAJITS has paths of luajit programs, which are checked instead, e.g. of
# a new revision. OTHER_PACKAGES is a directory that keeps the packages.
set -u

: "${top_srcdir:?run by make check}" "${top_builddir:?}" "${CC:=cc}"
if [ "${SANITIZERS:-no}" = yes ]; then
	echo "SKIP: the LuaJIT of other systems is not built with sanitizers"
	exit 77
fi
if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
	echo "SKIP: no apt-get and dpkg-deb"
	exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

builds="refused library static luajit2 bullseye trixie sid tarantool"
limit=60000
thorough=yes
if [ "${LONG:-no}" = yes ]; then
	limit=50000
elif [ -n "${OTHER_LUAJITS-}" ]; then
	builds=given
elif [ -n "${OTHER_BUILDS-}" ]; then
	builds=$OTHER_BUILDS
else
	builds="refused library static"
	limit=5000
	thorough=no
fi
packages=${OTHER_PACKAGES:-$work/packages}
case $packages in
/*) ;;
*)
	echo "FAIL: OTHER_PACKAGES has to be an absolute path: $packages"
	exit 1
	;;
esac
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
multiarch=x86_64-linux-gnu
failed=
skipped=
passed=

# --- packages --------------------------------------------------------------------

# apt with nothing of this system's but the keys: apt_of SUITE COMMAND...
apt_of()
{
	local suite=$1 dir=$work/apt/$1
	shift
	if [ ! -d "$dir" ]; then
		mkdir -p "$dir/state/lists/partial" \
			"$dir/cache/archives/partial" "$dir/empty"
		: >"$dir/status"
		echo "deb [signed-by=$keyring] $mirror $suite main" \
			>"$dir/sources.list"
		apt_of "$suite" update >"$dir/log" 2>&1 || return 1
	fi
	apt-get -q -o Dir::Etc::sourcelist="$dir/sources.list" \
		-o Dir::Etc::sourceparts="$dir/empty" \
		-o Dir::Etc::preferencesparts="$dir/empty" \
		-o Dir::State="$dir/state" \
		-o Dir::State::status="$dir/status" \
		-o Dir::Cache="$dir/cache" -o APT::Sandbox::User=root \
		-o Acquire::Retries=2 "$@"
}

# Downloads those packages of a suite that are not there yet.
download()
{
	local suite=$1 package missing=()
	shift
	mkdir -p "$packages/$suite"
	cd "$packages/$suite" || return 1
	for package in "$@"; do
		compgen -G "${package}_*.deb" >/dev/null ||
			missing+=("$package")
	done
	[ ${#missing[@]} -eq 0 ] ||
		apt_of "$suite" download "${missing[@]}" \
			>"$work/download.log" 2>&1 || {
		tail -n 2 "$work/apt/$suite/log" "$work/download.log"
		return 1
	}
}

# Unpacks packages of a suite: fetch SUITE DIRECTORY PACKAGE...
fetch()
{
	local suite=$1 root=$2 package
	shift 2
	download "$suite" "$@" || {
		cd "$work" || return 1
		return 1
	}
	mkdir -p "$root"
	for package in "$@"; do
		dpkg-deb -x "${package}"_*.deb "$root" || return 1
	done
	# Absolute links would lead out of the tree.
	find "$root" -type l -lname '/*' | while read -r link; do
		ln -sfn "$root$(readlink "$link")" "$link"
	done
	cd "$work" || return 1
}

# Runs programs of a tree with its own libc: a script that stands for them.
# make_runner SCRIPT ROOT PROGRAM [LIBRARY-DIRECTORY]
make_runner()
{
	local loader
	loader=$(find "$2" -name ld-linux-x86-64.so.2 | head -n 1)
	cat >"$1" <<-EOF
		#!/bin/sh
		exec $loader --library-path ${4:+$4:}$2/lib/$multiarch:$2/usr/lib/$multiarch $3 "\$@"
	EOF
	chmod +x "$1"
}

# No build may show a wrong stack. All three modes of the JIT have to keep the limits
# that step.lua has for each on this system's LuaJIT: builds without code offsets in
# snapshots (until 2021) know fewer lines in traces, and a short run has more of the
# marked moments when stacks grow.
export STEP_MARKED_MAX=0.1 STEP_NO_LINE_MAX=1
marked_max=0.02
no_line_max=0.5
if [ $thorough = no ]; then
	marked_max=$STEP_MARKED_MAX
	no_line_max=$STEP_NO_LINE_MAX
fi

# --- what is checked ---------------------------------------------------------------

module_builddir=$top_builddir

check_available()
{
	cat >available.lua <<-'LUA'
		package.loaded["misc.sysprof"] = nil
		local ok, message = require "misc.sysprof".available()
		print(jit.version, ok, message)
		io.stdout:flush()
		os.exit(ok and 0 or 1)
	LUA
	"$1" available.lua
}

# What the three last lines of step.lua come to.
sum_steps()
{
	awk -v marked_max="$marked_max" -v no_line_max="$no_line_max" '
		{
			steps += $2
			marked += $2 * $4
			wrong += $2 * ($6 + $8)
			no_line += $2 * $10
		}
		END {
			if (!steps)
				exit 1
			printf "all: %d steps, %.4f%% right, %.4f%% marked, " \
				"%.4f%% wrong, %.4f%% no line\n", steps,
				100 - (marked + wrong) / steps,
				marked / steps, wrong / steps, no_line / steps
			exit marked / steps > marked_max ||
				no_line / steps > no_line_max
		}' | tee -a table.txt
	[ "${PIPESTATUS[0]}" = 0 ]
}

check_steps()
{
	local mode status=0
	for mode in off on cold; do
		"$1" "$top_srcdir/tests/step/step.lua" \
			"$module_builddir/tests/step/.libs/stepper.so" $mode \
			$limit >steps.txt 2>&1 || {
			status=1
			cat steps.txt
		}
		tail -n 1 steps.txt | tee -a sums.txt
	done
	sum_steps <sums.txt || status=1
	rm sums.txt
	return $status
}

# They need a minute, so not in the short form.
check_shares()
{
	[ $thorough = yes ] || return 0
	LUAJIT=$1 SHARES_PROGRAMS="functions lines" \
		"$top_srcdir/tests/end-to-end/shares.sh"
}

check_programs()
{
	[ $thorough = yes ] || return 0
	LONG=no LUAJIT=$1 "$top_srcdir/tests/programs/check-programs.sh"
}

# Modes of the JIT in which lines of allocations are known: before 2021 a trace
# does not tell which of its lines allocates.
find_memory_modes()
{
	cat >modes.lua <<-'LUA'
		local stepper = assert(package.loadlib(arg[1], "luaopen_stepper"))()
		print(stepper.trace_lines and "off on" or "off")
		io.stdout:flush()
		os.exit(0)
	LUA
	"$1" modes.lua "$module_builddir/tests/step/.libs/stepper.so"
}

check_names()
{
	[ $thorough = yes ] || return 0
	MEMORY_MODES=$memory_modes MODULE_BUILDDIR=$module_builddir LUAJIT=$1 \
		"$top_srcdir/tests/end-to-end/function-names.sh"
}

check_memory()
{
	[ $thorough = yes ] || return 0
	EVENTS_ONLY=$memory_modes MODULE_BUILDDIR=$module_builddir LUAJIT=$1 \
		"$top_srcdir/tests/end-to-end/memprof.sh"
}

# check NAME COMMAND, which takes a Lua file and its arguments.
check()
{
	local status
	export LUA_CPATH="$module_builddir/lib/.libs/?.so;;"
	echo "== $1"
	echo "$1:" >>table.txt
	check_available "$2" && memory_modes=$(find_memory_modes "$2") &&
		check_steps "$2" && check_shares "$2" && check_programs "$2" &&
		check_names "$2" && check_memory "$2"
	status=$?
	case $status in
	0) passed="$passed $1" ;;
	*) failed="$failed $1" ;;
	esac
}

skip()
{
	echo "SKIP: $1: $2"
	skipped="$skipped $1"
}

# --- builds --------------------------------------------------------------------------

embed()
{
	# shellcheck disable=SC2086
	$CC -I"$include" -o "$1" "$top_srcdir/tests/other_host.c" -Wl,-E \
		"${@:2}" 2>embed.log || {
		cat embed.log
		return 1
	}
}
include=$(pkg-config --variable=includedir luajit)

# luajit and libluajit-5.1.so of a later Debian, with its libc.
check_release()
{
	local suite=$1 elf=$2 root=$work/$1
	fetch "$suite" "$root" luajit libluajit-5.1-2 libluajit-5.1-common \
		libc6 libgcc-s1 "$elf" zlib1g libzstd1 || {
		skip "$suite" "its packages cannot be had from $mirror"
		return
	}
	make_runner "$suite-luajit" "$root" "$root/usr/bin/luajit"
	check "$suite-luajit" "$work/$suite-luajit"
	embed host -lluajit-5.1 || {
		skip "$suite-library" "no embedding program can be built"
		return
	}
	make_runner "$suite-library" "$root" "$work/host"
	check "$suite-library" "$work/$suite-library"
}

check_trixie()
{
	check_release trixie libelf1t64
}

check_sid()
{
	check_release sid libelf1t64
}

# Its libc is older than the one that this build of the module needs, so the
# module is built once more, against the headers and libraries of that release.
check_bullseye()
{
	local root=$work/bullseye
	fetch bullseye "$root" luajit libluajit-5.1-2 libluajit-5.1-common \
		libluajit-5.1-dev libc6 libc6-dev linux-libc-dev libgcc-s1 \
		libgcc-10-dev libelf1 libelf-dev zlib1g zlib1g-dev \
		libcrypt-dev libcrypt1 libiberty-dev systemtap-sdt-dev || {
		skip bullseye "its packages cannot be had from $mirror"
		return
	}
	# gcc finds its own release's libraries first unless told so.
	local sysroot="--sysroot=$root -B$root/usr/lib/$multiarch"
	sysroot="$sysroot -L$root/usr/lib/$multiarch -L$root/lib/$multiarch"
	mkdir bullseye-build
	(
		cd bullseye-build || exit 1
		export PKG_CONFIG_SYSROOT_DIR=$root
		export PKG_CONFIG_LIBDIR=$root/usr/lib/$multiarch/pkgconfig
		# What only the tools need is not used here.
		"$top_srcdir/configure" -q --without-pprof \
			CC="$CC $sysroot" LUAJIT=true CHECK_CFLAGS=-g \
			CHECK_LIBS=-g LIBDW_CFLAGS=-g LIBDW_LIBS=-g &&
			make lib/misc.la tests/step/stepper.la
	) >bullseye.log 2>&1 || {
		tail -n 20 bullseye.log
		failed="$failed bullseye"
		return
	}
	module_builddir=$work/bullseye-build
	make_runner bullseye-luajit "$root" "$root/usr/bin/luajit"
	check bullseye-luajit "$work/bullseye-luajit"
	# shellcheck disable=SC2086
	include=$root/usr/include/luajit-2.1 embed host $sysroot \
		-lluajit-5.1 -lm -ldl && {
		make_runner bullseye-library "$root" "$work/host"
		check bullseye-library "$work/bullseye-library"
	}
	module_builddir=$top_builddir
}

# The library of this system, and its archive.
check_library()
{
	embed host -lluajit-5.1 || {
		skip library "no embedding program can be built"
		return
	}
	check library "$work/host"
}

check_static()
{
	embed static-host -Wl,--whole-archive -l:libluajit-5.1.a \
		-Wl,--no-whole-archive -lm -ldl || {
		skip static "no program can be linked to libluajit-5.1.a"
		return
	}
	check static "$work/static-host"
}

# OpenResty's LuaJIT beside Debian 12's own.
check_luajit2()
{
	local root=$work/luajit2
	fetch bookworm "$root" luajit2 libluajit2-5.1-2 libluajit2-5.1-common \
		libc6 libgcc-s1 libelf1 zlib1g || {
		skip luajit2 "its packages cannot be had from $mirror"
		return
	}
	make_runner luajit2-luajit "$root" "$root/usr/bin/luajit"
	check luajit2-luajit "$work/luajit2-luajit"
	embed host -lluajit-5.1 || return
	make_runner luajit2-library "$root" "$work/host"
	check luajit2-library "$work/luajit2-library"
}

# Not GC64, and a fork of its own. It has no option for the JIT.
check_tarantool()
{
	local root=$work/tarantool
	fetch bookworm "$root" tarantool libc6 libcurl4 libgcc-s1 libgomp1 \
		libicu72 libreadline8 libssl3 libstdc++6 libunwind8 \
		libyaml-0-2 libzstd1 zlib1g liblzma5 libtinfo6 libelf1 \
		libnghttp2-14 libidn2-0 librtmp1 libssh2-1 libpsl5 \
		libgssapi-krb5-2 libldap-2.5-0 libbrotli1 libunistring2 \
		libgnutls30 libhogweed6 libnettle8 libgmp10 libkrb5-3 \
		libk5crypto3 libcom-err2 libkrb5support0 libsasl2-2 \
		libkeyutils1 libp11-kit0 libtasn1-6 libffi8 || {
		skip tarantool "its packages cannot be had from $mirror"
		return
	}
	make_runner tarantool-program "$root" "$root/usr/bin/tarantool"
	cat >tarantool-runner <<-EOF
		#!/bin/sh
		case \$1 in
		-joff) shift; set -- -e 'jit.off()' "\$@" ;;
		-jon) shift ;;
		esac
		exec $work/tarantool-program "\$@" </dev/null
	EOF
	chmod +x tarantool-runner
	check tarantool "$work/tarantool-runner"
}

# A build that is not known is named, and so is what does not fit.
check_refused()
{
	local message
	embed refused-host -DUNKNOWN_BUILD -lluajit-5.1 || {
		skip refused "no embedding program can be built"
		return
	}
	cat >refused.lua <<-'LUA'
		local ok, message, number = require "misc.sysprof".start {
			mode = "C", path = "refused.bin" }
		assert(ok == nil and number == 22 and not io.open "refused.bin")
		print(message)
	LUA
	echo "== refused"
	message=$(./refused-host refused.lua)
	echo "$message"
	if echo "$message" | grep -q "^unknown build of LuaJIT: LuaJIT \
2\.1.*, build id [0-9a-f]\{40\}; .* fails at: allocator)$"; then
		passed="$passed refused"
	else
		failed="$failed refused"
	fi
}

# What the caller has. Tarantool's fork has modules of these names, which are put
# aside.
check_given()
{
	local luajit number=0
	for luajit in $OTHER_LUAJITS; do
		number=$((number + 1))
		cat >"given-$number" <<-EOF
			#!/bin/sh
			exec $luajit -e 'package.loaded["misc.sysprof"] = nil' \\
				-e 'package.loaded["misc.memprof"] = nil' "\$@"
		EOF
		chmod +x "given-$number"
		check "$luajit" "$work/given-$number"
	done
}

for build in $builds; do
	"check_$build"
done
[ ! -f table.txt ] || paste -d ' ' - - <table.txt
echo "passed:${passed:- none}; skipped:${skipped:- none}; failed:${failed:- none}"
[ -z "$failed" ] || exit 1
[ -n "$passed" ] || exit 77
