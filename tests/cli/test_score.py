"""`dp-metrics score`: the numbers of the functions, from files, with the free limits beside them."""

import io
import itertools
import json
import re
import tracemalloc
from functools import partial
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from cases import CASES, KINDS, cases_where
from doors import columns_of, typed_options
from helpers import kind_of, loop_over, seeded, system_of
from pyarrow.csv import write_csv
from pyarrow.parquet import write_table

import dp_metrics as dp
from dp_metrics.cli import files
from dp_metrics.cli.files import Predictions
from dp_metrics.cli.main import main
from dp_metrics.mechanisms import MECHANISMS
from dp_metrics.metrics import METRICS
from dp_metrics.release.released import Number
from dp_metrics.release.result import Result

OF_LABELS = ("--y-true", "y", "--y-pred", "a", "--epsilon", "1")
ACCURACY = ("score", "data.csv", "--metric", "accuracy", *OF_LABELS)
BY_SEX = ("--sensitive", "sex", "--group-labels", "m", "f")
SHORT = "classification report", "mae, 2 outputs"  # which print more than a number


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(files, "_CSV_BLOCK", 1 << 12)
    monkeypatch.setattr(files, "_PARQUET_ROWS", 70)


@pytest.mark.gate
@cases_where(lambda case: True, {*KINDS, *SHORT})
@pytest.mark.usefixtures("small_chunks")
def test_a_file_tells_what_the_function_gives(case, write, run, same):
    data = case.data(np.random.default_rng(3), 200)
    columns, named = columns_of(data)
    relations = {"replace_one"} if "multi_class" in case.options else {"replace_one", "add_or_remove_one"}
    for kind, relation in itertools.product(("csv", "parquet"), sorted(relations)):
        settings = {"neighboring": relation} if "neighboring" in case.parameters else {}
        words = [word for key, value in settings.items() for word in (f"--{key}", value)]
        path, options = write(f"data.{kind}", columns), {**case.options, **settings}
        argv = ["score", path, "--metric", case.name, "--epsilon", 2, *named, *typed_options(case.options)]
        release = partial(dp.with_result(case.function), *data, epsilon=2, **options)
        shown, result = same([*argv, *words], release)
        assert (shown["metric"], shown["epsilon"], shown["budget"]) == (case.name, 2.0, None)
        text = run(*argv, *words).out
        assert text.startswith(case.name)
        if result.n is not None:
            assert "(epsilon 2, 200 records, replace one); no budget was charged\n" in text
        assert ("limits of the exact value" in text) == (shown["noise_interval"] is not None)


UNLIMITED = [("mse", name, {}, relation) for name in ("adaptive", "hazard", "above_threshold")
             for relation in ("replace_one", "add_or_remove_one")]  # fmt: skip
LIMITED = [("mae", name, {"bounds": (0, 4)}, "replace_one") for name in MECHANISMS]


@loop_over(("metric", "mechanism", "options", "relation"), UNLIMITED + LIMITED)
@loop_over("epsilon", [1.0, 0.02])  # the second needs more than the usual capacity
def test_mechanisms_give_the_bits_of_the_function(metric, mechanism, options, relation, epsilon, write, same):
    y = np.abs(np.random.default_rng(5).standard_t(3, 20_000 if epsilon < 1 else 3000))
    path = write("data.parquet", {"y": y, "a": np.zeros_like(y)})
    settings = {"mechanism": mechanism, "neighboring": relation}
    words = ["--mechanism", mechanism, "--neighboring", relation, *typed_options(options)]
    argv = ["score", path, "--metric", metric, *OF_LABELS[:4], "--epsilon", epsilon, *words]
    function = dp.with_result(METRICS[f"private_{metric}"].function)
    same(argv, lambda: function(y, np.zeros_like(y), epsilon=epsilon, **settings, **options))


@loop_over("name", ["mse", "f1", "roc curve", "top-k", "variance", "roc auc", "median error"])
def test_what_a_summary_knows_is_never_held_whole(name, write, run):
    case = CASES[name]
    columns, named = columns_of(case.data(np.random.default_rng(3), 200))
    path = write("data.csv", columns)
    with mock.patch.object(Predictions, "whole", side_effect=Predictions.whole, autospec=True) as whole:
        run("score", path, "--metric", case.name, *named, *typed_options(case.options), "--epsilon", 1)
    assert whole.called != (kind_of(case.row) in ("mean", "confusion", "scores"))


def test_a_release_beside_its_own_limits_is_no_surprise(write, run):
    random = np.random.default_rng(0)
    columns = {
        "y": random.integers(0, 2, 3000),
        "chance": random.random(3000),
        "a": random.integers(0, 2, 3000),
    }
    path, told = write("data.csv", columns), "(The release lies outside: it usually errs to that side"
    shown = run("score", path, "--metric", "roc_auc", "--y-true", "y", "--y-score", "chance", "--epsilon", 1)
    value = float(shown.out.split()[2])
    assert value < float(shown.out.split("with probability 95 %: ")[1].split()[0])
    assert told in shown.out
    assert told not in run(*ACCURACY).out
    shown = run(*ACCURACY, "--normalize", "false", "--interval", "people", "noise").out
    assert told not in shown  # the limits among people are of the share
    assert "among all people like these, with confidence 95 %: 0." in shown


@pytest.fixture(params=["csv", "parquet"])
def file(request, people):
    return f"data.{request.param}"


def test_what_is_printed_for_groups(file, run):
    asked = ("score", file, *ACCURACY[2:], *BY_SEX, "x")
    for more, kinds in (((), ["noise"]), (("--interval", "people", "--confidence", "0.9"), ["people"])):
        lines = run(*asked, *more).out.splitlines()
        assert lines[0] == "private_accuracy_score by group (epsilon 1, replace one); no budget was charged"
        assert lines[1].split() == ["value", *kinds]
        of_groups = [f"accuracy in '{group}'" for group in "mfx"]
        names = ["accuracy", *of_groups, "accuracy difference", "accuracy ratio"]
        assert [line.strip().partition("  ")[0] for line in lines[2:8]] == names
        assert all(" to " in line for line in lines[2:8])
        assert all(re.search(r"rests on about [\d,]+ records$", line) for line in lines[3:5])
        assert lines[5].endswith("(too noisy to tell)")
    assert lines[8] == "people: limits among all people like these, with confidence 90 %"


def test_limits_of_groups_that_are_not_proved_are_named(file, run):
    of_scores = ("score", file, "--metric", "roc_auc", "--y-true", "y", "--y-score", "p", "--epsilon", "1")
    said = "approximate: the confidence was measured on simulated and real data, not proved."
    shown = run(*of_scores, *BY_SEX, "--interval", "people")
    assert re.search(rf"\nroc auc in 'm', roc auc in 'f', .*: {said}", shown.out)
    assert shown.err == ""  # the area of all records has no limits, which nobody can do anything about
    recall = ("score", file, "--metric", "recall", *OF_LABELS, *BY_SEX)
    assert said not in run(*recall).out
    lines = run(*recall, "--interval", "people").out.splitlines()
    assert lines[-1] == f"recall difference: {said}"


def test_groups_of_persons_who_count_once_are_told_in_persons(file, run):
    asked = ("score", file, "--metric", "recall", *OF_LABELS, *BY_SEX, "--groups", "person")
    for more, counted in (((), "records"), (("--equal-groups",), "persons")):
        lines = run(*asked, *more).out.splitlines()
        assert [line.split()[-1] for line in lines[3:5]] == [counted] * 2


def test_several_numbers_by_group_are_printed_as_they_are(file, people, run, same):
    matrix = ("score", file, *OF_LABELS, "--metric", "confusion_matrix", *BY_SEX)
    shown, frame = same(matrix, lambda: dp.PrivateMetricFrame(
        metrics="confusion_matrix", y_true=people.y, y_pred=people.a, group_labels=["m", "f"], epsilon=1.0,
        sensitive_features=people.sex,
    ))  # fmt: skip
    assert shown["overall"] == frame.overall.tolist()
    assert shown["by_group"] == [
        {"group": key, "value": value.tolist()} for key, value in frame.by_group.items()
    ]
    text = run(*matrix, "--interval", "people")
    assert text.out.splitlines()[1].startswith("PrivateMetricFrame(overall=array([[")
    assert text.err.endswith("no limits of the kind 'people': the metric is several numbers\n")
    curve = run(
        "score", file, "--metric", "roc_curve", "--y-true", "y", "--y-score", "p", "--epsilon", 1, *BY_SEX
    )
    assert "observed over expected in 'm'" in curve.out
    assert "\nPrivateMetricFrame(overall=RocCurve(" in curve.out


def test_limits_are_those_of_the_result_and_cost_nothing(file, people, run, same):
    kinds = ("people", "noise", "sure")
    asked = ("score", file, *ACCURACY[2:], "--confidence", "0.8", "--interval", *kinds)
    release = partial(dp.with_result(dp.private_accuracy_score), people.y, people.a, epsilon=1)
    shown, result = same(asked, release)
    for name, interval in (
        ("noise_interval", result.noise_interval(0.8)),
        ("population_interval", result.population_interval(0.8)),
        ("sure_population_interval", result.population_interval(0.8, sure=True)),
    ):
        found = shown[name]
        assert (found["lower"], found["upper"], found["confidence"]) == (*interval, 0.8)
    with system_of(seeded()):
        lines = run(*asked).out.splitlines()
    among_all = "limits among all people like these, with confidence 80 %"
    assert [line.split(":")[0] for line in lines[1:]] == [
        among_all, "limits of the exact value for these records, with probability 80 %",
        f"sure {among_all}",
    ]  # fmt: skip
    low, high = (float(end) for end in lines[1].partition(": ")[2].split(" to "))
    lower, upper = result.population_interval(0.8)
    assert lower - 1e-5 < low <= lower < upper <= high < upper + 1e-5


def test_limits_of_several_numbers_are_printed_without_being_asked_for(file, run):
    several = ("score", file, *OF_LABELS, "--metric")
    recalls = run(*several, "recall", "--average", "null").out.splitlines()
    assert recalls[-1].startswith(
        "limits of the exact value for these records, with probability 95 %, all at"
    )
    assert re.search(r" once: \[0\.[0-9, .]+\] to \[0\.[0-9, .]+\]$", recalls[-1])
    assert " once: [" in run(*several, "recall", "--average", "null", "--interval", "people").out
    matrix = run(*several, "confusion_matrix").out.splitlines()
    assert matrix[3].endswith(" with probability 95 %, all at once:")
    assert " to [[" in "".join(matrix[4:])


def test_limits_that_there_are_none_of_or_that_fail_lose_no_number(file, run, monkeypatch):
    paid = ("--budget", "b.sqlite", "--total", "1", "--spend-name", "mse")
    mse = ("score", file, "--metric", "mse", "--y-true", "y", "--y-pred", "q", "--epsilon", "1", *paid)
    shown = run(*mse, "--interval", "people")
    assert shown.out.startswith("private_mse = ")
    assert shown.err.startswith("dp-metrics: warning: no limits of the kind 'people': private_mse tells no")
    assert shown.err.count("\n") == 1
    document = json.loads(run(*mse, "--interval", "noise", "people", "--json").out)  # bought before
    assert document["population_interval"] is None
    assert document["noise_interval"]["lower"] <= document["value"]
    assert document["budget"]["spent"] == 1.0
    for kind in (Result, Number):
        monkeypatch.setattr(kind, "population_interval", lambda *args, **kwargs: {}["unexpected"])
    for more in ((), BY_SEX):
        accuracy = ("score", file, *ACCURACY[2:], *more, "--interval", "people")
        shown = run(*accuracy)
        assert shown.out.startswith("private_accuracy_score ")
        assert shown.err.count("no limits of the kind 'people'") == shown.err.count("\n") == 1
        assert json.loads(run(*accuracy, "--json").out)["metric"] == "private_accuracy_score"


def test_what_must_not_be_concluded_is_told_beside_the_number(write, run):
    path = write("data.csv", {"y": [0, 1] * 50, "a": [0.4, 0.6] * 50})
    asked = ("score", path, "--metric", "expected_calibration_error", *OF_LABELS[:4], "--epsilon")
    assert "Mostly noise: limits of its noise are " in run(*asked, 0.2).out
    assert "Mostly noise" not in run(*asked, 5).out
    shown = run("score", path, "--metric", "mae", *OF_LABELS[:4], "--epsilon", 0.2)
    assert shown.err.startswith("dp-metrics: warning: private_mae: n * epsilon is 20 for one number")
    assert shown.err.count("\n") == 1


def test_what_must_not_be_concluded_of_groups_is_told_behind_their_names(file, run):
    mostly_noise = run("score", file, "--metric", "recall", *OF_LABELS[:-1], 0.01, *BY_SEX).out
    assert "\nrecall in 'f': mostly noise: this rests on about " in mostly_noise
    assert "usually too low" not in mostly_noise
    of_errors = run("score", file, "--metric", "mse", *OF_LABELS, *BY_SEX).out
    assert re.search("\nmse[a-z, ']* in 'm'.*: usually too low", of_errors)


def test_names_and_labels_that_the_terminal_cannot_show_lose_no_release(write, monkeypatch):
    path = write("data.csv", {"y": [1, 0] * 500, "a": [1, 0] * 500, "sex": ["f\u00e9", "m"] * 500})
    dp.PrivacyAccountant(1, "b.sqlite").spend(0.5, "caf\u00e9")
    for argv, shown in (
        (["score", path, *ACCURACY[2:], *BY_SEX[:2], "--group-labels", "f\u00e9", "m"], b"f\\xe9"),
        (["budget", "b.sqlite"], b"caf\\xe9"),
    ):
        out = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
        monkeypatch.setattr("sys.stdout", out)
        assert main(argv) == 0
        out.flush()
        assert shown in out.buffer.getvalue()


def test_columns_are_matched_by_name_or_added_by_a_repeated_option(write, run, refused):
    truth, yes = np.array(["no", "yes", "yes", "no", "yes"] * 40), np.tile([0.1, 0.8, 0.7, 0.3, 0.9], 40)
    write("data.csv", {"truth": truth, "no": 1 - yes, "yes": yes, "p0": 1 - yes, "p1": yes})
    of_file = ("score", "data.csv", "--metric", "log_loss", "--epsilon", "1e6")
    asked = (*of_file, "--y-true", "truth", "--y-proba")
    sorted_labels, labels = (("--labels", f"{one}") for one in ('["no", "yes"]', '["yes", "no"]'))
    for columns in ("yes", "no"), ("no", "yes"):
        assert "private_log_loss = 0.229" in run(*asked, *columns, *labels).out
    assert "private_log_loss = 0.229" in run(*asked, "p0", "--y-proba", "p1", *sorted_labels).out
    assert "is not sorted" in refused(*asked, "p0", "p1", *labels, code=2)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_million_rows_in_the_memory_of_a_few_chunks(run, kind):
    rng, peaks, path = np.random.default_rng(0), [], f"data.{kind}"
    for n in (1_000_000, 2_000_000):
        y = rng.normal(size=n)
        columns = {"y": y, "a": y + rng.normal(size=n), "other": rng.integers(0, 10**6, n)}
        # ten times as fast as `write`
        {"csv": write_csv, "parquet": write_table}[kind](pa.table(columns), path)
        before = pa.total_allocated_bytes()
        tracemalloc.start()
        assert f"{n:,} records" in run("score", path, "--metric", "mae", *OF_LABELS).out
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert pa.total_allocated_bytes() - before < 1 << 20
    # the CSV file has 45 and 90 MB, of which the reader holds at most 32 blocks
    assert peaks[1] < {"csv": 60e6, "parquet": 5e6}[kind]
    assert peaks[1] < 1.5 * peaks[0]  # of twice as many rows
