"""Once epsilon is recorded nothing raises, whatever the settings were; and recorded it stays.

Whoever spends more than 10 is told what it means before anything is recorded.
"""

import math
import warnings
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import product

import doors
import numpy as np
import pytest
from cases import KINDS
from doors import RELEASES, UNSEEDED, release_of
from helpers import MAX, loop_over
from hypothesis import example, given, settings, strategies as st

import dp_metrics as dp
from dp_metrics._random import Entropy
from dp_metrics.exceptions import LargeEpsilonWarning
from dp_metrics.mechanisms import MECHANISMS, AboveThreshold, Adaptive, Hazard, Mechanism

TINY = math.ulp(0.0)
NUMBERS = [0, 1, 2, 7, -1, 10.5, 4.0, 0.3, 1e-320, TINY, 1e308, MAX, 10**30, math.nan, math.inf]
TEXTS = ["x", "geometric", "even", b"1"]
OTHERS = [None, True, Fraction(1, 20), Decimal("0.1"), np.float32(0.25), np.int64(3), 1j, np.array([0.5])]
odd = st.sampled_from([*NUMBERS, *TEXTS, *OTHERS, [], (0, 1)])
relations = st.sampled_from(["replace_one", "add_or_remove_one"])
sizes = st.sampled_from([0, 1, 3])


def attempt(function, *data, **options):
    """Call a metric; if it raises, nothing may be spent. Return whether it was released."""
    accountant = dp.PrivacyAccountant(MAX)
    try:
        function(*data, accountant=accountant, **options)
    except Exception:
        assert accountant.history == ()
    else:
        assert len(accountant.history) == 1
    return len(accountant.history)


def targets(n):
    return np.linspace(0, 1, n), np.full(n, 0.5)


PARAMETERS = [
    (Hazard, ["resolution", "scale"]),
    (Adaptive, ["threshold", "share"]),
    (AboveThreshold, ["beta", "split", "scale", "spacing", "first", "max_candidates", "ranks"]),
]


@st.composite
def mechanisms(draw):
    """Return a mechanism with odd parameters; None where the constructor refuses them."""
    kind, names = draw(st.sampled_from(PARAMETERS))
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
    parameters = {name: draw(odd) for name in chosen}
    try:
        return kind(**parameters)
    except (TypeError, ValueError):
        return None


@given(mechanisms(), relations, sizes, st.sampled_from([None, (0, 1), (0, 1e-323)]), st.booleans())
@example(Hazard(resolution=Fraction(1, 20)), "replace_one", 3, None, False)
@example(Hazard(scale=1e300), "add_or_remove_one", 3, (0, 1e-323), True)
@example(Adaptive(threshold=1e-9, share=1e-300), "add_or_remove_one", 3, None, True)
@example(AboveThreshold(scale=Fraction(1, 10)), "replace_one", 3, None, False)
@settings(deadline=None, max_examples=150)
def test_no_parameter_of_a_mechanism_raises_after_the_spend(mechanism, neighboring, n, bounds, variance):
    if mechanism is not None:
        options = {"epsilon": 1.0, "mechanism": mechanism, "neighboring": neighboring, "bounds": bounds}
        y, p = targets(n)
        if variance:
            attempt(dp.private_variance, y, **options)
        else:
            attempt(dp.private_mae, y, p, **options)


class ForgetsTheCount(Mechanism):
    """A mechanism of somebody else's that reads n, and does not say whether it does."""

    def count_ranks(self, epsilon, *, n, monotonic, output_range):
        return 1

    def release(self, output_bounds, epsilon, rng=None):
        return min(1.0 / output_bounds.n, output_bounds.output_range[1])

    def output_distribution(self, output_bounds, epsilon):
        return 1.0 / output_bounds.n


class ReadsTheCount(ForgetsTheCount):
    needs_count = True


class HasNoHash(ForgetsTheCount):
    __hash__ = None


def test_a_mechanism_gets_the_count_that_it_asks_for_and_fails_before_the_spend_without():
    options = {"epsilon": 1.0, "neighboring": "add_or_remove_one", "bounds": (0, 1)}
    assert 0 < dp.private_mae(*targets(3), mechanism=ReadsTheCount(), **options) <= 1
    for mechanism in (ForgetsTheCount(), HasNoHash()):
        accountant = dp.PrivacyAccountant(1)
        with pytest.raises(TypeError):
            dp.private_mae(*targets(3), mechanism=mechanism, accountant=accountant, **options)
        assert accountant.history == ()


@pytest.mark.gate
@pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
@loop_over("neighboring", ["replace_one", "add_or_remove_one"])
def test_no_width_of_the_bounds_and_no_epsilon_raises_after_the_spend(mechanism, neighboring):
    released = 0
    for bounds in (None, (-MAX, MAX), *((0, top) for top in (TINY, 1, 1.3e154, 1.4e154, 2e154, MAX))):
        options = {"bounds": bounds, "mechanism": mechanism, "neighboring": neighboring}
        top = 2e154 if bounds is None else bounds[1]
        for x in ([], [0.0, top], [top] * 3):
            for metric in (dp.private_variance, dp.private_std):
                released += attempt(metric, x, epsilon=1.0, **options)
            released += attempt(dp.private_r2_score, x, x, epsilon=1.0, **options)
        summary = dp.Summary("variance", bounds=bounds).update([0.0, top])
        options.pop("bounds")
        released += attempt(partial(summary.release, 1.0), **options)
    y, options = np.arange(6.0).reshape(3, 2), {"mechanism": mechanism, "neighboring": neighboring}
    for epsilon, bounds in product((TINY, 3 * TINY, 1e-300, 1e6, MAX), (None, (0, 1), (-MAX, MAX))):
        options |= {"epsilon": epsilon, "bounds": bounds}
        released += attempt(dp.private_mse, y, y + 1, multioutput="raw_values", **options)
        released += attempt(dp.private_r2_score, y, y + 1, error_share=Fraction(1, 10**9), **options)
    # so many served calls that the test means something; this one is refused whatever the bounds
    assert released > 20 or (mechanism, neighboring) == ("laplace", "add_or_remove_one")


class Interrupted(Entropy):
    """Entropy that fails."""

    def __init__(self, failure: BaseException) -> None:
        self.failure = failure

    def words(self, size: int) -> np.ndarray:
        raise self.failure


@loop_over(
    ("name", "failure"),
    product(
        [*sorted(KINDS), *(RELEASES.keys() - UNSEEDED)],
        [KeyboardInterrupt, MemoryError, OSError, ValueError],
    ),
)
@pytest.mark.filterwarnings("ignore::dp_metrics.exceptions.NoisyReleaseWarning")
def test_whatever_interrupts_a_draw_is_passed_on_as_it_is_and_the_spend_stays(name, failure):
    budget, interrupt = dp.PrivacyAccountant(10), failure("of the machine")
    with pytest.raises(failure) as caught:
        release_of(name)(epsilon=5.0, accountant=budget, random_state=Interrupted(interrupt))
    assert caught.value is interrupt
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert [spend.epsilon for spend in budget.history] == [5.0]


@loop_over("name", ["accuracy", *RELEASES])
@pytest.mark.usefixtures("large_epsilons_warn")
def test_an_epsilon_above_10_is_hardly_private_and_the_warning_comes_before_the_spend(name):
    call, budget = release_of(name), dp.PrivacyAccountant(100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", LargeEpsilonWarning)
        call(epsilon=10.0, accountant=budget)  # the last that is not warned of
        assert budget.spent == 10
        with pytest.raises(LargeEpsilonWarning, match=r"epsilon=10.5 is hardly private: .* 99.99 % sure"):
            call(epsilon=10.5, accountant=budget)
        assert budget.spent == 10
        warnings.simplefilter("always", LargeEpsilonWarning)
        with pytest.warns(LargeEpsilonWarning) as caught:
            call(epsilon=10.5, accountant=budget)
        large = [one for one in caught if one.category is LargeEpsilonWarning]
        assert [one.filename for one in large] in ([__file__], [doors.__file__])
        assert budget.spent == 20.5


class Picky(Hazard):
    """A rule of somebody else, whose law cannot be made for many records, or for much epsilon."""

    def output_distribution(self, output_bounds, epsilon):
        if epsilon > 1 or (output_bounds.n or 0) > 10:
            raise RuntimeError("too large")
        return super().output_distribution(output_bounds, epsilon)


def test_a_law_that_cannot_be_made_is_refused_before_the_spend(monkeypatch):
    ask = partial(attempt, dp.private_mean_loss, np.array([0.5, 1.0, 2.0]), mechanism=Picky())
    assert ask(epsilon=1.0)
    assert not ask(epsilon=2.0)  # each setting is tried before its first spend
    assert not ask(epsilon=1.0, neighboring="add_or_remove_one")  # a noisy count may be large

    def fails(*arguments):
        raise RuntimeError("no law")

    monkeypatch.setattr("dp_metrics.mechanisms.adaptive.hazard_law", fails)
    assert not attempt(dp.private_mse, *targets(1000), epsilon=1.0)  # which a drawn scale may need
