"""What the model says of a query: its searches, and the value that given bits mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import model
import model_noise as noise
from modelled import MOST_RANKS, Query, Records, nearest

from dp_metrics import Adaptive, Geometric, Hazard

COUNT_SHARE = CLASS_SHARE = Fraction(1, 20)
MANY_RECORDS = 10**9


def hazard_model(
    query: Query, epsilon: Fraction, n: int, rule: Hazard, finest: Hazard | None = None, law: Any = None
) -> model.HazardModel:
    """Return the model of hazard selection; `finest` is the rule that says how many ranks."""
    known = query.records
    eps2 = model.hazard_share(epsilon, known.monotonic)
    public_n = None if query.private_n else known.size

    def resolution(rule: Hazard, n: int) -> float:
        return rule.resolution or model.default_resolution(n, eps2)

    wanted = max(resolution(finest or rule, MANY_RECORDS if public_n is None else public_n), 2.0**-32)
    ranks = model.count_ranks(wanted, eps2, MOST_RANKS if public_n is None else public_n)
    if rule.scale is not None:
        grid = model.geometric_grid(rule.scale, resolution(rule, n), known.t_max)
    else:
        reach = math.inf if known.reach is None else known.reach
        grid = model.bounded_grid(min(1e-6, 1e-9 * known.t_max), resolution(rule, n), known.t_max, reach)
    return query.remembered((n, rule), grid, lambda: known.bounds(min(ranks, known.most_ranks)), epsilon, law)


def first_stage(
    query: Query, epsilon: Fraction, n: int, law: Any = None
) -> tuple[model.HazardModel, Fraction]:
    """Return the model of the first stage, and what is left for the second."""
    stages, mechanism = query.records.stages, query.mechanism
    share = mechanism.share and model.epsilon_of(mechanism.share)
    resolution, _ = stages.rule
    first = epsilon * (share or min(Fraction(1, 4) + threshold_of(query) / (6 * n * epsilon), Fraction(3, 5)))
    grown = min(max(n * epsilon / 1000, 1), 1e9) ** 0.35
    k = max(min(math.ceil(2 * min(Fraction(grown), 6) / epsilon), n // 2), 1)
    eps2 = model.hazard_share(first, stages.monotonic)
    c = model.count_ranks(resolution, eps2, MOST_RANKS)
    grid = model.geometric_grid(min(1e-6, 1e-9 * stages.t_max), resolution, stages.t_max)

    def bounds() -> model.Bounds:
        return stages.bounds(k, c)

    return query.remembered((n, "first"), grid, bounds, first, law), epsilon - first


def needs_count(mechanism: Any) -> bool:
    return isinstance(mechanism, Adaptive) or (isinstance(mechanism, Hazard) and mechanism.resolution is None)


def threshold_of(query: Query) -> Fraction:
    return Fraction(query.mechanism.threshold or query.records.stages.rule[1])


def two_stages(query: Query, epsilon: Fraction, n: int) -> Fraction:
    """Return the probability that there are two stages."""
    if not isinstance(query.mechanism, Adaptive):
        return Fraction(0)
    t = threshold_of(query)
    return min(max((3 * n * epsilon - t) / (2 * t), Fraction(0)), Fraction(1))


def place_of(known: Records, epsilon: Fraction) -> noise.Noisy:
    value = known.bounds(0).lower[0]
    return noise.on_lattice(value, known.t_max, known.sensitivity, known.steps, known.spread, epsilon)


def ranking_rule(query: Query, epsilon: Fraction, sizes: Sequence[int]) -> tuple[Hazard, Hazard]:
    """Return the rule for noisy sizes of the classes, and the finest one, which says how many ranks."""
    n = query.records.size
    other = sizes[1] if query.private_n else n - sizes[0]
    most = MANY_RECORDS if query.private_n else max(n // 2, 1)
    smaller = min(max(min(sizes[0], other), 1), most)
    scale = query.mechanism.scale or 0.01
    return tuple(Hazard(1 / (m * float(epsilon) / 30 + 2.5), scale) for m in (smaller, most))


def called(query: Query, epsilon: Fraction, source: noise.Adversary) -> tuple[Any, float]:
    """Return the value that the bits mean, and up to which relative error it is known."""
    known = query.records
    if known is None:
        rates = [epsilon * part for part in query.rates]
        if query.zero_sum:
            drawn = noise.zero_sum(source, rates[0], len(rates))
        else:
            runs = [(rate, rates.count(rate)) for rate in dict.fromkeys(rates)]
            drawn = [z for rate, size in runs for z in noise.many_laplaces(source, rate, size)]
        return query.of_counts([a + b for a, b in zip(query.counts, drawn, strict=True)]), 1e-9
    if query.classes:
        rate = epsilon * CLASS_SHARE
        sizes = tuple(size + noise.discrete_laplace(source, rate) for size in query.classes)
        rule, finest = ranking_rule(query, epsilon, sizes)
        return query.finish(
            hazard_call(hazard_model(query, epsilon - rate, known.size, rule, finest), source)
        ), 1e-12
    n = known.size
    if query.private_n and needs_count(query.mechanism):
        n = max(n + noise.discrete_laplace(source, epsilon * COUNT_SHARE), 1)
        epsilon *= 1 - COUNT_SHARE
    if isinstance(query.mechanism, Geometric):
        return query.finish(geometric_call(known, query.private_n, epsilon, source)), 1e-9
    chance = two_stages(query, epsilon, n)
    if noise.below(source, chance.denominator, chance.numerator) < chance.numerator:
        return query.finish(stages_call(query, epsilon, n, source)), 1e-9
    rule = query.mechanism if isinstance(query.mechanism, Hazard) else Hazard()
    return query.finish(hazard_call(hazard_model(query, epsilon, n, rule), source)), 1e-12


def hazard_call(search: model.HazardModel, source: noise.Adversary) -> float:
    """Return the grid point that one word means: the rest of the bits must not matter."""
    word = source.top_bits(64, [])
    numbers = {search.released(Fraction(2 * word + end, 2**65)) for end in (0, 1)}
    assert len(numbers) == 1, "64 random bits that tie"
    return search.grid[numbers.pop()]


def geometric_call(known: Records, private_n: bool, epsilon: Fraction, source: noise.Adversary) -> float:
    if private_n:
        expected = known.sums(epsilon)
        return known.of_sums([v + noise.discrete_laplace(source, expected.rate) for v in expected.values])
    expected = place_of(known, epsilon)
    laws = zip(expected.values, expected.laws, strict=True)
    number, *_ = [value + noise.staircase(source, *law) for value, law in laws]
    return float(Fraction(min(max(number, 0), expected.last), expected.last) * Fraction(known.t_max))


def stages_call(query: Query, epsilon: Fraction, n: int, source: noise.Adversary) -> float:
    known = query.records
    first, rest = first_stage(query, epsilon, n)
    c1 = known.stages.c1(hazard_call(first, source))
    total = known.stages.clipped(c1)
    if query.private_n:
        expected = noise.two_sums(total, c1, known.size, rest)
        noisy = [v + noise.discrete_laplace(source, expected.rate) for v in expected.values]
        return noise.mean_of_two(noisy, c1, known.t_max)
    place, steps = noise.second_stage(total, c1, n, rest)
    number = max(place + noise.staircase(source, rest, steps), 0)
    return nearest(min(number * c1 / (n * steps), Fraction(known.t_max)))
