"""What a released mean is among all people: the numbers, the metrics, and what is refused."""

import numpy as np
import pytest
from helpers import loop_over, seeded

import dp_metrics as dp
from dp_metrics.release.normal_limits import mean_half_width

N = 2000
Y, GUESS = np.random.default_rng(0).normal(size=(2, N)) / 3
PUBLIC = {"bounds": (-2.0, 2.0), "mechanism": "geometric"}


def released(function=dp.private_mse, data=(Y, GUESS), **options):
    return dp.with_result(function)(*data, **{"epsilon": 1.0, **PUBLIC, **options})


@loop_over("epsilon", [0.1, 0.5, 1.0, 2.0])
def test_the_approximate_interval_follows_from_the_mean_and_its_spread(epsilon):
    result = released(epsilon=epsilon, random_state=seeded())
    interval = result.population_interval(0.9, "approximate")
    half = 16 * mean_half_width(result.value / 16, result.drawn["spread"], N, (1 / (N * epsilon),) * 2, 0.1)
    assert interval.upper == pytest.approx(min(result.value + half, 16.0), rel=1e-5)
    assert interval.lower == pytest.approx(max(result.value - half, 0.0), rel=1e-5)
    assert (interval.estimate, interval.confidence) == (result.value, 0.9)
    assert "approximate" in interval.note
    assert interval.about.startswith("The mse among all people")
    sure = result.population_interval(0.9)
    assert sure.note == ""
    assert sure.lower <= interval.lower < interval.upper < sure.upper


def test_whoever_pays_more_has_no_wider_interval():
    """But just above an epsilon of 2. A mean of 40 widths has a standard error of 2 % at most."""
    epsilons, entropy = (0.5, 1.0, 1.01, 2.0, 2.01, 4.0, 8.0), seeded()
    widths = []
    for epsilon in epsilons:
        intervals = [
            released(epsilon=epsilon, random_state=entropy).population_interval(method="approximate")
            for _ in range(40)
        ]
        widths.append(np.mean([one.upper - one.lower for one in intervals]))
    allowed = [1.07, 1.07, 1.07, 1.2, 1.07, 1.07]
    assert np.all(np.array(widths[1:]) < allowed * np.array(widths[:-1]))
    without_noise = 2 * 1.96 * np.square(Y - GUESS).std() / N**0.5
    assert widths[-1] < 1.5 * without_noise  # of errors that are a seventieth of their cap


def test_a_function_of_a_mean_has_the_function_of_its_limits():
    with pytest.warns(dp.SeededReleaseWarning):
        results = [released(f, random_state=3, epsilon=0.5) for f in (dp.private_mse, dp.private_rmse)]
    mse, rmse = (result.population_interval(method="approximate") for result in results)
    assert [*rmse] == pytest.approx(np.sqrt([*mse]).tolist())
    assert rmse.estimate == results[1].value
    columns = [np.stack([a, a / 2], axis=1) for a in (Y, GUESS)]
    several = released(data=columns, multioutput="raw_values").population_interval(method="approximate")
    assert several.lower.shape == several.upper.shape == (2,)
    assert (several.lower < several.upper).all()
    shifted = released(dp.private_mean, (Y,)).population_interval()
    assert -2 < shifted.lower < shifted.estimate < shifted.upper < 2


def covered(loss, epsilon, runs, n=400, mean=0.1):
    """Return how often the intervals of losses, uniform of a small cap or rarely large, cover the mean."""
    rng, found = np.random.default_rng(5), {"sure": 0, "approximate": 0}
    for _ in range(runs):
        x = loss(rng, n)
        result = dp.with_result(dp.private_mean_loss)(
            x, epsilon=epsilon, max_loss=1.0, mechanism="geometric", random_state=rng.integers(1 << 31)
        )
        for method in found:
            lower, upper = result.population_interval(method=method)
            found[method] += lower <= mean <= upper
    return {method: count / runs for method, count in found.items()}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dp_metrics.SeededReleaseWarning")
@pytest.mark.parametrize("epsilon", [0.5, 1.01, 4.0])
def test_intervals_cover_the_mean(epsilon):
    """Of 400 runs: one of the four shares of an epsilon is below its limit once in 400, at .95 exactly."""
    for loss, mean in (
        (lambda rng, n: rng.uniform(0, 0.2, n), 0.1),
        (lambda rng, n: rng.beta(0.5, 4.5, n), 0.1),
        (lambda rng, n: np.square(rng.uniform(0, 1, n)), 1 / 3),
        (lambda rng, n: rng.choice([0.02, 0.6], n, p=[0.9, 0.1]), 0.078),
    ):
        found = covered(loss, epsilon, 400, mean=mean)
        assert found["sure"] >= 0.95 - 3 * 0.011
        assert found["approximate"] >= 0.95 - 3 * 0.011
