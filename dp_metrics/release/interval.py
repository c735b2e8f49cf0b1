"""Two limits of one number, and what they are limits of."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dp_metrics._html import HtmlRepr, rounded
from dp_metrics.inputs.floats import MAX_FLOAT, Floats


@dataclass(frozen=True)
class Interval(HtmlRepr):
    """Two limits of one number, or of several; unpacks and is indexed like ``(lower, upper)``.

    Parameters
    ----------
    lower, upper : float or ndarray
        The limits. An end of the public range, or infinity, where nothing better is true. The largest float
        is what sums are cut at, so that a limit there is none: it becomes infinity.
    confidence : float
        Least probability with which all these limits hold at once.
    about : str
        What the limits are limits of, in one sentence.
    note : str, default=""
        Why a limit is missing, or what else has to be known.
    estimate : float, ndarray or None, default=None
        The released number that goes with the limits, if there is one; it need not lie in the middle.

    Examples
    --------
    >>> from dp_metrics.release.interval import Interval
    >>> lower, upper = Interval(0.84, 0.9, 0.95, "The accuracy over all people.")
    >>> lower
    0.84
    """

    lower: Any
    upper: Any
    confidence: float
    about: str
    note: str = ""
    estimate: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "lower", _opened(self.lower, -1.0))
        object.__setattr__(self, "upper", _opened(self.upper, 1.0))

    def __iter__(self) -> Iterator[Any]:
        """Return the limits one after the other."""
        return iter((self.lower, self.upper))

    def __len__(self) -> int:
        return 2

    def __getitem__(self, place: int | slice) -> Any:
        """Return a limit by its place, or several as a tuple."""
        return (self.lower, self.upper)[place]

    def __str__(self) -> str:
        ends = ", ".join(map(_text, self))
        text = f"[{ends}] with confidence {self._confidence}. {self.about}"
        return f"{text} {self.note}" if self.note else text

    def in_words(
        self, lower: Callable[[Any], str] | None = None, upper: Callable[[Any], str] | None = None
    ) -> str:
        """Return the limits for people, each written by a function, and say where there is none."""
        written = lower or rounded
        low, high = written(self.lower), (upper or written)(self.upper)
        if np.ndim(self.lower) or np.ndim(self.upper):
            return f"{low} to {high}"
        if np.isinf(self.upper):
            return "no limit" if np.isinf(self.lower) else f"at least {low}"
        return f"at most {high}" if np.isinf(self.lower) else f"{low} to {high}"

    @property
    def _confidence(self) -> str:
        """The confidence, and that several limits have it together."""
        several = ", all at once" if np.ndim(self.lower) else ""
        return f"{100 * self.confidence:.12g} %{several}"

    def _facts(self) -> dict[str, Any]:
        lower, upper = map(_text, self)
        return {
            "lower": lower,
            "upper": upper,
            "confidence": self._confidence,
            "about": self.about,
            "note": self.note or None,
        }


def _opened(limit: Any, sign: float) -> Any:
    """Return infinity in the place of the largest float of this sign, which is no limit."""
    if isinstance(limit, np.ndarray):
        opened: Floats = np.where(sign * limit >= MAX_FLOAT, sign * np.inf, limit)
        return opened
    return sign * np.inf if sign * limit >= MAX_FLOAT else limit


def _text(limit: Any) -> str:
    """Return a limit, or an array of them, with few digits."""

    def written(number: float) -> str:
        return "no limit" if np.isinf(number) else f"{number:.6g}"

    if np.isinf(limit).any():
        return np.array2string(np.asarray(limit), formatter={"float_kind": written})  # type: ignore[arg-type]
    return np.array2string(np.asarray(limit), precision=6)
