"""Private measures of calibration: are records with a probability of 0.8 positive 8 times out of 10."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Unpack

from numpy.typing import ArrayLike

from dp_metrics.inputs.options import check_count
from dp_metrics.inputs.shape import Records
from dp_metrics.mechanisms._base import Limits, Noise
from dp_metrics.mechanisms.geometric import SumsNoise
from dp_metrics.metrics._metric import CountSettings, RankSettings, asks, private
from dp_metrics.metrics.scores.curve_formulas import CalibrationCurve
from dp_metrics.metrics.scores.soft_bins import MOST_BINS, OUTSIDE, SoftBins, even_edges
from dp_metrics.metrics.scores.two_classes import OF_SCORES, TwoClasses, check_unit
from dp_metrics.release.noise import SHOWN, as_floats, far_apart, in_words
from dp_metrics.release.parts.calibration_error import CalibrationOf
from dp_metrics.release.released import Monotone, ReleasedNumbers, only
from dp_metrics.sensitivity.calibration_bounds import calibration_excess


@private("sklearn.calibration.calibration_curve", **OF_SCORES)
def private_calibration_curve(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    epsilon: float,
    pos_label: Any = None,
    n_bins: int = 5,
    strategy: str = "uniform",
    labels: ArrayLike | None = None,
    **settings: Unpack[CountSettings],
) -> CalibrationCurve:
    """Calibration curve (share of positives by probability) with epsilon-differential privacy.

    Parameters
    ----------
    n_bins : int, default=5
        Public number of even bins of [0, 1], up to 1,000. The noise of each does not grow with their number,
        but the records in each become fewer.
    strategy : {"uniform"}, default="uniform"
        scikit-learn's "quantile" is refused: quantiles of the scores are private.

    Returns
    -------
    CalibrationCurve
        A named tuple (prob_true, prob_pred), as scikit-learn's: for each bin the share of positive records
        and the mean probability. Bins with no record, by the noisy counts, are left out: those with fewer
        than half a record.

    See Also
    --------
    PrivateResult.band : Limits of each bin, and what chance alone gives a calibration error.
    private_expected_calibration_error : One number, far more accurate than what the curve tells.
    ScoreSummary : One release from which all curves and areas follow, and from pieces.

    Notes
    -----
    In its bin, each record counts for one part at the lower end and for the rest at the upper end, by where
    its probability lies: four noisy counts for each bin tell both of its coordinates.
    ``CalibrationDisplay(prob_true, prob_pred, None).plot()`` draws the curve.

    References
    ----------
    M. Hardt and K. Talwar, "On the Geometry of Differential Privacy", 2010, doi:10.1145/1806689.1806786, for
    noise in the norm of the sensitivity.

    Examples
    --------
    >>> from dp_metrics import private_calibration_curve
    >>> y_true, y_prob = [0] * 450 + [1] * 50 + [0] * 100 + [1] * 400, [0.1] * 500 + [0.8] * 500
    >>> prob_true, prob_pred = private_calibration_curve(y_true, y_prob, epsilon=1.0, n_bins=2)
    >>> bool((abs(prob_true - prob_pred) < 0.2).all())
    True
    """
    if not (isinstance(strategy, str) and strategy == "uniform"):  # type: ignore[redundant-expr]
        raise ValueError("strategy must be 'uniform': quantiles of the scores are private.")
    bins = SoftBins(check_count(n_bins, "n_bins", MOST_BINS))
    return asks(bins.plan, classes=TwoClasses.of(labels, pos_label))


_MUCH = 0.6  # of the error: without so much, in squares, four fifths of it are left


@dataclass(frozen=True)
class BinnedError(Monotone):
    """The calibration error over bins, and what chance alone may give it.

    Parameters
    ----------
    n_bins : int
        Public number of bins.

    Notes
    -----
    The sum of a bin of m records of a calibrated model has a variance of at most m / 4. If it is normal, its
    mean size is sqrt(2 / pi) times the deviation; and sums of square roots are largest for bins of one size.
    So n times the error is at most sqrt(n_bins n / (2 pi)) on average. If up to k records are those of one
    person, the variance is at most k times as large.
    """

    n_bins: int = 1

    def limits(self, parts: Sequence[Noise], released: ReleasedNumbers, miss: float) -> Limits:
        """Return limits of the error of these records, with what chance may give as a note."""
        limits, most = super().limits(parts, released, miss), self._by_chance(parts, released)
        told = "" if most is None else f"{self._told(most, parts, released)}."
        return limits._replace(note=" ".join(filter(None, (limits.note, told))))

    def note(self, parts: Sequence[Noise], released: ReleasedNumbers) -> str | None:
        """Return what to say if limits of the noise are too far apart, or chance may give much of it."""
        with contextlib.suppress(ValueError):
            lower, upper, missing = super().limits(parts, released, 1 - SHOWN)
            if not missing and (apart := far_apart(lower, upper)):
                return apart
        most, error = self._by_chance(parts, released), float(self(released))
        if most is None or most <= _MUCH * error:
            return None
        left = math.sqrt(max(error * error - most * most, 0.0))
        told = self._told(most, parts, released)
        return (
            f"Biased upwards: {told[0].lower()}{told[1:]}, without which this may be as low as {left:.2g}. "
            "band().error(this) of the result of a calibration curve tells how much chance gives."
        )

    def _told(self, most: float, parts: Sequence[Noise], released: ReleasedNumbers) -> str:
        n = in_words(self._records(parts, released) or 0.0)
        several = "" if released.most_records == 1 else f", up to {released.most_records} of one person"
        counted = f"{self.n_bins} bins, {n} records{several}"
        return f"Chance alone gives a calibrated model up to about {most:.2g} ({counted})"

    def _by_chance(self, parts: Sequence[Noise], released: ReleasedNumbers) -> float | None:
        """Return the most that chance alone gives on average; None where the number of records is unknown."""
        n = self._records(parts, released)
        if n is None:
            return None
        return min(math.sqrt(self.n_bins * released.most_records / (2 * math.pi * n)), 1.0)

    def _records(self, parts: Sequence[Noise], released: ReleasedNumbers) -> float | None:
        """Return the number of records, or of noisy ones; at least 1."""
        (part,) = parts
        if released.public_n is not None:
            return max(float(released.public_n), 1.0)
        if not isinstance(part, SumsNoise):
            return None
        return max(float(as_floats(part.noisy).sum()) / part.fineness, 1.0)


def _excess(records: Records, *, n_bins: int, classes: TwoClasses) -> tuple[tuple[int, ...], int]:
    """Return the sums of labels minus scores by bin, and the number of records."""

    def checked() -> Any:
        for is_positive, scores in classes.blocks(records, "y_proba"):
            check_unit(scores, OUTSIDE.format("y_proba"))
            yield is_positive, scores

    return calibration_excess(checked(), even_edges(n_bins))


@private(greater_is_better=False, mechanism="geometric", **OF_SCORES)
def private_expected_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    epsilon: float,
    pos_label: Any = None,
    n_bins: int = 10,
    labels: ArrayLike | None = None,
    **settings: Unpack[RankSettings],
) -> float:
    """Calibration error (expected over bins) with epsilon-differential privacy for the test records.

    The distance between the share of positives and the mean probability in a bin, averaged over all bins with
    their numbers of records as weights.

    Parameters
    ----------
    n_bins : int, default=10
        Public number of even bins of [0, 1], up to 1,000. The noise does not depend on it.

    Returns
    -------
    float
        The private error, in [0, 1].

    See Also
    --------
    private_calibration_curve : Where the error lies.
    private_brier_score_loss : A proper loss: a model that knows nothing can have no calibration error.

    Notes
    -----
    One record moves n times the error by at most 2, whatever the number of bins: noise of size
    2 / (n epsilon), far less than that of a curve. The sums of all bins are exact.

    Chance alone gives a calibrated model an error, of up to about sqrt(n_bins / (2 pi n)): `noise_interval`
    of the result says so, and its `note` where that is much of it. How much depends on the records of each
    bin, which are not released: the ``band().error()`` of a curve's result tells it, and what is left.

    References
    ----------
    M. P. Naeini, G. F. Cooper and M. Hauskrecht, "Obtaining Well Calibrated Probabilities Using Bayesian
    Binning", 2015, doi:10.1609/aaai.v29i1.9602.

    Examples
    --------
    >>> from dp_metrics import private_expected_calibration_error
    >>> y_true, y_proba = [0] * 450 + [1] * 50 + [0] * 100 + [1] * 400, [0.15] * 500 + [0.75] * 500
    >>> 0 <= private_expected_calibration_error(y_true, y_proba, epsilon=1.0) < 0.1  # exactly 0.05
    True
    """
    classes = TwoClasses.of(labels, pos_label)
    bins = check_count(n_bins, "n_bins", MOST_BINS)
    part = CalibrationOf(partial(_excess, n_bins=bins, classes=classes))
    return asks(classes.plan, name="y_proba", part=part, result=BinnedError(only, n_bins=bins))
