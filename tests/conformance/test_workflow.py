# tests/conformance/test_workflow.py: the steps of the workflows, run by hand against a repository of their own.
from __future__ import annotations

import json
import re
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml

import synthetic
import workflow

BRANCH = "refs/heads/conformance-history"
SUITE = workflow.read("conformance.yml")
DEVICES = workflow.read("conformance-devices.yml")


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


def checkout(origin: Path, name: str) -> Path:
    """A shallow clone, as the action makes it."""
    git(origin.parent, "clone", "--quiet", "--depth=1", origin.as_uri(), name)
    return origin.parent / name


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    """A bare repository with one commit."""
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", "origin")
    seed = tmp_path / "seed"
    git(tmp_path, "init", "--quiet", "--initial-branch=main", "seed")
    (seed / "README").write_text("a device's package\n")
    git(seed, "add", "README")
    git(seed, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "--quiet", "-m", "begin")
    git(seed, "push", "--quiet", (tmp_path / "origin").as_uri(), "main")
    return tmp_path / "origin"


def suite_job(folder: Path, **given: str) -> workflow.Job:
    given = {"device": "cpu", "install": "true", "suite": "true"} | given
    known = {f"inputs.{n}": value for n, value in workflow.inputs(SUITE, given).items()}
    return workflow.Job(SUITE["jobs"]["conformance"], folder, known)


def history(origin: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in git(origin, "show", f"{BRANCH}:history.jsonl").split("\n") if line]  # fmt: skip


def test_every_input_is_used_and_every_used_one_declared() -> None:
    declared = set(workflow.triggers(SUITE)["workflow_call"]["inputs"])
    text = (workflow.FOLDER / "conformance.yml").read_text()
    assert set(re.findall(r"\binputs\.([a-z-]+)", text)) == declared


def test_no_input_is_pasted_into_a_script() -> None:
    for step in SUITE["jobs"]["conformance"]["steps"]:
        assert "${{" not in step.get("run", ""), step.get("name")


def test_graft_calls_it_daily_and_on_change_for_four_devices() -> None:
    assert {"schedule", "push", "workflow_dispatch"} <= set(workflow.triggers(DEVICES))
    job = DEVICES["jobs"]["devices"]
    rows = job["strategy"]["matrix"]["include"]
    assert job["uses"] == "./.github/workflows/conformance.yml"
    assert len({row["label"] for row in rows}) == 4
    workflow.inputs(SUITE, job["with"])  # declared, and none is missing


def test_runs_that_end_together_all_reach_the_history(origin: Path) -> None:
    jobs = []
    for number in range(3):
        folder = checkout(origin, f"job{number}")
        (folder / "conformance-report").mkdir()
        results = synthetic.results(seed=number, entries=2, label=f"device {number}")
        (folder / "conformance-report" / "results.json").write_text(json.dumps(results))
        jobs.append(suite_job(folder, label=f"device {number}"))
    ended: list[subprocess.CompletedProcess[str]] = []
    threads = [
        threading.Thread(target=lambda j=job: ended.extend(j.run("Append a row to the history")))
        for job in jobs
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [done.returncode for done in ended] == [0, 0, 0], [done.stderr for done in ended]
    assert {row["label"] for row in history(origin)} == {"device 0", "device 1", "device 2"}
    assert git(origin, "rev-list", "--count", BRANCH).strip() == "3"
    assert git(origin, "ls-tree", "--name-only", BRANCH).split() == ["history.jsonl"]


def test_the_whole_job_and_the_site(origin: Path, tmp_path: Path) -> None:
    folder = checkout(origin, "job")
    options = "--suites op --ops add,sub --dtypes float32,int64 --workers 1"
    job = suite_job(folder, install='echo "COLOUR=green" >> "$GITHUB_ENV"', options=options)
    done = job.run()
    assert [step.returncode for step in done] == [0] * 5, done[-1].stdout + done[-1].stderr
    assert job.later == {"COLOUR": "green"}
    assert "cells" in (job.temporary / "summary").read_text()
    uploaded = {path.name for path in (folder / "conformance-report").iterdir()}
    assert {"results.json", "junit.xml", "report.html"} <= uploaded
    assert [row["label"] for row in history(origin)] == ["cpu"]

    (folder / "results").mkdir()
    (folder / "conformance-report").rename(folder / "results" / "conformance cpu")
    site = workflow.Job(DEVICES["jobs"]["site"], folder, {})
    (folder / "conformance").symlink_to(workflow.FOLDER.parents[1] / "conformance")
    assert [step.returncode for step in site.run()] == [0], site.run()[-1].stderr
    assert (folder / "site" / "index.html").is_file()


def test_a_run_that_is_not_green_fails_the_job_after_its_report(origin: Path) -> None:
    folder = checkout(origin, "job")
    job = suite_job(folder, options="--suites op --ops add --dtypes float32")
    job.known["steps.suite.outputs.code"] = "1"
    done = job.run("Say whether the run is green")
    assert done[-1].returncode == 1
    assert "::error::Exit code 1" in done[-1].stdout


def test_a_device_that_is_not_there_fails_at_the_suite(origin: Path) -> None:
    folder = checkout(origin, "job")
    done = suite_job(folder, device="nosuch", options="--ops add").run()
    assert done[-1].returncode != 0
    assert len(done) == 3
    assert "nosuch" in done[-1].stdout + done[-1].stderr


def test_the_call_in_the_documentation_fits(tmp_path: Path) -> None:
    text = (workflow.FOLDER.parents[1] / "docs/drivers/conformance-site.md").read_text()
    call = yaml.safe_load(re.search(r"```yaml\n(.*?)```", text, re.DOTALL)[1])
    job = call["jobs"]["conformance"]
    workflow.inputs(SUITE, job["with"])
    assert job["uses"].split("@")[0].endswith("/.github/workflows/conformance.yml")
    assert job["permissions"] == SUITE["jobs"]["conformance"]["permissions"]
    assert isinstance(json.loads(job["with"]["runs-on"]), list)
