"""Data sets: what is loaded, and one clear line for everything that can be wrong with a file."""

import dataclasses
import gzip
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import loop_over

from dp_metrics._packages import MissingExtraError, import_extra
from dp_metrics.evaluation.datasets import DATASETS, load_dataset, read_column
from dp_metrics.evaluation.sources import DATA_VARIABLE, DatasetError

DIAMONDS = "carat,cut,price\n0.2,Ideal,300\n0.3,Good [x] <1,400\n0.4,Ideal,500\n"


def write(folder: Path, name: str, text: str, monkeypatch: pytest.MonkeyPatch, rows: int = 3) -> Path:
    """Write a small file in place of a real one and expect `rows` rows in it."""
    small = dataclasses.replace(DATASETS[name], rows=rows)
    monkeypatch.setitem(DATASETS, name, small)
    path = folder / str(small.file_name)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    return path


def test_embedded_data_are_fixed():
    assert [load_dataset("digits")[0].shape, {*load_dataset("digits")[1]}] == [(1797, 64), {*range(10)}]
    x, y = load_dataset("synthetic")
    assert (x.shape, y.shape, DATASETS["synthetic"].bounds) == ((20_000, 8), (20_000,), None)
    assert np.array_equal(y, load_dataset("synthetic")[1])
    assert np.array_equal(y, read_column("synthetic", "y"))
    noise = y - (10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 8 * x[:, 2] ** 2 + 5 * x[:, 3] + 3 * x[:, 4])
    assert np.mean(noise**4) / np.mean(noise**2) ** 2 > 4  # 3 for a normal law


ADULT = "age,workclass,hours-per-week,income\n39,?,40,<=50K\n50,Private,13,>50K\n"


@pytest.mark.parametrize(
    ("name", "text", "columns", "target"),
    [
        ("diamonds", DIAMONDS, ["carat", "cut_Good (x) lt 1", "cut_Ideal"], [300, 400, 500]),  # for xgboost
        (
            "abalone",  # its target is an age: rings and a half
            "Sex,Length,Rings\nM,0.4,15\nF,0.5,7\nI,0.1,1\n",
            ["Length", "Sex_F", "Sex_I", "Sex_M"],
            [16.5, 8.5, 2.5],
        ),
        # without what gives the target away
        ("bike", "instant,dteday,hr,casual,registered,cnt\n1,2011-01-01,0,3,13,16\n", ["hr"], [16]),
        ("adult", ADULT, ["age", "hours-per-week", "workclass_?", "workclass_Private"], [0, 1]),
    ],
)
def test_a_file_is_read(tmp_path, monkeypatch, name, text, columns, target):
    write(tmp_path, name, text, monkeypatch, rows=len(target))
    features, found = load_dataset(name, tmp_path)
    assert found.tolist() == target
    assert features.columns.tolist() == columns
    assert features.to_numpy().dtype.kind in "if"
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    assert load_dataset(name)[1].tolist() == target


def test_a_column_is_read_and_that_of_the_target_shifted_like_it(tmp_path, monkeypatch):
    write(tmp_path, "abalone", "Sex,Length,Rings\nM,0.4,15\nF,0.5,7\nI,0.1,1\n", monkeypatch)
    assert read_column("abalone", "Rings", tmp_path).tolist() == [16.5, 8.5, 2.5]
    write(tmp_path, "adult", ADULT, monkeypatch, rows=2)
    assert read_column("adult", "hours-per-week", tmp_path).tolist() == [40.0, 13.0]
    with pytest.raises(DatasetError, match="column workclass holds unexpected values"):
        read_column("adult", "workclass", tmp_path)


def test_without_a_file_or_network_it_says_what_to_do(monkeypatch, capsys, tmp_path):
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    network = r"can't be fetched from OpenML \(no network.*as diamonds.csv.gz.* --data-dir .* DP_METRICS_DATA"
    for name, folder, message in (
        ("diamonds", None, network),
        *((name, folder, f"'{name}': there is no file .*{DATASETS[name].file_name}; get it from .* --data-di")
          for name in ("diabetes", "cifar10") for folder in (None, tmp_path)),  # which OpenML has not got
        ("diamonds", tmp_path / "nowhere", r"there is no data folder .*nowhere"),
    ):  # fmt: skip
        with pytest.raises(DatasetError, match=message):
            load_dataset(name, folder)
    assert "asking OpenML" in capsys.readouterr().err


WRONG = [
    ("diamonds", DIAMONDS + "0.5,Ideal,600\n", "has 4 rows, expected 3"),
    ("bike", "hr,cnt\n0,1\n1,2\n2,3\n", "has no column casual, registered, instant, dteday"),
    ("diamonds", "carat,price\n1,300\n2,\n3,500\n", "has empty cells"),
    ("diamonds", "carat,price\n1,300\n2,dear\n3,500\n", "column price holds unexpected values"),
    ("adult", ADULT.replace(">50K", ">50K.") + "9,?,9,>50K\n", "column income holds unexpected values"),
    ("diabetes", "age,diabetes\n1,0\n2,1\n3,2\n", "column diabetes holds unexpected values"),
    ("diamonds", "", "damaged or unreadable"),
    ("diamonds", "a,b\n1,2,3,4\n1,2,3,4,5\n", "damaged or unreadable"),
]


@loop_over(("name", "text", "message"), WRONG)
def test_wrong_contents(tmp_path, monkeypatch, name, text, message):
    path = write(tmp_path, name, text, monkeypatch)
    whole, half = path.read_bytes(), len(path.read_bytes()) // 2
    with pytest.raises(DatasetError, match=message) as caught:
        load_dataset(name, tmp_path)
    assert repr(name) in str(caught.value)
    for damaged in (
        whole[:half],
        b"not a gzip file",
        whole[:half] + b"\xff" * 9 + whole[half:],
        b"caf\xe9\n",
    ):
        path.write_bytes(gzip.compress(damaged) if damaged.startswith(b"caf") else damaged)
        with pytest.raises(DatasetError, match="damaged or unreadable"):
            load_dataset(name, tmp_path)


def test_a_missing_or_broken_extra_is_named(tmp_path, monkeypatch):
    write(tmp_path, "diamonds", DIAMONDS, monkeypatch)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r'pandas .* pip install "dp_metrics\[evaluation\]"'):
        load_dataset("diamonds", tmp_path)
    (tmp_path / "broken_extra_package.py").write_text("raise OSError('no libgomp')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingExtraError, match="installed but can't be imported: no libgomp"):
        import_extra("broken_extra_package")


REAL = {
    "diamonds": (26, 3932.799722, 15915334.362577),
    "abalone": (10, 11.433684, 10.392777),
    "bike": (12, 189.463088, 32899.567931),
    "adult": (108, 0.239282, 0.182026),
    "diabetes": (15, 0.085, 0.077775),
}


@pytest.mark.skipif(not os.environ.get(DATA_VARIABLE), reason=f"{DATA_VARIABLE} names no folder of the data")
@pytest.mark.parametrize("name", REAL)
def test_real_files(name):
    (features, target), dataset = load_dataset(name), DATASETS[name]
    columns, mean, variance = REAL[name]
    assert features.shape == (dataset.rows, columns)
    assert (target.mean(), target.var()) == pytest.approx((mean, variance), rel=1e-6, abs=1e-6)
    if dataset.bounds is not None:
        assert dataset.bounds[0] <= target.min() <= target.max() <= dataset.bounds[1]
