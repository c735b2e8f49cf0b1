"""Requirements: pass, fail or cannot tell, right at once with the confidence."""

import itertools
import math
import re
from functools import partial

import numpy as np
import pytest
from helpers import later, loop_over, seeded

import dp_metrics as dp
from dp_metrics.page.page_numbers import METRICS
from dp_metrics.page.requirements import parsed

Y = np.array([0, 1] * 2000)
PRED = np.where(np.arange(4000) % 10 == 0, 1 - Y, Y)


evaluated = partial(dp.private_evaluate, Y, PRED, labels=[0, 1], epsilon=2.0)


@pytest.fixture(scope="module")
def page():
    return evaluated()


def test_verdicts(page):
    found = page.check(["accuracy >= 0.8", "recall < 0.5", "precision > 0.8"])
    assert [one.answer for one in found.values()] == ["pass", "fail", "pass"]
    assert found.answer == "fail"
    assert page.check("accuracy >= 0.8").answer == "pass"
    near = page["accuracy"].value
    assert page.check([f"accuracy >= {near!r}", "recall >= 0.1"]).answer == "cannot tell"
    assert "accuracy >= 0.8: pass" in repr(found)
    assert "about people, all at once with confidence 0.95" in repr(found)


def test_requirements_share_the_miss(page):
    one = page.check("accuracy >= 0.8")["accuracy"].interval
    assert one == page["accuracy"].population_interval(0.95)
    two = page.check(["accuracy >= 0.8", "recall >= 0.8"], confidence=0.9)["accuracy"].interval
    assert two.confidence == pytest.approx(0.95)
    assert tuple(two) == pytest.approx(tuple(one))
    of_these = page.check("recall >= 0.8", about="records")["recall"].interval
    assert tuple(of_these) == tuple(page["recall"].noise_interval(0.95))


def test_a_number_without_limits_cannot_tell():
    target = np.random.default_rng(0).normal(size=4000)
    page = dp.private_evaluate(target, y_pred=target + 1.0, task="regression", epsilon=2.0)
    verdict = page.check("mae <= 10.0")["mae"]
    assert verdict.answer == "cannot tell"
    assert verdict.note
    # a board reads it; the note names functions
    assert verdict.why.startswith("Its range is about these records only, and tells nothing sure")


def test_features_apart_are_as_many_as_one_likes_with_requirements_too():
    """No table of their combinations is made, which had 100 million cells."""
    asked = {"sensitive_features": np.zeros((Y.size, 8), dtype=int), "group_labels": [range(10)] * 8}
    asked |= {"crossed": False, "split": {"labels by feature 8": 1}}
    page = evaluated(requirements="recall in feature 8 0 >= 0.5", **asked)
    assert page.verdicts.answer == "pass"


def test_an_area_that_bins_hide_is_not_said_to_be_too_small():
    """Boosted trees of few rounds have scores near 1/2: here the area is .92, and that of their bins .84."""
    score = np.random.default_rng(0).normal(Y, 0.5, size=Y.size)
    near = 0.5 + 0.01 * np.tanh(score - 0.5)
    page = dp.private_evaluate(Y, y_score=near, labels=[0, 1], epsilon=2.0)
    found = page.check("roc auc >= 0.91")["roc auc"]
    assert found.answer == "cannot tell"
    assert "Bins too coarse" in found.interval.note
    assert found.why.endswith("times the records, if the bins of the scores are fine enough.")  # else none do
    for kind in ("noise_interval", "population_interval"):
        low, high = getattr(page["roc auc"], kind)()
        assert low < 0.91 < high
        low, high = getattr(page["average precision"], kind)()
        assert 0.0 < low < high <= 1.0


def test_a_requirement_is_read_with_and_without_blanks():
    asked = parsed([" recall in 'a' < .5 ", "f1 (macro)>0", "roc auc difference <= .1"])
    assert [*asked.values()] == [("<", 0.5), (">", 0.0), ("<=", 0.1)]


SEX, AGE = np.tile(["f", "f", "m", "m"], 1000), np.repeat(["young", "old"], 2000)
TARGET, THIRDS = np.linspace(-3, 3, 4000), np.full((4000, 3), 1 / 3)
PAGES = {
    "labels": ((Y, PRED), {"labels": [0, 1]}, "recall", "labels"),
    "scores": ((Y,), {"y_score": PRED * 0.6 + 0.2}, "roc auc", "scores"),
    "edges": ((Y,), {"y_score": PRED * 1.0, "edges": [-1, 0.5, 2]}, "precision", "labels"),
    "probabilities": ((Y,), {"y_proba": THIRDS, "labels": [0, 1, 2]}, "accuracy", "labels"),
    "targets": ((TARGET, TARGET), {"task": "regression", "bounds": (-3, 3)}, "mae", "absolute error"),
    "sides": ((TARGET, TARGET), {"task": "regression", "tolerance": 0.5}, "share within tolerance", "sides"),
    "baseline": ((Y, PRED), {"labels": [0, 1], "baseline": Y}, "f1", "labels"),
}
PRIVATE_N = {"neighboring": "add_or_remove_one", "n": 4000}
OF_GROUPS = {"sensitive_features": SEX, "group_labels": ["f", "m"]}


def test_names_are_known_before_the_spend_and_what_they_need_has_more_of_epsilon():
    """Of all metrics that pages have, together."""
    shown = set()
    for kind, way in itertools.product(PAGES, [{}, {"membership": "public"}, PRIVATE_N]):
        data, options, metric, release = PAGES[kind]
        options = {**options, **OF_GROUPS, **way, "epsilon": 3.0}
        budget = dp.PrivacyAccountant(3.0)
        with pytest.raises(ValueError, match="is no number of this page"):
            dp.private_evaluate(*data, **options, accountant=budget, requirements=[f"{metric} in 'x' >= 0.1"])
        assert budget.spent == 0
        plain = dp.private_evaluate(*data, **options, dry_run=True)
        favoured = dp.private_evaluate(*data, **options, dry_run=True, requirements=f"{metric} >= 0.1")
        name = next(one.name for one in favoured.parts if one.name.removesuffix(" by group") == release)
        if len(plain.parts) > 1:
            assert favoured[name].epsilon > plain[name].epsilon
        page = dp.private_evaluate(*data, **options, accountant=budget, requirements=f"{metric} >= 0.1")
        assert [*page.verdicts] == [metric]
        assert budget.spent == 3
        shown |= {one.metric for one in page.values()}
        assert parsed(f"{name}>=0" for name in page).keys() == page.keys(), (kind, way)
    assert shown == METRICS.keys()


def test_a_requirement_of_what_is_mostly_noise_is_told_what_it_takes():
    budget = dp.PrivacyAccountant(1.0)
    told = "'recall' is no number of this page.* true and predicted labels. With 400 records .* 600 records"
    with pytest.raises(ValueError, match=told):
        dp.private_evaluate(
            Y[:400], y_score=0.5 * Y[:400], epsilon=0.1, accountant=budget, requirements="recall >= 0.5"
        )
    assert budget.spent == 0


def test_each_group_has_a_verdict_and_all_share_the_miss():
    rules = ["recall in each group >= 0.5", "recall difference <= 0.5", "accuracy > 0.99"]
    found = evaluated(**OF_GROUPS, requirements=rules)
    verdicts = found.verdicts
    assert [*verdicts] == ["recall in 'f'", "recall in 'm'", "recall difference", "accuracy"]
    assert [one.answer for one in verdicts.values()] == ["pass", "pass", "pass", "fail"]
    assert all(one.interval.confidence == pytest.approx(1 - 0.05 / 4) for one in verdicts.values())
    assert verdicts["accuracy"].why == "All of the range is at 0.99 or less."
    assert verdicts["recall in 'f'"].why == "All of the range is at 0.5 or more."
    assert verdicts == found.check([one.requirement for one in verdicts.values()])
    both = {"sensitive_features": np.column_stack([SEX, AGE]), "group_labels": [["f", "m"], ["young", "old"]]}
    told = evaluated(**both).check(["recall in each group >= 0.5"])
    assert [*told] == ["recall in 'f'", "recall in 'm'", "recall in 'young'", "recall in 'old'"]


def test_each_group_is_each_that_may_have_records():
    public = {"sensitive_features": SEX, "group_labels": ["f", "m", "nobody"], "membership": "public"}
    found = evaluated(**public, requirements="recall in each group >= 0.5")
    assert [*found.verdicts] == ["recall in 'f'", "recall in 'm'"]
    assert found.verdicts.answer == "pass"
    assert found.summary[1] == 'The rule "recall in each group >= 0.5" is kept in 2 groups.'
    assert "is kept in 2 groups" in found.to_html()
    assert found.check(["recall in each group >= 0.5", "accuracy in 'nobody' >= 0.5"]).answer == "cannot tell"
    with pytest.raises(ValueError, match="two requirements of"):
        evaluated(**public, requirements=["recall in each group >= 0.5", "recall in 'nobody' >= 0.5"])


@loop_over("bound", ["0.123456789", "1234567.25"])
def test_a_bound_is_told_with_all_of_its_digits(page, bound):
    (verdict,) = page.check(f"recall >= {bound}").values()
    assert verdict.requirement == f"recall >= {bound}"
    assert bound in verdict.why


def test_what_cannot_be_told_says_what_it_takes(page):
    value, (lower, _) = page["recall"].value, page["recall"].population_interval()
    bound = value - (value - lower) / 2
    found = page.check([f"recall >= {bound!r}"])["recall"]
    assert found.answer == "cannot tell"
    assert "lies within the range. If the number stays, it takes about 4 times the records." in found.why
    assert "more than 100 times" in page.check(f"recall >= {value!r}")["recall"].why
    nearly = page.check([f"recall >= {lower + (value - lower) / 100!r}"])["recall"]
    assert "it takes about 1.1 times the records" in nearly.why  # not 1 times


def test_every_form_of_a_page_has_the_verdicts_and_a_stored_one_too(tmp_path):
    path, asked = tmp_path / "budget.db", ["recall >= 0.5", "precision<=0.2"]

    def ask(**options):
        return evaluated(**{"accountant": later(path, 9.0), "spend_name": "page", **options})

    page = ask(requirements=asked)
    shown = page.to_dict()["requirements"]
    assert (shown["answer"], [one["answer"] for one in shown["verdicts"]]) == ("fail", ["pass", "fail"])
    for text in (page.to_html(), page.to_markdown()):
        assert "Requirements" in text
        assert "All together: fail" in text
    again = dp.PrivateEvaluation.from_json(page.to_json())
    assert again.verdicts == page.verdicts
    with pytest.warns(dp.exceptions.StoredReleaseWarning):
        assert ask(requirements=asked).verdicts == page.verdicts
    with pytest.raises(ValueError, match="another question"):
        ask(requirements=asked[:1])
    assert ask(spend_name="other").verdicts is None


@pytest.mark.filterwarnings("ignore::dp_metrics.exceptions.SeededReleaseWarning")
def test_the_sentence_about_groups_says_where_a_rule_is_broken():
    right = np.where(SEX == "f", PRED, 1 - Y)  # no positive one is found among the others

    def said(least, y_pred):
        asked = {**OF_GROUPS, "requirements": [f"recall in each group >= {least}"], "random_state": 1}
        return dp.private_evaluate(Y, y_pred, labels=[0, 1], epsilon=2.0, **asked).summary[1]

    told = said(0.5, right)
    assert told.startswith("""The rule "recall in each group >= 0.5" is broken in 'm' (about 0.0""")
    assert told.endswith("is kept in 1 group.")
    told = said(0.9999, right)
    assert "is broken in 'm'" in told
    assert told.endswith("in 1 group we cannot tell.")
    rule = "recall in each group >= 0.9999"
    assert said(0.9999, Y) == f'In 2 groups we cannot tell whether the rule "{rule}" is kept.'


def test_how_many_are_positive_is_no_difference_of_the_model():
    y = np.where(SEX == "f", Y, 1)
    page = dp.private_evaluate(y, y, labels=[0, 1], epsilon=2.0, **OF_GROUPS)
    assert page["prevalence difference"].value > 0.4
    assert "largest gap in selection rate" in page.summary[1]


def test_a_median_has_limits_for_the_rules_of_all_features():
    generator = np.random.default_rng(0)
    y, groups = generator.normal(size=20_000), generator.integers(0, 3, (20_000, 2))
    page = dp.private_evaluate(
        y, y_pred=y + generator.normal(size=y.size) / 2, task="regression", epsilon=8.0,
        sensitive_features=groups, group_labels=[[0, 1, 2]] * 2, crossed=False,
        requirements=["median absolute error <= 1", "share too high in each group <= 0.9"],
    )  # fmt: skip
    assert page.verdicts.answer == "pass"


def test_the_sentence_of_a_broken_rule_never_reaches_the_bound():
    """Ranges are written with more digits where the usual ones would reach beyond the bound."""
    generator = np.random.default_rng(3)
    groups = generator.integers(0, 2, 3000)
    y = generator.integers(0, 2, 3000)
    pred = np.where(generator.random(3000) < np.where(groups == 0, 0.6, 0.8), y, 1 - y)
    released = partial(
        dp.private_evaluate, y, pred, labels=[0, 1], epsilon=8.0, sensitive_features=groups,
        group_labels=[0, 1],
    )  # fmt: skip
    rule = "accuracy in each group >= {}"
    first = released(requirements=rule.format(0.1), random_state=seeded())
    _, upper = first.verdicts["accuracy in 0"].interval
    bound = math.ceil(1000 * upper) / 1000
    again = released(requirements=rule.format(bound), random_state=seeded())
    assert again.verdicts["accuracy in 0"].interval.upper == upper < bound
    (told,) = re.findall(r"broken in 0 \(about [\d.]+ \([\d.]+ to ([\d.]+)\)\)", again.summary[1])
    assert float(told) < bound


def test_reasons_give_advice_that_helps():
    generator = np.random.default_rng(0)
    y = generator.lognormal(3, 1, 3000)
    pred = y * generator.lognormal(0, 0.3, 3000)
    released = partial(dp.private_evaluate, y, pred, task="regression", epsilon=0.2)
    for bounds in (None, (0, 500)):  # which are no limit of a median
        median = released(bounds=bounds)["median absolute error"]
        assert median.noise_interval().upper == np.inf
        why = released(bounds=bounds).check("median absolute error <= 6", about="records")
        assert "More records, or a larger epsilon" in why["median absolute error"].why
    score = generator.beta(1, 20, 60)
    page = dp.private_evaluate(
        (generator.random(60) < score).astype(int), y_score=score, epsilon=2.0, split={"scores": 1}
    )
    why = page.check("observed over expected >= 100")["observed over expected"].why
    assert "median" not in why
    near = partial(evaluated, epsilon=0.3)()
    share = near["recall"].noise_interval()
    bound = float(share.lower + 0.9 * (near["recall"].value - share.lower))
    told = near.check(f"recall >= {bound!r}", about="records")["recall"].why
    assert "about 10 times" in told or "about 9" in told or "about 11" in told


def test_a_number_that_is_too_noisy_to_be_shown_meets_no_rule_but_those_of_every_value():
    page = dp.private_evaluate([1, 0], [1, 0], labels=[0, 1], epsilon=0.1, split={"labels": 1})
    noise = "The number is too noisy to tell."
    for rule, answer, why in (
        ("f1 >= 0", "pass", "Every possible value is at 0 or more. The number itself is too noisy to tell."),
        ("recall <= 1", "pass", "Every possible value is at 1 or less."),
        ("precision > 1", "fail", "Every possible value is at 1 or less."),
        ("f1 > 0", "cannot tell", noise),
        ("accuracy < 1", "cannot tell", noise),
        ("accuracy >= 0.001", "cannot tell", noise),
    ):
        for about in ("people", "records"):
            (found,) = page.check(rule, about=about).values()
            assert (found.answer, found.why[: len(why)]) == (answer, why), (rule, about)
    assert "too noisy to tell</td>" in page.to_html()


def test_a_range_of_few_people_that_is_wide_says_as_much_as_there_is_of_these_records():
    page = dp.private_evaluate([1] * 3, [1] * 3, labels=[0, 1], epsilon=60.0, split={"labels": 1})
    assert page.check("recall >= 0.1")["recall"].answer == "cannot tell"  # 3 of 3 is no range to show
    assert page.check("recall >= 0.9", about="records")["recall"].answer == "pass"


def test_rules_of_errors_without_limit_are_of_every_value_from_0():
    far = dp.private_evaluate(
        [1.0] * 9, [2.0] * 9, task="regression", epsilon=0.1, split={"absolute error": 1, "errors": 1}
    )
    answers = {rule: found.answer for rule in ("mae >= 0", "r2 <= 1", "r2 > 1", "r2 >= 0", "rmse > 0")
               for found in far.check(rule, about="records").values()}  # fmt: skip
    assert answers == {
        "mae >= 0": "pass", "r2 <= 1": "pass", "r2 > 1": "fail", "r2 >= 0": "cannot tell",
        "rmse > 0": "cannot tell",
    }  # fmt: skip
