"""What counts as code, and that no room is left out."""

from pathlib import Path

import pytest
from helpers import load_script

ROOT = Path(__file__).parents[2]

MODULE = '''"""Docstring
of two lines."""

# a comment

TEXT = """one

three"""


class A:
    """Docstring."""

    def f(self, x):  # a comment
        "Docstring."
        """No docstring: the second string."""
        return f"{x:{4}} and {f'{x}'}" + \\
            "c"
'''


@pytest.fixture(scope="module")
def counting():
    return load_script(ROOT / "benchmarks" / "count_lines.py")


def test_docstrings_comments_and_blank_lines_do_not_count(counting):
    # TEXT = string | class A : | def f ( self , x ) : | string | return f-string + string
    assert counting.size_of_code(MODULE) == counting.Size(code=3 + 1 + 1 + 1 + 2, tokens=3 + 3 + 8 + 1 + 4)
    assert counting.size_of_code('"""Only a docstring."""\n') == counting.size_of_code("") == (0, 0, 0)


def test_a_room_is_a_folder_with_all_that_is_below_it(counting, tmp_path):
    for name, text in {
        "dp_metrics/a.py": "x = 1\n",
        "dp_metrics/b/c/d.py": "x = 1\ny = 2\n",
        "dp_metrics/b/page.html": "<p>\n</p>\n",
        "docs/measured/table.inc": "x\n",
        "docs/_build/index.html": "x\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "tests").mkdir()
    assert {room: size for room, size in counting.whole(tmp_path) if any(size)} == {
        "dp_metrics/b": (2, 6, 2),
        "dp_metrics/*": (1, 3, 0),
        "dp_metrics": (3, 9, 2),
        "docs": (0, 0, 1),
    }
