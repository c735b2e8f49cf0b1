"""neighboring="add_or_remove_one": a private number of records."""

import itertools
import math
import re
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from cases import CASES, KINDS, valid
from helpers import NoEntropy, loop_over, loss_query, nearest, seeded, two_sided, var_bounds, variance

import dp_metrics as dp
from dp_metrics._random import SeededEntropy
from dp_metrics.analysis.auditing import release_loss
from dp_metrics.inputs.options import Relation
from dp_metrics.mechanisms import Adaptive, Geometric
from dp_metrics.release import release as _release
from dp_metrics.sensitivity.output_bounds import FINENESS, ratio_sums

pytestmark = pytest.mark.usefixtures("own_error_state")

RELATION = {"neighboring": "add_or_remove_one"}


def test_numbers_of_drops_that_rounding_cannot_tell_apart_are_compared_exactly():
    """Dropping the outlier breaks even with keeping it: floats near there order the two quotients wrongly."""

    def quotient(x, drop):  # at rank 1
        size = len(x) - drop
        return min(variance(x[j : j + size]) for j in range(drop + 1)) * size / (len(x) + 1 - 2 * drop)

    for seed in range(60):
        others = np.random.default_rng(seed).uniform(0.9, 1.1, 10) * (-1) ** np.arange(10)
        others = sorted(others.tolist())
        low, high = others[-1], 10.0
        assert quotient([*others, low], 0) < quotient([*others, low], 1)
        while low < (middle := (low + high) / 2) < high:
            if quotient([*others, middle], 0) < quotient([*others, middle], 1):
                low = middle
            else:
                high = middle
        for outlier in low + np.arange(-4, 4) * math.ulp(low):
            x = [*others, float(outlier)]
            assert var_bounds(x, capacity=1, private_n=True).lower[0] == nearest(
                min(quotient(x, 0), quotient(x, 1))
            )


def test_a_mean_is_rounded_to_the_nearest_step_as_its_limits_assume():
    for total in range(4):
        steps, rest = ratio_sums(Fraction(total, 3), 1, 1.0, 1.0).values
        assert abs(Fraction(total * FINENESS, 3) - steps) <= Fraction(1, 2)
        assert steps + rest == FINENESS


def test_the_noise_of_two_counts_is_that_of_epsilon():
    """A seeded sample of both noises together: the exact law to within 5 standard deviations."""
    epsilon, size, query = 1.0, 6000, loss_query(np.repeat([1.0, 0.0], [7, 30]), 1.0, is_share=True)
    noise, stats = query.prepared(Geometric(), relation=Relation.ADD_OR_REMOVE_ONE)
    draw, entropy = noise.prepare(stats), SeededEntropy(11)
    drawn = Counter(draw(entropy, None).value for _ in range(size))
    for (i, p), (j, q) in itertools.product(zip(*two_sided(epsilon, 3), strict=True), repeat=2):
        both = p * q
        assert abs(drawn[7 + i, 30 + j] - size * both) < 5 * math.sqrt(size * both * (1 - both)) + 1


@pytest.mark.gate
@loop_over("noise", [-1, 10**400])
def test_whatever_the_count_nothing_raises_after_the_spend_or_needs_enormous_memory(monkeypatch, noise):
    """At a tiny epsilon the rank of an order statistic would be as large as the noisy count."""
    monkeypatch.setattr(_release, "discrete_laplace", lambda entropy, rate: noise)
    for case in map(CASES.get, sorted(KINDS)):
        if "neighboring" in case.parameters and "multi_class" not in case.options:
            ways = [RELATION]
            if case.row.mechanism == "adaptive":
                ways.append({**RELATION, "mechanism": Adaptive(threshold=1e-9)})
            for epsilon, n, way in itertools.product((1e-300, 1e-12, 1.0, 1e300), (37, 0), ways):
                made = case(*valid(case, n), epsilon=epsilon, random_state=seeded(), **way)
                assert math.isfinite(made)


def test_no_record_has_the_value_0_whatever_underflows():
    assert dp.private_mse([], [], epsilon=1e6, **RELATION) < 1e-3
    assert dp.private_variance([], epsilon=1e6, **RELATION) < 1e-3
    assert dp.private_mean([], epsilon=1e6, bounds=(-3, 5), **RELATION) == pytest.approx(-3, abs=1e-3)
    pair = [[1e-200], [0.0]], [[], []]
    options = {"bounds": (0, 1e-200), "mechanism": Adaptive(threshold=1e-9), **RELATION}
    assert release_loss(dp.private_mse, *pair, epsilon=1.0, **options) <= 1 + 1e-9


REVEALING = {"sample_weight": np.ones(37), "groups": np.arange(37), "normalize": False, "ddof": 1}


@loop_over("case", [case for case in CASES.values() if "neighboring" in case.parameters])
def test_nothing_gives_the_number_of_records_away(case):
    """Neither an option nor what is said of broken records."""
    data = valid(case, 37)
    first, *others = data
    options = {"epsilon": 1.0, "random_state": NoEntropy(), **RELATION}
    for name in REVEALING.keys() & case.parameters - {*case.row.refused}:
        if name != "normalize" or case.row.options["normalize"] is True:
            with pytest.raises(ValueError, match=name):
                case(*data, **{name: REVEALING[name]}, **options)
    broken = [[np.zeros(shape), *others] for shape in ((37, 2, 3, 4), (37, 0), (37, 2, 2))]
    broken += [[np.zeros((37, 2, 2)) for _ in data]]
    broken += [[[*first.tolist()[:-1], last], *others] for last in (math.nan, [1, 2, 3, 4], "37x")]
    if others:
        broken += [[np.concatenate([first, first[:1]]), *others], [np.zeros((37, 2)), np.zeros((37, 3))]]
    for records in broken:
        with pytest.raises((ValueError, TypeError, NoEntropy.Drawn)) as caught:
            case(*records, **options)
        assert not {"36", "37", "38"} & set(re.findall(r"\d+", str(caught.value)))
