"""Without noise, by a huge epsilon, all numbers of a page are those of scikit-learn."""

import itertools
from functools import partial

import cases
import numpy as np
import pandas as pd
import pytest
from helpers import loop_over
from pages import column, sections, tables_of, values
from sklearn import metrics as sk

import dp_metrics as dp
from dp_metrics._random import SeededEntropy

NO_NOISE = 1e9
RNG = np.random.default_rng(11)
N = 4000
Y = (RNG.random(N) < 0.3).astype(int)
SCORE = np.clip(np.round(RNG.normal(0.35 + 0.3 * Y, 0.2) * 64), 0, 64) / 64  # some are at the threshold
PRED = (SCORE >= 0.5).astype(int)
GROUP = np.array(["a", "b", "c"])[RNG.choice(3, N, p=[0.5, 0.3, 0.2])]
OLD = RNG.integers(0, 2, N)
TEN = RNG.integers(0, 10, N)
PRED_TEN = np.where(RNG.random(N) < 0.6, TEN, RNG.integers(0, 10, N))
THREE, TRUE_THREE = RNG.dirichlet([1, 1, 1], N), RNG.integers(0, 3, N)
TARGET = RNG.normal(size=N)
ESTIMATE = TARGET + RNG.normal(size=N) * 0.3
BY_GROUP = {"sensitive_features": GROUP, "group_labels": ["a", "b", "c"]}
GROUPS = {label: label == GROUP for label in "abc"}
WAYS = [*cases.WAYS.values()]
EVERY = loop_over("way", WAYS)
# a private number of records pays for limits that do not take it as known
NEAR = 2e-3


def page(*data, **options):
    return dp.private_evaluate(*data, **{"epsilon": NO_NOISE, **options})


def check(found, wanted, *, abs=1e-6):
    for name, value in wanted.items():
        number = found[name]
        assert number.value == pytest.approx(value, abs=abs), name
        try:
            lower, upper = number.noise_interval(0.99)
        except ValueError:
            continue
        assert lower - NEAR <= value <= upper + NEAR, name


def of_two(y, pred, positive):
    """Return what a page tells of two labels."""
    recalls = sk.recall_score(y, pred, average=None)
    one = {"pos_label": positive, "zero_division": 0}
    other = next(label for label in np.unique(y) if label != positive)
    return {
        "accuracy": sk.accuracy_score(y, pred),
        "balanced accuracy": recalls.mean(),
        "recall": sk.recall_score(y, pred, **one),
        "precision": sk.precision_score(y, pred, **one),
        "selection rate": np.mean(pred == positive),
        "prevalence": np.mean(y == positive),
        "specificity": sk.recall_score(y, pred, pos_label=other),
        "f1": sk.f1_score(y, pred, **one),
    }


def of_several(y, pred):
    """Return what a page tells of more than two labels."""
    return {
        "accuracy": sk.accuracy_score(y, pred),
        "balanced accuracy": sk.balanced_accuracy_score(y, pred),
        "f1 (macro)": sk.f1_score(y, pred, average="macro"),
    }


def of_each(y, pred, labels):
    """Return what a page tells of each label."""
    found = {}
    for name, metric in (("recall", sk.recall_score), ("precision", sk.precision_score), ("f1", sk.f1_score)):
        values = metric(y, pred, labels=labels, average=None)
        found |= {f"{name} of {label!r}": value for label, value in zip(labels, values, strict=True)}
    return found


def of_groups(tell, *data):
    """Return what a page tells by group of numbers that this tells of records: of each group, and the gap."""
    each = {label: tell(*(one[rows] for one in data)) for label, rows in GROUPS.items()}
    found = {f"{name} in {label!r}": value for label, told in each.items() for name, value in told.items()}
    gaps = {name: [told[name] for told in each.values()] for name in each["a"]}
    return found | {f"{name} difference": max(several) - min(several) for name, several in gaps.items()}


@pytest.mark.gate
@loop_over(("way", "positive"), itertools.product(WAYS, [None, "no"]))
def test_two_labels_that_are_text_by_group(way, positive):
    names = np.array(["no", "yes"])
    y, pred = names[Y], names[PRED]
    found = page(y, pred, labels=["yes", "no"], pos_label=positive, **BY_GROUP, **way)
    chosen = positive or "yes"
    by_group = of_groups(partial(of_two, positive=chosen), y, pred)
    told = {name: one for name, one in by_group.items() if not name.startswith(("balanced", "f1"))}
    check(found, of_two(y, pred, chosen) | of_each(y, pred, ["no", "yes"]) | told)
    sizes = {label: found[f"accuracy in {label!r}"].rests_on for label in GROUPS}
    assert sizes == pytest.approx({label: rows.sum() for label, rows in GROUPS.items()})


@pytest.mark.gate
@loop_over(("way", "positive"), itertools.product(WAYS, [1, 0]))
def test_probabilities_of_two_labels(way, positive):
    score = SCORE if positive else 1 - SCORE
    found = page(Y, y_score=score, pos_label=positive, threshold=0.375, **BY_GROUP, **way)
    pred = np.where(score >= 0.375, positive, 1 - positive)
    check(found, of_two(Y, pred, positive) | of_each(Y, pred, [0, 1]))
    of_class = positive == Y
    check(found, {"brier score": sk.brier_score_loss(of_class, score)}, abs=1e-4)
    # scores in one bin are ties
    area, mean = sk.roc_auc_score(of_class, score), sk.average_precision_score(of_class, score)
    check(found, {"roc auc": area, "average precision": mean}, abs=0.01)

    def of_scores(y, s):
        over = np.sum(y == positive) / s.sum()
        return {"roc auc": sk.roc_auc_score(y == positive, s), "observed over expected": over}

    check(found, {"observed over expected": of_class.sum() / score.sum()}, abs=0.02)
    check(found, of_groups(of_scores, Y, score), abs=0.02)


def test_labels_go_before_the_threshold_if_both_are_given():
    found = page(Y, y_pred=OLD, y_score=SCORE, labels=[0, 1])
    check(found, of_two(Y, OLD, 1))
    check(found, {"roc auc": sk.roc_auc_score(Y, SCORE)}, abs=0.01)


def test_scores_with_public_edges():
    edges = np.linspace(-4, 4, 65)
    found = page(Y, y_score=8 * SCORE - 4, labels=[0, 1], edges=edges, threshold=0.0, **BY_GROUP)
    check(found, of_two(Y, 8 * SCORE - 4 >= 0, 1))
    check(found, {"roc auc": sk.roc_auc_score(Y, np.digitize(8 * SCORE - 4, edges[1:-1]))})
    assert "brier score" not in found
    in_three_bins = page(Y, y_score=SCORE, labels=[0, 1], edges=[0, 0.3, 0.6, 1])
    assert "observed over expected" not in in_three_bins  # where scores lie in bins so wide is not known


OF_FEATURES = {
    "scores": (Y, {"y_score": SCORE, "y_pred": PRED, "labels": [0, 1]}),
    "four": (TEN % 4, {"y_pred": PRED_TEN % 4, "labels": range(4)}),
    "targets": (TARGET, {"y_pred": ESTIMATE, "task": "regression", "tolerance": 0.2}),
}


@loop_over(
    ("kind", "second", "crossed", "way"),
    [
        ("scores", ["y", "o"], True, WAYS[0]), ("scores", ["c", "a"], True, WAYS[1]),
        ("scores", ["c", "a"], False, WAYS[2]),
        ("targets", ["y", "o"], True, WAYS[2]), ("targets", ["c", "a"], True, WAYS[1]),
        ("targets", ["c", "a"], False, WAYS[0]), ("targets", ["y", "o"], False, WAYS[1]),
        ("four", ["c", "a"], True, WAYS[0]), ("four", ["y", "o"], False, WAYS[2]),
    ],
)  # fmt: skip
def test_of_several_features_a_page_tells_what_pages_about_each_alone_and_about_both_tell(
    kind, second, crossed, way
):
    """Where two labels of both features have one name the names of numbers say which feature is meant."""
    age, labels = np.array(second)[OLD], [["a", "b", "c"], second]
    y_true, options = OF_FEATURES[kind]
    options = {**options, **way}
    both = {"sensitive_features": np.column_stack([GROUP, age]), "group_labels": labels}
    found = page(y_true, **options, **both, crossed=crossed)
    of_all = page(y_true, **{name: one for name, one in options.items() if name != "membership"})
    check(found, values(of_all), abs=5e-3)
    prefixes = ("feature 1 ", "feature 2 ") if second[0] == "c" else ("", "")
    told = {*of_all}
    assert not any("feature 2" in found[name].release for name in told)  # the first table tells all records
    for feature, by in enumerate((GROUP, age)):
        alone = page(y_true, **options, sensitive_features=by, group_labels=labels[feature])
        for name, one in alone.items():
            # sums over the other feature tell counts of labels, and nothing else
            if name in of_all or (crossed and not one.release.startswith(("labels", "sides"))):
                continue
            metric, _, group = name.partition(" in ")
            here = f"{metric} in {prefixes[feature]}{group}" if group else f"{name} by feature {feature + 1}"
            check(found, {here: one.value}, abs=5e-3)
            assert (found[here].feature, one.feature) == (feature, None)
            if group and one.release.startswith(("labels", "sides")):
                assert found[here].rests_on == pytest.approx(one.rests_on)
            told.add(here)
    joined = [f"{a} {b}" for a, b in itertools.product(*labels)]
    crossed_page = {"sensitive_features": np.char.add(np.char.add(GROUP, " "), age), "group_labels": joined}
    for name, one in page(y_true, **options, **crossed_page).items() if crossed else ():
        metric, _, group = name.partition(" in ")
        here = f"{metric} in {' and '.join(map(repr, group[1:-1].split()))}" if group else name
        check(found, {here: one.value}, abs=5e-3)
        told.add(here)
    assert {*found} == told
    tables = tables_of(found, "For whom")
    assert [*tables] == ["By feature 1", "By feature 2", "What may be concluded about differences"]
    details = [*tables_of(found, "More numbers")]
    assert (["By all features together", [*tables][-1]] == details[1:3]) == crossed
    for table, by in zip(tables.values(), (GROUP, age), strict=False):
        sizes = {label: f"{np.sum(by == label):,}" for label in np.unique(by).tolist()}
        assert column(table, 1) == sizes


@loop_over(
    ("names", "called", "crossed"),
    [
        (["sex", "<i>a|ge</i>"], ["sex", "<i>a|ge</i>"], True),
        (["sex", "<i>a|ge</i>"], ["sex", "<i>a|ge</i>"], False),
        (["sex", "sex"], ["feature 1", "feature 2"], True),
        (["sex", 3], ["feature 1", "feature 2"], False),
    ],
)
def test_features_are_called_as_their_columns(names, called, crossed):
    people = pd.DataFrame(np.column_stack([GROUP, np.array(["c", "a"])[OLD]]))
    people.columns = names
    by = {"sensitive_features": people, "group_labels": [["a", "b", "c"], ["c", "a"]], "crossed": crossed}
    found = page(Y, PRED, labels=[0, 1], **by)
    for at, name in enumerate(called):
        recall = sk.recall_score(Y[people.iloc[:, at] == "c"], PRED[people.iloc[:, at] == "c"])
        check(found, {f"recall in {name} 'c'": recall}, abs=5e-3)
        assert found[f"recall difference by {name}"].feature == at
        assert sections(found)["For whom"].tables[at].caption.startswith(f"By {name},")
    again = dp.PrivateEvaluation.from_json(found.to_json())
    assert [*again] == [*found]
    assert "<i>" not in found.to_html() + found.to_markdown()


@loop_over("labels", [None, [2, 0, 1], np.array([0, 1, 2])])
def test_probabilities_of_three_labels(labels):
    named = pd.DataFrame(THREE, columns=["0", "1", "2"]) if isinstance(labels, list) else THREE
    found = page(TRUE_THREE, y_proba=named, labels=labels)
    pred = THREE.argmax(axis=1)
    check(found, of_several(TRUE_THREE, pred) | of_each(TRUE_THREE, pred, [0, 1, 2]))
    # all of a matrix is told of three labels
    matrix = found.released["labels"].confusion_matrix()
    expected = sk.confusion_matrix(TRUE_THREE, pred, labels=labels)
    assert np.asarray(matrix) == pytest.approx(expected)
    brier = ((THREE - np.eye(3)[TRUE_THREE]) ** 2).sum(axis=1).mean()
    assert found["brier score"].value == pytest.approx(brier, rel=1e-3)


@loop_over(("way", "bounds", "tolerance"), itertools.product(WAYS, [None, (-0.5, 0.5)], [None, 0.2]))
def test_regression(way, bounds, tolerance):
    options = {"task": "regression", "bounds": bounds, "tolerance": tolerance}
    found = page(TARGET, ESTIMATE, **options, **BY_GROUP, **way)
    clipped = [one if bounds is None else np.clip(one, *bounds) for one in (TARGET, ESTIMATE)]
    mse = sk.mean_squared_error(*clipped)
    wanted = {"mse": mse, "rmse": mse**0.5, "r2": sk.r2_score(*clipped)}
    wanted["mae"] = sk.mean_absolute_error(*clipped)
    if "neighboring" not in way:
        wanted |= {"median absolute error": sk.median_absolute_error(*clipped)}
    means = of_groups(lambda *data: {"mae": sk.mean_absolute_error(*data)}, *clipped)
    check(found, wanted | means, abs=5e-3)

    def shares(true, guess):
        within = (
            {} if tolerance is None else {"share within tolerance": np.mean(abs(guess - true) <= tolerance)}
        )
        return within | {"share too high": np.mean(guess > true)}

    check(found, shares(*clipped) | of_groups(shares, *clipped))
    assert ("share within tolerance" in found) == (tolerance is not None)


def test_what_leads_a_page_of_targets_has_limits_on_both_sides():
    found = page(TARGET, ESTIMATE, task="regression", epsilon=6.0, tolerance=0.2)
    assert [*found][:3] == ["median absolute error", "share within tolerance", "share too high"]
    tried = column(tables_of(found, "How good")["Which way these numbers err"], 2)
    light, heavy = (100 * end for end in found.plan["absolute error"].expected_range)
    assert tried["mae"] == f"{light:.2g} % to {heavy:.2g} %"
    # the range is that of the root, and a square is off by twice as much
    of_root = [100 * end for end in found.plan["errors"].expected_range]
    assert tried["rmse"] == " % to ".join(f"{end:.2g}" for end in of_root) + " %"
    assert tried["mse"] == " % to ".join(f"{2 * end:.2g}" for end in of_root) + " %"
    assert tried["r2"] == tried["share too high"] == ""
    for name in [*found][:3]:
        lower, upper = found[name].population_interval()
        assert 0 < lower < found[name].value < upper < 1
    with pytest.raises(ValueError, match="released with 95 % confidence"):
        found["median absolute error"].population_interval(0.96)
    # the ranks that are searched for are those of this part of epsilon
    split = {"median limits": 1, "sides": 2}
    part = page(TARGET, ESTIMATE, task="regression", epsilon=6.0, random_state=SeededEntropy(1), split=split)
    alone = dp.private_quantile_interval(
        abs(TARGET - ESTIMATE), 0.5, epsilon=2.0, random_state=SeededEntropy(1)
    )
    assert tuple(part.released["median limits"]) == tuple(alone)
    two = ["median absolute error <= 0.3", "share within tolerance >= 0.2"]
    asked = page(TARGET, ESTIMATE, task="regression", epsilon=6.0, tolerance=0.2, requirements=two)
    assert asked.verdicts.answer == "pass"
    costs = {part.name: part.epsilon for part in asked.plan.parts}
    assert costs["median error"] == costs["median limits"] == costs["sides"] == 2 * costs["absolute error"]


@loop_over("kind", ["labels", "scores", "probabilities", "targets"])
def test_a_comparison_counts_the_records_on_which_either_model_is_better(kind):
    y_true, name, one, other, options = {
        "labels": (Y, "y_pred", PRED, OLD, {"labels": [0, 1]}),
        "scores": (Y, "y_score", SCORE, 1 - SCORE, {"threshold": 0.3}),
        "probabilities": (TRUE_THREE, "y_proba", THREE, THREE[::-1].copy(), {}),
        "targets": (TARGET, "y_pred", ESTIMATE, np.zeros(N), {"task": "regression"}),
    }[kind]
    found = page(y_true, **{name: one}, baseline=other, **options).released["comparison"]
    if kind == "targets":
        losses = abs(y_true - one), abs(y_true - other)
    else:
        losses = tuple(1 * (labels_of(kind, model) != y_true) for model in (one, other))
    first, second = (losses[0] < losses[1]).sum(), (losses[0] > losses[1]).sum()
    assert (found.noisy_difference, found.noisy_decided) == (first - second, first + second)
    assert found.loss == ("mae" if kind == "targets" else "zero_one_loss")


def labels_of(kind, model):
    if kind == "scores":
        return 1 * (model >= 0.3)
    return model.argmax(axis=1) if kind == "probabilities" else model


def test_limits_among_people_on_a_page_contain_those_of_the_noise_and_none_are_missing():
    """Of all records and of groups, areas and differences of them too."""
    found = page(Y[:1500], y_score=SCORE[:1500], epsilon=3.0, random_state=SeededEntropy(1),
                 sensitive_features=GROUP[:1500], group_labels=["a", "b", "c"])  # fmt: skip
    for number in found.numbers.values():
        low, high = number.noise_interval()
        lower, upper = number.population_interval()
        assert lower <= low + 1e-12, number.name
        assert upper >= high - 1e-12, number.name


@loop_over("by", [False, True])
def test_what_a_page_released_knows_the_positive_label(by):
    groups = {"sensitive_features": OLD, "group_labels": [0, 1]} if by else {}
    y = np.where(Y, 0, 1)
    page = dp.private_evaluate(y, y_score=SCORE, pos_label=0, labels=[0, 1], epsilon=NO_NOISE, **groups)
    labels = page.released["labels by group"].released_labels() if by else page.released["labels"]
    at = page.released["scores"].at_threshold(0.5)
    for name in ("recall", "precision"):
        exact = getattr(sk, f"{name}_score")(y, 1 - PRED, pos_label=0)
        told = [page[name].value, labels.numbers()[name].value, labels.population_interval(name).estimate]
        assert [*told, getattr(labels, f"{name}_score")()] == pytest.approx([exact] * 4)
        assert getattr(at, f"{name}_score")() == pytest.approx(exact, abs=0.01)  # bins merge scores
    assert labels.f1_score(pos_label=1) == pytest.approx(sk.f1_score(y, 1 - PRED, pos_label=1))
