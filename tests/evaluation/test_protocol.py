"""The protocol: what is left to do, done once each, the same in one process or in several."""

import dataclasses
import math

import numpy as np
import pytest

from dp_metrics.bounds import OutputBounds
from dp_metrics.evaluation import protocol, simulate
from dp_metrics.evaluation.datasets import DATASETS, DatasetError
from dp_metrics.evaluation.experiment import ERROR_CAP
from dp_metrics.evaluation.population import Population, Task
from dp_metrics.evaluation.protocol import EXACT_REPEATS, plan, run_chunk, run_chunks, seed_of
from dp_metrics.evaluation.results import key_of
from dp_metrics.evaluation.simulate import asymmetry_of, plan_simulations, simulate_bounds
from dp_metrics.evaluation.studies import CURVES, STUDIES, StudyError, select_studies

TASK = Task("bike", "mae")
STUDY = dataclasses.replace(STUDIES["mae"], tasks=(TASK,))
BOUNDED = {TASK: Population("mae", np.random.default_rng(0).gamma(2.0, 3.0, size=1500), (0.0, 100.0))}
UNBOUNDED = {TASK: dataclasses.replace(BOUNDED[TASK], bounds=None)}
STAMP = {"versions": "numpy=2", "revision": "abc"}


def rows_of(study=STUDY, populations=BOUNDED, epsilons=(1.0,), repeats=2, done=frozenset(), jobs=1):
    chunks = plan(study, populations, epsilons, repeats, set(done))
    return [row for rows in run_chunks(chunks, populations, STAMP, jobs) for row in rows]


def test_one_row_for_each_mechanism_epsilon_and_repeat():
    rows = rows_of(epsilons=(0.5, 2.0), repeats=12)
    assert len(rows) == len({key_of(row) for row in rows}) == 2 * 12 * len(CURVES)
    assert {row.mechanism for row in rows} == set(CURVES)
    assert {row.n for row in rows} == {1000}
    for row in rows:
        assert row.error == abs(row.release - row.true_value)
        exact = row.repeat < EXACT_REPEATS and row.mechanism != "clipped_mean"
        assert (row.expected_error is not None) == (row.overshoot is not None) == exact
        assert row.true_value == pytest.approx(6.0, rel=0.2)
    draws = {(row.epsilon, row.repeat): row.draw_seed for row in rows}
    assert len(set(draws.values())) == 24
    assert len({row.release_seed for row in rows}) == len(rows)


def test_rows_do_not_depend_on_what_was_done_before():
    rows = rows_of(repeats=3)
    assert rows_of(repeats=3) == rows
    done = {key_of(row) for row in rows[::2]}
    assert rows_of(repeats=3, done=done) == rows[1::2]
    assert rows_of(repeats=3, done={key_of(row) for row in rows}) == []
    only = dataclasses.replace(STUDY, curves=(CURVES["laplace"],))
    assert rows_of(only, repeats=3) == [row for row in rows if row.mechanism == "laplace"]


def test_several_processes_do_every_chunk_once():
    arguments = {"epsilons": (0.5, 1.0, 2.0), "repeats": 41}
    study = dataclasses.replace(STUDY, curves=(CURVES["laplace"], CURVES["clipped_mean"]))
    alone, together = rows_of(study, **arguments), rows_of(study, jobs=2, **arguments)
    assert len(alone) == 3 * 41 * 2
    assert sorted(together, key=key_of) == sorted(alone, key=key_of)


def test_a_fault_in_a_process_is_not_swallowed(monkeypatch):
    chunks = plan(STUDY, BOUNDED, (1.0,), 1, set())
    broken = dataclasses.replace(chunks[0], study="none")
    with pytest.raises(KeyError):
        list(run_chunks([broken], BOUNDED, STAMP, 2))


def test_without_bounds_only_what_can_do_without():
    rows = rows_of(populations=UNBOUNDED, repeats=1)
    assert [row.mechanism for row in rows] == ["hazard", "above_threshold", "paper"]
    assert {row.bounded for row in rows} == {0}
    study = dataclasses.replace(STUDIES["unbounded-losses"], tasks=(TASK,))
    assert {row.setting for row in rows_of(study, UNBOUNDED, repeats=1)} == {"unbounded"}
    both = rows_of(study, BOUNDED, repeats=1)
    assert [row.setting for row in both] == ["bounded", "unbounded"] * 3
    assert [row.bounded for row in both] == [1, 0] * 3
    assert len({row.draw_seed for row in both}) == 1


def test_the_exact_error_is_that_of_the_releases():
    study = dataclasses.replace(STUDY, curves=(CURVES["hazard"],))
    (row,) = rows_of(study, repeats=1)
    sample = BOUNDED[TASK].draw(1000, np.random.default_rng(row.draw_seed))
    mechanism = CURVES["hazard"].make
    bounds = BOUNDED[TASK].output_bounds(sample, mechanism, 1.0)
    law = mechanism.output_distribution(bounds, 1.0)
    assert row.expected_error == pytest.approx(law.mean_absolute_error(bounds.value), rel=1e-9)
    assert row.overshoot == pytest.approx(1 - law.cdf(ERROR_CAP * bounds.value))
    assert bounds.value == row.true_value


def test_seeds_tell_names_apart():
    assert seed_of("a", 1) == seed_of("a", 1) >= 0
    assert len({seed_of("a", 1), seed_of("a", 2), seed_of("a1"), seed_of("a", 1.0)}) == 4


@pytest.mark.slow
def test_simulations():
    study = STUDIES["asymmetry"]
    chunks = plan_simulations(study, 30, set())
    rows = [row for chunk in chunks for row in run_chunk(chunk, {}, STAMP)]
    assert [chunk.releases for chunk in chunks] == [60, 30]
    assert len(rows) == len({key_of(row) for row in rows}) == 90
    assert plan_simulations(study, 30, {key_of(row) for row in rows}) == []
    assert sum(c.releases for c in plan_simulations(study, 30, {key_of(row) for row in rows[1:]})) == 1
    assert {row.metric for row in rows} == {"uniform", "heavy-tailed"}
    asymmetries = {float(row.setting.partition("=")[2]) for row in rows}
    assert 0 <= min(asymmetries) < 0.2
    assert 0.4 < max(asymmetries) <= 0.5
    assert simulate_bounds(7)[2].upper.tolist() == simulate_bounds(7)[2].upper.tolist()


def test_asymmetry_by_hand():
    steps = np.arange(1.0, 11.0)
    even = OutputBounds(10.0, 10.0 - steps, 10.0 + steps, (0.0, 20.0), monotonic=True, n=10)
    assert asymmetry_of(even, 1.0) == pytest.approx(0.0, abs=1e-12)
    one_sided = OutputBounds(10.0, 10.0 - steps, 10.0 + 1e9 * steps, (0.0, 2e10), monotonic=True, n=10)
    assert asymmetry_of(one_sided, 1.0) == pytest.approx(0.5, abs=1e-6)
    # two ranks only: widths 1 and 1 below, 3 and 7 above
    two = OutputBounds(2.0, np.array([1.0]), np.array([5.0]), (0.0, 12.0), monotonic=True, n=2)
    q = math.exp(-0.5)
    above, below = 3 * q + 7 * q**2, q + q**2
    assert asymmetry_of(two, 1.0) == pytest.approx(above / (above + below) - 0.5)


def test_names_that_do_not_exist():
    with pytest.raises(StudyError, match=r"unknown figure 'fig1'; there are: variance, cross-entropy, mse"):
        select_studies(["fig1"], [], [])
    with pytest.raises(StudyError, match=r"unknown mechanism 'gauss'; there are: hazard, above_threshold"):
        select_studies([], [], ["gauss"])
    with pytest.raises(DatasetError, match=r"unknown data set 'iris'; there are: synthetic"):
        select_studies([], ["iris"], [])
    with pytest.raises(StudyError, match="none of these figures"):
        select_studies(["mse"], ["adult"], [])


def test_what_the_studies_show():
    studies = {study.name: study for study in select_studies([], [*DATASETS], [])}
    assert list(studies) == list(STUDIES)
    paper = [name for name in DATASETS if DATASETS[name].file_name]
    panels = {name: len(s.tasks) for name, s in zip(STUDIES, select_studies([], paper, []), strict=True)}
    assert panels == {
        "variance": 5,
        "cross-entropy": 4,
        "mse": 3,
        "mae": 3,
        "unbounded": 5,
        "unbounded-losses": 6,
        "beta": 5,
        "asymmetry": 0,
        "illustrations": 0,
    }
    assert [curve.mechanism for curve in STUDIES["variance"].curves] == list(CURVES)
    assert protocol.SAMPLE_SIZE == 1000
    assert simulate.SIMULATIONS == 300
