"""Which of two models is better, on the same private records.

Model A wins on W records and B on L; D = W - L, and m = W + L records are decided, of n. Both are released
with two-sided geometric noise of a rate r: k has probability proportional to exp(-r abs(k)). All functions
here are functions of the two released whole numbers and of public ones.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from dp_metrics._random import RandomState
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.inference.loss_intervals import mean_interval_query, population_release, value_of
from dp_metrics.inputs.arrays import Records, Shape, first_records, number_of_persons, of_prediction
from dp_metrics.inputs.losses import RecordLoss
from dp_metrics.inputs.options import (
    OR_NO_LIMIT,
    ByName,
    Floats,
    Function,
    Range,
    Relation,
    check_confidence,
    check_positive,
    own_error_state,
)
from dp_metrics.mechanisms._laws import Integers, Staircase
from dp_metrics.metrics import METRICS, Metric, row_of
from dp_metrics.quantities.mean import MeanOf, PublicWeights, clipped_losses
from dp_metrics.quantities.tables import integers_of
from dp_metrics.release.count_limits import binomial_law, largest_share
from dp_metrics.release.query import Query, Source, Terms
from dp_metrics.release.released import POPULATION_NOTE, Interval
from dp_metrics.release.result import ReleasedNumbers
from dp_metrics.release.stored import PER_RECORD

COMPARABLE: Mapping[str, Metric] = {
    row.name.removeprefix("private_"): row
    for row in METRICS.values()
    if len(row.usual.quantities) == 1
    and isinstance(row.usual.quantities[0], MeanOf)
    and row.data[:1] == ("y_true",)
    and row.greater_is_better is False
    and row.name != "private_rmse"  # no record has a root mean squared error of its own
}
"""The metrics that are the plain mean of one loss per record, of a truth and a prediction."""


def losses_of_each(records: Records, losses: Sequence[RecordLoss]) -> list[Floats]:
    """Return the losses of A and of B, clipped, of what `read_each` returned; raise for invalid records.

    Of each person where these are public: the loss of a person is the mean of those of all records.
    """
    weights, found = PublicWeights.of(records), []
    sizes = weights.terms(np.ones(weights.n))  # of records that are persons 1
    for place, (loss, one) in enumerate(zip(losses, records.split(2), strict=True), start=1):
        with of_prediction(place, 2):
            found.append(weights.terms(clipped_losses(loss, one.arrays)) / sizes)
    return found


Reader: TypeAlias = Callable[[Records], Records]


def paired_losses(loss: Any, shape: Shape, options: ByName) -> tuple[str, tuple[RecordLoss, ...], Reader]:
    """Return what a loss is called, that of a record by A and by B, and what reads the records for both.

    Parameters
    ----------
    loss : str or callable
        As in `private_compare`.
    shape : Shape
        Of y_true, pred_a and pred_b.
    options : mapping
        Options of the metric.
    """
    row, fixed = row_of(loss, "loss")
    if row not in COMPARABLE.values():
        raise ValueError(
            f"{row.name} cannot be compared record by record: pass as loss one of {', '.join(COMPARABLE)}; "
            "losses of your own as predictions, with zeros as y_true and loss='mae'."
        )
    options = {**fixed, **options}
    known = row.options.keys() - PER_RECORD - {"normalize", "mechanism"}
    if unknown := options.keys() - known:
        raise TypeError(
            f"private_compare() with this loss got an unexpected keyword argument {min(unknown)!r}; of "
            f"{row.name} it takes {', '.join(sorted(known)) or 'no options'}."
        )
    if isinstance(each := options.get("multioutput"), str) and each == "raw_values":
        raise ValueError(
            "multioutput='raw_values' cannot be compared: a record needs one loss. Compare each output apart."
        )
    queries, reader = row.planned_each(shape, options)
    parts = [part for query in queries for part in query.quantities if isinstance(part, MeanOf)]
    return row.name.removeprefix("private_"), tuple([part.record_loss for part in parts]), reader


LEAST_P = 0.001
"""Allowed to miss the number of decided records; no p-value is smaller."""

_LARGEST_MISS = 0.2  # only tails up to this grow with the share of decided records
_LEFT_OUT = 1e-15  # probability of sums that are not looked at
_ROUNDING = 1e-12  # this exceeds what is left out and what floats do to the sum of a law
_NOTHING = -60.0  # logarithm of what does not show in a sum of floats
_EXACT = 1 << 53  # floats hold every whole number up to this
_PRECISION = 1e-10  # the search for theta stops at this
_MOST_STEPS = 10_000  # this exceeds the square of the steps of a bisection: the search cannot fail
_FEW = 4.0  # fewer undecided records than this do not quite hide the parity of D
_BETWEEN = 1.01  # this exceeds the largest tail over all such shares, divided by that over some of them


def wins_p_value(difference: int, decided: int, n: int, rate: float) -> float:
    """Return the p-value of: A and B win with one probability.

    Parameters
    ----------
    difference, decided : int
        The noisy D and m.
    n : int
        Public number of records.
    rate : float
        Rate of the noise of each.

    Returns
    -------
    float
        From `LEAST_P` to 1.

    Notes
    -----
    Given m, D is 2 Binomial(m, 1/2) - m, so the law of the noisy D is known but for m. With probability
    1 - g, g = `LEAST_P`, m is at most an upper limit u made of the noisy m, whose noise is independent, and

        p = g + max over k = u, u - 1 of P(abs(2 Binomial(k, 1/2) - k + noise) >= abs(noisy D))

    is valid: P(p <= a) <= a for every a (R. L. Berger and D. D. Boos, JASA 89 (1994), 1012-1016). Two
    values of k, because the tail grows from k to k + 2, but not from k to k + 1, where the parity changes.
    The tail grows: with X = 2 Binomial(k, 1/2) - k + noise and d >= 1, it changes by (s(d - 2) - s(d)) / 2
    on either side together, s(i) = P(X = i) + P(X = i + 1); twice a binomial plus a fair 0 or 1 is unimodal,
    the noise is log-concave, so s is unimodal, and it is symmetric about -1/2.
    """
    upper = min(n, max(decided, 0) + Staircase(rate).largest(LEAST_P))
    tails = (_two_sided_tail(k, difference, rate) for k in (upper, max(upper - 1, 0)))
    return min(1.0, LEAST_P + max(tails))


def _two_sided_tail(k: int, difference: int, rate: float) -> float:
    """Return P(abs(2 Binomial(k, 1/2) - k + noise) >= abs(difference)); where that is 1, 1 or about 1."""
    far = min(abs(difference), _EXACT)
    wins, law = binomial_law(k, 0.5)  # which leaves out less than _LEFT_OUT
    return 2.0 * (float(law @ Staircase(rate).cdf(2.0 * wins - far - k)) + _LEFT_OUT)


def wins_interval(difference: int, decided: int, n: int, rate: float, confidence: float) -> Range:
    """Return limits of theta, the probability that A wins less the probability that B does.

    Parameters
    ----------
    difference, decided, n, rate
        As for `wins_p_value`.
    confidence : float
        Least probability with which both limits hold, over records and noise.

    Returns
    -------
    lower, upper : float
        The limits, from -1 to 1.

    Notes
    -----
    Let a be 1 - confidence and g the smaller of 0.001 and a / 10. The share of decided records has an upper
    limit that fails with probability g, from the noisy m. At that share, a theta is below the lower limit if
    the noisy D would be as large as it is, or larger, with probability (a - g) / 2 at most; likewise above.
    So the interval holds if these tails are no larger at the true share than at the limit. They grow with
    the share, but for the last few records: where hardly any is undecided, D has almost surely the parity of
    n. There the largest tail over a few smaller shares is taken, and a little added for those between. That
    tails up to 0.2 then grow has no proof; it was checked on a grid of shares, thetas, n and rates.
    """
    allowed = 1.0 - confidence
    for_share = min(LEAST_P, allowed / 10.0)
    most = largest_share(decided, n, rate, for_share)
    miss = min((allowed - for_share) / 2.0, _LARGEST_MISS)
    # clamped, like a count: whatever the noise, the interval is not empty, and its tails are the same
    noisy = _clipped(difference, n)
    return _lower_limit(noisy, n, rate, most, miss), -_lower_limit(-noisy, n, rate, most, miss)


def _lower_limit(difference: int, n: int, rate: float, most: float, miss: float) -> float:
    """Return the largest theta, or hardly less, at which the upper tail is at most `miss`."""

    def excess(theta: float) -> float:
        return _upper_tail(theta, difference, n, rate, most) - miss

    if excess(-most) > 0:
        return -most
    if excess(most) <= 0:
        return most
    root = brentq(excess, -most, most, xtol=_PRECISION, maxiter=_MOST_STEPS)
    return max(float(root) - 2.0 * _PRECISION, -most)


def _upper_tail(theta: float, difference: int, n: int, rate: float, most: float) -> float:
    """Return P(noisy D >= difference) at this theta, the largest over some shares of decided records."""
    less, factor = np.zeros(1), 1.0
    if n * (1.0 - most) < _FEW:
        less, factor = np.arange(0.0, _FEW, 0.25) / n, _BETWEEN
    first, laws = _laws_of_difference(n, theta, np.maximum(most - less, abs(theta)))
    values = np.arange(first, first + laws.shape[1], dtype=np.float64)
    return factor * float((laws @ Staircase(rate).cdf(values - difference)).max()) + _ROUNDING


def _laws_of_difference(n: int, theta: float, shares: Floats) -> tuple[int, Floats]:
    """Return the law of D for each share of decided records: the first value, and a row of probabilities.

    D is a sum of n independent steps: 1 and -1 with probabilities (share +- theta) / 2, or else 0. Its
    characteristic function is the n-th power of that of a step, from which a Fourier transform makes the
    probabilities modulo its length. By Hoeffding's inequality hardly anything is farther than half the
    length from the mean.
    """
    width = min(2.0 * n, math.sqrt(2.0 * n * math.log(2.0 / _LEFT_OUT)) + 1.0)
    length = 1 << math.ceil(math.log2(2.0 * width + 2.0))
    middle = round(n * theta)
    angles = np.arange(length // 2 + 1) * (2.0 * math.pi / length)
    # the n-th power of a float near 1 would keep few digits: hence log1p and the polar form
    less = -2.0 * shares[:, np.newaxis] * np.sin(angles / 2.0) ** 2
    turned = theta * np.sin(angles)
    with np.errstate(divide="ignore"):
        log_modulus = 0.5 * n * np.log1p(np.maximum(less * (2.0 + less) + turned**2, -1.0))
    row, at = np.nonzero(log_modulus > _NOTHING)  # these are few if n is large
    phase = n * np.arctan2(turned[at], 1.0 + less[row, at]) - middle * angles[at]
    transform = np.zeros(less.shape, dtype=np.complex128)
    transform[row, at] = np.exp(log_modulus[row, at] - 1j * phase)
    law = np.fft.irfft(transform, length, axis=1)
    return middle - length // 2, np.fft.fftshift(np.maximum(law, 0.0), axes=1)


_SENSITIVITY = 2  # one record moves D and m by at most this together
_ZERO_ONE = METRICS["private_zero_one_loss"].name.removeprefix("private_")
_WINS = f"The share for whom A is better less the share for whom B is, {POPULATION_NOTE}"
_ACCURACIES = "For this loss that is the accuracy of A less that of B."
_NO_MEANS = "It is no mean loss: which mean ({}) is lower does not follow."
_MEANS = (
    "The mean loss ({}) of B less that of A, each person's difference clipped to [-{:g}, {:g}], "
    + POPULATION_NOTE
)
_P_VALUE_DECIDES = (
    "The p-value decides whether there is a difference: the interval is made in another way, "
    "and here the two disagree about 0."
)
_VERDICTS = {
    "wins": ("A is better on more {} than B", "B is better on more {} than A"),
    "mean difference": (
        "With clipped differences A has the lower mean loss",
        "With clipped differences B has the lower mean loss",
    ),
}


@own_error_state
@dataclass(frozen=True, kw_only=True, repr=False)
class Comparison:
    """What a private comparison of two models shows; all of it may be published.

    Parameters
    ----------
    statistic : {"wins", "mean difference"}
        What was compared.
    estimate : float
        Positive where A is ahead. For wins, the share of the records on which A is better less the share on
        which B is. For the mean difference, the mean of the loss of B less that of A, clipped for each
        record. With the noise of the release.
    lower, upper : float
        Limits of what is estimated, among all people like these records.
    p_value : float or None
        For wins, the p-value of "both are better equally often"; never below 0.001. None for the mean
        difference.
    confidence : float
        Of the interval, and 1 minus the level of the test.
    epsilon : float
        What the comparison cost.
    n : int
        Public number of records; with `groups` of persons, who then stand for records in all of this.
    loss : str
        Name of the loss.
    max_difference : float or None
        For the mean difference, the public limit to which the difference of one record was clipped.
    noisy_difference, noisy_decided : int or None
        For wins, what was drawn: the records on which A is better less those on which B is, and the records
        without a tie, both with two-sided geometric noise of rate epsilon / 2. Not clamped.
    note : str, default=""
        What else has to be known of the interval.
    unit : {"records", "persons"}, default="records"
        What was counted.

    Examples
    --------
    >>> from dp_metrics import private_compare
    >>> found = private_compare([1, 0] * 500, [1, 0] * 500, [0, 0] * 500, epsilon=1.0)
    >>> found.better, found.statistic, found.n
    ('A', 'wins', 1000)
    >>> lower, upper = found.interval
    >>> 0.4 < lower < found.estimate < upper < 0.6  # A is right on all records, B on half of them
    True
    """

    statistic: str
    estimate: float
    lower: float
    upper: float
    p_value: float | None
    confidence: float
    epsilon: float
    n: int
    loss: str
    max_difference: float | None = None
    noisy_difference: int | None = None
    noisy_decided: int | None = None
    note: str = ""
    unit: str = "records"

    @property
    def better(self) -> str | None:
        """The model that is shown to be better, "A" or "B", or None: no difference is shown.

        For wins, significance is the p-value's: the interval can hold 0 while the p-value is small, for the
        test knows more of the number of ties than the interval does. `note` says where they disagree.
        """
        if self.p_value is not None:
            shown = self.p_value <= 1.0 - self.confidence
            return ("A" if self.estimate > 0 else "B") if shown else None
        return "A" if self.lower > 0 else "B" if self.upper < 0 else None

    @property
    def interval(self) -> Interval:
        """Limits of what is estimated, among all people like these records."""
        return Interval(self.lower, self.upper, self.confidence, self._about, self.note, self.estimate)

    def noise_interval(self, confidence: float = 0.95) -> Interval:
        """For wins, return limits of the exact difference of the shares of these records.

        Parameters
        ----------
        confidence : float, default=0.95
            Probability, over the noise, with which both limits hold, whatever the records are.

        Returns
        -------
        Interval
            Unpacks as lower, upper.

        Raises
        ------
        ValueError
            For the mean difference, or if the confidence does not lie strictly between 0 and 1.
        """
        sure = check_confidence(confidence)
        if self.noisy_difference is None:
            raise ValueError(
                "Only wins have limits of the noise alone; `interval` is about all people like these."
            )
        reach = Staircase(_rate(self.epsilon)).largest((1.0 - sure) / 2.0)
        lower, upper = (_clipped(self.noisy_difference + away, self.n) for away in (-reach, reach))
        return Interval(
            lower / self.n,
            upper / self.n,
            sure,
            f"The share of these {self.unit} on which A is better less the share on which B is.",
            estimate=self.estimate,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name.

        Returns
        -------
        dict
            The fields.
        """
        return asdict(self)

    def to_json(self) -> str:
        """Return the fields as JSON.

        Returns
        -------
        str
            A JSON object; null where there is no limit.
        """
        fields = self.to_dict()
        ends = {side: fields[side] if math.isfinite(fields[side]) else None for side in ("lower", "upper")}
        return json.dumps(fields | ends, allow_nan=False)

    @property
    def _about(self) -> str:
        if self.max_difference is None:
            is_accuracy = self.loss == _ZERO_ONE and self.unit == "records"
            return f"{_WINS} {_ACCURACIES if is_accuracy else _NO_MEANS.format(self.loss)}"
        return _MEANS.format(self.loss, self.max_difference, self.max_difference)

    @property
    def least_p_value(self) -> float | None:
        """For wins, about the least p-value that n and epsilon allow: if one model won on all records.

        It is that of a release whose noise is 0. None for the mean difference.
        """
        if self.p_value is None:
            return None
        return wins_p_value(self.n, self.n, self.n, _rate(self.epsilon))

    def __str__(self) -> str:
        of_a, of_b = _VERDICTS[self.statistic]
        found = {"A": of_a, "B": of_b, None: "No difference shown between A and B"}[self.better]
        verdict = found.format(self.unit)
        p, what = "", f"the difference of the clipped mean losses ({self.loss}) is"
        if self.p_value is not None:
            p = f", p = {self.p_value:.4g}; at this epsilon wins on all give about {self.least_p_value:.3g}"
            what = f"the share of {self.unit} won by A less that won by B ({self.loss}) is"
        return f"{verdict} ({self.n} {self.unit}{p}): {what} {self.estimate:.4g}, {self.interval}"

    __repr__ = __str__  # numbers without their meaning would be read as mean losses


def comparison_query(
    loss: Any,
    shape: Shape,
    options: ByName,
    *,
    persons: int | None = None,
    max_difference: float | None = None,
    confidence: float = 0.95,
) -> Query:
    """Return the query of a comparison.

    Parameters
    ----------
    loss, shape, options
        As in `paired_losses`.
    persons : int or None, default=None
        Public number of persons, who are counted; None: records are.
    max_difference, confidence
        As in `private_compare`.
    """
    name, losses, reader = paired_losses(loss, shape, options)
    sure = check_confidence(confidence)
    unit, n = ("records", shape.n) if persons is None else ("persons", persons)
    public: dict[str, Any] = {"loss": name, "n": n, "confidence": sure, "unit": unit}
    if max_difference is None:
        part = integers_of(partial(_wins, losses=losses), 2, _SENSITIVITY)
        return Query((part,), reader, partial(_compared_wins, **public))
    limit = check_positive(max_difference, "max_difference", OR_NO_LIMIT)
    # no difference exceeds the larger cap of the losses, of which the type of probabilities may make two
    limit = min(limit, max(one.limit for one in losses))
    means = mean_interval_query(
        partial(_differences, reader=reader, losses=losses, limit=limit),
        confidence=sure,
        about=_MEANS.format(name, limit, limit),
        low=-limit,
        high=limit,
    )
    result = partial(_compared_means, as_interval=means.reading, max_difference=limit, **public)
    return replace(means, reading=result)


def _differences(records: Records, *, reader: Reader, losses: Sequence[RecordLoss], limit: float) -> Records:
    """Return the differences of the losses, clipped, from 0 to 1."""
    a, b = losses_of_each(reader(records), losses)
    # halves keep the largest limit from overflowing
    return replace(records, arrays=(np.clip(b - a, -limit, limit) / limit / 2.0 + 0.5,), groups=None)


def _wins(records: Records, *, losses: Sequence[RecordLoss]) -> Integers:
    """Return D, the records on which A is better less those on which B is, and m, those without a tie.

    Another record in the place of one moves (D, m) by (+-2, 0), (+-1, +-1) or not at all: by 2 at most,
    summed over the absolute differences. So do all records of one person, where persons are counted.
    """
    a, b = losses_of_each(records, losses)
    wins, defeats = np.count_nonzero(a < b), np.count_nonzero(a > b)
    return np.array([wins - defeats, wins + defeats])


def _rate(epsilon: float) -> float:
    """Return the rate of the noise of D and of m."""
    return epsilon / _SENSITIVITY


def _clipped(number: int, n: int) -> int:
    return max(-n, min(number, n))


def _compared_wins(released: ReleasedNumbers, **public: Any) -> Comparison:
    difference, decided = released.values[0]
    n, confidence = public["n"], public["confidence"]
    counts = difference, decided, n, _rate(float(released.epsilon))
    (lower, upper), p_value = wins_interval(*counts, confidence), wins_p_value(*counts)
    return Comparison(
        statistic="wins",
        estimate=_clipped(difference, n) / n,
        lower=lower,
        upper=upper,
        p_value=p_value,
        epsilon=float(released.epsilon),
        noisy_difference=difference,
        noisy_decided=decided,
        note="" if (p_value <= 1.0 - confidence) == (lower > 0 or upper < 0) else _P_VALUE_DECIDES,
        **public,
    )


def _compared_means(
    released: ReleasedNumbers, *, as_interval: Callable[[ReleasedNumbers], Interval], **public: Any
) -> Comparison:
    found = as_interval(released)
    return Comparison(
        statistic="mean difference",
        estimate=found.estimate,
        lower=found.lower,
        upper=found.upper,
        p_value=None,
        epsilon=float(released.epsilon),
        note=found.note,
        **public,
    )


@own_error_state
def private_compare(  # noqa: PLR0913 - data, options, and settings of a release
    y_true: ArrayLike,
    pred_a: ArrayLike,
    pred_b: ArrayLike,
    *,
    loss: str | Function = "zero_one",
    epsilon: float,
    max_difference: float | None = None,
    confidence: float = 0.95,
    sample_weight: None = None,
    groups: ArrayLike | None = None,
    max_records: int | None = None,
    neighboring: str = "replace_one",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    spend_name: str | None = None,
    **options: Any,
) -> Comparison:
    """Which of two models is better on the same records, with epsilon-differential privacy for these.

    By default: on more records, by a sign test. With `max_difference`: by the mean of the losses.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
        What is true, as the metric of the loss takes it.
    pred_a : array-like of shape (n_samples,) or (n_samples, n_columns)
        What model A says, as the metric of the loss takes it: labels, targets or probabilities. The model was
        not trained on these records. Messages call it prediction 1 of 2. Give probabilities of both models
        in one type: for the log loss float32 is clipped 1e-7 from 0 and 1, float64 2e-16.
    pred_b : array-like of shape (n_samples,) or (n_samples, n_columns)
        The same of model B.
    loss : str or callable, default="zero_one"
        The loss of one record. The name of a metric that is its plain mean, with or without "private" before
        and "loss" or "score" behind it: "zero_one", "mae", "mse", "log_loss", "brier", "mean_pinball", ...
        Or the function itself, such as `private_mae`. Losses of your own, each computed from its record alone
        and not negative, go in as `pred_a` and `pred_b`, with zeros as `y_true` and "mae".
    epsilon : float
        Privacy parameter, > 0: smaller is more private and less accurate.
    max_difference : float or None, default=None
        Compare the mean losses, the difference of the two losses of one record being clipped to this number,
        in the units of the loss. Public: never read it from the data. None: compare wins.
    confidence : float, default=0.95
        Of the interval; a p-value up to 1 - confidence shows a difference, so that from 0.999 on none can.
    sample_weight : None, default=None
        Refused: each person counts alike.
    groups : array-like of shape (n_samples,) or None, default=None
        Public label of the person (or other unit) that each record belongs to, not of a group to compare as
        the `sensitive_features` of `PrivateMetricFrame` are. One person then counts as one record, whose
        losses are the means over all of his or hers, and the guarantee covers all of them together, at no
        more noise. None: each record is a person of its own.
    max_records : int or None, default=None
        Keep the first so many records of each person, in their order, which is public. None: all. Needs
        `groups`.
    neighboring : {"replace_one"}, default="replace_one"
        What one person can change: a record's contents, the number of records being public.
    accountant : PrivacyAccountant or None, default=None
        Budget that pays epsilon for this release, before it is drawn.
    random_state : None, int, RandomState or Generator, default=None
        None draws fresh randomness from the operating system. Anything else makes the release reproducible
        and therefore NOT private.
    spend_name : str or None, default=None
        The name of this release in the accountant's history; None: "private_compare". A name of an earlier
        session returns what was released then, at no cost.
    **options : Any
        Public options of the metric that shape the loss of a record, such as `bounds`, `max_loss`, `labels`,
        `alpha`, or weights of the outputs as `multioutput`. Losses are clipped to their cap before they are
        compared; equal losses are a tie.

    Returns
    -------
    Comparison
        Estimate, interval and, for wins, p-value; print it for one sentence.

    Raises
    ------
    ValueError, TypeError
        If an input is invalid, as in scikit-learn, or an option is, or if the accountant counts releases
        under another neighbouring relation.
    PrivacyBudgetError
        If the accountant has less than epsilon left; nothing is drawn.

    Warns
    -----
    SeededReleaseWarning
        If `random_state` is given.

    See Also
    --------
    private_mean_interval : The mean of one loss, with an interval.

    Notes
    -----
    Guarantee: replacing any one record, or with `groups` all records of any one group, changes the
    probability of any result by at most a factor exp(epsilon), given both models, the number of records and
    the arguments, which are public.

    **Wins.** A has the smaller loss on W records, B on L. What is released is W - L and W + L, with two-sided
    geometric noise of rate epsilon / 2 each: one record moves the two by 2 at most together. The p-value is
    that of an exact test given the number of records without a tie, which the second number bounds with
    probability 0.999; 0.001 is added for the rest, so that no p-value is smaller. It holds for any n and
    epsilon. The interval is for the probability of a win of A less that of a win of B. For the zero-one loss
    that is the difference of the accuracies.

    **Mean difference.** The mean of the clipped differences and their spread are released with noise, and the
    interval is made with the normal approximation, which is not to be trusted below 100 records. It shows a
    difference if 0 is outside. For losses without a limit nothing can be said of the mean without clipping
    the differences.

    What must not be concluded:

    - Wins are not the mean loss. In 4 of 36 pairs of models on real data, the one that is better on most
      records has clearly the larger mean loss.
    - A mean of clipped differences is not the mean difference: its sign may be another one.
    - A p-value or interval speaks of one release. Repeat comparisons until one is significant, and one will
      be.
    - Models that were chosen, or tuned, on these records look better on them than on others.
    - The records, or with `groups` the persons, must be independent draws from one population.
    - A large p-value does not show that the models are alike.

    References
    ----------
    R. L. Berger and D. D. Boos, "P Values Maximized Over a Confidence Set for the Nuisance Parameter",
    Journal of the American Statistical Association 89 (1994), doi:10.1080/01621459.1994.10476836; A. Ghosh,
    T. Roughgarden and M. Sundararajan, "Universally Utility-Maximizing Privacy Mechanisms", 2012,
    doi:10.1137/09076828X, for the noise.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_metrics import private_compare
    >>> y_true = np.arange(1000.0)
    >>> found = private_compare(y_true, y_true + 1, y_true - 2, loss="mae", epsilon=1.0)
    >>> found.better, found.p_value < 0.01
    ('A', True)
    >>> found = private_compare(y_true, y_true + 1, y_true - 2, loss="mae", epsilon=1.0, max_difference=2)
    >>> found.better, found.p_value, 0.8 < found.estimate < 1.2  # exactly 1
    ('A', None, True)
    """
    terms = Terms.of(
        epsilon=epsilon, neighboring=neighboring, accountant=accountant, random_state=random_state,
        spend_name=spend_name,
    )  # fmt: skip
    data = {"y_true": y_true, "pred_a": pred_a, "pred_b": pred_b}
    persons_of: dict[str, Any] = {"groups": groups, "max_records": max_records}
    row, fixed = row_of(loss, "loss")
    setting: dict[str, Any] = {
        "loss": row.name, "options": {**fixed, **options}, "max_difference": max_difference,
        "confidence": confidence,
    }  # fmt: skip
    arguments = {**data, **persons_of, **setting}
    release = population_release("private_compare", terms, arguments, sample_weight=sample_weight)

    def read() -> tuple[Query, Source, Any]:
        shape, records, persons = first_records(
            [*data.values()], names=tuple(data), relation=Relation.REPLACE_ONE, **persons_of
        )
        records = replace(records, groups=persons)
        count = None if persons is None else number_of_persons(persons)
        query = comparison_query(shape=shape, persons=count, **setting)
        return query, query.read(records), None

    return release.answer(read, value_of)
