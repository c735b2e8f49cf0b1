"""Draw the pictures of the pages on curves and on groups, when the documentation is built."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibrationDisplay
from sklearn.metrics import RocCurveDisplay

from dp_metrics import (
    PrivateMetricFrame,
    ReleasedScores,
    private_calibration_curve,
    private_recall_score,
    private_roc_curve,
    with_result,
)

BLUE, ORANGE = "#0072B2", "#E69F00"


def mails(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which of n mails are spam, one in ten, and their scores."""
    rng = np.random.default_rng(0)
    is_spam = rng.random(n) < 0.1
    return is_spam, np.where(is_spam, rng.beta(4, 2, n), rng.beta(2, 6, n))


def curves() -> None:
    """Draw a ROC and a calibration curve with their bands."""
    is_spam, score = mails(4000)
    released = ReleasedScores.of(with_result(private_roc_curve)(is_spam, score, epsilon=1.0))
    fpr, tpr, _ = released.roc_curve()
    calibration = with_result(private_calibration_curve)(is_spam, score, epsilon=1.0)
    _, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
    RocCurveDisplay(fpr=fpr, tpr=tpr).plot(ax=left)
    released.roc_band().shade(left, color=BLUE, label="95 % band, sure")
    CalibrationDisplay(*calibration.value, None).plot(ax=right)
    calibration.band().shade(right, color=BLUE, label="95 % limits, approximate")
    left.set(xlabel="false positive rate", ylabel="true positive rate")
    right.set(xlabel="mean score of a bin", ylabel="share of spam")
    for axes, place in ((left, "lower right"), (right, "upper left")):
        axes.lines[-1].set(color=BLUE, label="private, epsilon 1")
        axes.legend(frameon=False, loc=place)


def groups() -> None:
    """Draw the recall of groups with both kinds of intervals, and the number of records each rests on."""
    rng, names = np.random.default_rng(0), ["18-29", "30-44", "45-59", "60-74", "75+"]
    age = rng.choice(5, 6000, p=[0.2, 0.25, 0.3, 0.2, 0.05])
    is_ill = rng.random(6000) < np.array([0.02, 0.05, 0.1, 0.2, 0.3])[age]
    is_found = is_ill & (rng.random(6000) < np.array([0.6, 0.8, 0.8, 0.8, 0.8])[age])
    frame = PrivateMetricFrame(
        metrics=private_recall_score, y_true=is_ill.astype(int), y_pred=is_found.astype(int),
        sensitive_features=age, group_labels=list(range(5)), epsilon=1.0,
    )  # fmt: skip
    _, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
    at, values = np.arange(5), [*frame.by_group.values()]
    kinds = (
        ("all people like these", BLUE, 0.1, frame.population_interval()),
        ("these records: the noise", ORANGE, -0.1, frame.noise_interval()),
    )
    for label, colour, shift, limits in kinds:
        lower, upper = np.array([tuple(limits[group]) for group in range(5)]).T
        axes.vlines(at + shift, lower, upper, color=colour, linewidth=3, label=label)
    axes.plot(at, values, "k_", markersize=14, label="released")
    counted = [frame.rests_on[group] for group in range(5)]
    axes.set_xticks(at, [f"{name}\n{size:.0f} ill" for name, size in zip(names, counted, strict=True)])
    axes.set(ylim=(0, 1.02), ylabel="recall")
    axes.legend(frameon=False, bbox_to_anchor=(1.0, 0.5), loc="center left")
