# tests/tools/test_driver_docs.py: the page about the driver ABI says what the header says.
"""Runs tools/driver_docs.py as CI does, and on changed text."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.every_run

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools" / "driver_docs.py"

spec = importlib.util.spec_from_file_location("driver_docs", SCRIPT)
assert spec is not None
assert spec.loader is not None
driver_docs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(driver_docs)


def test_page_is_fresh() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_slot_has_a_contract() -> None:
    slots = driver_docs.read_slots(driver_docs.HEADER.read_text())
    assert len(slots) > 30
    for slot in slots:
        assert slot.contract.endswith("."), slot.name
        assert (
            slot.required
            or "Default:" in slot.contract
            or slot.name
            in (
                "host_free",
                "memory_import",
                "memory_release",
                "memory_map",
                "memory_unmap",
                "memory_unreserve",
                "program_load",
                "program_unload",
            )
        ), slot.name


def test_changed_contract_changes_the_page() -> None:
    text = driver_docs.HEADER.read_text()
    changed = text.replace("Number of devices.", "0 is the usual answer.")
    assert changed != text
    extensions, facts = driver_docs.EXTENSIONS.read_text(), driver_docs.FACTS.read_text()
    assert "0 is the usual answer" in driver_docs.page(changed, extensions, facts)
    changed = extensions.replace("Ends the trace:", "The trace has an end:")
    assert changed != extensions
    assert "The trace has an end:" in driver_docs.page(text, changed, facts)


def test_every_extension_stands_on_the_page() -> None:
    text = driver_docs.EXTENSIONS.read_text()
    extensions = driver_docs.read_extensions(text)
    lists = re.findall(r"#define (GRAFT_\w+_SLOTS)\(SLOT\)", text)
    assert len(extensions) == len(lists) > 5
    for extension in extensions:
        assert "ithout it" in extension.contract, extension.name
        assert extension.slots
        for slot in extension.slots:
            assert slot.contract.endswith("."), slot.name
            assert slot.required or "Default:" in slot.contract, slot.name


def changelog() -> dict[str, str]:
    """Version -> its section of the changelog, newest first."""
    page = (ROOT / "docs/drivers/changelog.md").read_text()
    return dict(re.findall(r"^## (0\.\d+)\n(.*?)(?=^## )", page, re.M | re.S))


def test_the_changelog_has_every_minor_and_every_slot() -> None:
    header = driver_docs.HEADER.read_text()
    versions = dict(re.findall(r"#define GRAFT_ABI_(MAJOR|MINOR) (\d+)u", header))
    sections = changelog()
    assert list(sections) == [
        f"{versions['MAJOR']}.{minor}" for minor in range(int(versions["MINOR"]), 0, -1)
    ]
    slots = driver_docs.read_slots(header)
    named: dict[str, str] = {}
    for version, text in sections.items():
        for name in re.findall(r"`(\w+)`", text):
            if name in {slot.name for slot in slots}:
                named[name] = version  # the oldest section that names it added it
    assert set(named) == {slot.name for slot in slots}
    for slot in slots:
        since = re.search(r"Since (0\.\d+)\.", slot.contract)
        if since:
            assert named[slot.name] == since[1], slot.name
    for extension in driver_docs.read_extensions(driver_docs.EXTENSIONS.read_text()):
        assert any(f"`{extension.name}`" in text for text in sections.values()), extension.name
    first = [slot for slot in slots if named[slot.name] == "0.1"]
    assert f"{len(first)} slots, of which {sum(slot.required for slot in first)} are required" in sections["0.1"]  # fmt: skip
