# SPDX-License-Identifier: MIT
# What stackcollapse-perf.pl does to the symbols of perf script, one a line (with
# -F ip,sym,dso, without call chains): one line a sample, of its frames.
{
	name = $0
	sub(/^[ \t]*[0-9a-f]+ /, "", name)
	sub(/ \([^(]*\)$/, "", name) # the object
	sub(/\+0x[0-9a-f]+$/, "", name)
	if (name ~ /^\(/)
		next
	count = split(name, frames, "->")
	stack = ""
	for (i = 1; i <= count; i++) {
		frame = frames[i]
		gsub(/;/, ":", frame)
		if (frame !~ /\.\(.*\)\./)
			sub(/\(.*/, "", frame)
		gsub(/["']/, "", frame)
		stack = stack (i == 1 ? frame : ";" frame "_[i]")
	}
	print stack
}
