"""The support window, stated here and derived from SPEC 0 (https://scientific-python.org/specs/spec-0000/).

A version x.y is supported from the day of x.y.0: Python for three years, other packages for two. Older ones
may be, where that costs nothing: `pyproject.toml` has the oldest, and `.ci/run oldest` tests them.

`python .ci/support.py` asks the index for the days, and fails if `pyproject.toml` drops a version that is in
the window. `python .ci/support.py --pins` prints the oldest versions for pip, and asks nobody.
"""

import json
import os
import re
import sys
import tomllib
from datetime import date, timedelta
from pathlib import Path
from urllib.request import Request, urlopen

PYTHON = {"3.11": "2022-10-24", "3.12": "2023-10-02", "3.13": "2024-10-07", "3.14": "2025-10-07"}
"""The first day of each version; no index has these."""


def project() -> dict:
    """Return what `pyproject.toml` says of the project."""
    with open(Path(__file__).parents[1] / "pyproject.toml", "rb") as file:
        return tomllib.load(file)["project"]


def oldest(settings: dict) -> dict[str, str]:
    """Return the lower bounds of the dependencies, of those of the users' extras, and of Polars, by name."""
    extras = settings["optional-dependencies"]
    users = (extra for name, extra in extras.items() if name not in ("dev", "vision"))
    asked = [*settings["dependencies"], *(one for extra in users for one in extra if ">=" in one)]
    asked += [one for one in extras["dev"] if one.startswith("polars")]  # whoever has such frames has Polars
    return dict(re.sub(r"\[.*\]", "", requirement).split(">=") for requirement in asked)


def pins(settings: dict) -> list[str]:
    """Return the oldest supported versions as pip reads them, with their newest mends: "numpy==1.26.*"."""
    return [f"{name}=={version}.*" for name, version in oldest(settings).items()]


def first_days(name: str) -> dict[str, str]:
    """Return the day of each version x.y of a package: that of the first file of x.y.0 in the index."""
    index = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/")
    accept = {"Accept": "application/vnd.pypi.simple.v1+json"}
    with urlopen(Request(f"{index}/{name}/", headers=accept), timeout=60) as answer:
        files = json.load(answer)["files"]
    days: dict[str, str] = {}
    written = re.escape(name).replace(r"\-", "[-_]")
    start = re.compile(written + r"-(\d+\.\d+)\.0[-.](cp|py|tar|zip)", re.IGNORECASE)
    for file in files:
        if found := start.match(file["filename"]):
            day = file["upload-time"][:10]
            days[found[1]] = min(day, days.get(found[1], day))
    return days


def in_window(days: dict[str, str], years: int, today: date) -> str:
    """Return the oldest version that SPEC 0 asks for on a day; the newest, where all are older."""
    start = today - timedelta(days=round(365.25 * years))
    ordered = sorted(days, key=number)
    return next((version for version in ordered if days[version] >= start.isoformat()), ordered[-1])


def number(version: str) -> tuple[int, ...]:
    """Return a version such that versions compare."""
    return tuple(map(int, version.split(".")))


def main() -> int:
    """Print what is supported and what SPEC 0 asks for; 1 if the first is less."""
    settings = project()
    if sys.argv[1:] == ["--pins"]:
        print("\n".join(pins(settings)))
        return 0
    supported = {"python": settings["requires-python"].removeprefix(">="), **oldest(settings)}
    dropped = 0
    for name, version in supported.items():
        python = name == "python"
        asked = in_window(PYTHON if python else first_days(name), 3 if python else 2, date.today())
        dropped += number(version) > number(asked)
        print(f"{name}: {version} and newer are supported; SPEC 0 asks for {asked} and newer")
    return int(dropped > 0)


if __name__ == "__main__":
    sys.exit(main())
