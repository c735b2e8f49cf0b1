"""What `with_result` returns, and what the accountant shows of it."""

import json
import pickle
from fractions import Fraction

import numpy as np
import pytest
from helpers import NoEntropy, integers

import dp_metrics as dp
from dp_metrics._random import SeededEntropy
from dp_metrics.metrics import FUNCTIONS, METRICS
from dp_metrics.release.draws import VectorDraw
from dp_metrics.release.parts.part import IntegerVector
from dp_metrics.release.release import Release, Released

X = np.linspace(0.0, 1.0, 40)


def arguments(name):
    row = METRICS[name]
    return row.from_unit(X), {**row.required, **(row.limit or {})}


@pytest.mark.parametrize("name", METRICS)
def test_a_result_holds_the_value_and_what_may_be_published(name):
    data, options = arguments(name)
    plain, full = (
        function(*data, epsilon=1.0, random_state=SeededEntropy(3), spend_name="week 3", **options)
        for function in (FUNCTIONS[name], dp.with_result(FUNCTIONS[name]))
    )
    assert isinstance(full, dp.PrivateResult)
    assert not isinstance(plain, dp.PrivateResult)
    np.testing.assert_equal(full.value, plain)
    assert (full.epsilon, full.n, full.neighboring) == (1.0, 40, "replace_one")
    assert (full.metric, full.spend_name) == (name, "week 3")
    others = {
        "private_roc_auc_score": {"positives"},
        "private_mean": {"spread"},
        "private_brier_score_loss": {"spread"},
        "private_probability_report": {"spread"},
    }
    of_counts = {"counts"} if METRICS[name].mechanism is None else set()
    assert set(full.drawn) == others.get(name, of_counts)
    known = ("Adaptive", "Hazard", "Geometric", "two-sided geometric noise with sum 0")
    assert any(name in full.mechanism for name in known)
    if isinstance(plain, float):
        assert float(full) == plain
    written = json.loads(full.to_json())["value"]
    if name == "private_roc_curve":
        assert written[2][0] is None  # JSON has no infinity
        written[2][0] = np.inf
    np.testing.assert_equal(written, getattr(plain, "tolist", lambda: plain)())
    restored = pickle.loads(pickle.dumps(full))
    np.testing.assert_equal(restored.to_dict(), full.to_dict())


@pytest.mark.parametrize("name", METRICS)
def test_the_spend_name_is_what_the_history_shows(name):
    data, options = arguments(name)
    accountant = dp.PrivacyAccountant(10)
    for spend_name in (None, "test set, May"):
        FUNCTIONS[name](*data, epsilon=1.0, accountant=accountant, spend_name=spend_name, **options)
    assert [spend.spend_name for spend in accountant.history] == [name, "test set, May"]
    with pytest.raises(TypeError, match="spend_name"):
        FUNCTIONS[name](*data, epsilon=1.0, spend_name=3, random_state=NoEntropy(), **options)


def test_scorers_and_summaries_pass_the_spend_name_on():
    accountant = dp.PrivacyAccountant(10)
    scorer = dp.make_private_scorer(dp.private_mae, epsilon=1.0, accountant=accountant, spend_name="fold")

    class Model:
        def predict(self, X):
            return X[:, 0]

    scorer(Model(), X[:, np.newaxis], X)
    dp.LossSummary(dp.private_mae).update(X, X).release(1.0, accountant=accountant, spend_name="stream")
    result = dp.with_result(dp.VarianceSummary().update(X).release)(1.0, accountant=accountant)
    assert [spend.spend_name for spend in accountant.history] == ["fold #1", "stream", "private_variance"]
    assert (result.n, result.metric) == (40, "private_variance")


def test_pickles_of_older_results_which_call_the_name_of_the_spend_a_label_are_read():
    result = dp.with_result(dp.private_mae)(X, X, epsilon=1.0, spend_name="week 3")
    restore, (fields,) = result.__reduce__()
    fields["label"] = fields.pop("spend_name")
    assert restore(fields) == result


def test_a_private_number_of_records_is_not_in_the_result_but_its_noisy_count_is():
    many = np.linspace(0.0, 1.0, 48_271)
    result = dp.with_result(dp.private_mae)(many, many, epsilon=1.0, neighboring="add_or_remove_one")
    assert result.n is None
    assert result.drawn["count"] >= 1
    # Numbers that were drawn may have these five digits, in about one of 10,000 runs.
    shown = repr(result).replace(repr(result.value), "").replace(str(result.drawn["count"]), "")
    assert "48271" not in shown.replace(",", "").replace(".", "")
    counts = {
        dp.with_result(dp.private_mae)(X, X, epsilon=1.0, neighboring="add_or_remove_one").drawn["count"]
        for _ in range(20)
    }
    assert len(counts) > 1
    fixed = dp.with_result(dp.private_mae)(
        X,
        X,
        epsilon=1.0,
        neighboring="add_or_remove_one",
        mechanism=dp.Hazard(resolution=0.1),
    )
    assert dict(fixed.drawn) == {}


def test_arrays_become_lists_in_json_and_nothing_can_be_changed():
    y = np.ones((5, 2))
    result = dp.with_result(dp.private_mse)(y, y, epsilon=1.0, multioutput="raw_values")
    assert json.loads(result.to_json())["value"] == result.value.tolist()
    with pytest.raises(AttributeError):
        result.epsilon = 0.1
    with pytest.raises(TypeError):
        result.drawn["count"] = 3


def settings(accountant=None, neighboring="replace_one", seed=0):
    return Release(
        "table",
        epsilon=1,
        mechanism=None,
        default="hazard",
        accountant=accountant,
        random_state=SeededEntropy(seed),
        neighboring=neighboring,
    )


def vector_plan(values, sensitivity=2, **keywords):
    return integers(values, sensitivity=sensitivity, n=sum(values), **keywords)


def test_whole_numbers_are_released_with_exact_noise_and_then_postprocessed():
    accountant = dp.PrivacyAccountant(1)
    plan = vector_plan((30, 10, 0), postprocess=lambda released: released.values[0])
    result = settings(accountant).run(*plan)
    assert len(result.value) == 3
    assert all(isinstance(count, int) for count in result.value)
    assert accountant.spent == 1
    share = settings().run(
        *vector_plan((30, 10), postprocess=lambda r: r.values[0][0] / max(sum(r.values[0]), 1))
    )
    assert isinstance(share.value, float)


@pytest.mark.parametrize("neighboring", ["replace_one", "add_or_remove_one"])
def test_a_vector_needs_no_count(neighboring):
    result = settings(neighboring=neighboring).run(*vector_plan((3, 4)))
    assert dict(result.drawn) == {}
    assert result.mechanism == "two-sided geometric noise"


def test_a_vector_is_as_private_as_its_sensitivity_says():
    # P(noise = k) is proportional to exp(-rate |k|) in each coordinate, so the loss of two vectors is
    # the rate times the sum of their differences: epsilon, exactly, for neighbours as far apart as stated
    draw = IntegerVector((5, 1, 7), 2, n=13).prepare(dp.Hazard(), Fraction(3, 10), private_n=False)
    assert isinstance(draw, VectorDraw)
    assert draw.rates == ((3, Fraction(3, 20)),)
    a, b = (5, 1, 7), (4, 2, 7)
    loss = Fraction(3, 20) * sum(abs(x - y) for x, y in zip(a, b, strict=True))
    assert loss == Fraction(3, 10)


def test_the_noise_of_a_vector_follows_its_law():
    # chi-squared with 8 cells of expected counts above 50; a right sampler exceeds 40 with probability 2e-6
    rate, size = Fraction(1, 2), 4000
    entropy = SeededEntropy(11)
    noise = np.array([VectorDraw((0, 0), ((2, rate),))(entropy, None)[0] for _ in range(size // 2)]).ravel()
    q = np.exp(-float(rate))
    cells = np.arange(-3, 4)
    expected = size * (1 - q) / (1 + q) * q ** np.abs(cells)
    counts = np.array([(noise == cell).sum() for cell in cells])
    rest = size - expected.sum()
    statistic = ((counts - expected) ** 2 / expected).sum() + (size - counts.sum() - rest) ** 2 / rest
    assert statistic < 40
    assert abs(np.corrcoef(noise[::2], noise[1::2])[0, 1]) < 0.12  # false alarm below 1e-6


def test_a_plan_that_cannot_be_drawn_spends_nothing():
    accountant = dp.PrivacyAccountant(1)
    with pytest.raises(ValueError, match="too small"):
        Release(
            "table",
            epsilon=5e-324,
            mechanism=None,
            default="hazard",
            accountant=accountant,
            random_state=NoEntropy(),
            neighboring="replace_one",
        ).run(*integers((1,), (1,), (1,), sensitivity=1))
    assert accountant.history == ()


def test_a_result_is_computed_from_what_was_released_only():
    seen = []

    def postprocess(released: Released):
        seen.append(released)
        return 0.0

    settings().run(*vector_plan((3, 4), postprocess=postprocess))
    assert seen[0].values[0] != (3, 4) or seen[0].epsilon == 1
    assert (seen[0].epsilon, seen[0].neighboring) == (1, "replace_one")
