"""An accuracy's interval: from results and from numbers, and what it refuses."""

import numpy as np
import pytest
from helpers import loop_over

import dp_metrics as dp
from dp_metrics.release.noisy_binomial import noisy_binomial_limits

TRUE = np.arange(1000) % 2
PREDICTED = np.where(np.arange(1000) < 872, TRUE, 1 - TRUE)
SCORES = np.stack([1 - PREDICTED, PREDICTED, np.full(1000, 0.5)], axis=1)
HUGE = {"epsilon": 1000.0}  # at which the noise is 0


def test_a_share_with_its_public_numbers():
    interval = dp.accuracy_interval(0.872, n=1000, epsilon=1.0)
    assert [f"{end:.5f}" for end in interval] == ["0.84952", "0.89225"]
    assert (interval.estimate, interval.confidence, interval.note) == (0.872, 0.95, "")
    assert interval.about.endswith("from whom the records were drawn independently.")
    assert dp.accuracy_interval(1, n=1000, epsilon=1).upper == 1.0
    sure = dp.accuracy_interval(0.872, n=1000, epsilon=1.0, confidence=0.99)
    assert sure.lower < interval.lower < interval.upper < sure.upper


@loop_over("n", [3, 7, 1000, 999_983])
def test_every_share_of_whole_numbers_is_recognised_and_no_other(n):
    for count in {0, 1, n // 3, n // 2, n - 1, n}:
        for share in (count / n, 1.0 - (n - count) / n):
            assert dp.accuracy_interval(share, n=n, epsilon=1.0).estimate == count / n
        off = (count + 0.01) / n
        with pytest.raises(ValueError, match=r"times n is no whole number|from 0 to 1"):
            dp.accuracy_interval(off, n=n, epsilon=1.0)


@loop_over("normalize", [True, False])
@loop_over(
    ("metric", "predictions", "share"),
    [
        (dp.private_accuracy_score, PREDICTED, 0.872),
        (dp.private_zero_one_loss, PREDICTED, 0.128),
        (dp.private_top_k_accuracy_score, SCORES, 0.872),
    ],
)
def test_results_know_all_that_is_needed(metric, predictions, share, normalize):
    options = {"labels": [0, 1, 2]} if metric is dp.private_top_k_accuracy_score else {}
    result = dp.with_result(metric)(TRUE, predictions, normalize=normalize, **options, **HUGE)
    interval = dp.accuracy_interval(result)
    assert interval.estimate == share
    expected = noisy_binomial_limits(round(1000 * share), 1000, 1000.0, miss_low=0.025, miss_high=0.025)
    assert (interval.lower, interval.upper) == expected
    assert ("wrong" in interval.about) == (metric is dp.private_zero_one_loss)


def test_a_single_record_that_is_counted_is_no_share_of_one():
    """With normalize=False a result of 1 is one record of many, and not all of them."""
    predicted = np.r_[TRUE[:1], 1 - TRUE[1:]]
    result = dp.with_result(dp.private_accuracy_score)(TRUE, predicted, normalize=False, **HUGE)
    assert result.value == pytest.approx(1.0)
    assert dp.accuracy_interval(result).estimate == 0.001
