"""Exact shares, and parts that one spend pays for: what they may spend, and that it is private.

It goes with `split` and `parallel`. Parts in a file, and in several processes, are in test_ledgers.
"""

import copy
import itertools
import math
import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from cases import CASES, KINDS, valid
from helpers import NoEntropy, list_table, loop_over
from sklearn.base import clone
from sklearn.dummy import DummyRegressor

import dp_metrics as dp
from dp_metrics import PrivacyAccountant, auditing
from dp_metrics.accounting import parts_of
from dp_metrics.exceptions import PrivacyBudgetError

WITHIN_GROUPS = "replace_one_within_groups"
OTHER_RELATION = {"neighboring": "add_or_remove_one"}


@pytest.fixture(params=["memory", "file"])
def make(request, tmp_path):
    """A function that makes an accountant of either kind; a file is opened again by each call."""
    return lambda total: PrivacyAccountant(total, None if request.param == "memory" else tmp_path / "budget")


# Exact shares


@loop_over("total", [0.1, 0.3, 0.7, 1.5, 3.0, Fraction(1, 3), Decimal("0.9")])
def test_shares_are_spent_one_after_the_other_and_nothing_is_left(total):
    for k in range(1, 31):
        budget = PrivacyAccountant(total)
        shares = budget.split(np.int64(k))
        assert len(shares) == k
        assert len({*shares}) == 1
        for share in shares:
            budget.spend(share, "share")
        assert budget.remaining == 0.0
        with pytest.raises(PrivacyBudgetError):
            budget.require(Fraction(1, 10**200))


def test_what_is_left_is_split_and_nothing_is_reserved(make):
    budget = make(1.0)
    budget.spend(0.4, "first")
    assert budget.split(3) == budget.split(3) == (Fraction(1, 5),) * 3
    assert budget.spent == 0.4
    budget.spend(0.6, "all")
    with pytest.raises(PrivacyBudgetError, match=r"left to split: 1\.0 of the total of 1\.0 is spent"):
        budget.split(2)


y = np.tile([0, 1, 1, 0, 1], 80)
score = np.tile([0.1, 0.9, 0.6, 0.4, 0.2], 80)
column = y[:, np.newaxis]


def search_with(epsilon, budget):
    options = {"metric": dp.private_mae, "epsilon": epsilon, "expected_iter": 1, "accountant": budget}
    search = dp.PrivateRandomizedSearch(DummyRegressor(), {"quantile": [0.1, 0.5]}, **options)
    search.fit(column, y, X_val=column, y_val=y)


def score_with(epsilon, budget):
    scorer = dp.make_private_scorer(dp.private_mae, epsilon=epsilon, accountant=budget)
    assert clone(scorer).accountant is budget
    scorer(DummyRegressor().fit(column, y), column, y)


FRAME = {"y_true": y, "y_pred": score > 0.5, "sensitive_features": y, "group_labels": [0, 1]}
DOORS = {
    "scorer": score_with,
    "search": search_with,
    "frame": lambda e, a: dp.PrivateMetricFrame(metrics="accuracy", **FRAME, epsilon=e, accountant=a),
    "losses": lambda e, a: dp.LossSummary.from_data("mae", y, score).release(e, accountant=a),
    "variance": lambda e, a: dp.VarianceSummary.from_data(score).release(e, accountant=a),
    "labels": lambda e, a: dp.ConfusionSummary.from_data(y, y).release(e, accountant=a),
    "scores": lambda e, a: dp.ScoreSummary.from_data(y, score).release(e, accountant=a),
    "comparison": lambda e, a: dp.private_compare(y, score > 0.5, y, epsilon=e, accountant=a),
    "choice": lambda e, a: dp.private_best(y, [score > 0.5, y], metric="accuracy", epsilon=e, accountant=a),
    "mean interval": lambda e, a: dp.private_mean_interval(score, max_loss=1, epsilon=e, accountant=a),
    "capped interval": lambda e, a: dp.private_mean_interval(
        np.tile(score, 3), cap="private", epsilon=e, accountant=a
    ),
    "quantile interval": lambda e, a: dp.private_quantile_interval(score, 0.5, epsilon=e, accountant=a),
    **{
        name: lambda e, a, case=CASES[name]: case(*valid(case), epsilon=e, accountant=a)
        for name in sorted(KINDS)
    },
}


@loop_over("door", DOORS)
def test_every_door_is_paid_by_a_part_and_takes_exact_shares_of_it(door):
    total = 0.7  # a third of it is no decimal
    budget = PrivacyAccountant(1.0)
    part = budget.parallel(total, ["a"])["a"]
    for share in part.split(3):
        DOORS[door](share, part)
    assert (part.remaining, budget.remaining) == (0.0, 0.3)
    assert [spend.epsilon for spend in part.history] == [float(Fraction(7, 30))] * 3
    with pytest.raises(PrivacyBudgetError, match="of the part 'a' is spent"):
        DOORS[door](share, part)


# Parts: one spend, and a budget for each


def test_all_parts_cost_one_epsilon_at_once(make):
    budget = make(1.0)
    assert parts_of(budget) == {}
    with pytest.raises(PrivacyBudgetError, match=r"epsilon=1\.5 was asked for.*split\(k\)"):
        budget.parallel(1.5, ["a", "b"])
    assert (budget.spent, budget.history) == (0.0, ())
    parts = budget.parallel(0.6, ["a", "b", "c"])  # whose names are free
    assert [*parts] == ["a", "b", "c"]
    assert (budget.spent, budget.remaining) == (0.6, 0.4)
    for part in parts.values():
        assert (part.total, part.spent, part.history, part.path) == (0.6, 0.0, (), budget.path)
        for third in part.split(3):
            part.spend(third, "a third")
        with pytest.raises(PrivacyBudgetError):
            part.spend(1e-9, "more")
    assert budget.spent == 0.6
    [paid] = budget.history
    assert (paid.spend_name, paid.epsilon, paid.mechanism) == ("parallel: a, b, c", 0.6, None)
    budget.parallel(0.4, ["d"])
    assert {name: (part.total, part.spent) for name, part in parts_of(budget).items()} == {
        **dict.fromkeys("abc", (0.6, 0.6)),
        "d": (0.4, 0.0),
    }
    parts_of(budget)["d"].spend(Fraction(2, 5), "exactly")
    assert budget.parallel(0.4, ["d"])["d"].remaining == budget.remaining == 0


def test_names_may_hold_anything(make):
    budget, names = make(1.0), ["'; DROP TABLE parts --", "a, b", "Wöche 1", " ", "%s :part ?"]
    for name, part in budget.parallel(0.5, names).items():
        part.spend(0.25, name)
        assert repr(name) in repr(part) or name in repr(part)
    assert [part.history[0].spend_name for part in budget.parallel(0.5, names).values()] == names


def test_the_same_call_returns_the_same_parts_and_charges_nothing(make):
    """After a crash, in a second process, in a notebook."""
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


def test_another_call_with_a_known_name_is_refused(make):
    budget = make(1.0)
    budget.parallel(0.2, ["a", "b"])
    budget.parallel(0.2, ["x", "y"])
    other_names = [(0.2, names, {}) for names in ("a", "abc", "bc", "abxy", "ax")]
    for epsilon, names, relation in ((0.3, "ab", {}), (0.2, "ab", OTHER_RELATION), *other_names):
        with pytest.raises(ValueError, match=r"was divided before into.*repeat that call.*needs other names"):
            budget.parallel(epsilon, [*names], **relation)
    assert budget.spent == 0.4


def test_a_part_is_divided_again(make):
    budget = make(1.0)
    week, other = budget.parallel(0.6, ["week 1", "week 2"]).values()
    sites = week.parallel(0.4, ["a", "b"])
    assert other.parallel(0.6, ["a", "b"])["a"].total == 0.6  # names are those of one division
    sites["a"].spend(0.3, "x")
    spent = [one.spent for one in (budget, week, other, *sites.values())]
    assert spent == [0.6, 0.4, 0.6, 0.3, 0.0]
    with pytest.raises(PrivacyBudgetError, match="of the part 'week 1 / a' is spent"):
        sites["a"].spend(0.2, "x")
    with pytest.raises(PrivacyBudgetError, match="of the part 'week 1' is spent"):
        week.parallel(0.3, ["c"])
    assert week.parallel(0.4, ["a", "b"])["a"].spent == 0.3
    assert [*parts_of(parts_of(budget)["week 1"])] == ["a", "b"]
    assert [spend.spend_name for spend in week.history] == ["parallel: a, b"]


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
    relations = ("replace_one", WITHIN_GROUPS, "add_or_remove_one", "replace_one")
    for asked, payer in itertools.product(relations, (part, parts_of(budget)["a"], budget)):
        if asked in taken:
            payer.spend(0.01, "x", neighboring=asked)
            continue
        with pytest.raises(ValueError, match=f"kept under neighboring='{kept}'"):
            payer.spend(0.01, "x", neighboring=asked)
    assert {spend.neighboring for spend in part.history} == taken
    before = part.spent
    [wrong] = [{"neighboring": one} for one in ("replace_one", "add_or_remove_one") if one not in taken]
    ask = partial(dp.private_mae, y, score, accountant=part, random_state=NoEntropy())
    with pytest.raises(ValueError, match="kept under"):
        ask(epsilon=0.1, **wrong)
    with pytest.raises(ValueError, match="kept under"):
        part.parallel(0.1, ["c"], **wrong)
    with pytest.raises(PrivacyBudgetError):
        ask(epsilon=0.6, neighboring=neighboring)
    assert part.spent == before


@loop_over("promised", ["replace_one", "add_or_remove_one"])
def test_a_promise_is_not_weakened_afterwards(promised):
    budget = PrivacyAccountant(1.0)
    budget.spend(0.25, "first", neighboring=promised)
    wrong = f"'{WITHIN_GROUPS}' was asked.* kept under neighboring='{promised}'"
    with pytest.raises(ValueError, match=wrong) as refusal:
        budget.parallel(0.25, ["a"])
    assert ("or begin a new one with this spend" in str(refusal.value)) == (promised == "replace_one")
    with pytest.raises(ValueError, match=wrong):
        budget.spend(0.25, "second", neighboring=WITHIN_GROUPS)
    assert budget.spent == 0.25


# Is it private? Exact losses on all neighbours of a tiny domain

RECORDS = [(0, 0), (0, 1)]  # label and prediction: right and wrong
EPSILON = 0.5


def loss(part_a, part_b, **options):
    """The exact loss of what is released about one part in two data sets."""
    data = (([label for label, _ in part], [guess for _, guess in part]) for part in (part_a, part_b))
    options = {"epsilon": EPSILON, "mechanism": "geometric", **options}
    return auditing.metric_loss(dp.private_accuracy_score, *data, **options)


def test_two_parts_together_lose_what_one_loses_unless_a_record_is_in_both():
    data_sets = [*itertools.product(itertools.product(RECORDS, repeat=2), repeat=2)]
    found = {}
    for a, b in itertools.combinations(data_sets, 2):
        changes = tuple(sum(map(tuple.__ne__, part, other)) for part, other in zip(a, b, strict=True))
        found.setdefault(changes, []).append(sum(loss(*parts) for parts in zip(a, b, strict=True)))
    in_one = found[1, 0] + found[0, 1]
    assert len(in_one) == 32
    assert max(in_one) == min(in_one) == pytest.approx(EPSILON, rel=1e-12)  # the dearest part, not the sum
    assert max(found[1, 1]) == pytest.approx(2 * EPSILON, rel=1e-12)  # a person who returns


def test_a_record_that_moves_gives_itself_away_or_costs_both_parts_where_their_sizes_are_private():
    """So parts must never follow from a private column where sizes are public: no epsilon would cover it."""
    first, second = [(0, 0), (0, 1)], [(0, 0)]
    assert loss(first, first[:1]) + loss(second, [*second, first[1]]) == math.inf
    missing, moved = [], []
    for record, a, b in itertools.product(RECORDS, repeat=3):
        removed, added = (loss([one, record], [one], **OTHER_RELATION) for one in (a, b))
        missing += [removed, added]
        moved.append(removed + loss([b], [b, record], **OTHER_RELATION))
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
        with suppress(PrivacyBudgetError):
            payer.spend(epsilon, "a bit")
            for record in about:
                losses[record] += epsilon if answer else -epsilon
    return losses


@pytest.mark.gate
def test_whatever_is_asked_for_next_no_record_loses_more_than_the_total():
    """Strategies that choose part and epsilon by earlier answers; every sequence of answers, exactly."""
    worst = Fraction(0)
    for seed in range(40):

        def choose(history, options, seed=seed):
            return random.Random(f"{seed} {history}").randrange(options)

        for answers in itertools.product([False, True], repeat=7):
            worst = max(worst, *map(abs, spend_as_it_pleases(choose, answers)))
    assert worst == 1


# Copies and threads


def test_copies_of_a_part_are_the_same_budget(make):
    part = make(1.0).parallel(Fraction(1, 3), ["a", "b"])["b"]
    assert copy.copy(part) is copy.deepcopy(part) is clone(part) is part
    if part.path is None:
        with pytest.raises(TypeError, match=r"cannot be pickled.*pass path= to PrivacyAccountant"):
            pickle.dumps({"b": part})
        return
    twin = pickle.loads(pickle.dumps(part))
    twin.spend(Fraction(1, 6), "twin")
    part.spend(Fraction(1, 6), "original")
    assert part.remaining == twin.remaining == 0.0
    assert twin.history == part.history
    told = f"epsilon={1 / 3}, spent {1 / 3}, left 0.0, releases 2, path={part.path!r}, part 'b'"
    assert repr(twin) == repr(part) == f"PrivacyAccountant({told})"
    with pytest.raises(ValueError, match="kept under"):
        twin.spend(0.1, "x", **OTHER_RELATION)


def test_threads_divide_a_budget_once_and_share_its_parts(make):
    budget = make(1.0)

    def work(_):
        admitted = 0
        for name, part in budget.parallel(0.5, ["a", "b"]).items():
            for _ in range(20):
                with suppress(PrivacyBudgetError):
                    part.spend(0.01, name)
                    admitted += 1
        return admitted

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(work, range(8))) == 100
    assert (budget.spent, len(budget.history)) == (0.5, 1)
    assert [len(part.history) for part in budget.parallel(0.5, ["a", "b"]).values()] == [50, 50]


# The page of the documentation


@pytest.mark.slow
def test_the_errors_of_the_quarterly_report_are_those_to_expect():
    header, *rows = list_table(Path(__file__).parents[2] / "docs" / "measured" / "quarterly.inc")
    sizes = [int(cell.removeprefix("n = ").replace(",", "")) for cell in header[2:]]
    rng = np.random.default_rng(0)
    ill = rng.random(3000) < 0.2
    guess = np.clip(np.where(ill, 0.7, 0.15) + rng.normal(0, 0.2, 3000), 0.01, 0.99)
    metrics = {"accuracy": guess > 0.5, "recall": guess > 0.5, "log loss": guess}
    assert [row[:2] for row in rows] == [[name, epsilon] for name in metrics for epsilon in ("2/3", "1/18")]
    for name, epsilon, *cells in rows:
        plan = partial(
            dp.expected_error, name.replace(" ", "_"), ill, metrics[name], epsilon=Fraction(epsilon)
        )
        expected = [plan(n=n).mean_absolute for n in sizes]
        assert [float(cell) for cell in cells] == pytest.approx(expected, abs=0.0001, rel=0.02)
