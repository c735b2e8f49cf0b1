"""`dp-metrics score`: the numbers of the functions, from files; and nothing spent if they are not right."""

import csv
import io
import json
import re
import subprocess
import sys
import tracemalloc
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from cases import CASES
from doors import columns_of, typed_options
from helpers import kind_of, new_session

import dp_metrics as dp
from dp_metrics import PrivacyAccountant, PrivateMetricFrame, SeededReleaseWarning
from dp_metrics.cli import main as cli
from dp_metrics.cli import predictions, score
from dp_metrics.cli._common import Refused
from dp_metrics.cli.main import main
from dp_metrics.cli.predictions import Predictions, open_predictions
from dp_metrics.mechanisms import MECHANISMS
from dp_metrics.metrics import FUNCTIONS

SLOW_PARQUET = pytest.param("parquet", marks=pytest.mark.slow)
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("private_variance", "private_std")]
SECRET = "Zaphod987"


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(predictions, "_CSV_BLOCK", 1 << 12)
    monkeypatch.setattr(predictions, "_PARQUET_ROWS", 70)


def written(folder, columns, kind="csv"):
    """Write a file of these columns."""
    path = folder / f"data.{kind}"
    frame = pd.DataFrame(columns)
    if kind == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    return path


def released(path, *argv, seed=7, epsilon=1.0):
    """Return what a command releases, with a seed."""
    typed = cli._parser("score").parse_args(["score", str(path), "--epsilon", str(epsilon), *argv])
    asked = score._request(typed)
    records = open_predictions(path, score._columns(typed, asked))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededReleaseWarning)
        return score.release(asked, records, score.summarising(asked, records), None, lambda part: None, seed)


def expected(function, *data, seed=7, epsilon=1.0, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededReleaseWarning)
        return dp.with_result(function)(*data, epsilon=epsilon, random_state=seed, **options)


@pytest.mark.parametrize("kind", ["csv", SLOW_PARQUET])
@pytest.mark.parametrize("name", CASES)
def test_a_file_gives_the_bits_of_the_function(name, kind, tmp_path):
    case = CASES[name]
    data = case.data(np.random.default_rng(3), 200)
    columns, argv = columns_of(data)
    for settings in ({}, {"neighboring": "add_or_remove_one"}):
        if not settings.keys() <= case.parameters or (settings and name == "roc auc, 3 labels"):
            continue
        words = [word for key, value in settings.items() for word in (f"--{key}", value)]
        path = written(tmp_path, columns, kind)
        got = released(path, "--metric", case.name, *argv, *typed_options(case.options), *words)
        want = expected(case.function, *data, **case.options, **settings)
        assert got.to_json() == want.to_json()


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("metric", ["private_mae", *SLOW])
def test_mechanisms_give_the_bits_of_the_function(metric, mechanism, tmp_path):
    rng = np.random.default_rng(4)
    columns = {"a": rng.uniform(0, 4, 3000), "b": rng.uniform(0, 4, 3000)}
    path = written(tmp_path, columns)
    data, argv = list(columns.values()), ["--y-true", "a", "--y-pred", "b"]
    if metric != "private_mae":
        data, argv = data[:1], ["--column", "a"]
    options = ["--option", "bounds=[0, 4]", "--mechanism", mechanism]
    for epsilon in (1.0, 0.03):  # the second needs more than the usual capacity
        got = released(path, "--metric", metric, *argv, *options, epsilon=epsilon)
        want = expected(FUNCTIONS[metric], *data, bounds=(0, 4), mechanism=mechanism, epsilon=epsilon)
        assert got.to_json() == want.to_json()


@pytest.mark.parametrize(
    "mechanism",
    ["adaptive", *(pytest.param(m, marks=pytest.mark.slow) for m in ("hazard", "above_threshold"))],
)
def test_no_public_limit_and_a_small_epsilon(mechanism, tmp_path):
    y = np.random.default_rng(5).standard_t(3, 20_000)
    path = written(tmp_path, {"y": y, "zero": np.zeros_like(y)}, "parquet")
    argv = ["--metric", "private_mse", "--y-true", "y", "--y-pred", "zero", "--mechanism", mechanism]
    for relation in ("replace_one", "add_or_remove_one"):
        got = released(path, *argv, "--neighboring", relation, epsilon=0.02)
        settings = {"mechanism": mechanism, "epsilon": 0.02, "neighboring": relation}
        assert got.to_json() == expected(dp.private_mse, y, np.zeros_like(y), **settings).to_json()


def is_streamed(row):
    return kind_of(row) == "mean" or kind_of(row) == "confusion" or kind_of(row) == "scores"


@pytest.mark.parametrize("name", ["mse", "f1", "roc curve", "top-k", "variance", "roc auc", "median error"])
def test_what_a_summary_knows_is_never_held_whole(name, tmp_path, monkeypatch):
    asked = []
    whole = Predictions.whole
    monkeypatch.setattr(Predictions, "whole", lambda *args: asked.append(1) or whole(*args))
    case = CASES[name]
    columns, argv = columns_of(case.data(np.random.default_rng(3), 200))
    released(written(tmp_path, columns), "--metric", case.name, *argv, *typed_options(case.options))
    assert bool(asked) != is_streamed(case.row)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_weights_people_and_groups(tmp_path, kind):
    rng = np.random.default_rng(6)
    n = 900
    y, p = rng.integers(0, 2, n), rng.integers(0, 2, n)
    weight, person = rng.uniform(0.5, 2, n), rng.integers(0, 300, n)
    sex = rng.choice(["f", "m"], n)
    columns = {"y": y, "p": p, "w": weight, "id": person, "sex": sex, "flag": y == 1, "part": y + 1}
    path = written(tmp_path, columns, kind)
    of_labels = ["--y-true", "y", "--y-pred", "p"]
    loss = ["--metric", "private_accuracy_score", *of_labels]
    want = expected(dp.private_accuracy_score, y, p, sample_weight=weight, groups=person)
    assert released(path, *loss, "--sample-weight", "w", "--groups", "id").to_json() == want.to_json()
    want = expected(dp.private_accuracy_score, y, p, sample_weight=weight)
    assert released(path, *loss, "--sample-weight", "w").to_json() == want.to_json()
    want = expected(dp.private_accuracy_score, y, p, groups=sex)
    assert released(path, *loss, "--groups", "sex").to_json() == want.to_json()
    want = expected(dp.private_accuracy_score, y, p, spend_name="one")
    flags = ["--metric", "private_accuracy_score", "--y-true", "flag", "--y-pred", "p", "--spend-name", "one"]
    assert released(path, *flags).to_json() == want.to_json()
    for words, column, known in (
        (["--sensitive", "sex", "--group-labels", "m", "f"], sex, ["m", "f"]),
        (["--sensitive", "part", "--group-labels", "1", "2"], y + 1, [1, 2]),
        (["--sensitive", "part", "--group-labels", "(1, 2)"], y + 1, [1, 2]),
    ):
        got = released(path, "--metric", "private_recall_score", *of_labels, *words)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SeededReleaseWarning)
            frame = PrivateMetricFrame(
                metrics=partial(dp.private_recall_score), y_true=y, y_pred=p, sensitive_features=column,
                group_labels=known, epsilon=1.0, random_state=7,
            )  # fmt: skip
        assert (dict(got.by_group), got.overall) == (dict(frame.by_group), frame.overall)
        assert got.group_sizes == frame.group_sizes


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_labels_that_are_text(tmp_path, kind):
    y = np.array(["no", "yes", "NA", "null", ' "1",\n'] * 30, dtype=object)
    p = np.roll(y, 1)
    p[:100] = y[:100]
    path = written(tmp_path, {"y": y, "p": p}, kind)
    known = sorted(set(y))
    argv = ["--y-true", "y", "--y-pred", "p"]
    options = ["--option", f"labels={json.dumps(known)}", "--option", "average=macro"]
    want = expected(dp.private_f1_score, y, p, labels=known, average="macro")
    assert released(path, "--metric", "private_f1_score", *argv, *options).to_json() == want.to_json()
    with pytest.raises(Refused, match="a value is missing"):  # NA, where nobody gave it as a label
        released(path, "--metric", "private_accuracy_score", *argv)
    rest = np.isin(y, ["NA", "null"]) | np.isin(p, ["NA", "null"])
    path = written(tmp_path, {"y": y[~rest], "p": p[~rest]}, kind)
    want = expected(dp.private_accuracy_score, y[~rest], p[~rest])
    assert released(path, "--metric", "private_accuracy_score", *argv).to_json() == want.to_json()


def test_one_cell_does_not_change_how_others_are_read(tmp_path):
    # a type guessed from the column would read 1 and 1.0 as texts, which differ, once there is a word in it
    y, p = ["1", "0"] * 200, ["1.0", "0.0"] * 200
    epsilon = 1e6  # hardly any noise
    argv = ["--metric", "private_accuracy_score", "--y-true", "y", "--y-pred", "p"]
    assert round(float(released(written(tmp_path, {"y": y, "p": p}), *argv, epsilon=epsilon)), 6) == 1
    y[7] = p[7] = "word"
    y[9] = "other"
    p[9] = "word"
    assert round(float(released(written(tmp_path, {"y": y, "p": p}), *argv, epsilon=epsilon)), 6) == 0.9975


def run(capsys, *argv, code=0):
    """Run `score`; return what it prints."""
    assert main(["score", *map(str, argv)]) == code
    shown = capsys.readouterr()
    if code:
        assert shown.out == ""
        assert shown.err.startswith("dp-metrics: error: ")
        assert shown.err.count("\n") == 1
    return shown.err if code else shown.out


MAE = ("--metric", "private_mae", "--y-true", "y", "--y-pred", "p", "--epsilon", "1")
LABELS = ("--metric", "private_f1_score", "--y-true", "y", "--y-pred", "p", "--epsilon", "1")
OF_ACCURACY = ("--metric", "private_accuracy_score", *MAE[2:])
WORDS = (*LABELS, "--option", 'labels=["a","b"]', "--option", "pos_label=b")
GOOD = "y,p,other\n" + "1,0,x\n" * 3000

BAD_ROWS = {
    "text": (MAE, f"1,{SECRET},x\n", "column 'p' holds something that is no number"),
    "nothing": (MAE, f"1,,{SECRET}\n", "column 'p': a value is missing"),
    "nan": (MAE, f"nan,1,{SECRET}\n", "column 'y': a value is missing"),
    "NA": (MAE, f"1,NA,{SECRET}\n", "column 'p': a value is missing"),
    "missing label": (OF_ACCURACY, f"N/A,N/A,{SECRET}\n", "column 'y': a value is missing"),
    "infinite": (MAE, f"1e999,1,{SECRET}\n", "contains infinity or a value too large"),
    "blank line": (MAE, "\n", "column 'y': a value is missing"),
    "too few cells": (MAE, f"{SECRET},1\n", "as many cells"),
    "too many cells": (MAE, f"1,1,x,{SECRET}\n", "as many cells"),
    "no UTF-8": (MAE, b"1,\xff" + SECRET.encode() + b",x\n", "can't be read"),
    "unclosed quotation": (MAE, f'1,1,"{SECRET}\n', "can't be read"),
    "in the middle of a row": (MAE, "987,1", "as many cells"),
    "unknown label": (LABELS, f"987,1,{SECRET}\n", "a label that is not in labels"),
    "text for numbers": (LABELS, f"{SECRET},1,x\n", "for labels that are text, pass --option labels"),
    "probability": (LABELS, f"1,0.987,{SECRET}\n", "a label that is not in labels"),
    "unknown word": (WORDS, f"a,{SECRET},x\n", "a label that is not in labels"),
    "missing word": (WORDS, "a,,x\n", "column 'p': a value is missing"),
    "missing person": ((*MAE, "--groups", "other"), "1,1,\n", "column 'other': a value is missing"),
    "blank person": ((*MAE, "--groups", "other"), "1,1, \n", "column 'other': a value is missing"),
    "NaN person": ((*MAE, "--groups", "other"), "1,1,NaN\n", "column 'other': a value is missing"),
}  # fmt: skip


def test_what_must_not_be_concluded_is_told_beside_the_number(tmp_path, capsys):
    path = written(tmp_path, {"y": [0, 1] * 50, "s": [0.4, 0.6] * 50})
    asked = ("--metric", "private_expected_calibration_error", "--y-true", "y", "--y-pred", "s")
    shown = run(capsys, path, *asked, "--epsilon", 0.2)
    assert "Mostly noise: limits of its noise are " in shown
    assert "Mostly noise" not in run(capsys, path, *asked, "--epsilon", 5)


@pytest.mark.parametrize("case", BAD_ROWS)
def test_a_bad_row_spends_nothing_and_is_not_shown(case, tmp_path, capsys):
    argv, row, message = BAD_ROWS[case]
    good = GOOD.replace("1,0,x", "a,b,x") if argv is WORDS else GOOD
    path, budget = tmp_path / "data.csv", tmp_path / "budget.sqlite"
    row = row if isinstance(row, bytes) else row.encode()
    rest = b"" if case.startswith("in the middle") else good.partition("\n")[2].encode()
    path.write_bytes(good.encode() + row + rest)
    shown = run(capsys, path, *argv, "--budget", budget, "--total", 5, code=1)
    assert message in shown
    assert SECRET not in shown.replace(str(tmp_path), "")
    assert "987" not in shown.replace(str(tmp_path), "")
    assert "300" not in shown.replace(str(tmp_path), "")  # the row
    assert PrivacyAccountant(5, budget).history == ()
    path.write_bytes(good.encode())  # and the row was all that was wrong
    run(capsys, path, *argv, "--budget", budget)
    assert len(PrivacyAccountant(5, budget).history) == 1


def is_whole(text):
    """Return whether a file holds rows of two numbers, as far as can be seen."""
    rows = [*csv.reader(io.StringIO(text))][1:]
    return (
        bool(rows)
        and text.count('"') % 2 == 0
        and all(len(row) == 2 and all(map(number, row)) for row in rows)
    )


def number(cell):
    return re.fullmatch(r"[0-9]+\.?[0-9]*(e-?[0-9]+)?", cell)


def test_no_file_that_was_cut_off_within_a_row_is_read(tmp_path, capsys):
    """Within a number, or after the end of a row, nobody can tell: the last line break may be left out."""
    whole = '"y",p\n' + '1,0.25\n"2",1e-1\r\n' * 2
    path, budget = tmp_path / "data.csv", tmp_path / "budget.sqlite"
    PrivacyAccountant(50, budget)
    read = []
    for end in range(len(whole)):
        path.write_text(whole[:end], newline="")
        read.append(main(["score", str(path), *MAE, "--budget", str(budget)]) == 0)
        assert read[-1] == is_whole(whole[:end])
    capsys.readouterr()
    assert len(PrivacyAccountant(50, budget).history) == sum(read) > 10


def test_a_file_that_was_cut_off_within_quotation_marks_is_not_read(tmp_path, capsys):
    path = tmp_path / "data.csv"
    path.write_text('y,p,note\n1,2,"said ""yes"""\n1,2,"two\nlines"\n')
    run(capsys, path, *MAE)
    path.write_text('y,p,note\n1,2,"said ""yes"""\n1,2,"two\n')
    assert "odd number of quotation marks" in run(capsys, path, *MAE, code=1)


def test_no_parquet_file_that_was_cut_off_or_damaged_is_read(tmp_path, capsys):
    y = np.arange(500.0)
    content = written(tmp_path, {"y": y, "p": y + 1}, "parquet").read_bytes()
    path, budget = tmp_path / "cut.parquet", tmp_path / "budget.sqlite"
    PrivacyAccountant(50, budget)
    for end in [*range(0, len(content), 501), len(content) - 1]:
        path.write_bytes(content[:end])
        assert main(["score", str(path), *MAE, "--budget", str(budget)]) == 1
    assert capsys.readouterr().err.count("can't be read") == len(range(0, len(content), 501)) + 1
    assert PrivacyAccountant(50, budget).history == ()


def test_columns_and_their_types_are_looked_at_first(tmp_path, capsys):
    y = np.arange(50.0)
    text = [SECRET] * 50
    path = written(tmp_path, {"y": y, "p": text, "day": pd.date_range("2020-01-01", periods=50)}, "parquet")
    budget = tmp_path / "budget.sqlite"
    new = ("--budget", budget, "--total", 1)
    for argv, message in (
        (MAE, "column 'p' holds text: numbers are needed"),
        ((*MAE[:-3], "day", "--epsilon", "1"), "column 'day' holds timestamp"),
        ((*MAE[:-3], "z", "--epsilon", "1"), "no column 'z'; it has 'y', 'p', 'day'."),
        ((*MAE[:-3], "dya", "--epsilon", "1"), "'day'. Did you mean 'day'?"),
    ):
        assert message in run(capsys, path, *argv, *new, code=2)
    wide = tmp_path / "wide.parquet"
    pd.DataFrame({f"column {i}": [1.0] for i in range(5000)}).to_parquet(wide)
    assert len(run(capsys, wide, *MAE, *new, code=2)) < 700
    assert not budget.exists()


def test_missing_values_of_parquet(tmp_path, capsys):
    y = pd.array([1, None, 0], dtype="Int64")
    path = written(tmp_path, {"y": y, "p": [1, 1, 1]}, "parquet")
    assert "column 'y': a value is missing" in run(capsys, path, *MAE, code=1)
    categories = pd.Categorical(["a", "b", "a"])
    path = written(tmp_path, {"y": categories, "p": ["a", "b", "b"]}, "parquet")
    assert "private_f1_score = " in run(capsys, path, *WORDS)


def test_files_that_cannot_be_read(tmp_path, capsys):
    (tmp_path / "data.xlsx").write_text("")
    assert ".csv, .parquet" in run(capsys, tmp_path / "data.xlsx", *MAE, code=2)
    (tmp_path / "empty.csv").write_text("y,p\n")
    assert "Found array with 0 sample(s)" in run(capsys, tmp_path / "empty.csv", *MAE, code=1)


@pytest.mark.parametrize("package", ["pyarrow", "tqdm"])
def test_a_missing_package_is_named_with_its_extra(package, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    shown = run(capsys, tmp_path / "data.csv", *MAE, code=2)
    assert f"{package} is needed" in shown
    assert 'pip install "dp_metrics[cli]"' in shown


def test_budgets(tmp_path, capsys):
    path, budget = tmp_path / "data.csv", tmp_path / "b.sqlite"
    path.write_text(GOOD)
    shown = run(capsys, path, *MAE[:-1], "4", "--budget", budget, "--total", 3, code=1)
    assert "epsilon=4.0 was asked for" in shown
    assert not budget.exists()  # no budget is made that can't pay
    shown = run(capsys, path, *MAE, "--budget", budget, "--total", 2.5, "--spend-name", "first")
    assert "(epsilon 1, 3,000 records, replace one); epsilon left 1.5\n" in shown
    assert "was created with a total of 2.5, not 3.0" in run(
        capsys, path, *MAE, "--budget", budget, "--total", 3, code=1
    )
    shown = json.loads(run(capsys, path, *MAE, "--budget", budget, "--json"))
    assert shown["budget"] == {"path": str(budget), "total": 2.5, "spent": 2.0, "remaining": 0.5}
    refused = run(capsys, path, *MAE, "--budget", budget, code=1)
    assert "only 0.5 remains" in refused
    other = run(
        capsys, path, *MAE[:-1], "0.1", "--budget", budget, "--neighboring", "add_or_remove_one", code=1
    )
    assert "kept under neighboring='replace_one'" in other
    assert [s.spend_name for s in PrivacyAccountant(2.5, budget).history] == ["first", "private_mae"]
    other = tmp_path / "text"
    other.write_text("not a budget")
    assert "is not a budget file" in run(capsys, path, *MAE, "--budget", other, code=1)


def test_a_budget_that_is_spent_refuses_before_the_file_is_read(tmp_path, capsys, monkeypatch):
    path, budget = tmp_path / "data.csv", tmp_path / "b.sqlite"
    path.write_text(GOOD)
    PrivacyAccountant(1, budget).spend(0.5, "before")
    monkeypatch.setattr(Predictions, "chunks", lambda *args: pytest.fail("the file was read"))
    assert "only 0.5 remains" in run(capsys, path, *MAE, "--budget", budget, code=1)


@pytest.mark.parametrize("by_group", [[], ["--sensitive", "p", "--group-labels", "0", "1"]])
def test_a_name_is_bought_once_and_then_no_private_cell_is_looked_at(by_group, tmp_path, capsys):
    path, budget = tmp_path / "data.csv", tmp_path / "b.sqlite"
    path.write_text(GOOD)
    argv = [path, *MAE, *by_group, "--budget", budget, "--total", 1, "--spend-name", "mae, week 47"]
    assert main(["score", *map(str, argv)]) == 0
    first = capsys.readouterr()
    path.write_text("y,p,other\n" + f"{SECRET},,\n" * 3000)
    new_session()
    assert main(["score", *map(str, argv)]) == 0
    again = capsys.readouterr()
    assert again.out == first.out
    assert "'mae, week 47' was stored on" in again.err
    assert "records and predictions were not read" in again.err
    new_session()
    assert "another question" in run(capsys, *argv, "--option", "bounds=[0,9]", code=1)
    path.write_text(GOOD + "1,0,x\n")
    assert "number of records was 3000 and is 3001" in run(capsys, *argv, code=1)
    assert PrivacyAccountant(1, budget).spent == 1


@pytest.mark.slow
def test_a_command_that_is_given_twice_is_served_the_second_time(tmp_path):
    path, budget = tmp_path / "data.csv", tmp_path / "b.sqlite"
    path.write_text(GOOD)
    argv = [path, *MAE, "--budget", budget, "--total", 1, "--spend-name", "mae, week 47"]
    command = [sys.executable, "-m", "dp_metrics.cli.main", "score", *map(str, argv)]
    first, again = (subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(2))
    assert first.stdout == again.stdout
    assert "was stored on" not in first.stderr
    assert "'mae, week 47' was stored on" in again.stderr
    assert PrivacyAccountant(1, budget).spent == 1


@pytest.mark.parametrize("column", ["sample_weight", "groups"])
def test_weights_and_persons_of_a_file_belong_to_the_question(column, tmp_path, capsys):
    path, budget = tmp_path / "data.csv", tmp_path / "b.sqlite"
    option = f"--{column.replace('_', '-')}"
    argv = [path, *MAE, option, "w", "--budget", budget, "--total", 1, "--spend-name", "x"]
    numbers = [1, 2, 2, 1] * 50
    seen = []
    for known in (numbers, [*map(float, numbers)], numbers[1:] + numbers[:1]):
        new_session()
        path.write_text("y,p,w\n" + "".join(f"1,{len(seen)},{one}\n" for one in known))
        seen.append(main(["score", *map(str, argv)]))
    assert seen == [0, 0, 1]
    assert f"{column} has other values" in capsys.readouterr().err
    new_session()
    function = partial(dp.private_mae, epsilon=1.0, accountant=PrivacyAccountant(1, budget), spend_name="x")
    with pytest.warns(dp.StoredReleaseWarning):  # the function asks the same question
        function(np.ones(200), np.zeros(200), **{column: numbers})


FEW = ("mae, 2 outputs", "f1", "roc curve", "calibration curve", "classification report", "regression report")


@pytest.mark.parametrize(
    "name", [*FEW, *(pytest.param(name, marks=pytest.mark.slow) for name in CASES if name not in FEW)]
)
def test_everything_can_be_printed(name, tmp_path, capsys):
    case = CASES[name]
    columns, argv = columns_of(case.data(np.random.default_rng(3), 60))
    path = written(tmp_path, columns)
    argv = [path, "--metric", case.name, "--epsilon", 2, *argv, *typed_options(case.options)]
    text = run(capsys, *argv)
    assert text.startswith(case.name)
    assert "(epsilon 2, 60 records, replace one); no budget was charged\n" in text

    def refuse(constant):
        raise AssertionError(constant)

    document = json.loads(run(capsys, *argv, "--json"), parse_constant=refuse)
    assert (document["metric"], document["epsilon"], document["budget"]) == (case.name, 2.0, None)
    limits = document["noise_interval"]
    assert ("limits of its noise, with" in text) == (
        limits is not None and not isinstance(limits["lower"], list)
    )


def test_what_is_printed_for_groups(tmp_path, capsys):
    n = 4000
    columns = {"y": [1, 0] * (n // 2), "p": [1, 0] * (n // 2), "sex": ["f", "m", "m", "f"] * (n // 4)}
    path = written(tmp_path, columns)
    groups = [*LABELS, "--sensitive", "sex", "--group-labels", "f", "m", "x"]
    lines = run(capsys, path, *groups).splitlines()
    assert lines[0] == "private_f1_score by group (epsilon 1, replace one); no budget was charged"
    assert [line.split()[0] for line in lines[1:]] == ["overall", "f", "m", "x"]
    assert all("(about" in line for line in lines[2:])
    document = json.loads(run(capsys, path, *groups, "--json"))
    assert [one["group"] for one in document["by_group"]] == ["f", "m", "x"]
    assert document["overall"] > 0.9


def test_labels_that_the_terminal_cannot_show_do_not_lose_a_release(tmp_path, monkeypatch):
    path = written(tmp_path, {"y": [1, 0] * 500, "p": [1, 0] * 500, "sex": ["f\u00e9", "m"] * 500})
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
    monkeypatch.setattr("sys.stdout", out)
    assert main(["score", str(path), *LABELS, "--sensitive", "sex", "--group-labels", "f\u00e9", "m"]) == 0
    out.flush()
    assert b"f\\xe9" in out.buffer.getvalue()


def test_limits_are_rounded_away_from_the_value():
    from decimal import ROUND_CEILING, ROUND_FLOOR

    from dp_metrics.cli._output import _outwards

    assert _outwards(0.1234567, ROUND_FLOOR) == "0.123456"
    assert _outwards(0.1234561, ROUND_CEILING) == "0.123457"
    assert _outwards(float("inf"), ROUND_CEILING) == "inf"


def test_a_warning_is_one_line_and_tells_public_things(tmp_path, capsys):
    path = tmp_path / "data.csv"
    path.write_text("y,p\n" + "1,0\n" * 20)
    assert main(["score", str(path), *MAE]) == 0
    shown = capsys.readouterr()
    assert shown.err.startswith("dp-metrics: warning: private_mae: n * epsilon is 20 for one number")
    assert shown.err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_million_rows_in_the_memory_of_a_few_chunks(tmp_path, monkeypatch, kind, capsys):
    monkeypatch.undo()  # chunks of the usual size
    import pyarrow as pa

    rng = np.random.default_rng(0)
    peaks = []
    for n in (1_000_000, 2_000_000):
        y = rng.normal(size=n)
        columns = {"y": y, "p": y + rng.normal(size=n), "other": rng.integers(0, 10**6, n)}
        path = written(tmp_path, columns, kind)
        del y, columns
        before = pa.total_allocated_bytes()
        tracemalloc.start()
        assert main(["score", str(path), *MAE]) == 0
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert pa.total_allocated_bytes() - before < 1 << 20
        assert f"{n:,} records" in capsys.readouterr().out
    # the CSV file has 45 and 90 MB, of which the reader holds at most 32 blocks
    assert peaks[1] < {"csv": 60e6, "parquet": 5e6}[kind]
    assert peaks[1] < 1.5 * peaks[0]  # of twice as many rows
