"""The operators that docs/use/ve.md sets beside veda-pytorch's."""

from __future__ import annotations

import re

import pytest
import torch

from sandbox import ROOT

# Overloads that PyTorch 2.13 no longer has.
NAMED_DIMENSIONS = {
    "mean.names_dim",
    "mean.names_out",
    "sum.dim_DimnameList",
    "sum.DimnameList_out",
}


def listed() -> list[str]:
    page = (ROOT / "docs/use/ve.md").read_text()
    table = page.split("| kind | veda-pytorch 14 has | here |")[1].split("\n\n")[0]
    return [
        name for row in table.splitlines()[2:] for name in re.findall(r"`(\S+)`", row.split("|")[2])
    ]


def has_kernel(name: str, key: str) -> bool:
    return any(
        torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", one)
        for one in (key, "CompositeExplicitAutograd", "CompositeImplicitAutograd")
    )


@pytest.mark.every_run
def test_there_are_155() -> None:
    assert len(listed()) == len(set(listed())) == 155
    assert set(listed()) >= NAMED_DIMENSIONS


def test_each_runs_on_both_devices() -> None:
    torch.ones(1, device="ve")  # the slot takes its operators with the first tensor
    known = set(torch._C._dispatch_get_all_op_names())
    assert not {f"aten::{name}" for name in NAMED_DIMENSIONS} & known
    for name in set(listed()) - NAMED_DIMENSIONS:
        assert f"aten::{name}" in known, name
        for key in ("PrivateUse1", "VE"):
            assert has_kernel(name, key), f"{name} on {key}"
