"""What a page says: sections of sentences, tables and pictures, from which every form of the page is made."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from dp_metrics._packages import __version__
from dp_metrics.fairness.frame import PrivateMetricFrame
from dp_metrics.inference.comparison import Comparison
from dp_metrics.inputs.options import Relation
from dp_metrics.metrics.scores.released_scores import ReleasedScores
from dp_metrics.page.facts import PageFacts
from dp_metrics.page.in_short import QUESTIONS, summary_of
from dp_metrics.page.numbers import CONFIDENCE, FOR_WHOM, HOW_GOOD, Number
from dp_metrics.page.page_plan import ByGroupToo, PageRelease
from dp_metrics.page.requirements import Verdicts
from dp_metrics.release.released import Interval

_OF_PERSONS = " This holds for all records of one person together, up to {}; who has which is public."
_WITHIN = " The other record is of the same group: groups and their sizes are public."


def rows_of(page: PageFacts) -> list[dict[str, Any]]:
    """Return the numbers of a page with their limits."""
    return [_number(one) for one in page.numbers.values()]


def as_dict(page: PageFacts, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return all that a page says with these numbers, without the release that it was made of."""
    found = page.released.get("comparison")
    return {
        "made_by": f"dp_metrics {__version__}",
        "epsilon": page.epsilon,
        "neighboring": page.relation,
        "n": page.n,
        "is_seeded": page.is_seeded,
        "promise": promise(page.epsilon, page.relation, page.most_records),
        "most_records": page.most_records,
        "confidence": CONFIDENCE,
        "tolerance": page.evaluated.asked.get("tolerance"),
        "numbers": rows,
        "requirements": None if page.verdicts is None else page.verdicts.to_dict(),
        "comparison": found.to_dict() if isinstance(found, Comparison) else None,
        "plan": [
            {"name": one.name, "about": one.about, "epsilon": float(one.epsilon),
             "expected_error": _finite(one.expected_error),
             "expected_range": one.expected_range and [_finite(end) for end in one.expected_range]}
            for one in page.plan.parts
        ],
        "left_out": [{"about": one.about, "why": one.why} for one in page.plan.left_out],
        "budget": page.budget,
        "deployment": deployment_of(page),
    }  # fmt: skip


def _number(number: Number) -> dict[str, Any]:
    limits = {"noise": number.noise_interval, "people": number.population_interval}
    row: dict[str, Any] = {
        "name": number.name, "value": _finite(number.value), "section": number.section,
        "metric": number.metric, "label": _text(number.label), "group": _text(number.group),
        "feature": number.feature,
        "release": number.release, "rests_on": _finite(number.rests_on), "note": number.note,
        "bias": number.bias,
    }  # fmt: skip
    for kind, asked in limits.items():
        try:
            found = asked(CONFIDENCE)
        except (TypeError, ValueError) as error:
            row |= {kind: None, f"{kind}_note": str(error)}
        else:
            row |= {kind: [_finite(found.lower), _finite(found.upper)], f"{kind}_note": found.note or None}
    return row


def _finite(number: Any) -> float | None:
    return None if number is None or not math.isfinite(number) else float(number)


def _text(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_text(one) for one in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def deployment_of(page: PageFacts) -> dict[str, Any] | None:
    """Return what the OpenDP deployment registry asks for; None where nothing can be promised."""
    parts = [result.deployment for result in page.evaluated.results]
    if any(one is None for one in parts):
        return None
    whole: dict[str, Any] = _thawed(parts[0])
    whole["privacy_loss"]["privacy_parameters"] = {"epsilon": page.epsilon}
    by = dict.fromkeys(one["implementation"]["mechanisms"] for one in parts if one is not None)
    whole["implementation"]["mechanisms"] = " ".join(by)
    if page.relation == Relation.WITHIN_GROUPS:
        whole["privacy_loss"]["privacy_unit_details"] += _WITHIN
    if page.most_records > 1:
        whole["privacy_loss"]["privacy_unit"] = "person"
        whole["privacy_loss"]["privacy_unit_details"] += _OF_PERSONS.format(page.most_records)
    return whole


def _thawed(value: Any) -> Any:
    return {name: _thawed(one) for name, one in value.items()} if isinstance(value, Mapping) else value


_NONE = "none"
_RECORDS, _PEOPLE = "in these records, 95 %", "among all people like these, 95 %"
_IN_UNITS = ("mse", "rmse", "mae", "median absolute error", "r2")

_HOW_GOOD = (
    "What was released of all records. The first limits tell how far the noise may have moved a number; the "
    "second what it may be among all people like these. Each holds for itself, not all of a page at once. "
    "Grey numbers are mostly noise: conclude nothing from them."
)
_WHOM = (
    "The same by group. Differences of noisy numbers are too large on average, the more so the smaller a "
    "group is: their limits tell what is sure."
)
_REQUIRED = (
    "Set with the spend, before anything was known of the records. Each is about all people like these; all "
    'verdicts but "cannot tell" are right at once with 95 % confidence. Cannot tell is no pass.'
)
_WHICH = "On how many records either model is better: A is the model of this page, B the baseline."
_CALIBRATION = (
    "Share of positives by predicted probability, with limits: the model is not calibrated where a bar of "
    "them misses the diagonal."
)
_LEFT = "What this page cost, and what it promises to the people in the records."


@dataclass(frozen=True)
class Cell:
    """A cell of a table: its text, whether it is mostly noise, and what else is said of it."""

    text: str
    is_noise: bool = False
    tip: str = ""


@dataclass(frozen=True)
class Table:
    """A table with a caption; the first cell of a row names it. Notes stand below."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Picture:
    """A picture by its name, and what it shows in words."""

    name: str
    alt: str


@dataclass(frozen=True)
class Section:
    """A section of a page."""

    title: str
    sentence: str
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()
    lines: Sequence[str] = field(default=())


_CHANGED = {
    "replace_one": "Whatever one person's record had been",
    Relation.WITHIN_GROUPS: "Whatever one person's record had been, but for the group, which is public",
    "add_or_remove_one": "Whether or not one person's record had been there",
}


def promise(epsilon: float, relation: str, most_records: int = 1) -> str:
    """Return what the page promises, in one sentence for the people concerned."""
    factor = f"{math.exp(epsilon):.3g}" if epsilon < 700 else "exp(epsilon)"
    changed = _CHANGED[relation]
    if most_records > 1:
        changed = changed.replace("one person's record", f"one person's records, up to {most_records},")
    return (
        f"{changed}, any page that might have come out was at most {factor} times as likely or as "
        f"unlikely (epsilon-differential privacy, epsilon = {epsilon:g})."
    )


def sections_of(page: PageFacts, exact: Mapping[str, float] | None = None) -> list[Section]:
    """Return the sections of a page, in their order; for studies of public data with exact values beside."""
    evaluated, numbers = page.evaluated, list(page.numbers.values())
    shown = pictures_of(evaluated)
    good = [one for one in numbers if one.section == HOW_GOOD]
    tables = [_overall([one for one in good if one.label is None], evaluated, exact=exact)]
    if of_labels := [one for one in good if one.label is not None]:
        tables.append(_by("label", "By label", of_labels))
    said = [f"{question} {told}" for question, told in zip(QUESTIONS, summary_of(page), strict=True)]
    sections = [Section("In short", "", lines=said)]
    if page.verdicts is not None:
        sections.append(Section("Requirements", _REQUIRED, [_required(page.verdicts, page)]))
    sections += [Section(HOW_GOOD, _HOW_GOOD, tables, [one for one in shown if not _is_of_groups(one)])]
    if groups := [one for one in numbers if one.section == FOR_WHOM]:
        sizes, tables = _sizes(evaluated), []
        features = list(dict.fromkeys(one.feature for one in groups))
        for feature in features:
            caption = "By group" if len(features) == 1 else "By all features together"
            caption = caption if feature is None else f"By feature {feature + 1}"
            here = [one for one in groups if one.group is not None and one.feature == feature]
            tables.append(_by("group", caption, here, _sizes_by(feature, sizes)))
        gaps = [one for one in groups if one.group is None]
        tables.append(_overall(gaps, evaluated, "Largest differences", exact))
        sections.append(Section(FOR_WHOM, _WHOM, tables, [one for one in shown if _is_of_groups(one)]))
    found = evaluated.released.get("comparison")
    if isinstance(found, Comparison):
        sections.append(Section("Which is better", _WHICH, lines=[str(found)]))
    return [*sections, _left(page)]


def _required(found: Verdicts, page: PageFacts) -> Table:
    """Return each requirement with what was measured, its verdict, and why."""
    rows = []
    for name, one in found.items():
        number = page.numbers[name]
        told = "" if one.interval is None else f" ({_ends(one.interval, number.metric)})"
        measured = Cell(_value(number) + told, number.note is not None)
        rows.append([Cell(one.requirement), measured, Cell(one.answer), Cell(one.why)])
    return Table(f"All together: {found.answer}", ["required", "measured", "verdict", "why"], rows)


def _is_of_groups(picture: Picture) -> bool:
    return picture.name.endswith(" by group")


def _overall(
    numbers: Sequence[Number],
    evaluated: PageRelease,
    caption: str = "All records",
    exact: Mapping[str, float] | None = None,
) -> Table:
    notes = _Notes()
    columns = {"": [Cell(one.name) for one in numbers]}
    if exact is not None:
        shown = [_shown(exact.get(one.name, math.nan), one.metric) for one in numbers]
        columns["exact: NOT private"] = [Cell(text) for text in shown]
    columns["released"] = [
        Cell(_value(one) + notes.of(one), one.note is not None, _tip(one, evaluated)) for one in numbers
    ]
    for title, kind in ((_RECORDS, "noise_interval"), (_PEOPLE, "population_interval")):
        found = [_limits(one, kind, notes) for one in numbers]
        if {cell.text for cell in found} != {_NONE}:
            columns[title] = found
        else:
            notes.mark(f"No limits {title.removesuffix(', 95 %')}: {found[0].tip}")
    return Table(caption, [*columns], [*zip(*columns.values(), strict=True)], notes.lines)


def _by(
    kind: str, caption: str, numbers: Sequence[Number], sizes: Mapping[Any, float] | None = None
) -> Table:
    """Return a table with a row for each label or group, and a column for each metric."""
    notes, metrics = _Notes(), list(dict.fromkeys(one.metric for one in numbers))
    rows: dict[Any, dict[str, Number]] = {}
    for one in numbers:
        rows.setdefault(getattr(one, kind), {})[one.metric] = one
    cells = []
    for key, row in rows.items():
        named = " and ".join(map(str, key)) if isinstance(key, tuple) else str(key)
        size = [] if sizes is None else [Cell(f"{max(sizes[key], 0.0):,.0f}")]
        cells.append([Cell(named), *size, *(_with_limits(row[name], notes) for name in metrics)])
    about = f"{caption}, with limits {_PEOPLE}, where there are any"
    return Table(about, [kind, *([] if sizes is None else ["records"]), *metrics], cells, notes.lines)


class _Notes:
    """Notes below a table, each once."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def of(self, number: Number) -> str:
        return "".join(self.mark(one) for one in (number.note, number.bias) if one is not None)

    def mark(self, note: str) -> str:
        if note not in self.lines:
            self.lines.append(note)
        return f" [{self.lines.index(note) + 1}]"


def _value(number: Number) -> str:
    return _shown(number.value, number.metric)


def _shown(value: float, metric: str) -> str:
    if math.isnan(value):
        return _NONE
    return f"{value:.5g}" if metric in _IN_UNITS else f"{value:.3f}"


def _found(number: Number, kind: str) -> Interval | str:
    try:
        found: Interval = getattr(number, kind)(CONFIDENCE)
    except (TypeError, ValueError) as error:
        return str(error)
    return found


def _ends(found: Interval, metric: str) -> str:
    return found.in_words(partial(_shown, metric=metric))


def _limits(number: Number, kind: str, notes: _Notes) -> Cell:
    found = _found(number, kind)
    if isinstance(found, str):
        return Cell(_NONE, number.note is not None, found)
    mark = notes.mark(found.note) if found.note else ""
    return Cell(_ends(found, number.metric) + mark, number.note is not None, found.about)


def _with_limits(number: Number, notes: _Notes) -> Cell:
    found = _found(number, "population_interval")
    text, is_noise = _value(number), number.note is not None
    if isinstance(found, Interval):
        return Cell(f"{text} ({_ends(found, number.metric)}){notes.of(number)}", is_noise, found.about)
    return Cell(text + notes.of(number), is_noise, found)


def _tip(number: Number, evaluated: PageRelease) -> str:
    part, is_of_persons = evaluated.plan[number.release], evaluated.form["shape"].most_records > 1
    return (
        f"{number.metric}, from the release '{number.release}' ({part.about}), which cost epsilon "
        f"{float(part.epsilon):.3g} and protects each {'person' if is_of_persons else 'record'}"
    )


def _sizes(evaluated: PageRelease) -> Mapping[Any, float] | None:
    """Return the numbers of records of the groups: exact where they are public."""
    for told in evaluated.released.values():
        frame = told.by_group if isinstance(told, ByGroupToo) else told
        if isinstance(frame, PrivateMetricFrame):
            if evaluated.form["sizes"] is not None:
                return dict(zip(frame.by_group, map(float, evaluated.form["sizes"]), strict=True))
            return frame.group_sizes
    return None


def _sizes_by(feature: int | None, sizes: Mapping[Any, float] | None) -> Mapping[Any, float] | None:
    """Return the numbers of records of the groups by one of several features; None: by all."""
    if feature is None or sizes is None:
        return sizes
    added: dict[Any, float] = {}
    for group, size in sizes.items():
        added[group[feature]] = added.get(group[feature], 0.0) + size
    return added


def _left(page: PageFacts) -> Section:
    evaluated = page.evaluated
    rows = [[Cell(text) for text in row] for row in evaluated.plan.rows()]
    tables = [Table("What this page cost", ["release", "epsilon", "tells", "expected error"], rows)]
    if evaluated.plan.left_out:
        left = [[Cell(one.about), Cell(one.why)] for one in evaluated.plan.left_out]
        tables.append(Table("What was left out", ["", "why"], left))
    lines = [promise(page.epsilon, page.relation, page.most_records)]
    if page.is_seeded:
        lines.insert(0, "These numbers were drawn from a seed: they are NOT private.")
    if page.budget is not None:
        spent, remaining = page.budget["spent"], page.budget["remaining"]
        lines.append(f"Of the budget {spent:g} is spent, with this page, and {remaining:g} is left.")
    return Section("What is left", _LEFT, tables, lines=lines)


_OF_LABELS = ("labels", "labels by group")


def pictures_of(evaluated: PageRelease) -> list[Picture]:
    """Return the pictures that a page has."""
    return list(_pictures(evaluated))


def _pictures(evaluated: PageRelease) -> Iterator[Picture]:
    for release, told in evaluated.released.items():
        labels = told.overall if isinstance(told, ByGroupToo) else told
        if release in _OF_LABELS and labels.counts.matrix is not None:
            yield Picture("confusion matrix", "How many records have which true and which predicted label.")
        if isinstance(told, ReleasedScores):
            yield Picture("roc", "ROC curve, with the band in which it lies among all people like these.")
            yield Picture("precision recall", "Precision by recall.")
            if evaluated.asked["edges"] is None:
                yield Picture("calibration", _CALIBRATION)
        frame = told.by_group if isinstance(told, ByGroupToo) else told
        if isinstance(frame, PrivateMetricFrame):
            for name in _drawn(frame, release):
                yield Picture(f"{name} by group", f"{name} of each group, with the limits of its noise.")


def _drawn(frame: PrivateMetricFrame, release: str) -> Sequence[str]:
    if release == "labels by group":
        return [name for name in ("recall", "precision", "accuracy") if name in frame._entries][:2]
    return {"scores by group": ("roc auc",), "absolute error by group": ("mae",)}.get(release, ())
