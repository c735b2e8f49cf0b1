"""The page in a real browser: sections, nothing that overflows, no errors; as a PDF it is short."""

import base64
import re

import pytest
from helpers import seeded
from pages import page

pytestmark = pytest.mark.gate
WIDER = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"


GROUPS = ["women", "men", "a group with quite a long name, and <b>signs</b>", "$x$"]


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "evaluation.html"
    page("scores", 4000, groups=GROUPS, epsilon=3.0).to_html(path)
    return path


def look_at(browser, path, width):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(path.as_uri())


@pytest.mark.parametrize("width", [1280, 768, 400, 320])
def test_page_in_a_browser(browser, file, width):
    look_at(browser, file, width)
    titles = [one.text for one in browser.find_elements("tag name", "h2")]
    told = "In short|How good|For whom|Which is better|Cost and promise|More numbers|Words"
    assert titles == told.split("|")
    assert browser.get_log("browser") == []
    assert browser.execute_script(WIDER) <= 0
    pictures = browser.find_elements("css selector", "td > svg.dots")
    assert len(pictures) >= 30
    for picture in pictures:  # the dot is drawn, within its cell
        inside = (
            "const [dot, cell] = [arguments[0].querySelector('circle, .unsure'), arguments[0].parentElement]"
        )
        inside += ".map(one => one.getBoundingClientRect()); return dot.width > 0 && dot.height >= 0"
        inside += " && dot.left >= cell.left - 4 && dot.right <= cell.right + 4"
        assert browser.execute_script(inside, picture)
    assert "<b>signs</b>" in browser.find_element("tag name", "main").text


def test_what_is_mostly_noise_fits_a_telephone_too(browser, tmp_path):
    """A dotted line says so, also at the far end of a table that scrolls."""
    path = tmp_path / "noise.html"
    page("scores", 4000, groups=GROUPS, epsilon=0.1, random_state=seeded()).to_html(path)
    look_at(browser, path, 400)
    assert browser.find_elements("css selector", "td.noise:last-child .unsure")
    assert browser.execute_script(WIDER) <= 0


def test_as_a_pdf_it_has_six_pages_at_most(browser, file):
    browser.get(file.as_uri())
    found = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    pages = re.findall(rb"/Type\s*/Page\b[^s]", base64.b64decode(found["data"]))
    assert 1 <= len(pages) <= 6
