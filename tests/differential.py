"""Random queries on which the package and the model must agree: ``python tests/differential.py [queries]``.

A query is a call of a public function: records, options, epsilon, mechanism. The package's side goes its own path, from
the records to what is left to draw. The model's side starts from the same records with code of its own. Compared are the
law of what is released, what chosen bits mean, and the value of a whole call with given bits.
"""

from __future__ import annotations

import math
import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import model
import model_noise as noise
import numpy as np

import dp_metrics
from dp_metrics import Adaptive, Geometric, Hazard
from dp_metrics._random import LazyUniform
from dp_metrics.mechanisms._hazard_law import HazardLaw
from dp_metrics.metrics import METRICS

MAX = sys.float_info.max
COUNT_SHARE = CLASS_SHARE = Fraction(1, 20)
MOST_RANKS, MANY_RECORDS = 1 << 16, 10**9
LOSSES, WIDTHS = (2, 0.4, 300), (6, 0.2, 3000)  # of a first stage: rank times epsilon, resolution, threshold


# What the model knows of a query


class Stages(NamedTuple):
    """What the first stage draws from, and the sum clipped at what it has drawn."""

    ys: list[Fraction]
    t_max: float
    rule: tuple[int, float, int]
    monotonic: bool
    clipped: Callable[[float], tuple[Fraction, Fraction]]  # the sum, and what a record adds at most: C1


class Records(NamedTuple):
    """What a mechanism may know of the records, by code that shares nothing with the package."""

    bounds: Callable[[int], model.Bounds]  # of so many ranks
    t_max: float
    size: int  # records, or groups
    monotonic: bool
    reach: float | None = None  # n times what one record adds at most
    sensitivity: float | None = None
    steps: int | None = None
    most_ranks: int = MOST_RANKS
    stages: Stages | None = None
    sums: Callable[[Fraction], noise.Noisy] | None = None
    of_sums: Callable[[Sequence[int]], float] | None = None


@dataclass
class Query:
    """A call of a public function, and the model of its records."""

    kind: str
    metric: str
    data: tuple[Any, ...]
    epsilon: float
    options: dict[str, Any]
    private_n: bool
    records: Records | None
    finish: Callable[[float], float] = float
    mechanism: Any = None
    counts: list[int] = field(default_factory=list)
    rates: list[Fraction] = field(default_factory=list)  # of the counts, in parts of epsilon
    zero_sum: bool = False
    of_counts: Callable[[Sequence[int]], Any] | None = None
    classes: tuple[int, ...] = ()  # sizes of the classes, where the grid follows from them
    made: dict[Any, model.HazardModel] = field(default_factory=dict)

    def remembered(
        self, key: Any, grid: list[float], bounds: Callable[[], model.Bounds], epsilon: Fraction, law: Any
    ) -> model.HazardModel:
        """Return the model of a search, on the package's grid if that is the model's up to the last bits."""
        if law is not None:
            points = law.grid.points(np.arange(law.grid.first, law.grid.last + 1))
            assert len(points) == len(grid), "a grid of another size"
            np.testing.assert_allclose(points, grid, rtol=1e-12, err_msg="other grid points")
            grid = points.tolist()
        if key not in self.made:
            self.made[key] = model.HazardModel(bounds(), grid, epsilon)
        return self.made[key]

    @property
    def arguments(self) -> dict[str, Any]:
        """The keywords of the call but for the source of bits."""
        chosen = {} if self.mechanism is None else {"mechanism": self.mechanism}
        relation = {"neighboring": "add_or_remove_one"} if self.private_n else {}
        return {"epsilon": self.epsilon, **self.options, **chosen, **relation}


def fractions(values: Sequence[float]) -> list[Fraction]:
    return [Fraction(float(v)) for v in values]


def nearest(x: Fraction) -> float:
    return model.rounded(x, MAX)


def mean_records(
    losses: Sequence[float],
    cap: float | None,
    weights: Sequence[float] | None,
    groups: Sequence[int] | None,
    *,
    private_n: bool,
    is_count: bool = False,
) -> Records:
    """Return the model of a mean of losses: terms p_i with limits m_i, in all divided by W."""
    n, top = len(losses), MAX if cap is None else cap
    clipped = [min(max(v, 0.0), top) for v in losses]
    w = [1.0] * n if weights is None else list(weights)
    total_weight = sum(fractions(w), Fraction(0))
    terms = fractions([min(a * v, MAX) for a, v in zip(w, clipped, strict=True)])
    limits: list[Fraction | float] = [Fraction(min(a * top, MAX)) if cap is not None else math.inf for a in w]
    if groups is not None:
        of_groups = [[i for i in range(n) if groups[i] == g] for g in sorted(set(groups))]
        terms = [Fraction(nearest(sum((terms[i] for i in ids), Fraction(0)))) for ids in of_groups]
        limits = [
            Fraction(nearest(sum((Fraction(limits[i]) for i in ids), Fraction(0))))
            if cap is not None
            else math.inf
            for ids in of_groups
        ]
    size, plain = len(terms), weights is None and groups is None
    largest = max(limits, default=Fraction(top)) if cap is not None else math.inf
    t_max = MAX if cap is None else cap if plain else nearest(sum(map(Fraction, limits)) / total_weight)

    def bounds(c: int) -> model.Bounds:
        if private_n:
            return model.private_mean_bounds(terms, math.inf if cap is None else Fraction(cap), t_max, c)
        return model.mean_bounds(terms, limits, total_weight, t_max, c)

    part = (
        size / total_weight if size else Fraction(1)
    )  # a term of size p adds p * part to size times the mean

    def clip(drawn: float) -> tuple[Fraction, Fraction]:
        level = noise.five_bits_up(Fraction(max(drawn, 1e-270)) / part)
        level = Fraction(largest) if level >= largest else level
        return sum((min(t, level) for t in terms), Fraction(0)) * part, level * part

    ys = [Fraction(nearest(t * part)) for t in sorted(terms, reverse=True)]
    y_max = MAX if cap is None else nearest(Fraction(largest) * part)
    most = Fraction(top)
    return Records(
        bounds,
        t_max,
        size,
        not private_n,
        reach=None if cap is None else y_max,
        sensitivity=None
        if cap is None or private_n
        else max(nearest(Fraction(largest) / total_weight), 5e-324),
        steps=n if is_count and plain and not private_n else None,
        stages=Stages(ys, y_max, LOSSES, True, clip),
        sums=lambda epsilon: noise.two_sums(sum(terms, Fraction(0)), most, n, epsilon),
        of_sums=lambda noisy: noise.mean_of_two(noisy, most, t_max),
    )


def variance_records(
    values: Sequence[float], limits: tuple[float, float] | None, *, private_n: bool
) -> Records:
    n = len(values)
    low, high = fractions(limits) if limits else (Fraction(0), Fraction(0))
    x = [min(max(v, low), high) for v in fractions(values)] if limits else fractions(values)
    width: Fraction | float = high - low if limits else math.inf
    t_max, y_max = (nearest((high - low) ** 2 / 4), nearest(high - low)) if limits else (MAX, MAX)
    make = model.private_variance_bounds if private_n else model.variance_bounds

    def clip(drawn: float) -> tuple[Fraction, Fraction]:
        c1 = Fraction(max(drawn, 1e-130)) ** 2
        return noise.clipped_squares(x, c1), c1

    return Records(
        lambda c: make(x, width, t_max, c),
        t_max,
        n,
        False,
        reach=nearest((high - low) ** 2) if limits else None,
        sensitivity=nearest((high - low) ** 2 * Fraction(n - 1, n * n)) if limits and n else None,
        most_ranks=4096,
        stages=Stages(fractions(map(nearest, noise.widths(x))), y_max, WIDTHS, private_n, clip),
        sums=lambda epsilon: noise.three_sums(x, low, high, epsilon),
        of_sums=lambda noisy: noise.variance_of_three(noisy, high - low),
    )


# Comparisons


@dataclass
class Found:
    """The largest total variation distance, and how many decisions were compared."""

    distance: float = 0.0
    decisions: int = 0

    def add(self, distance: float, weight: float = 1.0) -> None:
        self.distance = max(self.distance, distance * weight)


class Words:
    """Given words, and from then on one word or, without it, an error."""

    def __init__(self, words: Sequence[int], filling: int | None = None) -> None:
        self.left, self.filling = list(words), filling

    def words(self, size: int) -> np.ndarray:
        if self.filling is not None and len(self.left) < size:
            self.left += [self.filling] * (size - len(self.left))
        assert len(self.left) >= size, "the package asks for more bits than the model"
        taken, self.left = self.left[:size], self.left[size:]
        return np.array(taken, dtype=np.uint64)


def hazard_model(
    query: Query, epsilon: Fraction, n: int, rule: Hazard, finest: Hazard | None = None, law: Any = None
) -> model.HazardModel:
    """Return the model of hazard selection; `finest` is the rule that says how many ranks, if another does."""
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


def compare_hazard(
    law: HazardLaw, expected: model.HazardModel, rng: random.Random, found: Found, bits: int = 2
) -> None:
    """Compare the probability of every grid point, and what bits at the edges of some cells mean."""
    exact = np.array(expected.probabilities())
    numbers = np.arange(len(exact))
    shipped = np.exp(law.log_probabilities(numbers))
    found.add(float(np.abs(exact - shipped).sum() / 2))
    found.add(float(np.abs(np.cumsum(exact) - law.index_cdf(numbers)).max()))
    likely = np.flatnonzero(exact > 1e-30)
    edges = np.append(law.runs.edges[1:-1] - 1, [0, len(exact) - 2])
    cells = [int(rng.choice(likely.tolist())) for _ in range(bits)] + [
        int(rng.choice(edges.tolist())) for _ in range(bits)
    ]
    streams = [([], 0), ([], 2**64 - 1), ([rng.getrandbits(64)], rng.getrandbits(64))]
    for cell in cells:
        numerator, denominator = expected.cdf(min(max(cell, 0), len(exact) - 1))
        for size in (1, 2, 3):
            edge = (numerator << 64 * size) // denominator
            for near in (edge - 1, edge, edge + 1):
                if 0 <= near < 1 << 64 * size:
                    words = [near >> 64 * i & 2**64 - 1 for i in reversed(range(size))]
                    streams += [(words, 0), (words, 2**64 - 1)]
    for words, filling in streams:
        u = Fraction(LazyUniform(Words(words, filling)).prefix(2048), 2**2048)
        number = law.draw(LazyUniform(Words(words, filling)))
        assert number == expected.released(u), f"bits mean {number}, not {expected.released(u)}"
        found.decisions += 1


def shift_distance(rate: Fraction, shift: int) -> float:
    """Return the total variation distance of geometric noise and the same noise shifted."""
    half = abs(shift) // 2
    return (
        noise.noise_cdf(rate, half if shift % 2 else half - 1) - noise.noise_cdf(rate, -half - 1)
        if shift
        else 0.0
    )


def compare_geometric(
    law: Any, place: int, rate: Fraction, last: int, found: Found, weight: float = 1.0
) -> None:
    """Compare laws of one noisy place: their rational parameters, and the distribution function."""
    same = law.rate == rate and law.grid.last == last
    found.add(shift_distance(rate, law.centre - place) if same else 1.0, weight)
    spread = max(math.ceil(1 / rate), 1)
    around = [place + z for z in (-20 * spread, -2 * spread, -1, 0, 1, spread, 7 * spread)]
    inside = [k for k in around if 0 <= k < last]
    cdf = [noise.noise_cdf(rate, k - place) for k in inside]
    if inside:
        found.add(float(np.abs(law.index_cdf(np.array(inside)) - cdf).max()), weight)


def compare_sums(
    law: Any,
    expected: noise.Noisy,
    of_sums: Callable[[Sequence[int]], float],
    found: Found,
    weight: float = 1.0,
) -> None:
    same = law.rate == expected.rate
    shifts = [a - b for a, b in zip(law.sums.values, expected.values, strict=True)]
    found.add(sum(shift_distance(expected.rate, s) for s in shifts) if same else 1.0, weight)
    for away in (-3, -1, 0, 1, 4):
        noisy = [v + away * 2**18 for v in expected.values]
        value = float(law.sums.combine(*(np.float64(v) for v in noisy)))
        assert math.isclose(value, of_sums(noisy), rel_tol=1e-9, abs_tol=1e-12 * law.sums.limit), (
            "other value of the sums"
        )


def first_stage(
    query: Query, epsilon: Fraction, n: int, law: Any = None
) -> tuple[model.HazardModel, Fraction]:
    """Return the model of the first stage, and what is left for the second."""
    stages, mechanism = query.records.stages, query.mechanism
    share = mechanism.share and model.epsilon_of(mechanism.share)
    first = epsilon * (share or (Fraction(1, 4) if n * epsilon >= 1000 else Fraction(2, 5)))
    rank, resolution, _ = stages.rule
    k = min(math.ceil(rank / epsilon), max(n // 2 if rank == WIDTHS[0] else n, 1))
    eps2 = model.hazard_share(first, stages.monotonic)
    c = model.count_ranks(resolution, eps2, MOST_RANKS)
    grid = model.geometric_grid(min(1e-6, 1e-9 * stages.t_max), resolution, stages.t_max)

    def bounds() -> model.Bounds:
        return noise.scale_bounds(stages.ys, k, stages.t_max, c, stages.monotonic)

    return query.remembered((n, "first"), grid, bounds, first, law), epsilon - first


def compare_stages(
    query: Query, law: Any, epsilon: Fraction, n: int, rng: random.Random, found: Found
) -> None:
    """Compare the law of the scale, and that of the release given each scale that some outcome means."""
    known = query.records
    first, rest = first_stage(query, epsilon, n, law.first)
    compare_hazard(law.first, first, rng, found)
    mass = np.array(first.probabilities())
    if known.stages.rule is WIDTHS:
        cells = rng.choices(range(len(mass)), mass, k=6)
    else:
        cells = levels(known.stages, first.grid, mass)
    for cell in cells:
        total, c1 = known.stages.clipped(first.grid[cell])
        given = law.given(first.grid[cell])
        assert law.scale(first.grid[cell]) == nearest(c1), "another scale"
        if query.private_n:
            expected = noise.two_sums(total, c1, known.size, rest)
            compare_sums(
                given, expected, lambda noisy, c1=c1: noise.mean_of_two(noisy, c1, known.t_max), found
            )
        else:
            place, steps = noise.second_stage(total, c1, n, rest)
            spacing = nearest(c1 / (n * steps))
            compare_geometric(given, place, rest / steps, math.ceil(min(known.t_max / spacing, 2**52)), found)
            assert given.grid.spacing == spacing, "another lattice"


def levels(stages: Stages, grid: list[float], mass: np.ndarray) -> list[int]:
    """Return the first and the last cell of each clipping level that is at all likely."""
    seen: dict[Fraction, list[int]] = {}
    for cell in np.flatnonzero(mass > 1e-25).tolist():
        seen.setdefault(stages.clipped(grid[cell])[1], [cell, cell])[1] = cell
    return sorted({cell for ends in seen.values() for cell in ends})


# A whole query


def compare(query: Query, seed: int) -> Found:
    """Compare all that the package and the model say of a query."""
    rng, found, row = random.Random(seed), Found(), METRICS[query.metric]
    settings = {k: v for k, v in query.arguments.items() if k not in row.options}
    release = row.settings(options=query.options, **settings)
    plan = row.planned(query.data, query.options, private_n=query.private_n)
    (draw,), (mechanism,), for_count = release.prepare(plan)
    epsilon = model.epsilon_of(query.epsilon)
    if query.records is None:
        compare_table(query, release, plan, draw, epsilon, rng, found)
    elif query.classes:
        compare_ranking(query, draw, epsilon, rng, found)
    else:
        counted = query.private_n and needs_count(query.mechanism)
        assert for_count == (epsilon * COUNT_SHARE if counted else 0), "another share for the count"
        compare_number(query, draw, mechanism, epsilon - for_count, counted, rng, found)
    for _ in range(2):
        compare_call(query, epsilon, rng, found)
    return found


def needs_count(mechanism: Any) -> bool:
    return isinstance(mechanism, Adaptive) or (isinstance(mechanism, Hazard) and mechanism.resolution is None)


def is_two_stage(query: Query, epsilon: Fraction, n: int) -> bool:
    if not isinstance(query.mechanism, Adaptive):
        return False
    threshold = query.mechanism.threshold or query.records.stages.rule[2]
    return n * epsilon >= threshold


def compare_number(
    query: Query,
    draw: Any,
    mechanism: Any,
    epsilon: Fraction,
    counted: bool,
    rng: random.Random,
    found: Found,
) -> None:
    """Compare the law of one number: given some noisy counts, where there is one."""
    known = query.records
    if isinstance(query.mechanism, Geometric):
        if query.private_n:
            compare_sums(draw.sums_law, known.sums(epsilon), known.of_sums, found)
        else:
            law = mechanism.output_distribution(draw.output_bounds, draw.epsilon)
            expected = place_of(known, epsilon)
            compare_geometric(law, expected.values[0], expected.rate, expected.last, found)
        return
    sizes = [known.size]
    if counted:
        sizes = noisy_sizes(known.size, model.epsilon_of(query.epsilon) * COUNT_SHARE, rng)
    for n in sizes:
        bounds = draw.with_count(n) if counted else draw.output_bounds
        law = mechanism.output_distribution(bounds, draw.epsilon)
        assert draw.epsilon == epsilon
        if is_two_stage(query, epsilon, n):
            compare_stages(query, law, epsilon, n, rng, found)
        else:
            rule = query.mechanism if isinstance(query.mechanism, Hazard) else Hazard()
            compare_hazard(law, hazard_model(query, epsilon, n, rule, law=law), rng, found)


def place_of(known: Records, epsilon: Fraction) -> noise.Noisy:
    value = known.bounds(0).lower[0]
    return noise.on_lattice(value, known.t_max, known.sensitivity, known.steps, epsilon)


def noisy_sizes(size: int, rate: Fraction, rng: random.Random) -> list[int]:
    """Return all noisy sizes but for a probability of 1e-14, if those are few, or else two of them."""
    reach = math.ceil(33 / rate)
    if reach <= 8:
        return sorted({max(size + z, 1) for z in range(-reach, reach + 1)})
    source = noise.Adversary(rng.getrandbits(32))
    return [max(size + noise.discrete_laplace(source, rate), 1) for _ in range(2)]


def ranking_rule(query: Query, epsilon: Fraction, sizes: Sequence[int]) -> tuple[Hazard, Hazard]:
    """Return the rule for noisy sizes of the classes, and the finest one, which says how many ranks."""
    n = query.records.size
    other = sizes[1] if query.private_n else n - sizes[0]
    most = MANY_RECORDS if query.private_n else max(n // 2, 1)
    smaller = min(max(min(sizes[0], other), 1), most)
    scale = query.mechanism.scale or 0.01
    return tuple(Hazard(1 / (m * float(epsilon) / 30 + 2.5), scale) for m in (smaller, most))


def compare_ranking(query: Query, draw: Any, epsilon: Fraction, rng: random.Random, found: Found) -> None:
    assert tuple(draw.sizes) == query.classes, "other sizes of the classes"
    assert draw.rule.rate == epsilon * CLASS_SHARE, "another share for the classes"
    source = noise.Adversary(rng.getrandbits(32))
    for _ in range(2):
        sizes = tuple(size + noise.discrete_laplace(source, epsilon * CLASS_SHARE) for size in query.classes)
        rule, finest = ranking_rule(query, epsilon, sizes)
        law = draw.law_given(draw.rule.smaller(sizes))
        expected = hazard_model(query, epsilon * (1 - CLASS_SHARE), query.records.size, rule, finest, law)
        compare_hazard(law, expected, rng, found)


def compare_table(
    query: Query, release: Any, plan: Any, draw: Any, epsilon: Fraction, rng: random.Random, found: Found
) -> None:
    """Compare counts, rates, and what noisy counts become."""
    rates = [rate for size, rate in draw.rates for _ in range(size)]
    expected = [epsilon * part for part in query.rates]
    assert draw.zero_sum == query.zero_sum, "noise of another kind"
    shifts = zip(draw.values, query.counts, strict=True)
    distance = sum(shift_distance(rate, a - b) for (a, b), rate in zip(shifts, expected, strict=True))
    found.add(distance if rates == expected else 1.0)
    for _ in range(5):
        noisy = [count + rng.randint(-4, 4) for count in query.counts]
        if query.zero_sum:
            noisy[0] += sum(query.counts) - sum(noisy)
        value = release.result(plan, [tuple(noisy)])
        np.testing.assert_allclose(
            value, query.of_counts(noisy), rtol=1e-9, atol=1e-9, err_msg="other value of the counts"
        )


def compare_call(query: Query, epsilon: Fraction, rng: random.Random, found: Found) -> None:
    """Compare the value of a call of the public function, given the bits that it draws."""
    source = noise.Adversary(rng.getrandbits(32))
    value, tolerance = called(query, epsilon, source)
    entropy = Words(source.words)
    with np.errstate(all="raise"):  # as a hostile caller may
        result = getattr(dp_metrics, query.metric)(
            *query.data, **query.arguments, random_state=entropy, return_result=True
        )
    assert not entropy.left, "the model asks for more bits than the package"
    np.testing.assert_allclose(
        result.value, value, rtol=tolerance, atol=1e-300, err_msg="another value for the same bits"
    )
    found.decisions += 1


def called(query: Query, epsilon: Fraction, source: noise.Adversary) -> tuple[Any, float]:
    """Return the value that the bits mean, and up to which relative error it is known."""
    known = query.records
    if known is None:
        rates = [epsilon * part for part in query.rates]
        if query.zero_sum:
            drawn = noise.zero_sum(source, rates[0], len(rates))
        else:
            drawn = [noise.discrete_laplace(source, rate) for rate in rates]
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
    if is_two_stage(query, epsilon, n):
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
    number = expected.values[0] + noise.discrete_laplace(source, expected.rate)
    return float(Fraction(min(max(number, 0), expected.last), expected.last) * Fraction(known.t_max))


def stages_call(query: Query, epsilon: Fraction, n: int, source: noise.Adversary) -> float:
    known = query.records
    first, rest = first_stage(query, epsilon, n)
    total, c1 = known.stages.clipped(hazard_call(first, source))
    if query.private_n:
        expected = noise.two_sums(total, c1, known.size, rest)
        noisy = [v + noise.discrete_laplace(source, expected.rate) for v in expected.values]
        return noise.mean_of_two(noisy, c1, known.t_max)
    place, steps = noise.second_stage(total, c1, n, rest)
    number = max(place + noise.discrete_laplace(source, rest / steps), 0)
    return nearest(min(number * c1 / (n * steps), Fraction(known.t_max)))


# Random queries


NUMBERS = [0.0, 1e-9, 0.1, 0.25, 1 / 3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.3, 10.0, 123.456, 1e4]
EPSILONS = [0.1, 0.3, 0.7, 1, 1.1, 2, 2.3, 3, 5, 8.7, 17, 60]


def some_numbers(rng: random.Random, n: int) -> list[float]:
    """Return numbers of very different sizes, with ties."""
    drawn = (rng.lognormvariate(0, 2) if rng.random() < 0.6 else rng.choice(NUMBERS) for _ in range(n))
    return [min(v, 1e6) for v in drawn]


def some_mechanism(rng: random.Random, *, bounded: bool, share_like: bool = False) -> Any:
    """Return a mechanism with a grid of which every point can be visited."""
    resolution = rng.choice([0.3, 0.5, 0.77, 1.3, 2.5]) if bounded else rng.choice([20.0, 35.5, 60.0])
    kinds = ["hazard", "scaled", "adaptive"]
    if bounded:
        kinds += ["default", "one stage", "geometric", "adaptive"] + ["geometric"] * share_like
    kind = rng.choice(kinds)
    if kind == "adaptive" and not bounded and rng.random() < 0.9:  # its grid has half a million points
        kind = "hazard"
    return {
        "hazard": Hazard(resolution),
        "scaled": Hazard(resolution, rng.choice([1e-3, 0.01, 0.5])),
        "adaptive": Adaptive(threshold=rng.choice([1e-9, None]), share=rng.choice([None, None, 0.3])),
        "one stage": Adaptive(threshold=1e9),
        "default": Hazard(),
        "geometric": Geometric(),
    }[kind]


def some_weights(rng: random.Random, n: int) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if rng.random() < 0.4:
        options["sample_weight"] = [rng.choice([0.5, 1.0, 2.0, 0.1, 3.7]) for _ in range(n)]
    if rng.random() < 0.4:
        options["groups"] = [rng.randrange(max(n // 2, 1)) for _ in range(n)]
    return options


def mean_query(rng: random.Random, metric: str) -> Query:
    private_n = rng.random() < 0.3
    n = rng.choice([1, 2, 3, 7, 15, 30]) if not private_n else rng.choice([0, 1, 2, 5, 12, 20])
    options = {} if private_n else some_weights(rng, n)
    finish: Callable[[float], float] = float
    a, b = some_numbers(rng, n), some_numbers(rng, n)
    cap: float | None = None
    if metric == "private_mean_loss":
        cap = rng.choice([None, 1.0, 0.1, 50.0])
        data, losses = (a,), a
        options |= {"max_loss": cap}
    elif metric == "private_mean":
        low, high = rng.choice([(-1.0, 2.5), (0.0, 0.1), (-7.0, 1e3)])
        data, losses = ([x - 1 for x in a],), [min(max(x - 1, low), high) - low for x in a]
        cap, options = high - low, options | {"bounds": (low, high)}
        finish = lambda value: min(low + value, high)  # noqa: E731
    elif metric == "private_log_loss":
        p = [rng.random() if rng.random() < 0.9 else rng.choice([0.0, 1.0, 0.5]) for _ in range(n)]
        true = [rng.randrange(2) for _ in range(n)]
        tiny, cap = float(np.finfo(float).eps), rng.choice([None, 3.0, 10.0])
        of_true = [x if y else 1.0 - x for x, y in zip(p, true, strict=True)]
        losses = [float(-np.log(np.float64(min(max(x, tiny), 1 - tiny)))) for x in of_true]
        data, options = (true, p), options | {"max_loss": cap}
        cap = float(-np.log(np.float64(tiny))) if cap is None else cap
    elif metric in ("private_accuracy_score", "private_zero_one_loss"):
        true, guess = ([rng.choice("abc") for _ in range(n)] for _ in range(2))
        data, cap, losses = (true, guess), 1.0, [float(x != y) for x, y in zip(true, guess, strict=True)]
        if metric == "private_accuracy_score":
            finish = lambda value: 1.0 - value  # noqa: E731
    else:
        limits = rng.choice([None, (0.0, 10.0), (-0.5, 1.1)])
        if limits:
            options["bounds"] = limits
        clip = (lambda v: min(max(v, limits[0]), limits[1])) if limits else float
        errors = [clip(y) - clip(x) for x, y in zip(a, b, strict=True)]
        is_square = metric == "private_mse"
        losses = [e * e if is_square else abs(e) for e in errors]
        width = limits[1] - limits[0] if limits else 0.0
        data, cap = (a, b), (width * width if is_square else width) if limits else None
    known = mean_records(
        losses,
        cap,
        options.get("sample_weight"),
        options.get("groups"),
        private_n=private_n,
        is_count=metric in ("private_accuracy_score", "private_zero_one_loss"),
    )
    mechanism = some_mechanism(rng, bounded=cap is not None, share_like=metric == "private_accuracy_score")
    return Query(metric, metric, data, rng.choice(EPSILONS), options, private_n, known, finish, mechanism)


def variance_query(rng: random.Random) -> Query:
    private_n = rng.random() < 0.4
    n = rng.choice([1, 2, 3, 6, 12]) if not private_n else rng.choice([0, 1, 2, 5, 9])
    limits = rng.choice([None, (0.0, 10.0), (-0.3, 3.3)])
    x = [v - rng.choice([0.0, 1.0]) for v in some_numbers(rng, n)]
    known = variance_records(x, limits, private_n=private_n)
    mechanism = some_mechanism(rng, bounded=limits is not None)
    options = {"bounds": limits}
    return Query(
        "private_variance",
        "private_variance",
        (x,),
        rng.choice(EPSILONS),
        options,
        private_n,
        known,
        mechanism=mechanism,
    )


def quantile_query(rng: random.Random) -> Query:
    n, q = rng.choice([1, 2, 9, 30]), rng.choice([0, 0.1, 0.5, 0.9, 1])
    low, high = rng.choice([(0.0, 10.0), (-2.0, 3.3), (0.0, None)])
    x, top = some_numbers(rng, n), MAX if high is None else high
    above = [min(max(v, low), top) - low for v in x]
    t_max = min(top - low, MAX)
    k = max(math.ceil(Fraction(q) * n), 1)
    known = Records(
        lambda c: model.order_bounds(fractions(above), k, t_max, c),
        t_max,
        n,
        True,
        sensitivity=None if high is None else t_max,
    )
    mechanism = some_mechanism(rng, bounded=high is not None)
    mechanism = Hazard(0.9) if isinstance(mechanism, Adaptive) and high else mechanism
    mechanism = Hazard(40.0) if isinstance(mechanism, Adaptive) else mechanism
    options = {"q": q, "bounds": (low, high)}
    finish = lambda value: min(low + value, top)  # noqa: E731
    return Query(
        "private_quantile",
        "private_quantile",
        (x,),
        rng.choice(EPSILONS),
        options,
        False,
        known,
        finish,
        mechanism,
    )


def auc_query(rng: random.Random) -> Query:
    private_n, n = rng.random() < 0.4, rng.choice([1, 2, 4, 8, 14])
    n = 0 if private_n and rng.random() < 0.1 else n
    true = [rng.randrange(2) for _ in range(n)]
    scores = [rng.choice([0.0, -0.0, 0.2, 0.5, 0.9, rng.random()]) + 0.3 * y * rng.random() for y in true]
    sides = [[s for s, y in zip(scores, true, strict=True) if y == side] for side in (1, 0)]
    known = Records(lambda c: model.auc_bounds(*sides, c, private_n), 1.0, n, False, most_ranks=4096)
    mechanism = rng.choice([Hazard(), Hazard(scale=0.1), Hazard(0.9), Hazard(0.3, 0.05)])
    follows = mechanism.resolution is None
    sizes = tuple(map(len, sides)) if private_n else (len(sides[0]),)
    finish = lambda value: 1.0 - value  # noqa: E731
    return Query(
        "private_roc_auc_score",
        "private_roc_auc_score",
        (true, scores),
        rng.choice(EPSILONS),
        {},
        private_n,
        known,
        finish,
        mechanism,
        classes=sizes if follows else (),
    )


def ratio_of(above: Any, below: Any) -> float:
    return float(above / below) if below else 0.0


def table_query(rng: random.Random, metric: str) -> Query:
    """Return a query of counts of true and predicted labels."""
    private_n, n = rng.random() < 0.4, rng.choice([1, 5, 20, 60])
    labels = (
        2
        if metric not in ("private_confusion_matrix", "private_balanced_accuracy_score")
        else rng.choice([2, 3])
    )
    labels = 4 if metric == "macro F1" else labels
    true, guess = ([rng.randrange(labels) for _ in range(n)] for _ in range(2))
    matrix = [
        [sum(t == i and g == j for t, g in zip(true, guess, strict=True)) for j in range(labels)]
        for i in range(labels)
    ]
    right = [matrix[i][i] for i in range(labels)]
    missed = [sum(matrix[i]) - right[i] for i in range(labels)]
    wrong = [sum(row[i] for row in matrix) - right[i] for i in range(labels)]
    one = {"private_recall_score": missed[1], "private_precision_score": wrong[1]}.get(
        metric, missed[1] + wrong[1]
    )
    weights = [Fraction(1)] * 3
    options: dict[str, Any] = {"labels": list(range(labels))} if labels > 2 else {}
    factor = 2 if "f1" in metric else 1
    partition = True

    def of_counts(x: Sequence[Any]) -> Any:
        return ratio_of(factor * x[0], factor * x[0] + x[1])

    counts = [right[1], one, n - right[1] - one]
    if metric == "private_confusion_matrix":
        counts = [count for row in matrix for count in row]

        def of_counts(x: Sequence[Any]) -> Any:
            return np.array([float(v) for v in x]).reshape(labels, labels)

    elif metric == "private_balanced_accuracy_score":
        counts = right + missed

        def of_counts(x: Sequence[Any]) -> Any:
            return sum(ratio_of(x[i], x[i] + x[labels + i]) for i in range(labels)) / labels

    elif metric == "macro F1":
        counts, partition = right + [a + b for a, b in zip(missed, wrong, strict=True)], False
        options |= {"average": "macro"}
        weights = [Fraction(1)] * labels + [Fraction(1, 2)] * labels

        def of_counts(x: Sequence[Any]) -> Any:
            return sum(ratio_of(2 * x[i], 2 * x[i] + x[labels + i]) for i in range(labels)) / labels

    weights = weights if not partition else [Fraction(1)] * len(counts)
    rate = Fraction(1) if private_n else Fraction(1, 2)

    def of_noisy(noisy: Sequence[int]) -> Any:
        return of_counts(noise.nearest_counts(noisy, weights, None if private_n else n))

    name = "private_f1_score" if metric == "macro F1" else metric
    return Query(
        metric,
        name,
        (true, guess),
        rng.choice(EPSILONS),
        options,
        private_n,
        None,
        counts=counts,
        rates=[rate * w for w in weights],
        zero_sum=partition and not private_n,
        of_counts=of_noisy,
    )


def tied_query(rng: random.Random) -> Query:
    """Return a query whose metric and bounds are points of its own grid: n equal records, or 0."""
    resolution, n = rng.choice([0.5, 1.3]), rng.choice([1, 2, 4, 8])
    grid = (
        Hazard(resolution, 0.01)
        .output_distribution(
            dp_metrics.sensitivity.output_bounds.OutputBounds(0.0, [0.0], [1.0], (0.0, 1.0), True, 1), 1.0
        )
        .grid
    )
    value = float(grid.points(np.array([rng.randrange(grid.last + 1)]))[0])
    query = mean_query_of([value] * n, 1.0, rng)
    query.mechanism = Hazard(resolution, 0.01)
    return query


def mean_query_of(losses: list[float], cap: float, rng: random.Random) -> Query:
    known = mean_records(losses, cap, None, None, private_n=False)
    return Query(
        "tied losses", "private_mean_loss", (losses,), rng.choice(EPSILONS), {"max_loss": cap}, False, known
    )


MEANS = ["private_mse", "private_mae", "private_log_loss", "private_mean_loss", "private_mean"]
SHARES = ["private_accuracy_score", "private_zero_one_loss"]
TABLES = ["private_recall_score", "private_precision_score", "private_f1_score", "macro F1"]
TABLES += ["private_confusion_matrix", "private_balanced_accuracy_score"]
MAKERS: list[Callable[[random.Random], Query]] = [
    *(lambda rng, m=m: mean_query(rng, m) for m in MEANS for _ in range(2)),
    *(lambda rng, m=m: mean_query(rng, m) for m in SHARES),
    *[variance_query] * 3,
    quantile_query,
    *[auc_query] * 2,
    *(lambda rng, m=m: table_query(rng, m) for m in TABLES),
    tied_query,
]


def queries(count: int, seed: int = 0) -> Iterator[tuple[int, Query]]:
    """Yield random queries, each kind in turn, with the seed of each."""
    for i in range(count):
        own = 1000 * seed + i
        yield own, MAKERS[i % len(MAKERS)](random.Random(own))


def described(query: Query) -> tuple[str, str, str]:
    """Return the kind of a query: metric, mechanism, relation."""
    mechanism = "counts" if query.records is None else type(query.mechanism).__name__.lower()
    return query.kind, mechanism, "add or remove" if query.private_n else "replace"


def main(count: int) -> None:
    start = time.perf_counter()
    table: dict[tuple[str, str, str], list[float]] = defaultdict(lambda: [0, 0.0, 0])
    for seed, query in queries(count):
        found = compare(query, seed)
        row = table[described(query)]
        row[0], row[1], row[2] = row[0] + 1, max(row[1], found.distance), row[2] + found.decisions
    print(f"{'metric':32}{'mechanism':11}{'relation':15}{'queries':>8}{'distance':>10}{'decisions':>11}")
    for kind, (number, distance, decisions) in sorted(table.items()):
        print(f"{kind[0]:32}{kind[1]:11}{kind[2]:15}{number:8}{distance:10.1e}{decisions:11}")
    total = [sum(row[0] for row in table.values()), max(row[1] for row in table.values())]
    print(
        f"{total[0]} queries, distance at most {total[1]:.1e}, {sum(row[2] for row in table.values())} decisions"
    )
    print(f"{time.perf_counter() - start:.0f} seconds")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
