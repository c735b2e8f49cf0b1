"""The rules of the budget: exact addition, one relation, and one budget for all copies and threads."""

import contextlib
import copy
import dataclasses
import gc
import itertools
import math
import os
import sys
import tempfile
import threading
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import NoEntropy
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import Ridge

import dp_metrics as dp
from dp_metrics import private_mean_loss
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.accounting import accountant as accountants
from dp_metrics.accounting import ledgers as _ledgers
from dp_metrics.exceptions import PrivacyBudgetError


@pytest.fixture(params=["memory", "file"])
def make(request, tmp_path):
    """A function that makes an accountant of either kind."""
    return lambda total: PrivacyAccountant(total, None if request.param == "memory" else tmp_path / "budget")


def in_threads(work, arguments):
    """Call ``work(argument)`` in a thread for each argument, all at once, changing threads all the time."""
    errors = []

    def run(argument):
        try:
            work(argument)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=[argument]) for argument in arguments]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert errors == []


# Exact addition


def test_ten_tenths_are_one(make):
    accountant = make(1.0)
    for i in range(10):
        assert accountant.remaining == float(1 - Fraction(i, 10))
        accountant.spend(0.1, "a tenth")
    assert (accountant.total, accountant.spent, accountant.remaining) == (1.0, 1.0, 0.0)
    with pytest.raises(PrivacyBudgetError):
        accountant.spend(1e-300, "a little")
    assert len(accountant.history) == 10


@pytest.mark.parametrize(
    "tenth", [0.1, np.float64(0.1), Fraction(1, 10), Decimal("0.1"), Decimal("0.1000")], ids=repr
)
def test_all_kinds_of_tenths_are_equal(make, tenth):
    accountant = make(0.3)
    for _ in range(3):
        accountant.spend(tenth, "a tenth")
    assert accountant.remaining == 0.0


@pytest.mark.parametrize("three", [3, 3.0, np.int64(3), np.float32(3), Fraction(3), Decimal(3)], ids=repr)
def test_shares_are_exact(make, three):
    accountant = make(three)
    for _ in range(9):
        accountant.spend(Fraction(1, 3), "a third")
    assert accountant.remaining == 0.0
    with pytest.raises(PrivacyBudgetError):
        accountant.require(Fraction(1, 10**300))


def test_float_third_is_less_than_a_third(make):
    accountant = make(Fraction(1, 3))
    accountant.spend(1 / 3, "a third, rounded down")
    assert 0 < accountant.remaining < 1e-15


decimals = st.decimals(min_value="1e-6", max_value=10, places=6)
amounts = st.one_of(
    decimals.map(float),
    decimals,
    st.fractions(min_value=Fraction(1, 1000), max_value=10, max_denominator=1000),
)


def exact(epsilon):
    return Fraction(repr(epsilon)) if isinstance(epsilon, float) else Fraction(epsilon)


@settings(max_examples=200, deadline=None)
@given(total=amounts, spends=st.lists(amounts, max_size=30))
def test_any_sequence_equals_the_exact_sum(total, spends):
    accountant, expected, count = PrivacyAccountant(total), Fraction(0), 0
    for epsilon in spends:
        if expected + exact(epsilon) <= exact(total):
            accountant.require(epsilon)
            accountant.spend(epsilon, "fits")
            expected, count = expected + exact(epsilon), count + 1
        else:
            with pytest.raises(PrivacyBudgetError):
                accountant.require(epsilon)
            with pytest.raises(PrivacyBudgetError):
                accountant.spend(epsilon, "does not fit")
        assert accountant.spent == float(expected)
        assert len(accountant.history) == count
        assert Fraction(repr(accountant.remaining)) <= exact(total) - expected
    if accountant.remaining:
        accountant.spend(accountant.remaining, "the rest, rounded down")
        assert accountant.remaining < 1e-14


@settings(max_examples=15, deadline=None)
@given(total=amounts, spends=st.lists(amounts, max_size=10))
def test_file_and_memory_agree(total, spends):
    with tempfile.TemporaryDirectory() as folder:
        both = PrivacyAccountant(total), PrivacyAccountant(total, os.path.join(folder, "budget"))
        for epsilon in spends:
            refusals = []
            for accountant in both:
                try:
                    accountant.spend(epsilon, "either")
                except PrivacyBudgetError as error:
                    refusals.append(str(error))
            assert len(refusals) in (0, 2)
            assert len(set(refusals)) <= 1
        memory, file = both
        assert (memory.spent, memory.remaining) == (file.spent, file.remaining)
        assert [entry.epsilon for entry in memory.history] == [entry.epsilon for entry in file.history]


def just_above(numerator, denominator, power):
    """A fraction so little above another that it has about ``power * log10(denominator)`` digits."""
    return Fraction(numerator * denominator**power + 1, denominator ** (power + 1))


def test_epsilons_and_their_sum_may_have_more_digits_than_python_converts(make):
    limit = sys.get_int_max_str_digits()
    spends = [just_above(1, 3, 7000), just_above(1, 5, 5000), just_above(1, 7, 4000), just_above(1, 11, 5000)]
    digits = [math.log10(spend.denominator) for spend in spends]
    assert max(digits[:3]) < limit < min(digits[3], digits[0] + digits[1])
    accountant = make(1.0)
    for spend in spends:
        accountant.require(spend)
        accountant.spend(spend, "x")
    rest = 1 - sum(spends)
    assert accountant.spent == float(sum(spends))
    assert 0 < rest - Fraction(repr(accountant.remaining)) < Fraction(1, 10**16)
    assert [entry.epsilon for entry in accountant.history] == list(map(float, spends))
    for call in (accountant.require, lambda value: accountant.spend(value, "too much")):
        with pytest.raises(PrivacyBudgetError, match=f"only {accountant.remaining!r} remains"):
            call(just_above(1, 2, 20_000))
    accountant.spend(rest, "the rest, exactly")
    assert (accountant.spent, accountant.remaining) == (1.0, 0.0)
    assert make(1.0).spent == (0.0 if accountant.path is None else 1.0)  # a file is opened again


def test_a_spend_takes_no_more_additions_than_the_one_before(make, monkeypatch):
    additions, add = [], Fraction.__add__
    accountant = make(1.0)
    monkeypatch.setattr(Fraction, "__add__", lambda a, b: additions.append(1) or add(a, b))
    for _ in range(50):
        accountant.spend(0.01, "x")
    assert len(additions) <= 2 * 50  # one to check, one to sum


# Spending


def test_overspend_names_asked_spent_total_and_rest_and_records_nothing(make):
    accountant = make(1.0)
    accountant.spend(0.75, "first")
    before = accountant.history
    with pytest.raises(PrivacyBudgetError) as refusal:
        accountant.spend(0.5, "second")
    assert str(refusal.value) == (
        "epsilon=0.5 was asked for, but 0.75 of the total of 1.0 is spent and only 0.25 remains. "
        "Nothing was released. Pass a smaller epsilon, or ask for fewer numbers: split(k) divides what "
        "remains among k releases."
    )
    assert isinstance(refusal.value, ValueError)
    assert accountant.history == before
    accountant.spend(0.25, "what was left")


def test_require_records_and_reserves_nothing(make):
    accountant = make(1.0)
    accountant.require(1.0)
    accountant.require(1.0)
    assert accountant.history == ()
    with pytest.raises(
        PrivacyBudgetError, match=r"epsilon=1\.5 .* 0\.0 of the total of 1\.0 .* 1\.0 remains"
    ):
        accountant.require(1.5)


def test_history_holds_all_that_was_said_of_each_spend_in_order(make):
    accountant = make(1.0)
    start = datetime.now(UTC)
    accountant.spend(0.25, "a", mechanism="hazard", neighboring="replace_one")
    accountant.spend(Fraction(1, 3), "b; DROP TABLE history --")
    first, second = accountant.history
    assert (first.spend_name, first.epsilon, first.mechanism) == ("a", 0.25, "hazard")
    assert (second.spend_name, second.epsilon) == ("b; DROP TABLE history --", 1 / 3)
    assert (first.neighboring, second.neighboring) == ("replace_one", "replace_one")
    assert second.mechanism is None
    assert start <= first.time <= second.time <= datetime.now(UTC)
    assert first.time.utcoffset() == timedelta(0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.epsilon = 0.0
    assert isinstance(accountant.history, tuple)


def test_floats_only_leave(make):
    accountant = make(Fraction(2, 3))
    accountant.spend(Decimal("0.1"), "x")
    numbers = (accountant.total, accountant.spent, accountant.remaining, accountant.history[0].epsilon)
    assert {type(number) for number in numbers} == {float}


def test_repr_shows_total_and_path_even_if_the_file_is_gone(tmp_path):
    path = str(tmp_path / "budget")
    assert repr(PrivacyAccountant(1)) == (
        "PrivacyAccountant(epsilon=1.0, spent 0.0, left 1.0, releases 0, no path: made again, it begins anew)"
    )
    accountant = PrivacyAccountant(1, path)
    os.remove(path)
    assert repr(accountant) == f"PrivacyAccountant(epsilon=1.0, path={path!r})"


# Interrupts

# Between the opening of a file and the block that closes it, Ctrl-C leaves the closing to the collector.
left_open = pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning")


# Python 3.12 traces no bytecodes of a function that asks for them while it is traced.
FINEST = "line" if sys.version_info[:2] == (3, 12) else "opcode"


def interrupted(work, moment, event):
    """Call ``work()`` with Ctrl-C at the given line or bytecode in the ledgers; return what it raised."""
    seen = itertools.count()

    def trace(frame, what, _):
        if frame.f_code.co_filename != _ledgers.__file__:
            return None
        frame.f_trace_opcodes = event == "opcode"
        if what == event and next(seen) == moment:
            raise KeyboardInterrupt  # which also ends the tracing
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    except (KeyboardInterrupt, NoEntropy.Drawn) as error:
        return type(error)
    finally:
        sys.settrace(before)


@left_open
@pytest.mark.parametrize("kind", ["memory", "file"])
def test_interrupted_anywhere_a_spend_is_recorded_whole_or_not_at_all(kind, tmp_path):
    recorded = []
    for moment in itertools.count():
        accountant = PrivacyAccountant(1.0, None if kind == "memory" else tmp_path / str(moment))
        raised = interrupted(
            partial(
                private_mean_loss, [0.0, 1.0], epsilon=0.75, accountant=accountant, random_state=NoEntropy()
            ),
            moment,
            FINEST if kind == "memory" else "line",
        )
        # A trace, unlike a signal, can come between the end of a block and the release of its lock.
        if _ledgers._LOCK.locked():
            _ledgers._LOCK.release()
        history = accountant.history
        assert [entry.epsilon for entry in history] in ([], [0.75])
        assert accountant.spent == accountant.total - accountant.remaining == 0.75 * len(history)
        recorded.append(len(history))
        if history:
            with pytest.raises(PrivacyBudgetError):
                accountant.spend(0.5, "too much")
            with pytest.raises(ValueError, match="neighbouring relations"):
                accountant.spend(0.25, "x", neighboring="add_or_remove_one")
        else:
            accountant.spend(1.0, "x", neighboring="add_or_remove_one")
        if raised is NoEntropy.Drawn:
            assert history
            break
        assert raised is KeyboardInterrupt
    gc.collect()
    assert recorded == sorted(recorded)
    assert sum(recorded) > 2  # interrupted after the record too
    assert len(recorded) - sum(recorded) > 10


@left_open
@pytest.mark.parametrize("kind", ["memory", "file"])
def test_interrupted_anywhere_a_division_is_paid_for_once_and_has_all_its_parts(kind, tmp_path):
    paid = []
    for moment in itertools.count():
        accountant = PrivacyAccountant(1.0, None if kind == "memory" else tmp_path / str(moment))
        divide = partial(accountant.parallel, 0.75, ["a", "b"])
        raised = interrupted(divide, moment, FINEST if kind == "memory" else "line")
        if _ledgers._LOCK.locked():
            _ledgers._LOCK.release()
        paid.append(accountant.spent)
        assert [part.total for part in divide().values()] == [0.75, 0.75]
        assert (accountant.spent, len(accountant.history)) == (0.75, 1)
        if raised is None:
            break
        assert raised is KeyboardInterrupt
    gc.collect()
    assert paid == sorted(paid)
    assert {*paid} == {0.0, 0.75}
    assert paid.count(0.0) > 10


# One neighbouring relation: epsilons of two don't add up

RELATIONS = ["replace_one", "add_or_remove_one"]
OTHER = dict(zip(RELATIONS, reversed(RELATIONS), strict=True))


@pytest.mark.parametrize("kept", RELATIONS)
def test_another_relation_is_refused_and_nothing_is_recorded(make, kept):
    accountant = make(1.0)
    accountant.spend(0.25, "first", neighboring=kept)
    before = accountant.history
    with pytest.raises(ValueError, match="neighbouring relations") as refusal:
        accountant.spend(0.25, "second", neighboring=OTHER[kept])
    assert str(refusal.value) == (
        f"neighboring={OTHER[kept]!r} was asked for, but this budget is kept under neighboring={kept!r}, and "
        "epsilons under different neighbouring relations don't add up; use another PrivacyAccountant for it."
    )
    assert not isinstance(refusal.value, PrivacyBudgetError)  # more budget would not help
    assert (accountant.history, accountant.spent) == (before, 0.25)
    accountant.spend(0.75, "third", neighboring=kept)
    assert [entry.neighboring for entry in accountant.history] == [kept, kept]


def test_no_relation_given_is_replace_one(make):
    accountant = make(1.0)
    accountant.spend(0.25, "first")
    accountant.spend(0.25, "second", neighboring="replace_one")
    with pytest.raises(ValueError, match="kept under neighboring='replace_one'"):
        accountant.spend(0.25, "third", neighboring="add_or_remove_one")


def test_a_refused_spend_does_not_choose_the_relation(make):
    accountant = make(1.0)
    with pytest.raises(PrivacyBudgetError):
        accountant.spend(2.0, "too much", neighboring="add_or_remove_one")
    accountant.spend(1.0, "fits", neighboring="replace_one")


def test_another_relation_is_refused_even_where_nothing_is_left(make):
    accountant = make(1.0)
    accountant.spend(1.0, "all")
    with pytest.raises(ValueError, match="neighbouring relations"):
        accountant.spend(0.5, "more", neighboring="add_or_remove_one")


@pytest.mark.parametrize("neighboring", RELATIONS)
def test_a_release_under_another_relation_draws_nothing(make, neighboring):
    accountant = make(1.0)
    losses = np.linspace(0, 1, 50)
    private_mean_loss(losses, epsilon=0.5, accountant=accountant, neighboring=neighboring)
    with pytest.raises(ValueError, match="neighbouring relations"):
        private_mean_loss(
            losses,
            epsilon=0.5,
            accountant=accountant,
            neighboring=OTHER[neighboring],
            random_state=NoEntropy(),
        )
    assert accountant.spent == 0.5


@pytest.mark.parametrize("attempt", range(5))
def test_threads_that_race_for_the_first_spend_agree_on_one_relation(make, attempt):
    accountant, refused, barrier = make(1.0), [], threading.Barrier(8)

    def work(relation):
        barrier.wait()
        try:
            accountant.spend(0.01, "thread", neighboring=relation)
        except ValueError:
            refused.append(relation)

    in_threads(work, RELATIONS * 4)
    (kept,) = {entry.neighboring for entry in accountant.history}
    assert len(accountant.history) == 4
    assert refused == [OTHER[kept]] * 4


# One budget: copies, threads


class Holder(BaseEstimator):
    def __init__(self, accountant=None, other=None):
        self.accountant = accountant
        self.other = other


def test_copies_are_the_same_object(make):
    accountant = make(1.0)
    assert copy.copy(accountant) is accountant
    assert copy.deepcopy(accountant) is accountant
    assert copy.deepcopy({"nested": [accountant]})["nested"][0] is accountant
    assert clone(accountant) is accountant
    assert clone(accountant, safe=False) is accountant


def test_clone_of_an_estimator_holds_the_same_accountant(make):
    accountant = make(1.0)
    cloned = clone(Holder(accountant=accountant, other=Holder(accountant=accountant)))
    assert cloned.accountant is accountant
    assert cloned.other.accountant is accountant
    assert "PrivacyAccountant" in repr(cloned)


def test_threads_spend_from_one_budget(make):
    accountant, admitted = make(1.0), []

    def work(_):
        for _ in range(20):
            with contextlib.suppress(PrivacyBudgetError):
                accountant.spend(0.01, "thread")
                admitted.append(1)

    in_threads(work, range(8))
    assert len(admitted) == len(accountant.history) == 100
    assert accountant.spent == 1.0


def test_the_history_is_in_the_order_of_the_spends_however_the_clock_jumps(make, monkeypatch):
    years = itertools.cycle([0, 10, -10])

    class Jumping(datetime):
        @classmethod
        def now(cls, zone=None):
            return super().now(zone) + timedelta(days=365 * next(years))

    monkeypatch.setattr(_ledgers, "datetime", Jumping)
    accountant = make(50)
    for number in range(50):
        accountant.spend(1, str(number))
    assert [spend.spend_name for spend in accountant.history] == [*map(str, range(50))]
    with pytest.raises(PrivacyBudgetError):
        accountant.spend(1e-9, "too much")


def test_a_notebook_hears_once_that_a_budget_without_a_file_begins_anew(tmp_path, monkeypatch):
    shell = SimpleNamespace(kernel=None)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setattr(accountants, "_TOLD", [])
    PrivacyAccountant(1)  # a terminal
    shell.kernel = object()
    X = np.arange(40.0).reshape(-1, 1)
    dp.PrivateRandomizedSearch(Ridge(), {"alpha": [1.0]}, metric=dp.private_mse, epsilon=3.0).fit(
        X, X[:, 0], X_val=X, y_val=X[:, 0]
    )
    PrivacyAccountant(1, tmp_path / "budget.sqlite")
    with pytest.warns(UserWarning, match="when its cell is run again it starts anew.*path='budget.sqlite'"):
        PrivacyAccountant(2.0)
    PrivacyAccountant(2.0)
