"""What is told of a result: numbers with their limits, their one table, and which way they usually err.

Hazard selection and the two stages clip what the records furthest off add, so that a mean loss or a variance
of which a few records make up much comes out too low. Noise that is added leaves either way alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any, Self, TypeAlias

import numpy as np

from dp_metrics._packages import import_extra
from dp_metrics.inputs.options import MAX_FLOAT, ByName, check_confidence, check_flag, own_error_state


def usual_bias(share: float, *, rises: bool = True) -> str | None:
    """Return in words which way a result errs, given what share of a mean is missing.

    Parameters
    ----------
    share : float
        As `Noise.clipped_share` tells.
    rises : bool, default=True
        Whether the result rises with the mean: R^2 falls with the squared error.
    """
    if not share:
        return None
    way, of_what = ("low", "it") if rises else ("high", "the squared error in it")
    return (
        f"Usually too {way} if a few records make up much of {of_what}: what these add is clipped. With "
        "heavy tails (Student's law with 3 degrees of freedom) a mean square comes out about "
        f"{float(f'{100 * share:.1g}'):g} % too low."
    )


def named(facts: ByName) -> str:
    """Return facts by name, as a repr shows them, without those that are None."""
    return ", ".join(f"{name}={one!r}" for name, one in facts.items() if one is not None)


@dataclass(frozen=True)
class Interval:
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
    >>> from dp_metrics.release.released import Interval
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
        several = ", all at once" if np.ndim(self.lower) else ""
        text = f"[{ends}] with confidence {100 * self.confidence:.12g} %{several}. {self.about}"
        return f"{text} {self.note}" if self.note else text

    def in_words(self, written: Callable[[Any], str] | None = None) -> str:
        """Return the limits for people, each written by a function, and say where there is none.

        Without a function they have six digits; those of one number are rounded away from it, so that they
        still hold.
        """
        if written is None:
            low, high = _outwards(self.lower, ROUND_FLOOR), _outwards(self.upper, ROUND_CEILING)
        else:
            low, high = map(written, self)
        if np.ndim(self.lower) or np.ndim(self.upper):
            return f"{low} to {high}"
        if np.isinf(self.upper):
            return "no limit" if np.isinf(self.lower) else f"at least {low}"
        return f"at most {high}" if np.isinf(self.lower) else f"{low} to {high}"


def _opened(limit: Any, sign: float) -> Any:
    """Return infinity in the place of the largest float of this sign, which is no limit."""
    if isinstance(limit, np.ndarray):
        return np.where(sign * limit >= MAX_FLOAT, sign * np.inf, limit)
    return sign * np.inf if sign * limit >= MAX_FLOAT else limit


def _outwards(limit: Any, rounding: str) -> str:
    if isinstance(limit, np.ndarray):
        return np.array2string(limit, precision=6, suppress_small=True, separator=", ")
    if not (isinstance(limit, float) and math.isfinite(limit)):
        return str(limit)
    return f"{Context(prec=6, rounding=rounding).create_decimal_from_float(limit):g}"


def _text(limit: Any) -> str:
    """Return a limit, or an array of them, with few digits."""
    options: Any = {"precision": 6}
    if np.isinf(limit).any():
        options = {"formatter": {"float_kind": lambda x: "no limit" if np.isinf(x) else f"{x:.6g}"}}
    return np.array2string(np.asarray(limit), **options)


POPULATION_NOTE = "among all people like these, from whom the records were drawn independently."
"""What an interval for a population is about."""


@dataclass(frozen=True)
class PopulationQuestion:
    """What somebody wants to know of a metric among all people.

    Parameters
    ----------
    metric : str
        Name of the metric.
    confidence : float
        Of all limits together.
    is_sure : bool, default=False
        Whether limits have to be proved. Otherwise narrower ones that were measured to hold will do.
    """

    metric: str
    confidence: float
    is_sure: bool = False

    @classmethod
    def of(cls, metric: str, confidence: float, sure: bool) -> Self:
        """Return what is asked; raise if an argument is invalid."""
        return cls(metric, check_confidence(confidence), check_flag(sure, "sure"))

    @property
    def miss(self) -> float:
        """Probability with which either limit may miss."""
        return (1 - self.confidence) / 2

    @property
    def name(self) -> str:
        """What people call the metric."""
        return self.metric.removeprefix("private_")

    def interval(self, lower: Any, upper: Any, estimate: Any, note: str = "", of: str = "") -> Interval:
        """Return the interval with these limits, of the metric or `of` what else."""
        about = f"{of or f'The {self.name}'} {POPULATION_NOTE} {how_sure(note)}"
        return Interval(lower, upper, self.confidence, about, note, estimate)


APPROXIMATE = "Approximate: the confidence was measured on simulated and real data, not proved."
"""What an interval says that is not proved."""


def how_sure(note: str) -> str:
    """Return in words whether limits with this note are proved."""
    return "These limits are approximate." if APPROXIMATE in note else "These limits are sure."


NO_POPULATION = (
    "{} tells no limits of what it is among all people: accuracy does, and so do recall, precision and other "
    "ratios of counts, of one label or of each (average=None), and means with a public limit by "
    "mechanism='geometric', without weights and groups, of a public number of records."
)


CONFIDENCE = 0.95
"""Of the limits that tables show."""

AtConfidence: TypeAlias = Callable[[float], Interval] | None
"""Returns limits with a confidence; None: there are none."""


@own_error_state
@dataclass(frozen=True)
class Number:
    """A number that was released, or follows from what was.

    Parameters
    ----------
    name : str
        What it is called: "recall", "recall of 'spam'", "recall in 'female'", "recall difference".
    value : float
        The released number; NaN where there is none.
    metric : str
        The metric: "recall".
    note : str or None, default=None
        What must not be concluded from it.
    bias : str or None, default=None
        Which way it usually errs.
    label, group : object, default=None
        Of which label, and in which group.
    rests_on : float or None, default=None
        About how many records it rests on, where that is known; noisy, unless sizes of groups are public.
    section, release : str, default=""
        Where a page shows it, and of which of its releases it was made, as its plan calls it.
    feature : int or None, default=None
        The place, from 0, of the one feature of several by which the groups are; None: they are by all.
    confidence : float, default=0.95
        Of the range that a page shows; largest differences share what may miss.
    """

    name: str
    value: float
    metric: str
    note: str | None = None
    bias: str | None = None
    label: Any = None
    group: Any = None
    rests_on: float | None = None
    section: str = ""
    release: str = ""
    feature: int | None = None
    confidence: float = CONFIDENCE
    _noise: AtConfidence = field(default=None, repr=False, compare=False)
    _people: AtConfidence = field(default=None, repr=False, compare=False)
    _known: dict[Any, Interval] = field(default_factory=dict, init=False, repr=False, compare=False)

    def noise_interval(self, confidence: float = 0.95) -> Interval:
        """Return limits of the exact number of these records; ValueError if there are none."""
        return self._asked(self._noise, confidence)

    def population_interval(self, confidence: float = 0.95) -> Interval:
        """Return limits among all people like these; ValueError if there are none."""
        return self._asked(self._people, confidence)

    def _asked(self, limits: AtConfidence, confidence: float) -> Interval:
        if limits is None:
            raise ValueError("There are no such limits of this number.")
        asked = limits is self._people, confidence
        if asked not in self._known:  # a page shows them in several places
            self._known[asked] = limits(confidence)
        return self._known[asked]

    def row(self, confidence: float | None = None) -> dict[str, Any]:
        """Return all that there is to say of the number, as JSON has it: NaN and infinity are None.

        Without another confidence its limits have that of the range that a page shows.
        """
        row: dict[str, Any] = {
            "name": self.name, "metric": self.metric, "label": _as_json(self.label),
            "group": _as_json(self.group), "value": finite(self.value), "rests_on": finite(self.rests_on),
            "note": self.note, "bias": self.bias,
        }  # fmt: skip
        for kind, limits in (("people", self.population_interval), ("noise", self.noise_interval)):
            try:
                found = limits(self.confidence if confidence is None else confidence)
            except Exception as error:  # the number is paid for all the same
                row |= {kind: None, f"{kind}_note": str(error)}
            else:
                row |= {kind: [finite(found.lower), finite(found.upper)], f"{kind}_note": found.note or None}
        return row


_COLUMNS = (
    *("metric", "label", "group", "value", "people_lower", "people_upper", "noise_lower", "noise_upper"),
    *("rests_on", "note", "bias", "people_note", "noise_note"),
)


def table_of(rows: Iterable[ByName], more: tuple[str, ...] = ()) -> Any:
    """Return the table of numbers, a row each by name, with these columns as well; this imports pandas.

    Parameters
    ----------
    rows : iterable of mapping
        The rows of the numbers.
    more : tuple of str, default=()
        What else they have.

    Returns
    -------
    pandas.DataFrame
        The columns of `PrivateMetricFrame.frame`; what is not known is missing.
    """
    pd = import_extra("pandas", "report")

    flat = []
    for row in rows:
        flat.append(dict(row))
        for kind in ("people", "noise"):
            flat[-1][f"{kind}_lower"], flat[-1][f"{kind}_upper"] = row[kind] or (None, None)
    return pd.DataFrame(flat, columns=["name", *_COLUMNS, *more]).set_index("name")


def finite(number: Any) -> float | None:
    """Return a number, or None for what is none, or not finite."""
    return None if number is None or not math.isfinite(number) else float(number)


def _as_json(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_as_json(one) for one in value]
    return value if isinstance(value, int | float | str | None) else str(value)
