"""Metrics of labels: what is released of a confusion matrix, what follows, and limits among all people."""

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from scipy.special import ndtri

from dp_metrics.inputs.arrays import BLOCK, Records, Shape, checked_records
from dp_metrics.inputs.labels import LabelSet
from dp_metrics.inputs.options import ByName, Floats, Function
from dp_metrics.mechanisms._laws import Integers, Limits
from dp_metrics.metrics._metric import Metric
from dp_metrics.metrics.labels.layouts import SHARES, Counts, Layout, PartsOf, Ratio, check_matrix, whole
from dp_metrics.quantities import tables
from dp_metrics.quantities.tables import NoisyCounts, TableOf
from dp_metrics.release import count_limits
from dp_metrics.release.count_limits import Ends, NoisyRatio
from dp_metrics.release.query import Query
from dp_metrics.release.released import APPROXIMATE, Interval, PopulationQuestion
from dp_metrics.release.result import AnyResult, ReleasedNumbers

NO_PERSONS = (
    "{} of persons who count once each (equal_groups=True) has approximate limits of what it is among all "
    "people, and only if it is made of ratios of counts, such as recall and precision: leave out sure, or "
    "keep one record of each person by max_records=1."
)

NO_RATIO = (
    "{} has no interval for all people here, as it is made of several ratios: ask for each label "
    "(average=None), or for the recall or precision of one, alone."
)

_ROUNDING = 1e-12  # that of a metric is smaller
_FAR = 5.0  # standard deviations of their noise, by which counts are to exceed it

OfRatios: TypeAlias = Callable[[Floats], float]
"""What a metric makes of an array of ratios."""


def ratio_cells(
    layout: Layout, parts_of: PartsOf | None
) -> list[tuple[list[int], list[int], tuple[float, float]]] | None:
    """Return the ratios A / (A + B) that a metric is made of; None if it is made otherwise.

    Of each the places of the counts that add to A, and to B, and how much each of them adds.
    """
    if parts_of is None:
        return None
    size = layout.good.size
    adds = np.array([parts_of(layout.read(np.eye(1, size, cell)[0])) for cell in range(size)])
    found = []
    for to_a, to_b in adds.transpose(2, 1, 0):
        of_a, of_b = np.flatnonzero(to_a).tolist(), np.flatnonzero(to_b).tolist()
        weights = {*to_a[of_a].tolist()}, {*to_b[of_b].tolist()}
        is_once = layout.is_partition or _is_once(layout, [*of_a, *of_b])
        if not is_once or any(len(one) != 1 for one in weights) or {*of_a} & {*of_b}:
            return None
        found.append((of_a, of_b, (weights[0].pop(), weights[1].pop())))
    return found


def _is_once(layout: Layout, cells: Sequence[int]) -> bool:
    """Return whether no record is in two of these counts: of a label, or of one kind of error of all."""
    # no record is in two groups
    found = [divmod(cell % (layout.good.size // layout.groups), layout.labels) for cell in cells]
    kinds = {layout.kinds[kind] for kind, _ in found} - {"right"}
    return len({label for _, label in found}) == 1 or kinds in ({"missed"}, {"wrong"})


def rates_of_two_labels(counts: Counts) -> tuple[Floats, Floats]:
    """Return the A and the B of the recall of the second label, of that of the first, and of its share."""
    assert counts.matrix is not None
    (right, wrong), (missed, found) = counts.matrix
    return np.array([found, right, missed + found]), np.array([missed, wrong, right + wrong])


def of_two_labels(shares: Floats, *, formula: Callable[[Counts], Any]) -> float:
    """Return the metric of the matrix of two labels that has these three shares."""
    recall, of_others, share = shares
    others = 1.0 - share
    cells = [others * of_others, others * (1 - of_others), share * (1 - recall), share * recall]
    return float(formula(whole(2).read(np.array(cells))))


def agreement_limits(of_rates: OfRatios, limits: Sequence[Ends]) -> Ends:
    """Return limits of MCC or kappa, from limits of both recalls and of the share of a label, that all hold.

    Notes
    -----
    With r and s the recalls, J = r + s - 1, p the share of the label, o its odds and q the share predicted to
    have it, MCC is J times the root of p (1 - p) / (q (1 - q)), whose inverse is r (1-r) o + rs + (1-r)(1-s)
    + s (1-s) / o; and kappa is 2 J / (r + s + (1-s) / o + (1-r) o).
    Both inverses are convex in o, so that at given recalls either has one extreme between the limits of o at
    most: a maximum where J > 0, and a minimum where J < 0. Both rise with r and with s.
    """
    *recalls, shares = limits
    least, most = zip(*recalls, strict=True)
    lower = count_limits.least_between(lambda share: of_rates(np.array([*least, share])), *shares)
    upper = -count_limits.least_between(lambda share: -of_rates(np.array([*most, share])), *shares)
    return max(lower - _ROUNDING, -1.0), min(upper + _ROUNDING, 1.0)


def combined(
    function: OfRatios, ratios: Sequence[NoisyRatio], miss: float, *, is_mean: bool, lowest: float = 0.0
) -> Ends | None:
    """Return approximate limits of a function of metrics A / (A + B) whose estimates are independent.

    The function is from `lowest` to 1.

    None where some A + B does not exceed its noise by far: there limits of means over ten labels covered
    55 % instead of 95 %.

    Limits of a share end at 0 and 1. In a mean of shares, as noisy as they are, those beyond balance those
    within: so each limit of a mean's share is at least as far away as noise alone moves the share. With
    limits that end, means over ten labels near 1 covered 60 %.
    """
    if any(ratio.a + ratio.b < _FAR * math.sqrt(sum(ratio.variances)) for ratio in ratios):
        return None
    each = []
    for ratio in ratios:
        x, (low, high) = ratio.estimate, count_limits.ratio_limits(ratio, miss)
        if is_mean:
            (of_a, of_b), p = ratio.variances, min(max(x, 0.0), 1.0)
            deviation = math.sqrt((1 - p) ** 2 * of_a + p**2 * of_b) / max(ratio.a + ratio.b, 1)
            far = -float(ndtri(miss)) * deviation
            low, high = min(low, x - far), max(high, x + far)
        each.append((low, high))
    lower, upper = count_limits.combined_limits(
        function, [ratio.estimate for ratio in ratios], each, is_monotone=is_mean
    )
    return max(lower, lowest), min(upper, 1.0)


_CLEAR = 20.0  # times the noise, and a logarithm: from there on limits are closer than `WIDEST`


@dataclass(frozen=True, eq=False)
class Confusion:
    """What a query releases of a confusion matrix, and what it makes of that.

    A `Query` calls it to make the result; tables of groups read the parts.

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
        Whether the metric rises with each count of right records, and falls with each count of errors; of
        agreement it is not asked.
    parts_of : callable or None
        Of `Counts`, the A and the B of a ratio A / (A + B), or of several; None if it is made otherwise.
    of_ratios : callable or None
        What the metric makes of an array of these ratios: it rises with each. None: it is these ratios.
    are_independent : bool
        Whether these ratios rest on different records.
    is_agreement : bool
        Whether the metric is MCC or kappa, for which `agreement_limits` are proved.
    of : str
        What limits among all people are limits of; "": of the metric.
    no_limits : str
        Why there are no limits; "": there are.
    """

    layout: Layout
    formula: Function
    labels: LabelSet
    rests_on: Callable[[Counts], Floats]
    needs_matrix: bool = False
    is_monotone: bool = True
    parts_of: PartsOf | None = None
    of_ratios: OfRatios | None = None
    are_independent: bool = False
    is_agreement: bool = False
    of: str = ""
    no_limits: str = ""

    @property
    def positive(self) -> Any:
        """The one of two labels that the metric is of; None where it is of no one label."""
        ratio: Any = self.formula
        is_of_one = self.labels.size == 2 and getattr(ratio, "average", None) == "binary"
        return self.labels.in_order.tolist()[ratio.place] if is_of_one else None

    def query(self, shape: Shape) -> Query:
        """Return the query of the metric, which depends on the form of the records by how persons count."""
        check_matrix(self.labels.size)
        count = partial(counted, of=self.layout.of, labels=self.labels)
        part = TableOf(self.layout.cells, self.layout.is_partition, count, shape.units)
        return Query((part,), partial(label_codes, labels=self.labels), self)

    def __call__(self, released: ReleasedNumbers) -> Any:
        """Return the metric of what is released."""
        return self.formula(self.layout.counts(released.values[0], released.public_n))

    def note(self, result: AnyResult) -> str | None:
        """Return what to say if limits of its noise are too far apart; see `WIDEST`.

        Where they are surely close, or where there are none, the sizes of the noise and of what is divided
        by tell.
        """
        (noise,) = result.parts
        counts = self.layout.counts(result.released.values[0], result.n)
        records = self.rests_on(counts)
        added = noise.expected * math.sqrt(self.layout.groups)  # the noise of groups is independent
        far = _CLEAR * math.log(40 * max(records.size, 1)) * added
        if not records.size or far <= records.min():
            return None
        few = tables.too_few(added, records)
        # nothing may be raised here, after the spend: some results have no limits of their own
        with contextlib.suppress(ValueError):
            lower, upper, _ = self.limits(result, 1 - tables.SHOWN)
            wide = np.ravel(np.subtract(upper, lower) > tables.WIDEST * (2 if self.is_agreement else 1))
            few = wide if wide.size == records.size else (few | (records == records.min())) & wide.any()
        return tables.few_records(added, records, few, noise.units) if few.any() else None

    @property
    def lowest(self) -> float:
        """The least that the metric can be: below 0 for agreement, and for a mean less what chance gives."""
        if self.is_agreement:
            return -1.0
        return 0.0 if self.of_ratios is None else self.of_ratios(np.zeros(1))

    def limits(self, result: AnyResult, miss: float) -> Limits:
        """Return limits of ratios that all hold, or the metric at two corners of the box of the exact counts.

        Raises
        ------
        ValueError
            If the metric may be lower or higher within the box than at these corners.
        """
        if self.no_limits:
            raise ValueError(self.no_limits)
        noise, n = result.parts[0], result.released.public_n
        most = math.inf if n is None else n
        if np.ndim(self(result.released)) == 2:
            return self._of_cells(noise, most, miss)
        if np.isnan(getattr(self.formula, "undefined", 0.0)):
            raise ValueError("A metric that may be NaN has no limits: pass zero_division=0.0 or 1.0.")
        shares = self._ratios(result, of_two=self.is_agreement)
        if shares is not None:
            lower, upper = self._of_shares(shares, count_limits.noise_limits, miss / 2)
        elif self.is_agreement or not self.is_monotone:
            raise ValueError(
                "This metric has no limits of its noise here: more right records, or fewer errors, need "
                "not make it larger. Use recall, precision or F1."
            )
        else:
            good = self.layout.good
            low, high = (np.minimum(end, most) for end in noise.limits(miss, good != 0)[:2])
            lower, upper = (
                self.formula(self.layout.read(np.where(good > 0, *ends)))
                for ends in ((low, high), (high, low))
            )
        return Limits(lower, upper).within(self.lowest, 1.0)

    def _of_cells(self, noise: NoisyCounts, most: float, miss: float) -> Limits:
        """Return limits of each cell of a matrix, which has at most so many records.

        Its share is least where others of its row are largest.
        """
        size, places = self.labels.size, self.layout.places
        if places is None:
            cells = noise.limits(miss)
        else:  # each is the sum of several noisy counts, as of scores
            sums = [np.flatnonzero(places == at).tolist() for at in range(size**2)]
            cells = noise.limits_of_sums(sums, miss)
        low, high = (np.minimum(end, most).reshape(size, size) for end in cells[:2])
        lower, upper = (
            self.formula(whole(size).read(own), others=others) for own, others in ((low, high), (high, low))
        )
        divides = self.rests_on(self.layout.read(np.zeros(self.layout.good.size))).size > 0
        return Limits(lower, upper).within(0.0, 1.0 if divides else most)

    def population(self, result: AnyResult, asked: PopulationQuestion) -> Interval:
        """Return the interval of the metric among all people, from the noisy counts as they were drawn.

        Of several ratios each has its part of the miss: all limits hold at once.

        Raises
        ------
        ValueError
            If there is none, with the reason.
        """
        if self.no_limits:
            raise ValueError(self.no_limits)
        units, value, note = result.parts[0].units, self(result.released), ""
        shares, limits = self._ratios(result, of_two=self.is_agreement), None
        # a ratio has no narrower limits than the sure ones
        is_ratio = shares is not None and self.of_ratios is None and not self.is_agreement
        if units > 1:  # a person's records are alike
            if shares is None or self.is_agreement or asked.is_sure:
                raise ValueError(NO_PERSONS.format(asked.metric))
            of_person = partial(count_limits.person_limits, units)
            limits, note = self._of_shares(shares, of_person, asked.miss), APPROXIMATE
        elif not asked.is_sure and isinstance(value, float) and not is_ratio:
            limits, note = self._approximate(shares, result, asked.miss), APPROXIMATE
            if limits is not None:
                # limits among people within those of the noise would puzzle
                with contextlib.suppress(ValueError):
                    low, high, _ = self.limits(result, 2 * asked.miss)
                    limits = min(limits[0], low), max(limits[1], high)
        if limits is None and shares is not None:
            limits, note = self._of_shares(shares, count_limits.ratio_limits, asked.miss), ""
        if limits is None:
            raise ValueError(
                NO_RATIO.format(asked.metric)
                + (" It may have an approximate one: leave out sure." if asked.is_sure else _TOO_NOISY)
            )
        if np.ndim(value) == 2:  # of a matrix each cell has its limits
            limits = limits[0].reshape(value.shape), limits[1].reshape(value.shape)
        return asked.interval(*limits, value, note, self.of)

    def _ratios(self, result: AnyResult, *, of_two: bool) -> list[NoisyRatio] | None:
        """Return the noisy counts of each ratio, or of the three shares that tell the matrix of two labels.

        None if counts of this layout do not tell them.
        """
        if of_two and (self.labels.size != 2 or not self.layout.has_matrix):
            return None
        cells = ratio_cells(self.layout, rates_of_two_labels if of_two else self.parts_of)
        if cells is None:
            return None
        (noise,), n = result.parts, result.released.public_n
        return [count_limits.noisy_ratio(noise, a, b, n, weights) for a, b, weights in cells]

    def _of_shares(
        self, shares: list[NoisyRatio], limits_of: Callable[[NoisyRatio, float], Ends], miss: float
    ) -> tuple[Any, Any]:
        """Return limits of the metric from those of the shares that tell it, which all hold."""
        each = miss / len(shares)
        of_each = [limits_of(share, each) for share in shares]
        if self.is_agreement:
            return agreement_limits(partial(of_two_labels, formula=self.formula), of_each)
        lower, upper = np.array([*zip(*of_each, strict=True)])
        if self.of_ratios is not None:
            return self.of_ratios(lower), self.of_ratios(upper)
        return (lower, upper) if len(shares) > 1 else (float(lower[0]), float(upper[0]))

    def _approximate(self, shares: list[NoisyRatio] | None, result: AnyResult, miss: float) -> Ends | None:
        rates = self._ratios(result, of_two=True)
        if rates is None and shares is None:
            return self._linear(result, miss)
        if rates is None and not self.are_independent:  # such limits of F1 covered less than 93 %
            return None
        is_mean, ratios = rates is None, rates or shares or []
        function: Any = self.of_ratios if is_mean else partial(of_two_labels, formula=self.formula)
        found = combined(function, ratios, miss, is_mean=is_mean, lowest=self.lowest)
        if found is None or found[0] >= 0 or not self.is_agreement:
            return found
        # at the least agreement all shares are off the same way, and squares of errors fall short
        lower, _ = self._of_shares(ratios, count_limits.ratio_limits, miss)
        return (lower, found[1]) if lower <= self.lowest else found

    def _linear(self, result: AnyResult, miss: float) -> Ends | None:
        """Return approximate limits of a smooth metric, taken for linear in the counts.

        Returns
        -------
        (float, float) or None
            None where some count of right records or of errors does not exceed its noise by far: there limits
            made so covered 73 to 90 % instead of 95 %.

        Notes
        -----
        On the scale of the inverse hyperbolic tangent. A record that is in several counts, each of weight
        1/2, moves the metric by the sum of their derivatives, whose square is at most twice the sum of their
        squares.
        """
        layout, lowest, (noise,) = self.layout, self.lowest, result.parts
        weights = tables.each_cell(layout.cells * layout.groups)
        x = layout.plausible(noise.noisy, result.n)
        unit = np.eye(1, x.size)[0]
        cells, told = (
            (of.right, of.missed, of.wrong)
            for of in map(layout.read, (np.ones(x.size), tables.saturated_counts(noise.noisy)))
        )
        together = max(float(kind.max()) for kind in cells)  # so many noisy counts are added up at most
        added = math.sqrt(together * noise.covariance(unit, unit))
        if min(float(kind.min()) for kind in told) < _FAR * added:
            return None

        def on_scale(counts: Floats) -> float:
            value = (float(self.formula(layout.agreed(counts))) - lowest) / (1 - lowest)
            return math.atanh(min(max(2 * value - 1, -1 + 1e-12), 1 - 1e-12))

        slopes = np.empty(x.size)
        for cell in range(x.size):
            half = np.eye(1, x.size, cell)[0] / 2
            up, down = x + half, np.maximum(x - half, 0.0)
            slopes[cell] = (on_scale(up) - on_scale(down)) / (up - down)[cell]
        variance = float(x @ (slopes**2 / weights)) + max(noise.covariance(slopes, slopes), 0.0)
        reach = -float(ndtri(miss)) * math.sqrt(variance)
        lower, upper = (
            lowest + (1 - lowest) * (1 + math.tanh(on_scale(x) + away)) / 2 for away in (-reach, reach)
        )
        return lower, upper


_TOO_NOISY = " An approximate one needs counts far above their noise."


def of_ratio(ratio: Ratio, known: LabelSet) -> Confusion:
    """Return what a query of a ratio releases, and what it makes of that."""
    return Confusion(
        ratio.layout(),
        ratio,
        known,
        ratio.rests_on,
        needs_matrix=ratio.kind in SHARES,  # of many labels no other counts tell a share with limits
        is_monotone=ratio.is_monotone,
        parts_of=ratio.parts if ratio.are_all else None,
        of_ratios=ratio.mean if ratio.average == "macro" else None,
        are_independent=ratio.kind in ("recall", "precision"),
    )


def label_codes(records: Records, *, labels: LabelSet) -> Records:
    """Return true and predicted labels, not yet looked at.

    Raises
    ------
    ValueError
        If the shapes differ or are invalid.
    """
    both = enumerate(("y_true", "y_pred"))
    return checked_records(records, {name: labels.array(records.array(at), name) for at, name in both})


def counted(records: Records, *, of: Callable[[Integers], Integers], labels: LabelSet) -> Integers:
    """Return counts of `label_codes`, of the confusion matrix with a row for each true label.

    A record counts one unless it says how many units it has.

    Raises
    ------
    ValueError
        If a record is invalid.
    """
    size = labels.size
    rows = max(BLOCK, size**2)  # adding up the cells should not take longer than finding them
    cells = (
        (labels.codes(true, "y_true") * size + labels.codes(predicted, "y_pred"), units)
        for true, predicted, units in records.blocks(rows)
    )
    return of(tables.counts_of_cells(cells, size**2).reshape(size, size))


def confusion_for(metric: Metric, options: ByName) -> Confusion:
    """Return which counts a metric of labels releases, and how it follows from them."""
    confusion = metric.planned(metric.form(), options).reading
    assert isinstance(confusion, Confusion)
    return confusion


OF_COUNTS: ByName = {
    # labels 0 and 1, all four pairs of them as x grows
    "from_unit": lambda x: divmod(np.minimum(np.floor(x * 4), 3).astype(np.int64), 2),
    "predicts_labels": True,
}
"""Facts about every metric that judges predicted labels by counts of them."""
