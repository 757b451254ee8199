"""The page of results: what went wrong, by its first error, with logs, pictures side by side and captures; one file beside the results."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path
from urllib.parse import quote

from softgen.inspect.farm.expectations import Expectations
from softgen.inspect.farm.summary import FarmSummary
from softgen.inspect.farm.unit import RESULTS, UnitResult

GROUPS, MEMBERS, SLOW, PICTURES = 200, 100, 20, 200  # rows of each kind; the lines of JSON have the rest
STYLE = """
:root { --ground: #fbfbf9; --text: #1d2125; --dim: #667079; --line: #d4d8dc; --panel: #f1f2f0; --link: #0b5cad; --bad: #c0392b;
  --good: #1a7f37; }
@media (prefers-color-scheme: dark) { :root { --ground: #16191d; --text: #dfe3e6; --dim: #939da6; --line: #3d4650; --panel: #1f2429;
  --link: #74b3f5; --bad: #ff7b72; --good: #56d364; } }
body { margin: 0 auto; max-width: 1240px; padding: 20px 24px 80px; background: var(--ground); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif; }
a { color: var(--link); } code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; }
table { border-collapse: collapse; }
td, th { padding: 3px 14px 3px 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
td.number { text-align: right; } .bad { color: var(--bad); } .good { color: var(--good); } .dim { color: var(--dim); }
details { margin: 6px 0; padding: 6px 12px; background: var(--panel); border-radius: 6px; } summary { cursor: pointer; }
.row { display: flex; flex-wrap: wrap; gap: 10px; margin: 6px 0 14px; }
figure { margin: 0; } figcaption { font-size: 12px; color: var(--dim); }
img { max-width: 320px; min-width: 64px; image-rendering: pixelated; border: 1px solid var(--line); background: #888; }
"""


def page(folder: Path, results: list[UnitResult], expected: Expectations, summary: FarmSummary, notes: Iterable[str]) -> str:
    """The whole page."""
    wrong = [result for result in results if expected.verdict(result.name, result.gpu, result.result) == "unexpected"]
    return "\n".join([
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<title>softgen farm: {escape(folder.name)}</title><link rel="icon" href="data:,"><style>{STYLE}</style></head><body>',
        f"<h1>{escape(folder.resolve().name)}</h1>", *counts(summary), *(f"<p>{escape(note)}</p>" for note in notes),
        *failures(folder, wrong), *side_by_side(folder, results), *slowest(results), "</body></html>\n",
    ])  # fmt: skip


def counts(summary: FarmSummary) -> Iterator[str]:
    words = (*RESULTS, "missing", "expected", "flake", "unexpected")
    good, text = ("good", "All units are as expected.") if summary.fine else ("bad", "Not all units are as expected.")
    yield f'<p class="{good}">{text}</p>'
    yield "<table><tr><th>GPU</th>" + "".join(f"<th>{word}</th>" for word in words) + "</tr>"
    for gpu, found in sorted(summary.counts.items()):
        yield f"<tr><td>{escape(gpu)}</td>" + "".join(f'<td class="number">{found[word]:,}</td>' for word in words) + "</tr>"
    yield "</table>"


def failures(folder: Path, wrong: list[UnitResult]) -> Iterator[str]:
    """Units that went wrong, those of the same result and first error together, the most frequent first."""
    groups: dict[tuple[str, str], list[UnitResult]] = {}
    for result in wrong:
        groups.setdefault((result.result, result.message), []).append(result)
    if groups:
        yield f"<h2>{len(wrong):,} went wrong, in {len(groups):,} ways</h2>"
    for (word, message), members in sorted(groups.items(), key=lambda group: -len(group[1]))[:GROUPS]:
        yield f'<details{" open" if len(groups) <= 5 else ""}><summary><b class="bad">{word}</b> {len(members):,} ×'
        yield f"<code>{escape(message or '-')}</code></summary>"
        for result in members[:MEMBERS]:
            yield from unit(folder, result)
        yield f"<p>and {len(members) - MEMBERS:,} more</p></details>" if len(members) > MEMBERS else "</details>"
    if len(groups) > GROUPS:
        yield f"<p>and {len(groups) - GROUPS:,} more ways</p>"


def unit(folder: Path, result: UnitResult) -> Iterator[str]:
    """A unit with what it left behind."""
    name, seconds, links = escape(result.name), f"{result.seconds:.1f} s", []
    if (folder / "logs" / f"{result.key}.txt").exists():
        links.append(f'<a href="logs/{result.key}.txt">log</a>')
    if (folder / "captures" / result.key).is_dir():
        capture = folder / "captures" / result.key
        if (folder / "view" / result.key / "index.html").exists():
            links.append(f'<a href="view/{result.key}/index.html">view</a>')
        links.append(f'<a href="captures/{result.key}/">capture</a> <code>softgen replay {escape(shlex.quote(os.fspath(capture)))}</code>')
    yield f'<p>{escape(result.gpu)} <code>{name}</code> <span class="dim">{seconds}</span> {" · ".join(links)}</p>'
    yield from row(folder, [result])


def row(folder: Path, results: list[UnitResult]) -> Iterator[str]:
    """The pictures of units beside each other."""
    found = [(result, path) for result in results for path in pictures(folder, result)]
    if found:
        yield '<div class="row">'
        for result, path in found:
            name = f"{result.gpu}: {path.stem}" if len(results) > 1 else path.stem
            target = quote(path.relative_to(folder).as_posix())
            yield f'<figure><a href="{target}"><img src="{target}" loading="lazy" alt=""></a>'
            yield f"<figcaption>{escape(name)}</figcaption></figure>"
        yield "</div>"


def pictures(folder: Path, result: UnitResult) -> list[Path]:
    return sorted((folder / "pictures" / result.key).rglob("*.png"))


def side_by_side(folder: Path, results: list[UnitResult]) -> Iterator[str]:
    """Units that drew something, on all their GPUs."""
    drawn: dict[str, list[UnitResult]] = {}
    for result in results:
        if result.good and pictures(folder, result):
            drawn.setdefault(result.name, []).append(result)
    if drawn:
        yield "<h2>Pictures</h2>"
    for name, members in list(drawn.items())[:PICTURES]:
        yield f"<p><code>{escape(name)}</code></p>"
        yield from row(folder, members)
    if len(drawn) > PICTURES:
        yield f"<p>and those of {len(drawn) - PICTURES:,} more units</p>"


def slowest(results: list[UnitResult]) -> Iterator[str]:
    if results:
        yield "<h2>Slowest</h2><table>"
        for result in sorted(results, key=lambda result: -result.seconds)[:SLOW]:
            yield (f'<tr><td class="number">{result.seconds:.1f} s</td><td>{escape(result.gpu)}</td><td>{result.result}</td>'
                   f"<td><code>{escape(result.name)}</code></td></tr>")  # fmt: skip
        yield "</table>"
