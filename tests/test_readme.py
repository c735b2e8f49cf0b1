"""The README's commands are those that CI runs, and its Python blocks run as they stand."""

import re
from pathlib import Path

from catalogue import PUBLIC_METRICS
from helpers import list_table

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def test_both_commands_stand_in_the_readme():
    commands, _ = re.findall(r"```console\n(.*?)\n```", README, flags=re.DOTALL)
    assert commands.splitlines() == [
        'pip install ".[evaluation]" && dp-metrics evaluate',
        'pip install ".[dev]" && pytest',
    ]


def test_ci_runs_what_the_readme_says():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for command in ('pip install --quiet ".[dev]"', "dp-metrics evaluate", "\npytest\n"):
        assert command in script


def test_python_blocks_run_one_after_the_other(capsys):
    assert len(BLOCKS) > 2
    namespace = {"__name__": "readme"}
    for block in BLOCKS[1:]:
        exec(compile(block, "README.md", "exec"), namespace)
        assert capsys.readouterr().out


def test_the_table_of_functions_names_every_metric():
    table = README.split("<!-- metrics")[1].split("<!-- end")[0]
    named = set(re.findall(r"`(private_\w+)`", table))
    assert named == {*PUBLIC_METRICS}


def test_the_table_of_functions_is_short():
    rows = README.split("<!-- metrics")[1].split("<!-- end")[0].count("\n| `private_")
    assert 8 <= rows <= 10
    assert len(README.splitlines()) <= 141


def test_the_table_of_errors_is_part_of_that_of_its_script():
    """`tests/test_docs.py` compares the long table with what docs/error_table.py computes."""
    short = [line.strip("| ").split(" | ") for line in README.splitlines() if line.startswith("| ")]
    start = next(i for i, row in enumerate(short) if row[0] == "errors of the model")
    header, _, *rows = short[start:]
    long_header, *long_rows = list_table(ROOT / "docs" / "error_table.inc")
    columns = [long_header.index(cell) for cell in header]
    assert len(rows) >= 4
    for row in rows:
        assert row in [[long_row[i] for i in columns] for long_row in long_rows]


def test_pictures_and_pages_that_the_readme_links_to_are_there():
    targets = re.findall(r"\]\((?!https?:)(.*?)\)", README)
    assert len(targets) > 3
    for target in targets:
        assert (ROOT / target).is_file(), target


def test_the_first_block_is_only_short_of_a_model():
    assert BLOCKS[0].startswith("from dp_metrics import private_mse")
