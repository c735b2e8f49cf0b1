"""The result of a release, with all that may be published about it."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import numpy as np

from dp_metrics._html import HtmlRepr
from dp_metrics._packages import __version__
from dp_metrics.inputs.floats import own_error_state
from dp_metrics.mechanisms import MECHANISMS
from dp_metrics.mechanisms._base import Draw
from dp_metrics.release.interval import Interval
from dp_metrics.release.released import PopulationQuestion, ResultNoise

Value_co = TypeVar("Value_co", covariant=True)

_UNITS = {
    "replace_one": "Test sets are adjacent if one record of the first is replaced by any other valid record; "
    "if groups were passed, all records of one group, by as many others.",
    "add_or_remove_one": "Test sets are adjacent if one of them has one record more.",
}
_PROTECTED = {
    "replace_one": "each record, which might be any other",
    "replace_one_within_groups": "each record, which might be any other of its group",
    "add_or_remove_one": "whether a record is there",
}
_ARGUMENTS = "all arguments of the call but the records."
_UNPROTECTED = {
    "replace_one": f"The number of records (of each group, if groups were passed), and {_ARGUMENTS}",
    "add_or_remove_one": _ARGUMENTS.capitalize(),
}


def _as_value(one: Any) -> Any:
    return one.value if isinstance(one, PrivateResult) else one


def _as_values_do(operation: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that does to values what the operation does."""
    return lambda self, *others: operation(self.value, *map(_as_value, others))


def _reflected(operation: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method for a result on the right."""
    return lambda self, other: operation(_as_value(other), self.value)


class _LikeItsValue:
    """Comparison and arithmetic of a value; what comes out is a plain number, and no result."""

    __array_ufunc__ = None  # NumPy leaves the arithmetic of an array and a result to the result
    __eq__, __ne__ = _as_values_do(operator.eq), _as_values_do(operator.ne)
    __lt__, __le__ = _as_values_do(operator.lt), _as_values_do(operator.le)
    __gt__, __ge__ = _as_values_do(operator.gt), _as_values_do(operator.ge)
    __hash__ = _as_values_do(hash)
    __neg__, __pos__, __abs__ = (_as_values_do(one) for one in (operator.neg, operator.pos, abs))
    __round__ = _as_values_do(round)
    __add__, __radd__ = _as_values_do(operator.add), _reflected(operator.add)
    __sub__, __rsub__ = _as_values_do(operator.sub), _reflected(operator.sub)
    __mul__, __rmul__ = _as_values_do(operator.mul), _reflected(operator.mul)
    __truediv__, __rtruediv__ = _as_values_do(operator.truediv), _reflected(operator.truediv)
    __floordiv__, __rfloordiv__ = _as_values_do(operator.floordiv), _reflected(operator.floordiv)
    __mod__, __rmod__ = _as_values_do(operator.mod), _reflected(operator.mod)
    __pow__, __rpow__ = _as_values_do(operator.pow), _reflected(operator.pow)


@own_error_state
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PrivateResult(_LikeItsValue, HtmlRepr, Generic[Value_co]):
    """A private number and what is public about its release; all of it may be published.

    `with_result` returns it. It is formatted, rounded, compared and calculated with as its value is; what
    comes out is a plain number. Two results are equal if their values are.

    Parameters
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
    metric : str
        Name of the metric.
    spend_name : str or None
        The name of the spend, if one was given.
    deployment : mapping or None, default=None
        The guarantee in the words of the OpenDP Deployments Registry, for the object "deployment" of an entry
        there: "dp_variant", "privacy_loss", "deployment_model", "accounting" and "implementation". Made of
        public settings only; not told is whether `groups` were passed. None where nothing can be promised:
        for a release with `random_state`, or by a mechanism of your own.
    note : str or None, default=None
        What released and public numbers tell of a value that is mostly noise, or biased: what must not be
        concluded from it. None: nothing. It costs nothing and is as public as the rest; a warning after the
        spend could be an error, and lose the value.
    bias : str or None, default=None
        Which way the value usually errs, and by about how much if tails are heavy, as public settings and the
        value tell: of a mean loss too low, of R^2 too high. None: neither way, or by less than 1 %.
    noise : ResultNoise or None, default=None
        What `noise_interval` needs. Public, as the rest is; not in `to_dict` and `to_json`.

    Notes
    -----
    Guarantee: that of the metric. The fields together cost epsilon, not epsilon each.

    Examples
    --------
    >>> from dp_metrics import private_mae, with_result
    >>> result = with_result(private_mae)([3.0, 1.0], [2.0, 1.0], epsilon=1.0)
    >>> result.metric, result.epsilon, result.n
    ('private_mae', 1.0, 2)
    >>> result == float(result) == result.value >= 0, f"{result:.0f}" == f"{result.value:.0f}"
    (True, True)
    >>> type(result + 1), type(round(result, 2))
    (<class 'float'>, <class 'float'>)
    >>> result.deployment["privacy_loss"]["privacy_parameters"]["epsilon"]
    1.0
    """

    value: Value_co
    epsilon: float
    n: int | None
    neighboring: str
    mechanism: str
    drawn: Mapping[str, Any] = field(default_factory=dict)
    metric: str
    spend_name: str | None = None
    note: str | None = None
    bias: str | None = None
    deployment: Mapping[str, Any] | None = field(default=None, repr=False)
    noise: ResultNoise | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "drawn", _frozen(self.drawn))
        object.__setattr__(self, "deployment", _frozen(self.deployment))

    def __float__(self) -> float:
        """Return the value of a metric that is one number."""
        return float(self.value)  # type: ignore[arg-type]

    def __format__(self, spec: str) -> str:
        """Return the value in a format, such as ``f"{result:.3f}"``; without one the whole text."""
        return format(self.value, spec) if spec else repr(self)

    def _limits(self) -> Interval | None:
        """Return the limits of the noise of one number; None where there are none."""
        if not isinstance(self.value, float):
            return None
        try:
            return self.noise_interval()
        except ValueError:
            return None

    def __repr__(self) -> str:
        limits = self._limits()
        shown = {"metric": self.metric, "epsilon": self.epsilon, "n": self.n, "spend_name": self.spend_name}
        shown |= {"noise_interval": None if limits is None else tuple(limits), "note": self.note}
        shown["bias"] = self.bias
        told = "".join(f", {name}={one!r}" for name, one in shown.items() if one is not None)
        return f"PrivateResult({self.value!r}{told})"

    def _facts(self) -> dict[str, Any]:
        limits = self._limits()
        return {
            "value": self.value,
            "metric": self.metric,
            "limits of the noise": limits and f"{limits.in_words()}, 95 %",
            "note": self.note,
            "bias": self.bias,
            "epsilon": self.epsilon,
            "protects": _PROTECTED[self.neighboring],
            "records": self.n,
            "mechanism": self.mechanism,
            "name of the spend": self.spend_name,
        }

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, ({**self.to_dict(), "noise": self.noise},)

    def noise_interval(self, confidence: float = 0.95) -> Interval:
        """Return limits of the exact metric of these records, as `dp_metrics.noise_interval` does.

        Parameters
        ----------
        confidence : float, default=0.95
            Probability, over the noise, with which all limits hold, whatever the records are.

        Returns
        -------
        Interval
            Unpacks as lower, upper. A limit that cannot be told is infinite or the end of the public range.

        Raises
        ------
        ValueError
            If the metric has no such limits, or the confidence does not lie strictly between 0 and 1.
        """
        if self.noise is None:
            raise ValueError(
                "This result does not tell what is public about its noise: use one of with_result."
            )
        return self.noise.interval(self.metric, confidence)

    def population_interval(self, confidence: float = 0.95, method: str = "sure") -> Interval:
        """Return limits of the metric among all people like the records, as the function of this name does.

        Parameters
        ----------
        confidence : float, default=0.95
            Probability, over the noise and over which people became records, with which all limits hold.
        method : {"sure", "approximate"}, default="sure"
            "sure": proved. "approximate": narrower where that is known, and for more metrics.

        Returns
        -------
        Interval
            Unpacks as lower, upper; with the released value as its `estimate`.

        Raises
        ------
        ValueError
            If the metric has no such limits, or an argument is invalid.
        """
        asked = PopulationQuestion.of(self.metric, confidence, method)
        if self.noise is None:
            raise ValueError(
                "This result does not tell what is public about its noise: use one of with_result."
            )
        return self.noise.population_interval(asked)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name.

        Returns
        -------
        dict
            The fields; the value as the metric gave it.
        """
        names = (one.name for one in fields(self) if one.name != "noise")
        thawed = {"drawn": _thawed(self.drawn), "deployment": _thawed(self.deployment)}
        return {name: getattr(self, name) for name in names} | thawed

    def to_json(self) -> str:
        """Return the fields as JSON.

        Returns
        -------
        str
            A JSON object; an array becomes a list, in which null stands for an infinite threshold.
        """
        return json.dumps(self.to_dict(), default=_listed, allow_nan=False)


def deployment(
    draws: Sequence[Draw], *, epsilon: float, neighboring: str, drawn_by: str
) -> Mapping[str, Any] | None:
    """Return the fields of the OpenDP Deployments Registry that a release determines, for its result.

    The names and the values "Pure DP" and "Central" are those of ``schemas/deployments-schema.yaml`` in its
    data repository, ``opendp/deployments-registry-data``, as of July 2026. What only the owner of the data
    knows (who publishes, for what, how often, with which total) is left for them to add.

    Parameters
    ----------
    draws : sequence of Draw
        What draws the release.
    epsilon : float
        Privacy parameter of all of it.
    neighboring : str
        The neighbouring relation.
    drawn_by : str
        The mechanisms with their parameters.

    Returns
    -------
    mapping or None
        Public settings only. None for a mechanism that is not of this package: its author has to say what it
        promises.
    """
    mechanisms = {type(draw.mechanism) for draw in draws if hasattr(draw, "mechanism")}
    if not mechanisms <= set(MECHANISMS.values()):
        return None
    return _promised(all(mechanism.is_exact for mechanism in mechanisms), epsilon, neighboring, drawn_by)


@lru_cache(maxsize=256)
def _promised(is_exact: bool, epsilon: float, neighboring: str, drawn_by: str) -> Mapping[str, Any]:
    if is_exact:
        executed = "Exact as executed: floats decide only where they cannot be wrong, and else integers."
    else:
        executed = "Private over the real numbers; drawn as floats, without protection of their last bits."
    promised = {
        "dp_variant": {
            "variant_name": "Pure DP",
            "data_domain": f"Test sets of records, each valid on its own, given the model and {_ARGUMENTS}",
            "unprotected_quantities": _UNPROTECTED[neighboring],
        },
        "privacy_loss": {
            "privacy_unit": "record",
            "privacy_unit_details": _UNITS[neighboring],
            "privacy_parameters": {"epsilon": epsilon},
        },
        "deployment_model": {"model_name": "Central"},
        "accounting": {
            "composition": "Sequential: epsilon is the sum over all that this result holds. Other releases "
            "about the same people add to it."
        },
        "implementation": {
            "mechanisms": f"{drawn_by}, of dp_metrics {__version__}. {executed} Random bits are those of "
            "the operating system. No measures against timing channels.",
        },
    }
    frozen: Mapping[str, Any] = _frozen(promised)
    return frozen


def _frozen(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return MappingProxyType({name: _frozen(part) for name, part in value.items()})


def _thawed(value: Any) -> Any:
    return {name: _thawed(part) for name, part in value.items()} if isinstance(value, Mapping) else value


def _listed(array: np.ndarray[Any, Any]) -> Any:
    if array.dtype.kind != "f" or np.isfinite(array).all():
        return array.tolist()
    numbers = array.astype(object)
    numbers[~np.isfinite(array)] = None
    return numbers.tolist()


def _restored(values: dict[str, Any]) -> PrivateResult[Any]:
    # pickles of earlier versions call the name of the spend a label
    return PrivateResult(**{"spend_name" if name == "label" else name: v for name, v in values.items()})
