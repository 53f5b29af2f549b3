"""Device and pinned memory: what PyTorch's tests of CUDA ask of the allocators (docs/use/parity.md)."""

import gc
import random
import threading

import pytest
import torch

from sandbox import interpret

pytestmark = pytest.mark.both_modes

MIB = 2**20
PENDING = """
    def busy(n):
        x = torch.randn(900, 900, device=D)
        for _ in range(n):
            x = x @ x / 30
    found = {}
    busy(1)
    torch.accelerator.synchronize()

    source = torch.ones(1).pin_memory()
    address = source.data_ptr()
    target = torch.zeros(1, device=D)
    busy(12)
    target.copy_(source, non_blocking=True)
    del source
    other = torch.full((1,), 7.0).pin_memory()
    found["pinned"] = [other.data_ptr() != address, target.item()]

    landing = torch.zeros(1000).pin_memory()
    busy(12)
    landing.copy_(torch.full((1000,), 2.5, device=D), non_blocking=True)
    back = landing.to(D, torch.float64, non_blocking=True)
    other = torch.zeros(1000, dtype=torch.int32, device=D)[::2]
    other.copy_(landing[:500], non_blocking=True)
    found["cast behind a copy"] = [back.unique().tolist(), other.unique().tolist()]

    with torch.accelerator.device_index(1):
        there = torch.zeros(1, device=f"{D}:1")
        source = torch.full((1,), 3.0).pin_memory()
        address = source.data_ptr()
        x = torch.randn(900, 900, device=f"{D}:1")
        for _ in range(12):
            x = x @ x / 30
        there.copy_(source, non_blocking=True)
    del source
    again = torch.full((1,), 9.0).pin_memory()
    found["pinned on the second device"] = [again.data_ptr() != address, there.item()]

    owner, user = torch.Stream(D), torch.Stream(D)
    torch.accelerator.synchronize()
    with owner:
        base = torch.ones(1000, device=D)
    address, view = base.data_ptr(), base[5:]
    with user:
        busy(12)
    view.record_stream(user)
    del base, view
    owner.synchronize()
    with owner:
        early = torch.ones(1000, device=D).data_ptr()
    user.synchronize()
    with owner:
        late = [torch.ones(1000, device=D) for _ in range(2)]
    found["recorded view"] = [early != address, address in [x.data_ptr() for x in late]]
    print(json.dumps(found))
"""
BACKWARD = """
    import time
    class Greedy(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()
        @staticmethod
        def backward(ctx, gradient):
            held = [torch.ones(8 * 2**20, device=D) for _ in range(40)]
            return gradient
    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.Linear(256, 8)).to(D)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    def step(greedy):
        optimizer.zero_grad()
        hidden = model(torch.ones(64, 256, device=D))
        (Greedy.apply(hidden) if greedy else hidden).square().mean().backward()
        optimizer.step()
    step(False)
    optimizer.zero_grad()
    torch.accelerator.synchronize()
    before = torch.accelerator.memory_allocated()
    weights = [p.detach().clone() for p in model.parameters()]
    kept = torch.accelerator.memory_allocated() - before
    try:
        step(True)
        raised = False
    except torch.OutOfMemoryError:
        raised = True
    optimizer.zero_grad()
    for _ in range(500):  # autograd's thread lets go of the graph after the error has reached us
        given_back = torch.accelerator.memory_allocated() - before - kept
        if given_back == 0: break
        time.sleep(0.01)
    same = all(torch.equal(a, b) for a, b in zip(weights, model.parameters()))
    step(False)
    moved = not torch.equal(weights[0], model[0].weight)
    print(json.dumps([raised, given_back, same, moved]))
"""


@pytest.fixture(autouse=True)
def _settled():
    """What other tests left is freed before anything is counted."""
    torch.accelerator.synchronize()
    gc.collect()


@pytest.fixture(scope="module")
def pending():
    """Which memory is given out again while commands that use it are not done."""
    return interpret(PENDING, GRAFT_HOST_MODE="async", GRAFT_HOST_DEVICES="2").value()


def test_pinned_memory_of_a_copy_under_way_goes_to_nobody(pending):
    assert pending["pinned"] == [True, 1.0]
    assert pending["pinned on the second device"] == [True, 3.0]


def test_the_host_does_not_read_pinned_memory_that_a_copy_still_writes(pending):
    assert pending["cast behind a copy"] == [[2.5], [2]]


def test_a_block_waits_for_the_streams_that_a_view_of_it_recorded(pending):
    assert pending["recorded view"] == [True, True]


def test_memory_runs_out_inside_a_backward():
    """It is given back, nothing is half done, and the next step works."""
    ran = interpret(BACKWARD, GRAFT_HOST_MEMORY=str(128 * MIB))
    assert ran.value() == [True, 0, True, True]


def test_memory_runs_out_inside_a_capture(device):
    x = torch.ones(10, device=device)
    graph, stream = torch.accelerator.Graph(), torch.Stream(device)
    with pytest.raises(torch.OutOfMemoryError, match="Tried to allocate"), stream, graph:
        torch.zeros(2**42, device=device)
    graph.reset()
    assert (x + 1).sum().item() == 20
    with stream, graph:
        y = x * 3
    graph.replay()
    assert y.sum().item() == 30


LIKE = (torch.rand_like, torch.randn_like, torch.empty_like, torch.zeros_like, torch.ones_like)


def test_every_constructor_pins():
    made = [
        torch.tensor([10, 11], pin_memory=True), torch.randn(3, 5, pin_memory=True),
        torch.rand(3, pin_memory=True), torch.zeros(3, pin_memory=True),
        torch.randperm(3, pin_memory=True), torch.empty(6, pin_memory=True),
        torch.ones(6, pin_memory=True), torch.eye(6, pin_memory=True),
        torch.arange(3, 5, pin_memory=True), torch.full((2,), 4, pin_memory=True),
        torch.empty_strided((2, 2), (1, 2), pin_memory=True),
        *[like(torch.empty(5), pin_memory=True) for like in LIKE],
    ]  # fmt: skip
    assert [x.is_pinned() for x in made] == [True] * len(made)
    pinned = torch.empty(5, pin_memory=True)
    assert not any(like(pinned).is_pinned() for like in LIKE)


def test_views_of_pinned_memory_are_pinned(device):
    base = torch.arange(1000, dtype=torch.uint8).pin_memory()
    part = base[1:]
    assert part.is_pinned()
    moved = part.to(device, non_blocking=True)
    base_again = torch.zeros(1000, dtype=torch.uint8, pin_memory=True)
    base_again[1:].copy_(moved, non_blocking=True)
    torch.accelerator.synchronize()
    assert torch.equal(base_again[1:], part)
    assert base_again[0] == 0
    turned = torch.arange(10).view(2, 5).t()
    assert torch.equal(turned.pin_memory(), turned)
    storage = torch.ones(3).untyped_storage().pin_memory()
    assert storage.is_pinned()


def test_only_memory_of_the_host_is_pinned(device):
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        torch.empty(3, device=device, pin_memory=True)
    x = torch.ones(3, device=device)
    assert not x.is_pinned()
    with pytest.raises(TypeError, match="only CPU memory can be pinned"):
        x.untyped_storage().pin_memory()


def test_a_fraction_of_the_memory_is_a_limit(device, module):
    kept = torch.zeros(1024, device=device)
    module.empty_cache()
    total = module.get_device_properties(0).total_memory
    try:
        module.set_per_process_memory_fraction((module.memory_reserved() + 64 * MIB) / total)
        inside = torch.empty(40 * MIB, dtype=torch.uint8, device=device)
        del inside
        with pytest.raises(torch.OutOfMemoryError, match="set_per_process_memory_fraction"):
            torch.empty(80 * MIB, dtype=torch.uint8, device=device)
        assert torch.empty(80 * MIB, dtype=torch.uint8, device=f"{device}:1").numel() == 80 * MIB
    finally:
        module.set_per_process_memory_fraction(1.0)
    assert torch.empty(80 * MIB, dtype=torch.uint8, device=device).numel() == 80 * MIB
    assert not kept.any().item()


def test_impossible_sizes_are_out_of_memory(device, module):
    assert module.OutOfMemoryError is torch.OutOfMemoryError
    kept = torch.zeros(1024, device=device)
    for power in (50, 60):
        with pytest.raises(torch.OutOfMemoryError, match="Tried to allocate"):
            torch.empty(2**power, dtype=torch.int8, device=device)
    kept.fill_(1)
    assert kept.all().item()


def figures(module, index):
    stats = module.memory_stats(index)
    return [stats[f"{name}.all.current"] for name in ("allocated_bytes", "allocation")]


def smallest_block(device, module):
    """512 bytes, or the device's alignment."""
    before = module.memory_allocated()
    x = torch.empty(1, dtype=torch.uint8, device=device)
    return (module.memory_allocated() - before) * x.numel()


def test_figures_of_two_devices_move_apart_and_come_back(device, second, module):
    random.seed(5)
    block = smallest_block(device, module)
    starts = [figures(module, index) for index in (0, 1)]
    held = {0: [], 1: []}
    for _ in range(200):
        index = random.randrange(2)
        before = [module.memory_allocated(i) for i in (0, 1)]
        if held[index] and random.random() < 0.45:
            size = -held[index].pop(random.randrange(len(held[index]))).numel()
        else:
            size = random.choice((1, 300, 512, 70_000, MIB, 3 * MIB + 5))
            where = (device, second)[index]
            held[index].append(torch.empty(size, dtype=torch.uint8, device=where))
        after = [module.memory_allocated(i) for i in (0, 1)]
        assert after[1 - index] == before[1 - index]
        rounded = -(-abs(size) // block) * block
        assert after[index] - before[index] == (rounded if size > 0 else -rounded)
        assert module.max_memory_allocated(index) >= after[index]
        assert module.memory_reserved(index) >= after[index]
    assert [figures(module, index)[1] - starts[index][1] for index in (0, 1)] == [
        len(held[index]) for index in (0, 1)
    ]
    held.clear()
    assert [figures(module, index) for index in (0, 1)] == starts


def test_an_empty_tensor_takes_nothing(device, module):
    before = figures(module, 0)
    x = torch.empty(0, 3, device=device)
    assert figures(module, 0) == before
    assert x.data_ptr() == 0


def test_what_was_asked_for_is_counted_beside_what_was_given(device, module):
    before = module.memory_stats()
    x = torch.empty(300, dtype=torch.uint8, device=device)
    after = module.memory_stats()
    asked, given = (
        after[f"{name}.all.current"] - before[f"{name}.all.current"]
        for name in ("requested_bytes", "allocated_bytes")
    )
    assert (asked, given) == (x.numel(), smallest_block(device, module))


def test_numbers_survive_any_order_of_allocations(device, module):
    random.seed(123)
    held = []
    for count in range(400):
        action = random.random()
        if held and (action < 0.45 or sum(x.numel() for _, x in held) > 8 * MIB):
            value, x = held.pop(random.randrange(len(held)))
            assert (x == value).all().item()
        elif action < 0.95:
            size = random.randrange(1, MIB)
            held.append((count, torch.full((size,), count, dtype=torch.int32, device=device)))
        else:
            module.empty_cache()


def test_threads_allocate_and_empty_the_cache_together(device, module):
    errors = []

    def work(seed):
        draw = random.Random(seed)
        try:
            with torch.Stream(device):
                for _ in range(60):
                    x = torch.full((draw.randrange(1, 50_000),), float(seed), device=device)
                    if draw.random() < 0.1:
                        module.empty_cache()
                    assert (x == seed).all().item()
        except Exception as error:  # a thread's error must reach the test
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []


def test_an_operator_that_raises_keeps_no_memory(device, allocated):
    before = allocated()
    for _ in range(3):
        with pytest.raises(RuntimeError, match="The size of tensor a"):
            torch.randn(300, 1000, device=device) + torch.randn(200, 1000, device=device)
    assert allocated() == before


def test_a_broadcast_product_copies_no_operand(device, module):
    def peak(call):
        torch.accelerator.synchronize()
        torch.accelerator.reset_peak_memory_stats()
        before = module.memory_allocated()
        call()
        return module.max_memory_allocated() - before

    a, b = torch.rand(1, 32, 32, device=device), torch.rand(24, 32, 1, device=device)
    plain = peak(lambda: torch.matmul(a, b))
    expanded = a.expand(24, 32, 32)
    assert peak(lambda: torch.matmul(expanded, b)) == plain
    assert peak(lambda: torch.bmm(expanded, b)) == plain


@pytest.mark.parametrize("form", [lambda d: 1, lambda d: f"{d}:1", lambda d: torch.device(d, 1)])
def test_free_memory_of_a_device_by_any_name(device, module, form):
    where = form(device)
    module.empty_cache()
    free, total = module.mem_get_info(where)
    x = torch.empty(64 * MIB, dtype=torch.uint8, device=f"{device}:1")
    less, same = module.mem_get_info(where)
    assert total == same
    assert free - less >= x.numel()
