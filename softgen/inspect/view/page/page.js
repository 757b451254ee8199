"use strict";
// The page of a capture. Data comes as scripts that call softgenData, so that it works from a server and from files alike.

const waiting = new Map();

function softgenData(name, value) {
  const take = waiting.get(name);
  waiting.delete(name);
  if (take) take(value);
}

const loaded = new Map();

function load(name) {
  if (!loaded.has(name)) {
    loaded.set(name, new Promise((resolve) => {
      waiting.set(name, resolve);
      const script = document.createElement("script");
      script.src = `data/${name}.js`;
      script.onerror = () => { waiting.delete(name); loaded.delete(name); resolve({error: `${name} is not in this page`}); };
      document.head.append(script);
    }));
  }
  return loaded.get(name);
}

// An element with properties and children; text is text, never HTML.
function make(tag, properties, ...children) {
  const element = document.createElement(tag);
  Object.assign(element, properties);
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

const byId = (id) => document.getElementById(id);
const stem = (position) => position.replace(":", "-");
const count = (value) => (value === undefined || value === null ? "" : value.toLocaleString("en"));
let index = null, counted = null, current = null, generation = 0;

function plain(value) {
  if (value && typeof value === "object" && !Array.isArray(value) && "value" in value && "name" in value) {
    return value.name === null ? String(value.value) : value.name;
  }
  if (Array.isArray(value)) return value.map((row) => typeof row === "object" ? JSON.stringify(row, (_, part) => plainPart(part)) : row).join("  ");
  return typeof value === "number" && value > 0xffff ? `0x${value.toString(16)}` : String(value);
}

const plainPart = (part) => (part && typeof part === "object" && "value" in part && "name" in part ? part.name ?? part.value : part);

function fields(values, changed = []) {
  return make("table", {}, Object.entries(values).map(([name, value]) =>
    make("tr", {className: changed.includes(name) ? "changed" : value === 0 || value === false ? "dim" : ""},
      make("td", {textContent: name}), make("td", {textContent: plain(value)}))));
}

// -- lists ---------------------------------------------------------------------------------------------------------------------------

function work() {
  return index.submissions.flatMap((submission) => submission.events.filter((event) => event.k === "draw" || event.k === "dispatch"));
}

function timeline() {
  const kind = byId("width").value, rows = work();
  const most = Math.max(1e-9, ...rows.map((event) => event[kind] || 0));
  byId("timeline").replaceChildren(...rows.map((event) => {
    const button = make("button", {className: `${event.k} ${event.p === current ? "current" : ""}`, onclick: () => go(event.p),
      title: `${event.p} ${event.n}: ${count(event.i)} instructions, ${count(event.t)} threads`});
    button.style.flexGrow = kind ? String(0.02 + (event[kind] || 0) / most) : "1";
    return button;
  }));
}

async function list() {
  const text = byId("search").value.trim(), mine = ++generation;
  const found = text.includes("=") ? await byField(text) : null;
  if (mine !== generation) return;
  const rows = [];
  for (const submission of index.submissions) {
    const events = submission.events.filter((event) => found ? found.has(event.p)
      : text ? `${event.p} ${event.n}`.toLowerCase().includes(text.toLowerCase()) : event.k !== "state" || submission.events.length < 2000);
    if (!events.length) continue;
    rows.push(make("div", {className: "head", textContent: `${submission.label} (${submission.engine})`}));
    rows.push(...events.map((event) => make("div", {className: `${event.k} ${event.p === current ? "current" : ""}`, onclick: () => go(event.p),
      textContent: `${event.p.padEnd(7)} ${event.n || "unknown command"}`})));
  }
  byId("list").replaceChildren(...rows);
  const here = byId("list").querySelector(".current");
  if (here) here.scrollIntoView({block: "nearest"});
}

async function byField(text) {
  const [name, value] = text.split("=", 2).map((part) => part.trim().toLowerCase()), found = new Set();
  for (const submission of index.submissions) {
    const commands = await load(`commands-${submission.number}`);
    for (const [position, command] of Object.entries(commands)) {
      for (const [field, held] of Object.entries(command.fields || {})) {
        if (field.toLowerCase().includes(name) && plain(held).toLowerCase() === value) found.add(position);
      }
    }
  }
  return found;
}

// -- one command ---------------------------------------------------------------------------------------------------------------------

async function go(position) {
  current = position;
  history.replaceState(null, "", `#${position}`);
  timeline();
  list();
  const event = index.submissions.flatMap((submission) => submission.events).find((row) => row.p === position);
  const detail = byId("detail");
  if (!event) { detail.replaceChildren(make("p", {className: "bad", textContent: `there is no command ${position}`})); return; }
  detail.replaceChildren(make("h2", {textContent: `${position} ${event.n}`}), make("p", {className: "dim", textContent: "…"}));
  const parts = event.k === "draw" || event.k === "dispatch" ? await drawn(event) : await command(event);
  if (current === position) detail.replaceChildren(make("h2", {textContent: `${position} ${event.n}`}), ...parts);
}

async function command(event) {
  const commands = await load(`commands-${event.p.split(":")[0]}`);
  if (commands.error) return [make("p", {className: "bad", textContent: commands.error})];
  const held = commands[event.p];
  return [fields(held.fields), make("pre", {className: "dim",
    textContent: `at 0x${held.address.toString(16)}: ${held.dwords.map((dword) => dword.toString(16).padStart(8, "0")).join(" ")}`})];
}

async function drawn(event) {
  const data = await load(`event-${stem(event.p)}`);
  if (data.error) return [make("p", {className: "bad", textContent: data.error})];
  const counts = make("p", {className: "dim", textContent: ""}), parts = [counts, fields(data.fields)];
  counted.then(() => { if (event.i !== undefined) counts.textContent = `${count(event.i)} instructions of ${count(event.t)} threads`; });
  if (data.targets.length) parts.push(make("h2", {textContent: "Targets"}), ...data.targets.map((target) => targetView(event, target)));
  if (Object.keys(data.kernels).length) {
    parts.push(make("h2", {textContent: "Shaders"}), ...Object.entries(data.kernels).map(([stage, digest]) => kernelView(stage, digest)));
  }
  if (event.k === "draw") parts.push(meshView(event));
  const shown = data.textures.filter((texture) => !texture.why);
  if (shown.length) parts.push(make("h2", {textContent: "Surfaces"}), make("div", {className: "row"}, shown.map((texture) => make("figure", {},
    make("img", {src: `data/texture-${stem(event.p)}-${texture.number}.png`, width: Math.min(256, Math.max(64, texture.width)), alt: ""}),
    make("figcaption", {textContent: `${texture.number}: ${texture.width} x ${texture.height} ${texture.format}`})))));
  parts.push(make("h2", {textContent: "State"}), make("p", {className: "dim", textContent: "bold: differs from the draw before"}));
  const names = Object.keys(data.state).sort((a, b) => (b in data.changes) - (a in data.changes) || a.localeCompare(b));
  parts.push(...names.map((name) => make("details", {}, make("summary", {className: name in data.changes ? "changed" : "", textContent: name}),
    fields(data.state[name], data.changes[name] || []))));
  parts.push(make("h2", {textContent: "Structures"}), ...data.structures.map((state) => make("details", {},
    make("summary", {textContent: `${state.name} at 0x${state.address.toString(16)}`}), fields(state.fields))));
  return parts;
}

function targetView(event, target) {
  const caption = `target ${target.number}: ${target.width} x ${target.height} ${target.format}`;
  if (target.why) return make("p", {className: "dim", textContent: `${caption}: ${target.why}`});
  const zoom = Math.max(1, Math.floor(320 / target.width)), output = make("div", {});
  const pictures = ["before", "after", "difference"].map((kind) => {
    const image = make("img", {className: "pick", src: `data/picture-${stem(event.p)}-${kind}-${target.number}.png`, alt: kind,
      width: target.width * zoom, onerror: () => image.closest("figure").remove()});
    const label = make("figcaption", {textContent: kind});
    const place = (click) => [click.offsetX, click.offsetY].map((at) => Math.floor(at / zoom));
    image.onmousemove = (move) => { label.textContent = `${kind} (${place(move).join(", ")})`; };
    image.onclick = (click) => pixelHistory(event, target, ...place(click), output);
    return make("figure", {}, image, label);
  });
  return make("div", {}, make("h3", {textContent: `${caption}: click a pixel for its history`}), make("div", {className: "row"}, pictures), output);
}

async function pixelHistory(event, target, x, y, output) {
  output.replaceChildren(make("p", {className: "dim", textContent: `history of pixel (${x}, ${y}) …`}));
  const rows = await load(`history-${stem(event.p)}-${target.number}-${x}-${y}`);
  if (rows.error) { output.replaceChildren(make("p", {className: "bad", textContent: rows.error})); return; }
  const swatch = (colour) => {
    const box = make("span", {className: "swatch"});
    if (colour.length) box.style.background = `rgb(${colour.slice(0, 3).join(",")})`;
    return box;
  };
  output.replaceChildren(make("h3", {textContent: `history of pixel (${x}, ${y})`}), make("table", {className: "history"},
    make("tr", {}, ["command", "", "before", "after", "", "shaded by"].map((text) => make("th", {textContent: text}))),
    rows.map((row) => make("tr", {}, make("td", {textContent: row.position}), make("td", {textContent: row.name}),
      make("td", {textContent: row.before}), make("td", {textContent: row.after}), make("td", {}, swatch(row.color)),
      make("td", {}, row.fragments.map((fragment) => make("div", {textContent: `${shaded(fragment)}: ${outcome(fragment)}`,
        title: `softgen debug CAPTURE --at ${fragment.thread}`})))))));
}

function shaded(fragment) {
  return `${fragment.thread} lane ${fragment.lane}${fragment.sample === null ? "" : ` sample ${fragment.sample}`}`;
}

function outcome(fragment) {
  if (fragment.failed) return fragment.failed.startsWith("the ") ? fragment.failed : `failed: ${fragment.failed}`;
  return fragment.writes.map((write) => write.after).join(", ") || "wrote nothing";
}

function kernelView(stage, digest) {
  const box = make("details", {}, make("summary", {textContent: `${stage}  ${digest}`}));
  box.ontoggle = async () => {
    if (!box.open || box.children.length > 1) return;
    const kernel = await load(`kernel-${digest}`);
    if (kernel.error) { box.append(make("p", {className: "bad", textContent: kernel.error})); return; }
    box.append(make("table", {}, make("tr", {}, ["executed", "lanes", "offset", ""].map((text) => make("th", {textContent: text}))),
      kernel.lines.map((line) => make("tr", {}, ...(line.counts || ["", ""]).map((value) => make("td", {className: "number", textContent: count(value)})),
        make("td", {className: "dim", textContent: line.offset === null ? "" : `0x${line.offset.toString(16).padStart(4, "0")}`}),
        make("td", {}, make("pre", {textContent: line.text}))))));
  };
  return box;
}

function meshView(event) {
  const box = make("details", {}, make("summary", {textContent: "Vertices"}));
  box.ontoggle = async () => {
    if (!box.open || box.children.length > 1) return;
    const mesh = await load(`mesh-${stem(event.p)}`);
    if (mesh.error || !mesh.vertices.length) { box.append(make("p", {className: "dim", textContent: mesh.error || mesh.why})); return; }
    box.append(drawing(mesh), make("table", {}, make("tr", {}, ["", "in", "out"].map((text) => make("th", {textContent: text}))),
      mesh.vertices.map((vertex, number) => make("tr", {}, make("td", {className: "dim", textContent: number, title: `${vertex.thread} lane ${vertex.lane}`}),
        make("td", {}, make("pre", {textContent: vertex.in.map((slot) => slot.join(" ")).join("\n")})),
        make("td", {}, make("pre", {textContent: Object.entries(vertex.out).map(([slot, row]) => `${slot}: ${row.join(" ")}`).join("\n")}))))));
  };
  return box;
}

// Clip coordinates divided by w, as points and numbers.
function drawing(mesh) {
  const canvas = make("canvas", {width: 256, height: 256}), context = canvas.getContext("2d");
  context.fillStyle = context.strokeStyle = getComputedStyle(document.body).color;
  context.strokeRect(32, 32, 192, 192);
  mesh.vertices.forEach((vertex, number) => {
    const row = vertex.out[mesh.position];
    if (!row || row.some((value) => typeof value !== "number")) return;
    const w = row[3] || 1, x = 128 + 96 * row[0] / w, y = 128 + 96 * row[1] / w;
    context.beginPath();
    context.arc(x, y, 3, 0, 7);
    context.fill();
    if (mesh.vertices.length < 40) context.fillText(String(number), x + 5, y - 3);
  });
  return canvas;
}

// -- beginning -----------------------------------------------------------------------------------------------------------------------

async function begin() {
  index = await load("outline");
  if (index.error) { byId("detail").textContent = index.error; return; }
  document.title = `${index.capture} (${index.gpu})`;
  byId("title").textContent = `${index.capture.split("/").pop()} (${index.gpu})`;
  byId("search").oninput = list;
  byId("width").onchange = timeline;
  counted = load("counts").then(withCounts);
  const first = work()[0] || index.submissions.flatMap((submission) => submission.events)[0];
  const asked = decodeURIComponent(location.hash.slice(1)).split("/")[0];
  if (asked || first) await go(asked || first.p);
  document.body.dataset.shown = "yes";
  await counted;
  document.body.dataset.ready = "yes";
}

// Counts come later than the commands: the capture is executed for them.
function withCounts(counts) {
  for (const event of work()) Object.assign(event, (counts.draws || {})[event.p]);
  timeline();
  const problems = counts.error ? [counts.error] : counts.problems;
  if (problems.length) byId("timeline").after(make("p", {className: "bad", textContent: problems.join("; ")}));
}

document.onkeydown = (key) => {
  if (document.activeElement === byId("search") || !["ArrowLeft", "ArrowRight"].includes(key.key)) return;
  const rows = work(), at = rows.findIndex((event) => event.p === current) + (key.key === "ArrowRight" ? 1 : -1);
  if (rows[at]) go(rows[at].p);
};

begin();
