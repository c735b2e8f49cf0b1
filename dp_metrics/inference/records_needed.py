"""How many records an interval for all people needs: planning without data."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from dp_metrics.inputs.floats import own_error_state
from dp_metrics.inputs.options import Relation, as_real, check_confidence, check_neighboring, exact_epsilon
from dp_metrics.mechanisms import Geometric
from dp_metrics.metrics import row_of
from dp_metrics.metrics._shares import ShareOfRecords
from dp_metrics.metrics.labels.counts import Confusion
from dp_metrics.metrics.labels.label_limits import NO_RATIO, ratio_cells
from dp_metrics.release.noise import CountsNoise
from dp_metrics.release.noisy_binomial import noisy_binomial_limits
from dp_metrics.release.parts.count_table import CountTable
from dp_metrics.release.ratio_limits import NoisyRatio, noisy_ratio, ratio_limits

_MOST_RECORDS = 10**9


@own_error_state
def records_needed(
    metric: str | Callable[..., Any],
    *,
    width: float,
    epsilon: float,
    guess: float,
    positives: float | None = None,
    confidence: float = 0.95,
    neighboring: str = "replace_one",
) -> int:
    """Return how many records give an interval for all people of about this width.

    It reads no data: pass what you expect, or what is public.

    Parameters
    ----------
    metric : callable or str
        A metric with a `population_interval`: `private_recall_score`, or its name, such as "recall" or
        "accuracy"; with other options than the defaults as ``partial(private_recall_score, average=None,
        labels=labels)``, of which all labels have their limits at once.
    width : float
        Wanted distance of the two limits, between 0 and 1.
    epsilon : float
        What the release is to cost, > 0.
    guess : float
        The value that you expect, from 0 to 1. For an accuracy, or a ratio such as recall, a guess nearer to
        1/2 is the safer one.
    positives : float or None, default=None
        The share of the records that count for the metric, above 0 and at most 1: those with the positive
        label for a recall, those predicted to have it for a precision, those with either for an F1. Needed
        unless all count, as for an accuracy.
    confidence : float, default=0.95
        Of the interval.
    neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
        As in the call that releases the metric.

    Returns
    -------
    int
        The smallest number of records whose interval is as narrow, if the release has the expected counts.
        Noise moves the width of one release a little, in either direction.

    Raises
    ------
    ValueError, TypeError
        If the metric has no such interval, an argument is invalid, or 10^9 records are not enough.

    See Also
    --------
    epsilon_for_error : The epsilon that gives a metric the error that you accept, from public data.

    Notes
    -----
    This gives no privacy guarantee, and needs none: no record is read.

    Examples
    --------
    >>> from dp_metrics import records_needed
    >>> records_needed("accuracy", width=0.04, epsilon=1.0, guess=0.9) < 1000
    True
    >>> records_needed("recall", width=0.1, epsilon=1.0, guess=0.9, positives=0.3)
    596
    """
    (row, options), relation = row_of(metric), check_neighboring(neighboring)
    expected, asked = as_real(guess), as_real(width)
    if not 0 <= expected <= 1:
        raise ValueError("guess must be a number from 0 to 1.")
    if not 0 < asked < 1:
        raise ValueError("width must be a number between 0 and 1.")
    result = row.planned(row.form(n=None if relation.private_n else _MOST_RECORDS), options).postprocess
    miss, eps = (1 - check_confidence(confidence)) / 2, exact_epsilon(epsilon)
    share, limits = 1.0, _of_share(expected, eps, relation, miss)
    if isinstance(result, Confusion):
        if positives is None or not 0 < as_real(positives) <= 1:
            raise ValueError(
                f"{row.name} needs positives, a number above 0 and at most 1: the share of the records that "
                "count for it."
            )
        share, limits = as_real(positives), _of_ratio(row.name, result, expected, eps, relation, miss)
    elif not isinstance(result, ShareOfRecords):
        raise ValueError(NO_RATIO.format(row.name))
    elif positives is not None:
        raise ValueError(f"All records count for {row.name}: leave out positives.")

    def is_enough(n: int) -> bool:
        lower, upper = limits(n, round(n * share))
        return upper - lower <= asked

    few, many = 0, 1
    while not is_enough(many):
        few, many = many, 2 * many
        if many > _MOST_RECORDS:
            raise ValueError("10^9 records are not enough: ask for a wider interval, or spend more epsilon.")
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if is_enough(middle) else (middle, many)
    return many


def _of_share(
    guess: float, epsilon: Fraction, relation: Relation, miss: float
) -> Callable[[int, int], tuple[float, float]]:
    """Return the limits of a share of all records that is the guess, of their number."""

    def limits(n: int, counting: int) -> tuple[float, float]:
        count = round(counting * guess)
        if relation.private_n:
            ratio = NoisyRatio(count, counting - count, (1, 1), (epsilon, epsilon), None, None)
            return ratio_limits(ratio, miss, miss)
        return noisy_binomial_limits(count, n, float(epsilon), miss_low=miss, miss_high=miss)

    return limits


def _of_ratio(
    name: str, result: Confusion, guess: float, epsilon: Fraction, relation: Relation, miss: float
) -> Callable[[int, int], tuple[float, float]]:
    """Return the limits of a ratio that is the guess, of a number of records and of those that count."""
    cells = ratio_cells(result.layout, result.parts_of)
    if cells is None or result.of_ratios is not None:
        raise ValueError(NO_RATIO.format(name))
    layout, first, each = result.layout, cells[0], miss / len(cells)
    table = CountTable(np.zeros(layout.good.size, dtype=np.int64), 0, layout.cells, layout.is_partition)
    draw = table.prepare(Geometric(), epsilon, relation=relation)
    of_a, of_b = first.weights
    share = of_b * guess / (of_a * (1 - guess) + of_b * guess)  # of the records that count, in A

    def limits(n: int, counting: int) -> tuple[float, float]:
        counts = [0] * layout.good.size
        counts[first.a[0]] = round(counting * share)
        counts[first.b[0]] = counting - counts[first.a[0]]
        noise = CountsNoise(tuple(counts), draw.rates, draw.zero_sum)
        return ratio_limits(noisy_ratio(noise, first, None if relation.private_n else n), each, each)

    return limits
