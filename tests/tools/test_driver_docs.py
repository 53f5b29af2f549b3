# tests/tools/test_driver_docs.py: the page about the driver ABI says what the header says.
"""Runs tools/driver_docs.py as CI does, and on changed text."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

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
                "program_load",
                "program_unload",
            )
        ), slot.name


def test_changed_contract_changes_the_page() -> None:
    text = driver_docs.HEADER.read_text()
    changed = text.replace("Number of devices.", "0 is the usual answer.")
    assert changed != text
    assert "0 is the usual answer" in driver_docs.page(changed)
