"""The proofs in Coq speak of this code: the same constants, nothing left open, a true list of theorems."""

import re
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import pytest
from helpers import loss_bounds, var_bounds

from dp_metrics.mechanisms._hazard_law import PEAK, TAIL, largest_ratio
from dp_metrics.mechanisms.adaptive import _SHARE, _SHARE_OF_FEW
from dp_metrics.mechanisms.hazard import Hazard, share_of_rank

ROOT = Path(__file__).parents[1]
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
    assert constants() == {
        "tail": TAIL,
        "peak": PEAK,
        "power_monotonic": LAWS["monotonic"].power,
        "power_general": LAWS["general"].power,
        "share_monotonic": epsilon / share_of_rank(epsilon, monotonic=True),
        "share_general": epsilon / share_of_rank(epsilon, monotonic=False),
        "share_first": _SHARE,
        "share_first_of_few": _SHARE_OF_FEW,
    }


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_the_share_below_the_peak_and_the_margin_are_those_of_the_code(law):
    assert "Definition share_below : R := INR t / (INR t + INR p)." in SOURCES["HazardLaw.v"]
    assert law.below == Fraction(TAIL, TAIL + law.power)
    (margin,) = re.findall(r"Definition margin : R := (.*)\.$", SOURCES["Margin.v"], re.MULTILINE)
    ranks = law.runs.counts.size // 2 - 1
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


def test_nothing_is_left_open():
    assert SOURCES
    for name, text in SOURCES.items():
        assert not re.search(r"\b(Admitted|admit|give_up|Axioms?|Parameters?|Conjectures?)\b", text), name
        assert text.count("Proof.") == text.count("Qed."), name


def test_the_readme_lists_theorems_that_exist_and_are_asked_for_their_axioms():
    listed = rows()
    assert len(listed) == len(set(listed)) > 40
    for theorem, name in listed:
        assert re.search(rf"^Theorem {theorem}\b", SOURCES[name], re.MULTILINE), theorem
    assert re.findall(r"@(\w+)", SOURCES["Assumptions.v"]) == [theorem for theorem, _ in listed]
    everywhere = re.findall(r"^Theorem (\w+)", "\n".join(SOURCES.values()), re.MULTILINE)
    assert sorted(everywhere) == sorted(theorem for theorem, _ in listed)


def test_every_file_is_checked_by_the_build():
    sources = re.search(r"^SOURCES = ((?:.*\\\n)*.*)$", (PROOFS / "Makefile").read_text(), re.MULTILINE)
    assert {*sources[1].replace("\\", "").split(), "Assumptions.v"} == set(SOURCES)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("coqc") is None, reason="needs Coq")
@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("Ratio.v", "split; interval with (i_prec 90). Qed.", "Admitted."),
        ("Constants.v", "share_monotonic : nat := 4", "share_monotonic : nat := 3"),
        ("Constants.v", "power_general : nat := 5", "power_general : nat := 6"),
    ],
    ids=["admitted", "share", "power"],
)
def test_the_check_fails_where_a_proof_does(tmp_path, name, old, new):
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "proofs", tmp_path / ".ci")
    shutil.copytree(PROOFS, tmp_path / "proofs", ignore=shutil.ignore_patterns("*.vo*", "*.glob", ".*"))
    changed = SOURCES[name].replace(old, new, 1)
    assert changed != SOURCES[name]
    (tmp_path / "proofs" / name).write_text(changed, encoding="utf-8")
    done = subprocess.run([tmp_path / ".ci" / "proofs"], capture_output=True, text=True)
    assert done.returncode != 0
