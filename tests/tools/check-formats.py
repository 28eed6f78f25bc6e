#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""All output formats tell the same: reads each back into stacks with their
samples, and compares them with the folded ones. Formats without whole stacks
(Callgrind, top, the picture of the SVG) are compared by function.

usage: check-formats.py PARSER DUMP...
"""

import collections
import gzip
import json
import re
import subprocess
import sys
import xml.etree.ElementTree

NO_STACK = "[no stack]"


def run(parser, fmt, dump):
    done = subprocess.run([parser, f"--format={fmt}", dump],
                          capture_output=True, check=False)
    assert done.returncode == 0, (fmt, dump, done.stderr)
    return done.stdout


# --- formats with stacks: {tuple of names: samples} --------------------------


def stacks_of(pairs):
    stacks = collections.Counter()
    for names, samples in pairs:
        stacks[tuple(names) or (NO_STACK,)] += samples
    return stacks


def read_folded(output):
    return stacks_of((line.rsplit(" ", 1)[0].split(";"),
                      int(line.rsplit(" ", 1)[1]))
                     for line in output.decode().splitlines())


def read_speedscope(output):
    data = json.loads(output)
    assert data["$schema"].endswith("file-format-schema.json")
    frames = data["shared"]["frames"]
    for frame in frames:
        assert set(frame) <= {"name", "file", "line", "col"}, frame
        assert isinstance(frame["name"], str)
    profile, = data["profiles"]
    assert profile["type"] == "sampled" and profile["unit"] == "none"
    assert len(profile["samples"]) == len(profile["weights"])
    assert profile["startValue"] == 0
    assert profile["endValue"] == sum(profile["weights"])
    return stacks_of(([frames[i]["name"] for i in stack], weight)
                     for stack, weight in zip(profile["samples"],
                                              profile["weights"]))


def read_json(output):
    data = json.loads(output)
    assert data["format"] == "luajit-sysprof" and data["version"] == 1
    frames = data["frames"]
    states = collections.Counter()
    for stack in data["stacks"]:
        states[stack["state"]] += stack["samples"]
    assert states == {k: v for k, v in data["states"].items() if v}, states
    assert sum(states.values()) == data["samples"]
    assert sum(d["samples"] for d in data["dumps"]) == data["samples"]
    return stacks_of(([frames[i]["name"] for i in stack["frames"]],
                      stack["samples"]) for stack in data["stacks"])


def check_columns(table):
    for name, column in table.items():
        if isinstance(column, list):
            assert len(column) == table["length"], name


def read_firefox(output):
    data = json.loads(output)
    assert data["meta"]["preprocessedProfileVersion"] == 48
    categories = data["meta"]["categories"]
    pairs = []
    for thread in data["threads"]:
        strings = thread["stringArray"]
        stacks, frames = thread["stackTable"], thread["frameTable"]
        functions, samples = thread["funcTable"], thread["samples"]
        for table in (stacks, frames, functions, samples, thread["markers"],
                      thread["resourceTable"], thread["nativeSymbols"]):
            check_columns(table)
        assert all(0 <= c < len(categories) for c in stacks["category"])
        assert samples["time"] == sorted(samples["time"])
        for file in functions["fileName"]:
            assert file is None or strings[file] != ""
        for stack, weight in zip(samples["stack"], samples["weight"]):
            names = []
            while stack is not None:
                function = frames["func"][stacks["frame"][stack]]
                names.append(strings[functions["name"][function]])
                prefix = stacks["prefix"][stack]
                assert prefix is None or prefix < stack
                stack = prefix
            pairs.append((names[::-1], weight))
    return stacks_of(pairs)


def flame_data(text):
    start = text.index('id="flame-data">') + len('id="flame-data">')
    return json.loads(text[start:text.index("</script>", start)])


def read_flame(output):
    data = flame_data(output.decode())
    path, pairs = [], []
    for i, depth in enumerate(data["depth"]):
        del path[depth:]
        path.append(data["names"][data["name"][i]])
        if data["self"][i] > 0:
            pairs.append((path[1:], data["self"][i]))
    return stacks_of(pairs)


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """(number, value) of a protocol buffer message."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        else:
            assert key & 7 == 0, key
        yield key >> 3, value


def numbers(value):
    if isinstance(value, int):
        return [value]
    result, at = [], 0
    while at < len(value):
        number, at = varint(value, at)
        result.append(number)
    return result


def read_pprof(output):
    strings, functions, locations, samples = [], {}, {}, []
    for number, value in fields(gzip.decompress(output)):
        if number == 6:
            strings.append(value.decode())
        elif number == 5:
            message = dict(fields(value))
            functions[message[1]] = message[2]
        elif number == 4:
            message = dict(fields(value))
            locations[message[1]] = dict(fields(message[4]))[1]
        elif number == 2:
            samples.append(value)
    assert strings[0] == ""
    pairs = []
    for sample in samples:
        stack, values = [], []
        for number, value in fields(sample):
            if number == 1:
                stack += numbers(value)
            elif number == 2:
                values += numbers(value)
        pairs.append(([strings[functions[locations[i]]]
                       for i in reversed(stack)], values[0]))
    return stacks_of(pairs)


# --- formats by function: {name: (self, total)} ------------------------------


def functions_of(stacks):
    functions = collections.defaultdict(lambda: [0, 0])
    for names, samples in stacks.items():
        functions[names[-1]][0] += samples
        for name in set(names):
            functions[name][1] += samples
    return {name: tuple(counts) for name, counts in functions.items()}


def read_top(output):
    functions = {}
    lines = iter(output.decode().splitlines())
    assert next(lines).split() == ["self", "self%", "total", "total%",
                                   "function"]
    for line in lines:
        if line == "":
            break
        parts = re.match(r" *(\d+) +[\d.]+% +(\d+) +[\d.]+%  (.*)$", line)
        functions[parts[3]] = (int(parts[1]), int(parts[2]))
    return functions


def read_callgrind(output):
    """Samples of each function itself: {name: samples}, and their sum."""
    names, own, summary = {}, collections.Counter(), None
    function = called = None
    for line in output.decode().splitlines():
        name = re.match(r"(c?fn)=\((\d+)\)(?: (.*))?$", line)
        if name:
            if name[3] is not None:
                names[name[2]] = name[3]
            if name[1] == "fn":
                function = names[name[2]]
        elif line.startswith("calls="):
            called = True
        elif line.startswith("summary: "):
            summary = int(line.split()[1])
        elif re.match(r"\d+ \d+$", line):
            if not called:
                own[function] += int(line.split()[1])
            called = False
    assert sum(own.values()) == summary
    return own


def check_picture(output, stacks):
    """The SVG is XML, and its tooltips tell totals that the stacks have."""
    root = xml.etree.ElementTree.fromstring(output)
    if not stacks:
        return
    totals = collections.Counter()
    for names, samples in stacks.items():
        for depth in range(1, len(names) + 1):
            totals[(names[depth - 1], depth)] += samples
    sums = {count for count in totals.values()} | {sum(stacks.values())}
    titles = [e.text for e in root.iter("{http://www.w3.org/2000/svg}title")]
    assert titles, "no tooltip"
    parsed = [re.search(r": (\d+) samples, [\d.]+%; (\d+) of its own$", t)
              for t in titles]
    assert all(parsed)
    assert int(parsed[0][1]) == sum(stacks.values())
    assert all(int(p[1]) <= max(sums) for p in parsed)


# --- comparing ---------------------------------------------------------------

READERS = {
    "speedscope": read_speedscope,
    "json": read_json,
    "firefox": read_firefox,
    "html": read_flame,
    "svg": read_flame,
    "pprof": read_pprof,
}


def compare(what, expected, got):
    assert got == expected, (
        f"{what}: missing {list((expected.items() - got.items()))[:3]}, "
        f"too many {list((got.items() - expected.items()))[:3]}")


def check(parser, dump, has_pprof):
    stacks = read_folded(run(parser, "folded", dump))
    for fmt, reader in READERS.items():
        if fmt != "pprof" or has_pprof:
            compare(f"{dump}: {fmt}", stacks,
                    reader(run(parser, fmt, dump)))
    functions = functions_of(stacks)
    functions.pop(NO_STACK, None)
    compare(f"{dump}: top", functions, read_top(run(parser, "top", dump)))
    compare(f"{dump}: callgrind",
            {k: v[0] for k, v in functions_of(stacks).items() if v[0]},
            dict(read_callgrind(run(parser, "callgrind", dump))))
    check_picture(run(parser, "svg", dump), stacks)
    return len(stacks)


def main():
    parser, dumps = sys.argv[1], sys.argv[2:]
    text = subprocess.run([parser, "--help"], capture_output=True,
                          check=True).stdout.decode()
    has_pprof = "not in this build" not in text
    if not has_pprof:
        print("without pprof, which is not in this build")
    for dump in dumps:
        print(f"{dump}: {check(parser, dump, has_pprof)} stacks agree")


main()
