"""What `with_result` takes and returns, how it is shown, and what it promises in a registry."""

import functools
import json
import pickle

import numpy as np
import pytest
from helpers import all_of_labels, all_of_scores, assert_same, loop_over, seeded

import dp_metrics as dp
from dp_metrics._random import SeededEntropy
from dp_metrics.mechanisms import MECHANISMS
from dp_metrics.metrics import METRICS
from dp_metrics.release.result import Result

X, Y = np.linspace(0.0, 1.0, 40), np.linspace(0.0, 1.0, 40) + 1.5
LABELS = np.arange(40) % 2
SHARES = {"private_accuracy_score", "private_zero_one_loss", "private_top_k_accuracy_score"}
DRAWN = {
    "private_roc_auc_score": {"positives"},
    "private_mean": {"spread"},
    "private_brier_score_loss": {"spread"},
}


def result_of(y=Y, **options):
    return dp.with_result(dp.private_mae)(0 * y, y, **{"epsilon": 1.0, "random_state": seeded(), **options})


# ---- what it takes and returns -----------------------------------------------------------------------------


@loop_over("name", METRICS)
def test_a_result_is_that_of_the_metric_with_what_may_be_published(name):
    function, row = METRICS[name].function, METRICS[name]
    full = dp.with_result(function)
    data, options = row.from_unit(X), {**row.required, **(row.limit or {})}
    accountant = dp.PrivacyAccountant(10)
    called = {"epsilon": 1.0, **options, "accountant": accountant}
    result = full(*data, **called, spend_name="week 3", random_state=seeded())
    value = function(**dict(zip(row.data, data, strict=True)), **called, random_state=seeded())
    assert_same(value, result.value)
    assert not isinstance(value, Result)
    assert [spend.spend_name for spend in accountant.history] == ["week 3", name]
    assert (result.epsilon, result.n, result.neighboring) == (1.0, 40, "replace_one")
    assert (result.metric, result.spend_name) == (name, "week 3")
    are_counts = row.mechanism is None or name in SHARES
    assert set(result.drawn) == DRAWN.get(name, {"counts"} if are_counts else set())
    known = ("Adaptive", "Hazard", "Geometric", "two-sided geometric noise with sum 0")
    assert any(mechanism in result.mechanism for mechanism in known)
    written = json.loads(result.to_json())["value"]
    if name == "private_roc_curve":
        assert written[2][0] is None  # JSON has no infinity
        written[2][0] = np.inf
    np.testing.assert_equal(written, getattr(value, "tolist", lambda: value)())
    again = pickle.loads(pickle.dumps(result))
    assert_same(again.to_dict(), result.to_dict())
    assert repr(again) == repr(result)  # with the limits of the noise


def test_scorers_summaries_methods_and_partials_are_served_and_pass_the_spend_name_on():
    accountant = dp.PrivacyAccountant(10)
    scorer = dp.make_private_scorer(dp.private_mae, epsilon=1.0, accountant=accountant, spend_name="fold")

    class Model:
        def predict(self, X):
            return X[:, 0]

    scorer(Model(), X[:, np.newaxis], X)
    dp.Summary(dp.private_mae).update(X, X).release(1.0, accountant=accountant, spend_name="stream")
    for summary in dp.Summary(dp.private_mae).update(X, Y), dp.Summary("variance").update(X):
        result = dp.with_result(summary.release)(1.0, random_state=seeded(), accountant=accountant)
        assert result.value == summary.release(1.0, random_state=seeded())
        assert (result.n, result.metric) == (40, accountant.history[-1].spend_name)
    assert [one.spend_name for one in accountant.history[:3]] == ["fold #1", "stream", "private_mae"]
    bounded = functools.partial(functools.partial(dp.private_mse, bounds=(0, 1)), X, epsilon=1.0)
    for made in (dp.with_result(bounded), pickle.loads(pickle.dumps(dp.with_result(bounded)))):
        assert made(0 * X, random_state=seeded()).value == bounded(0 * X, random_state=seeded())


def test_nothing_of_a_result_can_be_changed():
    several = result_of(np.ones((5, 2)), multioutput="raw_values")
    assert json.loads(several.to_json())["value"] == several.value.tolist()
    result = result_of(random_state=None, spend_name="week 3")
    with pytest.raises(AttributeError):
        result.epsilon = 0.1
    with pytest.raises(TypeError):
        result.drawn["count"] = 3
    result.deployment["privacy_loss"]["privacy_parameters"]["epsilon"] = 0.1
    assert result.deployment["privacy_loss"]["privacy_parameters"]["epsilon"] == 1.0
    assert pickle.loads(pickle.dumps(result)).to_json() == result.to_json()


# ---- how it is shown ---------------------------------------------------------------------------------------


def test_a_result_is_formatted_as_its_value_and_is_no_number():
    result = result_of()
    value = result.value
    assert (f"{result:.3f}", format(result, "10.2e")) == (f"{value:.3f}", format(value, "10.2e"))
    assert float(result) == value
    assert result != value
    for wrong in (lambda: result + 1, lambda: result < 1, lambda: round(result)):
        with pytest.raises(TypeError):
            wrong()


def test_a_result_shows_its_value_its_cost_and_its_limits():
    result = result_of(spend_name="week 47")
    shown = repr(result)
    limits = repr(tuple(result.noise_interval()))
    for text in (repr(result.value), "private_mae", "epsilon=1.0", "replace_one", "n=40", "week 47", limits):
        assert text in shown
    assert f"{result}" == str(result) == shown
    assert "noise_interval" not in repr(dp.with_result(dp.private_roc_curve)(LABELS, X, epsilon=1.0))


def test_what_is_released_shows_its_cost_its_relation_and_what_not_to_conclude():
    paid = {"epsilon": 0.1, "neighboring": "add_or_remove_one"}
    several = {"recall": dp.private_recall_score, "loss": dp.private_zero_one_loss}
    of_groups = {"y_true": LABELS, "y_pred": LABELS, "sensitive_features": LABELS, "group_labels": [0, 1]}
    shown = [
        dp.with_result(dp.private_recall_score)(LABELS, LABELS, labels=[0, 1], **paid),
        dp.PrivateMetricFrame(metrics=several, **of_groups, **paid),
        all_of_labels(labels=[0, 1]).update(LABELS, LABELS).release(**paid),
        all_of_scores().update(LABELS, X).release(**paid),
    ]
    for one in map(repr, shown):
        assert all(word in one for word in ("epsilon=0.1", "neighboring='add_or_remove_one'", "ostly noise"))


# ---- what it promises in a registry ------------------------------------------------------------------------

# Of schemas/deployments-schema.yaml in opendp/deployments-registry-data, 15 July 2026: the fields of the
# "deployment" of an entry that a library can know; the schema allows no others.
FIELDS = {
    "dp_variant": {"variant_name", "data_domain", "unprotected_quantities"},
    "privacy_loss": {
        "privacy_unit", "privacy_unit_details", "privacy_parameters", "privacy_parameters_details",
    },
    "deployment_model": {"model_name", "model_name_details"},
    "accounting": {"post_processing", "composition"},
    "implementation": {"mechanisms", "preprocessing_and_hyperparameter_tuning", "justification"},
}  # fmt: skip


def promised(losses=X, **options):
    return dp.with_result(dp.private_mean_loss)(losses, epsilon=2.0, max_loss=1.0, **options)


def test_a_result_fills_in_fields_that_the_registry_has_whatever_the_records():
    for relation in ("replace_one", "add_or_remove_one"):
        result = promised(neighboring=relation)
        others = [promised(other, neighboring=relation) for other in (0 * X, 0 * X + 1, 0 * X + 5e-324)]
        (written,) = {json.dumps(json.loads(one.to_json())["deployment"]) for one in (result, *others)}
        told = json.loads(written)
        assert told.keys() == FIELDS.keys()
        for part, fields in FIELDS.items():
            assert told[part].keys() <= fields
            assert all(told[part].values())
        assert told["dp_variant"]["variant_name"] == "Pure DP"
        assert told["deployment_model"]["model_name"] == "Central"
        assert told["privacy_loss"]["privacy_parameters"] == {"epsilon": result.epsilon}
        hides_n = "number" not in told["dp_variant"]["unprotected_quantities"]
        assert hides_n == (result.n is None) == (relation == "add_or_remove_one")
        replaced = "replaced" in told["privacy_loss"]["privacy_unit_details"]
        assert replaced == (relation == "replace_one")
        assert f"dp_metrics {dp.__version__}." in told["implementation"]["mechanisms"]
        assert result.mechanism in told["implementation"]["mechanisms"]


@loop_over(
    ("metric", "options", "records", "unit", "said"),
    [
        (dp.private_mae, {}, 2, "person", "first are replaced"),
        (dp.private_recall_score, {}, 2, "person", "first, up to 2, are replaced"),
        (dp.private_recall_score, {"equal_groups": True}, 2, "person", "first are replaced"),
        (dp.private_recall_score, {"max_records": 1}, 2, "record", "one record of the first"),
        (dp.private_mae, {}, 1, "record", "one record of the first"),
    ],
)
def test_the_unit_of_the_promise_is_a_person_where_somebody_has_several_records(
    metric, options, records, unit, said
):
    y, ids = [0, 1] * 20, np.arange(40) // records
    result = dp.with_result(metric)(y, y, epsilon=1.0, groups=ids, **options)
    for one in (result.deployment, json.loads(result.to_json())["deployment"]):
        assert one["privacy_loss"]["privacy_unit"] == unit
        assert said in one["privacy_loss"]["privacy_unit_details"]
    seeded = {"random_state": 0, "groups": ids, **options}
    with pytest.warns(dp.exceptions.SeededReleaseWarning):
        assert dp.with_result(metric)(y, y, epsilon=1.0, **seeded).deployment is None


class MyHazard(dp.mechanisms.Hazard):
    """A rule of somebody else's, even if it is derived from one of ours."""


@pytest.mark.filterwarnings("ignore::dp_metrics.exceptions.SeededReleaseWarning")
def test_only_what_is_exact_as_executed_is_called_so_and_only_what_is_ours_and_unseeded_promised():
    y, p = [0, 1] * 20, [0.25, 0.75] * 20
    results = {name: promised(mechanism=name) for name in MECHANISMS}
    results["counts"] = dp.with_result(dp.private_confusion_matrix)(y, y, labels=[0, 1], epsilon=1.0)
    results["area"] = dp.with_result(dp.private_roc_auc_score)(y, p, epsilon=1.0)
    for name, result in results.items():
        told = result.deployment["implementation"]["mechanisms"]
        is_exact = name in ("adaptive", "geometric", "hazard", "counts", "area")
        assert ("Exact as executed" in told, "drawn as floats" in told) == (is_exact, not is_exact), name
    for nothing in (
        {"mechanism": MyHazard()}, {"random_state": 0}, {"random_state": SeededEntropy(0)},
        {"random_state": np.random.default_rng(0)},
    ):  # fmt: skip
        result = promised(**nothing)
        assert result.deployment is json.loads(result.to_json())["deployment"] is None
