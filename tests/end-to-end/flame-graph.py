#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The interactive flame graphs, HTML and SVG, in a headless Chromium: real
mouse movements, clicks and keys.

usage: flame-graph.py SMALL HOSTILE LARGE COMPARISON EMPTY (paths without
their ending .html or .svg; pictures of them are left beside)
"""

import sys
import time

import browser

ROW = 18
READY = "document.getElementById('flame').dataset.ready === 'yes'"


class Page:
    def __init__(self, chromium, path):
        self.chromium = chromium
        start = time.monotonic()
        chromium.open(path, READY)
        self.seconds = time.monotonic() - start

    def state(self, name):
        return self.chromium.ask(
            f"document.getElementById('flame').dataset.{name}")

    def text(self, selector):
        return self.chromium.ask(
            f"document.querySelector({selector!r}).textContent")

    def box(self):
        return self.chromium.ask(
            "(() => { const b = document.getElementById('graph')"
            ".getBoundingClientRect(); return [b.x, b.y, b.width, b.height];"
            "})()")

    def at(self, depth, share):
        """Where a row is, at a share of the width."""
        x, y, width, _ = self.box()
        return x + width * share, y + depth * ROW + ROW / 2

    def settle(self):
        """Two frames later everything is drawn."""
        self.chromium.call(
            "Runtime.evaluate", awaitPromise=True,
            expression="new Promise(done => requestAnimationFrame(() => "
                       "requestAnimationFrame(done)))")

    def colours(self):
        self.settle()
        return self.chromium.ask(
            "(() => { const c = document.getElementById('graph');"
            "const d = c.getContext('2d').getImageData(0, 0, c.width,"
            "c.height).data; const s = new Set(); for (let i = 0;"
            "i < d.length; i += 4) if (d[i + 3]) s.add(d[i] + ',' + d[i + 1]"
            "+ ',' + d[i + 2]); return s.size; })()")


def expect(got, wanted, what):
    assert got == wanted, f"{what}: got {got!r}, expected {wanted!r}"


def check_small(chromium, path):
    page = Page(chromium, path)
    expect(page.state("view"), "forward icicle", "first view")
    assert "7 samples, 5 lost" in page.text("h1"), page.text("h1")
    assert "Lua, compiled" in page.text("#legend"), page.text("#legend")
    assert page.colours() > 5, "an empty canvas"

    # main 6/7; fib, fib compiled, l_burn, … below main app.lua:0 in row 3
    chromium.move(*page.at(4, 0.1))
    expect(page.state("hovered"), "fib app.lua:3", "hover")
    tip = page.text("#tip")
    assert "fib app.lua:32 samples, 28.57%; 1 of its own, 14.29%" in tip, tip
    assert "Lua, interpreted" in tip and "FFUNC 1" in tip, tip
    chromium.move(*page.at(1, 0.99))
    expect(page.state("hovered"), "", "hover over nothing")

    chromium.click(*page.at(4, 0.1))
    expect(page.state("zoomed"), "fib app.lua:3", "click")
    chromium.move(*page.at(5, 0.25))
    expect(page.state("hovered"), "string.format", "zoomed to the width")
    assert "50.00% of fib app.lua:3" in page.text("#tip"), page.text("#tip")
    chromium.click(*page.at(1, 0.9))
    expect(page.state("zoomed"), "main", "click on a caller")
    chromium.click_element("#reset")
    expect(page.state("zoomed"), "all", "reset")
    chromium.click(*page.at(4, 0.1))
    chromium.click_element("#out")
    expect(page.state("zoomed"), "main app.lua:0", "zoom out")
    chromium.press("Escape")
    expect(page.state("zoomed"), "all", "Escape")
    check_keys(chromium, page)
    check_search(chromium, page)
    check_views(chromium, page)


def check_keys(chromium, page):
    for _ in range(3):
        chromium.press("ArrowDown")
    expect(page.state("selected"), "main app.lua:0", "arrows down")
    chromium.press("ArrowDown")
    expect(page.state("selected"), "fib app.lua:3", "the widest callee")
    chromium.press("ArrowRight")
    first = page.state("selected")
    assert first and first != "main app.lua:0", first
    chromium.press("ArrowLeft")
    expect(page.state("selected"), "fib app.lua:3", "arrow left")
    chromium.press("Enter")
    expect(page.state("zoomed"), "fib app.lua:3", "Enter")
    chromium.press("Backspace")
    expect(page.state("zoomed"), "main app.lua:0", "Backspace")
    chromium.press("ArrowUp")
    expect(page.state("selected"), "main app.lua:0", "arrow up")
    chromium.press("?")
    expect(chromium.ask("document.getElementById('keys').hidden"), False, "?")
    chromium.press("Escape")
    expect(chromium.ask("document.getElementById('keys').hidden"), True,
           "Escape hides the keys")


def check_search(chromium, page):
    chromium.press("/")
    chromium.type("FIB")
    expect(page.text("#found"), "3 samples, 42.86%", "found")
    chromium.press("Enter")
    expect(page.state("selected"), "fib app.lua:3", "first one found")
    chromium.press("Escape")
    expect(page.text("#found"), "", "no search")
    chromium.click_element("#search")
    chromium.type("/^(main|l_burn)$/")
    expect(page.text("#found"), "6 samples, 85.71%", "found by regex")
    chromium.press("Escape")
    chromium.press("/")
    chromium.type("/(/")
    expect(page.text("#found"), "0 samples, 0.00%", "no regex at all")
    chromium.press("Escape")


def check_views(chromium, page):
    chromium.click_element("#reverse")
    expect(page.state("view"), "reversed icicle", "reversed")
    chromium.move(*page.at(1, 0.01))
    # Of the names with one sample or two, the two of fib come first.
    assert "samples, 14.29%" in page.text("#tip"), page.text("#tip")
    chromium.move(*page.at(2, 0.01))
    assert page.state("hovered") in ("main app.lua:0", "fib app.lua:3")
    chromium.press("r")
    expect(page.state("view"), "forward icicle", "forward again")
    chromium.click_element("#icicle")
    expect(page.state("view"), "forward flame", "root at the bottom")
    rows = 6
    chromium.move(*page.at(rows - 1, 0.5))
    expect(page.state("hovered"), "all", "the root is the last row")
    chromium.press("i")
    expect(page.state("view"), "forward icicle", "root on top again")


def check_hostile(chromium, path):
    chromium.open(path, READY)
    page = Page(chromium, path)
    for depth in range(1, 6):
        chromium.move(*page.at(depth, 0.5))
        assert page.state("hovered"), depth
    expect(chromium.ask("document.querySelectorAll('script').length"), 2, "scripts")
    names = chromium.ask("document.getElementById('flame-data').textContent")
    assert "\\u003c/script\\u003e" in names
    expect(chromium.ask("document.querySelectorAll('b').length <= 2"), True,
           "no markup out of names")


def check_large(chromium, path):
    page = Page(chromium, path)
    assert page.seconds < 20, f"{page.seconds} s until it can be used"
    assert page.colours() > 5
    start = time.monotonic()
    chromium.click(*page.at(9, 0.3))
    page.settle()
    assert page.state("zoomed").startswith("handle_"), page.state("zoomed")
    chromium.press("/")
    chromium.type("handle_1")
    page.settle()
    assert page.text("#found").endswith("%"), page.text("#found")
    chromium.press("Escape")
    chromium.click_element("#reverse")
    page.settle()
    expect(page.state("view"), "reversed icicle", "10,000 stacks reversed")
    chromium.move(*page.at(1, 0.5))
    assert page.state("hovered").startswith("handle_"), page.state("hovered")
    seconds = time.monotonic() - start
    assert seconds < 20, f"{seconds} s for a click, a search and a view"
    print(f"{path}: {page.seconds:.1f} s to open, {seconds:.1f} s for the "
          "rest")


def check_comparison(chromium, path):
    page = Page(chromium, path)
    assert "less than before" in page.text("#legend"), page.text("#legend")
    assert "7 samples before, 1 after" in page.text("h1"), page.text("h1")
    chromium.move(*page.at(1, 0.1))
    assert "before 85.71%, after 100.00%" in page.text("#tip"), \
        page.text("#tip")


def check_empty(chromium, path):
    page = Page(chromium, path)
    assert "0 samples" in page.text("h1"), page.text("h1")
    for key in ("ArrowDown", "Enter", "n", "r", "i", "Backspace"):
        chromium.press(key)
    expect(page.state("zoomed"), "all", "an empty profile")


def main():
    program = browser.find_browser()
    checks = (check_small, check_hostile, check_large, check_comparison,
              check_empty)
    chromium = browser.Browser(program)
    try:
        for check, path in zip(checks, sys.argv[1:], strict=True):
            for ending in (".html", ".svg"):
                check(chromium, path + ending)
                chromium.picture(path + ending + ".png")
                expect(chromium.problems, [], path + ending)
    finally:
        chromium.close()


main()
