"""A metric goes by the same names wherever one is asked for."""

import argparse
from functools import partial

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer, get_scorer_names

import dp_metrics as dp
from dp_metrics import auditing
from dp_metrics.cli import score
from dp_metrics.metrics import FUNCTIONS, METRICS, NAMES, row_of

MACRO = partial(dp.private_f1_score, average="macro")
SPELLINGS = {
    dp.private_mse: ["mse", "private_mse", "mean_squared_error", "neg_mse", "neg_mean_squared_error"],
    dp.private_rmse: ["rmse", "neg_private_rmse", "neg_root_mean_squared_error"],
    dp.private_log_loss: ["log_loss", "private_log_loss", "neg_log_loss"],
    dp.private_brier_score_loss: ["brier", "brier_score", "neg_brier_score"],
    dp.private_accuracy_score: ["accuracy", "private_accuracy", "accuracy_score"],
    dp.private_recall_score: ["recall", "recall_score", "private_recall"],
    MACRO: ["f1_macro"],
    dp.private_balanced_accuracy_score: ["balanced_accuracy", "private_balanced_accuracy_score"],
    dp.private_average_precision_score: ["average_precision"],
    dp.private_roc_auc_score: ["roc_auc", "private_roc_auc", "roc_auc_score"],
    partial(dp.private_roc_auc_score, multi_class="ovr"): ["roc_auc_ovr"],
    dp.private_variance: ["variance", "private_variance", "var"],
}
SPELLED = [pytest.param(metric, name, id=name) for metric, names in SPELLINGS.items() for name in names]
X, Y = make_classification(60, n_features=3, n_redundant=0, random_state=0)
P = np.clip(0.8 * Y + 0.1 + np.linspace(-0.1, 0.1, 60), 0, 1)
WRONG = np.where(np.arange(60) % 5, Y, 1 - Y)
SEEDED = {"epsilon": 1.0, "random_state": 0}
PAIR = ([1, 0, 1, 1], [1, 0, 0, 1])


def scorer(metric):
    labels = {"labels": [0, 1]} if "labels" in row_of(metric)[0].options else {}
    made = dp.make_private_scorer(metric, epsilon=1.0, **labels)
    return made.function.func, made.function.keywords, made.check()


def ready_made(metric):
    made = dp.get_private_scorer(metric, epsilon=1.0)
    return made.function.func, made.function.keywords, made.check()


def search(metric):
    budget = dp.PrivacyAccountant(3.0)
    settings = {"metric": metric, "epsilon": 3.0, "expected_iter": 1, "accountant": budget}
    found = dp.PrivateRandomizedSearch(LogisticRegression(), {"C": [1.0]}, **settings)
    assert found.fit(X, Y, X_val=X, y_val=Y).best_params_ == {"C": 1.0}
    return [(spend.spend_name, spend.mechanism) for spend in budget.history]


def frame(metric):
    settings = {"sensitive_features": Y[::-1], "group_labels": [0, 1], **SEEDED}
    return repr(dp.PrivateMetricFrame(metrics={"m": metric}, y_true=Y, y_pred=Y, **settings))


def noise(metric):
    return tuple(dp.noise_interval(0.3, metric=metric, epsilon=1.0, n=100))


def records(metric):
    return dp.records_needed(metric, width=0.2, epsilon=1.0, guess=0.8, positives=0.5)


def error(metric):
    if row_of(metric)[0].mechanism is None:  # a simulation
        return row_of(metric)
    return dp.expected_error(
        metric, Y, P if row_of(metric)[0].responses != ("predict",) else WRONG, epsilon=1.0
    )


def epsilon(metric):
    if row_of(metric)[0].mechanism is None:
        return row_of(metric)
    return dp.epsilon_for_error(metric, Y, P, error=0.2)


def summary(metric):
    return repr(dp.LossSummary(metric))


COUNTS = dp.ConfusionSummary(labels=[0, 1]).update(Y, Y).release(epsilon=1.0)


def counts(metric):
    return tuple(COUNTS.noise_interval(metric))


def population(metric):
    return tuple(COUNTS.population_interval(metric))


def comparison(metric):
    return repr(dp.private_compare(Y, P, P[::-1], loss=metric, max_difference=1.0, **SEEDED))


def loss(metric):
    return auditing.metric_loss(metric, PAIR, PAIR, epsilon=1.0)


def command(metric):
    parser = argparse.ArgumentParser()
    score.add_score(parser)
    if not isinstance(metric, str):  # a function cannot be typed
        return row_of(metric)
    asked = score._request(parser.parse_args(["a.csv", "--metric", metric, "--epsilon", "1"]))
    return asked.row, asked.options


PLACES = {  # what each of them takes
    scorer: [dp.private_mse, dp.private_log_loss, MACRO, dp.private_roc_auc_score],
    ready_made: [dp.private_rmse, dp.private_accuracy_score, dp.private_average_precision_score],
    search: [dp.private_log_loss, dp.private_recall_score, MACRO, dp.private_roc_auc_score],
    frame: [dp.private_mse, dp.private_accuracy_score, dp.private_recall_score, MACRO],
    noise: [dp.private_accuracy_score, dp.private_mse],
    records: [dp.private_recall_score],
    error: [dp.private_mse, dp.private_brier_score_loss, dp.private_accuracy_score],
    epsilon: [dp.private_mse, dp.private_brier_score_loss],
    summary: [dp.private_mse, dp.private_log_loss, dp.private_brier_score_loss],
    counts: [dp.private_recall_score, MACRO, dp.private_accuracy_score],
    population: [dp.private_recall_score, dp.private_accuracy_score],
    comparison: [dp.private_mse, dp.private_log_loss, dp.private_brier_score_loss],
    loss: [dp.private_mse, dp.private_roc_auc_score],
    command: [*SPELLINGS],
}
each_place = pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)


def outcome(place, metric):
    try:
        return place(metric)
    except (TypeError, ValueError) as refusal:
        return type(refusal), str(refusal)


@each_place
@pytest.mark.filterwarnings("ignore::dp_metrics.SeededReleaseWarning")
def test_a_name_does_what_the_function_does(place):
    for metric, names in SPELLINGS.items():
        by_function = outcome(place, metric)
        if metric in PLACES[place]:
            place(metric)
        for name in names:
            assert outcome(place, name) == by_function, name


@each_place
@pytest.mark.filterwarnings("ignore::dp_metrics.SeededReleaseWarning")
def test_a_wrong_name_is_answered_with_the_one_that_was_meant(place):
    with pytest.raises(Exception, match=r"There is no metric 'reccall'. Did you mean 'recall'\?"):
        place("reccall")


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


def test_only_losses_have_names_that_negate_them():
    for name, metric in NAMES.items():
        row = row_of(metric)[0]
        assert name.startswith("neg_") <= (row.greater_is_better is False)
    assert {name: row_of(name) for name in METRICS} == {name: (METRICS[name], {}) for name in METRICS}
    assert {row_of(function)[0].name for function in NAMES.values()} == FUNCTIONS.keys()


def test_probabilities_are_what_areas_of_each_class_against_the_rest_are_made_of():
    of_each = dp.make_private_scorer("roc_auc_ovr", epsilon=1.0, labels=[0, 1, 2])
    assert of_each.check()[0][0] == "predict_proba"
    assert dp.make_private_scorer("roc_auc", epsilon=1.0).check()[0][0] == "decision_function"


def test_keywords_of_a_partial_count_wherever_it_is_given():
    bounded = partial(dp.private_mse, bounds=(0, 1), mechanism="geometric")
    given = {"bounds": (0, 1), "mechanism": "geometric"}
    assert dp.expected_error(bounded, Y, P, epsilon=1.0) == dp.expected_error(
        "mse", Y, P, epsilon=1.0, **given
    )
    number = {"epsilon": 1.0, "n": 100}
    assert dp.noise_interval(0.3, metric=bounded, **number) == dp.noise_interval(
        0.3, metric="mse", **number, **given
    )
    assert dp.noise_interval(0.3, metric=bounded, mechanism="laplace", **number) != dp.noise_interval(
        0.3, metric=bounded, **number
    )
