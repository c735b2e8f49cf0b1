"""Planning without data: what is made from a guess, and its errors beside those of random data."""

import math

import numpy as np
import pytest
from cases import calibration_error, median
from helpers import loop_over, slow_but
from scipy.optimize import brentq
from scipy.special import expit
from sklearn import metrics as sklearn_metrics

import dp_metrics as dp
from dp_metrics.analysis.guesses import Guess, examples_of, hints_of
from dp_metrics.metrics import row_of

N, SHARE = 4000, 0.14


def noise(rng, n, law):
    return rng.standard_t(3, n) if law == "heavy" else rng.standard_normal(n)


def about(rng, n, law, size, centre=0.0):
    return np.full(n, centre), centre + size * noise(rng, n, law)


def near_one(rng, n, law, size):
    return about(rng, n, law, size, 1.0)


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


def selected(rng, n, law, size):
    true, chance = rng.random((2, n))
    return (true < SHARE).astype(int), (chance < size).astype(int)


def scored(rng, n, law, size):
    true = (rng.random(n) < SHARE).astype(int)
    odds = size * (rng.standard_normal(n) + size * true) - size**2 / 2 + math.log(SHARE / (1 - SHARE))
    return true, expit((2 if law == "heavy" else 1) * odds)


def shifted(rng, n, law, size):
    true, proba = scored(rng, n, law, 1.0)
    return true, expit(np.log(proba / (1 - proba)) + size)


def ranked(rng, n, law, size):
    true = rng.integers(0, 4, n)
    scores = np.tile(np.linspace(0.4, 0.6, 4), (n, 1))
    scores[np.arange(n), true] = rng.random(n) > size
    return true, scores


def specificity(y, p):
    return sklearn_metrics.recall_score(y, p, pos_label=0)


def top_two(y, scores):
    return sklearn_metrics.top_k_accuracy_score(y, scores, k=2)


ERRORS, CHANCE = (1e-3, 1e3), (0.0, 1.0)
WITHIN = {"bounds": (0, 120)}
KINDS = {
    "mse": (4.0, about, ERRORS, sklearn_metrics.mean_squared_error, {}),
    "mae": (1.5, about, ERRORS, sklearn_metrics.mean_absolute_error, {}),
    "r2": (0.8, explained, ERRORS, sklearn_metrics.r2_score, {}),
    "mean_absolute_percentage_error": (
        0.2, near_one, ERRORS, sklearn_metrics.mean_absolute_percentage_error, {},
    ),
    "mean_squared_log_error": (0.1, logarithmic, (1e-3, 3.0), sklearn_metrics.mean_squared_log_error, {}),
    "mean_poisson_deviance": (1.2, counted, ERRORS, sklearn_metrics.mean_poisson_deviance, {}),
    "median_absolute_error": (1.0, about, ERRORS, sklearn_metrics.median_absolute_error, {}),
    "log_loss": (0.3, scored, (0.01, 8.0), sklearn_metrics.log_loss, {}),
    "roc_auc": (0.8, scored, (0.01, 8.0), sklearn_metrics.roc_auc_score, {}),
    "average_precision": (0.5, scored, (0.01, 8.0), sklearn_metrics.average_precision_score, {}),
    "expected_calibration_error": (0.1, shifted, (0.2, 9.0), calibration_error, {}),
    "top_k_accuracy": (0.9, ranked, CHANCE, top_two, {"classes": 4}),
    "accuracy": (0.9, listed, CHANCE, sklearn_metrics.accuracy_score, {}),
    "f1": (0.6, listed, CHANCE, sklearn_metrics.f1_score, {}),
    "specificity": (0.95, listed, CHANCE, specificity, {}),
    "selection_rate": (0.3, selected, CHANCE, lambda y, p: np.mean(p), {}),
    "cohen_kappa": (0.5, listed, CHANCE, sklearn_metrics.cohen_kappa_score, {}),
    "std": (2.0, numbers, ERRORS, np.std, {}),
    "mean": (40.0, moved, (-60.0, 180.0), np.mean, WITHIN),
    "mean_loss": (0.3, sizes, ERRORS, np.mean, {}),
    "quantile": (40.0, sizes, ERRORS, median, {"q": 0.5, **WITHIN}),
}  # fmt: skip
"""Of each metric a guess, random data by one number, its span, the exact function and options."""


def laws_of(name):
    return ("normal", "heavy") if "law" in hints_of(row_of(name)[0]) else (None,)


CASES = [(name, law) for name in KINDS for law in laws_of(name)]


def hinted(name):
    hints, options = hints_of(row_of(name)[0]), dict(KINDS[name][-1])
    return {**options, "positives": SHARE} if "positives" in hints and "classes" not in options else options


def random_data(name, law, seed):
    """Return random data of a kind with the guessed metric."""
    guess, make, span, exact, _ = KINDS[name]

    def at(place):
        return make(np.random.default_rng(seed), N, law, place)

    return at(brentq(lambda place: exact(*at(place)) - guess, *span, xtol=1e-9))


@pytest.mark.gate
@pytest.mark.parametrize(
    "case", slow_but([("f1", None), ("mae", "normal"), ("roc_auc", None)], CASES), ids=str
)
def test_the_error_of_a_guess_is_within_half_as_much_again_of_that_of_random_data(case):
    """The median of so many seeded data sets: of heavy-tailed errors they differ by more than the factor."""
    (name, law), epsilons = case, (0.3, 2.0)
    options = {key: value for key, value in KINDS[name][-1].items() if key != "classes"}
    sets = [random_data(name, law, seed) for seed in range(25 if law == "heavy" else 3)]
    for epsilon in epsilons:
        errors = [dp.plan_release(name, guess=data, epsilon=epsilon, **options).error for data in sets]
        guess = {"guess": KINDS[name][0], "n": N, "law": law, **hinted(name)}
        guessed = dp.plan_release(name, epsilon=epsilon, **guess).error
        assert 1 / 1.5 < guessed / np.median(errors) < 1.5, (epsilon, guessed, errors)


@pytest.mark.gate
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("n", slow_but([4000], [4000, 60_000]))
def test_what_is_made_has_the_guessed_value_every_time(name, n):
    guess, _, _, exact, options = KINDS[name]
    public = {key: value for key, value in options.items() if key != "classes"}
    row, fixed = row_of(name)
    hints = {key: value for key, value in hinted(name).items() if key not in public}
    for law in laws_of(name):
        made = Guess(guess, n, law=law, **hints)
        several = [
            examples_of(row, {**fixed, **public}, made, lambda _, data: exact(*data))[0] for _ in range(2)
        ]
        # a label more or less; and above 10,000 records the farthest errors are larger
        slack = 0.002 if n == 4000 else 0.06 if law == "heavy" else 0.005
        assert exact(*several[0]) == pytest.approx(guess, rel=slack)
        assert {len(array) for array in several[0]} == {n}
        assert all(np.array_equal(one, other) for one, other in zip(*several, strict=True))


def test_the_result_says_what_is_assumed():
    expected = dp.plan_release("f1", guess=0.6, n=12000, positives=0.14, epsilon=1.0)
    assert expected.assumes == (
        "12,000 records, 14 % with label 1; labels that are right or drawn anew as often as they occur: "
        "each is predicted as often as it occurs"
    )
    assert "3 degrees" in dp.plan_release("mse", guess=4, n=100, law="heavy", epsilon=1.0).assumes
    three = dp.plan_release("log_loss", guess=0.8, n=100, classes=3, epsilon=1.0)
    assert ", 3 labels, 33.3 % with label 1;" in three.assumes
    # the specificity of labels that are drawn anew is 86 % at least
    below = dp.plan_release("specificity", guess=0.5, n=12000, positives=0.14, epsilon=1.0)
    assert "wrong equally often" in below.assumes
    y = np.arange(100.0)
    assert dp.plan_release("mse", guess=(y, y + 1), epsilon=1.0).assumes == ""


def test_sizes_that_cannot_have_the_guessed_value_are_not_enough():
    plan = dp.plan_release("recall", guess=0.93, positives=0.02, epsilon=5.0, error=0.5)
    assert 10 < plan.n < 100
    assert plan.error <= 0.5


@pytest.mark.gate
@loop_over("name", ["mae", "mse"])
def test_what_is_planned_from_a_guess_is_safe_for_either_tail(name):
    guess = {"guess": 2.0, "n": 3000}
    epsilon = dp.plan_release(name, error=0.1, **guess).epsilon
    each = [dp.plan_release(name, law=law, epsilon=epsilon, **guess) for law in ("normal", "heavy")]
    assert all(one.error <= 0.1 and one.error_range is None for one in each)
    both = dp.plan_release(name, epsilon=epsilon, **guess)
    assert both.error_range == tuple(sorted(one.error for one in each))
    assert both.error == both.error_range[1]
    assert dp.plan_release("accuracy", guess=0.9, n=100, epsilon=1.0).error_range is None


def rare_labels(share, predicted, seed):
    """Return labels of a rare class, and whether a made-up score is among the highest."""
    rng, n = np.random.default_rng(seed), 6000
    true = (rng.random(n) < share).astype(int)
    score = rng.gumbel(size=n) + 2.5 * true
    return true, (score > np.quantile(score, 1 - predicted)).astype(int)


@pytest.mark.gate
@pytest.mark.parametrize("name", ["precision", "recall", "f1"])
@loop_over(("share", "predicted"), [(0.02, 0.004), (0.05, 0.01), (0.1, 0.1), (0.05, 0.15)])
def test_the_error_of_rare_labels_is_planned_within_a_factor_of_two(name, share, predicted):
    """Of one seeded data set; of 24 others all were planned from 0.82 to 0.97 of what they are."""
    data = rare_labels(share, predicted, 1)
    exact = getattr(sklearn_metrics, f"{name}_score")(*data)
    true = dp.plan_release(name, guess=data, epsilon=1.0).error
    guess = {"guess": exact, "n": 6000, "positives": share, "predicted_positives": predicted}
    planned = dp.plan_release(name, epsilon=1.0, **guess)
    assert 0.5 < planned.error / true < 2
    assert f"{100 * predicted:.3g} % predicted" in planned.assumes


@loop_over("stretch", [1.0, 1.5, 2.0])
@loop_over("share", [0.02, 0.1])
def test_the_range_of_a_rare_log_loss_is_from_calibrated_to_overconfident(stretch, share):
    """Scores of a logistic law, not the normal one that is assumed: of 18 others 14 were in the range, and
    all from 0.86 of its lower to 1.01 of its upper end.
    """
    rng, n = np.random.default_rng(2), 6000
    true = (rng.random(n) < share).astype(int)
    score = rng.logistic(0, 0.5, n) + 2.0 * true
    proba = expit(stretch * (2.0 * (score - 1.0) + np.log(share / (1 - share))))
    found = dp.plan_release("log_loss", guess=(true, proba), epsilon=1.0).error
    exact = sklearn_metrics.log_loss(true, proba)
    planned = dp.plan_release("log_loss", guess=exact, n=n, positives=share, epsilon=1.0)
    low, high = planned.error_range
    assert low / 2 < found < 2 * high
    assert "log odds twice too large" in planned.assumes
