"""The proofs in Coq speak of this code: the same constants, nothing left open, a true list of theorems."""

import ast
import inspect
import itertools
import math
import os
import random
import re
import shutil
import subprocess
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from helpers import MAX, distances_of, loop_over, loss_bounds, loss_query, nearest, printed_by, var_bounds

from dp_metrics import private_mse
from dp_metrics.mechanisms.adaptive import _LARGEST_SHARE, _LEAST_SHARE
from dp_metrics.mechanisms.hazard import PEAK, TAIL, Hazard, largest_ratio, share_of_rank
from dp_metrics.quantities.ranks import CLASS_SHARE
from dp_metrics.release.query import COUNT_SHARE
from dp_metrics.sensitivity.score_bounds import RankedScores, ranking_bounds

pytestmark = pytest.mark.usefixtures("own_error_state")

ROOT = Path(__file__).parents[2]
PROOFS = ROOT / "proofs"
SOURCES = {path.name: path.read_text(encoding="utf-8") for path in sorted(PROOFS.glob("*.v"))}
LAWS = {
    "monotonic": Hazard(resolution=0.1).output_distribution(loss_bounds([0.0, 1.0]), 1.0),
    "general": Hazard(resolution=0.1).output_distribution(var_bounds([0.0, 1.0]), 1.0),
}


def constants():
    found = re.findall(r"^Definition (\w+) : (?:nat|R) := ([\d /]+)\.$", SOURCES["Constants.v"], re.MULTILINE)
    return {name: Fraction(value.replace(" ", "")) for name, value in found}


def rows():
    """Return the theorems in the table of the README, and their files."""
    text = (PROOFS / "README.md").read_text(encoding="utf-8")
    return re.findall(r"^\| `(\w+)` \| `(\w+\.v)` \|", text, re.MULTILINE)


def test_the_constants_of_the_proofs_are_those_of_the_code():
    epsilon = Fraction("0.7")
    assert COUNT_SHARE == CLASS_SHARE
    assert constants() == {
        "tail": TAIL,
        "peak": PEAK,
        "power_monotonic": LAWS["monotonic"].power,
        "power_general": LAWS["general"].power,
        "share_monotonic": epsilon / share_of_rank(epsilon, monotonic=True),
        "share_general": epsilon / share_of_rank(epsilon, monotonic=False),
        "share_first": _LEAST_SHARE,
        "share_first_of_few": _LARGEST_SHARE,
        "share_count": COUNT_SHARE,
    }


@loop_over("law", LAWS.values())
def test_the_share_below_the_peak_and_the_margin_are_those_of_the_code(law):
    assert "Definition share_below : R := INR t / (INR t + INR p)." in SOURCES["HazardLaw.v"]
    assert law.below == Fraction(TAIL, TAIL + law.power)
    (margin,) = re.findall(r"Definition margin : R := (.*)\.$", SOURCES["Margin.v"], re.MULTILINE)
    ranks = law.counts.size // 2 - 1
    assert law._margin == eval(margin.replace("INR c", str(ranks)), {"u": 2.0**-53})


def test_the_ratios_that_are_certified_are_those_of_the_code():
    lemma = r"Lemma ratio_\w+ : (\d+) / 2 \^ (\d+) < exp \(- \(([\d /]+)\)\) <= (\d+) / 2 \^ (\d+)\."
    certified = re.findall(lemma, SOURCES["Ratio.v"])
    assert len(certified) == 8
    for below, bits, share, above, same_bits in certified:
        numerator, *denominators = map(int, share.split("/"))
        exact = Fraction(numerator)
        for denominator in denominators:
            exact /= denominator
        assert largest_ratio(exact) == Fraction(int(above), 2 ** int(bits))
        assert (int(below) + 1, bits) == (int(above), same_bits)


# What follows copies definitions of the proofs, in rational numbers. Those with a public n, of means and of
# variances, are the oracles of tests/sensitivity/test_output_bounds.py and tests/quantities/test_weights.py.


def of_mean_with_private_n(x, cap, rank):
    n, ordered = len(x), sorted(x)
    sizes = {a: n + rank - 2 * a for a in range(min(rank, n) + 1) if 2 * a < n + rank}
    lower = 0 if n <= rank else min(sum(ordered[: n - a]) / size for a, size in sizes.items())
    return lower, max((sum(ordered[a:]) + (rank - a) * cap) / size for a, size in sizes.items())


def test_the_definition_of_the_bounds_of_a_mean_with_private_n_gives_the_numbers_of_the_program():
    rng = random.Random(0)
    for _ in range(150):
        cap = rng.choice([1.0, 0.1, 3.3])
        values = [rng.choice([0.0, cap, cap * rng.random()]) for _ in range(rng.randint(1, 5))]
        ranks = len(values) + 2
        computed = loss_query(values, cap).stats(ranks).bounds(ranks, True)
        for rank in range(1, ranks + 1):
            exact = of_mean_with_private_n([*map(Fraction, values)], Fraction(cap), rank)
            assert (computed.lower[rank - 1], computed.upper[rank - 1]) == tuple(map(nearest, exact))


def twice_loss(records):
    pairs = itertools.product([s for p, s in records if p], [s for p, s in records if not p])
    return sum((positive <= negative) + (positive < negative) for positive, negative in pairs)


def lowest_loss(records, rank):
    n, count = len(records), sum(p for p, _ in records)
    if rank >= min(count, n - count):
        return Fraction(1, 2) if rank == 0 else Fraction(0)
    quotients = []
    for y in itertools.combinations(records, n - rank):
        kept = sum(p for p, _ in y)
        pairs = max(2 * i * (n - i) for i in range(kept, kept + rank + 1))
        quotients.append(Fraction(twice_loss(y), pairs))
    return min(quotients)


@loop_over("n", [1, 2, 3, 6])
def test_the_definition_of_the_bounds_of_auc_gives_the_numbers_of_the_program(n):
    # up to the order of scores, all data sets with at most two different ones
    kinds = itertools.product([True, False], [0.0, 1.0])
    for records in itertools.combinations_with_replacement(kinds, n):
        is_positive, scores = (np.array(column) for column in zip(*records, strict=True))
        computed = ranking_bounds(RankedScores.of(scores, is_positive), n, private_n=False)
        negated = [(p, -s) for p, s in records]
        assert computed.value == nearest(lowest_loss(records, 0)) == nearest(1 - lowest_loss(negated, 0))
        for rank in range(1, n + 1):
            assert computed.lower[rank - 1] == nearest(lowest_loss(records, rank))
            assert computed.upper[rank - 1] == nearest(1 - lowest_loss(negated, rank))


def reach_at(x, ends, limit, least, trim, move):
    """Copy `greatest_reach` of Reach.v: places moved inwards, the values ascending."""
    n, (a, b) = len(x), ends or (0, 0)
    h = min(trim, max(n - 1, 0) // 2)
    width = max(1, n - 2 * h)

    def place(i):
        return a if i < 0 else b if i >= n else x[i]

    def mean(start):
        return Fraction(nearest(Fraction(sum(map(place, range(start, start + width))), width)))

    most = Fraction(0)
    for t in range(6):
        i = max(least, n * t // 10)
        if ends is None and i + move > n:
            continue
        if ends is None and abs(move) > h:
            most = max(most, limit if move < 0 else Fraction(0))
            continue
        far = [place(n - i - move) - mean(h + move), mean(h - move) - place(i - 1 + move)]
        weight = Fraction(1 / math.sqrt(1 - t / 10))
        most = max(most, nearest(weight * max(Fraction(nearest(d)) for d in far)))
    return min(limit, most)


def test_the_definition_of_the_distances_gives_the_numbers_of_the_program():
    rng = random.Random(1)
    seen = set()
    for _ in range(600):
        values = [rng.choice([-1.0, 2.5, rng.uniform(-1, 2.5)]) for _ in range(rng.randint(0, 12))]
        ends, limit = rng.choice([((-1.0, 2.5), 3.5), (None, MAX)])
        least, ranks = rng.randint(1, 14), rng.randint(1, 9)
        given = (-math.inf, math.inf) if ends is None else ends
        found = distances_of(np.sort(np.array(values)), given, limit, least, ranks)
        x = sorted(map(Fraction, values))
        exact = ends and tuple(map(Fraction, ends))
        settings = exact, Fraction(limit), least, ranks
        lower = [reach_at(x, *settings, move) for move in range(ranks + 1)]
        upper = [reach_at(x, *settings, -move) if move < least else limit for move in range(1, ranks + 1)]
        assert [found[0], *found[1]] == lower
        assert [*found[2]] == upper
        seen.add((len(values) == 0, least > len(values), ranks > len(values), ends is None))
    assert len(seen) == 10  # no records are fewer than k and than the ranks


def test_every_file_is_checked_by_the_build():
    sources = re.search(r"^SOURCES = ((?:.*\\\n)*.*)$", (PROOFS / "Makefile").read_text(), re.MULTILINE)
    assert {*sources[1].replace("\\", "").split(), "Assumptions.v"} == set(SOURCES)


def test_the_code_that_comments_name_is_there():
    """By these names `.ci/proofs --if-changed` tells whether the code has changed."""
    for name, text in SOURCES.items():
        for defined, file in re.findall(r"\[(\w+)(?:\.\w+)?\]\s+in\s+([\w/]+\.py)", text):
            (code,) = (ROOT / "dp_metrics").rglob(file)
            assert re.search(rf"^(?:def|class) {defined}\b", code.read_text("utf-8"), re.MULTILINE), name
        for file in re.findall(r"[a-z_]+\.py\b", text):
            assert [*(ROOT / "dp_metrics").rglob(file), *(ROOT / "tests").rglob(file)], (name, file)


def test_the_code_and_the_files_that_the_readme_names_are_there():
    text = (PROOFS / "README.md").read_text(encoding="utf-8")
    files = {*re.findall(r"`([\w.]+/[\w./]+)`", text)}
    assert len(files) > 10
    assert [name for name in sorted(files) if not (ROOT / name).exists()] == []
    code = dict.fromkeys(inspect.signature(private_mse).parameters)
    for path in (ROOT / "dp_metrics").rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            targets = node.targets if isinstance(node, ast.Assign) else [node]
            code |= {getattr(one, "name", getattr(one, "id", "")): node for one in targets}
    column = "".join(re.findall(r"^\| `\w+` \| `\w+\.v` \|.*\|(.*)\|$", text, re.MULTILINE))
    named = {*re.findall(r"`([\w.]+)(?:=[^`]*)?`", column)} - {"_random.py"}
    assert len(named) > 50
    for thing, _, own in (name.partition(".") for name in named):
        node = code[thing]
        assert not own or re.search(rf"\b{own}\b", ast.unparse(node)), (thing, own)


def test_the_readme_lists_theorems_that_exist_and_are_asked_for_their_axioms():
    listed = rows()
    assert len(listed) == len(set(listed)) > 40
    for theorem, name in listed:
        assert re.search(rf"^Theorem {theorem}\b", SOURCES[name], re.MULTILINE), theorem
    floats = re.findall(r"^Lemma (ratio_\w+)", SOURCES["Ratio.v"], re.MULTILINE)
    assert re.findall(r"@(\w+)", SOURCES["Assumptions.v"]) == [theorem for theorem, _ in listed] + floats
    everywhere = re.findall(r"^Theorem (\w+)", "\n".join(SOURCES.values()), re.MULTILINE)
    assert sorted(everywhere) == sorted(theorem for theorem, _ in listed)


@pytest.mark.skipif(os.name == "nt" or not shutil.which("git"), reason="needs Bash and Git")
def test_proofs_are_checked_where_they_or_the_code_that_they_name_changed(tmp_path):
    run = partial(printed_by, cwd=tmp_path)

    def commit(path):
        with (tmp_path / path).open("a", encoding="utf-8") as file:
            file.write("\n")
        run("git", "add", ".")
        run("git", "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "--quiet", "--message", path)

    for folder in (".ci", "proofs", "dp_metrics/a"):
        (tmp_path / folder).mkdir(parents=True)
    script = (ROOT / ".ci" / "proofs").read_text().partition("\npackages=")[0]
    (tmp_path / ".ci" / "proofs").write_text(f"{script}\nexit 3\n")  # instead of Coq
    (tmp_path / "proofs" / "A.v").write_text("(** [Law] in named.py. *)")
    (tmp_path / "dp_metrics" / "a" / "named.py").touch()
    run("git", "init", "--quiet", "--initial-branch=main")
    for changed, code in {
        "README.md": 3,  # there is no commit before
        "dp_metrics/a/other.py": 0,
        "dp_metrics/a/named.py": 3,
        "proofs/A.v": 3,
        ".ci/proofs": 3,
    }.items():
        commit(changed)
        run("bash", ".ci/proofs", "--if-changed", code=code)
    run("git", "checkout", "--quiet", "-b", "other")
    for changed, code in (("README.md", 0), ("proofs/A.v", 3), ("README.md", 3)):  # since it left main
        commit(changed)
        run("bash", ".ci/proofs", "--if-changed", code=code)


@pytest.mark.slow
@pytest.mark.weekly(reason="half a minute of Coq; the gate checks what changed")
@pytest.mark.skipif(
    shutil.which("coqc") is None, reason="needs Coq and its libraries: .ci/proofs installs them"
)
@pytest.mark.parametrize(
    ("name", "old", "new", "wrong"),
    [
        ("Constants.v", "", "", ""),
        ("Ratio.v", "split; interval with (i_prec 90). Qed.", "Admitted.", "Something above is assumed"),
        ("Ratio.v", "Lemma", "Hypothesis absurd : False.\nLemma", "local-declaration"),
        ("Constants.v", "share_monotonic : nat := 4", "share_monotonic : nat := 3", "./HazardRelease.v"),
        ("Constants.v", "power_general : nat := 5", "power_general : nat := 6", "./HazardRelease.v"),
    ],
    ids=["as it is", "admitted", "absurd", "share", "power"],
)
def test_the_check_fails_where_a_proof_does(tmp_path, name, old, new, wrong):
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "proofs", tmp_path / ".ci")
    shutil.copytree(PROOFS, tmp_path / "proofs", ignore=shutil.ignore_patterns("*.vo*", "*.glob", ".*"))
    changed = SOURCES[name].replace(old, new, 1)
    assert (changed == SOURCES[name]) == (wrong == "")
    (tmp_path / "proofs" / name).write_text(changed, encoding="utf-8")
    done = subprocess.run([tmp_path / ".ci" / "proofs"], capture_output=True, text=True, timeout=600)
    assert (done.returncode == 0) == (wrong == "")
    assert wrong in done.stdout + done.stderr
