"""Two limits of one number, and what they are limits of."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dp_metrics._html import HtmlRepr

__all__ = ["Interval"]


@dataclass(frozen=True)
class Interval(HtmlRepr):
    """Two limits of one number, or of several; unpacks and is indexed like ``(lower, upper)``.

    Parameters
    ----------
    lower, upper : float or ndarray
        The limits. An end of the public range, or infinity, where nothing better is true.
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
    >>> from dp_metrics import Interval
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

    def __iter__(self) -> Iterator[Any]:
        """Return the limits one after the other."""
        return iter((self.lower, self.upper))

    def __len__(self) -> int:
        return 2

    def __getitem__(self, place: int | slice) -> Any:
        """Return a limit by its place, or several as a tuple."""
        return (self.lower, self.upper)[place]

    def __str__(self) -> str:
        ends = ", ".join(np.array2string(np.asarray(end), precision=6) for end in self)
        text = f"[{ends}] with confidence {100 * self.confidence:.12g} %. {self.about}"
        return f"{text} {self.note}" if self.note else text

    def _facts(self) -> dict[str, Any]:
        lower, upper = (np.array2string(np.asarray(end), precision=6) for end in self)
        return {
            "lower": lower,
            "upper": upper,
            "confidence": f"{100 * self.confidence:.12g} %",
            "about": self.about,
            "note": self.note or None,
        }
