"""The interval of a share of records among all people."""

import numpy as np
import pytest
from helpers import loop_over, seeded

import dp_metrics as dp
from dp_metrics.release.count_limits import noisy_binomial_limits

TRUE = np.arange(1000) % 2
PREDICTED = np.where(np.arange(1000) < 872, TRUE, 1 - TRUE)
SCORES = np.stack([1 - PREDICTED, PREDICTED, np.full(1000, 0.5)], axis=1)
HUGE = {"epsilon": 1000.0}  # at which the noise is 0


def test_a_share_is_between_the_limits_of_a_noisy_binomial_count():
    result = dp.with_result(dp.private_accuracy_score)(TRUE, PREDICTED, epsilon=1.0, random_state=seeded())
    count = round(1000 * result.value)
    for confidence in (0.95, 0.99):
        each = (1 - confidence) / 2
        expected = noisy_binomial_limits(count, 1000, 1.0, each)
        assert tuple(result.population_interval(confidence)) == pytest.approx(expected)
    interval = result.population_interval()
    assert (interval.estimate, interval.confidence, interval.note) == (result.value, 0.95, "")
    assert interval.about.endswith("from whom the records were drawn independently. These limits are sure.")
    known = noisy_binomial_limits(872, 1000, 1.0, 0.025)
    assert known == pytest.approx((0.84952, 0.89225), abs=5e-6)


@loop_over("normalize", [True, False])
@loop_over(
    ("metric", "predictions", "share"),
    [
        (dp.private_accuracy_score, PREDICTED, 0.872),
        (dp.private_zero_one_loss, PREDICTED, 0.128),
        (dp.private_top_k_accuracy_score, SCORES, 0.872),
        # one record of many, where 1 is not all of them
        (dp.private_accuracy_score, np.r_[TRUE[:1], 1 - TRUE[1:]], 0.001),
    ],
)
def test_results_know_all_that_is_needed(metric, predictions, share, normalize):
    options = {"labels": [0, 1, 2]} if metric is dp.private_top_k_accuracy_score else {}
    result = dp.with_result(metric)(TRUE, predictions, normalize=normalize, **options, **HUGE)
    interval = result.population_interval()
    assert interval.estimate == share
    expected = noisy_binomial_limits(round(1000 * share), 1000, 1000.0, 0.025)
    assert (interval.lower, interval.upper) == pytest.approx(expected, rel=1e-12)
    assert ("wrong" in interval.about) == (metric is dp.private_zero_one_loss)
