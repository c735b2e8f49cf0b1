"""What differs between systems, tried by substitution where there is no such machine, or read in the source.

A day of work is done in processes of several kinds (no account, a decimal comma, ``python -O``, no ``fork``),
and must give the same numbers, bit by bit.
"""

import ast
import os
import sys
from pathlib import Path, PureWindowsPath
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from helpers import loop_over, printed_by

from dp_metrics import PrivacyAccountant
from dp_metrics.accounting import ledgers

ROOT = Path(__file__).parents[2]

DAY = """
import locale, pickle, sys, warnings
locale.setlocale(locale.LC_ALL, "")
warnings.simplefilter("ignore", UserWarning)
import numpy as np
import dp_metrics as dp
from dp_metrics.cli.main import main

rng = np.random.default_rng(0)
y, ill = rng.normal(size=2000), rng.integers(0, 2, 2000)
score = np.clip(0.3 * rng.random(2000) + 0.4 * ill, 0.01, 0.99)
public = {"epsilon": 1.5, "random_state": 1}
print(float(dp.private_mse(y, y + 1.25, **public)).hex())
print(float(dp.private_log_loss(ill, score, **public)).hex())
print(dp.private_recall_score(ill, score > 0.5, **public).hex())
print(dp.private_roc_auc_score(ill, score, neighboring="add_or_remove_one", **public).hex())
budget = dp.PrivacyAccountant(epsilon=3.5, path="budget.sqlite")
result = dp.with_result(dp.private_mae)(y, y + 1.25, accountant=budget, spend_name="Größe", **public)
print(result, result.noise_interval(), result.to_json())
for refused in (lambda: budget.spend(2.5, "too much"), lambda: dp.private_mse(y, y * np.nan, epsilon=1.0)):
    try:
        refused()
    except ValueError as error:
        print(type(error).__name__, error)
print(budget.spent, dp.PrivacyAccountant(epsilon=3.5, path="budget.sqlite").remaining)
print(pickle.loads(pickle.dumps(budget)).spent)
print(main(["plan", "--metric", "mse=1.25", "--n", "2000", "--epsilon", "1.5"]))
"""
WITHOUT_FORK = """
import os
for name in {"fork", "forkpty", "link", "register_at_fork"} & {*dir(os)}:
    delattr(os, name)
"""
WITHOUT_ACCOUNT = """
import sys
class Nobody:
    def getpwuid(self, uid):
        raise KeyError(uid)
sys.modules["pwd"] = Nobody()
"""


def work(folder, *, options="", before="", after="", **environment):
    """Return what a day of work prints in a process of its own, in a folder of its own, without a home."""
    folder.mkdir()
    program = folder / "program.py"
    program.write_text(before + DAY + after, encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "SYSTEMROOT", "TEMP")}
    settings = {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", "PYTHONDONTWRITEBYTECODE": "1"}
    environment = {**kept, **settings, **environment}
    return printed_by(sys.executable, *options.split(), program, cwd=folder, env=environment)


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory):
    return work(tmp_path_factory.mktemp("ordinary") / "folder", HOME=os.path.expanduser("~"))


@pytest.mark.slow
def test_a_day_of_work_says_what_it_must(ordinary):
    lines = ordinary.splitlines()
    assert any(line.startswith("PrivacyBudgetError ") for line in lines)
    assert any(line.startswith("ValueError ") and "NaN" in line for line in lines)
    assert lines.count("1.5 2.0") == lines.count("1.5") == 1
    assert lines[-1] == "0"


# lazy_loader reads a stub, which is ASCII, without saying so
NO_DEFAULT = "-X warn_default_encoding -W error::EncodingWarning -W ignore::EncodingWarning:lazy_loader"
SYSTEMS = {
    "without asserts and docstrings": {"options": "-OO"},
    "as on Windows, without fork and links": {"before": WITHOUT_FORK},
    "a user without an account": {"before": WITHOUT_ACCOUNT},
    "files are ASCII by default": {"options": "-X utf8=0", "LC_ALL": "C"},
    "no default encoding": {"options": NO_DEFAULT},
}


@pytest.mark.slow
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_day_of_work_is_the_same(ordinary, tmp_path, system):
    assert work(tmp_path / "folder", **SYSTEMS[system]) == ordinary


@pytest.mark.slow
def test_a_decimal_comma_changes_nothing(ordinary, german_locale, tmp_path):
    after = "assert locale.str(1.5) == '1,5'"
    german = work(tmp_path / "folder", after=after, LOCPATH=german_locale, LC_ALL="de_DE.UTF-8")
    assert german == ordinary


WATCH = """
import os, sys
written = []
def watch(event, arguments):
    if event == "open" and isinstance(arguments[0], str | bytes):
        if arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC):
            written.append(os.fsdecode(arguments[0]))
    elif event in ("os.mkdir", "os.rename", "os.remove", "tempfile.mkstemp"):
        written.append(os.fsdecode(arguments[0]))
    elif event == "sqlite3.connect":
        written.append(os.fsdecode(arguments[0]))
sys.addaudithook(watch)
"""
PAGE = """
page = dp.private_evaluate(ill, y_score=score, labels=[0, 1], epsilon=1.5)
page.to_json("page.json"); open("page.html", "w", encoding="utf-8").write(page.to_html())
print(*written, sep="\\n", file=open("written.txt", "w", encoding="utf-8"))
"""


@pytest.mark.slow
def test_only_what_was_asked_for_is_written(tmp_path):
    """So the package may lie where nobody may write. Matplotlib, for pictures, has a folder of its own."""
    work(tmp_path / "folder", before=WATCH, after=PAGE, MPLCONFIGDIR=str(tmp_path / "matplotlib"))
    lines = {*(tmp_path / "folder" / "written.txt").read_text(encoding="utf-8").splitlines()}
    budget = {line for line in lines if urlsplit(line).scheme == "file"}
    assert {urlsplit(line).path.rpartition("/")[0] for line in budget} == {(tmp_path / "folder").as_posix()}
    others = {line for line in lines - budget if "matplotlib" not in line}
    assert others <= {"page.json", "page.html", "written.txt", os.devnull}
    assert "page.json" in others


def test_asserts_only_tell_types():
    """``python -O`` drops them: what must be refused is refused by a raise."""

    def tells_a_type(test):
        if isinstance(test, ast.BoolOp):
            return all(map(tells_a_type, test.values))
        if isinstance(test, ast.Compare):
            return isinstance(test.ops[0], ast.Is | ast.IsNot) and ast.unparse(test.comparators[0]) == "None"
        return ast.unparse(test).startswith("isinstance(")

    for path in (ROOT / "dp_metrics").rglob("*.py"):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        assert all(tells_a_type(node.test) for node in nodes if isinstance(node, ast.Assert)), path


@loop_over("name", ["budget", "bud get", "100 % #1?", "größe&x=1", "C:", "a\\b", "CON"])
def test_every_name_of_a_budget_file_is_its_own(tmp_path, name):
    if os.name == "nt" and (name == "CON" or {*name} & {"?", ":", "\\"}):
        return  # no name of a file on Windows
    (folder := tmp_path / f"folder {len(name)} {ord(name[0])}").mkdir()
    PrivacyAccountant(1.0, folder / name).spend(0.25, "x")
    assert {path.name for path in folder.iterdir()} - {f"{name}-wal", f"{name}-shm"} == {name}
    assert PrivacyAccountant(1.0, folder / name).spent == 0.25


@pytest.mark.filterwarnings("ignore:pathlib.PurePath.as_uri:DeprecationWarning")  # from Python 3.19 on
@loop_over("path", [r"\\server\share\budget.sqlite", r"\\?\C:\Data\budget.sqlite", r"\\.\NUL\x"])
def test_a_share_of_windows_is_refused_in_a_sentence(monkeypatch, path):
    """SQLite opens no such path, and its log would not be safe on another machine."""
    monkeypatch.setattr(ledgers, "_resolved", lambda path: path)
    monkeypatch.setattr(ledgers, "pathlib", SimpleNamespace(Path=PureWindowsPath))
    with pytest.raises(OSError, match="put it on a local disk; nothing was released"):
        PrivacyAccountant(1.0, path)


@pytest.mark.parametrize("answer", [SimpleNamespace(st_nlink=0), PermissionError(13, "in use")], ids=str)
def test_a_file_whose_names_cannot_be_counted_takes_no_spend(tmp_path, monkeypatch, answer):
    """As on file systems without numbers of links, and where another program has a file for itself."""
    path = tmp_path / "budget"
    accountant = PrivacyAccountant(1.0, path)
    ask = os.stat

    def stat(asked, *arguments, **options):
        if os.fspath(asked) != str(path):
            return ask(asked, *arguments, **options)
        if isinstance(answer, OSError):
            raise answer
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(ledgers.os, "stat", stat)
        with pytest.raises((ValueError, PermissionError)):
            accountant.spend(0.25, "x")
    assert accountant.spent == 0
    accountant.spend(0.25, "y")
    assert [one.spend_name for one in accountant.history] == ["y"]
