"""The package against the model, on random queries: ``python tests/model/differential.py [how many]``.

A query is a call of a public function. The package goes its own way, from the records to what is left to
draw. The model starts from the same records with code of its own. Compared are the law of what is released,
what chosen bits mean, and the value of a whole call with given bits.
"""

from __future__ import annotations

import math
import random
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple

import model
import model_noise as noise
import numpy as np
from modelled import DISTANCES, Query, Stages, nearest
from modelled_calls import (
    CLASS_SHARE,
    COUNT_SHARE,
    called,
    first_stage,
    hazard_model,
    needs_count,
    place_of,
    ranking_rule,
    two_stages,
)
from random_queries import random_query

import dp_metrics
from dp_metrics import Geometric, Hazard
from dp_metrics._random import LazyUniform
from dp_metrics.mechanisms._hazard_law import HazardLaw
from dp_metrics.mechanisms.geometric import spread_noise
from dp_metrics.metrics import METRICS

TOLERANCE = 1e-12  # of a distance in total variation


@dataclass
class Found:
    """The largest total variation distance, and how many decisions were compared."""

    distance: float = 0.0
    decisions: int = 0

    def add(self, distance: float) -> None:
        assert not math.isnan(distance), "a probability that is not a number"
        self.distance = max(self.distance, distance)


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


def shift_distance(rate: Fraction, shift: int, steps: int = 1) -> float:
    """Return the total variation distance of staircase noise and the same noise shifted."""
    half = abs(shift) // 2
    if not shift:
        return 0.0
    upper = noise.staircase_cdf(rate, steps, half if shift % 2 else half - 1)
    return upper - noise.staircase_cdf(rate, steps, -half - 1)


def compare_geometric(law: Any, expected: noise.Noisy, found: Found) -> None:
    """Compare laws of one noisy place, which are equal if their rational parameters are."""
    (place, *_), rate, last, steps, _ = expected
    half = noise.middle_stair(rate, steps)
    same = (law.added.epsilon, law.added.steps, law.added.half, law.grid.last) == (rate, steps, half, last)
    found.add(shift_distance(rate, law.centre - place, steps) if same else 1.0)


def compare_cdf(law: Any, expected: noise.Noisy, found: Found) -> None:
    """Compare the distribution function that the package computes, near and far from the place."""
    (place, *_), rate, last, steps, _ = expected
    spread = max(math.ceil(steps / rate), 1)
    around = [place + z for z in (-20 * spread, -2 * spread, -1, 0, 1, spread, 7 * spread)]
    inside = [k for k in around if 0 <= k < last]
    cdf = [noise.staircase_cdf(rate, steps, k - place) for k in inside]
    if inside:
        found.add(float(np.abs(law.index_cdf(np.array(inside)) - cdf).max()))


def compare_sums(
    law: Any,
    expected: noise.Noisy,
    of_sums: Callable[[Sequence[int]], float],
    found: Found,
) -> None:
    same = law.rate == expected.rate
    shifts = [a - b for a, b in zip(law.sums.values, expected.values, strict=True)]
    found.add(sum(shift_distance(expected.rate, s) for s in shifts) if same else 1.0)
    for away, unit in product((-3, -1, 0, 1, 4), (1, 2**18)):
        noisy = [v + away * unit for v in expected.values]
        value = float(law.sums.combine(*(np.float64(v) for v in noisy)))
        assert math.isclose(value, of_sums(noisy), rel_tol=1e-9, abs_tol=1e-12 * law.sums.limit), (
            "other value of the sums"
        )


def compare_stages(
    query: Query, law: Any, epsilon: Fraction, n: int, rng: random.Random, found: Found
) -> None:
    """Compare the law of the scale, and that of the release given each scale that some outcome means."""
    known = query.records
    first, rest = first_stage(query, epsilon, n, law.first)
    compare_hazard(law.first, first, rng, found)
    mass = np.array(first.probabilities())
    if known.stages.rule is DISTANCES:
        cells = rng.choices(range(len(mass)), mass, k=6)
    else:
        cells = levels(known.stages, first.grid, mass)
    for cell in cells:
        c1 = known.stages.c1(first.grid[cell])
        total = known.stages.clipped(c1)
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
            last = math.ceil(min(known.t_max / spacing, 2**52))
            compare_geometric(given, noise.Noisy([place], rest, last, steps), found)
            assert given.grid.spacing == spacing, "another lattice"


def levels(stages: Stages, grid: list[float], mass: np.ndarray) -> list[int]:
    """Return the first and the last cell of each clipping level that is at all likely."""
    seen: dict[Fraction, list[int]] = {}
    for cell in np.flatnonzero(mass > 1e-25).tolist():
        seen.setdefault(stages.c1(grid[cell]), [cell, cell])[1] = cell
    return sorted({cell for ends in seen.values() for cell in ends})


# A whole query


def compare(query: Query, seed: int) -> Found:
    """Compare all that the package and the model say of a query."""
    rng, found, row = random.Random(seed), Found(), METRICS[query.metric]
    settings = {k: v for k, v in query.arguments.items() if k not in row.options}
    release = row.settings(options=query.options, **settings)
    plan, known = row.read(query.data, query.options, private_n=query.private_n)
    (draw,), (mechanism,), for_count = release.prepare(plan, known)
    epsilon = model.epsilon_of(query.epsilon)
    if query.records is None:
        compare_table(query, release, (plan, known), draw, epsilon, rng, found)
    elif query.classes:
        compare_ranking(query, draw, epsilon, rng, found)
    else:
        counted = query.private_n and needs_count(query.mechanism)
        assert for_count == (epsilon * COUNT_SHARE if counted else 0), "another share for the count"
        compare_number(query, draw, mechanism, epsilon - for_count, counted, rng, found)
    for _ in range(2):
        compare_call(query, epsilon, rng, found)
    return found


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
            for compare_one in (compare_geometric, compare_cdf):
                compare_one(law, expected, found)
            for place, (rate, steps) in list(zip(expected.values, expected.laws, strict=True))[1:]:
                added = spread_noise(law.added, draw.epsilon)
                same = (added.epsilon, added.steps) == (rate, steps)
                found.add(shift_distance(rate, draw.place(law) - place, steps) if same else 1.0)
        return
    sizes = [known.size]
    if counted:
        sizes = noisy_sizes(known.size, model.epsilon_of(query.epsilon) * COUNT_SHARE, rng)
    for n in sizes:
        law = draw.law(n)
        assert draw.epsilon == epsilon
        chance = two_stages(query, epsilon, n)
        if 0 < chance < 1:
            found.add(abs(float(law.probability - chance)))
        if chance > 0:
            compare_stages(query, getattr(law, "two", law), epsilon, n, rng, found)
        if chance < 1:
            one = getattr(law, "one", law)
            rule = query.mechanism if isinstance(query.mechanism, Hazard) else Hazard()
            compare_hazard(one, hazard_model(query, epsilon, n, rule, law=one), rng, found)


def noisy_sizes(size: int, rate: Fraction, rng: random.Random) -> list[int]:
    """Return all noisy sizes but for a probability of 1e-14, if those are few, or else two of them."""
    reach = math.ceil(33 / rate)
    if reach <= 8:
        return sorted({max(size + z, 1) for z in range(-reach, reach + 1)})
    source = noise.Adversary(rng.getrandbits(32))
    return [max(size + noise.discrete_laplace(source, rate), 1) for _ in range(2)]


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
    query: Query, release: Any, planned: Any, draw: Any, epsilon: Fraction, rng: random.Random, found: Found
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
        value = release.result(*planned, [tuple(noisy)])
        np.testing.assert_allclose(
            value, query.of_counts(noisy), rtol=1e-9, atol=1e-9, err_msg="other value of the counts"
        )


def compare_call(query: Query, epsilon: Fraction, rng: random.Random, found: Found) -> None:
    """Compare the value of a call of the public function, given the bits that it draws."""
    source = noise.Adversary(rng.getrandbits(32))
    value, tolerance = called(query, epsilon, source)
    entropy = Words(source.words)
    with np.errstate(all="raise"):  # as a hostile caller may
        result = dp_metrics.with_result(getattr(dp_metrics, query.metric))(
            *query.data, **query.arguments, random_state=entropy
        )
    assert not entropy.left, "the model asks for more bits than the package"
    np.testing.assert_allclose(
        result.value, value, rtol=tolerance, atol=1e-300, err_msg="another value for the same bits"
    )
    found.decisions += 1


class Row(NamedTuple):
    """What was found of one kind of query."""

    queries: int = 0
    distance: float = 0.0
    decisions: int = 0


def described(query: Query) -> tuple[str, str, str]:
    """Return the kind of a query: metric, mechanism, relation."""
    mechanism = "counts" if query.records is None else type(query.mechanism).__name__.lower()
    return query.kind, mechanism, "add or remove" if query.private_n else "replace"


def is_small(query: Query) -> bool:
    """Return whether a query has few records, and no grid of half a million points."""
    return len(query.data[0]) <= 30 and not (query.records and query.records.t_max == sys.float_info.max)


def compared(numbers: Iterable[int]) -> dict[tuple[str, str, str], Row]:
    """Compare the queries with these numbers; raise at the first that differs."""
    table: dict[tuple[str, str, str], Row] = defaultdict(Row)
    for number in numbers:
        query = random_query(number)
        try:
            with np.errstate(all="ignore"):  # as a release does
                found = compare(query, number)
            assert found.distance <= TOLERANCE, f"distance {found.distance:.1e}"
        except AssertionError as error:
            raise AssertionError(f"query {number}, {described(query)}: {error}") from error
        row = table[described(query)]
        table[described(query)] = Row(
            row.queries + 1, max(row.distance, found.distance), row.decisions + found.decisions
        )
    return table


def added(rows: Iterable[Row]) -> Row:
    """Return what was found of several kinds together."""
    queries, distances, decisions = zip(*rows, strict=True)
    return Row(sum(queries), max(distances), sum(decisions))


def main(count: int) -> None:
    """Print what was compared: each kind, and each mechanism and relation."""
    start = time.perf_counter()
    table = compared(range(count))
    print(f"{'metric':32}{'mechanism':11}{'relation':15}{'queries':>8}{'distance':>10}{'decisions':>11}")
    for chosen in (
        table,
        dict.fromkeys(("all", *kind[1:]) for kind in sorted(table)),
        {("all", "all", "all"): 0},
    ):
        for kind in sorted(chosen):
            same = [k for k in table if all(b in ("all", a) for a, b in zip(k, kind, strict=True))]
            row = added(table[k] for k in same)
            print(
                f"{kind[0]:32}{kind[1]:11}{kind[2]:15}{row.queries:8}{row.distance:10.1e}{row.decisions:11}"
            )
    print(f"{time.perf_counter() - start:.0f} seconds")


if __name__ == "__main__":
    warnings.simplefilter("ignore", dp_metrics.NoisyReleaseWarning)
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
