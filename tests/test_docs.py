"""The documentation builds without a warning or the network, has a page per public name, and is true."""

import doctest
import os
import re
import shutil
import subprocess
import sys
import warnings
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
from test_notebooks import module

import dp_metrics
from dp_metrics import SeededReleaseWarning, private_mean_loss

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.rst"))


class Links(HTMLParser):
    """Collects what a page links to, and what in it can be linked to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors = {""}
        self.unresolved: list[str] = []
        self._open: list[tuple[str, bool]] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.targets += [attributes[name] for name in ("href", "src") if attributes.get(name)]
        self.anchors |= {attributes[name] for name in ("id", "name") if attributes.get(name)}
        is_name = tag == "code" and "xref" in (attributes.get("class") or "")
        self._open.append((tag, is_name))

    def handle_endtag(self, tag):
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        tags = [tag for tag, _ in self._open]
        if any(is_name for _, is_name in self._open) and "a" not in tags:
            self.unresolved.append(data)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build a copy of the documentation, so that nothing is left in the source tree."""
    source = tmp_path_factory.mktemp("docs") / "docs"
    shutil.copytree(DOCS, source, ignore=shutil.ignore_patterns("api", "_build"))
    shutil.copytree(ROOT / "tests", source.parent / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    output = source / "_build"
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", str(source), str(output)],
        capture_output=True,
        text=True,
        env={**without_network(), "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    return {path.relative_to(output).as_posix(): Links(path) for path in output.rglob("*.html")}


def without_network():
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    return {**os.environ, **proxies}


def test_every_public_name_has_a_page(site):
    names = [f"dp_metrics.{name}" for name in dp_metrics.__all__]
    names += [f"dp_metrics.auditing.{name}" for name in import_module("dp_metrics.auditing").__all__]
    for name in names:
        page = site[f"api/generated/{name}.html"]
        assert any(anchor.endswith(name.rsplit(".")[-1]) for anchor in page.anchors)


def test_no_internal_link_is_dead_and_nothing_is_loaded_from_elsewhere(site):
    dead = []
    for name, page in site.items():
        for target in page.targets:
            url = urlsplit(target)
            if url.scheme in ("http", "https", "mailto"):
                continue
            path = (Path(name).parent / unquote(url.path)).as_posix() if url.path else name
            parts = []
            for part in path.split("/"):
                parts = parts[:-1] if part == ".." else [*parts, part]
            path = "/".join(parts)
            if path.endswith(".html") and (
                path not in site or unquote(url.fragment) not in site[path].anchors
            ):
                dead.append((name, target))
    assert dead == []


def test_public_names_in_backquotes_became_links(site):
    missed = {
        (name, text)
        for name, page in site.items()
        for text in page.unresolved
        if text.split(".")[0].split("(")[0] in dp_metrics.__all__
    }
    assert missed == set()


def test_the_theme_and_the_settings_load_nothing_from_the_network():
    settings = (DOCS / "conf.py").read_text(encoding="utf-8")
    for name in ("intersphinx", "mathjax", "http://", "https://"):
        assert name not in settings


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_of_a_page_run(page):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        failed, _ = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert failed == 0


def test_every_metric_stands_in_the_table_of_functions():
    page = (DOCS / "which_function.rst").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w.]+)`", page))
    assert {name for name in dp_metrics.__all__ if name.startswith("private_")} <= named
    assert {name.split(".")[0] for name in named if not name.startswith("numpy")} <= {
        *dp_metrics.__all__,
        *(text.split(".")[0] for text in re.findall(r"``([\w.]+)``", page)),
    }


def table(path: Path) -> list[list[str]]:
    """Return the cells of the list-table of a page."""
    rows: list[list[str]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        found = re.match(r"   (\* -|  -) (.*)", line)
        if found:
            if found[1] == "* -":
                rows.append([])
            rows[-1].append(found[2])
    return rows


def test_the_rates_of_the_membership_attack_are_those_of_the_demonstration():
    module("output_laws")
    attack = module("membership_attack")
    header, exact, limit, largest, median = table(DOCS / "membership.rst")
    assert [float(cell) for cell in header[1:]] == list(attack.EPSILONS)
    assert set(exact[1:]) == {"100.0%"}
    for row, rates in (
        (limit, attack.best_rate(attack.EPSILONS)),
        (largest, attack.success_rates(attack.make_study())),
        (median, attack.success_rates(attack.make_study(50.0))),
    ):
        assert [float(cell[:-1]) for cell in row[1:]] == pytest.approx(
            [100 * rate for rate in rates], abs=0.1
        )


@pytest.fixture
def error_table(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    return import_module("error_table")


def test_the_table_of_errors_is_that_of_its_script(error_table):
    rows = table(DOCS / "error_table.inc")
    assert rows[0][2:-1] == [f"epsilon {epsilon:g}" for epsilon in error_table.EPSILONS]
    assert [row[0] for row in rows[1:]] == [kind for kind in error_table.LOSSES for _ in error_table.RECORDS]
    for row in rows[1:]:
        n = int(row[1].replace(",", ""))
        if n <= 1000:
            expected = error_table.relative_errors(row[0], n)
            assert [float(cell) for cell in row[2:]] == pytest.approx(expected, rel=0.06)


def test_releases_are_off_by_what_the_table_says(error_table):
    losses = error_table.LOSSES["squared error, normal"](np.random.default_rng([0, 1000]), 1000)
    with pytest.warns(SeededReleaseWarning):
        released = [private_mean_loss(losses, epsilon=1.0, random_state=seed) for seed in range(400)]
    measured = np.mean(np.abs(np.array(released) - losses.mean())) / losses.mean()
    expected = error_table.relative_errors("squared error, normal", 1000, (1.0,), sets=1)[0]
    assert measured == pytest.approx(expected, rel=0.3)
