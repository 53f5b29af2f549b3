# tools/driver_docs.py: writes docs/generated/driver-abi.md from the lists in include/graft's headers.
"""Turns the rules, statuses, element types and slots of driver.h and extensions.h into one page.

Usage: tools/driver_docs.py [--check]. With --check nothing is written; the exit code is 1 when the
page differs from what the headers say.
"""

from __future__ import annotations

import re
import sys
from typing import NamedTuple

from generated_page import ROOT, settle

HEADER = ROOT / "include" / "graft" / "driver.h"
FACTS = ROOT / "include" / "graft" / "device_facts.h"
EXTENSIONS = ROOT / "include" / "graft" / "extensions.h"
PAGE = ROOT / "docs/generated/driver-abi.md"


class Slot(NamedTuple):
    required: bool
    name: str
    parameters: str
    contract: str


class Extension(NamedTuple):
    name: str
    version: str
    contract: str
    slots: list[Slot]


def plain(comment: str) -> str:
    """The words of a comment, on one line."""
    words = re.sub(r"^\s*\*", "", comment, flags=re.MULTILINE).split()
    return " ".join(words)


def paragraphs(comment: str) -> str:
    """The same, with the empty lines between its paragraphs."""
    return "\n\n".join(plain(part) for part in re.split(r"\n\s*\*\s*\n", comment))


def list_body(text: str, macro: str) -> str:
    """What a list macro expands to, with the line continuations gone."""
    start = text.index(f"#define {macro}(")
    body = re.match(r".*\n((?:.*\\\n)*.*)", text[start:])
    return re.sub(r"[ \t]*\\*$", "", body[1], flags=re.MULTILINE) if body else ""


def read_slots(text: str, macro: str = "GRAFT_DRIVER_SLOTS") -> list[Slot]:
    body = list_body(text, macro)
    pattern = re.compile(
        r"(?:/\*(.*?)\*/\s*)?SLOT\((\w+),\s*(\w+),\s*\((.*?)\)\)(?=\s*(?:/\*|SLOT|$))", re.S
    )
    slots = []
    for comment, presence, name, parameters in pattern.findall(body):
        tidy = re.sub(r"\s*\*\s*", "* ", " ".join(parameters.split()))
        slots.append(Slot(presence == "REQUIRED", name, tidy, plain(comment)))
    if len(slots) != body.count("SLOT("):
        raise SystemExit(f"{macro}: {body.count('SLOT(')} slots, {len(slots)} understood")
    return slots


def read_extensions(text: str) -> list[Extension]:
    extensions = []
    for _, (name, version, macro) in read_rows(text, "GRAFT_EXTENSIONS", "EXTENSION", 3):
        above = text[: text.index(f"#define {macro}(")].rstrip()
        contract = paragraphs(above[above.rindex("/*") + 2 : -2])
        contract = contract.removeprefix(f"Extension graft.{name}").lstrip(".: ")
        extensions.append(Extension(f"graft.{name}", version, contract, read_slots(text, macro)))
    return extensions


def read_opening(text: str) -> str:
    """What the comment at a header's top says behind its first line."""
    opening = text[: text.index("*/")]
    return paragraphs(opening[opening.index("\n *\n") + 3 :])


def read_rules(text: str) -> str:
    opening = text[: text.index("#ifndef")]
    rules = opening[opening.index("Rules that hold") :].split("\n")[1:]
    joined = " ".join(line.strip().removeprefix("*").rstrip("/ *") for line in rules)
    parts = re.split(r"\s+(?=\d\. [A-Z][\w ]+\.)", " " + joined)
    return "\n".join(" ".join(part.split()) for part in parts if part.strip())


def read_rows(text: str, macro: str, row: str, fields: int) -> list[tuple[str, list[str]]]:
    """The rows of a list, as so many fields, and the comments above them."""
    body = list_body(text, macro)
    pattern = re.compile(rf"(?:/\*(.*?)\*/\s*)?{row}\(([^()]*)\)", re.S)
    return [
        (plain(comment), [field.strip().strip('"') for field in row_text.split(",", fields - 1)])
        for comment, row_text in pattern.findall(body)
    ]


def slot_lines(slots: list[Slot]) -> list[str]:
    return [
        line
        for slot in slots
        for text in (f"### {slot.name}", f"`{slot.name}({slot.parameters})`", slot.contract)
        for line in (text, "")
    ]


def extension_lines(text: str) -> list[str]:
    lines = ["## Extensions", "", read_opening(text), ""]
    for extension in read_extensions(text):
        needed = sum(slot.required for slot in extension.slots)
        lines += [
            f"## Extension {extension.name}, version {extension.version}",
            "",
            extension.contract[0].upper() + extension.contract[1:],
            "",
            f"{len(extension.slots)} slots; {needed} are required.",
            "",
            *slot_lines(extension.slots),
        ]
    return lines


def fact_lines(facts: str) -> list[str]:
    """The lists of device_facts.h."""
    sensors = read_rows(facts, "GRAFT_SENSORS", "SENSOR", 3)
    links = [("", fields) for _, fields in read_rows(facts, "GRAFT_LINKS", "LINK", 3)]
    return [
        *table("Sensors", "unit", "GRAFT_SENSOR_", sensors),
        *table("Links", "meaning", "GRAFT_LINK_", links),
    ]


def table(heading: str, title: str, prefix: str, rows: list[tuple[str, list[str]]]) -> list[str]:
    """A section with a row for each number: its name, and a fact with the row's comment."""
    lines = ["", f"## {heading}", "", f"| number | name | {title} |", "|---|---|---|"]
    for comment, (name, value, fact, *_) in rows:
        note = f". {comment}" if comment else ""
        lines.append(f"| {value} | `{prefix}{name}` | {fact}{note} |")
    return lines


def page(text: str, extensions: str, facts: str) -> str:
    versions = dict(re.findall(r"#define GRAFT_ABI_(MAJOR|MINOR) (\d+)u", text))
    slots = read_slots(text)
    required = [slot for slot in slots if slot.required]
    optional = [slot for slot in slots if not slot.required]
    types = [("", fields) for _, fields in read_rows(text, "GRAFT_DTYPES", "DTYPE", 4)]
    lines = [
        f"# The driver ABI, version {versions['MAJOR']}.{versions['MINOR']}",
        "",
        "Made from `driver.h`, `device_facts.h` and `extensions.h` of `include/graft` by `tools/driver_docs.py`; edit the headers, not this page.",
        "",
        f"A driver exports `graft_driver_query`, which fills a table of {len(slots)} slots: "
        f"{len(required)} are required, {len(optional)} may be left out.",
        "Every slot returns a `graft_status`.",
        "",
        "## Rules for every slot",
        "",
        read_rules(text),
        "",
        "## Required slots",
        "",
        *slot_lines(required),
        "## Optional slots",
        "",
        *slot_lines(optional),
        *extension_lines(extensions)[:-1],
        *table("Statuses", "meaning", "GRAFT_", read_rows(text, "GRAFT_STATUSES", "STATUS", 3)),
        *table("Element types", "bytes", "GRAFT_", types),
        *fact_lines(facts),
    ]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    made = page(HEADER.read_text(), EXTENSIONS.read_text(), FACTS.read_text())
    return settle({PAGE: made}, arguments, __file__)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
