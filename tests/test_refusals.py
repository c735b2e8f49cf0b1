"""What is refused: rows of a call, its error and its words; of some calls each value that was tried.

Whatever is refused costs nothing, draws nothing, tells nothing of the data, and says what to do instead.
The numbers 98765... and words of the data that stand in for secrets must be in no message.
"""

import ast
import contextlib
import inspect
import io
import itertools
import math
import pickle
import re
import reprlib
import shlex
import tempfile
from decimal import Decimal
from fractions import Fraction
from functools import cache, partial
from pathlib import Path

import dask.array as da
import dask.bag
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from cases import BAD_RECORDS, CASES, KINDS, LEGAL_LABELS, MIXED_LABELS, PRIVATE_N, valid, with_sentinel
from helpers import (
    NoEntropy,
    all_of_labels,
    all_of_scores,
    kind_of,
    messages,
    objects,
    seeded,
    telling,
)
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFECV, SequentialFeatureSelector
from sklearn.linear_model import LinearRegression, LogisticRegression, LogisticRegressionCV, Ridge, RidgeCV
from sklearn.metrics import make_scorer, roc_auc_score
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, LeaveOneOut, RandomizedSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import dp_metrics as dp
from dp_metrics import Summary
from dp_metrics.cli.main import main
from dp_metrics.mechanisms import Adaptive
from dp_metrics.metrics import METRICS, row_of
from dp_metrics.page.requirements import parsed
from dp_metrics.quantities.base import get_mechanism

BUDGET = dp.PrivacyAccountant(100.0)
PAID = {"epsilon": 1.0, "accountant": BUDGET}
SAFE = {**PAID, "random_state": NoEntropy()}
INVALID = (ValueError, TypeError)
NAN, INF = math.nan, math.inf

RNG = np.random.default_rng(0)
Y = np.repeat([0, 1], 300)
S = np.clip(RNG.normal(0.4 + 0.2 * Y, 0.15), 0, 1)
Y3 = np.arange(600) % 3
S3 = np.full((600, 3), 1 / 3)
PAIR = ([0, 1, 1], [1, 1, 1])
WORDS = (np.where(Y, "yes", "no"), np.where(S > 0.5, "yes", "no"))
NO_YES = {"labels": ["no", "yes"], "pos_label": "yes"}
S2 = np.column_stack([1 - S, S])
X = S.reshape(-1, 1)
MODEL, LINE = LogisticRegression().fit(X, Y), LinearRegression().fit(X, Y)
OF_THREE = {"true": [0, 1, 1], "by": ["a", "b", "b"]}
Z, GRID = RNG.normal(size=(40, 3)), {"alpha": [0.1, 1.0]}
T = Z.sum(axis=1)
SCORER = dp.make_private_scorer("neg_private_mse", epsilon=0.1)
FORWARD = SequentialFeatureSelector(Ridge(), scoring=SCORER, n_features_to_select=2, cv=3)
OVER_LABELS = {"private_balanced_accuracy_score", "private_cohen_kappa_score", "private_matthews_corrcoef"}
MAE = "--metric mae --y-true y --y-pred p --epsilon 1"
F1, ACCURACY = (MAE.replace("mae", name) for name in ("f1", "accuracy"))
BY_SEX = "--sensitive a --group-labels m f"
MODELS = "--y-true y --pred-a a --pred-b b"
PAGE = "--y-true y --y-score p --labels well ill --pos-label ill"
RACES = ["a", "b", "c"]
RACE = np.array(RACES)[Y3]
TWO_FEATURES = pd.DataFrame({"race": RACE, "old": Y})
THREE_EACH = np.arange(600) // 3
ONCE_EACH = {"groups": THREE_EACH, "equal_groups": True}
WORDS_OF_PAGES = (
    "title", "model_name", "data_description", "baseline_name", "score_name", "positive_meaning", "unit_name",
    "person_name",
)  # fmt: skip


def kept(metric, *data, **options):
    return dp.with_result(metric)(*data, **{"epsilon": 1e3, "random_state": seeded(), **options})


@cache
def scores(*edges):
    summary = all_of_scores(edges=edges or None).update(Y, S)
    return summary.release(1e3, random_state=seeded())


@cache
def confusion(k=3):
    metric = "confusion_matrix" if k <= 3 else "classification_report"
    return all_of_labels(range(k), metric).update(Y3, Y3).release(1e3, random_state=seeded())


@cache
def curve(name="private_roc_curve", **options):
    return kept(METRICS[name].function, Y, S, **options)


def best(metric="accuracy", y_true=Y, candidates=(Y, 1 - Y), **options):
    return dp.private_best(
        y_true,
        [*candidates] if isinstance(candidates, tuple) else candidates,
        metric=metric,
        **SAFE,
        **options,
    )


def at_place(place, bad):
    """Return data of a choice with bad records as the true or the predicted ones."""
    true, *candidates = replaced([Y, S, S], place, bad)
    return {"y_true": true, "candidates": candidates}


LAZY = da.ones(4, chunks=2)


def losses(weights=None):
    return Summary("mean_loss").update([98765.25, 1.0], sample_weight=weights)


def variance(**options):
    return Summary("variance", **options).update([98765.25, 1.0, 2.0])


def outputs(number):
    return Summary("mse").update(*np.ones((2, 1, number)))


def halves(dtype, columns=2):
    return Summary("log_loss").update([0], np.full((1, columns), 1 / columns, dtype))


LOSSES = Summary("mse").update(*PAIR)
VALUES = variance()


class Once(np.ndarray):
    """Records that cannot be copied."""

    def __deepcopy__(self, memo):
        raise RuntimeError("98765")


def own_error(y_true, y_pred, *, epsilon, accountant=None):
    return dp.private_mean_loss(np.abs(y_true - y_pred), epsilon=epsilon, accountant=accountant)


def own_numbers(y_true, y_pred, *, epsilon, accountant=None, multioutput=None):
    return np.ones(2)


def greedy(y_true, y_pred, *, epsilon, accountant=None):
    return sum(dp.private_mse(y_true, y_pred, epsilon=epsilon, accountant=accountant) for _ in range(2))


def of_a_binary_float(y_true, y_pred, *, epsilon, accountant=None):
    """A float stands for its decimal, which is less: the sum of the history's floats is what was given."""
    return dp.private_mse(y_true, y_pred, epsilon=Fraction(epsilon), accountant=accountant)


def of_two_relations(y_true, y_pred, *, epsilon, accountant=None):
    half = {"epsilon": epsilon / 2, "accountant": accountant}
    return sum(dp.private_mse(y_true, y_pred, **half, **relation) for relation in ({}, PRIVATE_N))


def scorer(metric="mse", **options):
    return dp.make_private_scorer(metric, **PAID, **options)


def search(estimator=None, grid=None, data=None, **options):
    options = {"metric": "mse", **PAID, **options}
    model = Ridge() if estimator is None else estimator
    made = dp.PrivateRandomizedSearch(model, GRID if grid is None else grid, **options)
    return made.fit(**{"X": Z, "y": T, "X_val": Z, "y_val": T, **(data or {})})


class Typed(Exception):
    """What a command line says of what was typed."""


FOLDER = tempfile.TemporaryDirectory()
COLUMNS = b"y,p,a,b\n" + b"98765,98765,98765,98765\n" * 9


def typed(command="", line="", content=COLUMNS):
    """Type a command, which is refused before it reads the file or makes the budget that it names."""
    path, budget = Path(FOLDER.name, "data.csv"), Path(FOLDER.name, "new.sqlite")
    path.unlink(missing_ok=True)
    if content is not None:
        path.write_bytes(content)
    argv = [command, *shlex.split(line)] if command else []
    if command in ("score", "compare", "interval", "evaluate"):
        argv.insert(1, str(path))
        argv += [] if {"--total", "--budget"} & {*argv} else ["--budget", str(budget), "--total", "9"]
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.chdir(FOLDER.name):
        code = main(argv)
    assert not budget.exists()
    assert said.getvalue().count("\n") == 1
    assert code == 2 or content != COLUMNS, said.getvalue()
    raise Typed(said.getvalue().replace(FOLDER.name, ""))


@cache
def page():
    return dp.private_evaluate(Y, S > 0.5, labels=[False, True], epsilon=1e3, random_state=seeded())


class Odd:
    """A label that is no other one, and says what it is when it is compared with another."""

    def __ne__(self, other):
        if other is not self:
            raise TypeError("98765.5")
        return False

    __hash__ = None


def frame(metrics=dp.private_recall_score, true=Y, pred=Y, by=RACE, **options):
    of = {"metrics": metrics, "y_true": true, "y_pred": pred, "sensitive_features": by, "group_labels": RACES}
    return dp.PrivateMetricFrame(**{**of, **SAFE, **options})


def framed(metrics=dp.private_recall_score, **options):
    return frame(metrics, **{"epsilon": 1e3, "accountant": None, "random_state": seeded(), **options})


framed_by_two = partial(framed, by=TWO_FEATURES, group_labels=[RACES, [0, 1]])


def replaced(data, position, value):
    return [value if at == position else column for at, column in enumerate(data)]


def of_metrics(condition=lambda case: True, holds=True):
    return [case for case in CASES.values() if bool(condition(case)) == holds]


def arguments(condition=lambda case: True):
    return [(case, at) for case in of_metrics(condition) for at in range(len(case.row.data))]


def takes(parameter):
    return lambda case: parameter in case.parameters


def of_two(case):
    return len(case.row.data) == 2


def with_mechanism(case):
    return case.row.mechanism is not None


def uncomputed(case):
    """Return data in collections of which no chunk may be computed."""

    def compute(block):
        raise AssertionError("the data were computed")

    return [
        da.from_array(a, chunks=(3, *a.shape[1:])).map_blocks(compute, dtype=a.dtype, meta=a[:0])
        for a in valid(case, 6)
    ]


def held(condition=lambda case: True):
    """Return metrics, and how their data may be held: at once, and in collections if they take these."""
    at_once = [(case, partial(with_sentinel, position=0)) for case in of_metrics(condition)]
    return at_once + [(case, uncomputed) for case, _ in at_once if case.row.usual.merges]


def cut(data, position):
    return replaced(data, position, data[position][:-1])


def widened(case, position):
    """Call a metric with three times the columns in one argument."""
    data = with_sentinel(case, position)
    columns = np.reshape(data[position], (len(data[position]), -1))
    of_classes = words_of_widened(case, position).startswith("^The number of classes")
    labels = {"labels": range(columns.shape[1] + 1)} if of_classes else {}
    return case(*replaced(data, position, np.column_stack([columns] * 3)), **SAFE, **labels)


def words_of_widened(case, position):
    if kind_of(case.row) == "confusion":
        return f"^{case.row.data[position]} should be a 1d array"
    if case.row.predicts_labels:
        return "^Classification metrics can't handle a mix"
    if case.always_bounded and position == 1:
        return "^The number of classes in labels is different"
    if of_two(case) and not case.always_bounded:
        return "^y_true and y_pred (have different number of output|should be 1d)"
    return "should be a 1d array"


def lengths_differ(case, position):
    sizes = [6 - (at == position) for at in range(2)]
    names = case.row.data
    found = f"{sizes}: {names[0]} has {sizes[0]}, {names[1]} has {sizes[1]}."
    return "^" + re.escape(f"Found input variables with inconsistent numbers of samples: {found}") + "$"


def spoilt(case, position, kind):
    data = with_sentinel(case, position)
    return replaced(data, position, BAD_RECORDS[kind][0](data[position].tolist()))


def spoilt_weights(kind):
    return BAD_RECORDS[kind][0]([1.0, 98765.25, 0.5, 2.0, 1.0, 1.0])


def words_of_spoilt(case, position, kind):
    mixed = case.row.predicts_labels and kind in MIXED_LABELS
    return "Mix of label input types" if mixed else BAD_RECORDS[kind][2]


ROW = np.ones((1, 98765))
MASKED = np.ma.array([0, 1, 1], mask=[0, 0, 1])

TABLES = [METRICS[f"private_{name}"].function for name in (
    "roc_curve", "precision_recall_curve", "average_precision_score", "calibration_curve",
    "expected_calibration_error",
)]  # fmt: skip

# one metric for each reader of records, and which of its arguments, with all that is no record
READERS = [
    ("mse", 0), ("mse", 1), ("variance", 0), ("quantile", 0), ("log loss", 0), ("log loss", 1),
    ("zero-one", 0), ("zero-one", 1), ("mean loss", 0),
]  # fmt: skip
SPOILT = [(*argument, kind) for argument in arguments() for kind in ("NaN", "infinity", "string")]
SPOILT += [
    (CASES[name], at, kind)
    for name, at in READERS
    for kind in BAD_RECORDS
    if not (CASES[name].row.predicts_labels and kind in LEGAL_LABELS)
]
SPOILT += [
    (CASES[name], at, kind)
    for name in ("roc curve", "calibration curve", "calibration error")
    for at in (0, 1)
    for kind in ("missing", "complex", "date", "ragged", "sparse", "3-D", "None", "no columns")
]

LIMITS_OF_COUNTS = [confusion().noise_interval, confusion().population_interval]

INTERVALS = [
    partial(dp.private_mean_interval, max_loss=2.0),
    partial(dp.private_mean_interval, cap="private"),
    partial(dp.private_quantile_interval, q=0.5),
]
PLANS = [partial(dp.plan_release, epsilon=1.0), partial(dp.plan_release, error=0.1)]

LARGE = 10**400
NO_POSITIVE = [0, -1, NAN, INF, -INF, "1", b"1", None, True, np.True_, [1], np.array([1.0]), 1j, LARGE]
NO_POSITIVE += [*map(Decimal, ("NaN", "sNaN", "Infinity", "-1", "1e400", "1e-999999999"))]
# Values of options that whoever has such an option refuses, with its name.
WRONG = {
    "epsilon": NO_POSITIVE,
    "neighboring": ["swap", "REPLACE_ONE", None, 1, ["replace_one"]],
    "mechanism": ["gaussian", 3, dp.mechanisms.Hazard, object()],
    "accountant": [1.0, 3],
    "random_state": ["1", 1.5, [1], object(), True, np.True_, -1, 7.0, np.random],
    "spend_name": [3],
    "bounds": [
        (1, 0), (0, NAN), 3.0, (0, 0), (0, INF), (-INF, 0), (0,), (0, 1, 2), "01", [[0, 1]], (),
        (False, True), ("0", "1"), (None, 1), (0, 1j), [[0], [1]], {0: 1, 1: 2}, {0, 1}, object(), (0, LARGE),
        True, b"01", (1, 1),
    ],
    "max_loss": [0, NAN, "3", -1, INF, [3], True, b"3", 1j, LARGE, object()],
    "edges": [[0, 1], [0, 2, 1], [0, NAN, 1], "abc", [0, 1, INF], [[0, 1, 2]], 3],
    "bins": [0, 3, "8", 256, 8.5, True, -8],
    "n_bins": [0, 1.5, True, 1001, None],
    "capacity": [0, -1, 1.5, 4.0, True, np.True_, "7", NAN],
    "confidence": [0, 1.0, NAN, 95, "0.9"],
    "max_difference": [0, INF, "1"],
    "max_records": [0, 1.5],
    "equal_groups": ["yes"],
    "crossed": ["yes"],
    "sure": ["quick", "approximate"],
    "membership": ["secret"],
    "error_share": [0, 1, -1, NAN, "0.5", None],
    "overall_share": [1.0],
    "alpha": [-0.1, 1.1, NAN, "a", None, True],
    "labels": [
        ["a"], "ab", [0, 0], 3, b"ab", {"a", "b"}, {"a": 1}, [["a", "b"]], np.array([0, None], object),
        [1j, 2j], object(), *([Decimal(nan), 1] for nan in ("NaN", "sNaN")),
    ],
    "ddof": [NAN, INF, -INF, "1", None, True, [1], 1j, LARGE, -LARGE, Decimal(1)],
    "digits": [-1, 0, 18, None, 4.0, "x", True],
    "average": ["samples", "mean", 3],
    "multi_class": ["x", None],
    "zero_division": [0.5],
    "scale_by_half": ["yes", None],
    "strategy": ["quantile"],
    "multioutput": ["mean"],
    "expected_iter": [0.5, INF, NAN, "20", True],
    "response_method": ["fit", "predict_log_proba"],
    "statistic": ["median"],
    "error_cap": [0, "a", NAN, True],
    "n": [0, 2.5, True, [800]],
    "error": [0, -1, NAN, INF, "1", True],
    "cap": ["public", 1.0],
    "threshold": [NAN, "x"],
    "width": [0.0],
    "split": [
        {}, [], "a", [1], {"nothing": 1}, {"labels": 0}, {"labels": -1}, {"labels": NAN}, {"labels": INF},
        {"labels": "1"},
    ],
    "task": ["regressions"],
    "ties": ["none"],
}  # fmt: skip
HALVES = [0.5] * 99
# Whoever takes such options: what has the signature, and a call that would be right without them.
DOORS = {
    **{name: (case.function, partial(case, *with_sentinel(case, 0), **SAFE)) for name, case in CASES.items()},
    **{
        f"collections: {name}": (case.function, partial(case, *uncomputed(case), **SAFE))
        for name, case in CASES.items()
        if name in KINDS and case.row.usual.merges
    },
    "frame": (dp.PrivateMetricFrame, frame),
    "page": (dp.private_evaluate, partial(dp.private_evaluate, Y, y_score=S, labels=[0, 1], **SAFE)),
    "choice": (dp.private_best, best),
    "search": (dp.PrivateRandomizedSearch, search),
    "comparison": (dp.private_compare, partial(dp.private_compare, HALVES, HALVES, HALVES, **SAFE)),
    "interval of a mean": (
        dp.private_mean_interval, partial(dp.private_mean_interval, HALVES, max_loss=1.0, **SAFE),
    ),
    "interval of a quantile": (
        dp.private_quantile_interval, partial(dp.private_quantile_interval, HALVES, 0.5, **SAFE),
    ),
    "plan": (dp.plan_release, partial(dp.plan_release, dp.private_mean_loss, guess=(S,), epsilon=1.0)),
    "summary": (Summary, partial(Summary, "mse")),
    "release of a summary": (LOSSES.release, partial(LOSSES.release, **SAFE)),
    "scorer": (dp.make_private_scorer, partial(dp.make_private_scorer, "mse", epsilon=1.0)),
    **{
        ask.__qualname__: (ask, ask)
        for ask in (
            kept(dp.private_mse, T, T).noise_interval, kept(dp.private_mse, T, T).population_interval,
            framed().population_interval, framed().noise_interval, scores().calibration_band,
            scores().population_interval, curve().band,
        )
    },
}  # fmt: skip
ACCEPTED = [  # each has a meaning
    ("summary", "epsilon", None),
    ("ReleasedScores.calibration_band", "n_bins", None),
    ("quantile", "bounds", (0, INF)),
]

# A call, its error, its words, and the values that are tried. Words are a pattern, what tells
# it of the values, or ... where each of the values has its own before it.
# fmt: off
ROWS = [
    # rules that hold for all who have an option
    (lambda door, name, value: DOORS[door][1](**{name: value}),
     INVALID, lambda door, name, value: rf"\b{name}", [
         (door, name, value)
         for door, (asked, _) in DOORS.items()
         for name in WRONG.keys() & inspect.signature(asked).parameters.keys()
         for value in WRONG[name]
         if (door, name, value) not in ACCEPTED
     ]),
    # rules that hold for all metrics
    *(
        (
            lambda case, at, kind: case(*spoilt(case, at, kind), **SAFE),
            error,
            words_of_spoilt,
            [(case, at, kind) for case, at, kind in SPOILT if BAD_RECORDS[kind][1] == error],
        )
        for error in (ValueError, TypeError, INVALID)
    ),
    *(
        (
            lambda kind: CASES["mse"](*valid(CASES["mse"], 6), **SAFE, sample_weight=spoilt_weights(kind)),
            error,
            "sample_weight|1D array|Complex data|rectangular|not compatible|Sparse data|inconsistent",
            [kind for kind in BAD_RECORDS if kind != "None" and BAD_RECORDS[kind][1] == error],
        )
        for error in (ValueError, TypeError, INVALID)
    ),
    (lambda case: case(*(column[:0] for column in valid(case)), **SAFE),
     ValueError, "^Found array with 0 sample", of_metrics()),
    (lambda case, at: case(*cut(with_sentinel(case, at), at), **SAFE),
     ValueError, lengths_differ, arguments(of_two)),
    (lambda case, at: case(*map(np.array, cut(with_sentinel(case, at), at)), **SAFE, **PRIVATE_N),
     ValueError, lambda case, at: f"samples: {case.row.data[0]} and {case.row.data[1]}.$",
     arguments(lambda case: of_two(case) and takes("neighboring")(case))),
    (lambda case, at: widened(case, at), ValueError, words_of_widened, arguments()),
    (lambda case, name: case(*valid(case), **SAFE, **{name: [1.0] * 40}),
     ValueError, lambda case, name: f"takes no {name}: {case.row.refused[name]}",
     [(case, name) for case in of_metrics() for name in case.row.refused]),
    (lambda case, hold, mechanism: case(*hold(case), **SAFE, mechanism=mechanism),
     ValueError, lambda case, hold, mechanism: next(iter(case.bounded)), [
         (case, hold, mechanism)
         for case, hold in held(lambda case: with_mechanism(case) and not case.always_bounded)
         for mechanism in ("inverse_sensitivity", "piecewise_laplace", "laplace", "geometric")
     ]),
    (lambda case, hold: case(*hold(case), **SAFE, **PRIVATE_N, **case.bounded, mechanism="laplace"),
     ValueError, "public number of records|needs labels", held(
         lambda case: with_mechanism(case) and takes("neighboring")(case)
     )),
    (lambda case, hold: case(*hold(case), **SAFE | {"epsilon": 200.0}),
     dp.PrivacyBudgetError, "Nothing was released", held()),
    (lambda case: case.function(*valid(case), *case.row.required.values(), 1.0, random_state=NoEntropy()),
     TypeError, "positional", of_metrics()),
    (lambda weights, case: case(*PAIR, **SAFE, sample_weight=weights),
     INVALID, "[Ss]ample.weight|not compatible", [
         (weights, CASES[name])
         for name in ("mse", "rmse", "log loss", "accuracy")
         for weights in ([-1.0, 1, 1], [0, 0, 0], [1, 1], [1, 1, 1, 1])
     ]),
    # a generator has no records, whose first ones of each person were looked for in it
    (lambda call, at: call(*replaced([Y, Y, Y], at, iter(Y)), **SAFE, groups=THREE_EACH, max_records=1),
     INVALID, "1d|one entry per record", [
         (call, at)
         for call, data in (
             (lambda true, pred, _, **how: dp.private_recall_score(true, pred, **how), 2),
             (lambda true, pred, _, **how: dp.private_evaluate(true, pred, labels=[0, 1], **how), 2),
             (dp.private_compare, 3),
             (lambda true, pred, by, **how: dp.PrivateMetricFrame(
                 metrics="recall", y_true=true, y_pred=pred, sensitive_features=by, group_labels=[0, 1], **how
             ), 3),
         )
         for at in range(data)
     ]),
    (lambda groups, metric: metric(*PAIR, **SAFE, groups=groups),
     INVALID, "groups", [
         (groups, metric)
         for metric in (dp.private_mse, dp.private_log_loss, dp.private_accuracy_score)
         for groups in ([1, 2], [1, 2, 3, 4], [1.0, NAN, 2], [[1, 2]] * 3, 3, [[1], 2, 3])
     ]),
    # metrics of numbers
    (lambda wrong, metric: metric(np.ones((4, 3)), np.ones((4, 3)), **SAFE, multioutput=wrong),
     INVALID, "multioutput|[Cc]ustom weights", [
         (wrong, metric)
         for metric in (dp.private_mse, dp.private_rmse, dp.private_r2_score)
         for wrong in ("variance_weighted", "mean", [1, 2], [1, 2, -1], [0, 0, 0], [1, 2, NAN], "raw", 3)
     ]),
    (lambda: dp.private_mse([1.0], [1.0], **SAFE, multioutput=[1.0]), ValueError, "only in multi-output"),
    (lambda metric, y, p: metric(y, p, **SAFE),
     ValueError, "used", [
         (dp.private_mean_poisson_deviance, [-98765.5, 1.0], [1.0, 1.0]),
         (dp.private_mean_squared_log_error, [-98765.5, 1.0], [1.0, 1.0]),
     ]),
    (lambda: dp.private_mean_squared_log_error([1.0], [1.0], **SAFE, bounds=(-1, 1)), ValueError, "bounds"),
    (lambda ddof: dp.private_variance(np.arange(400.0), **SAFE, ddof=ddof),
     ValueError, "ddof", [400, 401, 400.0]),
    (lambda q: dp.private_quantile([1.0], q, **SAFE, bounds=(0, 1)),
     ValueError, "Quantiles", [-0.1, 1.1, NAN, "0.5", None, True, [0.5]]),
    (lambda bounds: dp.private_quantile([1.0], 0.5, **SAFE, bounds=bounds),
     ValueError, "bounds", [None, (None, 1), (-INF, 1), (1, 0), (NAN, None), 3, (0, NAN), np.zeros((2, 2))]),
    # metrics of labels
    (lambda labels: dp.private_f1_score(*WORDS, **SAFE, pos_label="yes", labels=labels),
     ValueError,
     "must all be different|at least two labels|Target is multiclass but average='binary'|not one of",
     [["no", "yes", "no"], ["yes"], ["no", "yes", "maybe"], ["no", "maybe"]]),
    (lambda value: dp.private_f1_score(*WORDS, **SAFE, **NO_YES, zero_division=value),
     ValueError, "zero_division must be|a result is finite", [0.5, NAN]),
    (lambda labels: dp.private_classification_report([0, 1], [0, 1], **SAFE, target_names=labels),
     ValueError, "target_names|names of the labels", [["a"], ["a", "a"], ["a", "accuracy"]]),
    # metrics of probabilities and scores
    (lambda: dp.private_roc_auc_score(Y, S, **SAFE, multi_class="ovo"),
     ValueError, "several pairs of labels"),
    (lambda mechanism: dp.private_roc_auc_score(Y, S, **SAFE, **PRIVATE_N, mechanism=mechanism),
     ValueError, "public number of records", ["geometric", "laplace"]),
    (lambda y, score, words: dp.private_roc_auc_score(y, score, **SAFE),
     ValueError, lambda y, score, words: words, [
         (Y3, S, "label that is not in labels"), (Y3, S3, "multi_class must be 'ovr'"),
         (WORDS[0], S, r"pass labels=\[...\]"), (Y, WORDS[0], "not labels"),
         (Y, np.zeros((600, 2, 2)), "3d array"),
     ]),
    (lambda metric, labels: metric(Y, S, **SAFE, labels=labels),
     ValueError, "labels must be two|label",
     [(metric, labels) for metric in TABLES for labels in ([0, 1, 2], ["no", "yes"])]),
    (lambda metric: metric([0, 1], [-3.0, 0.5], **SAFE),
     ValueError, r"^y_score has values outside \[0, 1\]: pass edges=", TABLES[:3]),
    (lambda metric: metric([0, 1], [-3.0, 0.5], **SAFE),
     ValueError, r"values in \[0, 1\] only: probabilities", TABLES[3:]),
    (lambda metric: metric(Y, S, **SAFE, edges=[0, 1, 2], bins=8),
     ValueError, "bins cannot be used with edges", TABLES[:3]),
    # released tables, their limits and pictures
    (lambda kind, other: kind.of(other),
     TypeError, "release a (confusion matrix|ROC curve).* by `with_result`", [
         *itertools.product((dp.ReleasedConfusion, dp.ReleasedScores), (None, np.eye(2), [1.0], "f1")),
         # what does not hold all counts
         (dp.ReleasedConfusion, kept(dp.private_f1_score, Y, Y)),
         *((kind, kept(dp.private_mse, Y, Y)) for kind in (dp.ReleasedConfusion, dp.ReleasedScores)),
     ]),
    (lambda: scores().noise_interval(metric="recall"), ValueError, "metric must be"),
    (lambda at: scores().f1_score(at), ValueError, "finite number", [NAN, INF, None, True, "0.3"]),
    (lambda wanted: scores().threshold_for(**wanted),
     ValueError, "either precision or recall",
     [{}, {"precision": 0.5, "recall": 0.5}, {"recall": 1.2}, {"precision": "0.5"}]),
    (lambda: (
         all_of_scores()
         .update(0 * Y, S)
         .release(1e3, random_state=seeded())
         .threshold_for(precision=0.9)
     ),
     ValueError, r"No edge of the released bins has a precision of 0\.9"),
    (lambda: scores().plot("lift"), ValueError, "kind must be"),
    (lambda: scores(-1.0, 0.0, 1.0).calibration_band(), ValueError, "need probabilities"),
    (lambda: curve("private_roc_auc_score", mechanism="geometric").population_interval(),
     ValueError, "default mechanism"),
    (lambda: kept(dp.private_accuracy_score, Y, Y).band(), ValueError, "private_roc_curve or of"),
    (lambda: kept(dp.private_roc_curve, Y, S, groups=Y3).band(),
     ValueError, "up to 200 records of each person"),
    (lambda ask: ask(dp.ReleasedScores.of(kept(dp.private_roc_curve, Y, S, **ONCE_EACH))),
     ValueError, "no sure limits, and no band", [
         lambda told: told.population_interval(sure=True), lambda told: told.roc_band(),
         lambda told: told.calibration_band(), lambda told: told.precision_recall_band(),
         lambda told: told.net_benefit(0.5), lambda told: told.net_benefit(0.5, of="records"),
     ]),
    (lambda: kept(dp.private_calibration_curve, Y, S, **ONCE_EACH).band(),
     ValueError, "no sure limits, and no band"),
    (lambda metric, sure: kept(metric, Y, Y, **ONCE_EACH).population_interval(sure=sure),
     ValueError, "made of ratios .*leave out sure",
     [(dp.private_recall_score, True), (dp.private_matthews_corrcoef, False)]),
    (lambda: curve().noise_interval(), ValueError, r"or band\(\)"),
    (lambda: curve().population_interval(), ValueError, r"or band\(\)"),
    (lambda other: curve("private_calibration_curve", n_bins=10).band().error(other),
     ValueError, "n_bins=10", [
         kept(dp.private_expected_calibration_error, Y, S, n_bins=5),
         kept(dp.private_expected_calibration_error, Y[1:], S[1:]),
     ]),
    (lambda: curve("private_calibration_curve").band().error(0.5),
     TypeError, "with_result of private_expected_calibration_error"),
    (lambda: scores().calibration_band(n_bins=5).error(), ValueError, "does not tell the mean score"),
    (lambda ask: ask("recal"), ValueError, "Did you mean 'recall'", LIMITS_OF_COUNTS),
    (lambda ask: ask("log_loss"), TypeError, "private_log_loss is no metric of labels", LIMITS_OF_COUNTS),
    (lambda ask: ask("recall"), ValueError, "average setting", LIMITS_OF_COUNTS),
    (lambda: confusion(9).plot(), ValueError, "whole matrix"),
    (lambda metric: row_of(metric, "loss"),
     TypeError, "loss must be a private metric of this package",
     [len, None, 3, ["mse"], partial(dp.private_mse, [1.0])]),
    # records
    (lambda y: dp.private_accuracy_score(y, np.array([0.0, 1.0, 0.0], dtype=y.dtype), **SAFE),
     ValueError, "whole|compared|y_true holds other objects",
     [np.array([98765.5, 1, 0]), np.array([98765.5, 1, 0], object), np.array([Odd(), 1, 0], object)]),
    (lambda y, labels: dp.private_log_loss(y, [0.5] * len(y), **SAFE, labels=labels),
     ValueError, "label|NaN|0 sample|numeric|1d (or 2d )?array", [
         ([0, 2], [0, 1]), ([-1, 0], [0, 1]), ([0.5, 0], [0, 1]), (["egg", "ham"], ["ham", "spam"]),
         ([None, "ham"], ["ham", "spam"]), ([1, "ham"], ["ham", "spam"]),
         ([["x"], {"y": 1}], ["ham", "spam"]), ([NAN, 0.0], [0, 1]), (["0", "1"], [0, 1]),
         ([0, 1], ["0", "1"]), ([], [0, 1]), ([], ["a", "b"]), ([["a", "b"]], ["a", "b"]),
         ("ab", ["a", "b"]), (["a", "b"], [0, 1]),
     ]),
    (lambda loss: dp.private_mean_loss([1.0, loss], **SAFE),
     ValueError, "^Negative values in data passed to `losses`", [-987654.25, -5e-324]),
    (lambda name: dp.private_accuracy_score(**{"y_true": Y, "y_pred": Y, name: telling("array")}, **SAFE),
     TypeError, "^What was given cannot be made a NumPy array: convert it",
     ["y_true", "y_pred", "sample_weight", "groups"]),
    (lambda: frame(by=telling("array")), TypeError, "^What was given cannot be made a NumPy array: convert"),
    (lambda call: call([np.zeros((3, 98765)), np.zeros((3, 2))]),
     ValueError, "of different shapes", [
         lambda rows: dp.private_confusion_matrix(["a", "b"], rows, labels=["a", "b"], **SAFE),
         lambda rows: dp.private_accuracy_score(rows, rows, **SAFE),
     ]),
    (lambda data, groups: dp.private_compare(*data, **SAFE, groups=groups),
     ValueError,
     "^Found input variables .* of samples: .*: y_true has ..., (pred_a|pred_b|groups) has ....$",
     [((Y[1:], Y, Y), None), ((Y, Y, Y[1:]), None), ((Y, Y, Y), Y[1:])]),
    (lambda row, p: dp.private_mse(row, p, **SAFE, **PRIVATE_N),
     ValueError, "different number of output", [(ROW, ROW[:, :1])]),
    (lambda: dp.private_log_loss(ROW, [0.5], **SAFE, **PRIVATE_N, labels=["a", "b"]),
     ValueError, "not in labels"),
    (lambda call: call(MASKED),
     TypeError, "Masked", [
         lambda it: dp.private_log_loss([0, 1, 1], [0.5] * 3, labels=it[:2], **SAFE),
         lambda it: dp.private_mae([1, 2, 3], [1, 2, 3], groups=it, **SAFE),
         lambda it: dp.private_mae(it, [1, 2, 3], **SAFE),
     ]),
    # records of the room inputs
    (lambda call: call(pl.LazyFrame({"only": [0, 1, 1]})),
     TypeError, r"collect\(\)", [
         lambda it: dp.private_log_loss([0, 1, 1], it, **SAFE),
         lambda it: dp.private_log_loss([0, 1, 1], [0.5] * 3, labels=it, **SAFE),
         lambda it: dp.private_mae([1, 2, 3], [1, 2, 3], groups=it, **SAFE),
     ]),
    (lambda: dp.private_confusion_matrix([-1], [0], **SAFE, labels=range(0, 2000, 2)),
     ValueError, r"labels=\[0, 2, 4, 6, 8, 10, \.\.\.\]: pass all labels that there may be"),
    (lambda true, pred: dp.private_accuracy_score(true, pred, **SAFE, **PRIVATE_N),
     ValueError, "Mix of label", [
         (np.zeros(size, one), np.zeros(size, other))
         for one, other in itertools.permutations(("M8[D]", "m8[h]", "m8[M]", "U1", "i8"), 2)
         for size in (0, 1)
     ]),
    (lambda metric, true, pred: frame(metric, true, pred, RACE[: len(true)], **PRIVATE_N),
     ValueError, "does not state how many columns|different number of output", [
         (metric, true, pred)
         for metric in (dp.private_rmse, dp.private_brier_score_loss)
         for true, pred in (([], []), ([0, 1], [[0.25, 0.75]] * 2), ([0, 1], [[0.2, 0.3, 0.5]] * 2))
     ]),
    (lambda call, make: call(*(make({one: Y, two: S > 0.5}) for one, two in ("hw", "wh")), **SAFE),
     ValueError, "the same names in another order", [
         (call, make)
         for call in (
             dp.private_mse, dp.private_r2_score, dp.private_accuracy_score,
             lambda true, pred, **how: dp.private_compare(true, true, pred, loss="mse", **how),
         )
         for make in (pd.DataFrame, pl.DataFrame, pa.table)
     ]),
    (lambda metric, true, pred: metric(true, pred, **SAFE, **PRIVATE_N),
     ValueError, "^A list does not state how many columns .*pass (arrays|labels)", [
         (metric, rows if metric is dp.private_rmse else [0] * len(rows), rows)
         for metric in (dp.private_rmse, dp.private_log_loss)
         for rows in ([], [[0.25, 0.75]], [[0.25, 0.75]] * 2)
     ]),
    # names
    (lambda call, meant: call(),
     INVALID, lambda call, meant: f"Did you mean '{meant}", [
         (lambda: row_of("private_acuracy_score"), "private_acc"),
         (lambda: row_of("acc"), "accuracy"),
         (lambda: row_of("mape"), "mean_absolute_percentage_error"),
         (lambda: dp.private_evaluate(Y, y_score=S, **SAFE, requirements=["sensitivity >= 0.8"]), "recall"),
         (lambda: dp.make_private_scorer("neg_accuracy", epsilon=1.0), "accuracy"),
         (lambda: dp.private_compare(Y, Y, Y, **SAFE, loss="mean_sqared_error"), "mean_squared_error"),
         (lambda: dp.private_mse(Y, Y, **SAFE, mechanism="adaptiv"), "adaptive"),
         (lambda: dp.private_mse(Y, Y, **SAFE, neighboring="replace-one"), "replace_one"),
     ]),
    # options that many calls take
    # frames of metrics by group
    (lambda options: frame(**options),
     ValueError, ..., [
         ("group_labels must be the public labels", {"group_labels": None}),
         ("sensitive_features contains a label that is not in group_labels", {"group_labels": ["a", "b"]}),
         ("not in group_labels", {"by": np.array(["98765 Main Street", *RACE[1:]], object)}),
         ("each of the sensitive_features", {"group_labels": [RACES, ["f", "m"]]}),
         ("a list of lists, in the order", {"group_labels": {"race": RACES}}),
         ("group_labels must be a list or", {"group_labels": {*RACES}}),
         ("membership='public'", {"membership": "public", **PRIVATE_N}),
         ("metrics must be", {"metrics": {}}),
         ("a dict of several", {"metrics": ["accuracy", "recall"]}),
         ("cannot be used with", {**ONCE_EACH, **PRIVATE_N}),
         ("counts persons", {**ONCE_EACH, "membership": "public"}),
         *(
             ("in counts of labels and scores only", {**ONCE_EACH, "metrics": metric, "pred": S})
             for metric in (partial(dp.private_roc_auc_score, mechanism="hazard"), "brier_score")
         ),
         ("epsilon is no option", {"metrics": partial(dp.private_mae, epsilon=1.0)}),
         ("its rank would tell a private one", {"metrics": dp.private_median_absolute_error}),
         ("0 sample", {"metrics": "mae", "true": [], "pred": [], "by": [], "membership": "public"}),
         ("samples: .*: y_true has 600, y_pred has 599.$", {"metrics": "f1", "pred": Y[1:]}),
         ("samples: .*: y_true has 600, sensitive_features has 599.$", {"metrics": "f1", "by": RACE[1:]}),
         ("samples: .*: y_true has 600, groups has 599.$", {"metrics": "f1", "groups": Y[1:]}),
         ("^(?!.*3).*rectangular", {"metrics": "f1", "pred": [[1], [1, 0], [0]], **OF_THREE, **PRIVATE_N}),
         ("mechanism='hazard'", {"metrics": "roc_auc", "pred": 4 * S}),
         (
             "^mechanism='laplace' needs a public .* for the groups of a frame unless membership='public'",
             {"metrics": partial(dp.private_brier_score_loss, mechanism="laplace"), "pred": S},
         ),
     ]),
    (lambda options: frame(**options),
     TypeError, ..., [
         ("private metric of this package", {"metrics": roc_auc_score}),
         ("is a dict: pass a data frame", {"by": {"race": RACE, "old": Y}, "group_labels": [RACES, [0, 1]]}),
         ("one entry per record", {"true": np.array(1)}),
         ("that take y_true and y_pred", {"metrics": dp.private_variance}),
         ("unexpected keyword", {"metrics": partial(dp.private_mae, color=1.0)}),
         (r"collect\(\)", {"by": pl.LazyFrame({"race": RACE, "old": Y}), "group_labels": [RACES, [0, 1]]}),
     ]),
    (lambda metric, options, words: frame(partial(metric, normalize=False), **options),
     ValueError, lambda metric, options, words: words, [
         (metric, options, words)
         for metric in (dp.private_accuracy_score, dp.private_zero_one_loss)
         for options, words in (
             ({}, "^normalize=False cannot be used with mem"),
             (PRIVATE_N, "neighboring='add_or_remove_one'"),
         )
     ]),
    (lambda ask: ask(framed(dp.private_confusion_matrix)),
     TypeError, "one number", [
         lambda made: made.difference(), lambda made: made.ratio(), lambda made: made.group_max(),
         lambda made: made.group_min(), lambda made: made.difference("a", "b"),
     ]),
    (lambda ask: ask(framed(partial(dp.private_recall_score, average=None))),
     TypeError, "one number",
     [lambda made: made.plot(), lambda made: made.population_interval(of="difference")]),
    (lambda: framed("brier_score_loss", overall_share=0).difference("to_overall"),
     ValueError, "overall_share"),
    (lambda groups: framed().difference(*groups),
     ValueError, "two of the groups: 'a', 'b', 'c'", [["a"], ["a", "z"], [None, "a"]]),
    (lambda: framed().difference(method="largest"), ValueError, "method must be"),
    (lambda: framed({"recall": "recall", "error": "mae"}).plot("f1"), ValueError, "one of 'recall', 'error'"),
    (lambda name: framed(
         {"auc": partial(dp.private_roc_auc_score, mechanism="hazard"), "brier": "brier"}, pred=S
     ).released_scores(name),
     ValueError, "No such metric", ["auc", "brier", "auk"]),
    (lambda options: framed({"recall": "recall", "f1": "f1"}).population_interval(**options),
     ValueError, ..., [
         ("metric must be one of 'recall'", {"metric": "auc"}),
         ("of must be", {"of": "gap"}), ("a pair of two groups", {"of": ("a", "a")}),
     ]),
    (lambda labels, options: kept(
         dp.private_confusion_matrix, labels, labels, **options
     ).population_interval(),
     ValueError, "no interval for all people.*several ratios", [
         (Y, {}), (np.arange(600) % 21, {"normalize": "all", "labels": range(21)}),
     ]),
    (lambda metric: framed(metric).population_interval(sure=True),
     ValueError, "precision_score has no|all people",
     [partial(dp.private_precision_score, average="weighted"), partial(dp.private_log_loss, max_loss=2)]),
    (lambda ask: ask(framed(partial(dp.private_zero_one_loss, normalize=False), membership="public")),
     ValueError, "normalize=True",
     [lambda made: made.population_interval(), lambda made: made.noise_interval()]),
    (lambda: framed({"r": "recall", "f": "f1"}).noise_interval("f1"), ValueError, "one of 'r', 'f'"),
    (lambda: framed_by_two().margin(0).margin(0), ValueError, "this frame has one"),
    (lambda feature: framed_by_two().margin(feature),
     ValueError, "from 0 to 1", [2, -1, 0.5, "sex", None]),
    (lambda metric: framed_by_two(metric).margin(0),
     ValueError, "of several groups together is not told",
     [partial(dp.private_mse, bounds=(0, 1)), dp.private_roc_auc_score]),
    (lambda: framed(groups=THREE_EACH).population_interval(), ValueError, "up to 3 records of each person"),
    (lambda hold, race, old: frame(by=hold({"race": race, "old": old}), group_labels=[RACES, [False, True]]),
     ValueError, "^Input sensitive_features contains NaN: drop", [
         (hold, race, old)
         for hold in (
             pl.DataFrame, pa.table, pd.DataFrame, pa.RecordBatch.from_pydict,
             lambda two: pd.DataFrame(two).convert_dtypes(dtype_backend="pyarrow"),
         )
         for race, old in (([None, *RACE[1:].tolist()], [True] * 600), (RACE.tolist(), [None] + [True] * 599))
     ]),
    # pages
    (lambda: page()["recal"], KeyError, r"no number 'recal'.*Did you mean 'recall'"),
    (lambda: page().plot("pie"), ValueError, "has the pictures 'confusion matrix'"),
    (lambda asked: page().check(asked),
     ValueError, "requirement|No page has",
     [5, 0.8, object(), *(f"recall >= {bound}" for bound in ("nan", "-NaN", "80%", "0,8", "")),
      {}, [], {"nothing": (">=", 1)}, {"recall": 0.5}, {"recall": ("==", 0.5)}, {"recall": (">=", "a")}]),
    (lambda name, options: dp.private_evaluate(Y, Y, **SAFE, **options),
     ValueError, lambda name, options: f"^{name} is of no use here", [
         ("bounds", {"labels": [0, 1], "bounds": (0, 1)}),
         ("tolerance", {"labels": [0, 1], "tolerance": 1.0}),
         ("group_labels", {"labels": [0, 1], "group_labels": [0, 1]}),
         ("membership", {"labels": [0, 1], "membership": "public"}),
         ("edges", {"edges": [0, 0.5, 1], "task": "regression"}),
         ("pos_label", {"pos_label": 1, "task": "regression"}),
         ("pos_label", {"pos_label": 1, "labels": [0, 1, 2]}),
     ]),
    (lambda options: dp.private_evaluate(Y, y_score=S, **SAFE, labels=[0, 1], **options),
     ValueError, "threshold=.* lies outside of edges",
     [{"edges": [3, 4, 5]}, {"edges": [0, 1, 2], "threshold": 2}]),
    (lambda data, options: dp.private_evaluate(*data, **SAFE, labels=[0, 1], **options),
     TypeError, "y_proba",
     [((), {}), ((Y,), {}), ((Y, S, Y), {}), ((Y, Y), {"y_pred": Y}), ((Y,), {"y_score": S, "y_proba": S})]),
    (lambda data, options: dp.private_evaluate(*data, **SAFE, **options),
     TypeError, r"private_evaluate\(model, X_test, y_test",
     [((MODEL, X), {}), ((MODEL, X, Y, Y), {}), ((MODEL, X, Y), {"y_pred": Y})]),
    (lambda: dp.private_evaluate(MODEL, X, Y, **SAFE, baseline=S),
     TypeError, "baseline must be a fitted estimator"),
    (lambda model, other: dp.private_evaluate(model, X, Y, **SAFE, baseline=other),
     TypeError, "baseline must predict what the model does", [(MODEL, LINE), (LINE, MODEL)]),
    (lambda model, task: dp.private_evaluate(model, X, Y, **SAFE, task=task),
     ValueError, "contradict each other", [(MODEL, "regression"), (LINE, "classification")]),
    (lambda options: dp.private_evaluate(Y, **SAFE, **options),
     ValueError, "contradict each other", [
         {"y_pred": Y, "labels": [0, 1], "task": "regression"},
         *({name: S, "task": "regression"} for name in ("y_score", "y_proba")),
         {"y_pred": S, "y_score": S, "task": "regression"},
     ]),
    (lambda options: dp.private_evaluate(WORDS[0], **SAFE, **options),
     ValueError, r"pass (all of them as )?labels=\[\.\.\.\]|labels=\[\.\.\.\]", [
         {"y_score": S},
         {"y_proba": S3},
         {"y_pred": WORDS[1]},
         {"y_pred": Y, "task": "classification", "pos_label": "yes"},
     ]),
    (lambda metric: metric(WORDS[0], Y, **SAFE, pos_label="yes"),
     ValueError, r"pos_label='yes' .*pass all of them as labels=\[\.\.\.\]",
     [dp.private_roc_curve, dp.private_recall_score, dp.private_brier_score_loss]),
    (lambda: dp.private_evaluate(Y3, S3, **SAFE, labels=range(3)),
     ValueError, "pass probabilities as y_proba="),
    (lambda name, score: dp.private_evaluate(Y, **{"y_score": S, name: score}, **SAFE, labels=[0, 1]),
     ValueError, "outside",
     list(itertools.product(("y_score", "baseline"), (S + 0.5, -S - 0.01, 98765 * S)))),
    (lambda data: dp.private_evaluate(Y, **data, **SAFE),
     ValueError, "^Input baseline contains NaN", [
         {"y_score": S, "baseline": np.where(Y, NAN, 0.0)},
         {"y_proba": S3, "baseline": NAN * S3, "labels": range(3)},
     ]),
    (lambda proba, options: dp.private_evaluate(Y3, y_proba=proba, **SAFE, labels=range(3), **options),
     ValueError, "proba|labels must be two", [(4 * S3, {}), (S3, {"baseline": 4 * S3}), (S3[:, :2], {})]),
    (lambda options: dp.private_evaluate(Y, **{"y_score": S, "labels": [0, 1], **SAFE, **options}),
     INVALID, lambda options: f"{[*options][-1]}|group_labels", [
         {"pos_label": 7},
         {"sensitive_features": RACE},
         {"sensitive_features": RACE, "group_labels": ["a"]},
     ]),
    (lambda tolerance: dp.private_evaluate(Y, Y, **SAFE, task="regression", tolerance=tolerance),
     ValueError, "tolerance must be a positive, finite number", [0, -1, INF, NAN, "1", True]),
    (lambda wrong: dp.private_evaluate(Y, Y, **SAFE, labels=[0, 1], requirements=wrong),
     ValueError, "requirement|No page has",
     [5, 0.8, object(), ["recal >= 0.8"], "recal >= 0.8", "recall >= nan", "recall => 0.8", {"recall": 0.8},
      {"recall": (">=", "x")}, {"recall": ("=>", 0.8)}, {"recall": (">=", NAN)}]),
    (lambda name, word: dp.private_evaluate(Y, y_score=S, **SAFE, **{name: word}),
     ValueError, lambda name, word: f"{name} must be", [
         *itertools.product(WORDS_OF_PAGES, (3, "", "two\nlines", "x" * 601)),
         ("unit_name", ("a", "b", "c")), ("unit_name", ()),
     ]),
    (lambda options: dp.private_evaluate(
         Y, **{"y_score": S, **ONCE_EACH, **SAFE, **options}
     ),
     INVALID, ..., [
         ("equal_groups needs groups", {"groups": None}),
         ("groups cannot be used with neighboring", PRIVATE_N),
         ("inconsistent", {"groups": THREE_EACH[1:]}),
     ]),
    (lambda options: dp.private_evaluate(Y, Y, **SAFE, **{"labels": [0, 1], "crossed": False, **options}),
     INVALID, ..., [
         ("nothing to cross", {"sensitive_features": RACE, "group_labels": RACES}),
         ("nothing to cross", {}),
         ("never inferred", {"sensitive_features": TWO_FEATURES}),
         ("of each of the sensitive", {"sensitive_features": TWO_FEATURES, "group_labels": [RACES]}),
     ]),
    (lambda options: dp.private_evaluate(
         Y[::10], y_score=S[::10], **SAFE | {"epsilon": 0.01}, labels=[0, 1], **options
     ),
     ValueError, "Nothing could be told", [{}, {**PRIVATE_N, "n": 60}]),
    # choices, scorers and searches
    (lambda: dp.private_best([], [[], []], metric="accuracy", **SAFE), ValueError, "0 sample"),
    (lambda options: best(**options),
     ValueError, ..., [
         ("pass bounds=", {"metric": "mae"}),
         ("pass max_loss=", {"metric": "mean_poisson_deviance"}),
         (
             "cannot choose by private_mae",
             {
                 "metric": "mae",
                 "bounds": (0, 1),
                 "multioutput": "raw_values",
                 "candidates": [S2] * 2,
                 "y_true": S2,
             },
         ),
         ("metric='mse'", {"metric": "r2"}),
         ("What serves is accuracy, log loss", {"metric": "balanced_accuracy"}),
         ("public number of records", {"metric": "roc_auc", **PRIVATE_N}),
         ("takes no sample_weight", {"sample_weight": np.ones(600)}),
         ("takes no mechanism", {"mechanism": "laplace"}),
         ("inconsistent", {"candidates": [Y, Y[1:]]}),
     ]),
    (lambda options: best(**options),
     ValueError, "should be a 1d (or 2d )?array, got a 0d array instead", [
         {"metric": metric, "y_true": Y, "candidates": [Y, Y], "max_loss": 5.0, place: bad}
         for metric in ("mean_poisson_deviance", "log_loss")
         for place, bad in (("y_true", None), ("y_true", {0, 1}), ("y_true", iter(Y)), ("candidates", [Y, 3]))
     ]),
    (lambda bad: best(metric="roc_auc", y_true=bad), ValueError, "got a 0d array", [None, {0, 1}, iter(Y)]),
    (lambda options: best(**options),
     TypeError, ..., [
         ("unexpected keyword argument 'bounds'", {"bounds": (0, 1)}),
         ("at least one", {"candidates": np.array([Y, Y])}),
         ("Pass X", {"candidates": [LINE]}),
     ]),
    (lambda place, bad: best(metric="mae", bounds=(0, 1), **at_place(place, bad)),
     INVALID, "^(?!.*599).*(NaN|infinity|numeric|different number of output)", [
         (place, bad)
         for place in range(3)
         for bad in ([NAN] * 600, [*S[:-1], INF], [*S[:-1].tolist(), "x"], S2)
     ]),
    (lambda: scorer("log_loss")(MODEL, X, np.where(Y, "eggs 98765", "ham")),
     ValueError, "not in labels|numbers"),
    (lambda: scorer().set_params(metric_params={"random_state": 0})(LINE, X, Y), ValueError, "random_state"),
    (lambda: scorer(own_error, greater_is_better=False)(LINE, X, Y, sample_weight=np.ones(600)),
     TypeError, "^own_error takes no sample_weight; score the records without"),
    (lambda: scorer(own_error, greater_is_better=False, response_method=["decision_function"])(LINE, X, Y),
     AttributeError, "LinearRegression has none of the attributes decision_function"),
    (lambda: scorer("average_precision")(LinearSVC().fit(X, Y), X, Y),
     AttributeError, r"pass response_method='decision_function' and edges=\["),
    (lambda options: search(**options),
     ValueError, ..., [
         ("too small to be divided by 3", {"epsilon": 5e-324}),
         ("epsilon can't be fixed", {"metric_params": {"epsilon": 2.0}}),
         ("bounds must be", {"metric_params": {"bounds": (1, 0)}}),
         ("mechanism must be", {"metric_params": {"mechanism": "magic"}}),
         ("public upper limit", {"metric_params": {"mechanism": "laplace"}}),
         ("Invalid parameter 'beta'", {"grid": {"beta": [1]}}),
         ("Invalid parameter 'beta'", {"grid": [GRID, {"beta": [1]}]}),
         ("non-empty sequence", {"grid": {"alpha": []}}),
         ("at least one dict", {"grid": []}),
         ("spends more than the epsilon that it is given", {"metric": greedy, "greater_is_better": False}),
         (
             "spends more than the epsilon that it is given",
             {"metric": of_a_binary_float, "greater_is_better": False, "epsilon": 0.3},
         ),
     ]),
    (lambda options: search(**options),
     TypeError, ..., [
         ("metric must be a private metric", {"metric": dp.private_mean_loss}),
         ("estimator with predict_proba", {"metric": "log_loss", "estimator": LinearSVC(), "grid": {}}),
         ("not iterable or a distribution", {"grid": {"alpha": 1.0}}),
         ("must be a dict or a list of dicts", {"grid": iter([GRID])}),
         ("estimator", {"estimator": "ridge", "grid": {}}),
         (
             "own_error takes no sample_weight",
             {"metric": own_error, "greater_is_better": False, "data": {"sample_weight_val": np.ones(40)}},
         ),
     ]),
    (lambda data: search(data=data),
     ValueError, ..., [
         ("Input y_true contains NaN", {"y_val": np.where(T[7] == T, NAN, T)}),
         ("numeric", {"y_val": ["a"] * 40}),
         ("inconsistent numbers of samples", {"y_val": T[1:]}),
         ("requires y_val to be passed, but the target y_val is None", {"y_val": None}),
         ("requires y to be passed", {"y": None}),
         ("inconsistent numbers of samples", {"y": T[1:]}),
         ("0 sample", {"X": Z[:0], "y": T[:0]}),
         ("0 sample", {"X_val": Z[:0], "y_val": T[:0]}),
         ("X_val has 2 features, but X has 3 features", {"X_val": Z[:, :2]}),
         ("requires X_val to be passed", {"X_val": None}),
         ("shape of those of X", {"X_val": Z[:, 0]}),
         ("Input X_val contains NaN", {"X_val": np.where(Z[7, 1] == Z, NAN, Z)}),
         ("Input X_val contains infinity", {"X_val": np.where(Z[7, 1] == Z, INF, Z)}),
         ("contains NaN", {"X_val": sparse.csr_array(np.where(Z > 1, NAN, Z))}),
         ("X_val should hold what X holds", {"X_val": Z.astype(str)}),
         ("X_val should hold what X holds", {"X_val": [*Z[1:].tolist(), [1.0, "a", 2.0]]}),
         ("Input X_val contains NaN", {"X_val": [*Z[1:].tolist(), [1.0, None, 2.0]]}),
         *(
             (words, {"X": [[1.0, "x"]] * 40, "X_val": [[1.0, "x"]] * 39 + [[odd, "x"]]})
             for words, odd in (
                 ("X_val should hold what X holds", "y"),
                 ("X_val should hold what X holds", np.timedelta64(1, "s")),
                 ("Input X_val contains infinity", INF),
                 ("Input X_val contains infinity", 10**400),
             )
         ),
         ("shape of those of X", {"X_val": [*Z[1:].tolist(), [1.0]]}),
         ("shape of those of X", {"X_val": pd.Series(["a"] * 40)}),
         ("inconsistent numbers of samples", {"sample_weight_val": np.ones(39)}),
         (
             "feature names of X_val should match",
             {
                 "X": pd.DataFrame(Z, columns=["a", "b", "c"]),
                 "X_val": pd.DataFrame(Z, columns=["b", "a", "c"]),
             },
         ),
     ]),
    (lambda: search(data={"X": Z.view(Once)}), TypeError, r"copy\.deepcopy can copy"),
    (lambda label: search(
         LogisticRegression(),
         {},
         metric="log_loss",
         data={"y": WORDS[0][280:320], "y_val": np.array([label, *WORDS[0][281:320]], object)},
     ),
     ValueError, "label that is not in labels", ["98765", 3]),
    # comparisons and intervals for all people
    (lambda loss: dp.private_compare([1.0], [2.0], [3.0], **SAFE, loss=loss),
     ValueError, ..., [
         ("pass as loss one of mse, mae, ", dp.private_rmse),
         (", zero_one_loss;", "accuracy"),
         ("cannot be compared record by record", "top_k_accuracy_score"),
         ("cannot be compared record by record", "median_absolute_error"),
         ("zeros as y_true and loss='mae'", "private_mean"),
         ("no metric 'unheard_of'", "unheard_of"),
     ]),
    (lambda loss: dp.private_compare([1.0], [2.0], [3.0], **SAFE, loss=loss),
     TypeError, "loss must be a private metric", [abs, None, ["mae"]]),
    (lambda options: dp.private_compare([1.0, 2.0], *[[1.0, 1.0]] * 2, **SAFE | options),
     ValueError, ..., [
         ("takes no sample_weight", {"sample_weight": [1.0, 1.0]}),
         ("needs neighboring='replace_one'", PRIVATE_N),
         ("raw_values' cannot be compared", {"loss": "mae", "multioutput": "raw_values"}),
         ("bounds", {"loss": "mae", "bounds": (1, 0)}),
     ]),
    (lambda options: dp.private_compare([1.0, 2.0], *[[1.0, 1.0]] * 2, **SAFE, **options),
     TypeError, ..., [
         ("'max_loss'; of private_mae it takes bounds, multioutput", {"loss": "mae", "max_loss": 1}),
         ("unexpected keyword argument 'mechanism'", {"mechanism": "hazard"}),
         ("private_zero_one_loss it takes no options", {"normalize": True}),
     ]),
    (lambda at: dp.private_compare(*replaced([[0.0, 9.0]] * 3, at, [math.nan, 9.0]), **SAFE, loss="mae"),
     ValueError, ..., [
         ("^Input y_true contains NaN", 0), ("^Prediction 1 of 2: Input y_pred contains NaN", 1),
         ("^Prediction 2 of 2: Input y_pred contains NaN", 2),
     ]),
    (lambda at, bad, limit: dp.private_compare(
         *replaced([[0.0, 987654.0]] * 3, at, bad), **SAFE, loss="mae", max_difference=limit
     ),
     INVALID, "NaN|infinity|inconsistent|number of output|numeric", list(
         itertools.product(
             range(3),
             ([NAN, 987654.0], [INF, 987654.0], [1.0], [[1.0, 2.0]] * 2, ["98765x", 1]),
             (None, 1.0),
         )
     )),
    (lambda proba: dp.private_compare([0, 1], proba, proba, **SAFE),
     ValueError, "To compare probabilities use log_loss",
     [[0.25, 0.75], [[0.75, 0.25], [0.25, 0.75]]]),
    (lambda y, pred: dp.private_compare(y, S2[:2], pred, **SAFE, loss="log_loss"),
     ValueError, "not in labels|columns of|different|values in",
     [([98765, 1], S2[:2]), ([0, 1], [0.98765, 98.765])]),
    (lambda metric, data, options: kept(
         metric, *data, **{"bounds": (-2.0, 2.0), "mechanism": "geometric", **options}
     ).population_interval(),
     ValueError, "all people.*mechanism='geometric', without weights", [
         (dp.private_mse, (T, T), {"sample_weight": np.full(40, 2.0)}),
         (dp.private_mse, (T, T), {"groups": np.arange(40) // 2}),
         (dp.private_mse, (T, T), PRIVATE_N),
         (dp.private_mse, (T, T), {"mechanism": "adaptive"}),
         (dp.private_variance, (T,), {}),
         (dp.private_median_absolute_error, (T, T), {}),
     ]),
    (lambda options: dp.private_mean_interval(**{"losses": [0.5, 0.25], "max_loss": 1.0, **SAFE, **options}),
     ValueError, ..., [
         ("minimum of 1", {"losses": []}),
         ("needs max_loss, .* or cap='private', .* neither was given", {"max_loss": None}),
         ("both was given", {"cap": "private"}),
         ("takes no sample_weight", {"sample_weight": [1, 1]}),
         ("takes no groups", {"groups": [1, 2]}),
         ("needs neighboring='replace_one'", PRIVATE_N),
     ]),
    (lambda options: dp.private_quantile_interval(
         **{"losses": [0.5] * 99, "q": 0.5, **SAFE, "epsilon": 5.0, **options}
     ),
     ValueError, ..., [
         *(("q must lie", {"q": q}) for q in (0, 1.0, "a")),
         ("takes no sample_weight", {"sample_weight": [1] * 99}),
         ("takes no groups", {"groups": [1] * 99}),
         ("needs neighboring='replace_one'", PRIVATE_N),
         *(("epsilon", {"losses": [1.0] * 50, "epsilon": epsilon}) for epsilon in (5e-324, 1e-300)),
         ("too few records for any limit", {"losses": [1.0] * 3, "epsilon": 0.1}),
     ]),
    (lambda interval, losses: interval(losses, **SAFE | {"epsilon": 5.0}),
     INVALID, "Negative|NaN|infinity|numeric|Complex|1d", list(
         itertools.product(
             INTERVALS,
             (
                 *(
                     99 * losses for losses in (  # as many as a quantile needs
                         [98765.0, -98765.0], [98765.0, NAN], [98765.0, INF], ["98765", 1.0],
                         [98765.0, 1 + 2j], [[98765.0, 1.0]], [98765 * 10**400], [98765.0, None],
                     )
                 ),
                 {"a": 98765.0},
             ),
         )
     )),
    # the relation, and what is left of epsilon
    (lambda mechanism: dp.private_mae(
         np.ones((4, 3)),
         np.ones((4, 3)),
         **SAFE | {"epsilon": 5e-324},
         multioutput="raw_values",
         bounds=(0, 1),
         mechanism=mechanism,
     ),
     ValueError, "too small", ["laplace", "geometric", "above_threshold", "hazard"]),
]
# fmt: on

# The same of calls that see no record: names, options, plans and files, which are public.
# fmt: off
WITHOUT_RECORDS = [
    (lambda text: dp.PrivateEvaluation.from_json(text),
     ValueError, "no page", ["", "{}", "[1]", '{"release": null, "budget": null}']),
    (lambda asked: parsed([asked]),
     ValueError, "no requirement", ["recall", "recall=0.5", ">=1", "recall>=x", 3]),
    (lambda: parsed(["recal in 'a'>=0.5"]), ValueError, r"No page has 'recal'\. Did you mean 'recall'\?"),
    (lambda: parsed(["recall>=0.5", "recall<=0.9"]), ValueError, "two requirements of 'recall'"),
    # scorers, and plans of how many releases a tool makes
    (lambda metric: dp.make_private_scorer(metric, epsilon=1.0),
     TypeError, r"^metric must be a private metric, a function of \(y_true, y_pred\)", [
         roc_auc_score, make_scorer(roc_auc_score), None, dp.private_mean_loss, dp.private_variance,
         dp.private_quantile, lambda y_true, y_pred, **anything: 0.0, "private_mean_loss", "confusion_matrix",
         3,
     ]),
    (lambda metric, options: dp.make_private_scorer(metric, epsilon=1.0, **options),
     ValueError, ..., [
         ("greater_is_better must be given for own_error", own_error, {}),
         ("several numbers", own_numbers, {"greater_is_better": True, "multioutput": "raw_values"}),
         ("sample_weight can't be fixed", "mse", {"sample_weight": [1]}),
         ("random_state", partial(dp.private_mse, random_state=0), {}),
         ("accountant can't", partial(dp.private_mse, accountant=None), {}),
         *(("^There is no metric (?!.*Did you mean).*one of mse, .*, roc_auc_score, ", name, {})
           for name in ("", "_", "xyzzy")),
         *(("a fold may lack one: pass labels=", name, options) for name, options in (
             *((name, {}) for name in sorted(OVER_LABELS)),
             *(("f1", {"average": one}) for one in ("macro", "micro", "weighted")),
             *((name, {}) for name in ("f1_macro", "jaccard_weighted", "roc_auc_ovr")),
             ("roc_auc", {"multi_class": "ovo"}),
             (partial(dp.private_recall_score, average="macro"), {}),
         )),
     ]),
    (lambda options: dp.make_private_scorer(dp.private_mse, **options),
     TypeError, ..., [
         ("epsilon", {}),
         ("private_mse: got an unexpected keyword", {"epsilon": 1.0, "bound": 3}),
     ]),
    (lambda: dp.PrivacyAccountant(1.0).require(1.5), dp.PrivacyBudgetError, r"epsilon=1\.5 was asked for"),
    (lambda plan, options: dp.count_releases(plan, **options),
     ValueError, ..., [
         ("X", LeaveOneOut(), {}),
         ("cv", "five", {}),
         *(
             ("no private scorer", 5, {"scoring": scoring})
             for scoring in ("r2", 0, -1, {"a": "r2"}, ["r2"])
         ),
         ("Only scorers of", 5, {"scoring": dp.private_mse}),
         ("cannot be counted", 5, {"estimator": RidgeCV(scoring=SCORER)}),
         ("holds no private scorer", GridSearchCV(Ridge(), GRID), {}),
         ("RidgeCV makes releases", GridSearchCV(RidgeCV(scoring=SCORER), {}, scoring=SCORER), {}),
         *(
             ("RidgeCV makes releases", search(RidgeCV(), tried, scoring=SCORER), {})
             for search in (GridSearchCV, RandomizedSearchCV)
             for tried in ({"scoring": [None, SCORER]}, [GRID, {"scoring": objects([SCORER])}])
         ),
         (
             "Pipeline makes releases",
             GridSearchCV(
                 make_pipeline(Ridge()), {"ridge": [Ridge(), RidgeCV(scoring=SCORER)]}, scoring=SCORER
             ),
             {},
         ),
         ("cv is an iterator", GridSearchCV(Ridge(), GRID, scoring=SCORER, cv=iter([])), {}),
         ("its own estimator and scoring", GridSearchCV(Ridge(), GRID, scoring=SCORER), {"scoring": SCORER}),
         ("its own estimator and scoring", RFECV(Ridge(), scoring=SCORER), {"scoring": SCORER}),
         *(
             (
                 "cannot be counted",
                 5,
                 {"X": Z, "y": T, "scoring": SCORER, "estimator": make_pipeline(nested, Ridge())},
             )
             for nested in (
                 RFECV(Ridge(), scoring=SCORER),
                 FORWARD,
                 GridSearchCV(Ridge(), GRID, scoring=SCORER),
                 dp.PrivateRandomizedSearch(Ridge(), GRID, metric="mse", epsilon=3.0),
             )
         ),
     ]),
    (lambda model: dp.count_releases(model, Z, T),
     ValueError, ..., [
         ("cannot be counted", RidgeCV(scoring=SCORER)),
         ("cannot be counted", LogisticRegressionCV(scoring=SCORER)),
         ("cannot be counted", FORWARD),
         ("cannot be counted", HalvingGridSearchCV(Ridge(), GRID, scoring=SCORER)),
         ("cannot be counted", RFECV(Ridge(), scoring="r2")),
         ("cannot be counted", HistGradientBoostingRegressor(early_stopping=True)),
         ("cannot be counted", MLPClassifier(early_stopping=True)),
         ("of its own", GridSearchCV(RFECV(Ridge(), scoring=SCORER), {"step": [1, 2]}, scoring=SCORER)),
     ]),
    (lambda: search(metric=of_two_relations, greater_is_better=False),
     ValueError, "different neighbouring relations"),
    (lambda: search(metric=own_numbers, greater_is_better=True), TypeError, "array|scalar"),
    # the command line, whose file holds nothing but secrets: it is not read
    (lambda line: typed(*line.split(maxsplit=1)),
     Typed, ..., [
         (r"unrecognized arguments: --colour 1 \(see dp-metrics score --help", f"score {MAE} --colour 1"),
         ("neither JSON nor a Python literal", f"score {MAE} --bounds '[0,1'"),
         ("unrecognized arguments: --column y", f"score {MAE} --column y"),
         ("--spend-name takes one line", f"score {MAE} --spend-name \udcff"),
         ("--total needs --budget", f"score {MAE} --total 1"),
         ("no budget file none.sqlite; to create it, pass --total T", f"score {MAE} --budget none.sqlite"),
         ("mechanism must be one of", f"score {MAE} --mechanism magic"),
         ("unrecognized arguments: --mechanism", f"score {F1} --mechanism laplace"),
         ("--normalize takes true or false, not '1'", f"score {ACCURACY} --normalize 1"),
         ("bounds must", f"score {MAE} --sensitive p --group-labels 0 1 --bounds x"),
         ("required: --column, --bounds", "score --metric mean --y-true y --epsilon 1"),
         ("required: --column", "score --metric std --epsilon 1"),
         ("required: --y-true, --y-pred", "score --metric mae --column y --epsilon 1"),
         ("needs --y-true and --y-pred", f"score --metric std --column y --epsilon 1 {BY_SEX}"),
         (r"no metric 'nothing'\. It is one of mse, ", "score --metric nothing --epsilon 1"),
         ("'0' is not a positive, finite number", f"score {MAE} --epsilon 0"),
         ("--epsilon", "score --metric mae --y-true y --y-pred p"),
         ("is needed once", f"score {ACCURACY} --sensitive a b"),
         ("no column 'none'", f"score {ACCURACY} --sensitive none --group-labels m f"),
         ("--interval", f"score {ACCURACY} --interval magic"),
         ("--interval sure is of all records", f"score {ACCURACY} {BY_SEX} --interval noise sure"),
         ("confidence must lie strictly between 0 and 1", f"score {ACCURACY} --confidence 95"),
         ("--decimal", f"score {MAE} --decimal x"),
         *(
             ("--delimiter", f"score {MAE} --delimiter {mark}")
             for mark in ("''", "::", "'\"'", "'\n'", "1", "\u00a7")
         ),
         (r"must hold the names, with '\|' between", f"score {MAE} --delimiter '|'"),
         ("--epsilon", f"compare {MODELS}"),
         ("--pred-b", "compare --y-true y --pred-a a --epsilon 1"),
         ("private_roc_auc_score cannot be compared", f"compare {MODELS} --epsilon 1 --loss roc_auc"),
         ("private_mean cannot be compared", f"compare {MODELS} --epsilon 1 --loss mean"),  # of one column
         ("'magic'", f"compare {MODELS} --epsilon 1 --loss magic"),
         ("unrecognized arguments: --colour", f"compare {MODELS} --epsilon 1 --colour 1"),
         ("bounds must be", f"compare {MODELS} --epsilon 1 --loss mae --bounds '[1,0]'"),
         ("--epsilon", f"compare {MODELS} --epsilon -1/3"),
         ("'0/3' is not a positive, finite number", f"compare {MODELS} --epsilon 0/3"),
         ("is not a positive, finite number", f"compare {MODELS} --epsilon 1/1{'0' * 999}"),
         ("--spend-name takes one line", f"compare {MODELS} --epsilon 1 --spend-name 'two\nlines'"),
         ("needs max_loss.* both was given", "interval --column y --max-loss 1 --epsilon 1 --cap private"),
         ("--cap is of the mean", "interval --column y --quantile 0.5 --epsilon 1 --cap private"),
         ("needs --y-true, and", "evaluate --epsilon 1"),
         ("--task regression for targets", "evaluate --y-true y --y-pred p --epsilon 1"),
         ("contradict each other", f"evaluate {PAGE} --epsilon 1 --task regression"),
         ("--epsilon is needed once", f"evaluate {PAGE} --epsilon 1 2"),
         (r"ends in \.html, \.md, \.json", f"evaluate {PAGE} --epsilon 1 --output page.pdf"),
         ("can't write to", f"evaluate {PAGE} --epsilon 1 --output none/page.html"),
         ("--dataset is of the demonstration", f"evaluate {PAGE} --epsilon 1 --dataset digits"),
         ("is not sorted", "evaluate --y-true y --y-score p --labels well ill --epsilon 1"),
         ("labels must be two", "evaluate --y-true y --y-score p --labels 0 1 2 --epsilon 1"),
         *(
             ("must be an integer of at least [01]", f"audit {wrong}")
             for wrong in ("--records 0", "--steps -1", "--steps x")
         ),
         ("not a positive, finite number", "audit --epsilon -1"),
         ("not a positive, finite number", "audit --epsilon 1 nan"),
         *(
             ("takes a name and a number, such as f1=0.8", f"plan --metric f1{guess} --n 100 --epsilon 1")
             for guess in ("", "=", "=(1", "=[[1,2,3]]", "=([0,1],[0,1])")  # a file of records is none
         ),
         ("Pass all but one of n, epsilon", "plan --metric f1=0.5 --n 100"),
         ("There is no metric", "plan --metric f2=0.5 --n 100"),
         ("invalid int value", "plan --metric f1=0.5 --n many"),
         ("needs no positives", "plan --metric mse=4 --n 100 --epsilon 1 --positives 0.1"),
         ("pass one --metric", "plan --metric f1=0.5 --metric mse=4 --n 100 --epsilon 1"),
         ("unrecognized arguments: mae=2", "plan --metric mse=4 mae=2 --n 100 --epsilon 1"),
         ("unrecognized arguments: --q", "plan --metric mse=4 --n 100 --q 0.1"),
         ("required: --bounds", "plan --metric mean=4 --n 100"),
         ("several numbers", "plan --metric roc_curve=0.4 --n 100 --epsilon 1"),
         ("not a positive, finite number", "plan --metric f1=0.5 --n 100 --epsilon 0"),
         ("--metric", "plan --n 100"),
         *(
             ("dp-metrics", line)
             for line in ("", "guess", *(f"evaluate {one}" for one in ("--colour", "--epsilon", "--output")))
         ),
     ]),
    (lambda content: typed("score", MAE, content),
     Typed, ..., [
         *(
             ("is UTF-16, and not UTF-8", "y,p,note\n1,0,x\n".encode(code))
             for code in ("utf-16", "utf-16-le", "utf-16-be")
         ),
         ("more than one column 'p'", b"y,p,p\n1,2,98765\n"),
         *(
             ("no column '[yp]'", f"{first},98765\n1,0,x\n".encode())
             for first in ("y,0.7", "1,-2e5", "p2,y2", "y;0,7")
         ),
         ("or not UTF-8", "y,p,note\n1,0,caf\u00e9\n".encode("latin-1")),
         ("there is no file", None),
     ]),
    # intervals of what is released, and planning
    (lambda: kept(dp.private_mse, T, T, mechanism="above_threshold").noise_interval(),
     ValueError, "cannot limit what AboveThreshold releases"),
    (lambda options: kept(dp.private_f1_score, Y3, Y3, labels=[0, 1, 2], **options).noise_interval(),
     ValueError, r"need not make it larger.*Use recall, precision or F1\.", [{"average": "weighted"}]),
    (lambda: kept(dp.private_f1_score, Y3, Y3, labels=[0, 1, 2], average="macro",
                  zero_division=NAN).noise_interval(),
     ValueError, r"may be NaN has no limits: pass zero_division"),
    (lambda options: kept(dp.private_accuracy_score, Y, Y, **options).population_interval(),
     ValueError, "with weights or groups|mechanism='geometric'", [
         {"sample_weight": np.full(600, 2.0)}, {"groups": THREE_EACH},
         {"mechanism": "hazard"}, {"mechanism": "laplace"},
     ]),
    # mechanisms
    (lambda options: dp.mechanisms.AboveThreshold(**options),
     ValueError, lambda options: next(iter(options)), [
         {"beta": 1.0}, {"beta": NAN}, {"beta": INF}, {"split": 0.0}, {"split": 1.0}, {"split": NAN},
         {"scale": 0.0}, {"scale": INF}, {"spacing": "odd"}, {"first": -1}, {"max_candidates": 1},
         {"ranks": 0}, {"max_candidates": 10.5}, {"first": 10**30}, {"first": None}, {"beta": None},
     ]),
    (lambda resolution: dp.mechanisms.Hazard(resolution=resolution),
     ValueError, "resolution", [True, "0.1", 10**400]),
    (lambda options: Adaptive(**options),
     INVALID, lambda options: next(iter(options)),
     [{"threshold": 0}, {"threshold": "300"}, {"share": 1.0}, {"share": -0.1}, {"share": NAN}]),
    (lambda: get_mechanism("exponential"), ValueError, "hazard.*laplace.*'exponential'"),
    (lambda wrong: get_mechanism(wrong), TypeError, "mechanism", [None, 3, dp.mechanisms.Hazard, object()]),
    # budgets
    (lambda act, epsilon: act(epsilon),
     ValueError, "epsilon must be", list(
         itertools.product(
             (dp.PrivacyAccountant, BUDGET.require, lambda epsilon: BUDGET.spend(epsilon, "bad")),
             [*NO_POSITIVE, Fraction(0), Fraction(1, 10**400)],
         )
     )),
    (lambda bad: BUDGET.spend(0.5, **{"spend_name": "x", **bad}),
     TypeError, lambda bad: f"{next(iter(bad))} must be a str",
     [{"spend_name": 3}, {"spend_name": None}, {"mechanism": 3}, {"mechanism": 0}, {"neighboring": None}]),
    (lambda path: dp.PrivacyAccountant(1.0, path),
     ValueError, "path must name a file", ["", ":memory:", "nul\0"]),
    (lambda thing: pickle.dumps(thing),
     TypeError, "cannot be pickled.*pass path= to PrivacyAccountant",
     [dp.PrivacyAccountant(1.0), {"nested": [dp.PrivacyAccountant(1.0)]}]),
    (lambda metric, options: dp.plan_release(
         metric, **{"width": 0.1, "epsilon": 1.0, "guess": 0.9, "positives": 0.3, **options}
     ),
     ValueError, ..., [
         ("no limits of what it is", "mse", {"positives": None}),
         ("Nothing up to 1,000,000 is enough", "recall", {"width": 1e-6}),
         ("Did you mean 'recall'", "reccall", {"positives": None}),
         *(("all but one", "recall", given) for given in (
             {"n": 100}, {"width": None}, {"error": 0.1}, {"epsilon": None},
             {"n": 100, "epsilon": None, "error": 0.1},
         )),
     ]),
    (lambda plan, options: plan(dp.private_mean_loss, guess=(np.linspace(0, 1, 800),), **options),
     INVALID, "random_state|groups cannot", [
         (plan, options)
         for plan in PLANS
         for options in ({"random_state": 0}, {**PRIVATE_N, "groups": np.arange(800)})
     ]),
    (lambda options, plan: plan("accuracy", **{"guess": 0.8, **options}),
     ValueError, ..., [
         (words, options, plan)
         for plan in PLANS
         for words, options in (
             *(("n must be from 2", {"n": n}) for n in (1, 2_000_000, [100])),
             ("guess must be a finite", {"n": 100, "guess": NAN}),
             ("guess must be a finite", {"n": 100, "guess": "0.8"}),
             ("guess must be from 0 to 1", {"n": 100, "guess": 1.5}),
             ("positives must lie strictly between 0 and 1", {"n": 100, "positives": 1.0}),
             ("classes must be a whole number", {"n": 100, "classes": 1}),
             ("law must be", {"n": 100, "law": "cauchy"}),
             ("takes positives and classes", {"n": 100, "law": "normal"}),
         )
     ]),
    (lambda metric, guess, options: dp.plan_release(metric, guess=guess, epsilon=1.0, **options),
     ValueError, ..., [
         ("is for a guess of the value", "accuracy", ([0, 1], [0, 1]), {"positives": 0.5}),
         ("labels needs data", "f1", 0.8, {"n": 2, "labels": [0, 1]}),
         ("groups needs data", "mse", 4.0, {"n": 2, "groups": [0, 1]}),
         ("inconsistent", "mse", (T, T[1:]), {"n": 100}),
         ("inconsistent", "mse", (T, T), {"n": 100, "sample_weight": np.ones(39)}),
         ("at least one record", "mse", ([], []), {"n": 100, **PRIVATE_N}),
         ("is 0", "std", (np.zeros(100),), {}),
         *(
             ("^bounds must be None or a pair", metric, 0.2, {"n": 9, "bounds": bounds})
             for metric in (
                 "mse", "mean_squared_log_error", "r2", "mean", partial(dp.private_quantile, q=0.5),
             )
             for bounds in ("x", 0, [], (0, 1, 2), ("a", "b"), (None, 1), {"a": 1}, (1, 0), [[0, 1], [0, 1]])
         ),
     ]),
    (lambda plan, outputs, options: plan(dp.private_rmse, guess=(outputs, outputs + 1), **options),
     ValueError, "one output, or one metric, at a time", [
         (plan, outputs, options)
         for plan in PLANS
         for outputs, options in ((Z, {"multioutput": "raw_values"}), (S2, {"multioutput": "raw_values"}))
     ]),
    (lambda metric, guess, options: dp.plan_release(metric, guess=guess, epsilon=1.0, **options),
     TypeError, ..., [
         ("private_mean_loss has no option q or split", "mean_loss", (S,), {"split": 1, "q": 0.5}),
         ("a private metric of this package", None, (S,), {}),
         ("takes losses: guess must hold", "mean_loss", (S, S), {}),
     ]),
    (lambda: dp.plan_release("mae", guess=(S[:9], S[1:10]), error=1e-12), ValueError, "Nothing up to"),
    # summaries, and collections of Dask
    (lambda summary, options: summary.release(**{**SAFE, **options}),
     ValueError, ..., [
         ("^sample_weight cannot be used", losses([1, 1]), PRIVATE_N),
         ("must contain at least one non-zero", losses([0, 0]), {}),
         ("^normalize=False cannot be used", Summary("zero_one", normalize=False), PRIVATE_N),
         ("^ddof=1 cannot be used", variance(ddof=1), PRIVATE_N),
         ("^ddof must be smaller", variance(ddof=3), {}),
         ("bounds", LOSSES, {"mechanism": "laplace"}),
         ("there is no record yet", Summary("mse"), {}),
         ("needs groups", Summary("recall", max_records=2).update(*PAIR), {}),
         ("^groups cannot be used with", Summary("mse").update(*PAIR, groups=[1, 2, 2]), PRIVATE_N),
     ]),
    (lambda one, other: one.merge(other),
     ValueError, ..., [
         (words, *pair)
         for words, a, b in (
             ("metric is private_(variance|mse) here", VALUES, LOSSES),
             ("metric is private_m.e here", Summary("mse"), Summary("mae")),
             ("capacity is", Summary("mse"), Summary("mse", capacity=9)),
             ("bounds is", dp.Summary("variance", bounds=(0, 1)), dp.Summary("variance")),
             ("bounds is .*not given", Summary("mse"), Summary("mse", bounds=(0, 1))),
             ("labels is", Summary("f1_macro", labels=["a", "b"]), Summary("f1_macro", labels=["b", "a"])),
             ("pos_label is", Summary("roc_curve"), Summary("roc_curve", pos_label=0)),
             ("edges is", Summary("roc_curve"), Summary("roc_curve", edges=[0, 1, 2])),
             ("same number of outputs", outputs(2), outputs(3)),
             ("merge only", LOSSES, losses([1, 1])),
             ("same number .*, and probabilities one type", halves("f4"), halves("f8")),
             ("same number of outputs or columns", halves("f8"), halves("f8", 3)),
         )
         for pair in ((a, b), (b, a))
     ]),
    (lambda other: LOSSES.merge(other), ValueError, "merge only", [None, 3, [1.0], b"", dp.Summary]),
    (lambda metric: Summary(metric),
     TypeError, "^metric must be a private metric of|has no summary", [
         "private_quantile", dp.private_roc_auc_score, own_error, partial(dp.private_mse, [0.0]),
         None, 3, Summary,
     ]),
    (lambda option: Summary("mse", **{option: None}),
     TypeError, lambda option: f"^{option} is no option of a summary.*update.*release", [
         "neighboring", "mechanism", "accountant", "random_state", "sample_weight", "groups",
         "spend_name",
     ]),
    (lambda option: Summary("mse", **{option: None}),
     TypeError, lambda option: f"^private_mse.. got an unexpected keyword argument '{option}'",
     ["max_loss", "labels", "y_true", "ddof"]),
    (lambda: Summary("f1").update(Y, Y).release(**SAFE, mechanism="hazard"), TypeError, "noise of its own"),
    (lambda: Summary("mse", epsilon=1.0, capacity=7), ValueError, "and not both"),
    (lambda: Summary("mse").update([1.0]), TypeError, "^Pass y_true and y_pred for each chunk"),
    (lambda name, options: Summary(CASES[name].function, **options).update(*valid(CASES[name], 3)),
     ValueError, lambda name, options: next(iter(options)), [
         ("mse", {"bounds": (1, 0)}), ("mse, 3 outputs", {"multioutput": "other"}),
         ("pinball", {"alpha": 2}), ("log loss", {"labels": [0, 1, 2]}), ("mean", {"bounds": None}),
     ]),
    (lambda options: Summary("roc_curve", **options),
     ValueError, lambda options: next(iter(options)),
     [{"labels": [0, 1, 2]}, {"pos_label": 3}, {"edges": [0, 1]}, {"bins": 3}]),
    (lambda: scores().calibration_curve(0), ValueError, "n_bins"),
    (lambda: scores(-1.0, 0.0, 1.0).calibration_curve(), ValueError, "need probabilities"),
    (lambda case, at, wrong: getattr(dp, case.name)(
         *replaced([da.ones(2, chunks=1)] * len(case.row.data), at, wrong), **{**SAFE, **case.options}
     ),
     TypeError, lambda case, at, wrong: "must be a dask.array or a dask.dataframe collection", [
         (case, at, wrong)
         for case, at in arguments(lambda case: case.row.usual.merges and len(case.row.data) > 1)
         for wrong in (
             np.ones(2), [0.25, 98765.25], dask.bag.from_sequence([98765.25]), da.ones(2).sum(),
             dask.delayed([98765.25]),  # which has all attributes
         )
     ]),
    (lambda options: Summary(**options),
     INVALID, ..., [
         ("needs max_records", {"metric": "recall", "equal_groups": True}),
         ("max_records must be", {"metric": "recall", "max_records": 0}),
     ]),
    (lambda metric, groups: Summary(metric).update(*PAIR[: 1 + (metric == "mse")], groups=groups),
     INVALID, "takes no groups|groups must be hashable labels|groups contains NaN",
     [("variance", [1, 2, 2]), ("mse", [{}] * 3), ("mse", [None] * 3)]),
    (lambda chunks: [Summary("mae").update([1.0] * 2, [0.0] * 2, groups=groups) for groups in chunks],
     ValueError, "whether 7 and '7' are one person: read all ids as text",
     [[np.array([7, "7"], dtype=object)], [pd.Series(["A1", 7])]]),
    (lambda a, b: Summary("mae").update([1.0], [0.0], groups=[a]).update([1.0], [0.0], groups=[b]),
     ValueError, "whether 7 and '7' are one person: read all ids as text", [(7, "7"), ("A1", 8)]),
    (lambda metric: metric(LAZY, LAZY, **SAFE, groups=LAZY),
     ValueError, "Some person has records in two chunks", [dp.private_mse, dp.private_f1_score]),
    (lambda metric: metric(LAZY, LAZY, **SAFE),
     TypeError, "has no summary", [dp.private_median_absolute_error, dp.private_roc_auc_score]),
    (lambda options: dp.private_mse(LAZY, LAZY, **{**SAFE, **options}),
     TypeError, ..., [
         ("groups must be a dask", {"groups": [1, 1, 2, 2]}),
         ("sample_weight must be a dask", {"sample_weight": np.ones(4)}),
         (r"^private_mse\(\) got an unexpected keyword argument 'capacity'$", {"capacity": 9}),
     ]),
    (lambda other: dp.with_result(other),
     TypeError, "with_result takes a metric of dp_metrics", [
         "private_mse", None, [], np.mean, own_error, dp.with_result(dp.private_mse), dp.private_compare,
         SCORER, dp.Summary(dp.private_mae).update, partial(np.mean),
     ]),
]
# fmt: on


def texts():
    """Return the text of each call by the line where it begins."""
    tree = ast.parse(Path(__file__).read_text(encoding="utf-8"))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
    return {node.lineno: ast.unparse(node.body) for node in sorted(found, key=lambda one: -one.col_offset)}


TEXTS, ALL = texts(), ROWS + WITHOUT_RECORDS


@cache
def refusals_of(row):
    """Return what each value tried by a row raised, once it is known to have cost nothing."""
    call, error, words, tries = (*ALL[row], [()])[:4]
    found = []
    for tried in tries:
        values = (tried,) if call.__code__.co_argcount == 1 and words is not ... else tried
        said, values = (values[0], values[1:]) if words is ... else (words, values)
        before = BUDGET.spent
        try:
            with pytest.raises(error, match=said(*values) if callable(said) else said) as caught:
                call(*values)
        except BaseException as failure:
            failure.add_note(f"This was tried with {reprlib.repr(values)}.")
            raise
        assert BUDGET.spent == before
        found.append(caught.value)
    assert found
    return found


each_row = pytest.mark.parametrize(
    "row", range(len(ALL)), ids=[TEXTS[row[0].__code__.co_firstlineno] for row in ALL]
)


@each_row
def test_it_is_refused_without_a_cost_or_a_word_of_the_data(row):
    for refusal in refusals_of(row):
        assert row >= len(ROWS) or refusal.__cause__ is refusal.__context__ is None
        for message in messages(refusal):
            assert "98765" not in message


# A quoted name or value, an option with its value, a range, or a word of what would be right or does not fit.
WAY_OUT = re.compile(
    r"""--[a-z]|'[^']+'|"[^"]+"|`[^`]+`|\w=\S|\[\S+, \S+\]"""
    r"|(?i:\b(must|should|pass|use|need(s|ed)?|only|takes?|make|give|required?|requires|expected|drop|choose"
    r"|convert|ask|type|instead|at (least|most)|more than|too (small|large|few)|one of|none of|up to|can be"
    r"|but|different|mix|inconsistent|match|cannot be used|leave|plan|is for|there is no|can't|of one)\b)"
)


def test_every_message_says_what_to_do():
    assert not WAY_OUT.search("The data are damaged.")
    told = {str(refusal) for row in range(len(ALL)) for refusal in refusals_of(row)}
    assert not [message for message in sorted(told) if not WAY_OUT.search(message)]
