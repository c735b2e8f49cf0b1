"""The private confusion matrix, and scores that need all of a confusion matrix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from dp_metrics.inputs.floats import Floats
from dp_metrics.inputs.labels import LabelSet
from dp_metrics.inputs.options import check_choice, check_zero_division
from dp_metrics.mechanisms._base import Limits, Noise
from dp_metrics.metrics._metric import CountSettings, asks, private
from dp_metrics.metrics.labels.count_formulas import (
    balanced,
    kappa,
    matthews,
    mean_above_chance,
    normalized,
    parts_of_ratio,
    rests_on,
    sizes_of_labels,
    sums_of_shares,
)
from dp_metrics.metrics.labels.counts import OF_COUNTS, Confusion
from dp_metrics.metrics.labels.layouts import matrix_layout, of_each_label, whole
from dp_metrics.release.noise import CountsNoise
from dp_metrics.release.released import ReleasedNumbers


@dataclass(frozen=True, eq=False)
class _Matrix(Confusion):
    """A confusion matrix, with limits for each cell."""

    normalize: str | None = None

    def limits(self, parts: Sequence[Noise], released: ReleasedNumbers, miss: float) -> Limits:
        """Return limits of each cell; its share is least where the others of its row are largest."""
        (noise,) = parts
        assert isinstance(noise, CountsNoise)
        size = self.labels.size
        cells = noise.limits(miss) if self.layout.good.size == size**2 else self._sums(noise, miss)
        low, high = (np.reshape(end, (size, size)) for end in (cells.lower, cells.upper))
        if released.public_n is not None:
            low, high = (np.minimum(end, released.public_n) for end in (low, high))
        lower, upper = (
            normalized(whole(size).read(own), normalize=self.normalize, others=others)
            for own, others in ((low, high), (high, low))
        )
        most = released.public_n if self.normalize is None else 1
        return Limits(lower, upper).within(0.0, math.inf if most is None else most)

    def _sums(self, noise: CountsNoise, miss: float) -> Limits:
        """Return limits of the cells where each is the sum of several noisy counts, as of scores."""
        of_each = [self.layout.read(unit).matrix for unit in np.eye(self.layout.good.size)]
        places = np.array([np.argmax(matrix) for matrix in of_each if matrix is not None])
        sums = [np.flatnonzero(places == at).tolist() for at in range(self.labels.size**2)]
        return noise.limits_of_sums(sums, miss)


@private("sklearn.metrics.confusion_matrix", **OF_COUNTS)
def private_confusion_matrix(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    normalize: str | None = None,
    **settings: Unpack[CountSettings],
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
        counts themselves, whole numbers without bias, are ``drawn["counts"]`` of the `PrivateResult`. For a
        ``ConfusionMatrixDisplay``, which prints floats with two digits, pass ``np.rint(matrix).astype(int)``.

    See Also
    --------
    ConfusionSummary : One release from which all metrics of labels follow, and from pieces.
    private_f1_score : One metric, more accurate than what the matrix tells.

    Notes
    -----
    A record lies in one cell, so that two cells change by 1 if it is replaced. The noise of all cells is
    drawn under the condition that its sum is 0 (up to 256 cells; independent beyond).
    With K labels there are K^2 cells of noise: for macro averages over many labels ask for the metric itself.

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
    known = LabelSet.of(labels)
    check_choice(normalize, "normalize", (None, "true", "pred", "all"))
    formula = partial(normalized, normalize=normalize)
    shares = partial(sums_of_shares, normalize=normalize)
    confusion = _Matrix(whole(known.size), formula, known, shares, needs_matrix=True, normalize=normalize)
    return asks(confusion.plan)


@private("sklearn.metrics.balanced_accuracy_score", greater_is_better=True, **OF_COUNTS)
def private_balanced_accuracy_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    adjusted: bool = False,
    zero_division: float | str = 0.0,
    **settings: Unpack[CountSettings],
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
    known = LabelSet.of(labels)
    undefined = check_zero_division(zero_division, is_mean=True)
    chance = 1 / known.size if adjusted else 0.0
    formula = partial(balanced, chance=chance, undefined=undefined)
    is_monotone = not math.isnan(undefined)
    layout, shares = of_each_label(known.size, "missed"), partial(rests_on, kind="recall")
    confusion = Confusion(
        layout, formula, known, shares, is_monotone=is_monotone,
        parts_of=partial(parts_of_ratio, kind="recall"), are_independent=True,
        of_ratios=partial(mean_above_chance, chance=chance),
    )  # fmt: skip
    return asks(confusion.plan)


@private("sklearn.metrics.matthews_corrcoef", greater_is_better=True, **OF_COUNTS)
def private_matthews_corrcoef(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    **settings: Unpack[CountSettings],
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
    known = LabelSet.of(labels)
    confusion = Confusion(
        matrix_layout(known.size), matthews, known, sizes_of_labels, is_monotone=False, is_agreement=True
    )
    return asks(confusion.plan)


@private("sklearn.metrics.cohen_kappa_score", greater_is_better=True, **OF_COUNTS)
def private_cohen_kappa_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    weights: str | None = None,
    **settings: Unpack[CountSettings],
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
    known = LabelSet.of(labels)
    check_choice(weights, "weights", (None, "linear", "quadratic"))
    formula = partial(kappa, weights=weights)
    layout = matrix_layout(known.size) if weights is None else whole(known.size)
    needs_matrix = weights is not None
    confusion = Confusion(
        layout, formula, known, sizes_of_labels, needs_matrix=needs_matrix, is_monotone=False,
        is_agreement=True,
    )  # fmt: skip
    return asks(confusion.plan)
