# tests/conformance/workflow.py: runs the shell steps of a GitHub Actions job on this machine.
"""Actions (`uses:`) are left out: the caller gives what they would have brought."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[2] / ".github" / "workflows"
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")


def read(name: str) -> dict[str, Any]:
    return yaml.safe_load((FOLDER / name).read_text())


def triggers(workflow: dict[str, Any]) -> dict[str, Any]:
    return workflow[True]  # YAML 1.1 reads the key `on` as a truth value


def inputs(workflow: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """What a call gives, and the defaults of the rest."""
    declared = triggers(workflow)["workflow_call"]["inputs"]
    assert set(given) <= set(declared), "a call may name declared inputs only"
    absent = [n for n, i in declared.items() if i.get("required") and n not in given]
    assert not absent, f"the call lacks {absent}"
    return {name: given.get(name, one.get("default")) for name, one in declared.items()}


class Job:
    """One job in a checkout; `known` holds the values of expressions, as {"inputs.device": "cpu"}."""

    def __init__(self, job: dict[str, Any], checkout: Path, known: dict[str, Any]) -> None:
        self.job, self.checkout, self.known = job, checkout, dict(known)
        self.temporary = checkout.parent / f"{checkout.name}.temporary"
        self.temporary.mkdir(exist_ok=True)
        self.later: dict[str, str] = {}  # from $GITHUB_ENV

    def text(self, value: Any) -> str:
        """`value` with its expressions replaced: names, strings and `a || b`."""

        def replaced(match: re.Match[str]) -> str:
            for part in match[1].split(" || "):
                found = part.strip("'") if part.startswith("'") else self.known.get(part, "")
                if found not in ("", None):
                    return str(found)
            return ""

        return EXPRESSION.sub(replaced, str(value))

    def run(self, *names: str) -> list[subprocess.CompletedProcess[str]]:
        """Runs the steps with these names (all, if none is given) up to the first that fails."""
        done = []
        for step in self.job["steps"]:
            if "run" in step and (not names or step["name"] in names):
                done.append(self._step(step))
                if done[-1].returncode:
                    break
        return done

    def _step(self, step: dict[str, Any]) -> subprocess.CompletedProcess[str]:
        files = {name: self.temporary / name for name in ("env", "output", "summary")}
        for file in files.values():
            file.touch()
        given = {**self.job.get("env", {}), **step.get("env", {})}
        environment = {
            **os.environ,
            **{name: self.text(value) for name, value in given.items()},
            **self.later,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "GITHUB_ENV": str(files["env"]),
            "GITHUB_OUTPUT": str(files["output"]),
            "GITHUB_STEP_SUMMARY": str(files["summary"]),
            "RUNNER_TEMP": str(self.temporary),
        }
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", self.text(step["run"])],
            cwd=self.checkout, env=environment, capture_output=True, text=True, timeout=200,
        )  # fmt: skip
        self.later |= dict(
            line.split("=", 1) for line in files["env"].read_text().splitlines() if line
        )
        for line in files["output"].read_text().splitlines():
            name, value = line.split("=", 1)
            self.known[f"steps.{step.get('id')}.outputs.{name}"] = value
        return done
