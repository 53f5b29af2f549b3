"""Systems without a C compiler: what the pack serves, what falls back, what is told, and zig."""

import os
import re
import shutil
import stat
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from sandbox import ROOT, interpret

pytestmark = [pytest.mark.one_mode, pytest.mark.host_only]

README = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)[1]
PATHS = f"sys.path[:0] = {[str(ROOT / 'examples')]!r}\n"
MODELS = {
    "readme": README,
    "digits": PATHS + """
import digits, tempfile
with tempfile.TemporaryDirectory() as folder:
    assert digits.train(D, 0, 2, folder + "/digits.pt", False)["reloaded"] > 0.5
""",
    "resnet50": PATHS + """
import resnet50
model, images, labels = resnet50.seeded(D, 1)
resnet50.forward(model, images)
optimizer = resnet50.momentum(model.train())
losses = [resnet50.step(model, optimizer, images, labels).item() for _ in range(2)]
assert torch.tensor(losses).isfinite().all()
""",
    "bert": """
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification
small = BertConfig(vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                   intermediate_size=64, max_position_embeddings=16, num_labels=3)
tokens = torch.randint(0, 50, (4, 10)).to(D)
mask = torch.ones_like(tokens)
mask[:, 8:] = 0
classes = torch.randint(0, 3, (4,)).to(D)
for make, labels in ((BertForMaskedLM, tokens), (BertForSequenceClassification, classes)):
    model = make(small).to(D).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(8):
        loss = model(input_ids=tokens, attention_mask=mask, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert model.eval()(input_ids=tokens, attention_mask=mask).logits.argmax(-1).shape[0] == 4
""",
}  # fmt: skip
# Four operators whose kernels are in no pack, each beside the CPU's.
UNPACKED = """
x = torch.arange(1, 9).double() / 9
calls = [lambda t: torch.hypot(t, t + 1), torch.special.erfcx, lambda t: torch.copysign(t, t - 0.5),
         lambda t: t.half().atan2(t.half())]
for _ in range(2):
    for call in calls:
        torch.testing.assert_close(call(x.to(D)).cpu(), call(x))
print(json.dumps({name: count.calls for name, count in torch.graft.fallback.counts().items()}))
"""
COUNTED = {f"aten::{name}": 2 for name in ("hypot", "special_erfcx", "copysign.Tensor", "atan2")}


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def run(code: str, folder: Path, **environment: str | None):
    """In a system whose PATH is an empty folder, and that has compiled nothing before."""
    alone = {"PATH": str(folder / "bin"), "GRAFT_CC": None, "GRAFT_ZIG": "",
             "GRAFT_CACHE_DIR": str(folder / "cache")}  # fmt: skip
    return interpret(code, 200, **(alone | environment))


def warned(ran) -> list[str]:
    return [line for line in ran.err.splitlines() if "Warning: " in line and "kernel" in line]


@pytest.mark.parametrize("model", MODELS)
def test_the_model_trains_with_the_kernels_of_the_pack(tmp_path, model):
    asked = tmp_path / "asked"
    program(tmp_path / "bin/cc", f'echo "$@" >> {asked}\nexit 127\n')
    ran = run(MODELS[model] + "\nprint(json.dumps(list(torch.graft.fallback.counts())))", tmp_path)
    assert ran.value() == []
    assert not asked.exists(), asked.read_text()
    assert warned(ran) == []


def test_what_is_in_no_pack_falls_back_with_one_warning(tmp_path):
    ran = run(UNPACKED, tmp_path)
    assert ran.value() == COUNTED
    assert len(warned(ran)) == 1, ran.err
    for word in ("aten::hypot", "hypot_float64", "no C compiler", "GRAFT_CC", "counted",
                 "pip install torch-graft[compiler]"):  # fmt: skip
        assert word in warned(ran)[0]


COMPILED = """
import torch_graft
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Mish(), torch.nn.LayerNorm(16),
                            torch.nn.Linear(16, 3)).eval()
x = torch.randn(5, 8)
want = model(x).detach()
theirs = torch.nn.functional.mse_loss(torch.tanh(model(x)) * 2 + 1, torch.zeros(5, 3))
theirs.backward()
gradient = model[0].weight.grad.clone()
model.zero_grad()
model.to(D)
got = torch_graft.optimize(model)(x.to(D))
torch.testing.assert_close(got.detach().cpu(), want)
step = torch.compile(lambda x: torch.nn.functional.mse_loss(torch.tanh(model(x)) * 2 + 1,
                                                            torch.zeros(5, 3, device=D)))
ours = step(x.to(D))
ours.backward()
torch.testing.assert_close(ours.detach().cpu(), theirs.detach())
torch.testing.assert_close(model[0].weight.grad.cpu(), gradient)
print(json.dumps(torch.graft.fallback.counts() == {}))
"""


def test_compiled_models_run_by_the_kernels_of_their_operators(tmp_path):
    ran = run(COMPILED, tmp_path)
    assert ran.value() is True, "an operator of the pack fell back"
    assert len(warned(ran)) == 1, ran.err
    assert "pip install torch-graft[compiler]" in warned(ran)[0]


def test_a_compiler_that_compiles_nothing_is_told_once(tmp_path):
    program(tmp_path / "bin/cc", "echo boom: cannot find ld >&2\nexit 1\n")
    ran = run(UNPACKED, tmp_path)
    assert ran.value() == COUNTED
    assert len(warned(ran)) == 1, ran.err
    assert "does not compile even an empty function" in warned(ran)[0]
    assert ran.err.count("boom: cannot find ld") == 1


def has_ended(process: str) -> bool:
    """Whether it is gone, or a zombie that nobody has reaped yet, some seconds from now at most."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{process}/stat").read_text().rsplit(")")[-1].split()[0]
        except OSError:
            return True
        if state in "ZX":
            return True
        time.sleep(0.05)
    return False


def test_a_compiler_that_hangs_is_ended_and_told_once(tmp_path):
    waits = tmp_path / "waits"
    program(tmp_path / "bin/cc", f"/bin/sleep 1000 &\necho $! >> {waits}\nwait\n")
    ran = run(UNPACKED, tmp_path, GRAFT_CC_TIMEOUT="1")
    assert ran.value() == COUNTED
    assert len(warned(ran)) == 1, ran.err
    assert "did not end within 1 s" in warned(ran)[0]
    (process,) = waits.read_text().split()
    assert has_ended(process), "what it started goes on"


def fake_zig(folder: Path) -> Path:
    """A package ziglang whose zig notes how it was called and lets the system's cc do the work."""
    told = folder / "told"
    text = f'echo "$ZIG_GLOBAL_CACHE_DIR $ZIG_LOCAL_CACHE_DIR $*" >> {told}\nshift\n'
    made = program(
        folder / "site/ziglang/zig", f'{text}PATH=/usr/bin:/bin exec {shutil.which("cc")} "$@"\n'
    )
    (made.parent / "__init__.py").touch()
    return told


def with_site(folder: Path) -> str:
    return os.pathsep.join([str(folder / "site"), *filter(None, [os.environ.get("PYTHONPATH")])])


def test_the_extra_is_found_without_a_setting(tmp_path):
    told = fake_zig(tmp_path)
    (tmp_path / "tmp").mkdir()
    ran = run(UNPACKED, tmp_path, GRAFT_ZIG=None, PYTHONPATH=with_site(tmp_path),
              TMPDIR=str(tmp_path / "tmp"), ZIG_GLOBAL_CACHE_DIR="/nonexistent")  # fmt: skip
    assert ran.value() == {}
    assert warned(ran) == []
    calls = [line.split() for line in told.read_text().splitlines()]
    assert sum("kernel.c" in " ".join(call) for call in calls) == 4
    for place, same, command, *_ in calls:
        assert place == same
        assert place.startswith(str(tmp_path / "tmp")), "zig keeps files elsewhere"
        assert command == "cc"
    assert list((tmp_path / "tmp").iterdir()) == []
    again = run(UNPACKED, tmp_path, GRAFT_ZIG=None, PYTHONPATH=with_site(tmp_path))
    assert again.value() == {}
    assert sum("kernel.c" in line for line in told.read_text().splitlines()) == 4, "compiled again"


@pytest.mark.parametrize("named", [None, "cc"])
def test_the_systems_compiler_and_the_named_one_come_first(tmp_path, named):
    told = fake_zig(tmp_path)
    ran = run(UNPACKED, tmp_path, GRAFT_ZIG=None, PYTHONPATH=with_site(tmp_path),
              PATH=os.environ["PATH"], GRAFT_CC=named)  # fmt: skip
    assert ran.value() == {}
    assert not told.exists()


if find_spec("ziglang"):  # 400 MB; whoever changes the driver's compiler installs it

    @pytest.mark.parametrize("code", [UNPACKED, COMPILED])
    def test_zig_compiles(tmp_path, code):
        ran = run(code, tmp_path, GRAFT_ZIG=None)
        assert ran.value() in ({}, True)
        assert warned(ran) == []


def doctor(folder: Path, **environment: str | None):
    return run(
        "from torch_graft.cli import doctor; sys.exit(doctor.examine())", folder, **environment
    )


def compilers(ran) -> str:
    return ran.out.split("Compiler of the host driver\n")[1]


def test_the_doctor_says_that_there_is_none(tmp_path):
    ran = doctor(tmp_path)
    assert ran.code == 1
    for word in ("PROBLEM", "no C compiler", "run on the CPU", "pip install torch-graft[compiler]"):
        assert word in compilers(ran)


@pytest.mark.parametrize(
    ("does", "says"),
    [
        ("exit 1", "does not compile even an empty function"),
        ("sleep 100", "did not end within 1 s"),
    ],
)
def test_the_doctor_tells_of_a_broken_one(tmp_path, does, says):
    program(tmp_path / "bin/cc", f"PATH=/usr/bin:/bin\n{does}\n")
    ran = doctor(tmp_path, GRAFT_CC_TIMEOUT="1")
    assert ran.code == 1
    assert says in compilers(ran)


def test_the_doctor_says_which_one_it_is(tmp_path):
    ran = doctor(tmp_path, PATH=os.environ["PATH"])
    assert ran.code == 0
    assert f"ok       {shutil.which('cc')}, the system's; it compiled a kernel" in compilers(ran)
    fake_zig(tmp_path)
    ran = doctor(tmp_path, GRAFT_ZIG=None, PYTHONPATH=with_site(tmp_path))
    assert ran.code == 0
    assert f"{tmp_path}/site/ziglang/zig, of torch-graft[compiler]; it compiled" in compilers(ran)
    assert not (tmp_path / "cache").exists()
