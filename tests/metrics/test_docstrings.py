"""Docstrings and tables of metrics are what docs/sources.py makes of them; what `help` shows first."""

import inspect
import pydoc
import re
from pathlib import Path

from helpers import load_script, loop_over

import dp_metrics as dp
from dp_metrics import distributed
from dp_metrics.metrics import FUNCTIONS, METRICS

ROOT = Path(__file__).parents[2]
load_script(ROOT / "docs" / "metric_table.py")
sources = load_script(ROOT / "docs" / "sources.py")
REGRESSION = (ROOT / "dp_metrics" / "metrics" / "regression_errors.py").read_text(encoding="utf-8")


@loop_over("path", sources.GENERATED)
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


@loop_over(
    ("shared", "edited"),
    [
        ("Budget that pays epsilon", "Budget that may pay epsilon"),
        ("        If `random_state` is given.\n", ""),
        (" bounds=bounds,", ""),
        ("groups=groups", "groups=None"),
        ("    return result.value\n", "    return 2 * result.value\n"),
    ],
)
def test_a_shared_part_that_is_edited_by_hand_is_found(shared, edited):
    assert shared in REGRESSION
    stale = REGRESSION.replace(shared, edited, 1)
    assert sources.completed(stale) == REGRESSION != stale


def test_check_prints_what_write_changes(tmp_path, monkeypatch, capsys):
    path = tmp_path / "regression_errors.py"
    path.write_text(REGRESSION.replace("Budget that pays", "Budget that may pay"), encoding="utf-8")
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    monkeypatch.setattr(sources, "GENERATED", {path: sources.completed})
    assert [sources.main([flag]) for flag in ("--check", "--write", "--check")] == [1, 0, 0]
    assert "+        Budget that pays epsilon for this release" in capsys.readouterr().out
    assert path.read_text(encoding="utf-8") == REGRESSION


@loop_over("name", METRICS)
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


@loop_over("name", [name for name in dp.__all__ if name.startswith("private_")])
def test_docstrings_name_every_parameter_and_the_guarantee(name):
    text = inspect.getdoc(getattr(dp, name))
    documented = set(re.findall(r"^\*{0,2}(\w+) : ", text, re.MULTILINE))
    assert documented >= set(inspect.signature(getattr(dp, name)).parameters)
    assert "Guarantee: replacing any one record" in text


@loop_over(("module", "name"), [(module, name) for module in (dp, distributed) for name in module.__all__])
def test_a_signature_names_types_as_they_are_written(module, name):
    shown = getattr(module, name)
    try:
        signature = str(inspect.signature(shown))
    except ValueError:  # an exception's own
        return
    for noise in ("numpy._typing", "Union[", "np.random", "_array_like", "Optional[", "collections.abc"):
        assert noise not in signature
    text = pydoc.render_doc(shown, renderer=pydoc.plaintext)
    assert len(text.split("\n")[2]) < 900
