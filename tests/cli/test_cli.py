"""The command line: what it prints, and one clear line with exit code 2 for whatever goes wrong."""

import dataclasses
import errno
import gzip
import json
import subprocess
import sys

import numpy as np
import pytest

from dp_metrics.cli import experiments
from dp_metrics.cli.main import _is_closed_pipe, main
from dp_metrics.evaluation import figures, reproduce
from dp_metrics.evaluation.compared import MECHANISM_RIVALS
from dp_metrics.evaluation.datasets import DATASETS
from dp_metrics.evaluation.sources import DATA_VARIABLE

MECHANISMS = [rival.mechanism for rival in MECHANISM_RIVALS]


def small_data(dataset, data_dir):
    x = np.random.default_rng(0).normal(size=(250, 3))
    return x, 10.0 + x[:, 0]


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Make `synthetic` small, and the current folder a temporary one."""
    monkeypatch.setitem(DATASETS, "synthetic", dataclasses.replace(DATASETS["synthetic"], loader=small_data))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def no_training(monkeypatch):
    def refuse(*args, **kwargs):
        pytest.fail("a model was trained before the input was checked")

    monkeypatch.setattr(reproduce, "evaluate_model", refuse)


def failure(capsys, *argv, command="evaluate"):
    """Run a command that must fail; return its one line, after what it says of its way to OpenML."""
    assert main([command, *map(str, argv)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.endswith("\n")
    lines = [line for line in shown.err.splitlines() if "asking OpenML" not in line]
    assert len(lines) == 1
    assert lines[0].startswith("dp-metrics: error: ")
    return lines[0]


@pytest.mark.slow
def test_prints_a_table_and_writes_a_plot(small, capsys):
    assert main(["evaluate", "--dataset", "synthetic", "--epsilon", "1", "0.5", "1"]) == 0
    shown = capsys.readouterr()
    out = shown.out
    assert "synthetic: regression, 50 test records, no public bounds" in out
    assert out.count("(NOT private, for study)") == 3
    assert out.count("sampling standard error") == 3
    assert out.count("errors capped at 10 x the true value") == 3
    lines = out.splitlines()
    headers = [i for i, line in enumerate(lines) if line.split() == ["epsilon", *MECHANISMS]]
    assert len(headers) == 3
    for i in headers:
        assert [line.split()[0] for line in lines[i + 1 : i + 3]] == ["0.5", "1"]
        assert lines[i + 1].count("needs bounds") == 3
        assert len({len(line) for line in lines[i : i + 3]}) == 1
    assert f"plot written to {experiments._OUTPUT / 'synthetic.png'}" in out
    assert (small / "dp-metrics-output" / "synthetic.png").stat().st_size > 10_000
    assert "training on synthetic" in shown.err


@pytest.mark.slow
def test_bounded_regression(small, capsys, monkeypatch):
    bounded = dataclasses.replace(DATASETS["synthetic"], bounds=(0.0, 20_000.0))
    monkeypatch.setitem(DATASETS, "synthetic", bounded)
    assert main(["evaluate", "--dataset", "synthetic", "--epsilon", "1", "--output", "deep/er"]) == 0
    out = capsys.readouterr().out
    assert "public bounds 0 to 20,000" in out
    assert "needs bounds" not in out
    assert "capped" not in out
    assert (small / "deep" / "er" / "synthetic.png").exists()


def test_json(small, capsys):
    assert main(["evaluate", "--dataset", "synthetic", "--epsilon", "1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert set(document) == {"warning", "plots", "pages", "rows"}
    assert len(document["rows"]) == 3 * len(MECHANISMS)
    row = document["rows"][0]
    assert (row["dataset"], row["metric"], row["mechanism"]) == ("synthetic", "private_mse", "adaptive")
    assert row["release"] >= 0
    assert row["true_value_not_private"] > 0
    assert document["rows"][-1]["release"] is document["rows"][-1]["expected_error"] is None
    assert list(row) == [
        "dataset", "metric", "mechanism", "epsilon", "n_test", "bounded", "release", "expected_error",
        "error_cap", "true_value_not_private", "sampling_error_not_private",
    ]  # fmt: skip
    assert row["error_cap"] == 10 * row["true_value_not_private"]
    assert (row["bounded"], row["n_test"]) == (False, 50)


@pytest.mark.slow
def test_releases_differ_from_run_to_run(small, capsys):
    def releases():
        main(["evaluate", "--dataset", "synthetic", "--epsilon", "1", "--json"])
        return [row["release"] for row in json.loads(capsys.readouterr().out)["rows"]]

    assert releases() != releases()


@pytest.mark.usefixtures("no_training")
class TestFailures:
    def test_unknown_data_set(self, small, capsys):
        line = failure(capsys, "--dataset", "synthetic", "iris")
        assert "unknown data set 'iris'; there are: synthetic, digits, diamonds, abalone" in line

    @pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "much", "1e-400"])
    def test_bad_epsilon(self, small, capsys, text):
        assert f"argument --epsilon: {text!r} is not a positive, finite number" in failure(
            capsys, "--epsilon", text
        )

    def test_no_data_folder(self, small, capsys, monkeypatch):
        monkeypatch.delenv(DATA_VARIABLE, raising=False)
        assert "--data-dir" in failure(capsys, "--dataset", "diamonds")

    def test_missing_file_is_found_before_training_on_anything(self, small, capsys):
        line = failure(capsys, "--dataset", "synthetic", "abalone", "--data-dir", small)
        assert "'abalone': can't be fetched from OpenML" in line

    def test_damaged_file(self, small, capsys):
        (small / "abalone.csv.gz").write_bytes(gzip.compress(b"Sex,Rings\nM,1\n" * 100)[:-9])
        assert "damaged" in failure(capsys, "--dataset", "abalone", "--data-dir", small)

    @pytest.mark.parametrize("package", ["xgboost", "pandas", "matplotlib", "tqdm"])
    def test_missing_extra(self, small, capsys, monkeypatch, package):
        monkeypatch.setitem(sys.modules, package, None)
        line = failure(capsys)
        assert line.startswith(f"dp-metrics: error: {package} ")
        assert 'pip install "dp_metrics[evaluation]"' in line

    def test_output_folder_that_is_a_file(self, small, capsys):
        (small / "taken").write_text("")
        assert "can't write to the output folder taken:" in failure(capsys, "--output", "taken")
        assert "can't write to the output folder" in failure(capsys, "--output", "taken/inside")

    def test_output_folder_without_permission(self, small, capsys, monkeypatch):
        def refuse(dir):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(experiments.tempfile, "TemporaryFile", refuse)  # root may write anywhere
        assert "output folder here: Permission denied" in failure(capsys, "--output", "here")


def test_plot_that_cannot_be_written(small, capsys, monkeypatch):
    def disk_full(study, rows, path):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(figures, "draw_evaluation", disk_full)
    assert main(["evaluate", "--dataset", "synthetic", "--epsilon", "1"]) == 2
    assert "No space left on device" in capsys.readouterr().err


def test_interrupt_is_quiet(small, capsys, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(reproduce, "evaluate_model", interrupt)
    assert main(["evaluate"]) == 130
    shown = capsys.readouterr()
    assert shown.out == shown.err == ""


@pytest.mark.slow
def test_help_is_light(tmp_path):
    code = (
        "import sys\n"
        "from dp_metrics.cli.main import main\n"
        "try:\n"
        "    main(['evaluate', '--help'])\n"
        "except SystemExit as stop:\n"
        "    assert stop.code == 0\n"
        # not pandas: scikit-learn imports it itself where it is installed
        "heavy = {'xgboost', 'matplotlib', 'tqdm'}\n"
        "assert not heavy & {name.partition('.')[0] for name in sys.modules}"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], check=True, cwd=tmp_path, capture_output=True, text=True
    )
    for option in ("--dataset", "--data-dir", "--epsilon", "--output", "--json"):
        assert option in shown.stdout


@pytest.mark.parametrize(
    ("error", "linux", "windows"),
    [
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), True, True),
        (OSError(errno.EINVAL, "Invalid argument"), False, True),
        (OSError(errno.EINVAL, "Invalid argument", "a?.csv"), False, False),
        (OSError(errno.ENOSPC, "No space left on device"), False, False),
    ],
    ids=str,
)
def test_a_pipe_that_was_closed_is_told_from_other_errors(error, linux, windows):
    assert (_is_closed_pipe(error, "posix"), _is_closed_pipe(error, "nt")) == (linux, windows)


@pytest.mark.slow
def test_reader_that_goes_away(tmp_path):
    code = (
        "import dataclasses, sys, numpy as np\n"
        "from dp_metrics.cli import evaluate, main\n"
        "evaluate._evaluate = lambda options: print('x' * 10**6, flush=True)\n"
        "sys.exit(main.main(['evaluate']))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        complaint = process.stderr.read()
    assert process.returncode == 1
    assert complaint == b""


@pytest.mark.slow
def test_embedded_data_end_to_end(tmp_path):
    shown = subprocess.run(
        [sys.executable, "-m", "dp_metrics.cli.main", "evaluate", "--json", "--output", str(tmp_path)],
        check=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    document = json.loads(shown.stdout)
    assert [row["dataset"] for row in document["rows"]].count("digits") == 4 * len(MECHANISM_RIVALS)
    assert [row["dataset"] for row in document["rows"]].count("synthetic") == 4 * len(MECHANISM_RIVALS) * 3
    written = sorted(path.name for path in tmp_path.iterdir())
    assert written == ["digits.html", "digits.png", "synthetic.html", "synthetic.png"]
    assert "exact: NOT private" in (tmp_path / "digits.html").read_text(encoding="utf-8")
    assert "Traceback" not in shown.stderr
    for row in document["rows"]:
        if row["mechanism"] == "adaptive" and row["epsilon"] == 2:
            assert row["expected_error"] < row["true_value_not_private"]
