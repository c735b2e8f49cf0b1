"""Print accuracy and speed of what follows from private tables of scores, on real data.

Run it with `DP_METRICS_DATA=path/to/data python benchmarks/score_tables.py [--only NAME]`.

Errors are means over releases from subsamples of held-out records, as in ``classifiers.py``, against
scikit-learn on the same records. Beside a number stands the reference of the specification, which used other
subsamples; a "*" marks those more than 25 % apart.
"""

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from classifiers import SUBSAMPLES, Scored, compared, seconds, subsamples
from numpy.typing import NDArray
from sklearn import metrics as sk
from sklearn.calibration import calibration_curve
from tqdm import tqdm

import dp_metrics as dp
from dp_metrics._random import SeededEntropy

EPSILONS = (0.3, 1.0, 3.0)
RELEASES = 20  # of each subsample
EVEN = np.linspace(0, 1, 2001)

REFERENCE = {
    "adult 300": ".13/.058 .060/.025 .022/.0099 .054 .022 .0085",
    "adult 1000": ".055/.026 .026/.010 .010/.0048 .018 .0079 .0031",
    "adult 3000": ".028/.012 .012/.0049 .0051/.0024 .0090 .0033 .0013",
    "adult 10000": ".011/.0049 .0059/.0022 .0027/.0010 .0033 .0014 .00048",
    "diabetes 300": ".20/.069 .075/.028 .031/.014 .053 .023 .013",
    "diabetes 1000": ".067/.033 .027/.016 .011/.0072 .023 .011 .0059",
    "diabetes 3000": ".027/.013 .011/.0056 .0045/.0027 .011 .0053 .0029",
    "diabetes 10000": ".011/.0078 .0049/.0040 .0020/.0015 .0049 .0021 .00066",
    "brfss 300": ".16/.097 .092/.043 .047/.023 .076 .031 .013",
    "brfss 1000": ".085/.041 .045/.019 .025/.010 .032 .015 .0056",
    "brfss 3000": ".046/.018 .023/.0088 .013/.0042 .015 .0064 .0025",
    "brfss 10000": ".024/.0076 .013/.0035 .0068/.0018 .0061 .0022 .00093",
    "MNIST 8 1000": ".062/.018 .029/.0098 .013/.0050 .015 .0060 .0043",
}
"""Error of average precision / area between ROC curves at each epsilon; then of the area under it."""


def table(title: str, cells: list[list[str]], header: list[str]) -> None:
    """Print a table."""
    rows = [header, ["---"] * len(header), *cells]
    print(f"\n{title}\n", *("| " + " | ".join(row) + " |" for row in rows), sep="\n")


def released(draws: list[Scored], epsilon: float, **options: Any) -> list[tuple[Scored, dp.ReleasedScores]]:
    """Return releases of each subsample."""
    entropy = SeededEntropy(0)
    summaries = [(draw, dp.ScoreSummary.from_data(*draw)) for draw in draws]
    return [
        (draw, summary.release(epsilon, random_state=entropy, **options))
        for draw, summary in summaries
        for _ in range(RELEASES)
    ]


def errors(draws: list[Scored], epsilon: float, **options: Any) -> NDArray[np.float64]:
    """Return the mean absolute errors of average precision, the ROC curve and the area under it."""
    exact: dict[int, tuple[Any, ...]] = {}
    for y, score in draws:
        fpr, tpr, _ = sk.roc_curve(y, score)
        curve = np.interp(EVEN, fpr, tpr)
        exact[id(y)] = sk.average_precision_score(y, score), curve, sk.roc_auc_score(y, score)
    found = []
    for (y, _), scores in released(draws, epsilon, **options):
        precision, curve, area = exact[id(y)]
        ours = np.interp(EVEN, *scores.roc_curve()[:2])
        found.append(
            (
                abs(scores.average_precision_score() - precision),
                np.abs(ours - curve).mean(),
                abs(scores.roc_auc_score() - area),
            )
        )
    return np.mean(found, axis=0)


def curves() -> None:
    """Print the errors of curves and areas."""
    rows = []
    for title, reference in tqdm(REFERENCE.items()):
        task, _, n = title.rpartition(" ")
        draws, known = subsamples(task, int(n)), reference.replace("/", " ").split()
        found = np.array([errors(draws, epsilon) for epsilon in EPSILONS])
        values = [*found[:, :2].ravel(), *found[:, 2]]
        adds = errors(draws, 1.0, neighboring="add_or_remove_one")[0]
        cells = [compared(value, wanted) for value, wanted in zip(values, known, strict=True)]
        rows.append([title, *cells, f"{adds:.2g}"])
    header = [f"{what}, {epsilon:g}" for epsilon in EPSILONS for what in ("AP", "ROC")]
    header = ["task, n", *header, *(f"AUC, {epsilon:g}" for epsilon in EPSILONS), "AP, add/remove, 1"]
    table("Average precision, area between ROC curves, area under the ROC curve", rows, header)


def bins() -> None:
    """Print the errors with other numbers of bins relative to those with the usual one."""
    sizes, ratios = (8, 16, 32, 64, 128), []
    for title in tqdm([title for title in REFERENCE if "MNIST" not in title]):
        task, _, n = title.rpartition(" ")
        draws = subsamples(task, int(n))[:5]
        for epsilon in EPSILONS:
            usual = errors(draws, epsilon)
            ratios.append([errors(draws, epsilon, bins=size) / usual for size in sizes])
    means = np.exp(np.log(ratios).mean(axis=0))
    rows = [[str(size), *(f"{ratio:.2f}" for ratio in row)] for size, row in zip(sizes, means, strict=True)]
    table("Errors relative to those with the usual number of bins", rows, ["bins", "AP", "ROC", "AUC"])


def calibration() -> None:
    """Print the errors of the expected calibration error, and of the distances that the curve shows."""
    rows = []
    for task in tqdm(("adult", "diabetes", "brfss")):
        for n in (1000, 10_000):
            draws = subsamples(task, n)
            for epsilon in (0.3, 1.0):
                error = [
                    dp.expected_error(dp.private_expected_calibration_error, *d, epsilon=epsilon)
                    for d in draws
                ]
                found = np.mean([one.mean_absolute for one in error])
                cells = [compared(found, f"{2 / n / epsilon:.2g}")]
                cells += [
                    f"{value:.2g}" for value in np.mean([_distances(d, epsilon) for d in draws], axis=0)
                ]
                rows.append([f"{task} {n}", f"{epsilon:g}", *cells])
    header = ["task, n", "epsilon", "expected calibration error", "curve", "curve of a ScoreSummary"]
    table("Calibration: error of the number; of the distances in the curve, by records", rows, header)


def _distances(draw: Scored, epsilon: float) -> tuple[float, float]:
    """Return the mean error of prob_true - prob_pred over the records, of a curve and of a table."""
    y, score = draw
    places = np.searchsorted(np.linspace(0, 1, 6)[1:-1], score)
    records = np.bincount(places, minlength=5)
    true, pred = calibration_curve(y, score)
    exact, entropy = np.zeros(5), SeededEntropy(0)
    exact[records > 0] = true - pred
    summary = dp.ScoreSummary.from_data(y, score)
    found = []
    for _ in range(RELEASES):
        several = (
            dp.private_calibration_curve(y, score, epsilon=epsilon, random_state=entropy),
            summary.release(epsilon, random_state=entropy).calibration_curve(),
        )
        found.append([_distance(curve, exact, records) for curve in several])
    return tuple(np.mean(found, axis=0))


def _distance(curve: Any, exact: NDArray[np.float64], records: NDArray[np.int64]) -> float:
    places = np.minimum((curve.prob_pred * 5).astype(int), 4)
    apart = np.abs(curve.prob_true - curve.prob_pred - exact[places])
    return float(apart @ records[places] / records[places].sum())


def speed() -> None:
    """Print the time that a release takes."""
    rng = np.random.default_rng(0)
    rows = []
    for n in (1000, 100_000, 1_000_000):
        score = rng.beta(0.5, 2, n)
        y = (rng.random(n) < score).astype(np.int64)
        plain = seconds(lambda y=y, score=score: sk.roc_curve(y, score))
        calls: list[Callable[..., Any]] = [
            dp.private_roc_curve,
            dp.private_precision_recall_curve,
            dp.private_average_precision_score,
            dp.private_calibration_curve,
            dp.private_expected_calibration_error,
        ]
        for epsilon in (0.1, 3.0):
            taken = [
                seconds(lambda call=call, y=y, s=score, e=epsilon: call(y, s, epsilon=e)) for call in calls
            ]
            cells = [f"{1000 * t:.1f} ({t / plain:.2f})" for t in taken]
            rows.append([f"{n:,}", f"{epsilon:g}", f"{1000 * plain:.1f}", *cells])
    names = [call.__name__.removeprefix("private_") for call in calls]
    table("Milliseconds (times roc_curve of scikit-learn)", rows, ["n", "epsilon", "roc_curve", *names])


FAMILIES = {"curves": curves, "bins": bins, "calibration": calibration, "speed": speed}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", choices=sorted(FAMILIES), help="print one table")
    only = parser.parse_args().only
    warnings.simplefilter("ignore")
    print(f"{SUBSAMPLES} subsamples, {RELEASES} releases of each")
    for name, family in FAMILIES.items():
        if only in (None, name):
            family()


if __name__ == "__main__":
    main()
