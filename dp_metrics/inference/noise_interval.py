"""What the noise may have done to a released number: limits that cost nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from dp_metrics.inputs.arrays import check_same_length
from dp_metrics.inputs.floats import Floats, own_error_state
from dp_metrics.inputs.options import Relation, as_real, check_count
from dp_metrics.inputs.readers import check_groups, check_sample_weight, first_of_each
from dp_metrics.mechanisms import Mechanism
from dp_metrics.mechanisms._base import ALONE
from dp_metrics.mechanisms._grid import bisected
from dp_metrics.metrics import Metric, row_of
from dp_metrics.metrics._catalogue import WEIGHTS
from dp_metrics.release.interval import Interval
from dp_metrics.release.parts.mean_loss import MeanOf, PublicWeights
from dp_metrics.release.parts.part import BoundsPart
from dp_metrics.release.released import Monotone, ReleasedNumbers, ResultNoise
from dp_metrics.release.result import PrivateResult
from dp_metrics.release.terms import Terms
from dp_metrics.sensitivity.exact import UNIT_BITS, rounded_quotient
from dp_metrics.sensitivity.output_bounds import BoundsFacts

_MOST_RECORDS = 1 << 53  # floats hold every whole number up to this


@own_error_state
def noise_interval(
    result_or_value: PrivateResult[Any] | float,
    *,
    confidence: float = 0.95,
    metric: Callable[..., Any] | str | None = None,
    epsilon: float | None = None,
    n: int | None = None,
    mechanism: Any = None,
    **settings: Any,
) -> Interval:
    """Limits of the exact metric of the same records: how far the noise may have moved a release.

    It costs no epsilon: it follows from released and public numbers, without the data.

    Parameters
    ----------
    result_or_value : PrivateResult or float
        What `with_result` of a metric returned, then nothing else is needed; or the number that a metric
        returned, in its units. A rounded number is taken for the nearest possible release.
    confidence : float, default=0.95
        Probability, over the noise, with which both limits hold, whatever the records are.
    metric : callable or str, default=None
        For a number: which metric released it: `private_mse`, or its name, such as "mse" or "accuracy".
    epsilon : float, default=None
        For a number: what the release cost.
    n : int, default=None
        For a number: of how many records; not needed beside `sample_weight` or `groups`.
    mechanism : str or mechanism object, default=None
        For a number: the mechanism, if it was not the default one.
    **settings
        For a number: the other public arguments of the call that released it, such as `bounds`. Targets are
        taken to have one output, unless `multioutput` has weights of several; probabilities to be float64:
        the clipping of float32 implies ``max_loss=15.94``, without which the limits are wider than need be.
        A number from a summary with a smaller capacity than the release asks for needs its PrivateResult.

    Returns
    -------
    Interval
        Unpacks as lower, upper. A limit that nobody can tell is infinite, or the end of the public range;
        the field `note` says why, and whether anything is known: a release that is unlikely whatever the
        metric is has both ends of the range.

    Raises
    ------
    ValueError
        If the number alone tells no limits, or the metric or the mechanism has none; with the reason.
    TypeError
        If the metric is not one of this package, or a setting is not one of its public arguments.

    See Also
    --------
    accuracy_interval : For all people like these, from a released accuracy.
    private_mean_interval : For all people like these, of a mean loss.
    expected_error : The error to expect, before a release, from public data.

    Notes
    -----
    The interval is about *these records*, which are a sample: `population_interval` is about people.

    Shares and counts have narrow limits, and so has what "geometric" or "laplace" released: about 3 caps of
    one loss / (n * epsilon) away. So have recall, precision and F1, for which the result is needed: they are
    quantiles of what the ratio is with other noise. **A mean loss without a public cap has a lower limit
    only**, whatever the mechanism: with one record at infinity the mean is infinite, so an upper limit with
    confidence 1 - a is infinite with a probability of at least 1 - a exp(epsilon).

    With a cap B the default has both limits. From n * epsilon of 300 on it clips losses at a level C that it
    draws. At most K of them exceed C, some 75 / epsilon, and each adds at most (B - C) / n to the upper
    limit, which is useful where the mean is far above 75 B / (n * epsilon). Below 300, or if asked for
    "hazard", it is useful where the mean is far above 4 B / (n * epsilon). A variance with bounds has both
    limits too, the upper one of clipped values about B / C times the release. Ask for "geometric" if you need
    a close upper limit.

    An AUC has both limits. If the smaller class has 300 / epsilon records or more they are close; below that
    they are wide, because a few positives below all negatives might hide in the noise. R^2 has both with
    public bounds, from those of the error and the variance; close ones by "geometric".

    Examples
    --------
    >>> from dp_metrics import noise_interval, private_accuracy_score
    >>> lower, upper = noise_interval(0.872, metric=private_accuracy_score, epsilon=1.0, n=1000)
    >>> round(lower, 3), round(upper, 3)
    (0.869, 0.875)
    """
    if isinstance(result_or_value, PrivateResult):
        named = {"metric": metric, "epsilon": epsilon, "n": n, "mechanism": mechanism, **settings}
        given = [name for name, value in named.items() if value is not None]
        if given:
            raise TypeError(f"A PrivateResult tells all that is needed: leave out {' and '.join(given)}.")
        return result_or_value.noise_interval(confidence)
    (row, fixed), value = row_of(metric), as_real(result_or_value)
    if not np.isfinite(value):
        raise ValueError("The released value must be a finite number; or pass the PrivateResult.")
    if epsilon is None:
        raise ValueError("epsilon must be given: what the release cost.")
    mechanism = fixed.pop("mechanism", None) if mechanism is None else mechanism
    arguments = {**fixed, "epsilon": epsilon, "mechanism": mechanism, **settings}
    noise = _noise_of(row, value, n, arguments)
    return noise.interval(row.name, confidence)


def _noise_of(row: Metric, value: float, n: Any, arguments: Mapping[str, Any]) -> ResultNoise:
    """Return the noise of a release, which follows from its plan: no record is needed."""
    options = {name: given for name, given in arguments.items() if name in row.options and given is not None}
    settings = {name: given for name, given in arguments.items() if name not in options}
    unknown = settings.keys() - {"epsilon", "mechanism", "neighboring"}
    if unknown:
        raise TypeError(f"{row.name} has no public argument {' or '.join(sorted(unknown))}: drop it.")
    if row.mechanism is None:
        raise ValueError(ALONE.format(f"{row.name} is made of several noisy counts"))
    terms = Terms.of(**settings)
    release = row.release_on(terms, {**row.options, **options})
    if terms.relation.private_n:
        raise ValueError(ALONE.format("the number of records is private"))
    if isinstance(options.get("multioutput"), str) and options["multioutput"] == "raw_values":
        raise ValueError(ALONE.format("multioutput='raw_values' releases several"))
    most = 1
    if "max_records" in row.options and (groups := options.pop("groups", None)) is not None:
        codes: Any = check_groups(groups)
        kept, _, most = first_of_each(codes, options.pop("max_records", None))
        n = kept.size
    weights = _weights(n, options)
    plan = row.planned(replace(row.form(n=weights.n), most_records=most), options)
    part, result = plan.parts[0], plan.postprocess
    if len(plan.parts) > 1 or not (isinstance(part, BoundsPart) and isinstance(result, Monotone)):
        raise ValueError(ALONE.format(f"{row.name} is made of several released numbers"))
    if isinstance(part, MeanOf) and "labels" in row.options and "labels" not in options:
        # two labels were assumed: with three the limit may be another, which one number cannot tell
        of_three = row.planned(row.form(3, n=weights.n), options).parts[0]
        assert isinstance(of_three, MeanOf)
        if of_three.highest != part.highest:
            raise ValueError("labels must be given: the limit of a loss depends on how many there are.")
    [mechanism], [epsilon], _ = release.divided(plan)
    facts = _facts(part, mechanism, epsilon, weights)
    total = rounded_quotient(weights.total, 1 << UNIT_BITS)
    released = ReleasedNumbers([value], weights.n, total, epsilon, Relation.REPLACE_ONE)
    number = _before(result, released, facts.output_range)
    noise = mechanism.noise_of(part, epsilon, facts, number)
    return ResultNoise(result, (noise,), released.of([number]))


def _weights(n: Any, options: Mapping[str, Any]) -> PublicWeights:
    """Return the public weights and groups of the records; they tell the number of records, or n does."""
    sizes = [len(options[name]) for name in WEIGHTS if options.get(name) is not None]
    if n is None and not sizes:
        raise ValueError("n must be given: the public number of records.")
    size = check_count(sizes[0] if n is None else n, "n", _MOST_RECORDS)
    if not sizes:
        return PublicWeights(size)
    weights = check_sample_weight(options.get("sample_weight"))
    groups = check_groups(options.get("groups"))
    check_same_length({"n": np.broadcast_to(0, size), "sample_weight": weights, "groups": groups})
    return PublicWeights(size, weights, groups)


def _facts(part: BoundsPart, mechanism: Mechanism, epsilon: Fraction, weights: PublicWeights) -> BoundsFacts:
    """Return what is public of the output bounds of a release of so many records."""
    if isinstance(part, MeanOf) and not weights.are_plain:
        cap, n = part.record_loss.cap, weights.size
        highest = weights.facts(cap, 1).output_range[1]
        return weights.facts(cap, part.count_ranks(mechanism, epsilon, n, highest))
    return part.facts(weights.n, part.count_ranks(mechanism, epsilon, weights.n))


def _before(result: Monotone, released: ReleasedNumbers, output_range: tuple[float, float]) -> float:
    """Return the released number whose result is nearest to the value, by bisection over all floats."""
    (value,) = released.values
    sign = 1.0 if result.rises else -1.0

    def of(bits: Any) -> Floats:
        return np.array([float(result(released.of([x]))) for x in bits.view(np.float64).tolist()])

    # floats from 0 on are in the order of their bits
    low, high = (np.array([abs(end)]).view(np.int64) for end in output_range)
    if not sign * (of(high) - value) >= 0 or not sign * (value - of(low)) >= 0:
        raise ValueError(
            "The released value lies outside the public range of the metric, with these settings: pass what "
            "the metric returned, not a loss that a scorer negated."
        )
    above = bisected(low - 1, high, lambda bits: sign * (of(np.maximum(bits, low)) - value) >= 0)
    near = np.concatenate([np.maximum(above - 1, low), above])
    return float(near.view(np.float64)[np.argmin(np.abs(of(near) - value))])
