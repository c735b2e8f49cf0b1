"""Planning an interval for all people: releases of so many records have about the width asked for."""

from functools import partial

import numpy as np
import pytest
from cases import PRIVATE_N
from helpers import loop_over

import dp_metrics as dp
from dp_metrics import plan_release

CASES = {
    "recall": ("recall", dp.private_recall_score, 0.3, {}),
    "recall, private n": (dp.private_recall_score, dp.private_recall_score, 0.3, PRIVATE_N),
    "precision": ("precision", dp.private_precision_score, 0.3, {}),
    "accuracy": ("accuracy", dp.private_accuracy_score, None, {}),
    "accuracy, private n": ("accuracy", dp.private_accuracy_score, None, PRIVATE_N),
}


def records(metric, n, guess, share, rng):
    """Return labels of which so many count for the metric, and its value is about the guess."""
    true, said = np.zeros(n, dtype=int), np.zeros(n, dtype=int)
    if share is None:
        true[:] = said[:] = 1
        said[rng.random(n) >= guess] = 0
        return true, said
    counting = rng.random(n) < share
    right = rng.random(n) < guess
    true[counting] = 1
    said[counting & right] = 1
    return (said, true) if metric is dp.private_precision_score else (true, said)


@pytest.mark.gate
@loop_over("name", CASES)
@loop_over(("width", "epsilon", "guess"), [(0.1, 1.0, 0.9), (0.2, 0.3, 0.6)])
def test_the_width_is_about_what_was_asked_for(name, width, epsilon, guess):
    asked, metric, share, options = CASES[name]
    plan = partial(plan_release, asked, guess=guess, positives=share, **options)
    n, rng, widths = plan(epsilon=epsilon, width=width).n, np.random.default_rng(0), []
    for _ in range(12):
        true, said = records(metric, n, guess, share, rng)
        lower, upper = dp.with_result(metric)(true, said, epsilon=epsilon, **options).population_interval()
        widths.append(upper - lower)
    assert np.mean(widths) == pytest.approx(width, rel=0.1)
    assert plan(epsilon=epsilon, n=n // 2).width < 2 * width
    assert plan(epsilon=epsilon / 3, n=n).width > width


def test_a_plan_tells_the_epsilon_for_a_width_and_a_wider_interval_needs_less():
    asked = {"guess": 0.9, "positives": 0.2, "width": 0.1}
    plan = plan_release("recall", **asked, n=2000)
    assert (
        plan.width
        <= 0.1
        < plan_release("recall", **{**asked, "width": None}, n=2000, epsilon=0.5 * plan.epsilon).width
    )
    assert plan_release("recall", **asked, n=2000, confidence=0.8).epsilon < plan.epsilon
