"""What metrics of groups, and the gap between them, are among all people: from noisy counts of all groups."""

from collections.abc import Hashable, Mapping
from typing import Any

from dp_metrics.release.interval import Interval
from dp_metrics.release.noise import in_words
from dp_metrics.release.ratio_limits import NoisyRatio, ratio_limits
from dp_metrics.release.released import POPULATION_NOTE

__all__ = ["intervals_of_groups", "range_interval"]


def intervals_of_groups(
    ratios: Mapping[Hashable, NoisyRatio], values: Mapping[Hashable, Any], sure: float
) -> dict[Hashable, Interval]:
    """Return the interval of each group: each for itself has the confidence."""
    miss, found = (1 - sure) / 2, {}
    for group, ratio in ratios.items():
        rests_on = in_words(max(ratio.a + ratio.b, 0))
        found[group] = Interval(
            *ratio_limits(ratio, miss, miss),
            sure,
            f"The metric of the group {group!r} {POPULATION_NOTE}",
            f"It rests on about {rests_on} records, by the noisy counts.",
            values[group],
        )
    return found


def range_interval(ratios: Mapping[Hashable, NoisyRatio], of: str, estimate: float, sure: float) -> Interval:
    """Return the interval of the largest value of a group less the smallest, or of smallest / largest.

    Notes
    -----
    Sure for any number K of groups. How far apart the groups are at most follows from two limits only, the
    upper one of the group that is the largest in truth and the lower one of the smallest: each limit misses
    with a quarter of the probability, whichever these groups are. How far apart they are at least follows
    from all 2 K limits, of which each has its part of one half.
    """
    miss = 1 - sure
    near, wide = (
        list(zip(*(ratio_limits(ratio, each, each) for ratio in ratios.values()), strict=True))
        for each in (miss / 4, miss / (4 * len(ratios)))
    )
    # the largest value is at least the largest lower limit, and the smallest at most the smallest upper one
    least, most = (max(wide[0]), min(wide[1])), (max(near[1]), min(near[0]))
    if of == "difference":
        lower, upper = max(least[0] - least[1], 0.0), most[0] - most[1]
        about = "The largest difference between the groups"
    else:
        lower, upper = most[1] / most[0], min(least[1] / least[0], 1.0) if least[0] > 0 else 1.0
        about = "The smallest ratio of two groups"
    return Interval(lower, upper, sure, f"{about} {POPULATION_NOTE}", estimate=estimate)
