"""A budget keeps what it bought: a stored release answers as the original does, and reads no record."""

import base64
import contextlib
import gc
import json
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import warnings
import zlib
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import partial

import joblib
import numpy as np
import pandas as pd
import pytest
from cases import KINDS, cases_where, valid
from helpers import new_session
from sklearn.linear_model import Ridge
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score

import dp_metrics as dp
from dp_metrics import PrivacyAccountant, StoredReleaseWarning, with_result
from dp_metrics.accounting import ledgers, numbering
from dp_metrics.accounting.ledgers import FileLedger
from dp_metrics.release.plan import _content
from dp_metrics.release.stored import answers, codec

# Made by the last version that stored no values: "mae, week 47", "twice", "twice" and "private_mae", each at
# epsilon 0.25 of 2.
OLD_FILE = (
    "c-rmP%Wl&^7zN;Q94RX>yHI&Es6uK*T5OM<q*)P=1r<$!;00Y(V|$W}@J-J2w#@6W;X&Y`uxnQWiAF4obUw}Xw|qQa&gV}jQ"
    "VF`q%akk1$P=Pz<Q1ia5WVepI#uufw%6KD;vx;n-|6Hq(jL_>8&8Sxtr`FT0000003MKy(dqR~Q`=l99wuTX*D5b>+DU&i_o"
    "snRgX!xNpSDH1Cu4ei8u)MhIsG_4o=xXx^u2#Jph~8K2L6{|KocH{q+N?*Et5QJcd3Y0Jd^9R-Dg5BS7BbtY<XMR542u?XGh"
    "!Uw+9L@;-yf{*!kl)O|3qS$dpt!ZJx>%zx(pKs2(+`_1#=Eev+yI00000006*$z|p!h)AWw)#gI9%6^+B8$HuNV3Yp8j1!LS"
    "^h}gPzURu|7)#|Cf|92n%AjWq?7-qEq00000004N{PP;ua+clr<I+im$u<Zkf1@?I2xfA9by3Dn_qZgJnv8<w$mt2YSl#AvT"
    ">`r4|D0wON_DfMDJQC-5Cf?~)UjN=a+jZ?GPhH7qds1gxk~1Dz>>rapXjRhldy_oR9yUqUzYXY>5MQY~+7|c={Lr@4"
)
RNG = np.random.default_rng(31)
N = 400
Y = RNG.integers(0, 2, N)
PRED = np.where(RNG.random(N) < 0.8, Y, 1 - Y)
SCORE = np.clip(RNG.integers(0, 49, N) + 16 * Y, 0, 64) / 64
GROUP = RNG.choice(["a", "b"], N)
NAMES = np.array(["no", "yes"])

frame = partial(dp.PrivateMetricFrame, group_labels=["a", "b", "none"])
LABELS = {"accuracy": dp.private_accuracy_score, "recall": dp.private_recall_score}
SCORES = {"auc": dp.private_roc_auc_score, "mae": partial(dp.private_mae, bounds=(0, 1))}


def confusion(y, pred, **settings):
    return dp.ConfusionSummary(NAMES).update(NAMES[y], NAMES[pred]).release(**settings)


def scores(y, score, **settings):
    return dp.ScoreSummary().update(y, score).release(**settings)


def losses(y, score, **settings):
    return with_result(dp.LossSummary(dp.private_mae, bounds=(0, 1)).update(y.astype(float), score).release)(
        **settings
    )


def log_losses(y, score, labels=None, max_loss=None, **settings):
    thirds = np.column_stack([1 - score, score / 2, score / 2]).astype(np.float32)
    summary = dp.LossSummary(dp.private_log_loss, labels=labels, max_loss=max_loss)
    return with_result(summary.update(y, thirds).release)(**settings)


def frame_of(metrics, y, pred, group, **settings):
    return frame(metrics=metrics, y_true=y, y_pred=pred, sensitive_features=group, **settings)


def best(y, score, other, **settings):
    return dp.private_best(y, [score, other], metric="brier", **settings)


PEOPLE = {"replace_one"}
BOTH = {"replace_one", "add_or_remove_one"}
ASKED = {
    "report": (dp.private_classification_report, (Y, PRED), BOTH),
    "curve": (with_result(dp.private_roc_curve), (Y, SCORE), BOTH),
    "confusion summary": (confusion, (Y, PRED), BOTH),
    "score summary": (scores, (Y, SCORE), BOTH),
    "loss summary": (losses, (Y, SCORE), BOTH),
    "wide loss summary": (log_losses, (Y, SCORE), PEOPLE),
    "wide loss summary of labels": (
        partial(log_losses, labels=[0, 1, 2], max_loss=5.0),
        (Y, SCORE),
        BOTH,
    ),
    "mean interval": (partial(dp.private_mean_interval, max_loss=1.0), (SCORE,), PEOPLE),
    "capped mean interval": (partial(dp.private_mean_interval, cap="private"), (SCORE,), PEOPLE),
    "quantile interval": (partial(dp.private_quantile_interval, q=0.5), (SCORE,), PEOPLE),
    "wins": (partial(dp.private_compare, loss=dp.private_mae), (Y, SCORE, 1 - SCORE), PEOPLE),
    "means": (partial(dp.private_compare, loss="mae", max_difference=1), (Y, SCORE, 1 - SCORE), PEOPLE),
    "choice": (best, (Y, SCORE, 1 - SCORE), BOTH),
    "frame of labels": (partial(frame_of, LABELS), (Y, PRED, GROUP), BOTH),
    "frame of scores": (partial(frame_of, SCORES), (Y, SCORE, GROUP), BOTH),
    "frame of one": (partial(frame_of, dp.private_accuracy_score), (Y, PRED, GROUP), BOTH),
    "public frame": (partial(frame_of, SCORES, membership="public"), (Y, SCORE, GROUP), PEOPLE),
}
each_asked = pytest.mark.parametrize(
    ("name", "neighboring"), [(name, relation) for name, row in ASKED.items() for relation in sorted(row[2])]
)


class Untouchable:
    """Records that nobody may look at, not even at their type or length: their number is private."""

    def __getattribute__(self, name):
        raise AssertionError(f"{name} of the records was looked at")

    def __len__(self):
        raise AssertionError("the records were counted")

    __iter__ = __array__ = __getitem__ = __len__


class Counted:
    """Records of which nothing is public but their number."""

    def __len__(self):
        return N

    def __iter__(self):
        raise AssertionError("the records were read")

    __array__ = __getitem__ = __iter__


def free_answers(result):
    """Return all that can be asked of a release for nothing."""
    free = {
        "repr": lambda: result,
        "noise": lambda: result.noise_interval(),
        "population": lambda: result.population_interval(),
        "approximate": lambda: result.population_interval(method="approximate"),
        "difference": lambda: result.population_interval(of="difference"),
        "of recall": lambda: result.noise_interval("recall", pos_label="yes"),
        "people's recall": lambda: result.population_interval("recall", pos_label="yes"),
        "table": lambda: result.to_frame(),
        "json": lambda: result.to_json(),
        "note": lambda: result.note,
        "sizes": lambda: result.group_sizes,
        "matrix": lambda: result.confusion_matrix(),
        "report": lambda: result.classification_report(),
        "roc": lambda: result.roc_band(),
        "calibration": lambda: result.calibration_band(),
        "average precision": lambda: result.average_precision_score(),
        "scores": lambda: [one.roc_band() for one in result.released_scores().values()],
        "band": lambda: dp.roc_band(result),
        "interval": lambda: result.interval,
    }
    found = {}
    for name, ask in free.items():
        try:
            found[name] = repr(ask())
        except (AttributeError, TypeError, ValueError) as error:
            found[name] = repr(error)
    return found


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "budget.sqlite")


@pytest.fixture(autouse=True)
def no_word_of_noise():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dp.NoisyReleaseWarning)
        yield


def asked_again(ask, path, total=1):
    """Return what another session has of a question; check that it is free, and that no record was read."""
    new_session()
    budget = PrivacyAccountant(total, path)
    spent = budget.spent
    with pytest.warns(StoredReleaseWarning, match="records and predictions were not read") as caught:
        result = ask(budget)
    assert caught[0].filename == __file__
    assert budget.spent == spent
    return result


# ---- what is stored ----------------------------------------------------------------------------------------


@cases_where(lambda case: True, KINDS)
@pytest.mark.parametrize("neighboring", sorted(BOTH))
def test_a_stored_result_of_a_metric_is_the_original(case, neighboring, path):
    made, budget = [], PrivacyAccountant(100, path)
    for n in (40, 3000):
        for mechanism in case.mechanisms:
            for bounded in ({}, case.bounded):
                settings = {**case.options, **bounded, **case.by(mechanism)}
                if "neighboring" in case.parameters:
                    settings["neighboring"] = neighboring
                try:
                    made.append(
                        with_result(case.function)(*valid(case, n), epsilon=1, accountant=budget, **settings)
                    )
                except (TypeError, ValueError):
                    continue  # a mechanism that needs a public limit, or number of records
    assert made
    for result, listed in zip(made, budget.results(), strict=True):
        again = listed.result
        assert _content(again.noise) == _content(result.noise)
        assert _content(again.value) == _content(result.value)
        assert (repr(again), again.to_json()) == (repr(result), result.to_json())
        assert dict(again.deployment) == dict(result.deployment)


@each_asked
def test_a_stored_release_has_its_type_and_all_free_answers_and_no_record_is_read(name, neighboring, path):
    function, data, _ = ASKED[name]
    ask = partial(function, *data, epsilon=1.0, neighboring=neighboring, spend_name=name)
    first = ask(accountant=PrivacyAccountant(1, path))
    wanted = free_answers(first)
    assert sum("Error" not in text for text in wanted.values()) > 1 or isinstance(first, str)
    if "summary" not in name:  # which has read its records before
        kind = Counted if neighboring == "replace_one" else Untouchable
        unread = [kind() for _ in data[: 2 if name == "public frame" else None]]
        ask = partial(function, *unread, *data[len(unread) :], **ask.keywords)
    again = asked_again(lambda budget: ask(accountant=budget), path)
    looked_up = PrivacyAccountant(1, path)[name]
    assert type(again) is type(first)
    assert free_answers(again) == wanted
    if not isinstance(first, str):
        assert type(looked_up) is type(first)
        assert free_answers(looked_up) == wanted


def test_a_new_process_needs_the_budget_only(path):
    frame_of(LABELS, Y, PRED, GROUP, epsilon=1, accountant=PrivacyAccountant(1, path), spend_name="by group")
    program = (
        "import sys; from dp_metrics import PrivacyAccountant as P; print(P(1, sys.argv[1])['by group'])"
    )
    shown = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == repr(PrivacyAccountant(1, path)["by group"])


def test_results_lists_every_spend_with_its_value(path):
    for budget in (PrivacyAccountant(3), PrivacyAccountant(3, path)):
        number = dp.private_mean_loss(SCORE, epsilon=1, accountant=budget, spend_name="named")
        dp.private_mean_loss(SCORE, epsilon=0.5, accountant=budget)
        confusion(Y, PRED, epsilon=0.5, accountant=budget)
        budget.spend(0.25, "by hand")
        listed = budget.results()
        assert [one.is_named for one in listed] == [True, False, False, False]
        assert [one.epsilon for one in listed] == [1, 0.5, 0.5, 0.25]
        assert listed[3].value is None
        if budget.path is None:  # without a path nothing is stored
            assert [one.value for one in listed] == [None] * 4
            for look in (lambda budget=budget: budget["named"], lambda listed=listed: listed[0].result):
                with pytest.raises(ValueError, match="no stored value: the budget has no path"):
                    look()
        else:
            assert listed[0].value == number
            assert listed[2].value == "ReleasedConfusion(labels=['no', 'yes'], epsilon=0.5)"
            assert listed[1].result.value == listed[1].value
        table = listed.to_frame()
        assert isinstance(table, pd.DataFrame)
        assert table["spend_name"].tolist() == [one.spend_name for one in budget.history]
        assert "named" in budget
        assert "by hand" not in budget
        with pytest.raises(KeyError, match=r"results\(\) lists all.*Did you mean 'named'"):
            budget["namd"]
        with pytest.raises(KeyError):
            budget["private_mean_loss"]  # nobody gave this name
        with pytest.raises(ValueError, match=r"no stored value.*not given back"):
            budget["by hand"]
        with pytest.raises(TypeError):
            iter(budget)


def test_what_cannot_be_written_has_its_value_or_a_short_form(path):
    class Mine(dp.Geometric):
        pass

    budget = PrivacyAccountant(2, path)
    ask = partial(dp.private_accuracy_score, Y, PRED, epsilon=1, mechanism=Mine(), spend_name="x")
    number = ask(accountant=budget)
    assert budget["x"].value == number
    assert budget["x"].noise is None
    new_session()
    with pytest.raises(ValueError, match="cannot be written down"):
        ask(accountant=PrivacyAccountant(2, path))
    assert budget.spent == 1


def test_groups_that_cannot_be_written_leave_a_short_form(path):
    budget, groups = PrivacyAccountant(1, path), [Fraction(1, 2), Decimal(1)]
    ask = partial(dp.PrivateMetricFrame, metrics=dp.private_accuracy_score, y_true=Y, y_pred=PRED)
    ask(
        sensitive_features=pd.Series(np.resize(np.array(groups, dtype=object), N)),
        group_labels=groups,
        epsilon=1,
        accountant=budget,
        spend_name="x",
    )
    assert budget.results()[0].value.startswith("PrivateMetricFrame(overall=")
    with pytest.raises(ValueError, match="only a short form is stored"):
        budget["x"]


def test_a_full_disk_loses_no_number(path, monkeypatch):
    def full(*arguments):
        raise OSError("no space left")

    monkeypatch.setattr(FileLedger, "keep", full)
    budget = PrivacyAccountant(4, path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(dp.private_mean_loss(SCORE, max_loss=1.0, epsilon=1, accountant=budget))
        result = with_result(dp.private_mean_loss)(SCORE, max_loss=1.0, epsilon=1, accountant=budget)
        interval = dp.private_mean_interval(SCORE, max_loss=1.0, epsilon=1, accountant=budget)
    assert "could not be stored" in result.note
    assert "could not be stored" in interval.note
    with pytest.warns(UserWarning, match="could not be stored"):
        dp.private_mean_loss(SCORE, max_loss=1.0, epsilon=1, accountant=budget)
    assert budget.spent == 4
    assert [one.value for one in budget.results()] == [None] * 4


# ---- the same question again -------------------------------------------------------------------------------


def test_a_summary_asks_by_its_totals(path):
    """Chunks have no order, and any chunks of as many records are one question; with a private number all."""
    pieces = [(Y, PRED), (PRED[:100], Y[:100]), (PRED[100:], Y[100:])]
    ask = {"epsilon": 1.0, "spend_name": "x"}
    full = dp.ConfusionSummary().update(*pieces[0]).release(**ask, accountant=PrivacyAccountant(1, path))
    halves = dp.ConfusionSummary().update(*pieces[1]).merge(dp.ConfusionSummary().update(*pieces[2]))
    again = asked_again(lambda budget: halves.release(**ask, accountant=budget), path)
    assert (again.confusion_matrix() == full.confusion_matrix()).all()
    for fewer in (dp.ConfusionSummary(), dp.ConfusionSummary().update(*pieces[1])):
        new_session()
        with pytest.raises(ValueError, match=r"number of records was 400 and is (0|100)\."):
            fewer.release(**ask, accountant=PrivacyAccountant(1, path))


def test_an_empty_summary_of_a_private_number_of_records_has_the_stored_answer(path):
    ask = {"epsilon": 1.0, "spend_name": "x", "neighboring": "add_or_remove_one"}
    full = dp.ConfusionSummary().update(Y, PRED).release(**ask, accountant=PrivacyAccountant(1, path))
    again = asked_again(lambda budget: dp.ConfusionSummary().release(**ask, accountant=budget), path)
    assert (again.confusion_matrix() == full.confusion_matrix()).all()


def calls_of(ask):
    """Return all functions that a call calls, in order, without those of a garbage collection."""
    called = []

    def note(code, event, _):
        if event in ("call", "c_call"):
            called.append(code.f_code.co_qualname)

    gc.disable()
    sys.setprofile(note)
    try:
        ask()
    finally:
        sys.setprofile(None)
        gc.enable()
    return called


@pytest.mark.parametrize("neighboring", sorted(BOTH))
def test_what_the_stored_path_does_does_not_depend_on_the_records(neighboring, path):
    ask = partial(dp.private_mae, epsilon=1, bounds=(0, 1), neighboring=neighboring, spend_name="x")
    ask(Y, SCORE, accountant=PrivacyAccountant(1, path))
    others = [
        (np.full(N, np.nan), np.full(N, np.inf)), (np.array(["text"] * N), np.zeros((N, 3), np.float32)),
    ]  # fmt: skip
    if neighboring == "add_or_remove_one":
        others += [([None] * 3, SCORE[:3]), ([], []), ("text", None), (pd.Series(Y[:2]), SCORE[:5].tolist())]

    def called(y, score):
        new_session()
        budget = PrivacyAccountant(1, path)
        return calls_of(lambda: ask(y, score, accountant=budget))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoredReleaseWarning)
        called(Y, SCORE)  # what is remembered of types is
        wanted = called(Y, SCORE)
        assert len(wanted) > 50
        for y, score in others:
            assert called(y, score) == wanted


CHANGES = [
    {"epsilon": 0.5},
    {"epsilon": Fraction(1) + Fraction(1, 10**30)},
    {"bounds": (0, 2)},
    {"bounds": None},
    {"mechanism": "hazard"},
    {"mechanism": dp.Hazard(resolution=0.5)},
    {"multioutput": "raw_values"},
    {"neighboring": "add_or_remove_one"},
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: str({**change})[:40])
def test_another_question_under_a_name_is_refused(change, path):
    usual = {"epsilon": 1, "bounds": (0, 1), "spend_name": "mae, week 47"}
    dp.private_mae(Y, SCORE, **usual, accountant=PrivacyAccountant(10, path))
    new_session()
    budget, (name,) = PrivacyAccountant(10, path), change
    with pytest.raises(ValueError, match=rf"another question.* {name} was .* and is .*Nothing is spent"):
        dp.private_mae(Y, SCORE, **{**usual, **change}, accountant=budget)
    assert budget.spent == 1
    same = {"bounds": np.array([0.0, 1.0]), "epsilon": Fraction(1), "mechanism": "adaptive"}
    asked_again(lambda one: dp.private_mae(Y, SCORE, **{**usual, **same}, accountant=one), path, 10)


def test_another_metric_or_form_under_a_name_is_refused(path):
    dp.private_accuracy_score(Y, PRED, epsilon=1, accountant=PrivacyAccountant(10, path), spend_name="x")
    new_session()
    budget = PrivacyAccountant(10, path)
    settings = {"epsilon": 1, "accountant": budget, "spend_name": "x"}
    for other in (
        lambda: dp.private_zero_one_loss(Y, PRED, **settings),
        lambda: frame_of(dp.private_accuracy_score, Y, PRED, GROUP, **settings),
        lambda: confusion(Y, PRED, **settings),
        lambda: dp.private_mean_interval(SCORE, max_loss=1.0, **settings),
    ):
        with pytest.raises(ValueError, match="another question"):
            other()
    assert budget.spent == 1


def test_a_loss_to_compare_by_is_the_same_by_each_of_its_names_with_its_keywords(path):
    ask = partial(dp.private_compare, Y, SCORE, 1 - SCORE, epsilon=1, spend_name="x")
    first = ask(loss=partial(dp.private_mae, bounds=(0, 1)), accountant=PrivacyAccountant(1, path))
    for name in ("private_mae", "neg_mean_absolute_error"):
        assert asked_again(lambda one, n=name: ask(loss=n, bounds=[0, 1], accountant=one), path) == first
    new_session()
    budget = PrivacyAccountant(1, path)
    for other in ({"loss": "mae"}, {"loss": partial(dp.private_mae, bounds=(0, 2))}, {"loss": "mse"}):
        with pytest.raises(ValueError, match="another question"):
            ask(**other, accountant=budget)


def test_a_question_holds_nothing_of_the_records(path):
    marks = RNG.random(2 * N)
    people, weights = np.arange(N) + 987654321, 1 + RNG.random(N)
    budget = PrivacyAccountant(9, path)
    settings = {"epsilon": 1, "accountant": budget}
    dp.private_mae(marks[:N], marks[N:], spend_name="a", sample_weight=weights, **settings)
    dp.private_mae(marks[:N], marks[N:], spend_name="b", groups=people, **settings)
    frame_of(SCORES, Y, SCORE, GROUP, spend_name="c", **settings)
    for n in (N, 17):
        other = PrivacyAccountant(9, f"{path}{n}")
        settings = {"epsilon": 1, "accountant": other, "neighboring": "add_or_remove_one"}
        dp.private_mae(marks[:n], marks[n : 2 * n], spend_name="d", **settings)
        dp.private_mae(marks[:n].tolist(), marks[n : 2 * n].tolist(), spend_name="e", **settings)
        frame_of(SCORES, Y[:n], SCORE[:n], GROUP[:n], spend_name="f", **settings)
        questions = [kept.question for kept in other._ledger.kept()]
        forms = [json.loads(kept.answer)["answer"]["form"] for kept in other._ledger.kept()]
        assert str(n) not in str(forms)
        if n == N:
            wanted = questions, forms
    assert (questions, forms) == wanted
    written = "".join(kept.question + kept.answer for kept in budget._ledger.kept())
    held = [repr(float(one)) for one in (*marks, *weights)] + [str(one) for one in people]
    assert not [one for one in held if one in written]


@pytest.mark.parametrize("make", [list, np.array, pd.Series])
def test_a_private_number_of_records_is_in_no_form_not_even_whether_it_is_0(make, path):
    forms = []
    for n in (0, 1, 30):
        budget = PrivacyAccountant(1, f"{path}{n}")
        data = (make(list(map(float, Y[:n]))), make(SCORE[:n].tolist()))
        dp.private_mae(*data, epsilon=1, neighboring="add_or_remove_one", accountant=budget)
        summary = PrivacyAccountant(1, f"{path} of a summary {n}")
        dp.LossSummary(dp.private_mae).update(*data).release(
            1, neighboring="add_or_remove_one", accountant=summary
        )
        forms += [json.loads(one._ledger.kept()[0].answer)["answer"]["form"] for one in (budget, summary)]
    if make is not pd.Series:  # an empty series without a type is one of objects, which is public
        assert all(form == forms[0] for form in forms[::2])
    assert all(form == forms[1] for form in forms[1::2])


def test_only_names_that_were_given_count_and_no_seeded_result(path):
    budget = PrivacyAccountant(10, path)
    ask = partial(dp.private_mean_loss, SCORE, epsilon=1, accountant=budget)
    assert len({ask() for _ in range(3)}) == 3
    with pytest.warns(dp.SeededReleaseWarning):
        seeded = [ask(random_state=0, spend_name="x") for _ in range(2)]
    assert seeded[0] == seeded[1]
    assert budget.spent == 5  # both were paid for
    assert "x" not in budget
    number = ask(spend_name="x")
    assert number != seeded[0]
    assert budget["x"].value == number
    with pytest.warns(dp.SeededReleaseWarning):
        assert ask(random_state=0, spend_name="x") == seeded[0]
    assert budget.spent == 7
    assert [one.value is None for one in budget.results()] == [False] * 3 + [True] * 2 + [False, True]


def test_reuse_false_refuses(path):
    ask = partial(dp.private_mean_loss, SCORE, epsilon=1, spend_name="x")
    ask(accountant=PrivacyAccountant(2, path, reuse=False))
    new_session()
    budget = PrivacyAccountant(2, path, reuse=False)
    with pytest.raises(ValueError, match=r"reuse=False.*Nothing is spent"):
        ask(accountant=budget)
    assert budget.spent == 1
    with pytest.raises(TypeError, match="reuse"):
        PrivacyAccountant(1, reuse=None)


def test_parts_of_a_budget_have_names_of_their_own(path):
    for budget in (PrivacyAccountant(1), PrivacyAccountant(1, path)):
        weeks = budget.parallel(1, ["47", "48"])
        numbers = [
            dp.private_mean_loss(SCORE, epsilon=1, accountant=week, spend_name="loss")
            for week in weeks.values()
        ]
        assert numbers[0] != numbers[1]
        for week, number in zip(budget.parallel(1, ["47", "48"]).values(), numbers, strict=True):
            with pytest.raises(ValueError, match="was used since this session began"):
                dp.private_mean_loss(SCORE, epsilon=1, accountant=week, spend_name="loss")
            if budget.path is not None:
                assert week["loss"].value == number
                assert [one.value for one in week.results()] == [number]
        assert "loss" not in budget
    new_session()
    parts = PrivacyAccountant(1, path).parallel(1, ["47", "48"])
    for week, number in zip(parts.values(), numbers, strict=True):
        with pytest.warns(StoredReleaseWarning):
            assert dp.private_mean_loss(SCORE, epsilon=1, accountant=week, spend_name="loss") == number


def test_an_exhausted_budget_still_answers(path):
    ask = partial(dp.private_mean_loss, SCORE, epsilon=1, spend_name="x")
    number = ask(accountant=PrivacyAccountant(1, path))
    assert asked_again(lambda one: ask(accountant=one), path) == number
    budget = PrivacyAccountant(1, path)
    with pytest.raises(dp.PrivacyBudgetError):
        dp.private_mean_loss(SCORE, epsilon=1, spend_name="y", accountant=budget)


# ---- scorers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_no_two_folds_share_a_score(n_jobs, path):
    budget = PrivacyAccountant(5, path)
    scorer = dp.make_private_scorer(dp.private_mse, epsilon=0.2, accountant=budget, spend_name="folds")
    X = RNG.normal(size=(200, 2))
    y = X @ [1.0, 2.0] + RNG.normal(size=200)
    for _ in range(2):
        found = cross_val_score(Ridge(), X, y, cv=5, scoring=scorer, error_score="raise", n_jobs=n_jobs)
        # shared scores are all one; two releases are the same grid point once in a thousand
        assert len({*found}) >= 3
    assert budget.spent == 2
    names = [one.spend_name for one in budget.results()]
    assert sorted(names) == sorted(f"folds #{k}" for k in range(1, 11))
    assert {-budget[name].value for name in names} >= {*found}


def test_no_two_folds_of_a_scorer_of_scikit_learn_share_a_score(path):
    """In the session that buys a name the second fold is refused, and so it is in one that is served it."""
    X = RNG.normal(size=(200, 2))
    for tells in (contextlib.nullcontext(), pytest.warns(StoredReleaseWarning)):
        new_session()
        budget = PrivacyAccountant(5, path)
        scorer = make_scorer(
            dp.private_mse, greater_is_better=False, epsilon=0.2, accountant=budget, spend_name="folds"
        )
        with tells, pytest.raises(ValueError, match=r"used once in a session.*make_private_scorer number"):
            cross_val_score(Ridge(), X, X[:, 0], cv=5, scoring=scorer, error_score="raise")
        assert budget.spent == 0.2


def test_a_search_that_is_run_again_pays_again_in_every_session(path):
    X = RNG.normal(size=(60, 2))
    spends = 0
    for begin in (new_session, lambda: None, new_session):
        begin()
        budget = PrivacyAccountant(5, path)
        scorer = dp.make_private_scorer(dp.private_mse, epsilon=0.1, accountant=budget, spend_name="mse")
        search = GridSearchCV(Ridge(), {"alpha": [0.1, 1]}, scoring=scorer, cv=3, error_score="raise")
        with warnings.catch_warnings():
            warnings.simplefilter("error", StoredReleaseWarning)
            search.fit(X, X[:, 0])
        spends += 6
        names = [one.spend_name for one in budget.history]
        assert names == [f"mse #{number}" for number in range(1, spends + 1)]


def test_a_numbered_name_is_not_the_name():
    budget = PrivacyAccountant(5)
    ask = partial(dp.private_mean_loss, SCORE, epsilon=1, spend_name="x")
    ask(accountant=numbering(budget))
    assert "x" not in budget
    ask(accountant=budget)
    ask(accountant=numbering(budget))
    assert [one.spend_name for one in budget.history] == ["x #1", "x", "x #2"]


# ---- sessions ----------------------------------------------------------------------------------------------

CELL = """
budget = PrivacyAccountant(4, PATH)
number = private_mean_loss(LOSSES, epsilon=1, accountant=budget, spend_name="x")
"""


def run_cell(path):
    shell = {"PATH": path, "LOSSES": SCORE, "PrivacyAccountant": PrivacyAccountant}
    exec(CELL, shell | {"private_mean_loss": dp.private_mean_loss}, shell)
    return shell["number"]


def test_a_cell_that_is_run_again_in_one_kernel_is_refused_and_in_another_one_is_served(path):
    number = run_cell(path)
    for _ in range(2):
        with pytest.raises(ValueError, match=r"was used since this session began.*budget\['x'\] returns"):
            run_cell(path)
    restarted = start("print(repr(ask(losses=np.array(eval(sys.argv[2])))))", path, repr(SCORE.tolist()))
    output, error = restarted.communicate(timeout=100)
    assert output.strip() == repr(number), error
    assert "StoredReleaseWarning" in error
    assert PrivacyAccountant(4, path).spent == 1


def test_a_served_name_is_used(path):
    number = run_cell(path)
    new_session()
    with pytest.warns(StoredReleaseWarning):
        assert run_cell(path) == number
    with pytest.raises(ValueError, match="was used since this session began"):
        run_cell(path)
    assert PrivacyAccountant(4, path)["x"].value == number


def test_a_file_that_is_opened_again_in_a_loop_is_one_session_however_it_is_spelled(path, monkeypatch):
    run_cell(path)
    folder = pathlib.Path(path).parent
    monkeypatch.chdir(folder)
    spelled = [pathlib.Path(path), "budget.sqlite", folder / "." / "budget.sqlite"]
    if os.name == "posix":
        (folder / "link").symlink_to(path)
        spelled.append(folder / "link")
    for one in spelled:
        with pytest.raises(ValueError, match="was used since this session began"):
            run_cell(one)
    assert PrivacyAccountant(4, path).spent == 1


def test_a_name_of_a_budget_without_a_path_is_used_once_too():
    budget = PrivacyAccountant(4)
    ask = partial(dp.private_mean_loss, SCORE, epsilon=1, accountant=budget, spend_name="x")
    ask()
    with pytest.raises(ValueError, match=r"was used since.*has no path, so that nothing is stored"):
        ask()
    assert budget.spent == 1


def asked_in_a_copy(budget):
    """Return what a copy of a budget, in another process, says to the name "x"."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            dp.private_mean_loss(SCORE, epsilon=1, accountant=budget, spend_name="x")
        except ValueError as error:
            return str(error)
    return [one.category.__name__ for one in caught]


def test_a_pickled_copy_is_of_the_session_that_it_was_made_in(path):
    budget = PrivacyAccountant(4, path)
    copied = pickle.dumps(budget)
    run_cell(path)
    new_session()  # as in the process that has the copy
    assert "was used since this session began" in asked_in_a_copy(pickle.loads(copied))
    assert "was used since this session began" in asked_in_a_copy(PrivacyAccountant(4, path))
    new_session()
    later = pickle.dumps(PrivacyAccountant(4, path))
    new_session()
    assert asked_in_a_copy(pickle.loads(later)) == ["StoredReleaseWarning"]
    assert "was used since this session began" in asked_in_a_copy(pickle.loads(later))
    assert PrivacyAccountant(4, path).spent == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_is_of_the_session_of_its_process(path):
    run_cell(path)
    for budget in (PrivacyAccountant(4, path), None):
        child = os.fork()
        if child == 0:
            said = asked_in_a_copy(budget or PrivacyAccountant(4, path))
            os._exit(7 if "was used since this session began" in said else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert PrivacyAccountant(4, path).spent == 1


@pytest.mark.slow
def test_workers_have_the_session_of_their_budget_and_those_that_open_the_file_one_of_their_own(path):
    budget = PrivacyAccountant(4, path)
    run_cell(path)
    ask = joblib.delayed(asked_in_a_copy)
    said = joblib.Parallel(n_jobs=2)(ask(budget) for _ in range(4))
    assert all("was used since this session began" in one for one in said)
    opened = start("print(ask())", path).communicate(timeout=100)
    assert "another question" in opened[1]  # 500 losses, not 400: it would be served
    assert budget.spent == 1


def test_nothing_depends_on_a_clock(path, monkeypatch):
    """Spends in years to come and in years gone by are bought, refused and served alike."""
    years = iter([2999, 1999, 2999, 1970, 2500, 1980] * 3)

    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime(next(years), 1, 1, tzinfo=tz)

    monkeypatch.setattr(ledgers, "datetime", Clock)
    ask = partial(dp.private_mean_loss, SCORE, epsilon=1)
    numbers = [ask(accountant=PrivacyAccountant(4, path), spend_name=name) for name in "abc"]
    for name, number in zip("abc", numbers, strict=True):
        with pytest.raises(ValueError, match="was used since this session began"):
            ask(accountant=PrivacyAccountant(4, path), spend_name=name)
        assert PrivacyAccountant(4, path)[name].value == number
    for name, number in zip("abc", numbers, strict=True):
        one = asked_again(lambda budget, name=name: ask(accountant=budget, spend_name=name), path, 4)
        assert one == number


# ---- several at once, and sudden ends ----------------------------------------------------------------------

ASK = """
import os, signal, sys, warnings
import numpy as np
from dp_metrics import PrivacyAccountant, private_mean_loss
from dp_metrics.release.release import Release
budget = PrivacyAccountant(4, sys.argv[1])
losses = np.linspace(0, 1, 500)
def ask(losses=losses):
    return private_mean_loss(losses, epsilon=1, accountant=budget, spend_name="x")
"""


def start(program, *arguments):
    root = str(pathlib.Path(dp.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
    return subprocess.Popen(
        [sys.executable, "-c", ASK + textwrap.dedent(program), *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip


def test_of_processes_that_ask_at_once_one_buys_and_the_others_are_refused(path):
    budget = PrivacyAccountant(4, path)
    program = """
    print("opened", flush=True)
    sys.stdin.readline()
    try:
        print(repr(ask()))
    except ValueError as error:
        print(error)
    """
    processes = [start(program, path) for _ in range(3)]
    for process in processes:
        assert process.stdout.readline() == "opened\n"
    for process in processes:
        process.stdin.write("now\n")
        process.stdin.flush()
    found = sorted(process.communicate(timeout=100)[0].strip() for process in processes)
    assert budget.spent == 1
    assert found[0] == repr(budget["x"].value)
    assert all("was used since this session began" in said for said in found[1:])


def test_of_threads_that_ask_at_once_one_buys_and_the_others_are_refused(path, monkeypatch):
    for budget in (PrivacyAccountant(4), PrivacyAccountant(4, path)):
        both = threading.Barrier(4)
        spend = PrivacyAccountant.spend

        def together(self, *arguments, both=both, spend=spend, **options):
            both.wait()  # all have seen that the name is free
            spend(self, *arguments, **options)

        found = []

        def ask(budget=budget, found=found):
            try:
                found.append(dp.private_mean_loss(SCORE, epsilon=1, accountant=budget, spend_name="x"))
            except ValueError as error:
                found.append(str(error))

        with monkeypatch.context() as patch:
            patch.setattr(PrivacyAccountant, "spend", together)
            in_threads(ask)
        refused = [one for one in found if isinstance(one, str)]
        assert (len(found), len(refused), budget.spent) == (4, 3, 1)
        assert all("was used since this session began" in one for one in refused)


def in_threads(ask):
    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_of_threads_that_ask_for_a_stored_answer_one_is_served(path):
    number = run_cell(path)
    new_session()
    budget, found = PrivacyAccountant(4, path), []

    def ask():
        try:
            found.append(dp.private_mean_loss(SCORE, epsilon=1, accountant=budget, spend_name="x"))
        except ValueError:
            found.append(None)

    with pytest.warns(StoredReleaseWarning):
        in_threads(ask)
    assert sorted(found, key=str) == [number, None, None, None]
    assert budget.spent == 1


@pytest.mark.skipif(os.name != "posix", reason="a signal of POSIX")
def test_a_process_killed_between_spend_and_value_leaves_a_spend_without_a_value(path):
    budget = PrivacyAccountant(4, path)
    process = start("Release._kept = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)\nask()", path)
    process.communicate(timeout=100)
    assert process.returncode == -signal.SIGKILL
    assert budget.spent == 1
    assert [one.value for one in budget.results()] == [None]
    ask = partial(dp.private_mean_loss, SCORE, epsilon=1, spend_name="x")
    with pytest.raises(ValueError, match="was used since this session began"):
        ask(accountant=budget)
    new_session()
    for look in (lambda: budget["x"], lambda: ask(accountant=PrivacyAccountant(4, path))):
        with pytest.raises(
            ValueError, match=r"no stored value.*its process ended.*choose another spend_name"
        ):
            look()
    assert budget.spent == 1
    dp.private_mean_loss(SCORE, epsilon=1, accountant=budget, spend_name="x again")
    assert budget.spent == 2


def test_who_asks_while_another_draws_is_refused_at_once_and_served_later(path, monkeypatch):
    keep, waiting = FileLedger.keep, []
    with monkeypatch.context() as patch:
        patch.setattr(FileLedger, "keep", lambda *release: waiting.append(release))
        number = run_cell(path)
    ask = partial(dp.private_mean_loss, SCORE, epsilon=1, spend_name="x")
    new_session()
    with pytest.raises(ValueError, match="no stored value"):
        ask(accountant=PrivacyAccountant(4, path))
    keep(*waiting[0])
    assert asked_again(lambda budget: ask(accountant=budget), path, 4) == number


def test_a_file_of_an_earlier_version_opens(path):
    pathlib.Path(path).write_bytes(zlib.decompress(base64.b85decode(OLD_FILE)))
    budget = PrivacyAccountant(2, path)
    assert budget.spent == 1
    assert [one.value for one in budget.results()] == [None] * 4
    ask = partial(dp.private_mae, Y, SCORE, epsilon=0.25, accountant=budget)
    with pytest.raises(ValueError, match=r"no stored value.*by hand or by an earlier version"):
        ask(spend_name="mae, week 47")
    for look in (lambda: ask(spend_name="twice"), lambda: budget["twice"]):
        with pytest.raises(ValueError, match=r"2 spends named 'twice'.*choose another"):
            look()
    assert budget.spent == 1
    ask()
    number = ask(spend_name="mae, week 48")
    again = partial(ask, spend_name="mae, week 48")
    assert asked_again(lambda one: again(accountant=one), path, 2) == number
    assert PrivacyAccountant(2, path)["mae, week 48"].value == number
    assert budget.spent == 1.5


# ---- files that somebody changed ---------------------------------------------------------------------------

STRANGE = [
    None, True, -1, 1e300, "x", "__import__('os').system('true')", [], [[]], {}, {"dict": {}}, {"type": "x"},
    {"function": "os.system"}, {"partial": ["builtins.eval", ["1"], {}]}, {"type": "Popen", "fields": {}},
    {"array": ["O", [1], [{}]]}, {"array": ["<f8", [10**12], []]}, {"fraction": "1/0"}, {"float": "nan"},
]  # fmt: skip


def places(tree, at=()):
    """Return the way to each node of JSON."""
    yield at
    branches = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, branch in branches:
        yield from places(branch, (*at, key))


def changed(tree, at, value):
    """Return JSON with another node in one place."""
    if not at:
        return value
    new = dict(tree) if isinstance(tree, dict) else list(tree)
    new[at[0]] = changed(tree[at[0]], at[1:], value)
    return new


@pytest.mark.parametrize("name", ["curve", "wins", "frame of scores", "confusion summary", "loss summary"])
def test_damaged_json_is_a_value_error(name, path):
    budget, (function, data, _) = PrivacyAccountant(1, path), ASKED[name]
    function(*data, epsilon=1, accountant=budget, spend_name="x")
    (kept,) = budget._ledger.kept()
    question, answer = json.loads(kept.question), json.loads(kept.answer)
    generator, refused = np.random.default_rng(0), 0
    for tree, is_answer in ((question, False), (answer, True)):
        known = list(places(tree))
        for place in generator.permutation(len(known))[:120]:
            value = STRANGE[generator.integers(len(STRANGE))]
            text = json.dumps(changed(tree, known[place], value))
            try:
                answers.restored(*((kept.question, text) if is_answer else (text, kept.answer)))
            except ValueError:
                refused += 1  # any other exception fails
    assert refused > 60
    for text in ("", "{", "[]", "1", kept.answer[:-9], '{"schema": 1}', "[" * 5000):
        with pytest.raises(ValueError, match="damaged"):
            answers.restored(kept.question, text)
    later = kept.answer.replace('"version": 1', '"version": 2')
    with pytest.raises(ValueError, match="later version of dp_metrics"):
        answers.restored(kept.question, later)


def test_a_field_of_another_type_is_found_when_it_is_read(path):
    budget = PrivacyAccountant(1, path)
    dp.private_mean_loss(SCORE, epsilon=1, accountant=budget)
    noise = json.loads(budget._ledger.kept()[0].answer)["answer"]["results"][0]["noise"]
    codec.decoded(noise)
    for place in places(noise):
        if place[-2:-1] == ("fields",) and place[-1] != "neighboring":  # which is a text
            with pytest.raises(codec.MALFORMED):
                codec.decoded(changed(noise, place, "x"))


def test_a_type_that_is_not_in_the_table_is_neither_written_nor_read():
    for value in (object(), print, {1, 2}, b"x", Y.astype(object), Untouchable):
        with pytest.raises(TypeError):
            codec.encoded(value)
    for value in ({"type": "object", "fields": {}}, {"function": "print"}, {"bytes": "x"}):
        with pytest.raises(codec.MALFORMED):
            codec.decoded(value)


@pytest.mark.parametrize(
    "value",
    [
        None, True, 3, -(10**40), 0.1, float("inf"), "é", [1, [2.0]], (1, ("a",)), {"a": {"b": ()}},
        Fraction(2, 3), {("a", "b"): 1, ("a", "c"): 3}, np.float64(0.5), np.float32(0.1), np.bool_(True),
        np.arange(6.0).reshape(2, 3), np.array(["a", "bc"]), np.array([np.nan, -np.inf]),
        np.array([], dtype=np.int8), dp.Hazard(resolution=0.5), date(2026, 11, 23),
    ],
    ids=repr,
)  # fmt: skip
def test_public_values_come_back_as_they_were(value):
    again = codec.decoded(json.loads(json.dumps(codec.encoded(value))))
    assert type(again) is type(value)
    assert _content(again) == _content(value)
