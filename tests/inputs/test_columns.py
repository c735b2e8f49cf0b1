"""Which column belongs to which label: by name, or in the order of the sorted labels; else it is refused."""

import warnings
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from helpers import assert_refused, loop_over, seeded
from sklearn.base import BaseEstimator, ClassifierMixin

import dp_metrics as dp
from dp_metrics.cli.main import main
from dp_metrics.metrics import FUNCTIONS, METRICS

N = 200
RNG = np.random.default_rng(3)
SORTED = ["a", "b", "c"]
PROBA = RNG.integers(1, 30, (N, 3)) / 128.0
PROBA[:, 0] = 1 - PROBA[:, 1:].sum(axis=1)
OF_THREE = np.array(SORTED)[[RNG.choice(3, p=row) for row in PROBA]]
TRUE = np.array(["no", "yes", "yes", "no", "yes"] * 40)
YES = np.tile([0.1, 0.8, 0.7, 0.3, 0.9], 40)
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
OPEN = "is not sorted"

OF_COLUMNS = [name for name, row in METRICS.items() if "labels" in row.options and not row.predicts_labels]
OF_TWO = [name for name in OF_COLUMNS if {"pos_label"} <= {*METRICS[name].options} and "brier" not in name]
OPTIONS = {
    "private_top_k_accuracy_score": {"k": 1},
    "private_roc_auc_score": {"multi_class": "ovr"},
    "private_probability_report": {"output_dict": True},
}
SEEDED = {"epsilon": 1.0, "random_state": 5}


@pytest.fixture(autouse=True)
def no_word_of_seeds():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dp.SeededReleaseWarning)
        warnings.simplefilter("ignore", dp.NoisyReleaseWarning)
        yield


def records(name):
    """Return true labels, columns by label, and the sorted labels, of two or three for the metric."""
    if name in OF_TWO:
        return TRUE, {"no": 1 - YES, "yes": YES}, ["no", "yes"]
    return OF_THREE, dict(zip(SORTED, PROBA.T, strict=True)), SORTED


def _call(name, y, columns, **options):
    return FUNCTIONS[name](y, columns, **OPTIONS.get(name, {}), **options)


def _frame(name, y, columns, *, labels, epsilon, accountant=None, random_state=None):
    metric = partial(FUNCTIONS[name], labels=labels, **OPTIONS.get(name, {}))
    group = np.arange(N) % 2
    settings = {"sensitive_features": group, "group_labels": [0, 1], "epsilon": epsilon}
    settings |= {"accountant": accountant, "random_state": random_state}
    return [*dp.PrivateMetricFrame(metrics=metric, y_true=y, y_pred=columns, **settings).by_group.values()]


def _summary(name, y, columns, *, labels, **settings):
    if name == "private_roc_curve":
        return dp.ScoreSummary(labels=labels).update(y, columns).release(**settings).roc_auc_score()
    return (
        dp.LossSummary(FUNCTIONS[name], labels=labels, **OPTIONS.get(name, {}))
        .update(y, columns)
        .release(**settings)
    )


def _dask(name, y, columns, **options):
    dd, da = pytest.importorskip("dask.dataframe"), pytest.importorskip("dask.array")
    from dp_metrics import distributed

    if isinstance(columns, pd.DataFrame):
        y, columns = (dd.from_pandas(one, npartitions=2) for one in (pd.Series(y), columns))
    else:
        y, columns = (da.from_array(one, chunks=(100, *one.shape[1:])) for one in (y.astype(object), columns))
    return getattr(distributed, name)(y, columns, **OPTIONS.get(name, {}), **options)


def _best(name, y, columns, **options):
    again = columns.copy()
    return dp.private_best(y, [columns, again], metric=name, **OPTIONS.get(name, {}), **options).index


def _compare(name, y, columns, **options):
    other = np.full(columns.shape, 1 / columns.shape[1])
    other = pd.DataFrame(other, columns=columns.columns) if hasattr(columns, "columns") else other
    return dp.private_compare(y, columns, other, loss=name, **OPTIONS.get(name, {}), **options)


def _page(name, y, columns, **options):
    page = dp.private_evaluate(y, y_proba=columns, split={"labels": 1, "loss": 1}, **options)
    return {name: one.value for name, one in page.items()}


_MEANS = ["private_log_loss", "private_brier_score_loss", "private_top_k_accuracy_score"]
DOORS = {
    "call": (_call, OF_COLUMNS),
    "frame": (_frame, [name for name in OF_COLUMNS if METRICS[name].greater_is_better is not None]),
    "summary": (
        _summary,
        ["private_log_loss", "private_brier_score_loss", "private_top_k_accuracy_score", "private_roc_curve"],
    ),
    "dask": (_dask, [name for name in OF_COLUMNS if name != "private_roc_auc_score"]),
    "best": (_best, _MEANS),
    "compare": (_compare, _MEANS[:2]),
    "page": (_page, ["private_brier_score_loss", "private_roc_curve"]),
}
EACH = pytest.mark.parametrize(
    ("door", "name"),
    [pytest.param(door, name, id=f"{door}, {name}") for door, (_, names) in DOORS.items() for name in names],
)


@EACH
def test_columns_are_matched_by_name_wherever_they_stand(door, name):
    """As met by users: accuracy 0 for columns and labels in the order low, mid, high."""
    release, (y, columns, labels) = DOORS[door][0], records(name)
    if door == "best":  # the wrong order would make no difference between two equal candidates
        settings = {"epsilon": 1e6, "random_state": 5}
        lists = [np.column_stack([*columns.values()]), np.full((N, len(labels)), 1 / len(labels))]
        frames = [pd.DataFrame(columns)[labels[::-1]], pd.DataFrame(lists[1], columns=labels)]
        options = OPTIONS.get(name, {}) | settings
        assert dp.private_best(y, lists, metric=name, labels=labels, **options) == 0
        assert dp.private_best(y, frames, metric=name, labels=labels[::-1], **options) == 0
        return
    # a page lists its labels as the caller does, and draws noise for them in that order
    settings = {"epsilon": 1e9, "random_state": 5} if door == "page" else SEEDED
    expected = release(name, y, np.column_stack([*columns.values()]), labels=labels, **settings)
    for listed, order in ((1, -1), (-1, 1), (-1, -1)):
        frame = pd.DataFrame(columns)[labels[::order]]
        found = release(name, y, frame, labels=labels[::listed], **settings)
        if door == "page":
            assert found == pytest.approx(expected, abs=1e-6)
        else:
            assert repr(found) == repr(expected)


@EACH
def test_labels_in_another_order_than_unnamed_columns_are_refused(door, name):
    release, (y, columns, labels) = DOORS[door][0], records(name)
    array = np.column_stack([*columns.values()])
    unnamed = [
        array,
        pd.DataFrame(array),
        pd.DataFrame(array, columns=[f"p{at}" for at in range(len(labels))]),
    ]
    for held in unnamed[:1] if door == "dask" else unnamed:
        budget = dp.PrivacyAccountant(10.0)
        with pytest.raises(ValueError, match=OPEN) as caught:
            release(name, y, held, labels=labels[::-1], epsilon=1.0, accountant=budget)
        assert budget.spent == 0
        for way_out in ("labels=sorted(labels)", "pd.DataFrame("):
            assert way_out in str(caught.value)


@loop_over("make", FRAMES)
@pytest.mark.parametrize("name", OF_COLUMNS)
def test_names_of_every_container_are_read(name, make):
    y, columns, labels = records(name)
    expected = _call(name, y, np.column_stack([*columns.values()]), labels=labels, **SEEDED)
    found = _call(name, y, FRAMES[make]({one: columns[one] for one in labels[::-1]}), labels=labels, **SEEDED)
    assert repr(found) == repr(expected)


UNIFORM = np.full((N, 3), 1 / 3)
BY_NAME = {
    "all": ([2, 0, 1], [2, 1, 0], None),
    "all, as text": (["2", "0", "1"], [2, 1, 0], None),
    "all, as floats": ([2.0, 0.0, 1.0], [0, 1, 2], None),
    "all, of text labels": (["c", "a", "b"], ["c", "b", "a"], None),
    "none": (["x", "y", "z"], [0, 1, 2], None),
    "none, unsorted": (["x", "y", "z"], [2, 1, 0], OPEN),
    "usual numbers": (range(3), [1, 2, 3], None),  # of a table that nobody gave names
    "usual numbers, unsorted": (range(3), [2, 1, 0], OPEN),
    "some": ([1, 2, 3], None, "must be those of all labels"),
    "some, as text": (["1", "2", "p"], [1, 2, 3], "must be those of all labels"),
    "one twice": (["a", "a", "b"], ["a", "b", "c"], "must be those of all labels"),
}


@pytest.mark.parametrize(("names", "labels", "refused"), BY_NAME.values(), ids=BY_NAME)
def test_names_are_those_of_all_labels_or_of_none(names, labels, refused):
    known = sorted([0, 1, 2] if labels is None else labels)
    y, frame = np.array(known)[np.arange(N) % 3], pd.DataFrame(UNIFORM, columns=names)
    if refused:
        assert_refused(dp.private_log_loss, (y, frame), ValueError, refused, epsilon=1.0, labels=labels)
        return
    dp.private_log_loss(y, frame, epsilon=1.0, labels=labels)


OF_ONE_COLUMN = [name for name in OF_COLUMNS if "top_k" not in name]


@pytest.mark.parametrize("name", OF_ONE_COLUMN)
def test_one_column_of_unsorted_labels_needs_the_positive_one(name):
    options = {"epsilon": 1.0, "labels": ["yes", "no"]}
    assert_refused(FUNCTIONS[name], (TRUE, YES), ValueError, "the one column", **options)
    if "pos_label" in METRICS[name].options:
        found = FUNCTIONS[name](TRUE, YES, **options, pos_label="yes", random_state=5)
        expected = FUNCTIONS[name](TRUE, YES, epsilon=1.0, labels=["no", "yes"], random_state=5)
        assert repr(found) == repr(expected)


def test_the_summary_of_unsorted_labels_needs_the_positive_one_too():
    with pytest.raises(ValueError, match="the one column"):
        dp.ScoreSummary(labels=["yes", "no"]).update(TRUE, YES)
    settings = {"epsilon": 1.0, "random_state": 5}
    for summary in (
        dp.ScoreSummary(labels=["yes", "no"], pos_label="yes"),
        dp.ScoreSummary(labels=["no", "yes"]),
    ):
        assert summary.update(TRUE, YES).release(**settings).roc_auc_score() > 0.8
    mixed = dp.ScoreSummary(labels=["no", "yes"]).update(TRUE, pd.DataFrame({"yes": YES, "no": 1 - YES}))
    mixed.update(TRUE, YES).update(TRUE, np.column_stack([1 - YES, YES]))  # forms that tell the same merge
    assert mixed.release(**settings).roc_auc_score() > 0.8


@loop_over(
    "hold",
    [
        lambda name: pd.Series(YES, name=name),
        lambda name: pl.Series(name, YES),
        lambda name: pd.DataFrame({name: YES}),
        lambda name: pa.table({name: YES}),
    ],
)
@pytest.mark.parametrize("name", OF_ONE_COLUMN)
def test_one_column_named_like_the_other_label_is_refused(name, hold):
    metric, options = FUNCTIONS[name], {"epsilon": 1.0, "labels": ["no", "yes"]}
    for harmless in ("yes", "p"):
        metric(TRUE, hold(harmless), random_state=seeded(), **options)
    message = "named like the negative label"
    assert_refused(metric, (TRUE, hold("no")), ValueError, message, **options)
    if "pos_label" in METRICS[name].options:  # the column is that of pos_label
        metric(TRUE, hold("no"), random_state=seeded(), pos_label="no", **options)
        assert_refused(metric, (TRUE, hold("yes")), ValueError, message, pos_label="no", **options)


def test_a_column_named_0_may_be_the_first_of_a_file():
    y, proba = (TRUE == "yes").astype(int), pd.DataFrame(YES)
    assert proba[0].name == 0
    assert dp.private_log_loss(y, proba[0], epsilon=100.0) < 0.4


def test_names_within_the_data_are_no_names_of_columns():
    """A pandas column may be called as the attribute that holds pyarrow's names."""
    for name in ("columns", "column_names", "name"):  # whose values are the labels, in another order
        frame = pd.DataFrame({name: [1.0, 0.0], "other": [0.0, 1.0]})
        dp.private_log_loss([0, 1], frame, epsilon=1.0)


@pytest.mark.parametrize("make", FRAMES)
def test_outputs_of_the_same_names_in_another_order_are_refused(make):
    a, b = np.arange(200.0), np.arange(200.0) % 7
    true = FRAMES[make]({"height": a, "weight": b})
    for pred in ({"height": a, "weight": b}, {"p": a, "q": b}):
        assert dp.private_mse(true, FRAMES[make](pred), epsilon=1.0) < 1
    swapped = FRAMES[make]({"weight": b, "height": a})
    for metric in (dp.private_mse, dp.private_r2_score, dp.private_regression_report):
        assert_refused(metric, (true, swapped), ValueError, "the same names in another order", epsilon=1.0)
    assert_refused(
        dp.private_compare, (true, true, swapped), ValueError, "the same names", loss="mse", epsilon=1.0
    )
    labels = [FRAMES[make]({one: b > 3, two: a > 3}) for one, two in (("x", "y"), ("y", "x"))]
    assert_refused(dp.private_accuracy_score, labels, ValueError, "the same names", epsilon=1.0)


def test_what_was_released_of_named_columns_is_read_again(tmp_path):
    """What is stored has no names: the order in which columns stood changes nothing that was released."""
    frame, options = pd.DataFrame({"yes": YES, "no": 1 - YES}), {"labels": ["yes", "no"], "epsilon": 1.0}
    path = str(tmp_path / "budget.sqlite")
    budget = dp.PrivacyAccountant(10.0, path)
    paid = {"accountant": budget, **options}
    made = [
        dp.with_result(dp.private_log_loss)(TRUE, frame, **paid, spend_name="loss"),
        dp.with_result(dp.private_roc_curve)(TRUE, frame, **paid, spend_name="curve"),
        dp.private_evaluate(TRUE, y_proba=frame, split={"labels": 1, "loss": 1}, **paid, spend_name="page"),
        dp.ScoreSummary(labels=["yes", "no"])
        .update(TRUE, frame)
        .release(1.0, accountant=budget, spend_name="s"),
    ]
    again = dp.PrivacyAccountant(10.0, path)
    for one, name in zip(made, ("loss", "curve", "page", "s"), strict=True):
        assert repr(again[name]) == repr(one)
    assert dp.PrivateEvaluation.from_json(made[2].to_json()).to_json() == made[2].to_json()
    summary = dp.LossSummary(dp.private_log_loss, labels=["yes", "no"]).update(TRUE, frame)
    read = dp.LossSummary.from_bytes(summary.to_bytes()).merge(summary)
    assert read.release(1.0, random_state=5) == summary.merge(
        dp.LossSummary(dp.private_log_loss, labels=["yes", "no"]).update(TRUE, frame[["no", "yes"]])
    ).release(1.0, random_state=5)


@pytest.mark.parametrize("labels", [["no", "yes"], ["yes", "no"]])
def test_metrics_of_predicted_labels_keep_the_order_of_the_caller(labels):
    pred = np.where(YES > 0.5, "yes", "no")
    found = dp.private_confusion_matrix(TRUE, pred, labels=labels, epsilon=1e6)
    np.testing.assert_allclose(found.diagonal(), [np.sum(label == TRUE) for label in labels], atol=0.1)
    page = dp.private_evaluate(TRUE, pred, labels=labels, epsilon=1e6)
    assert page["recall of 'no'"].value == pytest.approx(1, abs=1e-3)


# ---- models ------------------------------------------------------------------------------------------------


class Backwards(ClassifierMixin, BaseEstimator):
    """A model of somebody's own, whose classes and columns stand in another order than the sorted one."""

    def __init__(self, classes=("yes", "no")):
        self.classes = classes

    def fit(self, X, y):
        self.classes_ = np.array(self.classes)
        return self

    def predict_proba(self, X):
        of = {"yes": X[:, 0], "no": 1 - X[:, 0], "maybe": 0 * X[:, 0]}
        return np.column_stack([of[one] for one in self.classes])

    def decision_function(self, X):
        return self.predict_proba(X)[:, 1] - 0.5

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


X = YES[:, np.newaxis]
MODEL, USUAL = (Backwards(order).fit(X, TRUE) for order in (("yes", "no"), ("no", "yes")))
OF_MODELS = [name for name in OF_COLUMNS if METRICS[name].greater_is_better is not None]


@loop_over("response", ["predict_proba", "decision_function"])
@pytest.mark.parametrize("name", OF_MODELS)
def test_scorers_read_the_columns_of_a_model_by_its_classes(name, response):
    if response == "decision_function" and name not in (
        "private_roc_auc_score",
        "private_average_precision_score",
    ):
        return
    options = OPTIONS.get(name, {}) if "multi_class" not in OPTIONS.get(name, {}) else {}
    if response == "decision_function" and "average" in name:
        options = {"edges": [-0.5, -0.1, 0.1, 0.5]}
    given = [{}, {"labels": ["yes", "no"]}]
    if "pos_label" in METRICS[name].options:
        given.append({"labels": ["no", "yes"], "pos_label": "no"})
    for one in given:
        scorer = dp.make_private_scorer(name, epsilon=1e6, response_method=response, **options, **one)
        assert scorer(MODEL, X, TRUE) == pytest.approx(scorer(USUAL, X, TRUE), abs=1e-3)


def test_a_score_of_the_positive_label_is_high_whatever_the_order_of_classes():
    options = {"epsilon": 1e6, "labels": ["no", "yes"], "edges": [-0.5, -0.1, 0.1, 0.5]}
    for positive in ("no", "yes"):
        scorer = dp.make_private_scorer(
            "average_precision", response_method="decision_function", pos_label=positive, **options
        )
        for model in (MODEL, USUAL):
            assert scorer(model, X, TRUE) > 0.9


def test_a_choice_reads_the_columns_of_each_model_by_its_classes():
    bad = Backwards(("no", "yes")).fit(X, TRUE)
    bad.predict_proba = lambda X: np.full((len(X), 2), 0.5)
    for metric in ("log_loss", "brier_score_loss", "roc_auc"):
        choice = dp.private_best(TRUE, [bad, MODEL], X=X, metric=metric, epsilon=1e6)
        assert choice == 1


@loop_over("labels", [None, ["no", "yes"], ["yes", "no"]])
@pytest.mark.parametrize("positive", [None, "no", "yes"])
def test_a_page_reads_the_columns_of_a_model_by_its_classes(positive, labels):
    options = {"epsilon": 1e6, "labels": labels, "pos_label": positive}
    for model in (MODEL, USUAL):
        page = dp.private_evaluate(model, X, TRUE, **options, baseline=USUAL)
        assert page["accuracy"].value == pytest.approx(1, abs=1e-3)
        assert page["roc auc"].value > 0.9
        assert page["brier score"].value == pytest.approx(((YES - (TRUE == "yes")) ** 2).mean(), abs=1e-3)
    three = Backwards(("yes", "maybe", "no")).fit(X, TRUE)
    page = dp.private_evaluate(three, X, TRUE, epsilon=1e6)
    assert page["accuracy"].value == pytest.approx(1, abs=1e-3)


def test_a_search_reads_the_columns_of_its_candidates_by_their_classes():
    expected = -dp.private_log_loss(TRUE, YES, labels=["no", "yes"], epsilon=1e6)
    options = {"metric": "log_loss", "metric_params": {"labels": ["no", "yes"]}, "epsilon": 1e6}
    for orders in ([("yes", "no")], [("no", "yes")]):
        search = dp.PrivateRandomizedSearch(Backwards(), {"classes": orders}, expected_iter=1, **options)
        assert search.fit(X, TRUE, X_val=X, y_val=TRUE).best_score_ == pytest.approx(expected, abs=1e-3)


# ---- files -------------------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path):
    frame = pd.DataFrame({"truth": TRUE, "no": 1 - YES, "yes": YES, "p0": 1 - YES, "p1": YES, "half": 0.5})
    frame["half too"] = 0.5
    frame.to_csv(tmp_path / "people.csv", index=False)
    return tmp_path


LISTED = {"sorted": '["no", "yes"]', "unsorted": '["yes", "no"]'}


@pytest.mark.parametrize("listed", LISTED)
@pytest.mark.parametrize("columns", [("yes", "no"), ("no", "yes"), ("p0", "p1")])
def test_columns_of_a_file_go_by_their_names(file, capsys, listed, columns):
    path, budget = str(file / "people.csv"), ["--budget", str(file / "b.sqlite"), "--total", "2e6"]
    paid = ["--epsilon", "1e6", *budget]
    option = ["--option", f"labels={LISTED[listed]}"]
    labels = LISTED[listed].strip("[]").replace('"', "").split(", ")
    score = ["score", path, "--metric", "log_loss", "--y-true", "truth", "--y-proba", *columns, *option]
    compare = ["compare", path, "--y-true", "truth", "--loss", "log_loss", *option]
    compare += ["--pred-a", *columns, "--pred-b", *columns]
    page = ["evaluate", path, "--y-true", "truth", "--y-proba", *columns, "--labels", *labels]
    page += ["--output", str(file / "page.md")]
    is_open = columns[0] == "p0" and listed == "unsorted"
    for command in (score, compare, page):
        argv = [*command, *paid]
        code = main(argv)
        shown = capsys.readouterr()
        assert (code == 0) != is_open, shown.err
        assert (OPEN in shown.err) == is_open
        if command is score and not is_open:
            assert dp.private_log_loss(TRUE, YES, labels=["no", "yes"], epsilon=1e6) < 0.4
            assert " 0.2" in shown.out
        if command is page and not is_open:
            assert "accuracy             1\n" in shown.out or "  accuracy" in shown.out
        paid = ["--epsilon", "1e6"]


def test_columns_named_by_dates_are_those_of_dates_in_any_unit():
    days = np.array(["2031-05-02", "2031-05-01"], dtype="M8[D]")
    true, proba = days[(TRUE == "no").astype(int)], np.column_stack([YES, 1 - YES])
    named = pd.DataFrame(proba, columns=pd.to_datetime(days).as_unit("ns"))
    found = dp.private_log_loss(true, named, labels=days, **SEEDED)
    assert found == dp.private_log_loss(TRUE, np.column_stack([1 - YES, YES]), labels=["no", "yes"], **SEEDED)
