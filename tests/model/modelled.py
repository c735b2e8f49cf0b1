"""What the model knows of the records of a query, by code that shares nothing with the package."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import model
import model_noise as noise
import numpy as np
from model import UNLIMITED

MAX = sys.float_info.max
LOSSES, DISTANCES = (0.4, 300), (0.2, 900)  # of a first stage: resolution, threshold
MOST_RANKS = 1 << 16  # where n is private


class Stages(NamedTuple):
    """What the first stage draws from, and the sum clipped at what it has drawn."""

    bounds: Callable[[int, int], model.Bounds]  # of the k-th record from the ends, at c ranks
    t_max: float
    rule: tuple[float, int]
    monotonic: bool
    c1: Callable[[float], Fraction]  # what a record adds at most, from what was drawn
    clipped: Callable[[Fraction], Fraction]  # the sum, given C1


class Records(NamedTuple):
    """What a mechanism may know of the records, by code that shares nothing with the package."""

    bounds: Callable[[int], model.Bounds]  # of so many ranks
    t_max: float
    size: int  # records, or groups
    monotonic: bool
    reach: float | None = None  # n times what one record adds at most
    sensitivity: float | None = None
    steps: int | None = None
    spread: Fraction | None = None
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


def of_groups(terms: Sequence[Fraction], groups: Sequence[int]) -> list[Fraction]:
    """Return the sum of each group, rounded once: a float is what a person's records are to all the rest."""
    by_group: dict[int, Fraction] = {}
    for group, term in zip(groups, terms, strict=True):
        by_group[group] = by_group.get(group, Fraction(0)) + term
    return [Fraction(nearest(by_group[group])) for group in sorted(by_group)]


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
    n = len(losses)
    clipped = [min(max(v, 0.0), MAX if cap is None else cap) for v in losses]
    w = [1.0] * n if weights is None else list(weights)
    total_weight = sum(fractions(w), Fraction(0))
    terms = fractions([min(a * v, MAX) for a, v in zip(w, clipped, strict=True)])
    limits = [UNLIMITED if cap is None else Fraction(min(a * cap, MAX)) for a in w]
    if groups is not None:
        terms, limits = of_groups(terms, groups), of_groups(limits, groups)
        limits = [UNLIMITED] * len(terms) if cap is None else limits
    size, plain = len(terms), weights is None and groups is None
    most = UNLIMITED if cap is None else Fraction(cap)
    largest = max(limits, default=most)
    t_max = nearest(most if plain else sum(limits) / total_weight)

    def bounds(c: int) -> model.Bounds:
        if private_n:
            return model.private_mean_bounds(terms, most, t_max, c)
        return model.mean_bounds(terms, limits, total_weight, t_max, c)

    fineness = 1 if is_count else 2**20  # of a private n
    part = size / total_weight if size else Fraction(1)  # what a term is worth, in terms of the plain mean

    def c1(drawn: float) -> Fraction:
        level = noise.five_bits_up(Fraction(max(drawn, 1e-270)) / part)
        return min(level, largest, Fraction(2) ** 1024) * part  # no term is larger than all floats

    def clipped_sum(c1: Fraction) -> Fraction:
        return sum((min(t * part, c1) for t in terms), Fraction(0))

    ys = [Fraction(nearest(t * part)) for t in sorted(terms, reverse=True)]
    y_max, sensitivity = nearest(largest * part), nearest(largest / total_weight) if n else 0.0
    return Records(
        bounds,
        t_max,
        size,
        not private_n,
        reach=None if cap is None else y_max,
        sensitivity=max(sensitivity, 5e-324),
        steps=n if is_count and plain and not private_n else None,
        spread=noise.spread(terms, most) if plain and cap is not None and n and not is_count else None,
        stages=Stages(partial(noise.order_statistic, ys, y_max), y_max, LOSSES, True, c1, clipped_sum),
        sums=lambda epsilon: noise.two_sums(sum(terms, Fraction(0)), most, n, epsilon, fineness),
        of_sums=lambda noisy: noise.mean_of_two(noisy, most, t_max, fineness),
    )


def variance_records(
    values: Sequence[float], limits: tuple[float, float] | None, *, private_n: bool
) -> Records:
    n = len(values)
    low, high = fractions(limits) if limits else (Fraction(0), Fraction(0))
    x = [min(max(v, low), high) for v in fractions(values)] if limits else fractions(values)
    width = high - low if limits else UNLIMITED
    t_max, y_max = (nearest((high - low) ** 2 / 4), nearest(high - low)) if limits else (MAX, MAX)
    make = model.private_variance_bounds if private_n else model.variance_bounds

    return Records(
        lambda c: make(x, width, t_max, c),
        t_max,
        n,
        False,
        reach=nearest((high - low) ** 2) if limits else None,
        sensitivity=nearest((high - low) ** 2 * Fraction(n - 1, n * n)) if limits and n else None,
        most_ranks=4096,
        stages=Stages(
            partial(noise.far_distances, x, (low, high) if limits else (-UNLIMITED, UNLIMITED), y_max),
            y_max,
            DISTANCES,
            False,
            lambda drawn: Fraction(max(min(drawn * math.sqrt(1.1), y_max), 1e-130)) ** 2,
            lambda c1: noise.clipped_squares(x, c1),
        ),
        sums=lambda epsilon: noise.three_sums(x, low, high, epsilon),
        of_sums=lambda noisy: noise.variance_of_three(noisy, high - low),
    )
