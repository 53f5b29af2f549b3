"""torch.fft, stft and istft against the CPU: values, layouts, norms, gradients, out=, errors."""

import pytest
import torch
from torch.testing import assert_close

REAL = [torch.float32, torch.float64]
NORMS = ["backward", "ortho", "forward"]

# name -> function of (real signal, complex signal, norm).
CALLS = {
    "fft": lambda x, z, norm: torch.fft.fft(z, norm=norm),
    "fft of reals": lambda x, z, norm: torch.fft.fft(x, norm=norm),
    "fft of a part": lambda x, z, norm: torch.fft.fft(z, n=5, dim=0, norm=norm),
    "fft of more": lambda x, z, norm: torch.fft.fft(z, n=23, dim=1, norm=norm),
    "ifft": lambda x, z, norm: torch.fft.ifft(z, dim=-2, norm=norm),
    "rfft": lambda x, z, norm: torch.fft.rfft(x, norm=norm),
    "rfft across": lambda x, z, norm: torch.fft.rfft(x, dim=0, norm=norm),
    "irfft": lambda x, z, norm: torch.fft.irfft(z, norm=norm),
    "irfft to odd": lambda x, z, norm: torch.fft.irfft(z, n=15, dim=1, norm=norm),
    "hfft": lambda x, z, norm: torch.fft.hfft(z, norm=norm),
    "ihfft": lambda x, z, norm: torch.fft.ihfft(x, norm=norm),
    "fft2": lambda x, z, norm: torch.fft.fft2(z, norm=norm),
    "fftn": lambda x, z, norm: torch.fft.fftn(z, norm=norm),
    "fftn of some": lambda x, z, norm: torch.fft.fftn(z, dim=(2, 0), norm=norm),
    "ifftn": lambda x, z, norm: torch.fft.ifftn(z, s=(3, 8), dim=(0, 1), norm=norm),
    "rfftn": lambda x, z, norm: torch.fft.rfftn(x, norm=norm),
    "irfftn": lambda x, z, norm: torch.fft.irfftn(z, norm=norm),
    "hfftn": lambda x, z, norm: torch.fft.hfftn(z, norm=norm),
    "ihfftn": lambda x, z, norm: torch.fft.ihfftn(x, norm=norm),
    "of a conjugate": lambda x, z, norm: torch.fft.fft(z.conj(), norm=norm),
    "two-sided": lambda x, z, norm: torch.ops.aten._fft_r2c(x, [0, 2], 1, False),
}

LAYOUTS = {
    "contiguous": lambda t: t.clone(),
    "transposed": lambda t: t.transpose(0, -1).clone().transpose(0, -1),
    "stepped": lambda t: t.repeat_interleave(2, -1).repeat_interleave(2, 0)[::2, ..., ::2],
    "inside": lambda t: torch.nn.functional.pad(t, (1, 2, 3, 1))[..., 3:-1, 1:-2],
}


def signals(shape, dtype=torch.float64):
    generator = torch.Generator().manual_seed(11)
    real = torch.randn(shape, generator=generator, dtype=torch.float64)
    other = torch.randn(shape, generator=generator, dtype=torch.float64)
    return real.to(dtype), torch.complex(real, other).to(dtype.to_complex())


def assert_equal(found, expected, what=""):
    """Errors of a transform are relative to its largest results, for sums mix all of a line."""
    scale = expected.abs().max()
    assert_close(found.cpu() / scale, expected / scale, msg=lambda text: f"{what}: {text}")


@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize("norm", NORMS)
def test_against_cpu(dtype, norm, device, native):
    for shape in ((7, 12, 9), (2, 20, 17)):
        x, z = signals(shape, dtype)
        for name, call in CALLS.items():
            found = call(x.to(device), z.to(device), norm)
            assert_equal(found, call(x, z, norm), name)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, device, native):
    x, z = signals((6, 8, 5))
    change = LAYOUTS[layout]
    for name, call in CALLS.items():
        found = call(change(x.to(device)), change(z.to(device)), "ortho")
        assert_equal(found, call(x, z, "ortho"), name)


REPEATED = {
    "rfft": torch.fft.rfft, "ihfft": torch.fft.ihfft, "rfft2": torch.fft.rfft2,
    "rfftn": torch.fft.rfftn, "ihfftn": torch.fft.ihfftn, "fft": torch.fft.fft,
    "irfft": torch.fft.irfft, "hfft": torch.fft.hfft, "irfftn": torch.fft.irfftn,
    "hfft2": torch.fft.hfft2, "stft": lambda x: torch.stft(x, 4, return_complex=True),
}  # fmt: skip


@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize("name", REPEATED)
def test_numbers_that_share_their_memory(name, dtype, device):
    numbers = torch.arange(1.0, 25, dtype=dtype)
    for length in (2, 8, 9, 10, 2048, 4096):
        views = [
            lambda x, n=length: x[0].expand(n),
            lambda x, n=length: x[:3, None].expand(3, n),
            lambda x, n=length: x[:4].expand(n, 4),
        ]
        if length <= 10:  # numbers that overlap in part
            views.append(lambda x, n=length: x.as_strided((3, n), (1, 2)))
            views.append(lambda x, n=length: x.as_strided((n, 3), (1, 1)))
        for view in views:
            x = view(numbers)
            if (name.endswith(("2", "n")) and x.dim() < 2) or (
                name == "stft" and (x.dim() > 1 or length < 8)
            ):
                continue
            assert_equal(REPEATED[name](view(numbers.to(device))), REPEATED[name](x), f"{x.shape}")
    eight = torch.fft.rfft(torch.ones((), dtype=dtype, device=device).expand(8))
    assert eight.tolist() == [8, 0, 0, 0, 0]


@pytest.mark.parametrize("name", ["irfft", "hfft", "irfft2", "hfft2", "irfftn", "hfftn", "ifft"])
def test_gradients_of_repeated_cotangents(name, device, native):
    call = getattr(torch.fft, name)
    host = signals((4, 6, 5))[1].requires_grad_()
    there = host.detach().to(device).requires_grad_()
    for z in (host, there):
        torch.view_as_real(call(z).to(torch.complex128)).sum().backward()
        call(z).real.sum().backward()
    assert_equal(there.grad, host.grad, name)


@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize("length", [1, 2, 97, 100, 1021, 1024, 2000, 4096, 10007])
def test_lengths(length, dtype, device, native):
    x, z = signals((2, length), dtype)
    for call in (
        lambda x, z: torch.fft.fft(z),
        lambda x, z: torch.fft.rfft(x),
        lambda x, z: torch.fft.irfft(z, n=length),
    ):
        assert_equal(call(x.to(device), z.to(device)), call(x, z))


def test_empty_batches(device, native):
    x, z = (t.to(device) for t in signals((0, 6)))
    assert torch.fft.fft(z).shape == (0, 6)
    assert torch.fft.rfft(x).shape == (0, 4)
    assert torch.fft.irfft(z).shape == (0, 10)


def test_gradients(device, native):
    for name, call in CALLS.items():
        host = [t.requires_grad_() for t in signals((4, 6, 5))]
        there = [t.detach().to(device).requires_grad_() for t in host]
        for x, z in (host, there):
            result = call(x, z, "ortho")
            (result * result.conj()).real.sum().backward()
        for h, t in zip(host, there, strict=True):
            if h.grad is not None:
                assert_equal(t.grad, h.grad, name)


def test_out(device, native):
    x, z = signals((3, 8))
    y, w = x.to(device), z.to(device)
    for call, source, there in (
        (torch.fft.fft, z, w),
        (torch.fft.rfft, x, y),
        (torch.fft.irfft, z, w),
        (torch.fft.fft, x, y),
    ):
        expected = call(source)
        grown = torch.empty(0, dtype=expected.dtype, device=device)
        assert call(there, out=grown) is grown
        assert_close(grown.cpu(), expected)
        wide = torch.zeros(3, 2 * expected.shape[1], dtype=expected.dtype, device=device)
        call(there, out=wide[:, ::2])
        assert_close(wide[:, ::2].cpu(), expected)
    torch.fft.fft(w, out=w)
    assert_close(w.cpu(), torch.fft.fft(z))


def test_short_time(device, native):
    x = signals((2, 400))[0]
    window = torch.hann_window(64, dtype=x.dtype)
    spectra = []
    for where in ("cpu", device):
        spectrum = torch.stft(x.to(where), 64, 16, window=window.to(where), return_complex=True)
        back = torch.istft(spectrum, 64, 16, window=window.to(where), length=400)
        spectra.append(spectrum.cpu())
        assert_close(back.cpu(), x)
    assert_close(*spectra)


def test_errors(device):
    def message(where, call):
        x, z = (t.to(where) for t in signals((3, 4)))
        with pytest.raises((RuntimeError, IndexError)) as raised:
            call(x, z)
        return type(raised.value), str(raised.value)

    for call in (
        lambda x, z: torch.fft.fft(z[:, :0]),
        lambda x, z: torch.fft.irfft(z, n=0),
        lambda x, z: torch.fft.rfft(z),
        lambda x, z: torch.fft.fft(x.half()),
        lambda x, z: torch.fft.fft(z, norm="other"),
        lambda x, z: torch.fft.fft(z, dim=2),
        lambda x, z: torch.ops.aten._fft_c2c(x, [0], 0, True),
        lambda x, z: torch.ops.aten._fft_r2c(z, [0], 0, True),
        lambda x, z: torch.ops.aten._fft_c2r(x, [0], 0, 4),
        lambda x, z: torch.ops.aten._fft_r2c(x.half(), [0], 0, True),
    ):
        assert message(device, call) == message("cpu", call)
