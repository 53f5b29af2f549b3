# conformance/tests/cells/test_cases.py: the listing equals PyTorch's databases, and bad selections are refused.
from __future__ import annotations

import collections

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.common_optimizers import optim_db

from torch_conformance import SetupError
from torch_conformance.cells import cases


def count(**chosen):
    return collections.Counter((c.suite, c.aspect) for c in cases.select(**chosen))


def test_operator_cells_equal_the_database():
    dtypes = sum(len(op.supported_dtypes("cpu")) for op in op_db)
    found = count(suites=["op"])
    assert found["op", "forward"] == dtypes
    assert found["op", "backward"] == sum(len(op.supported_backward_dtypes("cpu")) for op in op_db)
    assert found["op", "out"] == sum(
        len(op.supported_dtypes("cpu")) for op in op_db if op.supports_out
    )
    assert found["op", "inplace"] == sum(
        len(op.supported_dtypes("cpu")) for op in op_db if op.inplace_variant
    )
    assert found["op", "errors"] == sum(1 for op in op_db if op.error_inputs_func)
    assert found["op", "autocast"] == sum(
        torch.float32 in op.supported_dtypes("cpu") for op in op_db
    )
    assert {found["op", layout] for layout in cases.LAYOUTS} == {dtypes}


def test_module_and_optimizer_cells_equal_the_databases():
    found = count(suites=["module", "optim"])
    dtypes = sum(len(module.supported_dtypes("cpu")) for module in module_db)
    assert found["module", "forward"] == found["module", "backward"] == dtypes
    assert found["optim", "step"] == 2 * len(optim_db)
    assert found["optim", "foreach"] == 2 * sum("foreach" in o.supported_impls for o in optim_db)
    assert found["optim", "errors"] == len(optim_db)


def test_every_cell_has_its_own_name():
    every = cases.select()
    assert len(set(every)) == len(every) > 40000


def test_shards_are_a_partition_and_keep_samples_together():
    whole = cases.select(suites=["op"], dtypes=["float32"])
    parts = [cases.select(suites=["op"], dtypes=["float32"], shard=(k, 3)) for k in (1, 2, 3)]
    assert sorted(whole) == sorted(cell for part in parts for cell in part)
    jobs = [{cell[:3] for cell in part} for part in parts]
    assert not jobs[0] & jobs[1]
    assert not jobs[1] & jobs[2]
    assert not jobs[0] & jobs[2]


def test_patterns():
    cells = cases.select(
        ops=["nn.functional.conv?d", "add"], dtypes=["float*"], aspects=["forward"]
    )
    assert {c.entry for c in cells} == {"add", *(f"nn.functional.conv{n}d" for n in (1, 2, 3))}
    assert {c.dtype for c in cells} == {"float16", "float32", "float64"}


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({"ops": ["nn.functional.rleu"]}, ["nn.functional.rleu", "nn.functional.relu"]),
        ({"dtypes": ["float31"]}, ["dtype", "float31", "float32"]),
        ({"aspects": ["backwards"]}, ["aspect", "backwards", "backward"]),
        ({"suites": ["ops"]}, ["suite", "'ops'", "op"]),
    ],
)
def test_unknown_names_are_refused_with_near_ones(chosen, words):
    with pytest.raises(SetupError) as error:
        cases.select(**chosen)
    assert all(word in str(error.value) for word in words)
