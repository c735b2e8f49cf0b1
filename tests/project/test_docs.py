"""The documentation builds without a warning or the network, looks right in a browser, and is true."""

import csv
import doctest
import os
import posixpath
import re
import shutil
import sys
import warnings
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
from helpers import list_table, load_script, loop_over, printed_by
from test_public_surface import PUBLIC

from dp_metrics.analysis.auditing import AUDITED
from dp_metrics.cli.main import _parser as command_line
from dp_metrics.mechanisms import MECHANISMS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.rst"))


class Links(HTMLParser):
    """Collects what a page links to, and what in it can be linked to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors = {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.targets += [attributes[name] for name in ("href", "src") if attributes.get(name)]
        self.anchors |= {attributes[name] for name in ("id", "name") if attributes.get(name)}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build a copy of the documentation, so that nothing is left in the source tree."""
    source = tmp_path_factory.mktemp("docs") / "docs"
    shutil.copytree(DOCS, source, ignore=shutil.ignore_patterns("api", "notebooks", "_build"))
    shutil.copytree(ROOT / "notebooks", source.parent / "notebooks")
    shutil.copy(ROOT / "CONTRIBUTING.md", source.parent)
    output = source / "_build" / "html"
    proxies = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
    settings = {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "default"}
    environment = {**os.environ, **dict.fromkeys(proxies, "http://127.0.0.1:9"), **settings}  # no network
    options = ("-q", "-W", "--keep-going", "-j", "2")
    printed_by(sys.executable, "-m", "sphinx", *options, source, output, env=environment)
    return output


@pytest.fixture(scope="module")
def site(built):
    return {path.relative_to(built).as_posix(): Links(path) for path in built.rglob("*.html")}


@pytest.mark.gate
@pytest.mark.parametrize(
    ("asked", "page"),
    [
        ("Fairness", "groups.html"),
        ("confidence interval", "how_sure.html"),
        ("private_mse", "api/generated/dp_metrics.private_mse.html"),
    ],
)
def test_the_search_leads_to_the_right_page_first(built, browser, asked, page):
    browser.get(f"{(built / 'search.html').as_uri()}?q={asked.replace(' ', '+')}")
    wait = import_module("selenium.webdriver.support.ui").WebDriverWait(browser, 20)
    first, *_ = wait.until(lambda shown: shown.find_elements("css selector", "ul.search li a"))
    found = first.get_attribute("href").partition("#")[0].partition("?")[0]
    browser.get("about:blank")
    browser.get_log("browser")  # a file may not read others for excerpts, of which other tests shall not know
    assert found == (built / page).as_uri()


@pytest.mark.gate
def test_every_public_name_has_a_page(site):
    names = [f"{module}.{name}" for module, several in PUBLIC.items() for name in several]
    for name in names:
        page = site[f"api/generated/{name}.html"]
        assert any(anchor.endswith(name.rsplit(".")[-1]) for anchor in page.anchors)


@pytest.mark.gate
@loop_over("path", sorted((ROOT / "notebooks").glob("*.ipynb")))
def test_every_notebook_has_a_page_with_its_code_outputs_and_pictures(site, built, path):
    assert f"notebooks/{path.stem}.html" in site["index.html"].targets
    cells = nbformat.read(path, as_version=4).cells
    html = (built / "notebooks" / f"{path.stem}.html").read_text(encoding="utf-8")
    code = [cell.source for cell in cells if cell.cell_type == "code"]
    assert html.count('class="cell_input docutils') == len(code) > 0
    drawn = re.findall(r'<img [^>]*src="\.\./_images/\w+\.png"', html)
    assert len(drawn) >= max(1, sum("plt.show()" in source for source in code))
    assert 'class="output stream' in html
    assert "Warning:" not in html


@pytest.mark.gate
def test_no_internal_link_is_dead_and_nothing_is_loaded_from_elsewhere(site):
    dead = []
    for name, page in site.items():
        for target in page.targets:
            url = urlsplit(target)
            if url.scheme in ("http", "https", "mailto"):
                continue
            folder = posixpath.dirname(name)
            path = posixpath.normpath(posixpath.join(folder, unquote(url.path))) if url.path else name
            if path.endswith(".html") and (
                path not in site or unquote(url.fragment) not in site[path].anchors
            ):
                dead.append((name, target))
    assert dead == []


WRONG = """
const page = document.documentElement;
const missing = [...document.images].filter(one => one.naturalWidth == 0).map(one => "no picture " + one.src);
const boxes = innerWidth < 1280 ? [page] : [page, ...document.querySelectorAll("pre, table")];
const wide = boxes.filter(one => one.scrollWidth > one.clientWidth);
return [...missing, ...wide.map(one => "too wide: " + one.innerText.slice(0, 40))];
"""


@pytest.mark.gate
def test_every_page_shows_its_pictures_without_an_error_and_fits_a_desk_and_a_telephone(browser, built):
    """On a telephone tables and code may scroll, each in its box."""
    pages, wrong = sorted(built.rglob("*.html")), []
    assert len(pages) > 100
    for page in pages:
        browser.get(page.as_uri())
        errors = [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
        for width in (1280, 400):
            size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            assert browser.execute_script("return innerWidth") == width
            errors += browser.execute_script(WRONG)
        wrong += [f"{page.relative_to(built)}: {text}" for text in errors]
    assert wrong == []


@pytest.mark.gate
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)  # each draws words of its own
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        failed, _ = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert failed == 0


def test_the_rates_of_the_membership_attack_are_those_of_the_demonstration():
    load_script(ROOT / "notebooks" / "output_laws.py")
    attack = load_script(ROOT / "notebooks" / "membership_attack.py")
    header, exact, limit, largest, median = list_table(DOCS / "measured" / "membership.inc")
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


def claims():
    """Return the rows of the table of claims."""
    text = (DOCS / "guarantee.rst").read_text(encoding="utf-8").split("Claim, evidence, where\n---")[1]
    _, *rows = csv.reader(line.strip() for line in text.splitlines() if line.startswith('   "'))
    return rows


def is_there(target):
    """Return whether a path, a test in a file, or a command of the table exists."""
    if target.startswith("dp-metrics "):
        return bool(re.search(rf"^    {target.split()[1]}\b", command_line(None).format_help(), re.MULTILINE))
    path, _, test = target.removeprefix("python ").partition("::")
    return (ROOT / path).exists() and (not test or f"def {test}(" in (ROOT / path).read_text("utf-8"))


def test_every_claim_has_evidence_and_a_place_that_exist():
    rows = claims()
    assert len(rows) > 40
    for claim, evidence, where in rows:
        assert claim
        named = re.findall(r"``([^`]+)``(\s+of\s+[0-9a-f]{7}\b)?", evidence)
        assert named, f"no test and no command for: {claim}"
        # of what a commit has, tests/benchmarks/test_mentioned_files.py asks the commit
        assert [target for target, commit in named if not commit and not is_there(target)] == []
        pages = re.findall(r":doc:`(\w+)`", where)
        assert pages or re.search(r"`.+`", where), claim
        assert all((DOCS / f"{page}.rst").exists() for page in pages)
        assert all(map(is_there, re.findall(r"``([^`]+)``", where)))


def test_the_table_of_the_audit_is_that_of_the_audited_metrics():
    """Rows, columns and gaps: the numbers take the command minutes."""
    lines = (DOCS / "measured" / "audit.inc").read_text(encoding="utf-8").split(":class: wide\n\n")[1]
    header, *rows = csv.reader(lines.splitlines(), skipinitialspace=True)
    assert {*header[1:]} == MECHANISMS.keys()
    assert len(rows) > 30
    for name, *cells in rows:
        has = {by for by, cell in zip(header[1:], cells, strict=True) if cell}
        assert has == AUDITED[name.strip()][2].keys()
        assert all(0.5 < float(cell) <= 1 for cell in cells if cell)


@pytest.mark.slow
@pytest.mark.parametrize("n", [100, 1000])
@pytest.mark.parametrize("table", ["error_table", "median_table"])
def test_a_table_of_errors_is_that_of_its_script(table, n, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    errors, medians = import_module("error_table"), import_module("median_table")
    kinds = errors.LOSSES if table == "error_table" else medians.KINDS
    header, *rows = list_table(DOCS / f"{table}.inc")
    assert header[2:6] == [f"epsilon {epsilon:g}" for epsilon in errors.EPSILONS]
    rows = [row for row in rows if row[1] == f"{n:,}"]
    assert [row[0] for row in rows] == [*kinds]
    for kind, _, *cells in rows:
        if table == "error_table":
            expected = errors.relative_errors(kind, n)
        else:
            expected = [medians.signed_median(kind, n, epsilon) for epsilon in errors.EPSILONS]
        assert [float(cell) for cell in cells] == pytest.approx(expected, rel=0.06)
