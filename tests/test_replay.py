"""Replay: where neighbours have the same random bits and the same draws, all that is public is the same.

The idea is that of Re:cord-play (Cebere et al., "Privacy in Theory, Bugs in Practice", arXiv:2602.17454): a
release of one data set is recorded, and replayed on a neighbour with what was drawn the first time. Then
nothing that anybody sees may differ: what is returned, with notes, noises and limits; warnings and errors;
what the budget file keeps and gives back; what a command prints; and how many bits are asked for, where that
is public.
"""

import re
import sqlite3
import warnings
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout, suppress
from functools import partial
from io import StringIO
from itertools import product
from unittest import mock

import doors
import numpy as np
import pandas as pd
import pytest
from cases import ADD_OR_REMOVE, KINDS, RELATIONS, REPLACE, cases_where, each_kind, valid
from doors import BOTH, PUBLIC_N, RELEASES, people
from helpers import bits_of, new_session, seeded

import dp_metrics as dp
from dp_metrics._random import Entropy
from dp_metrics.cli.main import main
from dp_metrics.mechanisms import AboveThreshold
from dp_metrics.release.release import PreparedQuery

TIME = re.compile(r"\d{4}-\d\d-\d\d(T|,? )\d\d:\d\d(:\d\d)?(\.\d+)?")


class Tape:
    """What the releases of a run drew. Later runs draw it again, whatever their records are."""

    def __init__(self) -> None:
        self._drawn = None
        self.asked = []

    @contextmanager
    def runs(self):
        """Give each run the same bits, and all but the first the same draws; note what bits are asked for."""
        entropy, draw, drawn = seeded(), PreparedQuery.draw, []
        recorded, self.asked = iter(self._drawn or ()), []

        def words(_, size):
            self.asked.append(size)
            return entropy.words(size)

        def replayed(prepared):
            own = draw(prepared)
            drawn.append(own.outputs if self._drawn is None else next(recorded))
            return prepared.result(drawn[-1])

        with mock.patch.object(Entropy, "words", words), mock.patch.object(PreparedQuery, "draw", replayed):
            yield
        assert next(recorded, None) is None  # there were as many draws
        self._drawn = drawn


KEPT = "SELECT label, epsilon, mechanism, neighboring, question, answer, summary FROM history"


def kept(path):
    """Return what a budget file keeps, but for times."""
    if not path.exists():
        return None
    with closing(sqlite3.connect(path)) as file:
        return repr(file.execute(f"{KEPT} LEFT JOIN releases ON spend = id").fetchall())


def all_of(found):
    """Return all that can be seen of what a release returned."""
    if isinstance(found, dp.PrivateEvaluation):
        return found.to_json() + found.to_markdown(), bits_of([found.released, found.results])
    return repr(found), bits_of(found)


def seen(release, path):
    """Return what anybody sees of a release that a budget file pays, and of the same in a later session."""
    seen = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for session in ("first", "stored"):
            new_session()
            try:
                seen[session] = all_of(release(path))
            except Exception as error:
                seen[session] = type(error), str(error)
    seen |= {"said": [(one.category, str(one.message)) for one in caught], "kept": kept(path)}
    return {name: TIME.sub("TIME", repr(one)).replace(str(path), "FILE") for name, one in seen.items()}


def assert_alike(release, neighbours, folder, *, same_bits=True):
    """Check that nobody can tell neighbours by what is seen, given the same draws; return what is seen."""
    tape, of_both, asked = Tape(), [], []
    for place, data in enumerate(neighbours):
        with tape.runs():
            of_both.append(seen(partial(release, data), folder / f"budget {place}"))
        asked.append(tape.asked)
    for name, one in of_both[0].items():
        assert one == of_both[1][name], name
    assert not same_bits or asked[0] == asked[1], "bits"
    return of_both[0]


def paid(path):
    return {"accountant": dp.PrivacyAccountant(100, path=path), "spend_name": "it"}


# ---- metrics -----------------------------------------------------------------------------------------------


def pairs(case, relation, n=60):
    """Yield neighbours: of mixed records, and of records that are all alike but one."""
    data = valid(case, n)
    one = [array[:1] for array in valid(case, n, seed=1)]
    for many in (data, [np.repeat(array[:1], n, axis=0) for array in data]):
        fewer = [array[:-1] for array in many]
        last = [np.concatenate(pair) for pair in zip(fewer, one, strict=True)]
        yield many, fewer if relation == ADD_OR_REMOVE else last


def has_other_bits(mechanism, relation):
    """Return whether what is drawn, and released, first tells how much is drawn afterwards."""
    is_threshold = mechanism == "above_threshold" or isinstance(mechanism, AboveThreshold)
    return is_threshold or (mechanism in (None, "adaptive") and relation == ADD_OR_REMOVE)


def assert_metric_alike(case, relation, mechanism, folder):
    """Check that neighbours look the same by a metric, where it takes the relation."""
    settings = case.under(relation)
    if settings is None:
        return
    options = {**case.bounded, **settings, **({} if mechanism is None else case.by(mechanism))}

    def release(data, path, epsilon):
        return doors.result(case, data, epsilon=epsilon, **options, **paid(path))

    # so much of epsilon that there are two stages, and mostly noise
    for epsilon, two in zip((6.0, 0.05), pairs(case, relation), strict=True):
        place = folder / f"{relation} {epsilon}"
        place.mkdir(parents=True)
        same_bits = not has_other_bits(mechanism, relation)
        assert_alike(partial(release, epsilon=epsilon), two, place, same_bits=same_bits)


@each_kind
@pytest.mark.parametrize("relation", RELATIONS)
def test_a_metric_of_neighbours_looks_the_same(case, relation, tmp_path):
    assert_metric_alike(case, relation, None, tmp_path)


@pytest.mark.gate
@cases_where(lambda case: case.row.mechanism is not None, KINDS)
def test_a_metric_of_neighbours_looks_the_same_by_every_mechanism(case, tmp_path):
    for (number, mechanism), relation in product(enumerate(case.mechanisms), RELATIONS):
        assert_metric_alike(case, relation, mechanism, tmp_path / str(number))


# ---- all else that releases --------------------------------------------------------------------------------


def neighbours(data, relation):
    """Return records, and the same without the last person, or with other records in her place."""
    first, last = data[:-2], data[-2:]
    if relation == ADD_OR_REMOVE:
        return data, data[:-1]
    turned = {name: 1 - last[name] for name in ("y", "a", "b", "p", "q", "group")}
    return data, pd.concat([first, last.assign(**turned, x=1e300, z=-1e300)])


OTHER_BITS = {
    ("choice", REPLACE): "visits candidates until a coin shows heads; how long that takes is not promised",
    ("summary of losses", ADD_OR_REMOVE): "the rate of the second draw follows from what the first released",
}


@pytest.mark.parametrize("alike", [True, pytest.param(False, marks=pytest.mark.gate)])
@pytest.mark.parametrize(
    ("name", "relation"),
    [*product(BOTH, RELATIONS), *product(PUBLIC_N, [REPLACE])],
)
def test_a_release_of_neighbours_looks_the_same(name, relation, alike, tmp_path):
    def release(data, path):
        told = {"neighboring": relation} if relation == ADD_OR_REMOVE else {}
        return RELEASES[name](data, epsilon=1.0, **told, **paid(path))

    two = neighbours(people(alike=alike), relation)
    looks = assert_alike(release, two, tmp_path, same_bits=(name, relation) not in OTHER_BITS)
    assert "Error" not in looks["first"]
    assert looks["kept"] != "[]"


COMMANDS = {
    "score": "--metric private_mae --y-true x --y-pred z --json",
    "score of groups": "--metric recall --y-true y --y-pred a --sensitive group --group-labels 0 1",
    "evaluate": "--y-true y --y-score p --labels 0 1 --output page.md --require recall>=0.7",
    "compare": "--y-true y --pred-a a --pred-b b",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_what_a_command_prints_is_the_same_for_neighbours(name, tmp_path, monkeypatch):
    def release(data, path):
        data.to_csv("people.csv", index=False)
        words = f"{name.split()[0]} people.csv {COMMANDS[name]} --epsilon 1 --spend-name it --total 9".split()
        with redirect_stdout(StringIO()) as printed, redirect_stderr(StringIO()) as told:
            code = main([*words, "--budget", str(path)])
        return code, printed.getvalue(), told.getvalue()

    monkeypatch.chdir(tmp_path)
    looks = assert_alike(release, neighbours(people(), REPLACE), tmp_path)
    assert "epsilon" in looks["first"]


# ---- the tape tells neighbours apart that something tells apart --------------------------------------------


def warn(d):
    if d.y.iloc[-1]:
        warnings.warn("the last person is ill", stacklevel=1)


def refuse(d):
    if d.y.iloc[-1]:
        raise ValueError("the last person is ill")


def note(d):
    return bool(d.y.iloc[-1])


def draw(d):
    if d.y.iloc[-1]:
        Entropy().words(1)


def spend(d):
    with suppress(ValueError):
        dp.private_mae(d.x, d.z, epsilon=2.0 if d.y.iloc[-1] else 1.0, accountant=d.attrs["budget"])


@pytest.mark.parametrize(
    ("leak", "where"), [(warn, "said"), (refuse, "first"), (note, "first"), (draw, "bits"), (spend, "kept")]
)
def test_a_planted_leak_is_seen(leak, where, tmp_path):
    def release(data, path):
        data = data.assign(y=data.y)
        data.attrs["budget"] = dp.PrivacyAccountant(100, path=path)
        told = leak(data)
        return told, dp.private_mae(data.x, data.z, epsilon=1.0, **paid(path))

    with pytest.raises(AssertionError, match=where):
        assert_alike(release, neighbours(people(), REPLACE), tmp_path)
