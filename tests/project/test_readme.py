"""The README's code runs as it stands, and its numbers are true."""

import re
from pathlib import Path

import pytest
from sklearn.metrics import mean_squared_error

import dp_metrics
from dp_metrics import plan_release, private_mse

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, flags=re.DOTALL)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Run all programs in order; return the names that they define."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("readme"))
        namespace = {"__name__": "readme"}
        for language, code in BLOCKS:
            if language == "python":
                exec(compile(code, "README.md", "exec"), namespace)
    return namespace


def test_all_code_runs_as_it_stands(ran):
    assert [language for language, _ in BLOCKS] == ["python", "text", "console", "python"]
    assert ran["budget"].remaining == 1.5
    assert "print(budget.remaining)  # 1.5" in README


def test_the_numbers_of_the_first_program_are_true(ran):
    data = ran["y_test"], ran["prediction"]
    exact = mean_squared_error(*data)
    assert f"The exact value is {exact:.0f}." in README
    expected = plan_release(private_mse, guess=data, epsilon=1.0)
    assert f"off by {expected.error / exact:.0%} on average".replace("%", " %") in README
    assert f"{len(data[0])} records" in README
    printed = float(BLOCKS[1][1])
    assert expected.quantiles[0.05] < printed - exact < expected.quantiles[0.95]


def test_it_is_short_and_all_that_it_names_is_there():
    assert len(README.splitlines()) <= 95
    for calls, page in re.findall(r"^\| (?!I want|---).* \| (.*) \| (.*) \|$", README, flags=re.MULTILINE):
        assert "docs/" in page
        assert {*re.findall(r"`(\w+)", calls)} <= {"dp", "dp_metrics", *dp_metrics.__all__}
    assert all((ROOT / target).is_file() for target in re.findall(r"\]\((?!https?:)(.*?)\)", README))
