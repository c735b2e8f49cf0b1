"""The exact privacy loss between the laws of two releases of one kind, for each kind of law."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator
from decimal import Context, Decimal
from fractions import Fraction
from itertools import accumulate, pairwise, product
from operator import attrgetter, mul
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import roots_legendre

from dp_metrics.inference.loss_intervals import DownwardLaw
from dp_metrics.inputs.options import Floats
from dp_metrics.mechanisms._laws import GeometricLaw, Integers
from dp_metrics.mechanisms.adaptive import AdaptiveLaw
from dp_metrics.mechanisms.comparators import AboveThresholdLaw, IntervalLaw, LaplaceLaw
from dp_metrics.mechanisms.geometric import SpreadLaw, SumsLaw
from dp_metrics.mechanisms.hazard import PEAK, TAIL, HazardLaw
from dp_metrics.quantities.ranks import CappedSumsLaw, RankingLaw
from dp_metrics.quantities.tables import TableLaw
from dp_metrics.sensitivity.exact import rounded_quotient


def law_loss(a: Any, b: Any) -> float:
    """Return max over outputs of abs(log(P_a / P_b)) of two laws; infinite if something public differs."""
    if type(a) not in _OF_LAWS or type(b) is not type(a):
        raise TypeError(f"No exact comparison of {type(a).__name__} with {type(b).__name__}.")
    public, compare = _OF_LAWS[type(a)]
    return float(compare(a, b)) if public(a) == public(b) else math.inf


def _sums_loss(a: SumsLaw, b: SumsLaw) -> float:
    return law_loss(*(TableLaw(x.sums.values, ((len(x.sums.values), x.rate),)) for x in (a, b)))


def _table_loss(a: TableLaw, b: TableLaw) -> Fraction:
    """Return the loss of whole numbers with noise: by how much they differ, each in units of its noise.

    It is attained where each is far to the right side.
    """
    rates = [rate for size, rate in a.rates for _ in range(size)]
    differences = zip(rates, a.values, b.values, strict=True)
    return sum((rate * abs(x - y) for rate, x, y in differences), Fraction(0))


def _lattice_loss(a: GeometricLaw, b: GeometricLaw) -> Fraction:
    """Return the loss of staircase noise: so many stairs as lie between the centres, rounded up.

    Far beyond both centres either stair can be the first that is counted, unless the grid ends before: then
    the loss is smaller, and the clamped ends attain at least the stairs that lie between the centres.
    """
    return _stairs(a.added, a.centre - b.centre)


def _spread_loss(a: SpreadLaw, b: SpreadLaw) -> Fraction:
    """Return the loss of a mean and its spread: attained, but for the ends of the grid of the mean."""
    return _stairs(a.added, a.centre - b.centre) + _stairs(a.of_spread, a.place - b.place)


def _stairs(noise: Any, move: int) -> Fraction:
    """Return the loss of noise of which a stair has so many steps, where the centre moves."""
    found: Fraction = noise.epsilon * -(-abs(move) // noise.steps)
    return found


_DECIMALS = Context(prec=50)


def _decimal(exact: Fraction) -> Decimal:
    return _DECIMALS.divide(Decimal(exact.numerator), Decimal(exact.denominator))


def _ranking_loss(a: RankingLaw, b: RankingLaw) -> Decimal:
    """Return the loss of the noisy sizes of the classes and the release together.

    Given the noisy sizes, both are drawn by one rule; that depends on the smaller size only. So for each of
    these the worst noisy sizes and the worst output are found apart, in either direction. With a
    private number of records there are too many for all of them: a number of spread sizes is tried.
    """
    worst = Decimal(0)
    for smaller, logs in _logs_of_sizes(a, b).items():
        up, down = _hazard_logs(a.given(smaller), b.given(smaller))
        for steps, log in ((max(logs), up), (-min(logs), down)):
            worst = max(worst, _DECIMALS.add(_decimal(a.rule.rate * steps), log))
    return worst


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


def _capped_loss(a: CappedSumsLaw, b: CappedSumsLaw) -> Decimal:
    """Return the loss of a cap and of sums of what is clipped to it, together.

    The worst cap and the worst sums are found apart: no outcome has a larger loss. For a record that changes,
    the sums in units of the cap move most where the cap is the larger one of its two values; outputs at the
    values of all records are compared, and those of `_ends`.
    """
    first, other = a.first, b.first
    up, down = _hazard_logs(first, other)
    values = np.concatenate([a.values, b.values])
    numbers = np.append(_ends(first, other), first.grid.index_at_least(values))
    caps = first.grid.points(np.unique(np.clip(numbers, first.grid.first, first.grid.last))).tolist()
    of_sums = max(_table_loss(a.given(drawn), b.given(drawn)) for drawn in caps)
    return _DECIMALS.add(max(up, down), _decimal(of_sums))


_UNDERFLOW = -600.0  # logarithm of a probability


def _adaptive_loss(a: AdaptiveLaw, b: AdaptiveLaw) -> float:
    """Return the loss of the drawn scale and the release together, or of one stage: no scale tells of that.

    Between the ends of the runs of either first stage its ratio of probabilities is monotone, and so is, but
    for rounding to the lattice, the difference of the clipped sums: outputs at and beside the ends of the
    runs are compared, and some in between.
    """
    of_one = 0.0 if a.one is None else law_loss(a.one, b.one)
    return max(of_one, *joint_losses(a, b, _ends(a.first, b.first)))


def _ends(first: HazardLaw, other: HazardLaw) -> Integers:
    """Return the numbers of outputs at and beside the ends of the runs of two laws, and some in between."""
    ends = np.concatenate([first.edges, other.edges])
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


def _cumulated(law: HazardLaw, ranks: int) -> tuple[list[int], list[int], list[int], int]:
    """Return Lambda of one law as exact integers: where its runs begin, their weights, its sums, and one.

    They are multiples of an unnamed unit that both laws share: with q = m / 2^s and at most `ranks` - 1
    ranks, q^ranks times a weight is q^j with 0 <= j <= 2 ranks, and so an integer over 2^(2 ranks s).
    """
    m, denominator = law.q.as_integer_ratio()
    s = denominator.bit_length() - 1
    powers = [m**j << (s * (2 * ranks - j)) for j in range(2 * ranks + 1)]
    keep = np.flatnonzero(law.counts)
    weights = [powers[ranks - level] for level in (keep - law.counts.size // 2).tolist()]
    grown = map(mul, law.counts[keep].tolist(), weights)
    return law.edges[keep].tolist(), weights, [*accumulate(grown, initial=0)], powers[ranks]


def _hazard_loss(a: HazardLaw, b: HazardLaw) -> Decimal:
    return max(_hazard_logs(a, b))


def _hazard_logs(a: HazardLaw, b: HazardLaw) -> tuple[Decimal, Decimal]:
    """Return the largest log(P_a / P_b) over the outputs, and the largest log(P_b / P_a)."""
    if a.grid != b.grid or a.q != b.q or a.monotonic != b.monotonic:
        return Decimal("Infinity"), Decimal("Infinity")
    ranks = max(a.counts.size, b.counts.size) // 2
    worst, ratios = [1.0, 1.0], [(1, 1), (1, 1)]
    for ratio in _hazard_ratios(a, b, ranks):
        direction = 0 if ratio[0] >= ratio[1] else 1
        size = rounded_quotient(max(ratio), min(ratio))
        if size > worst[direction]:
            worst[direction], ratios[direction] = size, ratio
    up, down = (_DECIMALS.ln(_DECIMALS.divide(Decimal(max(ratio)), Decimal(min(ratio)))) for ratio in ratios)
    return up, down


def _hazard_ratios(a: HazardLaw, b: HazardLaw, ranks: int) -> Iterator[tuple[int, int]]:
    """Yield the likelihood ratio wherever it can be largest, as a numerator and a denominator."""
    edges, weights, sums, one = _cumulated(a, ranks)
    other_edges, other_weights, other_sums, _ = _cumulated(b, ranks)
    peak, power = PEAK * one, a.power
    for start, end in pairwise(sorted({*edges, *other_edges, a.grid.last})):
        i, j = (bisect_right(some, start) - 1 for some in (edges, other_edges))
        w, v = weights[i], other_weights[j]
        x = sums[i] + (start - edges[i]) * w
        y = other_sums[j] + (start - other_edges[j]) * v
        cells = end - start
        if x == y == 0:  # the limit from the right
            yield w**power, v**power
        else:
            yield _density_ratio(x, y, w, v, peak, power)
        yield _density_ratio(x + cells * w, y + cells * v, w, v, peak, power)
        # the ratio may be extreme where either Lambda passes z0; the weight keeps all numbers whole
        if x < peak < x + cells * w:
            yield _density_ratio(peak * w, y * w + (peak - x) * v, w, v, peak * w, power)
        if y < peak < y + cells * v:
            yield _density_ratio(x * v + (peak - y) * w, peak * v, w, v, peak * v, power)
    # the last output is released where no other crosses
    tails = [_tail(total[-1], peak, a) for total in (sums, other_sums)]
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
    for score, count in zip(law.scores.tolist(), law.counts.tolist(), strict=True):
        halt = np.minimum(u * np.exp(law.eps2 * score), 1.0)
        misses = np.power(1.0 - halt, np.arange(count)[:, np.newaxis])
        probabilities.append(misses @ (passed * halt))
        passed = passed * (1.0 - halt) ** count
    return np.append(np.concatenate([*probabilities, []]), passed.sum())


def _interval_loss(a: IntervalLaw, b: IntervalLaw) -> float:
    edges = np.unique(np.concatenate([a.edges, b.edges]))
    # both log densities are linear on each piece, so that its two ends decide
    return float(np.abs(_log_density(a, edges) - _log_density(b, edges)).max())


def _log_density(law: IntervalLaw, edges: Floats) -> Floats:
    """Return the log density just inside both ends of each piece."""
    i = np.searchsorted(law.edges, edges[:-1], side="right") - 1
    start, width, rate = law.edges[i], law.edges[i + 1] - law.edges[i], law.rates[i]
    norm = np.where(rate == 0.0, 0.0, np.log(rate / -np.expm1(-rate)))
    height = law.log_weights[i] - np.log(width) + norm
    return np.stack([height - rate * (t - start) / width for t in (edges[:-1], edges[1:])])


def _laplace_loss(a: LaplaceLaw, b: LaplaceLaw) -> float:
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


_OF_LAWS: dict[type, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    HazardLaw: (attrgetter("grid", "q", "monotonic"), _hazard_loss),
    DownwardLaw: (attrgetter("grid", "q", "monotonic"), _hazard_loss),
    AboveThresholdLaw: (attrgetter("grid", "eps1", "eps2"), _above_threshold_loss),
    IntervalLaw: (lambda law: (law.edges[0], law.edges[-1]), _interval_loss),
    LaplaceLaw: (attrgetter("output_range", "scale"), _laplace_loss),
    GeometricLaw: (attrgetter("grid", "added"), _lattice_loss),
    SpreadLaw: (attrgetter("grid", "added", "of_spread"), _spread_loss),
    TableLaw: (lambda law: (law.rates, law.zero_sum, law.zero_sum and sum(law.values)), _table_loss),
    SumsLaw: (type, _sums_loss),
    RankingLaw: (attrgetter("rule"), _ranking_loss),
    CappedSumsLaw: (attrgetter("rates", "first.grid"), _capped_loss),
    AdaptiveLaw: (attrgetter("stages"), _adaptive_loss),
}
"""What is public of each kind of law, and what compares two of which that is equal."""
