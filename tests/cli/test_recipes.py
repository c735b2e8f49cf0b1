"""Recipes: a folder for output checkers, predictions as MEDS has them, and a metrics container."""

import hashlib
import json
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import load_script

import dp_metrics as dp
from dp_metrics.page.page import PrivateEvaluation

RECIPES = Path(__file__).parents[2] / "docs" / "recipes"
RNG = np.random.default_rng(0)
SUBJECTS = np.repeat(np.arange(1500), RNG.integers(1, 4, 1500)) * 17 + 100_000
SICK = RNG.random(SUBJECTS.size) < 0.3
RISK = 1 / (1 + np.exp(-RNG.normal(size=SUBJECTS.size) - 2 * SICK + 1))
MEDS = pd.DataFrame(
    {
        "subject_id": SUBJECTS,
        "prediction_time": pd.Timestamp("2025-01-01") + pd.to_timedelta(np.arange(SUBJECTS.size), "h"),
        "boolean_value": SICK,
        "predicted_boolean_value": RISK > 0.6,
        "predicted_boolean_probability": RISK,
    }
)


@pytest.fixture(scope="module")
def page():
    sex = np.where(np.arange(SUBJECTS.size) % 2 == 0, "f", "m")
    return dp.private_evaluate(
        SICK.astype(int), y_score=RISK, epsilon=3.0, sensitive_features=sex, group_labels=["f", "m"],
        groups=SUBJECTS, title="Sepsis",
    )  # fmt: skip


def test_a_folder_holds_the_page_in_plain_files_with_their_checksums(page, tmp_path):
    folder = tmp_path / "release"
    written = page.to_folder(folder)
    assert {*written} == {*folder.iterdir()}
    assert {path.suffix for path in written} == {".txt", ".csv", ".md", ".json", ".png", ""}
    sums = dict(line.split("  ")[::-1] for line in (folder / "SHA256SUMS").read_text().splitlines())
    assert sums == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in written if path.suffix
    }
    numbers = pd.read_csv(folder / "numbers.csv", index_col="name")
    assert numbers["value"].to_dict() == pytest.approx({name: one.value for name, one in page.items()})
    assert not [name for name in numbers.columns if re.search("subject|patient|person|id$", name)]
    assert repr(PrivateEvaluation.from_json((folder / "page.json").read_text())) == repr(page)
    assert (folder / "page.md").read_text().startswith("# Sepsis")
    pictures = [path.read_bytes() for path in written if path.suffix == ".png"]
    assert len(pictures) >= 4
    assert all(picture.startswith(b"\x89PNG") for picture in pictures)
    about = " ".join((folder / "README.txt").read_text().split())
    assert "Sepsis" in about
    assert "Rules for small counts are made for exact ones" in about
    assert "epsilon = 3" in about


def test_a_folder_that_holds_something_is_left_alone(page, tmp_path):
    (tmp_path / "mine").write_text("")
    for path in (tmp_path, tmp_path / "mine"):
        with pytest.raises(FileExistsError, match="not an empty folder"):
            page.to_folder(path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.fixture
def meds(run, tmp_path):
    """Return what evaluates predictions in the format of MEDS, and returns the page or the message."""

    def meds(frame, *more, code=0, kind="parquet"):
        path, output = tmp_path / f"predictions.{kind}", tmp_path / "page.json"
        frame.to_parquet(path) if kind == "parquet" else frame.to_csv(path, index=False)
        asked = (path, "--format", "meds", "--epsilon", 3, "--output", output, *more)
        shown = run("evaluate", *asked, code=code)
        return shown.err if code else json.loads(output.read_text())

    return meds


def value_of(page, name):
    return next(one["value"] for one in page["numbers"] if one["name"] == name)


def test_predictions_in_the_format_of_meds_make_a_page_of_persons(meds, tmp_path):
    folder = tmp_path / "release"
    found = meds(MEDS, "--max-records", 2, "--folder", folder, "--equal-groups", "true")
    assert found["header"]["Protected"] == "each person, with all records: 2 at most"
    assert (folder / "SHA256SUMS").exists()
    kept = MEDS.groupby("subject_id").head(2)
    exact = kept[kept["boolean_value"]]["predicted_boolean_value"].mean()
    assert value_of(found, "recall") == pytest.approx(exact, abs=0.15)
    assert value_of(found, "recall, each person once") == pytest.approx(exact, abs=0.15)
    assert value_of(found, "roc auc") > 0.8


def test_a_file_of_meds_may_lack_one_of_the_predictions_and_a_named_column_is_taken_instead(meds):
    meds(MEDS.drop(columns="predicted_boolean_value"))
    assert value_of(meds(MEDS, kind="csv"), "recall") == pytest.approx(
        value_of(meds(MEDS), "recall"), abs=0.2
    )
    meds(MEDS.drop(columns="predicted_boolean_probability"), "--labels", 0, 1)
    found = meds(MEDS.assign(predicted_boolean_value=None, other=1 - RISK), "--y-score", "other")
    assert value_of(found, "roc auc") < 0.5


def test_what_is_wrong_with_a_folder_or_a_format_costs_nothing(meds, refused, tmp_path):
    budget = tmp_path / "budget.db"
    told = meds(MEDS, "--folder", tmp_path, "--budget", budget, "--total", 5, code=2)
    assert "not an empty folder" in told
    (tmp_path / "x.csv").write_text("a\n1\n")
    refused("evaluate", tmp_path / "x.csv", "--format", "meds", "--epsilon", 1, code=2)
    (tmp_path / "x.parquet").write_text("none")
    refused("evaluate", tmp_path / "x.parquet", "--format", "meds", "--epsilon", 1)
    assert not budget.exists()


def test_a_metrics_container_reads_mounted_folders_and_writes_results(tmp_path, monkeypatch):
    program = load_script(RECIPES / "medperf" / "metrics.py")
    volumes = {name: tmp_path / name for name in ("predictions", "labels")}
    ids = np.arange(SUBJECTS.size)
    for at, rows in enumerate(np.array_split(ids, 2)):
        for name, columns in (
            ("predictions", {"score": RISK[rows]}),
            ("labels", {"label": SICK[rows].astype(int), "patient": SUBJECTS[rows]}),
        ):
            volumes[name].mkdir(exist_ok=True)
            pd.DataFrame({"id": rows, **columns}).to_csv(volumes[name] / f"{at}.csv", index=False)
    # or one odd id in a file would make another person of each that is in both
    assert {*map(type, program.read_folder(volumes["labels"])["patient"])} == {str}
    results = tmp_path / "results.yaml"
    words = [f"--{name}={path}" for name, path in volumes.items()]
    words += [f"--parameters_file={RECIPES / 'medperf' / 'parameters_file.yaml'}", f"--output_path={results}"]
    monkeypatch.setattr(sys, "argv", ["metrics.py", *words])
    program.main()
    found = json.loads(results.read_text())
    assert found["epsilon"] == 1.0
    assert {"recall", "roc auc"} <= {one["name"] for one in found["numbers"]}
    (volumes["labels"] / "2.csv").write_text("id,label,patient\n0,1,5\n")
    with pytest.raises(SystemExit, match="same ids"):
        program.main()


def test_the_container_is_told_where_medperf_mounts_what_the_program_reads():
    told = (RECIPES / "medperf" / "container_config.yaml").read_text()
    program = (RECIPES / "medperf" / "metrics.py").read_text()
    named = re.findall(r"(\w+): \{mount_path: /mlcommons/volumes/(\S+),", told)
    assert [name for name, _ in named] == ["predictions", "labels", "parameters_file", "output_path"]
    for name, path in named:
        default = " / ".join(["volumes", *(f'"{part}"' for part in path.split("/"))])
        assert f'"--{name}", type=Path, default={default}' in program


@pytest.mark.filterwarnings("ignore::dp_metrics.exceptions.SeededReleaseWarning")
def test_a_folder_of_a_seeded_page_promises_nothing(tmp_path):
    page = dp.private_evaluate(SICK.astype(int), SICK.astype(int), labels=[0, 1], epsilon=3.0, random_state=1)
    page.to_folder(tmp_path / "seeded")
    about = (tmp_path / "seeded" / "README.txt").read_text()
    assert "NOT private" in about
    assert "epsilon allows" not in about
