"""The interval of a share of records among all people."""

import numpy as np
import pytest
from helpers import loop_over, seeded
from scipy.stats import binomtest
from sklearn import metrics as sk

import dp_metrics as dp
from dp_metrics.release.count_limits import noisy_binomial_limits

TRUE = np.arange(1000) % 2
PREDICTED = np.where(np.arange(1000) < 872, TRUE, 1 - TRUE)
SCORES = np.stack([1 - PREDICTED, PREDICTED, np.full(1000, 0.5)], axis=1)
HUGE = {"epsilon": 1000.0}  # at which the noise is 0


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
def test_a_share_is_between_the_limits_of_a_noisy_binomial_count(metric, predictions, share, normalize):
    options = {"labels": [0, 1, 2]} if metric is dp.private_top_k_accuracy_score else {}
    for epsilon, confidence in ((1000.0, 0.95), (1.0, 0.95), (1.0, 0.99)):
        public = {"epsilon": epsilon, "random_state": seeded(), "normalize": normalize, **options}
        result = dp.with_result(metric)(TRUE, predictions, **public)
        released = result.value if normalize else result.value / 1000
        interval = result.population_interval(confidence)
        assert (interval.estimate, interval.confidence, interval.note) == (released, confidence, "")
        assert epsilon == 1.0 or released == share
        expected = noisy_binomial_limits(round(1000 * released), 1000, epsilon, (1 - confidence) / 2)
        assert tuple(interval) == pytest.approx(expected, rel=1e-12)
        assert ("wrong" in interval.about) == (metric is dp.private_zero_one_loss)
        assert interval.about.endswith(
            "from whom the records were drawn independently. These limits are sure."
        )


@loop_over("normalize", ["true", "pred", "all"])
def test_each_share_of_a_matrix_has_the_limits_of_a_binomial_count_and_all_hold_at_once(normalize):
    result = dp.with_result(dp.private_confusion_matrix)(TRUE, PREDICTED, normalize=normalize, **HUGE)
    interval = result.population_interval()
    counts = sk.confusion_matrix(TRUE, PREDICTED)
    of = np.rint(counts / sk.confusion_matrix(TRUE, PREDICTED, normalize=normalize))
    for at, count in np.ndenumerate(counts):
        exact = binomtest(int(count), int(of[at])).proportion_ci(1 - 0.05 / 4)
        # where the total is noisy too, a little of the miss is kept for that
        assert exact.low - 1e-3 <= interval.lower[at] <= exact.low + 1e-6
        assert exact.high - 1e-6 <= interval.upper[at] <= exact.high + 1e-3
    assert interval.about.endswith("These limits are sure.")
