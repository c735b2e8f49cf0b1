"""Dates, times, durations and members of an Enum are labels: each metric gives the bits that numbers give."""

import datetime as dt
import enum
import itertools
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from cases import CASES, valid
from helpers import assert_refused, loop_over, objects, seeded

import dp_metrics as dp

DAYS = np.array(["1969-12-31", "2000-02-29", "2031-05-01", "2031-05-02"], dtype="M8[D]")
HOURS = np.array([-30, 0, 1, 24 * 400]).astype("m8[h]")
TOKYO = dt.timezone(dt.timedelta(hours=9))


def scalars(times):
    """Return objects of Python, which has no times finer than microseconds."""
    return times.astype("M8[us]" if times.dtype.kind == "M" else "m8[us]").tolist()


def aware(times):
    return [one.replace(tzinfo=dt.UTC).astimezone(TOKYO) for one in scalars(times)]


def in_utc(times, unit="ns"):
    return pd.Series(times.astype(f"M8[{unit}]")).dt.tz_localize("UTC")


DATES = {
    "NumPy's days": lambda t: t,
    **{
        f"NumPy's {unit}": partial(np.ndarray.astype, dtype=f"M8[{unit}]")
        for unit in ("12h", "h", "m", "ms", "ns")
    },
    "scalars of NumPy": lambda t: objects(t.astype("M8[s]")),
    "dates": lambda t: t.tolist(),
    "datetimes": scalars,
    "days and seconds": lambda t: [one if i % 2 else np.datetime64(one, "s") for i, one in enumerate(t)],
    "timestamps": lambda t: list(pd.to_datetime(t)),
    "pandas, seconds": lambda t: pd.Series(t.astype("M8[s]"), index=range(len(t))[::-1]),
    "pandas, nanoseconds of pyarrow": lambda t: pd.Series(t).astype("timestamp[ns][pyarrow]"),
    "polars, milliseconds": lambda t: pl.Series(t.astype("M8[ms]")),
    "pyarrow, milliseconds": lambda t: pa.array(t.astype("M8[ms]")),
}
ZONED = {
    "datetimes": aware,
    "datetimes in UTC": lambda t: [one.astimezone(dt.UTC) for one in aware(t)],
    "pandas": lambda t: in_utc(t, "s").dt.tz_convert("Asia/Tokyo"),
    "polars": lambda t: pl.Series(aware(t)).dt.convert_time_zone("Asia/Tokyo"),
    "pyarrow": lambda t: pa.array(t.astype("M8[ms]")).cast(pa.timestamp("ms", "Asia/Tokyo")),
}
DURATIONS = {
    "NumPy's hours": lambda t: t,
    "NumPy's nanoseconds": lambda t: t.astype("m8[ns]"),
    "Python's": scalars,
    "scalars of NumPy": lambda t: list(t.astype("m8[ms]")),
}
HOLDERS = {"list": list, "objects": objects, "pandas": lambda a: pd.Series(a, dtype=object)}
Sport = enum.Enum("Sport", {"SWIM": [3], "RUN": [1], "ROW": [2], "BOX": [0]})
Level = enum.IntEnum("Level", {"NONE": 0, "LOW": 1, "MID": 2, "HIGH": 3})
Letter = enum.StrEnum("Letter", {"A": "a", "B": "b", "C": "c", "D": "d"})
SORTS = {
    "dates": (DAYS, DATES),
    "times in a zone": (DAYS, ZONED),
    "durations": (HOURS, DURATIONS),
    **{kind.__name__: (objects([*kind]), HOLDERS) for kind in (Sport, Level, Letter)},
    "integers that no float is": (np.arange(2**53, 2**53 + 4), HOLDERS),
    "integers beyond all floats": (objects([10**400 + i for i in range(4)]), HOLDERS),
}
UNLISTED = {"polars", "pyarrow"}  # NumPy knows no such zones
READERS = ("accuracy", "macro f1", "recall", "log loss, 3 labels", "brier", "roc auc, 3 labels", "roc curve")


def two_ways(name, labels, here, there, known, positive):
    """Return a call of the catalogue with numbers as labels, and with others, each held as is said."""
    case = CASES[name]
    true, pred = valid(case)
    true, numbers = true.astype(int), {**case.options}
    if "labels" in case.row.options:
        numbers["labels"] = numbers.get("labels") or [*range(max(2, true.max() + 1))]
    others = {**numbers}
    if "labels" in numbers:
        others["labels"] = known(labels[: len(numbers["labels"])])
        if case.row.options.get("pos_label") == 1:
            others["pos_label"] = positive
    if not case.row.predicts_labels:
        return ((true, pred), numbers), ((here(labels[true]), pred), others)
    pred = pred.astype(int)
    return ((true, pred), numbers), ((here(labels[true]), there(labels[pred])), others)


@pytest.mark.gate
@pytest.mark.parametrize("sort", SORTS)
@loop_over("name", READERS)
def test_each_metric_gives_the_bits_that_numbers_give(sort, name):
    labels, holders = SORTS[sort]
    several = [*holders]
    positive = next(iter(holders[several[0]](labels[1:2])))
    for place, holder in enumerate(several):
        other = holders[several[(place + 1) % len(several)]]
        known = aware if sort == "times in a zone" and holder in UNLISTED else holders[holder]
        expected, found = (
            repr(CASES[name].function(*data, epsilon=1.0, random_state=seeded(), **options))
            for data, options in two_ways(name, labels, holders[holder], other, known, positive)
        )
        assert found == expected, holder


FINER = (("Y", "M", 12), ("W", "D", 7), ("D", "s", 86_400), ("s", "as", 10**18))


@loop_over(("sort", "finer"), itertools.product("Mm", FINER))
def test_no_year_is_too_far(sort, finer):
    """What a finer unit cannot hold must not come round to be another time that it can."""
    unit, fine, factor = finer
    counts = np.tile([0, 1, 2**61 + 1, -(2**61) - 3], 100)
    true, comes_round = counts.astype(f"{sort}8[{unit}]"), (counts * factor).astype(f"{sort}8[{fine}]")
    assert dp.private_accuracy_score(true, comes_round, epsilon=1e6) == pytest.approx(0.5, abs=0.01)
    assert dp.private_accuracy_score(true, objects(true), epsilon=1e6) > 0.99
    recall = partial(dp.private_recall_score, labels=list(true[:4]), average="micro")
    assert recall(true, objects(true), epsilon=1e6) > 0.99
    few = np.abs(counts) < 2
    assert recall(true[few], comes_round[few], epsilon=1e6) > 0.99
    assert_refused(recall, (true, comes_round), ValueError, "not in labels", epsilon=1.0)


LONG = [dt.timedelta.max, dt.timedelta.min, dt.timedelta(days=200_000_000)]
LONG_DAYS = [np.timedelta64(200_000_000, "D"), LONG[2]]
YEARS = np.array(["2000", "2400"], dtype="M8[Y]")
EACH_OF_ITS_SORT = [*scalars(DAYS), "a", 1, aware(DAYS)[0], dt.timedelta(1), Sport.RUN, b"a"]
ALIKE = [
    *DAYS.astype("M8[ns]"), "a", 1.0, aware(DAYS)[0].astimezone(dt.UTC), np.timedelta64(24, "h"), Sport.RUN,
    np.bytes_(b"a"),
]  # fmt: skip


@loop_over(
    ("true", "pred", "accuracy"),
    [
        # silently they come round where 64 bits of microseconds end
        (LONG, [np.timedelta64(one) for one in LONG], 0.0),
        (LONG_DAYS, LONG_DAYS[::-1], 1.0),
        # years that begin on the same day of the week
        (YEARS, YEARS.astype("M8[D]"), 1.0),
        (YEARS, YEARS[::-1].astype("M8[D]"), 0.0),
        # a large integer, and the float beside it
        (np.array([2**53 + 1]), np.array([2.0**53]), 0.0),
        (np.array([b"a", b"b"]), objects([b"a", b"b"]), 1.0),
        (EACH_OF_ITS_SORT, ALIKE, 1.0),
    ],
)
def test_labels_are_equal_if_they_mean_the_same(true, pred, accuracy):
    for one, other in ((true, pred), (pred, true)):
        records = [held * 100 if isinstance(held, list) else np.tile(held, 100) for held in (one, other)]
        assert dp.private_accuracy_score(*records, epsilon=1e6) == pytest.approx(accuracy, abs=0.01)


def test_of_several_labels_each_decides_whether_a_record_is_right():
    y = np.zeros((100, 3), dtype=int)
    for wrong in np.eye(3, dtype=int):
        assert dp.private_accuracy_score(y, y + wrong, epsilon=1000.0) < 1e-6


TIMES = np.tile(DAYS.astype("M8[ns]"), 50)
OTHERS = {
    "number": TIMES.astype(int),
    "text": TIMES.astype(str),
    "zone": in_utc(TIMES),
    "duration": TIMES.astype(int).astype("m8[ns]"),
    "months": TIMES.astype(int).astype("m8[M]"),
    "unit": TIMES.astype(int).astype("m8"),
}


@loop_over("other", OTHERS)
def test_sorts_of_labels_are_never_equal(other):
    theirs, listed = OTHERS[other], [*OTHERS[other]]
    pairs, known = "Mix of label input types", "not in labels|no numbers|numeric"
    if other == "zone":
        pairs = known = "time zone"
    matrix, refused = dp.private_confusion_matrix, ((ValueError, TypeError), known)
    for left, right in itertools.product((TIMES, [*TIMES], pd.Series(TIMES)), (theirs, listed)):
        assert_refused(dp.private_accuracy_score, (left, right), ValueError, pairs, epsilon=1.0)
        assert_refused(dp.private_compare, (left, right, left), ValueError, pairs, epsilon=1.0)
        for data in ((right, left), (left, right)):
            assert_refused(matrix, data, ValueError, known, epsilon=1.0, labels=DAYS)
        labels = [0, 1] if other == "number" else listed[:4]
        assert_refused(matrix, (left, left), *refused, epsilon=1.0, labels=labels)
    with pytest.raises(ValueError, match="must be of one type"):
        matrix(TIMES, TIMES, labels=[TIMES[0], listed[1]], epsilon=1.0)


@loop_over("other", ["a", 1, 1.0, DAYS[0]])
def test_bytes_are_equal_to_bytes_only(other):
    """A file of HDF5 may give text so: it would be wrong in every record."""
    true, pred = [b"a"] * 50, [other] * 50
    assert_refused(
        dp.private_accuracy_score, (true, pred), ValueError, "y_true holds bytes, and y_pred", epsilon=1.0
    )
    assert dp.private_accuracy_score(true, true, epsilon=1e6) > 0.99


def told_of_groups_and_labels(names, true, pred):
    """Return the numbers of a frame whose groups have these names, and of a page of these labels."""
    of, codes = {"epsilon": 1.0, "random_state": 5}, np.arange(400) % 2
    frame = dp.PrivateMetricFrame(
        metrics="recall", y_true=codes, y_pred=codes, sensitive_features=pred, group_labels=names, **of
    )
    assert [*frame.by_group] == names
    frame.frame()
    page = dp.private_evaluate(true, pred, labels=names, split={"labels": 1}, **of)
    assert page.to_markdown()
    gap = frame.difference(names[0], names[1])
    return [*frame.by_group.values(), gap, *(one.value for one in page.numbers.values())]


@pytest.mark.filterwarnings("ignore")
def test_frames_and_pages_tell_their_labels_as_they_were_given():
    codes = np.arange(400) % 2
    expected = told_of_groups_and_labels([0, 1], codes, codes)
    for sort, (labels, holders) in SORTS.items():
        first, second, *_ = holders.values()
        given = [*first(labels[:2])], first(labels[codes]), second(labels[codes])
        assert told_of_groups_and_labels(*given) == expected, sort


HINTS = {  # what a refusal says of a label, which no other record changes
    2: "[0, 1], which is the default. Pass all labels that there may be, such as labels=[1, 2] or",
    -1.0: "where the metric has such an option, pos_label=2 for the first, average='macro' or",
    0.7: "labels=[0, 1]: it is no whole number. Pass labels, such as predict gives, and not probabilities",
    np.nan: "Input y_true contains NaN: drop such records, or fill them in, before you split the data.",
}


@pytest.mark.parametrize("function", [dp.private_f1_score, dp.private_confusion_matrix, dp.private_log_loss])
@loop_over("label", HINTS)
def test_each_wrong_label_has_its_own_hint_which_no_other_record_changes(function, label):
    said = set()
    # the last one: the first of several in one block counts, and NaN before all
    for before, after in [*itertools.product(([], [0], [1, 0, 1]), ([], [1], [0, 1, 1])), ([0], [3])]:
        y = [*before, label, *after]
        with pytest.raises(ValueError, match="y_true") as refused:
            function(y, [0.0] * len(y), epsilon=1.0)
        said.add(str(refused.value))
    assert len(said) == 1
    assert HINTS[label] in said.pop()
