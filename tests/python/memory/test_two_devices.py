"""Out of memory with several devices and drivers: the error names the device that it happened on."""

import pytest

from sandbox import ROOT, build_c

pytestmark = pytest.mark.both_modes

MIB = 1 << 20
TRY = """
    def told(work):
        try:
            work()
        except torch.OutOfMemoryError as error:
            return str(error)
        return "no error"
    def full(mebibytes, place):
        return torch.empty(mebibytes << 20, dtype=torch.uint8, device=place)
    a, b = D + ":0", D + ":1"
    if os.environ["SWAP"] == "1":
        a, b = b, a
    x = full(40, b).fill_(3)
    found = {
        "direct": told(lambda: full(128, b)),
        "like": told(lambda: torch.empty_like(x)),
        "result": told(lambda: x + x),
        "from the host": told(lambda: torch.zeros(16 << 20).to(b)),
        "from there": told(lambda: x.to(torch.float32).to(a)),
        "to": told(lambda: (full(40, a), x.to(a))),
    }
    with torch.get_device_module(D).device(b):
        found["current"] = told(lambda: full(128, D))
    left = (torch.ones(2, device=a) + 1).tolist() + (torch.ones(2, device=b) + 1).tolist()
    print(json.dumps([found, left, x[:3].tolist()]))
"""


def check(ran, first, second):
    found, left, kept = ran.value()
    there, here = (f"{name} has a total of 64.00 MiB" for name in (second, first))
    for name in ("direct", "like", "result", "from the host", "from there", "current"):
        assert there in found[name], (name, found[name])
        assert first not in found[name]
        assert "torch.graft.empty_cache()" in found[name]
    assert here in found["to"], found["to"]
    assert second not in found["to"]
    assert (left, kept) == ([2] * 4, [3] * 3)


@pytest.mark.parametrize("swap", ["0", "1"])
@pytest.mark.parametrize("uncached", ["0", "1"])
def test_of_one_driver(python, swap, uncached):
    ran = python(
        TRY, SWAP=swap, GRAFT_DEVICES="host", GRAFT_HOST_DEVICES="2", GRAFT_NO_CACHING=uncached,
        GRAFT_HOST_MEMORY=str(64 * MIB),
    )  # fmt: skip
    names = ["graft:0 (driver 'host')", "graft:1 (driver 'host')"]
    check(ran, *(names if swap == "0" else names[::-1]))


# tiny.c looks at each allocation alone; this one counts what it gave.
COUNTING = (
    ("#include <stdlib.h>", "#include <malloc.h>\n#include <stdlib.h>\nstatic uint64_t held;"),
    ("1ull << 30", "64ull << 20"),
    ("bytes <= kMemoryBytes ?", "held + bytes <= kMemoryBytes ?"),
    ("*out = (uint64_t)(uintptr_t)pointer;",
     "held += malloc_usable_size(pointer); *out = (uint64_t)(uintptr_t)pointer;"),
    ("free((void*)(uintptr_t)address);",
     "held -= malloc_usable_size((void*)(uintptr_t)address); free((void*)(uintptr_t)address);"),
)  # fmt: skip


@pytest.mark.parametrize("swap", ["0", "1"])
def test_of_two_drivers(tmp_path, python, swap):
    source = "#include <stdint.h>\n" + (ROOT / "tests/drivers/tiny.c").read_text()
    for old, new in COUNTING:
        assert old in source
        source = source.replace(old, new, 1)
    ran = python(
        TRY, SWAP=swap, GRAFT_DRIVER_PATH=build_c(tmp_path / "counting.so", source),
        GRAFT_DEVICES="host,tiny", GRAFT_HOST_DEVICES="1", GRAFT_HOST_MEMORY=str(64 * MIB),
        GRAFT_FALLBACK="off",
    )  # fmt: skip
    names = ["graft:0 (driver 'host')", "graft:1 (driver 'tiny')"]
    check(ran, *(names if swap == "0" else names[::-1]))


def test_the_text_has_the_devices_own_name(python):
    ran = python(
        """
        try:
            torch.empty(1 << 40, dtype=torch.uint8, device="npu:1")
        except torch.OutOfMemoryError as error:
            print(error)
        """,
        GRAFT_DEVICE_NAME="npu", GRAFT_DEVICES="host", GRAFT_HOST_DEVICES="2",
    ).good()  # fmt: skip
    assert "npu:1 (driver 'host') has a total of" in ran.out
    assert "torch.npu.empty_cache()" in ran.out
