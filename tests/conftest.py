import locale
import math
import os
import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from dp_metrics.inputs import options

# Tests simulate no noise by a huge epsilon, also where they make errors of all warnings.
_LARGEST_EPSILON, options._LARGEST_EPSILON = options._LARGEST_EPSILON, math.inf


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items):
    """Mark what the gate runs besides the fast suite.

    Of a test that takes long (`gate`) these are all cases but those that are slow themselves; of any other
    that has no case in the fast suite the first one, unless it is weekly.
    """
    for item in items:
        if item.get_closest_marker("gate") and not item.get_closest_marker("slow"):
            item.add_marker("slow")
            item.add_marker("sample")
    run = [item for item in items if not item.get_closest_marker("slow") or item.get_closest_marker("sample")]
    seen = {item.nodeid.partition("[")[0] for item in run}
    for item in items:
        test = item.nodeid.partition("[")[0]
        if test not in seen and not item.get_closest_marker("weekly"):
            seen.add(test)
            item.add_marker("sample")


@pytest.fixture(scope="module")
def own_error_state():
    """Ignore what NumPy says of overflows, as each public door does: for tests of what lies behind them."""
    with np.errstate(all="ignore"):
        yield


@pytest.fixture
def large_epsilons_warn(monkeypatch):
    """Warn of a large epsilon, as the package does."""
    monkeypatch.setattr(options, "_LARGEST_EPSILON", _LARGEST_EPSILON)


# The same examples in every run: a failure is a change of the code, never of the luck.
settings.register_profile(
    "reproducible",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("reproducible")


@pytest.fixture(scope="session")
def german_locale(tmp_path_factory):
    """Return a folder of locales: one has decimal commas, and is made here where the C library can."""
    folder, usual = tmp_path_factory.mktemp("locales"), locale.setlocale(locale.LC_ALL)
    if shutil.which("localedef"):
        command = ["localedef", "-i", "de_DE", "-f", "UTF-8", folder / "de_DE.UTF-8"]
        subprocess.run(command, capture_output=True, check=False)
    if not any(folder.iterdir()):
        try:  # others have it
            locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")
            locale.setlocale(locale.LC_ALL, usual)
        except locale.Error:
            pytest.skip("there is no German locale, and none can be made")
    return str(folder)


@pytest.fixture(scope="module")
def browser():
    """Return headless Chromium; DP_METRICS_BROWSER=1 says that it must be there."""
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (program and driver):
        missing = "the pages are looked at with Debian's chromium and chromium-driver"
        (pytest.fail if os.environ.get("DP_METRICS_BROWSER") == "1" else pytest.skip)(missing)
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = program
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with webdriver.Chrome(options, webdriver.ChromeService(driver)) as chrome:
        yield chrome
