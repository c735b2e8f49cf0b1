"""The report: one page that needs nothing else, readable by a browser."""

import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest

from dp_metrics.evaluation.report import report_page, write_report
from dp_metrics.evaluation.results import ResultsError, ResultsFile
from dp_metrics.evaluation.studies import CURVES

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture
def rows(make_row):
    found = [
        make_row(
            figure=figure, metric=metric, column=column, mechanism=m, epsilon=e, repeat=i,
            release=2.0 + 0.1 * 2**k / e,
        )
        for figure, metric, column in (("mse", "mse", ""), ("variance", "variance", "cnt"))
        for k, m in enumerate(CURVES)
        for e in (0.1, 1.0, 4.0)
        for i in range(2)
    ]  # fmt: skip
    found += [
        make_row(figure="asymmetry", dataset="simulated", metric="uniform", mechanism=m, repeat=i,
                 setting=f"asymmetry={i / 40:.3f}", expected_error=1.0 + i * (m == "inverse_sensitivity"))
        for i in range(20)
        for m in ("inverse_sensitivity", "paper", "hazard")
    ]  # fmt: skip
    return found


class Balanced(HTMLParser):
    """Check that elements are closed in the order of their opening."""

    VOID = frozenset(("meta", "br", "img", "link", "hr"))

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.ids = [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_page(rows):
    page = report_page(rows)
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    assert len(set(parser.ids)) == len(parser.ids)
    # panels and legends of mse, variance, asymmetry (its legends are inside) and illustrations
    assert parser.seen.count("svg") == (1 + 1) + (1 + 1) + 2 + (3 + 1)
    assert 'name="viewport" content="width=device-width, initial-scale=1"' in page
    # nothing is fetched: no scripts, style sheets, images or fonts, and every reference is within the page
    assert not {"script", "link", "img", "iframe"} & set(parser.seen)
    assert not re.search(r"@import|url\((?!#)", page)
    targets = set(re.findall(r'(?:href="|url\()#([^")]+)', page))
    assert targets <= set(parser.ids)
    for words in ("What we found", "agrees with the paper", "Does privacy cost anything", "git revision"):
        assert words in page
    for words in ("abc", "numpy=2", "All numbers of this figure", "CC BY 4.0", "seeded"):
        assert words in page


def test_write(tmp_path, rows, capsys):
    stored = ResultsFile(tmp_path)
    stored.prepare()
    stored.append(rows)
    stored.path.write_bytes(stored.path.read_bytes()[:-5])
    assert write_report(tmp_path) == tmp_path / "report.html"
    assert f"line {len(rows) + 1} is incomplete" in capsys.readouterr().err
    assert (tmp_path / "report.html").read_text(encoding="utf-8").endswith("</html>\n")


def test_no_results(tmp_path):
    with pytest.raises(ResultsError, match=r"there are no results in .*dp-metrics reproduce"):
        write_report(tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no chromium or chrome here")
@pytest.mark.parametrize("width", [390, 1200])
def test_in_a_browser(tmp_path, rows, width):
    path = tmp_path / "report.html"
    # the page is wider than the window if the title says so once it is shown
    script = (
        "<script>document.title = 'width ' + document.documentElement.scrollWidth + ' of ' + "
        "window.innerWidth + ', pictures ' + [...document.querySelectorAll('svg')].filter("
        "s => s.getBoundingClientRect().height > 20).length</script>"
    )
    path.write_text(report_page(rows).replace("</body>", f"{script}</body>"), encoding="utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"]
    flags += ["--disable-background-networking", f"--user-data-dir={tmp_path / 'profile'}"]
    flags += [f"--window-size={width},1000"]

    def browse(*more):
        return subprocess.run(
            [BROWSER, *flags, *more, path.as_uri()], capture_output=True, text=True, timeout=120, check=True
        ).stdout

    title = re.search(r"<title>width (\d+) of (\d+), pictures (\d+)</title>", browse("--dump-dom"))
    assert title is not None
    assert int(title[1]) <= int(title[2])
    assert int(title[3]) == 10
    browse(f"--screenshot={tmp_path / 'page.png'}")
    from matplotlib.image import imread

    picture = imread(tmp_path / "page.png")
    assert picture.shape[1] == width
    assert np.ptp(picture) > 0.5  # something is to be seen
