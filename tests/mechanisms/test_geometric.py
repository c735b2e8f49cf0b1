"""The geometric mechanism: its lattices and noise, sums, and a mean that is drawn with its spread."""

import itertools
import math
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from helpers import OfWhole, assert_follows, loop_over, loss_bounds, loss_query
from hypothesis import given, strategies as st

import dp_metrics as dp
from dp_metrics._random import SeededEntropy
from dp_metrics.mechanisms import Geometric, geometric
from dp_metrics.mechanisms._laws import Staircase
from dp_metrics.mechanisms.geometric import SpreadLaw, noise_cells
from dp_metrics.sensitivity.output_bounds import FINENESS


def test_rounding_to_the_lattice_costs_one_step_more_and_no_epsilon():
    # a lattice of 1.1 million steps has no whole number of them in the sensitivity, 10/11 of the range
    weights, worst = np.array([1.0, 0.1]), Fraction(0)
    for other in np.linspace(0, 1, 40):
        queries = (loss_query(np.array([x, other]), 1.0, weights) for x in (0.0, 1.0))
        a, b = (Geometric().output_distribution(one.output_bounds(Geometric()), 1.0) for one in queries)
        worst = max(worst, Fraction(abs(a.centre - b.centre), a.added.steps))
    assert worst == 1


@loop_over("rate", [1e-300, 1e-7, 0.02, 0.3, 1.0, 3.0, 10.0, 1e4])
def test_cells_of_noise_have_its_size_and_whole_numbers_where_these_are_likely(rate):
    numbers, mass = noise_cells(rate, 32, 12)
    assert np.isfinite(numbers).all()
    assert mass.sum() == pytest.approx(1, rel=1e-12)
    assert (np.diff(numbers) > 0).all()
    np.testing.assert_array_equal(numbers, -numbers[::-1])
    assert np.sum(mass * np.abs(numbers)) == pytest.approx(Staircase(max(rate, 1e-250)).expected, rel=1e-9)
    if rate >= math.log(2):
        p = math.tanh(rate / 2) * np.exp(-rate * np.abs(numbers))
        inner = slice(1, -1)  # the last ones stand for all beyond
        np.testing.assert_array_equal(numbers[inner], np.rint(numbers[inner]))
        np.testing.assert_allclose(mass[inner], p[inner], rtol=1e-9)
        assert mass[0] < 2.0**-11 / 32


def test_the_place_on_the_lattice_is_exact_where_the_range_does_not_begin_at_0():
    low, high, none = -0.3, 3.3, np.empty(0)
    public = replace(loss_bounds([0.0, 1.0], cap=1.0), lower=none, upper=none, sensitivity=1e-9)
    generator, moved = random.Random(0), 0
    for _ in range(2000):
        value = generator.uniform(low, high)
        law = Geometric().output_distribution(replace(public, output_range=(low, high), value=value), 1.0)
        scale = law.grid.last / (Fraction(high) - Fraction(low))
        exact, floats = (
            math.floor(place * scale + Fraction(1, 2))
            for place in (Fraction(value) - Fraction(low), Fraction(value - low))
        )
        assert law.centre == exact
        moved += exact != floats
    assert moved  # a place made of floats is another one now and then


# ---- a mean that is drawn with its spread ------------------------------------------------------------------

TINY = 5e-324


def spread_of(values, cap=1.0):
    return Fraction(loss_query(values, cap).stats(0).spread, len(values) << 36)


def law_of(values, cap=1.0, epsilon=Fraction(1)):
    law = loss_query(values, cap).prepare(Geometric(), epsilon).law()
    assert isinstance(law, SpreadLaw)
    return law


CAPS = st.floats(TINY, 1e308) | st.sampled_from([TINY, 0.1, 1.0, 3.3, 2.0**-1030])
PARTS = st.floats(0, 1) | st.floats(0, 1).map(lambda v: v**30) | st.floats(0, 1).map(lambda v: 1 - v**30)


@given(CAPS, st.lists(PARTS, min_size=1, max_size=8))
def test_the_spread_lies_below_both_a_number_and_what_is_left_of_it(cap, parts):
    """Exactly, and just below their product.

    So u + s(u) and u - s(u) lie between 0 and 1: a record moves both together by no more than the mean alone.
    """
    values = [min(part * cap, cap) for part in parts]
    alone = [spread_of([value], cap) for value in values]
    for value, spread in zip(values, alone, strict=True):
        v = Fraction(value) / Fraction(cap)
        assert 0 <= spread <= min(v, 1 - v)
        assert abs(spread - v * (1 - v)) <= Fraction(1 + 2.0**-16) / (1 << 36)
    assert spread_of(values, cap) == sum(alone) / len(alone)


@loop_over("distance", [2.0**-36, 3 * 2.0**-36, 2.0**-27, 2.0**-17])
@loop_over("cap", [1.0, 0.1, 3.3])
def test_no_spread_is_rounded_above_the_distance_from_either_end(distance, cap):
    for end in (distance * cap, cap - distance * cap):
        values = end * (1 + np.arange(-300, 300) * 2.0**-52)
        for value in values[values <= cap].tolist():
            v = Fraction(value) / Fraction(cap)
            assert spread_of([value], cap) <= min(v, 1 - v)


@loop_over("n", [1, 2, 3, 10])
def test_neighbours_move_by_no_more_steps_than_the_noise_allows(n):
    """Rounding both numbers can cost a step; one more is for what a float may be off."""
    rng, moved = np.random.default_rng(n), []
    for _ in range(100):
        rest = rng.random(n - 1).tolist()
        a, b = (law_of([x, *rest]) for x in (rng.random() / FINENESS, 1.0))
        assert 1 / a.added.epsilon == 1 / b.added.epsilon == FINENESS + 2
        moved.append(abs(a.centre - b.centre) + abs(a.place - b.place))
    assert max(moved) == FINENESS + (n > 1)


def joint_logs(law):
    """Return the log probability of each place of the mean, in rows, and of the spread: all that matter."""
    reached = law.index_cdf(np.arange(-1, law.grid.last + 1))
    size, added = -np.abs(np.arange(-60.0, 60.0) - law.place), law.of_spread
    of_spread = added.cdf(size) - added.cdf(size - 1)
    return np.log(np.diff(reached))[:, np.newaxis] + np.log(of_spread)


def largest_loss(values, epsilon=Fraction(1)):
    """Return the loss of all pairs of neighbours of two records with these values."""
    worst = 0.0
    for z in values[:4]:
        logs = [joint_logs(law_of([one, z], epsilon=epsilon)) for one in values]
        worst = max(worst, *(float(np.abs(a - b).max()) for a, b in itertools.combinations(logs, 2)))
    return worst


@pytest.mark.parametrize(
    ("epsilon", "finenesses", "patched", "defects"),
    [
        (
            Fraction(1), (2, 5), geometric,
            # the noise of a mean alone, and that of two numbers whose rounding costs nothing
            {"_noise": [lambda _, epsilon, change: Staircase(epsilon, change),
                        lambda _, epsilon, change: Staircase(epsilon / (change - 1), 1)]},
        ),
        (
            Fraction(5, 2), (8, 11), geometric,
            # the spread has too much of epsilon, or is taken to move by less than it does
            {"spread_noise": [lambda of_mean, epsilon: Staircase(epsilon / 5, -(-of_mean.steps // 4)),
                              lambda of_mean, epsilon: Staircase(epsilon / 8, max(of_mean.steps // 8, 1))]},
        ),
    ],
    ids=["together", "each its own"],
)  # fmt: skip
def test_the_joint_law_of_neighbours_on_a_small_lattice(epsilon, finenesses, patched, defects, monkeypatch):
    values = [*np.random.default_rng(0).random(12).tolist(), 0.0, 0.5, 1.0]
    for fineness in finenesses:
        monkeypatch.setattr(geometric, "FINENESS", fineness)
        assert largest_loss(values, epsilon) <= epsilon * (1 + 1e-9)
        ((name, several),) = defects.items()
        for defect in several:
            with monkeypatch.context() as planted:
                planted.setattr(patched, name, defect)
                assert largest_loss(values, epsilon) > 1.04 * epsilon


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(5, 2)])
def test_both_numbers_have_noise_of_their_own_with_the_stated_law(epsilon):
    """A false alarm once in 300,000, in each of three tests."""
    law, entropy = law_of(np.linspace(0, 1, 30), epsilon=epsilon), SeededEntropy(0)
    drawn = [law.release(entropy) for _ in range(1500)]
    means, spreads = np.array([(mean, also["spread"]) for mean, also in drawn]).T
    assert_follows(means, law)
    noise, added = np.rint(spreads * law.grid.last) - law.place, law.of_spread
    assert_follows(noise, OfWhole(added.cdf))
    assert abs(np.corrcoef(means, noise)[0, 1]) < 5 / math.sqrt(1500)


def test_the_price_of_the_spread():
    """As the module says: 0.4 % at 0.3, 4 % at 1, 18 % at 2."""
    mean = loss_query(np.zeros(1000), 1.0)
    facts = mean.quantity.facts(mean.totals, 1)
    for epsilon, stated in ((0.1, 0.0004), (0.3, 0.0038), (1, 0.0422), (2, 0.1752), (4, 0.2998)):
        noise = geometric._noise(facts, Fraction(epsilon), FINENESS).expected
        price = noise / Staircase(Fraction(epsilon), FINENESS).expected - 1
        assert price == pytest.approx(stated, abs=1e-4)


@loop_over("relation", ["replace_one", "add_or_remove_one"])
def test_bounds_of_which_no_float_is_the_limit_are_refused_whatever_is_public(relation):
    x, settings = np.arange(100.0), {"epsilon": 1.0, "neighboring": relation, "mechanism": "geometric"}
    for metric, data in ((dp.private_mse, (x, x)), (dp.private_variance, (x,))):
        with pytest.raises(ValueError, match="needs a metric with a public upper limit"):
            metric(*data, bounds=(-1e200, 1e200), **settings)
