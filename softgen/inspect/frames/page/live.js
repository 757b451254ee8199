// The page of a running program: its frames, what it costs, and input back to it. No library, no build step.
"use strict";
const find = id => document.getElementById(id);
const screen_ = find("screen"), context = screen_.getContext("2d");
const times = [];

async function frames() {
  for (let after = 0; ; ) {
    try {
      const answer = await fetch(`frame/${after}`);
      const number = Number(answer.headers.get("X-Frame"));
      if (!answer.ok || number === after) { if (!answer.ok) await pause(1000); continue; }
      const picture = await createImageBitmap(await answer.blob());
      if (screen_.width !== picture.width || screen_.height !== picture.height) {
        screen_.width = picture.width; screen_.height = picture.height;
      }
      context.drawImage(picture, 0, 0);
      after = number;
    } catch { find("state").textContent = "the run has ended"; return; }
  }
}

const pause = time => new Promise(done => setTimeout(done, time));

function cell(text, number) {
  const made = document.createElement("td");
  made.textContent = text;
  if (number) made.className = "number";
  return made;
}

async function status() {
  for (;;) {
    try { show(await (await fetch("status.json")).json()); } catch { return; }
    await pause(1000);
  }
}

function show(found) {
  find("title").textContent = [found.program, found.gpu].filter(Boolean).join(" on ") || "softgen";
  if (found.frames) find("rate").textContent = `${found.frames.presented} frames, ${found.frames.per_second.toFixed(1)} a second`;
  find("state").textContent = found.running === false ? "the program has ended" : "";
  find("kernels").replaceChildren(...(found.kernels || []).map(kernel => {
    const row = document.createElement("tr");
    row.append(cell(kernel.kernel), cell(kernel.code), cell(kernel.threads.toLocaleString("en"), true), cell(kernel.seconds.toFixed(3), true));
    return row;
  }));
  const lines = [...(found.faults || []).map(text => [text, "bad"]), ...(found.messages || []).map(text => [text, ""])];
  find("messages").replaceChildren(...lines.map(([text, kind]) => {
    const line = document.createElement("li");
    line.textContent = text; line.className = kind;
    return line;
  }));
}

// -- input: keys by their place on the keyboard (KeyboardEvent.code), the pointer in thousandths of the screen

let pending = [], sending = false;
async function send(event) {
  const last = pending[pending.length - 1];
  if (event.kind === "move" && last && last.kind === "move") pending.pop();
  pending.push(event);
  if (sending) return;
  sending = true;
  while (pending.length) {
    const body = JSON.stringify(pending.splice(0, 64));
    try { await fetch("input", { method: "POST", body }); } catch { pending = []; }
  }
  sending = false;
}

function place(event) {
  const box = screen_.getBoundingClientRect();
  const part = (value, start, size) => Math.max(0, Math.min(1, (value - start) / size));
  return { x: part(event.clientX, box.left, box.width), y: part(event.clientY, box.top, box.height) };
}
for (const [name, down] of [["keydown", true], ["keyup", false]])
  screen_.addEventListener(name, event => { event.preventDefault(); if (!event.repeat) send({ kind: "key", code: event.code, down }); });
screen_.addEventListener("mousemove", event => send({ kind: "move", ...place(event) }));
for (const [name, down] of [["mousedown", true], ["mouseup", false]])
  screen_.addEventListener(name, event => { screen_.focus(); event.preventDefault(); send({ kind: "button", button: event.button, down, ...place(event) }); });
screen_.addEventListener("wheel", event => { event.preventDefault(); send({ kind: "wheel", y: Math.sign(event.deltaY) }); }, { passive: false });
screen_.addEventListener("contextmenu", event => event.preventDefault());

frames();
status();
