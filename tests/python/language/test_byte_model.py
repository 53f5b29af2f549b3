# tests/python/language/test_byte_model.py: a model of bytes is trained on the device and quantized there.
from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest
import torch

import byte_model
from byte_model import ByteModel, perplexity
from quantized_cases import native

pytestmark = [pytest.mark.one_mode, pytest.mark.seldom]

# What the steps of byte_model.py reach, in nats a byte; without training it is 5.5.
LOSS = 2.75
GROUPS = (32, 64, 128)


@pytest.fixture(scope="module")
def learned(device: str) -> tuple[ByteModel, float]:
    return byte_model.trained(device)


@pytest.fixture
def packing() -> Iterator[None]:
    """The integration that lets torchao pack weights on the device."""
    import torch_graft.integrations.torchao  # noqa: F401
    from torch_graft import integrations

    integrations.enable("torchao")
    yield
    integrations.disable("torchao")


@pytest.mark.timeout(600)
def test_training_reaches_its_loss(learned: tuple[ByteModel, float]) -> None:
    model, loss = learned
    assert 4e6 < sum(one.numel() for one in model.parameters()) < 6e6
    assert loss < LOSS


@pytest.mark.timeout(600)
@pytest.mark.parametrize("group", [None, *GROUPS], ids=["int8", *(f"int4 {n}" for n in GROUPS)])
def test_perplexity_is_torchao_s_on_the_cpu(
    group: int | None, learned: tuple[ByteModel, float], device: str, packing: None
) -> None:
    from torchao.prototype.quantization.int4 import PrototypeInt4WeightOnlyConfig
    from torchao.quantization import Int4WeightOnlyConfig, Int8WeightOnlyConfig, quantize_

    model = copy.deepcopy(learned[0]).to(torch.bfloat16)
    there = copy.deepcopy(model).to("cpu")
    plain = perplexity(model, device)
    if group is None:
        quantize_(model, Int8WeightOnlyConfig())
        quantize_(there, Int8WeightOnlyConfig())
    else:
        quantize_(model, Int4WeightOnlyConfig(group, set_inductor_config=False))
        quantize_(there, PrototypeInt4WeightOnlyConfig(group, set_inductor_config=False))
    with native(device):
        found = perplexity(model, device)
    assert found == pytest.approx(perplexity(there, "cpu"), rel=0.01)
    assert found < plain * (1.02 if group is None else 1.5)
