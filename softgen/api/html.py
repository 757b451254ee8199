"""Tables for notebooks: what `_repr_html_` of the API's objects is made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

MOST_ROWS = 200


def table(caption: str, header: Sequence[str], rows: Iterable[Sequence[object]], limit: int = MOST_ROWS) -> str:
    """A table; rows beyond the limit are counted, not shown."""
    cells: list[str] = []
    rest = 0
    for row in rows:
        if len(cells) < limit:
            cells.append("<tr>" + "".join(f"<td style='text-align:left'>{escape(str(cell))}</td>" for cell in row) + "</tr>")
        else:
            rest += 1
    head = "".join(f"<th style='text-align:left'>{escape(name)}</th>" for name in header)
    more = f"<tr><td colspan='{len(header)}'>… {rest:,} more</td></tr>" if rest else ""
    return f"<table><caption style='text-align:left'>{escape(caption)}</caption><tr>{head}</tr>{''.join(cells)}{more}</table>"
