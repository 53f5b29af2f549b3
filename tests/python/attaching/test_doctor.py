"""`python -m torch_graft doctor`: what was found, loaded, refused, why, and what to do."""

import os
import re
import subprocess
import sys

from sandbox import ROOT, build_c, doctor


def test_healthy():
    ran = doctor()
    assert ran.returncode == 0, ran.stdout + ran.stderr
    import torch

    for word in ("host", "graft:0", "graft:1", torch.__version__.split("+")[0]):
        assert word in ran.stdout


def test_refused_driver_and_missing_compiler(tmp_path):
    bad = tmp_path / "bad.so"
    bad.write_text("no library")
    ran = doctor(GRAFT_DRIVER_PATH=f"{bad}{os.pathsep}relative.so", GRAFT_CC=str(tmp_path / "none"))
    assert "Traceback" not in ran.stderr
    for word in ("bad.so", "relative.so", "absolute", "GRAFT_CC"):
        assert word in ran.stdout


def rows(out, device):
    """The device's row and what stands below it."""
    lines = out.splitlines()
    at = next(i for i, line in enumerate(lines) if f"{device} is " in line)
    below = next((i for i in range(at + 1, len(lines)) if not lines[i].startswith(" " * 11)), None)
    return lines[at], lines[at + 1 : below]


def test_a_row_says_which_device_it_is_and_who_computed(tmp_path):
    tiny = build_c(tmp_path / "tiny.so", (ROOT / "tests/drivers/tiny.c").read_text())
    ran = doctor(GRAFT_DRIVER_PATH=tiny, GRAFT_DEVICES="host:1,tiny,host:0", GRAFT_HOST_DEVICES="2")
    assert ran.returncode == 1
    for device, place in (("graft:0", "host:1"), ("graft:2", "host:0")):
        row, below = rows(ran.stdout, device)
        assert f"  ok       {device} is {place}, " in row
        assert row.endswith("ones + 1 gives [2.0, 2.0], computed by the device")
        assert len(below) == 1, below
        assert below[0].startswith("           driver version "), below
        assert "UUID " in below[0], below
    row, below = rows(ran.stdout, "graft:1")
    assert "  PROBLEM  graft:1 is tiny:0, Tiny device (1.0 GiB); " in row
    assert row.endswith("computed by the CPU")
    assert re.search(r"aten::add\S*: graft:1 \(driver 'tiny'\) runs no generated kernels: "
                     r"its driver states no dialect", below[0]), below  # fmt: skip
    assert any("no kernels: the driver states no dialect" in line for line in below)
    assert any("no kernels for float64, complex128" in line for line in below)


def test_a_row_lists_the_limits_that_the_driver_states(tmp_path):
    text = (ROOT / "tests/drivers/tiny.c").read_text()
    text = text.replace("mine.compute_units = 3;", "mine.compute_units = 3; mine.max_arguments = 9;"
                        "mine.dtypes = 1u << GRAFT_FLOAT32; mine.max_allocation_bytes = 1u << 29;")  # fmt: skip
    ran = doctor(GRAFT_DRIVER_PATH=build_c(tmp_path / "tiny.so", text), GRAFT_DEVICES="tiny")
    below = "\n".join(rows(ran.stdout, "graft:0")[1])
    assert "a kernel takes at most 9 arguments" in below
    assert "no kernels for float16, bfloat16, float64, complex64" in below
    assert "one allocation has at most 0.5 GiB" in below


def test_a_misspelt_setting_is_a_problem_and_that_of_another_package_is_none():
    ran = doctor(GRAFT_HOST_DEVCES="3", GRAFT_NPU_MODE="fast")
    assert ran.returncode == 1
    assert "  PROBLEM  GRAFT_HOST_DEVCES is no setting of Graft" in ran.stdout
    assert "Did you mean GRAFT_HOST_DEVICES?" in ran.stdout
    assert "  GRAFT_NPU_MODE is no setting of Graft; a driver of another package may" in ran.stdout
    assert ran.stdout.endswith("1 problem(s).\n")


def test_settings_that_are_set_have_their_meaning_and_the_others_their_names():
    ran = doctor(GRAFT_DRIVER_PATH="", GRAFT_HOST_THREADS="2")
    said = ran.stdout.partition("Settings of the environment\n")[2].partition("\nPyTorch\n")[0]
    assert re.search(r"GRAFT_HOST_THREADS +'2': the number of threads that compute", said)
    assert "not set (docs/use/settings.md" in said
    assert "GRAFT_DUMP_KERNELS" in said
    assert "GRAFT_CACHE_LIMIT  " not in said  # the doctor's own


def test_no_device():
    ran = doctor(GRAFT_HOST_DEVICES="0")
    assert "Traceback" not in ran.stderr
    assert "GRAFT_DRIVER_PATH" in ran.stdout


def test_a_report_says_what_the_machine_is():
    import torch
    from torch.utils import collect_env

    plain, whole = doctor().stdout, doctor("--report", GRAFT_HOST_DEVICES="1").stdout
    heading = "Environment, in the words of torch.utils.collect_env"
    assert heading not in plain
    environment = whole.split(heading)[1]
    for line in (f"PyTorch version: {torch.__version__}",
                 f"GCC version: {collect_env.get_gcc_version(collect_env.run)}",
                 f"OS: {collect_env.get_os(collect_env.run)}",
                 f"[pip] torch=={torch.__version__}", "[pip] torch-graft==", "[pip] numpy==",
                 "[pip] intel-cmplr-lib-rt==", "GRAFT_HOST_DEVICES=1", "Model name: ", " GiB, "):  # fmt: skip
        assert line in environment
    assert "Could not collect (" not in environment


def test_a_fact_that_cannot_be_had_hides_no_other(python):
    ran = python(
        """
        from torch.utils import collect_env
        def refused(*_): raise OSError("no processes")
        collect_env.run = refused
        from torch_graft.cli import environment
        print(json.dumps(list(environment.lines())))
        """
    )
    lines = ran.value()
    assert "GCC version: Could not collect (OSError: no processes)" in lines
    assert any(line.startswith("Memory: ") and "GiB" in line for line in lines)
    assert any(line.startswith("[pip] torch==") for line in lines)


def test_a_report_imports_nothing_heavy(python):
    state = "from torch_graft.cli import environment; list(environment.lines()); print(json.dumps(sorted(sys.modules)))"
    new = set(python(state).value()) - set(python("print(json.dumps(sorted(sys.modules)))").value())
    assert not [one for one in new if one.startswith(("torch._", "pip"))]


def test_usage():
    ran = subprocess.run(
        [sys.executable, "-m", "torch_graft", "nonsense"], capture_output=True, text=True
    )
    assert ran.returncode == 2
    assert "doctor" in ran.stderr
