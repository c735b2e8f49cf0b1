"""The auditor: how private is a release really, on the worst neighbours it can find.

`release_loss` computes the exact loss of all that a function releases, from its own validation to its output
laws, on one pair of data sets. `audit` searches for the worst pair. An audit never touches real records: it
makes its own.
"""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from functools import partial
from itertools import accumulate, pairwise, product
from operator import attrgetter, mul
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import roots_legendre

from dp_metrics.fairness.frame import PrivateMetricFrame
from dp_metrics.inference.comparison import private_compare
from dp_metrics.inference.loss_intervals import DownwardLaw, private_mean_interval, private_quantile_interval
from dp_metrics.inputs.options import (
    ByName,
    Epsilon,
    Floats,
    Function,
    Relation,
    check_choice,
    check_count,
    check_epsilon,
    own_error_state,
)
from dp_metrics.mechanisms import AboveThreshold, Adaptive, Mechanism
from dp_metrics.mechanisms._laws import GeometricLaw, Integers
from dp_metrics.mechanisms.adaptive import AdaptiveLaw
from dp_metrics.mechanisms.comparators import AboveThresholdLaw, IntervalLaw, LaplaceLaw
from dp_metrics.mechanisms.geometric import SpreadLaw, SumsLaw
from dp_metrics.mechanisms.hazard import PEAK, TAIL, HazardLaw
from dp_metrics.metrics import METRICS, metric_named
from dp_metrics.quantities.base import MOST_COUNT, get_mechanism
from dp_metrics.quantities.ranks import CappedSumsLaw, RankingLaw
from dp_metrics.quantities.tables import TableLaw
from dp_metrics.release.query import made_of
from dp_metrics.release.release import PreparedQuery, Releases, prepared_releases
from dp_metrics.sensitivity.output_bounds import OutputBounds

__all__ = [
    "AuditResult",
    "audit",
    "finite_loss",
    "privacy_loss",
    "release_loss",
    "seed_pairs",
]

Data = Sequence[Any] | ByName
Pair = tuple[Floats, Floats]

# Exact losses


@own_error_state
def release_loss(
    function: Function | str, data_a: Data, data_b: Data, *, epsilon: Epsilon, **options: Any
) -> float:
    """Return the exact privacy loss of all that a function releases on two data sets.

    Parameters
    ----------
    function : callable or str
        What releases: a private metric or its name, `PrivateMetricFrame`, `private_compare`, or a function of
        your own that calls them.
    data_a, data_b : sequence or mapping
        What the function takes of either data set, by position or by name.
    epsilon : float
        What the function is asked to cost.
    **options
        Further keywords of the function, the same for both.

    Returns
    -------
    float
        The largest log ratio of the probabilities of what it releases, summed over its releases; infinite if
        something public differs. For neighbours it is at most epsilon if the function keeps its promise. With
        neighboring="add_or_remove_one" it includes what the noisy count costs.

    Notes
    -----
    The function is carried out, with noise. What is compared are the laws from which that noise was drawn.

    Examples
    --------
    >>> from dp_metrics import PrivateMetricFrame, private_recall_score
    >>> from dp_metrics.analysis import auditing
    >>> truth, guess = [1, 1, 0, 1], [1, 0, 0, 1]
    >>> auditing.release_loss(private_recall_score, (truth, guess), (truth, [0, 0, 0, 1]), epsilon=1.0)
    1.0

    One person is of another group:

    >>> a = {"y_true": truth, "y_pred": guess, "sensitive_features": [1, 1, 0, 0]}
    >>> b = {**a, "sensitive_features": [1, 1, 1, 0]}
    >>> options = {"metrics": private_recall_score, "group_labels": [0, 1], "epsilon": 1.0}
    >>> auditing.release_loss(PrivateMetricFrame, a, b, **options)
    1.0
    """
    both = (releases_of(function, data, epsilon=epsilon, **options) for data in (data_a, data_b))
    return loss_between(*both)


@own_error_state
def releases_of(function: Function | str, data: Data, **options: Any) -> Releases:
    """Return what a function releases of a data set: its part of `release_loss`, which serves many pairs."""
    args, named = ((), data) if isinstance(data, Mapping) else (data, {})
    with warnings.catch_warnings(), prepared_releases() as prepared:
        warnings.simplefilter("ignore")  # of a few made-up records noise is most
        metric_named(function)(*args, **named, **options)
    return prepared


@own_error_state
def loss_between(a: Releases, b: Releases) -> float:
    """Return the loss of all that is released of two data sets; see `release_loss`."""
    if made_of([query for query, _ in a]) != made_of([query for query, _ in b]):
        return math.inf  # a public thing that differs
    pairs = [pair for (_, one), (_, other) in zip(a, b, strict=True) for pair in zip(one, other, strict=True)]
    return math.fsum(_loss_of_prepared(*pair) for pair in pairs)


def _loss_of_prepared(a: PreparedQuery, b: PreparedQuery) -> float:
    """Return the loss of what one query releases of two data sets, a noisy count included."""
    n, other = a.source.n, b.source.n
    if n != other and not a.terms.relation.private_n:
        return math.inf  # a public number that differs
    # both draw with one noisy count, whose loss is what it cost for each record that one of them has more
    for_count, counts = float(a.for_count) * abs(n - other), {max(n, 1)}
    if a.for_count:  # whatever was drawn: of few records, of many, and of most
        counts |= {_MANY_RECORDS, MOST_COUNT}
    pairs = [zip(a.laws(count), b.laws(count), strict=True) for count in counts]
    return for_count + max(math.fsum(law_loss(*pair) for pair in given) for given in pairs)


@own_error_state
def privacy_loss(
    mechanism: str | Mechanism,
    output_bounds_a: OutputBounds,
    output_bounds_b: OutputBounds,
    *,
    epsilon: Epsilon,
) -> float:
    """Return the exact privacy loss of a release between two data sets: the largest log ratio of its laws.

    Parameters
    ----------
    mechanism : str or mechanism object
        The mechanism; of "adaptive" the one stage that it has where output bounds are all that is known.
    output_bounds_a, output_bounds_b : OutputBounds
        What the mechanism sees of two data sets, usually neighbours.
    epsilon : float
        Privacy parameter at which the mechanism is run.

    Returns
    -------
    float
        max over outputs of abs(log(P_a / P_b)), infinite if an output is possible under one of them only.
        For a mechanism that is epsilon-differentially private it is at most epsilon for neighbours.

    Raises
    ------
    TypeError
        If the law of the mechanism is of a kind that cannot be compared exactly.

    Notes
    -----
    Hazard selection is computed with 50 digits, for the point at which the cumulative hazard crosses its
    random level: the grid point released is a function of that. Between the breakpoints of the two laws, and
    the places where either cumulative hazard passes z0, their ratio is monotone, so the ends decide.
    AboveThreshold is a polynomial in exp(-eps2 * threshold) between the scores, which Gauss-Legendre
    quadrature with enough nodes integrates exactly. The other mechanisms have closed forms.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_metrics.analysis import auditing
    >>> from dp_metrics.sensitivity.output_bounds import OutputBounds
    >>> down, up = np.linspace(0.9, 0.0, 10), np.linspace(1.1, 2.0, 10)
    >>> a = OutputBounds(1.0, down, up, output_range=(0.0, 2.0), monotonic=True, n=10)
    >>> lower, higher = np.append(down[1:], 0.0), np.append(1.0, up[:-1])
    >>> b = OutputBounds(0.9, lower, higher, output_range=(0.0, 2.0), monotonic=True, n=10)
    >>> auditing.privacy_loss("hazard", a, b, epsilon=1.0) <= 1.0
    True
    """
    law_of = get_mechanism(mechanism).output_distribution
    return law_loss(law_of(output_bounds_a, epsilon), law_of(output_bounds_b, epsilon))


# Losses of laws


# far more digits than a float, so that a loss is rounded once; exponents are those of any hazard ratio
_DECIMALS = Context(prec=50, Emin=MIN_EMIN, Emax=MAX_EMAX)


def law_loss(a: Any, b: Any) -> float:
    """Return max over outputs of abs(log(P_a / P_b)) of two laws; infinite if something public differs."""
    if type(a) not in _OF_LAWS or type(b) is not type(a):
        raise TypeError(f"No exact comparison of {type(a).__name__} with {type(b).__name__}.")
    public, compare = _OF_LAWS[type(a)]
    with localcontext(_DECIMALS):
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


def _lattice_loss(a: GeometricLaw, b: GeometricLaw) -> Fraction | float:
    """Return the loss of staircase noise: so many stairs as lie between the centres, rounded up.

    Far beyond both centres either stair can be the first that is counted, unless the grid ends before: then
    the loss is smaller, and the clamped ends attain at least the stairs that lie between the centres.
    """
    return a.added.epsilon * -(-abs(a.centre - b.centre) // a.added.steps)


def _spread_loss(a: SpreadLaw, b: SpreadLaw) -> Fraction | float:
    """Return the loss of a mean and its spread: attained, but for the ends of the grid of the mean."""
    return _lattice_loss(a, b) + a.of_spread.epsilon * -(-abs(a.place - b.place) // a.of_spread.steps)


def _decimal(exact: Fraction) -> Decimal:
    return Decimal(exact.numerator) / exact.denominator


def _ranking_loss(a: RankingLaw, b: RankingLaw) -> Decimal:
    """Return the loss of the noisy sizes of the classes and the release together.

    Given the noisy sizes, both are drawn by one rule; that depends on the smaller size only. So for each of
    these the worst noisy sizes and the worst output are found apart, in either direction. With a
    private number of records there are too many for all of them: a number of spread sizes is tried.
    """
    if a.rule.n is not None:  # the ratio is constant beyond 0 and n
        tried = [np.unique(np.linspace(-1, a.rule.n + 1, 203).astype(int)).tolist()]
    else:
        tried = [sorted({0, 1, 1 << 15, 1 << 30, x, y}) for x, y in zip(a.sizes, b.sizes, strict=True)]
    # log ratios of noisy sizes, in units of the rate, by the smaller size they lead to
    of_sizes: dict[int, list[int]] = {}
    for sizes in product(*tried):
        log = sum(abs(s - y) - abs(s - x) for s, x, y in zip(sizes, a.sizes, b.sizes, strict=True))
        of_sizes.setdefault(a.rule.smaller(sizes), []).append(log)
    worst = Decimal(0)
    for smaller, logs in of_sizes.items():
        up, down = _hazard_logs(a.given(smaller), b.given(smaller))
        for steps, of_release in ((max(logs), up), (-min(logs), down)):
            worst = max(worst, _decimal(a.rule.rate * steps) + of_release)
    return worst


def _capped_loss(a: CappedSumsLaw, b: CappedSumsLaw) -> Decimal:
    """Return the loss of a cap and of sums of what is clipped to it, together.

    The worst cap and the worst sums are found apart: no outcome has a larger loss. For a record that changes,
    the sums in units of the cap move most where the cap is the larger one of its two values; outputs at the
    values of all records are compared, and those of `_ends`.
    """
    first, other = a.first, b.first
    caps = first.grid.points(_ends(first, other, a.values, b.values)).tolist()
    of_sums = max(_table_loss(a.given(drawn), b.given(drawn)) for drawn in caps)
    return _hazard_loss(first, other) + _decimal(of_sums)


_UNDERFLOW = -600.0  # logarithm of a probability


def _adaptive_loss(a: AdaptiveLaw, b: AdaptiveLaw) -> float:
    """Return the loss of the drawn scale and the release together, or of one stage: no scale tells of that.

    Between the ends of the runs of either first stage its ratio of probabilities is monotone, and so is, but
    for rounding to the lattice, the difference of the clipped sums: outputs at and beside the ends of the
    runs are compared, and some in between.
    """
    of_one = 0.0 if a.one is None else law_loss(a.one, b.one)
    return max(of_one, *joint_losses(a, b, _ends(a.first, b.first)))


def _ends(first: HazardLaw, other: HazardLaw, *values: Floats) -> Integers:
    """Return the numbers of outputs at and beside the ends of the runs of two laws, and some in between.

    And of those at some values.
    """
    grid, ends = first.grid, np.union1d(first.edges, other.edges)
    some = np.linspace(0, grid.last, 17).astype(np.int64)
    numbers = np.concatenate([ends - 1, ends, ends + 1, some, *map(grid.index_at_least, values)])
    return np.unique(np.clip(numbers, grid.first, grid.last))


def joint_losses(a: AdaptiveLaw, b: AdaptiveLaw, numbers: Integers) -> list[float]:
    """Return the largest loss of (scale, release) for each of these outputs of the first stage."""
    of_a, of_b = (law.first.log_probabilities(numbers) for law in (a, b))
    some = np.maximum(of_a, of_b) > _UNDERFLOW  # the probabilities are too small for floats otherwise
    losses, drawn = np.abs(of_a[some] - of_b[some]), a.first.grid.points(numbers[some])
    return [
        loss + law_loss(a.given(size), b.given(size))
        for loss, size in zip(losses.tolist(), drawn.tolist(), strict=True)
    ]


def _hazard_loss(a: HazardLaw, b: HazardLaw) -> Decimal:
    return max(_hazard_logs(a, b))


def _hazard_logs(a: HazardLaw, b: HazardLaw) -> tuple[Decimal, Decimal]:
    """Return the largest log(P_a / P_b) over the outputs, and the largest log(P_b / P_a)."""
    ratios = [Decimal(1), *_hazard_ratios(a, b)]
    return max(ratios).ln(), -min(ratios).ln()


def _hazard_ratios(a: HazardLaw, b: HazardLaw) -> Iterator[Decimal]:
    """Yield the likelihood ratio wherever it can be largest."""
    (edges, weights, sums), (other_edges, other_weights, other_sums) = map(_cumulated, (a, b))
    for start, end in pairwise(sorted({*edges, *other_edges, a.grid.last})):
        i, j = (bisect_right(some, start) - 1 for some in (edges, other_edges))
        w, v = weights[i], other_weights[j]
        x, y = sums[i] + (start - edges[i]) * w, other_sums[j] + (start - other_edges[j]) * v
        # the ratio may be extreme where either Lambda passes z0
        places = [cells for cells in ((PEAK - x) / w, (PEAK - y) / v) if 0 < cells < end - start]
        if x == y == 0:  # the limit from the right
            yield (w / v) ** a.power
        else:
            places.append(Decimal(0))
        for cells in [*places, Decimal(end - start)]:
            yield _density(x + cells * w, a) * w / (_density(y + cells * v, b) * v)
    # the last output is released where no other crosses
    yield _tail(sums[-1], a) / _tail(other_sums[-1], b)


def _cumulated(law: HazardLaw) -> tuple[list[int], list[Decimal], list[Decimal]]:
    """Return Lambda of one law: where its runs begin, their weights, and its sums."""
    keep = np.flatnonzero(law.counts)
    weights = [Decimal(law.q) ** level for level in (law.counts.size // 2 - keep).tolist()]
    grown = map(mul, law.counts[keep].tolist(), weights)
    return law.edges[keep].tolist(), weights, [*accumulate(grown, initial=Decimal(0))]


def _density(z: Decimal, law: HazardLaw) -> Decimal:
    """Return a multiple of h(z)."""
    return (z / PEAK) ** (law.power - 1) if z <= PEAK else (PEAK / z) ** (TAIL + 1)


def _tail(z: Decimal, law: HazardLaw) -> Decimal:
    """Return 1 - H(z)."""
    below = _decimal(law.below)
    return 1 - below * (z / PEAK) ** law.power if z <= PEAK else (1 - below) * (PEAK / z) ** TAIL


_MOST_CANDIDATES = 2000
_MANY_RECORDS = 10_000  # so many have two stages at the usual epsilons


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
    power, candidates = round(r), law.grid.last - law.grid.first + 1
    if abs(r - power) > 1e-9 or candidates > _MOST_CANDIDATES:
        raise TypeError(
            f"AboveThreshold is compared exactly for at most {_MOST_CANDIDATES} candidates and with eps1 a "
            "multiple of eps2: use a larger beta, bounds, or the default split."
        )
    ends = np.union1d([0.0, 1.0], np.exp(-law.eps2 * law.scores[law.scores > 0]))
    x, w = roots_legendre((candidates + power) // 2 + 1)
    half = np.diff(ends)[:, np.newaxis] / 2
    middle = (ends[1:] + ends[:-1])[:, np.newaxis] / 2
    u = (middle + half * x).ravel()
    passed = (half * w).ravel() * r * u ** (power - 1)
    probabilities = []
    for factor in np.exp(law.eps2 * np.repeat(law.scores, law.counts)):
        halt = np.minimum(u * factor, 1.0)
        probabilities.append(passed @ halt)
        passed = passed * (1.0 - halt)
    return np.array([*probabilities, passed.sum()])


def _interval_loss(a: IntervalLaw, b: IntervalLaw) -> float:
    edges = np.union1d(a.edges, b.edges)
    # both log densities are linear on each piece, so that its two ends decide; a range of one number has none
    return float(np.abs(_log_density(a, edges) - _log_density(b, edges)).max(initial=0.0))


def _log_density(law: IntervalLaw, edges: Floats) -> Floats:
    """Return the log density just inside both ends of each piece."""
    i = np.searchsorted(law.edges, edges[:-1], side="right") - 1
    start, width, rate = law.edges[i], law.edges[i + 1] - law.edges[i], law.rates[i]
    norm = np.where(rate == 0.0, 0.0, np.log(rate / -np.expm1(-rate)))
    height = law.log_weights[i] - np.log(width) + norm
    return np.stack([height - rate * (t - start) / width for t in (edges[:-1], edges[1:])])


def _laplace_loss(a: LaplaceLaw, b: LaplaceLaw) -> float:
    """Return the loss of Laplace noise: how far apart the centres are, in units of its scale.

    The log ratio is so large from either centre outwards. The centres lie in the range, so that its ends, to
    which all beyond is moved, attain the loss.
    """
    if a.centre == b.centre:  # also of a metric that never changes, whose scale is 0
        return 0.0
    return abs(a.centre - b.centre) / a.scale if a.scale else math.inf


_OF_LAWS: dict[type, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    **dict.fromkeys((HazardLaw, DownwardLaw), (attrgetter("grid", "q", "monotonic"), _hazard_loss)),
    AboveThresholdLaw: (
        attrgetter("grid", "eps1", "eps2"),
        lambda a, b: finite_loss(_candidate_probabilities(a), _candidate_probabilities(b)),
    ),
    IntervalLaw: (lambda law: (law.edges[0], law.edges[-1]), _interval_loss),
    LaplaceLaw: (attrgetter("output_range", "scale"), _laplace_loss),
    GeometricLaw: (attrgetter("grid", "added"), _lattice_loss),
    SpreadLaw: (attrgetter("grid", "added", "of_spread"), _spread_loss),
    TableLaw: (lambda law: (law.rates, law.zero_sum, law.zero_sum and sum(law.values)), _table_loss),
    SumsLaw: (type, _sums_loss),
    RankingLaw: (attrgetter("rule"), _ranking_loss),
    CappedSumsLaw: (attrgetter("rates", "first.grid", "first.q"), _capped_loss),
    AdaptiveLaw: (attrgetter("stages"), _adaptive_loss),
}
"""What is public of each kind of law, and what compares two of which that is equal."""


# Search


@dataclass(frozen=True)
class AuditResult:
    """What an audit found; print it for a one-page report.

    Parameters
    ----------
    name : str
        What was audited.
    claimed : float
        The epsilon it claims.
    worst : float
        Largest loss found.
    pair : tuple of ndarray
        The neighbouring inputs that show it. They were made by the audit.
    pairs : int
        Number of pairs tried.
    tolerance : float, default=0.0
        Relative error allowed to the computation of the loss.
    """

    name: str
    claimed: float
    worst: float
    pair: Pair
    pairs: int
    tolerance: float = 0.0

    @property
    def share(self) -> float:
        """The largest loss found / epsilon."""
        return self.worst / self.claimed

    @property
    def passed(self) -> bool:
        """Whether no pair exceeds the claim."""
        return self.worst <= self.claimed * (1.0 + self.tolerance)

    def __str__(self) -> str:
        place = np.argmax(self.pair[0] != self.pair[1])
        return (
            f"Audit of {self.name}: {'PASS' if self.passed else 'FAIL'}\n"
            f"  claimed epsilon    {self.claimed:.12g}\n"
            f"  worst loss found   {self.worst:.12g}   ({self.share:.6f} of the claim)\n"
            f"  pairs tried        {self.pairs}\n"
            f"  the worst pair     {np.array2string(self.pair[0], threshold=12, precision=6)}\n"
            f"  with record {place} replaced by {self.pair[1][place]:.9g}"
        )


def seed_pairs(n: int, cap: float, ties: Sequence[float] = ()) -> Iterator[Pair]:
    """Yield neighbouring pairs of n numbers in [0, cap] that are hard for mechanisms.

    Equal values, one giant, values at the cap, all zeros, a ramp, two clusters, and values that tie with
    given points, such as points of the grid; in each the largest, the smallest or a middle value is
    replaced by either end.
    """
    rng = np.random.default_rng(0)  # the study needs a seed; no release is drawn here
    starts = [
        np.zeros(n),
        np.full(n, cap),
        np.full(n, cap / 10),
        np.r_[np.full(n - 1, cap / 1000), cap],
        np.r_[np.zeros(n // 2), np.full(n - n // 2, cap)],
        np.linspace(0.0, cap, n),
        np.minimum(rng.exponential(cap / 20, n), cap),
        np.minimum(rng.lognormal(math.log(cap / 100), 2.0, n), cap),
        *(np.full(n, tie) for tie in ties),
        *(np.r_[tie * n, np.zeros(n - 1)] for tie in ties if tie * n <= cap),
    ]
    for start in starts:
        least, middle, most = np.argsort(start)[[0, n // 2, -1]].tolist()
        for place, replacement in product({least, most, middle}, (0.0, cap, start[middle])):
            if replacement != start[place]:
                other = start.copy()
                other[place] = replacement
                yield start, other


@own_error_state
def audit(  # noqa: PLR0913 - what to search, and how
    name: str,
    loss: Callable[[Floats, Floats], float],
    *,
    epsilon: float,
    n: int = 12,
    cap: float = 1.0,
    ties: Sequence[float] = (),
    steps: int = 100,
    tolerance: float = 0.0,
    seed: int = 0,
) -> AuditResult:
    """Search for the neighbouring pair with the largest privacy loss.

    Parameters
    ----------
    name : str
        What is audited, for the report.
    loss : callable
        loss(a, b) is the privacy loss between two arrays of n numbers in [0, cap], such as `release_loss` of
        a metric.
    epsilon : float
        The claim.
    n : int, default=12
        Number of records.
    cap : float, default=1.0
        Largest value of a record.
    ties : sequence of float, default=()
        Values to try as ties with the mechanism's outputs.
    steps : int, default=100
        Steps of hill climbing from the worst adversarial pair.
    tolerance : float, default=0.0
        Relative error allowed to the computation of the loss.
    seed : int, default=0
        Seed of the hill climbing. The audit handles no real data.

    Returns
    -------
    AuditResult
        The worst pair found, and whether it keeps the claim.

    Examples
    --------
    >>> from dp_metrics import private_mean_loss
    >>> from dp_metrics.analysis import auditing
    >>> def loss(a, b):
    ...     return auditing.release_loss(private_mean_loss, [a], [b], epsilon=1.0, max_loss=1.0)
    >>> auditing.audit("private_mean_loss", loss, epsilon=1.0, n=5, steps=5).passed
    True
    """
    claimed, n, steps = check_epsilon(epsilon), check_count(n, "n"), check_count(steps, "steps", least=0)
    rng = np.random.default_rng(seed)
    pairs = list(seed_pairs(n, cap, ties))
    worst, pair = max(((loss(*pair), pair) for pair in pairs), key=lambda found: found[0])
    for _ in range(steps):
        if math.isinf(worst):
            break
        candidate = _mutate(pair, cap, rng)
        found = loss(*candidate)
        if found >= worst:
            worst, pair = found, candidate
    return AuditResult(name, claimed, worst, pair, len(pairs) + steps, tolerance)


def _mutate(pair: Pair, cap: float, rng: np.random.Generator) -> Pair:
    """Move one or two of the common records, or the replaced one, or its replacement."""
    a, b = map(np.copy, pair)
    place = np.argmax(a != b)
    for _ in range(rng.integers(1, 3)):
        move = rng.integers(a.size)
        value = rng.choice([0.0, cap, cap * rng.random(), a[rng.integers(a.size)]])
        if move != place:
            a[move] = b[move] = value
        elif rng.random() < 0.5 and value != b[place]:
            a[place] = value
        elif value != a[place]:
            b[place] = value
    return a, b


# What is audited


# a threshold as small as this lets few records go through both stages
_ALWAYS: dict[str, Any] = {"adaptive": Adaptive(threshold=1e-9), "hazard": "hazard"}
# a coarse beta keeps the exact comparison of all candidates quick; the mechanism is the same
_BOUNDED = {
    **_ALWAYS,
    "above_threshold": AboveThreshold(beta=1.2),
    **{name: name for name in ("inverse_sensitivity", "piecewise_laplace", "laplace", "geometric")},
}
_COUNTS = {"noisy counts": None}


Audited: TypeAlias = tuple["partial[Any]", Callable[[Floats], Data], ByName]
"""What releases, with its options; what makes its data of numbers from 0 to 1, record by record; and the
mechanisms that apply, by their names in the table of the audit: None where it takes none."""


def audited_loss(
    audited: Audited, a: Floats, b: Floats, *, epsilon: float, mechanism: str | Mechanism | None
) -> float:
    """Return the exact privacy loss of what is audited between two arrays that differ in one record.

    Where neighbours differ by a record that is there or not, that one is left out.
    """
    function, records, _ = audited
    options = {} if mechanism is None else {"mechanism": mechanism}
    if Relation.told_by(function.keywords).private_n:
        b = a[a == b]
    return release_loss(function, records(a), records(b), epsilon=epsilon, **options)


def _by_half(x: Floats) -> dict[str, Any]:
    """Return labels, predictions and groups: all eight triples of 0 and 1 as x grows."""
    eighth = np.minimum(np.floor(x * 8), 7).astype(np.int64)
    return {"y_true": eighth // 2 % 2, "y_pred": eighth % 2, "sensitive_features": eighth // 4}


def _over_the_grid(x: Floats) -> tuple[Any, ...]:
    """Return losses that cover the whole grid."""
    return (np.sinh(700 * x),)


def _both_wrong(x: Floats) -> tuple[Any, ...]:
    """Return two models: both are wrong about the lowest third of the numbers, each about another one."""
    third = np.minimum(np.floor(x * 3), 2)
    return np.ones_like(x), third, third - 1


def _of_metric(name: str, options: ByName, rules: ByName) -> Audited:
    """Return a public metric, which takes these mechanisms, or none."""
    row = METRICS[name]
    released = partial(row.function, **{**row.required, **options})
    return released, row.from_unit, rules if row.mechanism else _COUNTS


def _frame(metrics: Any, **options: Any) -> Audited:
    released = partial(PrivateMetricFrame, metrics=metrics, group_labels=[0, 1], **options)
    return released, _by_half, _COUNTS


_FRAMED = {"recall": "recall", "precision": "precision"}
_ACCURACY = partial(metric_named("accuracy"), mechanism="geometric")
_UNIT = {"bounds": (0, 1)}
# a confidence as low as this lets few records have both limits
_QUANTILE = partial(private_quantile_interval, q=0.5, confidence=0.3)

_ADDS = {"neighboring": "add_or_remove_one"}
_WITH_SUMS = {**_ALWAYS, "geometric": "geometric"}  # of a private number of records

AUDITED: dict[str, Audited] = {
    **{
        ", ".join([name, *options]): _of_metric(
            name, options, _BOUNDED if options == (row.limit or {}) else _ALWAYS
        )
        for name, row in METRICS.items()
        for options in ({}, row.limit)
        if options is not None
    },
    "private_mse, weights": (
        partial(metric_named("mse"), **_UNIT),
        lambda x: {"y_true": np.zeros_like(x), "y_pred": x, "sample_weight": 0.1 + np.arange(x.size) % 3},
        _BOUNDED,
    ),
    **{
        f"{name}, add or remove": _of_metric(name, {**options, **_ADDS}, rules)
        for name, options, rules in (
            ("private_mse", _UNIT, _WITH_SUMS),
            ("private_variance", _UNIT, _WITH_SUMS),
            ("private_mean", {}, _WITH_SUMS),
            ("private_roc_auc_score", {}, _ALWAYS),
            ("private_roc_curve", {}, _ALWAYS),
            ("private_calibration_curve", {}, _ALWAYS),
            ("private_expected_calibration_error", {}, _WITH_SUMS),
            ("private_f1_score", {}, _ALWAYS),
        )
    },
    "private_f1_score, macro": _of_metric(
        "private_f1_score", {"average": "macro", "labels": [0, 1, 2, 3]}, _ALWAYS
    ),
    "private_mean_pinball_loss, alpha": _of_metric("private_mean_pinball_loss", {"alpha": 0.9}, _ALWAYS),
    "private_log_loss, two columns": (
        partial(metric_named("log_loss"), max_loss=10.0),
        lambda x: (np.ones_like(x), np.stack([1.0 - x, x], axis=1)),
        _BOUNDED,
    ),
    "PrivateMetricFrame, one table": _frame(_FRAMED),
    "PrivateMetricFrame, releases": _frame(_ACCURACY, overall_share=0),
    "PrivateMetricFrame, add or remove": _frame({**_FRAMED, "accuracy": _ACCURACY}, **_ADDS),
    "private_mean_interval": (partial(private_mean_interval, max_loss=1.0), lambda x: (x,), _COUNTS),
    "private_mean_interval, private cap": (
        partial(private_mean_interval, cap="private"),
        _over_the_grid,
        _COUNTS,
    ),
    "private_compare": (partial(private_compare, loss="zero_one"), _both_wrong, _COUNTS),
    "private_compare, max_difference": (
        partial(private_compare, loss="mae", max_difference=1.0),
        lambda x: (np.zeros_like(x), x, 1 - x),
        _COUNTS,
    ),
    "private_quantile_interval": (_QUANTILE, _over_the_grid, {"hazard": None}),
    "private_quantile_interval, max_loss": (
        partial(_QUANTILE, max_loss=1.0),
        lambda x: (x,),
        {"hazard": None},
    ),
}
"""Every public metric, with and without public limits and options that change what a person can do; metrics
by group; intervals for people at large; comparisons."""


_TOLERANCE = 1e-9  # the exact loss of some laws is computed in float64: of drawn scales and of comparators


def run_audit(
    epsilons: Sequence[float],
    *,
    n: int = 10,
    steps: int = 100,
    mechanisms: Sequence[str] = (),
    progress: Callable[[Sequence[Any]], Any] = lambda plan: plan,
) -> dict[tuple[str, str, float], AuditResult]:
    """Audit all that is `AUDITED` with every mechanism that applies.

    Parameters
    ----------
    epsilons : sequence of float
        Claims to check.
    n : int, default=10
        Records of each made-up data set.
    steps : int, default=100
        Steps of hill climbing after the adversarial pairs.
    mechanisms : sequence of str, default=()
        Names of the mechanisms to audit; none: all.
    progress : callable, default=no progress
        Wraps the list of what there is to do, as tqdm does.

    Returns
    -------
    dict of AuditResult
        The worst pair found, by what is audited, mechanism and epsilon.

    Raises
    ------
    ValueError
        If there is no such mechanism.
    """
    for one in mechanisms:
        check_choice(one, "mechanisms", (*_BOUNDED, *_COUNTS))
    work = [
        (name, label, epsilon)
        for name, (*_, rules) in AUDITED.items()
        for label, epsilon in product(rules, epsilons)
        if not mechanisms or label in mechanisms
    ]
    return {
        (name, label, epsilon): audit(
            f"{name} with {label}",
            partial(audited_loss, AUDITED[name], epsilon=epsilon, mechanism=AUDITED[name][2][label]),
            epsilon=epsilon,
            n=n,
            steps=steps,
            tolerance=0.0 if label in ("hazard", "geometric", "noisy counts") else _TOLERANCE,
        )
        for name, label, epsilon in progress(work)
    }


def to_table(findings: Mapping[tuple[str, str, float], AuditResult]) -> str:
    """Return the worst loss / epsilon over all epsilons as a Markdown table, a row for each thing audited."""
    mechanisms = dict.fromkeys(mechanism for _, mechanism, _ in findings)
    rows = {name: dict.fromkeys(mechanisms, "") for name, _, _ in findings}
    # the worst one of a cell comes last, and stays
    for (name, mechanism, _), found in sorted(findings.items(), key=lambda finding: finding[1].share):
        rows[name][mechanism] = f"{found.share:.6f}{'' if found.passed else ' FAIL'}"
    lines = [("metric", *mechanisms), *((name, *cells.values()) for name, cells in rows.items())]
    head, *body = (f"| {' | '.join(cells)} |" for cells in lines)
    return "\n".join([head, "|---" * (1 + len(mechanisms)) + "|", *body])
