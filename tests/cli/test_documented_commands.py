"""The commands on the pages about the command line and the paper print what the pages say."""

import doctest
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dp_metrics.cli.main import main

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "command_line.rst"
PAPER = ROOT / "docs" / "accuracy.rst"
ALLOWED = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def commands(page):
    """Return each command of a page with what it prints."""
    text = page.read_text(encoding="utf-8").replace("\\\n", "")
    for block in re.findall(r"\.\. code-block:: console\n\n((?:   .*\n|\n)+)", text):
        for part in re.split(r"^   \$ ", block, flags=re.MULTILINE)[1:]:
            command, _, printed = part.partition("\n")
            yield shlex.split(command), re.sub(r"^   ", "", printed, flags=re.MULTILINE).strip("\n") + "\n"


@pytest.mark.gate
def test_the_commands_of_the_page_print_what_it_says(capsys):
    assert doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8").failed == 0
    people = pd.read_csv("test_set.csv")
    rng, ill = np.random.default_rng(0), people.ill.to_numpy()
    words, sexes = np.array(["well", "ill"]), np.array(["female", "male"])
    people["diagnosis"] = words[ill]
    people["predicted"] = words[np.where(rng.random(3000) < 0.15, 1 - ill, ill)]
    people["other"] = words[np.where(rng.random(3000) < 0.3, 1 - ill, ill)]
    people["age"] = rng.integers(18, 100, 3000)
    people["person"] = rng.integers(0, 2900, 3000)
    people["sex"] = sexes[rng.integers(0, 2, 3000)]
    people.to_csv("test_set.csv", index=False)
    Path("cut_off.csv").write_text("ill,probability\n1,0.75\n0")
    checker, seen = doctest.OutputChecker(), []
    for (program, *argv), printed in commands(PAGE):
        assert program == "dp-metrics"
        code = main(argv)
        shown = capsys.readouterr()
        text = shown.err if code else shown.out
        assert checker.check_output(printed, text, ALLOWED), text
        seen.append((argv[0], code))
    assert seen.count(("score", 0)) == 5
    assert seen.count(("score", 4)) == 2
    assert {("budget", 0), ("compare", 0), ("plan", 0), ("evaluate", 0)} <= {*seen}


@pytest.mark.slow
def test_the_first_commands_of_the_paper_print_what_the_page_says(capsys):
    first = list(commands(PAPER))[:2]
    assert [argv[1] for argv, _ in first] == ["reproduce", "reproduce"]
    for (_, *argv), printed in first:
        assert main(argv) == 0
        assert capsys.readouterr().out == printed
