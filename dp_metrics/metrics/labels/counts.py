"""Metrics of labels: what a plan releases of a confusion matrix, and what it makes of that."""

import contextlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.arrays import check_same_length
from dp_metrics.inputs.floats import Floats
from dp_metrics.inputs.labels import LabelSet
from dp_metrics.inputs.shape import Records, Shape
from dp_metrics.mechanisms._base import Limits, Noise
from dp_metrics.metrics._metric import Metric
from dp_metrics.metrics.labels.label_limits import (
    NO_RATIO,
    agreement_limits,
    combined,
    linear_limits,
    of_two_labels,
    rates_of_two_labels,
    ratio_cells,
)
from dp_metrics.metrics.labels.layouts import Counts, Layout, PartsOf, check_matrix
from dp_metrics.release.interval import Interval
from dp_metrics.release.noise import SHOWN, WIDEST, CountsNoise, few_records, too_few
from dp_metrics.release.parts.count_table import CountTable, TableOf
from dp_metrics.release.plan import Plan
from dp_metrics.release.ratio_limits import NoisyRatio, noise_limits, noisy_ratio, ratio_limits
from dp_metrics.release.released import APPROXIMATE, PopulationQuestion, ReleasedNumbers
from dp_metrics.sensitivity.exact import BLOCK, in_blocks

_CLEAR = 20.0  # times the noise, and a logarithm: from there on limits are closer than `WIDEST`


@dataclass(frozen=True, eq=False)
class Confusion:
    """What a plan releases of a confusion matrix, and what it makes of that.

    A `Plan` calls it to make the result; tables of groups read the parts.

    Parameters
    ----------
    layout : Layout
        Which counts.
    formula : callable
        The metric of `Counts`.
    labels : LabelSet
        The public labels.
    rests_on : callable
        Of `Counts`, the numbers of records that the metric divides by.
    needs_matrix : bool
        Whether no layout but the whole matrix tells enough.
    is_monotone : bool
        Whether the metric rises with each count of right records, and falls with each count of errors.
    parts_of : callable or None
        Of `Counts`, the A and the B of a ratio A / (A + B), or of several; None if it is made otherwise.
    of_ratios : callable or None
        What the metric makes of an array of these ratios: it rises with each. None: it is these ratios.
    are_independent : bool
        Whether these ratios rest on different records.
    is_agreement : bool
        Whether the metric is MCC or kappa, for which `agreement_limits` are proved.
    """

    layout: Layout
    formula: Callable[[Counts], Any]
    labels: LabelSet
    rests_on: Callable[[Counts], Floats]
    needs_matrix: bool = False
    is_monotone: bool = True
    parts_of: PartsOf | None = None
    of_ratios: Callable[[Floats], float] | None = None
    are_independent: bool = False
    is_agreement: bool = False

    def table(self, matrix: NDArray[np.int64]) -> CountTable:
        """Return what is known of the counts, from a confusion matrix."""
        layout = self.layout
        return CountTable(layout.of(matrix), int(matrix.sum()), layout.cells, layout.is_partition)

    def plan(self, _shape: Shape | None = None) -> Plan:
        """Return the plan of the metric, which depends on no form of the records."""
        check_matrix(self.labels.size)
        count = partial(_counts, of=self.layout.of, labels=self.labels)
        part = TableOf(self.layout.cells, self.layout.is_partition, count)
        return Plan((part,), partial(label_codes, labels=self.labels), self)

    def __call__(self, released: ReleasedNumbers) -> Any:
        """Return the metric of what is released."""
        return self.formula(self.layout.counts(released.values[0], released.public_n))

    def note(self, parts: Sequence[Noise], released: ReleasedNumbers) -> str | None:
        """Return what to say if limits of its noise are too far apart; see `WIDEST`.

        Where they are surely close, or where there are none, the sizes of the noise and of what is divided
        by tell.
        """
        (noise,) = parts
        assert isinstance(noise, CountsNoise)
        counts = self.layout.counts(released.values[0], released.public_n)
        records = self.rests_on(counts)
        added = noise.expected * math.sqrt(self.layout.groups)  # the noise of groups is independent
        far = _CLEAR * math.log(40 * max(records.size, 1)) * added
        if not records.size or far <= records.min():
            return None
        few = too_few(added, records)
        # other results have no limits of their own; and nothing may be raised here, after the spend
        if isinstance(self.formula(counts), float | np.ndarray):
            with contextlib.suppress(ValueError):
                lower, upper, _ = self.limits(parts, released, 1 - SHOWN)
                wide = np.ravel(np.subtract(upper, lower) > WIDEST * (2 if self.is_agreement else 1))
                few = wide if wide.size == records.size else (few | (records == records.min())) & wide.any()
        return few_records(added, records, few) if few.any() else None

    def limits(self, parts: Sequence[Noise], released: ReleasedNumbers, miss: float) -> Limits:
        """Return limits of ratios that all hold, or the metric at two corners of the box of the exact counts.

        Raises
        ------
        ValueError
            If the metric may be lower or higher within the box than at these corners.
        """
        (noise,) = parts
        assert isinstance(noise, CountsNoise)
        rates = self._of_two(noise, released.public_n) if self.is_agreement else None
        if rates is not None:
            each = miss / (2 * len(rates))
            shares = [noise_limits(rate, each, each) for rate in rates]
            of_rates = of_two_labels(self.formula)
            return Limits(*agreement_limits(of_rates, shares)).within(-1.0, 1.0)
        if not self.is_monotone:
            raise ValueError(
                "This metric has no limits of its noise here: more right records, or fewer errors, need "
                "not make it larger. Use recall, precision or F1."
            )
        good = self.layout.good
        ratios = self._ratios(self.parts_of, noise, released.public_n)
        if ratios is not None:
            each = miss / (2 * len(ratios))
            of_each = (noise_limits(ratio, each, each) for ratio in ratios)
            return Limits(*self._of_ends(zip(*of_each, strict=True), released)).within(0.0, 1.0)
        low, high, _ = noise.limits_of(good != 0, miss)
        if released.public_n is not None:
            low, high = (np.minimum(end, released.public_n) for end in (low, high))
        worst, best = np.where(good > 0, low, high), np.where(good > 0, high, low)
        with np.errstate(all="ignore"):
            ends = (np.asarray(self.formula(self.layout.read(cells))) for cells in (worst, best))
        lower, upper = ((end if end.ndim else float(end)) for end in ends)
        if np.isnan(lower).any() or np.isnan(upper).any():
            raise ValueError("A metric that may be NaN has no limits: pass zero_division=0.0 or 1.0.")
        return Limits(lower, upper).within(0.0, 1.0)

    def population(
        self, parts: Sequence[Noise], released: ReleasedNumbers, asked: PopulationQuestion
    ) -> Interval:
        """Return the interval of the metric among all people, from the noisy counts as they were drawn.

        Of several ratios each has its part of the miss: all limits hold at once.

        Raises
        ------
        ValueError
            If there is none, with the reason.
        """
        (noise,) = parts
        assert isinstance(noise, CountsNoise)
        ratios, note = self._ratios(self.parts_of, noise, released.public_n), ""
        limits: tuple[Any, Any] | None = None
        # a ratio has no narrower limits than the sure ones
        if not asked.is_sure and isinstance(self(released), float) and not (ratios and not self.of_ratios):
            limits, note = self._approximate(ratios, noise, released.public_n, asked.miss), APPROXIMATE
        if limits is not None:
            # limits among people within those of the noise would puzzle
            with contextlib.suppress(ValueError):
                low, high, _ = self.limits(parts, released, 2 * asked.miss)
                limits = min(limits[0], low), max(limits[1], high)
        if limits is None:
            limits, note = self._sure(ratios, noise, released, asked), ""
        return asked.interval(*limits, self(released), note)

    def _ratios(self, parts_of: PartsOf | None, noise: CountsNoise, n: int | None) -> list[NoisyRatio] | None:
        """Return the noisy counts of each ratio; None if counts of this layout do not tell them."""
        cells = ratio_cells(self.layout, parts_of)
        return None if cells is None else [noisy_ratio(noise, one, n) for one in cells]

    def _of_two(self, noise: CountsNoise, n: int | None) -> list[NoisyRatio] | None:
        """Return the three shares that tell the whole matrix of two labels, if that is released."""
        if self.labels.size != 2 or self.layout.read(np.zeros(self.layout.good.size)).matrix is None:
            return None
        return self._ratios(rates_of_two_labels, noise, n)

    def _of_ends(self, ends: Iterable[tuple[float, ...]], released: ReleasedNumbers) -> tuple[Any, Any]:
        """Return the metric of lower limits of all ratios, and of upper ones."""
        lower, upper = (np.array(end) for end in ends)
        if self.of_ratios is not None:
            return self.of_ratios(lower), self.of_ratios(upper)
        is_array = bool(np.ndim(self(released)))
        return (lower, upper) if is_array else (float(lower[0]), float(upper[0]))

    def _sure(
        self,
        ratios: list[NoisyRatio] | None,
        noise: CountsNoise,
        released: ReleasedNumbers,
        asked: PopulationQuestion,
    ) -> tuple[Any, Any]:
        if ratios is not None:
            each = asked.miss / len(ratios)
            of_each = (ratio_limits(ratio, each, each) for ratio in ratios)
            return self._of_ends(zip(*of_each, strict=True), released)
        rates = self._of_two(noise, released.public_n) if self.is_agreement else None
        if rates is None:
            raise ValueError(
                NO_RATIO.format(asked.metric)
                + (" It may have an approximate one: leave out sure." if asked.is_sure else _TOO_NOISY)
            )
        each = asked.miss / len(rates)
        of_rates = of_two_labels(self.formula)
        return agreement_limits(of_rates, [ratio_limits(rate, each, each) for rate in rates])

    def _approximate(
        self, ratios: list[NoisyRatio] | None, noise: CountsNoise, n: int | None, miss: float
    ) -> tuple[float, float] | None:
        rates = self._of_two(noise, n)
        if rates is not None:
            return combined(of_two_labels(self.formula), rates, miss, is_mean=False)
        if ratios is not None and self.are_independent:
            of_ratios = self.of_ratios
            assert of_ratios is not None
            return combined(lambda *shares: of_ratios(np.array(shares)), ratios, miss, is_mean=True)
        if ratios is not None:  # such limits of F1 over ten labels covered less than 93 %
            return None
        return linear_limits(self.formula, self.layout, noise, n, miss, -1.0 if self.is_agreement else 0.0)


_TOO_NOISY = " An approximate one needs counts far above their noise."


def label_codes(records: Records, *, labels: LabelSet) -> Records:
    """Return true and predicted labels, not yet looked at.

    Raises
    ------
    ValueError
        If the shapes differ or are invalid.
    """
    true, pred = (
        labels.array(array, name, relation=records.relation)
        for array, name in zip(records.arrays, ("y_true", "y_pred"), strict=True)
    )
    check_same_length({"y_true": true, "y_pred": pred}, relation=records.relation)
    return replace(records, arrays=(true, pred))


def confusion_of(records: Records, labels: LabelSet) -> NDArray[np.int64]:
    """Return the confusion matrix of `label_codes`, a row for each true label.

    Raises
    ------
    ValueError
        If a record is invalid.
    """
    size = labels.size
    matrix = np.zeros(size**2, dtype=np.int64)
    rows = max(BLOCK, size**2)  # adding up the cells should not take longer than finding them
    for block, other in zip(*(in_blocks(array, rows) for array in records.arrays), strict=True):
        codes = labels.codes(block, "y_true") * size + labels.codes(other, "y_pred")
        matrix += np.bincount(codes, minlength=size**2)
    return matrix.reshape(size, size)


def _counts(
    records: Records, *, of: Callable[[NDArray[np.int64]], NDArray[np.int64]], labels: LabelSet
) -> NDArray[np.int64]:
    return of(confusion_of(records, labels))


def confusion_for(metric: Metric, options: Mapping[str, Any]) -> Confusion:
    """Return which counts a metric of labels releases, and how it follows from them."""
    confusion = metric.planned(metric.form(), options).postprocess
    assert isinstance(confusion, Confusion)
    return confusion


def _from_unit(x: Floats) -> tuple[Any, ...]:
    """Return labels 0 and 1, all four pairs of them as x grows."""
    quarter = np.minimum(np.floor(x * 4), 3).astype(np.int64)
    return quarter // 2, quarter % 2


OF_COUNTS: Mapping[str, Any] = {"from_unit": _from_unit, "predicts_labels": True}
"""Facts about every metric that judges predicted labels by counts of them."""
