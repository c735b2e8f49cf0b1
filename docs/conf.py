"""Sphinx settings. Build with `python -m sphinx -W docs docs/_build/html`; nothing comes from the network."""

import shutil
from importlib import import_module
from pathlib import Path
from runpy import run_path
from typing import Any

import dp_metrics

project = "dp_metrics"
copyright = "the dp_metrics developers"
author = "The dp_metrics developers"

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_nb",
    "matplotlib.sphinxext.plot_directive",
]
templates_path = ["_templates"]
exclude_patterns = ["_build"]
html_theme = "alabaster"
html_static_path = ["_static"]
html_theme_options = {
    "description": dp_metrics.__doc__.replace("`", ""),
    "page_width": "1240px",
    "body_max_width": "none",
    "code_font_size": "0.8em",  # 110 characters in a line
}
html_show_sourcelink = False

default_role = "py:obj"  # a name in backquotes becomes a link if it is documented here
highlight_language = "text"
add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the numpydoc sections name the types
autosummary_generate = True
suppress_warnings = ["ref.term"]  # docstrings that are inherited from scikit-learn name its glossary
numpydoc_show_class_members = False  # the template of a class lists them

nb_execution_mode = "off"  # notebooks are stored with outputs, and run by the tests
nb_output_stderr = "warn"

plot_formats = [("png", 110)]
plot_include_source = plot_html_show_source_link = plot_html_show_formats = False

TITLES = {
    "page": "The whole evaluation on one page",
    "metrics.regression": "Regression metrics",
    "metrics.classification": "Losses and accuracy of classifiers",
    "metrics.labels": "Metrics of predicted labels",
    "metrics.scores": "Metrics of scores: curves, areas, calibration",
    "metrics.statistics": "Statistics of one column",
    "metrics.summary": "Large data: summaries",
    "fairness": "Groups of people",
    "inference": "How sure: intervals and comparisons",
    "release.result": "From a metric to its result",
    "analysis.planning": "Planning accuracy",
    "model_selection.release_count": "Planning cost",
    "accounting": "Budgets",
    "model_selection.scorers": "Scorers",
    "model_selection.best": "Choosing a model",
    "model_selection.search": "Model selection",
    "exceptions": "Exceptions",
}
"""Headings of the reference in order, by the module or folder that defines names; others come last."""

ELSEWHERE = {
    "dp_metrics.release.result": ["Result"],
    "dp_metrics.release.released": ["Interval"],
    "dp_metrics.inference.comparison": ["Comparison"],
    "dp_metrics.analysis.planning": ["ReleasePlan"],
    "dp_metrics.model_selection.scorers": ["PrivateScorer"],
    "dp_metrics.model_selection.best": ["Choice"],
    "dp_metrics.page.page_plan": ["EvaluationPlan"],
    "dp_metrics.mechanisms": [
        "AboveThreshold", "Adaptive", "Geometric", "Hazard", "InverseSensitivity", "Laplace",
        "PiecewiseLaplace",
    ],
    "dp_metrics.exceptions": [
        "LargeEpsilonWarning", "NoisyReleaseWarning", "SearchInterrupt", "SeededReleaseWarning",
        "StoredReleaseWarning", "TrainingFoldsWarning",
    ],
}  # fmt: skip
"""Public names that are not at the top: what calls return, mechanisms as objects, and warnings."""

FOR_EXPERTS = {
    "dp_metrics.analysis.auditing": import_module("dp_metrics.analysis.auditing").__all__,
    "dp_metrics.sensitivity.output_bounds": ["OutputBounds"],
    "dp_metrics.mechanisms": ["Mechanism", "OutputLaw"],
    "dp_metrics.accounting": ["Spend"],
}
"""Public names beyond `dp_metrics.__all__`, for those who audit or extend the package."""


def _section(title: str, underline: str, module: str, namespace: str, names: list[str]) -> str:
    """Return a heading, the first sentence of a module, and a table of names with one page for each."""
    intro = (import_module(module).__doc__ or "").strip().split("\n\n")[0]
    rows = "\n".join(f"   {name}" for name in names)
    return (
        f"{title}\n{underline * len(title)}\n\n{intro}\n\n.. currentmodule:: {namespace}\n\n"
        f".. autosummary::\n   :toctree: generated\n\n{rows}\n"
    )


def _reference() -> str:
    """Return the page of the reference: every name of `dp_metrics.__all__` under its module's heading."""
    groups: dict[str, list[str]] = {}
    for name in dp_metrics.__all__:
        module = getattr(dp_metrics, name).__module__.removeprefix("dp_metrics.")
        part = next((title for title in TITLES if f"{module}.".startswith(f"{title}.")), module.split(".")[0])
        groups.setdefault(part, []).append(name)
    order = [*TITLES, *sorted(groups.keys() - TITLES.keys())]
    sections = ["API reference\n=============\n\nOne page for each public name.\n"]
    for part in order:
        if part in groups:
            title = TITLES.get(part, part.replace("_", " ").capitalize())
            sections.append(_section(title, "-", f"dp_metrics.{part}", "dp_metrics", groups[part]))
    sections.append("What calls return, mechanisms, warnings\n---------------------------------------\n")
    sections += [_section(module, "~", module, module, names) for module, names in ELSEWHERE.items()]
    sections.append("For auditors and contributors\n-----------------------------\n")
    sections += [_section(module, "~", module, module, names) for module, names in FOR_EXPERTS.items()]
    return "\n".join(sections)


# All this is written before Sphinx looks for pages, so that new names and notebooks have one.
_docs = Path(__file__).parent
(_docs / "api").mkdir(exist_ok=True)
(_docs / "api" / "index.rst").write_text(_reference(), encoding="utf-8")
_table = run_path(str(_docs / "metric_table.py"))["rst"]()
(_docs / "metric_table.inc").write_text(_table, encoding="utf-8")
shutil.copytree(_docs.parent / "notebooks", _docs / "notebooks", dirs_exist_ok=True)


_HOMES = dict.fromkeys(dp_metrics.__all__, "dp_metrics") | {
    name: module for module, names in ELSEWHERE.items() for name in names
}


def link_to_public_name(app: Any, env: Any, node: Any, content: Any) -> Any:
    """Resolve a public name that is written without its module."""
    target = node.get("reftarget", "").removeprefix("dp_metrics.")
    home = _HOMES.get(target.split(".")[0])
    if node.get("reftype") != "obj" or home is None:
        return None
    python = env.get_domain("py")
    return python.resolve_xref(env, node["refdoc"], app.builder, "obj", f"{home}.{target}", node, content)


def setup(app: Any) -> None:
    """Register with Sphinx."""
    app.connect("missing-reference", link_to_public_name)
