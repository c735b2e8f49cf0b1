"""What is compared: one table of mechanisms, with how each is made, called and drawn; and the clipped mean.

The clipped mean is what a practitioner would otherwise write, the plainest yardstick. It is a function and
not a mechanism, because it needs the records and not only their output bounds.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dp_metrics._random import RandomState, check_entropy
from dp_metrics.inputs.floats import Floats, limit_of
from dp_metrics.inputs.options import check_epsilon
from dp_metrics.mechanisms import AboveThreshold, Laplace, Mechanism, get_mechanism
from dp_metrics.sensitivity.aggregates import OrderAggregate
from dp_metrics.sensitivity.output_bounds import OutputBounds, order_statistic_bounds


@dataclass(frozen=True)
class Rival:
    """A mechanism in one setting: what a figure compares, and how it is drawn."""

    mechanism: str  # name in tables and on the command line
    title: str  # the same in plain words
    # The argument is the paper's unit of the metric. None: the clipped mean, a function of the records.
    make: Callable[[float], Mechanism] | None
    colour: str
    marker: str
    line: str = "-"
    face: str = ""  # inside of a marker; empty: of the same colour
    needs_bounds: bool = False  # true: it only serves a metric with a public range
    setting: str = ""  # tells apart settings of one mechanism
    bounded: bool = True  # false: it is not told the public range

    def told(self, *, bounded: bool) -> "Rival":
        """Return this rival in one of two settings: told the public bounds, or not."""
        if bounded:
            return replace(self, setting="bounded", title=f"{self.title}, bounded")
        title = f"{self.title}, unbounded"
        return replace(self, setting="unbounded", title=title, bounded=False, line="--", face="white")


def _named(name: str, unit: float) -> Mechanism:
    return get_mechanism(name)


def _paper_with(beta: float, unit: float) -> Mechanism:
    return replace(AboveThreshold.paper(unit), beta=beta)


# Okabe and Ito's palette and a grey, safe for the colour-blind. Dotted lines let what is almost or quite the
# same below them show through: adaptive below hazard, inverse_sensitivity below piecewise_laplace.
RIVALS: dict[str, Rival] = {
    rival.mechanism: rival
    for rival in (
        Rival("adaptive", "adaptive (default)", partial(_named, "adaptive"), "#D55E00", "o"),
        Rival("hazard", "hazard", partial(_named, "hazard"), "#000000", ".", line=":"),
        Rival(
            "above_threshold", "AboveThreshold (our settings)", partial(_named, "above_threshold"),
            "#0072B2", "s",
        ),
        Rival("paper", "AboveThreshold (paper preset)", AboveThreshold.paper, "#56B4E9", "D"),
        Rival(
            "inverse_sensitivity", "inverse sensitivity", partial(_named, "inverse_sensitivity"),
            "#009E73", "^", needs_bounds=True,
        ),
        Rival(
            "piecewise_laplace", "piecewise Laplace", partial(_named, "piecewise_laplace"),
            "#CC79A7", "v", line=":", needs_bounds=True,
        ),
        Rival("laplace", "Laplace", partial(_named, "laplace"), "#E69F00", "X", needs_bounds=True),
        Rival("clipped_mean", "clipped mean", None, "#7A7A7A", "P", needs_bounds=True),
    )
}  # fmt: skip
"""Everything that is compared, by name, in the order of tables and plots."""

MECHANISM_RIVALS = tuple(rival for rival in RIVALS.values() if rival.make is not None)

BETAS = tuple(
    replace(
        RIVALS["paper"], setting=f"beta={beta:g}", title=f"beta = {beta:g}", make=partial(_paper_with, beta),
        colour=colour, marker=marker,
    )
    for beta, colour, marker in (
        (1.001, "#08306B", "o"), (1.0025, "#08519C", "s"), (1.005, "#2171B5", "D"),
        (1.01, "#56B4E9", "^"), (1.02, "#9ECAE1", "v"), (1.05, "#C2B5E0", "X"),
    )
)  # fmt: skip
"""The paper preset with other ratios of consecutive candidates, in shades of its blue."""


def private_threshold(values: Floats, *, epsilon: float, limit: float, rng: RandomState = None) -> float:
    """Release a high quantile of non-negative values, above which a later release clips them.

    It is epsilon-differentially private when one record is replaced. About 1/(3 epsilon) records lie above;
    at three times this epsilon for the mean, clipping one more record costs as much bias as it saves noise.
    """
    epsilon = check_epsilon(epsilon)
    mechanism = AboveThreshold()
    n = len(values)
    ranks = mechanism.count_ranks(epsilon, n=n, monotonic=True, output_range=(0.0, limit))
    k = max(n - math.ceil(1 / (3 * epsilon)), n // 2 + 1)  # counted from 1, from the bottom
    clipped = np.clip(values, 0.0, limit)
    seen = order_statistic_bounds(OrderAggregate.from_data(clipped, k, capacity=ranks, limit=limit))
    return mechanism.release(seen, epsilon, rng)


def clipped_mean(
    values: Floats,
    *,
    epsilon: float,
    limit: float | None = None,
    variance: bool = False,
    rng: RandomState = None,
) -> float:
    """Release a mean or variance of non-negative numbers: clip at a private quantile, add Laplace noise.

    It is epsilon-differentially private when one record is replaced; a comparator in floats. `limit` is the
    public largest value. A quarter of epsilon pays for the quantile T, the rest for the result; the
    sensitivity of a mean is T / n, that of a variance T^2 (n-1) / n^2.

    Examples
    --------
    >>> import numpy as np
    >>> clipped_mean(np.ones(1000), epsilon=1.0) >= 0
    True
    """
    epsilon, n, entropy = check_epsilon(epsilon), len(values), check_entropy(rng)
    top = private_threshold(values, epsilon=epsilon / 4, limit=limit_of(limit), rng=entropy)
    kept = np.clip(values, 0.0, top)
    if variance:
        value, largest, sensitivity = float(np.var(kept)), top * top / 4, top * top * (n - 1) / n**2
    else:
        value, largest, sensitivity = float(np.mean(kept)), top, top / n
    bounds = OutputBounds(
        value=min(value, largest),
        lower=np.zeros(1),
        upper=np.full(1, largest),
        output_range=(0.0, largest),
        monotonic=not variance,
        n=n,
        sensitivity=sensitivity,
    )
    return Laplace().release(bounds, 3 * epsilon / 4, entropy)
