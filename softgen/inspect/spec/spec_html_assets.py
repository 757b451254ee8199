"""The look and the search of the browsable reference: one style sheet and one script, both written beside the pages."""

STYLE = """\
:root {
  --ground: #fbfbf9; --text: #1d2125; --dim: #667079; --line: #d4d8dc; --panel: #f1f2f0; --link: #0b5cad; --mark: #fff1b8;
  --field: #e3effa; --header: #ece7f6; --length: #e4f3e6; --group: #fbecd9; --reserved: #f1f2f0;
  --good: #1a7f37; --bad: #c0392b; --warn: #9a6700;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #16191d; --text: #dfe3e6; --dim: #939da6; --line: #3d4650; --panel: #1f2429; --link: #74b3f5; --mark: #57480f;
    --field: #1d3347; --header: #322a48; --length: #1f3a25; --group: #46341c; --reserved: #1f2429;
    --good: #56d364; --bad: #ff7b72; --warn: #e3b341;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--text); font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif; }
a { color: var(--link); text-decoration: none; }
a:hover { text-decoration: underline; }
code, .diagram, .name, td.bits, td.number { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 13px; }
header { position: sticky; top: 0; z-index: 2; display: flex; gap: 16px; align-items: center; padding: 10px 24px;
         background: var(--panel); border-bottom: 1px solid var(--line); }
header a.home { font-weight: 600; white-space: nowrap; }
.search { position: relative; flex: 1; max-width: 640px; }
.search input { width: 100%; padding: 7px 12px; font: inherit; color: inherit; background: var(--ground);
                border: 1px solid var(--line); border-radius: 6px; }
.search input:focus { outline: 2px solid var(--link); outline-offset: -1px; }
.found { position: absolute; left: 0; right: 0; top: 100%; margin: 4px 0 0; padding: 4px; list-style: none; background: var(--ground);
         border: 1px solid var(--line); border-radius: 6px; max-height: 70vh; overflow: auto; box-shadow: 0 8px 24px #0003; }
.found[hidden] { display: none; }
.found a { display: flex; justify-content: space-between; gap: 16px; padding: 4px 8px; border-radius: 4px; color: inherit; }
.found a.at, .found a:hover { background: var(--field); text-decoration: none; }
.found .none { padding: 4px 8px; color: var(--dim); }
main { max-width: 1240px; margin: 0 auto; padding: 20px 24px 80px; }
h1 { margin: 0; font-size: 24px; }
h2 { margin: 32px 0 8px; font-size: 18px; }
h3 { margin: 20px 0 6px; font-size: 15px; }
.dim, .source, small { color: var(--dim); }
.source { white-space: nowrap; font-size: 13px; }
.kind { display: inline-block; padding: 0 8px; border-radius: 10px; background: var(--panel); border: 1px solid var(--line);
        font-size: 12px; color: var(--dim); }
.tabs { display: flex; flex-wrap: wrap; gap: 4px; margin: 20px 0 0; border-bottom: 1px solid var(--line); }
.tabs button { padding: 7px 14px; font: inherit; color: var(--dim); background: none; border: 1px solid transparent; border-bottom: 0;
               border-radius: 6px 6px 0 0; cursor: pointer; }
.tabs button:hover { color: var(--text); }
.tabs button[aria-selected=true] { color: var(--text); font-weight: 600; background: var(--panel); border-color: var(--line); }
section.tab { padding-top: 12px; }
.facts { display: flex; flex-wrap: wrap; gap: 4px 24px; margin: 4px 0 12px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; }
table.fields { width: 100%; }
table.fields th { text-align: left; font-weight: 600; color: var(--dim); font-size: 13px; }
table.fields td, table.fields th { padding: 3px 12px 3px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
table.fields tr { scroll-margin-top: 90px; }
table.fields tr:target { background: var(--mark); }
td.bits { white-space: nowrap; }
td.name { min-width: 190px; }
td.number { text-align: right; }
table.fields td { font-size: 14px; }
details { margin: 2px 0; }
details summary { cursor: pointer; color: var(--dim); }
header nav { display: flex; flex-wrap: wrap; gap: 2px 14px; font-size: 14px; }
ul.values { margin: 2px 0; padding: 0; list-style: none; columns: 2 260px; }
ul.values b { display: inline-block; min-width: 34px; font-weight: 400; color: var(--dim); }
.diagram { table-layout: fixed; width: 100%; min-width: 1000px; margin: 8px 0 16px; font-size: 11px; }
.diagram th { font-weight: 400; color: var(--dim); font-size: 10px; text-align: center; padding: 0; }
.diagram th.dword { width: 56px; text-align: right; padding-right: 8px; font-size: 12px; }
.diagram td { height: 30px; padding: 1px 2px; border: 1px solid var(--line); text-align: center; line-height: 1.15;
              overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.diagram td.field { background: var(--field); }
.diagram td.header { background: var(--header); }
.diagram td.length { background: var(--length); }
.diagram td.group { background: var(--group); }
.diagram td.reserved { background: repeating-linear-gradient(135deg, var(--reserved) 0 4px, transparent 4px 8px); }
.diagram td a { display: block; color: inherit; overflow: hidden; text-overflow: ellipsis; }
.diagram td.hot { outline: 2px solid var(--link); outline-offset: -2px; }
.index details { padding: 4px 0; border-bottom: 1px solid var(--line); }
.index details[open] summary { margin-bottom: 4px; }
.columns { columns: 3 300px; margin: 0; padding: 0; list-style: none; }
.columns li { break-inside: avoid; overflow: hidden; text-overflow: ellipsis; }
@media (max-width: 760px) {
  header { flex-wrap: wrap; padding: 8px 14px; }
  .search { order: 3; flex-basis: 100%; }
  main { padding: 14px 14px 60px; }
  ul.values { columns: 1; }
  h1 { font-size: 20px; }
}
.added { color: var(--good); } .removed { color: var(--bad); } .moved, .renamed, .changed { color: var(--warn); }
footer { max-width: 1240px; margin: 0 auto; padding: 0 24px 40px; color: var(--dim); font-size: 13px; }
"""

SCRIPT = """\
"use strict";
// NAMES is written beside this file: [name, kind, generations, file, fields as one text].
const root = document.documentElement.dataset.root;
const input = document.querySelector(".search input"), list = document.querySelector(".found");
const MOST = 40;
let at = -1;

function score(row, words) {
  const name = row[0].toLowerCase();
  let sum = 0;
  for (const word of words) {
    if (name === word) sum += 100;
    else if (name.startsWith(word)) sum += 50;
    else if (name.includes("_" + word)) sum += 40;
    else if (name.includes(word)) sum += 30;
    else if ((" " + row[4] + " ").includes(" " + word + " ")) sum += 15;
    else if (row[4].includes(word)) sum += 5;
    else if (word.length > 3 && follows(name, word)) sum += 1;
    else return 0;
  }
  const field = best(row, words);
  return sum + (field === words.join("_") ? 60 : field && words.every(word => field.includes(word)) ? 20 : 0) - name.length / 1000;
}

// The field that has most of the words the name has not, and little else.
function best(row, words) {
  const rest = words.filter(word => !row[0].toLowerCase().includes(word));
  if (!rest.length && words.length < 2) return "";
  const count = text => words.filter(word => text.includes(word)).length - text.length / 100;
  const fields = row[4].split(" ").filter(name => (rest.length ? rest : words).every(word => name.includes(word)));
  return fields.reduce((a, b) => a && count(a) >= count(b) ? a : b, "");
}

// A misspelt name: its letters in order, with at most a few others between.
function follows(name, word) {
  let last = -1, gaps = 0;
  for (const letter of word.replaceAll("_", "")) {
    const next = name.indexOf(letter, last + 1);
    if (next < 0) return false;
    if (last >= 0) gaps += next - last - 1;
    last = next;
  }
  return gaps <= word.length;
}

function show() {
  const words = input.value.toLowerCase().split(/[\\s,]+/).filter(Boolean);
  list.hidden = !words.length;
  list.textContent = "";
  at = -1;
  if (!words.length) return;
  const found = NAMES.map(row => [score(row, words), row]).filter(scored => scored[0] > 0).sort((a, b) => b[0] - a[0]);
  for (const [, row] of found.slice(0, MOST)) {
    const link = document.createElement("a"), about = document.createElement("small");
    link.href = root + row[3];
    const field = best(row, words);
    link.textContent = row[0] + (field ? " · " + field : "");
    about.textContent = row[1] + " · " + row[2];
    link.append(about);
    const item = document.createElement("li");
    item.append(link);
    list.append(item);
  }
  if (!found.length) list.innerHTML = "<li class=none>nothing is called so</li>";
  else move(0);
}

function move(to) {
  const links = list.querySelectorAll("a");
  if (!links.length) return;
  if (at >= 0) links[at].classList.remove("at");
  at = (to + links.length) % links.length;
  links[at].classList.add("at");
  links[at].scrollIntoView({block: "nearest"});
}

input.addEventListener("input", show);
input.addEventListener("keydown", event => {
  if (event.key === "ArrowDown") { move(at + 1); event.preventDefault(); }
  else if (event.key === "ArrowUp") { move(at - 1); event.preventDefault(); }
  else if (event.key === "Enter") list.querySelectorAll("a")[at]?.click();
  else if (event.key === "Escape") { input.value = ""; show(); }
});
document.addEventListener("keydown", event => {
  if (event.key === "/" && document.activeElement !== input) { input.focus(); event.preventDefault(); }
});
document.addEventListener("click", event => { if (!event.target.closest(".search")) list.hidden = true; });
input.addEventListener("focus", () => { if (input.value) list.hidden = false; });

// index.html?q=word asks at once.
const query = new URLSearchParams(location.search).get("q");
if (query) { input.value = query; input.focus(); show(); }

// Tabs: one section for each group of generations that read alike; the choice is remembered by generation.
const tabs = [...document.querySelectorAll(".tabs button")];
function choose(tab, keep) {
  for (const button of tabs) {
    button.setAttribute("aria-selected", button === tab);
    document.getElementById(button.dataset.tab).hidden = button !== tab;
  }
  if (keep) try { localStorage.setItem("generation", tab.dataset.last); } catch {}
}
function tabOf(generation) { return tabs.find(tab => tab.dataset.generations.split(" ").includes(generation)); }
for (const tab of tabs) tab.addEventListener("click", () => choose(tab, true));
if (tabs.length) {
  let kept = null;
  try { kept = localStorage.getItem("generation"); } catch {}
  const asked = document.getElementById(location.hash.slice(1));
  const inside = asked && asked.closest("section.tab");
  choose(tabs.find(tab => inside && tab.dataset.tab === inside.id) || tabOf(kept) || tabs[tabs.length - 1]);
  if (asked) asked.scrollIntoView({block: "center"});
}

// A field's cells light up together, and with its line in the table.
for (const cell of document.querySelectorAll(".diagram [data-field]")) {
  const same = cell.closest("section").querySelectorAll(`[data-field="${cell.dataset.field}"]`);
  cell.addEventListener("mouseenter", () => same.forEach(cell => cell.classList.add("hot")));
  cell.addEventListener("mouseleave", () => same.forEach(cell => cell.classList.remove("hot")));
}
"""
