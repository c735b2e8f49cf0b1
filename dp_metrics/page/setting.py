"""What is public of a page before a record is read: the kind of predictions, and the options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from dp_metrics.inputs.containers import array_of, states_columns
from dp_metrics.inputs.labels import LabelSet
from dp_metrics.inputs.models import estimator_type, has_method, known_labels, response_of
from dp_metrics.inputs.options import check_bounds, check_choice, check_edges
from dp_metrics.inputs.scalars import as_real, as_whole

__all__ = ["LABELS", "PROBABILITIES", "SCORES", "TARGETS", "Given", "Setting", "given"]

LABELS, SCORES, PROBABILITIES, TARGETS = "labels", "scores", "probabilities", "targets"

_KEYWORDS = {"y_pred": LABELS, "y_score": SCORES, "y_proba": PROBABILITIES}
_BARE = (
    "{} is a list, which does not tell whether it holds labels, probabilities or targets: name it y_pred, "
    "y_proba or y_score, with labels=[...] if there are labels; or pass an array."
)


_USED = {
    "bounds": "there are labels, and no targets",
    "labels": "there are targets, and no labels",
    "pos_label": "there are targets, and no labels",
    "edges": "there are no scores",
    "group_labels": "pass sensitive_features as well",
    "membership": "pass sensitive_features as well",
}


@dataclass(frozen=True)
class Setting:
    """The checked public options of a page.

    Parameters
    ----------
    columns : tuple of str
        What the arguments with a value for each record are, in their order: "y_true", then the predictions by
        their kind, then "baseline" and "feature" as often as there are any.
    baseline : str or None
        The kind of predictions of the other model.
    labels, pos_label, edges, threshold, bounds, group_labels, membership, split, n
        As in `private_evaluate`.
    """

    columns: tuple[str, ...]
    baseline: str | None = None
    labels: Any = None
    pos_label: Any = None
    edges: Any = None
    threshold: float = 0.5
    bounds: Any = None
    group_labels: Any = None
    membership: str = "private"
    split: Mapping[str, Any] | None = None
    n: int | None = None

    def __post_init__(self) -> None:
        check_choice(self.membership, "membership", ("private", "public"))
        check_bounds(self.bounds)
        check_edges(self.edges)
        if not np.isfinite(as_real(self.threshold)):
            raise ValueError("threshold must be a number.")
        if self.n is not None and (as_whole(self.n) or 0) < 1:
            raise ValueError("n must be None or a positive whole number: a public guess.")
        for name, value, is_used in (
            ("bounds", self.bounds, self.is_regression),
            ("labels", self.labels, not self.is_regression),
            ("pos_label", self.pos_label, not self.is_regression),
            ("edges", self.edges, SCORES in self.columns),
            ("group_labels", self.group_labels, self.has_groups),
            ("membership", None if self.membership == "private" else self.membership, self.has_groups),
        ):
            if value is not None and not is_used:
                raise ValueError(f"{name} is of no use here: {_USED[name]}.")
        if self.has_groups and self.group_labels is None:
            raise ValueError("group_labels must be the public labels of the groups: they are never inferred.")

    @property
    def is_regression(self) -> bool:
        """Whether numbers are predicted, and not labels."""
        return TARGETS in self.columns

    @property
    def has_groups(self) -> bool:
        """Whether there are sensitive features."""
        return "feature" in self.columns

    def asked(self) -> dict[str, Any]:
        """Return the options by name."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def places(self, *names: str) -> list[int]:
        """Return the places of the columns of these names."""
        return [at for name in names for at, column in enumerate(self.columns) if column == name]


Read: TypeAlias = Callable[..., Any]
"""What returns containers with a value for each record, given whether their number is private."""


class Given(NamedTuple):
    """What a caller passed, by what it is.

    Parameters
    ----------
    columns : tuple of str
        As in `Setting`.
    read : callable
        Returns the containers with a value for each record, given whether their number is private; estimators
        predict only then.
    baseline : str or None
        The kind of predictions of the other model.
    labels : object
        The public labels.
    """

    columns: tuple[str, ...]
    read: Read
    baseline: str | None
    labels: Any


def given(
    data: tuple[Any, ...],
    named: Mapping[str, Any],
    *,
    labels: Any,
    pos_label: Any,
    features: tuple[Any, ...],
    baseline: Any,
) -> Given:
    """Return what a caller passed, by what it is: recognised by types and public options, never by values.

    Raises
    ------
    ValueError, TypeError
        If the arguments leave open what the predictions are.
    """
    kinds: list[str]
    held: list[Read]
    other = None
    if data and has_method(data[0], "predict"):
        model, x, y_true = _model_and_data(data, named)
        labels = known_labels(model) if labels is None else labels
        kind, answer = _answer(model, x, y_true, labels, pos_label)
        kinds, held = [kind], [answer]
        if baseline is not None:
            if not has_method(baseline, "predict"):
                raise TypeError("baseline must be a fitted estimator, as the model is.")
            other, answer = _answer(baseline, x, y_true, labels, pos_label)
            held.append(answer)
    else:
        y_true, by_kind = _predictions(data, named, labels)
        kinds, held = [*by_kind], [partial(_as_it_is, value) for value in by_kind.values()]
        if baseline is not None:
            other = _kind(baseline, "baseline", labels, kinds)
            held.append(partial(_as_it_is, baseline))
    columns = ("y_true", *kinds, *(["baseline"] if other else []), *["feature"] * len(features))

    def read(*, private_n: bool) -> tuple[Any, ...]:
        return (y_true, *(one(private_n=private_n) for one in held), *features)

    return Given(columns, read, other, labels)


def _as_it_is(value: Any, *, private_n: bool) -> Any:
    return value


def _model_and_data(data: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    if len(data) != 3 or any(value is not None for value in named.values()):
        raise TypeError("Of an estimator pass private_evaluate(model, X_test, y_test, epsilon=...).")
    return data[0], data[1], data[2]


def _answer(model: Any, x: Any, y_true: Any, labels: Any, pos_label: Any) -> tuple[str, Read]:
    """Return of what kind a fitted estimator's predictions are, and what asks for them."""
    is_regressor = estimator_type(model) == "regressor"
    if is_regressor or not has_method(model, "predict_proba"):
        return TARGETS if is_regressor else LABELS, partial(response_of, model, "predict", x, y_true)
    labels = known_labels(model) if labels is None else labels
    if labels is None:
        raise ValueError(f"{type(model).__name__} has no classes_: pass labels=[...], all that there may be.")
    known = LabelSet.of(labels)
    answer = partial(response_of, model, "predict_proba", x, y_true, labels=labels)
    if known.size != 2:
        return PROBABILITIES, answer
    place = 1 if pos_label is None else known.places.tolist().index(known.place(pos_label, "pos_label"))
    return SCORES, lambda *, private_n: answer(private_n=private_n)[:, place]


def _predictions(data: tuple[Any, ...], named: Mapping[str, Any], labels: Any) -> tuple[Any, dict[str, Any]]:
    """Return y_true, and the predictions by their kinds."""
    by_name = {name: value for name, value in named.items() if value is not None}
    if not 1 <= len(data) <= 2 or (len(data) == 2) == bool(by_name):
        raise TypeError(
            "Pass y_true and one array of predictions, or y_true and y_pred=, y_proba= or y_score= by name."
        )
    if not by_name:
        return data[0], {_kind(data[1], "The second argument", labels, ()): data[1]}
    if "y_score" in by_name and "y_proba" in by_name:
        raise TypeError("Pass y_score or y_proba, not both.")
    kinds = {}
    for name, value in by_name.items():
        kind = _KEYWORDS[name]
        if name == "y_pred" and labels is None and len(by_name) == 1:
            kind = _kind(value, "y_pred", None, ())
        if name == "y_proba" and not _is_wide(value, labels):
            kind = SCORES
        kinds[kind] = value
    return data[0], kinds


def _kind(value: Any, name: str, labels: Any, known: Any) -> str:
    """Return the kind of predictions: that of the type of an array, given whether there are labels."""
    if TARGETS in known:
        return TARGETS
    if not states_columns(value):
        raise ValueError(_BARE.format(name))
    if _type_kind(value) != "f":
        return LABELS
    if labels is None and not known:
        return TARGETS
    return PROBABILITIES if _is_wide(value, labels) else SCORES


def _type_kind(value: Any) -> str:
    """Return the kind of the type that a container states: that of none of its records, so public."""
    try:
        return array_of(value[:0]).dtype.kind
    except Exception:  # of what cannot be sliced, which is checked when the records are read
        return "O"


def _is_wide(value: Any, labels: Any) -> bool:
    """Return whether there are more columns than two labels have; a list does not tell how many it has."""
    if states_columns(value):
        shape = np.shape(value)
        return len(shape) > 1 and shape[1] > 2
    return labels is not None and len(labels) > 2
