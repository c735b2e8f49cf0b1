"""The benchmark of classifiers simulates releases: with the law of real ones."""

import math
import sys
import warnings
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics as sk

import dp_metrics as dp
from dp_metrics._random import SeededEntropy
from dp_metrics.metrics.scores.curve_formulas import average_precision

pytestmark = pytest.mark.slow

N = 400
rng = np.random.default_rng(0)
Y = (rng.random(N) < 0.3).astype(np.int64)
SCORE = np.clip(0.5 * rng.random(N) + 0.4 * Y, 0.0, 1.0)


@pytest.fixture(scope="module")
def part():
    """Return a function that imports a module of the benchmark."""
    folder = str(Path(__file__).parents[2] / "benchmarks")
    sys.path.insert(0, folder)
    yield lambda name: import_module(f"classification.{name}")
    sys.path.remove(folder)


def assert_same_law(simulated, real):
    """Compare mean absolute values at 4.5 standard errors: false alarms 7e-6 each."""
    ours, theirs = np.abs(simulated), np.abs(real)
    margin = 4.5 * math.sqrt(ours.var() / ours.size + theirs.var() / theirs.size)
    assert abs(ours.mean() - theirs.mean()) < margin


@pytest.mark.parametrize("epsilon", [0.3, 3.0])
@pytest.mark.parametrize("name", ["f1_score", "matthews_corrcoef"])
def test_errors_of_counts_are_those_of_releases(part, name, epsilon):
    pred = (SCORE > 0.5).astype(np.int64)
    release, exact = getattr(dp, f"private_{name}"), getattr(sk, name)(Y, pred)
    design = part("counts").Design(f"private_{name}", {})
    simulated = design.errors(sk.confusion_matrix(Y, pred), epsilon, 4000, 0)
    entropy = SeededEntropy(1)
    real = [release(Y, pred, epsilon=epsilon, random_state=entropy) for _ in range(1000)]
    assert_same_law(simulated, np.array(real) - exact)


def test_the_obvious_design_clamps_independent_noise(part):
    counts = part("counts")
    matrix = np.array([[250, 30], [20, 100]])
    obvious = counts.Design("private_f1_score", {}, is_obvious=True).errors(matrix, 1.0, 4000, 0)
    noise = sum(s * np.floor(rng.exponential(size=(4000, 4)) / 0.5) for s in (1, -1))
    cells = np.maximum(matrix.ravel() + noise, 0)
    f1 = 2 * cells[:, 3] / (2 * cells[:, 3] + cells[:, 1] + cells[:, 2])
    assert_same_law(obvious, f1 - 200 / 250)


def test_tables_of_scores_are_those_of_releases(part):
    exact = sk.average_precision_score(Y, SCORE)
    curves, entropy = part("curves"), SeededEntropy(1)
    simulated = [
        average_precision(counts) - exact
        for seed in range(20)
        for counts in curves.simulated_scores((Y, SCORE), 1.0, seed=seed)
    ]
    real = [
        dp.private_average_precision_score(Y, SCORE, epsilon=1.0, random_state=entropy) - exact
        for _ in range(500)
    ]
    assert_same_law(np.array(simulated), np.array(real))


def test_the_rule_of_the_area_is_the_one_that_is_released(part):
    for epsilon in (0.1, 3.0):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dp.NoisyReleaseWarning)
            known = dp.expected_error(dp.private_roc_auc_score, Y, SCORE, epsilon=epsilon).mean_absolute
        found = part("rules").area_error((Y, SCORE), epsilon)
        assert found == pytest.approx(known, rel=0.01)
        assert part("rules").area_error((Y, SCORE), epsilon, constant=60) != pytest.approx(known, rel=0.01)


def test_rates_and_gaps(part):
    groups = part("groups")
    matrices = [np.array([[6, 2], [1, 3]]), np.array([[5, 0], [0, 0]])]
    np.testing.assert_allclose(groups.rates(matrices[0]), [5 / 12, 3 / 4, 2 / 8])
    np.testing.assert_allclose(groups.gaps(matrices), [5 / 12, 3 / 4, 2 / 8])
