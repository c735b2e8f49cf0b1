"""What is public of a page before a record is read: the kind of predictions, and the options.

The kind follows from keywords and models, and from no value and no type: one odd record among integers makes
floats of all of them, and would choose the page.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self, TypeAlias

import numpy as np

from dp_metrics.inputs.arrays import check_edges, names_of, stated_shape
from dp_metrics.inputs.labels import LabelSet
from dp_metrics.inputs.models import estimator_type, has_method, known_labels, named_by_labels, response_of
from dp_metrics.inputs.options import (
    ByName,
    Function,
    Relation,
    as_real,
    as_whole,
    check_bounds,
    check_choice,
    check_positive,
)

LABELS, SCORES, PROBABILITIES, TARGETS = "labels", "scores", "probabilities", "targets"

_KEYWORDS = {"y_pred": LABELS, "y_score": SCORES, "y_proba": PROBABILITIES}
_NAMES = {kind: name for name, kind in _KEYWORDS.items()}
_NAMES |= {TARGETS: "y_pred", "feature": "sensitive_features"}
"""What the columns of a page are called as arguments, where that is something else."""
_OPEN = """{} alone does not tell whether there are labels or targets, and nothing is concluded from what it \
holds. Type
    {}, labels=[...], epsilon=...)  for labels, all that there may be, or
    {}, task="regression", epsilon=...)  for targets;
probabilities are passed as y_proba=... or y_score=..."""
_TWO_TASKS = "task={!r} and {} contradict each other: there are labels, or there are targets."


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
    labels, pos_label, edges, threshold, bounds, group_labels, membership, split, n, max_records
        As in `private_evaluate`.
    words : mapping of str to str, default={}
        What the page calls things: the options of these names that were given.
    requirements : tuple of str, default=()
        What the numbers have to be.
    tolerance : float or None, default=None
        How far a prediction may be off, in the unit of the targets.
    equal_groups : bool, default=False
        Whether there are metrics in which each person counts once as well.
    crossed : bool, default=True
        Whether groups are by all of several features together, and not by each alone.
    feature_names : tuple of str, default=()
        What several features are called, if the columns of their container have names.
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
    split: ByName | None = None
    n: int | None = None
    max_records: int | None = None
    words: ByName = field(default_factory=dict)
    requirements: tuple[str, ...] = ()
    tolerance: float | None = None
    equal_groups: bool = False
    crossed: bool = True
    feature_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_choice(self.membership, "membership", ("private", "public"))
        check_bounds(self.bounds)
        check_edges(self.edges)
        if self.tolerance is not None:
            check_positive(self.tolerance, "tolerance")
        if not np.isfinite(as_real(self.threshold)):
            raise ValueError("threshold must be a number.")
        if self.n is not None and (as_whole(self.n) or 0) < 1:
            raise ValueError("n must be None or a positive whole number: a public guess.")
        for why, are_used, names in (
            ("there are labels, and no targets", self.is_regression, ("bounds", "tolerance")),
            ("there are targets, and no labels", not self.is_regression,
             ("labels", "pos_label", "equal_groups")),
            ("there are no scores", SCORES in self.columns, ("edges",)),
            ("pass sensitive_features as well", self.has_groups, ("group_labels", "membership")),
        ):  # fmt: skip
            for name in () if are_used else names:
                value, nothing = getattr(self, name), getattr(Setting, name)  # the default
                if value is not None and (nothing is None or value != nothing):
                    raise ValueError(f"{name} is of no use here: {why}.")
        if not self.crossed and len(self.places("feature")) < 2:
            raise ValueError("crossed=False needs several sensitive_features: there is nothing to cross.")
        if self.pos_label is not None:
            known = LabelSet.of(self.labels)
            if known.size > 2 or PROBABILITIES in self.columns:
                raise ValueError("pos_label is of no use here: there are more than two labels.")
            known.place(self.pos_label, "pos_label")

    @classmethod
    def of(cls, asked: ByName) -> Self:
        """Return the setting of options as `asked` returned them."""
        several = ("columns", "requirements", "feature_names")
        listed = {name: tuple(asked[name]) for name in several if name in asked}
        return cls(**{**asked, **listed})

    @property
    def names(self) -> list[str]:
        """What the columns are called as arguments."""
        return [_NAMES.get(column, column) for column in self.columns]

    @property
    def is_regression(self) -> bool:
        """Whether numbers are predicted, and not labels."""
        return TARGETS in self.columns

    @property
    def has_groups(self) -> bool:
        """Whether there are sensitive features."""
        return "feature" in self.columns

    def asked(self) -> dict[str, Any]:
        """Return the options by name; the latest only if they are given, for stored pages lack them."""
        options = dict(vars(self))
        late = ("max_records", "words", "requirements", "tolerance", "equal_groups", "feature_names")
        if self.crossed:
            del options["crossed"]
        return {name: value for name, value in options.items() if name not in late or value}

    def called(self, feature: int) -> str:
        """Return what one of several features is called: its name or its place."""
        return self.feature_names[feature] if self.feature_names else f"feature {feature + 1}"

    def places(self, name: str) -> list[int]:
        """Return the places of the columns of this name."""
        return [at for at, column in enumerate(self.columns) if column == name]


def names_of_features(sensitive_features: Any) -> tuple[str, ...]:
    """Return the names of the columns of several features, if these are text and differ."""
    names = names_of(sensitive_features)
    are_clear = all(isinstance(name, str) for name in names) and len({*names}) == len(names) > 1
    return tuple(names) if are_clear else ()


Read: TypeAlias = Function
"""What returns containers with a value for each record, given whether their number is private."""


def given(
    data: tuple[Any, ...],
    named: ByName,
    *,
    labels: Any,
    pos_label: Any,
    task: Any,
    features: tuple[Any, ...],
    baseline: Any,
) -> tuple[dict[str, Any], Read, dict[str, Any]]:
    """Return what a caller passed, by what it is: told by keywords and models, never by values or types.

    Returns
    -------
    options : dict
        Those of `Setting` that tell what is predicted.
    read : callable
        Returns the containers with a value for each record, given whether their number is private; estimators
        predict only then.
    records : dict
        The containers with a value for each record that were passed by these names; no model is among them.

    Raises
    ------
    ValueError, TypeError
        If the arguments leave open what the predictions are.
    """
    if task is not None:
        check_choice(task, "task", ("regression", "classification"))
    other = None
    if data and has_method(data[0], "predict"):
        if len(data) != 3 or any(value is not None for value in named.values()):
            raise TypeError("Of an estimator pass private_evaluate(model, X_test, y_test, epsilon=...).")
        model, x, y_true = data
        records = {"y_true": y_true}
        labels = known_labels(model) if labels is None else labels
        pos_label, positive = _positive(labels, pos_label)
        kind, answer = _answer(model, x, y_true, positive, labels, task)
        kinds, held = [kind], [answer]
        if baseline is not None:
            if not has_method(baseline, "predict"):
                raise TypeError("baseline must be a fitted estimator, as the model is.")
            other, answer = _answer(baseline, x, y_true, positive, labels, task)
            if (other == TARGETS) != (kind == TARGETS):
                raise TypeError("baseline must predict what the model does: labels, or targets.")
            held.append(answer)
    else:
        y_true, by_name = _predictions(data, named)
        records = {"y_true": y_true, **by_name, "baseline": baseline}
        by_kind = kinds_of({name: _columns(value) for name, value in by_name.items()}, labels, task)
        kinds, held = [*by_kind.values()], [partial(_as_it_is, value) for value in by_name.values()]
        if baseline is not None:
            other = kinds[0]  # labels, where they are passed as well as scores: these are what is compared
            held.append(partial(_as_it_is, baseline))
    columns = ("y_true", *kinds, *["baseline"] * (other is not None), *["feature"] * len(features))

    def read(*, relation: Relation) -> tuple[Any, ...]:
        return (y_true, *(one(relation=relation) for one in held), *features)

    return {"columns": columns, "baseline": other, "labels": labels, "pos_label": pos_label}, read, records


def _as_it_is(value: Any, *, relation: Relation) -> Any:
    return value


def _answer(
    model: Any, x: Any, y_true: Any, positive: Any, labels: Any, task: str | None
) -> tuple[str, Read]:
    """Return of what kind a fitted estimator's predictions are, and what asks for them."""
    stated, kind, answer = estimator_type(model), LABELS, partial(response_of, model, "predict", x, y_true)
    if stated == "regressor":
        kind = TARGETS
    elif has_method(model, "predict_proba"):
        kind, answer = _probabilities(model, x, y_true, positive, labels)
    elif stated != "classifier" and known_labels(model) is None:  # somebody's own, which does not say
        call = "private_evaluate(model, X, y"
        kind = kinds_of({"y_pred": 1}, labels, task, _OPEN.format("A model", call, call))["y_pred"]
    if task is not None and (task == "regression") != (kind == TARGETS):
        raise ValueError(_TWO_TASKS.format(task, type(model).__name__))
    return kind, answer


def _probabilities(model: Any, x: Any, y_true: Any, positive: Any, labels: Any) -> tuple[str, Any]:
    """Return what asks for the probabilities of labels, or of the positive one of two, and of which kind."""
    labels = known_labels(model) if labels is None else labels
    if labels is None:
        raise ValueError(f"{type(model).__name__} has no classes_: pass labels=[...], all that there may be.")
    known = LabelSet.of(labels)
    answer = partial(response_of, model, "predict_proba", x, y_true, labels=labels)
    if known.size != 2:
        return PROBABILITIES, lambda *, relation: named_by_labels(
            answer(relation=relation), "predict_proba", known.known
        )
    place = 1 if positive is None else known.sorted_place(positive)
    return SCORES, lambda *, relation: answer(relation=relation)[:, place]


def _positive(labels: Any, pos_label: Any) -> tuple[Any, Any]:
    """Return the positive label as the page is asked for it, and the one whose probability models shall tell.

    The classes of a model say which column is which, so that labels may be listed in any order.
    """
    known = None if labels is None else LabelSet.of(labels)
    if known is None or known.size != 2:
        return pos_label, None
    positive = known.known.tolist()[1] if pos_label is None else pos_label
    return pos_label if known.is_sorted else positive, positive


def _predictions(data: tuple[Any, ...], named: ByName) -> tuple[Any, dict[str, Any]]:
    """Return y_true, and the predictions by their names; the second argument is y_pred."""
    by_name = {name: value for name, value in named.items() if value is not None}
    if len(data) == 2 and "y_pred" not in by_name:
        by_name = {"y_pred": data[1], **by_name}
        data = data[:1]
    if len(data) != 1 or not by_name:
        raise TypeError("Pass y_true and y_pred, or y_true with y_pred=, y_proba= or y_score= by name.")
    if "y_score" in by_name and "y_proba" in by_name:
        raise TypeError("Pass y_score or y_proba, not both.")
    return data[0], by_name


def _columns(value: Any) -> int | None:
    """Return how many columns a container states; None of a list, which does not tell."""
    shape = stated_shape(value)
    return None if shape is None else int(shape[1]) if len(shape) > 1 else 1


def kinds_of(
    columns: Mapping[str, int | None],
    labels: Any,
    task: str | None,
    if_open: str = _OPEN.format("y_pred", *["private_evaluate(y_true, y_pred"] * 2),
) -> dict[str, str]:
    """Return of what kind the predictions with these names are.

    Parameters
    ----------
    columns : mapping of str to int or None
        How many columns each has; None of a list, which does not tell.
    labels : array-like or None
        The public labels.
    task : {"regression", "classification"} or None
        As in `private_evaluate`.
    if_open : str
        What to say if nothing tells labels from targets.

    Raises
    ------
    ValueError
        If it is left open, or is said in two ways.
    """
    says = [name for name in ("y_proba", "y_score") if name in columns] + ["labels"] * (labels is not None)
    if task == "regression":
        if says:
            raise ValueError(_TWO_TASKS.format(task, says[0]))
        return {"y_pred": TARGETS}
    if task is None and not says:
        raise ValueError(if_open)
    if (columns.get("y_pred") or 1) > 1:
        raise ValueError(
            "y_pred has several columns, but a record has one predicted label: pass probabilities as "
            "y_proba=..., with a column for each label."
        )
    kinds = {name: _KEYWORDS[name] for name in columns}
    if "y_proba" in kinds:
        number = columns["y_proba"]
        is_wide = number > 2 if number is not None else labels is not None and len(labels) > 2
        kinds["y_proba"] = PROBABILITIES if is_wide else SCORES
    return kinds
