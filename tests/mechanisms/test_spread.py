"""A mean that is drawn with its spread: what a record moves, the joint law, and when there is a spread."""

import itertools
import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from helpers import assert_follows, loss_query

import dp_metrics as dp
from dp_metrics import Geometric, auditing
from dp_metrics._random import SeededEntropy
from dp_metrics.mechanisms import geometric
from dp_metrics.mechanisms._staircase import Staircase
from dp_metrics.mechanisms.geometric import SpreadDraw, spread_noise
from dp_metrics.sensitivity.aggregates import LossAggregate
from dp_metrics.sensitivity.noisy_sums import FINENESS, mean_spread

TINY = 5e-324
PUBLIC = {"bounds": (0.0, 1.0), "mechanism": "geometric"}


def spread_of(values, cap=1.0):
    blocks = [np.array(values)]
    return mean_spread(LossAggregate.from_blocks(blocks, capacity=0, cap=cap, by_level=True))


def draw_of(values, cap=1.0, epsilon=Fraction(1)):
    draw = loss_query(np.array(values), cap).prepare(Geometric(), epsilon, private_n=False)
    assert isinstance(draw, SpreadDraw)
    return draw


@pytest.mark.parametrize("cap", [1.0, 0.3, 3.3, 1e308, 7 * TINY])
def test_a_record_moves_a_mean_and_its_spread_together_by_no_more_than_the_mean_alone(cap):
    rng = np.random.default_rng(0)
    numbers = [0.0, TINY, cap, math.nextafter(cap, 0), *(cap * 2.0 ** -rng.uniform(0, 30, 60)).tolist()]
    pairs = [(Fraction(x) / Fraction(cap), spread_of([x], cap)) for x in {min(x, cap) for x in numbers}]
    moves = [abs(u - w) + abs(s - t) for (u, s), (w, t) in itertools.combinations(pairs, 2)]
    assert max(moves) == 1


def test_the_spread_is_that_of_the_stated_function_but_for_a_thousandth():
    rng = np.random.default_rng(1)
    for v in [0.0, 1.0, 2.0**-40, *rng.random(200).tolist()]:
        exact = Fraction(v) * (1 - Fraction(v))
        assert 0 <= exact - spread_of([v]) <= Fraction(v) ** 2 / 1024
    values = rng.random(50)
    assert spread_of(values) == sum(spread_of([v]) for v in values) / 50
    assert spread_of([2.0, -0.0]) == 0  # clipped


def moved(a, b):
    """Return by how many steps either number of two draws differs, and the law of that of either noise."""
    laws = [draw.law(None) for draw in (a, b)]
    assert laws[0].grid == laws[1].grid
    assert laws[0].added == laws[1].added
    steps = abs(laws[0].centre - laws[1].centre), abs(a.place(laws[0]) - b.place(laws[1]))
    return steps, (laws[0].added, spread_noise(laws[0].added, a.epsilon))


@pytest.mark.parametrize("n", [1, 2, 3, 10])
def test_rounding_both_can_cost_a_step_and_the_noise_allows_for_it(n):
    rng, found = np.random.default_rng(n), set()
    for _ in range(100):
        rest = rng.random(n - 1).tolist()
        steps, (noise, _) = moved(*(draw_of([x, *rest]) for x in (rng.random() / FINENESS, 1.0)))
        assert sum(steps) <= 1 / noise.epsilon == FINENESS + 2  # a step is for what a float may be off
        found.add(sum(steps))
    assert max(found) == FINENESS + (n > 1)


@pytest.mark.parametrize("n", [1, 2, 3, 10])
def test_above_an_epsilon_of_two_each_number_moves_by_no_more_than_its_own_noise_allows(n):
    rng, found = np.random.default_rng(n), []
    for _ in range(100):
        rest = rng.random(n - 1).tolist()
        pair = [draw_of([x, *rest], epsilon=Fraction(5, 2)) for x in rng.choice([0.0, 0.5, 1.0], 2)]
        steps, noises = moved(*pair)
        assert sum(noise.epsilon for noise in noises) == Fraction(5, 2)
        assert all(step <= noise.steps for step, noise in zip(steps, noises, strict=True))
        found.append(steps)
    assert np.max(found, axis=0) == pytest.approx([FINENESS, FINENESS / 4], abs=1.1)


def joint_logs(draw):
    """Return the log probability of each place of the mean, in rows, and of the spread: all that matter."""
    law = draw.law(None)
    reached = law.index_cdf(np.arange(-1, law.grid.last + 1))
    size, added = -np.abs(np.arange(-60.0, 60.0) - draw.place(law)), spread_noise(law.added, draw.epsilon)
    of_spread = added.cdf(size) - added.cdf(size - 1)
    return np.log(np.diff(reached))[:, np.newaxis] + np.log(of_spread)


def largest_loss(values, epsilon=Fraction(1)):
    """Return the loss of all pairs of neighbours of two records with these values."""
    worst = 0.0
    for z in values[:4]:
        logs = [joint_logs(draw_of([one, z], epsilon=epsilon)) for one in values]
        worst = max(worst, *(float(np.abs(a - b).max()) for a, b in itertools.combinations(logs, 2)))
    return worst


@pytest.mark.parametrize("fineness", [2, 5])
def test_the_joint_law_of_neighbours_on_a_small_lattice(fineness, monkeypatch):
    monkeypatch.setattr(geometric, "FINENESS", fineness)
    values = [*np.random.default_rng(0).random(12).tolist(), 0.0, 1.0]
    assert largest_loss(values) <= 1 + 1e-9
    # the noise of a mean alone, and that of two numbers whose rounding costs nothing
    for sabotaged in (
        lambda _, epsilon, change: Staircase(epsilon, change),
        lambda _, epsilon, change: Staircase(epsilon / (change - 1), 1),
    ):
        monkeypatch.setattr(geometric, "_noise", sabotaged)
        assert largest_loss(values) > 1.1


@pytest.mark.parametrize("fineness", [8, 11])
def test_the_joint_law_above_an_epsilon_of_two(fineness, monkeypatch):
    monkeypatch.setattr(geometric, "FINENESS", fineness)
    epsilon = Fraction(5, 2)
    values = [*np.random.default_rng(0).random(12).tolist(), 0.0, 0.5, 1.0]
    assert largest_loss(values, epsilon) <= 2.5 + 1e-9
    # the spread has too much of epsilon, or is taken to move by less than it does
    for sabotaged in (
        lambda of_mean, epsilon: Staircase(epsilon / 5, -(-of_mean.steps // 4)),
        lambda of_mean, epsilon: Staircase(epsilon / 8, max(of_mean.steps // 8, 1)),
    ):
        monkeypatch.setattr(sys.modules[__name__], "spread_noise", sabotaged)
        assert largest_loss(values, epsilon) > 2.6


def test_the_exact_loss_of_a_metric_is_that_of_both():
    data = np.random.default_rng(0).random((40, 2))
    losses = []
    for (x, y), n in itertools.product(itertools.permutations([0.0, 0.2, 0.5, 1.0], 2), (1, 3, 40)):
        sides = [np.append(one, data[: n - 1, 0]) for one in (x, y)]
        one = auditing.metric_loss(dp.private_mean, *([s] for s in sides), epsilon=0.7, **PUBLIC)
        mean, spread = (abs(f(sides[0]) - f(sides[1])) * n for f in (np.mean, lambda s: float(spread_of(s))))
        assert one == pytest.approx(0.7 * (mean + spread), abs=1e-5)
        losses.append(one)
    assert 0.69999 < max(losses) <= 0.7


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(5, 2)])
def test_both_numbers_have_noise_of_their_own_with_the_stated_law(epsilon):
    """A false alarm once in 300,000, in each of three tests."""
    draw, entropy = draw_of(np.linspace(0, 1, 30), epsilon=epsilon), SeededEntropy(0)
    law = draw.law(None)
    drawn = [draw(entropy, None) for _ in range(1500)]
    means, spreads = np.array([(value, others["spread"]) for value, others in drawn]).T
    assert_follows(means, law)
    noise, added = np.rint(spreads * law.grid.last) - draw.place(law), spread_noise(law.added, epsilon)
    assert_follows(noise, type("Law", (), {"cdf": staticmethod(lambda k: added.cdf(np.floor(k)))}))
    assert abs(np.corrcoef(means, noise)[0, 1]) < 5 / math.sqrt(1500)


def drawn_by(epsilon=1.0, function=dp.private_mean, **options):
    return dp.with_result(function)(np.linspace(0, 1, 60), epsilon=epsilon, **{**PUBLIC, **options}).drawn


@pytest.mark.parametrize(
    ("options", "drawn"),
    [
        ({}, {"spread"}),
        ({"epsilon": 0.01}, {"spread"}),
        ({"epsilon": 2.0}, {"spread"}),
        ({"epsilon": 50.0}, {"spread"}),
        ({"sample_weight": np.ones(60)}, set()),
        ({"groups": np.arange(60)}, set()),
        ({"neighboring": "add_or_remove_one"}, {"sums"}),
        ({"mechanism": "laplace"}, set()),
        ({"mechanism": "hazard"}, set()),
        ({"function": dp.private_variance}, set()),
    ],
)
def test_which_releases_draw_a_spread(options, drawn):
    assert set(drawn_by(**options)) == drawn


def test_a_count_needs_no_spread():
    assert not dp.with_result(dp.private_accuracy_score)([0, 1] * 30, [0] * 60, epsilon=0.5).drawn


@pytest.mark.parametrize(
    ("epsilon", "stated"), [(0.1, 0.0004), (0.3, 0.0038), (1, 0.0422), (2, 0.1752), (4, 0.2998)]
)
def test_the_price_of_the_spread(epsilon, stated):
    """As the module says: 0.4 % at 0.3, 4 % at 1, 18 % at 2."""
    facts = loss_query(np.zeros(1000), 1.0).part.facts(1000, 1)
    noise = geometric._noise(facts, Fraction(epsilon), FINENESS).expected
    price = noise / Staircase(Fraction(epsilon), FINENESS).expected - 1
    assert price == pytest.approx(stated, abs=1e-4)


@pytest.mark.parametrize("steps", [1, 2, 7])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
def test_the_deviation_of_a_staircase_is_that_of_its_law(steps, epsilon):
    noise = Staircase(Fraction(epsilon), steps)
    k = np.arange(-400 * steps, 400 * steps + 1.0)
    assert noise.deviation == pytest.approx(math.sqrt(np.square(k[1:]) @ np.diff(noise.cdf(k))), rel=1e-9)


def test_pieces_release_what_all_records_do():
    rng = np.random.default_rng(3)
    y, p = rng.normal(size=(2, 500))
    summary = dp.LossSummary(dp.private_mse, bounds=(-2, 2))
    for part in np.array_split(np.arange(500), 7):
        summary.update(y[part], p[part])
    settings = {"epsilon": 0.4, "mechanism": "geometric", "random_state": SeededEntropy(5)}
    in_pieces = dp.with_result(dp.LossSummary.from_bytes(summary.to_bytes()).release)(**settings)
    settings["random_state"] = SeededEntropy(5)
    whole = dp.with_result(dp.private_mse)(y, p, bounds=(-2, 2), **settings)
    assert in_pieces.drawn == whole.drawn
    assert in_pieces.value == whole.value
    both = [one.population_interval(method="approximate") for one in (in_pieces, whole)]
    assert [*both[0]] == [*both[1]]


@pytest.mark.parametrize("epsilon", [TINY, 1e-300, 1e-3, 1.0, 1e308])
@pytest.mark.parametrize("cap", [TINY, 1e-300, 1.0, 1e308])
def test_nothing_fails_after_the_spend_and_limits_are_within_the_range(epsilon, cap):
    for losses in ([0.0], [cap] * 3, [1e308, TINY, 0.0]):
        result = dp.with_result(dp.private_mean_loss)(
            losses, max_loss=cap, epsilon=epsilon, mechanism="geometric"
        )
        lower, upper = result.noise_interval()
        assert 0 <= lower <= upper <= cap
        for method in ("sure", "approximate"):
            lower, upper = result.population_interval(method=method)
            assert 0 <= lower <= upper <= cap
        assert result.to_json()
