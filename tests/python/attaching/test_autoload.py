"""What `import torch` does with Graft installed: little, and never harm."""

import pytest

STATE = """
    tasks = len(os.listdir("/proc/self/task"))
    maps = open("/proc/self/maps").read()
    print(json.dumps([tasks, sorted(sys.modules), "graft_host" in maps, "dnnl" in maps]))
"""


def test_import_is_light(python):
    tasks, modules, host, library = python(STATE).value()
    tasks_off, modules_off, _, _ = python(STATE, TORCH_DEVICE_BACKEND_AUTOLOAD="0").value()
    assert tasks == tasks_off, "import started a thread"
    assert not host, "import loaded a driver"
    assert not library
    new = set(modules) - set(modules_off)
    heavy = [
        m for m in new if m.startswith(("torch._inductor", "torch._dynamo", "torchgen", "sympy"))
    ]
    assert heavy == []
    assert len(new) < 60


def test_switched_off(python):
    python(
        """
        assert not hasattr(torch, D)
        assert torch.accelerator.current_accelerator() is None
        import torch_graft
        torch_graft._autoload()
        assert (torch.ones(2, device=D) + 1).tolist() == [2, 2]
        torch_graft._autoload()  # twice is once
        """,
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    ).good()


@pytest.fixture
def neighbour(tmp_path):
    """A package with a torch.backends entry point of its own; returns its folder."""

    def make(body):
        info = tmp_path / "neighbour-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: neighbour\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[torch.backends]\naaa = neighbour:start\n")
        (tmp_path / "neighbour.py").write_text(f"def start():\n    import torch\n    {body}\n")
        return str(tmp_path)

    return make


def test_beside_another_backend(python, neighbour):
    folder = neighbour("torch.neighbour_started = True")
    python(
        """
        assert torch.neighbour_started
        assert (torch.ones(2, device=D) + 1).tolist() == [2, 2]
        """,
        PYTHONPATH=folder,
    ).good()


def test_slot_already_taken(python):
    ran = python(
        """
        torch.utils.rename_privateuse1_backend("taken")
        import torch_graft
        torch_graft._autoload()
        assert not hasattr(torch, D)
        assert torch.device("taken").type == "taken"
        print(torch.ones(2).tolist())
        """,
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    ).good()
    assert "taken" in ran.err


def test_slot_taken_by_a_neighbour(python, neighbour):
    folder = neighbour("torch.utils.rename_privateuse1_backend('taken')")
    assert "[1.0, 1.0]" in python("print(torch.ones(2).tolist())", PYTHONPATH=folder).good().out


def test_the_issue_s_one_liner(python):
    import subprocess
    import sys

    code = "import torch; print(torch.ones(2, device='graft') + 1)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ran.stdout == "tensor([2., 2.], device='graft:0')\n"
    assert ran.stderr == ""
