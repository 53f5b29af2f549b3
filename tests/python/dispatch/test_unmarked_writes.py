"""Arguments that CPU kernels write although no schema says so: all of them are known, and none is lost."""

import itertools
import warnings
from collections import defaultdict

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from sandbox import ROOT, build_c

pytestmark = pytest.mark.one_mode

aten = torch.ops.aten
STATISTICS = {"running_mean", "running_var"}
# What PyTorch's CPU kernels write so. The fallback finds such writes by itself; a kernel of the
# device's own for another operator of this kind has to write them, too.
UNMARKED = {
    "aten.native_batch_norm.default": STATISTICS,
    "aten.native_batch_norm.out": STATISTICS,
    "aten.batch_norm_update_stats.default": STATISTICS,
}


def raw(tensor):
    return torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage()).numpy().tobytes()


def dense(value):
    return [
        t
        for t in tree_leaves(value)
        if isinstance(t, torch.Tensor) and t.layout == torch.strided and t.device.type == "cpu"
    ]


class Watch(TorchDispatchMode):
    """Compares the bytes of every argument before and after each operator."""

    def __init__(self):
        super().__init__()
        self.written, self.seen = defaultdict(set), set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        self.seen.add(str(func))
        marks = [a.alias_info for a in func._schema.arguments if a.alias_info is not None]
        view = any(not mark.is_write for mark in marks)
        # mkldnn's are of the CPU alone; its recurrent layers write to a workspace.
        if view or "mkldnn" in str(func):
            return func(*args, **kwargs)
        marked, before = set(), []
        for i, argument in enumerate(func._schema.arguments):
            value = args[i] if i < len(args) else kwargs.get(argument.name)
            for tensor in dense(value):
                storage = tensor.untyped_storage()
                if argument.alias_info is not None and argument.alias_info.is_write:
                    marked.add(storage._cdata)
                elif storage.nbytes() <= 1 << 14:
                    before.append((argument.name, tensor, raw(tensor), tensor.shape))
        result = func(*args, **kwargs)
        for name, tensor, held, shape in before:
            if tensor.untyped_storage()._cdata in marked:
                continue
            if raw(tensor) != held or tensor.shape != shape:
                self.written[str(func)].add(name)
        return result


def backward(result):
    results = [t for t in dense(result) if t.requires_grad]
    if results:
        torch.autograd.backward(results, [torch.ones_like(t) for t in results])


def run_operators():
    for op in op_db:
        dtypes = sorted(op.supported_dtypes("cpu"), key=str)
        if not dtypes or op.name.startswith("jiterator"):
            continue  # of CUDA alone
        dtype = torch.float32 if torch.float32 in dtypes else dtypes[0]
        grad = op.supports_autograd and dtype.is_floating_point
        for sample in itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=grad), 1):
            yield lambda op=op, s=sample: op(s.input, *s.args, **s.kwargs)


def run_modules():
    for entry in module_db:
        options = {"device": "cpu", "dtype": torch.float32, "requires_grad": True}
        inputs = entry.module_inputs_func(entry, **options, training=True)
        for one in itertools.islice(inputs, 1):
            if one.forward_input is None:
                continue
            make, call = one.constructor_input, one.forward_input
            yield lambda e=entry, make=make, call=call: e.module_cls(*make.args, **make.kwargs)(
                *call.args, **call.kwargs
            )


def run_forms():
    """In place and with out=: batch normalisation, which nothing above calls so."""
    x, mean, variance = torch.randn(3, 4, 5), torch.zeros(4), torch.ones(4)
    rest = (x, torch.ones(4), torch.zeros(4), mean, variance, True, 0.1, 1e-5)
    outs = {name: torch.empty(0) for name in ("out", "save_mean", "save_invstd")}
    yield lambda: aten.native_batch_norm(*rest)
    yield lambda: aten.native_batch_norm.out(*rest, **outs)
    yield lambda: aten.batch_norm_update_stats(x, mean, variance, 0.1)
    yield lambda: aten._native_batch_norm_legit(*rest)
    yield lambda: aten._batch_norm_with_update(*rest[:5], 0.1, 1e-5)


@pytest.mark.seldom
def test_all_of_pytorch_s_are_known():
    watch = Watch()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in itertools.chain(run_operators(), run_modules(), run_forms()):
            try:
                with watch:
                    backward(call())
            except (RuntimeError, TypeError, ValueError, NotImplementedError):
                continue  # some samples need another machine
    assert len(watch.seen) > 500, "too few operators ran"
    assert dict(watch.written) == UNMARKED


WITHOUT_VIEW = """
    import copy, warnings
    warnings.simplefilter("ignore")
    from torch import nn
    from torch.testing import assert_close
    aten = torch.ops.aten
    library = torch.library.Library("unmarked", "DEF")
    library.define("add(Tensor x, Tensor y, Tensor[] more) -> Tensor")
    def add(x, y, more):
        for one in (y, *more):
            one.detach().numpy()[...] += 1  # no version counter sees it
        return x + 1
    library.impl("add", add, "CPU")
    torch.manual_seed(0)

    def pair(t):
        return t, t.to(D)

    for dtype in (torch.float32, torch.float64):
        layers = [nn.BatchNorm1d(3), nn.BatchNorm2d(3, affine=False), nn.BatchNorm3d(3, momentum=None),
                  nn.InstanceNorm1d(3, track_running_stats=True),
                  nn.InstanceNorm2d(3, affine=True, track_running_stats=True)]
        for layer in layers:
            host = layer.to(dtype)
            there = copy.deepcopy(host).to(D)
            rank = {"1": 3, "2": 4, "3": 5}[type(layer).__name__[-2]]
            for step in range(3):
                x, y = pair(torch.randn((4, 3, 2, 5, 2)[:rank], dtype=dtype) * 3 + 7)
                assert_close(there(y).cpu(), host(x))
            for (name, a), (_, b) in zip(there.state_dict().items(), host.state_dict().items()):
                assert_close(a.cpu(), b, msg=lambda text: f"{layer} {dtype} {name}: {text}")
            assert not host.running_mean.eq(0).any()
        x, y = pair(torch.randn(4, 3, 5, dtype=dtype))
        mean, wide = torch.zeros(3, dtype=dtype), torch.zeros(6, dtype=dtype).to(D)
        there = wide[::2]  # a step between the elements
        variance, far = pair(torch.ones(3, dtype=dtype))
        aten.native_batch_norm(x, None, None, mean, variance, True, 0.5, 1e-5)
        aten.native_batch_norm(y, None, None, there, far, True, 0.5, 1e-5)
        assert_close((there.cpu(), far.cpu()), (mean, variance))
        assert wide[1::2].tolist() == [0, 0, 0]
        aten.batch_norm_update_stats(x, mean, variance, 0.5)
        aten.batch_norm_update_stats(y, there, far, 0.5)
        assert_close((there.cpu(), far.cpu()), (mean, variance))
    x = torch.arange(6.0).to(D)
    row = torch.zeros(1, 3).to(D)
    result = torch.ops.unmarked.add(x, x[1::2], [x[4:], row.expand(2, 3), x[:0]])
    assert x.tolist() == [0, 2, 2, 4, 5, 7]
    assert result.tolist() == [1, 3, 3, 5, 6, 8]
    assert row.tolist() == [[1, 1, 1]]
    print(json.dumps(sorted(torch.get_device_module(D).fallback.counts())))
"""


@pytest.mark.parametrize("mode", ["async", "inline"])
def test_none_is_lost_without_a_view_of_the_memory(python, tmp_path, mode):
    found = python(
        WITHOUT_VIEW, GRAFT_HOST_VIEW="0", GRAFT_HOST_MODE=mode, GRAFT_CC=str(tmp_path / "none"),
        GRAFT_CACHE_DIR=str(tmp_path / "c"),
    ).value()  # fmt: skip
    assert "unmarked::add" in found


def test_none_is_lost_without_kernels(python, tmp_path):
    source = (ROOT / "tests/drivers/tiny.c").read_text()
    found = python(
        WITHOUT_VIEW, GRAFT_DRIVER_PATH=build_c(tmp_path / "tiny.so", source), GRAFT_DEVICES="tiny"
    ).value()
    assert {"aten::native_batch_norm", "aten::batch_norm_update_stats"} <= set(found)


def test_none_is_lost_with_a_view(python):
    assert "unmarked::add" in python(WITHOUT_VIEW).value()
