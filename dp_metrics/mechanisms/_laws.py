"""Output laws: the exact distribution of a release, computed rather than sampled."""

from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from dp_metrics._random import Entropy, uniforms
from dp_metrics.inputs.floats import Floats
from dp_metrics.mechanisms._grid import Grid, Integers, bisected

LARGEST_NOISE = 2.0**60  # An int64 holds this and the place on a grid that it is added to.


class OutputLaw(Protocol):
    """The law of one release. It describes private data: use it in studies, never publish it."""

    def cdf(self, t: ArrayLike) -> Floats:
        """Return P(release <= t)."""

    def quantile(self, p: ArrayLike) -> Floats:
        """Return the smallest t with P(release <= t) >= p."""

    def median(self) -> float:
        """Return the quantile of 1/2."""

    def mean_absolute_error(self, value: float, cap: float = np.inf) -> float:
        """Return the expectation of min(abs(release - value), cap)."""


class _Law:
    def quantile(self, p: ArrayLike) -> Floats:
        raise NotImplementedError

    def median(self) -> float:
        """Return the quantile of 1/2."""
        return float(self.quantile(0.5))


class FloatLaw(_Law):
    """A law of a comparator, which draws a float64 as the quantile of a uniform number."""

    def release(self, entropy: Entropy) -> float:
        """Draw an output."""
        u, _ = uniforms(entropy, 1)
        return float(self.quantile(u)[0])


def check_probability(p: ArrayLike) -> Floats:
    """Return probabilities as an array, or raise."""
    p = np.asarray(p, dtype=np.float64)
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError("p must lie in [0, 1].")
    return p


class GridLaw(_Law):
    """A law on the points of a grid, given by its distribution function over their indices."""

    grid: Grid

    def release(self, entropy: Entropy) -> float:
        """Draw an output."""
        raise NotImplementedError

    def index_cdf(self, indices: Integers) -> Floats:
        """Return P(number of the release <= k)."""
        raise NotImplementedError

    def index_above(self, indices: Integers) -> Floats:
        """Return P(number of the release > k); a law of small tails knows it better than their complement."""
        return 1.0 - self.index_cdf(indices)

    def index_quantile(self, p: Floats) -> Integers:
        """Return the smallest k with P(number <= k) >= p, by bisection."""
        low, high = (np.full(p.shape, end) for end in (self.grid.first - 1, self.grid.last))
        return bisected(low, high, lambda at: self.index_cdf(at) >= p)

    def cdf(self, t: ArrayLike) -> Floats:
        """Return P(release <= t)."""
        t = np.asarray(t, dtype=np.float64)
        # no grid point is below the first, and index_cdf(first - 1) is 0
        return self.index_cdf(self.grid.index_above(t.ravel()) - 1).reshape(t.shape)

    def quantile(self, p: ArrayLike) -> Floats:
        """Return the smallest grid point t with P(release <= t) >= p."""
        p = check_probability(p)
        return self.grid.points(self.index_quantile(p.ravel())).reshape(p.shape)

    def mean_absolute_error(self, value: float, cap: float = np.inf) -> float:
        """Return the expectation of min(abs(release - value), cap).

        Notes
        -----
        Sets of consecutive grid points are halved until the error that comes from treating each as
        one is certainly below 1e-4 of the result, and far below it by the trapezoidal rule.
        """
        landmarks = self.grid.index_at_least(
            np.array([value - cap, value, min(value + cap, np.finfo(float).max)])
        )
        first, last = self.grid.first - 1, self.grid.last
        nodes = np.unique(np.clip(np.concatenate([[first, last], landmarks - 1, landmarks]), first, last))
        nodes = np.unique(np.concatenate([nodes, self.index_quantile(np.linspace(0.0, 1.0, 513))]))
        mass, above = self.index_cdf(nodes), self.index_above(nodes)
        cost = self._cost(nodes, value, cap)
        while True:
            share = np.where(mass[:-1] < 0.5, np.diff(mass), -np.diff(above))
            # the set after node i starts one grid point later, where the cost may have jumped
            start = self._cost(np.minimum(nodes[:-1] + 1, last), value, cap)
            slack = share * np.abs(cost[1:] - start)
            estimate = float(np.sum(share * (cost[1:] / 2 + start / 2)))
            wide = np.diff(nodes) > 1
            if float(np.sum(slack[wide])) <= 2e-4 * estimate:
                return estimate
            split = wide & (slack > 1e-4 * estimate / nodes.size)
            middle = (nodes[:-1][split] + nodes[1:][split]) // 2
            order = np.argsort(np.concatenate([nodes, middle]), kind="stable")
            mass = np.concatenate([mass, self.index_cdf(middle)])[order]
            above = np.concatenate([above, self.index_above(middle)])[order]
            cost = np.concatenate([cost, self._cost(middle, value, cap)])[order]
            nodes = np.concatenate([nodes, middle])[order]

    def _cost(self, indices: Integers, value: float, cap: float) -> Floats:
        points = self.grid.points(np.maximum(indices, self.grid.first))
        return np.minimum(np.abs(points - value), cap)


class OutcomesLaw(_Law):
    """A discrete law, exact or as an approximation of another law.

    Parameters
    ----------
    values, mass : ndarray
        The outcomes, in any order, and the probability of each.
    """

    def __init__(self, values: Floats, mass: Floats) -> None:
        order = np.argsort(values, kind="stable")
        self._values, self._mass = values[order], mass[order] / mass.sum()
        self._reached = np.minimum(np.cumsum(self._mass), 1.0)
        self._reached[-1] = 1.0

    def cdf(self, t: ArrayLike) -> Floats:
        """Return P(release <= t)."""
        return np.append(0.0, self._reached)[np.searchsorted(self._values, t, side="right")]

    def quantile(self, p: ArrayLike) -> Floats:
        """Return the smallest t with P(release <= t) >= p."""
        values: Floats = self._values[np.searchsorted(self._reached, check_probability(p), side="left")]
        return values

    def mean_absolute_error(self, value: float, cap: float = np.inf) -> float:
        """Return the expectation of min(abs(release - value), cap)."""
        return float(np.sum(self._mass * np.minimum(np.abs(self._values - value), cap)))


class ApproximateLaw:
    """A law that outcomes stand for; its release is exact."""

    def outcomes(self) -> tuple[Floats, Floats]:
        """Return outcomes that stand for the law, and the probability of each."""
        raise NotImplementedError

    @cached_property
    def _law(self) -> OutcomesLaw:
        return OutcomesLaw(*self.outcomes())

    def cdf(self, t: ArrayLike) -> Floats:
        """Return P(release <= t)."""
        return self._law.cdf(t)

    def quantile(self, p: ArrayLike) -> Floats:
        """Return the smallest t with P(release <= t) >= p."""
        return self._law.quantile(p)

    def median(self) -> float:
        """Return the quantile of 1/2."""
        return self._law.median()

    def mean_absolute_error(self, value: float, cap: float = np.inf) -> float:
        """Return the expectation of min(abs(release - value), cap)."""
        return self._law.mean_absolute_error(value, cap)


def cell_edges(even: int, octaves: int, in_octave: int = 1) -> Floats:
    """Cut the probabilities from 0 to 1 into cells: even ones, and ever smaller ones towards both ends."""
    tail = np.exp2(-np.arange(0, octaves, 1 / in_octave)) / even
    return np.concatenate([[0.0], tail[::-1], np.arange(2, even - 1) / even, 1 - tail, [1.0]])


def cells(even: int, octaves: int) -> tuple[Floats, Floats]:
    """Return the cells that `cell_edges` cuts.

    Returns
    -------
    middle, mass : ndarray
        The middle of each cell, and its size.
    """
    edges = cell_edges(even, octaves)
    mass = np.diff(edges)
    return edges[:-1] + mass / 2, mass


def laplace_quantiles(p: Floats) -> Floats:
    """Return quantiles of the standard Laplace law, for p strictly between 0 and 1."""
    quantiles: Floats = np.where(p < 0.5, np.log(2 * np.minimum(p, 0.5)), -np.log(2 * np.minimum(1 - p, 0.5)))
    return quantiles


def geometric_quantiles(p: Floats, rate: float) -> Floats:
    """Return whole numbers near quantiles of two-sided geometric noise, none beyond `LARGEST_NOISE`."""
    noise: Floats = np.rint(np.clip(laplace_quantiles(p) / rate, -LARGEST_NOISE, LARGEST_NOISE))
    return noise


class ReflectedLaw(_Law):
    """A release above zero, or with the probability of the first output there, one at or below zero.

    Parameters
    ----------
    positive : GridLaw
        Law of the first search, over 0 = t_0 < t_1 < ...
    negative : GridLaw
        Law of minus the result of the second search, made if the first halts at once.
    """

    def __init__(self, positive: GridLaw, negative: GridLaw) -> None:
        self._positive, self._negative = positive, negative
        self._start = float(positive.grid.points(np.array([positive.grid.first]))[0])

    @cached_property
    def _again(self) -> float:
        """Probability of the second search."""
        grid = self._positive.grid
        return float(self._positive.index_cdf(np.array([grid.first]))[0])

    def release(self, entropy: Entropy) -> float:
        """Draw an output."""
        found = self._positive.release(entropy)
        return found if found > self._start else -self._negative.release(entropy)

    def cdf(self, t: ArrayLike) -> Floats:
        """Return P(release <= t)."""
        t = np.asarray(t, dtype=np.float64)
        # P(-T <= t) = 1 - P(T < -t): T sits on grid points, so step just below -t
        below = self._again * (1.0 - self._negative.cdf(np.nextafter(-t, -np.inf)))
        above = np.where(t >= self._start, self._positive.cdf(t) - self._again, 0.0)
        return below + above

    def quantile(self, p: ArrayLike) -> Floats:
        """Return the smallest t with P(release <= t) >= p."""
        p = check_probability(p)
        above = self._positive.quantile(p)
        if self._again == 0.0:
            return above
        return np.where(
            p > self._again, above, -self._negative.quantile(np.clip(1.0 - p / self._again, 0, 1))
        )

    def mean_absolute_error(self, value: float, cap: float = np.inf) -> float:
        """Return the expectation of min(abs(release - value), cap)."""
        first = self._positive.mean_absolute_error(value, cap) - self._again * min(
            abs(self._start - value), cap
        )
        return first + self._again * self._negative.mean_absolute_error(-value, cap)


class IntervalLaw(FloatLaw):
    """A law with an exponential or constant density on each of finitely many intervals.

    Parameters
    ----------
    edges : ndarray of shape (m + 1,)
        Ends of the intervals, not decreasing.
    log_weights : ndarray of shape (m,)
        Logarithm of the unnormalised probability of each interval; -inf for an empty one.
    rates : ndarray of shape (m,)
        On an interval [a, b] the density is proportional to exp(-rate * (t - a) / (b - a)).
    """

    def __init__(self, edges: Floats, log_weights: Floats, rates: Floats) -> None:
        self.edges, self.rates = edges, rates
        log_weights = log_weights - log_weights.max()
        self.log_weights = log_weights - np.log(np.exp(log_weights).sum())
        self.weights = np.exp(self.log_weights)
        self._cumulative = np.append(0.0, np.cumsum(self.weights))
        self._cumulative /= self._cumulative[-1]

    def density(self, t: ArrayLike) -> Floats:
        """Return the probability density at t."""
        t = np.asarray(t, dtype=np.float64)
        i = np.clip(np.searchsorted(self.edges, t, side="right") - 1, 0, self.rates.size - 1)
        width = self.edges[i + 1] - self.edges[i]
        with np.errstate(divide="ignore", invalid="ignore"):
            x = (t - self.edges[i]) / width
            inside = self.weights[i] / width * np.exp(-self.rates[i] * x) * _norm(self.rates[i])
        return np.where((t < self.edges[0]) | (t > self.edges[-1]) | (width == 0), 0.0, inside)

    def cdf(self, t: ArrayLike) -> Floats:
        """Return P(release <= t)."""
        t = np.asarray(t, dtype=np.float64)
        i = np.clip(np.searchsorted(self.edges, t, side="right") - 1, 0, self.rates.size - 1)
        width = self.edges[i + 1] - self.edges[i]
        with np.errstate(divide="ignore", invalid="ignore"):
            x = np.where(width > 0, (t - self.edges[i]) / width, 1.0)
        inside = self._cumulative[i] + self.weights[i] * _share(np.clip(x, 0.0, 1.0), self.rates[i])
        return np.where(t < self.edges[0], 0.0, np.where(t >= self.edges[-1], 1.0, np.minimum(inside, 1.0)))

    def quantile(self, p: ArrayLike) -> Floats:
        """Return the smallest t with P(release <= t) >= p."""
        p = check_probability(p)
        i = np.clip(np.searchsorted(self._cumulative, p, side="left") - 1, 0, self.rates.size - 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = np.where(self.weights[i] > 0, (p - self._cumulative[i]) / self.weights[i], 0.0)
        x = _inverse_share(np.clip(inside, 0.0, 1.0), self.rates[i])
        low, high = self.edges[i], self.edges[i + 1]
        return np.clip(low + (high - low) * x, low, high)

    def mean_absolute_error(self, value: float, cap: float = np.inf) -> float:
        """Return the expectation of min(abs(release - value), cap), in closed form."""
        cuts = np.clip(np.array([value - cap, value, value + cap]), self.edges[0], self.edges[-1])
        points = np.unique(np.concatenate([self.edges, cuts]))
        low, high = points[:-1], points[1:]
        i = np.clip(np.searchsorted(self.edges, low, side="right") - 1, 0, self.rates.size - 1)
        width = self.edges[i + 1] - self.edges[i]
        mass = self.weights[i] * (
            _share((high - self.edges[i]) / width, self.rates[i])
            - _share((low - self.edges[i]) / width, self.rates[i])
        )
        # the cost is linear in t inside a piece, or constant at the cap
        mean = low + (high - low) * _mean_position(self.rates[i] * ((high - low) / width))
        return float(np.sum(mass * np.minimum(np.abs(mean - value), cap)))


def _norm(rate: Floats) -> Floats:
    """Return 1 / integral of exp(-rate x) over [0, 1]."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.abs(rate) < 1e-9, 1.0, rate / -np.expm1(-rate))


def _share(x: Floats, rate: Floats) -> Floats:
    """Return the probability of [0, x] under the density proportional to exp(-rate x) on [0, 1]."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # expm1 would overflow for a negative rate: count from the other end
        falling = np.expm1(-np.abs(rate) * np.where(rate < 0, 1.0 - x, x)) / np.expm1(-np.abs(rate))
    return np.where(np.abs(rate) < 1e-9, x, np.where(rate < 0, 1.0 - falling, falling))


def _inverse_share(p: Floats, rate: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        falling = np.where(rate < 0, 1.0 - p, p)
        x = -np.log1p(falling * np.expm1(-np.abs(rate))) / np.abs(rate)
    x = np.clip(x, 0.0, 1.0)
    return np.where(np.abs(rate) < 1e-9, p, np.where(rate < 0, 1.0 - x, x))


def _mean_position(rate: Floats) -> Floats:
    """Return the mean of the density proportional to exp(-rate x) on [0, 1]."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        exact = 1.0 / rate - 1.0 / np.expm1(rate)
    return np.where(np.abs(rate) < 1e-4, 0.5 - rate / 12.0, exact)
