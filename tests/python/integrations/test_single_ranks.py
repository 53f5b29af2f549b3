"""A rank of several that exchanges nothing with the others is warned once."""

import pytest

import joined_batch
from sandbox import NAME

pytestmark = pytest.mark.one_mode

SEVERAL = {
    "WORLD_SIZE": "2",
    "RANK": "1",
    "LOCAL_RANK": "1",
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "1",
}
TEXT = "rank 1 of 2 trains alone: WORLD_SIZE is 2 and there is no process group"
IDLE = (
    "rank 1 of 2 trains alone: WORLD_SIZE is 2 and its process group did nothing before the first"
)
# Counts the warnings of the work in {work}, done twice.
WORK = """
import warnings
def work(place):
    {work}
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    work(D), work(D)
print(json.dumps([str(one.message) for one in told if "trains alone" in str(one.message)]))
"""
BACKWARD = "torch.ones(2, device=place, requires_grad=True).sum().backward()"
STEP = """p = torch.ones(2, device=place, requires_grad=True)
    p.grad = torch.ones(2, device=place)
    torch.optim.SGD([p]).step()"""
BOTH = STEP.replace("p.grad = torch.ones(2, device=place)", "p.sum().backward()")


HOOKED = f"""from torch.optim.optimizer import register_optimizer_step_pre_hook
    register_optimizer_step_pre_hook(lambda *_: None)
    {STEP}"""
GROUP = """torch.distributed.is_initialized() or torch.distributed.init_process_group({backend}
        store=torch.distributed.HashStore(), rank=0, world_size=1)
    """
OURS = GROUP.format(backend="")
EXCHANGE = "torch.distributed.all_reduce(torch.ones(2, device='{place}'))\n    "


@pytest.mark.parametrize("work", [BACKWARD, HOOKED, BOTH], ids=["backward", "step", "both"])
def test_one_warning_with_the_rank_and_the_remedy(python, work):
    [told] = python(WORK.format(work=work), **SEVERAL).value()
    assert told.startswith(TEXT)
    assert "python -m torch_graft run" in told


def test_a_group_that_does_nothing_before_the_first_step_is_no_exchange(python):
    [told] = python(WORK.format(work=OURS + BOTH), **SEVERAL).value()
    assert told.startswith(IDLE)
    assert "python -m torch_graft run" in told


@pytest.mark.parametrize(
    ("work", "environment"),
    [
        (BOTH, {"WORLD_SIZE": "1", "RANK": "0"}),
        (BOTH, {"WORLD_SIZE": "many"}),
        (BOTH.replace("device=place", "device='cpu'"), SEVERAL),
        ("(torch.ones(2, device=place) + 1).sum().item()", SEVERAL),
        (OURS + EXCHANGE.format(place=NAME) + BOTH, SEVERAL),
        (OURS + EXCHANGE.format(place="cpu") + BOTH, SEVERAL),
        (GROUP.format(backend="'gloo',") + BOTH, SEVERAL),
        (OURS + BACKWARD, SEVERAL),
    ],
    ids=["one rank", "no number", "on the CPU", "without training", "with an exchange", "with one of the CPU",
         "with another backend's group", "before a step"],
)  # fmt: skip
def test_others_are_not_warned(python, work, environment):
    assert python(WORK.format(work=work), **environment).value() == []


def test_the_first_pass_on_a_device_may_come_after_others_on_the_cpu(python):
    code = WORK.format(work=BACKWARD).replace(
        "work(D), work(D)", "work('cpu'), work(D), work('cpu'), work(D)"
    )
    assert len(python(code, **SEVERAL).value()) == 1


def test_a_warning_that_is_an_error_leaves_the_pass_whole(python):
    ran = python(
        """
        import warnings
        warnings.simplefilter("error")
        x = torch.ones(2, device=D, requires_grad=True)
        x.sum().backward()
        print(json.dumps(x.grad.tolist()))
        """,
        **SEVERAL,
    )
    assert ran.value() == [1.0, 1.0]
    assert TEXT in ran.err


@pytest.mark.parametrize("script", ["accelerate_ranks.py", "trainer_ranks.py"])
def test_ranks_of_libraries_without_their_integration(script):
    """As torchrun starts them, with the device by its variable: each rank trains as the only one."""
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", "2"]
    environment = {"ACCELERATE_TORCH_DEVICE": NAME, "GRAFT_HOST_DEVICES": "2"}
    script = str(joined_batch.HERE / script)
    for found in joined_batch.run_python(*torchrun, script, "8", **environment):
        assert (found["device"].split(":")[0], found["ranks"]) == (NAME, 1)
        for rank in range(2):
            assert found["errors"].count(f"rank {rank} of 2 trains alone") == 1


def test_ranks_under_the_launcher_are_not_warned():
    for found in joined_batch.run_ranks("accelerate_ranks.py", 2, "4"):
        assert "trains alone" not in found["errors"]
