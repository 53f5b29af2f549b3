# tests/python/opencl/test_faults.py: what users see of OpenCL devices that fail, fill up or lack something.
"""The fake ICD over PoCL (GRAFT_FAKE_CL) hides and fails; each plan runs in an interpreter of its own."""

import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from sandbox import ROOT, TOLD, program

pytestmark = pytest.mark.one_mode

# Two steps of a model with convolution, normalisation, pooling and indices, and a sort.
MODEL = """
def trained(where):
    from torch import nn
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
    model = nn.Sequential(*layers, nn.Linear(36, 5)).to(where)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02, foreach=True)
    rows, wanted = torch.arange(768.).sin().view(4, 3, 8, 8), torch.tensor([0, 1, 2, 3])
    for _ in range(2):
        loss = nn.functional.cross_entropy(model(rows.to(where)), wanted.to(where))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    half = model(rows.to(where)).half()
    return [loss.item(), *half.sort(1).values.float().sum(0).tolist(), half.mean().item()]
"""


@pytest.fixture(scope="session")
def fake_icd(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The library that stands for libOpenCL.so.1."""
    built = tmp_path_factory.mktemp("fake") / "fake_cl.so"
    sources = sorted(map(str, (ROOT / "tests/drivers/opencl").glob("fake_icd*.cpp")))
    subprocess.run(
        ["c++", "-std=c++20", "-shared", "-fPIC", f"-I{ROOT}", f"-I{ROOT}/include", *sources,
         "-ldl", "-o", str(built)], check=True,
    )  # fmt: skip
    return str(built)


@pytest.fixture
def on(python, fake_icd, tmp_path):
    """Runs code on a device with the plan's faults, from a kernel cache of its own when cold."""

    def run(plan: str, code: str, cold: bool = False, **more: str):
        cache = {"GRAFT_CACHE_DIR": str(tmp_path / "cache")} if cold else {}
        return python(
            TOLD + code, GRAFT_DEVICES="opencl", GRAFT_OPENCL_LIBRARY=fake_icd,
            GRAFT_FAKE_CL=plan, POCL_DEVICES="pthread", **cache, **more,
        )  # fmt: skip

    return run


NOTHING = """
found = [torch.graft.device_count(), told(lambda: torch.ones(2, device=D))]
print(json.dumps([*found, (torch.ones(2) + 1).tolist()]))
"""


@pytest.mark.parametrize("plan", ["no_devices", "fail:clGetPlatformIDs:0:-1001"])
def test_without_a_device_torch_goes_on(on, plan):
    ran = on(plan, NOTHING)
    count, text, alive = ran.value()
    assert count == 0
    assert "no device graft:0" in text
    assert "doctor" in text
    assert alive == [2, 2]
    assert "names no device; found: " in ran.err


def test_without_an_icd_torch_goes_on(python):
    ran = python(TOLD + NOTHING, GRAFT_DEVICES="opencl", OCL_ICD_VENDORS="/nonexistent")
    assert ran.value()[0] == 0
    assert "names no device; found: " in ran.err


def test_a_device_that_does_not_open_is_named(on):
    ran = on(
        "fail:clCreateContext:0:-6", "print(json.dumps(told(lambda: torch.ones(2, device=D))))"
    )
    assert "graft:0" in ran.value()
    assert "CL_OUT_OF_HOST_MEMORY" in ran.value()


def test_a_lost_device_stays_lost_and_nothing_hangs(on):
    found = on("lost_after:30", """
x = torch.zeros(3, device=D)
def count():
    for _ in range(200):
        x.add_(1)
    return x.cpu()
found = [told(w) for w in (count, lambda: x + 1, x.cpu, lambda: torch.ones(9, device=D),
                           torch.accelerator.synchronize)]
print(json.dumps([found, (torch.ones(2) + 1).tolist()]))
""").value()  # fmt: skip
    for text in found[0]:
        assert text.startswith("AcceleratorError"), text
        assert "is lost" in text
        assert "restart the process" in text
    assert found[1] == [2, 2]


def test_more_than_one_allocation_may_have_is_out_of_memory(on):
    text, total = on("alloc_limit:33554432", """
text = told(lambda: torch.ones(9_000_000, device=D))
print(json.dumps([text, torch.ones(1_000_000, device=D).sum().item()]))
""").value()  # fmt: skip
    assert text.startswith("OutOfMemoryError")
    assert "36000256" in text
    assert "33554432" in text
    assert total == 1_000_000


# What the driver counts itself, and what only the device knows.
@pytest.mark.parametrize("plan", ["memory:67108864", "out_of_memory:67108864"])
def test_a_full_device_empties_the_cache_and_tries_again(on, plan):
    found = on(plan, """
stats = torch.graft.memory_stats
blocks = [torch.ones(2**20, device=D) for _ in range(10)]
del blocks
large = torch.ones(12 * 2**20, device=D)
found = [large.sum().item(), stats()["num_alloc_retries"], stats()["num_ooms"]]
found += [told(lambda: torch.ones(12 * 2**20, device=D)), stats()["num_ooms"]]
del large
print(json.dumps([*found, torch.ones(12 * 2**20, device=D).sum().item()]))
""").value()  # fmt: skip
    assert found[:3] == [12 * 2**20, 1, 0]
    assert found[3].startswith("OutOfMemoryError: Tried to allocate 48.00 MiB")
    assert "48.00 MiB is allocated by tensors" in found[3]
    assert found[4:] == [1, 12 * 2**20]


def test_memory_runs_out_inside_a_backward(on):
    found = on("memory:134217728", program("tests/python/support/failing_backward.py")).value()
    assert found == [True, 0, True, True]


@pytest.mark.parametrize("plan", ["late:clEnqueueNDRangeKernel:9:-5",
                                  "no_svm,late:clEnqueueNDRangeKernel:9:-5"])  # fmt: skip
def test_a_late_error_names_its_operator(on, plan):
    text, after = on(plan, """
x = torch.ones(1000).to(D)
def chain():
    y = x
    for _ in range(30):
        y = y.tanh()
    torch.accelerator.synchronize()
print(json.dumps([told(chain), torch.ones(3, device=D).tolist()]))
""").value()  # fmt: skip
    assert "aten::tanh" in text
    assert "graft:0 (driver 'opencl')" in text
    assert after == [1, 1, 1]


def test_without_float64_its_operators_run_on_the_cpu_and_name_the_device(on):
    ran = on("no_fp64", """
total = (torch.arange(4.0, device=D, dtype=torch.float64) / 3).sum()
mean = torch.arange(4.0, device=D).mean()
print(json.dumps([total.item(), mean.item(), list(torch.graft.fallback.counts())]))
""")  # fmt: skip
    total, mean, counted = ran.value()
    assert total == pytest.approx(2.0, rel=1e-15)
    assert mean == 1.5
    assert "aten::div.Tensor" in counted
    assert "dtype float64 is not supported by device graft:0 (driver 'opencl')" in ran.err
    assert "convert to float32" in ran.err


@pytest.mark.parametrize("plan", ["no_compiler", "fail:clBuildProgram:0:-11"])
def test_kernels_that_do_not_build_leave_their_operators_to_the_cpu(on, plan):
    ran = on(plan, """
found = (torch.ones(3, device=D) * 5 + 1).tolist()
print(json.dumps([found, {n: c.calls for n, c in torch.graft.fallback.counts().items()}]))
""", cold=True)  # fmt: skip
    assert ran.value() == [[6, 6, 6], {"aten::mul.Tensor": 1, "aten::add.Tensor": 1}]
    if plan != "no_compiler":
        assert "aten::mul.Tensor failed on graft:0" in ran.err
        assert "CL_BUILD_PROGRAM_FAILURE" in ran.err
    assert "__kernel" not in ran.err
    assert "__kernel" not in ran.out


KINDS = ["no_svm", "coarse_svm", "no_svm,usm", "no_svm,address", "version:1.2", "gpu:0,no_svm",
         "no_fp16", "no_int64_atomics"]  # fmt: skip


@pytest.mark.parametrize("plan", KINDS)
def test_what_a_device_lacks_changes_no_result(on, plan):
    ran = on(plan, MODEL + """
print(json.dumps([trained(D), trained("cpu"), list(torch.graft.fallback.counts())]))
""")  # fmt: skip
    found, wanted, counted = ran.value()
    assert found == pytest.approx(wanted, rel=1e-2, abs=1e-2)
    assert found[0] == pytest.approx(wanted[0], rel=1e-4)
    assert counted == []


def test_a_damaged_cache_is_compiled_anew(on, tmp_path):
    code = "print(json.dumps((torch.arange(5.0, device=D) * 3 - 1).tolist()))"
    wanted = on("", code, cold=True).value()
    damages = (lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b[:-9] + bytes(9),
               lambda b: bytes([b[0] ^ 255]) + b[1:])  # fmt: skip
    for damage in damages:
        files = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
        assert files
        for path in files:
            path.write_bytes(damage(path.read_bytes()))
        ran = on("", code, cold=True)
        assert ran.value() == wanted == [-1, 2, 5, 8, 11]
    # From what was written again nothing is compiled.
    ran = on("fail:clCreateProgramWithSource:0:-6", code, cold=True, GRAFT_FALLBACK="forbid")
    assert ran.value() == wanted


def test_processes_that_compile_the_same_kernels_at_once_agree(on):
    code = MODEL + 'print(json.dumps([trained(D), trained("cpu")]))'
    with ThreadPoolExecutor(3) as pool:
        runs = [pool.submit(on, "slow_build:50", code, cold=True) for _ in range(3)]
    for run in runs:
        found, wanted = run.result().value()
        assert found == pytest.approx(wanted, rel=1e-2, abs=1e-2)
