"""Exact comparison of two output laws of one mechanism."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Context, Decimal
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import roots_legendre  # scikit-learn depends on scipy

from dp_metrics.inference.loss_intervals import DownwardLaw
from dp_metrics.inputs.options import Floats
from dp_metrics.mechanisms._laws import Integers, IntervalLaw
from dp_metrics.mechanisms.adaptive import AdaptiveLaw, CoinLaw
from dp_metrics.mechanisms.comparators import AboveThresholdLaw, LaplaceLaw
from dp_metrics.mechanisms.geometric import GeometricLaw, SpreadLaw, SumsLaw
from dp_metrics.mechanisms.hazard import PEAK, TAIL, HazardLaw
from dp_metrics.quantities.order import CappedSumsLaw
from dp_metrics.quantities.ranks import RankingLaw
from dp_metrics.quantities.tables import TableLaw
from dp_metrics.sensitivity.exact import rounded_quotient


def law_loss(a: Any, b: Any) -> float:
    """Return max over outputs of abs(log(P_a / P_b)) of two laws; infinite if their supports differ."""
    if isinstance(a, HazardLaw) and isinstance(b, HazardLaw):
        return _hazard_loss(a, b)
    if isinstance(a, DownwardLaw) and isinstance(b, DownwardLaw):
        return _hazard_loss(a.upward, b.upward)
    if isinstance(a, AboveThresholdLaw) and isinstance(b, AboveThresholdLaw):
        return _above_threshold_loss(a, b)
    if isinstance(a, IntervalLaw) and isinstance(b, IntervalLaw):
        return _interval_loss(a, b)
    if isinstance(a, LaplaceLaw) and isinstance(b, LaplaceLaw):
        return _laplace_loss(a, b)
    if isinstance(a, SpreadLaw) and isinstance(b, SpreadLaw):
        return _spread_loss(a, b)
    if isinstance(a, GeometricLaw) and isinstance(b, GeometricLaw):
        return _lattice_loss(a, b)
    if isinstance(a, TableLaw) and isinstance(b, TableLaw):
        return _table_loss(a, b)
    if isinstance(a, SumsLaw) and isinstance(b, SumsLaw):
        return _table_loss(*(TableLaw(x.sums.values, ((len(x.sums.values), x.rate),)) for x in (a, b)))
    if isinstance(a, RankingLaw) and isinstance(b, RankingLaw):
        return _ranking_loss(a, b)
    if isinstance(a, CappedSumsLaw) and isinstance(b, CappedSumsLaw):
        return _capped_loss(a, b)
    if isinstance(a, AdaptiveLaw) and isinstance(b, AdaptiveLaw):
        return _adaptive_loss(a, b)
    if isinstance(a, CoinLaw) and isinstance(b, CoinLaw):
        if a.probability != b.probability:
            return math.inf
        # a scale, or none, tells how the coin fell
        return max(law_loss(a.two, b.two), law_loss(a.one, b.one))
    raise TypeError(f"No exact comparison of {type(a).__name__} with {type(b).__name__}.")


def _table_loss(a: TableLaw, b: TableLaw) -> float:
    """Return the loss of whole numbers with noise: attained where each is far to the right side."""
    if (a.rates, a.zero_sum) != (b.rates, b.zero_sum) or (a.zero_sum and sum(a.values) != sum(b.values)):
        return math.inf
    return float(_moved(a, b))


def _moved(a: TableLaw, b: TableLaw) -> Fraction:
    """Return by how much whole numbers differ, each in units of its noise."""
    rates = [rate for size, rate in a.rates for _ in range(size)]
    differences = zip(rates, a.values, b.values, strict=True)
    return sum((rate * abs(x - y) for rate, x, y in differences), Fraction(0))


def _lattice_loss(a: GeometricLaw, b: GeometricLaw) -> float:
    """Return the loss of staircase noise: so many stairs as lie between the centres, rounded up.

    Far beyond both centres either stair can be the first that is counted, unless the grid ends before: then
    the loss is smaller, and the clamped ends attain at least the stairs that lie between the centres.
    """
    if (a.grid, a.added) != (b.grid, b.added):
        return math.inf
    return float(a.added.epsilon * -(-abs(a.centre - b.centre) // a.added.steps))


def _spread_loss(a: SpreadLaw, b: SpreadLaw) -> float:
    """Return the loss of a mean and its spread: attained, but for the ends of the grid of the mean."""
    if (a.grid, a.added, a.of_spread) != (b.grid, b.added, b.of_spread):
        return math.inf
    moves = (a.added, abs(a.centre - b.centre)), (a.of_spread, abs(a.place - b.place))
    return float(sum(noise.epsilon * -(-move // noise.steps) for noise, move in moves))


_DECIMALS = Context(prec=50)


def _ranking_loss(a: RankingLaw, b: RankingLaw) -> float:
    """Return the loss of the noisy sizes of the classes and the release together.

    Given the noisy sizes, both are drawn by one rule; that depends on the smaller size only. So for each of
    these the worst noisy sizes and the worst output are found apart, in either direction. With a
    private number of records there are too many for all of them: a number of spread sizes is tried.
    """
    if a.rule != b.rule:
        return math.inf
    worst = Decimal(0)
    for smaller, logs in _logs_of_sizes(a, b).items():
        up, down = _hazard_logs(a.given(smaller), b.given(smaller))
        for steps, log in ((max(logs), up), (-min(logs), down)):
            rate = a.rule.rate * steps
            size = _DECIMALS.divide(Decimal(rate.numerator), Decimal(rate.denominator))
            worst = max(worst, _DECIMALS.add(size, log))
    return float(worst)


def _logs_of_sizes(a: RankingLaw, b: RankingLaw) -> dict[int, list[int]]:
    """Return the log ratios of noisy sizes, in units of the rate, by the smaller size they lead to."""
    if a.rule.n is not None:  # the ratio is constant beyond 0 and n
        tried = [np.unique(np.linspace(-1, a.rule.n + 1, 203).astype(int)).tolist()]
    else:
        tried = [sorted({0, 1, 1 << 15, 1 << 30, x, y}) for x, y in zip(a.sizes, b.sizes, strict=True)]
    found: dict[int, list[int]] = {}
    for sizes in product(*tried):
        log = sum(abs(s - y) - abs(s - x) for s, x, y in zip(sizes, a.sizes, b.sizes, strict=True))
        found.setdefault(a.rule.smaller(sizes), []).append(log)
    return found


def _capped_loss(a: CappedSumsLaw, b: CappedSumsLaw) -> float:
    """Return the loss of a cap and of sums of what is clipped to it, together.

    The worst cap and the worst sums are found apart: no outcome has a larger loss. For a record that changes,
    the sums in units of the cap move most where the cap is the larger one of its two values; outputs at the
    values of all records are compared, and those of `_ends`.
    """
    first, other = a.first, b.first
    if a.rates != b.rates or first.grid != other.grid:
        return math.inf
    up, down = _hazard_logs(first, other)
    values = np.concatenate([a.values, b.values])
    numbers = np.append(_ends(first, other), first.grid.index_at_least(values))
    caps = first.grid.points(np.unique(np.clip(numbers, first.grid.first, first.grid.last))).tolist()
    of_sums = max(_moved(a.given(drawn), b.given(drawn)) for drawn in caps)
    size = _DECIMALS.divide(Decimal(of_sums.numerator), Decimal(of_sums.denominator))
    return float(_DECIMALS.add(max(up, down), size))


_UNDERFLOW = -600.0  # logarithm of a probability


def _adaptive_loss(a: AdaptiveLaw, b: AdaptiveLaw) -> float:
    """Return the loss of the drawn scale and the release together.

    Between the ends of the runs of either first stage its ratio of probabilities is monotone, and so is, but
    for rounding to the lattice, the difference of the clipped sums: outputs at and beside the ends of the
    runs are compared, and some in between.
    """
    first, other = a.first, b.first
    laws = [(law.first.grid, law.first.q, law.first.monotonic, law.second) for law in (a, b)]
    if laws[0] != laws[1]:
        return math.inf
    return max(joint_losses(a, b, _ends(first, other)))


def _ends(first: HazardLaw, other: HazardLaw) -> Integers:
    """Return the numbers of outputs at and beside the ends of the runs of two laws, and some in between."""
    ends = np.concatenate([first.runs.edges, other.runs.edges])
    numbers = np.concatenate([ends - 1, ends, ends + 1, np.linspace(0, first.grid.last, 17).astype(np.int64)])
    return np.unique(np.clip(numbers, first.grid.first, first.grid.last))


def joint_losses(a: AdaptiveLaw, b: AdaptiveLaw, numbers: Integers) -> list[float]:
    """Return the largest loss of (scale, release) for each of these outputs of the first stage."""
    logs = [law.first.log_probabilities(numbers) for law in (a, b)]
    some = np.maximum(*logs) > _UNDERFLOW  # the probabilities are too small for floats otherwise
    losses, drawn = np.abs(logs[0][some] - logs[1][some]), a.first.grid.points(numbers[some])
    return [
        loss + law_loss(a.given(size), b.given(size))
        for loss, size in zip(losses.tolist(), drawn.tolist(), strict=True)
    ]


class _Hazard:
    """Lambda of one law as exact integers: multiples of an unnamed unit that both laws share.

    With q = m / 2^s and at most `ranks` - 1 ranks, q^ranks times a weight is q^j with 0 <= j <= 2 ranks,
    and so an integer over 2^(2 ranks s).
    """

    def __init__(self, law: HazardLaw, ranks: int) -> None:
        m, denominator = law.q.as_integer_ratio()
        s = denominator.bit_length() - 1
        powers = [m**j << (s * (2 * ranks - j)) for j in range(2 * ranks + 1)]
        keep = law.runs.counts > 0
        self.edges: list[int] = law.runs.edges[:-1][keep].tolist()
        self.weights = [powers[ranks - level] for level in law.runs.levels[keep].tolist()]
        self.sums = [0]
        for count, weight in zip(law.runs.counts[keep].tolist(), self.weights, strict=True):
            self.sums.append(self.sums[-1] + count * weight)
        self.one = powers[ranks]


def _hazard_loss(a: HazardLaw, b: HazardLaw) -> float:
    return float(max(_hazard_logs(a, b)))


def _hazard_logs(a: HazardLaw, b: HazardLaw) -> tuple[Decimal, Decimal]:
    """Return the largest log(P_a / P_b) over the outputs, and the largest log(P_b / P_a)."""
    if a.grid != b.grid or a.q != b.q or a.monotonic != b.monotonic:
        return Decimal("Infinity"), Decimal("Infinity")
    ranks = max(a.runs.counts.size, b.runs.counts.size) // 2
    first, second = _Hazard(a, ranks), _Hazard(b, ranks)
    peak = PEAK * first.one
    worst, ratios = [1.0, 1.0], [(1, 1), (1, 1)]
    for ratio in _hazard_ratios(first, second, a, peak):
        direction = 0 if ratio[0] >= ratio[1] else 1
        size = rounded_quotient(max(ratio), min(ratio))
        if size > worst[direction]:
            worst[direction], ratios[direction] = size, ratio
    up, down = (_DECIMALS.ln(_DECIMALS.divide(Decimal(max(ratio)), Decimal(min(ratio)))) for ratio in ratios)
    return up, down


def _hazard_ratios(first: _Hazard, second: _Hazard, law: HazardLaw, peak: int) -> Iterator[tuple[int, int]]:
    """Yield the likelihood ratio wherever it can be largest, as a numerator and a denominator."""
    edges = sorted({*first.edges, *second.edges, law.grid.last})
    i = j = 0
    for start, end in pairwise(edges):
        while i + 1 < len(first.edges) and first.edges[i + 1] <= start:
            i += 1
        while j + 1 < len(second.edges) and second.edges[j + 1] <= start:
            j += 1
        w, v = first.weights[i], second.weights[j]
        x = first.sums[i] + (start - first.edges[i]) * w
        y = second.sums[j] + (start - second.edges[j]) * v
        cells = end - start
        if x == y == 0:  # the limit from the right
            yield w**law.power, v**law.power
        else:
            yield _density_ratio(x, y, w, v, peak, law.power)
        yield _density_ratio(x + cells * w, y + cells * v, w, v, peak, law.power)
        # the ratio may be extreme where either Lambda passes z0; the weight keeps all numbers whole
        if x < peak < x + cells * w:
            yield _density_ratio(peak * w, y * w + (peak - x) * v, w, v, peak * w, law.power)
        if y < peak < y + cells * v:
            yield _density_ratio(x * v + (peak - y) * w, peak * v, w, v, peak * v, law.power)
    # the last output is released where no other crosses
    tails = [_tail(hazard.sums[-1], peak, law) for hazard in (first, second)]
    yield tails[0][0] * tails[1][1], tails[0][1] * tails[1][0]


def _density_ratio(x: int, y: int, w: int, v: int, peak: int, power: int) -> tuple[int, int]:
    """Return h(x) w / (h(y) v) as a numerator and a denominator."""
    above, below = _density(x, peak, power)
    other_above, other_below = _density(y, peak, power)
    return w * above * other_below, v * below * other_above


def _density(z: int, peak: int, power: int) -> tuple[int, int]:
    """Return a multiple of h(z) as a numerator and a denominator."""
    if z <= peak:
        return z ** (power - 1), peak ** (power - 1)
    return peak ** (TAIL + 1), z ** (TAIL + 1)


def _tail(z: int, peak: int, law: HazardLaw) -> tuple[int, int]:
    """Return 1 - H(z) as a numerator and a denominator."""
    a = law.below
    if z <= peak:
        scale = a.denominator * peak**law.power
        return scale - a.numerator * z**law.power, scale
    return (a.denominator - a.numerator) * peak**TAIL, a.denominator * z**TAIL


_MOST_CANDIDATES = 2000


def _above_threshold_loss(a: AboveThresholdLaw, b: AboveThresholdLaw) -> float:
    if a.grid != b.grid or (a.eps1, a.eps2) != (b.eps1, b.eps2):
        return math.inf
    return finite_loss(_candidate_probabilities(a), _candidate_probabilities(b))


def finite_loss(p: ArrayLike, q: ArrayLike) -> float:
    """Return the exact privacy loss between two laws on the same finitely many outcomes.

    Parameters
    ----------
    p, q : array-like of shape (n_outcomes,)
        Probability of each outcome under either data set.

    Returns
    -------
    float
        max abs(log(p / q)), infinite if an outcome is possible under one of them only.

    Examples
    --------
    >>> from dp_metrics.analysis import auditing
    >>> round(auditing.finite_loss([0.75, 0.25], [0.25, 0.75]), 4)
    1.0986
    """
    p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    if ((p > 0) != (q > 0)).any():
        return math.inf
    keep = p > 0
    return float(np.abs(np.log(p[keep]) - np.log(q[keep])).max())


def _candidate_probabilities(law: AboveThresholdLaw) -> Floats:
    """Return the probability of each candidate; the last also gets that of a search that never halts.

    With u = exp(-eps2 * threshold), which has density r u^(r-1) for r = eps1 / eps2, a candidate with score
    s halts with probability min(1, u exp(eps2 s)). Between the values of u at which one of these reaches 1,
    the probability to halt at a given candidate is the integral of a polynomial of degree at most r + m for
    m candidates, which Gauss-Legendre quadrature with (r + m) / 2 + 1 nodes integrates exactly. All terms
    are positive, so what remains is a rounding error of about m * 2^-52.
    """
    r = law.eps1 / law.eps2
    candidates = law.grid.last - law.grid.first + 1
    if abs(r - round(r)) > 1e-9 or candidates > _MOST_CANDIDATES:
        raise TypeError(
            f"AboveThreshold is compared exactly for at most {_MOST_CANDIDATES} candidates and with eps1 a "
            "multiple of eps2: use a larger beta, bounds, or the default split."
        )
    ends = np.unique(np.concatenate([[0.0, 1.0], np.exp(-law.eps2 * law.scores[law.scores > 0])]))
    x, w = roots_legendre((candidates + round(r)) // 2 + 1)
    half = np.diff(ends)[:, np.newaxis] / 2
    middle = (ends[1:] + ends[:-1])[:, np.newaxis] / 2
    u = (middle + half * x).ravel()
    passed = (half * w).ravel() * r * u ** (round(r) - 1)
    probabilities = []
    with np.errstate(divide="ignore", under="ignore"):
        for score, count in zip(law.scores.tolist(), law.counts.tolist(), strict=True):
            halt = np.minimum(u * np.exp(law.eps2 * score), 1.0)
            misses = np.power(1.0 - halt, np.arange(count)[:, np.newaxis])
            probabilities.append(misses @ (passed * halt))
            passed = passed * (1.0 - halt) ** count
    return np.append(np.concatenate([*probabilities, []]), passed.sum())


def _interval_loss(a: IntervalLaw, b: IntervalLaw) -> float:
    if a.edges[0] != b.edges[0] or a.edges[-1] != b.edges[-1]:
        return math.inf
    edges = np.unique(np.concatenate([a.edges, b.edges]))
    # both log densities are linear on each piece, so that its two ends decide
    return float(np.abs(_log_density(a, edges) - _log_density(b, edges)).max())


def _log_density(law: IntervalLaw, edges: Floats) -> Floats:
    """Return the log density just inside both ends of each piece."""
    i = np.searchsorted(law.edges, edges[:-1], side="right") - 1
    start, width, rate = law.edges[i], law.edges[i + 1] - law.edges[i], law.rates[i]
    with np.errstate(divide="ignore", invalid="ignore"):
        norm = np.where(rate == 0.0, 0.0, np.log(rate / -np.expm1(-rate)))
    height = law.log_weights[i] - np.log(width) + norm
    return np.stack([height - rate * (t - start) / width for t in (edges[:-1], edges[1:])])


def _laplace_loss(a: LaplaceLaw, b: LaplaceLaw) -> float:
    if a.output_range != b.output_range or a.scale != b.scale:
        return math.inf
    # the log ratio inside is largest at and beyond the centres; the ends of the range are atoms
    low, high = a.output_range
    inside = [min(max(centre, low), high) for centre in (a.centre, b.centre)]
    losses = [abs(abs(t - a.centre) - abs(t - b.centre)) / a.scale for t in inside]
    atoms = [
        abs(_log_tail((centre_a - end) / a.scale) - _log_tail((centre_b - end) / a.scale))
        for end, centre_a, centre_b in ((low, a.centre, b.centre), (-high, -a.centre, -b.centre))
    ]
    return max(losses + atoms)


def _log_tail(x: float) -> float:
    """Return the log probability that a standard Laplace variable exceeds x."""
    return math.log(0.5) - x if x > 0 else math.log1p(-0.5 * math.exp(x))
