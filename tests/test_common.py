"""One table of metrics; every property is tried on each row. A new metric needs a row here."""

import dataclasses
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers import MAX, NoEntropy
from scipy import sparse
from sklearn import metrics as sklearn_metrics

import dp_metrics as dp
from dp_metrics import PrivacyAccountant, PrivacyBudgetError, SeededReleaseWarning
from dp_metrics._random import OSEntropy, SeededEntropy
from dp_metrics.mechanisms import MECHANISMS


@dataclass(frozen=True)
class Metric:
    """A public metric and what is needed to try it.

    `data` makes valid arguments, exact in float32. `twin` is the same without privacy. `options` are always
    passed; with `bounded` the metric has the public upper limit `limit`.
    """

    function: Callable[..., float]
    data: Callable[[np.random.Generator, int], tuple[np.ndarray, ...]]
    twin: Callable[..., float]
    bounded: dict[str, Any]
    limit: float
    options: dict[str, Any] = field(default_factory=dict)
    sentinels: tuple[float | None, ...] = (987654.25, 987654.25)  # valid values, to be looked for in messages
    always_bounded: bool = False
    lowest: float = 0.0
    mechanism: str | None = "hazard"  # the default
    zero: float | None = 0.0  # the result for zeros; None: not defined
    tolerance: float = 1e-9
    rooted: bool = False  # the result is the square root of a release
    labels: bool = False  # the arguments are labels, of any type

    def __call__(self, *data: Any, epsilon: Any = 1.0, **settings: Any) -> float:
        return self.function(*data, epsilon=epsilon, **{**self.options, **settings})


def quarters(rng, shape):
    return rng.integers(-16, 17, shape) / 4


def targets(*shape):
    def make(rng, n):
        y = quarters(rng, (n, *shape))
        return y, np.clip(y + quarters(rng, (n, *shape)) / 4, -4, 4)

    return make


def probabilities(rng, n, classes):
    weights = rng.integers(1, 30, (n, classes)).astype(float)
    weights[:, 0] = 128 - weights[:, 1:].sum(axis=1)
    return weights / 128


def binary(rng, n):
    return rng.integers(0, 2, n).astype(float), probabilities(rng, n, 2)[:, 1]


def multiclass(rng, n):
    return rng.integers(0, 3, n).astype(float), probabilities(rng, n, 3)


def binary_twin(y, p):
    return sklearn_metrics.log_loss(y, np.column_stack([1 - p, p]), labels=[0, 1])


def positive(rng, n):
    y = rng.integers(1, 17, n) / 4
    return y, np.clip(y + quarters(rng, n) / 16, 0.25, 4)


def labels(rng, n):
    y = rng.integers(0, 3, n).astype(float)
    return y, np.where(rng.random(n) < 0.7, y, 1.0)


def median(x):
    return np.quantile(x, 0.5, method="inverted_cdf")


def private_median(x, **options):
    return dp.private_quantile(x, 0.5, **{"bounds": (-4.0, None), **options})


private_median.__name__ = "private_quantile"
private_median.__signature__ = inspect.signature(dp.private_quantile).replace(
    parameters=[p for n, p in inspect.signature(dp.private_quantile).parameters.items() if n != "q"]
)


def r2_twin(y, p):
    return 1 - np.mean((y - p) ** 2) / np.var(y) if np.var(y) > 0 else float((y == p).all())


def brier_twin(y, p):
    return ((p - np.eye(3)[y.astype(int)]) ** 2).sum(axis=1).mean()


# max_loss below what each float type implies: without it the type of the probabilities changes the limit
LOG_LOSS = {"bounded": {}, "limit": 8.0, "options": {"max_loss": 8.0}, "always_bounded": True}

METRICS = {
    "mse": Metric(
        dp.private_mse, targets(), sklearn_metrics.mean_squared_error, {"bounds": (-4.0, 4.0)}, 64.0
    ),
    "mse, 3 outputs": Metric(
        dp.private_mse, targets(3), sklearn_metrics.mean_squared_error, {"bounds": (-4.0, 4.0)}, 64.0
    ),
    "mae": Metric(
        dp.private_mae, targets(), sklearn_metrics.mean_absolute_error, {"bounds": (-4.0, 4.0)}, 8.0
    ),
    "mae, 2 outputs": Metric(
        dp.private_mae, targets(2), sklearn_metrics.mean_absolute_error, {"bounds": (-4.0, 4.0)}, 8.0
    ),
    "log loss": Metric(dp.private_log_loss, binary, binary_twin, sentinels=(None, 0.98765), **LOG_LOSS),
    "log loss, 3 labels": Metric(
        dp.private_log_loss,
        multiclass,
        lambda y, p: sklearn_metrics.log_loss(y, p, labels=[0, 1, 2]),
        sentinels=(None, 0.98765),
        **LOG_LOSS,
    ),
    "variance": Metric(
        dp.private_variance, lambda rng, n: (quarters(rng, n),), np.var, {"bounds": (-4.0, 4.0)}, 16.0
    ),
    "rmse": Metric(
        dp.private_rmse,
        targets(),
        sklearn_metrics.root_mean_squared_error,
        {"bounds": (-4.0, 4.0)},
        8.0,
        tolerance=1e-6,
        rooted=True,
    ),
    "rmse, 2 outputs": Metric(
        dp.private_rmse,
        targets(2),
        sklearn_metrics.root_mean_squared_error,
        {"bounds": (-4.0, 4.0)},
        8.0,
        rooted=True,
    ),
    "r2": Metric(
        dp.private_r2_score,
        targets(),
        r2_twin,
        {"bounds": (-4.0, 4.0)},
        1.0,
        lowest=-MAX,
        zero=None,
    ),
    "mape": Metric(
        dp.private_mean_absolute_percentage_error,
        positive,
        sklearn_metrics.mean_absolute_percentage_error,
        {"max_loss": 9.0},
        9.0,
    ),
    "msle": Metric(
        dp.private_mean_squared_log_error,
        positive,
        sklearn_metrics.mean_squared_log_error,
        {"bounds": (0.0, 4.0)},
        float(np.log1p(4) ** 2),
    ),
    "pinball": Metric(
        dp.private_mean_pinball_loss,
        targets(),
        lambda y, p: sklearn_metrics.mean_pinball_loss(y, p, alpha=0.25),
        {"bounds": (-4.0, 4.0)},
        6.0,
        options={"alpha": 0.25},
    ),
    "poisson": Metric(
        dp.private_mean_poisson_deviance,
        positive,
        sklearn_metrics.mean_poisson_deviance,
        {"max_loss": 9.0},
        9.0,
        zero=None,
    ),
    "brier": Metric(
        dp.private_brier_score_loss,
        binary,
        sklearn_metrics.brier_score_loss,
        {},
        1.0,
        sentinels=(None, 0.98765),
        always_bounded=True,
    ),
    "brier, 3 labels": Metric(
        dp.private_brier_score_loss,
        multiclass,
        brier_twin,
        {},
        2.0,
        sentinels=(None, 0.98765),
        always_bounded=True,
    ),
    "zero-one": Metric(
        dp.private_zero_one_loss,
        labels,
        sklearn_metrics.zero_one_loss,
        {},
        1.0,
        always_bounded=True,
        mechanism=None,
        sentinels=(987654.0, 987654.0),
        labels=True,
    ),
    "accuracy": Metric(
        dp.private_accuracy_score,
        labels,
        sklearn_metrics.accuracy_score,
        {},
        1.0,
        always_bounded=True,
        mechanism=None,
        sentinels=(987654.0, 987654.0),
        labels=True,
        zero=1.0,
    ),
    "mean": Metric(
        dp.private_mean,
        lambda rng, n: (quarters(rng, n),),
        np.mean,
        {},
        4.0,
        options={"bounds": (-4.0, 4.0)},
        always_bounded=True,
        lowest=-4.0,
        tolerance=1e-6,
        mechanism=None,
        zero=None,
    ),
    "quantile": Metric(
        private_median,
        lambda rng, n: (quarters(rng, n),),
        median,
        {"bounds": (-4.0, 4.0)},
        4.0,
        tolerance=1e-4,
        lowest=-4.0,
        zero=None,
    ),
    "std": Metric(
        dp.private_std,
        lambda rng, n: (quarters(rng, n),),
        np.std,
        {"bounds": (-4.0, 4.0)},
        4.0,
        tolerance=1e-6,
        rooted=True,
    ),
    "mean loss": Metric(
        dp.private_mean_loss, lambda rng, n: (abs(quarters(rng, n)),), np.mean, {"max_loss": 8.0}, 8.0
    ),
}

NEED_A_LIMIT = ["inverse_sensitivity", "piecewise_laplace", "laplace", "geometric"]

each_metric = pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)


def valid(metric, n=40, seed=0):
    return metric.data(np.random.default_rng(seed), n)


def seeded(seed=5):
    return SeededEntropy(seed)


def test_every_public_metric_is_in_the_table():
    exported = {name for name in dp.__all__ if name.startswith("private_") and not name.endswith("_report")}
    assert exported == {metric.function.__name__ for metric in METRICS.values()}
    assert {
        "private_mse",
        "private_mae",
        "private_log_loss",
        "private_variance",
        "private_mean_loss",
    } <= exported
    for name in dp.__all__:
        assert hasattr(dp, name)


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


SAME_VALUES = {
    "list": lambda a: a.tolist(),
    "tuple": lambda a: tuple(map(tuple, a)) if a.ndim == 2 else tuple(a),
    "list of numpy scalars": lambda a: [*a],
    "Series or DataFrame": lambda a: pd.Series(a) if a.ndim == 1 else pd.DataFrame(a),
    "Series with another index": lambda a: (pd.Series if a.ndim == 1 else pd.DataFrame)(
        a, index=range(len(a), 0, -1)
    ),
    "nullable Series": lambda a: pd.Series(a, dtype="Float64") if a.ndim == 1 else a,
    "float32": lambda a: a.astype(np.float32),
    "longdouble": lambda a: a.astype(np.longdouble),
    "column vector": lambda a: a[:, np.newaxis] if a.ndim == 1 else a,
    "one-column DataFrame": lambda a: pd.DataFrame({"a": a}) if a.ndim == 1 else a,
    "not contiguous": lambda a: np.repeat(a, 3, axis=0)[::3],
    "reversed strides": lambda a: a[::-1].copy()[::-1],
    "Fortran order": lambda a: np.asfortranarray(a),
    "big endian": lambda a: a.astype(">f8"),
    "objects": lambda a: a.astype(object),
    "read-only": read_only,
}


@each_metric
@pytest.mark.parametrize("form", SAME_VALUES)
def test_the_same_values_give_the_same_release_in_every_form(metric, form):
    data = valid(metric)
    convert = SAME_VALUES[form]
    for settings in ({}, metric.bounded):
        expected = metric(*data, random_state=seeded(), **settings)
        assert metric(*map(convert, data), random_state=seeded(), **settings) == expected


@each_metric
@pytest.mark.parametrize("dtype", [int, np.int8, np.uint64, np.int32, bool])
def test_integers_and_booleans_are_numbers(metric, dtype):
    data = [np.maximum(np.abs(np.round(a)), metric.zero is None).astype(dtype) for a in valid(metric)]
    expected = metric(*(a.astype(float) for a in data), random_state=seeded())
    assert metric(*data, random_state=seeded()) == expected
    assert metric(*(a.tolist() for a in data), random_state=seeded()) == expected


@each_metric
def test_the_data_are_left_alone(metric):
    data = valid(metric)
    copies = [a.copy() for a in data]
    metric(*data, random_state=seeded(), **metric.bounded)
    for array, copy in zip(data, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


@each_metric
@pytest.mark.parametrize("n", [40, 20_000])
def test_the_order_of_the_records_does_not_matter(metric, n):
    data = valid(metric, n)
    order = np.random.default_rng(1).permutation(n)
    for settings in ({}, metric.bounded):
        shuffled = metric(*(a[order] for a in data), random_state=seeded(), **settings)
        assert shuffled == metric(*data, random_state=seeded(), **settings)


@each_metric
@pytest.mark.parametrize("mechanism", [*MECHANISMS, dp.AboveThreshold.paper(), dp.Hazard(resolution=0.5)])
@pytest.mark.parametrize("epsilon", [1e-300, 1e-12, 0.1, 1, 1e9, 1e300])
def test_a_release_is_a_finite_float_within_the_public_range(metric, mechanism, epsilon):
    data = valid(metric)
    released = metric(*data, epsilon=epsilon, mechanism=mechanism, random_state=seeded(), **metric.bounded)
    assert type(released) is float
    assert metric.lowest <= released <= metric.limit
    if mechanism not in NEED_A_LIMIT:
        released = metric(*data, epsilon=epsilon, mechanism=mechanism, random_state=seeded())
        assert type(released) is float
        assert metric.lowest <= released <= MAX


@each_metric
@pytest.mark.parametrize("n", [1, 2, 300])
def test_a_huge_epsilon_approximates_the_metric_without_privacy(metric, n):
    data = valid(metric, n)
    exact = metric.twin(*data)
    if metric.function is dp.private_r2_score and n == 1:
        return  # 0/0 in a limit that depends on the draws
    for settings in ({}, metric.bounded):
        released = metric(*data, epsilon=1e11, random_state=seeded(), **settings)
        assert released == pytest.approx(exact, rel=1e-6, abs=metric.tolerance)


@each_metric
def test_zero_is_about_zero(metric):
    data = [np.zeros_like(a) for a in valid(metric, 200)]
    if metric.always_bounded and data[-1].ndim == 2:
        data[1][:, 0] = 1.0  # all probability on label 0
    for settings in ({}, metric.bounded) if metric.zero is not None else ():
        released = metric(*data, epsilon=1.0, random_state=seeded(), **settings)
        # of 200 records, and a count is off by a few of them
        assert abs(released - metric.zero) < (0.05 if metric.labels else 0.02 if metric.rooted else 1e-3)


MEANS = ("mse", "mse, 3 outputs", "mae", "mae, 2 outputs", "variance", "mean loss")


@pytest.mark.parametrize("name", MEANS)
@pytest.mark.parametrize("huge", [1e200, 1e308, MAX])
@pytest.mark.parametrize("mechanism", ["hazard", "above_threshold"])
def test_losses_that_overflow_saturate(name, huge, mechanism):
    metric = METRICS[name]
    data = [np.full_like(a, huge) for a in valid(metric, 4)]
    exact = huge
    if name != "mean loss":
        data[0][::2] *= -1  # every second error, or deviation from the mean, is huge
        exact = MAX if name.startswith(("mse", "variance")) else min(huge, MAX / 2)
    released = metric(*data, epsilon=1e6, mechanism=mechanism, random_state=seeded())
    assert released == MAX or released == pytest.approx(exact, rel=0.05)


@each_metric
@pytest.mark.parametrize("huge", [1e200, 1e308, MAX])
@pytest.mark.parametrize("mechanism", ["hazard", "above_threshold"])
def test_huge_numbers_give_a_finite_result_or_are_refused(metric, huge, mechanism):
    data = [np.full_like(a, huge / (1 + 3 * i)) for i, a in enumerate(valid(metric, 5))]
    if metric.sentinels[-1] == 0.98765:
        assert_refused(metric, data, ValueError)
    else:
        released = metric(*data, epsilon=1e6, mechanism=mechanism, random_state=seeded())
        assert metric.lowest <= released <= MAX


@each_metric
def test_values_outside_the_bounds_are_clipped_to_them(metric):
    if not {"bounds", "max_loss"} & inspect.signature(metric.function).parameters.keys():
        return
    if metric.function is dp.private_mean:
        metric = dataclasses.replace(metric, bounded=metric.options)
    if "bounds" not in metric.bounded:
        data = valid(metric)
        low = metric(*data, epsilon=1e11, max_loss=0.5, random_state=seeded())
        assert low <= 0.5
        return
    data = [a * 3 for a in valid(metric)]
    expected = metric.twin(*(np.clip(a, *metric.bounded["bounds"]) for a in data))
    released = metric(*data, epsilon=1e11, random_state=seeded(), **metric.bounded)
    assert released == pytest.approx(expected, rel=1e-6, abs=metric.tolerance)


@each_metric
@pytest.mark.parametrize(
    "make",
    [lambda: 3, lambda: np.int64(3), lambda: np.random.RandomState(3), lambda: np.random.default_rng(3)],
)
def test_a_seed_reproduces_and_warns_at_the_line_of_the_caller(metric, make):
    data = valid(metric)
    with pytest.warns(SeededReleaseWarning, match="not private") as caught:
        first = metric.function(*data, epsilon=1.0, random_state=make(), **metric.options)
    assert [warning.filename for warning in caught] == [__file__]
    with pytest.warns(SeededReleaseWarning):
        assert metric.function(*data, epsilon=1.0, random_state=make(), **metric.options) == first


@each_metric
def test_without_a_seed_releases_are_fresh_and_do_not_warn(metric):
    data = valid(metric)
    assert len({metric(*data) for _ in range(6)}) > 1  # six equal ones have probability below 1e-6


@each_metric
def test_entropy_is_taken_from_the_operating_system_once_all_is_checked_and_spent(metric, monkeypatch):
    def refuse(self, size):
        raise NoEntropy.Drawn

    monkeypatch.setattr(OSEntropy, "words", refuse)
    accountant = PrivacyAccountant(1.0)
    with pytest.raises(NoEntropy.Drawn):
        metric(*valid(metric), epsilon=0.25, accountant=accountant)
    assert accountant.spent == 0.25  # paid before the draw, and not refunded
    with pytest.raises(ValueError, match="NaN"):
        metric(*(a * math.nan for a in valid(metric)), epsilon=0.25, accountant=accountant)
    assert accountant.spent == 0.25


@each_metric
def test_an_accountant_pays_for_each_release_and_refuses_when_it_cannot(metric):
    accountant = PrivacyAccountant(0.3)
    data = valid(metric)
    for _ in range(3):
        metric(*data, epsilon=0.1, accountant=accountant)
    assert accountant.remaining == 0
    assert [spend.epsilon for spend in accountant.history] == [0.1] * 3
    with pytest.raises(PrivacyBudgetError):
        metric(*data, epsilon=0.1, accountant=accountant, random_state=NoEntropy())
    with pytest.raises(TypeError, match="accountant"):
        metric(*data, accountant=1.0, random_state=NoEntropy())


@each_metric
def test_only_the_data_are_positional_and_epsilon_has_no_default(metric):
    parameters = inspect.signature(metric.function).parameters
    keyword_only = {name for name, p in parameters.items() if p.kind is p.KEYWORD_ONLY}
    assert len(parameters) - len(keyword_only) == len(valid(metric))
    assert {"epsilon", "mechanism", "random_state", "accountant"} <= keyword_only
    assert parameters["epsilon"].default is inspect.Parameter.empty
    assert parameters["mechanism"].default == metric.mechanism
    assert parameters["random_state"].default is None
    with pytest.raises(TypeError, match="epsilon"):
        metric.function(*valid(metric), random_state=NoEntropy())
    with pytest.raises(TypeError):
        metric.function(*valid(metric), 1.0, random_state=NoEntropy())


@each_metric
@pytest.mark.parametrize(
    "parameter",
    ["sample_weight", "multioutput", "groups", "neighboring", "max_loss", "bounds", "labels", "epsilom"],
)
def test_a_parameter_that_a_metric_does_not_have_is_not_ignored(metric, parameter):
    if parameter not in inspect.signature(metric.function).parameters:
        with pytest.raises(TypeError, match=parameter):
            metric(*valid(metric), random_state=NoEntropy(), **{parameter: None})


def messages(error):
    """Yield everything that a traceback of this exception would print of it."""
    while error is not None:
        yield f"{error} {error.args!r}"
        error = error.__cause__ or error.__context__


def assert_refused(metric, data, expected=(ValueError, TypeError), match=None, **settings):
    """Check that data raise, before anything is spent or drawn, without a word of the data."""
    accountant = PrivacyAccountant(1.0)
    with pytest.raises(expected, match=match) as caught:
        metric(*data, **{"random_state": NoEntropy(), "accountant": accountant, **settings})
    assert accountant.spent == 0
    for message in messages(caught.value):
        assert "98765" not in message


def with_sentinel(metric, position, n=6):
    """Return valid data with the sentinel in one argument, as a list without numpy types."""
    data = [*valid(metric, n)]
    if metric.sentinels[position] is not None:
        data[position][1] = metric.sentinels[position]
    return data


def first_row(values, record):
    """Replace the first record of a list."""
    return [record if not isinstance(values[0], list) else [record, *values[0][1:]], *values[1:]]


# What is done to one argument, given as a list, and the exception with the start of its message.
BAD_RECORDS = {
    "NaN": (lambda v: first_row(v, math.nan), ValueError, "contains NaN"),
    "NaN in an array": (lambda v: np.array(first_row(v, math.nan)), ValueError, "contains NaN"),
    "NaN in float32": (
        lambda v: np.array(first_row(v, math.nan), dtype=np.float32),
        ValueError,
        "contains NaN",
    ),
    "infinity": (lambda v: first_row(v, math.inf), ValueError, "contains infinity"),
    "minus infinity": (lambda v: np.array(first_row(v, -math.inf)), ValueError, "contains infinity"),
    "too large an integer": (lambda v: first_row(v, 98765 * 10**400), ValueError, "contains infinity"),
    "missing": (
        lambda v: pd.DataFrame(first_row([[9.5] * np.size(row) for row in v], pd.NA), dtype="Float64"),
        ValueError,
        "NaN",
    ),
    "None among records": (lambda v: first_row(v, None), (ValueError, TypeError), None),
    "complex": (lambda v: first_row(v, 98765 + 1j), ValueError, "Complex data not supported"),
    "complex array": (lambda v: np.array(v, dtype=complex), ValueError, "Complex data not supported"),
    "string": (lambda v: first_row(v, "98765 Main Street"), ValueError, None),
    "string object": (lambda v: np.array(first_row(v, "98765x"), dtype=object), ValueError, None),
    "strings": (lambda v: np.array(v).astype(str), ValueError, "numeric"),
    "numeric strings": (lambda v: [str(x) for x in np.ravel(v)], ValueError, "numeric"),
    "bytes": (lambda v: [str(x).encode() for x in np.ravel(v)], ValueError, "numeric"),
    "dictionary": (lambda v: first_row(v, {"income": 987654.25}), (ValueError, TypeError), None),
    "ragged": (lambda v: [[*np.ravel(x), 987654.25] if i else x for i, x in enumerate(v)], ValueError, None),
    "date": (lambda v: [date(1987, 6, 5)] * len(v), (ValueError, TypeError), None),
    "numpy dates": (
        lambda v: np.array([98765] * len(v), "datetime64[s]"),
        (ValueError, TypeError),
        "numeric",
    ),
    "pandas dates": (
        lambda v: pd.Series(pd.to_datetime([987654] * len(v))),
        (ValueError, TypeError),
        "numeric",
    ),
    "time spans": (
        lambda v: np.array([98765] * len(v), "timedelta64[s]"),
        (ValueError, TypeError),
        "numeric",
    ),
    "records": (lambda v: np.array([(98765, 1.0)] * len(v), "i8,f8"), (ValueError, TypeError), None),
    "sparse": (lambda v: sparse.csr_matrix(np.atleast_2d(v)), TypeError, "Sparse"),
    "3-D": (lambda v: np.array(v)[..., np.newaxis, np.newaxis], ValueError, None),
    "scalar": (lambda v: float(np.ravel(v)[1]), (ValueError, TypeError), None),
    "one number as text": (lambda v: "987654.25", (ValueError, TypeError), None),
    "None": (lambda v: None, (ValueError, TypeError), None),
    "generator": (lambda v: (x for x in v), (ValueError, TypeError), None),
    "set": (lambda v: {987654.25, 1.0}, (ValueError, TypeError), None),
    "empty": (lambda v: [], ValueError, None),
    "no columns": (lambda v: np.empty((len(v), 0)), ValueError, None),
}

LEGAL_LABELS = {
    "None among records",
    "too large an integer",
    "bytes",
    "date",
    "numpy dates",
    "pandas dates",
    "time spans",
}
MIXED_LABELS = {"strings", "numeric strings"}

each_argument = pytest.mark.parametrize(
    ("metric", "position"),
    [
        pytest.param(metric, position, id=f"{name}, argument {position}")
        for name, metric in METRICS.items()
        for position in range(len(valid(metric, 1)))
    ],
)


@each_argument
@pytest.mark.parametrize("kind", BAD_RECORDS)
def test_invalid_data_are_refused_without_a_word_of_the_data(metric, position, kind):
    if metric.labels and kind in LEGAL_LABELS:
        return
    spoil, expected, match = BAD_RECORDS[kind]
    if metric.labels and kind in MIXED_LABELS:
        match = "Mix of label input types"
    data = with_sentinel(metric, position)
    data[position] = spoil(data[position].tolist())
    assert_refused(metric, data, expected, match)


@each_metric
def test_no_record_at_all_is_refused(metric):
    data = [a[:0] for a in valid(metric, 3)]
    assert_refused(metric, data, ValueError, r"^Found array with 0 sample")


@each_argument
def test_lengths_that_differ_are_refused(metric, position):
    data = with_sentinel(metric, position)
    if len(data) == 2:
        data[position] = data[position][:-1]
        assert_refused(
            metric, data, ValueError, "^Found input variables with inconsistent numbers of samples"
        )


@each_argument
def test_more_columns_than_agree_are_refused(metric, position):
    data = with_sentinel(metric, position)
    columns = np.reshape(data[position], (len(data[position]), -1))
    data[position] = np.column_stack([columns, columns, columns])
    if metric.labels:
        assert_refused(metric, data, ValueError, "^Classification metrics can't handle a mix")
    elif metric.always_bounded and position == 1:
        labels = range(data[1].shape[1] // 3 + 1)
        assert_refused(
            metric, data, ValueError, "^The number of classes in labels is different", labels=labels
        )
    elif len(data) == 2 and not metric.always_bounded:
        assert_refused(metric, data, ValueError, "^y_true and y_pred have different number of output")
    else:
        assert_refused(metric, data, ValueError, "should be a 1d array")


@pytest.mark.parametrize("name", ["log loss", "log loss, 3 labels"])
@pytest.mark.parametrize("value", [-1e-9, 1.0000001, 98765.25, -98765.25])
def test_probabilities_outside_the_unit_interval_are_refused(name, value):
    y, p = valid(METRICS[name])
    p[(2,) * p.ndim] = value
    assert_refused(METRICS[name], (y, p), ValueError, "y_proba")


@pytest.mark.parametrize("name", ["log loss", "log loss, 3 labels"])
@pytest.mark.parametrize("value", [-1, 3, 0.5, 98765.25])
def test_labels_outside_the_public_set_are_refused(name, value):
    y, p = valid(METRICS[name])
    y[2] = value
    assert_refused(METRICS[name], (y, p), ValueError, "label")


@pytest.mark.parametrize(
    "label", ["987654.25", 987654.25, None, math.nan, ("98765",), ["98765"], b"98765", 98765j]
)
def test_labels_outside_a_public_set_of_strings_are_refused(label):
    y = np.array(["no", "yes", None, "yes"], dtype=object)
    y[2] = label
    for labels in (y, y.tolist()):
        assert_refused(METRICS["log loss"], (labels, [0.1, 0.9, 0.8, 0.5]), labels=["no", "yes"])


def test_negative_losses_are_refused():
    assert_refused(METRICS["mean loss"], ([1.0, -987654.25],), ValueError, "^Negative values in data")


PUBLIC = {
    "epsilon": [0, -1, math.nan, math.inf, "1", None, True, [1], 10**400],
    "bounds": [
        (1, 0),
        (0, 0),
        (0, math.nan),
        (0, math.inf),
        (-math.inf, 0),
        (0,),
        (0, 1, 2),
        "01",
        3.0,
        [[0, 1]],
    ],
    "max_loss": [0, -1, math.nan, math.inf, "3", [3], True],
    "labels": [["a"], [0, 0], [0, 1, 2, 3], "ab", 3],
}


@each_metric
@pytest.mark.parametrize(("parameter", "value"), [(name, value) for name in PUBLIC for value in PUBLIC[name]])
def test_public_parameters_that_are_invalid_are_refused_by_name(metric, parameter, value):
    if metric.function is private_median and value == (0, math.inf):
        return  # unbounded above
    if parameter in inspect.signature(metric.function).parameters:
        assert_refused(metric, with_sentinel(metric, 0), ValueError, parameter, **{parameter: value})


@each_metric
def test_an_unknown_mechanism_is_refused(metric):
    data = with_sentinel(metric, 0)
    assert_refused(metric, data, ValueError, "mechanism must be one of", mechanism="gaussian")
    for wrong in (None, 3, dp.Hazard, object()) if metric.mechanism is not None else (3, dp.Hazard, object()):
        assert_refused(metric, data, TypeError, "mechanism", mechanism=wrong)


@each_metric
@pytest.mark.parametrize("mechanism", NEED_A_LIMIT)
def test_a_mechanism_that_needs_a_limit_says_which_argument_to_pass(metric, mechanism):
    if metric.always_bounded:
        assert metric(*valid(metric), mechanism=mechanism, random_state=seeded()) <= metric.limit
    else:
        (argument,) = metric.bounded
        assert_refused(metric, with_sentinel(metric, 0), ValueError, argument, mechanism=mechanism)
        with pytest.raises(NoEntropy.Drawn):
            metric(*valid(metric), mechanism=mechanism, random_state=NoEntropy(), **metric.bounded)


@each_metric
@pytest.mark.parametrize("seed", ["1", 1.5, [1], object()])
def test_what_is_no_random_state_is_refused(metric, seed):
    assert_refused(metric, with_sentinel(metric, 0), TypeError, "random_state", random_state=seed)
