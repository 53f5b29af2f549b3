"""What PyTorch's own code asks of the device and no kernel does: every operator falls back, none fails."""

import re

import pytest

from sandbox import ROOT, build_c

pytestmark = pytest.mark.one_mode

# Runs op_db's operators, also with integers for each of their tensors, and those of their forms in
# place and with out= that take the same arguments. An operator that fails where the CPU does not
# reached a kernel that the device lacks outside of what falls back.
WALK = """
    import itertools, warnings
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.utils._pytree import tree_map
    warnings.simplefilter("ignore")
    torch.get_device_module(D).fallback  # the policy is silent
    part, parts = int(os.environ["PART"]), int(os.environ["PARTS"])
    failed, ran = {}, 0

    def there(value):
        return tree_map(lambda t: t.to(D) if isinstance(t, torch.Tensor) else t, value)

    def device_of(value):
        return tree_map(lambda v: torch.device(D) if v == "cpu" or v == torch.device("cpu") else v, value)

    def copied(value):
        return tree_map(lambda t: t.clone() if isinstance(t, torch.Tensor) else t, value)

    def integers(args, which):
        seen = itertools.count()
        def one(t):
            if not isinstance(t, torch.Tensor) or t.layout != torch.strided:
                return t
            if not t.is_floating_point():
                return t
            return t.nan_to_num(0, 3, -3).clamp(-3, 3).long() if next(seen) == which else t
        return tree_map(one, args)

    def attempt(name, call, args, kwargs):
        global ran
        try:
            with torch.no_grad():
                call(*copied(args), **copied(kwargs))
        except Exception:
            return
        ran += 1
        try:
            with torch.no_grad():
                call(*there(args), **device_of(there(kwargs)))
        except Exception as error:
            failed.setdefault(name, f"{type(error).__name__}: {error}".splitlines()[0][:300])

    for op in op_db[part::parts]:
        if op.name.startswith("jiterator") or not op.supported_dtypes("cpu"):
            continue
        for dtype in (torch.float32, torch.int64):
            if not op.supports_dtype(dtype, "cpu"):
                continue
            try:
                samples = list(itertools.islice(op.sample_inputs("cpu", dtype), 2))
            except Exception:
                continue
            for sample in samples:
                args = (sample.input, *sample.args)
                attempt(op.name, op.op, args, sample.kwargs)
                if dtype == torch.float32:
                    for which in range(3):
                        changed = integers(args, which)
                        attempt(op.name, op.op, changed, sample.kwargs)
                    if op.inplace_variant is not None:
                        attempt(op.name + "_", op.inplace_variant, args, sample.kwargs)
    for name, call in (
        ("kaiser_window", lambda device: torch.kaiser_window(9, device=device)),
        ("kaiser_window", lambda device: torch.kaiser_window(9, False, 3.0, device=device)),
    ):
        attempt(name, call, (), {"device": "cpu"})
    counts = torch.get_device_module(D).fallback.counts()
    print(json.dumps([failed, ran, sorted(counts)]))
"""
# Told in words, by design: a random operator without a generator, indices on the device, and, as on
# CUDA, a bias of another dtype than the convolution's.
REFUSED = re.compile(
    "draws random numbers|tensor_indices_or_sections to be on cpu|Input type .* and bias type"
)


@pytest.mark.parametrize("part", range(2))
@pytest.mark.seldom
def test_every_operator_falls_back_without_kernels(python, tmp_path, part):
    source = (ROOT / "tests/drivers/tiny.c").read_text()
    failed, ran, counted = python(
        WALK, timeout=600, GRAFT_DRIVER_PATH=build_c(tmp_path / "tiny.so", source),
        GRAFT_DEVICES="tiny", GRAFT_FALLBACK="off", PART=str(part), PARTS="2",
    ).value()  # fmt: skip
    assert ran > 800, "too few operators ran"
    assert len(counted) > 200
    assert {name: text for name, text in failed.items() if not REFUSED.search(text)} == {}


def test_convolutions_fall_back_without_kernels(python, tmp_path):
    source = (ROOT / "tests/drivers/tiny.c").read_text()
    counted = python(
        """
        from torch import nn
        torch.manual_seed(0)
        for make in (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d):
            for options in ({}, {"bias": False, "groups": 2, "stride": 2}):
                rank = int(make.__name__[-2])
                host = make(4, 6, 3, padding=1, **options)
                x = torch.randn(2, 4, *(5, 6, 4)[:rank], requires_grad=True)
                host(x).square().sum().backward()
                expected = [x.grad, *(p.grad for p in host.parameters())]
                there, y = make(4, 6, 3, padding=1, **options), x.detach().to(D).requires_grad_()
                there.load_state_dict(host.state_dict())
                there.to(D)(y).square().sum().backward()
                found = [y.grad, *(p.grad for p in there.parameters())]
                torch.testing.assert_close([t.cpu() for t in found], expected)
        x, w = torch.arange(12).view(1, 2, 6), torch.arange(6).view(1, 2, 3)
        assert torch.conv1d(x.to(D), w.to(D)).tolist() == torch.conv1d(x, w).tolist()
        print(json.dumps(sorted(torch.get_device_module(D).fallback.counts())))
        """,
        GRAFT_DRIVER_PATH=build_c(tmp_path / "tiny.so", source), GRAFT_DEVICES="tiny",
        GRAFT_FALLBACK="off",
    ).value()  # fmt: skip
    names = {"aten::convolution_overrideable", "aten::convolution_backward_overrideable"}
    assert names <= set(counted)


def test_composites_that_call_stubs_are_counted(python, tmp_path):
    source = (ROOT / "tests/drivers/tiny.c").read_text()
    counted = python(
        """
        x, e = torch.tensor([1.5, -2.0]).to(D), torch.tensor([3, -1]).to(D)
        assert torch.ldexp(x, e).tolist() == [12, -1]
        assert x.clone().ldexp_(e).tolist() == [12, -1]
        assert torch.ldexp(x, e, out=torch.empty(2).to(D)).tolist() == [12, -1]
        assert torch.kaiser_window(3, False, device=D)[1].item() == 1
        print(json.dumps(sorted(torch.get_device_module(D).fallback.counts())))
        """,
        GRAFT_DRIVER_PATH=build_c(tmp_path / "tiny.so", source), GRAFT_DEVICES="tiny",
        GRAFT_FALLBACK="off",
    ).value()  # fmt: skip
    assert {"aten::ldexp.Tensor", "aten::ldexp.out", "aten::kaiser_window.periodic"} <= set(counted)
