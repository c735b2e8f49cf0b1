"""How results, budgets and summaries look in a notebook: a small card, in which all text is escaped."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

_STYLE = """
.dp-metrics{box-sizing:border-box;display:inline-block;max-width:100%;overflow-x:auto;
border:1px solid #8888;border-radius:4px;padding:.4em .8em;
font-family:sans-serif;font-size:.9em;color:inherit}
.dp-metrics b{font-family:monospace}
.dp-metrics table{border-collapse:collapse;margin:.4em 0 0;color:inherit;background:none}
.dp-metrics th,.dp-metrics td{text-align:left;vertical-align:top;padding:.15em 1em .15em 0;max-width:40em;
white-space:normal;background:none;color:inherit}
.dp-metrics td:first-child{white-space:nowrap}
.dp-metrics thead th{border-bottom:1px solid #8888}
"""


def rounded(value: Any) -> str:
    """Return a number with six digits, and anything else as text."""
    return f"{value:.6g}" if isinstance(value, float) else "" if value is None else str(value)


def card(
    title: str, facts: Mapping[str, Any], columns: Sequence[str] = (), rows: Sequence[Sequence[Any]] = ()
) -> str:
    """Return a card with a title, a line for each fact that is known, and a table if it has columns."""
    lines = "".join(
        f"<tr><th scope='row'>{escape(name)}</th><td>{escape(rounded(value))}</td></tr>"
        for name, value in facts.items()
        if value is not None
    )
    parts = [f"<b>{escape(title)}</b>", f"<table><tbody>{lines}</tbody></table>" if lines else ""]
    if columns:
        head = "".join(f"<th scope='col'>{escape(name)}</th>" for name in columns)
        body = "".join(
            f"<tr>{''.join(f'<td>{escape(rounded(cell))}</td>' for cell in row)}</tr>" for row in rows
        )
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
    return f"<div class='dp-metrics'><style>{_STYLE}</style>{''.join(parts)}</div>"


class HtmlRepr:
    """What a notebook shows of an object: its name and its public facts, by default the text of its repr."""

    def _facts(self) -> Mapping[str, Any]:
        """Return what there is to show, by name."""
        return {"": repr(self)}

    def _repr_html_(self) -> str:
        """Return the card."""
        return card(type(self).__name__, self._facts())
