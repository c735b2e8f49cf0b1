"""The notebooks run, and are kept with their outputs; of the attack that they show tells `test_docs.py`."""

import re
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import pytest
from helpers import loop_over

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
