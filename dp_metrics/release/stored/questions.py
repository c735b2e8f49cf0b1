"""Questions: all that is public of a call, and so what a stored answer is the answer to.

An argument is one of four things, and is known by its name in every function. A setting (epsilon, the
budget) is in the question by itself or not at all. An option is in it as it was given. Of records, which are
private, their number is in it, where that is public, and nothing else. What is public of each record, such as
a weight, is in it by a digest, so that equal numbers are one question whatever holds them.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dp_metrics.inputs.arrays import check_one_number, number_of_records
from dp_metrics.inputs.readers import asked_of_persons, check_groups, check_sample_weight
from dp_metrics.release.stored.codec import DAMAGED, decoded, encoded
from dp_metrics.sensitivity.exact import UNIT_BITS

SETTINGS = frozenset(
    {"epsilon", "mechanism", "neighboring", "accountant", "random_state", "spend_name", "dry_run"}
)
"""Arguments of a call that every release has, besides what is asked."""

RECORDS = frozenset(
    {
        "y_true", "y_pred", "y_prob", "y_proba", "y_score", "x", "losses", "pred_a", "pred_b",
        "data", "X", "candidates", "baseline", "sensitive_features",
    }
)  # fmt: skip
"""Arguments that hold a private value for each record; instead of a model's predictions its y_true is asked.

`sensitive_features` are public per record where the membership is.
"""

PER_RECORD = frozenset({"sample_weight", "groups", "max_records"})
"""Arguments that are public of each record: how much it counts, whose it is, how many a person keeps."""

OTHER_VERSION = "This release was stored by a later version of dp_metrics: update the package to read it."
_SCHEMA, _VERSION = "dp_metrics.release", 1
_DIGEST = "sha256:"
_NUMBER, _TOTAL = "number of records", "total weight"


@dataclass(frozen=True)
class Call:
    """What is public of a call, besides the settings of every release.

    Parameters
    ----------
    kind : {"metric", "frame", "labels", "scores", "search", "page", "value"}
        What is returned, and so how it is made again.
    public : mapping
        The options. Never records, predictions, groups or anything of their length.
    of_records : callable
        Returns what is public of the records where their number is, to be compared; called only for a name
        that was given.
    """

    kind: str
    public: Mapping[str, Any]
    of_records: Callable[[], Mapping[str, Any]] = dict

    @classmethod
    def of(
        cls,
        kind: str,
        arguments: Mapping[str, Any],
        features: Callable[[], NDArray[np.intp]] | None = None,
        **described: Any,
    ) -> Self:
        """Return what is public of a call with these arguments, each of which its name tells; read none yet.

        Parameters
        ----------
        kind : str
            As for the class.
        arguments : mapping
            The arguments by their names.
        features : callable or None, default=None
            Returns the public group of each record, as a number; None: membership is private.
        **described
            Options that are written otherwise than they were given.

        Raises
        ------
        ValueError, TypeError
            If `max_records` is of no use, or no positive whole number.
        """
        asked_of_persons(arguments.get("groups"), arguments.get("max_records"))
        options = {
            name: value for name, value in arguments.items() if name not in SETTINGS | RECORDS | PER_RECORD
        }
        records = {name: value for name, value in arguments.items() if name in RECORDS | PER_RECORD}
        return cls(kind, {"options": {**options, **described}}, partial(public_records, records, features))

    def can_be_made_again(self, question: str | None) -> bool:
        """Return whether all of the release follows from what is stored, if this is the question."""
        return question is not None or self.kind in ("metric", "value")


def public_records(
    arguments: Mapping[str, Any], features: Callable[[], NDArray[np.intp]] | None = None
) -> dict[str, Any]:
    """Return what is public of records whose number is; contents of what is private are not looked at.

    Parameters
    ----------
    arguments, features
        As in `Call.of`; settings and options are ignored.

    Raises
    ------
    TypeError, ValueError
        If weights, groups or public features are invalid, or lengths differ, as in a release.
    """
    lengths = {
        name: number_of_records(value)
        for name, value in arguments.items()
        if name in RECORDS and value is not None
    }
    weights = check_sample_weight(arguments.get("sample_weight"))
    groups = check_groups(arguments.get("groups"))
    of_each = {"sample_weight": weights, "groups": groups}
    check_one_number(lengths | {name: one.size for name, one in of_each.items() if one is not None})
    public: dict[str, Any] = {_NUMBER: next(iter(lengths.values()), 0)}
    if weights is not None:
        public["sample_weight"] = _digest(weights + 0.0, "<f8")  # adding 0 leaves no negative zero
    if groups is not None:
        # Which records are of one person is public, but not who they are: of ids a digest would let whoever
        # holds the file test guesses. So it is of their numbers, in the order of first appearance.
        public["groups"] = _digest(groups, "<i8")
        public |= asked_of_persons(arguments["groups"], arguments.get("max_records"))["persons"]
    if features is not None:
        public["sensitive_features"] = _digest(features(), "<i8")
    return public


def public_totals(n: int, weight: int | None = None) -> dict[str, Any]:
    """Return what is public of records that came in chunks, which have no order: number and total weight.

    Parameters
    ----------
    n : int
        Number of records.
    weight : int or None, default=None
        Their total weight in units of 2**-1074; None: each counts alike.
    """
    return {_NUMBER: n} | ({} if weight is None else {_TOTAL: Fraction(weight, 1 << UNIT_BITS)})


def _digest(numbers: NDArray[Any], dtype: str) -> str:
    """Return the digest of numbers; it depends neither on the machine nor on what held them."""
    held = np.ascontiguousarray(numbers, dtype=dtype)
    return _DIGEST + hashlib.sha256(held.tobytes()).hexdigest()


def as_plain(value: Any) -> Any:
    """Return a public option with lists in the place of arrays and tuples, and no numbers of NumPy."""
    if isinstance(value, Mapping):
        return {name: as_plain(one) for name, one in value.items()}
    if isinstance(value, np.ndarray) and value.dtype.kind in "mM":
        value = list(value)  # NumPy would list times as numbers
    elif hasattr(value, "tolist") and not isinstance(value, np.datetime64 | np.timedelta64):
        value = value.tolist()  # arrays, and series of pandas
    if isinstance(value, list | tuple | range):
        return [as_plain(one) for one in value]
    return value


def question_json(call: Call, *, of_records: Mapping[str, Any] | None = None, **settings: Any) -> str | None:
    """Return the question of a call as JSON; None if an option is of a type that cannot be written."""
    told = {} if of_records is None else {"records": dict(of_records)}
    try:
        asked = encoded({"kind": call.kind, **settings, **as_plain(call.public), **told})
    except TypeError:
        return None
    return written_json("question", asked)


def written_json(what: str, content: Any) -> str:
    """Return a question or an answer as JSON, which `content_of` reads."""
    return json.dumps({"schema": _SCHEMA, "version": _VERSION, what: content})


def content_of(text: str, what: str) -> Any:
    """Return a question or an answer, of which this is the JSON."""
    outer = json.loads(text)
    if outer["schema"] == _SCHEMA and outer["version"] != _VERSION:
        raise ValueError(OTHER_VERSION)
    if outer["schema"] != _SCHEMA:
        raise ValueError(DAMAGED)
    return outer[what]


def differences(stored: str | None, asked: str | None) -> str | None:
    """Return how a stored question differs from another one, in words; None if they are the same."""
    if stored is None or asked is None:
        return "an option that cannot be written down, and so not be compared"
    old, new = (decoded(content_of(one, "question")) for one in (stored, asked))
    return "; ".join(_differing("", old, new)) or None


def _differing(name: str, old: Any, new: Any) -> list[str]:
    given = [one for one in (old, new) if one is not None]
    if given and all(isinstance(one, Mapping) for one in given):
        old, new = old or {}, new or {}
        names = {**old, **new}
        return [text for one in names for text in _differing(str(one), old.get(one), new.get(one))]
    if encoded(old) == encoded(new):  # NaN equals itself here
        return []
    if _is_digest(old) and _is_digest(new):
        return [f"{name} has other values"]
    return [f"{name} was {_shown(old)} and is {_shown(new)}"]


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(_DIGEST)


def _shown(value: Any) -> str:
    if _is_digest(value):
        return "given"
    return repr(float(value) if isinstance(value, Fraction) else value)
