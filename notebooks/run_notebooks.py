"""Run the notebooks and store what they print: python notebooks/run_notebooks.py [NOTEBOOK ...]."""

import base64
import io
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from PIL import Image

FOLDER = Path(__file__).parent


def executed(path: Path) -> nbformat.NotebookNode:
    """Return a notebook with the outputs of a run in a folder of its own."""
    os.environ.pop("MPLBACKEND", None)  # under another one than Jupyter's, no picture would be in a notebook
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        for script in FOLDER.glob("*.py"):
            shutil.copy(script, folder)
        NotebookClient(
            notebook, timeout=900, kernel_name="python3", resources={"metadata": {"path": folder}}
        ).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # the times of the run
        for output in cell.get("outputs", []):
            for shown in (output, output.get("data", {})):
                shown.update({kind: anywhere(shown[kind]) for kind in ("text", *TEXTS) if kind in shown})
            if "image/png" in output.get("data", {}):
                output.data["image/png"] = smaller(output.data["image/png"])
    notebook.metadata.pop("language_info", None)
    return notebook


TEXTS = ("text/plain", "text/html")


def anywhere(text: str) -> str:
    """Return what a notebook printed, without the temporary folders of this machine."""
    return re.sub(rf"{re.escape(tempfile.gettempdir())}/\w+/", "", text)


def smaller(picture: str) -> str:
    """Return a picture of few colours, in base64."""
    with io.BytesIO(base64.b64decode(picture)) as file, io.BytesIO() as small:
        Image.open(file).convert("RGB").quantize(32).save(small, "PNG", optimize=True)
        return base64.b64encode(small.getvalue()).decode()


def main() -> None:
    """Run and store."""
    for path in map(Path, sys.argv[1:] or sorted(FOLDER.glob("*.ipynb"))):
        nbformat.write(executed(path), path)
        print(path)


if __name__ == "__main__":
    main()
