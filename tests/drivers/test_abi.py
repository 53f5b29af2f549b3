"""tests/drivers/test_abi.py: the header compiles everywhere, and every pair of ABI minors works together."""

import itertools
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADER = ROOT / "include/graft/driver.h"
FACTS = ROOT / "include/graft/device_facts.h"
EXTENSIONS = ROOT / "include/graft/extensions.h"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
# Slots more, or fewer, than this minor has: 0.4 had nine fewer, 0.3 ten.
VARIANTS = {"0.2": -12, "0.3": -10, "0.4": -9, "current": 0, "newer": 2}
MINORS = {-12: -3, -10: -2, -9: -1, 0: 0, 2: 1}
# The minor from which on the properties have more fields, and the bytes of these and later ones.
FIELDS = {-12: ("0.3", 16), -10: ("0.5", 8), -9: ("0.5", 8)}
BY_HAND = "by hand"  # a driver of 0.4, whose tables of extensions no list made
# The slots of extensions in 0.4: drivers that were built then rely on their order.
TABLES = {
    "graft.blas": "matmul_plan plan_execute plan_destroy",
    "graft.dnn": "convolution_plan plan_execute plan_destroy",
    "graft.profiler": "trace_start trace_stop",
    "graft.programs": "program_build program_save",
    "graft.graphs": "graph_create graph_launch graph_destroy",
    "graft.collectives": "group_id group_create group_abort group_destroy all_reduce reduce "
    "broadcast all_gather reduce_scatter send receive batch_begin batch_end",
    "graft.graph_compiler": "graph_offer graph_compile executable_load executable_needs "
    "executable_run executable_destroy",
    "graft.ops": "operation_known operation_plan operation_execute plan_destroy",
}


def run(*command: object) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


C_HEADERS = ["device_facts.h", "driver.h", "descriptors.h", "extensions.h"]
HEADERS = sorted(path.name for path in HEADER.parent.glob("*.h*"))


@pytest.mark.parametrize(
    ("standard", "header"),
    [*itertools.product(["c99", "c11", "c17"], C_HEADERS), *itertools.product(["c++17", "c++20"], HEADERS)],
)  # fmt: skip
def test_header_compiles(tmp_path: pathlib.Path, standard: str, header: str) -> None:
    cxx = standard.startswith("c++")
    source = tmp_path / ("use.cpp" if cxx else "use.c")
    source.write_text(f'#include "graft/{header}"\nint main(void) {{ return 0; }}\n')
    run(
        "g++" if cxx else "gcc",
        f"-std={standard}",
        *WARNINGS,
        "-fsyntax-only",
        "-I",
        ROOT / "include",
        source,
    )


def facts_with_fields(change: int) -> str:
    """device_facts.h without the fields of the properties that a minor lacked, or with one more."""
    text = FACTS.read_text()
    bytes_now = int(re.search(r"sizeof\(graft_device_properties\) == (\d+)", text)[1])
    bytes_then = bytes_now
    if change in FIELDS:
        since, fewer = FIELDS[change]
        last = rf"  /\* Since {re.escape(since)}\..*?(?=}} graft_device_properties;)"
        text, found = re.subn(last, "", text, flags=re.S)
        assert found == 1
        bytes_then = bytes_now - fewer
    elif change > 0:
        text = text.replace(
            "} graft_device_properties;", "uint64_t later;\n} graft_device_properties;"
        )
        bytes_then = bytes_now + 8
    return text.replace(f"sizeof(graft_device_properties) == {bytes_now}",
                        f"sizeof(graft_device_properties) == {bytes_then}")  # fmt: skip


def header_with_slots(change: int) -> str:
    """driver.h as the minor with `change` more (or fewer) slots has it."""
    text = HEADER.read_text()
    begin = text.index("#define GRAFT_DRIVER_SLOTS(SLOT)")
    end = text.index("\n\n", begin)
    slots = re.split(r"(?=  SLOT\()", text[begin:end].replace("\\\n", "\n"))
    if change < 0:
        slots = slots[:change]
    slots += [f"  SLOT(OPTIONAL, later_{i}, (uint32_t unused))\n" for i in range(change)]
    body = "".join(slots).rstrip()
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    body = " \\\n".join(line.rstrip() for line in body.splitlines() if line.strip())
    minor = int(re.search(r"GRAFT_ABI_MINOR (\d+)u", text)[1]) + MINORS[change]
    text = text[:begin] + body + text[end:]
    return re.sub(r"GRAFT_ABI_MINOR \d+u", f"GRAFT_ABI_MINOR {minor}u", text)


def extensions_with_slots(change: int) -> str:
    """extensions.h as a minor that adds so many slots to each list has it."""

    def grown(found: re.Match[str]) -> str:
        later = [f"SLOT(OPTIONAL, later_{i}, (uint32_t unused))" for i in range(change)]
        return " \\\n  ".join([found[0], *later])

    text, count = re.subn(
        r"#define GRAFT_\w+_SLOTS\(SLOT\).*?(?=\n\n)", grown, EXTENSIONS.read_text(), flags=re.S
    )
    assert count == len(TABLES)
    return text


def build_driver(folder: pathlib.Path, name: str, source: str, *options: str) -> pathlib.Path:
    driver = folder / f"{name}.so"
    c = ROOT / "tests/drivers" / source
    run("gcc", "-std=c11", "-shared", "-fPIC", "-I", folder, *options, c, "-o", driver)
    return driver


LOADER_SOURCES = [
    ROOT / f"src/runtime/driver/{name}.cpp"
    for name in ("library", "error", "op_tag", "op_trace", "readable_text")
]


class Variants:
    """For each variant of the headers a loader (Graft's own) and the drivers tiny.c and extended.c, each
    built when it is asked for."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.made: dict[tuple[str, str], pathlib.Path] = {}

    def headers(self, name: str) -> pathlib.Path:
        folder, change = self.folder / name, VARIANTS[name]
        if not folder.exists():
            (folder / "graft").mkdir(parents=True)
            (folder / "graft/driver.h").write_text(header_with_slots(change))
            (folder / "graft/device_facts.h").write_text(facts_with_fields(change))
            (folder / "graft/extensions.h").write_text(extensions_with_slots(max(change, 0)))
            for header in ("driver_table.h", "descriptors.h", "driver_trace.h"):
                shutil.copy(ROOT / "include/graft" / header, folder / "graft")
        return folder

    def __getitem__(self, key: tuple[str, str]) -> pathlib.Path:
        if key not in self.made:
            self.made[key] = self.build(*key)
        return self.made[key]

    def build(self, name: str, what: str) -> pathlib.Path:
        if name == BY_HAND:
            return build_driver(self.headers("current"), "by_hand", "extended.c")
        folder = self.headers(name)
        if what == "driver":
            return build_driver(folder, "tiny", "tiny.c")
        if what == "extended":
            return build_driver(folder, "extended", "extended.c", "-DBY_LIST")
        loader = folder / "loader"
        sources = [ROOT / "tests/drivers/abi_loader.cpp", *LOADER_SOURCES]
        includes = ("-I", folder, "-I", ROOT / "src")
        run("g++", "-std=c++20", *includes, *sources, "-o", loader, "-ldl", "-pthread")
        return loader


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Variants:
    return Variants(tmp_path_factory.mktemp("variants"))


@pytest.mark.every_run
def test_variants_are_what_the_changelog_says() -> None:
    """Each minor of the page, from 0.2 on, is built with the slots that it had."""
    text = HEADER.read_text()
    slots = re.findall(r"\n  SLOT\(\w+, (\w+),", text)
    named = re.findall(r"Since (0\.\d+)\.(?:(?!SLOT\().)*?SLOT\(\w+,\s*(\w+),", text, flags=re.S)
    for minor, change in VARIANTS.items():
        if change >= 0:
            continue
        later = [name for version, name in named if float(version) > float(minor)]
        assert -change == len(later), minor
        assert slots[change:] == later, "the slots of later minors stand at the end"


@pytest.mark.parametrize(("graft", "driver"), list(itertools.product(VARIANTS, VARIANTS)))
def test_every_pair_of_minors(built: Variants, graft: str, driver: str) -> None:
    """Old and new Graft load old and new drivers; the slots both know are there, the others are empty.

    The properties that a driver does not know are 0, and those that Graft does not know stay unwritten.
    """
    assert "round trip ok" in run(built[graft, "loader"], built[driver, "driver"])


@pytest.mark.parametrize(
    ("graft", "driver"), list(itertools.product(VARIANTS, [*VARIANTS, BY_HAND]))
)
def test_every_pair_of_extension_tables(built: Variants, graft: str, driver: str) -> None:
    """Each slot of each table is the one that the driver's binary has there; what either side lacks is null."""
    later = {name: max(change, 0) for name, change in VARIANTS.items()} | {BY_HAND: 0}
    wanted = []
    for table, names in TABLES.items():
        slots = names.split()
        known = len(slots) + later[driver]
        slots += [f"later_{i}" for i in range(later[graft])]
        wanted += [f"{table} {slot} {1000 + n if n < known else 0}" for n, slot in enumerate(slots)]
    told = run(built[graft, "loader"], built[driver, "extended"]).splitlines()
    assert [line for line in told if line.startswith("graft.")] == wanted
