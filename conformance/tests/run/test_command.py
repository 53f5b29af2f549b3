# conformance/tests/run/test_command.py: runs are resumed, stopped and refused as the documents say.
from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import xml.etree.ElementTree as xml

import pytest

from invocation import command, environment, run

SMALL = ("--suites", "op", "--ops", "abs,add,addmm", "--dtypes", "float32",
         "--aspects", "forward,backward,inplace")  # fmt: skip


def entries(path):
    return [json.loads(line) for line in (path / "cells.jsonl").read_text().splitlines()[1:]]


def test_a_green_run(tmp_path):
    done = run(tmp_path, *SMALL)
    assert done.code == 0, done.err
    found = done.results()
    assert found["complete"]
    assert found["schema"] == "torch-conformance/1"
    assert {c["status"] for c in found["cells"]} == {"pass"}
    assert len(found["cells"]) == 9
    assert found["device"]["name"] == "cpu"
    assert found["device"]["hardware"]
    cell = found["cells"][0]
    assert (cell["samples"] > 0, cell["native"], cell["fallbacks"]) == (True, None, {})
    assert "9/9 cells" in done.err
    assert "left" in done.err


def test_junit_is_read_by_a_standard_parser(tmp_path):
    done = run(tmp_path, "--suites", "op", "--ops", "jiterator_unary,hypot", "--plugin", "planted",
               "--dtypes", "float32", "--aspects", "forward")  # fmt: skip
    root = xml.parse(tmp_path / "junit.xml").getroot()
    suite = root.find("testsuite")
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("2", "1", "1")
    by_name = {case.get("name"): case for case in suite}
    assert "8 of 9 samples" in by_name["hypot"].find("failure").text
    assert "Jiterator" in by_name["jiterator_unary"].find("skipped").get("message")
    assert done.code == 1


def test_an_interrupted_run_is_resumed_and_loses_nothing(tmp_path):
    arguments = ["--suites", "op", "--dtypes", "float32", "--aspects", "forward",
                 "--ops", "a*,b*,c*,d*,e*"]  # fmt: skip
    process = subprocess.Popen(command(tmp_path, *arguments), env=environment(),
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)  # fmt: skip
    journal = tmp_path / "cells.jsonl"
    while not journal.exists() or journal.read_bytes().count(b"\n") < 10:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert "--resume" in err
    before = entries(tmp_path)
    assert not json.loads((tmp_path / "results.json").read_text())["complete"]
    refused = run(tmp_path, *arguments)
    assert refused.code == 2
    assert "--resume" in refused.err
    assert "--restart" in refused.err
    done = run(tmp_path, *arguments, "--resume")
    assert done.code == 0, done.err
    after = entries(tmp_path)
    assert after[: len(before)] == before
    names = [(c["entry"], c["aspect"]) for c in after]
    assert len(set(names)) == len(names) == len(done.results()["cells"])


def test_a_corrupt_results_file_keeps_its_good_lines(tmp_path):
    run(tmp_path, *SMALL)
    journal = tmp_path / "cells.jsonl"
    lines = journal.read_text().splitlines()
    lines[3] = lines[3][:40]
    lines[5] = '{"suite": "op", "entry": "add", "dtype": 3}'
    journal.write_text("\n".join([*lines, "\x00\x01"]) + "\n")
    (tmp_path / "results.json").unlink()
    done = run(tmp_path, *SMALL, "--resume")
    assert done.code == 0, done.err
    for number, word in ((4, "not JSON"), (6, "dtype"), (11, "not JSON")):
        assert f"line {number}" in done.err
        assert word in done.err
    assert (tmp_path / "cells.broken").exists()
    assert len(done.results()["cells"]) == 9
    assert len(entries(tmp_path)) == 9


def test_resume_refuses_other_options(tmp_path):
    run(tmp_path, *SMALL)
    done = run(tmp_path, *SMALL[:-1], "forward", "--resume")
    assert done.code == 2
    assert "aspects" in done.err
    assert "same options" in done.err


def test_report_of_a_corrupt_file(tmp_path):
    (tmp_path / "results.json").write_text('{"schema": "torch-conformance/1", "cells": [')
    done = run(tmp_path, "report", str(tmp_path))
    assert done.code == 2


def test_the_total_limit_stops_a_run_that_resume_ends(tmp_path):
    done = run(tmp_path, *SMALL, "--total-limit", "0.001")
    assert done.code == 3
    assert "--resume" in done.out
    assert run(tmp_path, *SMALL, "--resume").code == 0


def test_expectations_of_a_device(tmp_path):
    rows = tmp_path / "own.toml"
    rows.write_text("""
        [[expectation]]
        entry = "hypot"
        kind = "xfail"
        reason = "planted"
        [[expectation]]
        entry = "ab*"
        aspect = "forward"
        device = "cpu"
        kind = "xfail"
        reason = "does not fail at all"
        [[expectation]]
        entry = "frac"
        kind = "skip"
        reason = "would crash"
        """)
    done = run(tmp_path / "out", "--suites", "op", "--ops", "hypot,abs,frac", "--dtypes", "float32",
               "--aspects", "forward", "--plugin", "planted", "--expectations", str(rows))  # fmt: skip
    assert done.code == 1
    assert done.statuses() == {"hypot forward": "xfail", "abs forward": "xpass",
                               "frac forward": "skip"}  # fmt: skip
    reasons = {c["entry"]: c["reason"] for c in done.results()["cells"]}
    assert reasons == {"hypot": "planted", "abs": "does not fail at all", "frac": "would crash"}
    rows.write_text('[[expectation]]\nentry = "a"\nkind = "ignore"\n')
    broken = run(tmp_path / "out", "--ops", "abs", "--expectations", str(rows))
    assert broken.code == 2
    assert "row 1" in broken.err
    assert "reason" in broken.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--device", "tpu"], ["knows no device 'tpu'", "--plugin"]),
        (["--device", "cuda"], ["can be put on the device 'cuda'", "driver"]),  # device-specific
        (["--device", "meta"], ["no values"]),
        (["--plugin", "not_installed"], ["not_installed", "PYTHONPATH"]),
        (["--plugin", "broken_device"], ["broken_device", "libvendor.so is missing"]),
        (["--ops", "addd"], ["no entry is called 'addd'", "add"]),
        (["--expectations", "nowhere.toml"], ["nowhere.toml"]),
        (["--shard", "3/2"], ["3/2", "k/n"]),
        (["--time-limit", "-1"], ["above 0"]),
        (
            ["--prove-native"],
            ["'cpu' does not drop its launches", "[[dropped_launches]]", "--fallback forbid"],
        ),
    ],
)
def test_what_cannot_be_run_is_refused(arguments, words, tmp_path):
    (tmp_path / "broken_device.py").write_text("raise OSError('libvendor.so is missing')\n")
    few = ["--suites", "op", "--ops", "abs", "--dtypes", "float32", "--aspects", "forward"]
    done = run(tmp_path / "out", *few, *arguments, PYTHONPATH=str(tmp_path))
    assert done.code == 2, done.err
    assert all(word in done.err for word in words), done.err


def test_missing_extras_are_named(tmp_path):
    (tmp_path / "expecttest.py").write_text("raise ModuleNotFoundError(name='expecttest')\n")
    done = run(tmp_path / "out", "--list", PYTHONPATH=str(tmp_path))
    assert done.code == 2
    assert "pip install expecttest hypothesis" in done.err


def test_a_device_that_kills_each_worker_ends_the_run(tmp_path):
    (tmp_path / "deadly.py").write_text("import os\nos.abort()\n")
    done = run(tmp_path / "out", "--ops", "abs", "--plugin", "deadly", PYTHONPATH=str(tmp_path))
    assert done.code == 2
    assert "keeps no process alive" in done.err
    assert "SIGABRT" in done.err


@pytest.mark.parametrize("delay", [0, 6], ids=["as they start", "while their device hangs"])
def test_workers_end_with_their_pool(delay, tmp_path):
    process = subprocess.Popen(
        command(tmp_path, "--suites", "op", "--ops", "kthvalue", "--dtypes", "float32",
                "--aspects", "forward", "--plugin", "planted"),
        env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    children = f"/proc/{process.pid}/task/{process.pid}/children"
    found: list[str] = []
    while not found:
        assert process.poll() is None
        with open(children) as file:
            found = file.read().split()
    time.sleep(delay)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 30
    while any(os.path.exists(f"/proc/{pid}/task") and _alive(pid) for pid in found):
        assert time.monotonic() < deadline, "a worker survived its pool"
        time.sleep(0.1)


def _alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
