"""What a page says: sections of sentences, tables and pictures, from which every form of the page is made."""

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from dp_metrics.fairness.frame import PrivateMetricFrame, group_in_words
from dp_metrics.fairness.frame_query import Sizes
from dp_metrics.inference.comparison import Comparison
from dp_metrics.inputs.options import ByName
from dp_metrics.metrics.labels.released_confusion import ReleasedConfusion
from dp_metrics.page import page_numbers
from dp_metrics.page.in_short import QUESTIONS, PageFacts, capital, of_all, of_groups, words_of
from dp_metrics.page.page_numbers import Numbers
from dp_metrics.page.page_plan import (
    COMPARISON,
    EACH_ONCE,
    PERSONS,
    SIDES,
    PagePart,
    feature_of,
    matrix_of,
    times_as_wide,
)
from dp_metrics.page.requirements import CANNOT_TELL, FAIL, PASS, Verdicts, parsed
from dp_metrics.page.setting import SCORES
from dp_metrics.release.released import APPROXIMATE, CONFIDENCE, Interval, Number

_NONE, NOISE = "none", "noise"
_WIDER = 1.05  # less is not worth a word

_HOW_GOOD = (
    "What was released of all records, with ranges among all people like these, noise and chance included, "
    "unless a note says otherwise. Each range has 95 % confidence for itself, not all of a page at once. Too "
    "noisy to tell: its range is too wide."
)
_WHOM = (
    "The same by group. Differences of noisy numbers are too large on average, the more so the smaller a "
    "group is: their ranges tell what is sure, and hold all at once. No sure difference is no proof "
    "that groups are alike."
)
_REQUIRED = (
    "Set with the spend, before anything was known of the records. Each is about all people like these; all "
    'verdicts but "cannot tell" are right at once with 95 % confidence. Cannot tell is no pass.'
)


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Parameters
    ----------
    text : str
        What stands there.
    kind : str, default=""
        "noise" where that is all there is; of a verdict what it is.
    dots : dict or None, default=None
        Its picture; see `dots_of`.
    small : str, default=""
        What the text means, in plain words.
    """

    text: str
    kind: str = ""
    dots: ByName | None = None
    small: str = ""


@dataclass(frozen=True)
class Table:
    """A table with a caption; the first cell of a row names it. Notes stand below; `scale` is of the dots."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    notes: Sequence[str] = ()
    scale: str = ""

    def __post_init__(self) -> None:
        """Make cells of text."""
        rows = [[Cell(one) if isinstance(one, str) else one for one in row] for row in self.rows]
        object.__setattr__(self, "rows", rows)


@dataclass(frozen=True)
class Section:
    """A section of a page; its lines follow the sentence, each with a question in front, or "" for none."""

    title: str
    sentence: str
    tables: Sequence[Table] = ()
    lines: Sequence[tuple[str, str]] = ()


def sections_of(page: PageFacts) -> Iterator[Section]:
    """Yield the sections of a page, in their order."""
    yield Section("In short", "", lines=[*zip(QUESTIONS, page.summary, strict=True)])
    if page.verdicts is not None:
        yield Section("Requirements", _REQUIRED, [_required(page.verdicts, page)])
    yield Section(page_numbers.HOW_GOOD, _HOW_GOOD, [*_of_everybody(page)])
    together: list[Table] = []
    if groups := of_groups(page):
        features = list(dict.fromkeys(one.feature for one in groups))
        alone = [one for one in features if one is not None] or features  # groups of all together are details
        yield Section(page_numbers.FOR_WHOM, _WHOM, _by_features(alone, groups, page))
        together = _by_features([one for one in features if one not in alone], groups, page)
    if (compared := page.released.get(COMPARISON)) is not None:
        yield Section("Which is better", "", lines=[("", line) for line in _compared(compared, page)])
    yield _cost(page)
    if more := [*_of_noise(of_all(page)), *together, *_at_thresholds(page)]:
        yield Section("More numbers", "", more)
    yield Section("Words", "", [_words(page)])


def _by_features(features: Sequence[int | None], groups: Sequence[Number], page: PageFacts) -> list[Table]:
    """Return the tables by these features, or by all together, and what may be concluded of them."""
    tables = []
    for feature in features:
        caption = "By group" if all(one.feature is None for one in groups) else "By all features together"
        if feature is not None:
            caption = f"By {page.public.setting.called(feature)}"
        here = [one for one in groups if one.group is not None and one.feature == feature]
        once = [one for one in here if EACH_ONCE in one.name]
        if counted := [one for one in here if EACH_ONCE not in one.name]:
            tables.append(_by("group", caption, counted, _sizes(page, feature)))
        if once:
            plain = [replace(one, metric=one.metric.removesuffix(EACH_ONCE)) for one in once]
            tables.append(_by("group", f"{caption}{EACH_ONCE}", plain))
    gaps = [one for one in groups if one.group is None and one.feature in features]
    return [*tables, _overall("What may be concluded about differences", gaps, page)] if features else []


def _required(found: Verdicts, page: PageFacts) -> Table:
    """Return each requirement with what was measured, its verdict, and why."""
    rows = []
    for name, one in found.items():
        number = page.numbers[name]
        # all verdicts hold at once, so that ranges are wider here
        ((_, bound),) = parsed([one.requirement]).values()
        text = _value(number)
        if one.interval is not None:
            value, ends = page_numbers.text_of(number, one.interval, apart_from=bound)
            text = f"{value} ({ends})" if page_numbers.is_told(number) else page_numbers.TOO_NOISY
        verdict = Cell(f"{_MARKS[one.answer]} {one.answer}", one.answer.partition(" ")[0])
        rows.append([one.requirement, _cell(number, text), verdict, one.why])
    return Table(f"All together: {found.answer}", ["required", "measured", "verdict", "why"], rows)


_MARKS = {PASS: "✓", FAIL: "✗", CANNOT_TELL: "?"}


def _overall(caption: str, numbers: Sequence[Number], page: PageFacts) -> Table:
    """Return a table with a row for each number: of all records, or the largest differences of groups."""
    notes: list[str] = []
    scale, are_gaps = page_numbers.scale_of(numbers), all(map(page_numbers.is_gap, numbers))
    columns: dict[str, list[Any]] = {
        "": [Cell(one.name, small="" if are_gaps else meaning(one.metric, page)) for one in numbers],
        "released": [
            _cell(one, _value(one) + _marks(notes, None if are_gaps else one.note), scale) for one in numbers
        ],
        "range, 95 %": [_range(one, notes) for one in numbers],
    }
    if are_gaps:
        columns["concluded"] = [concluded(one, page.numbers) for one in numbers]
    return Table(caption, [*columns], [*zip(*columns.values(), strict=True)], notes, _scale(numbers, scale))


def concluded(gap: Number, numbers: Numbers) -> str:
    """Return what may be concluded of the largest difference of groups in a metric."""
    limits = page_numbers.shown_limits(gap)
    if limits is None:
        return f"{capital(page_numbers.TOO_NOISY)}."
    if limits.lower <= 0:
        return "Cannot tell: the range holds 0."
    # no one is in some groups
    groups = [one for one in numbers.values() if one.group is not None and not math.isnan(one.value)]
    here = [one for one in groups if (one.metric, one.feature) == (gap.metric, gap.feature)]
    low, high = (group_in_words(of(here, key=lambda one: one.value).group) for of in (min, max))
    # of three groups and more it is not sure which two differ
    which = f"lower in {low}" if len(here) == 2 else f"measured lowest in {low}, highest in {high}"
    return f"A sure difference: {which}. It does not tell why."


def _scale(numbers: Sequence[Number], scale: float) -> str:
    """Return what the dots of a table are on."""
    shares = "0 to 1" if any(one.metric not in page_numbers.IN_UNITS for one in numbers) else ""
    errors = f"0 to {scale:.2g}" if scale > 0 else ""
    both = f"{shares}; of errors {errors}" if shares and errors else shares or errors
    return f"Dot: released. Line: range. Dotted: {page_numbers.TOO_NOISY}. Scale: {both}." if both else ""


def _ways(numbers: Sequence[Number], page: PageFacts) -> Table:
    """Return which way numbers err, and by how much means did in trials at this n and epsilon."""
    notes, rows = [_TRIALS], []
    for one in numbers:
        way, _, _ = (one.bias or "Either way").partition(" if ")
        rows.append([one.name, way + _marks(notes, one.bias), _in_trials(one, page)])
    return Table("Which way these numbers err", ["", "errs", "in trials off by [1]"], rows, notes)


_TRIALS = (
    "As a part of the number: with normal errors, to heavy tails (Student's law with 3 degrees of freedom)."
)


def _in_trials(number: Number, page: PageFacts) -> str:
    """Return by how much a mean loss was off where errors were known."""
    expected = page.plan[number.release].expected_range
    if expected is None or number.metric == "r2":
        return ""
    times = 2.0 if number.metric == "mse" else 1.0  # the square of a number that is off by a small part
    return " to ".join(f"{100 * times * end:.2g} %" for end in expected)


def _of_noise(numbers: Sequence[Number]) -> Iterator[Table]:
    """Yield how far the noise may have moved numbers of which a page has ranges among all people as well."""
    rows = []
    for one in numbers:
        limits = page_numbers.known_limits(one.noise_interval, one)
        if _only(one) is None and limits is not None and page_numbers.is_told(one):
            rows.append([one.name, *page_numbers.text_of(one, limits)])
    if rows:
        caption = "Noise alone: the exact numbers of these records lie here; of other people nothing follows"
        yield Table(caption, ["", "released", "range, 95 %"], rows)


_THRESHOLDS = 3  # the limits of each take some time


def _at_thresholds(page: PageFacts) -> Iterator[Table]:
    """Yield what other thresholds of the released scores would give."""
    scores = page.released.get(SCORES)
    if scores is None:
        return
    inner, notes, rows = scores.counts.edges[1:-1], list[str](), dict[str, list[Any]]()
    names = ("selection rate", "recall", "precision")
    for wanted in np.linspace(inner[0], inner[-1], _THRESHOLDS + 2)[1:-1]:
        labels = scores.at_threshold(wanted)
        told, called = labels.numbers(), f"{labels.threshold:.3g}"
        rows[called] = [called, *(_with_range(told[name], notes, 0.0) for name in names)]
    caption = "By other thresholds, from the counts of scores, which have noise of their own; none is advised"
    yield Table(caption, ["threshold", *names], [*rows.values()], notes)


def _by(kind: str, caption: str, numbers: Sequence[Number], sizes: Sizes = None) -> Table:
    """Return a table with a row for each label or group, and a column for each metric."""
    notes: list[str] = []
    rows: dict[Any, dict[str, Number]] = {}
    for one in numbers:
        rows.setdefault(getattr(one, kind), {})[one.metric] = one
    cells, scale = [], page_numbers.scale_of(numbers)
    for key, row in rows.items():
        named = " and ".join(map(str, key)) if isinstance(key, tuple) else str(key)
        size = [] if sizes is None else [f"{max(sizes[key], 0.0):,.0f}"]
        cells.append([named, *size, *(_with_range(one, notes, scale) for one in row.values())])
    columns = [kind, *([] if sizes is None else ["records"]), *next(iter(rows.values()))]
    return Table(f"{caption}, with ranges of 95 %", columns, cells, notes, _scale(numbers, scale))


def _of_everybody(page: PageFacts) -> Iterator[Table]:
    """Yield the numbers of all records, and what tables that were released tell of all."""
    good = of_all(page)
    yield _overall("All records", good, page)
    if any(one.bias for one in good):
        yield _ways(good, page)
    if of_labels := [one for one in page.numbers.values() if one.label is not None]:
        yield _by("label", "By label", of_labels)
    if (labels := matrix_of(page.released)) is not None:
        yield _of_matrix(labels, page)
    scores = page.released.get(SCORES)
    if scores is not None and page.public.setting.edges is None:
        with suppress(ValueError):  # of persons with several records there are no limits
            band = scores.calibration_band(CONFIDENCE, _BINS)
            columns = (band.prob_pred, np.clip(band.prob_pred + band.gap, 0, 1), band.lower, band.upper)
            rows = []
            for at, value, low, high in zip(*(one.tolist() for one in columns), strict=True):
                share = Number("", value, "", _people=partial(Interval, low, high, about=band.about))
                rows.append([f"{at:.2f}", _with_range(share, [], 1.0)])
            caption = "Share of positives by predicted probability: alike where a model is calibrated"
            yield Table(caption, ["predicted", "share of positives"], rows)


def _of_matrix(labels: ReleasedConfusion, page: PageFacts) -> Table:
    """Return how many of 1,000 have each two labels, or of these records where no more can be told."""
    names, times = labels.labels.tolist(), 1000
    caption = (
        f"Of 1,000 {words_of(page).units} like these, by true label (rows) and predicted label; all ranges "
        "hold at once"
    )
    try:
        limits = labels.population_interval("confusion_matrix", normalize="all", confidence=CONFIDENCE)
    except ValueError:  # of persons with several records
        caption = "Records by true label (rows) and predicted label, with the range of the noise"
        times = 1
        limits = labels.noise_interval("confusion_matrix", confidence=CONFIDENCE)
        limits = replace(limits, estimate=labels.confusion_matrix())
    rows = [[str(name)] for name in names]
    for at, value in np.ndenumerate(limits.estimate):
        range_ = replace(limits, lower=limits.lower[at], upper=limits.upper[at])
        told = page_numbers.written(value, range_, is_share=False, least=1.0, times=times)
        rows[at[0]].append("{} ({})".format(*told))
    return Table(caption, ["", *(f"predicted {name}" for name in names)], rows)


_BINS = 5


def _marks(lines: list[str], *notes: str | None) -> str:
    """Return the marks of these notes, and add those that are new to the lines below a table.

    That limits are approximate is a note of its own.
    """
    marks = []
    for note in filter(None, notes):
        own = note.removeprefix(APPROXIMATE).strip()
        for line in filter(None, (APPROXIMATE if own != note else "", own)):
            if line not in lines:
                lines.append(line)
            marks.append(f" [{lines.index(line) + 1}]")
    return "".join(marks)


def _value(number: Number) -> str:
    if not page_numbers.is_told(number):
        return _NONE if math.isnan(number.value) else page_numbers.TOO_NOISY
    return page_numbers.text_of(number)[0]


def _only(number: Number) -> str | None:
    """Return what a range says that is not about all people."""
    is_only = page_numbers.is_of_records(number)
    return "About these records only, not about all people like these." if is_only else None


def _cell(number: Number, text: str, scale: float | None = None) -> Cell:
    """Return a cell that tells of a number, with its dots on a scale if there is one."""
    dots = None if scale is None else page_numbers.dots_of(number, scale)
    return Cell(text, "" if page_numbers.is_told(number) else NOISE, dots)


def _range(number: Number, notes: list[str]) -> Cell:
    """Return the range of a number; what is not about all people says so."""
    limits = page_numbers.shown_limits(number)
    if limits is None:
        return _cell(number, _NONE if page_numbers.limits_of(number) is None else page_numbers.TOO_NOISY)
    return _cell(number, page_numbers.text_of(number)[1] + _marks(notes, _only(number), limits.note))


def _with_range(number: Number, notes: list[str], scale: float) -> Cell:
    if page_numbers.shown_limits(number) is None:
        return _cell(number, _value(number), scale)
    value, ends = page_numbers.text_of(number)
    return _cell(number, f"{value} ({ends}){_marks(notes, number.bias, _only(number))}", scale)


def _compared(found: Comparison, page: PageFacts) -> Iterator[str]:
    """Yield what a comparison tells."""
    words = words_of(page)
    yield page.summary[3]
    if found.unit == "persons":
        yield f"Of each {words.person_name} the mean error over all {words.units} counts."
    if found.p_value is not None:
        yield (
            "If the two were equal, a lead like this would come up in at most "
            f"{math.ceil(1000 * found.p_value):,} of 1,000 tests."
        )
    if found.note:  # its range may hold 0 where the p-value decides otherwise
        yield found.note
    yield f"Better for more {words.compared} is no lower mean error, nor more positives found."


def _sizes(page: PageFacts, feature: int | None) -> Sizes:
    """Return the numbers of records of groups by one of several features, or by all; public ones exactly."""
    told = {name: one for name, one in page.released.items() if not name.startswith(PERSONS)}
    frames = ((feature_of(name), one) for name, one in told.items() if " by " in name)
    by, frame = next(one for one in frames if one[0] in (None, feature))
    found: PrivateMetricFrame = frame if feature in (by, None) else frame.margin(feature)
    return found.group_sizes


def _cost(page: PageFacts) -> Section:
    """Return what the page cost, what it promises, and what it does not."""
    rows = [
        [one.name, f"{float(one.epsilon):.3g}", one.about, _expected(one, page)] for one in page.plan.parts
    ]
    tables = [Table("What this page cost", ["release", "epsilon", "tells", "noise to expect"], rows)]
    if page.plan.left_out:
        tables.append(
            Table("What was left out", ["", "why"], [[one.about, one.why] for one in page.plan.left_out])
        )
    words, public = words_of(page), ""
    lines = [("", page.summary[4])]
    if page.most_records > 1:
        public = f"how many {words.units} each {words.person_name} has, which is public; "
    not_covered = (
        f"what the page tells of every {words.person_name} alike, and would tell without you; the people on "
        f"whose data the model was trained; {public}anything else that is published of these {words.units}."
    )
    lines.append(("Not covered:", not_covered))
    wider = times_as_wide(page.public, page.plan)
    if wider is not None and wider > _WIDER:
        lines.append(
            ("", f"The tables by group make ranges of all records about {100 * (wider - 1):.0f} % wider.")
        )
    return Section("Cost and promise", "", tables, lines)


def _expected(part: PagePart, page: PageFacts) -> str:
    """Return how far noise moves a typical number: a share in points of 100, or an error as a part of it."""
    is_share = not page.public.setting.is_regression or part.name.startswith((SIDES, COMPARISON))
    told = " to ".join(f"{100 * end:.2g}{'' if is_share else ' %'}" for end in part.ends)
    return f"about {told} {'points of 100' if is_share else 'of the number'}" if told else ""


_GENERAL = {
    "range": "Where the true number lies, with 95 % confidence. Of all {units} like these that holds if "
    "those at hand were drawn by chance.",
    "noise": "Random numbers, added on purpose: they hide what any one {person_name} changes.",
    "epsilon": "How much a page may depend on one {person_name}: 0 is not at all.",
    page_numbers.TOO_NOISY: "The range is so wide that the number says nothing.",
    CANNOT_TELL: "The range holds numbers that meet the rule and numbers that do not. It is no pass.",
}


def meaning(metric: str, page: PageFacts) -> str:
    """Return what a metric is, in the words of a page."""
    return page_numbers.METRICS.get(metric, "").format(**vars(words_of(page)))


def _words(page: PageFacts) -> Table:
    """Return what words mean, of those that the page uses and has not explained where they stand."""
    beside, numbers = {one.metric for one in of_all(page)}, page.numbers.values()
    known = {one.metric: meaning(one.metric, page) for one in numbers if one.metric not in beside}
    used = {
        page_numbers.TOO_NOISY: not all(map(page_numbers.is_told, numbers)),
        CANNOT_TELL: page.verdicts is not None,
    }
    for name, text in _GENERAL.items():
        if used.get(name, True):
            known[name] = text.format(**vars(words_of(page)))
    rows = [[name, capital(text)] for name, text in known.items() if text]
    return Table("Words of this page", ["word", "meaning"], rows)
