// Runs the page's script under Node.js on the files of an exported page, with as much of a browser as it uses.
"use strict";
const fs = require("fs"), path = require("path"), vm = require("vm");
const folder = process.argv[2], [x, y] = process.argv.slice(3).map(Number), problems = [];

class Element {
  constructor(tag) { this.tag = tag; this.children = []; this.style = {}; this.dataset = {}; this.textContent = ""; this.className = ""; this.value = ""; }
  append(...parts) {
    for (const part of parts) {
      this.children.push(part);
      if (part.tag === "script") {
        const file = path.join(folder, part.src);
        setTimeout(() => fs.existsSync(file) ? vm.runInContext(fs.readFileSync(file, "utf8"), context) : part.onerror(), 0);
      } else if (part.tag === "img" && !fs.existsSync(path.join(folder, part.src))) problems.push(`no ${part.src}`);
    }
  }
  after(...parts) { problems.push(...parts.map((part) => part.text)); }
  prepend(...parts) { this.children.unshift(...parts); }
  replaceChildren(...parts) { this.children = []; this.append(...parts); }
  querySelector() { return null; }
  scrollIntoView() {}
  getContext() { return new Proxy({}, {get: () => () => {}, set: () => true}); }
  get text() { return [this.textContent, ...this.children.map((child) => (typeof child === "string" ? child : child.text))].join(" "); }
  all(tag) { return this.children.filter((child) => child.tag).flatMap((child) => [...(child.tag === tag ? [child] : []), ...child.all(tag)]); }
}

const known = {}, head = new Element("head"), body = new Element("body");
const document = {head, body, activeElement: null, createElement: (tag) => new Element(tag),
  getElementById: (id) => (known[id] = known[id] || new Element("div"))};
known.width = Object.assign(new Element("select"), {value: "i"});
const context = vm.createContext({document, location: {hash: "#2:124"}, history: {replaceState() {}}, getComputedStyle: () => ({}), console,
  setTimeout, decodeURIComponent, Map, Set, Promise, Object, Math, String, JSON, Array});
process.on("unhandledRejection", (error) => { console.error(error); process.exit(1); });
vm.runInContext(fs.readFileSync(path.join(folder, "page.js"), "utf8"), context);
const later = (time) => new Promise((resolve) => setTimeout(resolve, time));

(async () => {
  while (body.dataset.ready !== "yes") await later(5);
  const detail = known.detail, picture = detail.all("img").find((image) => image.alt === "after"), zoom = picture.width / 64;
  picture.onclick({offsetX: x * zoom, offsetY: y * zoom});
  await later(200);
  const shader = detail.all("details").find((box) => box.all("summary")[0].textContent.startsWith("ps")), mesh = detail.all("details")
    .find((box) => box.all("summary")[0].textContent === "Vertices");
  for (const box of [shader, mesh]) { box.open = true; await box.ontoggle(); }
  known.search.value = "vertex_count_per_instance=3";
  await known.search.oninput();
  console.log(JSON.stringify({title: document.title, buttons: known.timeline.all("button").length, rows: known.list.all("div").map((row) => row.textContent),
    detail: detail.text, problems}));
})();
