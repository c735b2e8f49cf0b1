"""What is stored of a release, as JSON: the question, all that is public of the call, and the answer.

Numbers, strings and lists stand for themselves. Anything else is an object with one key, which says what it
is; the types that it may name are those of a table, and nothing else is found by its name.

An argument is one of four things, and is known by its name in every function. A setting (epsilon, the
budget) is in the question by itself or not at all. An option is in it as it was given. Of records, which are
private, their number is in it, where that is public, and nothing else. What is public of each record, such as
a weight, is in it by a digest, so that equal numbers are one question whatever holds them.

An answer is all that was released. What else a release offers follows from it and from the question, so it is
computed again and not stored: no function is written.
"""

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import lru_cache, partial
from pkgutil import resolve_name
from types import UnionType
from typing import Any, Self, TypeAlias, Union, get_args, get_origin, get_type_hints

import numpy as np

from dp_metrics.accounting.accountant import PrivacyAccountant, keep
from dp_metrics.accounting.ledgers import Claim
from dp_metrics.exceptions import warn_caller
from dp_metrics.inputs import arrays
from dp_metrics.inputs.arrays import ArgumentShape, Shape
from dp_metrics.inputs.options import Array, ByName, Codes, Function, Relation, own_error_state
from dp_metrics.mechanisms import MECHANISMS
from dp_metrics.quantities.base import Output, Totals
from dp_metrics.release.query import Query, Terms, Together
from dp_metrics.release.released import Interval
from dp_metrics.release.result import AnyResult
from dp_metrics.sensitivity.exact import UNIT_BITS

DAMAGED = "What is stored of this release is damaged, or was written by another version of dp_metrics."
MALFORMED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What reading damaged JSON, or making something of it, may raise."""

_KINDS: tuple[Any, ...] = (Interval, Output, Totals, *MECHANISMS.values())
STORED_TYPES = {kind.__name__: f"{kind.__module__}:{kind.__name__}" for kind in _KINDS} | {
    "CalibrationCurve": "dp_metrics.metrics.scores.curve_formulas:CalibrationCurve",
    "Choice": "dp_metrics.model_selection.best:Choice",
    "Comparison": "dp_metrics.inference.comparison:Comparison",
    "EvaluationPlan": "dp_metrics.page.page_plan:EvaluationPlan",
    "LeftOut": "dp_metrics.page.page_plan:Omission",
    "Planned": "dp_metrics.page.page_plan:PagePart",
    "PrecisionRecallCurve": "dp_metrics.metrics.scores.curve_formulas:PrecisionRecallCurve",
    "RocCurve": "dp_metrics.metrics.scores.curve_formulas:RocCurve",
}
"""The dataclasses and named tuples of public things, whose annotations are their fields, and where they are.

They are imported where one is read.
"""
_NAMES = {place: name for name, place in STORED_TYPES.items()}
_DTYPES = frozenset("biufUmM")


def encoded(value: Any) -> Any:
    """Return a public value as JSON can hold it.

    Raises
    ------
    TypeError
        If it is, or holds, a thing of a type that is not in the table.
    """
    kind: Any = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if kind in (date, datetime):
        return {kind.__name__: value.isoformat()}
    if kind is timedelta:
        return {"timedelta": [value.days, value.seconds, value.microseconds]}
    if isinstance(value, Fraction):  # hexadecimal, for Python refuses to convert long decimals
        return {"fraction": f"{value.numerator:#x}/{value.denominator:#x}"}
    if kind is list:
        return [encoded(one) for one in value]
    if kind is tuple:
        return {"tuple": [encoded(one) for one in value]}
    if isinstance(value, Mapping):
        if all(type(key) is str for key in value):
            return {"dict": {key: encoded(one) for key, one in value.items()}}
        return {"pairs": [[encoded(key), encoded(one)] for key, one in value.items()]}
    if isinstance(value, np.ndarray | np.generic):
        return _encoded_array(np.asarray(value), "array" if isinstance(value, np.ndarray) else "scalar")
    if (stored := _NAMES.get(f"{kind.__module__}:{kind.__name__}")) is None:
        raise TypeError(f"{kind.__name__} is no type that can be stored.")
    return {"type": stored, "fields": {name: encoded(getattr(value, name)) for name in kind.__annotations__}}


def _encoded_array(array: Array, kind: str) -> Any:
    if array.dtype.kind not in _DTYPES:
        raise TypeError(f"Arrays of {array.dtype} cannot be stored.")
    values = array.astype(np.int64) if array.dtype.kind in "mM" else array
    return {kind: [array.dtype.str, list(array.shape), encoded(values.ravel().tolist())]}


def decoded(json: Any) -> Any:
    """Return what `encoded` made such JSON of; raises one of `MALFORMED` for any other."""
    if isinstance(json, int | float | str | None):
        return json
    if isinstance(json, list):
        return [decoded(one) for one in json]
    if set(json) == {"type", "fields"}:
        made = resolve_name(STORED_TYPES[json["type"]])
        values = {name: decoded(one) for name, one in json["fields"].items()}
        hints, are_all = _hints(made), values.keys() == made.__annotations__.keys()
        # each field has to be of its type
        if not (are_all and all(_fits(one, hints[name]) for name, one in values.items())):
            raise ValueError(DAMAGED)
        return made(**values)
    ((kind, content),) = json.items()
    return _READERS[kind](content)


def _array(content: Any) -> Array:
    name, shape, values = content
    dtype = np.dtype(name)
    if dtype.kind not in _DTYPES:
        raise ValueError(DAMAGED)
    found = np.array(decoded(values), dtype=np.int64 if dtype.kind in "mM" else dtype).astype(dtype)
    # a shape that asks for more than there is fails
    return found.reshape([int(size) for size in shape])


_READERS: Mapping[str, Function] = {
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
    "timedelta": lambda content: timedelta(*content),
    "float": float,
    "fraction": lambda text: Fraction(*(int(part, 16) for part in str.split(text, "/"))),
    "tuple": lambda content: tuple(map(decoded, content)),
    "dict": lambda content: {key: decoded(value) for key, value in content.items()},
    "pairs": lambda content: {decoded(key): decoded(value) for key, value in content},
    "array": _array,
    "scalar": lambda content: _array(content)[()],
}


_hints = lru_cache(maxsize=256)(get_type_hints)


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a value is of an annotated type, as far as it and the tuples in it show."""
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in get_args(hint))
    if hint is Any:
        return True
    kind = origin or hint
    if isinstance(value, str):
        return kind is type(value)
    if kind in (float, int):
        return isinstance(value, int | kind) and not isinstance(value, bool)
    if isinstance(kind, type) and not isinstance(value, kind):
        return False
    if kind is not tuple:
        return True
    inner = get_args(hint)
    inner = inner[:1] * len(value) if inner[1:] == (...,) else inner
    return len(inner) == len(value) and all(map(_fits, value, inner))


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

WEIGHTS = ("sample_weight", "groups")
"""Options that hold a public value for each record."""

PER_RECORD = frozenset({*WEIGHTS, "max_records", "equal_groups"})
"""Arguments that are public of each record: how much it counts, whose it is, how many of a person count."""

_NO_OPTIONS = SETTINGS | RECORDS | PER_RECORD

OTHER_VERSION = (
    "This release was stored by another version of dp_metrics: read it with that one, or see its value in "
    "`results()` of the budget."
)
_SCHEMA, _VERSION = "dp_metrics.release", 2
_DIGEST = "sha256:"
_NUMBER = "number of records"


@dataclass(frozen=True)
class Call:
    """What is public of a call, besides the settings of every release.

    Parameters
    ----------
    kind : {"metric", "frame", "search", "page", "value"}
        What is returned, and so how it is made again.
    public : mapping
        The options. Never records, predictions, groups or anything of their length.
    of_records : callable
        Returns what is public of the records where their number is, to be compared; called only for a name
        that was given.
    """

    kind: str
    public: ByName
    of_records: Callable[[], ByName] = dict

    @classmethod
    def of(
        cls, kind: str, arguments: ByName, features: Callable[[], Codes] | None = None, **described: Any
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
        arrays.asked_of_persons(arguments)
        options = {name: value for name, value in arguments.items() if name not in _NO_OPTIONS}
        return cls(kind, {"options": {**options, **described}}, partial(public_records, arguments, features))


def public_records(arguments: ByName, features: Callable[[], Codes] | None = None) -> ByName:
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
    records = {name: one for name, one in arguments.items() if name in RECORDS and one is not None}
    weights = arrays.check_sample_weight(arguments.get("sample_weight"))
    groups = arrays.check_groups(arguments.get("groups"))
    arrays.check_same_length({**records, "sample_weight": weights, "groups": groups})
    public: dict[str, Any] = {_NUMBER: next(map(arrays.number_of_records, records.values()), 0)}
    if weights is not None:
        public["sample_weight"] = _digest(weights + 0.0, "<f8")  # adding 0 leaves no negative zero
    if groups is not None:
        # Which records are of one person is public, but not who they are: of ids a digest would let whoever
        # holds the file test guesses. So it is of their numbers, in the order of first appearance.
        public["groups"] = _digest(groups, "<i8")
        public |= arrays.asked_of_persons(arguments)
    if features is not None:
        public["sensitive_features"] = _digest(features(), "<i8")
    return public


def public_totals(n: int, weight: int | None = None, persons: int | None = None) -> dict[str, Any]:
    """Return what is public of records that came in chunks, which have no order.

    Parameters
    ----------
    n : int
        Number of records.
    weight : int or None, default=None
        Their total weight in units of 2**-1074; None: each counts alike.
    persons : int or None, default=None
        Number of persons; None: each record is a person of its own.
    """
    public: dict[str, Any] = {_NUMBER: n}
    if weight is not None:
        public["total weight"] = Fraction(weight, 1 << UNIT_BITS)
    return public if persons is None else {**public, "number of persons": persons}


def _digest(numbers: Array, dtype: str) -> str:
    """Return the digest of numbers; it depends neither on the machine nor on what held them."""
    return _DIGEST + hashlib.sha256(np.ascontiguousarray(numbers, dtype=dtype).tobytes()).hexdigest()


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


def question_json(call: Call, *, of_records: ByName | None = None, **settings: Any) -> str | None:
    """Return the question of a call as JSON; None if an option is of a type that cannot be written."""
    told = {} if of_records is None else {"records": dict(of_records)}

    def asked() -> Any:
        return encoded({"kind": call.kind, **settings, **as_plain(call.public), **told})

    return written_json("question", asked)


def written_json(what: str, content: Callable[[], Any]) -> str | None:
    """Return a question or an answer as JSON, which `content_of` reads; None if it cannot be written."""
    with suppress(TypeError):
        return json.dumps({"schema": _SCHEMA, "version": _VERSION, what: content()})
    return None


def content_of(text: str, what: str) -> Any:
    """Return a question or an answer, of which this is the JSON."""
    outer = json.loads(text)
    if outer["schema"] != _SCHEMA:
        raise ValueError(DAMAGED)
    if outer["version"] != _VERSION:
        raise ValueError(OTHER_VERSION)
    return outer[what]


def differences(stored: str | None, asked: str | None) -> str | None:
    """Return how a stored question differs from another one, in words; None if they are the same."""
    if stored is None or asked is None:
        return "an option that cannot be written down, and so not be compared"
    old, new = (decoded(content_of(one, "question")) for one in (stored, asked))
    return "; ".join(_differing("", old, new)) or None


def _differing(name: str, old: Any, new: Any) -> list[str]:
    if isinstance(old, Mapping | None) and isinstance(new, Mapping | None):
        old, new = old or {}, new or {}
        names = {**old, **new}
        return [text for one in names for text in _differing(str(one), old.get(one), new.get(one))]
    if encoded(old) == encoded(new):  # NaN equals itself here
        return []
    if _is_digest(old) and _is_digest(new):
        return [f"{name} has other values"]
    was, now = _shown(old), _shown(new)
    if was == now:  # a float, or a fraction, and another fraction that rounds to it
        was, now = str(old), str(new)
    return [f"{name} was {was} and is {now}"]


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(_DIGEST)


def _shown(value: Any) -> str:
    if _is_digest(value):
        return "given"
    return repr(float(value) if isinstance(value, Fraction) else value)


NOT_STORED = (
    "This release could not be stored in the budget, which shows its spend without a value: keep the result."
)
"""The note of a result that is paid for and was not stored."""

_LONGEST_SUMMARY = 100
_SHOWN_DIGITS = 6
Results: TypeAlias = Callable[[Query | Together], list[AnyResult]]
"""Returns the result of a query, or of each of several, made again of what was drawn."""

_RESTORED_BY = {
    "metric": "dp_metrics.metrics._metric:restored_metric",
    "frame": "dp_metrics.fairness.frame:restored_frame",
    "page": "dp_metrics.page.page:restored_page",
}
"""What makes each kind of release again that is more than a form, imported when it is asked for.

Each takes the question, the public form of the records with what else the results are made with, and
`Results`.
"""


def answer_json(kind: str, form: Any, results: Sequence[AnyResult]) -> str | None:
    """Return what was released as JSON; None if it cannot be written."""

    def content() -> ByName:
        return {"kind": kind, "form": encoded(_plain_form(form)), "results": [*map(_written, results)]}

    return written_json("answer", content)


def is_kept(budget: PrivacyAccountant, claim: Claim, written: Callable[[], tuple[str | None, str]]) -> bool:
    """Store an answer and its short form, and return whether that could be done: it never raises.

    Nothing may lose a number that is paid for, neither a full disk nor a warning that somebody made an error.
    """
    try:
        keep(budget, claim, *written())
    except Exception:
        with suppress(Warning):
            warn_caller(NOT_STORED, UserWarning)
        return False
    return True


def search_json(best_score: float, best_params: ByName) -> str | None:
    """Return what a search has found as JSON; of a parameter that cannot be written its repr."""
    params = {
        name: repr(value) if answer_json("value", value, []) is None else value
        for name, value in best_params.items()
    }
    return answer_json("search", {"best_score_": best_score, "best_params_": params}, [])


def summary_json(value: Any) -> str:
    """Return the short form of a release that a list of them shows: its number, or a line."""
    if isinstance(value, int | float):
        number = float(value)
        return json.dumps(number if np.isfinite(number) else repr(number))
    if isinstance(value, np.ndarray):
        text = np.array2string(value, precision=_SHOWN_DIGITS, threshold=8)
    else:
        text = value if isinstance(value, str) else repr(value)
    line = " ".join(text.split())
    return json.dumps(line if len(line) <= _LONGEST_SUMMARY else f"{line[: _LONGEST_SUMMARY - 3]}...")


def _plain_form(form: Any) -> Any:
    """Return a form in which shapes are dictionaries."""
    if isinstance(form, Shape):
        kept = form.of_any_records()
        columns = [[one.columns, one.states_columns, one.resolution] for one in kept.arguments]
        return {**vars(kept), "arguments": columns}  # whose names are not kept
    if isinstance(form, Mapping):
        return {name: _plain_form(one) for name, one in form.items()}
    return form


def read_shape(written: ByName) -> Shape:
    """Return the shape that a form holds."""
    # earlier versions have no resolution where it is that of float64
    arguments = tuple(
        ArgumentShape(columns, states, resolution or ArgumentShape.resolution)
        for columns, states, resolution in written["arguments"]
    )
    return Shape(**{**written, "arguments": arguments})


def _written(result: AnyResult) -> ByName:
    """Return what was drawn, and the public totals of the records; weights and groups are not kept."""
    return {
        "totals": encoded(None if result.totals is None else list(result.totals)),
        "capacity": result.capacity,
        "outputs": encoded(list(result.outputs)),
        "spend_name": result.spend_name,
        "is_repeatable": result.is_repeatable,
    }


def _result(metric: str, terms: Terms, query: Query, drawn: ByName) -> AnyResult:
    """Return a result that was written: its noises follow from the query and the totals."""
    totals, outputs, capacity = decoded(drawn["totals"]), decoded(drawn["outputs"]), drawn["capacity"]
    known = [Totals.of(1)] * len(query.quantities) if totals is None else totals
    is_sound = (
        (totals is None) == terms.relation.private_n
        and isinstance(drawn["spend_name"], str | None)
        and all(isinstance(one, Totals) for one in known)
        and all(isinstance(one, Output) and isinstance(one.value, float | int | tuple) for one in outputs)
    )
    if not is_sound:
        raise ValueError(DAMAGED)
    noises, _ = query.noises(terms, known, capacity)
    made = query.result(metric, terms, known, capacity, noises, outputs)
    made = replace(made, spend_name=drawn["spend_name"], is_repeatable=drawn["is_repeatable"] is True)
    _ = made.value, made.note  # whatever does not fit fails here
    return made


@own_error_state
def restored(question: str | None, answer: str) -> Any:
    """Return a stored release, of the type that it had.

    Raises
    ------
    ValueError
        If what is stored is damaged, or of another version; nothing of it is executed.
    """
    found, reason = None, DAMAGED
    try:
        content = content_of(answer, "answer")
        asked: Any = None if question is None else decoded(content_of(question, "question"))
        kind = content["kind"]
        if asked is not None and asked["kind"] != kind:
            raise ValueError(DAMAGED)
        form = decoded(content["form"])
        if kind in ("search", "value"):
            found = form
        elif asked is not None:

            def results(query: Query | Together) -> list[AnyResult]:
                terms = Terms(asked["epsilon"], Relation(asked["neighboring"]), asked["mechanism"])
                each = zip(query.each(asked["metric"], terms), content["results"], strict=True)
                return [_result(*one[:3], drawn) for one, drawn in each]

            found = resolve_name(_RESTORED_BY[kind])(asked, form, results)
    except MALFORMED as error:
        if str(error) == OTHER_VERSION:
            reason = OTHER_VERSION
    if found is None:
        raise ValueError(reason)
    return found
