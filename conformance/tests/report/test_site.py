# conformance/tests/report/test_site.py: the site of several devices and dates, in headless Chromium.
from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.support.ui import WebDriverWait

import synthetic
from torch_conformance.report import history, site

# Label -> the shares of bad cells and of cells that fall back.
DEVICES = {
    "cpu": (0.0, 0.0),
    "npu on board": (0.02, 0.2),
    "npu with the null driver": (0.0, 1.0),
    "npu with the fallback forbidden": (0.2, 0.0),
}
DAYS = (18, 19, 20)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of four devices: the results of two days, and the history of three."""
    folder, out = tmp_path_factory.mktemp("results"), tmp_path_factory.mktemp("site") / "out"
    for number, (label, (bad, away)) in enumerate(DEVICES.items()):
        for day in DAYS:
            results = synthetic.results(
                seed=day, entries=15, bad=bad, away=away, label=label,
                started=f"2026-11-{day}T0{number}:00:00Z",
            )  # fmt: skip
            history.append(folder / "history.jsonl", history.row(results))
            if day != DAYS[0]:
                run = folder / label / str(day)
                run.mkdir(parents=True)
                (run / "results.json").write_text(json.dumps(results))
    assert site.main([str(folder), "--out", str(out)]) == 0
    return out


def table(browser: Chrome, region: str) -> dict[str, list[str]]:
    """First column -> the others; a heading without values is left out."""
    rows = browser.execute_script(
        "return [...document.querySelectorAll(`[aria-label='${arguments[0]}'] tr`)]"
        ".map(r => [...r.children].map(c => c.innerText))",
        region,
    )
    return {name: values for name, *values in rows if values}


def test_devices_stand_side_by_side(browser: Chrome, made: Path) -> None:
    browser.get((made / "index.html").as_uri())
    rows = table(browser, "Devices side by side")
    assert rows[""] == sorted(DEVICES)
    cpu, forbidden = rows[""].index("cpu"), rows[""].index("npu with the fallback forbidden")
    assert rows["pass share"][cpu] == "100%"
    assert rows["verdict"][cpu] == "✓ green"
    assert rows["verdict"][forbidden].startswith("✗")
    assert [value != "0" for value in rows["✗ fail"]] == [False, True, True, False]
    assert float(rows["fallback"][rows[""].index("npu with the null driver")].strip("%")) == 100
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0


def test_shares_of_each_suite_and_dtype_are_those_of_the_cells(browser: Chrome, made: Path) -> None:
    browser.get((made / "index.html").as_uri())
    results = synthetic.results(seed=DAYS[-1], entries=15, bad=0.2, away=0)
    judged = [c for c in results["cells"] if (c["suite"], c["dtype"]) == ("op", "float32")]
    judged = [c["status"] for c in judged if c["status"] != "skip"]
    share = f"{judged.count('pass') / len(judged):.2%}"
    link = browser.find_element("css selector", "td:nth-child(4) a[href*='suite=op&dtype=float32']")
    assert link.get_attribute("textContent") == share


def test_links_lead_to_the_filtered_page_of_the_run(browser: Chrome, made: Path) -> None:
    browser.get((made / "index.html").as_uri())
    addresses = browser.execute_script(
        "return [...document.querySelectorAll('a')].map(a => a.href.baseVal ?? a.getAttribute('href'))"
    )
    pages = {made / unquote(urlsplit(address).path) for address in addresses}
    assert len(pages) == len(DEVICES) * 2
    assert all(page.is_file() for page in pages)
    browser.find_element("css selector", "a[href*='status=fail']").click()
    WebDriverWait(browser, 20, 0.01).until(
        lambda b: b.execute_script("return document.querySelector('#shown')?.textContent")
    )
    pressed = browser.find_elements("css selector", "[aria-pressed=true]")
    assert [button.get_attribute("data-value") for button in pressed] == ["fail"]


def test_the_trend_spans_the_history(browser: Chrome, made: Path) -> None:
    browser.get((made / "index.html").as_uri())
    charts = browser.find_elements("css selector", "svg.chart")
    assert len(charts) == len(DEVICES)
    for chart in charts:
        assert len(chart.find_elements("css selector", "circle.line0")) == len(DAYS)
        assert "pass" in chart.text
        assert "2026-11-18" in chart.text
    assert len(browser.find_elements("css selector", "svg.spark")) == len(DEVICES)


def test_reasons_for_skips_are_counted(browser: Chrome, made: Path) -> None:
    browser.get((made / "index.html").as_uri())
    rows = table(browser, "Reasons for skips")
    results = synthetic.results(seed=DAYS[-1], entries=15, bad=0, away=0)
    reason = "the device declares no float32"
    assert rows[reason][0] == str(sum(c["reason"] == reason for c in results["cells"]))


def test_one_run_makes_a_site(browser: Chrome, tmp_path: Path) -> None:
    results = synthetic.results(entries=2, bad=0, label="<b>odd</b> & name")
    (tmp_path / "results.json").write_text(json.dumps(results))
    assert site.main([str(tmp_path), "--out", str(tmp_path / "out")]) == 0
    assert site.main([str(tmp_path), "--out", str(tmp_path / "out")]) == 0
    browser.get((tmp_path / "out" / "index.html").as_uri())
    assert table(browser, "Devices side by side")[""] == ["<b>odd</b> & name"]


def test_the_shards_of_a_run_are_one_run(browser: Chrome, tmp_path: Path) -> None:
    whole = synthetic.results(entries=8, bad=0.1)
    for part in (3, 1, 2):
        cells = whole["cells"][part - 1 :: 3]
        shard = {"cells": cells, "shard": [part, 3], "started": f"2026-11-20T0{part}:00:00Z"}
        (tmp_path / str(part)).mkdir()
        (tmp_path / str(part) / "results.json").write_text(json.dumps(whole | shard))
    assert site.main([str(tmp_path), "--out", str(tmp_path / "out")]) == 0
    browser.get((tmp_path / "out" / "index.html").as_uri())
    rows = table(browser, "Devices side by side")
    assert rows["all"] == [f"{len(whole['cells']):,}"]
    assert "interrupted" not in rows["verdict"][0]
    (tmp_path / "2" / "results.json").unlink()
    assert site.main([str(tmp_path), "--out", str(tmp_path / "out")]) == 0
    browser.get((tmp_path / "out" / "index.html").as_uri())
    assert "interrupted" in table(browser, "Devices side by side")["verdict"][0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, "holds no results.json"),
        ("{", "is not JSON"),
        ('{"schema": "torch-conformance/9"}', "found 'torch-conformance/9'"),
    ],
)
def test_what_cannot_be_shown_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, expected: str
) -> None:
    run = tmp_path / "some" / "run"
    run.mkdir(parents=True)
    if text is not None:
        (run / "results.json").write_text(text)
    assert site.main([str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert expected in error
    assert str(tmp_path if text is None else run / "results.json") in error
    assert not (tmp_path / "out" / "index.html").exists()


def test_a_folder_that_is_not_there_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert site.main([str(tmp_path / "absent"), "--out", str(tmp_path / "out")]) == 2
    assert f"{tmp_path / 'absent'} is no folder" in capsys.readouterr().err
