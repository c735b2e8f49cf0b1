"""Planning: what error to expect of a release, and how many records an interval needs."""

from __future__ import annotations

import functools
import itertools
import math
import numbers
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dp_metrics._random import made_up
from dp_metrics.analysis.guesses import LAWS, Data, Guess, examples_of, hints_of
from dp_metrics.inputs.arrays import Records, array_of
from dp_metrics.inputs.losses import RecordLoss, identity
from dp_metrics.inputs.options import (
    MAX_FLOAT,
    Epsilon,
    Floats,
    Relation,
    as_real,
    as_whole,
    check_confidence,
    check_neighboring,
    check_positive,
    exact_epsilon,
    own_error_state,
)
from dp_metrics.inputs.readers import check_groups
from dp_metrics.mechanisms import Mechanism
from dp_metrics.mechanisms._laws import EvenGrid, cell_edges
from dp_metrics.mechanisms.geometric import GeometricLaw, Staircase, SumsLaw
from dp_metrics.metrics import row_of
from dp_metrics.metrics.classification import ShareOfRecords
from dp_metrics.metrics.labels.counts import NO_RATIO, Confusion, ratio_cells
from dp_metrics.quantities.base import Noise, Quantity
from dp_metrics.quantities.counts_noise import CountsNoise
from dp_metrics.quantities.mean import MeanOf
from dp_metrics.quantities.noises import noise_of
from dp_metrics.quantities.tables import TableLaw, noise_of_cells
from dp_metrics.quantities.variance import VarianceOf
from dp_metrics.release.count_limits import NoisyRatio, noisy_binomial_limits, noisy_ratio, ratio_limits
from dp_metrics.release.query import Query, Source
from dp_metrics.release.release import PreparedQuery
from dp_metrics.release.result import released_numbers
from dp_metrics.release.terms import Terms

_PROBABILITIES = (0.05, 0.25, 0.5, 0.75, 0.95)
_ONE_AT_A_TIME = "{} releases several numbers here: plan for one output, or one metric, at a time."


@own_error_state
@dataclass(frozen=True)
class ExpectedError:
    """What error to expect of a release on public data: computed from its exact law, or simulated from it.

    Parameters
    ----------
    mean_absolute : float
        Mean absolute error, never 0; no single error counts for more than the error cap.
    bias : float
        Mean signed error, release - truth, with the same cap.
    quantiles : mapping
        Quantiles of the signed error, without a cap, by their probabilities 0.05, 0.25, 0.5, 0.75 and 0.95.
    assumes : str
        What was assumed of the records if they were made from a guess; "" for data that were given.
    simulated : bool
        Whether errors were simulated, as of a metric of a table of counts, and not computed.
    mean_absolute_range : tuple of float or None
        From a guess without a `law`, the smaller and the larger mean absolute error of light tails (normal
        errors) and of heavy ones (Student's t, 3 degrees). All else is that of the law with the larger error.
        None: there is no law to guess, or it makes no difference.

    See Also
    --------
    expected_error : The function that returns it.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_metrics import expected_error, private_mae
    >>> public_errors = np.random.default_rng(0).exponential(size=2000)
    >>> expected = expected_error(private_mae, 0 * public_errors, public_errors, epsilon=1.0)
    >>> abs(expected.bias) < expected.mean_absolute < 0.1
    True
    >>> expected.quantiles[0.05] < 0 < expected.quantiles[0.95]
    True
    """

    mean_absolute: float
    bias: float
    quantiles: Mapping[float, float]
    assumes: str = ""
    simulated: bool = False
    mean_absolute_range: tuple[float, float] | None = None


@own_error_state
def expected_error(  # noqa: PLR0913 - each may be known of the data
    metric: str | Callable[..., Any],
    *data: ArrayLike,
    epsilon: float,
    n: int | None = None,
    guess: float | None = None,
    positives: float | None = None,
    classes: int | None = None,
    law: str | None = None,
    predicted_positives: float | None = None,
    error_cap: float = 10.0,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism | None = None,
    **options: Any,
) -> ExpectedError:
    r"""Return, from public data only, the error to expect of a metric at an epsilon.

    Never use this on private data: the result is computed or simulated from the exact law of the release,
    and not private. Give it public data, older data that may be shown, or synthetic data like the private.

    Parameters
    ----------
    metric : callable or str
        A metric of this package that returns one number, such as `private_mse`, or its name.
    \*data : array-like
        What the metric takes by position: ``y_true, y_pred``, ``y_true, y_proba``, ``losses`` or ``x``.
    epsilon : float
        Privacy parameter of the release.
    n : int or None, default=None
        Number of records to plan for; the data, `sample_weight` and `groups` are repeated, or cut off, to so
        many. Repeated records belong to new groups. None: as they are. With a guess, it must be given.
    guess : float or None, default=None
        A public guess of the metric, where there are no data: pass none then, and n, and records with this
        metric are made. What they are like is told by `assumes` of the result.
    positives : float or None, default=None
        With a guess, the share of records with label 1; None: all labels are alike.
    classes : int or None, default=None
        With a guess, the number of labels; None: 2.
    law : {"normal", "heavy"} or None, default=None
        With a guess, the law of the errors or numbers: normal, or Student's t with 3 degrees of freedom.
        Of a log loss: calibrated probabilities, or overconfident ones with log odds twice too large. None:
        both, of which the one with the larger error is told, and `mean_absolute_range` tells both.
    predicted_positives : float or None, default=None
        With a guess of a metric of two labels, the share of records that are predicted to have label 1; None:
        as many as have it. A precision or F1 of a rare label that a model seldom predicts, as at a threshold
        of 0.5, is off by many times more: pass it.
    error_cap : float, default=10.0
        Single errors count as at most this multiple of the true value: without a public limit, rare and huge
        overshoots would otherwise rule the mean, which then says nothing. If the true value is 0, they count
        as at most the largest error that the public limit allows.
    neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
        The neighbouring relation of the release.
    mechanism : str, mechanism object or None, default=None
        As in the metric; None: its default.
    \*\*options
        The other options of the metric, such as ``bounds=(0, 1)``.

    Returns
    -------
    ExpectedError
        Mean absolute error, bias and quantiles of the error, in the units of the metric.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid, if the metric releases more than two numbers or returns several, if the
        true value is 0 and there is no public limit, or if no records of the kind have the guessed metric.

    See Also
    --------
    epsilon_for_error : The other way round.

    Notes
    -----
    This gives no privacy guarantee at all. With neighboring="add_or_remove_one" the number of records, which
    the release itself estimates, is taken to be estimated without error.

    The truth is what the metric would be without noise, on the data clipped as the release clips them. If
    the metric is the released number itself, the mean absolute error is that of the law's own method. All
    else is summed over at least 1,000 quantiles of the law: means are within 0.1 % of the mean absolute
    error, and quantiles have their probabilities to within 0.001. A metric of two released numbers, such as
    R^2, is summed over all pairs of some 270 quantiles each: to within 1 %, and 0.01. A metric of a table of
    counts is simulated 4,000 times with the same numbers in every call, rare noise more often than it comes:
    the mean absolute error is within 10 %, mostly 5 %, and the quantiles have their probabilities to within
    0.02. With a guess, sums are coarser, to within 10 %, and simulations of 400 to within 30 %. The range of
    light and heavy tails held the true error in 28 of 36 cells of real data, and none was more than 1.5 times
    the larger one; of log losses of rare labels in 13 of 16, and none was more than 2.9 times the larger one
    (``benchmarks/planning.py`` of 308a3eb). An error too small for a float is told as the smallest positive
    one.

    Where the metric has a public limit, the error of the default is that of records like these. If you know
    beforehand that about 3 / epsilon to 60 / epsilon records reach the limit and make most of the result, put
    such records into the data, and compare with ``mechanism="geometric"``: the default may miss them, and err
    up to 100 times as much. Records that are made of a guess have none.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_metrics import expected_error, private_mean_loss
    >>> public_errors = np.random.default_rng(0).exponential(size=2000)
    >>> strict = expected_error(private_mean_loss, public_errors, epsilon=0.1)
    >>> loose = expected_error(private_mean_loss, public_errors, epsilon=2.0)
    >>> loose.mean_absolute < strict.mean_absolute < 1
    True
    >>> expected_error("accuracy", guess=0.9, n=12000, epsilon=1.0).mean_absolute < 1e-4
    True
    """
    hints = {
        "guess": guess, "positives": positives, "classes": classes, "law": law,
        "predicted_positives": predicted_positives,
    }  # fmt: skip
    with np.errstate(all="ignore"):
        settings = _settings(metric, data, n, hints, error_cap, neighboring, mechanism, options)
        told = sorted((one.expected_error(epsilon) for one in settings), key=lambda one: one.mean_absolute)
    if math.isclose(told[0].mean_absolute, told[-1].mean_absolute, rel_tol=_FINE.slack):
        return told[0]  # there is one, or the law makes no difference, as of noise of a public size
    return replace(told[-1], mean_absolute_range=(told[0].mean_absolute, told[-1].mean_absolute))


@own_error_state
def epsilon_for_error(  # noqa: PLR0913 - each may be known of the data
    metric: str | Callable[..., Any],
    *data: ArrayLike,
    error: float,
    n: int | None = None,
    guess: float | None = None,
    positives: float | None = None,
    classes: int | None = None,
    law: str | None = None,
    predicted_positives: float | None = None,
    error_cap: float = 10.0,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism | None = None,
    **options: Any,
) -> float:
    r"""Return, from public data only, the epsilon that gives a metric the mean absolute error you accept.

    Never use this on private data: the result is computed or simulated from the exact law of the release,
    and not private. Give it public data, older data that may be shown, or synthetic data like the private.

    Parameters
    ----------
    metric, \*data
        As for `expected_error`.
    error : float
        Wanted mean absolute error, > 0, in the units of the metric.
    n, guess, positives, classes, law, predicted_positives, error_cap, neighboring, mechanism, \*\*options
        As for `expected_error`.

    Returns
    -------
    float
        An epsilon of three digits, of two with a guess, between 0.0001 and 10,000, whose expected error is at
        most the wanted one, with room for how far sums are off, and of a simulated error three standard
        errors; from a guess without a `law`, with heavy tails as with light ones. It is the smallest, up to
        its last digit, if the error falls as epsilon grows.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid, as for `expected_error`, or no epsilon up to 10,000 is enough.

    See Also
    --------
    expected_error : The other way round.

    Notes
    -----
    This gives no privacy guarantee at all, and has the limits of `expected_error`.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_metrics import epsilon_for_error, expected_error, private_mean_loss
    >>> public_errors = np.random.default_rng(0).exponential(size=2000)
    >>> epsilon = epsilon_for_error(private_mean_loss, public_errors, error=0.05)
    >>> expected_error(private_mean_loss, public_errors, epsilon=epsilon).mean_absolute <= 0.05
    True
    >>> epsilon_for_error("roc_auc", guess=0.8, n=12000, positives=0.14, error=0.01)
    0.084
    """
    check_positive(error, "error")
    hints = {
        "guess": guess, "positives": positives, "classes": classes, "law": law,
        "predicted_positives": predicted_positives,
    }  # fmt: skip
    with np.errstate(all="ignore"):
        settings = _settings(metric, data, n, hints, error_cap, neighboring, mechanism, options)
        epsilon = 1.0
        for effort in settings[0].efforts:
            error_at = functools.partial(_largest, settings, effort)
            epsilon = _first_enough(error_at, error, min(epsilon, 1e4), effort.digits)
    if epsilon == math.inf:
        raise ValueError("No epsilon up to 10,000 has so small an expected error on these data.")
    return epsilon


@dataclass(frozen=True)
class _Places:
    """The numbers of so many digits from 0.0001 to 10,000, by their place in order."""

    digits: int

    @property
    def in_decade(self) -> int:
        """How many of them a decade has."""
        return 9 * int(10 ** (self.digits - 1))

    @property
    def last(self) -> int:
        """The place of 10,000."""
        return 8 * self.in_decade

    def number(self, place: int) -> float:
        """Return the number at a place."""
        decade, more = divmod(place, self.in_decade)
        return float(f"{self.in_decade // 9 + more}e{decade - 3 - self.digits}")

    def of(self, number: float) -> int:
        """Return the place of the smallest of the numbers that is not below this one."""
        decade = math.floor(math.log10(number))
        digits = math.ceil(number * 10.0 ** (self.digits - 1 - decade) - 1e-9)
        return (decade + 4) * self.in_decade + digits - self.in_decade // 9


def _first_enough(error_at: Callable[[float], float], wanted: float, start: float, digits: int) -> float:
    """Return the first epsilon of so many digits with an error of at most the wanted one, or infinity.

    Errors fall about as a power of epsilon: as 1 / epsilon until an error above and one below the wanted one
    are known, and then as between them. The next epsilon to try is where the wanted error would be; each time
    on the same side, the step is twice as long, and from the fourth time on the rest is halved.
    """
    places = _Places(digits)
    low, high, place, side, longer = -1, places.last + 1, places.of(start), 0, 1.0
    away = {low: math.nan, high: math.nan}  # decades from the wanted error, by place
    while high - low > 1:
        epsilon = places.number(place)
        error, before = error_at(epsilon), side
        away[place] = math.log10(error / wanted) if 0 < error < math.inf else math.nan
        side = -1 if error <= wanted else 1
        low, high = (low, place) if side < 0 else (place, high)
        longer = 2 * longer if side == before else 1.0
        slope = (away[low] - away[high]) / math.log10(places.number(high) / places.number(low))
        decades = longer * away[place] / (1.0 if math.isnan(slope) else slope or 1.0)
        if math.isnan(decades) or longer > 4:
            place = (low + high) // 2
            continue
        aim = places.of(epsilon * 10.0 ** max(-8.0, min(decades, 8.0)))
        place = max(low + 1, min(aim, place - 1)) if side < 0 else min(high - 1, max(aim, place + 1))
    return places.number(high) if high <= places.last else math.inf


def _settings(
    metric: Any, data: Sequence[Any], n: Any, hints: Mapping[str, Any], *more: Any
) -> list[_Setting]:
    """Return the checked arguments: of a guess that leaves the law of errors open one for each law."""
    is_open = hints["guess"] is not None and hints["law"] is None and "law" in hints_of(row_of(metric)[0])
    laws = LAWS if is_open else (hints["law"],)
    return [_Setting(metric, data, n, {**hints, "law": law}, *more) for law in laws]


def _largest(settings: Sequence[_Setting], effort: _Effort, epsilon: float) -> float:
    """Return the largest mean absolute error of some settings, and by how much it may be larger."""
    return max(one.at_most(effort, epsilon) for one in settings)


class _Setting:
    """The checked arguments of a call, without epsilon."""

    def __init__(
        self,
        metric: Any,
        data: Sequence[Any],
        n: Any,
        hints: Mapping[str, Any],
        error_cap: Any,
        neighboring: str,
        mechanism: Any,
        options: Mapping[str, Any],
    ) -> None:
        self._row, fixed = row_of(metric)
        own = fixed.pop("mechanism", None)
        mechanism, options = own if mechanism is None else mechanism, {**fixed, **options}
        if unknown := sorted(options.keys() - self._row.options.keys()):
            raise TypeError(f"{self._row.name} has no option {' or '.join(unknown)}: drop it.")
        self._error_cap = as_real(error_cap)
        if not self._error_cap > 0:
            raise ValueError("error_cap must be a positive number.")
        self._terms = Terms.of(epsilon=1.0, neighboring=neighboring, mechanism=mechanism)
        self._terms.relation.refuse(self._row.disclosing(options))
        self._options: Mapping[str, Any] = options
        self._assumes = ""
        if hints["guess"] is None:
            self._read_data(data, n, hints)
        else:
            self._make_data(data, n, hints)
        laws = self._prepared(self._terms).laws
        if hints["guess"] is None:
            self.efforts = (_ROUGH, _FINE) if len(laws) > 1 or _is_table(laws) else (_FINE,)
        else:
            self.efforts = (_ROUGH, _GUESSED) if _is_table(laws) else (_GUESSED,)

    def _read_data(self, data: Sequence[Any], n: Any, hints: Mapping[str, Any]) -> None:
        """Plan for the records that are given."""
        if given := [name for name, hint in hints.items() if hint is not None]:
            raise ValueError(f"{given[0]} is for a guess: pass guess=, the value of the metric.")
        if len(data) != len(self._row.data):
            raise TypeError(f"{self._row.name} takes {' and '.join(self._row.data)} by position.")
        if n is not None and (as_whole(n) or 0) < 1:
            raise ValueError("n must be None or a positive integer.")
        options, relation = self._options, self._terms.relation
        planned = self._row.read(data, options, relation=relation)
        if n is not None:  # the plan above has told that all arrays have one length
            planned = self._row.read(*_resized(data, options, int(n)), relation=relation)
        self._query, self._source = planned

    def _make_data(self, data: Sequence[Any], n: Any, hints: Mapping[str, Any]) -> None:
        """Plan for records that are made from a guess."""
        if data:
            raise ValueError(
                f"With a guess, {' and '.join(self._row.data)} must not be given: pass one or other."
            )
        of_records = {name: hint for name, hint in hints.items() if name != "guess"}
        guess = Guess(hints["guess"], n, **of_records)

        def planned(options: Mapping[str, Any], *made: Any) -> tuple[Query, Source]:
            return self._row.read(made, options, relation=self._terms.relation)

        def value_of(options: Mapping[str, Any], made: Data) -> float:
            return _Prepared(self._row.name, self._terms, *planned(options, *made)).truth

        example = examples_of(self._row, self._options, guess, value_of)
        self._query, self._source = planned(example.options, *example.data)
        self._options = example.options
        self._assumes = example.assumes

    def _prepared(self, terms: Terms) -> _Prepared:
        """Return the plan with its laws, on these terms."""
        return _Prepared(self._row.name, terms, self._query, self._source)

    def at_most(self, effort: _Effort, epsilon: float) -> float:
        """Return the mean absolute error at this epsilon, and by how much it may be larger than computed."""
        noise = self._noise(epsilon, effort)
        return noise.mean_absolute() + noise.slack()

    def expected_error(self, epsilon: float) -> ExpectedError:
        """Return all that is told of the error at this epsilon."""
        told = self._noise(epsilon, self.efforts[-1]).expected_error()
        return replace(told, assumes=self._assumes)

    def _noise(self, epsilon: float, effort: _Effort) -> _Noise | _SimulatedNoise:
        """Return the law of the release at this epsilon."""
        prepared = self._prepared(replace(self._terms, epsilon=exact_epsilon(epsilon)))
        if _is_table(laws := prepared.laws):
            return _SimulatedNoise(prepared.result, laws[0], prepared.truth, self._error_cap, effort)
        return _Noise(prepared.result, prepared.numbers, prepared.truth, self._error_cap, effort)


@dataclass(frozen=True)
class _Effort:
    """How finely errors are summed and epsilon is found.

    Simulations are of a table, cells those of `_outcomes` for pairs of numbers, whose sums are off by a share
    of at most `slack`, and digits those of epsilon.
    """

    simulations: int
    cells: int
    in_octave: int
    slack: float
    digits: int


_FINE = _Effort(4000, 128, 2, 0.01, 3)
_GUESSED = _Effort(400, 32, 1, 0.1, 2)  # what a guess leaves open is far more
_ROUGH = _Effort(100, 32, 1, 0.1, 2)  # to come near an epsilon
_SLACK = 0.001  # of the sum over one number


def _is_table(laws: Sequence[Any]) -> TypeGuard[Sequence[TableLaw]]:
    """Return whether a table of counts is released, and nothing else."""
    return len(laws) == 1 and isinstance(laws[0], TableLaw) and not _is_integer(laws[0])


def _is_integer(law: TableLaw) -> bool:
    """Return whether there is but one noise: of one whole number, or of two with one sum."""
    return len(law.values) == 1 or (len(law.values) == 2 and law.zero_sum)


class _Prepared:
    """A plan of public records with the law of each part, a private number of records taken to be known."""

    def __init__(self, name: str, terms: Terms, query: Query, source: Source) -> None:
        self._name, self._prepared = name, PreparedQuery.of(name, terms, query, source)

    @functools.cached_property
    def laws(self) -> list[Any]:
        """The law of each part."""
        return self._prepared.laws(max(self._prepared.source.n, 1))

    @functools.cached_property
    def numbers(self) -> list[_Number]:
        """Each part as one number."""
        if len(self.laws) > 2:
            raise ValueError(_ONE_AT_A_TIME.format(self._name))
        private_n = self._prepared.terms.relation.private_n
        pairs = zip(self.laws, self._prepared.stats, strict=True)
        return [_number(law, stats, private_n) for law, stats in pairs]

    def result(self, values: Sequence[Any]) -> Any:
        """Return what released numbers become."""
        prepared = self._prepared
        terms, totals = prepared.terms, prepared.source.totals
        return prepared.query.reading(released_numbers(terms, prepared.query, totals, values))

    @functools.cached_property
    def truth(self) -> float:
        """What the result is without noise; raises if it is not one number."""
        if _is_table(self.laws):
            # the finest table is the truth, because what merging its columns costs is part of the error
            values = [self._prepared.stats[0].counts.ravel()]
        else:
            values = [number.value for number in self.numbers]
        truth = self.result(values)
        if not isinstance(truth, numbers.Real):
            raise ValueError(_ONE_AT_A_TIME.format(self._name))
        return float(truth)


def _resized(
    data: Sequence[Any], options: Mapping[str, Any], n: int
) -> tuple[list[NDArray[Any]], dict[str, Any]]:
    """Return the data and the options for n records: the first ones, or all of them again and again."""
    arrays = [array_of(one) for one in data]
    length = len(arrays[0])
    if length == 0:
        raise ValueError("n needs data of at least one record.")
    rows = np.arange(n) % length
    public = dict(options)
    if options.get("sample_weight") is not None:
        public["sample_weight"] = array_of(options["sample_weight"])[rows]
    if (codes := check_groups(options.get("groups"))) is not None:
        public["groups"] = codes[rows] + np.arange(n) // length * (codes.max() + 1)
    return [array[rows] for array in arrays], public


@dataclass(frozen=True)
class _Number:
    """One released number: exactly, its law, its public range, and how it is handed to the postprocessing."""

    value: Any
    law: Any
    output_range: tuple[float, float]
    hand_over: Callable[[float], Any] = float


def _number(law: Any, stats: Any, private_n: bool) -> _Number:
    """Return the number that is released by a law."""
    if isinstance(law, SumsLaw):
        return _Number(law.sums.value, law, (0.0, law.sums.limit))
    if isinstance(law, TableLaw) and _is_integer(law):
        integer, others = _NoisyInteger(law), sum(law.values) if len(law.values) == 2 else None
        return _Number(
            law.values,
            integer,
            (-integer.FAR, integer.FAR),
            lambda x: (int(x),) if others is None else (int(x), others - int(x)),
        )
    if not hasattr(stats, "bounds"):
        raise ValueError("Only a release of single numbers has a law here: plan for one number at a time.")
    bounds = stats.bounds(1, private_n)
    return _Number(bounds.value, law, bounds.output_range)


class _NoisyInteger:
    """The law of a whole number with two-sided geometric noise, unless that is beyond 2^52."""

    FAR = 2.0**52

    def __init__(self, law: TableLaw) -> None:
        self._value, self._far = law.values[0], int(self.FAR)
        grid = EvenGrid(-self.FAR, self.FAR, 2 * self._far + 1)
        self._noise = GeometricLaw(grid, self._far, Staircase(law.rates[0][1] * len(law.values), 1))

    def cdf(self, t: Floats) -> Floats:
        """Return P(release <= t)."""
        away = np.clip(np.floor(t - float(self._value)), -self.FAR, self.FAR)
        return self._noise.index_cdf(away.astype(np.int64) + self._far)

    def quantile(self, p: Floats) -> Floats:
        """Return the smallest t with P(release <= t) >= p."""
        return (self._noise.index_quantile(p) - self._far + self._value).astype(np.float64)


class _Noise:
    """What one or two released numbers become, and how far that is from the truth."""

    def __init__(
        self,
        result: Callable[[Sequence[Any]], Any],
        parts: Sequence[_Number],
        truth: float,
        error_cap: float,
        effort: _Effort,
    ) -> None:
        self._result_of, self._parts, self._truth, self._effort = result, parts, truth, effort
        self._cap = min(error_cap * abs(self._truth), MAX_FLOAT) if self._truth else 0.0
        self._cap = self._cap or self._largest_error()

    def expected_error(self) -> ExpectedError:
        """Return all that is told of the error."""
        return _told(*self._errors, self._cap, self.mean_absolute())

    def mean_absolute(self) -> float:
        """Return the mean absolute error, as the law knows it if the result is in step with the number."""
        part, slope = self._parts[0], self._slope()
        if slope:
            return _not_zero(slope * part.law.mean_absolute_error(part.value, self._cap / slope))
        errors, mass = self._errors
        return _not_zero(np.sum(mass * np.minimum(np.abs(errors), self._cap)))

    def slack(self) -> float:
        """Return by how much the mean absolute error may be larger."""
        return self.mean_absolute() * (_SLACK if len(self._parts) == 1 else self._effort.slack)

    def _slope(self) -> float:
        """Return how far the result moves for each 1 of the one released number; 0 if not always as far."""
        part = self._parts[0]
        if len(self._parts) > 1 or not isinstance(part.value, float):
            return 0.0
        x = np.sort([part.value, *part.law.quantile(np.linspace(0.0, 1.0, 33)).tolist()])
        results = np.array([self._result(one) for one in x.tolist()])
        moved, slope = x - x[0], (results[-1] - results[0]) / (x[-1] - x[0])
        off = np.abs(results - results[0] - slope * moved)
        is_line = (off <= 1e-12 * (abs(results[0]) + np.abs(slope * moved))).all()  # False if NaN
        return abs(slope) if is_line else 0.0

    def _result(self, *released: float) -> float:
        values = [part.hand_over(x) for part, x in zip(self._parts, released, strict=True)]
        return float(self._result_of(values))

    def _largest_error(self) -> float:
        ranges = [part.output_range for part in self._parts]
        if any(high >= MAX_FLOAT for _, high in ranges):
            raise ValueError("The metric of these data is 0, and so is error_cap times it: pass a limit.")
        return max(abs(self._result(*ends) - self._truth) for ends in itertools.product(*ranges))

    @functools.cached_property
    def _errors(self) -> tuple[Floats, Floats]:
        """Errors, and the probability of each."""
        if len(self._parts) == 1:
            numbers_, mass = _outcomes(self._parts[0].law, 1024, 4, jumps=True)
            results = [self._result(x) for x in numbers_.tolist()]
        else:
            cells, in_octave = self._effort.cells, self._effort.in_octave
            (first, p), (second, q) = (
                _outcomes(part.law, cells, in_octave, jumps=False) for part in self._parts
            )
            mass = np.multiply.outer(p, q).ravel()
            results = [self._result(x, y) for x in first.tolist() for y in second.tolist()]
        return np.array(results) - self._truth, mass


class _SimulatedNoise:
    """The same of what becomes of a table of noisy counts: simulated, with the same numbers every time."""

    def __init__(
        self,
        result: Callable[[Sequence[Any]], Any],
        law: TableLaw,
        truth: float,
        error_cap: float,
        effort: _Effort,
    ) -> None:
        counts = np.array(law.values, dtype=np.float64)
        noise, self._mass = simulated_noise(law, effort.simulations)
        self._errors = np.array([result([noisy]) for noisy in counts + noise]) - truth
        # a metric of 0 has no size to compare with: errors are not capped
        self._cap = error_cap * abs(truth) or math.inf

    def expected_error(self) -> ExpectedError:
        """Return all that is told of the error."""
        told = _told(self._errors, self._mass, self._cap, self.mean_absolute())
        return replace(told, simulated=True)

    def mean_absolute(self) -> float:
        """Return the mean absolute error."""
        return _not_zero(self._mass @ self._sizes)

    def slack(self) -> float:
        """Return three standard errors of the mean absolute error."""
        return 3 * float(np.sqrt(np.sum((self._mass * (self._sizes - self.mean_absolute())) ** 2)))

    @functools.cached_property
    def _sizes(self) -> Floats:
        return np.minimum(np.abs(self._errors), self._cap)


def _not_zero(mean: Any) -> float:
    """Return a mean absolute error; of one that is 0 only by rounding the smallest float is a bound."""
    return max(float(mean), sys.float_info.min)


def _told(errors: Floats, mass: Floats, cap: float, mean_absolute: float) -> ExpectedError:
    """Return what is told of errors that have these probabilities."""
    order = np.argsort(errors)
    reached = np.cumsum(mass[order])
    at = np.searchsorted(reached, np.array(_PROBABILITIES) * reached[-1])
    quantiles = dict(zip(_PROBABILITIES, errors[order][at].tolist(), strict=True))
    return ExpectedError(mean_absolute, float(np.sum(mass * np.clip(errors, -cap, cap))), quantiles)


_OCTAVES = 36


def _outcomes(law: Any, cells: int, in_octave: int, *, jumps: bool) -> tuple[Floats, Floats]:
    """Return numbers that stand for a law, and the probability of each.

    The probabilities from 0 to 1 are cut into cells, even ones and towards both ends geometrically smaller
    ones, and the quantile in the middle of a cell stands for the whole. If the law is asked where it jumps,
    a number that is released with more than the probability of a cell gets a cell of its own, so that the
    sums over a law of few likely numbers are exact.
    """
    edges = cell_edges(cells, _OCTAVES, in_octave)
    if jumps:
        x = law.quantile(edges)
        edges = np.concatenate([edges, law.cdf(np.nextafter(x, -np.inf)), law.cdf(x)])
        edges = np.unique(np.clip(edges, 0.0, 1.0))
    mass = np.diff(edges)
    return law.quantile(edges[:-1] + mass / 2), mass


def _as_it_is(block: Floats) -> Floats:
    return block


def prepared_mean(
    losses: Floats, *, max_loss: float | None = None, mechanism: Mechanism, epsilon: Epsilon
) -> tuple[Noise, Any]:
    """Return how a mechanism draws a mean loss, and what that has to know of the losses."""
    quantity = MeanOf(RecordLoss(identity, reads=(_as_it_is,), cap=max_loss))
    return _prepared(quantity, losses, mechanism, epsilon)


def prepared_variance(
    x: Floats, *, bounds: tuple[float, float] | None = None, mechanism: Mechanism, epsilon: Epsilon
) -> tuple[Noise, Any]:
    """Return how a mechanism draws a variance, and what that has to know of the values."""
    return _prepared(VarianceOf(bounds), x, mechanism, epsilon)


def _prepared(quantity: Quantity, x: Floats, mechanism: Mechanism, epsilon: Epsilon) -> tuple[Noise, Any]:
    source = Query((quantity,), lambda records: records).read(Records((x,)))
    noise = noise_of(mechanism, quantity, source.totals[0], None, exact_epsilon(epsilon))
    return noise, source.look(0, noise)


def simulated_noise(law: TableLaw, times: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Return draws of the noise of a table, a row each, and how much each counts; in floats, with the sum 1.

    At a large epsilon draws from the law of a release are all 0, and say nothing of its errors. So they are
    of a law with some noise in every second table or more, and each counts as often as it is drawn by the
    law of a release, relative to that (importance sampling).
    """
    most = Fraction(math.log(len(law.values) / 0.75))  # noise in about one cell of the table
    rates = tuple((size, min(rate, most)) for size, rate in law.rates)
    noise = CountsNoise((0,) * len(law.values), rates, law.zero_sum).simulated(made_up(seed), times)
    above = np.repeat(
        [float(rate - drawn) for (_, rate), (_, drawn) in zip(law.rates, rates, strict=True)],
        [size for size, _ in rates],
    )
    rarer = np.abs(noise) @ above
    counts = np.exp(rarer.min() - rarer)
    return noise, counts / counts.sum()


_MOST_RECORDS = 10**9


@own_error_state
def records_needed(
    metric: str | Callable[..., Any],
    *,
    width: float,
    epsilon: float,
    guess: float,
    positives: float | None = None,
    confidence: float = 0.95,
    neighboring: str = "replace_one",
) -> int:
    """Return how many records give an interval for all people of about this width.

    It reads no data: pass what you expect, or what is public.

    Parameters
    ----------
    metric : callable or str
        A metric with a `population_interval`: `private_recall_score`, or its name, such as "recall" or
        "accuracy"; with other options than the defaults as ``partial(private_recall_score, average=None,
        labels=labels)``, of which all labels have their limits at once.
    width : float
        Wanted distance of the two limits, between 0 and 1.
    epsilon : float
        What the release is to cost, > 0.
    guess : float
        The value that you expect, from 0 to 1. For an accuracy, or a ratio such as recall, a guess nearer to
        1/2 is the safer one.
    positives : float or None, default=None
        The share of the records that count for the metric, above 0 and at most 1: those with the positive
        label for a recall, those predicted to have it for a precision, those with either for an F1. Needed
        unless all count, as for an accuracy.
    confidence : float, default=0.95
        Of the interval.
    neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
        As in the call that releases the metric.

    Returns
    -------
    int
        The smallest number of records whose interval is as narrow, if the release has the expected counts.
        Noise moves the width of one release a little, in either direction.

    Raises
    ------
    ValueError, TypeError
        If the metric has no such interval, an argument is invalid, or 10^9 records are not enough.

    See Also
    --------
    epsilon_for_error : The epsilon that gives a metric the error that you accept, from public data.

    Notes
    -----
    This gives no privacy guarantee, and needs none: no record is read.

    Examples
    --------
    >>> from dp_metrics import records_needed
    >>> records_needed("accuracy", width=0.04, epsilon=1.0, guess=0.9) < 1000
    True
    >>> records_needed("recall", width=0.1, epsilon=1.0, guess=0.9, positives=0.3)
    596
    """
    (row, options), relation = row_of(metric), check_neighboring(neighboring)
    expected, asked = as_real(guess), as_real(width)
    if not 0 <= expected <= 1:
        raise ValueError("guess must be a number from 0 to 1.")
    if not 0 < asked < 1:
        raise ValueError("width must be a number between 0 and 1.")
    result = row.planned(row.form(n=None if relation.private_n else _MOST_RECORDS), options).reading
    miss, eps = (1 - check_confidence(confidence)) / 2, exact_epsilon(epsilon)
    share, limits = 1.0, _of_share(expected, eps, relation, miss)
    if isinstance(result, Confusion):
        if positives is None or not 0 < as_real(positives) <= 1:
            raise ValueError(
                f"{row.name} needs positives, a number above 0 and at most 1: the share of the records that "
                "count for it."
            )
        share, limits = as_real(positives), _of_ratio(row.name, result, expected, eps, relation, miss)
    elif not isinstance(result, ShareOfRecords):
        raise ValueError(NO_RATIO.format(row.name))
    elif positives is not None:
        raise ValueError(f"All records count for {row.name}: leave out positives.")

    def is_enough(n: int) -> bool:
        lower, upper = limits(n, round(n * share))
        return upper - lower <= asked

    few, many = 0, 1
    while not is_enough(many):
        few, many = many, 2 * many
        if many > _MOST_RECORDS:
            raise ValueError("10^9 records are not enough: ask for a wider interval, or spend more epsilon.")
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if is_enough(middle) else (middle, many)
    return many


def _of_share(
    guess: float, epsilon: Fraction, relation: Relation, miss: float
) -> Callable[[int, int], tuple[float, float]]:
    """Return the limits of a share of all records that is the guess, of their number."""

    def limits(n: int, counting: int) -> tuple[float, float]:
        count = round(counting * guess)
        if relation.private_n:
            ratio = NoisyRatio(count, counting - count, (1, 1), (epsilon, epsilon), None, None)
            return ratio_limits(ratio, miss, miss)
        return noisy_binomial_limits(count, n, float(epsilon), miss_low=miss, miss_high=miss)

    return limits


def _of_ratio(
    name: str, result: Confusion, guess: float, epsilon: Fraction, relation: Relation, miss: float
) -> Callable[[int, int], tuple[float, float]]:
    """Return the limits of a ratio that is the guess, of a number of records and of those that count."""
    cells = ratio_cells(result.layout, result.parts_of)
    if cells is None or result.of_ratios is not None:
        raise ValueError(NO_RATIO.format(name))
    layout, first, each = result.layout, cells[0], miss / len(cells)
    private_n, is_partition = relation.private_n, layout.is_partition
    table = noise_of_cells(layout.cells, epsilon, private_n=private_n, is_partition=is_partition)
    of_a, of_b = first.weights
    share = of_b * guess / (of_a * (1 - guess) + of_b * guess)  # of the records that count, in A

    def limits(n: int, counting: int) -> tuple[float, float]:
        counts = [0] * layout.good.size
        counts[first.a[0]] = round(counting * share)
        counts[first.b[0]] = counting - counts[first.a[0]]
        noise = CountsNoise(tuple(counts), table.rates, table.zero_sum)
        return ratio_limits(noisy_ratio(noise, first, None if private_n else n), each, each)

    return limits
