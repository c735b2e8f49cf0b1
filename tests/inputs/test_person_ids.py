"""Ids of persons, in whatever holds them: the same id is one person, and a missing one is refused."""

from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from cases import CASES, KINDS, valid
from helpers import NoEntropy, assert_refused, loop_over

import dp_metrics as dp

N = 40
ROWS = np.arange(N)
TEXT = [f"p{k // 2}" for k in range(N)]
WHOLE = (ROWS // 2).tolist()
DATES = np.datetime64("2020-01-01") + ROWS // 2
MISSING = "^Input {} contains NaN: drop such records"


def first_is(value, ids=TEXT):
    return [value, *ids[1:]]


def objects(ids):
    array = np.empty(len(ids), dtype=object)
    array[:] = ids
    return array


VALUES = {
    "None": None,
    "float": float("nan"),
    "float32": np.float32("nan"),
    "NA": pd.NA,
    "NaT": pd.NaT,
    "date of NumPy": np.datetime64("NaT", "s"),
    "span of NumPy": np.timedelta64("NaT", "h"),
    "Decimal": Decimal("NaN"),
    "signaling Decimal": Decimal("sNaN"),
}
WITH_A_MISSING_ID = {
    **{f"list of text, {name}": first_is(value) for name, value in VALUES.items()},
    **{f"list of numbers, {name}": first_is(value, WHOLE) for name, value in VALUES.items()},
    **{f"tuple, {name}": tuple(first_is(value)) for name, value in VALUES.items()},
    **{f"objects, {name}": objects(first_is(value)) for name, value in VALUES.items()},
    **{f"objects in pandas, {name}": pd.Series(objects(first_is(value))) for name, value in VALUES.items()},
    **{
        f"tuples, {name}": objects([("a", value), *(("a", one) for one in TEXT[1:])])
        for name, value in VALUES.items()
    },
    "list of one column": [[one] for one in first_is(None)],
    "floats": np.array(first_is(np.nan, WHOLE)),
    "single floats": np.array(first_is(np.nan, WHOLE), dtype=np.float32),
    "long floats": np.array(first_is(np.nan, WHOLE), dtype=np.longdouble),
    "complex": np.array(first_is(np.nan, WHOLE), dtype=complex),
    "one column": np.array(first_is(np.nan, WHOLE))[:, np.newaxis],
    "dates": np.array(["NaT", *DATES[1:]], dtype="datetime64[D]"),
    "instants": np.array(["NaT", *DATES[1:]], dtype="datetime64[ns]"),
    "spans": np.array(["NaT", *ROWS[1:]], dtype="timedelta64[h]"),
    "records": np.array([("a", np.nan), *(("a", one) for one in WHOLE[1:])], dtype="U1,f8"),
    "records of dates": np.array([("a", "NaT"), *(("a", one) for one in DATES[1:])], dtype="U1,M8[ns]"),
    "pandas, str": pd.Series(first_is(None)),
    "pandas, string": pd.Series(first_is(None), dtype="string"),
    "pandas, pyarrow": pd.Series(first_is(None), dtype="string[pyarrow]"),
    "pandas, category": pd.Series(first_is(None), dtype="category"),
    "pandas, Categorical": pd.Categorical(first_is(None)),
    "pandas, categories of numbers": pd.Series(first_is(None, WHOLE), dtype="category"),
    "pandas, floats": pd.Series(first_is(None, WHOLE)),
    "pandas, nullable": pd.Series(first_is(None, WHOLE), dtype="Int64"),
    "pandas, nullable floats": pd.Series(first_is(None, WHOLE), dtype="Float64"),
    "pandas, nullable booleans": pd.Series(first_is(None, [True, False] * 20), dtype="boolean"),
    "pandas, int64[pyarrow]": pd.Series(first_is(None, WHOLE), dtype="int64[pyarrow]"),
    "pandas, dates": pd.Series([pd.NaT, *DATES[1:]]),
    "pandas, dates in a zone": pd.Series([pd.NaT, *DATES[1:]]).dt.tz_localize("UTC"),
    "pandas, periods": pd.PeriodIndex([pd.NaT, *DATES[1:]], freq="D"),
    "pandas, frame": pd.DataFrame({"id": first_is(None)}),
    "pandas, index": pd.Index(first_is(None)),
    "pandas, index of two": pd.MultiIndex.from_arrays([["a"] * N, first_is(None)]),
    "polars": pl.Series(first_is(None)),
    "polars, whole": pl.Series(first_is(None, WHOLE)),
    "polars, not a number": pl.Series(first_is(float("nan"), [float(one) for one in WHOLE])),
    "polars, category": pl.Series(first_is(None), dtype=pl.Categorical),
    "polars, dates": pl.Series(first_is(None, DATES.tolist())),
    "polars, booleans": pl.Series(first_is(None, [True, False] * 20)),
    "polars, frame": pl.DataFrame({"id": first_is(None)}),
    "pyarrow": pa.array(first_is(None)),
    "pyarrow, whole": pa.array(first_is(None, WHOLE)),
    "pyarrow, dictionary": pa.array(first_is(None)).dictionary_encode(),
    "pyarrow, chunks": pa.chunked_array([first_is(None)[:9], TEXT[9:]]),
    "pyarrow, dates": pa.array(first_is(None, DATES.tolist())),
    "pyarrow, table": pa.table({"id": first_is(None)}),
}
if hasattr(np.dtypes, "StringDType"):
    WITH_A_MISSING_ID["text of NumPy"] = np.array(first_is(None), dtype=np.dtypes.StringDType(na_object=None))

Y = np.tile([0, 1, 1, 0], N // 4)
P = np.tile([0, 1], N // 2)
FRAME = partial(
    dp.PrivateMetricFrame, y_true=Y, y_pred=P, sensitive_features=Y, group_labels=[0, 1], epsilon=1.0
)  # fmt: skip
DOORS = {
    **{name: partial(case, *valid(case, N)) for name, case in CASES.items() if "groups" in case.row.options},
    "frame": partial(FRAME, metrics="recall"),
    "frame of public groups": partial(FRAME, metrics="accuracy", membership="public"),
    "wins": partial(dp.private_compare, Y, P, 1 - P, epsilon=1.0),
    "difference": partial(dp.private_compare, Y, P, 1 - P, max_difference=1.0, epsilon=1.0),
    "mean": partial(dp.private_mean_interval, Y, max_loss=1.0, epsilon=1.0),
    "quantile": partial(dp.private_quantile_interval, Y, 0.5, epsilon=1.0),
    "limits of the noise": partial(dp.noise_interval, 0.5, metric="accuracy", epsilon=1.0),
    "limits of the noise of a table": partial(
        dp.noise_interval, 0.1, metric="expected_calibration_error", epsilon=1.0
    ),
    "expected error": partial(dp.expected_error, "accuracy", Y, P, epsilon=1.0),
    "expected error of a table": partial(dp.expected_error, "recall", Y, P, epsilon=1.0, n=2 * N),
    "epsilon for an error": partial(dp.epsilon_for_error, "accuracy", Y, P, error=0.1),
}
NO_RELEASE = {"limits of the noise", "limits of the noise of a table", "expected error"}
NO_RELEASE |= {"expected error of a table", "epsilon for an error"}
REFUSE_ALL = {"mean", "quantile"}


@pytest.mark.parametrize("door", sorted({*DOORS} - REFUSE_ALL))
def test_a_missing_id_is_refused_in_every_container(door):
    budget = dp.PrivacyAccountant(1.0)
    public = {} if door in NO_RELEASE else {"accountant": budget, "random_state": NoEntropy()}
    for name, ids in WITH_A_MISSING_ID.items():
        with pytest.raises(ValueError, match=MISSING.format("groups")) as refused:
            DOORS[door](groups=ids, **public)
        assert not any(one.isdigit() for one in str(refused.value)), name
        assert refused.value.__context__ is None, name
    assert budget.spent == 0


def persons_in(ids):
    """Return how many persons a comparison finds in the ids of its records."""
    labels = [0] * len(ids)
    return dp.private_compare(labels, labels, labels, epsilon=1.0, groups=ids).n


@loop_over(
    ("ids", "persons"),
    [
        ([1, "1", 2, "2"], 4),
        ([1.5, "1.5", "a"], 3),
        ([b"a", "a"], 2),
        ([2**53, 2**53 + 1, 0.5], 3),
        ([2**80, 2**80 + 1, "a"], 3),
        (np.array([2**63, 2**63 + 1, 2**63], dtype=np.uint64), 2),
        (pl.Series([2**60, 2**60 + 1, 2**60]), 2),
        (pd.Series([2**60, 2**60 + 1, 2**60], dtype="Int64"), 2),
        (pd.Series([2**60, 2**60 + 1, 2**60], dtype="int64[pyarrow]"), 2),
        ([1, 1.0, True, np.int8(1), np.float32(1), Decimal(1), "a"], 2),
        ([0.0, -0.0, False], 1),
        (np.array([0.0, -0.0]), 1),
        ([date(2020, 1, 1), datetime(2020, 1, 1), datetime(2020, 1, 1, tzinfo=UTC)], 2),
        (
            [
                *np.array(["2020-01-01"], "M8[D]"),
                *np.array(["2020-01-01"], "M8[ns]"),
                datetime(2020, 1, 1),
                pd.Timestamp("2020-01-01"),
            ],
            1,
        ),
        (objects([("a", 1), ("a", 1.0), ("a", 2), "a"]), 3),
        (np.array([("a", 1), ("a", 1), ("a", 2)], dtype="U1,i8"), 2),
        (pd.MultiIndex.from_tuples([("a", 1), ("a", 1), ("a", 2)]), 2),
    ],
)
def test_an_id_is_what_it_is_whatever_stands_beside_it(ids, persons):
    assert persons_in(ids) == persons


WEIGHTS = [1.0, 2.0] * (N // 2)
MISSING_NUMBERS = [name for name in VALUES if "NumPy" not in name]  # any time there is no number
WEIGHTS_WITH_A_MISSING_ONE = {
    **{f"list, {name}": first_is(VALUES[name], WEIGHTS) for name in MISSING_NUMBERS},
    **{f"objects, {name}": objects(first_is(VALUES[name], WEIGHTS)) for name in MISSING_NUMBERS},
    "floats": np.array(first_is(np.nan, WEIGHTS)),
    "single floats": np.array(first_is(np.nan, WEIGHTS), dtype=np.float32),
    "long floats": np.array(first_is(np.nan, WEIGHTS), dtype=np.longdouble),
    "pandas": pd.Series(first_is(None, WEIGHTS)),
    "pandas, nullable": pd.Series(first_is(None, WEIGHTS), dtype="Float64"),
    "pandas, whole": pd.Series(first_is(None, [1] * N), dtype="Int64"),
    "pandas, pyarrow": pd.Series(first_is(None, WEIGHTS), dtype="double[pyarrow]"),
    "pandas, category": pd.Series(first_is(None, WEIGHTS), dtype="category"),
    "polars": pl.Series(first_is(None, WEIGHTS)),
    "pyarrow": pa.array(first_is(None, WEIGHTS)),
    "pyarrow, chunks": pa.chunked_array([first_is(None, WEIGHTS)[:9], WEIGHTS[9:]]),
}


@pytest.mark.parametrize(
    "name", [name for name, case in CASES.items() if "sample_weight" in case.row.options and name in KINDS]
)
def test_a_missing_weight_is_refused_in_every_container(name):
    for weights in WEIGHTS_WITH_A_MISSING_ONE.values():
        match = MISSING.format("sample_weight")
        assert_refused(CASES[name], valid(CASES[name], N), ValueError, match, sample_weight=weights)
