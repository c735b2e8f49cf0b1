"""The same values in whatever holds them are read alike; one that is missing is refused before the spend."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from helpers import bits, loop_over, messages, objects, seeded, telling

import dp_metrics as dp

N = 40
Y, P = np.tile([0, 1, 1, 0], N // 4), np.tile([0, 1], N // 2)
PAIRS = {
    "text": ("ham", "spam"),
    "whole": (0, 1),
    "shares": (0.25, 0.75),
    "truth": (False, True),
    "days": (date(1969, 12, 31), date(2031, 5, 2)),
    "times in a zone": (datetime(1969, 12, 31, tzinfo=UTC), datetime(2031, 5, 2, 7, tzinfo=UTC)),
    "durations": (timedelta(hours=-30), timedelta(days=400)),
}


def of_kind(kind, codes=Y):
    return [PAIRS[kind][code] for code in codes.tolist()]


def of_both(kind):
    return of_kind(kind), of_kind(kind, P)


HOLDERS = {
    "list": list,
    "tuple": tuple,
    "objects": objects,
    "pandas": pd.Series,
    "pandas, objects": partial(pd.Series, dtype=object),
    "pandas, nullable": lambda v: pd.Series(v).convert_dtypes(),
    "pandas, pyarrow": lambda v: pd.Series(v).convert_dtypes(dtype_backend="pyarrow"),
    "pandas, category": partial(pd.Series, dtype="category"),
    "pandas, Categorical": pd.Categorical,
    "pandas, index": pd.Index,
    "pandas, frame": lambda v: pd.DataFrame({"only": v}),
    "polars": pl.Series,
    "polars, frame": lambda v: pl.DataFrame({"only": v}),
    "polars, category": partial(pl.Series, dtype=pl.Categorical),
    "polars, enum": partial(pl.Series, dtype=pl.Enum(["spam", "ham"])),
    "pyarrow": pa.array,
    "pyarrow, dictionary": lambda v: pa.array(v).dictionary_encode(),
    "pyarrow, chunks": lambda v: pa.chunked_array([v[:9], v[9:]]),
    "pyarrow, table": lambda v: pa.table({"only": v}),
}


def frame(**how):
    of = {"metrics": "accuracy", "y_true": Y, "y_pred": P, "sensitive_features": Y, "group_labels": [0, 1]}
    return [*dp.PrivateMetricFrame(**{**of, **how}).by_group.values()]


def of_persons(call, *data):
    return (*PAIRS,), "groups", lambda v, kind, **how: call(*data, groups=v, **how)


NUMBERS = ("whole", "shares", "truth")
LABELS = ("text", "whole", "truth", "days", "times in a zone", "durations")
# All that takes a value per record: of which kinds, what its refusals call them, and a call.
DOORS = {
    "numbers": (NUMBERS, "y_true", lambda v, kind, **how: dp.private_mae(v, Y / 2, **how)),
    "losses": (NUMBERS, "losses", lambda v, kind, **how: dp.private_mean_loss(v, **how)),
    "scores": (NUMBERS, "y_score", lambda v, kind, **how: dp.private_roc_auc_score(Y, v, **how)),
    "probabilities": (NUMBERS, "y_proba", lambda v, kind, **how: dp.private_log_loss(Y, v, **how)),
    "weights": (NUMBERS, "sample_weight", lambda v, _, **how: dp.private_mae(Y, P, sample_weight=v, **how)),
    "labels": (LABELS, "y_pred", lambda v, kind, **how: dp.private_accuracy_score(of_kind(kind), v, **how)),
    "public labels": (
        LABELS, "y_true", lambda v, kind, **how: dp.private_recall_score(
            v, of_both(kind)[1], labels=PAIRS[kind], pos_label=PAIRS[kind][1], **how
        ),
    ),
    "comparison": (LABELS, "y_true", lambda v, kind, **how: dp.private_compare(v, *of_both(kind), **how)),
    "groups of a frame": (
        LABELS, "sensitive_features",
        lambda v, kind, **how: frame(sensitive_features=v, group_labels=PAIRS[kind], **how),
    ),
    "persons": of_persons(dp.private_mae, Y, P),
    "persons of a table": of_persons(dp.private_recall_score, Y, P),
    "persons of a frame": of_persons(frame),
    "persons of a comparison": of_persons(dp.private_compare, Y, P, Y),
}  # fmt: skip


def assert_missing(door, values, kind="text"):
    """Check that values with a missing one are refused at no cost, without a word of the others."""
    budget = dp.PrivacyAccountant(1.0)
    _, called, call = DOORS[door]
    with pytest.raises(ValueError, match=f"^Input {called} contains NaN: drop such records") as refused:
        call(values, kind, epsilon=1.0, accountant=budget)
    assert budget.spent == 0
    assert not any(one.isdigit() for one in str(refused.value))
    assert len([*messages(refused.value)]) == 1


@pytest.mark.gate
@pytest.mark.parametrize("door", DOORS)
@loop_over("holder", HOLDERS)
def test_values_are_read_alike_in_whatever_holds_them_and_none_may_be_missing(door, holder):
    kinds, _, call = DOORS[door]
    for kind in kinds if holder not in ("polars, category", "polars, enum") else {*kinds} & {"text"}:
        values = of_kind(kind)
        expected, found = (
            bits(call(one, kind, epsilon=5.0, random_state=seeded()))
            for one in (values, HOLDERS[holder](values))
        )
        assert found == expected, kind
        assert_missing(door, HOLDERS[holder]([None, *values[1:]]), kind)


NOTHING = [
    float("nan"), np.float32("nan"), pd.NA, pd.NaT, Decimal("NaN"), Decimal("sNaN"),
    np.datetime64("NaT", "s"), np.timedelta64("NaT", "h"),
]  # fmt: skip


READ_APART = {
    "numbers": "shares", "weights": "whole", "labels": "text", "public labels": "text", "persons": "whole",
}  # fmt: skip


@loop_over(("door", "kind"), READ_APART.items())
@loop_over("nothing", NOTHING)
@loop_over("hold", [list, tuple, objects, partial(pd.Series, dtype=object)])
def test_whatever_says_that_nothing_is_there_is_missing(door, kind, nothing, hold):
    if door not in ("numbers", "weights") or not isinstance(nothing, np.generic) or nothing.dtype.kind == "f":
        assert_missing(door, hold([nothing, *of_kind(kind)[1:]]), kind)  # any time is no number
    if door == "persons" and hold is objects:
        assert_missing(door, objects([("a", nothing), *zip("b" * (N - 1), range(1, N), strict=True)]))


DATES = ["NaT", *["2020-01-01"] * (N - 1)]
TYPED = {
    "floats": np.array([np.nan, *Y[1:]]),
    "float32": np.array([np.nan, *Y[1:]], np.float32),
    "long double": np.array([np.nan, *Y[1:]], np.longdouble),
    "one column": np.array([[np.nan], *Y[1:, np.newaxis]]),
    "days": np.array(DATES, "M8[D]"),
    "spans": np.array(["NaT", *Y[1:]], "m8[h]"),
    "records": np.array([("a", np.nan), *(("a", one) for one in Y[1:])], "U1,f8"),
    "records of days": np.array([("a", "NaT"), *(("a", one) for one in DATES[1:])], "U1,M8[ns]"),
    "pandas, days in a zone": pd.Series(pd.to_datetime(DATES)).dt.tz_localize("UTC"),
    "pandas, periods": pd.PeriodIndex(DATES, freq="D"),
    "pandas, index of two": pd.MultiIndex.from_arrays([["a"] * N, [None, *Y[1:]]]),
}  # fmt: skip
if hasattr(np.dtypes, "StringDType"):
    TYPED["text of NumPy"] = np.array([None, *of_kind("text")[1:]], np.dtypes.StringDType(na_object=None))


@loop_over("name", TYPED)
def test_no_array_of_a_type_may_lack_a_value(name):
    assert_missing("persons", TYPED[name])
    if name in ("floats", "float32", "long double", "one column"):
        assert_missing("numbers", TYPED[name])
        assert_missing("weights", TYPED[name])


DAY = np.array(["2020-01-01"])


@loop_over(
    ("ids", "persons"),
    [
        (["1", "01", "1.0"], 3),
        ([b"a", "a"], 2),
        ([2**53, 2**53 + 1, 0.5], 3),
        ([2**80, 2**80 + 1, b"a"], 3),
        (np.array([2**63, 2**63 + 1, 2**63], dtype=np.uint64), 2),
        (pl.Series([2**60, 2**60 + 1, 2**60]), 2),
        (pd.Series([2**60, 2**60 + 1, 2**60], dtype="Int64"), 2),
        (pd.Series([2**60, 2**60 + 1, 2**60], dtype="int64[pyarrow]"), 2),
        ([1, 1.0, True, np.int8(1), np.float32(1), Decimal(1), b"a"], 2),
        ([0.0, -0.0, False], 1),
        (np.array([0.0, -0.0]), 1),
        ([date(2020, 1, 1), datetime(2020, 1, 1), datetime(2020, 1, 1, tzinfo=UTC)], 2),
        ([*DAY.astype("M8[D]"), *DAY.astype("M8[ns]"), datetime(2020, 1, 1), pd.Timestamp("2020-01-01")], 1),
        (objects([("a", 1), ("a", 1.0), ("a", 2), "a"]), 3),
        (np.array([("a", 1), ("a", 1), ("a", 2)], dtype="U1,i8"), 2),
        (pd.MultiIndex.from_tuples([("a", 1), ("a", 1), ("a", 2)]), 2),
    ],
)
def test_an_id_is_what_it_is_whatever_stands_beside_it(ids, persons):
    labels = [0] * len(ids)
    assert dp.private_compare(labels, labels, labels, epsilon=1.0, groups=ids).n == persons


@pytest.mark.parametrize(("dtype", "least", "most"), [("float32", 12, 17), ("float64", 34, 40)])
def test_the_limit_of_a_log_loss_is_that_of_the_type_of_probabilities(dtype, least, most):
    """scikit-learn clips probabilities by the type that they came in; elements of objects have none."""
    wrong = np.ones(400, dtype)
    of_arrow = {"float32": "float[pyarrow]", "float64": "double[pyarrow]"}[dtype]
    nullable = dtype.capitalize()
    stated = [
        wrong, pd.Series(wrong, dtype=nullable), pd.Series(wrong, dtype=of_arrow), pl.Series(wrong),
        pd.DataFrame({"p": wrong}).astype(nullable), pl.DataFrame({"p": wrong}), pa.table({"p": wrong}),
    ]  # fmt: skip
    for held in stated:
        assert least < dp.private_log_loss([0] * 400, held, epsilon=20.0) < most, type(held)
    for held in ([*wrong], wrong.astype(object), pd.Series(wrong, dtype=object), wrong.astype(int)):
        assert 34 < dp.private_log_loss([0] * 400, held, epsilon=20.0) < 40, type(held)
    two_types = pd.DataFrame({"no": 1 - wrong, "yes": wrong.astype(float)})
    assert 34 < dp.private_log_loss([0] * 400, two_types, epsilon=20.0) < 40


ASKED = (
    "getattribute", "getattr", "eq", "ne", "lt", "gt", "hash", "bool", "float", "int", "index", "complex",
    "str", "repr", "format", "len", "iter", "getitem", "contains", "array",
)  # fmt: skip


TELLING = {name: telling(name) for name in ASKED} | {"all": telling(*ASKED)}
TELLING["class"] = type("Tells", (), {"__class__": property(lambda self: int("987654.25"))})()


@pytest.mark.parametrize("door", DOORS)
@loop_over("name", TELLING)
@loop_over("hold", [list, objects])
def test_no_object_says_a_word_of_its_own(door, name, hold):
    (kind, *_), called, call = DOORS[door]
    budget, refused = dp.PrivacyAccountant(2.0), None
    try:
        call(hold([*of_kind(kind)[:-1], TELLING[name]]), kind, epsilon=1.0, accountant=budget)
    except (ValueError, TypeError) as error:
        refused = error
    if refused is None:  # what is equal to nothing but itself is a label, and an id
        assert called == "groups" or door in ("labels", "comparison")
    else:
        assert not any("987654" in said for said in messages(refused))
        assert budget.spent == 0
