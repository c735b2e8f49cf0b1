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
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from cases import RELATIONS
from helpers import NoEntropy, in_threads, loop_over
from hypothesis import given, settings, strategies as st
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

import dp_metrics as dp
from dp_metrics.accounting import PrivacyAccountant, accountant as accountants, ledgers as _ledgers


@pytest.fixture(params=["memory", "file"])
def make(request, tmp_path):
    """A function that makes an accountant of either kind; a file is opened again by each call."""
    return lambda total: PrivacyAccountant(total, None if request.param == "memory" else tmp_path / "budget")


# Exact addition


decimals = st.decimals(min_value="1e-6", max_value=10, places=6)
fractions = st.fractions(min_value=Fraction(1, 1000), max_value=10, max_denominator=1000)
amounts = decimals.map(float) | decimals | fractions


def exact(epsilon):
    return Fraction(repr(epsilon)) if isinstance(epsilon, float) else Fraction(epsilon)


@pytest.mark.gate
@settings(max_examples=60)
@given(total=amounts, spends=st.lists(amounts, max_size=20))
def test_any_sequence_equals_the_exact_sum_in_memory_and_in_a_file(total, spends):
    with tempfile.TemporaryDirectory() as folder:
        both = PrivacyAccountant(total), PrivacyAccountant(total, os.path.join(folder, "budget"))
        for accountant in both:
            expected, fitting, refusals = Fraction(0), [], []
            for epsilon in spends:
                if expected + exact(epsilon) <= exact(total):
                    accountant.require(epsilon)
                    accountant.spend(epsilon, "fits")
                    expected, fitting = expected + exact(epsilon), [*fitting, float(epsilon)]
                else:
                    with pytest.raises(dp.exceptions.PrivacyBudgetError) as refusal:
                        accountant.require(epsilon)
                    refusals.append(str(refusal.value))
                    with pytest.raises(dp.exceptions.PrivacyBudgetError):
                        accountant.spend(epsilon, "does not fit")
                assert accountant.spent == float(expected)
                assert Fraction(repr(accountant.remaining)) <= exact(total) - expected
            assert [entry.epsilon for entry in accountant.history] == fitting
            if accountant.remaining:
                accountant.spend(accountant.remaining, "the rest, rounded down")
                assert accountant.remaining < 1e-14


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
    with pytest.raises(dp.exceptions.PrivacyBudgetError, match=f"only {accountant.remaining!r} remains"):
        accountant.spend(just_above(1, 2, 20_000), "too much")
    accountant.spend(rest, "the rest, exactly")
    assert (accountant.spent, accountant.remaining) == (1.0, 0.0)
    assert make(1.0).spent == (0.0 if accountant.path is None else 1.0)  # a file is opened again


# Spending


def test_overspend_names_asked_spent_total_and_rest_and_records_nothing(make):
    accountant = make(1.0)
    accountant.spend(0.75, "first")
    before = accountant.history
    accountant.require(0.25)  # which reserves nothing
    for refused in (accountant.require, lambda epsilon: accountant.spend(epsilon, "second")):
        with pytest.raises(dp.exceptions.PrivacyBudgetError) as refusal:
            refused(0.5)
        assert str(refusal.value) == (
            "epsilon=0.5 was asked for, but 0.75 of the total of 1.0 is spent and only 0.25 remains. "
            "Nothing was released. Pass a smaller epsilon, or ask for fewer numbers."
        )
    assert isinstance(refusal.value, ValueError)
    assert accountant.history == before
    accountant.spend(0.25, "what was left")
    told = (accountant.total, accountant.spent, accountant.remaining, before[0].epsilon)
    assert [*map(type, told)] == [float] * 4


def test_history_holds_all_that_was_said_of_each_spend_in_order(make, monkeypatch):
    accountant, start = make(1.0), datetime.now(UTC)
    accountant.spend(0.25, "a", mechanism="hazard", neighboring="replace_one")
    accountant.spend(Fraction(1, 3), "b; DROP TABLE history --")
    first, second = accountant.history
    said = ("spend_name", "epsilon", "mechanism", "neighboring")
    assert [getattr(first, name) for name in said] == ["a", 0.25, "hazard", "replace_one"]
    assert [getattr(second, name) for name in said] == [
        "b; DROP TABLE history --", 1 / 3, None, "replace_one",
    ]  # fmt: skip
    assert start <= first.time <= second.time <= datetime.now(UTC)
    assert first.time.utcoffset() == timedelta(0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.epsilon = 0.0
    assert [*pd.DataFrame(accountant.history).columns] == ["time", *said]
    years = itertools.cycle([0, 10, -10])

    class Jumping(datetime):
        @classmethod
        def now(cls, zone=None):
            return super().now(zone) + timedelta(days=365 * next(years))

    monkeypatch.setattr(_ledgers, "datetime", Jumping)
    for number in range(20):
        accountant.spend(0.01, str(number))
    assert [spend.spend_name for spend in accountant.history[2:]] == [*map(str, range(20))]
    with pytest.raises(dp.exceptions.PrivacyBudgetError):
        accountant.spend(0.25, "too much")


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
    gc.disable()  # what is collected meanwhile, such as another ledger, would be interrupted instead
    sys.settrace(trace)
    try:
        work()
    except (KeyboardInterrupt, NoEntropy.Drawn) as error:
        return type(error)
    finally:
        sys.settrace(before)
        gc.enable()
        # A trace, unlike a signal, can come between the end of a block and the release of its lock.
        if _ledgers._LOCK.locked():
            _ledgers._LOCK.release()


@pytest.mark.gate
@left_open
@pytest.mark.parametrize("kind", ["memory", "file"])
def test_interrupted_anywhere_a_spend_is_recorded_whole_or_not_at_all(kind, tmp_path):
    recorded = []
    release = partial(dp.private_mean_loss, [0.0, 1.0], epsilon=0.75, random_state=NoEntropy())
    for moment in itertools.count():
        accountant = PrivacyAccountant(1.0, None if kind == "memory" else tmp_path / str(moment))
        work = partial(release, accountant=accountant)
        raised = interrupted(work, moment, FINEST if kind == "memory" else "line")
        history = accountant.history
        assert [entry.epsilon for entry in history] in ([], [0.75])
        assert accountant.spent == accountant.total - accountant.remaining == 0.75 * len(history)
        recorded.append(len(history))
        if history:
            with pytest.raises(dp.exceptions.PrivacyBudgetError):
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


# One neighbouring relation: epsilons of two don't add up

OTHER = dict(zip(RELATIONS, reversed(RELATIONS), strict=True))


@pytest.mark.parametrize("kept", RELATIONS)
def test_another_relation_is_refused_and_nothing_is_drawn_or_recorded(make, kept):
    accountant = make(1.0)
    with pytest.raises(dp.exceptions.PrivacyBudgetError):
        accountant.spend(2.0, "too much", neighboring=OTHER[kept])  # which chooses nothing
    accountant.spend(0.25, "first", **{} if kept == "replace_one" else {"neighboring": kept})
    before = accountant.history
    ask = partial(dp.private_mean_loss, [0.0, 1.0], accountant=accountant, random_state=NoEntropy())
    for refused in (partial(accountant.spend, spend_name="second"), ask):
        with pytest.raises(ValueError, match="neighbouring relations") as refusal:
            refused(epsilon=0.25, neighboring=OTHER[kept])
        assert str(refusal.value) == (
            f"neighboring={OTHER[kept]!r} was asked for, but this budget is kept under neighboring={kept!r}, "
            "and epsilons under different neighbouring relations don't add up; use another PrivacyAccountant "
            "for it."
        )
        assert not isinstance(refusal.value, dp.exceptions.PrivacyBudgetError)  # more budget would not help
    assert (accountant.history, accountant.spent) == (before, 0.25)
    accountant.spend(0.75, "third", neighboring=kept)
    assert [entry.neighboring for entry in accountant.history] == [kept, kept]
    with pytest.raises(ValueError, match="neighbouring relations"):  # also where nothing is left
        accountant.spend(0.5, "more", neighboring=OTHER[kept])


# One budget: copies, threads


def test_copies_are_the_same_object(make):
    accountant = make(1.0)
    cloned = clone(make_pipeline(Ridge(accountant)))
    for copied in (
        copy.copy(accountant),
        copy.deepcopy({"nested": [accountant]})["nested"][0],
        clone(accountant),
        clone(accountant, safe=False),
        cloned[0].alpha,
    ):
        assert copied is accountant
    assert "PrivacyAccountant" in repr(cloned)


@pytest.fixture
def fast_switches():
    """Change threads all the time."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("fast_switches")
def test_threads_spend_from_one_budget_and_agree_on_one_relation(make, tmp_path):
    accountant, admitted = make(1.0), []

    def work(_):
        for _ in range(20):
            with contextlib.suppress(dp.exceptions.PrivacyBudgetError):
                accountant.spend(0.01, "thread")
                admitted.append(1)

    assert in_threads(work, range(8)) == []
    assert len(admitted) == len(accountant.history) == 100
    assert accountant.spent == 1.0
    for attempt in range(5):
        racing = PrivacyAccountant(1.0, None if accountant.path is None else tmp_path / str(attempt))
        refusals = in_threads(lambda one, a=racing: a.spend(0.01, "x", neighboring=one), RELATIONS * 4)
        (kept,) = {entry.neighboring for entry in racing.history}
        assert len(racing.history) == 4
        assert len(refusals) == 4
        assert all(f"neighboring={OTHER[kept]!r} was asked" in str(refusal) for refusal in refusals)


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


@loop_over("promised", ["replace_one", "add_or_remove_one"])
def test_a_promise_is_not_weakened_afterwards_but_a_weaker_one_takes_both(promised):
    budget = PrivacyAccountant(1.0)
    budget.spend(0.25, "first", neighboring=promised)
    within = "replace_one_within_groups"
    with pytest.raises(ValueError, match=f"'{within}' was asked.* kept under neighboring='{promised}'") as no:
        budget.spend(0.25, "second", neighboring=within)
    assert ("or begin a new one with this spend" in str(no.value)) == (promised == "replace_one")
    assert budget.spent == 0.25
    weaker = PrivacyAccountant(1.0)
    for one in (within, "replace_one", within):
        weaker.spend(0.25, "x", neighboring=one)
    with pytest.raises(ValueError, match=f"kept under neighboring='{within}'"):
        weaker.spend(0.25, "x", neighboring="add_or_remove_one")
