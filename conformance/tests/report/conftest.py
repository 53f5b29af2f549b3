# conformance/tests/report/conftest.py: a headless Chromium for the tests of pages.
"""The fixture `browser` is one browser for the whole session; each test opens its own page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from selenium import webdriver


@pytest.fixture(scope="session")
def browser() -> Iterator[webdriver.Chrome]:
    programs = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
    missing = [name for name, path in programs.items() if path is None]
    assert not missing, f"{missing} not found: tools/setup installs chromium and chromium-driver"
    options = webdriver.ChromeOptions()
    options.binary_location = programs["chromium"]
    # The pages are our own files, and containers rarely allow the sandbox's namespaces.
    for switch in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                   "--no-first-run", "--disable-background-networking", "--window-size=1400,900"):  # fmt: skip
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(programs["chromedriver"]))
    driver.set_page_load_timeout(60)
    driver.set_script_timeout(60)
    yield driver
    driver.quit()
