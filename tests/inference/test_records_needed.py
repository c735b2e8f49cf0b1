"""Planning an interval for all people: releases of so many records have about the width asked for."""

from functools import partial

import numpy as np
import pytest
from cases import PRIVATE_N
from helpers import loop_over

import dp_metrics as dp
from dp_metrics import records_needed

CASES = {
    "recall": ("recall", dp.private_recall_score, 0.3, {}),
    "recall, private n": (dp.private_recall_score, dp.private_recall_score, 0.3, PRIVATE_N),
    "f1": ("f1", dp.private_f1_score, 0.4, {}),
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
    right = rng.random(n) < (guess / (2 - guess) if metric is dp.private_f1_score else guess)
    true[counting] = 1
    said[counting & right] = 1
    return true, said


@pytest.mark.gate
@loop_over("name", CASES)
@loop_over(("width", "epsilon", "guess"), [(0.1, 1.0, 0.9), (0.2, 0.3, 0.6)])
def test_the_width_is_about_what_was_asked_for(name, width, epsilon, guess):
    asked, metric, share, options = CASES[name]
    n = records_needed(asked, width=width, epsilon=epsilon, guess=guess, positives=share, **options)
    rng, widths = np.random.default_rng(0), []
    for _ in range(12):
        true, said = records(metric, n, guess, share, rng)
        lower, upper = dp.with_result(metric)(true, said, epsilon=epsilon, **options).population_interval()
        widths.append(upper - lower)
    assert np.mean(widths) == pytest.approx(width, rel=0.1)
    fewer = records_needed(asked, width=2 * width, epsilon=epsilon, guess=guess, positives=share, **options)
    more = records_needed(asked, width=width, epsilon=epsilon / 3, guess=guess, positives=share, **options)
    assert fewer < n / 2
    assert n < more


def test_all_labels_at_once_need_more():
    ask = partial(records_needed, width=0.1, epsilon=1.0, guess=0.9, positives=0.2)
    each = partial(dp.private_recall_score, average=None, labels=range(5))
    assert ask(each) > ask("recall") > ask("recall", confidence=0.8)
