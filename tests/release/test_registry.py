"""The fields of the OpenDP Deployments Registry that a result fills in: its names, and only what is true."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from helpers import integers

import dp_metrics as dp
from dp_metrics._random import SeededEntropy
from dp_metrics.inputs.losses import RecordLoss, identity
from dp_metrics.inputs.records import loss_block
from dp_metrics.inputs.shape import Records
from dp_metrics.mechanisms import MECHANISMS
from dp_metrics.release.parts.mean_loss import MeanOf
from dp_metrics.release.plan import KnownParts
from dp_metrics.release.release import Release

# Of schemas/deployments-schema.yaml in opendp/deployments-registry-data, 15 July 2026: the fields of the
# "deployment" of an entry that a library can know; the schema allows no others. Then two enumerations.
FIELDS = {
    "dp_variant": {"variant_name", "data_domain", "unprotected_quantities"},
    "privacy_loss": {
        "privacy_unit",
        "privacy_unit_details",
        "privacy_parameters",
        "privacy_parameters_details",
    },
    "deployment_model": {"model_name", "model_name_details"},
    "accounting": {"post_processing", "composition"},
    "implementation": {"mechanisms", "preprocessing_and_hyperparameter_tuning", "justification"},
}
VARIANTS = {"Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"}
MODELS = {"Local", "Central", "Shuffle", "Federated", "Varies"}
LOSSES = np.linspace(0.0, 1.0, 40)


def released(losses=LOSSES, **options):
    return dp.with_result(dp.private_mean_loss)(losses, **{"epsilon": 2.0, "max_loss": 1.0} | options)


def mechanisms_of(result):
    return result.deployment["implementation"]["mechanisms"]


@pytest.mark.parametrize("neighboring", ["replace_one", "add_or_remove_one"])
def test_a_result_fills_in_fields_that_the_registry_has(neighboring):
    result = released(neighboring=neighboring)
    told = json.loads(result.to_json())["deployment"]
    assert told.keys() == FIELDS.keys()
    for part, fields in FIELDS.items():
        assert told[part].keys() <= fields
        assert all(told[part].values())
    assert told["dp_variant"]["variant_name"] in VARIANTS
    assert told["deployment_model"]["model_name"] in MODELS
    assert told["privacy_loss"]["privacy_parameters"] == {"epsilon": result.epsilon}
    hides_n = "number" not in told["dp_variant"]["unprotected_quantities"]
    assert hides_n == (result.n is None) == (neighboring == "add_or_remove_one")
    replaced = "replaced" in told["privacy_loss"]["privacy_unit_details"]
    assert replaced == (neighboring == "replace_one")
    assert f"dp_metrics {dp.__version__}." in mechanisms_of(result)
    assert result.mechanism in mechanisms_of(result)


def test_the_fields_do_not_depend_on_the_records():
    data = [LOSSES, np.zeros(40), np.ones(40), np.full(40, 5e-324)]
    assert len({json.dumps(json.loads(released(x).to_json())["deployment"]) for x in data}) == 1


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_only_mechanisms_that_are_exact_as_executed_are_called_so(mechanism):
    told = mechanisms_of(released(mechanism=mechanism))
    assert ("Exact as executed" in told) == (mechanism in ("adaptive", "geometric", "hazard"))
    assert ("drawn as floats" in told) == (mechanism not in ("adaptive", "geometric", "hazard"))


def test_counts_and_areas_are_exact_as_executed():
    y, p = [0, 1] * 20, [0.25, 0.75] * 20
    table = dp.with_result(dp.private_confusion_matrix)(y, y, labels=[0, 1], epsilon=1.0)
    area = dp.with_result(dp.private_roc_auc_score)(y, p, epsilon=1.0)
    for result in (table, area):
        assert "Exact as executed" in mechanisms_of(result)


class MyHazard(dp.Hazard):
    """A rule of somebody else's, even if it is derived from one of ours."""


def test_nothing_is_promised_for_a_mechanism_that_is_not_of_this_package():
    assert released(mechanism=MyHazard()).deployment is None


@pytest.mark.parametrize("seed", [0, SeededEntropy(0), np.random.default_rng(0)], ids=type)
@pytest.mark.filterwarnings("ignore::dp_metrics.SeededReleaseWarning")
def test_nothing_is_promised_for_a_release_that_can_be_repeated(seed):
    result = released(random_state=seed)
    assert result.deployment is None
    assert json.loads(result.to_json())["deployment"] is None


def test_one_comparator_among_the_draws_of_a_release_takes_the_exactness_away():
    plan, known = integers((3, 4), n=7)
    mean = MeanOf(RecordLoss(identity, reads=(loss_block,), cap=1.0))
    plan = replace(plan, parts=(*plan.parts, mean))
    known = KnownParts((*known.parts, mean.known(Records((LOSSES,)))))
    exact, floats = (settings_of(mechanism).run(plan, known) for mechanism in ("hazard", "laplace"))
    assert "Exact as executed" in mechanisms_of(exact)
    assert "drawn as floats" in mechanisms_of(floats)


def settings_of(mechanism):
    return Release(
        "table",
        epsilon=1,
        mechanism=mechanism,
        default="hazard",
        accountant=None,
        random_state=None,
        neighboring="replace_one",
    )


def test_results_written_before_and_after_the_field_came_are_read():
    result = released()
    written = json.loads(result.to_json())
    assert dp.PrivateResult(**written).to_json() == result.to_json()
    assert pickle.loads(pickle.dumps(result)) == result
    del written["deployment"]
    assert dp.PrivateResult(**written).deployment is None


def test_the_fields_cannot_be_changed():
    with pytest.raises(TypeError):
        released().deployment["privacy_loss"]["privacy_parameters"]["epsilon"] = 0.1
