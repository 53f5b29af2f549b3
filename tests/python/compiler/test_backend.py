"""torch.compile on the device: results, gradients and buffers are eager's, and nothing stays eager."""

from __future__ import annotations

import copy
import subprocess
import sys
from typing import Any

import pytest
import torch

import torch_graft.compiler as graft_compiler
from eager_comparison import close, run
from traced_models import CASES

pytestmark = pytest.mark.one_mode


@pytest.fixture(autouse=True)
def _fresh() -> Any:
    torch._dynamo.reset()
    graft_compiler.reset_reports()
    with torch._dynamo.config.patch(allow_rnn=True):
        yield
    torch._dynamo.reset()


def reports() -> list[graft_compiler.Report]:
    made = graft_compiler.reports()
    for report in made:
        assert report.compiled, report.why
        for counts in (report.counts(), report.prepared()):
            assert counts is None or counts.eager == {}, report
    return made


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("train", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("name", CASES)
def test_models(name: str, train: bool, dynamic: bool, device: str) -> None:
    make_model, make_inputs = CASES[name]
    torch.manual_seed(1)
    eager = make_model().train(train).to(device)
    compiled = copy.deepcopy(eager)
    inputs = tuple(one.to(device) for one in make_inputs())
    if train and name not in ("mutating",):
        inputs = tuple(one.requires_grad_(one.is_floating_point()) for one in inputs)
    again = tuple(one.detach().clone().requires_grad_(one.requires_grad) for one in inputs)
    with torch.set_grad_enabled(train):
        call = torch.compile(compiled, fullgraph=True, dynamic=dynamic)
        close(run(compiled, call, again, train), run(eager, eager, inputs, train), name,
              coarse=name == "mixed")  # fmt: skip
    assert [one.part for one in reports()] == (["forward", "backward"] if train else ["inference"])


def test_one_graph_serves_all_batch_sizes(device: str) -> None:
    model = CASES["mlp"][0]().to(device)
    call = torch.compile(model, fullgraph=True, dynamic=True)
    with torch.no_grad():
        for batch in (2, 7, 64, 1024):
            given = torch.randn(batch, 12).to(device), torch.randint(5, (batch,)).to(device)
            close([call(*given)], [model(*given)], f"batch {batch}")
    assert len(reports()) == 1


def test_sizes_are_numbers_of_operators(device: str) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return (x * x.shape[0]).cumsum(0) - x.shape[0] * x.shape[1]

    call = torch.compile(function, dynamic=True)
    for rows in (3, 5):
        x = torch.randn(rows, 4, device=device)
        close([call(x)], [function(x)], f"{rows} rows")
    assert len(reports()) == 1


def test_graph_breaks_are_no_errors(device: str) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x * 2 + 1
        if y.sum().item() > 0:  # the graph ends here
            return y.relu() - 1
        return y.exp() + 1

    for sign in (1, -1):
        x = torch.full((4, 5), 3.0 * sign, device=device)
        close([torch.compile(function)(x)], [function(x)], f"sign {sign}")
    assert len(reports()) >= 3


def test_inputs_are_changed_in_place(device: str) -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x[1:].add_(1)
        y.t().mul_(2)
        return x + y.t()

    pairs = [[torch.ones(4, 4, device=device), torch.ones(4, 4, device=device)] for _ in range(2)]
    close([torch.compile(function)(*pairs[0])], [function(*pairs[1])], "the result")
    close(pairs[0], pairs[1], "the inputs")


def test_results_that_are_views_of_inputs(device: str) -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x[1:], x.exp().t()

    x = torch.randn(3, 4, device=device)
    view, other = torch.compile(function)(x)
    assert view.data_ptr() == x[1:].data_ptr()
    close([view, other], function(x), "views")


def test_dropout_is_reproducible_by_seed(device: str) -> None:
    dropped = torch.compile(torch.nn.Dropout(0.5))
    x = torch.ones(1000, device=device)
    results = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        results.append(dropped(x).cpu())
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])
    assert 350 < int((results[0] == 0).sum()) < 650
    assert set(results[0].unique().tolist()) == {0.0, 2.0}


@pytest.mark.parametrize("p", [0.3, 1.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dropout_draws_as_eager_and_its_gradient_is_fused(
    dtype: torch.dtype, p: float, device: str
) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(x.t(), p).exp() * 2

    results = []
    for call in (torch.compile(function), function):
        torch.manual_seed(7)
        x = torch.linspace(-1, 1, 35).view(5, 7).to(device, dtype).requires_grad_()
        result = call(x)
        result.sum().backward()
        # With p=1 eager draws nothing.
        later = [torch.rand(3, device=device)] if p < 1 else []
        results.append([result, x.grad, *later])
    close(results[0], results[1], "dropout", coarse=dtype is torch.bfloat16)
    [_, backward] = reports()
    counts = backward.counts()
    assert counts is not None
    assert counts.fused == counts.nodes, backward


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("form", ["plain", "causal", "masked", "scaled"])
def test_attention_is_one_kernel_that_writes_in_place(
    form: str, dtype: torch.dtype, device: str
) -> None:
    rules: dict[str, Any] = {"causal": {"is_causal": True}, "scaled": {"scale": 0.5}}.get(form, {})

    def function(
        q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        given = rules | ({"attn_mask": mask} if form == "masked" else {})
        split = (one.unflatten(-1, (2, -1)).transpose(1, 2) for one in (q, k, v))
        found = torch.nn.functional.scaled_dot_product_attention(*split, **given)
        return found.transpose(1, 2).flatten(2) * 2

    torch.manual_seed(1)
    mask = torch.randn(3, 1, 1, 5).to(device, dtype)
    operands = [torch.randn(3, 5, 8).to(device, dtype) for _ in range(3)]
    compiled = torch.compile(function, fullgraph=True)
    results = []
    for call in (compiled, function):
        given = [one.clone().requires_grad_() for one in operands]
        result = call(*given, mask)
        result.square().sum().backward()
        results.append([result, *(one.grad for one in given)])
    close(results[0], results[1], form, coarse=dtype is torch.bfloat16)
    with torch.no_grad():
        close([compiled(*operands, mask)], [results[1][0]], form, coarse=dtype is torch.bfloat16)
    reports()
    if dtype is not torch.float32:
        return  # PyTorch's operator converts between them and float32
    module = torch.get_device_module(device)
    with torch.no_grad():
        before = module.statistics()["copies"]
        compiled(*operands, mask)
        assert module.statistics()["copies"] == before


def test_autocast_inside_of_what_is_compiled(device: str) -> None:
    model = torch.nn.Linear(8, 8).to(device)

    def function(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast(device, dtype=torch.bfloat16):
            return model(x).softmax(-1)

    x = torch.randn(4, 8, device=device)
    with torch.no_grad():
        got, expected = torch.compile(function)(x), function(x)
    assert got.dtype == expected.dtype
    close([got], [expected], "autocast", coarse=True)


def test_checkpoints_recompute_the_same_dropout(device: str) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 8))
    model.to(device)

    def function(x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False)
        return out

    x = torch.randn(4, 8, device=device, requires_grad=True)
    torch.manual_seed(1)
    result = torch.compile(function)(x)
    result.sum().backward()
    assert len(reports()) == 2
    # Of a linear function of its weight the gradient gives the result back.
    weight = model[2].weight
    assert weight.grad is not None
    product = (weight.grad * weight).sum() + model[2].bias.sum() * 4
    torch.testing.assert_close(product, result.sum(), rtol=1e-4, atol=1e-4)


def test_a_refused_graph_stays_eager_with_one_warning(device: str) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return (x * 1j).real + 1

    x = torch.randn(3, device=device)
    with pytest.warns(UserWarning, match="without compiling it.*complex"):
        got = torch.compile(function)(x)
    close([got], [function(x)], "refused")
    [report] = graft_compiler.reports()
    assert not report.compiled
    assert "test_backend.py" in str(report.why)


def test_mixed_devices_are_named(device: str) -> None:
    x, y = torch.randn(3, device=device), torch.randn(3)
    with pytest.raises(Exception, match="device"):
        torch.compile(lambda a, b: a + b, fullgraph=True)(x, y)
    assert torch.equal((x + 1).cpu(), x.cpu() + 1)


def test_what_importing_torch_loads() -> None:
    program = "import sys, torch; print('torch._dynamo' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


_INDUCTOR = """
import hashlib, torch
from torch._inductor.utils import run_and_get_code
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.LayerNorm(8))
def call(mode):
    torch._dynamo.reset()
    return run_and_get_code(torch.compile(model, mode=mode), torch.ones(4, 8))[1]
for mode in (None, "reduce-overhead"):
    print(hashlib.sha256("".join(call(mode)).encode()).hexdigest())
"""


def test_graphs_on_the_cpu_are_inductors(tmp_path: Any) -> None:
    codes = []
    for autoload in ("1", "0"):
        environment = {"TORCH_DEVICE_BACKEND_AUTOLOAD": autoload, "PATH": "/usr/bin:/bin",
                       "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / autoload)}  # fmt: skip
        done = subprocess.run([sys.executable, "-c", _INDUCTOR], capture_output=True, text=True,
                              env=environment)  # fmt: skip
        assert done.returncode == 0, done.stderr
        codes.append(done.stdout)
    assert codes[0] == codes[1]


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
@pytest.mark.parametrize("capturable", [False, True])
def test_optimizers(name: str, capturable: bool, device: str) -> None:
    options: dict[str, Any] = {"SGD": {"momentum": 0.9}}.get(name, {})
    if capturable and name not in ("SGD", "Adagrad"):
        options = {**options, "capturable": True}
    torch.manual_seed(1)
    models = [torch.nn.Sequential(torch.nn.Linear(5, 6), torch.nn.Tanh(), torch.nn.Linear(6, 3))]
    models.append(copy.deepcopy(models[0]))
    for model, compiled in zip(models, (False, True), strict=True):
        model.to(device)
        optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.01, **options)
        step = torch.compile(optimizer.step) if compiled else optimizer.step
        for number in range(4):
            optimizer.zero_grad()
            x = torch.linspace(-1, 1, 20).view(4, 5).to(device) + number
            model(x).square().sum().backward()
            step()
    close(list(models[1].parameters()), list(models[0].parameters()), name)
    reports()
