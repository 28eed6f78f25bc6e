// SPDX-License-Identifier: MIT
/*
 * Flame graph in a browser: alone in an HTML page, or in place of the picture
 * in an SVG file. Draws on a canvas only what can be seen, so the number of
 * stacks does not matter. Text of the profile is never taken for markup.
 *
 * Loads nothing. The page has the profile in #flame-data and a place for the
 * graph in #flame.
 */
"use strict";
(function () {
	const ROW = 18, NARROWEST = 0.4, TEXT_FROM = 24, XHTML =
		"http://www.w3.org/1999/xhtml";
	const data = JSON.parse(
		document.getElementById("flame-data").textContent);
	const place = document.getElementById("flame");
	const is_comparison = data.new_total !== undefined;

	/* ---- the page --------------------------------------------------- */

	function element(tag, parent, properties) {
		const made = document.createElementNS(XHTML, tag);

		for (const [name, value] of Object.entries(properties || {}))
			if (name === "text")
				made.textContent = value;
			else
				made.setAttribute(name, value);
		if (parent)
			parent.append(made);
		return made;
	}

	const header = element("header", place);
	const title = element("h1", header);
	const tools = element("div", header, { class: "tools" });
	const search = element("input", tools, { id: "search", type: "search",
		placeholder: "Search, or /regex/", "aria-label": "search",
		spellcheck: "false" });
	const found = element("span", tools, { id: "found" });
	const gap = element("span", tools, { class: "gap" });

	function button(id, text, help) {
		return element("button", tools, { id, type: "button",
			title: help, text });
	}

	gap.textContent = "";
	const out_button = button("out", "Zoom out", "one frame (Backspace)");
	const reset_button = button("reset", "Reset",
		"the whole profile (Escape)");
	const icicle_button = button("icicle", "Root on top",
		"where the root of the stacks is (i)");
	const reverse_button = button("reverse", "Reversed",
		"from the function that ran to its callers (r)");
	const help_button = button("help", "?", "keys (?)");
	const legend = element("div", header, { id: "legend" });
	const scroller = element("div", place, { id: "scroller" });
	const spacer = element("div", scroller, { id: "spacer" });
	const canvas = element("canvas", spacer, { id: "graph", tabindex: "0",
		role: "img", "aria-label": "flame graph; press ? for keys" });
	const pen = canvas.getContext("2d");
	const status = element("footer", place, { id: "status",
		"aria-live": "polite" });
	const tip = element("div", place, { id: "tip", hidden: "hidden" });
	const keys = element("div", place, { id: "keys", hidden: "hidden" });

	[["click, Enter", "zoom to a frame"],
		["arrows", "go to the caller, a callee, a neighbour"],
		["Backspace", "zoom out by one frame"],
		["Escape", "reset: whole profile, no search"],
		["/", "search"],
		["n, N", "next, previous frame that was found"],
		["i", "root on top or at the bottom"],
		["r", "reversed: callers of what ran"],
		["?", "these keys"]].forEach(function ([key, meaning]) {
		const line = element("div", keys);

		element("kbd", line, { text: key });
		element("span", line, { text: meaning });
	});

	/* ---- views ------------------------------------------------------ */

	/* Entries of a view come parents first: each ends where the entry is
	 * that no longer stands on it, and begins behind its elder siblings. */
	function new_view(count) {
		return { count, depth: new Uint32Array(count),
			name: new Uint32Array(count),
			kind: new Int8Array(count),
			self: new Float64Array(count),
			total: new Float64Array(count),
			fresh: new Float64Array(count),
			fresh_self: new Float64Array(count),
			parent: new Int32Array(count),
			start: new Float64Array(count),
			end: new Uint32Array(count), deepest: 0, states: [] };
	}

	/* Everything that follows from depth and total. */
	function place_entries(view) {
		const next = [0], path = [];

		for (let i = 0; i < view.count; i++) {
			const depth = view.depth[i];

			while (path.length > depth)
				view.end[path.pop()] = i;
			view.parent[i] = depth > 0 ? path[depth - 1] : -1;
			path.push(i);
			view.start[i] = next[depth] || 0;
			next[depth] = view.start[i] + view.total[i];
			next[depth + 1] = view.start[i];
			view.deepest = Math.max(view.deepest, depth);
		}
		while (path.length > 0)
			view.end[path.pop()] = view.count;
		return view;
	}

	/* [state, samples, …], or the one state that all samples have. */
	function state_pairs(states, total) {
		return typeof states === "number" ? [states, total] : states;
	}

	function forward_view() {
		const view = new_view(data.depth.length);

		view.depth.set(data.depth);
		view.name.set(data.name);
		view.kind.set(data.kind);
		view.self.set(data.self);
		view.total.set(data.total);
		if (is_comparison) {
			view.fresh.set(data.new_total);
			view.fresh_self.set(data.new_self);
		}
		view.states = data.states;
		return place_entries(view);
	}

	/* States of the samples that end in each entry. */
	function self_states(view) {
		const result = [];

		for (let i = 0; i < view.count; i++) {
			const own = new Array(data.state_names.length).fill(0);
			const pairs = state_pairs(view.states[i], view.total[i]);

			for (let p = 0; p < pairs.length; p += 2) {
				own[pairs[p]] += pairs[p + 1];
				if (view.parent[i] >= 0)
					result[view.parent[i]][pairs[p]] -=
						pairs[p + 1];
			}
			result.push(own);
		}
		return result;
	}

	function new_node(name, kind, depth) {
		return { name, kind, depth, total: 0, self: 0, fresh: 0,
			states: new Array(data.state_names.length).fill(0),
			children: new Map() };
	}

	function add_to_node(node, view, entry, states) {
		node.total += view.self[entry];
		node.fresh += view.fresh_self[entry];
		for (let s = 0; s < states.length; s++)
			node.states[s] += states[s];
	}

	/* Stacks merged from the function that ran, widest first. */
	function reversed_view(view) {
		const root = new_node(0, -1, 0);
		const states = self_states(view);
		let count = 1;

		for (let i = 0; i < view.count; i++) {
			let node = root;

			if (view.self[i] === 0)
				continue;
			add_to_node(root, view, i, states[i]);
			for (let at = i; at > 0; at = view.parent[at]) {
				const key = view.name[at] * 16 + view.kind[at];

				if (!node.children.has(key)) {
					node.children.set(key, new_node(
						view.name[at], view.kind[at],
						node.depth + 1));
					count++;
				}
				node = node.children.get(key);
				add_to_node(node, view, i, states[i]);
			}
			node.self += view.self[i];
		}
		return flatten(root, count);
	}

	function flatten(root, count) {
		const view = new_view(count), waiting = [root];

		for (let i = 0; waiting.length > 0; i++) {
			const node = waiting.pop(), pairs = [];

			view.depth[i] = node.depth;
			view.name[i] = node.name;
			view.kind[i] = node.kind;
			view.self[i] = node.self;
			view.total[i] = node.total;
			view.fresh[i] = node.fresh;
			node.states.forEach(function (samples, state) {
				if (samples > 0)
					pairs.push(state, samples);
			});
			view.states.push(pairs);
			waiting.push(...[...node.children.values()].sort(
				(a, b) => a.total - b.total));
		}
		return place_entries(view);
	}

	/* ---- what is shown ---------------------------------------------- */

	const forward = forward_view();
	let reversed = null; /* made when it is first asked for */
	let view = forward;
	let zoomed = 0, selected = -1, hovered = -1, root_on_top = true;
	let matches = null; /* of each name: is it found? */
	const all = forward.total[0];
	const all_new = is_comparison ? forward.fresh[0] : 0;

	function name_of(entry) {
		return data.names[view.name[entry]];
	}

	function percent(part, whole) {
		return (whole > 0 ? 100 * part / whole : 0).toFixed(2) + "%";
	}

	function grouped(count) {
		return String(count).replace(/\B(?=(\d{3})+$)/g, "\u2009");
	}

	/* How much more of the new profile than of the old one, -1 to 1. */
	function growth(entry) {
		const fresh = view.fresh[entry];
		const before = view.total[entry] - fresh;

		return (all_new > 0 ? fresh / all_new : 0) -
			(all > all_new ? before / (all - all_new) : 0);
	}

	function describe_states(entry) {
		const pairs = state_pairs(view.states[entry],
			view.total[entry]), parts = [];

		for (let p = 0; p < pairs.length; p += 2)
			parts.push(data.state_names[pairs[p]] + " " +
				grouped(pairs[p + 1]));
		return parts.join(", ");
	}

	function describe(entry) {
		const total = view.total[entry], lines = [];

		lines.push(grouped(total) + " samples, " +
			percent(total, all) + (zoomed !== 0 ? "; " +
			percent(total, view.total[zoomed]) + " of " +
			name_of(zoomed) : "") + (view === forward ? "; " +
			grouped(view.self[entry]) + " of its own, " +
			percent(view.self[entry], all) : ""));
		if (is_comparison)
			lines.push("before " + percent(total -
				view.fresh[entry], all - all_new) +
				", after " + percent(view.fresh[entry],
				all_new));
		lines.push((view.kind[entry] >= 0 ?
			data.classes[view.kind[entry]][0] + "; " : "") +
			describe_states(entry));
		return lines;
	}

	/* ---- colours ---------------------------------------------------- */

	const dark = matchMedia("(prefers-color-scheme: dark)");
	const shades = new Map();

	function mix(colour, other, share) {
		const part = (at) => Math.round(
			parseInt(colour.slice(at, at + 2), 16) * (1 - share) +
			parseInt(other.slice(at, at + 2), 16) * share);

		return "#" + [1, 3, 5].map((at) =>
			part(at).toString(16).padStart(2, "0")).join("");
	}

	/* Neighbours of one kind differ a little, equal names never. */
	function shade(kind, name) {
		const step = (Math.imul(name, 2654435761) >>> 0) % 6;
		const key = kind * 8 + step;

		if (!shades.has(key))
			shades.set(key, kind < 0 ? "#d9d9d9" :
				mix(data.classes[kind][1], "#ffffff",
					step * 0.07));
		return shades.get(key);
	}

	function colour(entry) {
		if (matches && matches[view.name[entry]])
			return "#d61f8c";
		if (is_comparison && entry > 0) {
			const change = growth(entry);
			const share = Math.min(1,
				Math.sqrt(Math.abs(change)) * 1.6);

			return mix("#ececec", change > 0 ? "#e0442e" :
				"#3b78d8", Math.abs(change) < 0.0005 ? 0 :
				Math.max(0.12, share));
		}
		return shade(view.kind[entry], view.name[entry]);
	}

	/* ---- drawing ---------------------------------------------------- */

	let width = 0, height = 0, character = 7, asked = false;

	function content_height() {
		return (view.deepest + 1) * ROW;
	}

	function row_top(depth) {
		return root_on_top ? depth * ROW : (view.deepest - depth) * ROW;
	}

	/* From samples to pixels. */
	function left_of(entry) {
		return (view.start[entry] - view.start[zoomed]) * width /
			Math.max(view.total[zoomed], 1);
	}

	function is_above(entry) {
		return entry < zoomed && view.end[entry] > zoomed;
	}

	function bounds(entry) {
		if (is_above(entry) || entry === zoomed)
			return [0, width];
		return [left_of(entry), view.total[entry] * width /
			Math.max(view.total[zoomed], 1)];
	}

	function draw_text(entry, left, wide, top) {
		const room = Math.floor((wide - 8) / character);
		let text = name_of(entry);

		if (text.length > room)
			text = text.slice(0, Math.max(1, room - 1)) + "\u2026";
		pen.fillStyle = matches && matches[view.name[entry]] ?
			"#ffffff" : "#1c1c1c";
		pen.fillText(text, left + 4, top + ROW / 2 + 0.5);
	}

	function draw_entry(entry, top) {
		const [left, wide] = bounds(entry);
		const gap = wide > 3 ? 1 : 0;

		pen.globalAlpha = is_above(entry) ? 0.45 :
			matches && !matches[view.name[entry]] ? 0.55 : 1;
		pen.fillStyle = colour(entry);
		pen.fillRect(left, top, Math.max(wide - gap, NARROWEST),
			ROW - 1);
		if (wide >= TEXT_FROM)
			draw_text(entry, left, wide, top);
		if (entry === selected || entry === hovered) {
			pen.globalAlpha = 1;
			pen.lineWidth = entry === selected ? 2 : 1;
			pen.strokeStyle = dark.matches ? "#ffffff" : "#000000";
			pen.strokeRect(left + 1, top + 1,
				Math.max(wide - gap - 2, 1), ROW - 3);
		}
	}

	/* What stands on an entry that is too narrow is narrower still. */
	function draw() {
		const from = scroller.scrollTop;

		asked = false;
		pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0,
			0);
		pen.clearRect(0, 0, width, height);
		pen.font = "12px ui-monospace, monospace";
		pen.textBaseline = "middle";
		character = pen.measureText("MMMMMMMMMM").width / 10;
		for (let i = 0; i < view.count;) {
			const above = is_above(i);
			const outside = !above && (i < zoomed ||
				i >= view.end[zoomed]);
			const top = row_top(view.depth[i]) - from;

			if (outside || bounds(i)[1] < NARROWEST) {
				i = view.end[i];
				continue;
			}
			if (top > -ROW && top < height)
				draw_entry(i, top);
			i++;
		}
		pen.globalAlpha = 1;
	}

	function draw_soon() {
		if (!asked)
			requestAnimationFrame(draw);
		asked = true;
	}

	function resize() {
		width = scroller.clientWidth;
		height = scroller.clientHeight;
		canvas.width = Math.max(1, width * devicePixelRatio);
		canvas.height = Math.max(1, height * devicePixelRatio);
		canvas.style.width = width + "px";
		canvas.style.height = height + "px";
		spacer.style.height = Math.max(content_height(), height) + "px";
		draw_soon();
	}

	/* ---- pointing --------------------------------------------------- */

	function entry_at(x, y) {
		const row = Math.floor((y + scroller.scrollTop) / ROW);
		const depth = root_on_top ? row : view.deepest - row;

		for (let i = 0; i < view.count;) {
			const [left, wide] = bounds(i);
			const outside = !is_above(i) && (i < zoomed ||
				i >= view.end[zoomed]);

			if (outside || x < left || x >= left + wide)
				i = view.end[i];
			else if (view.depth[i] === depth)
				return wide >= NARROWEST ? i : -1;
			else
				i++;
		}
		return -1;
	}

	function show_tip(event) {
		if (hovered < 0) {
			tip.hidden = true;
			return;
		}
		tip.textContent = "";
		element("b", tip, { text: name_of(hovered) });
		for (const line of describe(hovered))
			element("div", tip, { text: line });
		tip.hidden = false;
		tip.style.left = Math.max(4, Math.min(event.clientX + 14,
			innerWidth - tip.offsetWidth - 8)) + "px";
		tip.style.top = (event.clientY + 18 + tip.offsetHeight >
			innerHeight ? event.clientY - tip.offsetHeight - 10 :
			event.clientY + 18) + "px";
	}

	function show_status() {
		const entry = hovered >= 0 ? hovered :
			selected >= 0 ? selected : zoomed;

		status.textContent = "";
		element("b", status, { text: name_of(entry) });
		element("span", status, { text: describe(entry).join("; ") });
		place.dataset.zoomed = name_of(zoomed);
		place.dataset.selected = selected >= 0 ? name_of(selected) : "";
		place.dataset.hovered = hovered >= 0 ? name_of(hovered) : "";
		out_button.disabled = reset_button.disabled = zoomed === 0 &&
			search.value === "";
	}

	function hover(event) {
		const box = canvas.getBoundingClientRect();
		const entry = event ? entry_at(event.clientX - box.left,
			event.clientY - box.top) : -1;

		if (entry !== hovered) {
			hovered = entry;
			show_status();
			draw_soon();
		}
		canvas.style.cursor = hovered >= 0 ? "pointer" : "default";
		show_tip(event);
	}

	/* ---- zooming and choosing --------------------------------------- */

	function scroll_to(entry) {
		const top = row_top(view.depth[entry]);

		if (top < scroller.scrollTop ||
			top + ROW > scroller.scrollTop + height)
			scroller.scrollTop = Math.max(0, top - height / 2);
	}

	function zoom(entry) {
		zoomed = entry;
		scroll_to(entry);
		hovered = -1;
		tip.hidden = true;
		show_status();
		draw_soon();
	}

	function select(entry) {
		if (entry < 0)
			return;
		selected = entry;
		if (!is_above(entry) && (entry < zoomed ||
			entry >= view.end[zoomed] ||
			bounds(entry)[1] < NARROWEST))
			zoom(view.parent[entry] >= 0 ? view.parent[entry] : 0);
		scroll_to(entry);
		hovered = -1;
		show_status();
		draw_soon();
	}

	function widest_child(entry) {
		let best = -1;

		for (let i = entry + 1; i < view.end[entry]; i = view.end[i])
			if (best < 0 || view.total[i] > view.total[best])
				best = i;
		return best;
	}

	function sibling(entry, step) {
		const parent = view.parent[entry];
		let before = -1;

		if (parent < 0)
			return -1;
		for (let i = parent + 1; i < view.end[parent];
			i = view.end[i]) {
			if (step < 0 && i === entry)
				return before;
			before = i;
		}
		return view.end[entry] < view.end[parent] ? view.end[entry] :
			-1;
	}

	/* ---- views ------------------------------------------------------ */

	function show_view() {
		place.dataset.view = (view === forward ? "forward" :
			"reversed") + (root_on_top ? " icicle" : " flame");
		reverse_button.setAttribute("aria-pressed", view !== forward);
		icicle_button.setAttribute("aria-pressed", root_on_top);
		resize();
		scroller.scrollTop = root_on_top ? 0 : content_height();
		show_status();
	}

	function reverse() {
		if (!reversed)
			reversed = reversed_view(forward);
		view = view === forward ? reversed : forward;
		zoomed = 0;
		selected = hovered = -1;
		count_found();
		show_view();
	}

	function turn() {
		root_on_top = !root_on_top;
		show_view();
	}

	/* ---- searching -------------------------------------------------- */

	/* A function that tells whether a name is found; null: no search. */
	function matcher(text) {
		const slashes = /^\/(.+)\/$/.exec(text);
		const low = text.toLowerCase();

		if (text === "" || text === "/")
			return null;
		if (!slashes)
			return (name) => name.toLowerCase().includes(low);
		try {
			const regex = new RegExp(slashes[1], "i");

			return (name) => regex.test(name);
		} catch (error) {
			return () => false;
		}
	}

	/* Samples with a found frame, each once. */
	function count_found() {
		let samples = 0;

		if (!matches) {
			found.textContent = "";
			return;
		}
		for (let i = 1; i < view.count;) {
			if (matches[view.name[i]]) {
				samples += view.total[i];
				i = view.end[i];
			} else {
				i++;
			}
		}
		found.textContent = grouped(samples) + " samples, " +
			percent(samples, all);
	}

	function look() {
		const test = matcher(search.value);

		matches = test ? data.names.map(test) : null;
		if (matches)
			matches[0] = false; /* the root is no frame */
		count_found();
		show_status();
		draw_soon();
	}

	/* The next entry that is found and wide enough to be seen somewhere. */
	function next_found(step) {
		const count = view.count;
		let at = selected < 0 ? zoomed : selected;

		for (let tried = 0; matches && tried < count; tried++) {
			at = (at + step + count) % count;
			if (matches[view.name[at]]) {
				select(at);
				return;
			}
		}
	}

	function reset() {
		search.value = "";
		look();
		selected = -1;
		keys.hidden = true;
		zoom(0);
	}

	function zoom_out() {
		zoom(Math.max(0, view.parent[zoomed]));
	}

	/* ---- events ----------------------------------------------------- */

	const at_start = () => selected < 0 ? zoomed : selected;
	const to_caller = () => select(selected < 0 ? zoomed :
		view.parent[selected]);
	const to_callee = () => select(widest_child(at_start()));
	const actions = {
		"Escape": reset,
		"Backspace": zoom_out,
		"Enter": () => zoom(at_start()),
		"ArrowUp": () => root_on_top ? to_caller() : to_callee(),
		"ArrowDown": () => root_on_top ? to_callee() : to_caller(),
		"ArrowLeft": () => select(sibling(at_start(), -1)),
		"ArrowRight": () => select(sibling(at_start(), 1)),
		"/": () => search.focus(),
		"n": () => next_found(1),
		"N": () => next_found(-1),
		"i": turn,
		"r": reverse,
		"?": () => { keys.hidden = !keys.hidden; },
	};

	function press(event) {
		const typing = event.target === search;

		if (event.ctrlKey || event.altKey || event.metaKey)
			return;
		if (typing && event.key === "Enter") {
			canvas.focus();
			next_found(1);
		} else if (event.key === "Escape" ||
			(!typing && actions[event.key] && !(event.key ===
			"Enter" && event.target.tagName === "BUTTON"))) {
			actions[event.key]();
			if (event.key === "Escape")
				canvas.focus();
		} else {
			return;
		}
		event.preventDefault();
	}

	/* ---- the rest of the page --------------------------------------- */

	/* Samples whose innermost frame is of the kind. */
	function show_legend() {
		const own = data.classes.map(() => 0);

		for (let i = 1; i < forward.count; i++)
			own[forward.kind[i]] += forward.self[i];
		data.classes.forEach(function ([name, paint], kind) {
			if (!data.kind.includes(kind))
				return;
			const label = element("span", legend);

			element("i", label).style.background = paint;
			label.append(name + " " + percent(own[kind], all));
		});
	}

	function show_comparison_legend() {
		[["#3b78d8", "less than before"], ["#ececec", "as before"],
			["#e0442e", "more than before"]].forEach(
			function ([paint, text]) {
				const label = element("span", legend);

				element("i", label).style.background = paint;
				label.append(text);
			});
	}

	document.title = data.title;
	title.textContent = data.title;
	element("small", title, { text: (is_comparison ?
		grouped(all - all_new) + " samples before, " +
		grouped(all_new) + " after" : grouped(all) + " samples") +
		(data.lost > 0 ? ", " + grouped(data.lost) + " lost" : "") });
	if (is_comparison)
		show_comparison_legend();
	else
		show_legend();
	canvas.addEventListener("mousemove", hover);
	canvas.addEventListener("mouseleave", () => hover(null));
	canvas.addEventListener("click", function (event) {
		hover(event);
		if (hovered >= 0) {
			selected = hovered;
			zoom(hovered);
		}
	});
	scroller.addEventListener("scroll", draw_soon);
	search.addEventListener("input", look);
	out_button.addEventListener("click", zoom_out);
	reset_button.addEventListener("click", reset);
	icicle_button.addEventListener("click", turn);
	reverse_button.addEventListener("click", reverse);
	help_button.addEventListener("click", actions["?"]);
	addEventListener("keydown", press);
	addEventListener("resize", resize);
	dark.addEventListener("change", draw_soon);
	show_view();
	place.dataset.ready = "yes";
})();
