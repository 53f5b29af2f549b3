# conformance/tests/report/test_page.py: the report page in headless Chromium: counts, filters, keys, size, no network.
from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.support.ui import WebDriverWait

import synthetic
from torch_conformance.report import page as report
from torch_conformance.report import schema

FAIL = {
    "status": "fail",
    "message": "sample 3: </script><img src=x onerror=window.broken=1> & more",
}
FALLEN = {"status": "pass", "fallbacks": {"aten::svd": 3}, "native": None}


def open_page(browser: Chrome, path: Path, results: dict[str, Any], address: str = "") -> None:
    schema.check(results, "synthetic")
    report.write_page(results, path)
    show(browser, path, address)


def show(browser: Chrome, path: Path, address: str = "") -> float:
    """Seconds until the matrix stands."""
    browser.get("about:blank")
    start = time.perf_counter()
    browser.get(path.as_uri() + address)
    WebDriverWait(browser, 60, 0.01).until(lambda _: script(browser, "#shown"))
    return time.perf_counter() - start


def script(browser: Chrome, selector: str) -> str:
    return browser.execute_script(
        "return document.querySelector(arguments[0]).textContent", selector
    )


def press(browser: Chrome, *keys: str) -> None:
    ActionChains(browser).send_keys(*keys).perform()


def active(browser: Chrome) -> str:
    """The text of the row and the label of the field that the keyboard has reached."""
    return browser.execute_script(
        "const cell = document.getElementById(document.activeElement.getAttribute('aria-activedescendant'));"
        "return cell.parentNode.querySelector('.name').title + ' | ' + cell.ariaLabel"
    )


def focused(browser: Chrome) -> str:
    return browser.execute_script("return document.activeElement.id")


def chip_counts(browser: Chrome, facet: str) -> dict[str, int]:
    return dict(
        browser.execute_script(
            "return [...document.querySelectorAll('#filter-' + arguments[0] + ' button')]"
            ".map(b => [b.dataset.value, Number(b.dataset.count)])",
            facet,
        )
    )


def thread_seconds(browser: Chrome) -> float:
    """What the page's thread has used; unlike the clock it leaves the machine's other work out."""
    browser.execute_cdp_cmd("Performance.enable", {})
    metrics = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return next(metric["value"] for metric in metrics if metric["name"] == "ThreadTime")


@pytest.fixture
def small() -> dict[str, Any]:
    """20 entries; the last fails in float16 forward and falls back in float32 forward."""
    results = synthetic.results(entries=20, bad=0, away=0)
    for cell in results["cells"]:
        cell["native"] = True if cell["status"] == "pass" else None
        if cell["entry"] == "op.entry_00019" and cell["aspect"] == "forward":
            cell.update({"float16": FAIL, "float32": FALLEN}.get(cell["dtype"], {}))
    return results


def test_printed_counts_are_those_of_the_results(browser: Chrome, tmp_path: Path) -> None:
    results = synthetic.results(seed=3, entries=60, bad=0.1)
    open_page(browser, tmp_path / "page.html", results)
    cells = results["cells"]
    for facet in ("status", "suite", "dtype", "aspect"):
        counted = Counter(cell[facet] for cell in cells)
        assert {k: n for k, n in chip_counts(browser, facet).items() if n} == counted, facet
    passed = [c for c in cells if c["status"] == "pass"]
    ran = chip_counts(browser, "ran")
    assert sum(ran.values()) == len(passed)
    assert ran["fallback"] == sum(bool(c["fallbacks"]) for c in passed)
    assert ran["native"] == sum(c["native"] is True for c in passed)
    bad = sum(c["status"] in schema.BAD for c in cells)
    assert script(browser, "#verdict") == f"✗ {bad:,} of {len(cells):,} cells are bad"
    assert script(browser, "#shown").startswith(f"{len(cells):,} of {len(cells):,} cells, 60 of 60")


def test_a_green_and_an_interrupted_run_say_so(browser: Chrome, tmp_path: Path) -> None:
    results = synthetic.results(entries=3, bad=0) | {"complete": False, "shard": [2, 3]}
    open_page(browser, tmp_path / "page.html", results)
    assert script(browser, "#verdict").startswith("✓ all")
    assert "interrupted" in script(browser, "#facts")
    assert "shard 2 of 3" in script(browser, "#facts")


def test_a_status_is_told_by_a_symbol_and_in_words(
    browser: Chrome, tmp_path: Path, small: dict[str, Any]
) -> None:
    open_page(browser, tmp_path / "page.html", small, "#columns=both&q=entry_00019")
    fields = browser.execute_script(
        "return [...document.querySelectorAll('.cell')].map(c => [c.ariaLabel, c.textContent])"
    )
    assert {"float16 forward: fail": "✗", "float32 forward: pass, not native": "○"}.items() <= dict(
        fields
    ).items()
    assert all(symbol for label, symbol in fields if label != "no cell")
    assert len({status.symbol for status in schema.STATUSES} | {report.AWAY, report.PARTLY}) == 10


def test_filters_show_only_what_matches_and_stay_in_the_address(
    browser: Chrome, tmp_path: Path, small: dict[str, Any]
) -> None:
    page = tmp_path / "page.html"
    open_page(browser, page, small)
    browser.find_element("css selector", '[data-value="fail"]').click()
    assert script(browser, "#shown") == "1 of 2,640 cells, 1 of 20 entries"
    assert script(browser, ".column") == "float16"
    assert "status=fail" in browser.current_url
    show(browser, page, "#status=fail&dtype=float32")
    assert script(browser, "#shown") == "0 of 2,640 cells, 0 of 20 entries"
    assert browser.find_element("id", "none").is_displayed()
    browser.find_element("id", "reset").click()
    assert script(browser, "#shown").startswith("2,640")
    for facet, value in (("ran", "fallback"), ("suite", "op"), ("aspect", "forward")):
        browser.find_element("css selector", f'#filter-{facet} [data-value="{value}"]').click()
    assert script(browser, "#shown") == "1 of 2,640 cells, 1 of 20 entries"


def test_everything_is_reached_by_keyboard(
    browser: Chrome, tmp_path: Path, small: dict[str, Any]
) -> None:
    open_page(browser, tmp_path / "page.html", small)
    assert focused(browser) == "grid"
    press(browser, "/", "e", "n", "t", "r", "y", "_", "0", "0", "0", "1")
    assert focused(browser) == "search"
    assert "10 of 20 entries" in script(browser, "#shown")
    press(browser, Keys.ESCAPE)
    assert focused(browser) == "grid"
    ActionChains(browser).key_down(Keys.CONTROL).send_keys(Keys.END).key_up(Keys.CONTROL).perform()
    assert active(browser).startswith("op.entry_00019 | bool")
    press(browser, Keys.HOME, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert active(browser) == "op.entry_00019 | float16: fail, 1 of 11 cells"
    press(browser, Keys.ENTER)
    assert focused(browser) == "detail"
    assert FAIL["message"] in script(browser, "#detail-body")
    assert "samples" in script(browser, "#detail-body")
    assert browser.execute_script("return window.broken") is None
    press(browser, Keys.ESCAPE)
    assert focused(browser) == "grid"
    press(browser, Keys.ARROW_UP, Keys.PAGE_UP, Keys.ARROW_LEFT, Keys.ARROW_DOWN)
    assert active(browser).startswith("op.entry_0001")


def test_roles_and_counts_for_screen_readers(browser: Chrome, tmp_path: Path) -> None:
    open_page(browser, tmp_path / "page.html", synthetic.results(entries=300))
    grid = browser.find_element("id", "grid")
    assert (grid.get_attribute("aria-rowcount"), grid.get_attribute("aria-colcount")) == (
        "301",
        "13",
    )
    wrong = browser.execute_script(
        "return [...document.querySelectorAll('#grid [role=row]')].filter(row => !row.ariaRowIndex ||"
        "[...row.children].some(c => !c.role || (c.role !== 'presentation' && !c.ariaColIndex))).length"
    )
    assert wrong == 0
    unnamed = browser.execute_script(
        "return [...document.querySelectorAll('button, input, select')].filter(e =>"
        "!e.textContent.trim() && !e.ariaLabel).length"
    )
    assert unnamed == 0


def test_panels_sum_up_reasons_and_fallbacks(
    browser: Chrome, tmp_path: Path, small: dict[str, Any]
) -> None:
    open_page(browser, tmp_path / "page.html", small)
    browser.find_element("id", "show-reasons").click()
    skips = sum(c["status"] == "skip" for c in small["cells"])
    rows = browser.find_elements("css selector", "#detail-body tbody tr")
    counts = [int(row.text.split()[0]) for row in rows]
    assert sum(counts) == skips + 1
    assert rows[0].text.startswith("1 ✗ fail sample 3")
    browser.find_element("id", "show-fallbacks").click()
    assert script(browser, "#detail-body tbody") == "13aten::svd"
    browser.find_element("id", "show-keys").click()
    for status in schema.STATUSES:
        assert status.meaning in script(browser, "#detail-body")


def test_the_page_loads_nothing_else(
    browser: Chrome, tmp_path: Path, small: dict[str, Any]
) -> None:
    open_page(browser, tmp_path / "page.html", small)
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    errors = [entry for entry in browser.get_log("browser") if "favicon" not in entry["message"]]
    assert errors == []
    assert "://" not in report.page(small)


def test_more_than_100_000_cells_open_and_scroll_at_once(browser: Chrome, tmp_path: Path) -> None:
    results, page = synthetic.results(entries=1000, bad=0.05), tmp_path / "page.html"
    assert len(results["cells"]) == 132_000
    report.write_page(results, page)
    assert page.stat().st_size < 2_000_000
    assert min(show(browser, page) for _ in range(3)) <= 2
    for columns in ("dtype", "both"):
        show(browser, page, f"#columns={columns}")
        assert browser.execute_script("return document.querySelectorAll('.cell').length") < 4000
        before = thread_seconds(browser)
        browser.execute_async_script(
            "const done = arguments[0], grid = document.getElementById('grid'); let at = 0;"
            "(function step() { grid.scrollTop = 700 * at; at++ < 20 ? requestAnimationFrame(step) : done(); })()"
        )
        assert (thread_seconds(browser) - before) / 20 < 0.1
    seconds = browser.execute_script(
        "const start = performance.now(); const search = document.getElementById('search');"
        "search.value = '00042'; search.dispatchEvent(new Event('input'));"
        "document.getElementById('grid').getBoundingClientRect();"
        "return (performance.now() - start) / 1000"
    )
    assert script(browser, "#shown") == "132 of 132,000 cells, 1 of 1,000 entries"
    assert seconds < 0.5


def test_a_dark_scheme_is_offered(browser: Chrome, tmp_path: Path, small: dict[str, Any]) -> None:
    grounds = []
    for scheme in ("light", "dark"):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        open_page(browser, tmp_path / "page.html", small)
        grounds.append(
            browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        )
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert grounds[0] == "rgb(255, 255, 255)" != grounds[1]


def test_floating_point_comes_first() -> None:
    names = ["bool", "int64", "uint8", "complex64", "float64", "float16", "bfloat16", "int8"]
    assert sorted(names, key=report.dtype_order) == [
        "bfloat16", "float16", "float64", "complex64", "int8", "int64", "uint8", "bool",
    ]  # fmt: skip
