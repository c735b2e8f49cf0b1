"""Tables of the area under the ROC curve, from exact output laws, and of the limits of its noise."""

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import log_loss, roc_auc_score
from tqdm import tqdm

import dp_metrics as dp

from .tasks import LabelsAndScores, compared, print_table, subsamples

__all__ = ["areas", "noise_limits"]

_EPSILONS = (0.1, 0.3, 1.0, 3.0)
_RECORDS = (300, 1000, 3000, 10_000, 30_000)
_RELEASES = 50
_REFERENCE = {
    "adult 300": ".075 .057 .016 .0046",
    "adult 1000": ".044 .016 .0046 .0017",
    "adult 3000": ".016 .0050 .0016 .00060",
    "adult 10000": ".0046 .0018 .00068 .00024",
    "diabetes 300": ".022 .020 .013 .0055",
    "diabetes 1000": ".021 .017 .0070 .0023",
    "diabetes 3000": ".015 .0087 .0029 .00082",
    "diabetes 10000": ".0076 .0027 .00091 .00027",
    "brfss 300": ".17 .14 .035 .015",
    "brfss 1000": ".12 .040 .0096 .0057",
    "brfss 3000": ".038 .0092 .0045 .0022",
    "brfss 10000": ".0087 .0036 .0013 .00060",
    "MNIST 8 1000": ".0047 .0039 .0017 .00066",
}
"""Mean absolute error for each epsilon."""


def areas() -> None:
    """Print the error of the area under the ROC curve, and its bias."""
    rows = []
    for title, reference in tqdm(_REFERENCE.items()):
        task, _, n = title.rpartition(" ")
        draws = subsamples(task, int(n))
        found = [_error_and_bias(draws, epsilon) for epsilon in _EPSILONS]
        smaller = np.mean([min(y.sum(), (1 - y).sum()) for y, _ in draws])
        cells = [title, f"{smaller:.0f}", f"{np.mean([roc_auc_score(*draw) for draw in draws]):.4f}"]
        cells += [compared(mae, known) for (mae, _), known in zip(found, reference.split(), strict=True)]
        adds = _error_and_bias(draws, 1.0, neighboring="add_or_remove_one")[0]
        rows.append([*cells, f"{found[0][1]:+.2g}", f"{adds:.2g}"])
    header = ["task, n", "m", "AUC", *(f"{epsilon:g}" for epsilon in _EPSILONS)]
    print_table("Area under the ROC curve", [*header, "bias at 0.1", "add/remove at 1"], rows)


def _error_and_bias(draws: Sequence[LabelsAndScores], epsilon: float, **options: str) -> NDArray[np.float64]:
    found = [dp.expected_error(dp.private_roc_auc_score, *d, epsilon=epsilon, **options) for d in draws]
    return np.mean([(error.mean_absolute, error.bias) for error in found], axis=0)


def noise_limits() -> None:
    """Print how far limits of the noise lie from a release, of an area and of a log loss."""
    for metric, exact in ((dp.private_roc_auc_score, roc_auc_score), (dp.private_log_loss, log_loss)):
        rows = []
        for task, n in tqdm(list(product(("adult", "diabetes", "brfss"), _RECORDS))):
            draws = [draw for draw in subsamples(task, n, times=4) if len(draw[0]) == n]
            if draws:
                smaller = np.mean([min(y.sum(), (1 - y).sum()) for y, _ in draws])
                found = [_limits(metric, exact, draws, epsilon) for epsilon in _EPSILONS]
                cells = [f"-{below:.2g} +{above:.2g} ({spread:.2g})" for below, above, spread, _ in found]
                rows.append([task, f"{n:,}", f"{smaller:.0f}", *cells, f"{max(one[3] for one in found):.3f}"])
        title = (
            f"Limits of {metric.__name__}, 95 %, below and above a release (width of 95 % of the releases)"
        )
        print_table(title, ["task", "n", "m", *(f"{e:g}" for e in _EPSILONS), "missed at most"], rows)


def _limits(
    metric: Callable[..., float],
    exact: Callable[..., float],
    draws: Sequence[LabelsAndScores],
    epsilon: float,
) -> tuple[float, float, float, float]:
    """Return the median reach of the limits on both sides, the width of the errors, the share of misses."""
    errors, below, above = [], [], []
    for y, score in draws:
        truth = exact(y, score)
        for _ in range(_RELEASES):
            result = dp.with_result(metric)(y, score, epsilon=epsilon)
            lower, upper = result.noise_interval()
            errors.append(result.value - truth)
            below.append(result.value - lower)
            above.append(upper - result.value)
    low, high = np.quantile(errors, [0.025, 0.975])
    missed = np.mean((np.array(errors) > below) | (-np.array(errors) > above))
    return float(np.median(below)), float(np.median(above)), float(high - low), float(missed)
