"""Docstrings and tables of metrics are what docs/sources.py makes of blocks and catalogue."""

import inspect
import re
from pathlib import Path

import pytest
from helpers import load_script, loop_over

import dp_metrics as dp
from dp_metrics.metrics import FUNCTIONS, METRICS

ROOT = Path(__file__).parents[2]
load_script(ROOT / "docs" / "metric_table.py")
sources = load_script(ROOT / "docs" / "sources.py")

each_metric = pytest.mark.parametrize("name", METRICS)


@pytest.mark.parametrize("path", sources.GENERATED, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_file_is_as_the_tool_writes_it(path):
    written = path.read_text(encoding="utf-8")
    assert sources.GENERATED[path](written) == written, "run python docs/sources.py --write"


def test_the_tool_reads_the_docstring_of_every_metric_and_of_every_summary():
    paths = [*sources.METRIC_FILES, *sources.SUMMARIES]
    found = [name for path in paths for name in sources.releases(path.read_text(encoding="utf-8"))]
    summaries = [f"{kind}Summary.release" for kind in ("Confusion", "Loss", "Score", "Variance")]
    assert sorted(found) == sorted([*METRICS, *summaries])
    assert sources.VARIANTS.keys() <= set(found)
    assert sources.GENERATED.keys() > set(paths)


REGRESSION = (ROOT / "dp_metrics" / "metrics" / "regression_errors.py").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("shared", "edited"),
    [
        ("Budget that pays epsilon", "Budget that may pay epsilon"),
        ("accountant : PrivacyAccountant or None, default=None", "accountant : PrivacyAccountant"),
        ("        If `random_state` is given.\n", ""),
        ("another neighbouring relation", "this neighbouring relation"),
        ("at most a factor\n    exp(epsilon)", "at most a factor\n    exp(2 epsilon)"),
        ("any one record, or with `groups` all records of any one group, changes", "any one record changes"),
        ("        `with_result` gives the `PrivateResult`, which holds all that may be published.\n", ""),
        ("> 0: smaller is", "> 0:\n        smaller is"),
        (" bounds=bounds,", ""),
        ("groups=groups", "groups=None"),
        ("MSE.release(", "MAE.release("),
        ("    return result.value\n", "    return 2 * result.value\n"),
        ("    return result.value\n", "    return result.value  # the private number\n"),
    ],
)
def test_a_shared_part_that_is_edited_by_hand_is_found(shared, edited):
    assert shared in REGRESSION
    stale = REGRESSION.replace(shared, edited, 1)
    assert sources.completed(stale) == REGRESSION != stale


def test_the_call_behind_a_docstring_is_written():
    behind = re.compile(r"    result: PrivateResult.*?    return result.value\n", re.DOTALL)
    without = behind.sub("", REGRESSION)
    assert sources.completed(without) == REGRESSION
    assert "release(" not in without


def test_a_section_that_numpydoc_does_not_know_is_refused():
    with pytest.raises(ValueError, match=r"private_mse has unknown sections: .*Remarks"):
        sources.completed(REGRESSION.replace("    See Also\n    --------", "    Remarks\n    -------", 1))


@pytest.mark.parametrize(
    "own", ["Mean squared error with", "Share of epsilon for", "The private R^2: at most 1", "# exactly 0.88"]
)
def test_what_a_metric_says_by_itself_stays(own):
    edited = REGRESSION.replace(own, own.replace("e", "E"))
    assert edited != REGRESSION
    assert sources.completed(edited) == edited


def test_the_rest_of_a_new_docstring_is_written():
    doc = "Mean of something.\n\nParameters\n----------\ndelta : float\n    Where it bends.\n\n"
    doc += "Returns\n-------\nfloat\n    The mean."
    defaults = {"y_true": "", "epsilon": "", "delta": "1.0", "neighboring": '"replace_one"'}
    written = sources.with_shared_parts(doc, "private_new_loss", defaults, 106)
    assert re.findall(r"^(\w+) : ", written, re.MULTILINE) == [*defaults]
    titles = re.findall(r"^(\w+)\n--", written, re.MULTILINE)
    assert titles == [
        "Parameters",
        "Returns",
        "Raises",
        "Warns",
        "Notes",
    ]
    assert "delta : float\n    Where it bends.\n" in written
    assert 'neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"\n' in written
    assert "any one record changes the" in written
    assert sources.with_shared_parts(written, "private_new_loss", defaults, 106) == written
    with pytest.raises(ValueError, match="private_new_loss does not describe gamma"):
        sources.with_shared_parts(doc, "private_new_loss", {**defaults, "gamma": ""}, 106)


@each_metric
def test_the_docstring_names_every_parameter_and_its_default(name):
    section = inspect.getdoc(FUNCTIONS[name]).split("Parameters\n----------\n")[1].split("\n\nReturns\n")[0]
    entries = dict(re.findall(r"^(\w+) : (.*)$", section, re.MULTILINE))
    parameters = inspect.signature(FUNCTIONS[name]).parameters
    assert [*entries] == [*parameters]
    for parameter in parameters.values():
        stated = re.search(r", default=(.*)$", entries[parameter.name])
        if parameter.default is inspect.Parameter.empty:
            assert stated is None
        else:
            assert stated[1].replace('"', "'") == repr(parameter.default)


def test_check_prints_what_write_changes(tmp_path, monkeypatch, capsys):
    path = tmp_path / "regression_errors.py"
    path.write_text(REGRESSION.replace("Budget that pays", "Budget that may pay"), encoding="utf-8")
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    monkeypatch.setattr(sources, "GENERATED", {path: sources.completed})
    assert sources.main(["--check"]) == 1
    assert "+        Budget that pays epsilon for this release" in capsys.readouterr().out
    assert path.read_text(encoding="utf-8") != REGRESSION
    assert sources.main(["--write"]) == 0
    assert path.read_text(encoding="utf-8") == REGRESSION
    assert sources.main(["--check"]) == 0
    assert capsys.readouterr().out == ""


PUBLIC = [getattr(dp, name) for name in dp.__all__ if name.startswith("private_")]


@loop_over("metric", PUBLIC)
def test_docstrings_are_filled_in(metric):
    text = inspect.getdoc(metric)
    assert not re.search(r"\{\w+(: [^}]*)?\}", re.sub(r"\{(\"\w+\"(, )?)+\}|\{\"hazard\".*?\}", "", text))
    documented = set(re.findall(r"^\*{0,2}(\w+) : ", text, re.MULTILINE))
    assert documented >= set(inspect.signature(metric).parameters)
    for section in ("Parameters", "Returns", "Raises", "Warns", "Notes", "References", "Examples"):
        assert f"\n{section}\n{'-' * len(section)}\n" in text
    assert "Guarantee: replacing any one record" in text
