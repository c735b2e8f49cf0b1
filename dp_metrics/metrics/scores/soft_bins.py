"""The table of a calibration curve: labels by bin of the score, and where in the bin the scores lie."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.floats import Floats
from dp_metrics.inputs.shape import Records, Shape
from dp_metrics.mechanisms._base import Noise
from dp_metrics.metrics.scores.bands import BinnedCells, CalibrationBand, calibration_band, share_limits
from dp_metrics.metrics.scores.curve_formulas import CalibrationCurve, are_shown, shown
from dp_metrics.metrics.scores.two_classes import TwoClasses, check_unit
from dp_metrics.release.noise import CountsNoise, few_records, too_few
from dp_metrics.release.parts.count_table import Cells, TableOf, plausible_counts
from dp_metrics.release.plan import Plan
from dp_metrics.release.released import APPROXIMATE, PopulationQuestion, ReleasedNumbers
from dp_metrics.sensitivity.noisy_sums import FINENESS

MOST_BINS = 1000
OUTSIDE = "{} should contain values in [0, 1] only: probabilities, as predict_proba gives them, not labels."


def even_edges(n_bins: int) -> Floats:
    """Return the edges between even bins of [0, 1], as scikit-learn has them."""
    edges: Floats = np.linspace(0.0, 1.0, n_bins + 1)[1:-1]
    return edges


@dataclass(frozen=True)
class SoftBins:
    """Even bins of [0, 1]: a record counts for a part t at the upper end of its bin, for 1 - t at the lower.

    A `Plan` calls it to make the curve.

    Parameters
    ----------
    n_bins : int
        Public number of bins.

    Notes
    -----
    The two ends tell the mean score of a bin, and together how many records are in it: 4 cells for each bin,
    2 classes times 2 ends. **Privacy.** In steps of a lattice a record adds t and 1 - t to two cells, which
    are 1 together: with that unit it is as if it were in one cell, and the table is a `CountTable` whose
    noise may have the sum 0.

    Middles of bins in place of mean scores would need half the cells, but they are wrong: most scores of a
    bin lie near one end of it.
    """

    n_bins: int

    @property
    def cells(self) -> Cells:
        """The weight of a step, for each cell."""
        return ((4 * self.n_bins, Fraction(1, FINENESS)),)

    def plan(self, shape: Shape, classes: TwoClasses) -> Plan:
        """Return the plan of a calibration curve."""
        part = TableOf(self.cells, True, partial(_counted, bins=self, classes=classes))
        return classes.plan(shape, name="y_prob", part=part, result=self)

    def counts(self, records: Records, classes: TwoClasses) -> NDArray[np.int64]:
        """Return the counts of the cells, in steps: by end, class and bin."""
        table = np.zeros((2, 2, self.n_bins), dtype=np.int64)
        for is_positive, scores in classes.blocks(records, "y_prob"):
            check_unit(scores, OUTSIDE.format("y_prob"))
            table += self._added(is_positive, scores)
        return table.ravel()

    def _added(self, is_positive: NDArray[np.bool_], scores: Floats) -> NDArray[np.int64]:
        bins = np.searchsorted(even_edges(self.n_bins), scores)
        part = np.clip(scores * self.n_bins - bins, 0.0, 1.0)
        upper = np.rint(part * FINENESS)
        rows, size = bins + self.n_bins * is_positive, 2 * self.n_bins
        # the sums of a block are whole numbers below 2^53
        sums = [np.bincount(rows, steps, minlength=size) for steps in (FINENESS - upper, upper)]
        return np.array(sums).astype(np.int64).reshape(2, 2, self.n_bins)

    def note(self, parts: Sequence[Noise], released: ReleasedNumbers) -> str | None:
        """Return what to say if limits of the noise of a share that is shown are too far apart: `WIDEST`."""
        (noise,) = parts
        assert isinstance(noise, CountsNoise)
        low, high = self._ends(released)
        records = (low + high).sum(axis=0)
        here, added = records[are_shown(records)], math.sqrt(2) * noise.expected / FINENESS  # of two ends
        few = too_few(added, here)
        return few_records(added, here, few) if few.any() else None

    def band(
        self, parts: Sequence[Noise], released: ReleasedNumbers, asked: PopulationQuestion
    ) -> CalibrationBand:
        """Return the band of the calibration curve among all people."""
        (noise,) = parts
        assert isinstance(noise, CountsNoise)
        counts, prob_pred = self._ends(released), (np.arange(self.n_bins) + 0.5) / self.n_bins
        prob_pred[are_shown(counts.sum(axis=(0, 1)))] = self(released).prob_pred
        end, is_positive, place = np.indices(counts.shape).reshape(3, -1)
        scores = (place + end) / self.n_bins
        cells = BinnedCells(place, is_positive == 1, scores, scores, FINENESS)
        shares = share_limits(noise, cells, self.n_bins, asked.miss / self.n_bins)
        note = " ".join(filter(None, (APPROXIMATE, self.note(parts, released))))
        return calibration_band(
            noise, cells, counts.ravel(), prob_pred, shares, asked, released.public_n, note
        )

    def _ends(self, released: ReleasedNumbers) -> Floats:
        """Return the plausible records by end, class and bin."""
        counts = plausible_counts(released.values[0], self.cells, released.public_n)
        ends: Floats = counts.reshape(2, 2, self.n_bins) / FINENESS
        return ends

    def __call__(self, released: ReleasedNumbers) -> CalibrationCurve:
        """Return the curve of what is released."""
        low, high = self._ends(released)
        records, lower = (low + high).sum(axis=0), np.arange(self.n_bins) / self.n_bins
        scores = records * lower + high.sum(axis=0) / self.n_bins
        return shown(records, (low + high)[1], scores)


def _counted(records: Records, *, bins: SoftBins, classes: TwoClasses) -> NDArray[np.int64]:
    return bins.counts(records, classes)
