"""What is refused: rows of a call, its error and its words; of some calls each value that was tried.

Whatever is refused costs nothing, draws nothing, tells nothing of the data, and says what to do instead.
The numbers 98765... and words of the data that stand in for secrets must be in no message.
"""

import ast
import functools
import math
import re
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from catalogue import BAD_RECORDS, CASES, MIXED_LABELS, valid, with_sentinel
from helpers import BAD_OPTIONS, NoEntropy, kind_of, messages, seeded

import dp_metrics as dp
from dp_metrics.metrics import FUNCTIONS, METRICS, row_of

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
ONES = np.ones(3)
PAIR = ([0, 1, 1], [1, 1, 1])
WORDS = (np.where(Y, "yes", "no"), np.where(S > 0.5, "yes", "no"))
NO_YES = {"labels": ["no", "yes"], "pos_label": "yes"}
PRIVATE_N = {"neighboring": "add_or_remove_one"}
SOME_OPTIONS = (
    "sample_weight", "multioutput", "groups", "neighboring", "max_loss", "bounds", "labels", "epsilom",
)  # fmt: skip
SECRET_SETS = [{"98765"}, {"98765"}, {"1"}]
BAD_COLUMNS = [[NAN, 1.0], [1.0], [[1.0, 2], [3, 4]], ["a", "b"]]
THREE_EACH = np.arange(600) // 3


def kept(metric, *data, **options):
    return dp.with_result(metric)(*data, **{"epsilon": 1e3, "random_state": seeded(), **options})


@functools.cache
def scores(*edges):
    summary = dp.ScoreSummary(edges=edges or None).update(Y, S)
    return summary.release(1e3, random_state=seeded())


@functools.cache
def confusion(k=3):
    return dp.ConfusionSummary(range(k)).update(Y3, Y3).release(1e3, random_state=seeded())


@functools.cache
def curve(name="private_roc_curve", **options):
    return kept(FUNCTIONS[name], Y, S, **options)


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


def words_of_spoilt(case, position, kind):
    mixed = case.row.predicts_labels and kind in MIXED_LABELS
    return "Mix of label input types" if mixed else BAD_RECORDS[kind][2]


TABLES = [FUNCTIONS[f"private_{name}"] for name in (
    "roc_curve", "precision_recall_curve", "average_precision_score", "calibration_curve",
    "expected_calibration_error",
)]  # fmt: skip

LIMITS_OF_COUNTS = [confusion().noise_interval, confusion().population_interval]

# A call, its error, its words (or what tells them of the values tried), and the values that are tried.
ROWS = [
    # rules that hold for all metrics
    (
        lambda case, at, kind: case(*spoilt(case, at, kind), **SAFE),
        INVALID,
        words_of_spoilt,
        [(*argument, kind) for argument in arguments() for kind in ("NaN", "infinity", "string")],
    ),
    (
        lambda case: case(*(column[:0] for column in valid(case)), **SAFE),
        ValueError,
        "^Found array with 0 sample",
        of_metrics(),
    ),
    (
        lambda case, at: case(*cut(with_sentinel(case, at), at), **SAFE),
        ValueError,
        lengths_differ,
        arguments(of_two),
    ),
    (
        lambda case, at: case(*map(np.array, cut(with_sentinel(case, at), at)), **SAFE, **PRIVATE_N),
        ValueError,
        lambda case, at: f"samples: {case.row.data[0]} and {case.row.data[1]}.$",
        arguments(lambda case: of_two(case) and takes("neighboring")(case)),
    ),
    (lambda case, at: widened(case, at), ValueError, words_of_widened, arguments()),
    (
        lambda case, name, value: case(*with_sentinel(case, 0), **SAFE | {name: value}),
        ValueError,
        lambda case, name, value: name,
        [
            (case, name, value)
            for name, values in BAD_OPTIONS.items()
            for case in of_metrics(takes(name))
            for value in values[:3]
        ],
    ),
    (
        lambda case, name: case(*valid(case), **SAFE, **{name: [1.0] * 40}),
        ValueError,
        lambda case, name: f"takes no {name}: {case.row.refused[name]}",
        [(case, name) for case in of_metrics() for name in case.row.refused],
    ),
    (
        lambda case, name: case(*valid(case), **SAFE, **{name: None}),
        TypeError,
        lambda case, name: name,
        [(case, name) for name in SOME_OPTIONS for case in of_metrics(takes(name), False)],
    ),
    (
        lambda case: case(*with_sentinel(case, 0), **SAFE, mechanism="gaussian"),
        ValueError,
        "mechanism must be one of",
        of_metrics(with_mechanism),
    ),
    (
        lambda case, wrong: case(*with_sentinel(case, 0), **SAFE, mechanism=wrong),
        TypeError,
        "mechanism",
        [(case, wrong) for case in of_metrics(with_mechanism) for wrong in (3, dp.Hazard, object())],
    ),
    (
        lambda case, mechanism: case(*with_sentinel(case, 0), **SAFE, mechanism=mechanism),
        ValueError,
        lambda case, mechanism: next(iter(case.bounded)),
        [
            (case, mechanism)
            for case in of_metrics(lambda case: with_mechanism(case) and not case.always_bounded)
            for mechanism in ("inverse_sensitivity", "piecewise_laplace", "laplace", "geometric")
        ],
    ),
    (
        lambda case, seed: case(*with_sentinel(case, 0), **PAID, random_state=seed),
        TypeError,
        "random_state",
        [(case, seed) for case in of_metrics() for seed in ("1", 1.5, [1], object())],
    ),
    (lambda case: case(*valid(case), **SAFE | {"accountant": 1.0}), TypeError, "accountant", of_metrics()),
    (
        lambda case: case(*valid(case), **SAFE | {"epsilon": 200.0}),
        dp.PrivacyBudgetError,
        "Nothing was released",
        of_metrics(),
    ),
    (
        lambda case: case.function(*valid(case), random_state=NoEntropy(), **case.options),
        TypeError,
        "epsilon",
        of_metrics(),
    ),
    (
        lambda case: case.function(*valid(case), *case.row.required.values(), 1.0, random_state=NoEntropy()),
        TypeError,
        "positional",
        of_metrics(),
    ),
    (
        lambda weights, case: case(*PAIR, **SAFE, sample_weight=weights),
        INVALID,
        None,
        [
            (weights, CASES[name])
            for name in ("mse", "rmse", "log loss", "accuracy")
            for weights in (
                [-1.0, 1, 1],
                [0, 0, 0],
                [1, 1],
                [1, 1, 1, 1],
                [1, NAN, 1],
                [1, INF, 1],
                [[1, 1]] * 3,
                ["a", "b", "c"],
                "abc",
                3.0,
            )
        ],
    ),
    (
        lambda groups, metric: metric(*PAIR, **SAFE, groups=groups),
        INVALID,
        None,
        [
            (groups, metric)
            for metric in (dp.private_mse, dp.private_log_loss, dp.private_accuracy_score)
            for groups in ([1, 2], [1, 2, 3, 4], [1.0, NAN, 2], [[1, 2]] * 3, 3, [[1], 2, 3])
        ],
    ),
    # metrics of numbers
    (
        lambda: dp.private_mae(ONES, ONES, **SAFE, groups=SECRET_SETS),
        ValueError,
        r"^groups must be hashable labels\.$",
    ),
    (
        lambda wrong, metric: metric(np.ones((4, 3)), np.ones((4, 3)), **SAFE, multioutput=wrong),
        INVALID,
        None,
        [
            (wrong, metric)
            for metric in (dp.private_mse, dp.private_rmse, dp.private_r2_score)
            for wrong in ("variance_weighted", "mean", [1, 2], [1, 2, -1], [0, 0, 0], [1, 2, NAN], "raw", 3)
        ],
    ),
    (lambda: dp.private_mse([1.0], [1.0], **SAFE, multioutput=[1.0]), ValueError, "only in multi-output"),
    (
        lambda: dp.private_r2_score([1.0, 2], [1.0, 2], **SAFE, sample_weight=[1, 1]),
        ValueError,
        "sample_weight",
    ),
    (
        lambda share: dp.private_r2_score(ONES, ONES, **SAFE, error_share=share),
        ValueError,
        "error_share",
        [0, 1, -1, NAN, "0.5", None],
    ),
    (
        lambda metric, y, p: metric(y, p, **SAFE),
        ValueError,
        "used",
        [
            (dp.private_mean_poisson_deviance, [-98765.5, 1.0], [1.0, 1.0]),
            (dp.private_mean_poisson_deviance, [1.0, 1.0], [1.0, 0.0]),
            (dp.private_mean_squared_log_error, [-98765.5, 1.0], [1.0, 1.0]),
            (dp.private_mean_squared_log_error, [1.0, 1.0], [1.0, -1.0]),
        ],
    ),
    (lambda: dp.private_mean_squared_log_error([1.0], [1.0], **SAFE, bounds=(-1, 1)), ValueError, "bounds"),
    (lambda: dp.private_mean_poisson_deviance(np.ones((2, 2)), np.ones((2, 2)), **SAFE), ValueError, "1d"),
    (
        lambda alpha: dp.private_mean_pinball_loss([1.0], [1.0], **SAFE, alpha=alpha),
        ValueError,
        "alpha",
        [-0.1, 1.1, NAN, "a", None, True],
    ),
    (
        lambda ddof: dp.private_variance(np.arange(400.0), **SAFE, ddof=ddof),
        ValueError,
        "ddof",
        [400, 401, 400.0, NAN, INF, -INF, "1", None, True, [1], 1j, 10**400, -(10**400), Decimal(1)],
    ),
    (
        lambda q: dp.private_quantile([1.0], q, **SAFE, bounds=(0, 1)),
        ValueError,
        "Quantiles",
        [-0.1, 1.1, NAN, "0.5", None, True, [0.5]],
    ),
    (
        lambda bounds: dp.private_quantile([1.0], 0.5, **SAFE, bounds=bounds),
        ValueError,
        "bounds",
        [None, (None, 1), (-INF, 1), (1, 0), (NAN, None), 3, (0, NAN)],
    ),
    (
        lambda: dp.private_quantile([1.0], 0.5, **SAFE, bounds=(0, None), mechanism="laplace"),
        ValueError,
        "upper limit",
    ),
    (lambda: dp.private_mean([1.0], **SAFE, bounds=None), ValueError, "bounds"),
    (
        lambda split: dp.private_regression_report(ONES, ONES, **SAFE, split=split),
        ValueError,
        "split",
        [{}, {"mse": 1}, {"mse": 1, "mae": 1, "variance": 0}, {"mse": 1, "mae": 1, "r2": 1}, [1, 1, 1], "mse"]
        + [{"mse": 1, "mae": 1, "variance": bad} for bad in (-1, NAN, INF, "1", None)],
    ),
    (
        lambda wrong: dp.private_regression_report(wrong, [1.0, 2.0], **SAFE),
        ValueError,
        "NaN|inconsistent|output|numeric",
        BAD_COLUMNS,
    ),
    (
        lambda wrong: dp.private_probability_report([0, 1], wrong, **SAFE, labels=[0, 1, 2]),
        ValueError,
        "NaN|inconsistent|class|numeric|values in|probabilities",
        BAD_COLUMNS,
    ),
    (lambda: dp.private_regression_report(np.ones((3, 2)), np.ones((3, 2)), **SAFE), ValueError, "1d"),
    # metrics of labels
    (
        lambda true, pred: dp.private_accuracy_score(true, pred, **SAFE),
        INVALID,
        None,
        [
            ([0.5, 1], [0, 1]),
            ([INF, 1], [0, 1]),
            (["1", "2"], [1, 2]),
            (np.array(["1", "2"]), np.array([1, 2])),
            ([1, 2, "x"], [1, 2, 3]),
            ([[]], [[]]),
            (np.array([0.5, 1]), np.array([0, 1])),
            ([NAN, 1], [0, 1]),
            (np.array([NAN, 1]), [0, 1]),
            (pd.Series([0, None], dtype="Int64"), [0, 1]),
            ([0, 1], [0, 1, 2]),
            ([], []),
            (np.array([]), np.array([])),
            ([[0, 1], [1]], [[0, 1], [1]]),
            ([{1}, {2}], [{1}, {2}]),
            ([[0, 1], [1, 1]], [0, 1]),
            (np.zeros((2, 2, 2)), np.zeros((2, 2, 2))),
            (3, 3),
            (None, None),
        ],
    ),
    (lambda: dp.private_f1_score(*WORDS, **SAFE), ValueError, r"no numbers: pass labels=\[...\]"),
    (
        lambda: dp.private_f1_score(*WORDS, **SAFE, labels=["no", "yes"]),
        ValueError,
        "pos_label=.* is not one of the public labels",
    ),
    (
        lambda labels: dp.private_f1_score(*WORDS, **SAFE, pos_label="yes", labels=labels),
        ValueError,
        "must all be different|at least two labels|Target is multiclass but average='binary'|not one of",
        [["no", "yes", "no"], ["yes"], ["no", "yes", "maybe"], ["no", "maybe"]],
    ),
    (
        lambda average: dp.private_f1_score(*WORDS, **SAFE, **NO_YES, average=average),
        ValueError,
        "average='samples'|average must be one of",
        ["samples", "mean"],
    ),
    (
        lambda value: dp.private_f1_score(*WORDS, **SAFE, **NO_YES, zero_division=value),
        ValueError,
        "zero_division must be|a result is finite",
        [0.5, NAN],
    ),
    (
        lambda: dp.private_confusion_matrix(["98765", "yes"], ["no", "yes"], **SAFE, labels=["no", "yes"]),
        ValueError,
        "not in labels",
    ),
    (
        lambda wrong: dp.private_confusion_matrix(wrong, [0, 1, 1], **SAFE),
        ValueError,
        None,
        [[0, 1, 987654], [0, 1, NAN], [0, 1, "98765"]],
    ),
    (
        lambda labels: dp.private_classification_report([0, 1], [0, 1], **SAFE, target_names=labels),
        ValueError,
        "target_names|names of the labels",
        [["a"], ["a", "a"], ["a", "accuracy"]],
    ),
    (
        lambda: dp.private_f1_score([0, 1], [0, 1], **SAFE, max_records=2),
        ValueError,
        "max_records needs groups",
    ),
    (
        lambda metric, options: metric(Y, Y, **SAFE, **options),
        INVALID,
        "max_records must be an integer|inconsistent numbers|would be given away|takes no sample_weight",
        [
            (metric, {"groups": THREE_EACH, **options})
            for metric in (dp.private_recall_score, dp.private_roc_auc_score)
            for options in (
                {"max_records": 0},
                {"max_records": 1.5},
                {"groups": THREE_EACH[1:]},
                PRIVATE_N,
                {"sample_weight": np.ones(Y.size)},
            )
        ],
    ),
    # metrics of probabilities and scores
    (
        lambda y: dp.private_log_loss(y, [0.2, 0.9, 0.6], **SAFE),
        ValueError,
        "label",
        [[1, 2, 2], ["no", "yes", "yes"]],
    ),
    (
        lambda options: dp.private_brier_score_loss(Y, S, **SAFE, **options),
        ValueError,
        "label|scale_by_half",
        [{"pos_label": 2}, {"scale_by_half": "yes"}, {"scale_by_half": None}, {"labels": [0, 1, 2]}],
    ),
    (
        lambda average: dp.private_roc_auc_score(Y, S, **SAFE, average=average),
        ValueError,
        "'weighted' needs the private sizes|average must be",
        ["weighted", "micro", 3],
    ),
    (
        lambda way: dp.private_roc_auc_score(Y, S, **SAFE, multi_class=way),
        ValueError,
        "each record is in K - 1 of the pairs|multi_class must be",
        ["ovo", "x", None],
    ),
    (
        lambda options: dp.private_roc_auc_score(Y, S, **SAFE, **options),
        ValueError,
        "^The number of classes in labels is different|y_true holds numbers, which are not in labels",
        [{"labels": [0, 1, 2]}, {"labels": ["a", "b"]}],
    ),
    (
        lambda mechanism: dp.private_roc_auc_score(Y, S, **SAFE, **PRIVATE_N, mechanism=mechanism),
        ValueError,
        "public number of records",
        ["geometric", "laplace"],
    ),
    (
        lambda y, score, words: dp.private_roc_auc_score(y, score, **SAFE),
        ValueError,
        lambda y, score, words: words,
        [
            (Y3, S, "label that is not in labels"),
            (Y3, S3, "multi_class must be 'ovr'"),
            (WORDS[0], S, r"pass labels=\[...\]"),
            (Y, WORDS[0], "not labels"),
            (Y, np.where(Y, NAN, 0.0), "contains NaN"),
            (Y, np.where(Y, -INF, 0.0), "contains infinity"),
            (Y, np.zeros((600, 2, 2)), "3d array"),
            (Y[:, np.newaxis] + [0, 0], S, "1d array"),
        ],
    ),
    (
        lambda metric, labels: metric(Y, S, **SAFE, labels=labels),
        ValueError,
        "labels must be two|label",
        [(metric, labels) for metric in TABLES for labels in ([0, 1, 2], ["no", "yes"])],
    ),
    (
        lambda metric, label: metric(Y, S, **SAFE, pos_label=label),
        ValueError,
        "pos_label=.* is not one of the public labels",
        [(metric, label) for metric in TABLES for label in (2, "1")],
    ),
    (lambda metric: metric(Y, S.astype(str), **SAFE), ValueError, "not labels", TABLES),
    (lambda metric: metric(Y, S3, **SAFE), ValueError, "The number of classes in labels", TABLES),
    (
        lambda metric: metric([0, 1], [-3.0, 0.5], **SAFE),
        ValueError,
        r"^y_score has values outside \[0, 1\]: pass edges=",
        TABLES[:3],
    ),
    (
        lambda metric: metric([0, 1], [-3.0, 0.5], **SAFE),
        ValueError,
        r"values in \[0, 1\] only: probabilities",
        TABLES[3:],
    ),
    (
        lambda metric: metric(Y, S, **SAFE, edges=[0, 1, 2], bins=8),
        ValueError,
        "bins cannot be used with edges",
        TABLES[:3],
    ),
    (
        lambda metric, name, value: metric(Y, S, **SAFE, **{name: value}),
        ValueError,
        lambda metric, name, value: name,
        [
            (metric, name, value)
            for metric in TABLES
            for name in BAD_OPTIONS.keys() & METRICS[metric.__name__].options.keys()
            for value in BAD_OPTIONS[name]
        ],
    ),
    (lambda: dp.private_calibration_curve(Y, S, **SAFE, strategy="quantile"), ValueError, "quantile"),
    (lambda: dp.private_roc_curve(Y, S, **SAFE, drop_intermediate=True), TypeError, "drop_intermediate"),
    # released tables, their limits and pictures
    (lambda: scores().population_interval(ties="none"), ValueError, "ties must be"),
    (lambda: scores().noise_interval(metric="recall"), ValueError, "metric must be"),
    (lambda at: scores().f1_score(at), ValueError, "finite number", [NAN, INF, None, True, "0.3"]),
    (
        lambda wanted: scores().threshold_for(**wanted),
        ValueError,
        "either precision or recall",
        [{}, {"precision": 0.5, "recall": 0.5}, {"recall": 1.2}, {"precision": "0.5"}],
    ),
    (
        lambda: (
            dp.ScoreSummary()
            .update(0 * Y, S)
            .release(1e3, random_state=seeded())
            .threshold_for(precision=0.9)
        ),
        ValueError,
        r"No edge of the released bins has a precision of 0\.9",
    ),
    (lambda: scores().plot("lift"), ValueError, "kind must be"),
    (lambda: scores().calibration_band(n_bins=0), ValueError, "n_bins"),
    (lambda: scores(-1.0, 0.0, 1.0).calibration_band(), ValueError, "needs probabilities"),
    (lambda: scores(-1.0, 0.0, 1.0).plot("calibration"), ValueError, "needs probabilities"),
    (
        lambda: curve("private_roc_auc_score").population_interval(),
        ValueError,
        "a ScoreSummary has a sure one",
    ),
    (
        lambda: curve("private_roc_auc_score", mechanism="geometric").population_interval(
            method="approximate"
        ),
        ValueError,
        "default mechanism",
    ),
    (lambda: dp.roc_band(curve().value), TypeError, "with_result"),
    (lambda: dp.roc_band(kept(dp.private_accuracy_score, Y, Y)), ValueError, "private_roc_curve and"),
    (lambda: dp.roc_band(curve("private_calibration_curve")), ValueError, "use calibration_band"),
    (lambda: dp.roc_band(curve(), confidence=1.0), ValueError, "confidence"),
    (
        lambda: dp.roc_band(kept(dp.private_roc_curve, Y, S, groups=Y3)),
        ValueError,
        "up to 200 records of each person",
    ),
    (lambda: dp.calibration_band(curve()), ValueError, "use roc_band"),
    (lambda: dp.calibration_band(curve("private_calibration_curve").to_dict()), TypeError, "with_result"),
    (lambda: curve().noise_interval(), ValueError, "roc_band"),
    (lambda: curve().population_interval(), ValueError, "roc_band"),
    (
        lambda: kept(dp.private_recall_score, Y, Y, groups=THREE_EACH).population_interval(),
        ValueError,
        "up to 3 records of each person",
    ),
    (
        lambda other: dp.calibration_band(curve("private_calibration_curve", n_bins=10)).error(other),
        ValueError,
        "n_bins=10",
        [
            kept(dp.private_expected_calibration_error, Y, S, n_bins=5),
            kept(dp.private_expected_calibration_error, Y[1:], S[1:]),
            curve("private_calibration_curve", n_bins=10),
        ],
    ),
    (
        lambda: dp.calibration_band(curve("private_calibration_curve")).error(0.5),
        TypeError,
        "with_result of private_expected_calibration_error",
    ),
    (lambda: scores().calibration_band(n_bins=5).error(), ValueError, "does not tell the mean score"),
    (lambda ask: ask("recal"), ValueError, "Did you mean 'recall'", LIMITS_OF_COUNTS),
    (lambda ask: ask("log_loss"), TypeError, "private_log_loss is no metric of labels", LIMITS_OF_COUNTS),
    (lambda ask: ask("recall"), ValueError, "average setting", LIMITS_OF_COUNTS),
    (lambda: confusion().noise_interval("matthews_corrcoef"), ValueError, r"Use recall, precision or F1\."),
    (
        lambda: kept(dp.private_matthews_corrcoef, Y3, Y3, labels=[0, 1, 2]).population_interval(),
        ValueError,
        "method='approximate'",
    ),
    (lambda: confusion().population_interval("accuracy", method="bayes"), ValueError, "method must be"),
    (lambda: confusion(9).plot(), ValueError, "whole matrix"),
    (
        lambda metric: row_of(metric, "loss"),
        TypeError,
        "loss must be a private metric of this package",
        [len, None, 3, ["mse"], functools.partial(dp.private_mse, [1.0])],
    ),
]  # all rows


def texts():
    """Return the text of each call by the line where it begins."""
    tree = ast.parse(Path(__file__).read_text(encoding="utf-8"))
    return {node.lineno: ast.unparse(node.body) for node in ast.walk(tree) if isinstance(node, ast.Lambda)}


TEXTS = texts()


@functools.cache
def refusals_of(row):
    """Return what each value tried by a row raised, once it is known to have cost nothing."""
    call, error, words, tries = (*ROWS[row], [()])[:4]
    found = []
    for tried in tries:
        values = (tried,) if call.__code__.co_argcount == 1 else tried
        before = BUDGET.spent
        try:
            with pytest.raises(error, match=words(*values) if callable(words) else words) as caught:
                call(*values)
        except BaseException as failure:
            failure.add_note(f"This was tried with {values}.")
            raise
        assert BUDGET.spent == before
        found.append(caught.value)
    return found


each_row = pytest.mark.parametrize(
    "row", range(len(ROWS)), ids=[TEXTS[row[0].__code__.co_firstlineno] for row in ROWS]
)


@each_row
def test_it_is_refused_without_a_cost_or_a_word_of_the_data(row):
    for refusal in refusals_of(row):
        assert refusal.__cause__ is refusal.__context__ is None
        for message in messages(refusal):
            assert "98765" not in message


# A quoted name or value, a range, or a word of what would be right or of two things that do not fit.
WAY_OUT = re.compile(
    r"""'[^']+'|"[^"]+"|`[^`]+`|\[\S+, \S+\]|(?i:\b(must|should|pass|use|needs?|only|takes?|make|give|required"""
    r"""|expected|drop|choose|convert|ask|type|instead|at (least|most)|one of|up to|can be|different|mix"""
    r"""|inconsistent|match|cannot be used)\b)"""
)


def test_every_message_says_what_to_do():
    assert not WAY_OUT.search("The data are damaged.")
    told = {str(refusal) for row in range(len(ROWS)) for refusal in refusals_of(row)}
    assert not [message for message in sorted(told) if not WAY_OUT.search(message)]
