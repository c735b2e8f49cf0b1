"""Intervals for the mean and for quantiles of a loss among all people like the records."""

from __future__ import annotations

import functools
import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from operator import attrgetter
from typing import Any, ParamSpec, Unpack

import numpy as np
from numpy.typing import ArrayLike

from dp_metrics._random import Entropy, LazyUniform
from dp_metrics.inputs import options
from dp_metrics.inputs.arrays import Records, Shape, check_columns, loss_block, vector
from dp_metrics.inputs.options import ByName, Epsilon, Floats, Range, Relation
from dp_metrics.mechanisms._base import Mechanism, ceil_ranks
from dp_metrics.mechanisms._laws import Grid, Integers, nearest_index
from dp_metrics.mechanisms.hazard import PEAK, TAIL, HazardLaw, largest_ratio, public_grid, share_of_rank
from dp_metrics.metrics._metric import asks
from dp_metrics.metrics._settings import Payment, completed_signature
from dp_metrics.quantities.ranks import OF_SUMS, CappedSumsOf, OrderOf
from dp_metrics.quantities.tables import integers_of
from dp_metrics.release.count_limits import at_most, binomial_law, mean_half_width, normal_note
from dp_metrics.release.query import Query, Source, Terms
from dp_metrics.release.release import Release
from dp_metrics.release.released import POPULATION_NOTE, Interval
from dp_metrics.release.result import ReleasedNumbers, arguments_of
from dp_metrics.release.stored import PER_RECORD, SETTINGS, Call
from dp_metrics.sensitivity.exact import exact_moments, float_units, rounded_quotient
from dp_metrics.sensitivity.output_bounds import FINENESS, OutputBounds

P = ParamSpec("P")

_ONE_PERSON = "the records must be independent draws from one population, one person each"


def population_release(
    name: str, terms: Terms, arguments: ByName, *, sample_weight: Any = None, groups: Any = None
) -> Release:
    """Return the release of a call with these arguments; raise for those that suit no population."""
    if sample_weight is not None:
        raise ValueError(f"{name} takes no sample_weight: {_ONE_PERSON}, and each counts alike.")
    if groups is not None:
        raise ValueError(f"{name} takes no groups: {_ONE_PERSON}.")
    if terms.relation.private_n:
        raise ValueError(
            f"{name} needs neighboring='replace_one': the width depends on the number of records."
        )
    return Release(name, terms, call=partial(Call.of, "value", arguments))


value_of = attrgetter("value")
"""The value of a result, all that a function returns of it."""


def _interval_of(body: Callable[P, Interval]) -> Callable[P, Interval]:
    """Make a release of losses of a function that says what to release, as the body of a metric does."""
    signature, name = completed_signature(body), body.__name__

    @functools.wraps(body)
    def release(*args: P.args, **kwargs: P.kwargs) -> Interval:
        given = arguments_of(release, args, kwargs)
        terms = Terms.of(**{each: given.pop(each) for each in SETTINGS & given.keys()})
        refused = {each: given.pop(each) for each in PER_RECORD & given.keys()}
        found = population_release(name, terms, given, **refused)
        asked: Any = body(**{**given, "losses": None})  # type: ignore[call-arg]

        def read() -> tuple[Query, Source, Any]:
            shape, records = Records.of((given["losses"],), relation=Relation.REPLACE_ONE)
            query = asked(shape, epsilon=terms.epsilon)
            return query, query.read(records), None

        return found.answer(read, value_of)

    release.__signature__ = signature  # type: ignore[attr-defined]
    return options.own_error_state(release)


_CAP = Fraction(99, 100)  # the quantile that becomes a cap
_LEAST_RECORDS = 100  # n * epsilon below which a cap is useless: as measured
_LOW_CAP = (
    "a private cap may come out far too low, and the mean with it: give a public cap, or take more records "
    "or a larger epsilon."
)
_NEXT_TO_0 = 1e-5
_NO_CAP = (
    "The cap came out next to 0, where its search begins: hardly any loss is above 0, or there are too few "
    "records. Do not conclude that the loss is small; take a public cap."
)


def mean_interval_query(
    reader: Callable[[Records], Records],
    *,
    confidence: float,
    about: str,
    limit: float = 1.0,
    low: float = 0.0,
    high: float = 1.0,
) -> Query:
    """Return the query of an interval for the mean, in all people, of numbers that are clipped to a limit.

    Parameters
    ----------
    reader : callable
        Returns records whose only array holds numbers of at least 0, one per person.
    confidence : float
        Of the interval.
    about : str
        What the interval is about.
    limit : float, default=1.0
        Public and positive.
    low, high : float, default=0.0, 1.0
        What a mean of 0, and a mean at the limit, is called in the interval.
    """
    part = integers_of(partial(_sums_of_records, limit=limit), 2, FINENESS + 1)
    sure = options.check_confidence(confidence)
    return Query((part,), reader, partial(_normal_interval, confidence=sure, about=about, low=low, high=high))


def _rank_of_cap(n: int) -> int:
    return math.ceil(_CAP * n)


def _sums_of_records(records: Records, limit: float) -> Integers:
    return np.array(_sums(loss_block(*records.arrays), limit))


def _sums(values: Floats, limit: float) -> tuple[int, int]:
    """Return the sums of v and of v (1 - v), for v = clipped value / limit, in steps of the lattice.

    Notes
    -----
    A record moves the two sums by at most 1 together: |u - w| + |u (1-u) - w (1-w)| is |u - w| times
    1 + |1 - u - w|, which is |(1-u)^2 - (1-w)^2| or |u^2 - w^2|. In steps that is at most FINENESS; rounding
    either sum to the nearest step, from the exact sums, adds less than 1 to its change. So the whole numbers
    move by less than FINENESS + 2, which is at most FINENESS + 1.
    """
    total, squares = exact_moments(np.clip(values, 0.0, limit))
    cap = float_units(limit)
    return _in_steps(total, cap), _in_steps(cap * total - squares, cap * cap)


def _in_steps(total: int, unit: int) -> int:
    return (2 * FINENESS * total + unit) // (2 * unit)


def _normal_interval(
    released: ReleasedNumbers, *, confidence: float, about: str, low: float = 0.0, high: float = 1.0
) -> Interval:
    """Return the interval of two noisy sums; `low` and `high` stand for a mean of 0 and of 1."""
    n = released.public_n
    assert n is not None
    m, d = (rounded_quotient(number, n * FINENESS) for number in released.values[0])
    m = min(max(m, 0.0), 1.0)
    noise = 1 / max(n * float(released.epsilon), math.ulp(0.0))
    half = mean_half_width(m, d, n, (noise, noise), 1 - confidence)
    lower, upper, middle = (low * (1 - x) + high * x for x in (max(m - half, 0.0), min(m + half, 1.0), m))
    return Interval(lower, upper, confidence, about, normal_note(n), middle)


def _capped_interval(released: ReleasedNumbers, *, confidence: float) -> Interval:
    cap, *sums = released.values[0]
    about = f"The mean of the loss, errors above {cap:g} counted as {cap:g}, {POPULATION_NOTE}"
    of_sums = replace(released, values=[sums], epsilon=released.epsilon * OF_SUMS)
    found = _normal_interval(of_sums, confidence=confidence, about=about, high=cap)
    return replace(found, note=f"{_NO_CAP} {found.note}") if cap < _NEXT_TO_0 else found


@_interval_of
def private_mean_interval(
    losses: ArrayLike,
    *,
    max_loss: float | None = None,
    cap: str | None = None,
    confidence: float = 0.95,
    sample_weight: None = None,
    groups: None = None,
    neighboring: str = "replace_one",
    **settings: Unpack[Payment],
) -> Interval:
    r"""Interval for the mean loss of all people like the records, with epsilon-differential privacy.

    It allows for both the chance by which these records were drawn, independently from one population, and
    the noise of the release.

    Parameters
    ----------
    losses : array-like of shape (n_samples,)
        One finite, non-negative loss per person, each computed from that person's record and public numbers
        only.
    epsilon : float
        Privacy parameter, > 0: smaller is more private and makes a wider interval.
    max_loss : float or None, default=None
        Public cap of one record's loss, in the units of the loss; larger losses are clipped to it, and the
        interval is for the mean of the clipped loss. Never read it from the data. None: `cap` buys one, for
        without a cap there is no upper limit.
    cap : {"private"} or None, default=None
        "private", instead of `max_loss`: a third of epsilon buys a cap c near the 99 % quantile of the losses
        of these records. The interval is then for the mean of the loss clipped to c, and says so. For a cap
        of use n * epsilon should be above 100, where n counts the losses above 0 only.
    confidence : float, default=0.95
        Probability, strictly between 0 and 1, with which the interval is to cover the mean: approximate, see
        Notes.
    sample_weight : None, default=None
        Refused: the records must be independent draws that count alike.
    groups : None, default=None
        Refused: each record must be a person of its own.
    neighboring : {"replace_one"}, default="replace_one"
        What one person can change: a record's contents. The number of records is public.
    accountant : PrivacyAccountant or None, default=None
        Budget that pays epsilon for this release, before it is drawn.
    random_state : None, int, RandomState or Generator, default=None
        None draws fresh randomness from the operating system. Anything else makes the release reproducible
        and therefore NOT private.
    spend_name : str or None, default=None
        The name of this release in the accountant's history; None: the name of this function.
        A name of an earlier session returns what was released then, at no cost.

    Returns
    -------
    Interval
        The limits, from 0 to the cap; it unpacks as ``lower, upper``. Its `estimate` is a private mean of
        these records, which lies in the interval.

    Raises
    ------
    ValueError, TypeError
        If an input is invalid, as in scikit-learn, or an option is.
    PrivacyBudgetError
        If the accountant has less than epsilon left; nothing is drawn.

    Warns
    -----
    NoisyReleaseWarning
        With a private cap, if n * epsilon is below 100: the cap may come out far too low.
    SeededReleaseWarning
        If `random_state` is given.

    See Also
    --------
    private_mean_loss : The mean loss of these records, without an interval.
    private_quantile_interval : An interval for a quantile, which needs no cap.
    dp_metrics.release.result.Result : Limits of what has been released already, free of cost.
    Result.population_interval : An interval for a mean that has been released; the "sure" one holds
        for every loss and number of records.

    Notes
    -----
    Guarantee: replacing any one record changes the probability of any result by at most a factor
    exp(epsilon), given the model, the number of records and the arguments, which are public.

    A private cap is the 99 % quantile of the records, released by ``Hazard(resolution=0.4)`` at a third of
    epsilon, to three digits. It is public from there on, and the rest is done at two thirds of epsilon: the
    two add up. With six losses on real data a nominal 95 % came out as 95 to 97 % (1000 runs each at n =
    2,000 and epsilon 1), at 0.9 to 1.1 times the width of Student's t for the unclipped mean, and the mean
    of the clipped loss was 88 to 100 % of that mean. With n * epsilon at 500 it was 96 % or more where
    losses are spread, but 38 and 55 % where most lie next to 0, as the Brier score and the log loss of a
    rare label. Where hardly any loss is above 0, c comes out near 0, and the interval with it; a note says
    so below 1e-5.

    Let v be the loss divided by the cap. Two sums are released, of v and of v (1 - v), with
    two-sided geometric noise on a lattice of 2^20 steps. A record that changes from u to w moves them by
    abs(u - w) (1 + abs(1 - u - w)) together, which is abs((1-u)^2 - (1-w)^2) or abs(u^2 - w^2): at most 1, no
    more than the first sum alone can move. So the spread costs nothing. The half-width h is that for which a
    normal variable with the noisy variance, plus a Laplace variable with the scale of the noise, exceeds h
    in size with probability 1 - confidence. For the noise in the variance, that is enlarged by
    3.2718 / (n epsilon), which the noise exceeds with probability 5 %. The confidence is that of the normal
    approximation: with ten losses on real data, 300 to 10,000 records and an epsilon of 0.1 to 3, a nominal
    95 % came out as 94.5 % or more (2000 runs each, standard error 0.5 %). It is lower where the mean rests
    on few records: 88 % with 1,000 records, epsilon 3, and losses at the cap for one person in 500, else 0.
    With fewer than 100 records it can be far lower: where one loss in ten is at the cap, else 0, it is 71 %
    with 10 records at epsilon 10, and below 1 % for a fair coin with one record at epsilon 100. Release the
    mean there instead, by `private_mean_loss` with ``mechanism="geometric"``: its `population_interval` is
    wider, and sure.

    References
    ----------
    A. Ghosh, T. Roughgarden and M. Sundararajan, "Universally Utility-Maximizing Privacy Mechanisms", 2012,
    doi:10.1137/09076828X, for the noise.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_metrics import private_mean_interval
    >>> losses = np.linspace(0, 1, 1000)
    >>> lower, upper = private_mean_interval(losses, max_loss=1.0, epsilon=1.0)
    >>> 0.4 < lower < upper < 0.6
    True
    """
    return asks(mean_query, max_loss=max_loss, cap=cap, confidence=confidence)


_LOSSES = partial(vector, name="losses"), loss_block


def mean_query(_: Shape, *, max_loss: Any, cap: Any, confidence: Any, epsilon: Any = None) -> Query:
    """Return the query of an interval for the mean of losses, or raise if an argument is invalid."""
    options.check_choice(cap, "cap", ("private", None))
    limit = options.check_max_loss(max_loss)
    if (limit is None) == (cap is None):
        given = "neither" if cap is None else "both"
        raise ValueError(
            "private_mean_interval needs max_loss, a public limit of one loss, or cap='private', which buys "
            f"one; {given} was given. private_quantile_interval needs none."
        )
    reader, values = _LOSSES
    if limit is None:
        part = CappedSumsOf(
            values, _rank_of_cap, options.MAX_FLOAT, _sums, 2, FINENESS + 1,
            mostly_noise=_LEAST_RECORDS, noise_note=_LOW_CAP,
        )  # fmt: skip
        return Query(
            (part,), reader, partial(_capped_interval, confidence=options.check_confidence(confidence))
        )
    about = f"The mean of the loss, clipped to max_loss, {POPULATION_NOTE}"
    return mean_interval_query(reader, confidence=confidence, about=about, limit=limit, high=limit)


@dataclass(frozen=True, repr=False)
class OrderSearch(Mechanism):
    """Hazard selection of an order statistic, on the grid from 0 to the limit or on the same grid reversed.

    Parameters
    ----------
    resolution : float, default=0.4
        Public precision of the result relative to its size.
    downward : bool, default=False
        Whether the search starts at the limit. The cells are then numbered from there: that next to the order
        statistic, and below it, has hazard 1.

    Notes
    -----
    **Guarantee.** The release is epsilon-differentially private for neighbouring data sets that differ in one
    record, given public n, limit and resolution.

    **Proof.** That of `Hazard` for monotonic metrics. It needs no more than an increasing public grid and a
    metric whose bounds all move in one direction between neighbours. Minus the outputs, in reverse, are an
    increasing public grid, and minus an order statistic is such a metric.

    More ranks are used than in `Hazard`: a search down from the largest float passes nearly all cells of the
    grid, and together they must weigh nothing.
    """

    resolution: float = 0.4
    downward: bool = False

    is_exact = True  # the draw is that of `HazardLaw`

    def grid(self, limit: float) -> Grid:
        """Return the public grid, in ascending order."""
        return public_grid(self.resolution / PEAK, limit)

    def count_ranks(self, epsilon: Epsilon, *, n: int | None, monotonic: bool, output_range: Range) -> int:
        """Return ceil(ln(1e4 K / 256) / eps2), for K cells: what lies beyond has a negligible hazard."""
        cells = self.grid(output_range[1]).last
        eps2 = float(share_of_rank(options.exact_epsilon(epsilon), monotonic=True))
        return ceil_ranks(math.log(max(1e4 * cells / PEAK, math.e)) / max(eps2, math.ulp(0.0)), n)

    def output_distribution(self, output_bounds: OutputBounds, epsilon: Epsilon) -> HazardLaw:
        """Return the exact law of `release`."""
        low, limit = output_bounds.output_range
        if low != 0.0 or not output_bounds.monotonic:
            raise ValueError("OrderSearch is for order statistics of numbers that are at least 0.")
        ratio = largest_ratio(share_of_rank(options.exact_epsilon(epsilon), monotonic=True))
        law = DownwardLaw if self.downward else HazardLaw
        return law(self.grid(limit), output_bounds, ratio)


class DownwardLaw(HazardLaw):
    """The law of a search from above: the cells of the hazard are numbered from the last output down to 0."""

    @staticmethod
    def edges_of(grid: Grid, output_bounds: OutputBounds) -> Integers:
        """Count the outputs between consecutive output bounds, from the last one down to number 0."""
        edges = np.empty(2 * output_bounds.ranks + 3, dtype=np.int64)
        edges[0], edges[-1] = 0, grid.last
        nearest = np.append(output_bounds.upper[::-1], output_bounds.value)
        above = np.append(grid.index_above(nearest), grid.index_at_least(output_bounds.lower))
        edges[1:-1] = np.minimum(grid.last + 1 - above, grid.last)
        return edges

    def release(self, entropy: Entropy) -> float:
        """Draw an output."""
        return self.grid.point(self.grid.last - self.draw(LazyUniform(entropy)))

    def index_cdf(self, indices: Integers) -> Floats:
        """Return P(number of the release <= k)."""
        return 1.0 - super().index_cdf(self.grid.last - 1 - np.asarray(indices))


def hazard_miss(cells: Floats) -> Floats:
    """Return 1 - H(z), the probability not to have crossed where the cumulative hazard is z."""
    x = np.maximum(cells / PEAK, 0.0)
    peak = TAIL / (2 * TAIL + 1)
    return np.where(x <= 1, 1 - peak * np.minimum(x, 1) ** (TAIL + 1), (1 - peak) * np.maximum(x, 1) ** -TAIL)


_CELLS = 320  # j: how far a limit lies beyond the output of its search
_COARSEST, _FINEST = 0.4, 2.0**-32  # resolutions

# a limit is useless where the records beyond the quantile, times epsilon of its search, are fewer: as
# measured at several q, n and epsilon
_USELESS = "expect a lower limit near 0, or an upper limit near max_loss or the largest float."
_NEEDED, _NEEDED_FROM_LARGEST_FLOAT = 40, 75
_LEAST_SHARE = Fraction(1, 10**15)  # smaller shares would make messages long


@_interval_of
def private_quantile_interval(
    losses: ArrayLike,
    q: float,
    *,
    max_loss: float | None = None,
    confidence: float = 0.95,
    sample_weight: None = None,
    groups: None = None,
    neighboring: str = "replace_one",
    **settings: Unpack[Payment],
) -> Interval:
    r"""Interval for a quantile of the loss of all people like the records, with epsilon-differential privacy.

    It allows for both the chance by which these records were drawn, independently from one population, and
    the noise of the release. It holds for every law of the loss, which needs no upper limit.

    Parameters
    ----------
    losses : array-like of shape (n_samples,)
        One finite, non-negative loss per person, each computed from that person's record and public numbers
        only.
    q : float
        The quantile, strictly between 0 and 1: 0.5 for the median.
    epsilon : float
        Privacy parameter, > 0: smaller is more private and makes a wider interval.
    max_loss : float or None, default=None
        Public cap of one record's loss, in the units of the loss; larger losses are clipped to it. None:
        unbounded, which makes the upper limit useless where n (1 - q) epsilon is below 150: for the median
        where n * epsilon is below 300, for the 99 % quantile where it is below 15,000. Never read it from the
        data.
    confidence : float, default=0.95
        Least probability, strictly between 0 and 1, with which the interval covers the quantile.
    sample_weight : None, default=None
        Refused: the records must be independent draws that count alike.
    groups : None, default=None
        Refused: each record must be a person of its own.
    neighboring : {"replace_one"}, default="replace_one"
        What one person can change: a record's contents. The number of records is public.
    accountant : PrivacyAccountant or None, default=None
        Budget that pays epsilon for this release, before it is drawn.
    random_state : None, int, RandomState or Generator, default=None
        None draws fresh randomness from the operating system. Anything else makes the release reproducible
        and therefore NOT private.
    spend_name : str or None, default=None
        The name of this release in the accountant's history; None: the name of this function.
        A name of an earlier session returns what was released then, at no cost.

    Returns
    -------
    Interval
        The limits, at least 0; it unpacks as ``lower, upper``. The upper limit may be infinite, or
        `max_loss`.

    Raises
    ------
    ValueError, TypeError
        If an input is invalid, as in scikit-learn, or an option is, or if there are too few records for any
        limit at this q, epsilon and confidence.
    PrivacyBudgetError
        If the accountant has less than epsilon left; nothing is drawn.

    Warns
    -----
    NoisyReleaseWarning
        If a limit is to be expected useless: if n (1 - q) epsilon is below 150, or 80 with `max_loss`, or
        n q epsilon below 80; or half of that for the one limit that so few records allow.
    SeededReleaseWarning
        If `random_state` is given.

    See Also
    --------
    private_quantile : The quantile of these records, without an interval.
    private_mean_interval : An interval for a mean, which needs a cap.

    Notes
    -----
    Guarantee: replacing any one record changes the probability of any result by at most a factor
    exp(epsilon), given the model, the number of records and the arguments, which are public.

    Two order statistics are searched for at epsilon / 2 each, by hazard selection on one public grid with
    points t_0 = 0 < t_1 < ...: that of a rank k1 from below, which halts at point i1, and that of a rank k2
    from above, which halts at i2. The limits are the points i1 - 320 and i2 + 320. With H the law of the
    level at which a search halts, r = exp(-epsilon / 8), c ranks looked at and R binomial of n and q::

        P(lower > quantile) <= E[1 - H(320 r^max(k1 - R, -c))]
        P(upper < quantile) <= E[1 - H(320 r^max(R + 1 - k2, -c))]

    because at least R records are at or below the quantile, so that each point above it adds r^(k1 - R) or
    more to the hazard of the first search; likewise at most R are below it, for the second. k1 is the largest
    rank, and k2 the smallest, for which the bound is at most half of 1 - confidence. Neither ties nor the
    fineness of the grid matter for that. Without `max_loss` the search from above starts at the largest float
    and halts early, at a useless limit that holds all the same, unless some 150 / epsilon records lie above
    k2. Where n is too small for one of the two ranks, the other has all of epsilon.

    References
    ----------
    D. Durfee, "Instance-Specific Asymmetric Sensitivity in Differential Privacy", arXiv:2311.14681, for the
    scores of the searches; the selection rule is this package's own.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_metrics import private_quantile_interval
    >>> losses = np.linspace(1, 2, 2000)
    >>> lower, upper = private_quantile_interval(losses, 0.5, epsilon=2.0)
    >>> 1.2 < lower < 1.5 < upper < 1.8
    True
    """
    return asks(quantile_query, q=q, max_loss=max_loss, confidence=confidence)


def quantile_query(
    shape: Shape,
    *,
    q: Any,
    epsilon: Fraction,
    max_loss: Any = None,
    confidence: Any = 0.95,
    reads: tuple[Callable[[Records], Records], Callable[..., Floats]] = _LOSSES,
    name: str | None = None,
    rank: int | None = None,
) -> Query:
    """Return the query of an interval for a quantile, or raise if an argument is invalid.

    What `reads` first checks the form of the records, the second makes losses of their arrays. The interval
    calls the quantile by its `name`. With a `rank` the interval is that of the loss of these records that has
    it, counted from 1, whatever all people are.
    """
    share, sure, (reader, values) = options.check_share(q, "q"), options.check_confidence(confidence), reads
    cap = options.check_max_loss(max_loss)
    limit = options.limit_of(cap)
    if shape.n is None:  # what has no dimension has no number of records
        check_columns(np.empty(()), "losses")
    if not shape.n:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
    found = rank_searches(shape.n, share, epsilon, miss=1 - sure, limit=limit, rank=rank)
    parts = tuple([replace(part, values=values) for part, _ in found])
    searches = tuple([search for _, search in found])
    clipped = "" if cap is None else ", clipped to max_loss,"
    quantile = name or f"The {float(share):g} quantile of the loss{clipped}"
    about = f"{quantile} {POPULATION_NOTE if rank is None else 'of these records.'}"
    result = partial(_interval, searches=searches, cap=cap, confidence=sure, about=about)
    return Query(parts, reader, result, mechanisms=searches)


def _fixed(n: int, *, rank: int) -> int:
    """Return a rank that was chosen for the public number of records already."""
    return rank


def rank_searches(
    n: int, q: Fraction, epsilon: Fraction, *, miss: float, limit: float, rank: int | None = None
) -> list[tuple[OrderOf, OrderSearch]]:
    """Return the order statistics from which the lower limit and the upper one follow, and their searches.

    One that cannot be is left out.

    Parameters
    ----------
    n : int
        Public number of records.
    q : Fraction
        The quantile.
    epsilon : Fraction
        What both searches cost.
    miss : float
        Probability with which either limit may miss.
    limit : float
        Public limit of the losses.
    rank : int or None, default=None
        The limits are of the value of this rank in the records; None: of the quantile of all people.

    Raises
    ------
    ValueError
        If neither can be.
    """
    # how many records are at or below what is limited, and how many at or above: by chance, or for certain
    if rank is None:
        laws = [binomial_law(n, float(share)) for share in (q, 1 - q)]
    else:
        laws = [(np.array([float(count)]), np.ones(1)) for count in (rank, n + 1 - rank)]

    def possible(epsilon: Fraction, miss: float) -> list[tuple[OrderOf, OrderSearch]]:
        """Return the searches, at epsilon and miss each, that some rank allows."""
        eps2 = share_of_rank(epsilon, monotonic=True)
        records = n * float(eps2)
        resolution = _COARSEST if records * _COARSEST <= 2 else max(2 / records, _FINEST)
        found = []
        for beyond, law, downward in zip((q, 1 - q), laws, (False, True), strict=True):
            search = OrderSearch(resolution, downward)
            ranks = search.count_ranks(epsilon, n=n, monotonic=True, output_range=(0.0, limit))
            best = _largest_rank(n, law, largest_ratio(eps2), ranks, miss)
            if best:
                needed = _NEEDED_FROM_LARGEST_FLOAT if downward and limit == options.MAX_FLOAT else _NEEDED
                useful = math.ceil(needed / max(beyond, _LEAST_SHARE))
                fixed = partial(_fixed, rank=n + 1 - best if downward else best)
                part = OrderOf(loss_block, fixed, limit, mostly_noise=useful, noise_note=_USELESS)
                found.append((part, search))
        return found

    both = possible(epsilon / 2, miss / 2)
    if len(both) == 2:
        return both
    # the other limit is trivial and never misses: this one may take all that there is
    alone = possible(epsilon, miss)
    if not alone:
        raise ValueError(
            "private_quantile_interval: there are too few records for any limit at this q, epsilon and "
            "confidence."
        )
    sides = [search.downward for _, search in both]
    return ([one for one in alone if one[1].downward in sides] or alone)[:1]


def _largest_rank(n: int, law: tuple[Floats, Floats], ratio: float, ranks: int, miss: float) -> int:
    """Return the largest rank whose lower limit misses with at most this probability; 0 if there is none."""
    below, probabilities = law

    def miss_of(rank: int) -> float:
        return at_most(float(probabilities @ _misses(rank, below, ratio, ranks)))

    return bisect_right(range(1, n + 1), miss, key=miss_of)  # it grows with the rank


def _misses(rank: int, below: Floats, ratio: float, ranks: int) -> Floats:
    """Return the bound of the probability of a miss, given how many records are at or below the quantile."""
    return hazard_miss(_CELLS * np.power(ratio, np.maximum(rank - below, -float(ranks))))


def _interval(
    released: ReleasedNumbers,
    *,
    searches: Sequence[OrderSearch],
    cap: float | None,
    confidence: float,
    about: str,
) -> Interval:
    """Return the interval that follows from the outputs of the searches."""
    lower, upper = 0.0, options.limit_of(cap)  # the largest float is none: see `Interval`
    for value, search in zip(released.values, searches, strict=True):
        grid = search.grid(options.limit_of(cap))
        number = nearest_index(grid, value)
        if search.downward:
            upper = grid.point(min(number + _CELLS, grid.last))
        else:
            lower = grid.point(max(number - _CELLS, 0))
    missing = "a lower" if searches[0].downward else "an upper"
    note = "" if len(searches) == 2 else f"There are too few records for {missing} limit."
    # limits that cross miss anyway, and in order they still are an interval
    return Interval(min(lower, upper), max(lower, upper), confidence, about, note)
