"""Output bounds of numbers about scores: a calibration error, and the ranking loss, which is 1 - AUC.

Of a calibration error: in each public bin, labels (0 or 1) minus scores are added up; n times the error is
the sum T of the sizes of these sums. A record lies in one bin, whose sum it moves by at most 1: T moves by at
most 1 if it is added or removed, and by at most 2 if it is replaced. Both are attained
(tests/sensitivity/test_calibration.py).

The ranking loss is the share of the pairs of a positive and a negative record in which the negative one has
the higher score, ties counted half; 1/2 if there is no pair. Scores are compared, never computed with.
Everything else is whole numbers: twice the loss of the pairs that are left, over twice their number.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.arrays import in_blocks
from dp_metrics.inputs.options import Array, Floats
from dp_metrics.sensitivity.exact import UNIT_BITS, exact_sum, rounded_quotient, rounded_quotients
from dp_metrics.sensitivity.output_bounds import FINENESS, BoundsFacts, OutputBounds, Sums, padded

_ONE = 1 << UNIT_BITS
_OF_RECORD = 2 * FINENESS  # steps that it adds to both sums together


def calibration_excess(blocks: Iterable[tuple[Any, ...]], edges: Floats) -> Array:
    """Return the sum of labels minus scores of each bin, a whole number of units of 2**-1074.

    These sums of pieces of the records add up; T, the sum of their sizes, does not.

    Parameters
    ----------
    blocks : iterable of (ndarray of bool, ndarray of float64)
        Whether records are positive, and their scores in [0, 1]; what stands behind is not looked at.
    edges : ndarray
        Public edges between the bins: a bin holds the scores above its lower edge up to its upper one.
    """
    excess = [0] * (edges.size + 1)
    for is_positive, scores, *_ in blocks:
        bins = np.searchsorted(edges, scores)
        order = np.argsort(bins.astype(np.uint16), kind="stable")
        ends = np.cumsum(np.bincount(bins, minlength=len(excess)))
        positives = np.bincount(bins, is_positive, minlength=len(excess)).astype(np.int64).tolist()
        for number, part in enumerate(np.split(scores[order], ends[:-1])):
            excess[number] += (positives[number] << UNIT_BITS) - exact_sum(part)
    return np.array(excess, dtype=object)


def calibration_facts(n: int | None) -> BoundsFacts:
    """Return what is public of the output bounds of an error, of a public number of records or not."""
    sensitivity = None if n is None else min(2.0 / n, 1.0)
    return BoundsFacts(
        output_range=(0.0, 1.0), monotonic=n is not None, n=n, sensitivity=sensitivity, record_limit=2.0
    )


def calibration_bounds(total: int, n: int, ranks: int, private_n: bool) -> OutputBounds:
    """Return the output bounds of T / n, which is 0 for no record.

    When records are replaced they are (T -/+ 2 l) / n within [0, 1]: between neighbours T moves by at most 2,
    so that these interleave; rounded once each, as floats too. All of them grow with T: the metric is
    monotonic.

    When records are added or removed L^l = (T - l) / (n + l) and U^l = (T + l) / (n - l) within [0, 1], and 1
    from l = n on: with one record more or less, T and n move by at most 1 each, so that one more rank makes
    up for it.
    """
    moved, more = (1, 1) if private_n else (2, 0)
    several = range(1, (ranks if private_n else min(ranks, n)) + 1)
    left = range(1, min(ranks + 1, n)) if private_n else several
    lower = rounded_quotients(
        (max(total - moved * rank * _ONE, 0) for rank in several),
        ((n + more * rank) << UNIT_BITS for rank in several),
    )
    upper = rounded_quotients(
        (total + moved * rank * _ONE for rank in left), ((n - more * rank) << UNIT_BITS for rank in left)
    )
    upper = padded(np.minimum(upper, 1.0), len(several), 1.0)
    value = rounded_quotient(total, n << UNIT_BITS) if n else 0.0
    return calibration_facts(None if private_n else n).bounds(value, lower, upper)


def calibration_sums(total: int, n: int) -> Sums:
    """Return n + T and n - T, from which T / n follows where n is private.

    If a record is added T changes by d with abs(d) <= 1, so one of the two grows by 1 + d and the other by
    1 - d: by 2 together, whatever the record. Rounding T to the lattice commutes with shifts by whole
    numbers, so this holds for steps too.
    """
    steps = (2 * FINENESS * total + _ONE) // (2 * _ONE)
    whole = n * FINENESS
    return Sums((whole + steps, whole - steps), _OF_RECORD, _share, (True, False), _OF_RECORD)


def _share(above: Floats, below: Floats) -> Floats:
    # one record at least: the error of none is 0
    return np.clip((above - below) / np.maximum(above + below, _OF_RECORD), 0.0, 1.0)


Whole: TypeAlias = Array
"""Whole numbers: int64, or Python's integers where a float might not hold them."""


Quotients: TypeAlias = Iterator[tuple[int, Whole, Whole]]
"""Numerators and denominators for consecutive numbers of changed records, and the first of these."""


_MOST_FOR_FLOATS = 1 << 26  # records; twice the number of pairs is below 2^52, and floats divide exactly


class RankedScores:
    """The scores of both classes in ascending order, and what is left of the loss when records are dropped.

    Parameters
    ----------
    positives, negatives : ndarray
        Finite scores of the two classes, in ascending order.
    """

    def __init__(self, positives: Floats, negatives: Floats) -> None:
        self._positives, self._negatives = positives, negatives
        self.counts = (positives.size, negatives.size)
        self.n = positives.size + negatives.size
        self.whole: Any = np.int64 if self.n <= _MOST_FOR_FLOATS else object

    @classmethod
    def of(cls, scores: Floats, is_positive: NDArray[np.bool_]) -> Self:
        """Sort the scores of all records."""
        return cls(np.sort(scores[is_positive]), np.sort(scores[~is_positive]))

    def negated(self) -> Self:
        """Return the same records with all scores negated, which is exact."""
        return type(self)(-self._positives[::-1], -self._negatives[::-1])

    @property
    def smaller(self) -> int:
        """Number of records of the smaller class."""
        return min(self.counts)

    @property
    def pairs(self) -> int:
        """Twice the number of pairs."""
        return 2 * self.counts[0] * self.counts[1]

    @cached_property
    def total(self) -> int:
        """Twice the loss of all pairs."""
        if self.counts[0] < self.counts[1]:  # looking few scores up among many is quicker
            return self.pairs - _sum(*_below(self._negatives, self._positives))
        return _sum(*_below(self._positives, self._negatives))

    def rows(self, most: int) -> Iterator[Whole]:
        """Yield F(0, b), F(1, b), ... for b = 0, 1, ..., `most`, as long as a + b is at most that.

        F(a, b) is twice the loss without the a lowest positives and the b highest negatives. `most` must be
        below the number of records of the smaller class.
        """
        few, half = _below(self._negatives, self._positives[:most])
        lost = np.cumsum(2 * self.counts[1] - few - half)  # the sum is at most 2 n `most`
        row = self.total - np.append(0, lost).astype(self.whole)
        yield row
        a = np.arange(most)
        highest = self._negatives[::-1][:most]
        for few, half in zip(*_below(self._positives, highest), strict=True):
            # the a lowest positives are gone already
            left = a[: row.size - 1]
            row = row[:-1] - np.maximum(few - left, 0) - np.maximum(half - left, 0)
            yield row


def _below(ranked: Floats, scores: Floats) -> tuple[Whole, Whole]:
    """Return for each score how many of the others are below it, and how many are not above it."""
    return np.searchsorted(ranked, scores, side="left"), np.searchsorted(ranked, scores, side="right")


def _sum(*counts: Whole) -> int:
    """Return a sum of any size."""
    return sum(int(block.sum()) for array in counts for block in in_blocks(array))


def ranking_bounds(scores: RankedScores, ranks: int, private_n: bool) -> OutputBounds:
    """Return output bounds of the ranking loss: L the least quotients, and 1 - U those of the negated scores.

    Not monotonic: a change that raises the loss can lower L. See `_replaced` and `_added_or_removed`.
    """
    n, quotients = (None, _added_or_removed) if private_n else (scores.n, _replaced)
    ranks = ranks if n is None else min(ranks, n)
    lower, upper, value = np.zeros(ranks), np.ones(ranks), 0.5
    if scores.smaller:
        most = min(ranks, scores.smaller - 1)
        value = rounded_quotient(scores.total, scores.pairs)
        lower[:most] = _least(quotients, scores, most)
        upper[:most] = _least(quotients, scores.negated(), most, from_one=True)
    return ranking_facts(n).bounds(value, lower, upper)


def _replaced(scores: RankedScores, most: int) -> Quotients:
    """Yield the quotients of which L^l is the least when records are replaced.

    With F(a, b) twice the loss without the a lowest positives and the b highest negatives, and P positives
    among n records,

        L^l = min over a + b = l of F(a, b) / (2 P' (n - P')),    P' from P - a to P + b, nearest to n / 2,

    and 0 once a whole class can be replaced; 1 - U^l is L^l of the negated scores.

    Notes
    -----
    **Proof.** A replaced record is worth most as a positive above all others or a negative below them: it
    adds no loss, and only the number P' of positives is left to choose. Whatever negatives are kept, a
    positive loses the less to them the higher it is, and conversely, so the lowest positives and the highest
    negatives are the ones to replace. Once l reaches the size of the smaller class, all of it can be
    replaced, and one record without loss be put back. Where scores may be any real numbers and n > 1, these
    are the exact extremes. So they keep Definition 3.4, and go on keeping it where fewer data sets are legal;
    for n = 1, where the loss is always 1/2, they are 0 and 1. Each bound is the least or largest of
    quotients of whole numbers, each rounded once.
    """
    n, p = scores.n, scores.counts[0]
    for b, losses in enumerate(scores.rows(most)):
        a = np.arange(losses.size).astype(scores.whole)
        chosen = np.minimum(np.maximum(p - a, n // 2), p + b)
        yield b, losses, 2 * chosen * (n - chosen)


def _added_or_removed(scores: RankedScores, most: int) -> Quotients:
    """Yield the quotients of which L^l is the least when records are added or removed.

    With k records removed and l - k added, M(k) the least F(a, b) for a + b <= k, and D(k, l) twice the
    largest P' (n - 2k + l - P') for P' from P - k to P + l - k,

        L^l = min over k <= l of M(k) / D(k, l),

    and 0 once a whole class can be removed; 1 - U^l is L^l of the negated scores.

    Notes
    -----
    **Proof.** Whoever removes k records and adds l - k leaves at least the loss M(k), and at most D(k, l) / 2
    pairs: L^l is at most the exact minimum. Let x' have one record more than x. To remove it too leads from
    x' to what x can become, and to add it too from x to what x' can: M'(k + 1) <= M(k) and
    D'(k + 1, l + 1) >= D(k, l), so L'^(l+1) <= L^l; and M(k) <= M'(k) and D(k, l + 1) >= D'(k, l), so
    L^(l+1) <= L'^l. That is Definition 3.4. The bounds are exact if one choice of records serves M and D.
    """
    least = np.full(most + 1, scores.total, dtype=scores.whole)
    for b, losses in enumerate(scores.rows(most)):
        np.minimum(least[b:], losses, out=least[b:])
    p = scores.counts[0]
    for k, loss in enumerate(np.minimum.accumulate(least)):
        added = np.arange(most + 1 - k).astype(scores.whole)
        size = scores.n - k + added
        chosen = np.minimum(np.maximum(p - k, size // 2), p + added)
        yield k, np.full_like(added, loss), 2 * chosen * (size - chosen)


def ranking_facts(n: int | None) -> BoundsFacts:
    """Return what is public of the output bounds of a ranking loss, of a public number of records or not."""
    # a class of a single record moves the area from end to end
    sensitivity = None if n is None else 1.0
    return BoundsFacts(output_range=(0.0, 1.0), monotonic=False, n=n, sensitivity=sensitivity)


def _least(
    quotients: Callable[[RankedScores, int], Quotients],
    scores: RankedScores,
    most: int,
    *,
    from_one: bool = False,
) -> Floats:
    """Return for 1 to `most` changes the least quotient q, or 1 - q, rounded once.

    1 - q is a quotient too, and rounding reverses no order, so that the largest of the rounded ones is the
    largest rounded. Floats hold whole numbers below 2^53, and round their quotient once, as Python does that
    of integers of any size.
    """
    best, pick = (np.zeros(most + 1), np.maximum) if from_one else (np.ones(most + 1), np.minimum)
    for first, losses, pairs in quotients(scores, most):
        quotient = (pairs - losses if from_one else losses) / pairs
        pick(best[first:], quotient.astype(np.float64), out=best[first:])
    return best[1:]
