"""Metrics of labels that follow from one released table of counts."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeVar

from dp_metrics.inputs.labels import LabelSet
from dp_metrics.inputs.losses import identity
from dp_metrics.inputs.options import Array, ByName, Function, own_error_state
from dp_metrics.metrics import METRICS, row_of
from dp_metrics.metrics._pictures import draw_confusion
from dp_metrics.metrics.labels import metrics
from dp_metrics.metrics.labels.confusion import Confusion, confusion_for, of_ratio
from dp_metrics.metrics.labels.layouts import Counts, Layout, Ratio, sizes_of_labels
from dp_metrics.release.released import Interval, Number, named, table_of
from dp_metrics.release.result import AnyResult, KeptCounts, Result
from dp_metrics.release.stored import PER_RECORD

R = TypeVar("R")

_TOO_LITTLE = (
    "{} does not tell all metrics of labels: release a confusion matrix or a classification report by "
    "`with_result`, and pass what that returns."
)
_OF_COUNTS = "These are counts that metrics of labels are made of, which have limits: ask for theirs."


def counts_of_labels(layout: Layout, labels: LabelSet) -> Confusion:
    """Return what a query of these counts releases, as they are, for whoever makes metrics of them."""
    return Confusion(layout, identity, labels, sizes_of_labels, no_limits=_OF_COUNTS)


def _of_counts(metric: Callable[..., R]) -> Callable[..., R]:
    """Return the method that makes of released counts what a metric of labels does, with its options."""
    name, written = metric.__name__, inspect.signature(metric)
    options = METRICS[name].options.keys() - PER_RECORD - {"labels"}
    shown = [one for one in written.parameters.values() if one.name in options]
    this = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    signature = written.replace(parameters=[this, *shown])

    def method(self: ReleasedConfusion, **options: Any) -> R:
        signature.bind(self, **options)
        return self._result_of(metric, options).value

    method.__name__ = name.removeprefix("private_")
    method.__qualname__ = f"ReleasedConfusion.{method.__name__}"
    method.__doc__ = f"Return what `{name}` makes of the counts, with its options."
    method.__signature__ = signature  # type: ignore[attr-defined]
    return method


@own_error_state
@dataclass(frozen=True, repr=False, eq=False)
class ReleasedConfusion:
    """Metrics of labels that follow from one release: they are public, and cost no more epsilon.

    Parameters
    ----------
    result : Result
        All that may be published: its value is the list of noisy counts, whole numbers without bias. Its
        ``noise_interval()`` has limits of each: of a matrix, those that a call of `private_confusion_matrix`
        has. At a threshold of scores, that of the table of scores.
    labels : ndarray of shape (n_classes,)
        The public labels, in the order of the results.
    counts : Counts
        The plausible counts that the metrics are computed from.
    layout : Layout
        How they are read from the noisy ones.
    threshold : float or None, default=None
        The score from which on the positive class is predicted, where scores were released.
    positive : object, default=None
        The label that metrics of one label are of, where the release knows which is the positive one of two:
        as of scores. None: as in the metrics, 1.

    Notes
    -----
    Guarantee: that of the release. All methods are post-processing: they cost nothing.

    Examples
    --------
    >>> from dp_metrics import private_confusion_matrix, with_result
    >>> y_true, y_pred = ["ham"] * 900 + ["spam"] * 100, ["ham"] * 910 + ["spam"] * 90
    >>> result = with_result(private_confusion_matrix)(y_true, y_pred, epsilon=1.0, labels=["ham", "spam"])
    >>> released = ReleasedConfusion.of(result)
    >>> released.confusion_matrix().shape, released.result.epsilon
    ((2, 2), 1.0)
    >>> 0.7 < released.recall_score(pos_label="spam") <= 1  # exactly 0.9
    True
    """

    result: Result[list[int]]
    labels: Array
    counts: Counts
    layout: Layout = field(repr=False)
    threshold: float | None = None
    positive: Any = None

    @classmethod
    def of(cls, result: AnyResult) -> Self:
        """Return all metrics of labels that follow from a released matrix or report, at no cost.

        Parameters
        ----------
        result : Result
            Of `private_confusion_matrix`; or of `private_classification_report`, which with many labels has
            fewer counts, and so tells every metric but the matrix and weighted kappas much better.

        Returns
        -------
        ReleasedConfusion
            The metrics.

        Raises
        ------
        TypeError
            If the result does not hold these counts.
        """
        told = getattr(result, "reading", None)
        if not isinstance(told, Confusion):
            raise TypeError(_TOO_LITTLE.format(getattr(result, "metric", type(result).__name__)))
        every, labels, layout = counts_of_labels(told.layout, told.labels), told.labels, told.layout
        if not (layout.has_matrix or layout.has_both):
            raise TypeError(_TOO_LITTLE.format(result.metric))
        counts: Counts = every(result.released)
        shape = None if counts.matrix is None else (labels.size, labels.size)
        kept = replace(result, reading=KeptCounts(every, shape))
        return cls(kept, labels.in_order, counts, layout, positive=told.positive)

    def __repr__(self) -> str:
        result = self.result
        shown = {"labels": self.labels.tolist(), "threshold": self.threshold, "epsilon": result.epsilon}
        shown |= {"neighboring": result.neighboring, "note": result.note}
        return f"ReleasedConfusion({named(shown)})"

    def accuracy_score(self) -> float:
        """Return the accuracy that the release tells."""
        return float(self.counts.right.sum() / self.counts.n) if self.counts.n > 0 else 0.0

    def noise_interval(self, metric: Function | str, *, confidence: float = 0.95, **options: Any) -> Interval:
        """Return limits of the exact metric of the records: how far the noise may have moved it.

        Parameters
        ----------
        metric : callable or str
            A metric of labels, or its name, such as "recall" or "accuracy".
        confidence : float, default=0.95
            Probability, over the noise, with which all limits hold.
        **options
            Of the metric, such as `pos_label` or `average`.

        Returns
        -------
        Interval
            As of the result of the metric: see `Result.noise_interval`.

        Raises
        ------
        ValueError, TypeError
            If the metric has no such limits, or an argument is invalid.
        """
        return self._result_of(metric, options).noise_interval(confidence)

    def population_interval(
        self,
        metric: Function | str,
        *,
        confidence: float = 0.95,
        sure: bool = False,
        **options: Any,
    ) -> Interval:
        """Return limits of the metric among all people like the records.

        Parameters
        ----------
        metric, **options
            As of `noise_interval`.
        confidence : float, default=0.95
            Probability, over the noise and over which people became records, with which all limits hold.
        sure : bool, default=False
            As of `Result.population_interval`.

        Returns
        -------
        Interval
            With the metric of the counts as its `estimate`.

        Raises
        ------
        ValueError, TypeError
            If the metric has no such limits, or an argument is invalid.
        """
        return self._result_of(metric, options).population_interval(confidence, sure)

    def note(self, metric: Function | str, **options: Any) -> str | None:
        """Return what must not be concluded from a metric of the counts: that it is mostly noise.

        Parameters
        ----------
        metric, **options
            As of `noise_interval`.

        Returns
        -------
        str or None
            None where 95 % limits of the noise are no more than a fifth of its range apart.

        Raises
        ------
        ValueError, TypeError
            If there is no such metric, or an argument is invalid.
        """
        result: Any = self._result_of(metric, options)
        return result.reading.note(result)

    def numbers(self, *, pos_label: Any = None) -> dict[str, Number]:
        """Return the usual metrics of labels with limits, by name; of up to 20 labels those of each too.

        Parameters
        ----------
        pos_label : object, default=None
            Which of two labels the metrics are of; None: the positive one, or else the second.

        Returns
        -------
        dict of Number
            "accuracy", "balanced accuracy"; of two labels "recall", "precision", "specificity", "f1",
            "selection rate" and "prevalence"; of more "f1 (macro)"; and "recall of 'spam'", precision and F1
            of each label.
        """
        labels = self.labels.tolist()
        asked: list[tuple[str, dict[str, Any]]] = [("accuracy", {}), ("balanced_accuracy", {})]
        if len(labels) == 2:
            known = [pos_label, self.positive, LabelSet.of(labels).known[1]]
            one = {"pos_label": next(label for label in known if label is not None)}
            asked += [(name, one) for name in _OF_TWO_LABELS]
        else:
            asked.append(("f1", {"average": "macro"}))
        numbers = [number_of(self, name, options) for name, options in asked]
        every = LabelSet.of(self.labels)
        for place, label in enumerate(labels if len(labels) <= _MOST_LABELS else ()):
            for kind in _OF_EACH_LABEL:  # of one label of however many
                ratio = of_ratio(Ratio(kind, "binary", every.size, place), every)
                result = self._read(ratio, f"private_{kind}_score")
                numbers.append(_number(result, f"{kind} of {label!r}", kind, label))
        return {one.name: one for one in numbers}

    def frame(self, *, pos_label: Any = None) -> Any:
        """Return the usual metrics of labels as a table, a row each; this imports pandas.

        Parameters
        ----------
        pos_label : object, default=None
            As of `numbers`.

        Returns
        -------
        pandas.DataFrame
            The columns of `PrivateMetricFrame.frame`.
        """
        return table_of(one.row() for one in self.numbers(pos_label=pos_label).values())

    def _result_of(self, metric: Function | str, options: ByName) -> AnyResult:
        """Return the result of a metric with these options, made of the counts that were released."""
        row, fixed = row_of(metric)
        one = {} if self.positive is None or "pos_label" not in row.options else {"pos_label": self.positive}
        known, name = {**one, **fixed, **options, "labels": self.labels}, row.name
        if name == "private_accuracy_score":  # the micro average of recalls
            known, row = {**known, "average": "micro"}, METRICS["private_recall_score"]
        if not isinstance(row.usual.reading, Confusion):
            raise TypeError(f"{name} is no metric of labels: the release holds counts of labels only.")
        wanted = confusion_for(row, known)
        if wanted.needs_matrix and self.counts.matrix is None:
            raise ValueError(f"{name} needs the whole matrix: release a confusion matrix.")
        return self._read(wanted, name)

    def _read(self, wanted: Confusion, name: str) -> AnyResult:
        at = "" if self.threshold is None else f" at the threshold {self.threshold:g}"
        return replace(self.result, metric=name + at, reading=replace(wanted, layout=self.layout))

    def plot(self, ax: Any = None, *, normalize: str | None = None, confidence: float | None = 0.95) -> Any:
        """Draw the confusion matrix; this imports matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None: a new figure of pyplot.
        normalize : {"true", "pred", "all"} or None, default=None
            Whether to show shares of rows, of columns or of all, rather than counts.
        confidence : float or None, default=0.95
            Of the limits of the noise, which all hold at once, shown for up to three labels; None shows none.

        Returns
        -------
        ConfusionMatrixDisplay
            Of scikit-learn, drawn, made of released numbers only. Cells that may be empty, by these limits or
            those of 95 %, are grey.

        Raises
        ------
        ValueError
            If an argument is invalid, or the release does not tell the matrix.
        ImportError
            If matplotlib is missing.
        """
        matrix = self.confusion_matrix(normalize=normalize)
        sure = 0.95 if confidence is None else confidence
        limits = self.noise_interval("confusion_matrix", confidence=sure, normalize=normalize)
        return draw_confusion(matrix, self.labels.tolist(), limits, ax, is_told=confidence is not None)

    # One for each metric of labels; tests/project/test_every_door.py holds their options to those.

    balanced_accuracy_score = _of_counts(metrics.private_balanced_accuracy_score)
    classification_report = _of_counts(metrics.private_classification_report)
    cohen_kappa_score = _of_counts(metrics.private_cohen_kappa_score)
    confusion_matrix = _of_counts(metrics.private_confusion_matrix)
    f1_score = _of_counts(metrics.private_f1_score)
    jaccard_score = _of_counts(metrics.private_jaccard_score)
    matthews_corrcoef = _of_counts(metrics.private_matthews_corrcoef)
    precision_score = _of_counts(metrics.private_precision_score)
    prevalence = _of_counts(metrics.private_prevalence)
    recall_score = _of_counts(metrics.private_recall_score)
    selection_rate = _of_counts(metrics.private_selection_rate)
    specificity_score = _of_counts(metrics.private_specificity_score)


_MOST_LABELS = 20  # whose recall, precision and F1 are numbers of their own
_OF_EACH_LABEL = ("recall", "precision", "f1")
_OF_TWO_LABELS = ("recall", "precision", "specificity", "f1", "selection_rate", "prevalence")


def number_of(told: ReleasedConfusion, metric: str, options: ByName, called: str | None = None) -> Number:
    """Return a metric of labels with its limits."""
    name = called or metric.replace("_", " ") + (" (macro)" if options.get("average") == "macro" else "")
    return _number(told._result_of(metric, options), name, name)


def _number(result: AnyResult, name: str, metric: str, label: Any = None) -> Number:
    """Return a result of the counts, which is one number, with its limits: each has them for itself."""
    reading: Any = result.reading
    note = " ".join(filter(None, (reading.note(result), result.more))) or None
    return Number(
        name, float(result.value), metric, note, label=label,
        _noise=result.noise_interval, _people=result.population_interval,
    )  # fmt: skip
