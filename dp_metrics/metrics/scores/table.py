"""Tables of scores: how many records of either class lie in each public bin, and what follows from that."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.floats import Floats
from dp_metrics.inputs.options import as_whole, check_edges
from dp_metrics.inputs.shape import Records, Shape
from dp_metrics.mechanisms._base import Limits, Noise
from dp_metrics.mechanisms.geometric import expected_noise
from dp_metrics.metrics.scores.area_limits import (
    ANY_ORDER,
    BINNED,
    ORDERED,
    Ties,
    area_between,
    area_limits,
    half_of_tied,
    precision_between,
    precision_within_bins,
)
from dp_metrics.metrics.scores.bands import (
    BinnedCells,
    CalibrationBand,
    RatioLimits,
    RocBand,
    calibration_band,
    edges_of_limits,
    roc_limits,
    share_limits,
)
from dp_metrics.metrics.scores.curve_formulas import (
    RocCurve,
    ScoreCounts,
    area_under_roc,
    average_precision,
)
from dp_metrics.metrics.scores.two_classes import TwoClasses, check_unit
from dp_metrics.release.interval import Interval
from dp_metrics.release.noise import SHOWN, CountsNoise, as_floats, far_apart, few_records
from dp_metrics.release.parts.count_table import check_cells, plausible_counts
from dp_metrics.release.parts.nested_table import MOST_COLUMNS, NestedOf, NestedTable
from dp_metrics.release.plan import Plan
from dp_metrics.release.ratio_limits import NoisyRatio, RatioCells, edge_limits, noise_limits, noisy_ratio
from dp_metrics.release.released import APPROXIMATE, POPULATION_NOTE, PopulationQuestion, ReleasedNumbers

_LIMITED: Mapping[Any, str] = {
    area_under_roc: "area under the ROC curve",
    average_precision: "average precision",
}
"""What has limits, which are those of the scores, not of their bins."""

_CLEAR = 100.0  # times the noise of its size: of classes as large limits are closer than `WIDEST`
_COARSE = 0.05  # with more, bins say too little
_ORDERED = "Assumes that within bins positives do not rank below negatives on average."
_DIGITS = 2.0**30  # rounding makes the edges the same numbers whatever library computes the cosine
_OUTSIDE = (
    "y_score has values outside [0, 1]: pass edges=[...], public edges of bins for such scores; or, for "
    "areas by group, partial(private_roc_auc_score, mechanism='hazard'), which takes any scores."
)
_POWERS = tuple(2**power for power in range(1, MOST_COLUMNS.bit_length()))


@dataclass(frozen=True, eq=False)
class ScoreBins:
    """Public bins of scores: a bin holds the scores from its lower edge up to below its upper one.

    Parameters
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Strictly increasing: the finest bins. Outside of them scores are counted in the first or last bin.
    is_unit : bool
        Whether these are the usual bins of [0, 1], of which neighbours may be merged, and other scores are
        refused.
    """

    edges: Floats
    is_unit: bool

    @classmethod
    def of(cls, edges: Any) -> Self:
        """Return the bins with the edges that a caller gives, or the usual ones.

        Half of a turn of a cosine in even steps: between even in the probability and even in its logit.
        """
        given = check_edges(edges)
        if given is not None:
            check_cells(2 * (given.size - 1), "The table of two classes by these edges", "Pass fewer edges.")
            return cls(given, False)
        steps = (1.0 - np.cos(np.linspace(0.0, np.pi, MOST_COLUMNS + 1))) / 2.0
        return cls(np.rint(steps * _DIGITS) / _DIGITS, True)

    @property
    def size(self) -> int:
        """Number of the finest bins."""
        return int(self.edges.size) - 1

    def columns(self, bins: Any) -> int | None:
        """Return the number of bins to release; None to choose by the public size and epsilon."""
        if not self.is_unit:
            if bins is not None:
                raise ValueError("bins cannot be used with edges, which say how many there are.")
            return self.size
        if bins is not None and as_whole(bins) not in _POWERS:
            raise ValueError(f"bins must be None or one of {_POWERS}, so that bins nest.")
        return as_whole(bins)

    def merged(self, columns: int) -> Floats:
        """Return the edges of so many bins."""
        return self.edges[:: self.size // columns]


def counted(records: Records, *, classes: TwoClasses, bins: ScoreBins) -> NDArray[np.int64]:
    """Return how many records lie in each of the finest bins: the negative, then the positive class."""
    table = np.zeros(2 * bins.size, dtype=np.int64)
    inner = bins.edges[1:-1]
    for is_positive, scores in classes.blocks(records, "y_score"):
        if bins.is_unit:
            check_unit(scores, _OUTSIDE)
        cells = np.searchsorted(inner, scores, side="right") + bins.size * is_positive
        table += np.bincount(cells, minlength=table.size)
    return table.reshape(2, bins.size)


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """What a plan releases of a table of scores, and what it makes of that; a `Plan` calls it.

    Parameters
    ----------
    bins : ScoreBins
        The public bins.
    columns : int or None
        How many of them are released; None: as many as the public size and epsilon deserve.
    formula : callable
        The result, of `ScoreCounts`.
    classes : TwoClasses
        The public labels, and which of them is the positive one.
    ties : (float, float), default=ANY_ORDER
        What limits of an area assume of the order within bins.
    is_sure : bool, default=True
        Whether limits of the noise are proved.
    """

    bins: ScoreBins
    columns: int | None
    formula: Callable[[ScoreCounts], Any]
    classes: TwoClasses
    ties: Ties = ANY_ORDER
    is_sure: bool = True

    def query(self, table: NDArray[np.int64]) -> NestedTable:
        """Return what is known of the records, given the finest table."""
        return NestedTable(table, self.columns)

    def __call__(self, released: ReleasedNumbers) -> Any:
        """Return the result of what is released."""
        return self.formula(self.counts(released))

    def note(self, parts: Sequence[Noise], released: ReleasedNumbers) -> str | None:
        """Return what to say if noise may have moved the area far, or the bins are coarse."""
        return self.note_of(_counts_noise(parts), self.counts(released))

    def note_of(self, noise: CountsNoise, counts: ScoreCounts) -> str | None:
        """Return that of these counts; see `WIDEST`.

        The area of the binned scores tells of an average precision and of curves too: noise moved the one
        and the other about as far. How scores lie within bins is no noise.
        """
        added, smaller = (
            noise.expected * math.sqrt(counts.negative.size),
            self.rests_on(counts).min(keepdims=True),
        )
        if _CLEAR * added <= smaller:
            return self.coarse_note(counts)
        found = area_limits(noise, (1 - SHOWN) / 2, ties=BINNED, among_people=False)
        if found is None:
            return few_records(added, smaller, True)
        return far_apart(*found) or self.coarse_note(counts)

    def between(self, counts: ScoreCounts) -> tuple[float, float]:
        """Return between which values the area lies by the counts, however scores lie in bins.

        If the result is the average precision, then that. Curves have the area below them.
        """
        if self.formula is average_precision:
            return precision_within_bins(counts)
        area, half = area_under_roc(counts), half_of_tied(counts)
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

    def limits(self, parts: Sequence[Noise], released: ReleasedNumbers, miss: float) -> Limits:
        """Return limits of the area or the average precision of these records' scores.

        Raises
        ------
        ValueError
            If the result is a curve.
        """
        self._check_limited("no limits of its noise here")
        quick = None if self.is_sure else self._quick(parts, miss / 2, among_people=False)
        ends = quick or self._of_records(parts, released, miss)
        return self._noted(ends, released, is_proved=quick is None)

    def population(
        self, parts: Sequence[Noise], released: ReleasedNumbers, asked: PopulationQuestion
    ) -> Interval:
        """Return the interval of the area or the average precision among all people.

        Raises
        ------
        ValueError
            If the result is a curve.
        """
        self._check_limited("no interval for all people")
        quick = of_these = None
        if not asked.is_sure:
            quick, of_these = (self._quick(parts, asked.miss, among_people=kind) for kind in (True, False))
        people = quick or self._by_shares(parts, released, self._sure(released, asked))
        records = of_these or self._of_records(parts, released, 2 * asked.miss)
        # limits among people that are within those of the noise would puzzle, and the hull of both holds too
        ends = min(people[0], records[0]), max(people[1], records[1])
        found = self._noted(ends, released, is_proved=quick is None)
        return asked.interval(found.lower, found.upper, self(released), found.note, of=f"The {self.about}")

    def _quick(
        self, parts: Sequence[Noise], miss: float, *, among_people: bool
    ) -> tuple[float, float] | None:
        """Return limits that are not proved, or None: an average precision has none."""
        if self.formula is not area_under_roc:
            return None
        return area_limits(_counts_noise(parts), miss, ties=self.ties, among_people=among_people)

    def _of_records(
        self, parts: Sequence[Noise], released: ReleasedNumbers, miss: float
    ) -> tuple[float, float]:
        """Return proved limits for these records."""
        each = miss / (2 * self._shares(released))

        def limits_of(ratio: NoisyRatio) -> tuple[float, float]:
            return noise_limits(ratio, each, each)

        return self._by_shares(parts, released, limits_of)

    def _by_shares(
        self, parts: Sequence[Noise], released: ReleasedNumbers, limits_of: RatioLimits
    ) -> tuple[float, float]:
        """Return limits that hold where those of shares hold: of each class above edges, and of positives."""
        lines = self._lines(parts, released, limits_of)
        if self.formula is area_under_roc:
            return area_between(*lines, self.ties)
        noise, bins = _counts_noise(parts), self._edges(released).size - 1
        positives = RatioCells([*range(bins, 2 * bins)], [*range(bins)], (1.0, 1.0))
        return precision_between(*lines, limits_of(noisy_ratio(noise, positives, released.public_n)))

    def _noted(self, ends: tuple[float, float], released: ReleasedNumbers, *, is_proved: bool) -> Limits:
        limits = Limits(*ends).within(0.0, 1.0)
        notes = (
            None if is_proved else APPROXIMATE,
            _ORDERED if self.ties == ORDERED else None,
            self.coarse_note(self.counts(released)) or limits.note,
        )
        return limits._replace(note=" ".join(filter(None, notes)))

    def band(self, parts: Sequence[Noise], released: ReleasedNumbers, asked: PopulationQuestion) -> RocBand:
        """Return the band of the ROC curve among all people, for scores in their public bins."""
        lines = self._lines(parts, released, self._sure(released, asked))
        return RocBand(*lines, asked.confidence, f"The ROC curve of the scores in bins {POPULATION_NOTE}")

    def calibration_band(
        self, parts: Sequence[Noise], released: ReleasedNumbers, asked: PopulationQuestion
    ) -> CalibrationBand:
        """Return the band of the calibration curve among all people, with a bin for each of the table."""
        bins = self._edges(released).size - 1
        cells = self.cells(released, np.arange(bins))
        shares = share_limits(_counts_noise(parts), cells, bins, asked.miss / bins)
        middles = self.counts(released).middles
        return self.band_of(parts, released, asked, cells, middles, shares, APPROXIMATE)

    def cells(self, released: ReleasedNumbers, places: NDArray[np.intp]) -> BinnedCells:
        """Return which records the cells count, of probabilities, given which released bin lies in which."""
        edges = self._edges(released).copy()
        edges[0], edges[-1] = 0.0, 1.0  # scores beyond are counted in the first and the last bin
        is_positive = np.repeat([False, True], places.size)
        return BinnedCells(np.tile(places, 2), is_positive, np.tile(edges[:-1], 2), np.tile(edges[1:], 2))

    def band_of(
        self,
        parts: Sequence[Noise],
        released: ReleasedNumbers,
        asked: PopulationQuestion,
        cells: BinnedCells,
        prob_pred: Floats,
        shares: tuple[Floats, Floats],
        note: str,
    ) -> CalibrationBand:
        """Return the band of bins with these limits of the shares of positives."""
        counts = self.counts(released)
        of_cells = np.concatenate([counts.negative, counts.positive])
        return calibration_band(
            _counts_noise(parts), cells, of_cells, prob_pred, shares, asked, released.public_n, note
        )

    def _sure(self, released: ReleasedNumbers, asked: PopulationQuestion) -> RatioLimits:
        each = asked.miss / self._shares(released)
        return lambda ratio: edge_limits(ratio, each)

    def _shares(self, released: ReleasedNumbers) -> int:
        """Return how many shares are limited: of each class at each edge, and perhaps that of positives."""
        of_curve = 2 * len(edges_of_limits(self._edges(released).size - 1))
        return of_curve + (self.formula is average_precision)

    def _edges(self, released: ReleasedNumbers) -> Floats:
        return self.bins.merged(len(released.values[0]) // 2)

    def _lines(
        self, parts: Sequence[Noise], released: ReleasedNumbers, limits_of: RatioLimits
    ) -> tuple[RocCurve, RocCurve]:
        return roc_limits(_counts_noise(parts), released.public_n, self._edges(released), limits_of)

    def _check_limited(self, nothing: str) -> None:
        if self.formula not in _LIMITED:
            raise ValueError(
                f"These curves have {nothing}: use the area under the ROC curve, the average precision, or "
                "band()."
            )

    def counts(self, released: ReleasedNumbers) -> ScoreCounts:
        """Return the plausible counts of released ones, with these and the size of their noise."""
        noisy = as_floats(released.values[0])
        columns, cells = noisy.size // 2, ((noisy.size, Fraction(1)),)
        negative, positive = plausible_counts(released.values[0], cells, released.public_n).reshape(
            2, columns
        )
        rate = released.epsilon / (1 if released.neighboring.private_n else 2)  # of a `CountTable`
        noise = expected_noise(rate / released.most_records)
        return ScoreCounts(self.bins.merged(columns), negative, positive, noisy.reshape(2, columns), noise)


def _counts_noise(parts: Sequence[Noise]) -> CountsNoise:
    (noise,) = parts
    assert isinstance(noise, CountsNoise)
    return noise


def score_plan(
    formula: Callable[[ScoreCounts], Any],
    shape: Shape,
    *,
    labels: Any,
    pos_label: Any,
    edges: Any,
    bins: Any,
) -> Plan:
    """Return the plan of a result that follows from a table of scores."""
    classes, known = TwoClasses.of(labels, pos_label), ScoreBins.of(edges)
    table = ScoreTable(known, known.columns(bins), formula, classes)
    part = NestedOf(partial(counted, classes=classes, bins=known), 2, known.size, table.columns)
    return classes.plan(shape, name="y_score", part=part, result=table)
