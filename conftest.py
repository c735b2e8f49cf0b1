"""Examples of docstrings and pages ask the operating system for noise; tests give them the same in every run.

By the exact laws, a right release lies outside the range that an example states in up to 6 of 10,000 runs.
"""

import os
import zlib

# Each of the two test processes has one of the processors: threads of theirs would only wait for each other.
os.environ["OMP_NUM_THREADS"] = "1"
# Nobody looks at the pictures while tests run, and not every system can open a window.
os.environ.setdefault("MPLBACKEND", "Agg")

import numpy as np
import pytest

from dp_metrics._random import OSEntropy


@pytest.fixture
def same_words(request, monkeypatch):
    """Let unseeded releases draw words that depend on the name of the test only."""
    generator = np.random.default_rng(zlib.crc32(request.node.name.encode()))
    monkeypatch.setattr(
        OSEntropy, "words", lambda self, size: generator.integers(0, 2**64, size=size, dtype=np.uint64)
    )


@pytest.fixture(autouse=True)
def _examples_draw_the_same_words_and_leave_no_files(request):
    if isinstance(request.node, pytest.DoctestItem):
        request.getfixturevalue("same_words")
        request.getfixturevalue("monkeypatch").chdir(request.getfixturevalue("tmp_path"))
