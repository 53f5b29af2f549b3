# tools/settings_docs.py: writes docs/use/settings.md from the table of python/torch_graft/cli/settings.json.
"""Usage: tools/settings_docs.py [--check]. With --check nothing is written; the exit code is 1 when the page differs
from what the table says."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from generated_page import ROOT, settle
from setting_rules import TABLE, readers, rows

PAGE = ROOT / "docs/use/settings.md"
HEADING = "| variable | values | default | meaning |\n|---|---|---|---|"
INTRODUCTION = f"""\
# Settings of the environment

Written by `tools/settings_docs.py` from `{TABLE}`; edit the table, not this page.

Set variables before `import torch`: most are read once, when they are first needed. `python -m torch_graft doctor` prints
those that are set, and reports variables that begin with `GRAFT_` and are not in this list ([the doctor](doctor.md)).
A driver of another package may read more variables.
"""
# What reads a variable, as a heading and a sentence.
WORDS = {
    "core": ("Core", "Read by the runtime and the compiler of kernels, for every driver."),
    "binding": ("Binding", "Read by what attaches Graft to PyTorch."),
    "tests": ("Tests", "Read by Graft's own tests."),
    "build": ("Build", "Read while Graft is built."),
}


def words(reader: str) -> tuple[str, str]:
    if reader in WORDS:
        return WORDS[reader]
    driver = reader.removesuffix(" driver")
    return f"Driver {driver}", f"Read by [this driver](../../drivers/{driver}/README.md)."


def line(row: list[str]) -> str:
    name, _, values, default, meaning, *page = row
    also = "".join(f"; also read by the {reader}" for reader in readers(row)[1:])
    more = f" ([more]({page[0]}))" if page else ""
    return f"| `{name}` | {values} | {default} | {meaning}{also}{more} |"


def page(text: str) -> str:
    table = rows(text)
    parts = [INTRODUCTION]
    for reader in dict.fromkeys(readers(row)[0] for row in table):
        heading, sentence = words(reader)
        lines = [line(row) for row in table if readers(row)[0] == reader]
        parts.append("\n".join([f"## {heading}", "", sentence, "", HEADING, *lines, ""]))
    others = [line(row) for row in rows(text, "of others")]
    sentence = "Read by PyTorch or by VEDA, NEC's library; they change what Graft does."
    parts.append("\n".join(["## Of others", "", sentence, "", HEADING, *others, ""]))
    return "\n".join(parts)


def main(arguments: list[str]) -> int:
    return settle({PAGE: page((ROOT / TABLE).read_text())}, arguments, __file__)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
