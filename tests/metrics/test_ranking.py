"""The private area under the ROC curve: scores and labels beside scikit-learn's, and its scorers."""

import numpy as np
import pandas as pd
import pytest
from helpers import loop_over, seeded
from sklearn.metrics import roc_auc_score

import dp_metrics as dp

NO_NOISE = {"epsilon": 1e11}
RNG = np.random.default_rng(0)
Y = (np.arange(300) % 4 == 0).astype(int)
SCORE = RNG.normal(Y).round(1)  # with ties
Y3 = np.arange(300) % 3
SCORE3 = RNG.normal(np.eye(3)[Y3]).round(1)


def without_noise(*data, **options):
    return dp.private_roc_auc_score(*data, random_state=seeded(), **NO_NOISE, **options)


def near(value):
    return pytest.approx(value, abs=1e-6)


def test_scores_in_every_shape_give_the_area_of_scikit_learn():
    for shaped in (
        SCORE[:, np.newaxis],
        np.stack([-SCORE, SCORE], axis=1),
        np.stack([7.0 * np.arange(300), SCORE], axis=1),  # only the second column counts
        (10 * SCORE).round().astype(int),
        np.exp(100 * (SCORE - SCORE.max())),  # any monotone change, far into the small numbers
    ):
        assert without_noise(Y, shaped) == near(roc_auc_score(Y, SCORE))


@loop_over("labels", [["no", "yes"], ["yes", "no"], [False, True], [-1, 1], [2, 10]])
def test_the_second_of_two_labels_in_sorted_order_is_the_positive_one(labels):
    y, is_sorted = np.array(sorted(labels))[Y], labels == sorted(labels)
    score = SCORE if is_sorted else pd.DataFrame({"yes": SCORE, "no": -SCORE})
    assert without_noise(y, score, labels=labels) == near(roc_auc_score(y, SCORE))


@loop_over("labels", [None, [0, 1, 2], [2, 0, 1]])
def test_of_several_labels_each_is_judged_against_the_rest(labels):
    expected = [roc_auc_score(k == Y3, SCORE3[:, k]) for k in range(3)]
    score = SCORE3 if labels is None else pd.DataFrame(SCORE3, columns=["0", "1", "2"])
    areas = without_noise(Y3, score, multi_class="ovr", average=None, labels=labels)
    np.testing.assert_allclose(areas, expected, atol=1e-6)
    assert without_noise(Y3, score, multi_class="ovr", labels=labels) == near(np.mean(expected))
    drawn = dp.with_result(dp.private_roc_auc_score)(Y3, SCORE3, epsilon=1.0, multi_class="ovr").drawn
    assert len(drawn["positives"]) == 3


@loop_over("neighboring", ["replace_one", "add_or_remove_one"])
def test_one_class_alone_has_an_area_of_a_half_and_so_has_no_record(neighboring):
    for y in (np.zeros(60), np.ones(60)):
        assert without_noise(y, SCORE[:60], neighboring=neighboring) == near(0.5)
    if neighboring != "replace_one":
        for empty in ([], np.empty((0, 2))):
            assert without_noise([], empty, neighboring=neighboring) == near(0.5)
        several = {"labels": ["a", "b", "c"], "multi_class": "ovr", "average": None}
        assert without_noise([], [], neighboring=neighboring, **several).shape == (3,)
