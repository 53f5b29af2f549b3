# tests/python/attaching/test_private_names.py: how names that are private to torch are found.
from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from torch_graft import private_names as inside


@pytest.fixture
def rows(monkeypatch):
    """Adds rows to the table for a test."""
    return lambda **given: [monkeypatch.setitem(inside.TORCH, *row) for row in given.items()]


def test_importing_the_table_imports_neither_torch_nor_what_it_names():
    text = (
        "import sys; import torch_graft.private_names as inside; before = 'torch' in sys.modules;"
        "import torch; inside.module_of('DeviceInterface'); print(before, [m for m in sys.modules "
        "if m.startswith(('torch._dynamo', 'torch._inductor'))])"
    )
    command = [sys.executable, "-c", text]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == (
        "False []\n"
    )


def test_the_first_place_that_exists_counts(rows):
    rows(moved=("torch.gone:neg_view", "torch:_gone", "torch:_neg_view", "torch:neg"))
    assert inside.moved is torch._neg_view
    del inside.moved


def test_an_attribute_of_instances_is_a_function_of_them():
    tensor = torch.zeros(2)
    tensor.add_(1)
    assert inside.autograd_version(tensor) == tensor._version == 1
    module = torch.nn.Linear(1, 1)
    assert inside.module_parameters(module) is module._parameters


def test_the_module_of_a_name_is_the_first_that_exists(rows):
    rows(moved=("torch._dynamo.gone:a", "torch._gone.b:a", "torch._dynamo.decorators:a"))
    assert inside.module_of("moved") == "torch._dynamo.decorators"
    rows(gone="torch._dynamo.gone:a")
    with pytest.raises(inside.MissingName, match=r"has no torch\._dynamo\.gone:a"):
        inside.module_of("gone")


def test_a_missing_name_says_what_is_missing_and_what_to_do(rows):
    rows(gone=("torch:_gone", "torch._gone:more"))
    with pytest.raises(inside.MissingName) as raised:
        _ = inside.gone
    text = str(raised.value)
    assert f"torch {torch.__version__} has no torch:_gone or torch._gone:more" in text
    assert "calls gone" in text
    assert "install a version of torch" in text
    assert "torch_graft/private_names.py" in text


def test_a_missing_package_of_somebody_else_is_named_as_it_is(rows, tmp_path, monkeypatch):
    (tmp_path / "wants_more.py").write_text("import no_such_package\n")
    monkeypatch.syspath_prepend(tmp_path)
    rows(needy="wants_more:name")
    with pytest.raises(ModuleNotFoundError, match="no_such_package") as raised:
        _ = inside.needy
    assert not isinstance(raised.value, inside.MissingName)


def test_a_name_without_a_row_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no row 'nothing'"):
        _ = inside.nothing
