"""What PyTorch's own code asks of the device and no kernel does: every operator falls back, none fails."""

import re

import pytest

from sandbox import ROOT, build_c, program

pytestmark = pytest.mark.one_mode

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
        program("tests/python/dispatch/stub_walk.py"), timeout=600, GRAFT_DRIVER_PATH=build_c(tmp_path / "tiny.so", source),
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
