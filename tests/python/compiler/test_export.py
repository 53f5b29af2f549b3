"""torch.export, FakeTensor and torch.fx know the device: programs are traced, saved, moved and run."""

import copy
import io

import pytest
import torch
from torch import nn
from torch._subclasses import FakeTensorMode
from torch.export import Dim, export
from torch.export.passes import move_to_device_pass
from torch.nn import functional as F
from torch.testing import assert_close


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
        self.head = nn.Linear(4, 3)
        self.register_buffer("shift", torch.arange(3.0))

    def forward(self, x):
        return self.head(F.adaptive_avg_pool2d(self.body(x), 1).flatten(1)) + self.shift


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.recurrent = nn.LSTM(8, 8, batch_first=True)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)

    def forward(self, tokens):
        return self.layer(self.recurrent(self.embed(tokens))[0])


def classifier(device):
    torch.manual_seed(0)
    return Classifier().to(device).eval()


def images(device, count=2):
    return torch.linspace(-1, 1, count * 64).reshape(count, 1, 8, 8).to(device)


def devices_in(program):
    values = (node.meta.get("val") for node in program.graph.nodes)
    return {value.device.type for value in values if isinstance(value, torch.Tensor)}


def test_an_exported_program_runs_on_the_device(device, module):
    model, x = classifier(device), images(device)
    program = export(model, (x,))
    assert devices_in(program) == {device}
    assert {t.device.type for t in program.state_dict.values()} == {device}
    with module.fallback.forbid():
        assert_close(program.module()(x), model(x))
        assert_close(program.run_decompositions().module()(x), model(x))
    assert_close(program.module()(x).cpu(), classifier("cpu")(images("cpu")), rtol=1e-4, atol=1e-5)


def test_sizes_may_vary(device):
    model = classifier(device)
    program = export(model, (images(device),), dynamic_shapes=({0: Dim("batch", min=2, max=16)},))
    for count in (2, 5):
        assert_close(program.module()(images(device, count)), model(images(device, count)))


def test_a_program_is_saved_and_moved(device):
    model, x = classifier(device), images(device)
    file = io.BytesIO()
    torch.export.save(export(model, (x,)), file)
    file.seek(0)
    loaded = torch.export.load(file)
    assert devices_in(loaded) == {device}
    assert_close(loaded.module()(x), model(x))
    home = move_to_device_pass(loaded, "cpu")
    assert_close(home.module()(x.cpu()), model(x).cpu(), rtol=1e-4, atol=1e-5)
    away = move_to_device_pass(export(classifier("cpu"), (x.cpu(),)), device)
    assert devices_in(away) == {device}
    assert_close(away.module()(x), model(x))


def test_recurrent_and_attention_modules_are_exported(device):
    torch.manual_seed(1)
    model = Reader().to(device).eval()
    tokens = torch.arange(10, device=device).reshape(2, 5)
    program = export(model, (tokens,))
    assert_close(program.module()(tokens), model(tokens))


def test_a_lowered_program_runs_on_the_device(device):
    """Decomposed, a program holds the strides that the operators' meta functions promised."""
    torch.manual_seed(1)
    model = Reader().to(device).eval()
    tokens = torch.arange(10, device=device).reshape(2, 5)
    lowered = export(model, (tokens,)).run_decompositions()
    assert devices_in(lowered) == {device}
    assert_close(lowered.module()(tokens), model(tokens), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3), (2, 0, 1, 3), (1, 2, 0, 3)])
def test_attention_has_the_strides_that_its_meta_function_promises(device, order):
    shape = (2, 3, 5, 8)
    back = [order.index(i) for i in range(4)]
    query = torch.randn([shape[i] for i in order], device=device).permute(back)
    with FakeTensorMode():
        fake = torch.empty_strided(query.shape, query.stride(), device=device)
        promised = F.scaled_dot_product_attention(fake, fake, fake).stride()
    assert F.scaled_dot_product_attention(query, query, query).stride() == promised


def test_a_training_step_is_exported(device):
    class Step(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = Classifier()

        def forward(self, x, labels):
            return F.cross_entropy(self.model(x), labels)

    torch.manual_seed(0)
    step = Step().to(device)
    labels = torch.tensor([0, 2], device=device)
    program = export(copy.deepcopy(step), (images(device), labels)).module()
    losses = [call(images(device), labels) for call in (step, program)]
    gradients = []
    for model, loss in zip((step, program), losses, strict=True):
        loss.backward()
        gradients.append([p.grad for p in model.parameters()])
    assert_close(losses[1], losses[0])
    assert_close(gradients[1], gradients[0])


def test_fake_tensors_launch_nothing(device, module):
    before = module.statistics()["launches"]
    with FakeTensorMode():
        x = torch.randn(2, 3, 8, 8, device=device)
        y = F.max_pool2d(
            nn.BatchNorm2d(4, device=device).eval()(nn.Conv2d(3, 4, 3, device=device)(x)), 2
        )
        assert (y.shape, y.device) == ((2, 4, 3, 3), torch.empty(0, device=device).device)
        attended = F.scaled_dot_product_attention(*[torch.randn(1, 2, 4, 8, device=device)] * 3)
        sequence, _ = nn.LSTM(4, 3, device=device)(torch.randn(5, 2, 4, device=device))
        assert attended.device.type == sequence.device.type == device
        assert x.cpu().device.type == "cpu"
        assert x.cpu().to(device).device == x.device
        assert (x + torch.tensor(1.0)).device == x.device
    assert module.statistics()["launches"] == before


def test_fake_tensors_keep_the_index(device, second, module):
    with FakeTensorMode():
        x = torch.randn(3, device=second)
        assert (x * 2).device == torch.device(second)
        with module.device(torch.device(second).index):
            assert torch.empty(3, device=device).device == torch.device(second)


def test_fake_tensors_see_mixed_devices(device, second):
    mode = FakeTensorMode()
    real = torch.ones(3, device=device)
    fake = mode.from_tensor(real)
    assert fake.device == real.device
    with mode:
        for other in ("cpu", second):
            with pytest.raises(RuntimeError, match="devices, "):
                fake + torch.ones(3, device=other)


def test_fx_and_torchscript_run_on_the_device(device, module):
    model, x = classifier(device), images(device)
    graph = torch.fx.symbolic_trace(model)
    with module.fallback.forbid():
        assert_close(graph(x), model(x))
        assert_close(torch.fx.Interpreter(graph).run(x), model(x))
    file = io.BytesIO()
    torch.jit.save(torch.jit.trace(model, x), file)
    for where in (device, "cpu"):
        file.seek(0)
        loaded = torch.jit.load(file, map_location=where)
        assert {p.device.type for p in loaded.parameters()} == {where}
        assert_close(loaded(x.to(where)).cpu(), model(x).cpu(), rtol=1e-4, atol=1e-5)
    assert_close(torch.jit.script(model)(x), model(x))
