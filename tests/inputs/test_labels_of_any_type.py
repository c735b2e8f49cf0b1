"""Dates, times, durations and members of an Enum are labels: each metric gives the bits that numbers give."""

import datetime as dt
import enum
import warnings
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from cases import CASES, valid
from helpers import assert_refused, loop_over, new_session, seeded, slow_but

import dp_metrics as dp

DAYS = np.array(["1969-12-31", "2000-02-29", "2031-05-01", "2031-05-02"], dtype="M8[D]")
TOKYO = dt.timezone(dt.timedelta(hours=9))


def scalars(times):
    """Return objects of Python, which has no times finer than microseconds."""
    return times.astype("M8[us]" if times.dtype.kind == "M" else "m8[us]").tolist()


def aware(times):
    return [one.replace(tzinfo=dt.UTC).astimezone(TOKYO) for one in scalars(times)]


def objects(values):
    return np.fromiter(values, dtype=object, count=len(values))


UNITS = {
    f"NumPy's {unit}": partial(np.ndarray.astype, dtype=f"M8[{unit}]") for unit in ("h", "m", "ms", "ns")
}
DATES = {
    "NumPy's days": lambda t: t,
    **UNITS,
    "NumPy's halves of a day": lambda t: t.astype("M8[12h]"),
    "scalars of NumPy": lambda t: objects(t.astype("M8[s]")),
    "dates": lambda t: t.tolist(),
    "datetimes": scalars,
    "objects": lambda t: objects(scalars(t)),
    "days and seconds": lambda t: [one if i % 2 else np.datetime64(one, "s") for i, one in enumerate(t)],
    "timestamps": lambda t: list(pd.to_datetime(t)),
    "pandas": lambda t: pd.Series(t.astype("M8[ns]")),
    "pandas, seconds": lambda t: pd.Series(t.astype("M8[s]"), index=range(len(t))[::-1]),
    "pandas, index": lambda t: pd.Index(t.astype("M8[us]")),
    "pandas, category": lambda t: pd.Series(pd.Categorical(t.astype("M8[ns]"))),
    "pandas, pyarrow": lambda t: pd.Series(t.astype("M8[ns]")).astype("timestamp[us][pyarrow]"),
    "pandas, days of pyarrow": lambda t: pd.Series(t.tolist()).astype("date32[pyarrow]"),
    "pandas, objects": lambda t: pd.Series(t.tolist(), dtype=object),
    "polars": lambda t: pl.Series(t.astype("M8[us]")),
    "polars, days": lambda t: pl.Series(t.tolist()),
    "pyarrow": lambda t: pa.array(t.astype("M8[ms]")),
    "pyarrow, days": lambda t: pa.array(t.tolist()),
}
ZONED = {
    "datetimes": aware,
    "datetimes in UTC": lambda t: [one.astimezone(dt.UTC) for one in aware(t)],
    "pandas": lambda t: pd.Series(t.astype("M8[ns]")).dt.tz_localize("UTC"),
    "pandas, elsewhere": lambda t: (
        pd.Series(t.astype("M8[s]")).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")
    ),
    "pandas, category": lambda t: pd.Categorical(pd.Index(t.astype("M8[ns]")).tz_localize("UTC")),
    "polars": lambda t: pl.Series(t.astype("M8[ns]")).dt.replace_time_zone("UTC"),
    "polars, elsewhere": lambda t: pl.Series(aware(t)).dt.convert_time_zone("Asia/Tokyo"),
    "pyarrow": lambda t: pa.array(t.astype("M8[us]")).cast(pa.timestamp("us", "Asia/Tokyo")),
    "pyarrow, dictionary": lambda t: (
        pa.array(t.astype("M8[us]")).cast(pa.timestamp("us", "UTC")).dictionary_encode()
    ),
}
HOURS = np.array([-30, 0, 1, 24 * 400]).astype("m8[h]")
DURATIONS = {
    "NumPy's hours": lambda t: t,
    "NumPy's nanoseconds": lambda t: t.astype("m8[ns]"),
    "Python's": scalars,
    "scalars of NumPy": lambda t: list(t.astype("m8[ms]")),
    "pandas": lambda t: pd.Series(t.astype("m8[ns]")),
    "polars": lambda t: pl.Series(t.astype("m8[us]")),
    "pyarrow": lambda t: pa.array(t.astype("m8[us]")),
}
Sport = enum.Enum("Sport", {"SWIM": [3], "RUN": [1], "ROW": [2], "BOX": [0]})
Level = enum.IntEnum("Level", {"NONE": 0, "LOW": 1, "MID": 2, "HIGH": 3})
Letter = enum.StrEnum("Letter", {"A": "a", "B": "b", "C": "c", "D": "d"})


def members(kind):
    return objects(list(kind))


HOLDERS = {"list": list, "objects": lambda a: a, "pandas": lambda a: pd.Series(a, dtype=object)}
SORTS = {
    "dates": (DAYS, DATES),
    "times in a zone": (DAYS, ZONED),
    "durations": (HOURS, DURATIONS),
    "members": (members(Sport), HOLDERS),
    "members that are integers": (members(Level), HOLDERS),
    "members that are text": (members(Letter), HOLDERS),
}
OF_LABELS = [name for name, case in CASES.items() if case.row.predicts_labels or "labels" in case.row.options]
PAIRS = [name for name in OF_LABELS if "labels" not in CASES[name].row.options]
# the others of its kind read labels by the same way
FAST = {"accuracy", "macro f1", "log loss, 3 labels", "brier", "roc auc, 3 labels", "roc curve"}
each_metric = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FAST else pytest.mark.slow) for name in OF_LABELS]
)


def values_of(result):
    """Return what was released, without the names of labels."""
    return repr([*result.values()] if isinstance(result, dict) else result)


def asked(name):
    """Return a call of the catalogue: its function, numbers as labels, the other argument, and options."""
    case = CASES[name]
    data = [valid(case)[0].astype(int), valid(case)[1]]
    if case.row.predicts_labels:
        data[1] = data[1].astype(int)
    options = {**case.options}
    if "labels" in case.row.options:
        options["labels"] = options.get("labels") or list(range(max(2, data[0].max() + 1)))
    return partial(case.function, epsilon=1.0), data, options


def renamed(name, labels, holders):
    """Return the data and options of a call of the catalogue with other labels, each held as is said."""
    _, data, options = asked(name)
    both = CASES[name].row.predicts_labels
    columns = zip(holders if both else holders[:1], data, strict=False)
    held = [hold(labels[column]) for hold, column in columns]
    options = {**options}
    if "labels" in options:
        options["labels"] = [*labels[: len(options["labels"])]]
        if CASES[name].row.options.get("pos_label") == 1:
            options["pos_label"] = options["labels"][1]
    return held if both else [*held, data[1]], options


@loop_over(
    ("sort", "place"),
    [(sort, place) for sort, (_, holders) in SORTS.items() for place in range(len(holders))],
)
@each_metric
def test_each_metric_gives_the_bits_that_numbers_give(name, sort, place):
    labels, holders = SORTS[sort]
    here, there = ([*holders.values()][(place + i) % len(holders)] for i in range(2))
    function, data, options = asked(name)
    expected = values_of(function(*data, random_state=seeded(), **options))
    data, options = renamed(name, labels, (here, there))
    if sort == "times in a zone":
        options |= {key: aware(np.ravel(value)) for key, value in options.items() if key == "labels"}
        options |= {key: aware(np.ravel(value))[0] for key, value in options.items() if key == "pos_label"}
    assert values_of(function(*data, random_state=seeded(), **options)) == expected


KNOWN = [
    *[("dates", hold) for hold in DATES],
    *[("durations", hold) for hold in DURATIONS],
    *[("times in a zone", hold) for hold in ("datetimes", "pandas", "pandas, elsewhere", "pandas, category")],
]


@loop_over(("sort", "hold"), KNOWN)
def test_public_labels_come_in_anything_too(sort, hold):
    labels, holders = SORTS[sort]
    first, *_ = holders.values()
    _, data, options = asked("macro f1")
    expected = dp.private_f1_score(*data, epsilon=1.0, random_state=seeded(), **options)
    known = {**options, "labels": holders[hold](labels)}
    held = [first(labels[column]) for column in data]
    assert dp.private_f1_score(*held, epsilon=1.0, random_state=seeded(), **known) == expected
    two = [first(labels[column % 2]) for column in data]
    numbers = dp.private_recall_score(*(x % 2 for x in data), epsilon=1.0, random_state=seeded(), pos_label=0)
    known = {"labels": holders[hold](labels[:2]), "pos_label": next(iter(first(labels[:1])))}
    assert dp.private_recall_score(*two, epsilon=1.0, random_state=seeded(), **known) == numbers


FINER = (("Y", "M", 12), ("W", "D", 7), ("D", "s", 86_400), ("s", "as", 10**18))
FAR = [(f"{sort}8[{unit}]", f"{sort}8[{fine}]", factor) for sort in "Mm" for unit, fine, factor in FINER]


@loop_over(("unit", "fine", "factor"), FAR)
def test_no_year_is_too_far(unit, fine, factor):
    """What a finer unit cannot hold must not come round to be another time that it can."""
    counts = np.tile([0, 1, 2**61 + 1, -(2**61) - 3], 500)
    true, comes_round = counts.astype(unit), (counts * factor).astype(fine)
    assert dp.private_accuracy_score(true, comes_round, epsilon=1e6) == pytest.approx(0.5, abs=0.01)
    assert dp.private_accuracy_score(true, objects(true), epsilon=1e6) > 0.99
    known = {"labels": list(true[:4]), "average": "micro", "epsilon": 1e6}
    assert dp.private_recall_score(true, objects(true), **known) > 0.99
    few = np.abs(counts) < 2
    assert dp.private_recall_score(true[few], comes_round[few], **known) > 0.99
    match = "not in labels"
    assert_refused(
        dp.private_recall_score, (true, comes_round), ValueError, match, **known | {"epsilon": 1.0}
    )


@loop_over("other", ["number", "text", "zone", "duration", "months", "unit"])
def test_sorts_of_labels_are_never_equal(other):
    times = np.tile(DAYS.astype("M8[ns]"), 50)
    others = {
        "number": times.astype(int),
        "text": times.astype(str),
        "zone": pd.Series(times).dt.tz_localize("UTC"),
        "duration": times.astype(int).astype("m8[ns]"),
        "months": times.astype(int).astype("m8[M]"),
        "unit": times.astype(int).astype("m8"),
    }
    theirs, listed = others[other], [*others[other]]
    match = "time zone" if other == "zone" else "Mix of label input types"
    for left in (times, [*times], pd.Series(times)):
        for right in (theirs, listed):
            assert_refused(dp.private_accuracy_score, (left, right), ValueError, match, epsilon=1.0)
            assert_refused(dp.private_compare, (left, right, left), ValueError, match, epsilon=1.0)
    match = "time zone" if other == "zone" else "not in labels|no numbers"
    for y in (theirs, listed):
        for data in ((y, times), (times, y)):
            assert_refused(dp.private_confusion_matrix, data, ValueError, match, epsilon=1.0, labels=DAYS)
    known = [0, 1] if other == "number" else listed[:4]
    match = "time zone" if other == "zone" else "not in labels|no numbers|numeric"
    for y in (times, [*times]):
        refused = {"epsilon": 1.0, "labels": known}
        assert_refused(dp.private_confusion_matrix, (y, y), (ValueError, TypeError), match, **refused)
    with pytest.raises(ValueError, match="must be of one type"):
        dp.private_confusion_matrix(times, times, labels=[times[0], listed[1]], epsilon=1.0)


@loop_over("place", range(2))
def test_one_record_changes_nothing_about_the_others(place):
    """A list may hold anything: each record is compared for itself, and a missing time is refused."""
    true = [*DAYS.astype("M8[us]").tolist(), "a", 1, aware(DAYS)[0], dt.timedelta(1), Sport.RUN] * 20
    pred = [
        *DAYS.astype("M8[ns]"),
        "a",
        1.0,
        aware(DAYS)[0].astimezone(dt.UTC),
        np.timedelta64(24, "h"),
        Sport.RUN,
    ] * 20
    assert dp.private_accuracy_score(true, pred, epsilon=1e6) > 0.99
    spoiled = [true, pred]
    for missing in (pd.NaT, np.datetime64("NaT"), np.timedelta64("NaT", "s"), None):
        spoiled[place] = [missing, *(true, pred)[place][1:]]
        assert_refused(dp.private_accuracy_score, spoiled, ValueError, "NaN", epsilon=1.0)
    times = DAYS.astype("M8[ns]").copy()
    times[1] = "NaT"
    for held in (times, pd.Series(times), pd.Series(times).dt.tz_localize("UTC"), pl.Series(times)):
        spoiled = [DAYS, DAYS]
        spoiled[place] = held
        assert_refused(dp.private_accuracy_score, spoiled, ValueError, "NaN", epsilon=1.0)
        if not isinstance(held, pd.Series):
            assert_refused(dp.private_confusion_matrix, spoiled, ValueError, "NaN", epsilon=1.0, labels=DAYS)


def test_a_comparison_names_the_better_model_in_any_unit():
    true = np.tile(DAYS, 500)
    wrong = np.roll(true, 1)
    for held in (true.astype("M8[ns]"), scalars(true), pl.Series(true.astype("M8[us]"))):
        assert dp.private_compare(true, held, wrong, epsilon=1.0).better == "A"
        assert dp.private_compare(true, wrong.astype("M8[h]"), held, epsilon=1.0).better == "B"


@pytest.mark.parametrize(
    "sort", slow_but(["dates", "members"], ["dates", "members", "times in a zone", "durations"])
)
def test_frames_summaries_and_pages(sort):
    labels, holders = SORTS[sort]
    first, second, *_ = holders.values()
    known = [*first(labels)]
    codes, y = np.arange(2000) % 4, np.arange(2000) % 3 % 2
    of = {"epsilon": 1.0, "random_state": 5}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frames = [
            dp.PrivateMetricFrame(
                metrics="recall", y_true=y, y_pred=1 - y, sensitive_features=feature, group_labels=names, **of
            )
            for feature, names in ((codes, [0, 1, 2, 3]), (second(labels[codes]), known))
        ]
        assert [*frames[0].by_group.values()] == [*frames[1].by_group.values()]
        assert [*frames[1].by_group] == known
        assert frames[1].difference(known[0], known[1]) == frames[0].difference(0, 1)
        frames[1].to_frame()
        pages = [
            dp.private_evaluate(x, y_pred=z, labels=names, sensitive_features=z, group_labels=names, **of)
            for x, z, names in (
                (codes, codes, [0, 1, 2, 3]),
                (first(labels[codes]), second(labels[codes]), known),
            )
        ]
    assert pages[1].to_json()
    assert pages[1].to_markdown()
    assert [one.value for one in pages[0].numbers.values()] == [
        one.value for one in pages[1].numbers.values()
    ]


@loop_over("known", [DAYS[:2], DAYS[:2].astype("M8[ns]"), [*DAYS[:2]], scalars(DAYS[:2]), DAYS[:2].tolist(),
                     aware(DAYS[:2]), HOURS[:2], scalars(HOURS[:2])])  # fmt: skip
def test_a_budget_answers_again_for_labels_of_this_type_only(known, tmp_path_factory):
    path = tmp_path_factory.mktemp("budgets") / "budget.sqlite"
    labels, y = [*known], np.arange(200) % 2
    held = [labels[code] for code in y]
    asked = {"metrics": "accuracy", "y_true": y, "y_pred": y, "sensitive_features": held, "epsilon": 1.0}
    of = {"spend_name": "by day", "group_labels": known}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = dp.PrivateMetricFrame(**asked, **of, accountant=dp.PrivacyAccountant(5, path))
        new_session()
        second = dp.PrivateMetricFrame(**asked, **of, accountant=dp.PrivacyAccountant(5, path))
    assert [*first.by_group.items()] == [*second.by_group.items()]
    assert [*second.by_group] == labels
    counts = known.astype(int).tolist() if isinstance(known, np.ndarray) else [0, 1]
    asked["sensitive_features"] = [counts[code] for code in y]
    new_session()
    with pytest.raises(ValueError, match="group_labels was"):
        dp.PrivateMetricFrame(
            **asked, spend_name="by day", group_labels=counts, accountant=dp.PrivacyAccountant(5, path)
        )


@pytest.mark.parametrize("sort", SORTS)
def test_a_page_of_two_labels_can_be_read(sort):
    labels, holders = SORTS[sort]
    held = [*next(iter(holders.values()))(labels[:2])]
    y, pages = np.arange(400) % 2, []
    for x, names in ((y, [0, 1]), ([held[code] for code in y], held)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            page = dp.private_evaluate(x, x, labels=names, split={"labels": 1}, epsilon=1.0, random_state=5)
        pages.append([one.value for one in page.numbers.values()])
        assert page.to_markdown()
    assert pages[0] == pages[1]
