"""A page about records of which several may be of one person, who is protected with all of them."""

import itertools
from fractions import Fraction
from functools import partial
from unittest import mock

import numpy as np
import pytest
from helpers import loop_over, slow_but
from pages import values
from sklearn import metrics

import dp_metrics as dp
from dp_metrics.analysis.auditing import release_loss
from dp_metrics.page import page_plan

rng = np.random.default_rng(0)
N = 3000
IDS = rng.integers(0, 1500, N)
Y = (rng.random(N) < 0.3).astype(int)
SCORE = 1 / (1 + np.exp(-(rng.normal(size=N) + 2.5 * Y - 2)))
SEX = np.where(IDS % 2, "f", "m")
BY_SEX = {"sensitive_features": SEX, "group_labels": ["f", "m"]}
SEEDED = {"epsilon": 4.0, "random_state": 5}
pytestmark = pytest.mark.filterwarnings("ignore::dp_metrics.exceptions.SeededReleaseWarning")


scored = partial(dp.private_evaluate, Y, y_score=SCORE)


BY_PLACE = {"group_labels": ["a", "b"]}
TARGETS = {"task": "regression", "bounds": (0, 1)}
PERSONS = [0, 1, 0, 2, 1]  # the last record of person 1 is the second
UNIT = [0.1, 0.9, 0.4, 0.2, 0.8]
EACH = {  # of each release what a page is made of, and which share of epsilon some neighbours must show
    "labels": ("y_score", {}, 0.99),
    "scores": ("y_score", {}, 0.99),
    "loss": ("y_score", {}, 0.49),
    "persons": ("y_score", {"equal_groups": True}, 0.99),
    "persons by group": ("y_score", {"equal_groups": True, **BY_PLACE}, 0.99),
    "labels by group": ("y_score", BY_PLACE, 0.99),
    "scores by group": ("y_score", BY_PLACE, 0.99),
    "sides": ("y_pred", {**TARGETS, "tolerance": 0.3}, 0.99),
    "sides by group": ("y_pred", {**TARGETS, "tolerance": 0.3, **BY_PLACE}, 0.99),
    "errors": ("y_pred", TARGETS, 0.2),
    "absolute error": ("y_pred", TARGETS, 0.2),
    "absolute error by group": ("y_pred", {**TARGETS, **BY_PLACE}, 0.1),
    "median error": ("y_pred", TARGETS, 0.2),
    "comparison": ("y_pred", TARGETS, 0.99),
}


@pytest.mark.gate
@pytest.mark.parametrize(
    "name",
    slow_but(["labels by group", "persons", "scores", "loss", "median error", "sides", "comparison"], EACH),
)
def test_each_release_of_a_page_costs_a_person_epsilon_and_no_more(name):
    kind, options, least = EACH[name]
    data, ways = {"y_true": [0, 1, 1, 0, 1], kind: UNIT}, [{}]
    if "equal_groups" not in options:  # which asks for nothing where each person has one record
        ways += [{"max_records": 1}]
    if name == "comparison":
        data["baseline"] = [0.5] * 5
    if "group_labels" in options:
        data["sensitive_features"] = ["a", "b", "a", "a", "b"]
        ways += [{"membership": "public"}]

    def released(y_true, **settings):
        return dp.private_evaluate(y_true, groups=PERSONS, split={name: 1}, **options, **settings)

    for way in ways:
        worst = 0.0
        for true, predicted, group in ((1, 1.0, "b"), (1, 0.0, "a"), (0, 1.0, "b"), (0, 0.0, "a")):
            other = {column: [*values] for column, values in data.items()}
            for place in (0, 2):  # the records of person 0
                other["y_true"][place], other[kind][place] = true, predicted
                if "sensitive_features" in data and "membership" not in way:
                    other["sensitive_features"][place] = group
            worst = max(worst, release_loss(released, data, other, epsilon=1.0, **way))
        assert least <= worst <= 1 + 1e-9, way


def test_persons_of_one_record_are_records():
    page, same = scored(**SEEDED), scored(groups=np.arange(N), **SEEDED)
    assert values(page) == values(same)
    assert same.most_records == 1
    assert same.header == page.header


def test_each_record_has_a_part_of_epsilon_and_the_plan_knows():
    whole = scored(epsilon=3.0, dry_run=True)
    third = scored(epsilon=3.0, groups=IDS // 3, max_records=3, dry_run=True)
    small = scored(epsilon=1.0, n=third.n, dry_run=True)
    assert third["labels"].epsilon == whole["labels"].epsilon
    assert third["labels"].expected_error == pytest.approx(small["labels"].expected_error * N / third.n)


@loop_over("epsilon", [2.0, 9.0])
def test_limits_of_a_median_are_of_these_records_and_closer_than_those_of_all_people(epsilon):
    targets = {"y_pred": SCORE, "task": "regression", "split": {"median error": 1, "median limits": 1}}
    people = dp.private_evaluate(Y, **targets, **SEEDED | {"epsilon": epsilon / 2})
    page = dp.private_evaluate(Y, **targets, groups=IDS, max_records=2, **SEEDED | {"epsilon": epsilon})
    with mock.patch.object(page_plan, "quantile_query", wraps=page_plan.quantile_query) as asked:
        dp.private_evaluate(Y, **targets, groups=IDS, max_records=2, **SEEDED | {"epsilon": epsilon})
    assert {call.kwargs["epsilon"] for call in asked.call_args_list} == {Fraction(epsilon) / 2 / 2}
    median = page["median absolute error"]
    lower, upper = median.noise_interval()
    of_all = people["median absolute error"].population_interval()
    assert of_all.lower < lower < median.value < upper < of_all.upper
    assert median.noise_interval().about == "The median absolute error of these records."
    with pytest.raises(ValueError, match="2 records of each person"):
        median.population_interval()


OTHER = {"y_score": SCORE, "baseline": 1 - SCORE}
LABELS_OF_BOTH = 1 * (SCORE >= 0.5), 1 * (1 - SCORE >= 0.5)
FLAT = np.full(N, 0.4)


@loop_over(
    ("given", "compared", "loss"),
    [
        (OTHER, LABELS_OF_BOTH, "zero_one"),
        ({**OTHER, "equal_groups": True}, LABELS_OF_BOTH, "zero_one"),
        ({"y_pred": SCORE, "baseline": FLAT, "task": "regression"}, (SCORE, FLAT), "mae"),
    ],
)
def test_models_are_compared_on_persons(given, compared, loss):
    persons, of_persons = np.unique(IDS).size, {"groups": IDS, "max_records": 3, **SEEDED}
    page = dp.private_evaluate(Y, **given, **of_persons, split={"comparison": 1})
    alone = dp.private_compare(Y, *compared, loss=loss, **of_persons)
    found = page.released["comparison"]
    assert (found.estimate, found.interval, found.n, found.unit) == (
        alone.estimate, alone.interval, persons, "persons"
    )  # fmt: skip
    assert page.summary[3].startswith(("The model beats the other model: of 100 people", "The model loses"))
    assert "Better for more people is no lower mean error" in page.to_markdown()
    assert type(page).from_json(page.to_json()).released["comparison"].to_dict() == found.to_dict()
    assert page.results[0].deployment is None  # it is drawn from a seed


def test_a_comparison_of_persons_is_stored_with_how_many_there_are(tmp_path):
    asked = {"y_score": SCORE, "baseline": 1 - SCORE, "epsilon": 4.0, "groups": IDS}
    page = dp.private_evaluate(
        Y, **asked, spend_name="page", accountant=dp.PrivacyAccountant(4, path=tmp_path / "budget")
    )
    stored = dp.PrivacyAccountant(4, path=tmp_path / "budget")["page"]
    assert stored.to_dict()["comparison"] == page.to_dict()["comparison"]
    assert stored.released["comparison"].n == np.unique(IDS).size
    alone = dp.private_evaluate(Y, **asked, split={"comparison": 1})
    for one in (stored, alone):
        assert one.deployment["privacy_loss"]["privacy_unit"] == "person"
        assert f"up to {np.bincount(IDS).max()}" in one.deployment["privacy_loss"]["privacy_unit_details"]


def test_no_range_of_records_speaks_of_all_people():
    page = scored(epsilon=4.0, groups=IDS, max_records=2, **BY_SEX)
    rows = page.to_dict()["numbers"]
    assert all(row["people"] is None for row in rows)
    assert sum(row["noise"] is not None for row in rows) > 10
    assert page.check("recall >= 0.1").answer == "cannot tell"
    assert page.check("recall >= 0.1", about="records").answer == "pass"
    assert "about these records only" in page.summary[2]
    assert (
        "each person epsilon-differential privacy: who guesses from it whether your records "
        in page.summary[4]
    )
    details = page.deployment["privacy_loss"]
    assert details["privacy_unit"] == "person"
    assert "up to 2" in details["privacy_unit_details"]
    scores = page.released["scores"]
    of_curves = scores.calibration_band, scores.roc_band, scores.precision_recall_band
    for ask in (*of_curves, scores.population_interval):
        with pytest.raises(ValueError, match="2 records of each person"):
            ask()


ONCE = {"groups": IDS, "equal_groups": True}
OF_LABELS = {
    "accuracy": metrics.accuracy_score,
    "recall": metrics.recall_score,
    "precision": metrics.precision_score,
    "f1": metrics.f1_score,
}


@pytest.fixture(scope="module")
def grouped():
    rule = "recall, each person once in each group >= 0.2"
    return scored(epsilon=1e6, random_state=5, **BY_SEX, **ONCE, requirements=rule)


def test_numbers_of_persons_are_those_of_records_weighted_by_their_person(grouped):
    weights, predicted = 1 / np.bincount(IDS)[IDS], SCORE >= 0.5
    by_group = ["accuracy", "recall", "precision"]
    for page, groups, names in (
        (scored(epsilon=1e6, random_state=5, **ONCE), [None], OF_LABELS),
        (grouped, [None], OF_LABELS),
        (grouped, ["f", "m"], by_group),
    ):
        for group, name in itertools.product(groups, names):
            some = slice(None) if group is None else group == SEX
            within = "" if group is None else f" in {group!r}"
            records = OF_LABELS[name](Y[some], predicted[some])
            persons = OF_LABELS[name](Y[some], predicted[some], sample_weight=weights[some])
            number = page[f"{name}, each person once{within}"]
            assert page[name + within].value == pytest.approx(records)
            assert number.value == pytest.approx(persons)
            lower, upper = number.population_interval()
            assert lower < persons < upper


def test_groups_of_persons_speak_of_people_too(grouped):
    assert grouped["recall, each person once in 'f'"].release == "persons by group"
    assert [*grouped.verdicts] == [f"recall, each person once in {group!r}" for group in "fm"]
    assert grouped.verdicts.answer == "pass"
    assert "is kept in 2 groups" in grouped.summary[1]
    captions = [one.partition("<")[0] for one in grouped.to_html().split("<caption>")[1:]]
    assert [one for one in captions if one.startswith("By group")] == [
        "By group, with ranges of 95 %", "By group, each person once, with ranges of 95 %",
    ]  # fmt: skip
    few = scored(epsilon=0.1, random_state=5, **BY_SEX, **ONCE, dry_run=True)
    assert "persons" in few
    assert any("each person once, by group" in one.about for one in few.left_out)


def test_numbers_of_persons_are_stored_and_required():
    name = "recall, each person once"
    page = scored(epsilon=4.0, **ONCE, max_records=2, requirements=[f"{name} >= 0.2"])
    assert page.verdicts.answer == "pass"
    assert "among all people" in page[name].population_interval().about
    with pytest.raises(ValueError, match="one person each"):
        page["recall"].population_interval()
    part, persons = page.plan["persons"], slice(np.unique(IDS).size)
    few = dp.private_evaluate(
        Y[persons], y_score=SCORE[persons], epsilon=part.epsilon, split={"labels": 1}, dry_run=True
    )
    assert part.expected_error == pytest.approx(few["labels"].expected_error)
    again = type(page).from_json(page.to_json())
    assert again[name].population_interval() == page[name].population_interval()
    assert values(again) == values(page)
