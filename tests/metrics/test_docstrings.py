"""What `help` shows of a metric and of a summary: each parameter, its default, what is guaranteed."""

import inspect
import pydoc
import re

import pytest
from helpers import loop_over

import dp_metrics as dp
from dp_metrics.metrics import METRICS
from dp_metrics.metrics._settings import RESULT, shares_docstring

FUNCTIONS = {name: row.function for name, row in METRICS.items()} | {"Summary": dp.Summary.release}
RELEASES = {name: getattr(dp, name) for name in dp.__all__ if name.startswith("private_")} | FUNCTIONS
SECTIONS = ("Parameters", "Returns", "Raises", "Warns", "See Also", "Notes", "References", "Examples")


def sections_of(name):
    """Return the sections of the docstring of a release by their titles, in order."""
    _, *parts = re.split(r"^(\w[\w ]*)\n-+\n", inspect.getdoc(RELEASES[name]), flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


@loop_over("name", FUNCTIONS)
def test_a_docstring_has_all_sections_in_order_and_no_word_in_braces(name):
    told = sections_of(name)
    assert [*told] == [title for title in SECTIONS if title in told]
    assert {*told} >= {"Parameters", "Returns", "Raises", "Warns", "Notes"}
    parameters = inspect.signature(RELEASES[name]).parameters
    assert ("`groups` all records of any one group" in told["Notes"]) == ("groups" in parameters)
    assert ("any one record is added or removed" in told["Notes"]) == ("neighboring" in parameters)
    assert not re.search(r"{\w+}", inspect.getdoc(RELEASES[name]))
    assert RESULT.strip() in told["Returns"]


@loop_over("name", RELEASES)
def test_the_docstring_names_every_parameter_and_its_default(name):
    told = sections_of(name)
    assert told["Notes"].startswith("Guarantee: replacing any one record")
    entries = dict(re.findall(r"^\*{0,2}(\w+) : (.*)$", told["Parameters"], re.MULTILINE))
    parameters = dict(inspect.signature(RELEASES[name]).parameters)
    parameters.pop("self", None)
    assert [*entries] == [*parameters]
    for parameter in parameters.values():
        _, _, stated = entries[parameter.name].partition(", default=")
        default = "" if parameter.default is inspect.Parameter.empty else repr(parameter.default)
        assert stated.replace('"', "'") == default


def test_what_a_docstring_describes_itself_stays_and_what_nobody_describes_is_noticed():
    def release(epsilon: float, bounds=(0, 1), *, labels=None) -> float:
        """Release it.

        Parameters
        ----------
        bounds : tuple of float, default=(0, 1)
            As I say.

        Returns
        -------
        float
            It.

        Notes
        -----
        Mine.
        """

    text = shares_docstring()(release).__doc__
    assert "bounds : tuple of float, default=(0, 1)\n    As I say.\nlabels : array-like" in text
    assert f"    It.\n{RESULT}\n" in text
    assert text.endswith("which are public.\n\nMine.\n")

    def other(epsilon, unheard_of):
        """Release it."""

    with pytest.raises(KeyError, match="unheard_of"):
        shares_docstring()(other)


@loop_over("name", dp.__all__)
def test_a_signature_names_types_as_they_are_written(name):
    shown = getattr(dp, name)
    try:
        signature = str(inspect.signature(shown))
    except ValueError:  # an exception's own
        return
    for noise in ("numpy._typing", "Union[", "np.random", "_array_like", "Optional[", "collections.abc"):
        assert noise not in signature
    text = pydoc.render_doc(shown, renderer=pydoc.plaintext)
    assert len(text.split("\n")[2]) < 1200
