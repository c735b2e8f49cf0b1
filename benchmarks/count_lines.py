"""Print how large each room of the project is: lines of code, tokens, and lines of templates and data.

Run `python benchmarks/count_lines.py [FOLDER]`; FOLDER is another checkout. A line counts as code where it
holds a part of a token that counts: names, operators, numbers and strings, not comments, docstrings, ends of
lines and indentation. A string is one token, and so is an f-string, as it was for Python 3.11.
"""

import argparse
import ast
import io
import token
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

SILENT = {token.COMMENT, token.NL, token.NEWLINE, token.INDENT, token.DEDENT, token.ENDMARKER}
# since Python 3.12 an f-string is cut into tokens between these; of 3.14 are t-strings
OPEN = {getattr(token, name, None) for name in ("FSTRING_START", "TSTRING_START")}
CLOSE = {getattr(token, name, None) for name in ("FSTRING_END", "TSTRING_END")}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
DATA = {".css", ".csv", ".html", ".inc", ".js", ".json", ".sql", ".toml", ".txt"}


class Size(NamedTuple):
    """What a room holds."""

    code: int = 0
    tokens: int = 0
    data: int = 0

    def plus(self, other: "Size") -> "Size":
        return Size(*map(sum, zip(self, other, strict=True)))


def docstring_places(text: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return where each docstring starts and ends: a line and a column."""
    firsts = [
        node.body[0]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None
    ]
    return [((e.lineno, e.col_offset), (e.end_lineno, e.end_col_offset)) for e in firsts]


def size_of_code(text: str) -> Size:
    """Return the lines and tokens of a Python file."""
    docstrings = dict(docstring_places(text))
    lines: set[int] = set()
    tokens = depth = 0
    end_of_docstring = (0, 0)
    for part in tokenize.generate_tokens(io.StringIO(text).readline):
        end_of_docstring = docstrings.get(part.start, end_of_docstring)
        if part.type in SILENT or part.start < end_of_docstring:
            continue
        lines.update(range(part.start[0], part.end[0] + 1))
        depth -= part.type in CLOSE
        tokens += depth == 0 and part.type not in CLOSE
        depth += part.type in OPEN
    return Size(len(lines), tokens)


def size(files: Iterable[Path]) -> Size:
    """Return the sizes of files together."""
    total = Size()
    for path in files:
        if path.suffix in (".py", ".pyi"):
            total = total.plus(size_of_code(path.read_text(encoding="utf-8")))
        elif path.suffix in DATA or "_templates" in path.parts:
            total = total.plus(Size(data=len(path.read_text(encoding="utf-8").splitlines())))
    return total


def below(folder: Path) -> list[Path]:
    """Return the files at any depth, but for hidden folders, where tools keep what they made."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return [path for path in found if not any(part[0] == "." for part in path.relative_to(folder).parts)]


def rooms(folder: Path) -> Iterator[tuple[str, Size]]:
    """Yield each folder inside a folder, the files beside them, and all."""
    total = Size()
    for room in sorted(path for path in folder.iterdir() if path.is_dir() and path.name != "__pycache__"):
        found = size(below(room))
        total = total.plus(found)
        yield f"{folder.name}/{room.name}", found
    found = size(path for path in folder.iterdir() if path.is_file())
    yield f"{folder.name}/*", found
    yield folder.name, total.plus(found)


def whole(root: Path) -> Iterator[tuple[str, Size]]:
    """Yield every row: the package, its tests, what makes its pages, its benchmarks."""
    yield from rooms(root / "dp_metrics")
    yield from rooms(root / "tests")
    made = {root / "docs" / name for name in ("_build", "api", "notebooks")}
    yield "docs", size(path for path in below(root / "docs") if not made & set(path.parents))
    yield "benchmarks", size(below(root / "benchmarks"))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=Path(__file__).parents[1])
    print(f"{'':32}{'code':>10}{'tokens':>10}{'data':>10}")
    for name, found in whole(parser.parse_args().folder):
        print(f"{name:32}{found.code:10,}{found.tokens:10,}{found.data:10,}")


if __name__ == "__main__":
    main()
