"""scikit-learn's own tests of its metrics, run on the private ones at a very large epsilon."""

import inspect
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dp_metrics as dp
from dp_metrics._random import SeededEntropy

common = pytest.importorskip(
    "sklearn.metrics.tests.test_common", reason="scikit-learn came without its tests"
)

EPSILON = 1e12
ORIGINALS = dict(common.ALL_METRICS)


def with_labels(metric):
    """Pass the labels, which scikit-learn infers from the data, as a user of a private metric must."""

    def call(y_true, y_proba, **options):
        if options.get("labels") is None:
            y = np.asarray(y_true)
            options["labels"] = np.unique(y) if np.ndim(y_proba) == 2 or len(np.unique(y)) == 2 else None
        return metric(y_true, y_proba, epsilon=EPSILON, random_state=SeededEntropy(0), **options)

    return call


def with_label_set(metric, **fixed):
    """Pass all labels that occur, true or predicted."""

    def call(y_true, y_pred, **options):
        if options.get("labels") is None:
            both = np.concatenate([np.ravel(y_true), np.ravel(y_pred)])
            found = np.unique(both[np.isfinite(both)] if both.dtype.kind in "biuf" else both)
            options["labels"] = found if found.size > 1 else None
        settings = {"epsilon": EPSILON, "random_state": SeededEntropy(0), **fixed}
        return metric(y_true, y_pred, **settings, **options)

    return call


def at_a_large_epsilon(metric, **fixed):
    def call(*data, **options):
        return metric(*data, epsilon=EPSILON, random_state=SeededEntropy(0), **fixed, **options)

    return call


# name in scikit-learn's tables: the private twin
TWINS: dict[str, Callable[..., Any]] = {
    "mean_squared_error": at_a_large_epsilon(dp.private_mse),
    "mean_absolute_error": at_a_large_epsilon(dp.private_mae),
    "r2_score": at_a_large_epsilon(dp.private_r2_score),
    "mean_absolute_percentage_error": at_a_large_epsilon(dp.private_mean_absolute_percentage_error),
    "mean_pinball_loss": at_a_large_epsilon(dp.private_mean_pinball_loss),
    "mean_poisson_deviance": at_a_large_epsilon(dp.private_mean_poisson_deviance),
    "mean_squared_log_error": at_a_large_epsilon(dp.private_mean_squared_log_error),
    "accuracy_score": at_a_large_epsilon(dp.private_accuracy_score),
    "unnormalized_accuracy_score": at_a_large_epsilon(dp.private_accuracy_score, normalize=False),
    "zero_one_loss": at_a_large_epsilon(dp.private_zero_one_loss),
    "unnormalized_zero_one_loss": at_a_large_epsilon(dp.private_zero_one_loss, normalize=False),
    "brier_score_loss": with_labels(dp.private_brier_score_loss),
    "log_loss": with_labels(dp.private_log_loss),
    "roc_auc_score": with_labels(dp.private_roc_auc_score),
    "confusion_matrix": with_label_set(dp.private_confusion_matrix),
    "normalized_confusion_matrix": with_label_set(dp.private_confusion_matrix, normalize="true"),
    "balanced_accuracy_score": with_label_set(dp.private_balanced_accuracy_score, zero_division=np.nan),
    "matthews_corrcoef_score": with_label_set(dp.private_matthews_corrcoef),
    "cohen_kappa_score": with_label_set(dp.private_cohen_kappa_score),
    **{
        f"{average}_{name}_score": with_label_set(getattr(dp, f"private_{name}_score"), average=average)
        for average in ("macro", "micro", "weighted")
        for name in ("f1", "precision", "recall", "jaccard")
    },
    **{
        f"{name}_score": with_label_set(getattr(dp, f"private_{name}_score"))
        for name in ("f1", "precision", "recall", "jaccard")
    },
    "unnormalized_log_loss": lambda *a, **o: with_labels(dp.private_log_loss)(*a, normalize=False, **o),
}

# averages and sums of others, in the slow tests
ALIKE = {name for name in TWINS if name.startswith(("micro_", "weighted_", "unnormalized_"))}
OF_COUNTS = [name for name, twin in TWINS.items() if twin.__qualname__.startswith("with_label_set")]

# What does not apply: a test, or a test of one metric, and why.
_ARRAY_API = "private metrics convert what they get to NumPy arrays; other array namespaces are not kept"
_NO_INDICATORS = "labels are encoded with the public label set, so indicator matrices are not accepted"
_NO_WEIGHTED_VARIANCE = "a weighted variance has no output bounds"
_NO_WEIGHTS = "weights of counts are refused, with the reason"
_BY_THE_LABEL_SET = "refused too, because a label is not in the public set; tests/metrics/test_labels.py"
_OTHER_SENTENCE = "refused too, but in the words that all private metrics share"
_ONE_RECORD_AT_A_TIME = "refused too, but not by comparing the kinds of both arguments as a whole"
NOT_APPLICABLE: dict[str | tuple[str, str], str] = {
    "test_array_api_compliance": _ARRAY_API,
    "test_classification_binary_continuous_input": _ONE_RECORD_AT_A_TIME,
    "test_classification_metrics_raise_on_empty_input": _OTHER_SENTENCE,
    "test_metrics_pos_label_error_str": "the positive label is never inferred: it is the second public label",
    "test_array_api_classification_string_input": _ARRAY_API,
    "test_array_api_classification_mixed_string_numeric_input": _ARRAY_API,
    "test_mixed_array_api_namespace_input_compliance": _ARRAY_API,
    ("test_regression_sample_weight_invariance", "r2_score"): _NO_WEIGHTED_VARIANCE,
    ("test_regression_with_invalid_sample_weight", "r2_score"): _NO_WEIGHTED_VARIANCE,
    ("test_multioutput_sample_weight_invariance", "r2_score"): _NO_WEIGHTED_VARIANCE,
    ("test_multilabel_sample_weight_invariance", "r2_score"): _NO_WEIGHTED_VARIANCE,
    **{
        (test, metric): _NO_INDICATORS
        for test in (
            "test_averaging_multilabel",
            "test_averaging_multilabel_all_ones",
            "test_averaging_multilabel_all_zeroes",
        )
        for metric in ("f1_score", "precision_score", "recall_score", "jaccard_score")
    },
    **{
        (test, metric): _NO_INDICATORS
        for test in (
            "test_continuous_multilabel_multioutput_permutations_invariance",
            "test_thresholded_multilabel_multioutput_permutations_invariance",
            "test_multilabel_sample_weight_invariance",
        )
        for metric in ("brier_score_loss", "log_loss", "unnormalized_log_loss", "roc_auc_score")
    },
    ("test_averaging_multilabel", "roc_auc_score"): _NO_INDICATORS,
    **{
        (test, name): reason
        for name in OF_COUNTS
        for test, reason in {
            "test_classification_with_invalid_sample_weight": _NO_WEIGHTS,
            "test_metrics_consistent_type_error": _BY_THE_LABEL_SET,
            "test_classification_inf_nan_input": _BY_THE_LABEL_SET,
            "test_multilabel_representation_invariance": _NO_INDICATORS,
            "test_multilabel_label_permutations_invariance": _NO_INDICATORS,
            "test_raise_value_error_multilabel_sequences": _NO_INDICATORS,
            "test_single_sample_multioutput": _NO_INDICATORS,
        }.items()
    },
    **{
        (f"test_{kind}_sample_weight_invariance", name): _NO_WEIGHTS
        for kind in ("binary", "multiclass", "multilabel")
        for name in ("roc_auc_score", *OF_COUNTS)
    },
}
OLDER = hasattr(common, "test_thresholded_multilabel_multioutput_permutations_invariance")
if OLDER:
    NOT_APPLICABLE["test_metrics_consistent_type_error"] = "refused too, in the words of later releases"


def cases():
    for test_name, test in inspect.getmembers(common, inspect.isfunction):
        if not test_name.startswith("test_") or test_name in NOT_APPLICABLE:
            continue
        marks = [m for m in getattr(test, "pytestmark", []) if m.name == "parametrize"]
        axes = []
        for mark in reversed(marks):
            names = (
                [n.strip() for n in mark.args[0].split(",")]
                if isinstance(mark.args[0], str)
                else mark.args[0]
            )
            values = [v.values if hasattr(v, "values") and hasattr(v, "marks") else v for v in mark.args[1]]
            axes.append(
                [
                    (names, v if len(names) > 1 else (v if isinstance(v, tuple) and len(v) == 1 else (v,)))
                    for v in values
                ]
            )
        for twin in TWINS:
            if (test_name, twin) in NOT_APPLICABLE:
                continue
            here, concerned = [], False
            for axis in axes:
                own = [(names, values) for names, values in axis if any(is_twin(v, twin) for v in values)]
                if own:
                    concerned, axis = True, own
                here.append(axis)
            if concerned:
                for i, combination in enumerate(itertools.product(*here)):
                    arguments = {
                        n: v for names, values in combination for n, v in zip(names, values, strict=True)
                    }
                    # one combination of further settings each time, and all of them with the slow tests
                    marks = pytest.mark.slow if i or twin in ALIKE else ()
                    yield pytest.param(test, twin, arguments, id=f"{test_name}-{twin}-{i}", marks=marks)


def is_twin(value, twin):
    return (isinstance(value, str) and value == twin) or (callable(value) and value is ORIGINALS.get(twin))


@pytest.fixture
def private_tables(monkeypatch):
    """Put the private metrics in place of their twins in all tables."""
    for name, table in vars(common).items():
        if name.isupper() and isinstance(table, dict):
            monkeypatch.setattr(common, name, {k: TWINS.get(k, v) for k, v in table.items()})
    for name, function in vars(common).copy().items():  # some tests compare functions
        if name in TWINS and callable(function):
            monkeypatch.setattr(common, name, TWINS[name])


@pytest.mark.parametrize(("test", "twin", "arguments"), [*cases()])
def test_scikit_learns_own_test_passes(test, twin, arguments, private_tables):
    test(
        **{
            name: TWINS[twin] if is_twin(v, twin) and not isinstance(v, str) else v
            for name, v in arguments.items()
        }
    )


def test_what_does_not_apply_is_there_and_has_a_reason():
    for key, reason in NOT_APPLICABLE.items():
        test, metric = key if isinstance(key, tuple) else (key, "log_loss")
        assert metric in TWINS
        assert len(reason) > 20
        assert hasattr(common, test) or OLDER or "thresholded" in test


def test_refusals_whose_words_differ_from_those_of_scikit_learn():
    with pytest.raises(ValueError, match="can't handle continuous targets"):
        dp.private_accuracy_score(["a", "b", "a"], [0.1, 0.2, 0.3], epsilon=1.0)
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        dp.private_accuracy_score([], [], epsilon=1.0)
