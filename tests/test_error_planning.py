"""Planning from public data: the expected error, and the epsilon for a wanted one."""

import math

import numpy as np
import pytest

import dp_metrics as dp
from dp_metrics._random import SeededEntropy

rng = np.random.default_rng(0)
LOSSES = rng.exponential(size=800)


@pytest.mark.parametrize(
    ("metric", "data", "options", "release_options"),
    [
        (dp.private_mean_loss, LOSSES, {}, {}),
        (dp.private_mean_loss, np.minimum(LOSSES, 3), {"max_loss": 3.0}, {"max_loss": 3.0}),
        (dp.private_variance, LOSSES, {"statistic": "variance", "bounds": (0, 9)}, {"bounds": (0, 9)}),
        (
            dp.private_mean_loss,
            LOSSES,
            {"mechanism": dp.AboveThreshold()},
            {"mechanism": dp.AboveThreshold()},
        ),
        (
            dp.private_mean_loss,
            LOSSES,
            {"neighboring": "add_or_remove_one"},
            {"neighboring": "add_or_remove_one"},
        ),
    ],
)
def test_the_expected_error_is_that_of_releases(metric, data, options, release_options):
    expected = dp.expected_error(data, 0.5, **options)
    truth = data.var() if metric is dp.private_variance else data.mean()
    entropy, size = SeededEntropy(0), 500
    releases = [metric(data, epsilon=0.5, random_state=entropy, **release_options) for _ in range(size)]
    errors = np.minimum(np.abs(np.array(releases) - truth), 10 * truth)
    assert abs(errors.mean() - expected) < 5 * errors.std() / math.sqrt(size) + 0.05 * expected


def test_the_error_of_a_zero_one_loss_is_below_one_record():
    wrong = rng.random(1000) < 0.1
    expected = dp.expected_error(wrong, 1.0, statistic="zero_one_loss", mechanism="geometric")
    assert expected == pytest.approx(0.851 / 1000, rel=1e-2)
    with pytest.raises(ValueError, match="0 or 1"):
        dp.expected_error([0.5], 1.0, statistic="zero_one_loss")


@pytest.mark.parametrize("error", [0.3, 0.1, 0.02])
def test_epsilon_for_error_is_enough_and_hardly_more(error):
    epsilon = dp.epsilon_for_error(LOSSES, error)
    assert dp.expected_error(LOSSES, epsilon) <= error
    assert dp.expected_error(LOSSES, epsilon * 0.97) > error
    assert float(f"{epsilon:.3g}") == epsilon


def test_more_records_need_a_smaller_epsilon_and_have_a_smaller_error():
    assert dp.epsilon_for_error(LOSSES, 0.05, n=8000) < dp.epsilon_for_error(LOSSES, 0.05)
    assert dp.expected_error(LOSSES, 1.0, n=100) > dp.expected_error(LOSSES, 1.0)


def test_beyond_the_ends_of_what_is_searched_there_is_an_end_or_an_error():
    assert dp.epsilon_for_error(LOSSES, 1e6) == 1e-4
    with pytest.raises(ValueError, match="No epsilon"):
        dp.epsilon_for_error(LOSSES, 1e-12)
    with pytest.raises(ValueError, match="is 0"):
        dp.expected_error(np.zeros(100), 1.0)
    assert dp.expected_error(np.zeros(100), 1.0, max_loss=1.0) < 1e-3


@pytest.mark.parametrize("function", [dp.expected_error, dp.epsilon_for_error])
def test_the_first_sentence_says_public_data_only_and_the_next_forbids_private_data(function):
    first, second = function.__doc__.split("\n\n")[:2]
    # tables of the documentation show the first sentence and nothing else
    assert first.startswith("Return, from public data only, the ")
    assert first.count(".") == 1
    assert second.strip().startswith("Never use this on private data: ")


@pytest.mark.parametrize(
    "options",
    [
        {"statistic": "median"},
        {"n": 0},
        {"n": 2.5},
        {"n": True},
        {"error_cap": 0},
        {"error_cap": "a"},
        {"error_cap": math.nan},
        {"error_cap": True},
        {"bounds": (0, 1)},
        {"statistic": "variance", "max_loss": 1},
        {"mechanism": "laplace"},
        {"mechanism": "magic"},
        {"neighboring": "swap"},
    ],
)
def test_bad_options_are_refused(options):
    for function in (dp.expected_error, dp.epsilon_for_error):
        with pytest.raises((ValueError, TypeError)):
            function(LOSSES, 1.0, **options)
    for error in (0, -1, math.nan, math.inf, "1", True):
        with pytest.raises(ValueError, match="error"):
            dp.epsilon_for_error(LOSSES, error)
