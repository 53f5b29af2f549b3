"""What is published of the bench comes from the table of medians: pages, charts, the README's rows."""

import re
import subprocess
import sys

import pytest

import cases
import chart
import compile as compile_bench
import deploy
import kernel_cases
import language
import measurements
import medians
import report
import run
from compile_cases import CASES
from pairs import ratio_row
from sandbox import ROOT

pytestmark = pytest.mark.every_run

DISTANCE = 10 ** (1 - medians.DIGITS)
PAGES = ROOT / "docs/measurements"


def test_the_readme_has_eight_rows_that_the_bench_measures():
    measured = set(cases.CASES) | {f"{name}: peak memory" for name in cases.MEMORY}
    assert len(measurements.README_ROWS) == 8
    assert set(measurements.README_ROWS) <= measured


def test_pages_show_the_medians():
    tables = measurements.tables(*measurements.published())
    assert set(tables) == {ROOT / "README.md", ROOT / "docs/measurements/measurements.md"}
    for page, table in tables.items():
        text = page.read_text()
        assert report.put_between(text, table) == text, f"bench/run.py --from-medians: {page.name}"


@pytest.mark.parametrize("kind", sorted(set(run.TABLES) - {"all"}))
def test_a_page_shows_its_medians(kind):
    text = (ROOT / run.TABLES[kind]).read_text()
    table = report.markdown(*run.published(kind))
    assert report.put_between(text, table) == text, f"bench/run.py --{kind} --from-medians"


@pytest.mark.parametrize("kind", ["compile", "compile-opencl"])
def test_the_compilers_page_shows_its_medians(kind):
    text = compile_bench.PAGE.read_text()
    shown = report.put_between(text, compile_bench.shown(kind), kind.replace("compile", "bench"))
    assert shown == text, "bench/compile.py --from-medians"


@pytest.mark.parametrize("bench", [language, deploy])
def test_a_page_of_one_table_shows_its_medians(bench):
    text = bench.TABLE.page.read_text()
    name = bench.__name__
    assert report.put_between(text, bench.TABLE.text()) == text, f"bench/{name}.py --from-medians"


def test_charts_are_drawn_from_the_medians(tmp_path):
    few, families, compiled, spoken = (tmp_path / f"{name}.svg" for name in "abcd")
    chart.draw_few(measurements.chosen(measurements.published()[0]), few)
    chart.draw_families(run.published("kernels")[0], families)
    chart.draw(compile_bench.published("compile")[0], compiled, "the fastest other's")
    language.TABLE.draw(spoken)
    drawn = {"measurements": few, "kernel-speed": families, "compile-speed": compiled,
             "language-speed": spoken}  # fmt: skip
    for name, path in drawn.items():
        assert path.read_text() == (PAGES / f"{name}.svg").read_text(), name


def test_pictures_are_few_and_small():
    pictures = [path for path in (ROOT / "docs").rglob("*") if path.suffix in (".png", ".svg")]
    shown = " ".join(
        page.read_text() for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    )
    for path in pictures:
        assert path.stat().st_size <= 100_000, path
        assert re.search(rf"!\[[^]]*\]\([^)]*\b{re.escape(path.name)}\)", shown), path


def test_every_median_has_a_row_of_the_bench_a_day_and_a_commit():
    found = medians.read_all()
    assert {
        "all",
        "kernels",
        "distributed",
        "opencl",
        "ve",
        "compile",
        "compile-opencl",
        "language",
        "deploy",
    } == set(found)
    for table, kept in found.items():
        names = [one.row.name for one in kept]
        assert len(set(names)) == len(names), table
        for one in kept:
            assert re.fullmatch(r"20\d\d-\d\d-\d\d", one.date), one
            assert re.fullmatch(r"[0-9a-f]{7,}(-dirty)?", one.commit), one
            assert one.row.low <= one.row.value <= one.row.high, one
    measured = {one.row.name for one in found["kernels"]}
    assert measured == set(kernel_cases.KERNELS)


def test_a_row_that_was_not_measured_is_named():
    rows, facts = measurements.published()
    with pytest.raises(ValueError, match=r"gemm 1024.*make bench"):
        measurements.tables([row for row in rows if row.name != "gemm 1024"], facts)


def stamped(*names, date="2026-01-02"):
    rows = [ratio_row(name, 1.0, [2.0, 1.0, 4.0], [3.0, 3.0, 3.0]) for name in names]
    return [medians.Median(row, date, "abc1234", "a, machine", 2, "2.13.0") for row in rows]


def test_the_table_keeps_the_rows(tmp_path):
    path = tmp_path / "medians.csv"
    medians.write("all", stamped("one, two", "three"), path)
    medians.write("kernels", stamped("four"), path)
    medians.write("all", stamped("five²"), path)
    assert {table: [one.row.name for one in kept] for table, kept in medians.read_all(path).items()}
    [kept] = medians.read("all", path)
    [given] = stamped("five²")
    assert kept.row.value == pytest.approx(given.row.value, rel=DISTANCE)
    assert (kept.row.name, kept.date, kept.commit, kept.machine) == (
        "five²", given.date, given.commit, given.machine)  # fmt: skip
    assert [one.row.name for one in medians.read("kernels", path)] == ["four"]
    with pytest.raises(ValueError, match=r"no rows of 'opencl'.*--publish"):
        medians.read("opencl", path)


def test_cases_that_are_measured_again_take_the_place_of_the_older():
    first, second, third = list(CASES)[:3]
    kept = stamped(f"{first} / eager", f"{first}: peak", f"{third} / eager")
    fresh = stamped(f"{second} / eager", f"{first} / frozen", date="2026-02-03")
    rows = compile_bench.merged(kept, fresh)
    names = [f"{first} / frozen", f"{second} / eager", f"{third} / eager"]
    assert [one.row.name for one in rows] == [*names, "geometric mean of 3 models"]
    assert [one.date[5:7] for one in rows] == ["02", "02", "01", "02"]


def test_a_page_says_when_and_of_which_trees():
    both = [*stamped("a"), *stamped("b", date="2026-01-05")]
    said = report.summary([one.row for one in both], medians.facts(both, "graft", "cpu"))
    assert said.endswith(
        "2 threads, torch 2.13.0, a, machine, 2026-01-02 to 2026-01-05 at abc1234."
    )


def test_the_picture_is_an_svg(tmp_path):
    chart.draw_few(measurements.chosen(measurements.published()[0]), tmp_path / "few.svg")
    assert "<svg" in (tmp_path / "few.svg").read_text()


@pytest.mark.parametrize("option", ["--publish", "--from-medians"])
def test_a_part_is_not_published(option):
    command = [sys.executable, str(ROOT / "bench" / "run.py"), "softmax", option]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert ran.returncode == 2
    assert "without a pattern" in ran.stderr


def test_pages_for_users_link_to_speeds_and_hold_none():
    """But for the modelled costs of the simulation, which are settings."""
    speed = re.compile(r"\d(?:\.\d+)? (?:µs|ms|milliseconds|microseconds|[GT]FLOP/s|[MG]B/s)\b")
    for page in sorted((ROOT / "docs/use").glob("*.md")):
        if page.name == "simulation.md":
            continue
        prose = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(), flags=re.M | re.S)
        assert speed.findall(prose) == [], page.name
