"""The browsable reference: every name of the catalogue on a page of its own, with an index and a search. Static files only.

    write("reference")        reference/index.html, item/NAME.html, enum/NAME.html, style.css, search.js, names.js
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from html import escape
from pathlib import Path

from softgen.bits.catalogue import catalogue
from softgen.bits.layout import GENERATIONS, Layout
from softgen.bits.page import KINDS
from softgen.errors import SoftgenError
from softgen.inspect.spec import spec_html_page as pages
from softgen.inspect.spec.spec_html_assets import SCRIPT, STYLE
from softgen.inspect.spec.spec_html_page import PLURALS, Tab
from softgen.inspect.spec.spec_names import known

OWN = ("item", "enum")  # folders that are ours to clear
MARK = "const NAMES = "  # how names.js begins: what a folder of ours is known by


class Reference:
    """Names with their pages, and the references between them."""

    def __init__(self) -> None:
        self.items = catalogue().names()
        self.enums = known("enum")
        self.tabs: dict[str, list[Tab]] = {name: _alike(name) for name in self.items}
        self._users: defaultdict[str, set[str]] = defaultdict(set)
        for name in self.items:
            for layout, _ in self.tabs[name]:
                for target in _targets(layout):
                    self._users[target].add(name)

    def file(self, name: str) -> str:
        """Where a name's page is; a structure and an enumeration may share a name."""
        if name in self.tabs:
            return f"item/{name}.html"
        return f"enum/{name}.html" if name in self.enums else ""

    def to(self, name: str) -> str:
        file = self.file(name)
        return f'<a href="../{file}">{escape(name)}</a>' if file else escape(name)

    def users(self, name: str) -> list[str]:
        return sorted(self._users[name] - {name})


def _targets(layout: Layout) -> Iterator[str]:
    for field, groups in layout.walk():
        yield from [field.type.target] if field.type.target else []
        yield from (group.of for group in groups if group.of)


def _alike(name: str) -> list[Tab]:
    """Generations with the same layout share a tab."""
    found: list[Tab] = []
    for gen, layout in sorted(catalogue().history(name).items()):
        if found and _look(found[-1][0]) == _look(layout):
            found[-1][1].append(gen)
        else:
            found.append((layout, [gen]))
    return found


def _look(layout: Layout) -> tuple[object, ...]:
    fields = [(field.name, field.pieces, field.type, field.when, groups) for field, groups in layout.walk()]
    return layout.dwords, layout.maximum, layout.key, layout.engines, [(*row[:4], [g.name for g in row[4]]) for row in fields]


def write(folder: str) -> int:
    """Write all pages; their number."""
    root = Path(folder)
    try:
        return _write(root)
    except (OSError, ValueError) as error:
        name = getattr(error, "filename", None) or root
        raise SoftgenError(f"{name}: cannot be written: {getattr(error, 'strerror', None) or error}") from None


def _write(root: Path) -> int:
    _prepare(root)
    book = Reference()
    names = f"{MARK}{json.dumps(list(_names(book)), separators=(',', ':'))};\n"
    written = {"index.html": pages.frame("softgen spec", "", _index(book)), "style.css": STYLE, "search.js": SCRIPT}
    for name, tabs in book.tabs.items():
        written[f"item/{name}.html"] = pages.frame(f"{name} · softgen spec", "../", pages.item(name, tabs, book))
    for name in book.enums:
        written[f"enum/{name}.html"] = pages.frame(f"{name} · softgen spec", "../", pages.enumeration(name, book))
    (root / "names.js").write_text(names, "utf-8")  # first: a run that is cut short can be run again
    _clear(root)
    for file, text in written.items():
        (root / file).write_text(text, "utf-8")
    return len(book.items) + len(book.enums) + 1


def _prepare(root: Path) -> None:
    """Create the output folder; one that exists must be empty or written by an earlier run. It stays so
    while the pages are made."""
    names = root / "names.js"
    ours = names.is_file() and names.read_bytes().startswith(MARK.encode())
    if root.is_dir() and any(root.iterdir()) and not ours:
        raise SoftgenError(f"{root}: is not empty and holds no reference of softgen; name another folder")
    if root.exists() and not root.is_dir():
        raise SoftgenError(f"{root}: is no folder")
    root.mkdir(parents=True, exist_ok=True)


def _clear(root: Path) -> None:
    """Create the folders of pages, without those of an earlier run."""
    for folder in OWN:
        (root / folder).mkdir(parents=True, exist_ok=True)
        for old in (root / folder).glob("*.html"):
            old.unlink()


def _names(book: Reference) -> Iterator[list[str]]:
    for name, tabs in book.tabs.items():
        fields = {field.name for layout, _ in tabs for field, _ in layout.walk()}
        gens = " ".join(f"{gen:g}" for _, gens in tabs for gen in gens)
        yield [name, tabs[0][0].kind, gens, book.file(name), " ".join(sorted(fields))]
    for name in book.enums:
        values = {text for gen in GENERATIONS for text in catalogue().enumeration(name, gen).values()}
        yield [name, "enum", "", f"enum/{name}.html", " ".join(sorted(values)).lower()]


def _index(book: Reference) -> Iterator[str]:
    total = len(book.items)
    yield f"<h1>Intel Gen graphics: commands, structures, registers</h1><p class=\"dim\">{total} names and {len(book.enums)} enumerations"
    yield f" of generations {', '.join(f'{gen:g}' for gen in GENERATIONS)} ({pages.gpus(GENERATIONS)}). Press / to search.</p>"
    yield '<div class="index">'
    for kind in KINDS:
        units: defaultdict[str, list[str]] = defaultdict(list)
        for name, tabs in book.tabs.items():
            if tabs[0][0].kind == kind:
                units[tabs[0][0].page.removesuffix(".layout")].append(name)
        yield f'<h2 id="{kind}">{PLURALS[kind]} <small>{sum(map(len, units.values()))}</small></h2>'
        for unit, names in sorted(units.items()):
            links = "".join(f'<li><a href="item/{name}.html">{escape(name)}</a></li>' for name in names)
            opened = " open" if kind == "command" else ""
            yield f'<details{opened}><summary>{escape(unit)} ({len(names)})</summary><ul class="columns">{links}</ul></details>'
    links = "".join(f'<li><a href="enum/{name}.html">{escape(name)}</a></li>' for name in book.enums)
    yield "</div>"
    yield f'<h2 id="enum">Enumerations <small>{len(book.enums)}</small></h2><ul class="columns">{links}</ul>'
