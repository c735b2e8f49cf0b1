"""How a page shows numbers: digits, ranges, what is too noisy to tell, and the dots in its tables."""

import math
import re

import numpy as np
import pytest
from helpers import loop_over, seeded
from pages import column, sections, tables_of

import dp_metrics as dp
from dp_metrics.page.contents import CANNOT_TELL
from dp_metrics.page.page_numbers import TOO_NOISY, dots_of, is_told, limits_of, scale_of, text_of, written
from dp_metrics.release.released import Interval, Number

rng = np.random.default_rng(0)
N = 3000
Y = (rng.random(N) < 0.3).astype(int)
SCORE = 1 / (1 + np.exp(-rng.normal(size=N) - 2 * Y + 1))
GROUP = rng.choice(["a", "b"], N, p=[0.98, 0.02])
BY_GROUP = {"sensitive_features": GROUP, "group_labels": ["a", "b"]}


def between(lower, upper):
    return Interval(lower, upper, 0.95, "", "")


def number(value, limits, metric="recall", note=None):
    return Number("", value, metric, note, _people=lambda confidence: limits)


def as_number(text):
    return float(text.replace(",", ""))


def test_a_range_in_units_is_rounded_outwards_and_has_no_digit_too_many():
    for _ in range(500):
        size = 10.0 ** rng.uniform(-30, 30)
        low, width = size * rng.uniform(-1, 1), size * 10.0 ** rng.uniform(-4, 0.5)
        told, ends = written(low + width / 3, between(low, low + width), is_share=False)
        down, up = map(as_number, ends.split(" to "))
        slack = 1e-6 * width
        assert down - slack <= low <= low + width <= up + slack
        assert up - down <= 2 * width  # of which half is at least a step
        assert abs(as_number(told) - low - width / 3) <= width / 2
        assert as_number(told) != 0
        has_one_digit = len(told.replace(",", "").lstrip("-0.").rstrip("0")) == 1
        if "e" not in told and not has_one_digit:
            step = 10.0 ** -len(told.partition(".")[2])
            assert step > width / 20.1 or step == 1


SHARE, HUNDREDTHS, WIDE = {}, {"times": 100}, {"is_share": False}


@loop_over(
    ("value", "limits", "how", "expected"),
    [
        (0.61, (0.42, 0.8111), SHARE, ("0.61", "0.42 to 0.82")),
        (0.61, (0.6, 0.62), SHARE, ("0.61", "0.60 to 0.62")),
        (0.61, (0.6089, 0.6101), SHARE, ("0.610", "0.608 to 0.611")),
        (0.61, (0.42, 0.8111), HUNDREDTHS, ("61", "42 to 82")),
        (0.61, (0.6089, 0.6101), HUNDREDTHS, ("61.0", "60.8 to 61.1")),
        (0.05, (0.004, 0.1), {**HUNDREDTHS, "apart_from": 0.0}, ("5.0", "0.4 to 10.0")),
        (46_100, (42_200, math.inf), WIDE, ("46,000", "at least 42,000")),
        (3.21, (-math.inf, 3.5), WIDE, ("3.2", "at most 3.5")),
        (0.0, (0.0, 0.0), WIDE, ("0.000", "0.000 to 0.000")),
        (1e300, (9e299, 1.1e300), WIDE, ("1.0e+300", "9e+299 to 1.1e+300")),
        (5e-324, (0.0, 1e-320), WIDE, None),
        (2.0, (-math.inf, math.inf), WIDE, ("2", "no limit")),
        (17.3, (0.0, 900.0), WIDE, ("20", "0 to 900")),  # of 0 nobody would think of 17
        (-0.3, (-900.0, 900.0), WIDE, ("-0.3", "-900 to 900")),
        # counts that hardly have noise are whole and have all digits
        (4503.0, (4503, 4503), {**WIDE, "least": 1}, ("4,503", "4,503 to 4,503")),
        (4503.0, (4503, 4504), {**WIDE, "least": 1}, ("4,503", "4,503 to 4,504")),
        *(
            (one, (0, 6.3), {**WIDE, "least": 1}, (told, "0 to 7"))
            for one, told in ((0.08, "0"), (0.7, "1"), (3.2, "3"))
        ),
    ],
)
def test_shares_have_two_digits_or_three_and_other_numbers_as_many_as_their_ranges_tell(
    value, limits, how, expected
):
    told = written(value, between(*limits), **how)
    assert expected is None or told == expected


def test_a_matrix_is_one_of_1000_records_like_these():
    page = dp.private_evaluate(Y, y_pred=Y, labels=[0, 1], epsilon=10.0)
    (matrix,) = (
        one for one in page.sections[1].tables if one.caption.startswith("Of 1,000 records like these")
    )
    told, ends = matrix.rows[1][2].text.rstrip(")").split(" (")
    assert int(told) == pytest.approx(1000 * Y.mean(), abs=10)
    limits = page.released["labels"].population_interval("confusion_matrix", normalize="all")
    low, high = map(int, ends.split(" to "))
    assert low <= 1000 * limits.lower[1, 1] <= 1000 * limits.upper[1, 1] <= high <= low + 100


def test_of_persons_with_several_records_the_matrix_is_one_of_these_records():
    page = dp.private_evaluate(
        Y, y_pred=Y, labels=[0, 1], epsilon=10.0, groups=np.arange(N) // 2, max_records=2
    )
    (matrix,) = (one for one in page.sections[1].tables if one.caption.startswith("Records by true label"))
    assert int(matrix.rows[1][2].text.split(" (")[0].replace(",", "")) == pytest.approx(Y.sum(), abs=30)


@loop_over("bound", [0.795, 0.7999999, 0.8])
def test_rounding_does_not_hide_on_which_side_of_a_bound_a_range_is(bound):
    above = written(0.81, between(math.nextafter(bound, 1), 0.83), apart_from=bound)[1]
    assert float(above.split(" to ")[0]) > bound
    within = written(0.81, between(bound - 0.01, 0.83), apart_from=bound)[1]
    assert re.fullmatch(r"0\.\d\d to 0\.\d\d", within)


def test_a_sure_difference_is_not_shown_to_reach_0():
    limits = between(0.004, 0.1)
    gap = Number("recall difference", 0.05, "recall", section="For whom", _people=lambda confidence: limits)
    assert text_of(gap) == ("0.050", "0.004 to 0.100")
    assert text_of(number(0.05, limits)) == ("0.05", "0.00 to 0.10")


def test_what_is_too_noisy_to_tell():
    assert is_told(number(0.5, between(0.3, 0.8)))
    assert not is_told(number(0.5, between(0.2, 0.8)))
    assert not is_told(number(0.5, between(0.4, 0.6), note="mostly noise"))
    coarse = Interval(0.4, 0.6, 0.95, "", "Approximate. Bins too coarse.")
    assert is_told(number(0.5, coarse, note="Bins too coarse."))  # for which these limits allow
    assert not is_told(number(math.nan, between(0.4, 0.6)))
    assert is_told(number(50.0, between(10.0, math.inf), "mae"))
    assert not is_told(number(0.01, between(0.0, math.inf), "mae"))  # such as a difference of two
    assert not is_told(number(50.0, between(-math.inf, math.inf), "mae"))
    assert not is_told(number(0.5, between(-math.inf, 1.0), "r2"))
    assert is_told(Number("", 3.0, "mae"))  # nothing says how noisy it is


def dots(lower, upper, value, is_open=False):
    return {"lower": lower, "upper": upper, "value": value, "is_open": is_open}


def test_dots_lie_where_numbers_are_on_one_scale():
    share, error = number(0.5, between(0.25, 0.75)), number(30.0, between(20.0, math.inf), "mae")
    median = number(20.0, between(10.0, 50.0), "median absolute error")
    assert dots_of(share, 0.0) == dots(25.0, 75.0, 50.0)
    scale = scale_of([share, error, median])
    assert scale == pytest.approx(55.0)
    assert dots_of(error, scale) == dots(36.4, 100.0, 54.5, is_open=True)
    assert dots_of(median, scale) == dots(18.2, 90.9, 36.4)
    assert dots_of(number(9.0, between(5.0, 20.0), "mse"), scale) is None
    assert dots_of(number(0.5, between(0.0, 1.0)), 1.0) == dots(0.0, 100.0, None)


RULES = ["recall in each group >= 0.2", "specificity in 'b' >= 0.7"]


@pytest.fixture(scope="module")
def noisy():
    return dp.private_evaluate(
        Y, y_score=SCORE, epsilon=1.0, random_state=seeded(), requirements=RULES,
        split={"labels by group": 1, "scores": 1}, **BY_GROUP,
    )  # fmt: skip


def test_numbers_that_are_too_noisy_are_in_json_only(noisy):
    rows = {row["name"]: row for row in noisy.to_dict()["numbers"]}
    assert all(row["shown"] == is_told(noisy[name]) for name, row in rows.items())
    hidden = noisy["recall in 'b'"]
    assert not rows[hidden.name]["shown"]
    assert rows[hidden.name]["value"] == hidden.value
    of_groups = sections(noisy)["For whom"].tables[0]
    for row in of_groups.rows:
        for metric, cell in zip(of_groups.columns[2:], row[2:], strict=True):
            one = noisy[f"{metric} in {row[0].text!r}"]
            assert cell.text.startswith(TOO_NOISY) == (cell.kind == "noise") == (not is_told(one))
            assert (cell.dots["value"] is None) == (cell.kind == "noise")
    shown, answers = (column(sections(noisy)["Requirements"].tables[0], place) for place in (1, 2))
    hidden_rule, wide_rule = "specificity in 'b' >= 0.7", "recall in 'b' >= 0.2"
    assert (shown[hidden_rule], answers[hidden_rule]) == (TOO_NOISY, f"? {CANNOT_TELL}")
    # nothing is decided by a range that is too wide to be shown
    assert (shown[wide_rule], answers[wide_rule]) == (TOO_NOISY, f"? {CANNOT_TELL}")
    marks = noisy.frame()["shown"].to_dict()
    assert marks == {name: is_told(one) for name, one in noisy.items()}
    assert {*marks.values()} == {True, False}
    for text in (noisy.to_html(), noisy.to_markdown()):
        assert TOO_NOISY in text
        assert f"{hidden.value:.3f}" not in text


DIFFERENCES = "What may be concluded about differences"
AGE = np.array(["young", "middle", "old"])[np.arange(N) % 3]
OF_BOTH = {
    "sensitive_features": np.column_stack([AGE, GROUP]),
    "group_labels": [["young", "middle", "old"], ["a", "b"]],
}


@pytest.fixture(scope="module")
def crossed():
    """Return a page on which old people are found more often, by a threshold of their own."""
    options = {"y_score": np.where(AGE == "old", SCORE**0.25, SCORE), "positive_meaning": "<came> back"}
    return dp.private_evaluate(Y, epsilon=20.0, random_state=seeded(), unit_name="stay", **options, **OF_BOTH)


def test_of_differences_a_page_says_what_is_sure_and_names_two_groups_only_if_there_are_no_more(crossed):
    said = column(tables_of(crossed, "For whom")[DIFFERENCES], -1)
    for name, text in said.items():
        is_sure = limits_of(crossed[name]).lower > 0
        assert text.startswith("A sure difference: " if is_sure else ("Cannot tell", "Too noisy")), name
    ends = "measured lowest in 'young', highest in 'old'", "measured lowest in 'middle', highest in 'old'"
    assert said["recall difference by feature 1"] in [
        f"A sure difference: {one}. It does not tell why." for one in ends
    ]
    rows = {row["name"]: row["concluded"] for row in crossed.to_dict()["numbers"]}
    assert {name: rows[name] for name in said} == said
    assert rows["recall"] is None
    two = {"sensitive_features": AGE == "old", "group_labels": [False, True]}
    alike = dp.private_evaluate(Y, y_score=np.where(AGE == "old", SCORE**0.25, SCORE), epsilon=20.0, **two)
    said = column(tables_of(alike, "For whom")[DIFFERENCES], -1)
    assert said["recall difference"] == "A sure difference: lower in False. It does not tell why."
    assert said["prevalence difference"] == "Cannot tell: the range holds 0."


def test_a_page_has_few_notes_however_many_groups_there_are(crossed, noisy):
    for page in (crossed, noisy):
        notes = {note for section in page.sections for table in section.tables for note in table.notes}
        assert len(notes) <= 5
        assert not any("alike" in note for note in notes)


def test_other_thresholds_are_told_as_by_the_released_scores(crossed):
    more = tables_of(crossed, "More numbers")
    (table,) = (one for caption, one in more.items() if caption.startswith("By other"))
    assert len(table.rows) == 3
    for threshold, *cells in table.rows:
        at = crossed.released["scores"].at_threshold(float(threshold.text))
        assert f"{at.threshold:.3g}" == threshold.text
        for name, cell in zip(table.columns[1:], cells, strict=True):
            one = at.numbers()[name]
            told = cell.text.split(" (")[0]
            assert told == TOO_NOISY if not is_told(one) else abs(float(told) - one.value) <= 0.005


def test_parts_of_epsilon_add_up_as_they_are_written():
    page = dp.private_evaluate(
        Y, y_pred=Y, baseline=1 - Y, labels=[0, 1], epsilon=1, split={"labels": 7, "comparison": 1}
    )
    cost = column(tables_of(page, "Cost and promise")["What this page cost"], 1)
    assert [*cost.values()] == ["0.875", "0.125"]


def test_what_words_mean_is_told_of_those_that_a_page_has(crossed, noisy):
    told, of_noisy = (column(tables_of(one, "Words")["Words of this page"], 1) for one in (crossed, noisy))
    assert CANNOT_TELL not in told  # there are no requirements
    assert told["epsilon"] == "How much a page may depend on one person: 0 is not at all."
    rows = tables_of(crossed, "How good")["All records"].rows
    beside = {row[0].text: row[0].small for row in rows}
    assert beside["recall"] == "of stays that <came> back, the share that is found"
    assert not beside.keys() & told.keys()
    assert all(beside.values())
    assert {CANNOT_TELL, TOO_NOISY} <= of_noisy.keys()
    for text in (crossed.to_html(), crossed.to_markdown()):
        assert "of stays that &lt;came&gt; back" in text


def test_dots_are_lines_and_circles_within_cells_and_no_images(noisy):
    html = noisy.to_html()
    assert "<img" not in html
    pictures = re.findall(r"<svg.*?</svg>", html)
    assert len(pictures) > 30
    assert all('class="dots" aria-hidden="true"' in one and "<text" not in one for one in pictures)
    rows = [row for section in noisy.sections for table in section.tables for row in table.rows]
    dots = [cell.dots for row in rows for cell in row if cell.dots is not None]
    assert html.count("<circle") == sum(one["value"] is not None for one in dots)
    assert html.count('class="unsure"') == sum(one["value"] is None for one in dots) > 0
    assert "<svg" not in noisy.to_markdown()


def test_largest_differences_hold_all_at_once_in_every_form(noisy):
    table = noisy.frame()
    gaps = [one for one in noisy.values() if one.section == "For whom" and one.group is None]
    assert len(gaps) > 1
    for name, number in noisy.items():
        assert number.confidence == 1 - 0.05 / (len(gaps) if number in gaps else 1)
        ends = [*number.population_interval(number.confidence)]
        assert table.loc[name, ["people_lower", "people_upper"]].tolist() == ends, name
        assert number not in gaps or not is_told(number) or [*limits_of(number)] == ends
        text = table["concluded"][name]
        if isinstance(text, str) and table["shown"][name]:
            assert text.startswith("A sure difference") == (ends[0] > 0), name


def test_ranges_of_the_noise_alone_say_so_and_means_say_which_way_they_err():
    target = rng.normal(size=N)
    page = dp.private_evaluate(target, target + rng.standard_t(3, N), task="regression", epsilon=4.0)
    numbers, ways = sections(page)["How good"].tables
    only = numbers.notes.index("About these records only, not about all people like these.") + 1
    told, errs = column(numbers, 2), column(ways, 1)
    assert {name for name, text in told.items() if f"[{only}]" in text} == {"mae", "mse", "rmse"}
    assert re.fullmatch(r"0\.\d\d to 0\.\d\d", told["share too high"])
    assert errs["share too high"] == errs["median absolute error"] == "Either way"
    assert errs["mse"] == errs["rmse"] == "Usually too low [2]"
    assert errs["r2"] == "Usually too high [3]"
    assert list(ways.notes[1:]) == [page["mse"].bias, page["r2"].bias]


@loop_over("epsilon", [0.004, 0.002])
def test_a_page_that_is_all_noise_takes_no_longer(epsilon, monkeypatch):
    """The laws of its noises are as wide as epsilon is small: they are computed as far as pages need them."""
    sizes, transform = [], np.fft.rfft
    monkeypatch.setattr(np.fft, "rfft", lambda law: sizes.append(law.size) or transform(law))
    split = {"labels by group": 1, "scores": 1, "scores by group": 1}
    groups = {"sensitive_features": [0], "group_labels": [0, 1]}
    page = dp.private_evaluate([1], y_score=[0.7], labels=[0, 1], epsilon=epsilon, split=split, **groups)
    assert "too noisy to tell" in page.to_html()
    assert sum(sizes) < 100 * 2**20  # some seconds
