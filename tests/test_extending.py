"""The worked examples "add a metric" and "add a mechanism", which `docs/extending.rst` includes."""

import math
import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import test_common
from helpers import assert_follows, draw_many, loss_bounds, neighbour_pairs

from dp_metrics import (
    LossSummary,
    PrivacyAccountant,
    auditing,
    make_private_scorer,
    private_mae,
    private_mean_loss,
    summaries,
)
from dp_metrics._queries import LossMetric
from dp_metrics._random import check_entropy, uniforms
from dp_metrics._release import Release
from dp_metrics._targets import error_query, mean_error
from dp_metrics.mechanisms._base import ceil_ranks, require_bounded

ROOT = Path(__file__).parents[1]

# [loss]
# losses.py: elementwise ufuncs only, so that a record's loss never depends on the others


def huber_loss(y_true, y_pred):
    """Return half the squared error up to 1, and the absolute error less one half beyond."""
    error = np.abs(y_pred - y_true)
    return np.where(error <= 1.0, error * error / 2, error - 0.5)


# [metric]
# regression.py, with Release from _release.py and mean_error from _targets.py


def private_huber_loss(
    y_true,
    y_pred,
    *,
    epsilon,
    bounds=None,
    sample_weight=None,
    groups=None,
    neighboring="replace_one",
    mechanism="hazard",
    accountant=None,
    random_state=None,
):
    """Mean Huber loss with epsilon-differential privacy for the test records."""
    options = {"sample_weight": sample_weight, "groups": groups}
    release = Release(
        "private_huber_loss", epsilon, mechanism, accountant, random_state, neighboring, **options
    )
    return mean_error(release, huber_loss, y_true, y_pred, bounds=bounds, **options)


# a row of LOSS_METRICS there, with LossMetric from _queries.py: for summaries, and so for Dask
HUBER_LOSS = {"private_huber_loss": LossMetric(partial(error_query, huber_loss))}


# [row]
# tests/test_common.py: a row of the table of metrics, on which every check is tried
HUBER = test_common.Metric(
    private_huber_loss,
    test_common.targets(),
    lambda y_true, y_pred: huber_loss(y_true, y_pred).mean(),
    bounded={"bounds": (-4.0, 4.0)},
    limit=7.5,
)
# [privacy]
# and the exact privacy test, which fails if the claim is false


def test_the_huber_loss_is_private():
    def loss(a, b):
        return auditing.metric_loss(private_huber_loss, [a, 0 * a], [b, 0 * b], epsilon=1.0, bounds=(0, 5))

    found = auditing.audit("private_huber_loss", loss, epsilon=1.0, n=8, cap=5.0, steps=20)
    assert found.passed
    assert found.worst > 0.99


# [mechanism]
# mechanisms/evenly_spaced.py, with check_entropy and uniforms from _random.py


@dataclass(frozen=True)
class EvenlySpaced:
    """Exponential mechanism over evenly spaced outputs, by the number of records that must change.

    Over the real numbers, a release is epsilon-differentially private: the distance of each output changes by
    at most 1 between neighbours, so its weight and the sum of all weights change by at most a factor
    exp(epsilon / 2) each. The draw is a float64: a comparator.
    """

    steps: int = 200

    def count_ranks(self, epsilon, *, n, monotonic, output_range):
        """Return 2 ln(1e12) / epsilon, where the weight of a rank has fallen to 1e-12."""
        require_bounded(output_range, "evenly_spaced")
        return ceil_ranks(2 * math.log(1e12) / float(epsilon), n)

    def release(self, output_bounds, epsilon, rng=None):
        """Draw one epsilon-differentially private release."""
        u, _ = uniforms(check_entropy(rng), 1)
        return float(self.output_distribution(output_bounds, epsilon).quantile(u)[0])

    def output_distribution(self, output_bounds, epsilon):
        """Return the law of `release`."""
        t = np.linspace(*output_bounds.output_range, self.steps + 1)
        too_low = (output_bounds.lower[:, np.newaxis] > t).sum(axis=0)
        too_high = (output_bounds.upper[:, np.newaxis] < t).sum(axis=0)
        distance = (t != output_bounds.value) + too_low + too_high
        weights = np.exp(-float(epsilon) / 2 * (distance - distance.min()))
        return FiniteLaw(t, weights / weights.sum())


# [law]
@dataclass(frozen=True)
class FiniteLaw:
    """The law on finitely many increasing outputs."""

    outputs: np.ndarray
    probabilities: np.ndarray

    def cdf(self, t):
        """Return P(release <= t)."""
        below = np.append(0.0, np.cumsum(self.probabilities))
        return below[np.searchsorted(self.outputs, t, side="right")]

    def quantile(self, p):
        """Return the smallest t with P(release <= t) >= p."""
        found = np.searchsorted(np.cumsum(self.probabilities), p)
        return self.outputs[np.minimum(found, self.outputs.size - 1)]

    def median(self):
        """Return the quantile of 1/2."""
        return float(self.quantile(0.5))

    def mean_absolute_error(self, value, cap=math.inf):
        """Return the expectation of min(abs(release - value), cap)."""
        return float(np.minimum(np.abs(self.outputs - value), cap) @ self.probabilities)


# [proof]
def losses_of_all_neighbours(mechanism, epsilon):
    """Yield the exact privacy loss of every pair of neighbours on a tiny domain."""
    for pair in neighbour_pairs([0.0, 0.1, 0.5, 1.0], 4):
        laws = [mechanism.output_distribution(loss_bounds(x, cap=1.0), epsilon) for x in pair]
        yield auditing.finite_loss(*(law.probabilities for law in laws))


def test_evenly_spaced_outputs_are_private():
    assert 0.5 < max(losses_of_all_neighbours(EvenlySpaced(), 1.0)) <= 1.0 + 1e-12


# [end]


@pytest.mark.parametrize(
    ("check", "arguments"),
    [
        (test_common.test_the_data_are_left_alone, ()),
        (test_common.test_the_order_of_the_records_does_not_matter, (40,)),
        (test_common.test_a_huge_epsilon_approximates_the_metric_without_privacy, (300,)),
        (test_common.test_zero_is_about_zero, ()),
        (test_common.test_values_outside_the_bounds_are_clipped_to_them, ()),
        (test_common.test_without_a_seed_releases_are_fresh_and_do_not_warn, ()),
        (test_common.test_an_accountant_pays_for_each_release_and_refuses_when_it_cannot, ()),
        (test_common.test_only_the_data_are_positional_and_epsilon_has_no_default, ()),
    ],
)
def test_the_row_of_the_new_metric_passes_the_common_checks(check, arguments):
    check(HUBER, *arguments)


def test_the_new_metric_can_be_a_scorer():
    scorer = make_private_scorer(private_huber_loss, epsilon=0.5, greater_is_better=False)
    assert "private_huber_loss" in repr(scorer)


def test_the_new_metric_can_be_summarised(monkeypatch):
    monkeypatch.setitem(summaries._FUNCTIONS, "private_huber_loss", private_huber_loss)
    monkeypatch.setitem(summaries.LOSS_METRICS, "private_huber_loss", HUBER_LOSS["private_huber_loss"])
    error = np.linspace(-3, 3, 1000)
    summary = LossSummary(private_huber_loss).update(error[:400], 0 * error[:400])
    released = summary.update(error[400:], 0 * error[400:]).release(1e9)
    assert released == pytest.approx(huber_loss(error, 0 * error).mean(), rel=1e-5)


def test_a_new_metric_of_losses_needs_no_contribution():
    error = np.linspace(-3, 3, 1000)
    released = private_mean_loss(huber_loss(error, 0 * error), epsilon=1e9)
    assert released == pytest.approx(huber_loss(error, 0 * error).mean(), rel=1e-5)


def test_metrics_take_the_new_mechanism():
    accountant = PrivacyAccountant(1.0)
    released = private_mae(
        [3.0, 1.0], [2.0, 1.0], epsilon=1.0, bounds=(0, 4), mechanism=EvenlySpaced(), accountant=accountant
    )
    assert released in np.linspace(0, 4, 201)
    assert accountant.remaining == 0
    with pytest.raises(ValueError, match="evenly_spaced"):
        private_mae([3.0], [2.0], epsilon=1.0, mechanism=EvenlySpaced())


def test_the_new_mechanism_draws_from_its_law():
    bounds, mechanism = loss_bounds([0.1, 0.2, 0.9, 0.4], cap=1.0), EvenlySpaced(steps=20)
    law = mechanism.output_distribution(bounds, 2.0)
    assert_follows(draw_many(mechanism, bounds, 2.0, 2000, seed=1), law)
    assert law.mean_absolute_error(bounds.value) < 0.2
    assert 0.2 <= law.median() <= 0.6


def test_a_mechanism_that_forgets_the_sum_of_the_weights_is_caught():
    class Forgetful(EvenlySpaced):
        def output_distribution(self, output_bounds, epsilon):
            return super().output_distribution(output_bounds, 2 * epsilon)

    assert max(losses_of_all_neighbours(Forgetful(), 1.0)) > 1.0


def test_python_in_the_guide_for_contributors_stands_in_this_file():
    source = Path(__file__).read_text(encoding="utf-8")
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for block in re.findall(r"```python\n(.*?)```", guide, flags=re.DOTALL):
        assert block.strip() in source
