"""`dp-metrics report`: the results as one HTML page that needs nothing else."""

import html
import io
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from dp_metrics.evaluation.claims import Finding, Table
from dp_metrics.evaluation.datasets import get_dataset
from dp_metrics.evaluation.experiment import ERROR_CAP
from dp_metrics.evaluation.figures import Panel, panels_of, save_legend, save_panel
from dp_metrics.evaluation.findings import find
from dp_metrics.evaluation.plots import MECHANISM_NAMES
from dp_metrics.evaluation.population import Task
from dp_metrics.evaluation.protocol import EXACT_REPEATS, SAMPLE_SIZE
from dp_metrics.evaluation.results import ResultRow, ResultsError, ResultsFile
from dp_metrics.evaluation.studies import STUDIES, Study
from dp_metrics.evaluation.summary import summarise

__all__ = ["report_page", "write_report"]

_STYLE = """
:root { color-scheme: light; --line: #d8d8d8; --soft: #f5f6f8; --ink: #1c1e21; --blue: #00558c; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 0 1rem 3rem; color: var(--ink); background: #fff;
  font: 1rem/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 1.6rem 0 0.4rem; }
h2 { font-size: 1.3rem; margin: 2.4rem 0 0.4rem; border-top: 1px solid var(--line); padding-top: 1.2rem; }
h3 { font-size: 1.05rem; margin: 1.4rem 0 0.3rem; }
p, li { max-width: 46rem; overflow-wrap: anywhere; }
a { color: var(--blue); }
.panels { display: grid; gap: 0.5rem 1rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 19rem), 1fr)); }
.panels figure { margin: 0; max-width: 27rem; }
svg { display: block; width: 100%; height: auto; }
.verdict { display: inline-block; padding: 0.05rem 0.6rem; border-radius: 1rem;
  background: var(--soft); border: 1px solid var(--line); font-size: 0.85rem; font-weight: 600; }
.scroll { overflow-x: auto; margin: 0.5rem 0; }
table { border-collapse: collapse; font-size: 0.85rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.25rem 0.5rem; border-bottom: 1px solid var(--line); text-align: right; }
th { background: var(--soft); }
th:first-child, td:first-child { text-align: left; min-width: 7rem; }
summary { cursor: pointer; color: var(--blue); padding: 0.4rem 0; }
.note { background: var(--soft); border-left: 4px solid var(--blue); padding: 0.5rem 0.9rem;
  max-width: 46rem; }
nav a { display: inline-block; margin: 0 0.9rem 0.3rem 0; padding: 0.2rem 0; }
"""


def _table(table: Table) -> str:
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in table.header)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _inline(svg: str, prefix: str, label: str) -> str:
    """Cut an SVG file down to its element, of any width, with names that no other picture has."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r"url\(#", f"url(#{prefix}-", svg)
    svg = re.sub(r'href="#', f'href="#{prefix}-', svg)
    opening, _, rest = svg.partition(">")
    opening = re.sub(r'\s(?:width|height)="[^"]*"', "", opening)
    return f'{opening} role="img" aria-label="{html.escape(label, quote=True)}">{rest}'


def _pictures(study: Study, panels: Sequence[Panel]) -> str:
    cells: list[str] = []
    entries: dict[str, Any] = {}
    for number, panel in enumerate(panels):
        stream = io.StringIO()
        entries |= save_panel(panel, stream)
        cells.append(_inline(stream.getvalue(), f"{study.name}-{number}", f"{study.title}: {panel.title}"))
    if study.kind != "simulated":
        stream = io.StringIO()
        save_legend(entries, stream)
        cells.append(_inline(stream.getvalue(), f"{study.name}-legend", "Legend"))
    return '<div class="panels">' + "".join(f"<figure>{cell}</figure>" for cell in cells) + "</div>"


def _numbers(study: Study, rows: Sequence[ResultRow]) -> str:
    summary = summarise([row for row in rows if row.figure == study.name])
    header = (
        "panel", "mechanism", "epsilon", "repeats", "mean", "0.9 interval", "exact", "median", "95 %", "bias",
    )  # fmt: skip

    def number(value: float) -> str:
        return "" if value != value else f"{value:.3g}"

    lines = tuple(
        (
            Task(line.dataset, line.metric, line.column).title,
            f"{MECHANISM_NAMES[line.mechanism]} {line.setting}".strip(),
            f"{line.epsilon:g}",
            str(line.repeats),
            number(line.mean),
            f"{number(line.low)}\u00a0..\u00a0{number(line.high)}",
            *(number(value) for value in (line.exact, line.median, line.q95, line.bias)),
        )
        for line in summary.itertuples()
    )
    return (
        "<details><summary>All numbers of this figure</summary><p>Errors divided by the true value. Means "
        f"and bias of releases without bounds: errors capped at {ERROR_CAP:g} times the true value. Exact: "
        f"the expected error from the output law, on the records of the first {EXACT_REPEATS} repeats.</p>"
        f"{_table(Table(header, lines))}</details>"
    )


def _finding(finding: Finding) -> str:
    verdict = f' <span class="verdict">{html.escape(finding.verdict)}</span>' if finding.verdict else ""
    text = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in finding.sentences)
    return f"<h3>{html.escape(finding.heading)}{verdict}</h3>{text}" + (
        _table(finding.table) if finding.table else ""
    )


def _settings(rows: Sequence[ResultRow]) -> str:
    def several(values: Iterable[object]) -> str:
        return ", ".join(sorted({str(value) for value in values}))

    epsilons = ", ".join(f"{e:g}" for e in sorted({row.epsilon for row in rows if row.figure != "asymmetry"}))
    repeats = max((row.repeat + 1 for row in rows if row.figure != "asymmetry"), default=0)
    names = list(dict.fromkeys(row.dataset for row in rows if row.dataset != "simulated"))
    table = Table(
        ("setting", "value"),
        (
            ("releases", f"{len(rows):,}"),
            ("epsilons", epsilons),
            ("repeats", str(repeats)),
            ("records per repeat", f"{SAMPLE_SIZE}, without replacement (all of them if there are fewer)"),
            ("seeds of splits", several(row.split_seed for row in rows if row.split_seed >= 0) or "none"),
            ("versions", several(row.versions.replace(";", "; ") for row in rows)),
            ("git revision", several(row.revision for row in rows)),
        ),
    )
    data = Table(
        ("data set", "rows", "source", "licence"),
        tuple((n, f"{get_dataset(n).rows:,}", get_dataset(n).source, get_dataset(n).licence) for n in names),
    )
    return _table(table) + _table(data)


def report_page(rows: Sequence[ResultRow]) -> str:
    """Return the HTML page about some results."""
    findings = find(rows)
    parts = [
        "<h1>Private metrics: the paper's experiments, run again</h1>",
        "<p>D. Durfee, “Instance-Specific Asymmetric Sensitivity in Differential Privacy”, "
        '<a href="https://arxiv.org/abs/2311.14681">arXiv 2311.14681</a>, with the mechanisms of '
        "dp_metrics.</p>",
        '<p class="note">A study on public data. Its releases are seeded, so that they can be repeated, and '
        "true values stand beside them: nothing on this page is private, or has to be.</p>",
    ]
    sections = [(study, panels_of(study, rows)) for study in STUDIES.values()]
    sections = [(study, panels) for study, panels in sections if panels]
    links = "".join(f'<a href="#{study.name}">{html.escape(study.name)}</a>' for study, _ in sections)
    parts.append(f'<nav><a href="#found">What we found</a>{links}<a href="#settings">settings</a></nav>')
    parts.append('<h2 id="found">What we found</h2>')
    agreement = Table(("claim", "verdict"), tuple((f.heading, f.verdict) for f in findings if f.verdict))
    parts.append(_table(agreement))
    parts += [_finding(finding) for finding in findings if not finding.figure]
    for study, panels in sections:
        parts.append(f'<h2 id="{study.name}">{html.escape(study.title)}</h2>')
        parts.append(f"<p>The paper: {html.escape(study.claim)}.</p>")
        parts.append(_pictures(study, panels))
        parts += [_finding(finding) for finding in findings if finding.figure == study.name]
        if study.kind == "protocol":
            parts.append(_numbers(study, rows))
    parts.append(f'<h2 id="settings">Settings</h2>{_settings(rows)}')
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Private metrics: the paper's experiments</title><style>{_STYLE}</style></head>"
        f"<body>{''.join(parts)}</body></html>\n"
    )


def write_report(results: Path) -> Path:
    """Write ``report.html`` beside a file of results.

    Parameters
    ----------
    results : Path
        The file, or its folder.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    ResultsError
        If there are no results.
    """
    stored = ResultsFile(results)
    for problem in stored.problems:
        print(f"warning: {problem}", file=sys.stderr)
    if not stored.rows:
        raise ResultsError(f"there are no results in {stored.path}; make some with: dp-metrics reproduce")
    path = stored.path.with_name("report.html")
    path.write_text(report_page(stored.rows), encoding="utf-8")
    return path
