"""What metrics of labels are among all people: limits from noisy counts, which have been released."""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from dp_metrics.inputs.floats import Floats
from dp_metrics.metrics.labels.layouts import Counts, Layout, PartsOf, whole
from dp_metrics.release.noise import CountsNoise
from dp_metrics.release.ratio_limits import NoisyRatio, RatioCells, ratio_limits

NO_RATIO = (
    "{} has no interval for all people here, as it is made of several ratios: ask for each label "
    "(average=None), or for the recall or precision of one, alone."
)

_SHARES = 100  # steps of a search for the one extreme of a function
_FAR = 5.0  # standard deviations of their noise, by which counts are to exceed it

OfRates: TypeAlias = Callable[[float, float, float], float]


def ratio_cells(layout: Layout, parts_of: PartsOf | None) -> list[RatioCells] | None:
    """Return the counts of each ratio that a metric is made of; None if it is made otherwise."""
    if parts_of is None:
        return None
    cells: list[dict[int, dict[int, float]]] = [{}, {}]  # to A and to B, by ratio: what each count adds
    unit = np.zeros(layout.good.size)
    for cell in range(unit.size):
        unit[cell] = 1.0
        for side, part in zip(cells, parts_of(layout.read(unit)), strict=True):
            for place in np.flatnonzero(part).tolist():
                side.setdefault(place, {})[cell] = float(part[place])
        unit[cell] = 0.0
    found = []
    for place in sorted(cells[0]):
        of_a, of_b = cells[0][place], cells[1].get(place, {})
        weights = [{*of.values()} for of in (of_a, of_b)]
        is_once = layout.is_partition or _is_once(layout, [*of_a, *of_b])
        if not is_once or any(len(one) != 1 for one in weights) or of_a.keys() & of_b.keys():
            return None
        found.append(RatioCells([*of_a], [*of_b], (weights[0].pop(), weights[1].pop())))
    return found


def _is_once(layout: Layout, cells: Sequence[int]) -> bool:
    """Return whether no record is in two of these counts: of a label, or of one kind of error of all."""
    labels = int(np.count_nonzero(layout.good > 0)) // layout.groups
    cells = [cell % (layout.good.size // layout.groups) for cell in cells]  # no record is in two groups
    kinds = {cell // labels for cell in cells if layout.good[cell] < 0}
    is_either = layout.read(np.ones(layout.good.size)).either is not None
    return len({cell % labels for cell in cells}) == 1 or (len(kinds) == 1 and not is_either)


def rates_of_two_labels(counts: Counts) -> tuple[Floats, Floats]:
    """Return the A and the B of the recall of the second label, of that of the first, and of its share."""
    assert counts.matrix is not None
    (right, wrong), (missed, found) = counts.matrix
    return np.array([found, right, missed + found]), np.array([missed, wrong, right + wrong])


def of_two_labels(formula: Callable[[Counts], Any]) -> OfRates:
    """Return a metric of the matrix of two labels as a function of these three shares."""

    def of_rates(recall: float, of_others: float, share: float) -> float:
        others = 1.0 - share
        cells = [others * of_others, others * (1 - of_others), share * (1 - recall), share * recall]
        return float(formula(whole(2).read(np.array(cells))))

    return of_rates


def agreement_limits(of_rates: OfRates, limits: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return limits of MCC or kappa, from limits of both recalls and of the share of a label, that all hold.

    Notes
    -----
    With r and s the recalls, J = r + s - 1, p the share of the label, o its odds and q the share predicted to
    have it, MCC is J times the root of p (1 - p) / (q (1 - q)), whose inverse is r (1-r) o + rs + (1-r)(1-s)
    + s (1-s) / o; and kappa is 2 J / (r + s + (1-s) / o + (1-r) o).
    Both inverses are convex in o, so that at given recalls either has one extreme between the limits of o at
    most: a maximum where J > 0, and a minimum where J < 0. Both rise with r and with s.
    """
    ends = []
    for place, best in ((0, min), (1, max)):
        recall, of_others, shares = limits[0][place], limits[1][place], limits[2]
        sign = 1.0 if recall + of_others >= 1 else -1.0
        low, high = shares
        for _ in range(_SHARES):
            one, two = low + (high - low) / 3, high - (high - low) / 3
            rises = sign * of_rates(recall, of_others, one) < sign * of_rates(recall, of_others, two)
            low, high = (one, high) if rises else (low, two)
        ends.append(best(of_rates(recall, of_others, share) for share in (*shares, low, high)))
    return ends[0], ends[1]


def combined(
    function: Callable[..., Any], ratios: Sequence[NoisyRatio], miss: float, *, is_mean: bool
) -> tuple[float, float] | None:
    """Return approximate limits of a function of metrics A / (A + B) whose estimates are independent.

    None where some A + B does not exceed its noise by far: there limits of means over ten labels covered
    55 % instead of 95 %.

    Limits of a share end at 0 and 1. In a mean of shares, as noisy as they are, those beyond balance those
    within: so each limit of a mean's share is at least as far away as noise alone moves the share. With
    limits that end, means over ten labels near 1 covered 60 %.
    """
    from scipy.special import ndtri  # scikit-learn depends on scipy; slow to import

    from dp_metrics.release.normal_limits import combined_limits  # slow to import

    if any(ratio.a + ratio.b < _FAR * ratio.deviation for ratio in ratios):
        return None
    each = [ratio_limits(ratio, miss, miss) for ratio in ratios]
    estimates = [ratio.estimate for ratio in ratios]
    if is_mean:
        far = [-float(ndtri(miss)) * ratio.deviation_of_estimate for ratio in ratios]
        each = [
            (min(low, x - d), max(high, x + d))
            for (low, high), x, d in zip(each, estimates, far, strict=True)
        ]
    lower, upper = combined_limits(np.vectorize(function), estimates, each)
    return (min(max(lower, 0.0), 1.0), min(max(upper, 0.0), 1.0)) if is_mean else (lower, upper)


def linear_limits(
    formula: Callable[[Counts], Any],
    layout: Layout,
    noise: CountsNoise,
    n: int | None,
    miss: float,
    lowest: float,
) -> tuple[float, float] | None:
    """Return approximate limits of a smooth metric from `lowest` to 1, taken for linear in the counts.

    Returns
    -------
    (float, float) or None
        None where some count of right records or of errors does not exceed its noise by far: there limits
        made so covered 73 to 90 % instead of 95 %.

    Notes
    -----
    On the scale of the inverse hyperbolic tangent. A record that is in several counts, each of weight 1/2,
    moves the metric by the sum of their derivatives, whose square is at most twice the sum of their squares.
    """
    from scipy.special import ndtri  # scikit-learn depends on scipy; slow to import

    weights = np.repeat([float(weight) for _, weight in layout.cells], [size for size, _ in layout.cells])
    unit = np.eye(1, layout.good.size)[0]
    cells, told = (
        [kind for kind in (of.right, of.missed, of.wrong, of.either) if kind is not None]
        for of in (
            layout.read(np.ones(layout.good.size)),
            layout.read(np.array(noise.noisy, dtype=np.float64)),
        )
    )
    together = max(float(kind.max()) for kind in cells)  # so many noisy counts are added up at most
    added = math.sqrt(together * noise.covariance(unit, unit))
    if min(float(kind.min()) for kind in told) < _FAR * added:
        return None
    x = layout.plausible(noise.noisy, n)

    def on_scale(counts: Floats) -> float:
        value = (float(formula(layout.read(counts).agreeing())) - lowest) / (1 - lowest)
        return math.atanh(min(max(2 * value - 1, -1 + 1e-12), 1 - 1e-12))

    slopes = np.empty(x.size)
    for cell in range(x.size):
        up, down = x.copy(), x.copy()
        up[cell], down[cell] = x[cell] + 0.5, max(x[cell] - 0.5, 0.0)
        slopes[cell] = (on_scale(up) - on_scale(down)) / (up[cell] - down[cell])
    variance = float(x @ (slopes**2 / weights)) + max(noise.covariance(slopes, slopes), 0.0)
    half = -float(ndtri(miss)) * math.sqrt(variance)
    ends = (math.tanh(on_scale(x) + away) for away in (-half, half))
    lower, upper = (lowest + (1 - lowest) * (1 + end) / 2 for end in ends)
    return lower, upper
