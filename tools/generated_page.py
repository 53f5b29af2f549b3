# tools/generated_page.py: writes the pages that a script makes, or says which are stale.
from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def settle(pages: dict[Path, str], arguments: list[str], script: str) -> int:
    """Writes the pages that differ; with --check names them instead, and the exit code is 1."""
    stale = [path for path, text in pages.items() if not path.exists() or path.read_text() != text]
    if arguments != ["--check"]:
        for path in stale:
            path.write_text(pages[path])
        return 0
    for path in stale:
        print(f"{path.relative_to(ROOT)} is stale: run tools/{Path(script).name}", file=sys.stderr)
    return 1 if stale else 0
