"""A page as a folder of plain files, for those who decide what may leave a secure environment."""

import hashlib
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dp_metrics._packages import import_extra

_CHECKSUMS = "SHA256SUMS"
_ABOUT = f"""\
{{title}}

{{promise}}

numbers.csv  all numbers with their limits and notes, a row each
page.md      the page as text
page.json    the page with all that was released, as `PrivateEvaluation.from_json` reads it
*.png        the pictures
{_CHECKSUMS}   SHA-256 of each of these files; `sha256sum --check {_CHECKSUMS}` compares them
"""


_NOISY = """\
Every number in these files is a noisy one, released with differential privacy at epsilon = {:g}. Rules for
small counts are made for exact ones: here a small or a negative count tells of a person no more than that
epsilon allows, as any other number does. Nothing was suppressed."""
_SEEDED = "The noise of these numbers was drawn from a seed: they are NOT private. Treat them as exact ones."


def check_folder(path: Path) -> None:
    """Raise unless a folder can be made here, or is empty.

    Raises
    ------
    FileExistsError
        If something is there already: no file is written over, and none may be taken for one of the page.
    """
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise FileExistsError(f"{path} is not an empty folder: a page is written to a folder of its own.")


def write_folder(
    path: Path,
    title: str,
    epsilon: float | None,
    texts: Mapping[str, str],
    pictures: Mapping[str, Callable[[Any], object]],
) -> list[Path]:
    """Write the files of a page, and last of all their checksums.

    Parameters
    ----------
    path : Path
        The folder.
    title : str
        Of the page.
    epsilon : float or None
        What the page cost; None of a page that was drawn from a seed.
    texts : mapping of str to str
        Files of text by name.
    pictures : mapping of str to callable
        By name what draws a picture on Axes of matplotlib.
    """
    check_folder(path)
    promise = _SEEDED if epsilon is None else _NOISY.format(epsilon)
    files = {"README.txt": _ABOUT.format(title=title, promise=promise).encode()}
    files |= {name: text.encode() for name, text in texts.items()}
    files |= {f"{name.replace(' ', '_')}.png": _png(draw) for name, draw in pictures.items()}
    sums = [f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items()]
    files[_CHECKSUMS] = "".join(sums).encode()
    path.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (path / name).write_bytes(content)
    return [path / name for name in files]


def _png(draw: Callable[[Any], object]) -> bytes:
    figure = import_extra("matplotlib.figure", "report").Figure(layout="constrained")
    draw(figure.subplots())
    with io.BytesIO() as file:
        figure.savefig(file, format="png", dpi=150, metadata={"Software": None})
        return file.getvalue()
