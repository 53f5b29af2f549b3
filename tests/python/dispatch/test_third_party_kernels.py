"""Kernels for operators of a package that is not loaded: what becomes of other schemas than expected."""

import pytest

pytestmark = pytest.mark.any_driver

EXPECTED = "Tensor dets, Tensor scores, float iou_threshold"
# The arguments of the schema, what a call passes behind the boxes.
CALLS = [
    (EXPECTED, "(boxes[:, 3], 0.5)"),
    (f"{EXPECTED}, bool fast", "(boxes[:, 3], 0.5, True)"),
    (f"{EXPECTED}, *, bool fast=False", "(boxes[:, 3], 0.5)"),
    ("Tensor dets, Tensor scores", "(boxes[:, 3],)"),
    ("Tensor dets, Tensor scores, int iou_threshold", "(boxes[:, 3], 1)"),
    ("Tensor dets, Tensor scores, float score_threshold", "(boxes[:, 3], 0.5)"),
    ("Tensor scores, Tensor dets, float iou_threshold", "(boxes[:, 3], 0.5)"),
    (EXPECTED, "(boxes[:, 3], 0.5)"),
]
# The CPU's kernel, which is none of boxes, returns how many arguments it got.
DEFINE = """
import warnings
warnings.simplefilter("ignore")
module = torch.get_device_module(D)
boxes = torch.tensor([[0.0, 0, 4, 4], [0, 0, 4, 4.5], [5, 5, 6, 6]], device=D)

def call(arguments, more):
    library = torch.library.Library("torchvision", "DEF")
    library.define(f"nms({arguments}) -> Tensor")
    library.impl("nms", lambda *given: torch.tensor([len(given)]), "CPU")
    module.fallback.reset()
    found = torch.ops.torchvision.nms(boxes, *eval(more)).tolist()
    library._destroy()
    return [found, {name: count.calls for name, count in module.fallback.counts().items()}]

print(json.dumps([call(*one) for one in CALLS]))
"""


def test_a_schema_as_expected_takes_the_kernel_and_others_the_counted_fallback(python):
    found = python(f"CALLS = {CALLS!r}\n{DEFINE}").value()
    natively = [[2, 1], {}]
    counted = [[[passed], {"torchvision::nms": 1}] for passed in (4, 3, 2, 3, 3, 3)]
    assert found == [natively, *counted, natively]


def test_the_package_may_never_come(python):
    code = "print(json.dumps([hasattr(torch.ops.torchvision, 'nms'), torch.ones(2, device=D).sum().item()]))"
    assert python(code).value() == [False, 2]
