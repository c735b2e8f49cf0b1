"""A metric goes by the same names wherever one is asked for."""

from functools import partial

import numpy as np
import pytest
from helpers import all_of_labels, loop_over
from sklearn.metrics import get_scorer, get_scorer_names

import dp_metrics as dp
from dp_metrics.analysis import auditing
from dp_metrics.metrics import METRICS, NAMES, row_of

MACRO = partial(dp.private_f1_score, average="macro")
SPELLINGS = {
    dp.private_mse: ["mse", "private_mse", "mean_squared_error", "neg_mse", "neg_mean_squared_error"],
    dp.private_rmse: ["rmse", "neg_private_rmse", "private_root_mean_squared_error"],
    dp.private_log_loss: ["log_loss", "private_log_loss", "neg_log_loss"],
    dp.private_brier_score_loss: ["brier", "brier_score", "neg_brier_score"],
    dp.private_accuracy_score: ["accuracy", "private_accuracy", "accuracy_score"],
    dp.private_recall_score: ["recall", "recall_score", "private_recall"],
    MACRO: ["f1_macro"],
    dp.private_average_precision_score: ["average_precision"],
    dp.private_roc_auc_score: ["roc_auc", "private_roc_auc", "roc_auc_score"],
    partial(dp.private_roc_auc_score, multi_class="ovr"): ["roc_auc_ovr"],
    dp.private_variance: ["variance", "private_variance", "var"],
}
Y = np.arange(60) // 3 % 2
P = np.clip(0.8 * Y + 0.1 + np.linspace(-0.1, 0.1, 60), 0, 1)
SEEDED = {"epsilon": 1.0, "random_state": 0}
COUNTS = all_of_labels(labels=[0, 1]).update(Y, Y).release(epsilon=1.0)


def scorer(metric):
    made = dp.make_private_scorer(metric, epsilon=1.0, labels=[0, 1])
    return made.function.func, made.function.keywords, made.check()


def frame(metric):
    settings = {"sensitive_features": Y[::-1], "group_labels": [0, 1], **SEEDED}
    return repr(dp.PrivateMetricFrame(metrics={"m": metric}, y_true=Y, y_pred=Y, **settings))


PLACES = {  # and a metric that each of them takes
    "scorer": (scorer, MACRO),
    "frame": (frame, MACRO),
    "plan": (lambda metric: dp.plan_release(metric, guess=(Y, P), epsilon=1.0), dp.private_brier_score_loss),
    "summary": (lambda metric: repr(dp.Summary(metric)), dp.private_log_loss),
    "counts": (lambda metric: tuple(COUNTS.noise_interval(metric)), MACRO),
    "comparison": (
        lambda metric: repr(dp.private_compare(Y, P, P[::-1], loss=metric, max_difference=1.0, **SEEDED)),
        dp.private_brier_score_loss,
    ),
    "loss": (
        lambda metric: auditing.release_loss(metric, *[([1, 0, 1, 1], [1, 0, 0, 1])] * 2, epsilon=1.0),
        dp.private_roc_auc_score,
    ),
}


@pytest.mark.filterwarnings("ignore::dp_metrics.exceptions.SeededReleaseWarning")
@loop_over("place", PLACES)
def test_a_name_does_what_the_function_does_and_a_wrong_one_is_answered(place):
    ask, metric = PLACES[place]
    for name in SPELLINGS[metric]:
        assert ask(name) == ask(metric)
    with pytest.raises(Exception, match=r"There is no metric 'reccall'. Did you mean 'recall'\?"):
        ask("reccall")


def test_all_spellings_are_of_one_row():
    for metric, names in SPELLINGS.items():
        assert all(row_of(name) == row_of(metric) for name in names)
    assert {name: row_of(name) for name in METRICS} == {name: (METRICS[name], {}) for name in METRICS}
    for name, metric in NAMES.items():  # only losses have names that negate them
        assert name.startswith("neg_") <= (row_of(metric)[0].greater_is_better is False)
    assert {row_of(function)[0].name for function in NAMES.values()} == METRICS.keys()
    for short in ("mse", "rmse", "mae"):
        long = METRICS[f"private_{short}"].exact_function.rpartition(".")[2]
        assert getattr(dp, f"private_{long}") is getattr(dp, f"private_{short}")


REFUSED = [
    "adjusted_mutual_info_score", "adjusted_rand_score", "completeness_score", "d2_absolute_error_score",
    "d2_brier_score", "d2_log_loss_score", "explained_variance", "f1_samples", "fowlkes_mallows_score",
    "homogeneity_score", "jaccard_samples", "mutual_info_score", "neg_max_error", "neg_mean_gamma_deviance",
    "neg_negative_likelihood_ratio", "neg_root_mean_squared_log_error", "normalized_mutual_info_score",
    "positive_likelihood_ratio", "precision_samples", "rand_score", "recall_samples", "roc_auc_ovo",
    "roc_auc_ovo_weighted", "roc_auc_ovr_weighted", "v_measure_score",
]  # fmt: skip


def test_names_of_scikit_learn_mean_what_they_mean_there():
    there = {name for name in get_scorer_names() if not name.startswith("d2_")}
    assert there - NAMES.keys() <= {*REFUSED}
    assert not NAMES.keys() & {*REFUSED, "explained_variance_score", "max_error", "auc", "fbeta"}
    for name in there & NAMES.keys():
        theirs, (row, options) = get_scorer(name), row_of(name)
        assert row.exact_function == f"sklearn.metrics.{theirs._score_func.__name__}"
        default = {"average": "binary", "pos_label": None}
        assert options.items() <= theirs._kwargs.items() <= {**default, **options}.items()
        labels = {"labels": [0, 1, 2]} if "labels" in row.options else {}
        assert dp.make_private_scorer(name, epsilon=1.0, **labels).check()[1] == theirs._sign
    # an area of each class against the rest is made of probabilities
    of_each = dp.make_private_scorer("roc_auc_ovr", epsilon=1.0, labels=[0, 1, 2])
    assert of_each.check()[0][0] == "predict_proba"
    assert dp.make_private_scorer("roc_auc", epsilon=1.0).check()[0][0] == "decision_function"
