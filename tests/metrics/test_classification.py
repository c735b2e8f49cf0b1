"""Losses of probabilities and shares of labels: what columns, labels and types mean."""

import math

import numpy as np
import pytest
from helpers import loop_over, seeded
from sklearn import metrics as sk

import dp_metrics as dp

EXACT = {"epsilon": 1e11}


def release(y, p, metric=dp.private_log_loss, **settings):
    return metric(y, p, **{"random_state": seeded(), **settings})


def binary(n=300):
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 0.5, n)
    return (rng.random(n) < p).astype(int), p


def multiclass(n=300, classes=3):
    rng = np.random.default_rng(0)
    return rng.integers(0, classes, n), rng.dirichlet(np.ones(classes), n)


def near(value, rel=1e-6):
    return pytest.approx(value, rel=rel)


def test_an_area_follows_from_the_order_of_the_scores_in_the_second_column():
    y, p = binary()
    score = p.round(1)  # with ties
    for shaped in (
        np.stack([7.0 * np.arange(300), score], axis=1),
        (10 * score).round().astype(int),
        np.exp(600 * (score - 1)),  # any change that is monotone, far into the small numbers
    ):
        found = release(y, shaped, metric=dp.private_roc_auc_score, **EXACT)
        assert found == near(sk.roc_auc_score(y, score))


@loop_over("dtype", [np.float16, np.float32, np.float64])
def test_probabilities_are_clipped_as_scikit_learn_clips_them(dtype):
    y, p = np.array([0, 1, 0, 1] * 50), np.array([1.0, 0.0, 0.25, 0.75] * 50, dtype=dtype)
    assert release(y, p, **EXACT) == near(sk.log_loss(y, p), rel=1e-3 if dtype == np.float16 else 1e-6)
    limit = -math.log(np.finfo(dtype).eps)
    wrong = release([0] * 200, np.ones(200, dtype=dtype), **EXACT)
    assert wrong == near(limit)
    assert wrong <= limit


def test_only_the_probability_of_the_true_label_matters_and_rows_need_not_sum_to_one():
    y, p = multiclass()
    rows = np.arange(len(y))
    expected = -np.log(np.clip(p[rows, y] / 2, 2.3e-16, 1)).mean()
    assert release(y, p / 2, **EXACT) == near(expected)
    other = np.random.default_rng(1).random(p.shape)
    other[rows, y] = p[rows, y]
    assert release(y, other, epsilon=1.0) == release(y, p, epsilon=1.0)


def test_the_paper_preset_takes_cross_entropy_as_a_sum_if_told_its_unit():
    # candidates are (1.005^i - 1) / n: releases times n are on the paper's grid
    y, p = binary(50)
    paper = dp.mechanisms.AboveThreshold.paper(unit=1 / 50)
    for seed in range(20):
        released = release(y, p, epsilon=1.0, mechanism=paper, random_state=seeded(seed))
        steps = math.log1p(released * 50) / math.log(1.005)
        assert steps == pytest.approx(round(steps), abs=1e-6)
        assert steps > 0.5
