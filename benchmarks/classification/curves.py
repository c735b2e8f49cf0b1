"""Tables of what follows from tables of scores: average precision, curves, calibration."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn import metrics as sk
from sklearn.calibration import calibration_curve
from tqdm import tqdm

import dp_metrics as dp
from dp_metrics._random import SeededEntropy
from dp_metrics.inputs.epsilon import exact_epsilon
from dp_metrics.inputs.shape import Records
from dp_metrics.mechanisms import Hazard
from dp_metrics.metrics.scores.curve_formulas import ScoreCounts, area_under_roc, average_precision, roc
from dp_metrics.metrics.scores.table import score_plan
from dp_metrics.release.released import Released

from .tasks import LabelsAndScores, compared, noise_of, print_table, scored, subsamples

__all__ = [
    "bins",
    "calibration",
    "curve_errors",
    "curves",
    "precision",
    "precision_errors",
    "simulated_scores",
]

_EPSILONS = (0.3, 1.0, 3.0)
_RELEASES = 50  # of each subsample
_EVEN = np.linspace(0, 1, 2001)
_REFERENCE = {
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


def simulated_scores(
    draw: LabelsAndScores,
    epsilon: float,
    *,
    neighboring: str = "replace_one",
    bins: Any = None,
    edges: Any = None,
    seed: int = 0,
) -> Iterator[ScoreCounts]:
    """Yield what releases of a table tell, with simulated noise of the same law."""
    private_n = neighboring == "add_or_remove_one"
    options = {"labels": None, "pos_label": 1, "edges": edges, "bins": bins}
    shape, records = Records.of(draw, private_n=private_n)
    plan = score_plan(lambda counts: counts, shape, private_n=private_n, **options)
    known = plan.read(records)
    prepared = known.parts[0].prepare(Hazard(), exact_epsilon(epsilon), private_n=private_n)
    exact, n = np.array(prepared.values, dtype=np.float64), None if private_n else known.n
    for noise in noise_of(prepared, _RELEASES, seed):
        released = Released([exact + noise], n, None, exact_epsilon(epsilon), neighboring)
        yield plan.postprocess.counts(released)


def curve_errors(draws: Sequence[LabelsAndScores], epsilon: float, **options: Any) -> NDArray[np.float64]:
    """Return the mean absolute errors of average precision, the ROC curve and the area under it."""
    found = []
    for seed, (y, score) in enumerate(draws):
        fpr, tpr, _ = sk.roc_curve(y, score)
        curve, area = np.interp(_EVEN, fpr, tpr), sk.roc_auc_score(y, score)
        precision = sk.average_precision_score(y, score)
        for counts in simulated_scores((y, score), epsilon, seed=seed, **options):
            apart = np.abs(np.interp(_EVEN, *roc(counts)[:2]) - curve).mean()
            ours = abs(average_precision(counts) - precision), apart, abs(area_under_roc(counts) - area)
            found.append(ours)
    return np.mean(found, axis=0)


def curves() -> None:
    """Print the errors of curves and areas."""
    rows = []
    for title, reference in tqdm(_REFERENCE.items()):
        task, _, n = title.rpartition(" ")
        draws, known = subsamples(task, int(n)), reference.replace("/", " ").split()
        found = np.array([curve_errors(draws, epsilon) for epsilon in _EPSILONS])
        values = [*found[:, :2].ravel(), *found[:, 2]]
        adds = curve_errors(draws, 1.0, neighboring="add_or_remove_one")[0]
        cells = [compared(value, wanted) for value, wanted in zip(values, known, strict=True)]
        rows.append([title, *cells, f"{adds:.2g}"])
    header = [f"{what}, {epsilon:g}" for epsilon in _EPSILONS for what in ("AP", "ROC")]
    header = ["task, n", *header, *(f"AUC, {epsilon:g}" for epsilon in _EPSILONS), "AP, add/remove, 1"]
    print_table("Average precision, area between ROC curves, area under the ROC curve", header, rows)


def bins() -> None:
    """Print the errors with other numbers of bins relative to those with the usual one."""
    sizes, ratios = (8, 16, 32, 64, 128), []
    for title in tqdm([title for title in _REFERENCE if "MNIST" not in title]):
        task, _, n = title.rpartition(" ")
        draws = subsamples(task, int(n), 5)
        for epsilon in _EPSILONS:
            usual = curve_errors(draws, epsilon)
            ratios.append([curve_errors(draws, epsilon, bins=size) / usual for size in sizes])
    means = np.exp(np.log(ratios).mean(axis=0))
    rows = [[str(size), *(f"{ratio:.2f}" for ratio in row)] for size, row in zip(sizes, means, strict=True)]
    print_table("Errors relative to those with the usual number of bins", ["bins", "AP", "ROC", "AUC"], rows)


_BINORMAL = {  # the area under the ROC curve, the share of positives, and the decimals of the score
    "area .5, 10 %": (0.5, 0.1, 9),
    "area .75, 5 %": (0.75, 0.05, 9),
    "area .9, 10 %": (0.9, 0.1, 9),
    "area .9, 10 %, in tenths": (0.9, 0.1, 1),
    "area .9, 40 %": (0.9, 0.4, 9),
    "area .98, 3 %": (0.98, 0.03, 9),
}


def _binormal(area: float, share: float, decimals: int, size: int = 300_000) -> LabelsAndScores:
    """Return labels, and scores that are normal in each class but for a public function of them."""
    rng = np.random.default_rng(0)
    y = (rng.random(size) < share).astype(np.int64)
    score = norm.cdf(0.7 * (rng.normal(size=size) + 2**0.5 * norm.ppf(area) * (y - 0.5)))
    return y, np.round(score, decimals)


def _one_by_one(counts: ScoreCounts) -> float:
    """Return the average precision of counts that are plausible one by one, spread evenly in each bin."""
    parts = 4 * counts.positive.size
    weights = np.concatenate([np.repeat(each, 4) for each in (counts.negative, counts.positive)])
    y, score = np.repeat([0, 1], parts), np.tile(np.arange(parts), 2)
    return (
        float(sk.average_precision_score(y, score, sample_weight=weights)) if weights[parts:].any() else 0.0
    )


def precision_errors(pool: LabelsAndScores, n: int, epsilon: float, times: int = 10) -> NDArray[np.float64]:
    """Return bias and mean absolute error of the average precision, of counts one by one and as released."""
    y, score = pool
    rng, found = np.random.default_rng([n, round(100 * epsilon)]), []
    for seed in range(times):
        rows = rng.integers(0, len(y), n)
        exact = sk.average_precision_score(y[rows], score[rows])
        for counts in simulated_scores((y[rows], score[rows]), epsilon, seed=seed):
            found.append([_one_by_one(counts) - exact, average_precision(counts) - exact])
    errors = np.array(found)
    return np.stack([errors.mean(axis=0), np.abs(errors).mean(axis=0)], axis=1)


def precision() -> None:
    """Print bias and error of the average precision beside those of counts that are plausible one by one."""
    tasks = ("adult", "brfss", "diabetes", "diamonds", "MNIST 8", "bike")
    pools = {**{task: scored(task) for task in tasks}, **{k: _binormal(*v) for k, v in _BINORMAL.items()}}
    for epsilon in (0.4, 1.0):
        rows, sizes = [], (1000, 3000, 10_000, 30_000)
        for name, pool in tqdm(pools.items()):
            errors = [precision_errors(pool, n, epsilon) for n in sizes]
            cells = [", ".join(f"{bias:+.3f}/{error:.3f}" for bias, error in pair) for pair in errors]
            rows.append([name, *cells])
        title = f"Average precision, epsilon {epsilon:g}: bias/error of counts one by one, and as released"
        print_table(title, ["scores", *(f"n = {n:,}" for n in sizes)], rows)


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
                distances = np.mean([_distances(draw, epsilon) for draw in draws], axis=0)
                cells = [compared(found, f"{2 / n / epsilon:.2g}"), *(f"{value:.2g}" for value in distances)]
                rows.append([f"{task} {n}", f"{epsilon:g}", *cells])
    header = ["task, n", "epsilon", "expected calibration error", "curve", "curve of a ScoreSummary"]
    print_table("Calibration: error of the number; of the distances in the curve, by records", header, rows)


def _distances(draw: LabelsAndScores, epsilon: float, releases: int = 20) -> tuple[float, ...]:
    """Return the mean error of prob_true - prob_pred over the records, of a curve and of a table."""
    y, score = draw
    places = np.searchsorted(np.linspace(0, 1, 6)[1:-1], score)
    records = np.bincount(places, minlength=5)
    true, pred = calibration_curve(y, score)
    exact, entropy = np.zeros(5), SeededEntropy(0)
    exact[records > 0] = true - pred
    summary = dp.ScoreSummary.from_data(y, score)
    found = []
    for _ in range(releases):
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
