"use strict";
// Draws digits, brings them into MNIST's form, and asks the server which ones they are.

const canvas = document.getElementById("canvas");
const paper = canvas.getContext("2d", { willReadFrequently: true });
const digit = document.getElementById("digit");
const note = document.getElementById("note");
const pen = document.getElementById("pen");
const size = canvas.width;

// The drawing is kept apart from what is shown: ink is white on black, as in MNIST.
const ink = new OffscreenCanvas(size, size).getContext("2d", { willReadFrequently: true });
const cursor = { x: size / 2, y: size / 2, down: false, shown: false };
let last = null; // the point that the pointer was at
let asked = 0;   // requests so far: older answers than the newest are not shown

const rows = [...Array(10).keys()].map((d) => {
	const li = document.createElement("li");
	const name = document.createElement("span");
	name.textContent = d;
	const bar = document.createElement("meter");
	bar.setAttribute("aria-label", `digit ${d}`);
	const share = document.createElement("span");
	li.append(name, bar, share);
	document.getElementById("shares").append(li);
	return { li, bar, share };
});

function show() {
	const dark = matchMedia("(prefers-color-scheme: dark)").matches;
	paper.clearRect(0, 0, size, size);
	paper.filter = dark ? "none" : "invert(1)";
	paper.globalCompositeOperation = dark ? "lighten" : "source-over";
	paper.drawImage(ink.canvas, 0, 0);
	paper.filter = "none";
	paper.globalCompositeOperation = "source-over";
	if (cursor.shown && document.activeElement === canvas) {
		paper.strokeStyle = cursor.down ? "#d14900" : "#808080";
		paper.lineWidth = 3;
		paper.beginPath();
		paper.arc(cursor.x, cursor.y, 12, 0, 2 * Math.PI);
		paper.stroke();
	}
}

function clear() {
	ink.fillStyle = "black";
	ink.fillRect(0, 0, size, size);
	asked++;
	digit.textContent = "?";
	note.textContent = "Nothing is drawn yet.";
	rows.forEach((r) => { r.bar.value = 0; r.share.textContent = ""; r.li.className = ""; });
	show();
}

function line(from, to) {
	ink.strokeStyle = "white";
	ink.lineWidth = 22;
	ink.lineCap = ink.lineJoin = "round";
	ink.beginPath();
	ink.moveTo(from.x, from.y);
	ink.lineTo(to.x + .01, to.y);
	ink.stroke();
	show();
}

// image is the drawing as MNIST has its digits: 20 pixels high or wide, and its centre of
// mass in the middle of 28×28. It is null if there is none.
function image() {
	const all = ink.getImageData(0, 0, size, size).data;
	let [left, right, top, bottom, mass, mx, my] = [size, -1, size, -1, 0, 0, 0];
	for (let y = 0; y < size; y++) for (let x = 0; x < size; x++) {
		const v = all[4 * (y * size + x)];
		if (v === 0) continue;
		[left, right, top, bottom] = [Math.min(left, x), Math.max(right, x), Math.min(top, y), Math.max(bottom, y)];
		mass += v; mx += v * x; my += v * y;
	}
	if (mass === 0) return null;
	const scale = 20 / (Math.max(right - left, bottom - top) + 1);
	const small = new OffscreenCanvas(28, 28).getContext("2d", { willReadFrequently: true });
	small.fillStyle = "black";
	small.fillRect(0, 0, 28, 28);
	small.imageSmoothingQuality = "high";
	small.setTransform(scale, 0, 0, scale, 14 - scale * mx / mass, 14 - scale * my / mass);
	small.drawImage(ink.canvas, 0, 0);
	const data = small.getImageData(0, 0, 28, 28).data;
	return Uint8Array.from({ length: 784 }, (_, i) => data[4 * i]);
}

async function ask() {
	const body = image();
	if (!body) return;
	const number = ++asked;
	try {
		const response = await fetch("digit", { method: "POST", body });
		if (!response.ok) throw new Error((await response.text()).trim());
		const answer = await response.json();
		if (number !== asked) return;
		digit.textContent = answer.digit;
		note.textContent = `It is a ${answer.digit} (${(100 * answer.shares[answer.digit]).toFixed(0)}% sure).`;
		rows.forEach((r, d) => {
			r.bar.value = answer.shares[d];
			r.share.textContent = `${(100 * answer.shares[d]).toFixed(1)}%`;
			r.li.className = d === answer.digit ? "best" : "";
		});
	} catch (error) {
		if (number !== asked) return;
		digit.textContent = "?";
		note.textContent = `The server has no answer: ${error.message}`;
	}
}

function at(event) {
	const box = canvas.getBoundingClientRect();
	return { x: (event.clientX - box.left) * size / box.width, y: (event.clientY - box.top) * size / box.height };
}

canvas.addEventListener("pointerdown", (event) => {
	canvas.setPointerCapture(event.pointerId);
	cursor.shown = false;
	last = at(event);
	line(last, last);
});
canvas.addEventListener("pointermove", (event) => {
	if (!last) return;
	const to = at(event);
	line(last, to);
	last = to;
});
for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => {
	if (!last) return;
	last = null;
	ask();
});

const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
canvas.addEventListener("keydown", (event) => {
	const move = moves[event.key];
	if (move) {
		const from = { x: cursor.x, y: cursor.y };
		cursor.x = Math.min(Math.max(cursor.x + 10 * move[0], 10), size - 10);
		cursor.y = Math.min(Math.max(cursor.y + 10 * move[1], 10), size - 10);
		if (cursor.down) { line(from, cursor); ask(); }
	} else if (event.key === " ") {
		cursor.down = !cursor.down;
		pen.textContent = cursor.down ? "The pen is down." : "The pen is up.";
		if (cursor.down) { line(cursor, cursor); ask(); }
	} else if (event.key === "Delete" || event.key === "Backspace") {
		clear();
	} else {
		return;
	}
	cursor.shown = true;
	event.preventDefault();
	show();
});
canvas.addEventListener("focus", show);
canvas.addEventListener("blur", show);
document.getElementById("clear").addEventListener("click", () => { clear(); canvas.focus(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
clear();
