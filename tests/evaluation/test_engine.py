"""The engine: what is left to do, done once each, the same in one process or in several."""

import dataclasses
import math
from itertools import product

import numpy as np
import pandas as pd
import pytest

from dp_metrics import private_log_loss, private_mae, private_mse, private_variance
from dp_metrics._random import SeededEntropy
from dp_metrics.evaluation.datasets import DATASETS
from dp_metrics.evaluation.engine import (
    ERROR_CAP,
    EXACT_REPEATS,
    MECHANISM_RIVALS,
    RIVALS,
    STUDIES,
    Study,
    asymmetry_of,
    clipped_mean,
    frame_of,
    keys_of,
    plan,
    private_threshold,
    run,
    select_studies,
    simulate_bounds,
)
from dp_metrics.evaluation.population import Population, populations_of
from dp_metrics.exceptions import SeededReleaseWarning
from dp_metrics.mechanisms import MECHANISMS, AboveThreshold
from dp_metrics.mechanisms._laws import mean_absolute_error
from dp_metrics.mechanisms.comparators import LaplaceLaw
from dp_metrics.sensitivity.output_bounds import OutputBounds

pytestmark = pytest.mark.usefixtures("own_error_state")

TASK = ("bike", "", "mae")
STUDY = dataclasses.replace(STUDIES["mae"], tasks=(TASK,))
BOUNDED = {TASK: Population("mae", np.random.default_rng(0).gamma(2.0, 3.0, size=1500), (0.0, 100.0))}
UNBOUNDED = {TASK: dataclasses.replace(BOUNDED[TASK], bounds=None)}
FREE = ["adaptive", "hazard", "above_threshold", "paper"]  # serve a metric without bounds


def rows_of(study=STUDY, populations=BOUNDED, epsilons=(1.0,), repeats=2, done=frozenset(), jobs=1):
    work = plan(study, populations, (epsilons, repeats), done)
    return [row for rows in run(work, populations, jobs) for row in rows]


def key_of(row):
    (key,) = keys_of(frame_of([row]))
    return key


def test_one_row_for_each_mechanism_epsilon_and_repeat():
    rows = rows_of(epsilons=(0.5, 2.0), repeats=EXACT_REPEATS + 2)
    assert len(rows) == len({key_of(row) for row in rows}) == 2 * 5 * len(RIVALS)
    assert {row.mechanism for row in rows} == set(RIVALS)
    assert {row.n for row in rows} == {1000}
    for row in rows:
        assert row.error == abs(row.release - row.true_value)
        exact = row.repeat < EXACT_REPEATS and row.mechanism != "clipped_mean"
        assert math.isfinite(row.expected_error) == math.isfinite(row.overshoot) == exact
        assert row.true_value == pytest.approx(6.0, rel=0.2)
    draws = {(row.epsilon, row.repeat): row.draw_seed for row in rows}
    assert len(set(draws.values())) == 2 * 5
    assert len({row.release_seed for row in rows}) == len(rows)


@pytest.mark.slow
def test_rows_do_not_depend_on_what_was_done_before_or_on_who_does_them():
    rows = rows_of(repeats=3)
    assert rows_of(repeats=3, done=keys_of(frame_of(rows[::2]))) == rows[1::2]
    assert rows_of(repeats=3, done=keys_of(frame_of(rows))) == []
    only = dataclasses.replace(STUDY, rivals=(RIVALS["laplace"], RIVALS["clipped_mean"]))
    alone = rows_of(only, epsilons=(0.5, 1.0), repeats=41)
    assert [row for row in alone if row.epsilon == 1.0 and row.repeat < 3] == [
        row for row in rows if row.mechanism in ("laplace", "clipped_mean")
    ]
    together = rows_of(only, epsilons=(0.5, 1.0), repeats=41, jobs=2)
    assert len(alone) == 2 * 41 * 2
    pd.testing.assert_frame_equal(*(frame_of(sorted(rows, key=key_of)) for rows in (together, alone)))
    with pytest.raises(KeyError):  # a fault is not swallowed
        list(run(plan(STUDY, BOUNDED, ((1.0,), 1), set()), {}, 2))


@pytest.mark.slow
def test_without_bounds_only_what_can_do_without():
    study = dataclasses.replace(STUDIES["unbounded-losses"], tasks=(TASK,))
    assert {row.setting for row in rows_of(study, UNBOUNDED, repeats=1)} == {"unbounded"}
    both = rows_of(study, BOUNDED, repeats=1)
    assert [row.setting for row in both] == ["bounded", "unbounded"] * len(FREE)
    assert [row.bounded for row in both] == [1, 0] * len(FREE)
    assert len({row.draw_seed for row in both}) == 1


@pytest.mark.slow
def test_the_exact_error_is_that_of_the_releases():
    study = dataclasses.replace(STUDIES["unbounded-losses"], tasks=(TASK,))
    for row in rows_of(study, repeats=1):
        sample = BOUNDED[TASK].draw(1000, np.random.default_rng(row.draw_seed))
        mechanism = RIVALS[row.mechanism].make(1.0)
        prepared = BOUNDED[TASK].prepared(sample, mechanism, 1.0, bounded=bool(row.bounded))
        (law,), (draw,) = prepared.laws(row.n), prepared.draws
        bounds = prepared.stats[0].bounds(1, False)
        cap = math.inf if row.bounded else ERROR_CAP * bounds.value
        assert row.expected_error == pytest.approx(mean_absolute_error(law, bounds.value, cap), rel=1e-9)
        assert row.overshoot == pytest.approx(1 - law.cdf(ERROR_CAP * bounds.value))
        assert row.release == draw(SeededEntropy(row.release_seed), None).value
        assert bounds.value == row.true_value


def test_the_paper_searches_the_sum_of_cross_entropies():
    task, n = ("adult", "", "log_loss"), 700
    losses = np.random.default_rng(0).gamma(2.0, 0.2, size=n)  # so few that every repeat draws them all
    study = dataclasses.replace(STUDIES["cross-entropy"], tasks=(task,), rivals=(RIVALS["paper"],))
    rows = rows_of(study, {task: Population("log_loss", losses, (0.0, 10.0))}, repeats=EXACT_REPEATS)
    paper = AboveThreshold.paper()
    prepared = Population("mse", n * losses, (0.0, 10.0 * n)).prepared(n * losses, paper, 1.0)
    expected = mean_absolute_error(prepared.laws(n)[0], prepared.stats[0].bounds(0, False).value)
    for row in rows:
        power = math.log1p(n * row.release) / math.log(1.005)  # of the candidate, counted from 0
        assert power == pytest.approx(round(power), abs=1e-6)
        assert n * row.expected_error == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
def test_simulations():
    study = STUDIES["asymmetry"]
    rows = rows_of(study, {}, (), 4)
    assert len(rows) == len({key_of(row) for row in rows}) == 36
    assert plan(study, {}, ((), 4), keys_of(frame_of(rows))) == []
    assert [len(left.rivals) for left, _, _ in plan(study, {}, ((), 4), keys_of(frame_of(rows[1:])))] == [1]
    assert {row.metric for row in rows} == {"uniform", "heavy-tailed"}
    asymmetries = {float(row.setting.partition("=")[2]) for row in rows}
    assert 0 <= min(asymmetries) < 0.2
    assert 0.4 < max(asymmetries) <= 0.5
    assert simulate_bounds(7)[2].upper.tolist() == simulate_bounds(7)[2].upper.tolist()


def test_asymmetry_by_hand():
    steps = np.arange(1.0, 11.0)
    even = OutputBounds(10.0, 10.0 - steps, 10.0 + steps, output_range=(0.0, 20.0), monotonic=True, n=10)
    assert asymmetry_of(even, 1.0) == pytest.approx(0.0, abs=1e-12)
    # two ranks only: widths 1 and 1 below, 3 and 7 above
    two = OutputBounds(2.0, np.array([1.0]), np.array([5.0]), output_range=(0.0, 12.0), monotonic=True, n=2)
    q = math.exp(-0.5)
    above, below = 3 * q + 7 * q**2, q + q**2
    assert asymmetry_of(two, 1.0) == pytest.approx(above / (above + below) - 0.5)


def test_the_studies_are_those_of_the_paper_and_compare_all_mechanisms():
    paper = [name for name in DATASETS if DATASETS[name].file_name]
    panels = {study.name: len(study.tasks) for study in select_studies([], paper, [])}
    assert panels == {
        "variance": 5, "cross-entropy": 4, "mse": 3, "mae": 3, "unbounded": 5, "unbounded-losses": 6,
        "beta": 5, "asymmetry": 0, "illustrations": 0,
    }  # fmt: skip
    # for these metrics the geometric mechanism is Laplace's without its floats: the same curve
    assert {rival.mechanism for rival in MECHANISM_RIVALS} == {*MECHANISMS, "paper"} - {"geometric"}


# The clipped mean: where it clips, and its noise; the laws of both are those of `test_privacy.py`

GAMMA = BOUNDED[TASK].values


def test_the_threshold_of_the_clipped_mean_lies_near_the_top_of_the_records():
    tops = [private_threshold(GAMMA, SeededEntropy(i), epsilon=1.0, limit=1e3) for i in range(50)]
    assert 0.9 < np.mean([(top >= GAMMA).mean() for top in tops]) <= 1.0


def test_noise_is_added_to_what_is_clipped_at_the_threshold():
    """By hand, in floats: a quarter of epsilon for the threshold; one record moves a mean by that over n."""
    for metric, sensitivity in (
        ("mse", lambda top, n: top / n),
        ("variance", lambda t, n: t * t * (n - 1) / n**2),
    ):
        population, entropy = Population(metric, GAMMA, (0.0, 100.0)), SeededEntropy(3)
        top = private_threshold(GAMMA, entropy, epsilon=0.5, limit=100.0)
        kept = np.clip(GAMMA, 0.0, top)
        value = kept.var() if metric == "variance" else kept.mean()
        law = LaplaceLaw(float(value), sensitivity(top, GAMMA.size) / 1.5, (0.0, 1e3))
        release = clipped_mean(population, GAMMA, SeededEntropy(3), epsilon=2.0)
        assert release == pytest.approx(law.release(entropy), rel=1e-12)


def test_a_threshold_of_0_leaves_0():
    population = Population("variance", np.zeros(5), (0.0, 100.0))
    tops = [
        private_threshold(population.values, SeededEntropy(i), epsilon=2.5, limit=100.0) for i in range(9)
    ]
    assert 0.0 in tops
    assert clipped_mean(population, population.values, SeededEntropy(tops.index(0.0)), epsilon=10.0) == 0.0


# One repeat on all test records of a model, as `dp-metrics evaluate` runs it

RNG = np.random.default_rng(0)
Y = RNG.uniform(0.0, 10.0, size=200)
PREDICTION = np.clip(Y + RNG.normal(size=200), 0.0, 10.0)
WIDE = np.append(Y[1:], 1e6)  # which is clipped
LABELS = RNG.integers(0, 2, size=200)
PROBA = 1.0 / (1.0 + np.exp(-np.clip(RNG.normal(4.0 * LABELS - 2.0, 2.0), -10.0, 10.0)))
CLASSES = RNG.integers(0, 3, size=200)
PROBAS = RNG.dirichlet([1.0, 1.0, 1.0], size=200)
PROBAS[0] = [1.0, 0.0, 0.0]
RANGE = (0.0, 10.0)
IN_RANGE = dataclasses.replace(DATASETS["synthetic"], bounds=RANGE)
CAP = math.log1p(math.exp(10.0))
METRICS = {"mse": private_mse, "mae": private_mae, "variance": private_variance, "log_loss": private_log_loss}
# data set, targets and predictions; arguments and options of the public metrics
CASES = {
    "unbounded": ((DATASETS["synthetic"], Y, PREDICTION), (Y, PREDICTION), {}),
    "bounded": ((IN_RANGE, WIDE, PREDICTION), (WIDE, PREDICTION), {"bounds": RANGE}),
    "binary": ((DATASETS["adult"], LABELS, PROBA), (LABELS, PROBA), {"max_loss": CAP}),
    "multiclass": ((DATASETS["digits"], CLASSES, PROBAS), (CLASSES, PROBAS), {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_one_repeat_takes_all_records_once(name):
    populations = {(name, "", m): found for m, found in populations_of(*CASES[name][0]).items()}
    study = Study("evaluate", name, tuple(populations), MECHANISM_RIVALS, "whole")
    free = name == "unbounded"
    mechanisms = FREE if free else [rival.mechanism for rival in MECHANISM_RIVALS]
    rows = rows_of(study, populations, (0.5, 2.0), repeats=1)
    expected = product([metric for *_, metric in populations], (0.5, 2.0), mechanisms)
    assert [(r.metric, r.epsilon, r.mechanism) for r in rows] == [*expected]
    again = rows_of(study, populations, (2.0,), repeats=1)
    both = zip([row for row in rows if row.epsilon == 2.0], again, strict=True)
    # each run has noise of its own: on a grid 1 release in 30 is alike by chance, half of all in 1e-5 runs
    assert np.mean([one.release != other.release for one, other in both]) > 0.5
    for row in rows:
        assert (row.n, row.bounded, row.draw_seed, row.release_seed) == (200, not free, -1, -1)
        truth = populations[(name, "", row.metric)].truth(populations[(name, "", row.metric)].values)
        assert (row.true_value, row.sampling_error) == truth
        assert 0 < row.expected_error <= (10 * row.true_value if free else math.inf)


@pytest.mark.parametrize("name", CASES)
def test_the_law_is_that_of_the_public_metric(name):
    """The public metric and a study reach the mechanism by two paths, which must not differ in a bit."""
    predicted, data, options = CASES[name]
    for metric, population in populations_of(*predicted).items():
        arguments = data[:1] if metric == "variance" else data
        for rival in MECHANISM_RIVALS:
            if population.bounds is None and rival.needs_bounds:
                continue
            mechanism = rival.make(population.paper_unit(200))
            (draw,) = population.prepared(population.values, mechanism, 1.0).draws
            for seed in range(5):
                with pytest.warns(SeededReleaseWarning):
                    release = METRICS[metric](
                        *arguments, **options, epsilon=1.0, mechanism=mechanism, random_state=seed
                    )
                assert release == draw(SeededEntropy(seed), None).value
