"""Which of two models is better, on the same private records."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dp_metrics._html import HtmlRepr
from dp_metrics._random import RandomState
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.inference._settings import population_release, value_of
from dp_metrics.inference.mean_interval_plan import mean_interval_plan
from dp_metrics.inference.paired_losses import PairedLosses, paired_losses
from dp_metrics.inference.wins import noise_reach, wins_interval, wins_p_value
from dp_metrics.inputs.floats import own_error_state
from dp_metrics.inputs.labels import NotLabelsError
from dp_metrics.inputs.losses import RecordLoss
from dp_metrics.inputs.options import OR_NO_LIMIT, Relation, check_confidence, check_positive
from dp_metrics.inputs.readers import first_records
from dp_metrics.inputs.shape import Records
from dp_metrics.metrics import METRICS, row_of
from dp_metrics.release.interval import Interval
from dp_metrics.release.parts.part import IntegersOf
from dp_metrics.release.plan import KnownParts, Plan
from dp_metrics.release.released import POPULATION_NOTE, ReleasedNumbers
from dp_metrics.release.stored.codec import storable
from dp_metrics.release.terms import Terms

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


@storable("Comparison")
@own_error_state
@dataclass(frozen=True, kw_only=True, repr=False)
class Comparison(HtmlRepr):
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
        reach = noise_reach(_rate(self.epsilon), (1.0 - sure) / 2.0)
        ends = [-self.n, self.n]
        if math.isfinite(reach):
            ends = [_clipped(self.noisy_difference + sign * int(reach), self.n) for sign in (-1, 1)]
        return Interval(
            ends[0] / self.n,
            ends[1] / self.n,
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

    def _facts(self) -> dict[str, str]:
        return {"": str(self)}


def comparison_plan(
    losses: PairedLosses,
    n: int | None,
    *,
    max_difference: float | None = None,
    confidence: float = 0.95,
    unit: str = "records",
) -> Plan:
    """Return the plan of a comparison.

    Parameters
    ----------
    losses : PairedLosses
        The losses of A and B.
    n : int
        Public number of records, or of persons.
    max_difference, confidence
        As in `private_compare`.
    unit : {"records", "persons"}, default="records"
        What is counted.
    """
    sure = check_confidence(confidence)
    public: dict[str, Any] = {"loss": losses.name, "n": n, "confidence": sure, "unit": unit}
    if max_difference is None:
        part = IntegersOf(partial(_wins, losses=losses), _SENSITIVITY)
        return Plan((part,), losses.read, partial(_compared_wins, **public))
    limit = check_positive(max_difference, "max_difference", OR_NO_LIMIT)
    # no difference exceeds the cap of the losses
    limit = limit if losses.cap is None else min(limit, losses.cap)
    means = mean_interval_plan(
        partial(_differences, losses=losses, limit=limit),
        confidence=public["confidence"],
        about=_MEANS.format(losses.name, limit, limit),
        low=-limit,
        high=limit,
    )
    result = partial(_compared_means, as_interval=means.postprocess, max_difference=limit, **public)
    return replace(means, postprocess=result)


def _differences(records: Records, *, losses: PairedLosses, limit: float) -> Records:
    """Return the differences of the losses, clipped, from 0 to 1."""
    # halves keep the largest limit from overflowing
    parts = [
        np.clip(b - a, -limit, limit) / limit / 2.0 + 0.5 for a, b in losses.blocks(losses.read(records))
    ]
    return replace(records, arrays=(np.concatenate(parts),), groups=None)


def _wins(records: Records, *, losses: PairedLosses) -> tuple[int, int]:
    """Return D, the records on which A is better less those on which B is, and m, those without a tie.

    Another record in the place of one moves (D, m) by (+-2, 0), (+-1, +-1) or not at all: by 2 at most,
    summed over the absolute differences. So do all records of one person, where persons are counted.
    """
    difference = decided = 0
    for a, b in losses.blocks(records):
        wins, defeats = int(np.count_nonzero(a < b)), int(np.count_nonzero(a > b))
        difference += wins - defeats
        decided += wins + defeats
    return difference, decided


def _rate(epsilon: float) -> float:
    """Return the rate of the noise of D and of m."""
    return epsilon / _SENSITIVITY


def _clipped(number: int, n: int) -> int:
    return max(-n, min(number, n))


def _compared_wins(
    released: ReleasedNumbers, *, loss: str, n: int, confidence: float, unit: str
) -> Comparison:
    difference, decided = released.values[0]
    epsilon = float(released.epsilon)
    counts = difference, decided, n, _rate(epsilon)
    lower, upper = wins_interval(*counts, confidence)
    p_value = wins_p_value(*counts)
    return Comparison(
        statistic="wins",
        estimate=_clipped(difference, n) / n,
        lower=lower,
        upper=upper,
        p_value=p_value,
        confidence=confidence,
        epsilon=epsilon,
        n=n,
        loss=loss,
        noisy_difference=difference,
        noisy_decided=decided,
        note="" if (p_value <= 1.0 - confidence) == (lower > 0 or upper < 0) else _P_VALUE_DECIDES,
        unit=unit,
    )


def _compared_means(
    released: ReleasedNumbers,
    *,
    as_interval: Callable[[ReleasedNumbers], Interval],
    max_difference: float,
    loss: str,
    n: int,
    confidence: float,
    unit: str,
) -> Comparison:
    interval = as_interval(released)
    assert interval.estimate is not None
    return Comparison(
        statistic="mean difference",
        estimate=interval.estimate,
        lower=interval.lower,
        upper=interval.upper,
        p_value=None,
        confidence=confidence,
        epsilon=float(released.epsilon),
        n=n,
        loss=loss,
        max_difference=max_difference,
        note=interval.note,
        unit=unit,
    )


@own_error_state
def private_compare(  # noqa: PLR0913 - data, options, and settings of a release
    y_true: ArrayLike,
    pred_a: ArrayLike,
    pred_b: ArrayLike,
    *,
    loss: str | Callable[..., Any] | RecordLoss = "zero_one",
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
        not trained on these records. Messages call it y_pred, or as the metric does. Give probabilities of
        both models in one type: for the log loss float32 is clipped 1e-7 from 0 and 1, float64 2e-16.
    pred_b : array-like of shape (n_samples,) or (n_samples, n_columns)
        The same of model B.
    loss : str, callable or RecordLoss, default="zero_one"
        The loss of one record. The name of a metric that is its plain mean, with or without "private" before
        and "loss" or "score" behind it: "zero_one", "mae", "mse", "log_loss", "brier", "mean_pinball", ...
        Or the function itself, such as `private_mae`; or a ``RecordLoss`` of numbers (of
        ``dp_metrics.inputs.losses``), made of elementwise functions. Losses of your own, each computed from
        its record alone and not negative, go in as `pred_a` and `pred_b`, with zeros as `y_true` and "mae".
    epsilon : float
        Privacy parameter, > 0: smaller is more private and less accurate.
    max_difference : float or None, default=None
        None: compare wins. A number: compare the mean losses, the difference of the two losses of one record
        being clipped to it, in the units of the loss. Public: never read it from the data.
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
    release = population_release(
        "private_compare",
        terms,
        sample_weight=sample_weight,
        arguments={
            "y_true": y_true,
            "pred_a": pred_a,
            "pred_b": pred_b,
            "groups": groups,
            "max_records": max_records,
            **comparison_options(loss, options, max_difference=max_difference, confidence=confidence),
        },
    )

    def read() -> tuple[Plan, KnownParts, Any]:
        names = ("y_true", "pred_a", "pred_b")
        shape, records, persons = first_records(
            (y_true, pred_a, pred_b),
            names=names,
            relation=Relation.REPLACE_ONE,
            groups=groups,
            max_records=max_records,
        )
        losses, unit, n = paired_losses(loss, shape, options), "records", shape.n
        if persons is not None:
            records, unit, n = replace(records, groups=persons), "persons", int(persons.max()) + 1
        plan = comparison_plan(losses, n, max_difference=max_difference, confidence=confidence, unit=unit)
        failure = None
        try:
            known = plan.read(records)
        except NotLabelsError as error:
            failure = ValueError(f"{error} To compare probabilities pass loss='log_loss' or 'brier_score'.")
        if failure is not None:
            raise failure
        return plan, known, None

    found: Comparison = release.answer(read, value_of)
    return found


def comparison_options(loss: Any, options: Mapping[str, Any], **public: Any) -> dict[str, Any]:
    """Return what is public of a comparison: the name and the options of the metric that a loss is, and more.

    Of another loss what was given.
    """
    try:
        row, fixed = row_of(loss, "loss")
    except (TypeError, ValueError):  # a loss of the caller's own, or a mistake that is refused later
        return {"loss": loss, "options": options, **public}
    return {"loss": row.name, "options": {**fixed, **options}, **public}
