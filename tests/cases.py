"""One table of metrics, on which every check is tried: a new metric needs a row here.

What the package knows of a metric comes from its own row; a case adds data, and what they should give.
"""

import inspect
import math
import zlib
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from datetime import date
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers import MAX, REFUSED
from scipy import sparse
from scipy.interpolate import PchipInterpolator
from sklearn import metrics as sklearn_metrics
from sklearn.calibration import calibration_curve

import dp_metrics as dp
from dp_metrics.mechanisms import MECHANISMS, AboveThreshold, Hazard
from dp_metrics.metrics import METRICS, Metric


@dataclass(frozen=True)
class Case:
    """A public metric and what is needed to try it.

    `data` makes valid arguments, exact in float32; with `bounded` the metric has the public upper limit
    `limit` on them. `options` are always passed.
    """

    name: str
    data: Callable[[np.random.Generator, int], tuple[np.ndarray, ...]]
    limit: float = 1.0
    bounded: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    exact: dict[str, Any] = field(default_factory=dict)  # options of the same without privacy
    reference: Callable[..., float] | None = None  # which is this one; None: its `exact_function`
    sentinels: tuple[float | None, ...] = (987654.25, 987654.25)  # valid values, to be looked for in messages
    lowest: float = 0.0
    zero: float | None = 0.0  # the result for zeros; None: not defined
    tolerance: float = 1e-9
    rooted: bool = False  # the result is the square root of a release
    pick: Callable[[Any], float] | None = None  # of a report or an array, the number that is tried

    @property
    def key(self) -> str:
        """The name of the case in the table."""
        return next(key for key, case in CASES.items() if case is self)

    @property
    def row(self) -> Metric:
        return METRICS[self.name]

    @property
    def function(self) -> Callable[..., Any]:
        return METRICS[self.name].function

    @property
    def parameters(self) -> set[str]:
        return {*inspect.signature(self.function).parameters}

    @property
    def mechanisms(self) -> tuple[Any, ...]:
        """Mechanisms to try: None is the default, and all there is for a metric with noise of its own."""
        return (
            (None,)
            if self.row.mechanism is None
            else (*MECHANISMS, AboveThreshold.paper(), Hazard(resolution=0.5))
        )

    def by(self, mechanism: Any) -> dict[str, Any]:
        """Return the setting of a mechanism, where the metric takes one."""
        return {} if self.row.mechanism is None else {"mechanism": mechanism}

    @property
    def always_bounded(self) -> bool:
        return self.row.limit is None

    def under(self, relation: str) -> dict[str, Any] | None:
        """Return the settings of a neighbouring relation, or None where the case does not take it."""
        is_related = "neighboring" in self.parameters
        if relation == ADD_OR_REMOVE and ("multi_class" in self.options or not is_related):
            return None
        return {"neighboring": relation} if is_related else {}

    @property
    def exact_function(self) -> Callable[..., float]:
        module, _, name = self.row.exact_function.rpartition(".")
        return partial(self.reference or getattr(import_module(module), name), **self.exact)

    def __call__(self, *data: Any, epsilon: Any = 1.0, **settings: Any) -> float:
        result = self.function(*data, epsilon=epsilon, **{**self.options, **settings})
        return result if self.pick is None else self.pick(result)


def quarters(rng, shape):
    return rng.integers(-16, 17, shape) / 4


def targets(*shape):
    def make(rng, n):
        y = quarters(rng, (n, *shape))
        return y, np.clip(y + quarters(rng, (n, *shape)) / 4, -4, 4)

    return make


def column(rng, n):
    return (quarters(rng, n),)


def probabilities(rng, n, classes):
    weights = rng.integers(1, 30, (n, classes)).astype(float)
    weights[:, 0] = 128 - weights[:, 1:].sum(axis=1)
    return weights / 128


def binary(rng, n):
    return rng.integers(0, 2, n).astype(float), probabilities(rng, n, 2)[:, 1]


def multiclass(rng, n):
    return rng.integers(0, 3, n).astype(float), probabilities(rng, n, 3)


def positive(rng, n):
    y = rng.integers(1, 17, n) / 4
    return y, np.clip(y + quarters(rng, n) / 16, 0.25, 4)


def labels(rng, n):
    y = rng.integers(0, 3, n).astype(float)
    return y, np.where(rng.random(n) < 0.7, y, 1.0)


def two_labels(rng, n):
    y = rng.integers(0, 2, n).astype(float)
    return y, np.where(rng.random(n) < 0.8, y, 1.0)


def four_labels(rng, n):
    y = rng.integers(0, 4, n).astype(float)
    return y, np.where(rng.random(n) < 0.7, y, 1.0)


def scores_of_three(rng, n):
    return rng.integers(0, 3, n).astype(float), quarters(rng, (n, 3))


def scored(rng, n):
    y = rng.integers(0, 2, n).astype(float)
    return y, np.clip(rng.integers(0, 49, n) + 16 * y, 0, 64) / 64


def true_positive_rate_at_half(y, score):
    positive = y == 1 if y.any() else y == 0  # without a class the curve is the diagonal
    return np.mean(score[positive] >= 0.5)


def precision_at_half(y, score):
    found = score >= 0.5
    return y[found].mean() if found.any() else float(y.any())


def spread_average_precision(y, score):
    """Return the average precision if the scores of the 128 bins are as dense as their neighbours tell."""
    if not y.any():
        return 0.0
    edges = (1 - np.cos(np.linspace(0, np.pi, 129))) / 2
    bins = np.searchsorted(np.round(edges[1:-1], 9), score, side="right")
    above = [[np.count_nonzero((bins >= edge) & (y == label)) for edge in range(129)] for label in (0, 1)]
    parts = np.linspace(128, 0, 128 * 16 + 1)
    false, true = (PchipInterpolator(np.arange(129), counts)(parts) for counts in above)
    return np.diff(true) @ (true / np.maximum(false + true, 1e-300))[1:] / true[-1]


def share_of_positives_in_the_last_bin(y, score):
    return calibration_curve(y, score, n_bins=5, pos_label=1)[0][-1]


def calibration_error(y, score):
    bins = np.clip(np.ceil(score * 10) - 1, 0, 9)
    return sum(abs((y - score)[bins == number].sum()) for number in range(10)) / len(y)


def matthews_of_two(y, p):
    return 0.0 if len(np.unique([y, p])) == 1 else sklearn_metrics.matthews_corrcoef(y, p)


def kappa_of_four(y, p):
    one = len(np.unique([y, p])) == 1
    return 0.0 if one else sklearn_metrics.cohen_kappa_score(y, p, labels=[0, 1, 2, 3])


def median(x):
    return np.quantile(x, 0.5, method="inverted_cdf")


def r2(y, p):
    return 1 - np.mean((y - p) ** 2) / np.var(y) if np.var(y) > 0 else float((y == p).all())


def roc_auc(y, score):
    return sklearn_metrics.roc_auc_score(y, score) if 0 < np.mean(y) < 1 else 0.5


def roc_auc_of_three(y, score):
    return np.mean([roc_auc(y == k, score[:, k]) for k in range(3)])


def brier_of_three(y, p):
    return ((p - np.eye(3)[y.astype(int)]) ** 2).sum(axis=1).mean()


WITHIN_4 = {"bounds": (-4.0, 4.0)}
PROBABILITIES = {"sentinels": (None, 0.98765)}
COUNTS = {"sentinels": (None, None), "zero": None}
SCORES = {**PROBABILITIES, "zero": None}
LABELS = {"sentinels": (987654.0, 987654.0)}
OF_TWO = {"exact": {"labels": [0, 1], "zero_division": 0}, **COUNTS}
OF_FOUR = {"options": {"labels": [0, 1, 2, 3]}, **COUNTS}
# max_loss below what each float type implies: without it the type of the probabilities changes the limit
LOG_LOSS = {"limit": 8.0, "options": {"max_loss": 8.0}, **PROBABILITIES}

CASES = {
    "mse": Case("private_mse", targets(), 64.0, WITHIN_4),
    "mse, 3 outputs": Case("private_mse", targets(3), 64.0, WITHIN_4),
    "mae": Case("private_mae", targets(), 8.0, WITHIN_4),
    "mae, 2 outputs": Case("private_mae", targets(2), 8.0, WITHIN_4),
    "log loss": Case("private_log_loss", binary, exact={"labels": [0, 1]}, **LOG_LOSS),
    "log loss, 3 labels": Case("private_log_loss", multiclass, exact={"labels": [0, 1, 2]}, **LOG_LOSS),
    "variance": Case("private_variance", column, 16.0, WITHIN_4),
    "rmse": Case("private_rmse", targets(), 8.0, WITHIN_4, tolerance=1e-6, rooted=True),
    "rmse, 2 outputs": Case("private_rmse", targets(2), 8.0, WITHIN_4, rooted=True),
    "r2": Case("private_r2_score", targets(), 1.0, WITHIN_4, reference=r2, lowest=-MAX, zero=None),
    "mape": Case("private_mean_absolute_percentage_error", positive, 9.0, {"max_loss": 9.0}),
    "msle": Case("private_mean_squared_log_error", positive, float(np.log1p(4) ** 2), {"bounds": (0.0, 4.0)}),
    "pinball": Case(
        "private_mean_pinball_loss",
        targets(),
        6.0,
        WITHIN_4,
        options={"alpha": 0.25},
        exact={"alpha": 0.25},
    ),
    "poisson": Case("private_mean_poisson_deviance", positive, 9.0, {"max_loss": 9.0}, zero=None),
    "median error": Case(
        "private_median_absolute_error",
        targets(),
        8.0,
        WITHIN_4,
        reference=lambda y, p: np.quantile(abs(y - p), 0.5, method="inverted_cdf"),
        tolerance=1e-4,
    ),
    "brier": Case("private_brier_score_loss", binary, **PROBABILITIES),
    "brier, 3 labels": Case(
        "private_brier_score_loss", multiclass, 2.0, reference=brier_of_three, **PROBABILITIES
    ),
    "zero-one": Case("private_zero_one_loss", labels, **LABELS),
    "accuracy": Case("private_accuracy_score", labels, zero=1.0, **LABELS),
    "top-k": Case(
        "private_top_k_accuracy_score",
        scores_of_three,
        zero=None,
        exact={"labels": [0, 1, 2]},
        sentinels=(None, 987654.25),
    ),
    "confusion matrix": Case(
        "private_confusion_matrix",
        two_labels,
        MAX,
        pick=lambda matrix: float(matrix[1, 0]),
        reference=lambda y, p: sklearn_metrics.confusion_matrix(y, p, labels=[0, 1])[1, 0],
        **COUNTS,
    ),
    "precision": Case("private_precision_score", two_labels, **OF_TWO),
    "recall": Case("private_recall_score", two_labels, **OF_TWO),
    "specificity": Case(
        "private_specificity_score",
        two_labels,
        reference=lambda y, p, **two: sklearn_metrics.recall_score(1 - y, 1 - p, **two),
        **OF_TWO,
    ),
    "selection rate": Case("private_selection_rate", two_labels, reference=lambda y, p: np.mean(p), **COUNTS),
    "prevalence": Case("private_prevalence", two_labels, reference=lambda y, p: np.mean(y), **COUNTS),
    "f1": Case("private_f1_score", two_labels, **OF_TWO),
    "macro f1": Case(
        "private_f1_score",
        four_labels,
        options={"average": "macro", "labels": [0, 1, 2, 3]},
        exact={"average": "macro", "labels": [0, 1, 2, 3], "zero_division": 0},
        **COUNTS,
    ),
    "jaccard": Case("private_jaccard_score", two_labels, **OF_TWO),
    "balanced accuracy": Case(
        "private_balanced_accuracy_score",
        four_labels,
        reference=lambda y, p: sklearn_metrics.recall_score(
            y, p, labels=[0, 1, 2, 3], average="macro", zero_division=0
        ),
        **OF_FOUR,
    ),
    "matthews": Case(
        "private_matthews_corrcoef", two_labels, lowest=-1.0, reference=matthews_of_two, **COUNTS
    ),
    "kappa": Case(
        "private_cohen_kappa_score",
        four_labels,
        lowest=-1.0,
        reference=kappa_of_four,
        **OF_FOUR,
    ),
    "classification report": Case(
        "private_classification_report",
        two_labels,
        reference=sklearn_metrics.f1_score,
        options={"output_dict": True},
        pick=lambda table: table["1"]["f1-score"],
        **OF_TWO,
    ),
    "roc auc": Case("private_roc_auc_score", binary, reference=roc_auc, zero=None, **PROBABILITIES),
    "roc auc, 3 labels": Case(
        "private_roc_auc_score",
        multiclass,
        options={"multi_class": "ovr"},
        reference=roc_auc_of_three,
        zero=None,
        **PROBABILITIES,
    ),
    "roc curve": Case(
        "private_roc_curve",
        scored,
        pick=lambda curve: float(curve.tpr[curve.thresholds == 0.5][0]),
        reference=true_positive_rate_at_half,
        **SCORES,
    ),
    "precision-recall curve": Case(
        "private_precision_recall_curve",
        scored,
        pick=lambda curve: float(curve.precision[:-1][curve.thresholds == 0.5][0]),
        reference=precision_at_half,
        **SCORES,
    ),
    "average precision": Case(
        "private_average_precision_score", scored, reference=spread_average_precision, **SCORES
    ),
    "calibration curve": Case(
        "private_calibration_curve",
        scored,
        pick=lambda curve: float([0.0, *curve.prob_true][-1]),
        reference=share_of_positives_in_the_last_bin,
        **SCORES,
    ),
    "calibration error": Case(
        "private_expected_calibration_error",
        scored,
        reference=calibration_error,
        **PROBABILITIES,
    ),
    "mean": Case("private_mean", column, 4.0, options=WITHIN_4, lowest=-4.0, tolerance=1e-6, zero=None),
    "quantile": Case(
        "private_quantile",
        column,
        4.0,
        WITHIN_4,
        options={"q": 0.5, "bounds": (-4.0, None)},
        reference=median,
        lowest=-4.0,
        tolerance=1e-4,
        zero=None,
    ),
    "std": Case("private_std", column, 4.0, WITHIN_4, tolerance=1e-6, rooted=True),
    "mean loss": Case("private_mean_loss", lambda rng, n: (abs(quarters(rng, n)),), 8.0, {"max_loss": 8.0}),
}

_NO_METRICS = ("inference", "model_selection", "page")

PUBLIC_METRICS = [
    name
    for name in dp.__all__
    if name.startswith("private_") and getattr(dp, name).__module__.split(".")[1] not in _NO_METRICS
]
"""Public functions that release a metric, not an interval, a comparison or a choice."""

KINDS = {
    "mse", "mse, 3 outputs", "log loss", "log loss, 3 labels", "variance", "r2", "median error", "accuracy",
    "top-k", "f1", "confusion matrix", "classification report", "roc auc", "roc curve", "calibration error",
    "mean", "mean loss",
}  # fmt: skip
"""One case for each kind of plan and of data. The others go the same ways: what tells nothing new of them
runs with the slow tests."""


def cases_where(condition: Callable[[Case], object], kinds: Container[str] = CASES):
    """Return the mark of a test of those cases for which the condition holds; all but `kinds` are slow."""
    return pytest.mark.parametrize(
        "case",
        [
            pytest.param(case, id=name, marks=() if name in kinds else pytest.mark.slow)
            for name, case in CASES.items()
            if condition(case)
        ],
    )


each_case = cases_where(lambda case: True)
each_kind = cases_where(lambda case: True, KINDS)


def valid(case, n=40, seed=0):
    """Return valid data of n records for a case."""
    return case.data(np.random.default_rng(seed), n)


def with_sentinel(case, position, n=6):
    """Return valid data with the sentinel in one argument, as a list without numpy types."""
    data = [*valid(case, n)]
    if case.sentinels[position] is not None:
        data[position][1] = case.sentinels[position]
    return data


def first_row(values, record):
    """Replace the first record of a list."""
    return [record if not isinstance(values[0], list) else [record, *values[0][1:]], *values[1:]]


NOT_NUMBERS = "numeric|labels"
# What is done to one argument, given as a list, and the exception with the start of its message.
BAD_RECORDS = {
    "NaN": (lambda v: first_row(v, math.nan), ValueError, "contains NaN"),
    "NaN in an array": (lambda v: np.array(first_row(v, math.nan)), ValueError, "contains NaN"),
    "NaN in float32": (lambda v: np.float32(first_row(v, math.nan)), ValueError, "contains NaN"),
    "infinity": (lambda v: first_row(v, math.inf), ValueError, "contains infinity"),
    "minus infinity": (lambda v: np.array(first_row(v, -math.inf)), ValueError, "contains infinity"),
    "too large an integer": (lambda v: first_row(v, 98765 * 10**400), ValueError, "contains infinity"),
    "missing": (
        lambda v: pd.DataFrame(first_row([[9.5] * np.size(row) for row in v], pd.NA), dtype="Float64"),
        ValueError,
        "NaN",
    ),
    "None among records": (lambda v: first_row(v, None), REFUSED, None),
    "complex": (lambda v: first_row(v, 98765 + 1j), ValueError, "Complex data not supported"),
    "complex array": (lambda v: np.array(v, dtype=complex), ValueError, "Complex data not supported"),
    "string": (lambda v: first_row(v, "98765 Main Street"), ValueError, None),
    "string object": (lambda v: np.array(first_row(v, "98765x"), dtype=object), ValueError, None),
    "strings": (lambda v: np.array(v).astype(str), ValueError, NOT_NUMBERS),
    "numeric strings": (lambda v: [str(x) for x in np.ravel(v)], ValueError, NOT_NUMBERS),
    "bytes": (lambda v: [str(x).encode() for x in np.ravel(v)], ValueError, NOT_NUMBERS),
    "dictionary": (lambda v: first_row(v, {"income": 987654.25}), REFUSED, None),
    "ragged": (lambda v: [[*np.ravel(x), 987654.25] if i else x for i, x in enumerate(v)], ValueError, None),
    "date": (lambda v: [date(1987, 6, 5)] * len(v), REFUSED, None),
    "numpy dates": (lambda v: np.array([98765] * len(v), "datetime64[s]"), REFUSED, NOT_NUMBERS),
    "pandas dates": (lambda v: pd.Series(pd.to_datetime([987654] * len(v))), REFUSED, NOT_NUMBERS),
    "time spans": (lambda v: np.array([98765] * len(v), "timedelta64[s]"), REFUSED, NOT_NUMBERS),
    "records": (lambda v: np.array([(98765, 1.0)] * len(v), "i8,f8"), REFUSED, None),
    "sparse": (lambda v: sparse.csr_matrix(np.atleast_2d(v)), TypeError, "Sparse"),
    "3-D": (lambda v: np.array(v)[..., np.newaxis, np.newaxis], ValueError, None),
    "scalar": (lambda v: float(np.ravel(v)[1]), REFUSED, None),
    "one number as text": (lambda v: "987654.25", REFUSED, None),
    "None": (lambda v: None, REFUSED, None),
    "generator": (lambda v: (x for x in v), REFUSED, None),
    "set": (lambda v: {987654.25, 1.0}, REFUSED, None),
    "empty": (lambda v: [], ValueError, None),
    "no columns": (lambda v: np.empty((len(v), 0)), ValueError, None),
}

LEGAL_LABELS = {
    "too large an integer",
    "bytes",
    "date",
    "numpy dates",
    "pandas dates",
    "time spans",
}
MIXED_LABELS = {"strings", "numeric strings"}


# ---- calls: a case under a relation, and its options ------------------------------------------------------

RELATIONS = REPLACE, ADD_OR_REMOVE = "replace_one", "add_or_remove_one"
PRIVATE_N = {"neighboring": ADD_OR_REMOVE}
WAYS = {"private": {}, "public": {"membership": "public"}, "add or remove": PRIVATE_N}
"""What may be private of groups: who is in which, what a record says only, or how many there are too."""
each_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
RULES = {
    "default": {},
    **{name: {"mechanism": name} for name in MECHANISMS},
    "Hazard(resolution=0.1)": {"mechanism": Hazard(resolution=0.1)},
    "AboveThreshold(beta=1.1,split=0.3)": {"mechanism": AboveThreshold(beta=1.1, split=0.3)},
    "AboveThreshold(grid)": {
        "mechanism": AboveThreshold(first=5, scale=0.25, max_candidates=300, ranks=20),
    },
    "AboveThreshold(even)": {"mechanism": AboveThreshold(spacing="even", max_candidates=500)},
    "AboveThreshold.paper": {"mechanism": AboveThreshold.paper()},
    "AboveThreshold.paper(unit)": {"mechanism": AboveThreshold.paper(unit=1 / 300)},
}
NEED_A_LIMIT = {"inverse_sensitivity", "piecewise_laplace", "laplace", "geometric", "AboveThreshold(even)"}


@cache
def records(name, n=300):
    """Return n records of a case: within the same limits, but such that losses and sums have to be rounded.

    Every machine makes the same ones, because each operation is rounded once. Labels stay whole numbers.
    """
    data = CASES[name].data(np.random.default_rng([zlib.crc32(name.encode()), n]), n)
    return tuple(a if (a == np.rint(a)).all() else 0.9 * a + 0.1 * a[..., ::-1] for a in data)


def weights(n):
    """Return public weights, the first of which is positive and some of which are 0."""
    made = np.random.default_rng([1, n]).integers(0, 9, n) / 4
    made[:1] = 1.0
    return made


def persons(n):
    """Return public groups of about three records."""
    return np.random.default_rng([2, n]).integers(0, max(n // 3, 1), n)


@dataclass(frozen=True)
class Call:
    """A case under a neighbouring relation: "plain", or with a limit that many records exceed."""

    name: str
    relation: str
    form: str

    def __str__(self):
        return f"{self.name}/{self.relation}/{self.form}"

    @property
    def case(self):
        return CASES[self.name]

    @property
    def options(self):
        limit = self.case.bounded if self.form == "limited" else {}
        closer = {
            key: value / 16 if key == "max_loss" else tuple(end / 2 for end in value)
            for key, value in limit.items()
        }
        # a private number of records needs the labels where they are several
        labels = {"labels": [0, 1, 2]} if "multi_class" in self.case.options else {}
        return {**self.case.options, **labels, **closer}

    @property
    def neighboring(self):
        return {"neighboring": self.relation} if self.case.name in RELATED else {}

    def is_served(self, mechanism):
        """Tell whether a mechanism releases the metric with these options under this relation."""
        unlimited = self.case.bounded and self.form == "plain"
        if mechanism == "default" or self.case.row.mechanism is None:
            return mechanism == "default"
        if self.relation == ADD_OR_REMOVE and (
            mechanism == "laplace" or (mechanism, self.case.name) == ("geometric", "private_roc_auc_score")
        ):
            return False
        return not (unlimited and mechanism in NEED_A_LIMIT)

    def release(self, data, mechanism="default", **settings):
        settings = {**self.options, **self.neighboring, **RULES[mechanism], **settings}
        return dp.with_result(self.case.function)(*data, **settings)


RELATED = {case.name for case in CASES.values() if "neighboring" in case.parameters}
CALLS = [
    Call(name, relation, form)
    for name, case in CASES.items()
    for relation in (RELATIONS if case.name in RELATED else (REPLACE,))
    for form in (("plain", "limited") if case.bounded else ("plain",))
]
LIMITED = [call for call in CALLS if call.form == "limited" or not call.case.bounded]


OPTIONS = {
    "sample_weight": [weights],
    "groups": [persons],
    "max_records": [2],
    "equal_groups": [True],
    "bounds": [(0.5, 2.0)],
    "max_loss": [0.75],
    "multioutput": ["raw_values", [0.2, 1.1, 0.7]],
    "alpha": [0.9, 1.0],
    "q": [0, 0.25, 0.9, 1],
    "ddof": [1, -0.5],
    "error_share": [0.3],
    "normalize": [False],
    "scale_by_half": [True, False],
    "average": ["macro", "weighted", "micro", None],
    "zero_division": [1.0],
    "weights": ["linear", "quadratic"],
    "adjusted": [True],
    "edges": [(0.1, 0.25, 0.5, 0.9)],
    "bins": [16],
    "n_bins": [3],
    "k": [1],
    "digits": [3],
    "output_dict": [False],
    "pos_label": [0],
}
OPTIONS_OF = {
    ("private_confusion_matrix", "normalize"): ["true", "pred", "all"],
    ("private_roc_auc_score", "average"): ["macro", None],
    ("private_r2_score", "sample_weight"): [],  # it is refused
    ("private_classification_report", "target_names"): [["no", "yes"]],
}
TOGETHER = [
    ("sample_weight", "groups"),
    ("normalize", "sample_weight"),
    ("multioutput", "sample_weight", "groups"),
    ("max_loss", "sample_weight", "groups"),
]
NEEDED = {
    "max_records": {"groups": persons},
    "equal_groups": {"groups": persons},
    "average": {"labels": [0, 1]},
    "digits": {"output_dict": False},
}
NAMES = np.array(["egg", "ham", "spam", "tea"])


def variations(call):
    """Yield further options of a metric by name; a name also says what becomes of the data."""
    own = {
        option: OPTIONS_OF.get((call.case.name, option), OPTIONS.get(option, []))
        for option in call.case.row.options
    }
    for option, values in own.items():
        added = NEEDED.get(option, {})
        for value in values:
            needed = {k: call.options.get(k, v) if k == "labels" else v for k, v in added.items() if k in own}
            yield f"{option}={getattr(value, '__name__', value)}", {**needed, option: value}
    for options in TOGETHER:
        if own.keys() >= set(options) and all(own[option] for option in options):
            yield ",".join(options), {option: own[option][0] for option in options}
    if "labels" in own:
        listed = NAMES[: int(records(call.name)[0].max()) + 1].tolist()
        # columns without names belong to the sorted labels
        named = {"labels": listed[::-1] if call.case.row.predicts_labels else listed}
        one = {"pos_label": "egg"} if "pos_label" in own and "average" not in call.options else {}
        yield "labels", {**named, **one}
    if "multioutput" in own:
        yield "several outputs", {}
    # the limit of a log loss follows from the type of the probabilities
    yield "float32", {"max_loss": None} if "max_loss" in call.case.options else {}


def made_for(options, n):
    """Return options of which those with a value for each record are made for n records."""
    return {name: value(n) if callable(value) else value for name, value in options.items()}


def varied_data(call, variation, n):
    """Return records for a variation: three outputs, labels that are names, or single precision."""
    data = records(call.name, n)
    if variation == "several outputs" or "multioutput" in variation:
        data = [a if a.ndim > 1 else np.stack([a, a[::-1], np.roll(a, 1)], axis=1) for a in data]
        return [a[:, [0, 1, -1]] for a in data]
    if variation == "labels":
        named = 2 if call.case.row.predicts_labels else 1
        return [NAMES[a.astype(int)] if place < named else a for place, a in enumerate(data)]
    return [a.astype(np.float32) for a in data] if variation == "float32" else data
