# tests/python/device/test_logging.py: records of decisions, for those who ask; silence for all others.
from __future__ import annotations

import logging
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import torch_graft
from optimized_net import DEVICE, Branching
from sandbox import ROOT, Ran

pytestmark = pytest.mark.one_mode

Interpret = Callable[..., Ran]

# As `import torch` attaches, the records of attaching are for a program that asks before.
ASKED = """
import logging
logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(name)s: %(message)s")
logging.getLogger("torch_graft").setLevel(logging.DEBUG)
import torch_graft
torch_graft._autoload()
"""


def asked(python: Interpret, code: str, **environment: str) -> list[str]:
    """The lines that a program prints which asks for every record."""
    whole = ASKED + textwrap.dedent(code)
    ran = python(whole, TORCH_DEVICE_BACKEND_AUTOLOAD="0", **environment).good()
    return ran.out.splitlines()


@pytest.fixture
def records(caplog: pytest.LogCaptureFixture) -> Callable[[str], list[str]]:
    """The records of a part since the last call."""
    caplog.set_level(logging.DEBUG, logger="torch_graft")

    def of(part: str) -> list[str]:
        found = [f"{one.levelname} {one.getMessage()}" for one in caplog.records
                 if one.name == f"torch_graft.{part}"]  # fmt: skip
        caplog.clear()
        return found

    return of


def test_nothing_is_printed_unless_asked(python: Interpret) -> None:
    ran = python(
        """
        import logging, torch_graft
        x = torch.ones(4, 4, device=D)
        torch.compile(lambda x: x * 2 + 1)(x)
        torch_graft.optimize(torch.nn.Linear(4, 4)).to(D).eval()(x)
        with torch.get_device_module(D).fallback.off():
            torch.linalg.eig(x)
        logger = logging.getLogger("torch_graft")
        assert logger.level == logging.NOTSET and logger.propagate
        assert [type(one) for one in logger.handlers] == [logging.NullHandler]
        """
    ).good()
    assert (ran.out, ran.err) == ("", "")


@pytest.mark.every_run
def test_the_page_lists_every_logger() -> None:
    sources = (ROOT / "python" / "torch_graft").rglob("*.py")
    made = {name for one in sources
            for name in re.findall(r'getLogger\("(.*?)"\)', one.read_text())}  # fmt: skip
    page = (ROOT / "docs/use/logging.md").read_text()
    assert made == set(re.findall(r"^\| `(torch_graft\.\w+)` \|", page, re.M))


def test_attaching_and_drivers(python: Interpret) -> None:
    lines = asked(python, "print('--'); torch.ones(2, device=D); torch.get_device_module(D).init()")
    attached, used = lines[: lines.index("--")], lines[lines.index("--") :]
    assert any(line.startswith("INFO torch_graft.attaching: device type 'graft' attached to torch "
                               f"{torch.__version__} in ") for line in attached)  # fmt: skip
    assert any(re.match(r"DEBUG torch_graft.drivers: the package entry 'host' offers /.*graft_host", line)
               for line in attached)  # fmt: skip
    loaded = [line for line in used if line.startswith("INFO torch_graft.drivers: 'host' loaded")]
    devices = [line for line in used if re.search(r"drivers: host:\d is '.*' \(device \d\)$", line)]
    assert (len(loaded), len(devices)) == (1, 2)


def test_a_refused_driver(python: Interpret, tmp_path: Path) -> None:
    (bad := tmp_path / "bad.so").write_text("no library")
    lines = asked(python, "torch.ones(2, device=D)", GRAFT_DRIVER_PATH=str(bad))
    assert any(line.startswith(f"INFO torch_graft.drivers: {bad} refused: ") for line in lines)


def test_records_load_no_driver(python: Interpret) -> None:
    lines = asked(python, "import atexit; atexit.register(print, '--')")
    assert not [line for line in lines if "loaded from" in line]


def test_what_ran_on_the_cpu_is_said_at_the_end(python: Interpret) -> None:
    code = """
    with torch.get_device_module(D).fallback.off():
        for _ in range(3):
            torch.linalg.eig(torch.rand(4, 4, device=D))
    """
    last = asked(python, code)[-1]
    assert last.startswith("INFO torch_graft.fallback: the CPU ran aten::linalg_eig")
    assert " 3 times, in " in last


def test_operators_make_no_records(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="torch_graft")
    x = torch.ones(4, device=DEVICE, requires_grad=True)
    caplog.clear()
    for _ in range(10):
        (x * 2 + 1).sum().backward()
        assert x.cpu().tolist() == [1] * 4
    assert caplog.records == []


def test_a_compiled_graph(records: Callable[[str], list[str]]) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return (x * 2 + 1).softmax(-1)

    torch._dynamo.reset()
    compiled = torch.compile(function)
    compiled(torch.randn(8, 8, device=DEVICE))
    said = r"INFO compiled for graft:0 in \d+\.\d{3} s: Report\(inference, \d+ nodes: .*\)"
    assert len([one for one in records("compiler") if re.fullmatch(said, one)]) == 1
    compiled(torch.randn(8, 8, device=DEVICE))
    assert records("compiler") == []


def test_a_graph_that_is_not_compiled(records: Callable[[str], list[str]]) -> None:
    torch._dynamo.reset()
    with pytest.warns(UserWarning, match="without compiling it"):
        torch.compile(lambda x: (x * 1j).real)(torch.randn(3, device=DEVICE))
    assert any(one.startswith("INFO runs as PyTorch traced it: Report(inference, not compiled: ")
               for one in records("compiler"))  # fmt: skip


def test_the_default_backend(python: Interpret) -> None:
    lines = asked(python, "import torch; torch.compile(abs)")
    said = "DEBUG torch_graft.compiler: the default backend of torch.compile "
    assert f"{said}was 'inductor' and is 'graft'" in lines


def test_optimized_calls(records: Callable[[str], list[str]]) -> None:
    optimized = torch_graft.optimize(nn.Linear(4, 4)).eval()
    for _ in range(2):
        optimized(torch.ones(2, 4))
    assert records("optimize") == ["INFO Linear runs eagerly: not on a Graft device"]
    optimized.to(DEVICE)
    for _ in range(2):
        optimized(torch.ones(2, 4, device=DEVICE))
    assert records("optimize") == ["DEBUG Linear has 1 kinds of calls that run without Python"]


def test_what_cannot_be_optimized(records: Callable[[str], list[str]]) -> None:
    optimized = torch_graft.optimize(Branching()).eval().to(DEVICE)
    with pytest.warns(UserWarning, match="runs eagerly"):
        optimized(torch.ones(2, 4, device=DEVICE))
    optimized(torch.ones(3, 4, device=DEVICE))
    [one] = records("optimize")
    assert one.startswith("INFO Branching runs eagerly, because the compiler refuses it: Data-dep")


class Counting(nn.Module):
    calls = 0

    def forward(self, x: torch.Tensor, _: Any = None) -> torch.Tensor:
        if _ is None:
            self.calls += 1
        return x + 1


@pytest.mark.parametrize(
    ("argument", "why"),
    [(slice(2), "Graft cannot compare objects in the arguments"),
     (None, "a call assigns to the model's attributes")],
)  # fmt: skip
def test_calls_that_are_traced_again(
    records: Callable[[str], list[str]], argument: Any, why: str
) -> None:
    optimized = torch_graft.optimize(Counting()).to(DEVICE)
    for _ in range(2):
        optimized(torch.ones(3, device=DEVICE), argument)
    assert f"INFO Counting goes through Dynamo at each call: {why}" in records("optimize")


def test_storages_for_other_processes(python: Interpret) -> None:
    code = """
    from torch_graft.process import multiprocessing
    recipe = multiprocessing.reduce_storage(torch.ones(4, device=D).untyped_storage())
    print(recipe[0].__name__)
    """
    lines = asked(python, code)
    how = "by a handle" if lines[-1] == "shared_storage" else "through host memory"
    said = "DEBUG torch_graft.multiprocessing: 16 bytes of graft:0 go to another process"
    assert f"{said} {how}" in lines


def test_process_groups(python: Interpret) -> None:
    code = """
    import torch.distributed as dist
    dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
    dist.destroy_process_group()
    """
    lines = asked(python, code, GRAFT_COLLECTIVES="staged")
    said = "INFO torch_graft.distributed: rank 0 of 1 joins group '0': engine staged, timeout "
    assert any(line.startswith(said) for line in lines)


@pytest.mark.parametrize(
    ("value", "said"), [("1", "attached"), ("0", "left to others: GRAFT_VE=0")]
)
def test_the_slot_of_ve(python: Interpret, value: str, said: str) -> None:
    lines = asked(python, "", GRAFT_VE=value)
    assert f"INFO torch_graft.ve: torch.device('ve') {said}" in lines
