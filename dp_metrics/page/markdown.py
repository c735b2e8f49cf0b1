"""A page as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape

from dp_metrics.page.contents import Section, Table

_MEANING = re.compile(r"([\\`*_{}\[\]()#+!|~$])")


def markdown(sections: Sequence[Section]) -> str:
    """Return the page as Markdown."""
    lines = ["# Private evaluation", ""]
    for section in sections:
        lines += _section(section)
    return "\n".join(lines)


def _section(section: Section) -> Iterator[str]:
    yield from (f"## {section.title}", "", section.sentence, "")
    for line in section.lines:
        yield from (_escaped(line), "")
    for table in section.tables:
        yield from _table(table)


def _table(table: Table) -> Iterator[str]:
    yield from (f"**{_escaped(table.caption)}**", "")
    yield _row(table.columns)
    yield _row(["---"] * len(table.columns), escape=False)
    for row in table.rows:
        yield _row([f"{cell.text} (mostly noise)" if cell.is_noise else cell.text for cell in row])
    yield ""
    for at, note in enumerate(table.notes, 1):
        yield from (f"\\[{at}\\] {_escaped(note)}", "")


def _row(cells: Sequence[str], *, escape: bool = True) -> str:
    return f"| {' | '.join(_escaped(cell) if escape else cell for cell in cells)} |"


def _escaped(text: str) -> str:
    """Return text from users as text: nothing in it is a sign of Markdown or of HTML."""
    return _MEANING.sub(r"\\\1", escape(" ".join(text.split()), quote=False))
