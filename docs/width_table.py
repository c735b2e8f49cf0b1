"""Print the table of the page "How sure": what intervals cost, and how wide they typically are.

Run `python docs/width_table.py > docs/width_table.inc`. Widths are means over 20 samples of people of whom
30 % are ill, released at epsilon 1; in brackets without privacy, which is the same interval at epsilon 10^6.
Nine in ten are predicted right, scores are binormal with an area of .9, and the two groups are equally large.
"""

import warnings
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from error_table import print_table
from scipy.stats import norm

import dp_metrics as dp

RECORDS = (300, 1_000, 10_000)
SAMPLES, HUGE = 20, 1e6
APART = 2**0.5 * float(norm.ppf(0.9))


@cache
def people(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return who is ill, who is predicted to be, their scores, and their groups."""
    rng = np.random.default_rng([n, seed])
    ill = (rng.random(n) < 0.3).astype(int)
    said = ill ^ (rng.random(n) < 0.1)
    scores = norm.cdf(0.7 * (rng.normal(size=n) + APART * (ill - 0.5)))
    return ill, said, scores, rng.integers(0, 2, n)


def released(metric: Callable[..., Any], data: int, n: int, seed: int, epsilon: float) -> Any:
    """Return the result of a metric of one sample."""
    drawn = people(n, seed)
    return dp.with_result(metric)(drawn[0], drawn[data], epsilon=epsilon)


def of_labels(metric: Callable[..., Any], sure: bool, n: int, seed: int, epsilon: float) -> Any:
    """Return the interval of a metric of labels."""
    return released(metric, 1, n, seed, epsilon).population_interval(sure=sure)


def scores(n: int, seed: int, epsilon: float) -> Any:
    """Return the release of a table of scores."""
    ill, _, score, _ = people(n, seed)
    return dp.ReleasedScores.of(dp.with_result(dp.private_roc_curve)(ill, score, epsilon=epsilon))


def area(sure: bool, n: int, seed: int, epsilon: float) -> Any:
    """Return the interval of the area under the ROC curve."""
    return scores(n, seed, epsilon).population_interval(sure=sure)


def band(n: int, seed: int, epsilon: float) -> Any:
    """Return the mean heights of both lines of a ROC band."""
    found = scores(n, seed, epsilon).roc_band()
    return found.lower.tpr.mean(), found.upper.tpr.mean()


def mean(n: int, seed: int, epsilon: float) -> Any:
    """Return the interval of a mean of squares, a release of its own."""
    ill, _, score, _ = people(n, seed)
    return dp.private_mean_interval((score - ill) ** 2, max_loss=1.0, epsilon=epsilon)


def brier(sure: bool, n: int, seed: int, epsilon: float) -> Any:
    """Return the interval of a Brier score; above epsilon 1 the approximate one is a release of its own."""
    if not sure and epsilon > 1:
        return mean(n, seed, epsilon)
    return released(dp.private_brier_score_loss, 2, n, seed, epsilon).population_interval(sure=sure)


def gap(sure: bool, n: int, seed: int, epsilon: float) -> Any:
    """Return the interval of the gap between two groups."""
    ill, said, _, group = people(n, seed)
    frame = dp.PrivateMetricFrame(
        metrics=dp.private_recall_score, y_true=ill, y_pred=said, sensitive_features=group,
        group_labels=[0, 1], epsilon=epsilon,
    )  # fmt: skip
    return frame.population_interval(of=(0, 1), sure=sure)


Width = Callable[[int, int, float], Any]
ASK = "``population_interval()``"
SURE = "``population_interval(sure=True)``"

ROWS: list[tuple[str, str, str, str, Width | None]] = [
    ("how far may the noise have moved this result?", "``noise_interval()``", "nothing", "sure",
     lambda n, seed, epsilon: released(dp.private_recall_score, 1, n, seed, epsilon).noise_interval()),
    ("among all people: accuracy, zero-one loss, top-k", ASK, "nothing", "sure",
     partial(of_labels, dp.private_accuracy_score, True)),
    ("recall, precision, specificity, F1, Jaccard; of one label or each", ASK, "nothing", "sure",
     partial(of_labels, dp.private_recall_score, True)),
    ("balanced accuracy, means of these over labels", ASK, "nothing", "approximate",
     partial(of_labels, dp.private_balanced_accuracy_score, False)),
    ("", SURE, "nothing", "sure", partial(of_labels, dp.private_balanced_accuracy_score, True)),
    ("MCC, kappa", ASK, "nothing", "approximate", partial(of_labels, dp.private_matthews_corrcoef, False)),
    ("", f"{SURE}: two labels", "nothing", "sure", partial(of_labels, dp.private_matthews_corrcoef, True)),
    ("AUC, from a `ReleasedScores` or by group", ASK, "nothing", "approximate", partial(area, False)),
    ("", SURE, "nothing", "sure", partial(area, True)),
    ("AUC, from `private_roc_auc_score`", ASK, "nothing", "approximate",
     lambda n, seed, epsilon: released(dp.private_roc_auc_score, 2, n, seed, epsilon).population_interval()),
    ("a ROC curve", "``band()``", "nothing", "sure", band),
    ("the gap of two groups in recall", '``frame.population_interval(of=("a", "b"))``', "nothing",
     "approximate", partial(gap, False)),
    ("", "with ``sure=True``", "nothing", "sure", partial(gap, True)),
    ("a Brier score, another mean loss by geometric with a cap", ASK, "nothing", "approximate",
     partial(brier, False)),
    ("", SURE, "nothing", "sure", partial(brier, True)),
    ("any mean loss with a public cap, any epsilon", "`private_mean_interval`", "a release", "approximate",
     mean),
    ("a median or another quantile, without a cap", "`private_quantile_interval`", "a release", "sure", None),
    ("how many records does an interval need?", "`plan_release`", "nothing", "", None),
    ("what error should I expect?", "`plan_release`, on public data", "nothing", "", None),
]  # fmt: skip


def width(ask: Width, n: int, epsilon: float) -> float:
    """Return the mean width of an interval; the mean height of a band."""
    widths = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(SAMPLES):
            lower, upper = ask(n, seed, epsilon)
            widths.append(upper - lower)
    return float(np.mean(widths))


def cells(ask: Width | None) -> list[str]:
    """Return the widths that a row shows."""
    if ask is None:
        return [""] * len(RECORDS)
    return [f"{width(ask, n, 1.0):.2g} ({width(ask, n, HUGE):.2g})" for n in RECORDS]


def main() -> None:
    """Print the table in reStructuredText."""
    header = ["you ask", "call", "costs", "it is", *(f"width at n = {n:,}" for n in RECORDS)]
    print_table([header, *([*words, *cells(ask)] for *words, ask in ROWS)])


if __name__ == "__main__":
    main()
