"""Planning: what error to expect of a release, or how many records or what epsilon it takes."""

from __future__ import annotations

import math
import numbers
import sys
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, TypeAlias

import numpy as np

from dp_metrics._random import Generator, made_up
from dp_metrics.analysis.guesses import LAWS, MOST_RECORDS, Data, Guess, examples_of, hints_of
from dp_metrics.inputs.arrays import array_of, check_groups
from dp_metrics.inputs.options import (
    MAX_FLOAT,
    ByName,
    Floats,
    Function,
    as_whole,
    check_confidence,
    check_positive,
    exact_epsilon,
    own_error_state,
)
from dp_metrics.mechanisms import Mechanism
from dp_metrics.mechanisms._laws import Staircase, cells, outcomes_of
from dp_metrics.metrics import Metric, row_of
from dp_metrics.quantities.base import Output
from dp_metrics.quantities.tables import NoisyCounts, TableLaw
from dp_metrics.release.query import Query, Source, Terms
from dp_metrics.release.release import PreparedQuery
from dp_metrics.release.released import NO_POPULATION

_PROBABILITIES = (0.05, 0.25, 0.5, 0.75, 0.95)
_ONE_AT_A_TIME = "{} releases several numbers here: plan for one output, or one metric, at a time."
_TWO_DIGITS = range(10, 100)
_EPSILONS = [*(float(f"{m}e{power}") for power in range(-5, 3) for m in _TWO_DIGITS), 1e4]
_SIZES = [*range(2, 10), *(m * 10**power for power in range(4) for m in _TWO_DIGITS), MOST_RECORDS]


@own_error_state
@dataclass(frozen=True)
class ReleasePlan:
    """A release as it is planned: what goes in, and what comes of it. It reads no private data.

    Parameters
    ----------
    n : int
        Number of records.
    epsilon : float
        Privacy parameter.
    error : float
        Expected absolute error by the noise, in the units of the metric, never 0; no single error counts for
        more than the error cap.
    off_by : float
        How far `error` may be off, because it is simulated: three standard errors.
    error_range : tuple of float or None
        From a guess without a `law`, the errors with light tails (normal errors) and with heavy ones
        (Student's t, 3 degrees), the smaller one first. All else is told of the larger one. None: there is no
        law to guess, or it makes no difference.
    bias : float
        Mean of release - truth, with the same cap.
    quantiles : mapping
        Quantiles of release - truth, without a cap, by their probabilities 0.05, 0.25, 0.5, 0.75 and 0.95.
    width : float or None
        How far the limits of the metric among all people like the records (`population_interval`) are apart,
        those of several labels at most; None where it has none.
    assumes : str
        What was assumed of the records if they were made from a guess; "" for records that were given.

    See Also
    --------
    plan_release : The function that returns it.

    Examples
    --------
    >>> from dp_metrics import plan_release
    >>> plan = plan_release("accuracy", guess=0.9, n=12000, epsilon=1.0)
    >>> plan.quantiles[0.05] < 0 < plan.error < plan.quantiles[0.95] < 1e-3
    True
    """

    n: int
    epsilon: float
    error: float
    off_by: float
    error_range: tuple[float, float] | None
    bias: float
    quantiles: Mapping[float, float]
    width: float | None
    assumes: str


@own_error_state
def plan_release(  # noqa: PLR0913 - each may be known of the data
    metric: str | Function,
    *,
    guess: Any,
    n: int | None = None,
    epsilon: float | None = None,
    error: float | None = None,
    width: float | None = None,
    positives: float | None = None,
    predicted_positives: float | None = None,
    classes: int | None = None,
    law: str | None = None,
    error_cap: float = 10.0,
    confidence: float = 0.95,
    neighboring: str = "replace_one",
    mechanism: str | Mechanism | None = None,
    **options: Any,
) -> ReleasePlan:
    r"""Return, from public facts only, the error, the epsilon or the number of records of a release.

    Pass all but one of the number of records, epsilon, and the error (or the width of an interval): the plan
    has the last one. Never use this on private data: a plan is not private.

    Parameters
    ----------
    metric : callable or str
        A metric of this package that returns one number, such as `private_mse`, or its name.
    guess : float or tuple of array-like
        A public guess of the metric: records with this metric are made, and `assumes` of the plan tells what
        they are like. Or records that are public, older or synthetic, and like the private ones: what the
        metric takes by position, such as ``(y_true, y_pred)`` or ``(losses,)``.
    n : int or None, default=None
        Number of records, 2 to 1,000,000. None: as many as are given, or the number that it takes.
    epsilon : float or None, default=None
        Privacy parameter of the release; None: the one that it takes.
    error : float or None, default=None
        Accepted mean absolute error by the noise, > 0, in the units of the metric.
    width : float or None, default=None
        Wanted distance of the two limits among all people like the records, > 0, of a metric that has them:
        see `Result.population_interval`. Pass this or `error`.
    positives : float or None, default=None
        With a guess, the share of records with label 1; None: all labels are alike.
    predicted_positives : float or None, default=None
        With a guess of a metric of two labels, the share of records that are predicted to have label 1; None:
        as many as have it. A precision or F1 of a rare label that a model seldom predicts, as at a threshold
        of 0.5, is off by many times more: pass it.
    classes : int or None, default=None
        With a guess, the number of labels; None: 2.
    law : {"normal", "heavy"} or None, default=None
        With a guess, the law of the errors or numbers: normal, or Student's t with 3 degrees of freedom.
        Of a log loss: calibrated probabilities, or overconfident ones with log odds twice too large. None:
        both, and the plan serves either.
    error_cap : float, default=10.0
        Single errors count as at most this multiple of the true value: without a public limit, rare and huge
        overshoots would otherwise rule the mean, which then says nothing. If the true value is 0 they count
        as they are.
    confidence : float, default=0.95
        Of the interval whose width is asked for.
    neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
        The neighbouring relation of the release.
    mechanism : str, mechanism object or None, default=None
        As in the metric; None: its default.
    \*\*options
        The other options of the metric, such as ``bounds=(0, 1)``.

    Returns
    -------
    ReleasePlan
        An epsilon from 0.0001 to 10,000, or a number of records, that was asked for has two digits. It is the
        smallest whose error, with room for how far that may be off, or whose width is as small as wanted, if
        these fall as it grows.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid, if not all but one are given, if nothing is enough, if the metric returns
        several numbers, or has no such interval, or if no records of the kind have the guessed value.

    See Also
    --------
    Result.noise_interval : After a release, how far the noise may have moved it.

    Notes
    -----
    This gives no privacy guarantee, and needs none: no private record is read.

    The release is planned as a call plans it, and its laws are drawn from about 1,000 times, with the same
    numbers in every plan. The draws are stratified (each from another part of the law, and many from its
    tails), and those of several numbers are paired at random. Noise of counts that hardly ever comes is drawn
    more often, and counts for less. Records are kept as they are: errors are of the noise alone. If n is
    given beside records, these are repeated or cut off; repeated ones belong to new groups. A plan from a
    guess is about as good as its assumptions: on random data the error was from half to twice as large. With
    neighboring="add_or_remove_one" the noisy number of records is taken to be right.

    The width is that of an interval around the expected numbers: noise moves it a little, either way.

    A table of scores is compared with the metric of the finest table: what its bins hide is part of the
    error. Where the metric has a public limit, the error of the default is that of records like these. If you
    know beforehand that about 3 / epsilon to 60 / epsilon records reach the limit and make most of the
    result, pass such records, and compare with ``mechanism="geometric"``: the default may miss them, and err
    up to 100 times as much. Records that are made of a guess have none.

    Examples
    --------
    The error:

    >>> from dp_metrics import plan_release
    >>> plan_release("accuracy", guess=0.9, n=12_000, epsilon=1.0).error < 1e-4
    True

    The epsilon, and the number of records:

    >>> plan_release("roc_auc", guess=0.8, n=12_000, positives=0.14, error=0.01).epsilon
    0.084
    >>> plan_release("recall", guess=0.9, positives=0.3, epsilon=1.0, width=0.1).n
    600

    With public records:

    >>> import numpy as np
    >>> from dp_metrics import private_mean_loss
    >>> public = np.random.default_rng(0).exponential(size=2000)
    >>> strict = plan_release(private_mean_loss, guess=(public,), epsilon=0.1)
    >>> loose = plan_release(private_mean_loss, guess=(public,), epsilon=2.0)
    >>> loose.error < strict.error < 1
    True
    """
    hints = {
        "positives": positives, "classes": classes, "law": law, "predicted_positives": predicted_positives,
    }  # fmt: skip
    row, fixed = row_of(metric)
    own = fixed.pop("mechanism", None)
    options = {**fixed, **options}
    if unknown := sorted(options.keys() - row.options.keys()):
        raise TypeError(f"{row.name} has no option {' or '.join(unknown)}: drop it.")
    terms = Terms.of(epsilon=1.0, neighboring=neighboring, mechanism=own if mechanism is None else mechanism)
    terms.relation.refuse(row.disclosing(options))
    cap = check_positive(error_cap, "error_cap")
    asked = check_confidence(confidence)
    is_data = isinstance(guess, tuple | list)
    laws = LAWS if law is None and not is_data and "law" in hints_of(row) else (law,)
    records = [_records_of(row, options, terms, guess, {**hints, "law": one}) for one in laws]
    wanted = ("error", error), ("width", width)
    goals = {name: check_positive(value, name) for name, value in wanted if value is not None}
    if n is None and (epsilon is None or not goals) and is_data:
        n = len(array_of(guess[0]))
    if len(goals) == 2 or [n, epsilon, goals or None].count(None) != 1:
        raise ValueError("Pass all but one of n, epsilon, and error or width: the plan has the last one.")

    def prepared(size: int, eps: float) -> list[tuple[PreparedQuery, str]]:
        priced = replace(terms, epsilon=exact_epsilon(eps))
        examples = (read(as_whole(size) or 0) for read in records)  # what is no whole number counts as 0
        return [
            (PreparedQuery.of(row.name, priced, query, source), assumes)
            for query, source, assumes in examples
        ]

    def plan(size: int, eps: float) -> ReleasePlan:
        plans = [
            replace(_plan(*one, cap), n=int(size), width=_width(one[0], asked)) for one in prepared(size, eps)
        ]
        plans.sort(key=lambda one: one.error)
        least, most = plans[0], plans[-1]
        if math.isclose(least.error, most.error, rel_tol=0.01):
            return least  # there is one law, or the law makes no difference, as of noise of a public size
        return replace(most, error_range=(least.error, most.error))

    def is_enough(size: int, eps: float) -> bool:
        try:
            made = prepared(size, eps)
        except ValueError:
            if n is not None:
                raise
            return False  # so few records cannot have the guessed value
        if width is None:
            plans = [_plan(*one, cap) for one in made]
            return all(one.error + one.off_by <= goals["error"] for one in plans)
        widths = [_width(one, asked) for one, _ in made]
        return all(one is not None and one <= width for one in widths)

    # raises for what is wrong whatever the size
    usual, _ = prepared(1000 if n is None else n, 1.0 if epsilon is None else epsilon)[0]
    if width is not None and _width(usual, asked) is None:
        raise ValueError(NO_POPULATION.format(row.name))
    if n is None:
        assert epsilon is not None
        return plan(_first(_SIZES, partial(is_enough, eps=epsilon)), epsilon)
    if epsilon is None:
        return plan(n, _first(_EPSILONS, partial(is_enough, n)))
    return plan(n, epsilon)


def _first(candidates: Sequence[Any], is_enough: Callable[[Any], bool]) -> Any:
    """Return the first that is enough, if then all that follow are."""
    place = bisect_left(candidates, True, key=is_enough)
    if place == len(candidates):
        raise ValueError(
            f"Nothing up to {candidates[-1]:,.0f} is enough: accept more, or change what else is given."
        )
    return candidates[place]


def _records_of(
    row: Metric, options: ByName, terms: Terms, guess: Any, hints: ByName
) -> Callable[[int], tuple[Query, Source, str]]:
    """Return what reads public records, given or made from a guess, in any number; the last ones are kept.

    It tells in words what they assume.
    """

    def read(data: Sequence[Any], public: ByName) -> tuple[Query, Source]:
        return row.read(data, public, relation=terms.relation)[:2]

    def value_of(public: ByName, data: Data) -> float:
        prepared = PreparedQuery.of(row.name, terms, *read(data, public))
        return _truth(prepared, _laws(prepared))

    is_data = isinstance(guess, tuple | list)

    @lru_cache(maxsize=1)
    def example(n: int) -> tuple[Query, Source, str]:
        if is_data:
            data, public, assumes = *_resized(guess, options, n), ""
        else:
            data, public, assumes = examples_of(row, options, Guess(guess, n, **hints), value_of)
        return *read(data, public), assumes

    if is_data:
        if hinted := [name for name, hint in hints.items() if hint is not None]:
            raise ValueError(
                f"{hinted[0]} is for a guess of the value: leave it out where there are records."
            )
        if len(guess) != len(row.data):
            raise TypeError(f"{row.name} takes {' and '.join(row.data)}: guess must hold these.")
        read(guess, options)  # they have one length
    return example


def _resized(data: Sequence[Any], options: ByName, n: int) -> tuple[Sequence[Any], ByName]:
    """Return the data and the options for n records: the first ones, or all of them again and again."""
    if n < 1:
        raise ValueError("n must be None or a positive integer.")
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


Laws: TypeAlias = "list[Any]"
"""Those of the parts of a prepared release of public records."""


def _laws(prepared: PreparedQuery) -> Laws:
    return prepared.laws(max(prepared.source.n, 1))


def _result(prepared: PreparedQuery, values: Sequence[Any]) -> Any:
    """Return the result of what is drawn: of persons who count once each, so many units of these are one."""
    drawn = zip(values, prepared.noises, strict=True)
    numbers = [value / noise.units if noise.units > 1 else value for value, noise in drawn]
    told = prepared.query.released(prepared.terms, prepared.source.totals, numbers)
    return prepared.query.reading(told)


def _truth(prepared: PreparedQuery, laws: Laws) -> float:
    """Return what the result is without noise; raise if it is not one number."""
    private_n = prepared.terms.relation.private_n
    pairs = zip(laws, prepared.stats, strict=True)
    exact, limits = zip(*(_exact(law, stats, private_n) for law, stats in pairs), strict=True)
    # by the epsilon of a release an average precision would be smoothed as if there was its noise
    clear = replace(prepared, terms=replace(prepared.terms, epsilon=_NO_NOISE))
    truth = _result(clear, exact)
    if not isinstance(truth, numbers.Real):
        raise ValueError(_ONE_AT_A_TIME.format(prepared.metric))
    if truth == 0 and MAX_FLOAT in limits:
        raise ValueError("The metric of these data is 0, and so is error_cap times it: pass a limit.")
    return float(truth)


def _simulated(prepared: PreparedQuery, laws: Laws) -> tuple[Floats, Floats]:
    """Return results of the release drawn many times, and the probability of each: stratified draws."""
    if not _is_random(laws):
        drawn, mass = outcomes_of(laws[0])
        return np.array([_result(prepared, [x]) for x in drawn.tolist()]), mass
    parts, mass, generator = [], np.ones(_MASS.size), made_up()
    for law in laws:
        if isinstance(law, TableLaw):
            noise, of_part = simulated_noise(law, mass.size, generator)
            values = np.array(law.values, dtype=np.float64) + noise
        else:
            values, of_part = law.quantile(_MIDDLE).tolist(), _MASS
        order = generator.permutation(mass.size)
        parts.append([values[place] for place in order])
        mass = mass * of_part[order]
    results = [_result(prepared, values) for values in zip(*parts, strict=True)]
    return np.array(results), mass / mass.sum()


def _is_random(laws: Laws) -> bool:
    """Return whether outcomes are drawn: those of one law of a number are as many as are needed."""
    return len(laws) > 1 or isinstance(laws[0], TableLaw)


def _plan(prepared: PreparedQuery, assumes: str, error_cap: float) -> ReleasePlan:
    """Return the plan of a release, but for the width."""
    laws = _laws(prepared)
    truth = _truth(prepared, laws)
    results, mass = _simulated(prepared, laws)
    errors = results - truth
    # a metric of 0 has no size to compare with
    cap = min(error_cap * abs(truth), MAX_FLOAT) or math.inf
    sizes = np.minimum(np.abs(errors), cap)
    error = max(float(mass @ sizes), sys.float_info.min)  # where it is 0 only by rounding that is a bound
    off_by = 3 * float(np.linalg.norm(mass * (sizes - error))) if _is_random(laws) else 0.001 * error
    order = np.argsort(errors)
    at = np.searchsorted(np.cumsum(mass[order]), _PROBABILITIES)
    quantiles = errors[order].take(at, mode="clip").tolist()
    return ReleasePlan(
        n=prepared.source.n,
        epsilon=float(prepared.terms.epsilon),
        error=error,
        off_by=off_by,
        error_range=None,
        bias=float(mass @ np.clip(errors, -cap, cap)),
        quantiles=dict(zip(_PROBABILITIES, quantiles, strict=True)),
        width=None,
        assumes=assumes,
    )


def _width(one: PreparedQuery, confidence: float) -> float | None:
    """Return how far limits among all people are apart, if the expected numbers are released."""
    clear = PreparedQuery.of(one.metric, replace(one.terms, epsilon=_NO_NOISE), one.query, one.source)
    outputs = [
        Output(law.values, {}) if isinstance(law, TableLaw) else output
        for law, output in zip(_laws(one), clear.draw().outputs, strict=True)
    ]
    try:
        lower, upper = one.result(outputs).population_interval(confidence)
    except ValueError:
        return None  # the metric has no such limits
    return float(np.max(np.subtract(upper, lower)))


def _exact(law: Any, stats: Any, private_n: bool) -> tuple[Any, float]:
    """Return what a part is without noise, and its public limit.

    The finest table is the truth, because what merging its columns costs is part of the error.
    """
    if isinstance(law, TableLaw):
        return stats.found.ravel(), 1.0
    bounds = stats.bounds(0, private_n)  # of which only the metric itself is asked
    return bounds.value, bounds.output_range[1]


_NO_NOISE = Fraction(10**6)
_MIDDLE, _MASS = cells(1024, 36)


def simulated_noise(law: TableLaw, times: int, generator: Generator) -> tuple[Floats, Floats]:
    """Return draws of the noise of a table, a row each, and how much each counts; in floats, with the sum 1.

    At a large epsilon draws from the law of a release are all 0, and say nothing of its errors. So they are
    of a law with some noise in every second table or more, and each counts as often as it is drawn by the
    law of a release, relative to that (importance sampling).
    """
    size = len(law.values)
    most = math.log(size / 0.75)  # noise in about one cell of the table
    of_release = np.array([float(rate) for count, rate in law.rates for _ in range(count)])
    of_cells = np.minimum(of_release, most)
    if law.zero_sum and size > 2:
        rates = tuple((count, min(rate, Fraction(most))) for count, rate in law.rates)
        noise = NoisyCounts((0,) * size, rates, size).simulated(generator, times)
    else:
        free = size - law.zero_sum  # of two numbers with one sum either noise tells the other, at both rates
        strata = np.stack([generator.permutation(times) for _ in range(free)], axis=1)
        p, alone = (strata + generator.random(strata.shape)) / times, of_cells[:free] * (1 + law.zero_sum)
        columns = [Staircase(rate).quantiles(part) for rate, part in zip(alone, p.T, strict=True)]
        noise = np.stack(columns, axis=1)
        noise = np.hstack([noise, -noise]) if law.zero_sum else noise
    rarer = np.abs(noise) @ (of_release - of_cells)
    counts = np.exp(rarer.min() - rarer)
    return noise, counts / counts.sum()
