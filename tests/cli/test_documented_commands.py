"""The commands on the page about the command line print what the page says."""

import doctest
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd

from dp_metrics.cli.main import main

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "command_line.rst"
ALLOWED = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def commands():
    """Return each command of the page with what it prints."""
    blocks = re.findall(r"\.\. code-block:: console\n\n((?:   .*\n|\n)+)", PAGE.read_text(encoding="utf-8"))
    for block in blocks:
        for part in re.split(r"^   \$ ", block, flags=re.MULTILINE)[1:]:
            command, _, printed = part.partition("\n")
            yield shlex.split(command), re.sub(r"^   ", "", printed, flags=re.MULTILINE).strip("\n") + "\n"


def test_the_commands_of_the_page_print_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    ill = rng.integers(0, 2, 3000)
    probability = np.clip(0.2 + 0.6 * ill + 0.1 * rng.normal(size=3000), 0.01, 0.99)
    predicted = np.where(rng.random(3000) < 0.15, 1 - ill, ill)
    words, sexes = np.array(["well", "ill"]), np.array(["female", "male"])
    pd.DataFrame(
        {
            "ill": ill,
            "probability": probability,
            "diagnosis": words[ill],
            "predicted": words[predicted],
            "age": rng.integers(18, 100, 3000),
            "person": rng.integers(0, 2900, 3000),
            "sex": sexes[rng.integers(0, 2, 3000)],
        }
    ).to_csv("test_set.csv", index=False)
    Path("cut_off.csv").write_text("ill,probability\n1,0.75\n0,0.2")
    checker, seen = doctest.OutputChecker(), []
    for (program, *argv), printed in commands():
        assert program == "dp-metrics"
        code = main(argv)
        shown = capsys.readouterr()
        text = shown.err if code else shown.out
        assert checker.check_output(printed, text, ALLOWED), text
        seen.append((argv[0], code))
    assert seen.count(("score", 0)) == 5
    assert seen.count(("score", 1)) == 2
    assert ("budget", 0) in seen
