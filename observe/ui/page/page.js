"use strict";
// Shows report.json, again and again, and the pictures of the last steps.

const every = 1000;       // ms between two reports
const pictureEvery = 3;   // reports between two pictures
const kept = 60;          // points of a history
const node = document.getElementById("node");
const state = document.getElementById("state");
const pause = document.getElementById("pause");
const main = document.getElementById("pipelines");
const cards = new Map();  // by the pipeline's name
let looks = 0;

const el = (name, text, className) => {
	const e = document.createElement(name);
	if (text !== undefined) e.textContent = text;
	if (className) e.className = className;
	return e;
};

// number has three digits or so, and a unit's prefix.
function number(n) {
	if (!isFinite(n)) return "–";
	for (const [size, prefix] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
		if (Math.abs(n) >= size) {
			const unit = prefix === "k" ? 1e3 : size;
			return `${(n / unit).toPrecision(3).replace(/e.*/, "")} ${prefix}`;
		}
	}
	return n >= 100 || Number.isInteger(n) ? n.toFixed(0) : n.toPrecision(3);
}

function duration(s) {
	if (s === 0) return "0";
	for (const [size, unit] of [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]]) if (s >= size) return `${(s / size).toPrecision(3)} ${unit}`;
	return `${(s * 1e9).toFixed(0)} ns`;
}

const percent = (share) => `${(100 * share).toFixed(share > .995 && share < 1 ? 1 : 0)}%`;

// pairs fills a list of names and values.
function pairs(dl, all) {
	while (dl.children.length > all.length) dl.lastElementChild.remove();
	all.forEach(([name, value], i) => {
		if (!dl.children[i]) {
			const div = el("div");
			div.append(el("dt"), el("dd"));
			dl.append(div);
		}
		const [dt, dd] = dl.children[i].children;
		dt.textContent = name;
		dd.textContent = value;
	});
}

function card(name) {
	let c = cards.get(name);
	if (c) return c;
	const section = document.getElementById("pipeline").content.cloneNode(true).firstElementChild;
	section.setAttribute("aria-label", name);
	c = { section, history: [], at: (selector) => section.querySelector(selector) };
	cards.set(name, c);
	return c;
}

function showPace(c, p) {
	const all = [["samples a second", number(p.pace.samples_per_second)], ["data was ready", percent(p.pace.readiness)],
		["bytes a second", `${number(p.pace.bytes_per_second)}B`.replace(/(\d)B/, "$1 B")]];
	const step = (p.times || []).find((t) => t.of === "step");
	if (step) all.push(["half of the steps within", duration(step.p50_seconds)], ["99% within", duration(step.p99_seconds)]);
	if (p.pace.utilization !== undefined) all.push(["the device worked", percent(p.pace.utilization)]);
	if (p.pace.overlap !== undefined) all.push(["copies hidden", percent(p.pace.overlap)]);
	pairs(c.at(".pace"), all);
	c.history.push(p.pace.samples_per_second);
	if (c.history.length > kept) c.history.shift();
	const most = Math.max(...c.history, 1e-9);
	const points = c.history.map((v, i) => `${(300 * i / (kept - 1)).toFixed(1)},${(58 - 56 * v / most).toFixed(1)}`);
	c.at(".history polyline").setAttribute("points", points.join(" "));
	c.at("figcaption").textContent = `Samples a second, each time that this page has looked: from 0 to ${number(most)}`;
}

function showStages(c, p) {
	const list = c.at(".stages");
	while (list.children.length > p.stages.length) list.lastElementChild.remove();
	p.stages.forEach((s, i) => {
		if (!list.children[i]) {
			const li = el("li");
			li.append(el("b"), el("meter"), el("span"), el("span"));
			list.append(li);
		}
		const li = list.children[i];
		const [name, meter, holds, note] = li.children;
		name.textContent = s.name;
		meter.max = s.room || 1;
		meter.value = s.holds;
		const text = {
			busy: `busy ${percent(s.holds)}`,
			workers: `${s.holds.toFixed(1)} at work, of ${number(s.room)} now`, // there may have been more before
			batches: `${s.holds.toFixed(1)} of ${number(s.room)} ${s.room === 1 ? "batch" : "batches"}`,
		}[s.unit];
		holds.textContent = text;
		meter.setAttribute("aria-label", `${s.name}: ${text}`);
		note.textContent = (s.slow ? "waited for most. " : "") + (s.note || "");
		li.className = s.slow ? "slow" : "";
	});
}

function showAccount(c, p) {
	const all = p.account.parts.reduce((sum, part) => sum + part.seconds, 0);
	c.at(".of").textContent = `${number(p.account.steps)} ${p.account.of === "device" ? "steps on the device" : "steps of the loop"}`;
	const there = all > 0 ? p.account.parts.filter((part) => part.seconds / all >= .0005) : [];
	c.at(".bar").replaceChildren(...there.map((part) => {
		const e = el("div", undefined, part.cause.replace(" ", "-"));
		e.style.width = `${100 * part.seconds / all}%`;
		return e;
	}));
	c.at(".parts").replaceChildren(...there.map((part) =>
		el("li", `${part.cause} ${percent(part.seconds / all)}, ${duration(part.seconds / Math.max(1, p.account.steps))} a step`, part.cause.replace(" ", "-"))));
}

function showWords(c, p) {
	c.at(".words").className = p.explanation.share >= .05 ? "words lost" : "words";
	c.at(".words").replaceChildren(...p.explanation.sentences.map((s) => el("p", s)));
}

function showTuned(c, p) {
	const decisions = p.decisions || [];
	c.at(".tuned").hidden = decisions.length === 0;
	c.at(".decisions").replaceChildren(...decisions.slice(-8).reverse().map((d) => {
		const li = el("li");
		const at = el("time", new Date(d.at).toLocaleTimeString());
		at.dateTime = d.at;
		li.append(at, `${d.what}: ${d.from === d.to ? d.to : `${d.from} → ${d.to}`}. ${d.reason}`);
		return li;
	}));
}

function showTables(c, p) {
	c.at(".times").hidden = !p.times;
	const row = (cell, texts) => { const tr = el("tr"); tr.append(...texts.map((t) => el(cell, t))); return tr; };
	c.at("thead").replaceChildren(row("th", ["", "count", "mean", "50%", "90%", "99%", "longest"]));
	c.at("tbody").replaceChildren(...(p.times || []).map((t) => row("td", [t.of, number(t.n),
		...[t.mean_seconds, t.p50_seconds, t.p90_seconds, t.p99_seconds, t.max_seconds].map(duration)])));
	const slow = (p.slowest || []).slice(0, 3).map((s) => `${s.sample} (${duration(s.seconds)}, in epoch ${s.epoch})`);
	c.at(".slowest").textContent = slow.length ? `Slowest samples: ${slow.join(", ")}.` : "";
	const place = p.place;
	pairs(c.at(".place dl"), [
		["epoch", place.epochs ? `${place.epoch} of ${place.epochs}, from 0` : `${place.epoch}, from 0`],
		["position", place.samples ? `${place.position} of ${place.samples} samples` : `${place.position} samples`],
		["order", place.shuffle ? `shuffled by seed ${place.seed}` : "as in the data"],
		["fingerprint", place.fingerprint], ...(place.shards ? [["shards", place.shards]] : []),
		["delivered", `${p.total.batches} batches, ${p.total.samples} samples, ${number(p.total.bytes)}B`],
		["replaced, left out", `${p.total.substituted}, ${p.total.skipped}`],
	]);
	c.at("pre").textContent = p.plan;
}

function show(p) {
	const c = card(p.name);
	c.at(".name").textContent = p.name;
	const rank = p.ranks > 1 ? `, rank ${p.rank} of ${p.ranks}` : "";
	c.at(".about").textContent = `${p.device || "no device"}${rank}; figures of the last ${duration(p.seconds)}`;
	showPace(c, p);
	showWords(c, p);
	showStages(c, p);
	showAccount(c, p);
	showTuned(c, p);
	showTables(c, p);
	return c.section;
}

// picture draws the last steps, where they are recorded.
async function picture(p) {
	const c = card(p.name);
	const query = `pipeline=${encodeURIComponent(p.name)}`;
	if (!p.recorded || p.total.batches === 0) {
		c.at(".timeline").replaceChildren(el("p", p.recorded ? "No step is over yet." : "It takes an observe.Recorder in the pipeline's Options.", "empty"));
		c.at(".more").replaceChildren();
		return;
	}
	const response = await fetch(`timeline.svg?${query}`);
	if (!response.ok) throw new Error((await response.text()).trim());
	const svg = new DOMParser().parseFromString(await response.text(), "image/svg+xml").documentElement;
	c.at(".timeline").replaceChildren(document.importNode(svg, true));
	if (!c.at(".more").firstElementChild) {
		const link = el("a", "All steps that are kept, for Perfetto and leat timeline");
		link.href = `timeline.json?${query}`;
		c.at(".more").replaceChildren(link);
	}
}

async function look() {
	const response = await fetch("report.json");
	if (!response.ok) throw new Error((await response.text()).trim());
	const report = await response.json();
	node.textContent = `on ${report.node}, process ${report.process}`;
	document.title = `Leat on ${report.node}`;
	const sections = report.pipelines.map(show);
	for (const [name, c] of cards) if (!sections.includes(c.section)) { c.section.remove(); cards.delete(name); }
	sections.forEach((s, i) => { if (main.children[i] !== s) main.insertBefore(s, main.children[i] || null); });
	if (looks++ % pictureEvery === 0) await Promise.all(report.pipelines.map(picture));
	state.textContent = report.pipelines.length ? `Live since ${began}` : "No pipeline is shown yet.";
}

const began = new Date().toLocaleTimeString();

async function live() {
	if (pause.getAttribute("aria-pressed") !== "true" && !document.hidden) {
		try {
			await look();
		} catch (error) {
			state.textContent = `No answer: ${error.message}`;
		}
	}
	setTimeout(live, every);
}

pause.addEventListener("click", () => {
	const paused = pause.getAttribute("aria-pressed") !== "true";
	pause.setAttribute("aria-pressed", String(paused));
	pause.textContent = paused ? "Go on" : "Pause";
	state.textContent = paused ? "Paused" : "Asking …";
});

live();
