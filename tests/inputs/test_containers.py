"""The same records in whatever holds them give the same bits, or a clear error before anything is spent."""

import importlib.util
import tempfile
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from cases import CASES, valid
from helpers import assert_refused, loop_over, seeded

import dp_metrics as dp
from dp_metrics.inputs.containers import array_of
from dp_metrics.inputs.shape import ArgumentShape

ARROW = {"dtype_backend": "pyarrow"}


def of_pandas(array):
    return pd.Series(array) if array.ndim == 1 else pd.DataFrame(array)


def reversed_index(array):
    data = of_pandas(array)
    data.index = range(len(data))[::-1]
    return data


def one_column(make):
    return lambda array: (
        make({"only": array})
        if array.ndim == 1
        else make(dict(zip(map(str, range(9)), array.T, strict=False)))
    )


def of_polars(array):
    return pl.Series(array) if array.ndim == 1 else pl.DataFrame(array)


def of_pyarrow(array):
    return pa.array(array) if array.ndim == 1 else one_column(pa.table)(array)


def in_chunks(array):
    return pa.chunked_array([array[:3], array[3:]]) if array.ndim == 1 else of_pyarrow(array)


def tensor(array):
    import torch

    return torch.from_numpy(np.ascontiguousarray(array))


def memory_map(array):
    with tempfile.TemporaryFile() as file:
        array.tofile(file)
        file.flush()
        return np.memmap(file, dtype=array.dtype, mode="r", shape=array.shape)


HOLDERS = {
    "list": lambda array: array.tolist(),
    "tuple": lambda array: tuple(map(tuple, array)) if array.ndim == 2 else tuple(array),
    "not contiguous": lambda array: np.repeat(array, 2, axis=0)[::2],
    "read-only": lambda array: np.frombuffer(array.tobytes(), dtype=array.dtype).reshape(array.shape),
    "memory map": memory_map,
    "objects": lambda array: array.astype(object),
    "pandas": of_pandas,
    "pandas, one column": one_column(pd.DataFrame),
    "pandas, reversed index": reversed_index,
    "pandas, nullable": lambda array: of_pandas(array).convert_dtypes(),
    "pandas, pyarrow": lambda array: of_pandas(array).convert_dtypes(**ARROW),
    "pandas, objects": lambda array: of_pandas(array).astype(object),
    "polars": of_polars,
    "polars, one column": one_column(pl.DataFrame),
    "pyarrow": of_pyarrow,
    "pyarrow, chunks": in_chunks,
    "pyarrow, one column": one_column(pa.table),
}
COLUMNS = {"pandas, category": lambda array: pd.Series(array).astype("category")}
NUMBERS = {"torch": tensor} if importlib.util.find_spec("torch") else {}


def missing_in_pandas(array, **options):
    data = of_pandas(array).convert_dtypes(**options)
    data.iloc[(0,) * array.ndim] = pd.NA
    return data


def with_none(array):
    first = None if array.ndim == 1 else [None, *array[0, 1:].tolist()]
    return [first, *array[1:].tolist()]


def missing_in_pyarrow(array):
    if array.ndim == 1:
        return pa.array(with_none(array))
    columns = list(zip(*with_none(array), strict=True))
    return pa.table({str(place): pa.array(column) for place, column in enumerate(columns)})


MISSING = {
    "pandas": missing_in_pandas,
    "pandas, pyarrow": partial(missing_in_pandas, **ARROW),
    "pandas, category": lambda a: pd.Series(with_none(a)).astype("category") if a.ndim == 1 else with_none(a),
    "polars": lambda a: pl.Series(with_none(a)) if a.ndim == 1 else pl.DataFrame(with_none(a), orient="row"),
    "pyarrow": missing_in_pyarrow,
    "objects": lambda a: np.array(with_none(a), dtype=object),
    "not a number": lambda a: np.array(with_none(a), dtype=float),
}


def positive(rng):
    return np.abs(rng.normal(size=40)).round(3)


# Beside the metrics: what reads data, with the data.
OTHERS = {
    "wins": (dp.private_compare, lambda rng: tuple(rng.integers(0, 2, (3, 40)))),
    "wins by error": (partial(dp.private_compare, loss="mae"), lambda rng: tuple(rng.normal(size=(3, 40)))),
    "difference of errors": (
        partial(dp.private_compare, loss="mse", max_difference=3.0),
        lambda rng: tuple(rng.normal(size=(3, 40))),
    ),
    "wins by probability": (
        partial(dp.private_compare, loss="log_loss"),
        lambda rng: (rng.integers(0, 2, 40), rng.random(40).round(3), rng.random(40).round(3)),
    ),
    "interval of a mean": (partial(dp.private_mean_interval, max_loss=5.0), lambda rng: (positive(rng),)),
    "interval of a quantile": (
        lambda x, **options: dp.private_quantile_interval(x, 0.5, **options),
        lambda rng: (positive(rng),),
    ),
}


def calls():
    for name, case in CASES.items():
        yield name, case, valid(case)
    for name, (function, data) in OTHERS.items():
        yield name, partial(function, epsilon=1.0), data(np.random.default_rng(0))


CALLS = {name: (function, data) for name, function, data in calls()}
# one call for each reader of records; the others share these readers, and run with the slow tests
READERS = {
    "mse", "mse, 3 outputs", "log loss", "log loss, 3 labels", "variance", "median error", "zero-one",
    "top-k", "f1", "roc auc", "roc auc, 3 labels", "calibration curve", "mean loss", "wins",
    "wins by error", "wins by probability", "interval of a mean", "interval of a quantile",
}  # fmt: skip
each_reader = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in READERS else pytest.mark.slow) for name in CALLS]
)


def bits(value):
    """Return what a release says, every digit of it."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.tolist()
    return repr(value)


@loop_over("holder", [*HOLDERS, *NUMBERS])
@each_reader
def test_the_same_numbers_give_the_same_bits(name, holder):
    function, data = CALLS[name]
    hold = {**HOLDERS, **NUMBERS}[holder]
    expected = function(*data, random_state=seeded())
    assert bits(function(*map(hold, data), random_state=seeded())) == bits(expected)


@loop_over("missing", MISSING)
@each_reader
def test_a_missing_value_is_refused(name, missing):
    function, data = CALLS[name]
    for place in range(len(data)):
        spoiled = [*data]
        spoiled[place] = MISSING[missing](spoiled[place])
        assert_refused(function, spoiled, ValueError, "NaN")


TEXT = np.array(["ham", "spam", "spam", "ham"] * 10)
GUESS = np.array(["ham", "spam", "ham", "spam"] * 10)
SCORE = np.tile([0.25, 0.75, 0.5, 0.125], 10)
PAIRS = np.column_stack([1 - SCORE, SCORE])
KNOWN = {"labels": ["ham", "spam"]}
OF_TEXT = {
    "accuracy": (dp.private_accuracy_score, (TEXT, GUESS), {}),
    "f1": (partial(dp.private_f1_score, pos_label="spam"), (TEXT, GUESS), KNOWN),
    "confusion": (dp.private_confusion_matrix, (TEXT, GUESS), KNOWN),
    "classification report": (dp.private_classification_report, (TEXT, GUESS), KNOWN),
    "log loss": (dp.private_log_loss, (TEXT, PAIRS), KNOWN),
    "brier": (dp.private_brier_score_loss, (TEXT, SCORE), KNOWN),
    "area": (dp.private_roc_auc_score, (TEXT, SCORE), KNOWN),
    "curve": (dp.private_roc_curve, (TEXT, SCORE), KNOWN),
    "top": (partial(dp.private_top_k_accuracy_score, k=1), (TEXT, PAIRS), KNOWN),
    "wins": (dp.private_compare, (TEXT, GUESS, TEXT[::-1]), {}),
}
HOLDERS_OF_TEXT = {
    "list": np.ndarray.tolist,
    "objects": lambda a: a.astype(object),
    "pandas, str": pd.Series,
    "pandas, objects": lambda a: pd.Series(a, dtype=object),
    "pandas, string": lambda a: pd.Series(a, dtype="string"),
    "pandas, category": lambda a: pd.Series(a, dtype="category"),
    "pandas, pyarrow": lambda a: pd.Series(a, dtype="string[pyarrow]"),
    "polars": lambda a: pl.Series(a.tolist()),
    "polars, category": lambda a: pl.Series(a.tolist(), dtype=pl.Categorical),
    "polars, enum": lambda a: pl.Series(a.tolist(), dtype=pl.Enum(["spam", "ham"])),
    "pyarrow": lambda a: pa.array(a.tolist()),
    "pyarrow, dictionary": lambda a: pa.array(a.tolist()).dictionary_encode(),
}


def text_only(hold, data):
    return [hold(array) if array.dtype.kind == "U" else array for array in data]


@loop_over("holder", HOLDERS_OF_TEXT)
@pytest.mark.parametrize("name", OF_TEXT)
def test_the_same_labels_give_the_same_bits(name, holder):
    function, data, options = OF_TEXT[name]
    options = {"epsilon": 1.0, **options}
    expected = function(*data, random_state=seeded(), **options)
    held = text_only(HOLDERS_OF_TEXT[holder], data)
    assert bits(function(*held, random_state=seeded(), **options)) == bits(expected)


@loop_over("holder", [name for name in HOLDERS_OF_TEXT if name != "list"])
@pytest.mark.parametrize("name", OF_TEXT)
def test_a_missing_label_is_refused(name, holder):
    function, data, options = OF_TEXT[name]
    hold = HOLDERS_OF_TEXT[holder]

    def with_missing(array):
        text = array.astype(object)
        text[0] = None
        return hold(text)

    assert_refused(
        function, text_only(with_missing, data), ValueError, "NaN|not in labels", epsilon=1.0, **options
    )


@loop_over("missing", [None, np.nan, pd.NA, pd.NaT, np.datetime64("NaT", "s")])
def test_what_is_missing_is_no_label(missing):
    labels = [missing, *TEXT[1:].tolist()]
    for data in ((labels, TEXT), (TEXT, labels), (labels, labels)):
        assert_refused(dp.private_accuracy_score, data, ValueError, "NaN|Mix of label", epsilon=1.0)
        assert_refused(dp.private_compare, (*data, TEXT), ValueError, "NaN|Mix of label", epsilon=1.0)


@pytest.mark.parametrize(
    "hold",
    [
        lambda a: pd.Series(a, dtype="boolean"),
        lambda a: pd.Series(a, dtype="bool[pyarrow]"),
        lambda a: pl.Series(a),
        lambda a: pa.array(a),
    ],
)
def test_truth_values_are_labels(hold):
    true, pred = TEXT == "spam", GUESS == "spam"
    for metric in (dp.private_accuracy_score, dp.private_f1_score, dp.private_log_loss):
        expected = metric(true, pred, epsilon=1.0, random_state=seeded())
        assert metric(hold(true), hold(pred), epsilon=1.0, random_state=seeded()) == expected


@loop_over("holder", [*HOLDERS, *COLUMNS, *NUMBERS])
def test_weights_and_groups_come_in_anything_too(holder):
    hold = {**HOLDERS, **COLUMNS, **NUMBERS}[holder]
    y, weights, groups = np.arange(40.0), np.tile([1.0, 2.0], 20), np.repeat(np.arange(20), 2)
    expected, found = (
        dp.private_mae(
            y, y[::-1], epsilon=5.0, sample_weight=of(weights), groups=of(groups), random_state=seeded()
        )
        for of in (np.asarray, hold)
    )
    assert found == expected


@pytest.mark.parametrize("metric", [dp.private_log_loss, dp.private_probability_report])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_resolution_of_probabilities_is_that_of_their_type_in_anything(metric, dtype):
    """scikit-learn clips probabilities by the type that they came in, and so limits the log loss."""
    true, proba = np.zeros(40), np.ones(40, dtype=dtype)
    expected = bits(metric(true, proba, epsilon=5.0, random_state=seeded()))
    nullable, arrow = dtype.capitalize(), {"float32": "float", "float64": "double"}[dtype] + "[pyarrow]"
    for hold in (
        pd.Series,
        lambda a: pd.Series(a, dtype=nullable),
        lambda a: pd.Series(a, dtype=arrow),
        lambda a: pd.DataFrame({"p": a}).astype(nullable),
        pl.Series,
        lambda a: pl.DataFrame({"p": a}),
        pa.array,
        lambda a: pa.table({"p": a}),
        *NUMBERS.values(),
    ):
        assert bits(metric(true, hold(proba), epsilon=5.0, random_state=seeded())) == expected


class OfObjects:
    """A nullable column as older releases of pandas make an array of it: one of objects."""

    dtype = pd.Float32Dtype()

    def __array__(self, dtype=None, copy=None):
        return np.ones(40, dtype=object)


def test_the_resolution_of_a_nullable_type_is_that_of_its_floats():
    container = OfObjects()
    assert ArgumentShape.of(container, array_of(container)).resolution == np.finfo(np.float32).eps


def test_single_and_double_precision_have_different_limits():
    """So that the test above can fail."""
    losses = [
        dp.private_log_loss(np.zeros(400), np.ones(400, dtype), epsilon=5.0) for dtype in (np.float32, float)
    ]
    assert losses[0] < 17 < 34 < losses[1]


@each_reader
def test_a_lazy_frame_is_refused(name):
    function, data = CALLS[name]
    for place in range(len(data)):
        lazy = [*data]
        lazy[place] = one_column(pl.LazyFrame)(lazy[place])
        assert_refused(function, lazy, TypeError, r"collect\(\)")
