"""The notebooks run, are kept with their outputs, and the attack that they show works."""

import re
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
from helpers import load_script, loop_over

from dp_metrics import private_mse
from dp_metrics.mechanisms import Hazard

FOLDER = Path(__file__).parents[2] / "notebooks"


@loop_over("path", sorted(FOLDER.glob("*.ipynb")))
def test_a_notebook_has_its_outputs_and_no_seeds_and_says_first_what_it_is_good_for(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell.outputs]
    assert not [
        output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"
    ]
    assert not re.search("/(home|root|Users|tmp)/", str(outputs))
    assert path.stat().st_size < 400_000
    assert notebook.cells[0].cell_type == "markdown"
    assert "you will be able to" in notebook.cells[0].source
    source = "\n".join(cell.source for cell in notebook.cells)
    assert not [call for call in re.findall(r"private_\w+\([^)]*\)", source) if "random_state" in call]


@pytest.mark.gate
@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_the_cells_of_a_notebook_run_and_warn_of_nothing(path, monkeypatch, tmp_path, capsys):
    """Without Jupyter, of which each notebook would import all anew."""
    monkeypatch.setenv("DP_METRICS_FAST", "1")
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "code":
                exec(compile(cell.source, path.name, "exec"), names)
    plt.close("all")
    assert capsys.readouterr().err == ""


@pytest.fixture(scope="module")
def laws():
    return load_script(FOLDER / "output_laws.py")


@pytest.fixture(scope="module")
def attack(laws):
    return load_script(FOLDER / "membership_attack.py")


def test_no_attacker_beats_the_limit_of_epsilon(attack):
    epsilons = (0.1, 1.0, 8.0)
    for percentile in (0.0, 50.0, 100.0):
        rates = attack.success_rates(attack.make_study(percentile), epsilons)
        assert all(0.5 <= rate <= best for rate, best in zip(rates, attack.best_rate(epsilons), strict=True))
    assert rates[-1] > 0.9  # the largest error can't be hidden at epsilon 8


def test_the_success_rate_is_that_of_all_grid_points(attack, laws):
    study = attack.make_study()
    pair = [
        laws.output_law(private_mse, *data, epsilon=1.0, bounds=(0, 400), mechanism=Hazard(resolution=1.0))
        for data in ((study.target, study.prediction), study.replaced())
    ]
    points = np.arange(pair[0].grid.first, pair[0].grid.last + 1)
    masses = [np.diff(law.index_cdf(points), prepend=0.0) for law in pair]
    exact = 0.5 + np.abs(masses[0] - masses[1]).sum() / 4
    assert laws.success_rate(*pair) == pytest.approx(exact, abs=1e-4)
    assert 0.5 < exact < 0.74
