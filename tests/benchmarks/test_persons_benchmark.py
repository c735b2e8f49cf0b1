"""The benchmark of persons finds that they cost least where each counts once."""

import sys
from pathlib import Path

from helpers import load_script

persons = load_script(Path(__file__).parents[2] / "benchmarks" / "persons.py")


def test_persons_who_count_once_have_less_noise_than_all_their_records(monkeypatch, capsys):
    """Of 60 releases each: the one has about a fourth of the noise of the other."""
    monkeypatch.setattr(sys, "argv", ["persons.py", "--repeats", "60"])
    persons.main()
    told = dict(line.rsplit(": ", 1) for line in capsys.readouterr().out.splitlines())
    assert told.keys() == persons.WAYS.keys()
    assert float(told["each person once"]) < 0.7 * float(told["all records of a person"])
