# conformance/torch_conformance/report/junit.py: the results as JUnit XML, for continuous integration.
"""A test suite for each suite, a test case for each cell."""

from __future__ import annotations

import re
import xml.etree.ElementTree as xml
from pathlib import Path
from typing import Any

# Everything that XML 1.0 does not admit.
FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
ELEMENTS = {"fail": "failure", "xpass": "failure", "error": "error", "crash": "error",
            "hang": "error", "skip": "skipped", "xfail": "skipped"}  # fmt: skip


def write(results: dict[str, Any], path: Path) -> None:
    root = xml.Element("testsuites", name=f"torch-conformance {results['device']['label']}")
    suites: dict[str, xml.Element] = {}
    for cell in results["cells"]:
        suite = suites.setdefault(cell["suite"], xml.Element("testsuite", name=cell["suite"]))
        _case(suite, cell)
    for suite in suites.values():
        for name, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            suite.set(name, str(len(suite.findall(f"testcase/{kind}"))))
        suite.set("tests", str(len(suite)))
        suite.set("time", f"{sum(float(c.get('time', 0)) for c in suite):.3f}")
        suite.set("timestamp", results["started"].rstrip("Z"))
        root.append(suite)
    xml.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _case(suite: xml.Element, cell: dict[str, Any]) -> None:
    case = xml.SubElement(
        suite, "testcase", classname=f"{cell['suite']}.{cell['dtype']}.{cell['aspect']}",
        name=cell["entry"], time=f"{cell['seconds']:.3f}",
    )  # fmt: skip
    kind = ELEMENTS.get(cell["status"])
    if kind:
        text = FORBIDDEN.sub("\ufffd", cell["message"] or cell["reason"])
        reason = FORBIDDEN.sub("\ufffd", cell["reason"] or cell["message"])
        element = xml.SubElement(case, kind, message=reason[:500], type=cell["status"])
        if kind != "skipped":
            element.set("message", text[:500])
            element.text = text
