"""A budget keeps what it bought: names, sessions, races, sudden ends, and files that somebody changed.

What a stored release is asked by, and that it says again all that it said, is in test_questions.py.
"""

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
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import partial
from inspect import signature
from pkgutil import resolve_name

import numpy as np
import pandas as pd
import pytest
from cases import CALLS, KINDS, RULES, valid
from doors import release_of
from helpers import all_of_labels, in_threads, later, loop_over, new_session, slow_but
from sklearn.linear_model import Ridge
from sklearn.metrics import make_scorer
from sklearn.model_selection import cross_val_score

import dp_metrics as dp
from dp_metrics.accounting.accountant import numbering
from dp_metrics.accounting.ledgers import Ledger
from dp_metrics.mechanisms import MECHANISMS
from dp_metrics.release import stored
from dp_metrics.release.query import made_of

RNG = np.random.default_rng(31)
N = 400
Y = RNG.integers(0, 2, N)
SCORE = np.clip(RNG.integers(0, 49, N) + 16 * Y, 0, 64) / 64
USED = "was used since this session began"
ask = partial(dp.private_mean_loss, SCORE, epsilon=1, spend_name="x")


@pytest.fixture
def path(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dp.exceptions.NoisyReleaseWarning)
        yield str(tmp_path / "budget.sqlite")


def served(path, ask=ask, total=4):
    """Return what another session has of a question, which is free."""
    budget = later(path, total)
    spent = budget.spent
    with pytest.warns(dp.exceptions.StoredReleaseWarning):
        number = ask(accountant=budget)
    assert budget.spent == spent
    return number


# ---- what is stored ----------------------------------------------------------------------------------------


@pytest.mark.gate
@loop_over("call", [call for call in CALLS if call.name in KINDS])
def test_a_stored_result_of_each_mechanism_is_the_original(call, tmp_path):
    budget = dp.PrivacyAccountant(100, tmp_path / str(call).replace("/", " "))
    ask = partial(call.release, valid(call.case), epsilon=1, accountant=budget)
    rules = RULES if call.name == "mse" else ("default", *MECHANISMS)  # settings are written alike for all
    made = [ask(mechanism) for mechanism in rules if call.is_served(mechanism)]
    for result, listed in zip(made, budget.results(), strict=True):
        again = listed.result
        assert made_of((again.noises, again.outputs, again.value)) == made_of(
            (result.noises, result.outputs, result.value)
        )
        assert (repr(again), again.to_json()) == (repr(result), result.to_json())


def test_what_is_public_of_a_call_is_read_once(path, monkeypatch):
    """That takes the longer the more records there are: whose they are is public, for example."""
    made = []
    of = stored.Call.of
    monkeypatch.setattr(stored.Call, "of", lambda *one, **more: made.append(1) or of(*one, **more))
    ask(groups=np.arange(N) // 2, accountant=dp.PrivacyAccountant(4, path))
    assert made == [1]


def test_results_lists_every_spend_with_its_value(path):
    for budget in (dp.PrivacyAccountant(3), dp.PrivacyAccountant(3, path)):
        numbers = [ask(accountant=budget, spend_name="named"), ask(accountant=budget, spend_name=None)]
        recall = dp.private_recall_score(Y, Y, epsilon=0.5, accountant=budget)
        budget.spend(0.25, "by hand")
        listed = budget.results()
        assert [one.is_named for one in listed] == [True, False, False, False]
        assert [one.epsilon for one in listed] == [1, 1, 0.5, 0.25]
        values = [*numbers, recall, None] if budget.path else [None] * 4  # where nothing is stored
        assert [one.value for one in listed] == values
        look = (lambda budget=budget: budget["named"].value, lambda listed=listed: listed[1].result.value)
        for get, number in zip(look, numbers, strict=True):
            if budget.path:
                assert get() == number
                continue
            with pytest.raises(ValueError, match="no stored value: the budget has no path"):
                get()
        table = listed.to_frame()
        assert isinstance(table, pd.DataFrame)
        assert table["spend_name"].tolist() == [one.spend_name for one in budget.history]
        assert "named" in budget
        assert "by hand" not in budget
        for wrong, error, said in (
            ("namd", KeyError, r"results\(\) lists all.*Did you mean 'named'"),
            ("private_mean_loss", KeyError, None),  # nobody gave this name
            ("by hand", ValueError, r"no stored value.*not given back"),
        ):
            with pytest.raises(error, match=said):
                budget[wrong]
        with pytest.raises(TypeError):
            iter(budget)


def test_a_new_process_needs_the_budget_only(path):
    names = ("frame", "wins", "choice")
    for name in names:
        release_of(name)(epsilon=1, accountant=dp.PrivacyAccountant(4, path), spend_name=name)
    process = start("print([repr(budget[name]) for name in sys.argv[2:]])", path, *names)
    shown, said = process.communicate(timeout=100)
    assert shown.strip() == repr([repr(dp.PrivacyAccountant(4, path)[name]) for name in names]), said


@pytest.mark.parametrize("place", stored.STORED_TYPES.values())
def test_a_stored_type_is_that_of_the_table_and_what_is_annotated_in_it_are_its_fields(place):
    kind = resolve_name(place)
    assert f"{kind.__module__}:{kind.__name__}" == place
    assert [*kind.__annotations__] == [*signature(kind).parameters]


def test_what_cannot_be_written_has_its_value_or_a_short_form(path):
    class Mine(dp.mechanisms.Geometric):
        pass

    budget, groups = dp.PrivacyAccountant(9, path), [Fraction(1, 2), Decimal(1)]
    own = partial(dp.private_accuracy_score, Y, Y, epsilon=1, mechanism=Mine(), spend_name="x")
    number = own(accountant=budget)
    assert budget["x"] == number
    new_session()
    with pytest.raises(ValueError, match="cannot be written down"):
        own(accountant=dp.PrivacyAccountant(9, path))
    dp.PrivateMetricFrame(
        metrics="accuracy", y_true=Y, y_pred=Y, epsilon=1, accountant=budget, group_labels=groups,
        sensitive_features=pd.Series(np.resize(np.array(groups, dtype=object), N)), spend_name="y",
    )  # fmt: skip
    assert budget.results()[1].value.startswith("PrivateMetricFrame(overall=")
    with pytest.raises(ValueError, match="only a short form is stored"):
        budget["y"]
    assert budget.spent == 2


def test_a_full_disk_loses_no_number(path, monkeypatch):
    def full(*arguments):
        raise OSError("no space left")

    monkeypatch.setattr(Ledger, "keep", full)
    budget = dp.PrivacyAccountant(4, path)
    settings = {"max_loss": 1.0, "epsilon": 1, "accountant": budget}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(dp.private_mean_loss(SCORE, **settings))
        for release in (dp.with_result(dp.private_mean_loss), dp.private_mean_interval):
            assert "could not be stored" in release(SCORE, **settings).note
    with pytest.warns(UserWarning, match="could not be stored"):
        dp.private_mean_loss(SCORE, **settings)
    assert budget.spent == 4
    assert [one.value for one in budget.results()] == [None] * 4


# ---- names and sessions ------------------------------------------------------------------------------------


def test_only_names_that_were_given_count_and_no_seeded_result(path):
    budget = dp.PrivacyAccountant(10, path)
    assert len({ask(accountant=budget, spend_name=None) for _ in range(3)}) == 3
    with pytest.warns(dp.exceptions.SeededReleaseWarning):
        seeded = [ask(accountant=budget, random_state=0) for _ in range(2)]
    assert seeded[0] == seeded[1]
    assert "x" not in budget
    number = ask(accountant=budget)
    assert budget["x"].value == number != seeded[0]
    with pytest.warns(dp.exceptions.SeededReleaseWarning):
        assert ask(accountant=budget, random_state=0) == seeded[0]
    assert budget.spent == 7  # also of what is seeded
    assert [one.value is None for one in budget.results()] == [False] * 3 + [True] * 2 + [False, True]


def test_reuse_false_refuses(path):
    ask(accountant=dp.PrivacyAccountant(2, path, reuse=False))
    budget = later(path, 2, reuse=False)
    with pytest.raises(ValueError, match=r"reuse=False.*Nothing is spent"):
        ask(accountant=budget)
    assert budget.spent == 1
    with pytest.raises(TypeError, match="reuse"):
        dp.PrivacyAccountant(1, reuse=None)


def test_a_stored_number_is_not_lost_where_its_warning_is_an_error(path):
    number = ask(accountant=dp.PrivacyAccountant(1, path))
    budget = later(path, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(dp.exceptions.StoredReleaseWarning):
            ask(accountant=budget)
    with pytest.warns(dp.exceptions.StoredReleaseWarning):
        assert ask(accountant=budget) == number


@pytest.mark.filterwarnings("ignore::dp_metrics.exceptions.StoredReleaseWarning")
@pytest.mark.parametrize("n_jobs", slow_but([1], [1, 2]))
def test_no_two_folds_share_a_score_and_who_scores_again_pays_again(n_jobs, path):
    X = RNG.normal(size=(200, 2))
    for _ in range(2):
        budget = later(path, 5)
        scorer = dp.make_private_scorer(dp.private_mse, epsilon=0.2, accountant=budget, spend_name="folds")
        found = cross_val_score(Ridge(), X, X[:, 0], cv=5, scoring=scorer, error_score="raise", n_jobs=n_jobs)
        # shared scores are all one; two releases are the same grid point once in a thousand
        assert len({*found}) >= 3
    names = [one.spend_name for one in budget.results()]
    assert sorted(names) == sorted(f"folds #{k}" for k in range(1, 11))
    assert {-budget[name].value for name in names} >= {*found}
    # of a scorer of scikit-learn the second fold is refused, also in a session that is served the first
    scorer = make_scorer(dp.private_mse, epsilon=0.2, accountant=budget, spend_name="x")
    for _ in range(2):
        with pytest.raises(ValueError, match=r"used once in a session.*make_private_scorer number"):
            cross_val_score(Ridge(), X, X[:, 0], scoring=scorer, error_score="raise")
        assert budget.spent == 2.2
        new_session()
        scorer = make_scorer(
            dp.private_mse, epsilon=0.2, accountant=dp.PrivacyAccountant(5, path), spend_name="x"
        )


def test_a_numbered_name_is_not_the_name():
    budget = dp.PrivacyAccountant(5)
    ask(accountant=numbering(budget))
    assert "x" not in budget
    ask(accountant=budget)
    with pytest.raises(ValueError, match=rf"{USED}.*has no path, so that nothing is stored"):
        ask(accountant=budget)
    ask(accountant=numbering(budget))
    assert [one.spend_name for one in budget.history] == ["x #1", "x", "x #2"]


def test_a_file_that_is_opened_again_is_one_session_however_it_is_spelled(path, monkeypatch):
    """As in a cell of a notebook that is run again, or in a loop."""
    number = ask(accountant=dp.PrivacyAccountant(4, path))
    folder = pathlib.Path(path).parent
    monkeypatch.chdir(folder)
    spelled = [path, pathlib.Path(path), "budget.sqlite", folder / "." / "budget.sqlite"]
    if os.name == "posix":
        (folder / "link").symlink_to(path)
        spelled.append(folder / "link")
    for _ in range(2):
        for one in spelled:
            with pytest.raises(ValueError, match=rf"{USED}.*budget\['x'\] returns"):
                ask(accountant=dp.PrivacyAccountant(4, one))
        assert served(path) == number  # and is used then
    assert dp.PrivacyAccountant(4, path).spent == 1


def asked_in_a_copy(budget):
    """Return what a copy of a budget, in another process, says to the name "x"."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            ask(accountant=budget)
        except ValueError as error:
            return str(error)
    return [one.category.__name__ for one in caught]


def test_a_pickled_copy_is_of_the_session_that_it_was_made_in(path):
    budget = dp.PrivacyAccountant(4, path)
    copied = pickle.dumps(budget)
    ask(accountant=budget)
    new_session()  # as in the process that has the copy
    assert USED in asked_in_a_copy(pickle.loads(copied))
    assert USED in asked_in_a_copy(dp.PrivacyAccountant(4, path))
    copied = pickle.dumps(later(path, 4))
    new_session()
    assert asked_in_a_copy(pickle.loads(copied)) == ["StoredReleaseWarning"]
    assert USED in asked_in_a_copy(pickle.loads(copied))
    assert dp.PrivacyAccountant(4, path).spent == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_is_of_the_session_of_its_process(path):
    ask(accountant=dp.PrivacyAccountant(4, path))
    for budget in (dp.PrivacyAccountant(4, path), None):
        child = os.fork()
        if child == 0:
            said = asked_in_a_copy(budget or dp.PrivacyAccountant(4, path))
            os._exit(7 if USED in said else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert dp.PrivacyAccountant(4, path).spent == 1


# ---- several at once, and sudden ends ----------------------------------------------------------------------

ASK = """
import os, signal, sys, warnings
import numpy as np
from dp_metrics import PrivacyAccountant, private_mean_loss
from dp_metrics.release.release import Release
budget = PrivacyAccountant(4, sys.argv[1])
def ask():
    return private_mean_loss(np.linspace(0, 1, 500), epsilon=1, accountant=budget, spend_name="x")
"""


def start(program, *arguments):
    root = str(pathlib.Path(dp.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
    return subprocess.Popen(
        [sys.executable, "-c", ASK + textwrap.dedent(program), *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip


@pytest.mark.gate
def test_of_processes_that_ask_at_once_one_buys_and_the_others_are_refused(path):
    budget = dp.PrivacyAccountant(4, path)
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
    assert all(USED in said for said in found[1:])


def bought_in_threads(budget):
    """Return the numbers that those of four threads get who are not refused."""
    found = []
    refused = in_threads(lambda _: found.append(ask(accountant=budget)), range(4))
    assert len(found) + len(refused) == 4
    assert all(USED in str(said) for said in refused)
    return found


def test_of_threads_that_ask_at_once_one_buys_or_is_served_and_the_others_are_refused(path, monkeypatch):
    for budget in (dp.PrivacyAccountant(4), dp.PrivacyAccountant(4, path)):
        all_of_them, spend = threading.Barrier(4), dp.PrivacyAccountant.spend

        def together(self, *arguments, all_of_them=all_of_them, spend=spend, **options):
            all_of_them.wait()  # all have seen that the name is free
            spend(self, *arguments, **options)

        with monkeypatch.context() as patch:
            patch.setattr(dp.PrivacyAccountant, "spend", together)
            bought = bought_in_threads(budget)
        assert (len(bought), budget.spent) == (1, 1)
    new_session()
    with pytest.warns(dp.exceptions.StoredReleaseWarning):
        assert bought_in_threads(dp.PrivacyAccountant(4, path)) == bought


@pytest.mark.skipif(os.name != "posix", reason="a signal of POSIX")
def test_a_process_killed_between_spend_and_value_leaves_a_spend_without_a_value(path):
    budget = dp.PrivacyAccountant(4, path)
    process = start("Release._kept = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)\nask()", path)
    process.communicate(timeout=100)
    assert process.returncode == -signal.SIGKILL
    assert [one.value for one in budget.results()] == [None]
    with pytest.raises(ValueError, match=USED):
        ask(accountant=budget)
    new_session()
    for look in (lambda: budget["x"], lambda: ask(accountant=dp.PrivacyAccountant(4, path))):
        with pytest.raises(
            ValueError, match=r"no stored value.*its process ended.*choose another spend_name"
        ):
            look()
    assert budget.spent == 1
    ask(accountant=budget, spend_name="x again")
    assert budget.spent == 2


def test_who_asks_while_another_draws_is_refused_at_once_and_served_later(path, monkeypatch):
    keep, waiting = Ledger.keep, []
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "keep", lambda *release: waiting.append(release))
        number = ask(accountant=dp.PrivacyAccountant(4, path))
    new_session()
    with pytest.raises(ValueError, match="no stored value"):
        ask(accountant=dp.PrivacyAccountant(4, path))
    keep(*waiting[0])
    assert served(path) == number


def test_spends_by_hand_or_of_an_earlier_version_have_a_name_and_no_value(path):
    budget = dp.PrivacyAccountant(4, path)
    for name in ("once", "twice", "twice"):
        budget.spend(0.25, name)
    budget = later(path, 4)
    with pytest.raises(ValueError, match=r"no stored value.*by hand or by an earlier version"):
        ask(spend_name="once", accountant=budget)
    for look in (lambda: ask(spend_name="twice", accountant=budget), lambda: budget["twice"]):
        with pytest.raises(ValueError, match=r"2 spends named 'twice'.*choose another"):
            look()
    number = ask(accountant=budget)
    assert served(path) == number


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


DAMAGED = {
    "curve": partial(dp.with_result(dp.private_roc_curve), Y, SCORE),
    "wins": release_of("wins"),
    "frame": partial(
        dp.PrivateMetricFrame,
        metrics="roc_auc", y_true=Y, y_pred=SCORE, sensitive_features=Y, group_labels=[0, 1],
    ),
    "confusion": all_of_labels().update(Y, Y).release,
    "losses": dp.Summary(dp.private_mae, bounds=(0, 1)).update(Y, SCORE).release,
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_json_is_a_value_error(name, path):
    budget = dp.PrivacyAccountant(1, path)
    DAMAGED[name](epsilon=1, accountant=budget, spend_name="x")
    (kept,) = budget._ledger.kept()
    generator, refused = np.random.default_rng(0), 0
    for tree, restored in (
        (json.loads(kept.question), lambda text: stored.restored(text, kept.answer)),
        (json.loads(kept.answer), lambda text: stored.restored(kept.question, text)),
    ):
        known = list(places(tree))
        for place in generator.permutation(len(known))[:120]:
            try:
                restored(json.dumps(changed(tree, known[place], STRANGE[generator.integers(len(STRANGE))])))
            except ValueError:
                refused += 1  # any other exception fails
    assert refused > 30
    for text in ("", "{", "[]", "1", kept.answer[:-9], '{"schema": 1}', "[" * 5000):
        with pytest.raises(ValueError, match="damaged"):
            stored.restored(kept.question, text)
    with pytest.raises(ValueError, match="stored by another version"):
        stored.restored(kept.question, kept.answer.replace('"version": 2', '"version": 3'))


def test_a_field_of_another_type_is_found_when_it_is_read(path):
    budget = dp.PrivacyAccountant(1, path)
    ask(accountant=budget)
    (kept,) = budget._ledger.kept()
    tree = json.loads(kept.answer)
    of_fields = [place for place in places(tree) if place[-2:-1] == ("fields",)]
    assert {place[-1] for place in of_fields} >= {"n", "is_plain", "value", "drawn"}
    for place in of_fields:
        with pytest.raises(ValueError, match="damaged"):
            stored.restored(kept.question, json.dumps(changed(tree, place, "x")))


def test_public_values_come_back_as_they_were_and_no_others_are_written_or_read():
    for value in (
        None, True, 3, -(10**40), 0.1, float("inf"), "é", [1, [2.0]], (1, ("a",)), {"a": {"b": ()}},
        Fraction(2, 3), {("a", "b"): 1, ("a", "c"): 3}, np.float64(0.5), np.float32(0.1), np.bool_(True),
        np.arange(6.0).reshape(2, 3), np.array(["a", "bc"]), np.array([np.nan, -np.inf]),
        np.array([], dtype=np.int8), dp.mechanisms.Hazard(resolution=0.5), date(2026, 11, 23),
    ):  # fmt: skip
        again = stored.decoded(json.loads(json.dumps(stored.encoded(value))))
        assert type(again) is type(value)
        assert made_of(again) == made_of(value)
    for value in (object(), print, {1, 2}, b"x", Y.astype(object), dp.PrivacyAccountant):
        with pytest.raises(TypeError):
            stored.encoded(value)
    for value in ({"type": "object", "fields": {}}, {"function": "print"}, {"bytes": "x"}):
        with pytest.raises(stored.MALFORMED):
            stored.decoded(value)
