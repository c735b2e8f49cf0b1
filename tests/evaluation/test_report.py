"""The report: one page that needs nothing else, readable by a browser."""

import re

import numpy as np
import pytest

from dp_metrics.evaluation.engine import BETAS, STUDIES, frame_of
from dp_metrics.evaluation.reproduce import overall_tables, report_page, tables_of


@pytest.fixture
def rows(study_rows):
    return study_rows("mse", 1) + study_rows("variance", 1) + study_rows("asymmetry")


@pytest.mark.slow
def test_the_page_is_whole_and_loads_nothing(rows):
    page = report_page(frame_of(rows))
    ids = re.findall(r' id="([^"]+)"', page)
    assert len({*ids}) == len(ids)
    assert page.count("<img") == page.count('src="data:image/svg') == 4
    # nothing is fetched: no scripts, style sheets or fonts, and every reference is within the page
    assert not re.search(r"<(script|link|iframe)\b|@import|url\(|src=\"(?!data:)", page)
    assert {*re.findall(r'href="#([^"]+)', page)} <= {*ids}
    for title, table in (tables_of(STUDIES["mse"], frame_of(rows)) | overall_tables(frame_of(rows))).items():
        assert title in page
        assert all(f"<th>{name}</th>" in page for name in table.index)
    assert page.endswith("</html>\n")
    for words in ("abc", "numpy=2", "All numbers of this figure", "CC BY 4.0", "seeded"):
        assert words in page


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1200])
def test_the_page_fits_a_browser_and_shows_its_pictures(rows, width, browser, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(report_page(frame_of(rows)), encoding="utf-8")
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(path.as_uri())
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    heights = "return [...document.images].map(one => one.getBoundingClientRect().height)"
    assert min(browser.execute_script(heights)) > 20


def errors(make_row, **fields):
    """Return rows in which each mechanism has one relative error, at epsilon 1 and half as much at 2."""
    relative = {"adaptive": 0.1, "hazard": 0.2, "above_threshold": 0.2, "paper": 0.3, "laplace": 0.05}
    relative |= {"inverse_sensitivity": 3.0, "clipped_mean": 0.5}
    return [
        make_row(mechanism=m, epsilon=e, repeat=i, release=2.0 - 2.0 * x / e, **fields)
        for m, x in relative.items()
        for e in (1.0, 2.0)
        for i in range(2)
    ]


def test_who_has_less_error(make_row):
    rows = errors(make_row) + errors(make_row, dataset="abalone", sampling_error=0.4)
    (against,) = tables_of(STUDIES["mse"], frame_of(rows)).values()
    assert against.to_numpy() == pytest.approx(10.0)
    assert against.index.tolist() == ["bike, MSE", "abalone, MSE", "geometric mean"]
    ratios, shares, sampling, _ = overall_tables(frame_of(rows)).values()
    assert ratios.loc["AboveThreshold (paper preset)"].tolist() == pytest.approx([3.0, 3.0])
    assert ratios.loc["Laplace"].tolist() == pytest.approx([0.5, 0.5])
    assert shares.loc["Laplace"].tolist() == [0, 0]
    assert shares.loc["clipped mean"].tolist() == [1, 1]
    assert sampling.loc["bike, MSE"].tolist() == pytest.approx([2.0, 1.0])
    assert sampling.loc["abalone, MSE"].tolist() == pytest.approx([0.5, 0.25])
    assert sampling.loc["geometric mean"].tolist() == pytest.approx([1.0, 0.5])


def test_releases_near_zero(make_row):
    rows = [make_row(mechanism=m, repeat=i, release=x) for m in ("paper", "adaptive") for i, x in
            enumerate((0.1, 1.9, 0.19, 0.21) if m == "paper" else (1.9, 2.0, 2.1, 1.0))]  # fmt: skip
    stopped = list(overall_tables(frame_of(rows)).values())[-1]
    assert stopped.to_dict() == {"paper": {"bike, MSE": 0.5}, "adaptive": {"bike, MSE": 0.0}}


def test_without_bounds(make_row):
    rows = [
        make_row(figure="unbounded-losses", bounded=bounded, setting=setting, mechanism=m, repeat=i,
                 release=x, overshoot=chance)
        for setting, bounded in (("bounded", 1), ("unbounded", 0))
        for m, chance in (("paper", 1e-3), ("hazard", 1e-9))
        for i, x in enumerate((2.1, 2.2, 2e9 if m == "paper" and not bounded else 2.1))
    ]  # fmt: skip
    (table,) = tables_of(STUDIES["unbounded-losses"], frame_of(rows)).values()
    assert table.loc["hazard"].tolist() == pytest.approx([1, 1, 1, 0, 3, 1e-9, 0.4 / 6])
    mean = (0.05 + 0.1 + 10) / (0.05 + 0.1 + 0.05)
    plain = (0.1 + 0.2 + 2e9) / 6
    found = table.loc["AboveThreshold (paper preset)"].tolist()
    assert found == pytest.approx([2, mean, mean, 1, 3, 1e-3, plain])


def test_beta(make_row):
    rows = [
        make_row(figure="beta", metric="variance", column="cnt", mechanism="paper", setting=rival.setting,
                 repeat=i, release=2.0 + x)
        for rival, x in zip(BETAS, (0.4, 0.3, 0.2, 0.1, 0.2, 0.3), strict=True)
        for i in range(2)
    ]  # fmt: skip
    (table,) = tables_of(STUDIES["beta"], frame_of(rows)).values()
    assert table[1.0].tolist() == pytest.approx([2, 1.5, 1, 0.5, 1, 1.5])


@pytest.mark.parametrize("sign", [1, -1])
def test_asymmetry(make_row, sign):
    rows = [
        make_row(figure="asymmetry", dataset="simulated", metric=("uniform", "heavy-tailed")[i % 2], repeat=i,
                 mechanism=m, setting=f"asymmetry={i / 60:.6f}", expected_error=x)
        for i in range(30)
        for m, x in (("inverse_sensitivity", 2.0 ** (sign * i)), ("paper", 1.0), ("hazard", 0.5))
    ]  # fmt: skip
    (table,) = tables_of(STUDIES["asymmetry"], frame_of(rows)).values()
    assert table["rank correlation"].tolist() == pytest.approx([sign, sign])
    ratios = 2.0 ** (sign * np.arange(30))
    medians = np.array([ratios[2:4].mean(), ratios[11:13].mean(), ratios[22], ratios[28]])
    assert table.loc["AboveThreshold (paper preset)"].tolist()[:4] == pytest.approx(medians.tolist())
    assert table.loc["hazard"].tolist()[:4] == pytest.approx((2 * medians).tolist())
    assert table["simulations"].tolist() == [30, 30]


def test_a_partial_run_has_partial_tables(make_row):
    assert all(
        tables_of(study, frame_of([make_row(mechanism="laplace")])) == {} for study in STUDIES.values()
    )
    assert overall_tables(frame_of([make_row(mechanism="laplace")])) == {}
    assert "<img" in report_page(frame_of([make_row(mechanism="laplace")]))
    assert "<img" in report_page(frame_of([make_row()]))
