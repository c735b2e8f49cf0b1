"""Planning without data: what is made from a guess, and its errors beside those of random data of the kind."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit
from sklearn import metrics as sklearn_metrics

import dp_metrics as dp
from dp_metrics.analysis.guesses import hints_of
from dp_metrics.metrics import METRICS, row_of

N, SHARE = 4000, 0.14


def noise(rng, n, law):
    return rng.standard_t(3, n) if law == "heavy" else rng.standard_normal(n)


def about(rng, n, law, size, centre=0.0):
    return np.full(n, centre), centre + size * noise(rng, n, law)


def logarithmic(rng, n, law, size):
    return np.expm1(np.maximum(np.log1p(100) + size * noise(rng, n, law), 0)), np.full(n, 100.0)


def counted(rng, n, law, size):
    return np.maximum(100 + 10 * size * noise(rng, n, law), 0), np.full(n, 100.0)


def explained(rng, n, law, size):
    true = rng.standard_normal(n)
    return true, true + size * noise(rng, n, law)


def numbers(rng, n, law, size):
    return (size * noise(rng, n, law),)


def sizes(rng, n, law, size):
    return (np.abs(size * noise(rng, n, law)),)


def moved(rng, n, law, size):
    return (size + 20 * noise(rng, n, law),)


def listed(rng, n, law, size):
    true, other = rng.random((2, n)) < SHARE
    return true.astype(int), np.where(rng.random(n) < size, other, true).astype(int)


def scored(rng, n, law, size):
    true = (rng.random(n) < SHARE).astype(int)
    return true, expit(
        size * (rng.standard_normal(n) + size * true) - size**2 / 2 + math.log(SHARE / (1 - SHARE))
    )


def shifted(rng, n, law, size):
    true, proba = scored(rng, n, law, 1.0)
    return true, expit(np.log(proba / (1 - proba)) + size)


def ranked(rng, n, law, size):
    true = rng.integers(0, 4, n)
    scores = np.tile(np.linspace(0.4, 0.6, 4), (n, 1))
    scores[np.arange(n), true] = rng.random(n) > size
    return true, scores


def calibration_error(y, p):
    bins = np.clip(np.ceil(p * 10) - 1, 0, 9)
    return sum(abs((y - p)[bins == one].sum()) for one in range(10)) / len(y)


def specificity(y, p):
    return sklearn_metrics.recall_score(y, p, pos_label=0)


def median(x):
    return np.quantile(x, 0.5, method="inverted_cdf")


ERRORS, CHANCE = (1e-3, 1e3), (0.0, 1.0)
WITHIN = {"bounds": (0, 120)}
KINDS = {
    "mse": (4.0, about, ERRORS, sklearn_metrics.mean_squared_error, {}),
    "rmse": (2.0, about, ERRORS, sklearn_metrics.root_mean_squared_error, {}),
    "mae": (1.5, about, ERRORS, sklearn_metrics.mean_absolute_error, {}),
    "r2": (0.8, explained, ERRORS, sklearn_metrics.r2_score, {}),
    "mean_absolute_percentage_error": (
        0.2,
        lambda *of: about(*of, centre=1.0),
        ERRORS,
        sklearn_metrics.mean_absolute_percentage_error,
        {},
    ),
    "mean_squared_log_error": (0.1, logarithmic, (1e-3, 3.0), sklearn_metrics.mean_squared_log_error, {}),
    "mean_pinball": (0.7, about, ERRORS, sklearn_metrics.mean_pinball_loss, {}),
    "mean_poisson_deviance": (1.2, counted, ERRORS, sklearn_metrics.mean_poisson_deviance, {}),
    "median_absolute_error": (1.0, about, ERRORS, sklearn_metrics.median_absolute_error, {}),
    "log_loss": (0.3, scored, (0.01, 8.0), sklearn_metrics.log_loss, {}),
    "brier_score": (0.09, scored, (0.01, 8.0), sklearn_metrics.brier_score_loss, {}),
    "roc_auc": (0.8, scored, (0.01, 8.0), sklearn_metrics.roc_auc_score, {}),
    "average_precision": (0.5, scored, (0.01, 8.0), sklearn_metrics.average_precision_score, {}),
    "expected_calibration_error": (0.1, shifted, (0.2, 9.0), calibration_error, {}),
    "top_k_accuracy": (
        0.9,
        ranked,
        CHANCE,
        lambda y, s: sklearn_metrics.top_k_accuracy_score(y, s, k=2),
        {"classes": 4},
    ),
    "zero_one_loss": (0.1, listed, CHANCE, sklearn_metrics.zero_one_loss, {}),
    "accuracy": (0.9, listed, CHANCE, sklearn_metrics.accuracy_score, {}),
    "precision": (0.6, listed, CHANCE, sklearn_metrics.precision_score, {}),
    "recall": (0.7, listed, CHANCE, sklearn_metrics.recall_score, {}),
    "f1": (0.6, listed, CHANCE, sklearn_metrics.f1_score, {}),
    "jaccard": (0.5, listed, CHANCE, sklearn_metrics.jaccard_score, {}),
    "specificity": (0.95, listed, CHANCE, specificity, {}),
    "balanced_accuracy": (0.8, listed, CHANCE, sklearn_metrics.balanced_accuracy_score, {}),
    "matthews_corrcoef": (0.5, listed, CHANCE, sklearn_metrics.matthews_corrcoef, {}),
    "cohen_kappa": (0.5, listed, CHANCE, sklearn_metrics.cohen_kappa_score, {}),
    "variance": (3.0, numbers, ERRORS, np.var, {}),
    "std": (2.0, numbers, ERRORS, np.std, {}),
    "mean": (40.0, moved, (-60.0, 180.0), np.mean, WITHIN),
    "mean_loss": (0.3, sizes, ERRORS, np.mean, {}),
    "quantile": (40.0, sizes, ERRORS, median, {"q": 0.5, **WITHIN}),
}
"""Of each metric a guess, random data by one number, its span, the exact function and options."""
FAST = ("mae", "f1", "roc_auc", "mean")
ALL = [pytest.param(name, marks=[] if name in FAST else pytest.mark.slow) for name in KINDS]


def hinted(name):
    hints, options = hints_of(row_of(name)[0]), dict(KINDS[name][-1])
    return {**options, "positives": SHARE} if "positives" in hints and "classes" not in options else options


def random_data(name, law, seed):
    """Return random data of a kind with the guessed metric."""
    guess, make, span, exact, _ = KINDS[name]

    def at(place):
        return make(np.random.default_rng(seed), N, law, place)

    return at(brentq(lambda place: exact(*at(place)) - guess, *span, xtol=1e-9))


def test_every_metric_of_one_number_can_be_guessed():
    several = {name for name in METRICS if "report" in name or "curve" in name or "matrix" in name}
    assert {row_of(name)[0].name for name in KINDS} == {*METRICS} - several
    for name in several:
        with pytest.raises(ValueError, match="several numbers"):
            dp.expected_error(name, guess=0.5, n=100, epsilon=1.0)


@pytest.mark.parametrize("name", ALL)
def test_the_error_of_a_guess_is_within_half_as_much_again_of_that_of_random_data(name):
    """The median of so many seeded data sets: of heavy-tailed errors they differ by more than the factor."""
    data_options = KINDS[name][-1]
    options = {key: value for key, value in data_options.items() if key != "classes"}
    for law in ("normal", "heavy") if "law" in hints_of(row_of(name)[0]) else (None,):
        sets = [random_data(name, law, seed) for seed in range(25 if law == "heavy" else 3)]
        for epsilon in (0.3, 2.0):
            errors = [
                dp.expected_error(name, *data, epsilon=epsilon, **options).mean_absolute for data in sets
            ]
            guessed = dp.expected_error(
                name, guess=KINDS[name][0], n=N, law=law, epsilon=epsilon, **hinted(name)
            )
            ratio = guessed.mean_absolute / np.median(errors)
            assert 1 / 1.5 < ratio < 1.5, (name, law, epsilon, ratio)
