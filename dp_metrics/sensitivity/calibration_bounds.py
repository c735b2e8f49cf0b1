"""The expected calibration error: its exact sum, and how far a record moves it.

In each public bin, labels (0 or 1) minus scores are added up; n times the error is the sum T of the sizes of
these sums. A record lies in one bin, whose sum it moves by at most 1: T moves by at most 1 if it is added or
removed, and by at most 2 if it is replaced. Both are attained (tests/sensitivity/test_calibration.py).
"""

from collections.abc import Iterable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.floats import Floats
from dp_metrics.sensitivity.exact import UNIT_BITS, exact_sum, rounded_quotient, rounded_quotients
from dp_metrics.sensitivity.noisy_sums import FINENESS, Sums
from dp_metrics.sensitivity.output_bounds import BoundsFacts, OutputBounds

_ONE = 1 << UNIT_BITS


def calibration_excess(
    blocks: Iterable[tuple[NDArray[np.bool_], Floats]], edges: Floats
) -> tuple[tuple[int, ...], int]:
    """Return the sum of each bin in units of 2**-1074, and the number of records.

    These sums of pieces of the records add up; T, the sum of their sizes, does not.

    Parameters
    ----------
    blocks : iterable of (ndarray of bool, ndarray of float64)
        Whether records are positive, and their scores in [0, 1].
    edges : ndarray
        Public edges between the bins: a bin holds the scores above its lower edge up to its upper one.
    """
    excess, n = [0] * (edges.size + 1), 0
    for is_positive, scores in blocks:
        bins = np.searchsorted(edges, scores)
        order = np.argsort(bins.astype(np.uint16), kind="stable")
        ends = np.cumsum(np.bincount(bins, minlength=len(excess)))
        positives = np.bincount(bins, is_positive, minlength=len(excess)).astype(np.int64).tolist()
        for number, part in enumerate(np.split(scores[order], ends[:-1])):
            excess[number] += (positives[number] << UNIT_BITS) - exact_sum(part)
        n += scores.size
    return tuple(excess), n


def calibration_facts(n: int) -> BoundsFacts:
    """Return what is public of the output bounds of the error of n records that are replaced."""
    return BoundsFacts(
        output_range=(0.0, 1.0), monotonic=True, n=n, sensitivity=min(2.0 / n, 1.0), record_limit=2.0
    )


def calibration_bounds(total: int, n: int, ranks: int) -> OutputBounds:
    """Return the output bounds of T / n when records are replaced: (T -/+ 2 l) / n.

    Between neighbours T moves by at most 2, so these interleave; rounded once each, as floats too. All of
    them grow with T: the metric is monotonic.
    """
    several, scale = range(2, 2 * min(ranks, n) + 1, 2), n << UNIT_BITS
    lower = rounded_quotients((max(total - rise * _ONE, 0) for rise in several), scale)
    upper = rounded_quotients((min(total + rise * _ONE, scale) for rise in several), scale)
    return calibration_facts(n).bounds(rounded_quotient(total, scale), lower, upper)


def calibration_bounds_private_n(total: int, n: int, ranks: int) -> OutputBounds:
    """Return the output bounds of T / n, 0 for no record, when records are added or removed.

    L^l = (T - l) / (n + l) and U^l = (T + l) / (n - l) within [0, 1], and 1 from l = n on: with one record
    more or less, T and n move by at most 1 each, so that one more rank makes up for it.
    """
    several = range(1, ranks + 1)
    return OutputBounds(
        value=rounded_quotient(total, n << UNIT_BITS) if n else 0.0,
        lower=rounded_quotients(
            (max(total - rank * _ONE, 0) for rank in several), ((n + rank) << UNIT_BITS for rank in several)
        ),
        upper=np.array(
            [
                min(rounded_quotient(total + rank * _ONE, (n - rank) << UNIT_BITS), 1.0) if rank < n else 1.0
                for rank in several
            ]
        ),
        output_range=(0.0, 1.0),
        monotonic=False,
        n=None,
        record_limit=2.0,
    )


def calibration_sums(total: int, n: int) -> Sums:
    """Return n + T and n - T, from which T / n follows where n is private.

    If a record is added T changes by d with abs(d) <= 1, so one of the two grows by 1 + d and the other by
    1 - d: by 2 together, whatever the record. Rounding T to the lattice commutes with shifts by whole
    numbers, so this holds for steps too.
    """
    steps = (2 * FINENESS * total + _ONE) // (2 * _ONE)
    value = rounded_quotient(total, n << UNIT_BITS) if n else 0.0
    whole = n * FINENESS
    fineness = 2 * FINENESS
    combine = partial(_share, least=float(fineness))
    return Sums((whole + steps, whole - steps), fineness, combine, 1.0, value, (True, False), fineness)


def _share(above: Floats, below: Floats, *, least: float) -> Floats:
    # one record at least: the error of none is 0
    share: Floats = np.clip((above - below) / np.maximum(above + below, least), 0.0, 1.0)
    return share
