"""Tables of scores: how many records of either class lie in each public bin, and what follows from that."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from dp_metrics.inputs.arrays import Records, Shape, check_edges, float_block, probability_block
from dp_metrics.inputs.labels import LabelColumns, labels_and_scores
from dp_metrics.inputs.options import Array, Floats, as_whole
from dp_metrics.mechanisms._laws import Integers, Limits
from dp_metrics.metrics.scores import bands, curve_formulas as formulas
from dp_metrics.metrics.scores.bands import BinnedCells, CalibrationBand, PrecisionRecallBand, RocBand
from dp_metrics.metrics.scores.curve_formulas import CalibrationCurve, ScoreCounts
from dp_metrics.quantities import tables
from dp_metrics.quantities.tables import Cells, NoisyCounts, TableOf
from dp_metrics.release import count_limits
from dp_metrics.release.count_limits import Ends
from dp_metrics.release.query import Query
from dp_metrics.release.released import APPROXIMATE, POPULATION_NOTE, Interval, PopulationQuestion
from dp_metrics.release.result import AnyResult, ReleasedNumbers
from dp_metrics.sensitivity.output_bounds import FINENESS

_LIMITED: Mapping[Any, str] = {
    formulas.area_under_roc: "area under the ROC curve",
    formulas.average_precision: "average precision",
}
"""What has limits, which are those of the scores, not of their bins."""

_CLEAR = 100.0  # times the noise of its size: of classes as large limits are closer than `WIDEST`
_COARSE = 0.05  # with more, bins say too little
_OF_GAPS = f"Limits of the gaps: {APPROXIMATE[0].lower()}{APPROXIMATE[1:]}"
_ORDERED = "Assumes that within bins positives do not rank below negatives on average."
_IN_RECORDS = "In these records chance may break that though the model does not: see `noise_interval`."
_DIGITS = 2.0**30  # rounding makes the edges the same numbers whatever library computes the cosine
_OUTSIDE = (
    "y_score has values outside [0, 1]: pass edges=[...], public edges of bins for such scores; or, for "
    "areas by group, partial(private_roc_auc_score, mechanism='hazard'), which takes any scores."
)
_NO_PERSONS = (
    "{} of persons who count once each (equal_groups=True) has no sure limits, and no band, of what it is "
    "among all people: an area and an average precision have approximate limits, where both classes exceed "
    "their noise. max_records=1 keeps one record of each person."
)
Lines: TypeAlias = tuple[formulas.RocCurve, formulas.RocCurve]

_NEAR = 20.0  # standard deviations of its noise, below which a class is small for limits that are linear
_POWERS = tuple(2**power for power in range(1, tables.MOST_COLUMNS.bit_length()))


def finest_edges(edges: Any) -> Floats:
    """Return the edges of bins that a caller gives, or of the usual ones of [0, 1], which may be merged.

    Half of a turn of a cosine in even steps: between even in the probability and even in its logit. A bin
    holds the scores from its lower edge up to below its upper one; scores outside are counted in the first or
    the last bin.
    """
    given = check_edges(edges)
    if given is not None:
        tables.check_cells(
            2 * (given.size - 1), "The table of two classes by these edges", "Pass fewer edges."
        )
        return given
    steps = (1.0 - np.cos(np.linspace(0.0, np.pi, tables.MOST_COLUMNS + 1))) / 2.0
    return np.rint(steps * _DIGITS) / _DIGITS


def counted(
    records: Records, *, classes: LabelColumns, edges: Floats, read: Callable[[Array], Floats]
) -> Integers:
    """Return how many records lie in each of the finest bins: the negative, then the positive class.

    Where each person counts once, a record counts its units.
    """
    inner, size = edges[1:-1], edges.size - 1
    cells = (
        (np.searchsorted(inner, scores, side="right") + size * is_positive, units)
        for is_positive, scores, units in formulas.blocks_of_scores(records, classes, read)
    )
    return tables.counts_of_cells(cells, 2 * size).reshape(2, size)


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """What a query releases of a table of scores, and what it makes of that; a `Query` calls it.

    Parameters
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Public and strictly increasing: of the finest bins.
    formula : callable
        The result, of `ScoreCounts`.
    classes : LabelColumns
        The public labels, and which of them is the positive one.
    ties : (float, float), default=ANY_ORDER
        What limits of an area assume of the order within bins.
    is_sure : bool, default=True
        Whether limits of the noise are proved.
    units : int, default=1
        How many units each person has, where each counts once.
    """

    edges: Floats
    formula: Callable[[ScoreCounts], Any]
    classes: LabelColumns
    ties: bands.Ties = bands.ANY_ORDER
    is_sure: bool = True
    units: int = 1

    def __call__(self, released: ReleasedNumbers) -> Any:
        """Return the result of what is released."""
        return self.formula(self.counts(released))

    def note(self, result: AnyResult) -> str | None:
        """Return what to say if noise may have moved the area far, or the bins are coarse."""
        return self.note_of(result.parts[0], self.counts(result.released))

    def note_of(self, noise: NoisyCounts, counts: ScoreCounts) -> str | None:
        """Return that of these counts; see `WIDEST`.

        The area of the binned scores tells of an average precision and of curves too: noise moved the one
        and the other about as far. How scores lie within bins is no noise.
        """
        added = noise.expected * math.sqrt(counts.negative.size)
        smaller = self.rests_on(counts).min(keepdims=True)
        if _CLEAR * added <= smaller:
            return self.coarse_note(counts)
        found = bands.area_limits(noise, (1 - tables.SHOWN) / 2, ties=bands.BINNED, among_people=False)
        if found is None:
            return tables.few_records(added, smaller, True, noise.units)
        return tables.far_apart(*found) or self.coarse_note(counts)

    def between(self, counts: ScoreCounts) -> tuple[float, float]:
        """Return between which values the area lies by the counts, however scores lie in bins.

        If the result is the average precision, then that. Curves have the area below them.
        """
        if self.formula is formulas.average_precision:
            records = np.stack([counts.negative, counts.positive])
            low, high = (bands.precision_slopes(records, is_upper=one)[0] for one in (False, True))
            return low, high
        area, half = formulas.area_under_roc(counts), bands.half_of_tied(counts)
        return area - half, area + half

    def coarse_note(self, counts: ScoreCounts) -> str | None:
        """Return what to say where the bins are too coarse for that; None where they are fine enough."""
        low, high = self.between(counts)
        if high - low <= 2 * _COARSE:
            return None
        return (
            f"Bins too coarse: how scores lie within them may move the {_LIMITED.get(self.formula, 'area')} "
            f"by {(high - low) / 2:.2f} either way. Take more bins, or public edges that are close together "
            "where scores lie."
        )

    def rests_on(self, counts: ScoreCounts) -> Floats:
        """Return the numbers of records of both classes."""
        return np.array([counts.negative.sum(), counts.positive.sum()])

    @property
    def about(self) -> str:
        """What the limits are limits of."""
        return f"{_LIMITED.get(self.formula, 'curve')} of the unbinned scores"

    def limits(self, result: AnyResult, miss: float) -> Limits:
        """Return limits of the area or the average precision of these records' scores.

        Raises
        ------
        ValueError
            If the result is a curve.
        """
        ends, is_proved = self._ends(result, miss / 2, self.is_sure)
        return self._noted(ends, result, _IN_RECORDS, is_proved=is_proved)

    def population(self, result: AnyResult, asked: PopulationQuestion) -> Interval:
        """Return the interval of the area or the average precision among all people.

        Raises
        ------
        ValueError
            If the result is a curve.
        """
        (lower, upper), is_proved = self._ends(result, asked.miss, asked.is_sure, among_people=True)
        if is_proved:
            check_records(result, asked.metric)
        # limits among people that are within those of the noise would puzzle, and the hull of both holds too
        (low, high), _ = self._ends(result, asked.miss, asked.is_sure)
        hull = min(lower, low), max(upper, high)
        lower, upper, note = self._noted(hull, result, "", is_proved=is_proved)
        return asked.interval(lower, upper, self(result.released), note, of=f"The {self.about}")

    def _ends(
        self, result: AnyResult, miss: float, is_sure: bool, *, among_people: bool = False
    ) -> tuple[Ends, bool]:
        """Return limits, and whether they are proved: only if they have to be, or there are no others.

        Others are None where a class does not exceed its noise.
        Proved limits of an average precision nearly never miss, and of a small class some of them are closer:
        near the noise what is closer of both is taken.
        """
        if self.formula not in _LIMITED:
            nothing = "no interval for all people" if among_people else "no limits of its noise here"
            raise ValueError(
                f"These curves have {nothing}: use the area under the ROC curve, the average precision, or "
                "band()."
            )
        (noise,), is_precision = result.parts, self.formula is formulas.average_precision
        approximate = bands.precision_limits if is_precision else partial(bands.area_limits, ties=self.ties)
        quick = None if is_sure else approximate(noise, miss, among_people=among_people)
        is_near = is_precision and not bands.are_far_from_noise(noise, _NEAR)
        if quick is not None and (noise.units > 1 or not is_near):
            return quick, False
        limits_of = count_limits.edge_limits if among_people else count_limits.noise_limits
        lines, share = self._lines(result, limits_of, miss)
        low, high = bands.precision_between(*lines, share) if share else bands.area_between(*lines, self.ties)
        if quick is None:
            return (low, high), True
        inside = max(low, quick[0]), min(high, quick[1])
        return (inside if inside[0] <= inside[1] else quick), False

    def _lines(
        self, result: AnyResult, limits_of: Callable[..., Ends], miss: float
    ) -> tuple[Lines, Ends | None]:
        """Return limits of the ROC curve, and where precisions are asked for of the share of positives too.

        They hold where those of shares do: of each class above edges, and of positives. Each has its part of
        the miss.
        """
        (noise,), n = result.parts, result.n
        edges, is_precision = self.merged(len(noise.noisy) // 2), self.formula is formulas.average_precision
        bins = edges.size - 1
        shares = 2 * len(bands.edges_of_limits(bins)) + is_precision
        each, share = partial(limits_of, miss=miss / shares), None
        if is_precision:
            share = each(count_limits.noisy_ratio(noise, range(bins, 2 * bins), range(bins), n))
        return bands.roc_limits(noise, n, edges, each), share

    def _noted(self, ends: Ends, result: AnyResult, of_order: str, *, is_proved: bool) -> Limits:
        limits, is_ordered = Limits(*ends).within(0.0, 1.0), self.ties == bands.ORDERED
        notes = (
            None if is_proved else APPROXIMATE,
            _ORDERED if is_ordered else None,
            self.coarse_note(self.counts(result.released)) or limits.note,
            of_order if is_ordered else None,
        )
        return limits._replace(note=" ".join(filter(None, notes)))

    def band(self, result: AnyResult, asked: PopulationQuestion) -> RocBand:
        """Return the band of the ROC curve among all people, for scores in their public bins."""
        lines, _ = self._lines_of_people(result, asked)
        return RocBand(*lines, asked.confidence, f"The ROC curve of the scores in bins {POPULATION_NOTE}")

    def precision_band(self, result: AnyResult, asked: PopulationQuestion) -> PrecisionRecallBand:
        """Return the band of the precision-recall curve among all people, where precisions are asked for."""
        lines, share = self._lines_of_people(result, asked)
        assert share is not None
        about = f"The precision-recall curve of the unbinned scores {POPULATION_NOTE}"
        return PrecisionRecallBand(*bands.precisions_between(*lines, share), asked.confidence, about)

    def _lines_of_people(self, result: AnyResult, asked: PopulationQuestion) -> tuple[Lines, Ends | None]:
        """Return sure limits among all people; see `_lines`."""
        check_records(result, asked.metric)
        return self._lines(result, count_limits.edge_limits, asked.miss)

    def merged(self, columns: int) -> Floats:
        """Return the edges of so many bins."""
        return self.edges[:: (self.edges.size - 1) // columns]

    def counts(self, released: ReleasedNumbers) -> ScoreCounts:
        """Return the plausible counts of released ones, with these and the size of their noise."""
        (values,), epsilon = released.values, released.epsilon / released.most_records
        noisy, cells = tables.saturated_counts(values).reshape(2, -1), ((len(values), Fraction(1)),)
        negative, positive = tables.plausible_counts(values, cells, released.public_n).reshape(2, -1)
        private_n = released.neighboring.private_n
        noise = tables.noise_of_cells(cells, epsilon, self.units, private_n=private_n, is_partition=True)
        told = NoisyCounts((), noise.rates, noise.in_sum, self.units)
        return ScoreCounts(self.merged(negative.size), negative, positive, noisy, told.expected)


def check_records(result: AnyResult, metric: str) -> None:
    """Raise where each person counts once: the law of a count of persons is not known."""
    if result.parts[0].units > 1:
        raise ValueError(_NO_PERSONS.format(metric))


def binned_calibration_band(
    result: AnyResult, counts: ScoreCounts, asked: PopulationQuestion, n_bins: int | None
) -> CalibrationBand:
    """Return the band of the calibration curve among all people, that a table of probabilities tells.

    Parameters
    ----------
    result : Result
        The noisy counts.
    counts : ScoreCounts
        The plausible ones.
    asked : PopulationQuestion
        The confidence.
    n_bins : int or None
        Number of even bins, where the shares have sure limits; None: the released bins.
    """
    (noise,), n, size = result.parts, result.n, counts.negative.size
    least, most = (np.tile(one, 2) for one in (counts.ends[:-1], counts.ends[1:]))
    is_positive, of_cells = np.repeat([False, True], size), np.r_[counts.negative, counts.positive]
    every = BinnedCells(noise, of_cells, np.tile(np.arange(size), 2), is_positive, least, most, size)
    if n_bins is None:
        return bands.calibration_band(every, counts.middles, asked, n, APPROXIMATE)
    places, records = formulas.even_bins(counts, n_bins)
    here, prob_pred = formulas.are_shown(records), bands.middles(n_bins)
    prob_pred[here] = formulas.calibration(counts, n_bins).prob_pred
    lower, upper = np.zeros(n_bins), np.ones(n_bins)
    for place in np.flatnonzero(here):
        inside = np.flatnonzero(places == place)
        share = count_limits.noisy_ratio(noise, (size + inside).tolist(), inside.tolist(), n)
        lower[place], upper[place] = count_limits.ratio_limits(share, asked.miss / n_bins)
    cells = replace(every, place=np.tile(places, 2), bins=n_bins)
    return bands.calibration_band(cells, prob_pred, asked, n, _OF_GAPS, (lower, upper), here)


def score_query(
    formula: Callable[[ScoreCounts], Any], shape: Shape, *, labels: Any, pos_label: Any, edges: Any, bins: Any
) -> Query:
    """Return the query of a result that follows from a table of scores."""
    classes = formulas.two_classes(labels, pos_label, shape.arguments[1], "y_score")
    finest = finest_edges(edges)
    columns, size = as_whole(bins), finest.size - 1
    if edges is not None:
        if bins is not None:
            raise ValueError("bins cannot be used with edges, which say how many there are.")
        columns = size
    elif bins is not None and columns not in _POWERS:
        raise ValueError(f"bins must be None or one of {_POWERS}, so that bins nest.")
    table = ScoreTable(finest, formula, classes, units=shape.units)
    block = partial(probability_block, outside=_OUTSIDE) if edges is None else float_block
    count = partial(counted, classes=classes, edges=finest, read=partial(block, name="y_score"))
    cells = ((2 * size, Fraction(1)),)
    part = TableOf(cells, True, count, shape.units, finest=size, columns=columns)
    return Query((part,), partial(labels_and_scores, columns=classes, name="y_score"), table)


MOST_BINS = 1000


def even_edges(n_bins: int) -> Floats:
    """Return the edges between even bins of [0, 1], as scikit-learn has them."""
    return np.linspace(0.0, 1.0, n_bins + 1)[1:-1]


@dataclass(frozen=True)
class SoftBins:
    """Even bins of [0, 1]: a record counts for a part t at the upper end of its bin, for 1 - t at the lower.

    A `Query` calls it to make the curve.

    Parameters
    ----------
    n_bins : int
        Public number of bins.
    steps : int, default=FINENESS
        Of how many steps a record is; where each person counts once, each unit of a record.

    Notes
    -----
    The two ends tell the mean score of a bin, and together how many records are in it: 4 cells for each bin,
    2 classes times 2 ends. **Privacy.** In steps of a lattice a record adds t and 1 - t to two cells, which
    are 1 together: with that unit it is as if it were in one cell, and the table is a `TableOf` whose
    noise may have the sum 0. A record of several units adds these together, and so does each of them.

    Middles of bins in place of mean scores would need half the cells, but they are wrong: most scores of a
    bin lie near one end of it.
    """

    n_bins: int
    steps: int = FINENESS

    @property
    def cells(self) -> Cells:
        """The weight of a step, for each cell."""
        return ((4 * self.n_bins, Fraction(1, self.steps)),)

    def query(self, shape: Shape, *, labels: Any, pos_label: Any) -> Query:
        """Return the query of a calibration curve."""
        classes = formulas.two_classes(labels, pos_label, shape.arguments[1], "y_prob")
        bins = replace(self, steps=-(-FINENESS // shape.units))  # all steps of a person fit a block's sums
        part = TableOf(bins.cells, True, partial(bins.count, classes=classes), shape.units)
        return Query((part,), partial(labels_and_scores, columns=classes, name="y_prob"), bins)

    def note(self, result: AnyResult) -> str | None:
        """Return what to say if limits of the noise of a share that is shown are too far apart: `WIDEST`."""
        noise, records = result.parts[0], self._ends(result.released).sum(axis=(0, 1))
        here = records[formulas.are_shown(records)]
        added = math.sqrt(2) * noise.expected / self.steps  # of two ends
        few = tables.too_few(added, here)
        return tables.few_records(added, here, few, noise.units) if few.any() else None

    def band(self, result: AnyResult, asked: PopulationQuestion) -> CalibrationBand:
        """Return the band of the calibration curve among all people."""
        check_records(result, asked.metric)
        noise, released = replace(result.parts[0], units=self.steps), result.released
        counts, prob_pred = self._ends(released), bands.middles(self.n_bins)
        prob_pred[formulas.are_shown(counts.sum(axis=(0, 1)))] = self(released).prob_pred
        end, is_positive, place = np.indices(counts.shape).reshape(3, -1)
        scores = (place + end) / self.n_bins
        cells = BinnedCells(noise, counts.ravel(), place, is_positive == 1, scores, scores, self.n_bins)
        note = " ".join(filter(None, (APPROXIMATE, self.note(result))))
        return bands.calibration_band(cells, prob_pred, asked, released.public_n, note)

    def _ends(self, released: ReleasedNumbers) -> Floats:
        """Return the plausible records by end, class and bin."""
        counts = tables.plausible_counts(released.values[0], self.cells, released.public_n)
        return counts.reshape(2, 2, self.n_bins) / self.steps

    def __call__(self, released: ReleasedNumbers) -> CalibrationCurve:
        """Return the curve of what is released."""
        low, high = self._ends(released)
        records, lower = (low + high).sum(axis=0), np.arange(self.n_bins) / self.n_bins
        scores = records * lower + high.sum(axis=0) / self.n_bins
        return formulas.shown(records, (low + high)[1], scores)

    def count(self, records: Records, *, classes: LabelColumns) -> Integers:
        """Return the counts of the cells, in steps: by end, class and bin."""
        return tables.counts_of_cells(self._ends_of_blocks(records, classes), 4 * self.n_bins)

    def _ends_of_blocks(self, records: Records, classes: LabelColumns) -> Iterator[tuple[Any, Floats]]:
        """Yield the cells of the lower ends, with the steps of a block of records, then of the upper ends."""
        read = partial(probability_block, name="y_prob")
        for is_positive, scores, units in formulas.blocks_of_scores(records, classes, read):
            bins = np.searchsorted(even_edges(self.n_bins), scores)
            steps = self.steps * (1 if units is None else units)
            upper = np.rint(np.clip(scores * self.n_bins - bins, 0.0, 1.0) * steps)
            lower_cells = bins + self.n_bins * is_positive
            yield lower_cells, steps - upper
            yield lower_cells + 2 * self.n_bins, upper
