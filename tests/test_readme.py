"""The README's commands are those that CI runs, and its Python blocks run as they stand."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def test_both_commands_stand_in_the_readme():
    commands = re.findall(r"```console\n(.*?)\n```", README, flags=re.DOTALL)
    assert commands == [
        'pip install ".[evaluation]" && dp-metrics evaluate',
        'pip install ".[dev]" && pytest',
    ]


def test_ci_runs_what_the_readme_says():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for command in ('pip install --quiet ".[dev]"', "dp-metrics evaluate", "\npytest\n"):
        assert command in script


@pytest.mark.parametrize("block", BLOCKS[1:], ids=range(1, len(BLOCKS)))
def test_python_blocks_run(block, capsys):
    exec(compile(block, "README.md", "exec"), {"__name__": "readme"})
    assert capsys.readouterr().out


def test_the_first_block_is_only_short_of_a_model():
    assert BLOCKS[0].startswith("from dp_metrics import private_mse")
