"""How sure a table of scores is: limits of areas and net benefits, and bands for its curves.

How the scores of a bin lie is not released. A pair of a positive and a negative record in different bins is
surely won or surely lost; one within a bin may be either, so that an area is known up to the tied pairs even
without noise. So is an average precision.

At a threshold t the net benefit is (TP - w FP) / n, w = t / (1 - t): A. J. Vickers and E. B. Elkin (2006,
doi:10.1177/0272989X06295361). The number n of records is public.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dp_metrics.inputs.options import Codes, Floats
from dp_metrics.mechanisms._laws import COUNT_LIMIT, ENORMOUS
from dp_metrics.metrics.scores.curve_formulas import FAR, RocCurve, ScoreCounts, pooled_means
from dp_metrics.quantities.tables import NoisyCounts, nearest_with_sum, quotients, saturated_counts
from dp_metrics.release import count_limits
from dp_metrics.release.count_limits import Ends, NoisyRatio, Quotient, quick_ratio_limits, quotient_limits
from dp_metrics.release.released import POPULATION_NOTE, PopulationQuestion
from dp_metrics.release.result import Result

Ties: TypeAlias = tuple[float, float]
"""Which part of the pairs within bins is taken as won, by the lower limit of an area and by the upper one."""

ANY_ORDER: Ties = (0.0, 1.0)
"""Whatever the order within bins is."""

BINNED: Ties = (0.5, 0.5)
"""Where a pair within a bin counts half, as in the area that is released."""

ORDERED: Ties = (0.5, 1.0)
"""Where positives do not rank below negatives within bins on average."""

_LENT = 0.5  # records of each class that are taken to lie as the other class does
_TINY = 1e-100  # records: divides where there are none
_GRID = np.linspace(0.0, 1.0, 2001)


def half_of_tied(counts: ScoreCounts) -> float:
    """Return half of the share of pairs within bins: so far the order there may move the area of bins."""
    negative, positive = (each / max(float(each.sum()), 1.0) for each in (counts.negative, counts.positive))
    return float(negative @ positive) / 2


def area_between(lower: RocCurve, upper: RocCurve, ties: Ties = ANY_ORDER) -> Ends:
    """Return limits of the area under a curve that rises, from those of its points at the edges of bins.

    Parameters
    ----------
    lower, upper : RocCurve
        Through the lower right corners of the boxes in which the points lie, and the upper left ones.
    ties : (float, float), default=ANY_ORDER
        What is assumed of the order within bins.

    Notes
    -----
    Between two edges the curve may do anything that rises: below it is a staircase, and above it another one.
    The area of the binned scores is that of straight lines.
    """
    low, high = (
        float((np.diff(line.fpr) * ((1 - tie) * line.tpr[:-1] + tie * line.tpr[1:])).sum())
        for line, tie in zip((lower, upper), ties, strict=True)
    )
    return low, high


def area_limits(
    noise: NoisyCounts, miss: float, *, ties: Ties = ANY_ORDER, among_people: bool = True
) -> Ends | None:
    """Return approximate limits of the area under the ROC curve of the scores as they are.

    Parameters
    ----------
    noise : NoisyCounts
        Of the negative class by bin, then of the positive one.
    miss : float
        Probability with which either limit may miss.
    ties : (float, float), default=ANY_ORDER
        What is assumed of the order within bins.
    among_people : bool, default=True
        Whether the area is that among all people; otherwise that of these records.

    Returns
    -------
    (float, float) or None
        None where a class does not exceed its noise: there limits made so covered 84 to 93 %, not 95 %.

    Notes
    -----
    The exact area lies between the share of pairs that are surely won and the share of those that are not
    surely lost: the lower limit is one of the first, and the upper limit one of the second.

    An area is the sum of W over the pairs of records, over their number, from both of which the covariance of
    the noise is taken off; W is 1 of a pair that is won, 0 of one that is lost, and 0 or 1 of one within a
    bin. Chance moves it as `effective_size` tells. Each class is made plausible by
    itself, with its own noisy size, by which the sum is divided as well: made plausible together, the larger
    class would lend records to the smaller one. Persons who count once each are as in `precision_limits`.
    """
    if not are_far_from_noise(noise, FAR):
        return None
    lowest, highest = (_area(noise, tie, among_people=among_people) for tie in ties)
    return quotient_limits((lowest, highest), miss)


def are_far_from_noise(noise: NoisyCounts, deviations: float) -> bool:
    """Return whether the noisy sizes of both classes exceed so many standard deviations of their noise."""
    noisy = saturated_counts(noise.numbers).reshape(2, -1)
    of_class = np.repeat([1.0, 0.0], noisy.shape[1])
    deviation = np.sqrt(max(noise.covariance(of_class, of_class), 0.0))
    return bool((noisy.sum(axis=1) > deviations * deviation).all())


def _area(noise: NoisyCounts, tie: float, *, among_people: bool) -> Quotient:
    """Return the area in which `tie` of each pair in a bin is won: of the pairs, and over all of them."""
    raw = saturated_counts(noise.numbers).reshape(2, -1)
    negatives, positives = (nearest_with_sum(each, each.sum()) for each in raw)
    bins = positives.size
    size, other = float(positives.sum()), float(negatives.sum())
    # what a negative record in one bin, a row, and a positive one in another, add to the pairs won
    won = np.triu(np.ones((bins, bins)), 1) + tie * np.eye(bins)
    one, two, *_ = np.eye(2 * bins)
    variance, covariance = noise.covariance(one, one), noise.covariance(one, two)
    slopes = np.r_[won @ positives, negatives @ won]
    both, pairs = np.repeat([size, other], bins), size * other
    records = effective_size(negatives, positives, won) if among_people else np.inf
    products = (slopes, slopes, (won**2).sum()), (slopes, both, won.sum()), (both, both, bins**2)
    of_above, of_both, of_below = (noise.covariance(x, y) + variance**2 * w for x, y, w in products)
    return (
        float(raw[0] @ won @ raw[1] - covariance * won.sum()),
        pairs - covariance * bins**2,
        (of_above, of_both, of_below),
        lambda theta: pairs**2 * theta * (1 - theta) / records,
    )


def effective_size(negatives: Floats, positives: Floats, won: Floats) -> float:
    """Return the m for which the variance of an area theta is theta (1 - theta) / m.

    Parameters
    ----------
    negatives, positives : ndarray of shape (n_bins,)
        Plausible counts.
    won : ndarray of shape (n_bins, n_bins)
        What a pair adds to those won.

    Notes
    -----
    That of E. R. DeLong, D. M. DeLong and D. L. Clarke-Pearson (1988, doi:10.2307/2531595) at the area of the
    counts, and at least the size of the smaller class, with which the variance is an upper limit of the true
    one (Z. W. Birnbaum, 1956). Half a record of each class is taken to lie as the other class does: where few
    records are all won, the variance by the counts alone would be 0.
    """
    (q, f), (p, g) = ((float(each.sum()), each / each.sum()) for each in (negatives, positives))
    least = max(min(p, q), 1.0)
    f, g = (f * q + _LENT * g) / (q + _LENT), (g * p + _LENT * f) / (p + _LENT)
    of_positives, of_negatives = f @ won, won @ g
    area = float(of_positives @ g)
    variance = float(g @ (of_positives - area) ** 2) / max(p - 1, 1.0)
    variance += float(f @ (of_negatives - area) ** 2) / max(q - 1, 1.0)
    return max(area * (1 - area) / variance, least) if variance > 0 else least


def hanley_mcneil(theta: Floats, positive: float, negative: float) -> Floats:
    """Return the variance of an area theta from so many records of either class."""
    one, two = theta / (2 - theta) - theta**2, 2 * theta**2 / (1 + theta) - theta**2
    return (theta * (1 - theta) + (positive - 1) * one + (negative - 1) * two) / (positive * negative)


def limits_around(area: float, noise: Ends, positive: float, negative: float, miss: float) -> Ends:
    """Return approximate limits of an area among all people, from limits of the exact area of the records.

    Parameters
    ----------
    area : float
        The released area.
    noise : (float, float)
        Limits of the exact area, which miss as often as these may.
    positive, negative : float
        Noisy numbers of records of both classes.
    miss : float
        Probability with which either limit may miss.

    Notes
    -----
    As in MOVER, what the noise may have done and what the sample may have done are added up in squares. The
    variance is that of J. A. Hanley and B. J. McNeil (1982, doi:10.1148/radiology.143.1.7063747) at the
    limit. It takes the scores of both classes to be exponential: where those of the negatives spread wider
    than those of the positives it is that of the other roles, and one number does not tell which is so. So
    the larger one is taken.
    """
    # noise may be beyond all floats
    sizes = [min(max(size, 1.0), COUNT_LIMIT) for size in (positive, negative)]
    variance = np.maximum(hanley_mcneil(_GRID, *sizes), hanley_mcneil(_GRID, *sizes[::-1]))
    sampling = float(ndtri(miss)) ** 2 * variance
    reach = np.where(area >= _GRID, area - noise[0], noise[1] - area)
    inside = _GRID[np.abs(_GRID - area) <= np.sqrt(np.maximum(sampling, 0.0) + reach**2)]
    return (float(inside[0]), float(inside[-1])) if inside.size else (0.0, 1.0)


def precision_limits(noise: NoisyCounts, miss: float, *, among_people: bool = True) -> Ends | None:
    """Return approximate limits of the average precision of the scores as they are.

    Parameters
    ----------
    noise, miss, among_people
        As in `area_limits`.

    Returns
    -------
    (float, float) or None
        None where a class does not exceed its noise.

    Notes
    -----
    Around plausible counts the least average precision that an order within the bins allows, and the largest,
    are taken to be linear: the slopes tell what the noise adds, and what a sample of people does, of whom
    each lies in one cell. As for an area half a record of each class is taken to lie as the other class does.
    Where each person counts once, what a person adds is a mean over the records, which varies no more.

    Counts that are made plausible one by one keep noise above 0 among the few negatives at the top: their
    average precision errs down, and the lower limit is theirs. Counts that are pooled before, as for the
    released number, err up where the share of positives does fall with the score: theirs is the upper limit.
    """
    noisy = saturated_counts(noise.numbers).reshape(2, -1)
    sizes = noisy.sum(axis=1)
    if not are_far_from_noise(noise, FAR):
        return None
    pooled, _ = pooled_means(noisy, noise.expected)

    def side(means: Floats, *, is_upper: bool) -> Quotient:
        plausible = np.stack([*map(nearest_with_sum, means, sizes)])
        records = plausible + _LENT * (plausible / sizes[:, np.newaxis])[::-1]
        value, _ = precision_slopes(plausible, is_upper=is_upper)
        _, slopes = precision_slopes(records, is_upper=is_upper)
        sampling = float((records * slopes**2).sum()) if among_people else 0.0
        return value, 1.0, (noise.covariance(slopes.ravel(), slopes.ravel()), 0.0, 0.0), lambda _: sampling

    return quotient_limits((side(noisy, is_upper=False), side(pooled, is_upper=True)), miss)


def precision_slopes(records: Floats, *, is_upper: bool) -> tuple[float, Floats]:
    """Return the largest average precision that records by class and bin allow, or the least, and its slopes.

    Notes
    -----
    From the top let p be the positives of a bin, R those up to its end, and A the negatives above them. A
    bin adds p - A L: of the largest one its positives are ties above its negatives, and L = p / (R + A). Of
    the least its negatives, which are in A, are ties above positives that differ, and L = log((R + A) /
    (R - p + A)). All is divided by the number of positives. The slopes say by how much a record in a cell
    moves that, by way of p, R and A.
    """
    negative, positive = records[:, ::-1]
    found, above = np.cumsum(positive), np.cumsum(negative) - negative * is_upper
    total = np.maximum(found + above, _TINY)
    before = total if is_upper else np.maximum(found - positive + above, _TINY)
    lost = positive / total if is_upper else np.log(total / before)
    size = max(float(found[-1]), _TINY)
    value = float((positive - above * lost).sum()) / size
    by_own, by_found = 1.0 - above / before, positive * above / before / total
    by_above = by_found - lost
    of_found, of_above = (np.cumsum(by[::-1])[::-1] for by in (by_found, by_above))
    slopes = np.stack([of_above - by_above * is_upper, by_own + of_found - value])
    return value, slopes[:, ::-1] / size


def precision_between(lower: RocCurve, upper: RocCurve, share: Ends) -> Ends:
    """Return limits of an average precision, from those of a ROC curve at the edges of bins.

    Parameters
    ----------
    lower, upper : RocCurve
        As for `area_between`.
    share : (float, float)
        Limits of the share of positives.

    Notes
    -----
    Average precision is the mean over t from 0 to 1 of the precision R / (R + c F) at the threshold that
    first reaches the recall t: the recall R there is at least t, F is its false positive rate, and c
    negatives come upon a positive.

    *Lower.* Where the least recall at an edge is t or more, the threshold lies at this edge or above, so that
    F is at most the largest rate at the edge. For R = t the precision is least, and its integral is known.

    *Upper.* In the bin between two edges of which the upper one may have a recall below t, and the lower one
    a recall of t or more, R is at most the largest recall at its lower edge, and F at least the least rate at
    its upper one. The largest of these precisions is taken, over all bins that may be meant. In either case
    all scores of a bin may lie anywhere in it, also at one place.
    """
    recall, _, best = precisions_between(lower, upper, share)
    (low, _), least = share, 0.0
    if low > 0:  # the integral of t / (t + negatives) over the recall t that each edge adds
        start, end, negatives = lower.tpr[:-1], lower.tpr[1:], (1.0 - low) / low * lower.fpr[1:]
        lost = np.where(negatives > 0, negatives * np.log((end + negatives) / (start + negatives)), 0.0)
        least = float((end - start - lost).sum())
    return least, float((np.diff(recall) * best).sum())


def precisions_between(lower: RocCurve, upper: RocCurve, share: Ends) -> tuple[Floats, Floats, Floats]:
    """Return recalls from 0 to 1, and limits of the precision from each to the next: see `precision_between`.

    The lower limit of a step is that of the least recall in it.
    """
    recall = np.union1d(lower.tpr, upper.tpr)
    start, edge = recall[:-1], np.searchsorted(lower.tpr, recall[1:])
    worst = _precisions(share[0], start, lower.fpr[edge])
    of_bins = _precisions(share[1], upper.tpr[1:], upper.fpr[:-1])
    middles = (start / 2 + recall[1:] / 2)[:, np.newaxis]
    is_meant = (lower.tpr[:-1] < middles) & (middles <= upper.tpr[1:])
    return recall, worst, np.where(is_meant, of_bins, 0.0).max(axis=1)


def _precisions(share: float, recall: Floats, rate: Floats) -> Floats:
    """Return the precisions of a share of positives; 1 where nobody is found, if there are positives."""
    right = share * recall
    return quotients(right, right + (1.0 - share) * rate, float(share > 0))


_CALIBRATION = (
    "The share of positives in each bin of the score, and by how much it exceeds the mean score there, "
    f"{POPULATION_NOTE}"
)

_MOST_BINS = 64
_LINE = 4.0  # points
_OF_ONE = "private_expected_calibration_error"
_NO_MEANS = (
    "This table does not tell the mean score of each bin: pass what with_result of "
    "private_expected_calibration_error returned, of the same records and bins."
)
_OTHER_BINS = (
    "error takes what with_result of private_expected_calibration_error returned, of the same records and "
    "with n_bins={}, as here."
)


@dataclass(frozen=True, eq=False)
class RocBand:
    """A band in which a whole ROC curve lies: between two lines from (0, 0) to (1, 1).

    Parameters
    ----------
    lower, upper : RocCurve
        The lines, each a tuple (fpr, tpr, thresholds).
    confidence : float
        Least probability with which all of the curve lies between them.
    about : str
        What curve that is.

    Examples
    --------
    >>> from dp_metrics import private_roc_curve, with_result
    >>> y_true, y_score = [0] * 500 + [1] * 500, [0.2] * 400 + [0.6] * 200 + [0.9] * 400
    >>> band = with_result(private_roc_curve)(y_true, y_score, epsilon=1.0).band()
    >>> bool((band.lower.tpr <= band.upper.tpr).all())
    True
    """

    lower: RocCurve
    upper: RocCurve
    confidence: float
    about: str

    def shade(self, ax: Any, **style: Any) -> Any:
        """Shade the band in axes of matplotlib, such as ``RocCurveDisplay(...).plot().ax_``.

        Parameters
        ----------
        ax : matplotlib Axes
            Where the curve is drawn.
        **style
            As for `matplotlib.axes.Axes.fill`.

        Returns
        -------
        list of matplotlib.patches.Polygon
            What was drawn.
        """
        x, y = (np.r_[low, high[::-1]] for low, high in zip(self.lower[:2], self.upper[:2], strict=True))
        return ax.fill(x, y, **{"alpha": 0.25, "linewidth": 0, **style})


@dataclass(frozen=True, eq=False)
class PrecisionRecallBand:
    """A band in which a whole precision-recall curve lies, of scores that are not in bins.

    Parameters
    ----------
    recall : ndarray of shape (n_steps + 1,)
        Recalls from 0 to 1.
    lower, upper : ndarray of shape (n_steps,)
        Between which numbers the precision lies where the recall is above one of these, up to the next.
    confidence : float
        Least probability with which all of the curve lies between them.
    about : str
        What curve that is.
    """

    recall: Floats
    lower: Floats
    upper: Floats
    confidence: float
    about: str

    def shade(self, ax: Any, **style: Any) -> Any:
        """Shade the band in axes of matplotlib, such as ``PrecisionRecallDisplay(...).plot().ax_``.

        Parameters
        ----------
        ax : matplotlib Axes
            Where the curve is drawn.
        **style
            As for `matplotlib.axes.Axes.fill_between`.

        Returns
        -------
        matplotlib.collections.PolyCollection
            What was drawn.
        """
        low, high = (np.append(steps[:1], steps) for steps in (self.lower, self.upper))
        look = {"alpha": 0.25, "linewidth": 0, "step": "pre", **style}
        return ax.fill_between(self.recall, low, high, **look)


@dataclass(frozen=True, eq=False)
class BinnedCells:
    """A table of noisy counts: how many records each cell has, and which ones it counts, which is public.

    Parameters
    ----------
    noise : NoisyCounts
        The noisy counts, and their noise.
    counts : ndarray of shape (n_cells,)
        Plausible numbers of records.
    place : ndarray of shape (n_cells,)
        The place of their bin.
    is_positive : ndarray of shape (n_cells,)
        Their class.
    least, most : ndarray of shape (n_cells,)
        Between which numbers the scores lie for which they count.
    bins : int
        How many bins there are.
    """

    noise: NoisyCounts
    counts: Floats
    place: Codes
    is_positive: NDArray[np.bool_]
    least: Floats
    most: Floats
    bins: int

    @property
    def are_told(self) -> bool:
        """Whether each cell counts for one score."""
        return bool((self.least == self.most).all())

    def sums(self, values: Floats) -> Floats:
        """Return the sum of these values of the cells over each bin."""
        return np.bincount(self.place, values, self.bins).astype(np.float64)

    def range(self) -> tuple[Floats, Floats]:
        """Return between which numbers the scores of each bin lie."""
        least, most = np.ones(self.bins), np.zeros(self.bins)
        np.minimum.at(least, self.place, self.least)
        np.maximum.at(most, self.place, self.most)
        return least, most

    def means(self) -> Floats:
        """Return between which numbers the mean score of each bin lies, by the plausible counts."""
        sums, ends = np.array([self.sums(self.counts * one) for one in (self.least, self.most)]), self.range()
        return np.clip(quotients(sums, self.sums(self.counts), ends), *ends)

    def gaps(self, scores: Floats) -> Quotient:
        """Return the noisy sums of labels minus these scores, over numbers of records.

        Chance makes labels positive with the probability score + gap, and scores vary within the bin; a
        quarter is added as labels are whole. Without the scores' variance limits covered 67 %, not 95 %,
        where nearly all of a bin are negative.
        """
        noisy, weights = saturated_counts(self.noise.numbers), self.is_positive - scores
        total, ones = self.sums(noisy), np.ones_like(weights)
        score = np.clip(self.sums(noisy * scores) / np.maximum(total, 1.0), *self.range())
        spread = self.sums(self.counts * (scores - score[self.place]) ** 2)

        def by_chance(gap: Floats) -> Floats:
            share = np.clip(score + gap, 0.0, 1.0)
            return np.maximum(total, 0.0) * share * (1 - share) + spread + 0.25

        pairs = (weights, weights), (weights, ones), (ones, ones)
        of_above, of_both, of_below = (self.noise.covariance(*two, self.sums) for two in pairs)
        return self.sums(noisy * weights), total, (of_above, of_both, of_below), by_chance


class ErrorByChance(NamedTuple):
    """An expected calibration error, what chance alone gives a calibrated model, and what is left without."""

    error: float
    by_chance: float
    without_chance: float


@dataclass(frozen=True, eq=False)
class CalibrationBand:
    """Limits of the share of positives in each bin of the score, and of how far it is from the mean score.

    A bin tells that the model is not calibrated where 0 lies outside the limits of its gap. There alone the
    diagonal may leave the bars of `shade`: not where it misses a share at the middle of a bin, as the mean
    score of a bin is not its middle.

    Parameters
    ----------
    prob_pred : ndarray of shape (n_bins,)
        The mean score of each bin, as of the curve; the middle of a bin without records.
    lower, upper : ndarray of shape (n_bins,)
        Limits of the shares of positives, which hold at once; 0 and 1 where a bin tells nothing.
    gap, gap_lower, gap_upper : ndarray of shape (n_bins,)
        The share of positives less the mean score, and limits of that, which hold at once.
    prob_pred_range : ndarray of shape (2, n_bins)
        Between which numbers the mean score lies: twice the same where it was released, else the ends of the
        bin, or their means over released bins.
    confidence : float
        Probability with which all limits hold: once for those of shares, once for those of gaps.
    about, note : str
        What they are limits of, and how sure they are.
    cells : BinnedCells
        The noisy counts of all bins, of which `error` is made.
    public_n : int or None
        Number of all records, if public.
    """

    prob_pred: Floats
    lower: Floats
    upper: Floats
    gap: Floats
    gap_lower: Floats
    gap_upper: Floats
    prob_pred_range: Floats
    confidence: float
    about: str
    note: str
    cells: BinnedCells
    public_n: int | None

    def error(self, released: Any = None) -> ErrorByChance:
        """Return the expected calibration error over these bins, with and without what chance gives.

        Parameters
        ----------
        released : Result or None, default=None
            Of `private_expected_calibration_error`, of the same records and bins: it is more accurate. None:
            the error by these bins alone, where their mean scores were released.

        Returns
        -------
        ErrorByChance
            A named tuple of `error`; of `by_chance`, the error that a calibrated model has on average, of so
            many records with these shares of positives, and with the noise of these bins if the error is
            theirs; and of `without_chance`, sqrt(error^2 - by_chance^2), or 0.

        Raises
        ------
        ValueError, TypeError
            If the result is no such error, or of other bins, or is needed and None.

        Notes
        -----
        On three real and four simulated tasks of 1,000 records at epsilon 1, ten bins, what is left without
        chance had a bias of -0.002 to +0.007 (error: to +0.029), and by the bins alone of -0.003 to +0.009
        (to +0.038). It is nearest 0 where gaps are large, and too large where the model is calibrated.

        Examples
        --------
        >>> from dp_metrics import private_calibration_curve, with_result
        >>> y_true, y_prob = [0] * 450 + [1] * 50 + [0] * 100 + [1] * 400, [0.1] * 500 + [0.8] * 500
        >>> band = with_result(private_calibration_curve)(y_true, y_prob, epsilon=4.0).band()
        >>> error, by_chance, without_chance = band.error()
        >>> 0 <= without_chance <= error
        True
        """
        cells, bins = self.cells, self.cells.bins
        records, positives = cells.sums(cells.counts), cells.sums(cells.counts * cells.is_positive)
        n = max(float(records.sum() if self.public_n is None else self.public_n), 1.0)
        if released is None:
            if not cells.are_told:
                raise ValueError(_NO_MEANS)
            excess, _, (of_excess, _, _), _ = cells.gaps(cells.least)
            error, noise = float(np.abs(excess).sum()) / n, np.maximum(of_excess, 0.0)
        else:
            if not isinstance(released, Result):
                raise TypeError(_OTHER_BINS.format(bins))
            own = released.metric, getattr(released.reading, "n_bins", None), released.n
            if own != (_OF_ONE, bins, self.public_n):
                raise ValueError(_OTHER_BINS.format(bins))
            error, noise = float(released), np.zeros(bins)
        by_chance = error_by_chance(records, positives, noise, n)
        return ErrorByChance(error, by_chance, max(error * error - by_chance * by_chance, 0.0) ** 0.5)

    def shade(self, ax: Any, **style: Any) -> Any:
        """Draw the limits in axes of matplotlib, such as ``CalibrationDisplay(...).plot().ax_``.

        A bar for each bin is as wide as its mean score is unknown, a line where that was released: the model
        is not calibrated where one is off the diagonal.

        Parameters
        ----------
        ax : matplotlib Axes
            Where the curve is drawn.
        **style
            As for `matplotlib.axes.Axes.bar`.

        Returns
        -------
        matplotlib.container.BarContainer
            What was drawn.
        """
        left, right = self.prob_pred_range
        lines = np.where(right > left, 0.0, _LINE)
        drawn = ax.bar(
            left, self.upper - self.lower, right - left, self.lower, align="edge",
            **{"alpha": 0.4, "linewidth": lines, **style},
        )  # fmt: skip
        for bar in drawn:
            bar.set_edgecolor(bar.get_facecolor())
        return drawn


def edges_of_limits(bins: int) -> range:
    """Return the places of the inner edges between so many bins at which the curve is limited.

    The limits share the probability to miss: more than some sixty edges say no more, and take their time.
    """
    step = -(-bins // _MOST_BINS)
    return range(step, bins, step)


def roc_limits(
    noise: NoisyCounts, n: int | None, edges: Floats, limits_of: Callable[[NoisyRatio], Ends]
) -> tuple[RocCurve, RocCurve]:
    """Return the lines between which the ROC curve lies, if all limits of shares hold.

    It is the curve of the scores in the bins between these edges, which are those of `thresholds`.

    Parameters
    ----------
    noise : NoisyCounts
        Of the negative class by bin, then of the positive one.
    n : int or None
        Number of all records, if public.
    edges : ndarray of shape (n_bins + 1,)
        Of the bins.
    limits_of : callable
        Limits of a share, from its noisy counts: two at each of the `edges_of_limits` have to hold.

    Notes
    -----
    At each inner edge the share of a class above it is a ratio of two sums of counts. Shares fall from edge
    to edge, so that the least upper limit of those before holds as well. A point of the curve between two
    edges is a mixture of the points at both, and so are corners of the boxes around them: the curve of the
    binned scores, which is straight there, lies between the lines through the corners.
    """
    bins = edges.size - 1
    inner = edges_of_limits(bins)
    # edge by edge: the noise of both classes has one law there
    shares = [
        count_limits.noisy_ratio(noise, range(start + edge, start + bins), range(start, start + edge), n)
        for edge in inner
        for start in (0, bins)
    ]
    limits = np.array([*map(limits_of, shares)])
    (fpr_low, fpr_high), (tpr_low, tpr_high) = (
        (np.maximum.accumulate(low[::-1]), np.minimum.accumulate(high)[::-1])
        for low, high in limits.reshape(-1, 2, 2).transpose(1, 2, 0)
    )
    thresholds = np.r_[np.inf, edges[inner[::-1]], edges[:1]]
    lower, upper = (
        RocCurve(np.r_[0.0, x, 1.0], np.r_[0.0, y, 1.0], thresholds)
        for x, y in ((fpr_high, tpr_low), (fpr_low, tpr_high))
    )
    return lower, upper


def error_by_chance(records: Floats, positives: Floats, noise: Floats, n: float) -> float:
    """Return the expected calibration error that a calibrated model has on average.

    The sum of a bin of m records is taken to be normal, with the variance m p (1 - p) and that of its noise.
    Sums of fewer noises are a little smaller on average: where there is nothing but noise it is up to 13 %
    too large.
    """
    share = np.clip(quotients(positives, records), 0.0, 1.0)
    variances = np.maximum(records, 0.0) * share * (1.0 - share) + noise
    return float(np.sqrt(2.0 / np.pi * variances).sum() / n)


def middles(n_bins: int) -> Floats:
    """Return the middles of even bins of [0, 1]."""
    return (np.arange(n_bins) + 0.5) / n_bins


def calibration_band(
    cells: BinnedCells,
    prob_pred: Floats,
    asked: PopulationQuestion,
    public_n: int | None,
    note: str,
    shares: tuple[Floats, Floats] | None = None,
    here: NDArray[np.bool_] | slice = slice(None),
) -> CalibrationBand:
    """Return the band of these bins.

    Parameters
    ----------
    cells : BinnedCells
        The counts.
    prob_pred : ndarray of shape (n_bins,)
        The mean score of each bin.
    asked : PopulationQuestion
        The confidence.
    public_n : int or None
        Number of all records, if public.
    note : str
        How sure the limits are.
    shares : tuple of ndarray or None, default=None
        Limits of the shares of positives; None: approximate ones.
    here : ndarray of bool, default=slice(None)
        Which bins are shown.

    Notes
    -----
    The gap is a sum of labels minus scores over a number of records. The sum is one of the noisy cells, each
    times its label less its score, so that no middle of a bin enters. Scores that are known up to a bin count
    as its upper end for the lower limit of the gap, and as its lower end for the upper one. What is shown of
    a share reaches as far as those limits: the diagonal leaves no bar of a bin whose gap may be 0.
    """
    each, (least, most) = asked.miss / cells.bins, cells.range()
    of_lower, of_upper = (cells.gaps(scores) for scores in (cells.most, cells.least))
    excess, total, (_, _, of_total), _ = cells.gaps((cells.least + cells.most) / 2)
    is_told = total > FAR * np.sqrt(np.maximum(of_total, 0.0))
    ends = quotient_limits((of_lower, of_upper), each, -1.0, 1.0)
    lower, upper = np.where(is_told, np.clip(ends, -most, 1.0 - least), [-most, 1.0 - least])
    if shares is not None:
        low, high = shares
    else:
        positive, _, noise, _ = cells.gaps(np.zeros_like(cells.least))
        shares = quick_ratio_limits(positive, total, noise, each)
        low, high = np.where(is_told, shares, [[0.0], [1.0]])
    gap = np.clip(excess / np.maximum(total, 1.0), lower, upper)
    known = np.array([prob_pred, prob_pred]) if cells.are_told else cells.means()
    lowest = np.clip(np.minimum(low, known[1] + lower), 0.0, 1.0)
    highest = np.clip(np.maximum(high, known[0] + upper), 0.0, 1.0)
    told: list[Any] = [each[..., here] for each in (prob_pred, lowest, highest, gap, lower, upper, known)]
    told += [asked.confidence, _CALIBRATION, note, cells, public_n]
    return CalibrationBand(*told)


_LARGEST_REACH = 1 << 18  # beyond, the law of a sum takes too long


def benefit_noise_limits(counts: NoisyRatio, n: int, weight: float, miss: float) -> Ends:
    """Return limits of the net benefit of these records: how far the noise may have moved it.

    Parameters
    ----------
    counts : NoisyRatio
        Noisy numbers of true positives, a, and of false positives, b.
    n : int
        Public number of records.
    weight : float
        How many true positives a false positive costs.
    miss : float
        Probability, above 0, with which either limit may be wrong, whatever the counts are.

    Notes
    -----
    The released benefit is off by z_a - weight z_b, whose law is known and symmetric: its quantile is as far
    as either limit is away.
    """
    if counts.reach > _LARGEST_REACH:
        of_a, of_b = (min(counts.largest_noise(place, miss / 2), ENORMOUS) for place in (0, 1))
        away = of_a + weight * of_b
    else:
        table = counts.table()
        error = np.subtract.outer(table.middles, weight * table.middles).ravel()
        order = np.argsort(error)[::-1]
        at_least = np.cumsum(table.law.ravel()[order])  # in blocks, those that are as far off or farther
        place = int(np.searchsorted(at_least, miss - counts.dropped, side="right"))
        away = float(error[order[place]]) + table.slack * (1 + weight)
    value = counts.a - weight * counts.b
    lower, upper = (min(max(end / n, -weight), 1.0) for end in (value - away, value + away))
    return lower, upper


def benefit_limits(counts: NoisyRatio, n: int, weight: float, miss: float) -> Ends:
    """Return approximate limits of the net benefit among all people like the records: arguments as above.

    Of several thresholds each has its part of the miss, if all limits are to hold at once.

    Notes
    -----
    The benefit is a - weight b over n. The variance by chance is n (share of a + weight^2 share of b -
    benefit^2), at least that of one record in either. The shares are those of the noisy counts, and of as
    many more in a, or in b, as make the benefit: without these limits covered 87 %, not 95 %, where few are
    positive.
    """
    of_a, both, of_all = counts.moments  # a - weight b is (1 + weight) a - weight (a + b)
    noise = (1 + weight) ** 2 * of_a - 2 * weight * (1 + weight) * both + weight**2 * of_all
    value, more = counts.a - weight * counts.b, 1 + weight**2
    square = max(counts.a, 0) + weight**2 * max(counts.b, 0)

    def by_chance(u: Floats) -> Floats:
        away = value - n * u
        return np.maximum(square + np.maximum(-away, weight * away) - n * u**2, more)

    benefit: Quotient = value, n, (noise, 0.0, 0.0), by_chance
    return quotient_limits((benefit, benefit), miss, -weight)


def over_expected_limits(noise: NoisyCounts, edges: Floats, miss: float, *, of_people: bool) -> Ends:
    """Return approximate limits of the number of positives over the sum of the probabilities.

    Parameters
    ----------
    noise : NoisyCounts
        Noisy numbers of negatives by bin, and then of positives.
    edges : ndarray
        Of the bins, from 0 to 1.
    miss : float
        Probability with which either limit may be wrong.
    of_people : bool
        Whether the limits are among all people like the records.

    Notes
    -----
    With y 1 for a positive and else 0, s the probability and r the ratio, r / (1 + r) is the sum of y over
    that of y + s. Noise is taken to be normal, as chance is. Where probabilities lie within their bins is not
    told: the lower limit is that of the upper edges, and the upper limit that of the lower edges.

    The variance by chance is that of the counts, and at least that of people who are positive r times as
    often as the probabilities say: where three are positive, the counts alone made limits that covered 80 %.
    Noise that leaves fewer than no positives tells of none, and one that may be all of the sum of
    probabilities tells nothing.
    """
    counts, bins = saturated_counts(noise.numbers), edges.size - 1
    present, positive = np.maximum(counts, 0.0), np.repeat([0.0, 1.0], bins)
    most = np.tile(edges[1:], 2)
    if counts @ most <= FAR * np.sqrt(max(noise.covariance(most, most), 0.0)):
        return 0.0, np.inf

    def side(ends: Floats) -> Quotient:
        scores = np.tile(ends, 2)

        def variance(x: Floats) -> float:
            weights = positive - x * (positive + scores)
            of_noise = max(noise.covariance(weights, weights), 0.0)
            if not of_people:
                return of_noise
            likely = np.minimum(x * scores, 1.0 - x)  # the ratio times a probability, at most 1; times 1 - x
            return of_noise + max(present @ weights**2, present @ (likely * (1.0 - x - likely)))

        positives = max(float(counts @ positive), 0.0)
        return positives, positives + counts @ scores, (0.0, 0.0, 0.0), variance

    ends = np.array(quotient_limits((side(edges[1:]), side(edges[:-1])), miss))
    lower, upper = (ends / (1.0 - ends)).tolist()
    return lower, upper
