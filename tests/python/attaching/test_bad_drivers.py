"""Bad drivers, indices, compilers, caches and faults: an exception or warning with the remedy."""

import json
import os
import stat
from pathlib import Path

import pytest

from sandbox import NAME, ROOT, build_c

pytestmark = pytest.mark.both_modes

# Each is tiny.c with a graft_driver_query of its own: what it does to a filled table.
TABLES = {
    "wrong major": ("table->abi_major = 9;", r"9\.\d+.*0\.\d+|0\.\d+.*9\.\d+"),
    "newer minor": ("table->abi_minor = 99;", r"0\.99"),
    "truncated": ("table->slot_count = 3;", r"slot|truncated"),
    "missing slot": ("table->fill = 0;", r"\bfill\b"),
    "no name": ("table->name = 0;", r"name"),
    "refuses": ("return GRAFT_VERSION_MISMATCH;", r"version"),
    "fails": ("return GRAFT_INTERNAL;", r"internal"),
    "count fails": ("table->device_count = bad_count;", r"device_count|count"),
}
REMEDY = r"(?i)rebuild|update|upgrade|install|use|give|set|fill|newer|older|remove|report|ask|pass"


def driver(table: str, name: str) -> str:
    return f"""
    #define graft_driver_query tiny_query
    #include "tiny.c"
    #undef graft_driver_query
    static graft_status bad_count(uint32_t* n) {{ (void)n; return GRAFT_INTERNAL; }}
    static graft_status no_devices(uint32_t* n) {{ *n = 0; return GRAFT_OK; }}
    graft_status graft_driver_query(graft_driver_table* table) {{
      graft_status status = tiny_query(table);
      if (status != GRAFT_OK) return status;
      table->name = "{name}";
      (void)bad_count; (void)no_devices;
      {table}
      return GRAFT_OK;
    }}"""


LOAD = """
    module = torch.get_device_module(D)
    results = {}
    for name, path in json.loads(os.environ["PATHS"]).items():
        try:
            module.load_driver(path)
            module.device_count()
            results[name] = "loaded"
        except Exception as error:
            results[name] = f"{type(error).__name__}: {error}"
    results["alive"] = (torch.ones(2, device=D) + 1).tolist()
    results["drivers"] = str(module.drivers())
    print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def loads(tmp_path_factory, python):
    """What became of every bad driver, all loaded into one process."""
    folder = tmp_path_factory.mktemp("drivers")
    paths = {"relative": "drivers/tiny.so", "missing": str(folder / "none.so")}
    paths["no library"] = str(folder / "text.so")
    Path(paths["no library"]).write_text("This is no library.\n")
    paths["folder"] = str(folder)
    paths["no symbol"] = build_c(folder / "empty.so", "int nothing;")
    for name, (table, _) in TABLES.items():
        paths[name] = build_c(folder / f"{name.replace(' ', '_')}.so", driver(table, name[:9]))
    thrower = '#include "graft/driver.h"\ngraft_status graft_driver_query(graft_driver_table*)'
    paths["throws"] = build_c(folder / "throws.so", thrower + "{ throw 7; }", "-xc++", "-lstdc++")
    paths["good"] = build_c(folder / "good.so", driver("", "good"))
    paths["again"] = build_c(folder / "again.so", driver("", "good"))
    nothing = driver("table->device_count = no_devices;", "nothing")
    paths["zero devices"] = build_c(folder / "zero.so", nothing)
    return paths, python(LOAD, PATHS=json.dumps(paths), GRAFT_DEVICES="host").value()


@pytest.mark.parametrize(
    ("name", "pattern"),
    [("relative", "absolute"), ("missing", r"(?i)no such file|not exist|not found"),
     ("no library", r"(?i)library|ELF"), ("folder", r"(?i)director|folder|file|read"),
     ("no symbol", "graft_driver_query"), ("throws", r"(?i)exception|threw|throw"),
     ("again", r"(?i)name.*good|good.*name|already"),
     *((name, pattern) for name, (_, pattern) in TABLES.items())],
)  # fmt: skip
def test_refusals(loads, name, pattern):
    import re

    paths, found = loads
    assert found[name] != "loaded"
    assert re.search(pattern, found[name], re.DOTALL), found[name]
    assert Path(paths[name]).name in found[name], "the message names the library"
    assert re.search(REMEDY, found[name]), f"no remedy: {found[name]}"


def test_the_rest_works(loads):
    found = loads[1]
    assert (found["good"], found["zero devices"], found["alive"]) == ("loaded", "loaded", [2, 2])
    assert "good" in found["drivers"]
    assert "host" in found["drivers"]


def test_bad_path_in_the_environment_warns_once(python, tmp_path):
    ran = python(
        "print((torch.ones(2, device=D) + 1).tolist(), torch.accelerator.device_count())",
        GRAFT_DRIVER_PATH=os.pathsep.join([str(tmp_path / "none.so"), "relative.so"]),
    ).good()
    assert "[2.0, 2.0]" in ran.out
    for name in ("none.so", "relative.so"):
        assert len([line for line in ran.err.splitlines() if name in line]) == 1, ran.err
    assert python("import torch", GRAFT_DRIVER_PATH="relative.so").good()


def test_second_driver_beside_host(python, tmp_path):
    tiny = build_c(tmp_path / "tiny.so", (ROOT / "tests/drivers/tiny.c").read_text())
    found = python(
        """
        m = torch.get_device_module(D)
        x = torch.arange(6.0, device=D + ":1").reshape(2, 3)
        y = x.to(D + ":0") * 2
        z = torch.nn.functional.gelu(x) + x.t().contiguous().t()
        w = torch.ones(2, 3, device=D + ":1", requires_grad=True)
        (w.to(D + ":0") * y).sum().backward()
        print(json.dumps([m.device_count(), m.get_device_name(1), y.tolist(), z.tolist(),
                          w.grad.tolist(), str(w.grad.device), x.is_contiguous()]))
        """,
        GRAFT_DRIVER_PATH=tiny, GRAFT_DEVICES="host,tiny", GRAFT_HOST_DEVICES="1",
    ).value()  # fmt: skip
    import torch

    x = torch.arange(6.0).reshape(2, 3)
    assert found[:3] == [2, "Tiny device", (x * 2).tolist()]
    assert found[3] == (torch.nn.functional.gelu(x) + x).tolist()
    assert found[4:] == [
        (x * 2).tolist(),
        f"{NAME}:1",
        True,
    ]


def test_device_index_out_of_range(device):
    import torch

    for call in (lambda: torch.ones(1, device=f"{device}:7"),
                 lambda: torch.accelerator.set_device_index(7),
                 lambda: torch.ones(1).to(f"{device}:7"), lambda: torch.Stream(f"{device}:7"),
                 lambda: torch.accelerator.get_memory_info(7)):  # fmt: skip
        with pytest.raises((RuntimeError, ValueError), match=r"7(.|\n)*2"):
            call()
    assert torch.ones(1, device=f"{device}:1").item() == 1


def test_no_device_left(python):
    ran = python(
        """
        print(torch.get_device_module(D).is_available(), torch.accelerator.is_available())
        try:
            torch.ones(1, device=D)
        except Exception as error:
            print(str(error).replace(chr(10), " "))
        """,
        GRAFT_HOST_DEVICES="0",
    ).good()
    available, message = ran.out.strip().splitlines()
    assert available == "False False"
    assert "device" in message
    assert "doctor" in message or "GRAFT" in message


def test_driver_after_the_first_backward(python, tmp_path):
    tiny = build_c(tmp_path / "tiny.so", (ROOT / "tests/drivers/tiny.c").read_text())
    ran = python(
        """
        x = torch.ones(2, requires_grad=True)
        (x * 2).sum().backward()
        try:
            torch.get_device_module(D).load_driver(os.environ["TINY"])
        except RuntimeError as error:
            print(error)
        """,
        TINY=tiny,
    ).good()
    assert "GRAFT_DRIVER_PATH" in ran.out


# Operators and dtypes that no pack compiled ahead of time is likely to hold.
UNUSUAL = """
    import warnings
    warnings.simplefilter("always")
    x = torch.arange(1, 9).to(torch.int16)
    y = x.double() / 9
    calls = [lambda t, u: torch.hypot(u, u + 1), lambda t, u: t.t() ^ 3, lambda t, u: t.lt(u),
             lambda t, u: torch.copysign(u[::2], -u[1::2]), lambda t, u: u.half().atan2(t.half())]
    for call in calls:
        torch.testing.assert_close(call(x.to(D), y.to(D)).cpu(), call(x, y), check_dtype=True)
    print("right", torch.get_device_module(D).fallback.total())
"""


def script(path, text):
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_compiler_missing(python, tmp_path):
    ran = python(UNUSUAL, GRAFT_CC=str(tmp_path / "none"), GRAFT_CACHE_DIR=str(tmp_path / "c"))
    assert "right" in ran.good().out
    assert int(ran.out.split()[-1]) > 0, "nothing fell back, so nothing was tested"
    assert len([line for line in ran.err.splitlines() if "GRAFT_CC" in line]) == 1, ran.err


def test_compiler_failing(python, tmp_path):
    count = tmp_path / "count"
    log = "echo 'boom: no such flag' >&2\nfor i in $(seq 40); do echo line $i. >&2; done"
    cc = script(tmp_path / "cc", f'#!/bin/sh\necho "$@" >> {count}\n{log}\nexit 1\n')
    ran = python(
        """
        two = torch.full((2, 5), 3.0, dtype=torch.float64)
        for _ in range(3):
            torch.testing.assert_close(torch.hypot(*two.to(D)).cpu(), torch.hypot(*two))
        count = torch.get_device_module(D).fallback.counts()["aten::hypot"]
        print(json.dumps(count.calls))
        """,
        GRAFT_CC=cc, GRAFT_CACHE_DIR=str(tmp_path / "c"),
    )  # fmt: skip
    assert ran.value() == 3
    assert ran.err.count("boom: no such flag") == 1, ran.err
    assert "hypot" in ran.err
    assert "line 5." in ran.err
    assert "line 20." not in ran.err, "the log goes to the terminal whole"
    assert count.read_text().count("kernel.c ") == 1, "a kernel that does not build is built again"


def test_cache_kept_corrupted_and_unwritable(python, tmp_path):
    cache = tmp_path / "cache"
    assert "right" in python(UNUSUAL, GRAFT_CACHE_DIR=str(cache)).good().out
    files = [f for f in cache.rglob("*") if f.is_file()]
    assert files
    assert cache.stat().st_mode & 0o777 == 0o700
    python(UNUSUAL, GRAFT_CACHE_DIR=str(cache)).good()
    assert sorted(f for f in cache.rglob("*") if f.is_file()) == sorted(files), "compiled again"
    for damage in (b"garbage", b"", None):
        for file in files:
            if file.exists():
                file.write_bytes(file.read_bytes()[:-9] if damage is None else damage)
        assert "right" in python(UNUSUAL, GRAFT_CACHE_DIR=str(cache)).good().out
    (tmp_path / "file").write_text("in the way")
    ran = python(UNUSUAL, GRAFT_CACHE_DIR=str(tmp_path / "file" / "cache")).good()
    assert "right" in ran.out
    assert len([line for line in ran.err.splitlines() if "GRAFT_CACHE_DIR" in line]) == 1, ran.err


def test_processes_share_an_empty_cache(python, tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(3) as pool:
        runs = [pool.submit(python, UNUSUAL, GRAFT_CACHE_DIR=str(tmp_path / "c")) for _ in range(3)]
    assert all("right" in run.result().good().out for run in runs)


FAULT = """
    kinds = []
    for i in range(60):
        try:
            x = torch.ones(500, device=D) * 2
            assert (x + i).cpu()[3].item() == 2 + i
            kinds.append("ok")
        except (RuntimeError, AssertionError) as error:
            kinds.append(f"{type(error).__name__}: {error}".replace(chr(10), " "))
    print(json.dumps(kinds))
"""


@pytest.mark.parametrize("mode", ["async", "inline"])
@pytest.mark.parametrize("fault", ["alloc:0.3", "launch:17", "launch:0.1", "copy:5", "copy:0.1"])
def test_faults_become_exceptions(python, fault, mode):
    found = python(
        FAULT, GRAFT_HOST_FAULTS=fault, GRAFT_HOST_MODE=mode, GRAFT_NO_CACHING="1"
    ).value()
    failed = [text for text in found if text != "ok"]
    assert 0 < len(failed) < 50, found
    for text in failed:
        assert "host" in text or "OutOfMemoryError" in text, "the message names the driver"
        assert not text.startswith("AssertionError"), "a wrong result instead of an error"


@pytest.mark.parametrize("mode", ["async", "inline"])
def test_lost_device_stays_lost(python, mode):
    found = python(
        FAULT + "    print(json.dumps(kinds + [torch.ones(2).tolist()]))",
        GRAFT_HOST_FAULTS="lost:20", GRAFT_HOST_MODE=mode,
    ).value()  # fmt: skip
    assert found.pop() == [1, 1]
    lost = [i for i, text in enumerate(found) if text != "ok"]
    assert lost
    assert lost == list(range(lost[0], 60))
    assert all("lost" in found[i] for i in lost)
