"""Replay: every door on neighbouring data with the same random bits; all that is public is the same.

The idea is that of Re:cord-play (Cebere et al., arXiv:2602.17454). A trace of a call has, in order, how many
random bits were asked for before the spend, what was ready to be drawn (queries, noises, shares of epsilon),
what was spent for which question, and what was warned of or raised. Where one record decides any of it, the
traces differ. They say nothing of the laws of what is drawn, which `release_loss` compares.
"""

import dataclasses
import pickle
import warnings
from contextlib import ExitStack
from functools import partial
from unittest import mock

import doors
import numpy as np
import pytest
from cases import ADD_OR_REMOVE, CASES, RELATIONS, REPLACE, each_kind, valid
from helpers import new_session, seeded, system_of
from sklearn.dummy import DummyClassifier

import dp_metrics as dp
from dp_metrics.metrics.summary import Summary
from dp_metrics.quantities.mean import MeanOf
from dp_metrics.release.release import prepared_releases


def trace(release, path=None):
    """Return what is public of a release that takes an accountant, and the kind of what it returned."""
    new_session()
    budget, source, bits = dp.PrivacyAccountant(1e6, path=path), seeded(), []
    words, entropy = source.words, mock.Mock()
    entropy.words = lambda size: (not budget.history and bits.append(size)) or words(size)
    with ExitStack() as stack:
        stack.enter_context(system_of(entropy))
        caught = stack.enter_context(warnings.catch_warnings(record=True))
        prepared = stack.enter_context(prepared_releases())
        warnings.simplefilter("always")
        try:
            returned = type(release(accountant=budget))
        except (TypeError, ValueError) as error:
            returned = type(error), str(error)
    ready = [
        (pickle.dumps((query, one.noises, one.for_count, one.records, one.metric)), one.terms.epsilon)
        for query, several in prepared
        for one in several
    ]
    spends = [dataclasses.replace(spend, time=None) for spend in budget.history]
    asked = [entry.question for entry in budget._ledger.kept()] if path else []
    return bits, ready, spends, asked, [str(one.message) for one in caught], returned


def assert_same_trace(release, one, other, folder):
    folder.mkdir(exist_ok=True)
    traces = [
        trace(partial(release, data, **named), folder / f"{at}.db" if named else None)
        for named in ({}, {"spend_name": "replay"})
        for at, data in enumerate((one, other))
    ]
    assert traces[0][0] == []  # nothing is drawn before the spend
    assert traces[0] == traces[1]
    assert traces[2] == traces[3]


def neighbours(case, relation, n=40):
    """Return data that differ in their last record: it is another one, or is missing."""
    data = valid(case, n)
    others = [np.concatenate([array[:-1], array[:1]]) for array in valid(case, n, seed=1)]
    replaced = [np.concatenate([a[:-1], b[-1:]]) for a, b in zip(data, others, strict=True)]
    return data, [array[:-1] for array in data] if relation == ADD_OR_REMOVE else replaced


@each_kind
def test_a_metric_shows_nothing_public_of_one_record(case, tmp_path):
    for relation in RELATIONS:
        takes = "neighboring" in case.parameters
        if relation == ADD_OR_REMOVE and (not takes or "multi_class" in case.options):
            continue
        release = partial(doors.result, case, epsilon=0.3, **({"neighboring": relation} if takes else {}))
        assert_same_trace(release, *neighbours(case, relation), tmp_path / relation)


N = 90
TRUE, LABEL = np.arange(N) % 2, np.arange(N) // 3 % 2
SCORE = np.round(np.abs(np.sin(np.arange(N))), 3)
TARGET, GUESS = np.cos(np.arange(N)), np.cos(np.arange(N) + 0.3)
SEX, PERSONS = np.arange(N) // 4 % 2, np.arange(N) // 2
COLUMNS = {"y": TRUE, "label": LABEL, "score": SCORE, "target": TARGET, "guess": GUESS, "sex": SEX}
OTHER = {"y": 1, "label": 0, "score": 0.999, "target": 1e9, "guess": -7.0, "sex": 1}
"""The record that takes the place of the first one."""

DOORS = {
    "frame of labels": lambda d, **more: dp.PrivateMetricFrame(
        metrics={"recall": "recall", "accuracy": "accuracy"}, y_true=d["y"], y_pred=d["label"],
        sensitive_features=d["sex"], group_labels=[0, 1], epsilon=1.0, **more,
    ),
    "frame of losses": lambda d, **more: dp.PrivateMetricFrame(
        metrics="mae", y_true=d["target"], y_pred=d["guess"], sensitive_features=d["sex"],
        group_labels=[0, 1], epsilon=1.0, **more,
    ),
    "frame of persons who count once": lambda d, **more: dp.PrivateMetricFrame(
        metrics="recall", y_true=d["y"], y_pred=d["label"], sensitive_features=d["sex"], group_labels=[0, 1],
        groups=PERSONS, equal_groups=True, epsilon=1.0, **more,
    ),
    "page of scores": lambda d, **more: dp.private_evaluate(
        d["y"], y_score=d["score"], baseline=d["score"][::-1], sensitive_features=d["sex"],
        group_labels=[0, 1], requirements=["recall >= 0.5"], epsilon=20.0, **more,
    ),
    "page of targets": lambda d, **more: dp.private_evaluate(
        d["target"], d["guess"], task="regression", epsilon=20.0, **more
    ),
    "page of persons": lambda d, **more: dp.private_evaluate(
        d["y"], y_score=d["score"], groups=PERSONS, epsilon=40.0, **more
    ),
    "wins": lambda d, **more: dp.private_compare(d["y"], d["label"], 1 - d["label"], epsilon=1.0, **more),
    "difference": lambda d, **more: dp.private_compare(
        d["target"], d["guess"], d["guess"] + 1, loss="mae", max_difference=1, epsilon=1.0, **more
    ),
    "choice": lambda d, **more: dp.private_best(
        d["y"], [d["label"], 1 - d["label"]], metric="accuracy", epsilon=1.0, **more
    ),
    "mean interval": lambda d, **more: dp.private_mean_interval(d["score"], max_loss=1, epsilon=1.0, **more),
    "quantile interval": lambda d, **more: dp.private_quantile_interval(d["score"], 0.5, epsilon=1.0, **more),
    "summary": lambda d, **more: Summary("mae").update(d["target"], d["guess"]).release(epsilon=1.0, **more),
    "scorer": lambda d, accountant, **more: dp.make_private_scorer(
        "accuracy", epsilon=1.0, accountant=accountant
    )(DummyClassifier().fit(TRUE[:, None], TRUE), d["label"][:, None], d["y"]),
    "search": lambda d, accountant, **more: dp.PrivateRandomizedSearch(
        DummyClassifier(), {"strategy": ["prior", "uniform"]}, metric="accuracy", epsilon=1.0,
        accountant=accountant,
    ).fit(TRUE[:, None], TRUE, X_val=d["label"][:, None], y_val=d["y"]),
}  # fmt: skip


@pytest.mark.parametrize("door", DOORS)
def test_a_door_shows_nothing_public_of_one_record(door, tmp_path):
    other = {name: np.concatenate([[OTHER[name]], array[1:]]) for name, array in COLUMNS.items()}
    assert_same_trace(DOORS[door], COLUMNS, other, tmp_path)


def test_a_number_that_follows_from_a_record_is_noticed(tmp_path):
    """The replay can fail: where a public fact of the noise, a warning or a draw depends on the records."""
    case = CASES["mse"]
    pair, facts = neighbours(case, REPLACE), MeanOf.totals
    release = partial(doors.result, case, epsilon=0.3)
    assert_same_trace(release, *pair, tmp_path)

    def by_data(self, records):
        if records.arrays[0][-1] == pair[0][0][-1]:
            warnings.warn("an odd record", UserWarning, stacklevel=1)
        return facts(self, records)

    with mock.patch.object(MeanOf, "totals", by_data), pytest.raises(AssertionError):
        assert_same_trace(release, *pair, tmp_path / "warned")

    def larger(self, records):
        return dataclasses.replace(facts(self, records), largest=float(records.arrays[0][-1]))

    with mock.patch.object(MeanOf, "totals", larger), pytest.raises(AssertionError):
        assert_same_trace(release, *pair, tmp_path / "read")
