"""No test depends on luck: the words that the operating system would give have a seed, the name of the test.

So what passes once passes wherever the code is the same. By the exact laws, a right release lies outside the
range that an example states for up to 6 of 10,000 seeds.
"""

import os
import zlib

# Each of the two test processes has one of the processors: threads of theirs would only wait for each other.
os.environ["OMP_NUM_THREADS"] = "1"
# Nobody looks at the pictures while tests run, and not every system can open a window.
os.environ.setdefault("MPLBACKEND", "Agg")

import numpy as np
import pytest

from dp_metrics._random import Entropy

_os_words = Entropy.words
_generator = np.random.default_rng(0)


def _words(entropy, size):
    """Return words that depend on what has been named last, and on how many were drawn since."""
    return _generator.integers(0, 2**64, size=size, dtype=np.uint64)


Entropy.words = _words


def _start_from(name):
    global _generator
    _generator = np.random.default_rng(zlib.crc32(name.encode()))


def pytest_pycollect_makemodule(module_path):
    """Start the words of what a module releases when it is imported."""
    _start_from(module_path.name)


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef):
    """Start the words of a fixture, whichever test asks for it first."""
    _start_from(fixturedef.argname)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item):
    """Start the words of a test or an example."""
    _start_from(item.name)


@pytest.fixture
def operating_system_words(monkeypatch):
    """Draw from the operating system, as the package does."""
    monkeypatch.setattr(Entropy, "words", _os_words)


@pytest.fixture(autouse=True)
def _examples_leave_no_files(request):
    if isinstance(request.node, pytest.DoctestItem):
        request.getfixturevalue("monkeypatch").chdir(request.getfixturevalue("tmp_path"))
