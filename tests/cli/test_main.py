"""One clear line and an exit code for whatever goes wrong, and no number lost that is paid for."""

import errno
import io
import json
import os
import shlex
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from helpers import loop_over

import dp_metrics as dp
from dp_metrics.cli import files
from dp_metrics.cli.main import _is_closed_pipe, main
from dp_metrics.release.release import PreparedQuery

SECRET = "Zaphod987"
COMMANDS = {
    "score": ("score", "data.csv", "--metric", "mae", "--y-true", "y", "--y-pred", "p", "--epsilon", "1"),
    "compare": ("compare", "data.csv", "--y-true", "y", "--pred-a", "p", "--pred-b", "p", "--epsilon", "1"),
    "interval": ("interval", "data.csv", "--column", "p", "--max-loss", "1", "--epsilon", "1"),
    "evaluate": (
        "evaluate", "data.csv", "--y-true", "y", "--y-pred", "p", "--labels", "0", "1", "--epsilon", "1",
        "--output", "page.md",
    ),
}  # fmt: skip
SCORE, PAID = COMMANDS["score"], ("--budget", "b.sqlite")
NOT_WRITTEN = "epsilon was spent, but the result can't be written"


@pytest.fixture(autouse=True)
def budget():
    Path("data.csv").write_text("y,p,note\n" + "1,0,x\n" * 50)
    return dp.PrivacyAccountant(5, "b.sqlite")


class Full(io.StringIO):
    def write(self, text):
        raise OSError(errno.ENOSPC, "No space left on device")


def closed():
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("command", COMMANDS)
def test_what_nobody_expected_is_not_shown(command, refused, monkeypatch):
    for error in (KeyError(SECRET), OverflowError(SECRET), MemoryError(SECRET), AssertionError(SECRET)):

        def fail(*args, error=error, **kwargs):
            raise error

        monkeypatch.setattr(PreparedQuery, "draw", fail)
        shown = refused(*COMMANDS[command], *PAID, code=2)
        assert "`dp-metrics budget` shows whether epsilon was spent" in shown


@pytest.mark.parametrize("command", COMMANDS)
@loop_over(("stdout", "why"), [(Full(), "No space left"), (closed(), "I/O operation on closed file")])
def test_a_result_that_cannot_be_written_is_told(command, stdout, why, capsys):
    budget = dp.PrivacyAccountant(5, "b.sqlite")
    spent = budget.spent
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", stdout)
        code = main([*COMMANDS[command], *PAID])
    assert (code, budget.spent - spent) == (2, 1.0)  # 1 would say that a requirement fails
    assert f"{NOT_WRITTEN}: {why}" in capsys.readouterr().err
    assert Path("page.md").exists() == (command == "evaluate")  # whoever reads a part only has it: `| head`


def test_a_negative_number_with_an_exponent_is_no_option(run):
    assert run(*SCORE, "--bounds", "-1e3", "998").out.startswith("private_mae = ")


@pytest.mark.parametrize("as_json", [False, True])
def test_a_budget_that_goes_after_the_spend_loses_no_number(as_json, run, monkeypatch):
    draw = PreparedQuery.draw

    def draw_and_remove(*args):
        for file in Path().glob("b.sqlite*"):
            file.unlink()
        return draw(*args)

    monkeypatch.setattr(PreparedQuery, "draw", draw_and_remove)
    out = run(*SCORE, *PAID, *(["--json"] if as_json else [])).out
    if as_json:
        assert json.loads(out)["value"] >= 0
        assert json.loads(out)["budget"]["remaining"] is None
    else:
        assert out.startswith("private_mae = ")
        assert "can't be read any more" in out


@pytest.mark.parametrize("stderr", [None, Full()], ids=["closed", "full"])
def test_a_warning_that_cannot_be_written_loses_no_number(stderr, budget, capsys):
    """Of so few records that a release warns."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stderr", stderr)
        assert main([*SCORE, *PAID, "--json"]) == 0
        assert main([*SCORE, *PAID, "--epsilon", "5"]) == 4  # more than is left
        assert main(["score", "nowhere.csv", *SCORE[2:]]) == 2
    assert budget.spent == 1.0
    assert json.loads(capsys.readouterr().out)["value"] >= 0  # one document, without the warning


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs the shell and devices of Linux")
@pytest.mark.parametrize(
    ("argv", "redirected", "code", "spent", "message"),
    [
        (["metrics"], "| true", 2, 0.0, ""),  # of what cost nothing, and no requirement failed
        *(
            pytest.param([*SCORE, *PAID], *row, marks=pytest.mark.gate)
            for row in (
                (">/dev/full", 2, 1.0, f"{NOT_WRITTEN}: No space left on device"),
                ("| true", 2, 1.0, f"{NOT_WRITTEN}: Broken pipe"),
                (">&-", 2, 0.0, "standard output is closed"),
                ("2>&-", 0, 1.0, ""),
            )
        ),
    ],
)
def test_output_of_a_shell_that_ends_in_nothing_is_told(argv, redirected, code, spent, message, budget):
    Path("data.csv").write_text("y,p,note\n" + "1,0,x\n" * 500)  # so many that nothing warns
    command = shlex.join([sys.executable, "-m", "dp_metrics.cli.main", *argv])
    script = f"{command} {redirected}; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert (done.returncode, budget.spent) == (code, spent)
    assert message in done.stderr
    assert done.stderr.count("\n") == bool(message)
    assert code or done.stdout.startswith("private_mae = ")


@loop_over(
    ("error", "linux", "windows"),
    [
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), True, True),
        (OSError(errno.EINVAL, "Invalid argument"), False, True),
        (OSError(errno.EINVAL, "Invalid argument", "a?.csv"), False, False),
        (OSError(errno.ENOSPC, "No space left on device"), False, False),
    ],
)
def test_a_pipe_that_was_closed_is_told_from_other_errors(error, linux, windows):
    assert (_is_closed_pipe(error, "posix"), _is_closed_pipe(error, "nt")) == (linux, windows)


def test_interrupt_is_quiet(run, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(files.Predictions, "chunks", interrupt)
    shown = run(*SCORE, code=130)
    assert shown.out == shown.err == ""


def test_version(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"dp_metrics {version('dp_metrics')}\n"
    assert dp.__version__ == version("dp_metrics")


@loop_over(
    ("command", "told", "untold"),
    [
        (
            "score --metric quantile",
            "--column COL [COL ...] One finite number per record --q VALUE Which",
            [],
        ),
        ("score --metric mae", "--y-true", ["demonstrate"]),
        ("compare", "The loss of one record (default: zero_one)", ["--normalize", "--mechanism"]),
        ("interval", "The quantile, strictly between 0 and 1: 0.5 for the median", []),
        ("evaluate", "Whether targets or labels are predicted, where nothing else says so", []),
        ("audit", "Steps of hill climbing after the adversarial pairs (default: 100)", []),
    ],
)
def test_help_lists_the_options_of_the_function_and_none_that_is_always_refused(
    command, told, untold, capsys
):
    with pytest.raises(SystemExit, match="0"):
        main([*command.split(), "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert told in shown
    assert not [one for one in untold if one in shown]
