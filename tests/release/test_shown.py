"""What results, budgets, frames and summaries look like, and that a result calculates as its value does."""

import operator
from html.parser import HTMLParser

import numpy as np
import pytest
from helpers import seeded

import dp_metrics as dp

X, Y = np.arange(400.0), np.arange(400.0) + 1.5
LABELS = np.arange(400) % 2
BAD = "<script>alert(1)</script> & 'b'"


def result_of(**options):
    return dp.with_result(dp.private_mae)(X, Y, epsilon=1.0, random_state=seeded(), **options)


class Tags(HTMLParser):
    """The tags of a page, checked to be closed in order, and its text."""

    def __init__(self, page):
        super().__init__()
        self.open, self.seen, self.text = [], set(), ""
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize(
    "operation",
    [
        operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
        operator.pow, operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
    ],
)  # fmt: skip
def test_a_result_calculates_and_compares_as_its_value_does(operation):
    result = result_of()
    for other in (2.5, 2, result.value, np.float64(0.5)):
        for found, plain in (
            (operation(result, other), operation(result.value, other)),
            (operation(other, result), operation(other, result.value)),
        ):
            assert found == plain
            assert type(found) is type(plain)
    assert operation(result, result) == operation(result.value, result.value)
    many = np.array([1.0, result.value, 3.0])
    np.testing.assert_array_equal(operation(result, many), operation(result.value, many))
    np.testing.assert_array_equal(operation(many, result), operation(many, result.value))


def test_a_result_is_formatted_rounded_and_hashed_as_its_value_is():
    result = result_of()
    value = result.value
    assert (f"{result:.3f}", format(result, "10.2e")) == (f"{value:.3f}", format(value, "10.2e"))
    assert (round(result, 2), round(result), float(result)) == (round(value, 2), round(value), value)
    assert (-result, +result, abs(-result)) == (-value, value, value)
    assert hash(result) == hash(value)
    assert len({result, value}) == 1
    assert sorted([result, value - 1]) == [value - 1, value]
    assert (result == "0.5") is False
    with pytest.raises(TypeError):
        result + "text"
    several = dp.with_result(dp.private_mae)(
        np.column_stack([X, X]), np.column_stack([Y, Y]), epsilon=1.0, multioutput="raw_values"
    )
    assert (several == several.value).all()
    with pytest.raises(TypeError):
        hash(several)


def test_a_result_shows_its_value_its_cost_and_its_limits():
    result = result_of(spend_name="week 47")
    shown = repr(result)
    lower, upper = result.noise_interval()
    for text in (
        repr(result.value),
        "private_mae",
        "epsilon=1.0",
        "n=400",
        "week 47",
        f"({lower!r}, {upper!r})",
    ):
        assert text in shown
    assert f"{result}" == str(result) == shown
    assert "noise_interval" not in repr(dp.with_result(dp.private_roc_curve)(LABELS, X / 400, epsilon=1.0))


def shown_objects():
    """Yield objects whose public text is hostile, and what else has to be shown."""
    budget = dp.PrivacyAccountant(9.0)
    options = {"accountant": budget, "spend_name": BAD}
    yield dp.with_result(dp.private_mae)(X, Y, epsilon=1.0, **options), ["private_mae", "400"]
    labels = np.array(sorted(["a", BAD]))
    frame = dp.PrivateMetricFrame(
        metrics={BAD: dp.private_recall_score, "loss": dp.private_zero_one_loss}, y_true=LABELS,
        y_pred=LABELS, sensitive_features=labels[LABELS], group_labels=labels, epsilon=1.0, accountant=budget,
    )  # fmt: skip
    yield frame, ["overall loss", "rests on", "limits"]
    matrix = dp.ConfusionSummary(labels=labels).update(labels[LABELS], labels[LABELS])
    yield matrix, ["ConfusionSummary"]
    yield matrix.release(1.0), ["predicted"]
    scores = dp.ScoreSummary(labels=labels).update(labels[LABELS], X / 400)
    yield scores, ["ScoreSummary"]
    yield dp.Interval(0.1, np.array([0.2, 0.3]), 0.95, BAD, BAD), ["0.2", "95 %"]
    yield budget, ["spent", "left", "releases", "begins anew"]


def test_cards_escape_everything_and_say_what_matters():
    for one, words in shown_objects():
        page = Tags(one._repr_html_())
        assert page.seen <= {"div", "style", "b", "table", "thead", "tbody", "tr", "th", "td"}
        assert all(word in page.text for word in words), (one, page.text)
        assert "alert" in page.text, type(one)


def test_the_other_cards_say_what_the_text_says():
    compared = dp.private_compare(X, Y, X + 3, loss="mae", epsilon=1.0)
    for one in (compared, dp.LossSummary(dp.private_mse), dp.VarianceSummary()):
        assert str(one) in Tags(one._repr_html_()).text
    scores = dp.ScoreSummary().update(LABELS, X / 400).release(epsilon=1.0)
    assert f"{scores.roc_auc_score():.6g}" in Tags(scores._repr_html_()).text
    single = dp.PrivateMetricFrame(
        metrics=dp.private_roc_auc_score, y_true=LABELS, y_pred=X / 400, sensitive_features=LABELS,
        group_labels=[0, 1, 2], epsilon=1.0,
    )  # fmt: skip
    assert "group size" in Tags(single._repr_html_()).text


def test_a_budget_whose_file_is_gone_is_shown_all_the_same(tmp_path):
    budget = dp.PrivacyAccountant(2.0, tmp_path / "budget")
    (tmp_path / "budget").unlink()
    assert "spent" not in Tags(budget._repr_html_()).text
