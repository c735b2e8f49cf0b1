"""Metrics of predicted labels: confusion matrix, precision, recall, what is made of them, and a report."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias, Unpack

from numpy.typing import ArrayLike

from dp_metrics.inputs.arrays import Shape
from dp_metrics.inputs.labels import LabelSet
from dp_metrics.inputs.options import Floats, check_average, check_choice, check_count, check_zero_division
from dp_metrics.metrics._metric import asks, private
from dp_metrics.metrics._settings import LabelSettings, RatioSettings
from dp_metrics.metrics.labels import layouts
from dp_metrics.metrics.labels.confusion import OF_COUNTS, Confusion, of_ratio
from dp_metrics.metrics.labels.layouts import SHARES, Counts, Ratio
from dp_metrics.release.query import Query


def _ratio_query(
    kind: str, shape: Shape, *, pos_label: Any, labels: Any, average: Any = "binary", zero_division: Any = 0.0
) -> Query:
    """Return the query of a ratio of counts, of which `Ratio` has the kinds."""
    known = LabelSet.of(labels)
    if kind not in SHARES:  # which are of one label of however many
        check_average(average, known.size)
    place = known.place(pos_label, "pos_label") if average == "binary" else 0
    if kind == "specificity" and average == "binary":  # of two labels it is the recall of the other one
        kind, place = "recall", 1 - place
    undefined = check_zero_division(zero_division, is_mean=average in ("macro", "weighted"))
    return of_ratio(Ratio(kind, average, known.size, place, undefined), known).query(shape)


@private("sklearn.metrics.precision_score", greater_is_better=True, **OF_COUNTS)
def private_precision_score(
    y_true: ArrayLike, y_pred: ArrayLike, **settings: Unpack[RatioSettings]
) -> float | Floats:
    """Precision (share of right ones among those predicted positive) with epsilon-differential privacy.

    Returns
    -------
    float or ndarray of shape (n_classes,)
        True positives over all that are predicted to be positive; in [0, 1]. An array for ``average=None``
        only.

    See Also
    --------
    private_classification_report : Precision, recall and F1 of each label at once.
    private_average_precision_score : Without a threshold.

    Notes
    -----
    Noise is added to the fewest counts that determine the answer, not to the answer: true positives, the
    errors that matter and the others for one label; for K labels the true positives and the errors of each.
    Its size does not depend on the data, so the error of the answer is about 1 / (epsilon times the records
    of the class). A label without records, by the noisy counts, is 0/0: `zero_division`, and no warning.

    References
    ----------
    M. Hardt and K. Talwar, "On the Geometry of Differential Privacy", 2010, doi:10.1145/1806689.1806786, for
    noise in the norm of the sensitivity.

    Examples
    --------
    >>> from dp_metrics import private_precision_score
    >>> y_true = ["ham"] * 900 + ["spam"] * 100
    >>> y_pred = ["ham"] * 890 + ["spam"] * 90 + ["ham"] * 20
    >>> score = private_precision_score(
    ...     y_true, y_pred, epsilon=1.0, labels=["ham", "spam"], pos_label="spam"
    ... )
    >>> 0.77 < score < 1  # exactly 0.889
    True
    """
    return asks(_ratio_query, "precision", **settings)


@private("sklearn.metrics.recall_score", greater_is_better=True, **OF_COUNTS)
def private_recall_score(
    y_true: ArrayLike, y_pred: ArrayLike, **settings: Unpack[RatioSettings]
) -> float | Floats:
    """Recall (share of the positive ones that are found) with epsilon-differential privacy.

    Returns
    -------
    float or ndarray of shape (n_classes,)
        True positives over all that are positive; in [0, 1]. An array for ``average=None`` only.

    See Also
    --------
    private_classification_report : Precision, recall and F1 of each label at once.
    private_average_precision_score : Without a threshold.

    Notes
    -----
    Noise is added to the fewest counts that determine the answer, not to the answer: true positives, the
    errors that matter and the others for one label; for K labels the true positives and the errors of each.
    Its size does not depend on the data, so the error of the answer is about 1 / (epsilon times the records
    of the class). A label without records, by the noisy counts, is 0/0: `zero_division`, and no warning.

    References
    ----------
    M. Hardt and K. Talwar, "On the Geometry of Differential Privacy", 2010, doi:10.1145/1806689.1806786, for
    noise in the norm of the sensitivity.

    Examples
    --------
    >>> from dp_metrics import private_recall_score
    >>> y_true = ["ham"] * 900 + ["spam"] * 100
    >>> y_pred = ["ham"] * 890 + ["spam"] * 90 + ["ham"] * 20
    >>> score = private_recall_score(
    ...     y_true, y_pred, epsilon=1.0, labels=["ham", "spam"], pos_label="spam"
    ... )
    >>> 0.68 < score < 0.92  # exactly 0.800
    True
    """
    return asks(_ratio_query, "recall", **settings)


@private("sklearn.metrics.f1_score", greater_is_better=True, **OF_COUNTS)
def private_f1_score(
    y_true: ArrayLike, y_pred: ArrayLike, **settings: Unpack[RatioSettings]
) -> float | Floats:
    """F1 score (harmonic mean of precision and recall) with epsilon-differential privacy.

    Returns
    -------
    float or ndarray of shape (n_classes,)
        Twice the true positives over that and the errors of both kinds; in [0, 1]. An array for
        ``average=None`` only.

    See Also
    --------
    private_classification_report : Precision, recall and F1 of each label at once.
    private_average_precision_score : Without a threshold.

    Notes
    -----
    Noise is added to the fewest counts that determine the answer, not to the answer: true positives, the
    errors that matter and the others for one label; for K labels the true positives and the errors of each.
    Its size does not depend on the data, so the error of the answer is about 1 / (epsilon times the records
    of the class). A label without records, by the noisy counts, is 0/0: `zero_division`, and no warning.

    References
    ----------
    M. Hardt and K. Talwar, "On the Geometry of Differential Privacy", 2010, doi:10.1145/1806689.1806786, for
    noise in the norm of the sensitivity.

    Examples
    --------
    >>> from dp_metrics import private_f1_score
    >>> y_true = ["ham"] * 900 + ["spam"] * 100
    >>> y_pred = ["ham"] * 890 + ["spam"] * 90 + ["ham"] * 20
    >>> score = private_f1_score(
    ...     y_true, y_pred, epsilon=1.0, labels=["ham", "spam"], pos_label="spam"
    ... )
    >>> 0.72 < score < 0.96  # exactly 0.842
    True
    """
    return asks(_ratio_query, "f1", **settings)


@private("sklearn.metrics.jaccard_score", greater_is_better=True, **OF_COUNTS)
def private_jaccard_score(
    y_true: ArrayLike, y_pred: ArrayLike, **settings: Unpack[RatioSettings]
) -> float | Floats:
    """Jaccard score (share of right ones among those that are or were predicted positive), privately.

    Returns
    -------
    float or ndarray of shape (n_classes,)
        True positives over these and the errors of both kinds; in [0, 1]. An array for ``average=None``
        only.

    See Also
    --------
    private_classification_report : Precision, recall and F1 of each label at once.
    private_average_precision_score : Without a threshold.

    Notes
    -----
    Noise is added to the fewest counts that determine the answer, not to the answer: true positives, the
    errors that matter and the others for one label; for K labels the true positives and the errors of each.
    Its size does not depend on the data, so the error of the answer is about 1 / (epsilon times the records
    of the class). A label without records, by the noisy counts, is 0/0: `zero_division`, and no warning.

    References
    ----------
    M. Hardt and K. Talwar, "On the Geometry of Differential Privacy", 2010, doi:10.1145/1806689.1806786, for
    noise in the norm of the sensitivity.

    Examples
    --------
    >>> from dp_metrics import private_jaccard_score
    >>> y_true = ["ham"] * 900 + ["spam"] * 100
    >>> y_pred = ["ham"] * 890 + ["spam"] * 90 + ["ham"] * 20
    >>> score = private_jaccard_score(
    ...     y_true, y_pred, epsilon=1.0, labels=["ham", "spam"], pos_label="spam"
    ... )
    >>> 0.61 < score < 0.85  # exactly 0.727
    True
    """
    return asks(_ratio_query, "jaccard", **settings)


@private(greater_is_better=True, **OF_COUNTS)
def private_specificity_score(
    y_true: ArrayLike, y_pred: ArrayLike, **settings: Unpack[RatioSettings]
) -> float | Floats:
    """Specificity (share of the negative ones that are found) with epsilon-differential privacy.

    Returns
    -------
    float or ndarray of shape (n_classes,)
        True negatives over all that are negative; in [0, 1]. An array for ``average=None`` only.

    See Also
    --------
    private_recall_score : The share of the positive ones that are found.
    private_roc_curve : Both at every threshold: 1 less the specificity, and the recall.

    Notes
    -----
    The negatives of a label are the records of all others, so of two labels this is the recall of the other
    one, from three counts: true negatives, false positives and the others. Of K labels the counts are those
    of a report of each, and for ``average="micro"`` the right and the wrong records. Noise is added to these
    counts, not to the answer, whose error is about 1 / (epsilon times the negatives). A label without
    negatives, by the noisy counts, is 0/0: `zero_division`, and no warning.

    References
    ----------
    M. Hardt and K. Talwar, "On the Geometry of Differential Privacy", 2010, doi:10.1145/1806689.1806786, for
    noise in the norm of the sensitivity.

    Examples
    --------
    >>> from dp_metrics import private_specificity_score
    >>> y_true = ["ham"] * 900 + ["spam"] * 100
    >>> y_pred = ["ham"] * 890 + ["spam"] * 90 + ["ham"] * 20
    >>> score = private_specificity_score(
    ...     y_true, y_pred, epsilon=1.0, labels=["ham", "spam"], pos_label="spam"
    ... )
    >>> 0.96 < score <= 1  # exactly 0.989
    True
    """
    return asks(_ratio_query, "specificity", **settings)


@private(**OF_COUNTS)
def private_selection_rate(
    y_true: ArrayLike, y_pred: ArrayLike, *, pos_label: Any = 1, **settings: Unpack[LabelSettings]
) -> float:
    """Share of the records that are predicted positive (selection rate) with epsilon-differential privacy.

    Parameters
    ----------
    pos_label : label, default=1
        The label that counts as positive.

    Returns
    -------
    float
        Records predicted to be positive over all records; in [0, 1].

    See Also
    --------
    private_prevalence : The share that is positive.
    PrivateMetricFrame : Both by group, with differences and ratios, of one table: demographic parity.

    Notes
    -----
    The name is that of fairlearn; `y_true` is not needed for it, and so has no influence, but tables by group
    have one form for all metrics of labels. Released are two counts: their noise is one number.

    References
    ----------
    M. Hardt and K. Talwar, "On the Geometry of Differential Privacy", 2010, doi:10.1145/1806689.1806786, for
    noise in the norm of the sensitivity.

    Examples
    --------
    >>> from dp_metrics import private_selection_rate
    >>> y_true, y_pred = [0] * 900 + [1] * 100, [0] * 850 + [1] * 150
    >>> 0.13 < private_selection_rate(y_true, y_pred, epsilon=1.0) < 0.17  # exactly 0.15
    True
    """
    return asks(_ratio_query, "selection_rate", pos_label=pos_label, **settings)


@private(**OF_COUNTS)
def private_prevalence(
    y_true: ArrayLike, y_pred: ArrayLike, *, pos_label: Any = 1, **settings: Unpack[LabelSettings]
) -> float:
    """Share of the records that are positive (prevalence) with epsilon-differential privacy.

    Parameters
    ----------
    pos_label : label, default=1
        The label that counts as positive.

    Returns
    -------
    float
        Records that are positive over all records; in [0, 1].

    See Also
    --------
    private_selection_rate : The share that is predicted positive.
    private_mean : Of any numbers.

    Notes
    -----
    `y_pred` is not needed for it, and so has no influence, but tables by group have one form for all metrics
    of labels. Released are two counts: their noise is one number.

    References
    ----------
    M. Hardt and K. Talwar, "On the Geometry of Differential Privacy", 2010, doi:10.1145/1806689.1806786, for
    noise in the norm of the sensitivity.

    Examples
    --------
    >>> from dp_metrics import private_prevalence
    >>> y_true, y_pred = [0] * 900 + [1] * 100, [0] * 850 + [1] * 150
    >>> 0.08 < private_prevalence(y_true, y_pred, epsilon=1.0) < 0.12  # exactly 0.1
    True
    """
    return asks(_ratio_query, "prevalence", pos_label=pos_label, **settings)


_MOST_LIMITED = 20  # labels: limits of each of their pairs take a while


@private("sklearn.metrics.confusion_matrix", **OF_COUNTS)
def private_confusion_matrix(
    y_true: ArrayLike, y_pred: ArrayLike, *, normalize: str | None = None, **settings: Unpack[LabelSettings]
) -> Floats:
    """Confusion matrix with epsilon-differential privacy for the test records.

    Parameters
    ----------
    normalize : {"true", "pred", "all"} or None, default=None
        Whether to return shares of each true label (rows), of each predicted one (columns) or of all records,
        all by the noisy counts; 0 where there are none. None: numbers of records.

    Returns
    -------
    ndarray of shape (n_classes, n_classes)
        Row i, column j: how many records of label i are predicted to have label j, at least 0; where n is
        public their sum is n. They are fractions: the plausible counts nearest to the noisy ones. The noisy
        counts themselves, whole numbers without bias, are ``drawn["counts"]`` of the `Result`. For a
        ``ConfusionMatrixDisplay``, which prints floats with two digits, pass ``np.rint(matrix).astype(int)``.

    See Also
    --------
    ReleasedConfusion.of : All metrics of labels, of this one release.
    private_f1_score : One metric, more accurate than what the matrix tells.

    Notes
    -----
    A record lies in one cell, so that two cells change by 1 if it is replaced. The noise of all cells is
    drawn under the condition that its sum is 0 (up to 256 cells; independent beyond).
    With K labels there are K^2 cells of noise: for macro averages over many labels ask for the metric itself.
    With `normalize` the `Result` has limits of each share among all people, for at most 20 labels.

    References
    ----------
    M. Hardt and K. Talwar, "On the Geometry of Differential Privacy", 2010, doi:10.1145/1806689.1806786, for
    noise in the norm of the sensitivity.

    Examples
    --------
    >>> from dp_metrics import private_confusion_matrix
    >>> y_true = ["ham"] * 900 + ["spam"] * 100
    >>> y_pred = ["ham"] * 890 + ["spam"] * 90 + ["ham"] * 20
    >>> labels = ["ham", "spam"]
    >>> matrix = private_confusion_matrix(y_true, y_pred, epsilon=1.0, labels=labels)
    >>> matrix.shape, bool(abs(matrix[1, 1] - 80) < 40)
    ((2, 2), True)
    """
    known = LabelSet.of(settings["labels"])
    check_choice(normalize, "normalize", (None, "true", "pred", "all"))
    formula = partial(layouts.matrix_shares, normalize=normalize)
    sizes, parts_of = partial(layouts.sizes_of_shares, normalize=normalize), None
    if normalize is not None and known.size <= _MOST_LIMITED:
        parts_of = partial(layouts.parts_of_shares, normalize=normalize)
    layout = layouts.whole(known.size)
    return asks(Confusion(layout, formula, known, sizes, parts_of=parts_of, needs_matrix=True).query)


@private("sklearn.metrics.balanced_accuracy_score", greater_is_better=True, **OF_COUNTS)
def private_balanced_accuracy_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    adjusted: bool = False,
    zero_division: float | str = 0.0,
    **settings: Unpack[LabelSettings],
) -> float:
    """Balanced accuracy (the mean recall of all labels) with epsilon-differential privacy.

    Parameters
    ----------
    adjusted : bool, default=False
        Whether chance, 1 / n_classes, becomes 0; 1 stays 1.

    Returns
    -------
    float
        The private balanced accuracy, in [0, 1]; with `adjusted` at least -1 / (n_classes - 1).

    See Also
    --------
    private_recall_score : The recall of one label, or of each.
    private_roc_auc_score : Without a threshold.

    Notes
    -----
    Released are two counts for each label, how often it was found and missed.

    References
    ----------
    M. Hardt and K. Talwar, "On the Geometry of Differential Privacy", 2010, doi:10.1145/1806689.1806786, for
    noise in the norm of the sensitivity.

    Examples
    --------
    >>> from dp_metrics import private_balanced_accuracy_score
    >>> y_true, y_pred = [0] * 900 + [1] * 100, [0] * 910 + [1] * 90
    >>> 0.85 < private_balanced_accuracy_score(y_true, y_pred, epsilon=1.0) <= 1  # exactly 0.95
    True
    """
    known = LabelSet.of(settings["labels"])
    undefined, chance = check_zero_division(zero_division, is_mean=True), 1 / known.size if adjusted else 0.0
    ratio = Ratio("recall", "macro", known.size, undefined=undefined, chance=chance)
    return asks(of_ratio(ratio, known).query)


def _agreement_query(
    formula: Callable[[Counts], float], shape: Shape, *, labels: Any, needs_matrix: bool = False
) -> Query:
    """Return the query of a measure of agreement beyond chance."""
    known = LabelSet.of(labels)
    layout = (layouts.whole if needs_matrix else layouts.matrix_layout)(known.size)
    found = Confusion(layout, formula, known, layouts.sizes_of_labels, needs_matrix, is_agreement=True)
    return found.query(shape)


@private("sklearn.metrics.matthews_corrcoef", greater_is_better=True, **OF_COUNTS)
def private_matthews_corrcoef(
    y_true: ArrayLike, y_pred: ArrayLike, **settings: Unpack[LabelSettings]
) -> float:
    """Matthews correlation coefficient with epsilon-differential privacy for the test records.

    Returns
    -------
    float
        The private coefficient, in [-1, 1]; 0 where it is 0/0.

    See Also
    --------
    private_cohen_kappa_score : Agreement beyond chance.

    Notes
    -----
    Released is the confusion matrix of up to three labels, else three counts for each label.

    References
    ----------
    M. Hardt and K. Talwar, "On the Geometry of Differential Privacy", 2010, doi:10.1145/1806689.1806786, for
    noise in the norm of the sensitivity.

    Examples
    --------
    >>> from dp_metrics import private_matthews_corrcoef
    >>> y_true, y_pred = [0] * 900 + [1] * 100, [0] * 910 + [1] * 90
    >>> 0.8 < private_matthews_corrcoef(y_true, y_pred, epsilon=1.0) <= 1  # exactly 0.94
    True
    """
    return asks(_agreement_query, layouts.matthews, **settings)


@private("sklearn.metrics.cohen_kappa_score", greater_is_better=True, **OF_COUNTS)
def private_cohen_kappa_score(
    y_true: ArrayLike, y_pred: ArrayLike, *, weights: str | None = None, **settings: Unpack[LabelSettings]
) -> float:
    """Cohen's kappa (agreement beyond chance) with epsilon-differential privacy for the test records.

    Parameters
    ----------
    weights : {"linear", "quadratic"} or None, default=None
        Whether an error costs more the further its labels are apart, in the order of `labels`. That needs the
        whole matrix, which is less accurate with many labels.

    Returns
    -------
    float
        The private kappa, in [-1, 1]; 0 where it is 0/0, for which scikit-learn has NaN.

    See Also
    --------
    private_matthews_corrcoef : Another measure of agreement beyond chance.

    Notes
    -----
    Released is the confusion matrix of up to three labels, else three counts for each label.

    References
    ----------
    M. Hardt and K. Talwar, "On the Geometry of Differential Privacy", 2010, doi:10.1145/1806689.1806786, for
    noise in the norm of the sensitivity.

    Examples
    --------
    >>> from dp_metrics import private_cohen_kappa_score
    >>> y_true, y_pred = [0] * 900 + [1] * 100, [0] * 910 + [1] * 90
    >>> 0.8 < private_cohen_kappa_score(y_true, y_pred, epsilon=1.0) <= 1  # exactly 0.94
    True
    """
    check_choice(weights, "weights", (None, "linear", "quadratic"))
    formula = partial(layouts.kappa, weights=weights)
    return asks(_agreement_query, formula, needs_matrix=weights is not None, **settings)


LabelTable: TypeAlias = dict[str, dict[str, float] | float]


_MEANS = ("accuracy", "macro avg", "weighted avg")
_COLUMNS = ("precision", "recall", "f1-score", "support")


def _label_table(counts: Counts, names: Sequence[str], undefined: float) -> dict[str, Any]:
    """Return the rows of scikit-learn's report, by name."""

    def scores(average: str | None) -> list[Any]:
        kinds = ("precision", "recall", "f1")
        return [Ratio(kind, average, undefined=undefined)(counts) for kind in kinds]

    rows = zip(*(column.tolist() for column in [*scores(None), counts.true]), strict=True)
    table: dict[str, Any] = {
        name: dict(zip(_COLUMNS, row, strict=True)) for name, row in zip(names, rows, strict=True)
    }
    table["accuracy"] = Ratio("recall", "weighted", undefined=undefined)(counts)
    for average in ("macro", "weighted"):
        table[f"{average} avg"] = dict(zip(_COLUMNS, [*scores(average), counts.n], strict=True))
    return table


def _label_text(counts: Counts, names: Sequence[str], undefined: float, digits: int) -> str:
    """Return the rows laid out as scikit-learn's report; supports are rounded to whole records."""
    table = _label_table(counts, names, undefined)
    width = max(len("weighted avg"), digits, *map(len, names))
    lines = [f"{'':>{width}} " + "".join(f" {column:>9}" for column in _COLUMNS), ""]
    for name, row in table.items():
        if name == "accuracy":
            scores, support, space = [row], counts.n, " " * 20
            lines.append("")
        else:
            (*scores, support), space = row.values(), ""
        numbers = "".join(f" {score:>9.{digits}f}" for score in scores)
        lines.append(f"{name:>{width}} {space}{numbers} {support:>9.0f}")
    return "\n".join(lines) + "\n"


@private("sklearn.metrics.classification_report", **OF_COUNTS)
def private_classification_report(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    target_names: Sequence[str] | None = None,
    digits: int = 2,
    output_dict: bool = False,
    zero_division: float | str = 0.0,
    **settings: Unpack[LabelSettings],
) -> str | LabelTable:
    """Report precision, recall, F1 and support of each label with epsilon-differential privacy for all.

    One table of counts is released; all of the report follows from it.

    Parameters
    ----------
    target_names : sequence of str or None, default=None
        Names to show, in the order of `labels`; None: the labels themselves.
    digits : int, default=2
        Decimals in the text, from 1 to 17.
    output_dict : bool, default=False
        Whether to return a dictionary rather than a text.
    zero_division : float or "warn", default=0.0
        What 0/0 is, by the noisy counts: 0 or 1. "warn" is 0 without a warning, which would tell of the data.

    Returns
    -------
    str or dict
        The table, in the layout of scikit-learn; or a dictionary with "precision", "recall", "f1-score" and
        "support" of each label, "accuracy", "macro avg" and "weighted avg". Supports are noisy too: fractions
        in the dictionary, rounded in the text.

    See Also
    --------
    private_f1_score : One number, more accurate than its place in a report.
    ReleasedConfusion.of : All metrics of labels, of this one release.

    Notes
    -----
    Released are the four or nine cells of the confusion matrix of two or three labels, else three counts for
    each label. The recall of a label with m records has an error of about 2 / (epsilon m): with epsilon m
    below 40 do not read it.

    References
    ----------
    M. Hardt and K. Talwar, "On the Geometry of Differential Privacy", 2010, doi:10.1145/1806689.1806786, for
    noise in the norm of the sensitivity.

    Examples
    --------
    >>> from dp_metrics import private_classification_report
    >>> y_true = ["ham"] * 900 + ["spam"] * 100
    >>> y_pred = ["ham"] * 890 + ["spam"] * 90 + ["ham"] * 20
    >>> labels = ["ham", "spam"]
    >>> report = private_classification_report(y_true, y_pred, epsilon=1.0, labels=labels, output_dict=True)
    >>> 0.6 < report["spam"]["recall"] < 1  # exactly 0.8
    True
    """
    known = LabelSet.of(settings["labels"])
    names = [*map(str, known.in_order if target_names is None else target_names)]
    if len(names) != known.size:
        raise ValueError(
            f"Number of classes, {known.size}, does not match size of target_names, {len(names)}."
        )
    if len({*names, *_MEANS}) < known.size + len(_MEANS):
        raise ValueError("The names of the labels must be different, and none that of another row.")
    decimals = check_count(digits, "digits", 17)  # as many has a float64
    undefined = check_zero_division(zero_division, is_mean=True)
    if math.isnan(undefined):
        raise ValueError("zero_division must be 0, 1 or 'warn' in a report.")
    formula = _label_table if output_dict else partial(_label_text, digits=decimals)
    result = partial(formula, names=names, undefined=undefined)
    layout = layouts.matrix_layout(known.size)
    return asks(Confusion(layout, result, known, layouts.sizes_of_labels, is_monotone=False).query)
