"""scikit-learn's own tests of its metrics, run on the private ones at a very large epsilon."""

import functools
import inspect
import itertools
import operator
from collections.abc import Callable
from fnmatch import fnmatch
from typing import Any

import numpy as np
import pytest
from sklearn.metrics.tests import test_common as common

import dp_metrics as dp
from dp_metrics._random import SeededEntropy

EPSILON = 1e12
ORIGINALS = dict(common.ALL_METRICS)


def labels_of_probabilities(y_true, y_proba):
    y = np.asarray(y_true)
    return np.unique(y) if np.ndim(y_proba) == 2 or len(np.unique(y)) == 2 else None


def labels_of_both(y_true, y_pred):
    both = np.concatenate([np.ravel(y_true), np.ravel(y_pred)])
    found = np.unique(both[np.isfinite(both)] if both.dtype.kind in "biuf" else both)
    return found if found.size > 1 else None


def twin(name, labels_of=None, **fixed):
    """Return a private metric at a large epsilon, with the labels that scikit-learn infers from the data."""
    metric = getattr(dp, f"private_{name}")

    def call(*data, **options):
        if labels_of is not None and options.get("labels") is None:
            options["labels"] = labels_of(*data)
        return metric(*data, epsilon=EPSILON, random_state=SeededEntropy(0), **fixed, **options)

    return call


# name in scikit-learn's tables: the private twin
_ERRORS = ("absolute_percentage_error", "pinball_loss", "poisson_deviance", "squared_log_error")
_SAME_NAME = [*(f"mean_{name}" for name in _ERRORS), "r2_score", "accuracy_score", "zero_one_loss"]
_RATIOS = ("f1", "precision", "recall", "jaccard")
_OF_COUNTS = {
    "confusion_matrix": ("confusion_matrix", {}),
    "normalized_confusion_matrix": ("confusion_matrix", {"normalize": "true"}),
    "balanced_accuracy_score": ("balanced_accuracy_score", {"zero_division": np.nan}),
    "matthews_corrcoef_score": ("matthews_corrcoef", {}),
    "cohen_kappa_score": ("cohen_kappa_score", {}),
    **{f"{name}_score": (f"{name}_score", {}) for name in _RATIOS},
    **{
        f"{average}_{name}_score": (f"{name}_score", {"average": average})
        for average in ("macro", "micro", "weighted")
        for name in _RATIOS
    },
}
TWINS: dict[str, Callable[..., Any]] = {
    "mean_squared_error": twin("mse"),
    "mean_absolute_error": twin("mae"),
    **{name: twin(name) for name in _SAME_NAME},
    "unnormalized_accuracy_score": twin("accuracy_score", normalize=False),
    "unnormalized_zero_one_loss": twin("zero_one_loss", normalize=False),
    **{
        name: twin(name, labels_of_probabilities)
        for name in ("brier_score_loss", "log_loss", "roc_auc_score")
    },
    "unnormalized_log_loss": twin("log_loss", labels_of_probabilities, normalize=False),
    **{name: twin(private, labels_of_both, **fixed) for name, (private, fixed) in _OF_COUNTS.items()},
}

# averages and sums of others, in the slow tests
ALIKE = {name for name in TWINS if name.startswith(("micro_", "weighted_", "unnormalized_"))}
OF_COUNTS = [*_OF_COUNTS]

_ALL, _PROBABILITIES = [*TWINS], ["brier_score_loss", "log_loss", "unnormalized_log_loss", "roc_auc_score"]
_RATIOS_AND_AUC = ["roc_auc_score", *(f"{name}_score" for name in _RATIOS)]
OLDER = hasattr(common, "test_thresholded_multilabel_multioutput_permutations_invariance")
EXCEPTIONS = [  # tests, of which metrics, and why these do not apply
    ("*array_api*", _ALL, "what comes in becomes a NumPy array; other array namespaces are not kept"),
    ("*binary_continuous_input", _ALL, "refused too, but not by comparing the kinds of both arguments"),
    ("*raise_on_empty_input", _ALL, "refused too, but in the words that all private metrics share"),
    ("*pos_label_error_str", _ALL, "the positive label is never inferred: it is the second public label"),
    ("*_sample_weight*", ["r2_score"], "a weighted variance has no output bounds"),
    (
        "*_averaging_multilabel*",
        _RATIOS_AND_AUC,
        "no indicator matrices: labels are encoded by the label set",
    ),
    ("*_multilabel_multioutput_permutations_*", _PROBABILITIES, "no indicator matrices"),
    ("*_multilabel_sample_weight_*", _PROBABILITIES, "no indicator matrices"),
    ("*_multilabel_*_invariance", OF_COUNTS, "no indicator matrices"),
    ("*_error_multilabel_sequences", OF_COUNTS, "no indicator matrices"),
    ("*_single_sample_multioutput", OF_COUNTS, "no indicator matrices"),
    ("*_sample_weight*", OF_COUNTS, "weights of counts are refused, with the reason"),
    ("*_sample_weight_invariance", ["roc_auc_score"], "weights of pairs are refused, with the reason"),
    ("*_consistent_type_error", _ALL if OLDER else OF_COUNTS, "refused too: a label is not in the label set"),
    ("*_classification_inf_nan_input", OF_COUNTS, "refused too: a label is not in the label set"),
]


def is_twin(value, twin):
    return (isinstance(value, str) and value == twin) or (callable(value) and value is ORIGINALS.get(twin))


def combinations(name, test, twin):
    """Return the arguments of each run of a test that concerns a metric."""
    if any(twin in metrics and fnmatch(name, pattern) for pattern, metrics, _ in EXCEPTIONS):
        return []
    axes, concerned = [], False
    for mark in reversed([m for m in getattr(test, "pytestmark", []) if m.name == "parametrize"]):
        names, values = mark.args[:2]
        names = [one.strip() for one in names.split(",")] if isinstance(names, str) else names
        values = [v.values if hasattr(v, "values") and hasattr(v, "marks") else v for v in values]
        if len(names) == 1:
            values = [v if isinstance(v, tuple) and len(v) == 1 else (v,) for v in values]
        own = [several for several in values if any(is_twin(v, twin) for v in several)]
        concerned |= bool(own)
        axes.append([dict(zip(names, several, strict=True)) for several in own or values])
    runs = [functools.reduce(operator.or_, run, {}) for run in itertools.product(*axes)]
    return runs if concerned else []


RUNS = {
    name: found
    for name, test in inspect.getmembers(common, inspect.isfunction)
    if name.startswith("test_")
    if (found := {twin: runs for twin in TWINS if (runs := combinations(name, test, twin))})
}


@pytest.fixture
def private_tables(monkeypatch):
    """Put the private metrics in place of their twins in all tables."""
    for name, table in vars(common).copy().items():
        if name.isupper() and isinstance(table, dict):
            monkeypatch.setattr(common, name, {k: TWINS.get(k, v) for k, v in table.items()})
        elif name in TWINS and callable(table):  # some tests compare functions
            monkeypatch.setattr(common, name, TWINS[name])


@pytest.mark.gate
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["first", "all"])
@pytest.mark.parametrize("name", RUNS)
def test_scikit_learns_own_test_passes(name, every, private_tables):
    """One combination of further settings each time, and all of them with the slow tests."""
    for twin, runs in RUNS[name].items():
        for arguments in runs if every else runs[: twin not in ALIKE]:
            given = {
                key: TWINS[twin] if is_twin(v, twin) and not isinstance(v, str) else v
                for key, v in arguments.items()
            }
            try:
                getattr(common, name)(**given)
            except pytest.skip.Exception:
                continue
            except BaseException as error:
                error.add_note(f"This was tried with {twin} and {arguments}.")
                raise


def test_what_does_not_apply_is_there():
    patterns = {pattern for pattern, *_ in EXCEPTIONS}
    assert [one for one in patterns if not any(fnmatch(name, one) for name in vars(common))] == []
