"""How many ranks a summary keeps for one release, whose epsilon is known before any record is read."""

from fractions import Fraction

from dp_metrics.inputs.floats import MAX_FLOAT, limit_of
from dp_metrics.mechanisms import Geometric, Mechanism
from dp_metrics.release.queries.mean_loss import MeanLoss
from dp_metrics.release.queries.query import BoundsQuery, Query
from dp_metrics.release.queries.variance import MOST_VARIANCE_RANKS, Variance
from dp_metrics.release.release import Plan, Release
from dp_metrics.streaming.summaries import CAPACITY

__all__ = ["capacity_for"]

_MANY_RECORDS = 1 << 40


def capacity_for(release: Release, plan: Plan) -> int:
    """Return how many ranks a summary keeps for a release, however many records there will be.

    Parameters
    ----------
    release : Release
        The checked public settings.
    plan : Plan
        What is released, planned of no records.

    Returns
    -------
    int
        As many ranks as any one number of the release can use, and at least `CAPACITY`.

    Raises
    ------
    ValueError
        If the release is bound to be refused: reading the records would be in vain.
    """
    rules, epsilons, _ = release.divided(plan)
    used = [
        _ranks(query, rule, epsilon, private_n=release.private_n)
        for query, rule, epsilon in zip(plan.queries, rules, epsilons, strict=True)
    ]
    return max(CAPACITY, *used)


def _ranks(query: Query, mechanism: Mechanism, epsilon: Fraction, *, private_n: bool) -> int:
    """Return how many ranks the release of one number can use; raise if it is bound to be refused."""
    if not isinstance(query, BoundsQuery):
        return 0  # such a query has noise of its own
    if private_n and isinstance(mechanism, Geometric):
        query.sums()  # `sums` raises where the query has none
        return 0
    n = None if private_n else _MANY_RECORDS
    is_variance = isinstance(query, Variance)
    ranks = mechanism.count_ranks(
        epsilon, n=n, monotonic=not (private_n or is_variance), output_range=(0.0, _limit(query))
    )
    if is_variance:  # a summary knows its extremes only if it holds all values, and then it knows enough
        return min(ranks, MOST_VARIANCE_RANKS)
    return max(ranks, mechanism.count_extremes(epsilon, n=n, are_widths=False))


def _limit(query: BoundsQuery) -> float:
    """Return a public limit of what a query releases, or the largest float if there is none."""
    if isinstance(query, MeanLoss):
        return limit_of(query.record_loss.cap)
    if not isinstance(query, Variance):
        return 1.0
    if query.bounds is None:
        return MAX_FLOAT
    width = query.bounds[1] - query.bounds[0]
    return min(width * width, MAX_FLOAT)
