"""Exact shares, and parts that one spend pays for: what they may spend, and that it is private."""

import copy
import inspect
import itertools
import json
import math
import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cases import CASES, valid
from helpers import NoEntropy, list_table
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.model_selection import cross_val_score

import dp_metrics as dp
from dp_metrics import PrivacyAccountant, auditing
from dp_metrics.accounting import parts_of
from dp_metrics.exceptions import PrivacyBudgetError

WITHIN_GROUPS = "replace_one_within_groups"


@pytest.fixture(params=["memory", "file"])
def make(request, tmp_path):
    """A function that makes an accountant of either kind; a file is opened again by each call."""
    return lambda total: PrivacyAccountant(total, None if request.param == "memory" else tmp_path / "budget")


# Exact shares

TOTALS = [0.1, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, Fraction(1, 3), Decimal("0.9")]


@pytest.mark.parametrize("total", TOTALS, ids=str)
def test_shares_are_spent_one_after_the_other_and_nothing_is_left(total):
    for k in range(1, 31):
        budget = PrivacyAccountant(total)
        shares = budget.split(k)
        assert len(shares) == k
        assert len({*shares}) == 1
        for share in shares:
            budget.spend(share, "share")
        assert budget.remaining == 0.0
        with pytest.raises(PrivacyBudgetError):
            budget.require(Fraction(1, 10**200))


def test_floats_are_refused_where_shares_are_not():
    """Otherwise there would be no need for shares."""
    refused = 0
    for total, k in itertools.product(TOTALS[:8], range(2, 31)):
        budget = PrivacyAccountant(total)
        try:
            for _ in range(k):
                budget.spend(total / k, "share")
        except PrivacyBudgetError:
            refused += 1
    assert refused == 44  # of 232


def test_what_is_left_is_split_and_nothing_is_reserved(make):
    budget = make(1.0)
    budget.spend(0.4, "first")
    assert budget.split(3) == budget.split(3) == (Fraction(1, 5),) * 3
    assert budget.spent == 0.4
    assert [type(share) for share in budget.split(2)] == [Fraction] * 2
    assert budget.split(np.int64(2)) == (Fraction(3, 10),) * 2


@pytest.mark.parametrize("k", [0, -1, 2.0, True, None, "2", 1_000_001], ids=repr)
def test_the_number_of_shares_is_a_whole_number(k):
    with pytest.raises(ValueError, match="k must be an integer from 1 to 1000000"):
        PrivacyAccountant(1.0).split(k)


def test_nothing_cannot_be_split(make):
    budget = make(1.0)
    budget.spend(1.0, "all")
    with pytest.raises(PrivacyBudgetError, match=r"left to split: 1\.0 of the total of 1\.0 is spent"):
        budget.split(2)
    with pytest.raises(ValueError, match="too small to be split"):
        PrivacyAccountant(Fraction(1, 10**320)).split(10**6)


SHARED = 0.7  # a third of it is no decimal


def spent_in_thirds(release):
    """Call ``release(epsilon, accountant)`` with each of three shares; nothing may be left."""
    budget = PrivacyAccountant(SHARED)
    for share in budget.split(3):
        release(share, budget)
    assert budget.remaining == 0.0
    assert [spend.epsilon for spend in budget.history] == [float(Fraction(7, 30))] * 3
    with pytest.raises(PrivacyBudgetError):
        release(share, budget)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_metric_takes_a_share(case):
    data = valid(case)
    spent_in_thirds(lambda share, budget: case(*data, epsilon=share, accountant=budget))


y = np.tile([0, 1, 1, 0, 1], 80)
score = np.tile([0.1, 0.9, 0.6, 0.4, 0.2], 80)
model = DummyRegressor().fit(y[:, np.newaxis], y)


def summary_of(kind, *data):
    return kind.from_data(*data)


def search_with(epsilon, budget):
    search = dp.PrivateRandomizedSearch(
        DummyRegressor(),
        {"quantile": [0.1, 0.5]},
        metric=dp.private_mae,
        epsilon=epsilon,
        expected_iter=1,
        accountant=budget,
    )
    search.fit(y[:, np.newaxis], y, X_val=y[:, np.newaxis], y_val=y)


def frame_of(epsilon, budget):
    dp.PrivateMetricFrame(
        metrics=dp.private_accuracy_score,
        y_true=y,
        y_pred=score > 0.5,
        sensitive_features=y,
        group_labels=[0, 1],
        epsilon=epsilon,
        accountant=budget,
    )


DOORS = {
    "scorer": lambda e, a: dp.make_private_scorer(dp.private_mae, epsilon=e, accountant=a)(
        model, y[:, np.newaxis], y
    ),
    "search": search_with,
    "frame": frame_of,
    "loss summary": lambda e, a: summary_of(dp.LossSummary, dp.private_mae, y, score).release(
        epsilon=e, accountant=a
    ),
    "variance summary": lambda e, a: summary_of(dp.VarianceSummary, score).release(epsilon=e, accountant=a),
    "confusion summary": lambda e, a: summary_of(dp.ConfusionSummary, y, y).release(epsilon=e, accountant=a),
    "score summary": lambda e, a: summary_of(dp.ScoreSummary, y, score).release(epsilon=e, accountant=a),
    "comparison": lambda e, a: dp.private_compare(y, score > 0.5, y, epsilon=e, accountant=a),
    "choice": lambda e, a: dp.private_best(y, [score > 0.5, y], metric="accuracy", epsilon=e, accountant=a),
    "mean interval": lambda e, a: dp.private_mean_interval(score, max_loss=1, epsilon=e, accountant=a),
    "capped mean interval": lambda e, a: dp.private_mean_interval(
        np.tile(score, 3), cap="private", epsilon=e, accountant=a
    ),
    "quantile interval": lambda e, a: dp.private_quantile_interval(score, 0.5, epsilon=e, accountant=a),
    "spend": lambda e, a: a.spend(e, "by hand"),
}


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_every_door_takes_a_share(door):
    spent_in_thirds(door)


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_every_door_is_paid_by_a_part(door):
    budget = PrivacyAccountant(1.0)
    part = budget.parallel(0.5, ["a"])["a"]
    door(0.5, part)
    assert (part.remaining, budget.remaining) == (0.0, 0.5)
    with pytest.raises(PrivacyBudgetError, match="of the part 'a' is spent"):
        door(0.5, part)


def test_the_doors_are_all_that_take_an_accountant():
    """A new public name that spends belongs into the table above."""
    takes = {
        name
        for name in dp.__all__
        if callable(thing := getattr(dp, name))
        and any(
            "accountant" in inspect.signature(function).parameters
            for function in (thing, getattr(thing, "release", thing))
            if not (isinstance(thing, type) and issubclass(thing, Exception | Warning))
        )
    }
    others = takes - {*vars(dp).keys() & {name for name in takes if name.startswith("private_")}}
    assert others == {
        "make_private_scorer",
        "get_private_scorer",
        "PrivateRandomizedSearch",
        "PrivateMetricFrame",
        "LossSummary",
        "VarianceSummary",
        "ConfusionSummary",
        "ScoreSummary",
        "PrivateScorer",
    } & {*dp.__all__}


@pytest.mark.slow
def test_shares_pay_for_the_folds_of_a_cross_validation(tmp_path):
    budget = PrivacyAccountant(1.0, tmp_path / "budget")
    scorer = dp.make_private_scorer(dp.private_mae, epsilon=budget.split(3)[0], accountant=budget)
    scores = cross_val_score(model, y[:, np.newaxis], y, scoring=scorer, cv=3, n_jobs=2, error_score="raise")
    assert np.isfinite(scores).all()
    assert budget.remaining == 0.0


def test_the_result_of_a_share_is_written_as_json():
    result = dp.with_result(dp.private_mae)(y, score, epsilon=PrivacyAccountant(1.0).split(3)[0])
    assert json.loads(result.to_json())["epsilon"] == 1 / 3


# Parts: one spend, and a budget for each


def test_all_parts_cost_one_epsilon_at_once(make):
    budget = make(1.0)
    parts = budget.parallel(0.6, ["a", "b", "c"])
    assert [*parts] == ["a", "b", "c"]
    assert (budget.spent, budget.remaining) == (0.6, 0.4)
    for part in parts.values():
        assert (part.total, part.spent, part.history, part.path) == (0.6, 0.0, (), budget.path)
        part.spend(0.6, "all of it")
        with pytest.raises(PrivacyBudgetError):
            part.spend(1e-9, "more")
    assert budget.spent == 0.6
    [paid] = budget.history
    assert (paid.spend_name, paid.epsilon, paid.mechanism) == ("parallel: a, b, c", 0.6, None)
    assert [spend.spend_name for spend in parts["a"].history] == ["all of it"]


def test_parts_of_a_share_are_exact(make):
    budget = make(1.0)
    for share, quarter in zip(budget.split(3), "abc", strict=True):
        for part in budget.parallel(share, [quarter + "1", quarter + "2"]).values():
            for third in part.split(3):
                part.spend(third, "a ninth")
            assert part.remaining == 0.0
    assert budget.remaining == 0.0


def test_too_much_for_all_parts_is_refused_and_makes_none(make):
    budget = make(1.0)
    with pytest.raises(PrivacyBudgetError, match=r"epsilon=1\.5 was asked for.*split\(k\)"):
        budget.parallel(1.5, ["a", "b"])
    assert (budget.spent, budget.history) == (0.0, ())
    assert budget.parallel(1.0, ["a", "b"])["a"].total == 1.0  # the names are free


@pytest.mark.parametrize(
    ("names", "error"),
    [
        ("abc", TypeError),
        (b"abc", TypeError),
        (3, TypeError),
        (None, TypeError),
        ([1, 2], TypeError),
        (["a", None], TypeError),
        ([], ValueError),
        ([""], ValueError),
        (["a", ""], ValueError),
        (["a", "b", "a"], ValueError),
    ],
    ids=repr,
)
def test_names_are_distinct_strings(make, names, error):
    budget = make(1.0)
    with pytest.raises(error, match="names must be"):
        budget.parallel(0.5, names)
    assert budget.history == ()


@pytest.mark.parametrize("epsilon", [0, -1.0, math.nan, math.inf, True, "1"], ids=repr)
def test_a_part_needs_an_epsilon(make, epsilon):
    with pytest.raises(ValueError, match="epsilon must be"):
        make(1.0).parallel(epsilon, ["a"])


@pytest.mark.parametrize("neighboring", [WITHIN_GROUPS, "add", None])
def test_parts_have_one_of_the_two_relations_of_metrics(make, neighboring):
    with pytest.raises(ValueError, match="neighboring must be one of"):
        make(1.0).parallel(0.5, ["a"], neighboring=neighboring)


def test_names_may_hold_anything(make):
    budget, names = make(1.0), ["'; DROP TABLE parts --", "a, b", "Wöche 1", " ", "%s :part ?"]
    for name, part in budget.parallel(0.5, names).items():
        part.spend(0.25, name)
    assert [part.history[0].spend_name for part in budget.parallel(0.5, names).values()] == names
    assert names[0] in repr(budget.parallel(0.5, names)[names[0]])


# The same call again: after a crash, in a second process, in a notebook


def test_the_same_call_returns_the_same_parts_and_charges_nothing(make):
    make(1.0).parallel(0.6, ["a", "b"])
    budget = make(1.0)
    first = budget.parallel(0.6, ["a", "b"])
    first["a"].spend(0.5, "before")
    again = (make(1.0) if budget.path else budget).parallel(Decimal("0.60"), (name for name in "ba"))
    assert [*again] == ["b", "a"]
    assert again["a"].remaining == 0.1
    assert [spend.spend_name for spend in again["a"].history] == ["before"]
    again["a"].spend(0.1, "after")
    with pytest.raises(PrivacyBudgetError):
        first["a"].spend(0.1, "twice")
    assert (budget.spent, len(budget.history)) == (0.6, 1)


def test_the_same_call_returns_parts_of_a_budget_that_is_used_up(make):
    budget = make(1.0)
    budget.parallel(1.0, ["a", "b"])
    budget.parallel(1.0, ["a", "b"])["b"].spend(1.0, "x")
    assert budget.remaining == 0.0


@pytest.mark.parametrize(
    ("epsilon", "names", "neighboring"),
    [
        (0.3, ["a", "b"], "replace_one"),
        (Fraction(1, 3), ["a", "b"], "replace_one"),
        (0.2, ["a"], "replace_one"),
        (0.2, ["a", "b", "c"], "replace_one"),
        (0.2, ["b", "c"], "replace_one"),
        (0.2, ["a", "b", "x", "y"], "replace_one"),
        (0.2, ["a", "x"], "replace_one"),
        (0.2, ["a", "b"], "add_or_remove_one"),
    ],
    ids=str,
)
def test_another_call_with_a_known_name_is_refused(make, epsilon, names, neighboring):
    budget = make(1.0)
    budget.parallel(0.2, ["a", "b"])
    budget.parallel(0.2, ["x", "y"])
    with pytest.raises(ValueError, match=r"was divided before into.*repeat that call.*needs other names"):
        budget.parallel(epsilon, names, neighboring=neighboring)
    assert budget.spent == 0.4


def test_other_names_are_other_parts_and_cost_again(make):
    budget = make(1.0)
    budget.parallel(0.4, ["a", "b"])["a"].spend(0.4, "x")
    assert budget.parallel(0.4, ["c", "d"])["c"].remaining == 0.4
    assert budget.spent == 0.8


def test_a_part_is_divided_again(make):
    budget = make(1.0)
    week, other = budget.parallel(0.6, ["week 1", "week 2"]).values()
    sites = week.parallel(0.4, ["a", "b"])
    assert other.parallel(0.6, ["a", "b"])["a"].total == 0.6  # names are those of one division
    sites["a"].spend(0.3, "x")
    assert (budget.spent, week.spent, other.spent, sites["a"].spent, sites["b"].spent) == (
        *(0.6, 0.4, 0.6),
        *(0.3, 0.0),
    )
    with pytest.raises(PrivacyBudgetError, match="of the part 'week 1 / a' is spent"):
        sites["a"].spend(0.2, "x")
    with pytest.raises(PrivacyBudgetError, match="of the part 'week 1' is spent"):
        week.parallel(0.3, ["c"])
    assert week.parallel(0.4, ["a", "b"])["a"].spent == 0.3
    assert [spend.spend_name for spend in week.history] == ["parallel: a, b"]


def test_parts_are_found_by_their_names_and_are_the_same_budgets(make):
    budget = make(2.0)
    assert parts_of(budget) == {}
    weeks = budget.parallel(0.5, ["week 1", "week 2"])
    budget.parallel(Fraction(1, 3), ["site"], neighboring="replace_one")
    weeks["week 1"].spend(0.25, "error", neighboring="replace_one")
    weeks["week 1"].parallel(0.25, ["north"])
    there = parts_of(budget)
    assert {name: (part.total, part.spent) for name, part in there.items()} == {
        "week 1": (0.5, 0.5),
        "week 2": (0.5, 0.0),
        "site": (1 / 3, 0.0),
    }
    there["week 2"].spend(0.5, "error")
    assert weeks["week 2"].remaining == 0
    assert [*parts_of(there["week 1"])] == ["north"]
    there["site"].spend(Fraction(1, 3), "exactly")
    with pytest.raises(ValueError, match="neighboring"):
        parts_of(budget)["week 1"].spend(0.1, "error", neighboring="add_or_remove_one")


# One relation


@pytest.mark.parametrize(
    ("neighboring", "kept", "taken"),
    [
        ("replace_one", WITHIN_GROUPS, {"replace_one", WITHIN_GROUPS}),
        ("add_or_remove_one", "add_or_remove_one", {"add_or_remove_one"}),
    ],
)
def test_a_part_takes_what_its_payment_covers(make, neighboring, kept, taken):
    budget = make(1.0)
    part = budget.parallel(0.5, ["a"], neighboring=neighboring)["a"]
    assert [spend.neighboring for spend in budget.history] == [kept]
    for asked in ("replace_one", WITHIN_GROUPS, "add_or_remove_one", "replace_one"):
        for payer in (part, budget):
            if asked in taken:
                payer.spend(0.01, "x", neighboring=asked)
            else:
                with pytest.raises(ValueError, match=f"kept under neighboring='{kept}'"):
                    payer.spend(0.01, "x", neighboring=asked)
    assert {spend.neighboring for spend in part.history} == taken
    if neighboring == "replace_one":
        part.parallel(0.1, ["b"])["b"].spend(0.1, "x")
        with pytest.raises(ValueError, match="kept under"):
            part.parallel(0.1, ["c"], neighboring="add_or_remove_one")


@pytest.mark.parametrize("promised", ["replace_one", "add_or_remove_one"])
def test_a_promise_is_not_weakened_afterwards(make, promised):
    budget = make(1.0)
    budget.spend(0.25, "first", neighboring=promised)
    with pytest.raises(
        ValueError, match=f"'{WITHIN_GROUPS}' was asked.* kept under neighboring='{promised}'"
    ) as no:
        budget.parallel(0.25, ["a"])
    assert ("or begin a new one with this spend" in str(no.value)) == (promised == "replace_one")
    assert budget.spent == 0.25
    with pytest.raises(ValueError, match="kept under"):
        budget.spend(0.25, "second", neighboring=WITHIN_GROUPS)


def test_a_release_under_the_wrong_relation_draws_nothing(make):
    part = make(1.0).parallel(0.5, ["a"])["a"]
    with pytest.raises(ValueError, match="kept under"):
        dp.private_mae(
            y, score, epsilon=0.5, accountant=part, neighboring="add_or_remove_one", random_state=NoEntropy()
        )
    with pytest.raises(PrivacyBudgetError):
        dp.private_mae(y, score, epsilon=0.6, accountant=part, random_state=NoEntropy())
    assert part.spent == 0.0


# Is it private? Exact losses on all neighbours of a tiny domain

RECORDS = [(0, 0), (0, 1)]  # label and prediction: right and wrong
EPSILON = 0.5


def loss(part_a, part_b, **options):
    """The exact loss of what is released about one part in two data sets."""
    return auditing.metric_loss(
        dp.private_accuracy_score,
        *(([label for label, _ in part], [guess for _, guess in part]) for part in (part_a, part_b)),
        epsilon=EPSILON,
        mechanism="geometric",
        **options,
    )


def all_parts(sizes):
    """Every data set that has these numbers of records in its parts."""
    return itertools.product(*(itertools.product(RECORDS, repeat=size) for size in sizes))


def changes(a, b):
    return [sum(x != z for x, z in zip(part, other, strict=True)) for part, other in zip(a, b, strict=True)]


def test_two_parts_together_lose_what_one_loses_where_one_record_is_replaced_in_its_part():
    joint = [
        sum(loss(*parts) for parts in zip(a, b, strict=True))
        for a, b in itertools.combinations(all_parts([2, 2]), 2)
        if sum(changes(a, b)) == 1
    ]
    assert len(joint) == 32
    assert max(joint) == min(joint) == pytest.approx(EPSILON, rel=1e-12)  # the dearest part, not the sum


def test_a_record_in_two_parts_loses_the_sum():
    """A person who returns: one record in each part."""
    joint = [
        sum(loss(*parts) for parts in zip(a, b, strict=True))
        for a, b in itertools.combinations(all_parts([2, 2]), 2)
        if changes(a, b) == [1, 1]
    ]
    assert max(joint) == pytest.approx(2 * EPSILON, rel=1e-12)


def test_a_record_that_moves_gives_itself_away_if_the_numbers_of_records_are_public():
    """So parts must never follow from a private column: no epsilon would cover it."""
    first, second = [(0, 0), (0, 1)], [(0, 0)]
    assert loss(first, first[:1]) + loss(second, [*second, first[1]]) == math.inf


def test_with_private_numbers_of_records_a_record_that_moves_costs_both_parts():
    options = {"neighboring": "add_or_remove_one"}
    missing, moved = [], []
    for record, a, b in itertools.product(RECORDS, all_parts([1]), all_parts([1])):
        (a,), (b,) = a, b
        removed, added = loss([*a, record], a, **options), loss(b, [*b, record], **options)
        missing += [removed, added]
        moved.append(removed + added)
    assert max(missing) <= EPSILON * (1 + 1e-12)
    assert EPSILON < max(moved) <= 2 * EPSILON * (1 + 1e-12)


def spend_as_it_pleases(choose, answers):
    """Spend from a budget and two parts as earlier answers say; return the losses of two records.

    Each record is in one part. The answer of a release is right or wrong about a bit of the record, with odds
    of exp(epsilon); of a release from the whole budget it is about the bits of both, and counts for both.
    """
    budget = PrivacyAccountant(1.0)
    parts = budget.parallel(Fraction(1, 2), ["a", "b"])
    payers = [(parts["a"], [0]), (parts["b"], [1]), (budget, [0, 1])]
    losses = [Fraction(0), Fraction(0)]
    for step, answer in enumerate(answers):
        payer, about = payers[choose(answers[:step], 3)]
        epsilon = Fraction(1 + choose((*answers[:step], "epsilon"), 4), 8)
        try:
            payer.spend(epsilon, "a bit")
        except PrivacyBudgetError:
            continue
        for record in about:
            losses[record] += epsilon if answer else -epsilon
    return losses


def test_whatever_is_asked_for_next_no_record_loses_more_than_the_total():
    """Strategies that choose part and epsilon by earlier answers; every sequence of answers, exactly."""
    worst = Fraction(0)
    for seed in range(40):

        def choose(history, options, seed=seed):
            return random.Random(f"{seed} {history}").randrange(options)

        for answers in itertools.product([False, True], repeat=7):
            worst = max(worst, *map(abs, spend_as_it_pleases(choose, answers)))
    assert worst == 1


# Copies, other processes, threads, pandas


def test_copies_of_a_part_are_the_same_budget(make):
    part = make(1.0).parallel(0.5, ["a"])["a"]
    assert copy.copy(part) is copy.deepcopy(part) is clone(part) is part
    scorer = dp.make_private_scorer(dp.private_mae, epsilon=0.1, accountant=part)
    assert clone(scorer).accountant is part


def test_a_part_in_memory_cannot_be_pickled():
    with pytest.raises(TypeError, match=r"cannot be pickled.*pass path= to PrivacyAccountant"):
        pickle.dumps(PrivacyAccountant(1.0).parallel(0.5, ["a"]))


def test_a_pickled_part_is_the_same_budget(tmp_path):
    third = Fraction(1, 3)
    part = PrivacyAccountant(1.0, tmp_path / "budget").parallel(third, ["a", "b"])["b"]
    twin = pickle.loads(pickle.dumps(part))
    twin.spend(Fraction(1, 6), "twin")
    part.spend(Fraction(1, 6), "original")
    assert part.remaining == twin.remaining == 0.0
    assert twin.history == part.history
    assert repr(twin) == repr(part)
    file = f"path={str(tmp_path / 'budget')!r}"
    told = f"spent {1 / 3}, left 0.0, releases 2"
    assert repr(part) == f"PrivacyAccountant(epsilon={1 / 3}, {told}, {file}, part 'b')"
    with pytest.raises(ValueError, match="kept under"):
        twin.spend(0.1, "x", neighboring="add_or_remove_one")


def test_threads_divide_a_budget_once_and_share_its_parts(make):
    budget = make(1.0)

    def work(_):
        admitted = 0
        for name, part in budget.parallel(0.5, ["a", "b"]).items():
            for _ in range(20):
                try:
                    part.spend(0.01, name)
                    admitted += 1
                except PrivacyBudgetError:
                    pass
        return admitted

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(work, range(8))) == 100
    assert (budget.spent, len(budget.history)) == (0.5, 1)
    assert [len(part.history) for part in budget.parallel(0.5, ["a", "b"]).values()] == [50, 50]


def test_a_history_is_a_data_frame(make):
    budget = make(1.0)
    part = budget.parallel(0.5, ["a", "b"])["a"]
    dp.private_mae(y, score, epsilon=0.25, accountant=part, spend_name="week 1")
    dp.private_mae(y, score, epsilon=0.125, accountant=part)
    table = pd.DataFrame(part.history)
    assert [*table.columns] == ["time", "spend_name", "epsilon", "mechanism", "neighboring"]
    assert table["spend_name"].tolist() == ["week 1", "private_mae"]
    assert table.groupby("neighboring")["epsilon"].sum().to_dict() == {"replace_one": 0.375}
    assert str(table["time"].dt.tz) == "UTC"
    assert pd.DataFrame(budget.history)["spend_name"].tolist() == ["parallel: a, b"]


# The page of the documentation


@pytest.mark.slow
def test_the_errors_of_the_quarterly_report_are_those_to_expect():
    header, *rows = list_table(Path(__file__).parents[2] / "docs" / "measured" / "quarterly.inc")
    sizes = [int(cell.removeprefix("n = ").replace(",", "")) for cell in header[2:]]
    rng = np.random.default_rng(0)
    ill = rng.random(3000) < 0.2
    guess = np.clip(np.where(ill, 0.7, 0.15) + rng.normal(0, 0.2, 3000), 0.01, 0.99)
    metrics = {
        "accuracy": (dp.private_accuracy_score, guess > 0.5),
        "recall": (dp.private_recall_score, guess > 0.5),
        "log loss": (dp.private_log_loss, guess),
    }
    assert [row[:2] for row in rows] == [[name, epsilon] for name in metrics for epsilon in ("2/3", "1/18")]
    for name, epsilon, *cells in rows:
        metric, predicted = metrics[name]
        expected = [
            dp.expected_error(metric, ill, predicted, epsilon=Fraction(epsilon), n=n).mean_absolute
            for n in sizes
        ]
        assert [float(cell) for cell in cells] == pytest.approx(expected, abs=0.0001, rel=0.02)
