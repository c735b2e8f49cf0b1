"""The result of a release, with all that may be published about it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

import numpy as np

from dp_metrics.release.interval import Interval
from dp_metrics.release.released import ResultNoise

__all__ = ["PrivateResult"]


@dataclass(frozen=True, kw_only=True)
class PrivateResult:
    """A private number and what is public about its release; all of it may be published.

    Parameters
    ----------
    value : float, ndarray, str or dict
        What the metric returns without ``return_result=True``.
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
        classes of an AUC, from which its grid follows. If the value has several parts, lists of these, with
        None for parts that drew none.
    metric : str
        Name of the metric.
    label : str or None
        The label of the spend, if one was given.
    noise : ResultNoise or None, default=None
        What `noise_interval` needs. Public, as the rest is; not in `to_dict` and `to_json`.

    Notes
    -----
    Guarantee: that of the metric. The fields together cost epsilon, not epsilon each.

    Examples
    --------
    >>> from dp_metrics import private_mae
    >>> result = private_mae([3.0, 1.0], [2.0, 1.0], epsilon=1.0, return_result=True)
    >>> result.metric, result.epsilon, result.n
    ('private_mae', 1.0, 2)
    >>> float(result) == result.value >= 0
    True
    """

    value: Any
    epsilon: float
    n: int | None
    neighboring: str
    mechanism: str
    drawn: Mapping[str, Any] = field(default_factory=dict)
    metric: str
    label: str | None = None
    noise: ResultNoise | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "drawn", MappingProxyType(dict(self.drawn)))

    def __float__(self) -> float:
        """Return the value of a metric that is one number."""
        return float(self.value)

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
            raise ValueError("This result does not tell what is public about its noise.")
        return self.noise.interval(self.metric, confidence)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name.

        Returns
        -------
        dict
            The fields; the value as the metric gave it.
        """
        names = (one.name for one in fields(self) if one.name != "noise")
        return {name: getattr(self, name) for name in names} | {"drawn": dict(self.drawn)}

    def to_json(self) -> str:
        """Return the fields as JSON.

        Returns
        -------
        str
            A JSON object; an array becomes a list, in which null stands for an infinite threshold.
        """
        return json.dumps(self.to_dict(), default=_listed, allow_nan=False)


def _listed(array: np.ndarray[Any, Any]) -> Any:
    if array.dtype.kind != "f" or np.isfinite(array).all():
        return array.tolist()
    numbers = array.astype(object)
    numbers[~np.isfinite(array)] = None
    return numbers.tolist()


def _restored(values: dict[str, Any]) -> PrivateResult:
    return PrivateResult(**values)
