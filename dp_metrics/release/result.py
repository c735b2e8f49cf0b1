"""The result of a release, with all that may be published about it, and how it follows from released numbers.

A reading is a function of `ReleasedNumbers`, made of public things only, for it is kept with a result. It may
have methods too, of the `Result` that it is kept with: ``limits(result, miss)`` without the noise;
``population(result, asked)``, the interval among all people; ``band(result, asked)`` of a curve;
``note(result)``, what must not be concluded; and ``bias(clipped)``, which way it usually errs where these
shares of the values are missing. The first three raise ValueError with a reason, the others never.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from types import FunctionType, MappingProxyType, MethodType
from typing import Any, Generic, ParamSpec, Self, TypeAlias, TypeVar, cast

import numpy as np

from dp_metrics._packages import __version__
from dp_metrics.inputs.options import (
    MAX_FLOAT,
    Array,
    ByName,
    Function,
    Relation,
    check_confidence,
    own_error_state,
)
from dp_metrics.mechanisms._base import NOT_MONOTONE
from dp_metrics.mechanisms._laws import Limits
from dp_metrics.quantities.base import Noise, Output, Totals
from dp_metrics.quantities.tables import SHOWN, far_apart
from dp_metrics.release.released import (
    APPROXIMATE,
    NO_POPULATION,
    Interval,
    PopulationQuestion,
    named,
    usual_bias,
)

Value_co = TypeVar("Value_co", covariant=True)

_UNITS = {
    "replace_one": "Test sets are adjacent if one record of the first is replaced by any other valid record.",
    "add_or_remove_one": "Test sets are adjacent if one of them has one record more.",
}
_ARGUMENTS = "all arguments of the call but the records."
_UNPROTECTED = {
    "replace_one": f"The number of records (of each group, if groups were passed), and {_ARGUMENTS}",
    "add_or_remove_one": _ARGUMENTS.capitalize(),
}


@dataclass(frozen=True)
class ReleasedNumbers:
    """What was released, and what is public about it: all that a result may be computed from.

    Parameters
    ----------
    values : sequence
        A number, or a tuple of whole numbers, for each part of the query.
    public_n : int or None
        Number of records, where that is public: nothing else may be made of the true one.
    total_weight : float or None
        What turns a mean into the sum, where that is public: the total weight, or the number of records.
    epsilon : Fraction
        What all of it cost.
    neighboring : Relation
        The neighbouring relation.
    most_records : int, default=1
        How many records one person has at most, as far as epsilon was divided among them; see `Query`.
    """

    values: Sequence[Any]
    public_n: int | None
    total_weight: float | None
    epsilon: Fraction
    neighboring: Relation
    most_records: int = 1

    def of(self, values: Sequence[Any]) -> Self:
        """Return other released numbers, about which the same is public."""
        return replace(self, values=values)


Reading: TypeAlias = Callable[[ReleasedNumbers], Any]


def check_persons(released: ReleasedNumbers, metric: str) -> None:
    """Raise if persons have several records: these are alike, and tell less of all people."""
    if released.most_records > 1:
        raise ValueError(
            f"{metric} of up to {released.most_records} records of each person tells no limits of what it is "
            "among all people: the records must be independent draws from one population, one person each. "
            "max_records=1 keeps one of each."
        )


def only(released: ReleasedNumbers) -> Any:
    """Return what is released, where that is one number."""
    return released.values[0]


@dataclass(frozen=True)
class Monotone:
    """A reading that rises with each released number, or falls with each.

    Parameters
    ----------
    result : callable
        Made of public things only.
    rises : bool, default=True
        Which of the two.
    of_people : callable or None, default=None
        The interval among all people, of the `Result` and what is asked; None: each number is a bounded mean.
    """

    result: Reading
    rises: bool = True
    of_people: Callable[[AnyResult, PopulationQuestion], Interval] | None = None

    def __call__(self, released: ReleasedNumbers) -> Any:
        """Return the result."""
        return self.result(released)

    def limits(self, result: AnyResult, miss: float) -> Limits:
        """Return the results of the limits of all parts, which hold together."""
        return self._of([part.limits(miss / len(result.parts)) for part in result.parts], result.released)

    def note(self, result: AnyResult) -> str | None:
        """Return what to say if limits of a mean with a public range are too far apart; see `WIDEST`.

        Without a range, as of a mean loss without a cap, there is a lower limit only: nothing is known where
        that is 0, as of numbers next to 0, below which hardly any output lies.
        """
        even = ((*part.limits(1 - SHOWN)[:2], part.even_range) for part in result.parts if part.even_range)
        apart = (far_apart(lower, upper, high - low) for lower, upper, (low, high) in even)
        return nothing_known(result) or next(filter(None, apart), None)

    def bias(self, clipped: Sequence[float]) -> str | None:
        """Return which way the result usually errs."""
        return usual_bias(max(clipped), rises=self.rises)

    def population(self, result: AnyResult, asked: PopulationQuestion) -> Interval:
        """Return the interval of the result among all people.

        Raises
        ------
        ValueError
            If there is none, as where a released number is no bounded mean, or was released in another way.
        """
        if self.of_people is not None:
            return self.of_people(result, asked)
        from dp_metrics.release.count_limits import mean_limits  # which takes its time to import

        parts = result.parts
        miss = asked.miss / len(parts)
        of_parts: list[Any] = [mean_limits(part, miss, is_sure=asked.is_sure) for part in parts]
        if None in of_parts:
            raise ValueError(NO_POPULATION.format(asked.metric))
        lower, upper, note = self._of(of_parts, result.released)
        # proved limits of a mean have no note
        return asked.interval(lower, upper, self(result.released), f"{APPROXIMATE} {note}" if note else "")

    def _of(self, of_parts: Sequence[Limits], released: ReleasedNumbers) -> Limits:
        """Return the results of limits of all parts."""
        *ends, notes = zip(*of_parts, strict=True)
        lower, upper = (self.result(released.of(end)) for end in ends)
        note = " ".join(dict.fromkeys(filter(None, notes)))
        return Limits(lower, upper, note) if self.rises else Limits(upper, lower, note)


def nothing_known(result: AnyResult) -> str | None:
    """Return what to say if some number of a result, at least 0, has no limit with the confidence `SHOWN`."""
    for part in result.parts:
        if part.even_range is not None:  # whose limits are asked for elsewhere
            continue
        with suppress(ValueError):  # some have no limits
            lower, upper, _ = part.limits(1 - SHOWN)
            # of counts, which are several numbers, upper limits are finite
            if np.max(lower, initial=0.0) <= 0 and np.min(upper, initial=np.inf) >= MAX_FLOAT:
                return (
                    "Mostly noise: all of it may be noise. Conclude nothing from it. If it is far below 1, "
                    "give a public cap or pass numbers in a smaller unit."
                )
    return None


@dataclass(frozen=True)
class KeptCounts:
    """A reading that is all noisy counts, as they are, and keeps what else they tell.

    Parameters
    ----------
    told : callable
        Another reading of the counts.
    shape : tuple of int or None, default=None
        The form of their limits, where they are the metric that is released.
    """

    told: Reading
    shape: tuple[int, ...] | None = None

    @property
    def about(self) -> str | None:
        """What the limits are limits of, if not of the metric."""
        return "counts" if self.shape is None else None

    def __call__(self, released: ReleasedNumbers) -> list[int]:
        """Return the counts."""
        return list(released.values[0])

    def note(self, result: AnyResult) -> str | None:
        """Return what must not be concluded from metrics that the counts tell."""
        note = getattr(self.told, "note", None)
        return note(result) if note else None

    def limits(self, result: AnyResult, miss: float) -> Limits:
        """Return limits of each count, which is at most the number of records, where that is public."""
        (counts,) = result.parts
        lower, upper, note = counts.limits(miss)
        most = np.inf if result.n is None else result.n
        low, high = (np.minimum(end, most).reshape(self.shape or -1) for end in (lower, upper))
        return Limits(low, high, note)


@own_error_state
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Result(Generic[Value_co]):
    """A private number and what is public about its release; all of it may be published.

    `with_result` returns it. It is formatted as its value is, and ``float(result)`` is the value of a metric
    that is one number; to calculate or compare, take the `value`.

    Parameters
    ----------
    metric : str
        Name of the metric.
    reading : callable
        How the value follows from the released numbers.
    noises : tuple of Noise
        How each of them was drawn.
    outputs : tuple of Output
        What was drawn.
    released : ReleasedNumbers
        The released numbers, with what is public about them.
    totals, capacity : default=None
        Those with which the noises were made, where the number of records is public, and as in `noise_of`.
    spend_name : str or None, default=None
        The name of the spend, if one was given.
    is_repeatable : bool, default=False
        Whether the noise can be drawn again, so that nothing can be promised of it.
    more : str, default=""
        What else to note.

    Attributes
    ----------
    value : float, ndarray, str or dict
        What the metric returns.
    epsilon : float
        Cost of the release.
    n : int or None
        Number of records, where that is public.
    neighboring : {"replace_one", "add_or_remove_one"}
        The neighbouring relation of the guarantee.
    mechanism : str
        What drew the value, or the mechanisms that drew its parts.
    drawn : mapping
        What else was drawn, under the same epsilon: "count", the noisy number of records where the true one
        is private; "scale", the C1 of `Adaptive`, how much the largest records count for at most; "counts"
        and "sums", the noisy counts or sums, whole numbers without bias, of which the value is made;
        "positives" and, where the number of records is private, "negatives", the noisy sizes of the two
        classes of an AUC, from which its grid follows; "spread", the noisy mean of v (1 - v), without bias,
        where v is a record's part of the public limit, from which a `population_interval` follows. If the
        value has several parts, lists of these, with None for parts that drew none.
    deployment : mapping or None
        The guarantee in the words of the OpenDP Deployments Registry, for the object "deployment" of an entry
        there: "dp_variant", "privacy_loss", "deployment_model", "accounting" and "implementation". Made of
        public settings only; the unit is a person where `groups` have several records each. None where
        nothing can be promised: for a release with `random_state`, or by a mechanism of your own.
    note : str or None
        What released and public numbers tell of a value that is mostly noise, or biased: what must not be
        concluded from it. None: nothing. It costs nothing and is as public as the rest; a warning after the
        spend could be an error, and lose the value.
    bias : str or None
        Which way the value usually errs, and by about how much if tails are heavy, as public settings and the
        value tell: of a mean loss too low, of R^2 too high. None: neither way, or by less than 1 %.
    parts : tuple of NoisyNumber or NoisyCounts
        Each released number with its noise.

    Notes
    -----
    Guarantee: that of the metric. The fields together cost epsilon, not epsilon each.

    Examples
    --------
    >>> from dp_metrics import private_mae, with_result
    >>> result = with_result(private_mae)([3.0, 1.0], [2.0, 1.0], epsilon=1.0)
    >>> result.metric, result.epsilon, result.n
    ('private_mae', 1.0, 2)
    >>> float(result) == result.value >= 0, f"{result:.0f}" == f"{result.value:.0f}"
    (True, True)
    >>> result.deployment["privacy_loss"]["privacy_parameters"]["epsilon"]
    1.0
    """

    metric: str
    reading: Callable[[ReleasedNumbers], Value_co]
    noises: tuple[Noise, ...]
    outputs: tuple[Output, ...]
    released: ReleasedNumbers
    totals: tuple[Totals, ...] | None = None
    capacity: int | None = None
    spend_name: str | None = None
    is_repeatable: bool = False
    more: str = ""

    @cached_property
    def value(self) -> Value_co:
        """What the metric returns."""
        value: Any = self.reading(self.released)
        if self.more and hasattr(value, "note"):  # a value of a type that has notes
            value = replace(value, note=f"{value.note} {self.more}".strip())
        return cast(Value_co, value)

    @property
    def epsilon(self) -> float:
        """Cost of the release."""
        return float(self.released.epsilon)

    @property
    def n(self) -> int | None:
        """Number of records, where that is public."""
        return self.released.public_n

    @property
    def neighboring(self) -> str:
        """The neighbouring relation of the guarantee."""
        return self.released.neighboring.value

    @property
    def mechanism(self) -> str:
        """What drew the value, or the mechanisms that drew its parts."""
        return drawn_by(self.noises)

    @property
    def parts(self) -> tuple[Any, ...]:
        """Each released number with its noise."""
        return tuple(noise.told(output) for noise, output in self._drawn())

    @cached_property
    def drawn(self) -> Mapping[str, Any]:
        """What else was drawn, by its name."""
        counts = [output.noisy_n for output in self.outputs if output.noisy_n is not None]
        drawn: dict[str, Any] = {"count": counts[0]} if counts else {}
        for name in dict.fromkeys(name for output in self.outputs for name in output.drawn):
            of_all = [output.drawn.get(name) for output in self.outputs]
            drawn[name] = of_all[0] if len(of_all) == 1 else of_all
        return MappingProxyType(drawn)

    @cached_property
    def note(self) -> str | None:
        """What must not be concluded from the value."""
        told = getattr(self.reading, "note", None)
        notes = [told(self)] if told else []
        if not any(notes):  # the width of limits tells more than the number of records
            notes = [self._note(*pair) for pair in self._drawn()]
        return " ".join(dict.fromkeys(filter(None, [*notes, self.more]))) or None

    def _note(self, noise: Noise, output: Output) -> str | None:
        """Return what released numbers tell of one of them that is mostly noise, or biased."""
        if (bias := noise.note(output)) is not None:
            return bias
        records = None if self.n is not None else noise.records(output)
        said = None if records is None else noise.too_noisy(records)
        return None if said is None else f"By the noisy number of records {said}"

    @property
    def bias(self) -> str | None:
        """Which way the value usually errs."""
        clipped = [noise.clipped_share(output) for noise, output in self._drawn()]
        if not any(clipped):
            return None
        told = getattr(self.reading, "bias", lambda clipped: usual_bias(max(clipped)))
        found: str | None = told(clipped)
        return found

    @property
    def records(self) -> Fraction | None:
        """The noisy number of records, where the true one is private and what was released tells it."""
        told = [] if self.n is not None else [noise.records(output) for noise, output in self._drawn()]
        return next((one for one in told if one is not None), None)

    @property
    def deployment(self) -> Mapping[str, Any] | None:
        """The guarantee in the words of the OpenDP Deployments Registry."""
        # The names and the values "Pure DP" and "Central" are those of schemas/deployments-schema.yaml in its
        # data repository, opendp/deployments-registry-data, as of July 2026. What only the owner of the data
        # knows (who publishes, for what, how often, with which total) is left for them to add.
        mechanisms = {type(noise.mechanism) for noise in self.noises if noise.mechanism is not None}
        # the author of any other mechanism has to say what it promises
        if self.is_repeatable or not all(one.__module__.startswith("dp_metrics.") for one in mechanisms):
            return None
        executed = "Private over the real numbers; drawn as floats, without protection of their last bits."
        if all(mechanism.is_exact for mechanism in mechanisms):
            executed = "Exact as executed: floats decide only where they cannot be wrong, and else integers."

        unit = {"privacy_unit": "record", "privacy_unit_details": _UNITS[self.neighboring]}
        # all records of one person are protected together, and somebody has several
        are_joined = any(one.size < one.n for one in self.totals or ())
        if are_joined or counts_persons(self) or self.released.most_records > 1:
            unit = unit_of_persons(self.released.most_records)

        return {
            "dp_variant": {
                "variant_name": "Pure DP",
                "data_domain": "Test sets of records, each valid on its own, given the model and "
                f"{_ARGUMENTS}",
                "unprotected_quantities": _UNPROTECTED[self.neighboring],
            },
            "privacy_loss": {**unit, "privacy_parameters": {"epsilon": self.epsilon}},
            "deployment_model": {"model_name": "Central"},
            "accounting": {
                "composition": "Sequential: epsilon is the sum over all that this result holds. Other "
                "releases about the same people add to it."
            },
            "implementation": {
                "mechanisms": f"{self.mechanism}, of dp_metrics {__version__}. {executed} Random bits are "
                "those of the operating system. No measures against timing channels.",
            },
        }

    def _drawn(self) -> Iterator[tuple[Noise, Output]]:
        return zip(self.noises, self.outputs, strict=True)

    def __getstate__(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def __float__(self) -> float:
        """Return the value of a metric that is one number."""
        return float(self.value)  # type: ignore[arg-type]

    def __format__(self, spec: str) -> str:
        """Return the value in a format, such as ``f"{result:.3f}"``; without one the whole text."""
        return format(self.value, spec) if spec else repr(self)

    def __repr__(self) -> str:
        limits = None
        if isinstance(self.value, float):
            with suppress(ValueError):  # some have none
                limits = tuple(self.noise_interval())
        shown = {"metric": self.metric, "epsilon": self.epsilon, "neighboring": self.neighboring}
        shown |= {"n": self.n, "spend_name": self.spend_name}
        shown |= {"noise_interval": limits, "note": self.note, "bias": self.bias}
        return f"Result({self.value!r}, {named(shown)})"

    def noise_interval(self, confidence: float = 0.95) -> Interval:
        """Return limits of the exact metric of the same records: how far the noise may have moved the value.

        Parameters
        ----------
        confidence : float, default=0.95
            Probability, over the noise, with which all limits hold, whatever the records are.

        Returns
        -------
        Interval
            Unpacks as lower, upper. A limit that nobody can tell is infinite, or the end of the public range;
            its `note` says why, and whether anything is known: a release that is unlikely whatever the metric
            is has both ends of the range.

        Raises
        ------
        ValueError
            If the metric has no such limits, with the reason, or the confidence is invalid.

        See Also
        --------
        population_interval : Of all people like these records.
        plan_release : The error to expect, before a release, from public data.

        Notes
        -----
        It costs no epsilon: it follows from released and public numbers. The interval is about *these
        records*, which are a sample.

        Shares and counts have narrow limits, and so has what "geometric" or "laplace" released: about 3 caps
        of one loss / (n * epsilon) away. So have recall, precision and F1: they are quantiles of what the
        ratio is with other noise. **A mean loss without a public cap has a lower limit only**, whatever the
        mechanism: with one record at infinity the mean is infinite, so an upper limit with confidence 1 - a
        is infinite with a probability of at least 1 - a exp(epsilon).

        With a cap B the default has both limits. From n * epsilon of 300 on it clips losses at a level C that
        it draws. At most K of them exceed C, some 75 / epsilon, and each adds at most (B - C) / n to the
        upper limit, which is useful where the mean is far above 75 B / (n * epsilon). Below 300, or if asked
        for "hazard", it is useful where the mean is far above 4 B / (n * epsilon). A variance with bounds has
        both limits too, the upper one of clipped values about B / C times the release. Ask for "geometric" if
        you need a close upper limit.

        An AUC has both limits. If the smaller class has 300 / epsilon records or more they are close; below
        that they are wide, because a few positives below all negatives might hide in the noise. An AUC that
        is not high is usually released too low, so that it may lie below its own limits, which allow for
        that. R^2 has both with public bounds, from those of the error and the variance; close ones by
        "geometric".

        Examples
        --------
        >>> from dp_metrics import private_accuracy_score, with_result
        >>> y_true, y_pred = [0, 1, 1, 0] * 250, [0, 1, 0, 0] * 250
        >>> result = with_result(private_accuracy_score)(y_true, y_pred, epsilon=1.0)
        >>> lower, upper = result.noise_interval()
        >>> round(upper - lower, 3)
        0.006
        """
        sure = check_confidence(confidence)
        limits = getattr(self.reading, "limits", None)
        if limits is None:
            raise ValueError(NOT_MONOTONE.format(self.metric, "recall, F1 or a mean loss"))
        lower, upper, note = limits(self, 1.0 - sure)
        name = getattr(self.reading, "about", None) or self.metric.removeprefix("private_")
        about = f"The exact {name} of these records, without the noise."
        return Interval(lower, upper, sure, about, note)

    def population_interval(self, confidence: float = 0.95, sure: bool = False) -> Interval:
        """Return limits of the metric among all people like the records.

        They allow for both the chance by which the records were drawn, independently from one population, and
        the noise of the release.

        Parameters
        ----------
        confidence : float, default=0.95
            Probability, over the noise and over which people became records, with which the limits hold:
            those of several labels all at once.
        sure : bool, default=False
            True: proved limits only. False: approximate ones where a benchmark found that they hold, in 93 %
            or more of the cases where 95 % are meant, or where there are no others; else the proved ones.
            `about` says which they are.

        Returns
        -------
        Interval
            The limits, within the public range; it unpacks as ``lower, upper``, which are arrays of shape
            (n_classes,) if the result is. Its `estimate` is the released value. The whole range where the
            noise leaves nothing to tell.

        Raises
        ------
        ValueError
            If the metric has no such limits, with the reason, or the confidence is invalid.
        TypeError
            If `sure` is not True or False.

        See Also
        --------
        noise_interval : For these records: how far the noise may have moved the result.
        private_mean_interval : For the mean of a loss: a release of its own.

        Notes
        -----
        Accuracy, zero-one loss and top-k accuracy by the default mechanism "geometric" have such limits,
        without weights and groups; recall, precision, F1 and other ratios of counts, of one label, of each
        label (``average=None``) or "micro", and what is made of these; an AUC by its default mechanism. With
        a public number of records so have means with a public limit, such as a Brier score, by "geometric".

        Guarantee: nothing but released numbers and public arguments is read, so differential privacy is that
        of the release. Sure limits hold with at least the given confidence for every number of records,
        epsilon and population. They are those of the metric as people are: what is returned for 0/0
        (`zero_division`) does not enter.

        A share of n records is Z / n with Z = X + N, clamped to 0..n, X binomial of n and the share p of all
        people, and N with probability proportional to exp(-epsilon abs(k)). P(Z <= z) falls in p. The upper
        limit is the p at which it is half of 1 - confidence, and the lower limit that at which P(Z >= z) is;
        from z = n the upper limit is 1, and from z = 0 the lower one is 0. They are limits of a share also if
        the result is a number of records (``normalize=False``).

        The others are functions of the share a / (a + b) of two numbers of records, both of them noisy and
        their sum unknown. The outcomes are put in an order; the lower limit is the smallest share that makes
        what was released, or something higher in that order, likely enough, for any number of records that
        the noise leaves possible. Limits of ratios are never narrower than those of `noise_interval`.

        Sure limits of a mean allow for the largest spread that people can have around it. "geometric"
        releases the spread with a mean, and approximate limits use it from 100 records on, as
        `private_mean_interval` does, and allow for large losses that nobody here had: they are far narrower
        where the mean is far below its public limit.

        References
        ----------
        C. J. Clopper and E. S. Pearson, Biometrika 26 (1934), doi:10.1093/biomet/26.4.404, for a share
        without noise; J. Awan and A. Slavkovic, "Differentially Private Uniformly Most Powerful Tests for
        Binomial Data", 2018, arXiv:1805.09236, for tests, which add a uniform random number; R. J. Buehler,
        "Confidence Intervals for the Product of Two Binomial Parameters", 1957,
        doi:10.1080/01621459.1957.10501404; R. L. Berger and D. D. Boos, "P Values Maximized Over a Confidence
        Set for the Nuisance Parameter", 1994, doi:10.1080/01621459.1994.10476836; W. Hoeffding, "Probability
        Inequalities for Sums of Bounded Random Variables", 1963, doi:10.1080/01621459.1963.10500830.

        Examples
        --------
        >>> import numpy as np
        >>> from dp_metrics import private_recall_score, with_result
        >>> y_true = np.repeat([0, 1], [700, 300])
        >>> y_pred = np.where(np.arange(1000) % 10 == 0, 1 - y_true, y_true)  # nine in ten are right
        >>> result = with_result(private_recall_score)(y_true, y_pred, epsilon=1.0)
        >>> lower, upper = result.population_interval()
        >>> 0.8 < lower < 0.9 < upper < 0.97
        True
        """
        return self.among_people(PopulationQuestion.of(self.metric, confidence, sure))

    def among_people(self, asked: PopulationQuestion) -> Interval:
        """Return the interval that is asked for, as `population_interval` does."""
        check_persons(self.released, self.metric)
        population = getattr(self.reading, "population", None)
        if population is None:
            raise ValueError(NO_POPULATION.format(asked.metric))
        found: Interval = population(self, asked)
        return found

    def band(self, confidence: float = 0.95) -> Any:
        """Return a band in which the curve of all people like the records lies.

        Parameters
        ----------
        confidence : float, default=0.95
            Probability, strictly between 0 and 1, with which the whole curve, or all bins, lie in the band.

        Returns
        -------
        RocBand or CalibrationBand
            Of `private_roc_curve`, and of `private_precision_recall_curve` and
            `private_average_precision_score`, which release the same counts, the band of the ROC curve: two
            curves, `lower` and `upper`. Of `private_calibration_curve` limits of the share of positives in
            each bin: arrays `prob_pred`, `lower` and `upper`; `gap`, `gap_lower` and `gap_upper`, the share
            of positives less the mean score; ``error()``, the calibration error with and without chance. Both
            have ``shade(ax)``.

        Raises
        ------
        ValueError
            If the result is no such curve, or the confidence is invalid.

        See Also
        --------
        ReleasedScores.of : Both curves, their bands, and the area with limits, of one release.

        Notes
        -----
        Guarantee: nothing but released numbers and public arguments is read, so differential privacy is that
        of the release.

        The band of a ROC curve is sure: it holds with at least the given confidence for every number of
        records, epsilon and population. It is about the scores rounded to public bins, of which neighbours
        count as one where there are more than 64; between their edges the curve is straight. At each edge
        either coordinate is a share of a class, with limits as of a recall, which share the probability to
        miss.

        The confidence of a calibration curve's limits is approximate. What is limited is the share of
        positives among people whose score is in the bin; `prob_pred` is its released mean score. A model is
        not calibrated where 0 lies outside the limits of a gap, and only there may `lower` and `upper` leave
        out `prob_pred`. A calibrated model was called wrong in 0 to 10 % of 100 releases of each of 16 tasks,
        in 5 to 6 % of 800 of two.

        References
        ----------
        R. J. Buehler, "Confidence Intervals for the Product of Two Binomial Parameters", 1957,
        doi:10.1080/01621459.1957.10501404; E. B. Wilson, "Probable Inference, the Law of Succession, and
        Statistical Inference", 1927, doi:10.1080/01621459.1927.10502953, for bins without noise.

        Examples
        --------
        >>> from dp_metrics import private_calibration_curve, private_roc_curve, with_result
        >>> y_true, y_score = [0] * 500 + [1] * 500, [0.2] * 400 + [0.6] * 200 + [0.9] * 400
        >>> band = with_result(private_roc_curve)(y_true, y_score, epsilon=1.0).band()
        >>> band.lower.fpr.shape == band.upper.fpr.shape
        True
        >>> y_true, y_prob = [0] * 450 + [1] * 50 + [0] * 100 + [1] * 400, [0.1] * 500 + [0.8] * 500
        >>> band = with_result(private_calibration_curve)(y_true, y_prob, epsilon=1.0, n_bins=2).band()
        >>> bool(band.upper[0] < band.lower[1])
        True
        """
        asked = PopulationQuestion.of(self.metric, confidence, sure=False)
        check_persons(self.released, self.metric)
        band = getattr(self.reading, "band", None)
        if band is None:
            raise ValueError(
                f"{self.metric} is no curve with a band: use the result of private_roc_curve or of "
                "private_calibration_curve."
            )
        return band(self, asked)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name.

        Returns
        -------
        dict
            The fields; the value as the metric gave it.
        """
        return {name: getattr(self, name) for name in _PUBLISHED} | {"drawn": dict(self.drawn)}

    def to_json(self) -> str:
        """Return the fields as JSON.

        Returns
        -------
        str
            A JSON object; an array becomes a list, in which null stands for an infinite threshold.
        """
        return json.dumps(self.to_dict(), default=_listed, allow_nan=False)


AnyResult: TypeAlias = Result[Any]

_PUBLISHED = (
    "value", "epsilon", "n", "neighboring", "mechanism", "drawn", "metric", "spend_name", "note", "bias",
    "deployment",
)  # fmt: skip


def counts_persons(result: Any) -> bool:
    """Return whether each person counts once in a result, so that its numbers of records are of persons."""
    return any(noise.units > 1 for noise in getattr(result, "noises", ()))


def drawn_by(noises: Iterable[Noise]) -> str:
    """Return what draws a release, for the accountant's history."""
    return ", ".join(dict.fromkeys(noise.name for noise in noises))


def unit_of_persons(most_records: int) -> dict[str, str]:
    """Return the unit of the guarantee where all records of one person, so many at most, are protected."""
    at_most = f", up to {most_records}," if most_records > 1 else ""
    details = (
        f"Test sets are adjacent if all records of one person of the first{at_most} are replaced by as many "
        "other valid ones; who has which is public."
    )
    return {"privacy_unit": "person", "privacy_unit_details": details}


def _listed(array: Array) -> Any:
    values = array.astype(object)
    if array.dtype.kind == "f":
        values[~np.isfinite(array)] = None
    return values.tolist()


P = ParamSpec("P")
T = TypeVar("T")

_RELEASES: dict[Any, Callable[..., AnyResult]] = {}
"""What makes the result of each function, from all its arguments by name."""


def set_result(function: Function, release: Callable[..., AnyResult]) -> None:
    """Let `with_result` serve a function that returns the value of what this release returns.

    Parameters
    ----------
    function : function
        A function, or a method of a class, which comes first among its arguments.
    release : callable
        Takes all arguments of the function by name.
    """
    _RELEASES[function] = release


def with_result(metric: Callable[P, T]) -> Callable[P, Result[T]]:
    """Return a metric that returns its `Result`: the value with all that may be published about it.

    Parameters
    ----------
    metric : callable
        A metric of this package, the method `release` of a `Summary`, or a `functools.partial` of one of
        these.

    Returns
    -------
    callable
        Takes the same arguments, spends the same epsilon and draws the same value. It can be pickled if the
        metric can.

    Raises
    ------
    TypeError
        If metric is none of these.

    Notes
    -----
    Guarantee: that of the metric. All that a `Result` holds costs epsilon together.

    Examples
    --------
    >>> from dp_metrics import private_mae, with_result
    >>> result = with_result(private_mae)([3.0, 1.0] * 500, [2.0, 1.0] * 500, epsilon=1.0)
    >>> result.value >= 0, result.epsilon, result.n
    (True, 1.0, 1000)
    >>> lower, upper = result.noise_interval()
    """
    if isinstance(metric, partial):
        served = partial(with_result(metric.func), *metric.args, **metric.keywords)
        return cast(Callable[P, Result[T]], served)
    function, own = (metric.__func__, [metric.__self__]) if isinstance(metric, MethodType) else (metric, [])
    if not isinstance(function, FunctionType) or function not in _RELEASES:
        raise TypeError(
            "with_result takes a metric of dp_metrics, the release of a Summary, or a functools.partial of "
            "one of these."
        )
    return cast(Callable[P, Result[T]], partial(_result, function, *own))


def _result(function: FunctionType, /, *args: Any, **kwargs: Any) -> AnyResult:
    return _RELEASES[function](**arguments_of(function, args, kwargs))


def arguments_of(function: Function, args: Sequence[Any], kwargs: ByName) -> dict[str, Any]:
    """Return all arguments of a call by name, with the defaults; raise TypeError as the call would."""
    positional, needed, defaults = _parameters(function)
    given = {**dict(zip(positional, args, strict=False)), **kwargs}
    if len(given) == len(args) + len(kwargs) and needed <= given.keys() <= defaults.keys():
        return {**defaults, **given}
    problem = ""
    try:  # which says what is wrong
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError as error:
        problem = str(error).replace("too many", "takes options by their names only: too many")
    raise TypeError(f"{function.__name__}() {problem}")  # with no other error in its context


@lru_cache(maxsize=256)
def _parameters(function: Function) -> tuple[list[str], set[str], ByName]:
    """Return the names of what may be given by its place, of what must be given, and all defaults by name."""
    shown = inspect.signature(function).parameters.values()
    return (
        [one.name for one in shown if one.kind is not one.KEYWORD_ONLY],
        {one.name for one in shown if one.default is one.empty},
        {one.name: one.default for one in shown},
    )
