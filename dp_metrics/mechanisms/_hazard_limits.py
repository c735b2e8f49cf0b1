"""Limits of a metric, given a hazard release of it and public facts."""

import math
from collections.abc import Callable

import numpy as np

from dp_metrics.inputs.floats import MAX_FLOAT, Floats
from dp_metrics.mechanisms._base import PUBLIC_END, TOO_FEW, UNBOUNDED, Limits
from dp_metrics.mechanisms._grid import nearest_index
from dp_metrics.mechanisms._hazard_law import HazardLaw
from dp_metrics.sensitivity.output_bounds import BoundsFacts, OutputBounds

_MOST_RANKS = 20_000  # more ranks take the simple limit, because the sharp one would take long
_WIDTH = 1e-11  # the bracket of a limit is this narrow, and its safe end is taken

Law = Callable[[OutputBounds], HazardLaw]


def hazard_limits(law: Law, released: float, public: BoundsFacts, ranks: int, miss: float) -> Limits:
    """Return limits of the metric, given a release and public facts.

    Parameters
    ----------
    law : callable
        The law of the release for given output bounds.
    released : float
        What was released.
    public : BoundsFacts
        Public facts.
    ranks : int
        How many ranks the release used, if the metric moves as a mean does (`OutputBounds`); else 0.
    miss : float
        Probability, over the noise, with which a limit may be wrong.

    Notes
    -----
    **Lower limit.** Let k be the first output that is not below the metric f. Each output from there on has a
    hazard of at least 1, so Lambda is at least j after j of them, and a release lies j or more outputs above
    k with probability 1 - H(j) at most. So f exceeds the output that lies j below the released one, with
    confidence H(j): for any metric, data and number of ranks.

    **Of what moves as a mean**, both limits invert the law of the least favourable data. L^l is at most
    f (1 - l/n), so no f is overshot more likely than that of n equal losses without a cap. With a cap, of
    which one record's share is s, L^l is at least f - l s and U^l at least f + l (B - f)/n: no f is undershot
    more likely than one with these bounds, but for which a lower f would be. Both laws are monotone in f.

    **If no mean is possible**, because so large or so small a release is unlikely whatever the mean is, the
    release is one of those that the limits may miss. Then the limits are the ends of the public range, which
    are true as well, and not two equal ends of it: a largest float reads as if something were known.

    **Without a cap** there is no upper limit: with one record at infinity the metric is infinite, so a limit
    with confidence 1 - a is infinite with probability 1 - a exp(epsilon) at least.
    """
    hypothetical = law(public.widest())
    grid = hypothetical.grid
    place, end = nearest_index(grid, released), public.output_range[1]
    is_sharp = 0 < ranks <= _MOST_RANKS
    has_upper = is_sharp and end < MAX_FLOAT
    each = miss / 2 if has_upper else miss
    below = place - cells_above(hypothetical, each)
    lower = float(grid.points(np.array([below]))[0]) if below > grid.first else public.output_range[0]
    if not is_sharp:
        return _one_sided(lower, end)
    bounds = _LeastFavourable(law, public, ranks)
    lower, _ = bounds.largest(lambda f: bounds.overshooting(f, place - 1) >= 1 - each, lower)
    if lower >= end:
        return _one_sided(public.output_range[0], end)
    if not has_upper:
        return _one_sided(lower, end)
    _, upper = bounds.largest(lambda f: bounds.undershooting(f, place) > each, 0.0)
    if lower >= upper:
        return Limits(*public.output_range)
    return Limits(lower, upper, TOO_FEW if upper >= end else "")


def _one_sided(lower: float, end: float) -> Limits:
    return Limits(lower, math.inf, UNBOUNDED) if end >= MAX_FLOAT else Limits(lower, end, PUBLIC_END)


def cells_above(law: HazardLaw, miss: float) -> int:
    """Return the smallest j with 1 - H(j) <= miss."""
    return math.ceil(float(law.level(np.array([1.0 - miss]), np.array([miss]))[0]))


def records_above(law: HazardLaw, k: int, ranks: int, level: float, miss: float) -> float:
    """Return how many records exceed a level that was drawn for the k-th largest of them, at most.

    Parameters
    ----------
    law : HazardLaw
        A law of the first stage, whatever the data are.
    k, ranks : int
        Of the release: the statistic is y_k, and its l-th lower bound y_(k+l).
    level : float
        What was drawn, or more.
    miss : float
        Probability, over the draw, with which the number may be wrong.

    Notes
    -----
    **Proof.** If k + l records exceed the level, then y_(k+l) does, and the outputs up to the level have
    hazards of q^(l+1) at most. There are c of them, so one of them is drawn with probability H(c q^(l+1)) at
    most. Choose the least l for which that is at most the miss; l grows with c. So the levels of which the
    number would be wrong are the lowest ones, and the largest of these bounds the probability of all.
    """
    cells = int(law.grid.index_above(np.array([level]))[0]) - law.grid.first
    if cells > law.grid.last:
        return math.inf
    most = float(law.level(np.array([miss]), np.array([1.0 - miss]))[0])
    rank = max(math.ceil(math.log(cells / most) / max(-math.log(law.q), math.ulp(1.0))) - 1, 0)
    return k + rank - 1 if rank <= ranks else math.inf


class _LeastFavourable:
    """Laws of a mean f on the data for which its limits are worst.

    Parameters
    ----------
    law, public, ranks
        As in `hazard_limits`.
    """

    def __init__(self, law: Law, public: BoundsFacts, ranks: int) -> None:
        self._law, self._public = law, public
        self._rank = np.arange(1.0, ranks + 1.0)
        self._n = math.inf if public.n is None else public.n
        self._end = public.output_range[1]
        self._share = MAX_FLOAT if public.sensitivity is None else public.sensitivity

    def overshooting(self, f: float, place: int) -> float:
        """Return P(number of the release <= place) of n equal losses, or a lower bound."""
        lower = f * np.maximum(1.0 - self._rank / self._n, 0.0)
        return self._reached(f, lower, self._shares(f), place)

    def undershooting(self, f: float, place: int) -> float:
        """Return P(number of the release <= place) of few losses at the cap, or an upper bound."""
        upper = f + self._rank * ((self._end - f) / self._n)
        return self._reached(f, f - self._rank * self._share, upper, place)

    def _shares(self, f: float) -> Floats:
        """Return f with 1, 2, ... shares of a record added."""
        with np.errstate(over="ignore"):
            return f + self._rank * self._share

    def _reached(self, f: float, lower: Floats, upper: Floats, place: int) -> float:
        bounds = self._public.bounds(f, np.clip(lower, 0.0, f), np.clip(upper, f, self._end))
        return float(self._law(bounds).index_cdf(np.array([place]))[0])

    def largest(self, holds: Callable[[float], bool], start: float) -> tuple[float, float]:
        """Return a bracket of the largest mean, at least `start`, for which something holds."""
        low, high = start, self._end
        if holds(high):
            return high, high
        least = 1e-9 * self._end if self._end < MAX_FLOAT else 1e-300  # far smaller than any output but 0
        step = max(start, least)
        while low + step < high and holds(low + step):
            low, step = low + step, 2 * step
        high = min(low + step, high)
        while high - low > _WIDTH * max(high, least) and low < (middle := low + (high - low) / 2) < high:
            low, high = (middle, high) if holds(middle) else (low, middle)
        return low, high
