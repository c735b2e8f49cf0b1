"""Data sets: what is loaded, and one clear line for everything that can be wrong with a file."""

import dataclasses
import gzip
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from dp_metrics._packages import MissingExtraError, import_extra
from dp_metrics.evaluation.datasets import (
    DATASETS,
    EMBEDDED,
    TABULAR,
    load_dataset,
    read_column,
)
from dp_metrics.evaluation.sources import DATA_VARIABLE, DatasetError

FILES = [name for name in DATASETS if name not in EMBEDDED]
IMAGES = ["mnist", "cifar10"]

DIAMONDS = "carat,cut,price\n0.2,Ideal,300\n0.3,Good [x] <1,400\n0.4,Ideal,500\n"


def write(folder: Path, name: str, text: str, monkeypatch: pytest.MonkeyPatch, rows: int = 3) -> Path:
    """Write a small file in place of a real one and expect `rows` rows in it."""
    small = dataclasses.replace(DATASETS[name], rows=rows)
    monkeypatch.setitem(DATASETS, name, small)
    path = folder / str(small.file_name)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    return path


def test_table_is_complete():
    assert EMBEDDED == ("synthetic", "digits")
    assert TABULAR == ("diamonds", "abalone", "bike", "adult", "diabetes")
    assert [*TABULAR, *IMAGES] == FILES
    for name, dataset in DATASETS.items():
        assert dataset.name == name
        assert dataset.rows > 0
        assert dataset.source
        assert dataset.licence


def test_synthetic_is_fixed_and_heavy_tailed():
    x, y = load_dataset("synthetic")
    again = load_dataset("synthetic")[1]
    assert x.shape == (20_000, 8)
    assert y.shape == (20_000,)
    assert np.array_equal(y, again)
    assert DATASETS["synthetic"].bounds is None
    noise = y - (10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 8 * x[:, 2] ** 2 + 5 * x[:, 3] + 3 * x[:, 4])
    assert np.mean(noise**4) / np.mean(noise**2) ** 2 > 4  # 3 for a normal law


def test_digits():
    x, y = load_dataset("digits")
    assert x.shape == (1797, 64)
    assert set(y.tolist()) == set(range(10))


def test_reads_a_file(tmp_path, monkeypatch):
    write(tmp_path, "diamonds", DIAMONDS, monkeypatch)
    features, target = load_dataset("diamonds", tmp_path)
    assert target.tolist() == [300.0, 400.0, 500.0]
    assert features.columns.tolist() == ["carat", "cut_Good (x) lt 1", "cut_Ideal"]  # safe for xgboost
    assert features.to_numpy().dtype == np.float64


def test_folder_from_the_environment(tmp_path, monkeypatch):
    write(tmp_path, "diamonds", DIAMONDS, monkeypatch)
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    assert load_dataset("diamonds")[1].size == 3


def test_abalone_target_is_an_age(tmp_path, monkeypatch):
    write(tmp_path, "abalone", "Sex,Length,Rings\nM,0.4,15\nF,0.5,7\nI,0.1,1\n", monkeypatch)
    features, age = load_dataset("abalone", tmp_path)
    assert age.tolist() == [16.5, 8.5, 2.5]
    assert features.columns.tolist() == ["Length", "Sex_F", "Sex_I", "Sex_M"]


def test_bike_leaves_out_what_gives_the_target_away(tmp_path, monkeypatch):
    text = "instant,dteday,hr,casual,registered,cnt\n1,2011-01-01,0,3,13,16\n"
    write(tmp_path, "bike", text, monkeypatch, rows=1)
    features, target = load_dataset("bike", tmp_path)
    assert features.columns.tolist() == ["hr"]
    assert target.tolist() == [16.0]


def test_adult_target_is_income_above_50k(tmp_path, monkeypatch):
    text = "age,workclass,hours-per-week,income\n39,?,40,<=50K\n50,Private,13,>50K\n"
    write(tmp_path, "adult", text, monkeypatch, rows=2)
    features, target = load_dataset("adult", tmp_path)
    assert target.tolist() == [0, 1]
    assert features.columns.tolist() == ["age", "hours-per-week", "workclass_?", "workclass_Private"]
    assert read_column("adult", "hours-per-week", tmp_path).tolist() == [40.0, 13.0]
    with pytest.raises(DatasetError, match="column workclass holds unexpected values"):
        read_column("adult", "workclass", tmp_path)


def test_column_of_the_target_is_shifted_like_the_target(tmp_path, monkeypatch):
    write(tmp_path, "abalone", "Sex,Length,Rings\nM,0.4,15\nF,0.5,7\nI,0.1,1\n", monkeypatch)
    assert read_column("abalone", "Rings", tmp_path).tolist() == [16.5, 8.5, 2.5]
    assert read_column("synthetic", "y").shape == (20_000,)


def test_without_a_file_or_network_it_says_what_to_do(monkeypatch, capsys):
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    message = r"can't be fetched from OpenML \(no network.*as diamonds.csv.gz.* --data-dir .* DP_METRICS_DATA"
    with pytest.raises(DatasetError, match=message):
        load_dataset("diamonds")
    assert "asking OpenML" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["diabetes", "cifar10"])
def test_what_openml_has_not_got(tmp_path, monkeypatch, name):
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    message = f"'{name}': there is no file .*{DATASETS[name].file_name}; get it from .* --data-dir"
    for folder in (None, tmp_path):
        with pytest.raises(DatasetError, match=message):
            load_dataset(name, folder)


def test_a_folder_that_does_not_exist(tmp_path):
    with pytest.raises(DatasetError, match=r"there is no data folder .*nowhere"):
        load_dataset("diamonds", tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("diamonds", DIAMONDS + "0.5,Ideal,600\n", "has 4 rows, expected 3"),
        ("diamonds", "carat,cut\n1,Ideal\n2,Ideal\n3,Ideal\n", "has no column price"),
        ("bike", "hr,cnt\n0,1\n1,2\n2,3\n", "has no column casual, registered, instant, dteday"),
        ("diamonds", "carat,price\n1,300\n2,\n3,500\n", "has empty cells"),
        ("diamonds", "carat,price\n1,300\n2,dear\n3,500\n", "column price holds unexpected values"),
        (
            "adult",
            "age,hours-per-week,income\n1,2,<=50K\n2,2,>50K.\n3,2,>50K\n",
            "column income holds unexpected values",
        ),
        ("diabetes", "age,diabetes\n1,0\n2,1\n3,2\n", "column diabetes holds unexpected values"),
        ("diamonds", "", "damaged or unreadable"),
        ("diamonds", "a,b\n1,2,3,4\n1,2,3,4,5\n", "damaged or unreadable"),
    ],
)
def test_wrong_contents(tmp_path, monkeypatch, name, text, message):
    write(tmp_path, name, text, monkeypatch)
    with pytest.raises(DatasetError, match=message) as caught:
        load_dataset(name, tmp_path)
    assert repr(name) in str(caught.value)


def test_damaged_gzip(tmp_path, monkeypatch):
    text = DIAMONDS + "".join(f"{i},Ideal,{i * i}\n" for i in range(1000))
    path = write(tmp_path, "diamonds", text, monkeypatch)
    whole = path.read_bytes()
    broken = bytearray(whole)
    broken[200:300] = b"\xff" * 100
    for damaged in (whole[: len(whole) // 2], b"not a gzip file", bytes(broken), gzip.compress(b"caf\xe9\n")):
        path.write_bytes(damaged)
        with pytest.raises(DatasetError, match="damaged or unreadable"):
            load_dataset("diamonds", tmp_path)


def test_missing_extra(tmp_path, monkeypatch):
    write(tmp_path, "diamonds", DIAMONDS, monkeypatch)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r'pandas .* pip install "dp_metrics\[evaluation\]"'):
        load_dataset("diamonds", tmp_path)


def test_broken_extra(tmp_path, monkeypatch):
    (tmp_path / "broken_extra_package.py").write_text("raise OSError('no libgomp')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingExtraError, match="installed but can't be imported: no libgomp"):
        import_extra("broken_extra_package")


@pytest.mark.parametrize(
    ("name", "columns", "mean", "variance"),
    [
        ("diamonds", 26, 3932.799722, 15915334.362577),
        ("abalone", 10, 11.433684, 10.392777),
        ("bike", 12, 189.463088, 32899.567931),
        ("adult", 108, 0.239282, 0.182026),
        ("diabetes", 15, 0.085, 0.077775),
    ],
)
@pytest.mark.skipif(
    not os.environ.get(DATA_VARIABLE), reason=f"set {DATA_VARIABLE} to the folder of the data"
)
def test_real_files(name, columns, mean, variance):
    features, target = load_dataset(name)
    assert features.shape == (DATASETS[name].rows, columns)
    assert target.mean() == pytest.approx(mean, abs=1e-6)
    assert target.var() == pytest.approx(variance, rel=1e-6, abs=1e-6)
    bounds = DATASETS[name].bounds
    if bounds is not None:
        assert bounds[0] <= target.min()
        assert target.max() <= bounds[1]
