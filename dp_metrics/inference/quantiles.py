"""An interval for a quantile of a loss among all people like the records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dp_metrics._random import RandomState
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.inference._settings import population_release, value_of
from dp_metrics.inference.order_search import OrderSearch, hazard_miss
from dp_metrics.inputs.arrays import loss_block
from dp_metrics.inputs.floats import Floats, limit_of, own_error_state
from dp_metrics.inputs.options import Relation, check_confidence, check_max_loss, check_share
from dp_metrics.inputs.readers import vector
from dp_metrics.inputs.shape import Records, Shape
from dp_metrics.mechanisms._hazard_law import largest_ratio
from dp_metrics.mechanisms.hazard import share_of_rank
from dp_metrics.release.interval import Interval
from dp_metrics.release.noisy_binomial import at_most, binomial_law
from dp_metrics.release.parts.order_statistic import OrderOf
from dp_metrics.release.plan import KnownParts, Plan
from dp_metrics.release.released import POPULATION_NOTE, ReleasedNumbers
from dp_metrics.release.terms import Terms

_NAME = "private_quantile_interval"
_CELLS = 320  # j: how far a limit lies beyond the output of its search
_COARSEST, _FINEST = 0.4, 2.0**-32  # resolutions

# a limit is useless where the records beyond the quantile, times epsilon of its search, are fewer
_NEEDED, _NEEDED_FROM_LARGEST_FLOAT = 40, 75
_LEAST_SHARE = Fraction(1, 10**15)  # smaller shares would make messages long


@own_error_state
def private_quantile_interval(  # noqa: PLR0913 - data, options, and settings of a release
    losses: ArrayLike,
    q: float,
    *,
    epsilon: float,
    max_loss: float | None = None,
    confidence: float = 0.95,
    sample_weight: None = None,
    groups: None = None,
    neighboring: str = "replace_one",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    spend_name: str | None = None,
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
    terms = Terms.of(
        epsilon=epsilon, neighboring=neighboring, accountant=accountant, random_state=random_state,
        spend_name=spend_name,
    )  # fmt: skip
    release = population_release(
        _NAME,
        terms,
        sample_weight=sample_weight,
        groups=groups,
        arguments={"losses": losses, "q": q, "max_loss": max_loss, "confidence": confidence},
    )

    def read() -> tuple[Plan, KnownParts, Any]:
        shape, records = Records.of((losses,), relation=Relation.REPLACE_ONE)
        plan = quantile_plan(shape, q=q, epsilon=terms.epsilon, max_loss=max_loss, confidence=confidence)
        return plan, plan.read(records), None

    interval: Interval = release.answer(read, value_of)
    return interval


def quantile_plan(
    shape: Shape, *, q: Any, epsilon: Fraction, max_loss: Any = None, confidence: Any = 0.95
) -> Plan:
    """Return the plan of an interval for a quantile, or raise if an argument is invalid."""
    share, sure = check_share(q, "q"), check_confidence(confidence)
    cap = check_max_loss(max_loss)
    limit = limit_of(cap)
    if not shape.n:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
    searches = rank_searches(shape.n, float(share), epsilon, miss=1 - sure, limit=limit)
    clipped = "" if cap is None else ", clipped to max_loss,"
    about = f"The {float(share):g} quantile of the loss{clipped} {POPULATION_NOTE}"
    return Plan(
        tuple(
            _RankOf(loss_block, partial(_fixed, rank=search.rank), limit, search.least_records(share, cap))
            for search in searches
        ),
        partial(vector, name="losses"),
        partial(_interval, searches=searches, cap=cap, confidence=sure, about=about),
        mechanisms=tuple(search.mechanism for search in searches),
    )


@dataclass(frozen=True)
class RankSearch:
    """A search for one limit: for which rank, counted from 1, and how."""

    rank: int
    mechanism: OrderSearch

    def least_records(self, q: Fraction, cap: float | None) -> int:
        """Return the public n * epsilon below which the limit is useless."""
        is_far = self.mechanism.downward and cap is None
        beyond = 1 - q if self.mechanism.downward else q
        return math.ceil((_NEEDED_FROM_LARGEST_FLOAT if is_far else _NEEDED) / max(beyond, _LEAST_SHARE))


@dataclass(frozen=True, eq=False)
class _RankOf(OrderOf):
    """Public: an order statistic from which a limit follows, as a part of a plan.

    Below `mostly_noise`, a public n * epsilon, the limit is useless: as measured at several q, n and epsilon.
    """

    mostly_noise: int  # type: ignore[misc]

    noise_note = "expect a lower limit near 0, or an upper limit near max_loss or the largest float."


def _fixed(n: int, *, rank: int) -> int:
    """Return a rank that was chosen for the public number of records already."""
    return rank


def rank_searches(
    n: int, q: float, epsilon: Fraction, *, miss: float, limit: float
) -> tuple[RankSearch, ...]:
    """Return the search for the lower limit and that for the upper one, without those that cannot be.

    Raises
    ------
    ValueError
        If neither can be.
    """
    both = _possible(n, q, epsilon / 2, miss / 2, limit)
    if len(both) == 2:
        return both
    # the other limit is trivial and never misses: this one may take all that there is
    alone = _possible(n, q, epsilon, miss, limit)
    if not alone:
        raise ValueError(
            f"{_NAME}: there are too few records for any limit at this q, epsilon and confidence."
        )
    sides = [search.mechanism.downward for search in both]
    return tuple([search for search in alone if search.mechanism.downward in sides] or alone)[:1]


def _possible(n: int, q: float, epsilon: Fraction, miss: float, limit: float) -> tuple[RankSearch, ...]:
    """Return the searches, at epsilon and miss each, that some rank allows."""
    eps2 = share_of_rank(epsilon, monotonic=True)
    records = n * float(eps2)
    resolution = _COARSEST if records * _COARSEST <= 2 else max(2 / records, _FINEST)
    found = []
    for share, downward in ((q, False), (1 - q, True)):
        mechanism = OrderSearch(resolution, downward)
        ranks = mechanism.count_ranks(epsilon, n=n, monotonic=True, output_range=(0.0, limit))
        rank = _largest_rank(n, share, largest_ratio(eps2), ranks, miss)
        if rank:
            found.append(RankSearch(n + 1 - rank if downward else rank, mechanism))
    return tuple(found)


def _largest_rank(n: int, q: float, ratio: float, ranks: int, miss: float) -> int:
    """Return the largest rank whose lower limit misses with at most this probability; 0 if there is none."""
    below, probabilities = binomial_law(n, q)
    low, high = 0, n + 1
    while high - low > 1:
        middle = (low + high) // 2
        possible = at_most(float(probabilities @ _misses(middle, below, ratio, ranks))) <= miss
        low, high = (middle, high) if possible else (low, middle)
    return low


def _misses(rank: int, below: Floats, ratio: float, ranks: int) -> Floats:
    """Return the bound of the probability of a miss, given how many records are at or below the quantile."""
    with np.errstate(over="ignore", under="ignore"):
        return hazard_miss(_CELLS * np.power(ratio, np.maximum(rank - below, -float(ranks))))


def _interval(
    released: ReleasedNumbers,
    *,
    searches: Sequence[RankSearch],
    cap: float | None,
    confidence: float,
    about: str,
) -> Interval:
    """Return the interval that follows from the outputs of the searches."""
    lower, upper = 0.0, math.inf if cap is None else cap
    for value, search in zip(released.values, searches, strict=True):
        grid = search.mechanism.grid(limit_of(cap))
        number = int(grid.index_at_least(np.array([value]))[0])
        if not search.mechanism.downward:
            lower = float(grid.points(np.array([max(number - _CELLS, 0)]))[0])
        elif number + _CELLS < grid.last:
            upper = float(grid.points(np.array([number + _CELLS]))[0])
    # limits that cross miss anyway, and in order they still are an interval
    return Interval(min(lower, upper), max(lower, upper), confidence, about, _missing(searches))


def _missing(searches: Sequence[RankSearch]) -> str:
    """Return what to say of a limit that so few records do not allow."""
    if len(searches) == 2:
        return ""
    return (
        f"There are too few records for {'a lower' if searches[0].mechanism.downward else 'an upper'} limit."
    )
