"""Hazard selection: one search along a public grid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np

from dp_metrics.inputs.floats import own_error_state
from dp_metrics.inputs.options import Epsilon, Relation, exact_epsilon
from dp_metrics.mechanisms._base import (
    BoundsNoise,
    Draw,
    KnownNumber,
    Limits,
    Mechanism,
    NumberPart,
    ceil_ranks,
    positive_number,
)
from dp_metrics.mechanisms._grid import BoundedGrid, GeometricGrid, Grid, Runs
from dp_metrics.mechanisms._hazard_law import PEAK, TAIL, HazardLaw, largest_ratio
from dp_metrics.mechanisms._hazard_limits import hazard_limits
from dp_metrics.sensitivity.output_bounds import OutputBounds

_MANY_RECORDS = 10**9
_EVEN_FROM = 10  # parts of the most that one record adds, times n


@own_error_state
@dataclass(frozen=True, repr=False)
class Hazard(Mechanism):
    """Release the first grid point at which a cumulative hazard passes a random level.

    Grid point t_k has hazard 1 just above the metric, exp(-eps2 l) at l ranks below it and
    exp(eps2 (l - 1)) at l ranks above. With Lambda_k the sum of the hazards up to t_k and Z drawn from a
    fixed law H, the first t_k with Lambda_k >= Z is released.

    Parameters
    ----------
    resolution : float or None, default=None
        Public precision of the result relative to its size (in units of log1p(t / scale)). The default,
        1 / (n eps2 / 10 + 2.5), suits most data. A coarser one helps on very heavy tails with n * epsilon
        above 2,000, and makes the error many times larger on others: compare the two with `expected_error`
        on public data. It must not be computed from the private data.
    scale : float or None, default=None
        Public size, in the units of the metric, at which the grid turns from even to geometric. Given, the
        grid is geometric from there up to the limit. The default is the smaller of 1e-6 and 1e-9 of the
        public limit; and where one record can move the metric by at most a public B / n, the grid is even
        from B/10 on, because nothing finer helps there.

    Notes
    -----
    **Guarantee.** The release is epsilon-differentially private for neighbouring data sets that differ in
    one record, given public n, bounds and resolution: its value is always a point of a public grid.

    **Proof.** Put the grid on a line with cell k = (k-1, k] and hazard rate w_k there. Releasing the end
    of the cell in which Lambda reaches Z is post-processing of the crossing point, whose density is
    h(Lambda) w. For neighbours, s and s' differ by at most 1, so w'/w and Lambda'/Lambda lie within a
    factor e^eps2. The slope of log h in log z lies between -4 and 3 for a monotonic metric, where both
    ratios lie on one side of 1: the density ratio is within e^(+-4 eps2), and eps2 = eps/4. Otherwise the
    slope lies between -4 and 4, the density ratio within e^(+-5 eps2), and eps2 = eps/5. Not crossing at
    all has a log-slope between -3 and 0. The bound is attained.

    **Exactness.** This holds for the program as executed, not only over the real numbers. Epsilon is the
    decimal number that was typed, its share eps2 an exact fraction, and exp(-eps2) is rounded up to a float,
    never down. The output bounds are correctly rounded, the cells between them counted exactly, and the
    draw compares a uniform number of as many random bits as it takes with rational numbers.

    References
    ----------
    D. Durfee, "Instance-Specific Asymmetric Sensitivity in Differential Privacy", arXiv:2311.14681, defines
    the reflective inverse sensitivity s; the selection rule is this package's own.

    Examples
    --------
    >>> from dp_metrics import private_mae
    >>> private_mae([3.0, 1.0], [2.5, 1.0], epsilon=1.0, mechanism=Hazard(resolution=0.1)) >= 0
    True
    """

    resolution: float | None = None
    scale: float | None = None

    is_exact = True

    def __post_init__(self) -> None:
        for name in ("resolution", "scale"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, positive_number(getattr(self, name), name))

    @property
    def needs_count(self) -> bool:
        """True if the resolution is chosen from the number of records."""
        return self.resolution is None

    def asks_count(self, part: NumberPart) -> bool:
        """Return whether the resolution is chosen from the number of records, not from the class sizes."""
        return self.needs_count and not part.has_classes

    def prepare(self, known: KnownNumber, epsilon: Fraction, *, relation: Relation) -> Draw:
        """Return a draw; without a resolution one that follows the sizes of the classes, if there are."""
        if self.needs_count and known.part.has_classes:
            return known.by_class(self.scale, epsilon, relation=relation)
        return super().prepare(known, epsilon, relation=relation)

    def count_ranks(
        self, epsilon: Epsilon, *, n: int | None, monotonic: bool, output_range: tuple[float, float]
    ) -> int:
        """Return ceil(ln(1e4 / resolution) / eps2): what lies beyond has a negligible hazard."""
        if output_range[0] != 0.0:
            raise ValueError(
                "mechanism='hazard' needs a metric that is at least 0: shift it by its public lower limit."
            )
        return _count_ranks(self, exact_epsilon(epsilon), n, monotonic)

    def output_distribution(self, output_bounds: OutputBounds, epsilon: Epsilon) -> HazardLaw:
        """Return the exact law of `release`."""
        if output_bounds.output_range[0] != 0.0:
            raise ValueError("Hazard needs a metric that is at least 0: shift it by its public lower limit.")
        return hazard_law(self, output_bounds, exact_epsilon(epsilon))

    def noise_limits(self, noise: BoundsNoise, miss: float) -> Limits:
        """Return a lower limit; of a mean or a variance with a public limit both, with `miss` / 2 each."""
        # the limits come from the least favourable data, at the ranks of the release: fewer make it lower,
        # because all outputs below the last one share its hazard
        public = noise.facts
        wanted = self.count_ranks(
            noise.epsilon, n=public.n, monotonic=public.monotonic, output_range=public.output_range
        )
        # a subclass may have a law of its own
        law = partial(self.output_distribution, epsilon=noise.epsilon)
        return hazard_limits(law, noise.released, public, min(wanted, public.mean_ranks), miss)

    def _resolution(self, eps2: float, n: int | None) -> float:
        if self.resolution is not None:
            return self.resolution
        if n is None:
            raise ValueError("resolution must be given where n is private.")
        return 1.0 / (n * eps2 / 10 + 2.5)


@lru_cache(maxsize=256)
def _count_ranks(mechanism: Hazard, epsilon: Fraction, n: int | None, monotonic: bool) -> int:
    eps2 = float(share_of_rank(epsilon, monotonic))
    # a private n is not read: more ranks than needed cost time only
    width = max(mechanism._resolution(eps2, _MANY_RECORDS if n is None else n), 2.0**-32)
    with np.errstate(divide="ignore", over="ignore"):
        return ceil_ranks(float(np.float64(max(math.log(1e4 / width), 1.0)) / eps2), n)


def hazard_law(mechanism: Hazard, output_bounds: OutputBounds, epsilon: Fraction) -> HazardLaw:
    """Return the exact law of a release of a metric that is at least 0."""
    share = share_of_rank(epsilon, output_bounds.monotonic)
    limit = output_bounds.output_range[1]
    step = mechanism._resolution(float(share), output_bounds.n) / PEAK
    if mechanism.scale is None:
        grid = default_grid(step, limit, output_bounds.record_limit)
    else:
        grid = _grid(mechanism.scale, step, limit, None)
    return HazardLaw(
        grid, Runs.from_bounds(grid, output_bounds), largest_ratio(share), output_bounds.monotonic
    )


def default_grid(step: float, limit: float, record_limit: float | None = None) -> Grid:
    """Return the public grid where no scale was chosen."""
    return _grid(min(1e-6, 1e-9 * limit), step, limit, record_limit)


@lru_cache(maxsize=256)
def _grid(scale: float, step: float, limit: float, record_limit: float | None) -> Grid:
    """Return the public grid; its last output takes some searching."""
    plain = GeometricGrid(scale=scale, step=step, limit=limit)
    if record_limit is None or record_limit / _EVEN_FROM >= limit:
        return plain
    turn = record_limit / _EVEN_FROM
    return BoundedGrid(scale, step, turn, limit) if turn > plain.scale else plain


def share_of_rank(epsilon: Fraction, monotonic: bool) -> Fraction:
    """Return eps2 exactly; a float share would exceed epsilon for a quarter of all values."""
    return epsilon / (1 + TAIL if monotonic else 2 + TAIL)
