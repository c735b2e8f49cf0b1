import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from helpers import assert_follows
from sklearn import metrics

import dp_metrics as dp
from dp_metrics import AboveThreshold, Hazard, private_log_loss
from dp_metrics._random import SeededEntropy
from dp_metrics.analysis.simulation import loss_output_bounds
from dp_metrics.mechanisms import get_mechanism

EXACT = {"epsilon": 1e11}


def release(y, p, **settings):
    return private_log_loss(y, p, **{"random_state": SeededEntropy(0), **settings})


def binary(n=300, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.5, 0.5, n)
    return (rng.random(n) < p).astype(int), p


def multiclass(n=300, classes=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, classes, n), rng.dirichlet(np.ones(classes), n)


def test_one_column_holds_the_probability_of_the_second_label():
    y, p = binary()
    expected = metrics.log_loss(y, p)
    for form in (p, p[:, np.newaxis], np.column_stack([1 - p, p]), pd.Series(p)):
        assert release(y, form, **EXACT) == pytest.approx(expected, rel=1e-6)
    assert release(1 - y, 1 - p, **EXACT) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_columns_are_the_labels_in_sorted_order(classes):
    y, p = multiclass(classes=classes)
    expected = metrics.log_loss(y, p, labels=range(classes))
    assert release(y, p, **EXACT) == pytest.approx(expected, rel=1e-6)
    names = np.array([f"class {i:02d}" for i in range(classes)])
    for labels in (names, names.tolist(), pd.Series(names), tuple(names)):
        assert release(names[y], p, labels=labels, **EXACT) == pytest.approx(expected, rel=1e-6)
    assert release(y * 10 - 5, p, labels=np.arange(classes) * 10 - 5, **EXACT) == pytest.approx(
        expected, rel=1e-6
    )


def test_binary_labels_may_be_strings_or_booleans():
    y, p = binary()
    expected = release(y, p, epsilon=1.0)
    assert release(np.array(["no", "yes"])[y], p, labels=["no", "yes"], epsilon=1.0) == expected
    assert release(y.astype(bool), p, epsilon=1.0) == expected
    assert (
        release(np.array(["no", "yes"], dtype=object)[y].tolist(), p, labels=["no", "yes"], epsilon=1.0)
        == expected
    )


def test_labels_are_never_inferred_from_y_true():
    p = [0.2, 0.9, 0.6]
    for y in ([1, 1, 1], [0, 0, 0]):
        assert release(y, p, **EXACT) == pytest.approx(metrics.log_loss(y, p, labels=[0, 1]), rel=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_probabilities_are_clipped_as_scikit_learn_clips_them(dtype):
    y, p = np.array([0, 1, 0, 1] * 50), np.array([1.0, 0.0, 0.25, 0.75] * 50, dtype=dtype)
    expected = metrics.log_loss(y, p)
    assert release(y, p, **EXACT) == pytest.approx(expected, rel=1e-3 if dtype == np.float16 else 1e-6)
    limit = -math.log(np.finfo(dtype).eps)
    wrong = release([0] * 200, np.ones(200, dtype=dtype), **EXACT)
    assert wrong == pytest.approx(limit, rel=1e-6)
    assert wrong <= limit


def test_a_smaller_public_cap_clips_the_losses():
    y, p = binary()
    losses = -np.log(np.where(y == 1, p, 1 - p))
    released = release(y, p, max_loss=0.7, **EXACT)
    assert released == pytest.approx(np.minimum(losses, 0.7).mean(), rel=1e-6)
    assert all(
        release(y, p, max_loss=0.7, epsilon=1e-9, random_state=SeededEntropy(i)) <= 0.7 for i in range(20)
    )


def test_the_sum_is_the_mean_times_the_public_n():
    y, p = binary(37)
    for epsilon in (0.5, 1e11):
        assert release(y, p, normalize=False, epsilon=epsilon) == 37 * release(y, p, epsilon=epsilon)
    assert type(release(y, p, normalize=False, epsilon=1.0)) is float


def test_rows_that_do_not_sum_to_one_are_used_as_they_are_and_nobody_is_told():
    y, p = multiclass(classes=3)
    expected = -np.log(np.clip(p[np.arange(len(y)), y] / 2, 2.3e-16, 1)).mean()
    assert release(y, p / 2, **EXACT) == pytest.approx(expected, rel=1e-6)


def test_only_the_probability_of_the_true_label_matters():
    y, p = multiclass(classes=3)
    other = np.random.default_rng(1).random(p.shape)
    other[np.arange(len(y)), y] = p[np.arange(len(y)), y]
    assert release(y, other, epsilon=1.0) == release(y, p, epsilon=1.0)


def test_a_release_follows_the_law_of_its_output_bounds():
    y, p = binary(60)
    losses = -np.log(np.where(y == 1, p, 1 - p))
    for mechanism in (Hazard(), "laplace"):
        entropy = SeededEntropy(4)
        samples = [
            release(y, p, max_loss=5.0, epsilon=1.0, mechanism=mechanism, random_state=entropy)
            for _ in range(500)
        ]
        chosen = get_mechanism(mechanism)
        bounds = loss_output_bounds(np.minimum(losses, 5.0), max_loss=5.0, mechanism=chosen, epsilon=1.0)
        assert_follows(np.array(samples), chosen.output_distribution(bounds, 1.0))


def test_the_paper_preset_takes_cross_entropy_as_a_sum_if_told_its_unit():
    # candidates are (1.005^i - 1) / n: releases times n are on the paper's grid
    y, p = binary(50)
    paper = AboveThreshold.paper(unit=1 / 50)
    for seed in range(20):
        released = release(y, p, epsilon=1.0, mechanism=paper, random_state=SeededEntropy(seed))
        steps = math.log1p(released * 50) / math.log(1.005)
        assert steps == pytest.approx(round(steps), abs=1e-6)
        assert steps > 0.5


FORMS = {
    "lists of strings": (["a", "b", "c", "a"], ["a", "b", "b", "a"]),
    "mixed types": (["a", 1, Decimal(3), 2], ["b", 1.0, 3, 2]),
    "integers": (np.array([0, 1, 2, 0]), np.array([0, 1, 1, 0])),
    "whole floats and integers": (np.array([0.0, 1, 2, 0]), np.array([0, 1, 1, 0])),
    "strings in arrays": (np.array(["a", "bb", "c", "a"]), np.array(["a", "bb", "b", "a"])),
    "categories": (pd.Series(["a", "b", "c", "a"], dtype="category"), ["a", "b", "b", "a"]),
    "nullable": (pd.Series([0, 1, 2, 0], dtype="Int64"), pd.Series([0, 1, 1, 0], dtype="Int64")),
    "pandas strings": (pd.Series(["a", "b", "c", "a"], dtype="string"), ["a", "b", "b", "a"]),
    "booleans": ([True, False, True, True], [1, 0, 0, 1]),
    "columns": (np.array([[0], [1], [2], [0]]), [0, 1, 1, 0]),
    "several outputs": ([[0, 1], [1, 1], [1, 0], [0, 0]], [[0, 1], [1, 1], [1, 1], [0, 0]]),
}


@pytest.mark.parametrize("form", FORMS)
def test_labels_of_any_kind(form):
    y_true, y_pred = FORMS[form]
    assert dp.private_zero_one_loss(y_true, y_pred, epsilon=1e6) == 0.25
    assert dp.private_accuracy_score(y_true, y_pred, epsilon=1e6) == 0.75
    assert dp.private_accuracy_score(y_true, y_pred, epsilon=1e6, normalize=False) == 3


def test_one_label_cannot_change_how_another_is_read():
    # np.asarray of [1, 2, "x"] would turn 1 and 2 into strings, and every record into an error
    assert dp.private_zero_one_loss([1, 2, "x"], [1, 2, "y"], epsilon=1e6) == pytest.approx(1 / 3)
    assert dp.private_zero_one_loss([1, 2, "x"], np.array([1, 2, "y"], dtype=object), epsilon=1e6) < 0.4


def test_brier_score_loss_agrees_with_scikit_learn():
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 2, 200), rng.random(200)
    names = np.where(y == 1, "spam", "ham")
    options = {"epsilon": 1e9}
    expected = metrics.brier_score_loss(y, p)
    assert dp.private_brier_score_loss(y, p, **options) == pytest.approx(expected)
    assert dp.private_brier_score_loss(y, p[:, np.newaxis], **options) == pytest.approx(expected)
    assert dp.private_brier_score_loss(y, 1 - p, pos_label=0, **options) == pytest.approx(expected)
    assert dp.private_brier_score_loss(names, p, labels=["ham", "spam"], **options) == pytest.approx(expected)
    columns = np.column_stack([1 - p, p])
    assert dp.private_brier_score_loss(y, columns, **options) == pytest.approx(expected)
    assert dp.private_brier_score_loss(y, columns, scale_by_half=False, **options) == pytest.approx(
        2 * expected
    )
    assert dp.private_brier_score_loss(y, p, scale_by_half=False, **options) == pytest.approx(2 * expected)
    labels, proba = rng.integers(0, 3, 200), rng.dirichlet([1, 1, 1], 200)
    expected = ((proba - np.eye(3)[labels]) ** 2).sum(axis=1).mean()
    assert dp.private_brier_score_loss(labels, proba, **options) == pytest.approx(expected)
