"""Private ranking metrics, drop-in replacements for those of `sklearn.metrics`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from dp_metrics.inputs.arrays import float_block
from dp_metrics.inputs.floats import Floats
from dp_metrics.inputs.labels import encoded_block
from dp_metrics.inputs.readers import LabelColumns, labels_and_scores
from dp_metrics.inputs.shape import Records, Shape
from dp_metrics.mechanisms._base import Noise
from dp_metrics.metrics._metric import RankSettings, asks, private
from dp_metrics.metrics.scores.area_limits import limits_around
from dp_metrics.metrics.scores.two_classes import two_classes_from_unit
from dp_metrics.release.interval import Interval
from dp_metrics.release.parts.ranking_loss import RankingNoise, RankingOf
from dp_metrics.release.plan import Plan
from dp_metrics.release.released import APPROXIMATE, Monotone, PopulationQuestion, ReleasedNumbers

_AVERAGES = (
    "average must be 'macro' or None: 'weighted' needs the private sizes of the classes, and "
    "'micro' and 'samples' are for classes that do not exclude each other."
)
_MULTI_CLASS = "multi_class must be 'ovr' for more than two labels."
_ONE_VS_ONE = (
    "multi_class='ovo' cannot be used: each record is in K - 1 of the pairs of K labels, "
    "which would have to share epsilon; pass multi_class='ovr'."
)


def _roc_auc_plan(shape: Shape, *, average: Any, multi_class: Any, labels: Any) -> Plan:
    _check_averaging(average, multi_class)
    if shape.n is None and labels is None and multi_class == "ovr":
        raise ValueError("multi_class='ovr' needs labels where the number of records is private.")
    columns = LabelColumns.of(labels, shape.arguments[1], "y_score")
    if columns.labels.size > 2 and multi_class != "ovr":
        raise ValueError(_MULTI_CLASS)
    reader = partial(_encoded, columns=columns)
    if columns.labels.size == 2:  # of two columns, as predict_proba gives them, that of the second label
        return Plan((RankingOf(1),), reader, _Area(_area, rises=False))
    parts = tuple(RankingOf(k, k) for k in range(columns.columns))
    return Plan(parts, reader, Monotone(_areas if average is None else _mean_area, rises=False))


def _encoded(records: Records, *, columns: LabelColumns) -> Records:
    """Return the place of each record's label, and its scores."""
    checked = labels_and_scores(records, columns=columns)
    true, scores = checked.arrays
    return replace(checked, arrays=(encoded_block(true, columns.labels), float_block(scores, "y_score")))


class _Area(Monotone):
    """The area under the ROC curve of two classes."""

    def population(
        self, parts: Sequence[Noise], released: ReleasedNumbers, asked: PopulationQuestion
    ) -> Interval:
        """Return the interval of the area among all people.

        Raises
        ------
        ValueError
            If limits have to be proved, or the mechanism does not tell the sizes of the classes.
        """
        (noise,) = parts
        if asked.is_sure or not isinstance(noise, RankingNoise):
            raise ValueError(
                f"{asked.metric} has an interval for all people by its default mechanism, an approximate "
                "one: leave out sure; a ScoreSummary has a sure one too."
            )
        loss, area = noise.limits(2 * asked.miss), self(released)
        positive = noise.sizes[0]
        negative = noise.sizes[1] if released.public_n is None else released.public_n - positive
        limits = limits_around(area, (1.0 - loss.upper, 1.0 - loss.lower), positive, negative, asked.miss)
        return asked.interval(*limits, area, APPROXIMATE)


def _area(released: ReleasedNumbers) -> float:
    return 1.0 - float(released.values[0])


def _areas(released: ReleasedNumbers) -> Floats:
    return np.array([1.0 - loss for loss in released.values])


def _mean_area(released: ReleasedNumbers) -> float:
    return math.fsum(_areas(released)) / len(released.values)


def _check_averaging(average: Any, multi_class: Any) -> None:
    if average is not None and not (isinstance(average, str) and average == "macro"):
        raise ValueError(_AVERAGES)
    if isinstance(multi_class, str) and multi_class == "ovo":
        raise ValueError(_ONE_VS_ONE)
    if not (isinstance(multi_class, str) and multi_class in ("raise", "ovr")):
        raise ValueError("multi_class must be 'raise' or 'ovr'.")


@private(
    "sklearn.metrics.roc_auc_score",
    greater_is_better=True,
    mechanism="hazard",
    refused="a weighted record would count more than once in each of its pairs",
    responses=("decision_function", "predict_proba"),
    from_unit=two_classes_from_unit,
)
def private_roc_auc_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    epsilon: float,
    average: str | None = "macro",
    multi_class: str = "raise",
    labels: ArrayLike | None = None,
    **settings: Unpack[RankSettings],
) -> float | Floats:
    """Area under the ROC curve with epsilon-differential privacy for the test records.

    The share of the pairs of a positive and a negative record in which the positive one has the higher score,
    ties counted half; 1/2 if there is no such pair.

    Parameters
    ----------
    y_score : array-like of shape (n_samples,), (n_samples, 1), (n_samples, 2) or (n_samples, n_classes)
        Scores, any finite numbers: probabilities, or what `decision_function` gives. Of two columns the
        second counts, the scores of the second label; of more each holds those of one label, in sorted order.
        Columns that are named by the labels may stand in any order.
    average : {"macro"} or None, default="macro"
        Of more than two labels, "macro": the mean of the K areas; None: each of them. "weighted" would need
        the private sizes of the classes.
    multi_class : {"raise", "ovr"}, default="raise"
        For more than two labels "ovr" is needed: K areas, each of one label against the rest, at
        epsilon / K each.
    labels : array-like of shape (n_classes,) or None, default=None
        The public label set; of two, the second in sorted order is the positive one. None: 0 and 1 for up to
        two columns, 0 .. K-1 for K columns. Never inferred from `y_true`.
    mechanism : str or mechanism object, default="hazard"
        "hazard" spends a twentieth of epsilon on the sizes of the classes, which set the fineness of its
        grid. Any other spends all of it on the area: ``Hazard(resolution=0.01, scale=0.01)``,
        "above_threshold", "inverse_sensitivity" or "piecewise_laplace"; or "laplace" and "geometric", whose
        noise of size 1 / epsilon has to hide the record of a class of one.

    Returns
    -------
    float or ndarray of shape (n_classes,)
        The private area, in [0, 1]. An array for more than two labels with ``average=None`` only.

    See Also
    --------
    expected_error : The error and the bias to expect, from public data.
    private_roc_curve : The curve; `ScoreSummary` gives it and a less accurate area in one release.

    Notes
    -----
    What counts is m, the number of records of the smaller class. **While m * epsilon is small, the answer is
    biased towards 1**: below 20 it hides more than half of 1 - AUC, at 70 about a fifth, from 200 on less
    than a tenth (areas from 0.8 to 0.98; closer to 1 it may err to either side). The mean absolute error is
    about 8 / (epsilon sqrt(m)) standard deviations of the area over samples of that size. The noisy sizes of
    the classes are in the field ``drawn`` of `PrivateResult`, at no further cost.

    References
    ----------
    D. Durfee, "Instance-Specific Asymmetric Sensitivity in Differential Privacy", arXiv:2311.14681.

    Examples
    --------
    >>> from dp_metrics import private_roc_auc_score
    >>> y_true, y_score = [0, 0, 1, 1] * 250, [0.1, 0.4, 0.35, 0.8] * 250
    >>> 0.7 < private_roc_auc_score(y_true, y_score, epsilon=1.0) < 0.8  # exactly 0.75
    True
    """
    return asks(_roc_auc_plan, average=average, multi_class=multi_class, labels=labels)
