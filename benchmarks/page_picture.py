"""Draw the picture of a page for README and documentation; this needs chromium."""

import base64
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from dp_metrics import private_evaluate

OUTPUT = Path(__file__).parents[1] / "docs" / "_static" / "one_page.png"
SIZE = {"width": 1000, "height": 1720, "deviceScaleFactor": 1, "mobile": False}


def page() -> str:
    """Return a page about made-up people as HTML; its numbers are private, and so differ from run to run."""
    rng = np.random.default_rng(0)
    n = 12_000
    people = pd.DataFrame({"sex": rng.choice(["women", "men"], n)})
    history, blood = rng.normal(size=(2, n))
    risk = 1.2 * history + blood - 1.8
    ill = (rng.random(n) < 1 / (1 + np.exp(-risk))).astype(int)
    new, old = (1 / (1 + np.exp(-score)) for score in (risk, 1.2 * history - 1.8))
    found = private_evaluate(
        ill, y_score=new, epsilon=2.0, labels=[0, 1], threshold=0.3, baseline=old, sensitive_features=people,
        group_labels=["women", "men"], requirements=["recall in each group >= 0.6"],
        title="Will this patient come back?", data_description="12,000 made-up stays", model_name="Readmit 2",
        baseline_name="the history alone", positive_meaning="come back within 30 days", score_name="risk",
        unit_name=("stay", "stays"), person_name="patient",
    )  # fmt: skip
    return found.to_html()


def main() -> None:
    """Write the picture."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    with tempfile.TemporaryDirectory() as folder, webdriver.Chrome(options, service) as chrome:
        file = Path(folder) / "page.html"
        file.write_text(page(), encoding="utf-8")
        chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", SIZE)
        chrome.get(file.as_uri())
        taken = chrome.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
        OUTPUT.write_bytes(base64.b64decode(taken["data"]))
    print(OUTPUT)


if __name__ == "__main__":
    main()
