# tests/python/compiler/test_allocations.py: a compiled call takes nothing from the heap.
"""Counted under the allocator of the process, on the thread that calls, for a hundred warm calls."""

from __future__ import annotations

import os
import sys

import pytest

from sandbox import build_c, interpret

pytestmark = pytest.mark.one_mode

# glibc's own names lie beneath malloc, so that it can be replaced.
COUNTER = """
#include <errno.h>
#include <stddef.h>

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

static __thread long counted;
static __thread int watched;

void heap_watch(int now) {
  if (now) counted = 0;
  watched = now;
}
long heap_count(void) { return counted; }

void* malloc(size_t n) { return counted += watched, __libc_malloc(n); }
void* calloc(size_t count, size_t n) { return counted += watched, __libc_calloc(count, n); }
void* realloc(void* old, size_t n) { return counted += watched, __libc_realloc(old, n); }
void* memalign(size_t to, size_t n) { return counted += watched, __libc_memalign(to, n); }
void* aligned_alloc(size_t to, size_t n) { return memalign(to, n); }
int posix_memalign(void** out, size_t to, size_t n) {
  *out = memalign(to, n);
  return *out == NULL ? ENOMEM : 0;
}
"""

COUNT = """
import ctypes, gc
from torch import nn
import torch_graft

heap = ctypes.PyDLL(None)
heap.heap_count.restype = ctypes.c_long
gc.disable()

def taken(call):
    for _ in range(100):  # as far ahead of the device as those below may get
        call()
    torch.accelerator.synchronize()
    heap.heap_watch(1)
    for _ in range(100):
        call()
    heap.heap_watch(0)
    return heap.heap_count()

class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.wide, self.narrow = nn.LayerNorm(32), nn.Linear(32, 64), nn.Linear(64, 32)
    def forward(self, x):
        y = x + self.narrow(nn.functional.gelu(self.wide(self.norm(x))))
        return y.softmax(-1), y

class Convolutions(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 3), nn.SiLU())

class Layers(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

def found(model, inputs, results):
    with torch.no_grad():
        made = torch_graft.optimize(model, *inputs)
        return {
            "nothing": taken(lambda: None),
            "planted": taken(lambda: heap.malloc(8)),
            "a result": taken(lambda: torch.empty(2, 2, device=D)),
            "eager": taken(lambda: model(*inputs)),
            "compiled": taken(lambda: made(*inputs)),
            "results": results,
        }

torch.manual_seed(0)
SHAPES = {"Norms": (4, 6, 32), "Convolutions": (2, 3, 12, 12), "Layers": (8, 32)}
all_found = {}
for name, shape in SHAPES.items():
    model, x = globals()[name]().to(D).eval(), torch.randn(shape, device=D)
    all_found[name] = found(model, (x,), 2 if name == "Norms" else 1)
for name in NAMES:
    from networks import NETWORKS
    make_model, make_inputs = NETWORKS[name]
    model = make_model().to(D).eval()
    all_found[name] = found(model, [one.to(D) for one in make_inputs()], 1)
print(json.dumps(all_found))
"""

# Attention, embeddings and pooling go to kernels that the compiler did not make.
NETWORKS = ["ResNet-50", "digits", "GPT-2", "BERT", "ViT", "U-Net", "experts"]


@pytest.fixture(scope="module")
def counter(tmp_path_factory: pytest.TempPathFactory) -> str:
    return build_c(tmp_path_factory.mktemp("heap") / "counter.so", COUNTER)


@pytest.mark.seldom
def test_a_call_takes_its_results_from_the_heap_and_nothing_else(counter: str) -> None:
    path = os.pathsep.join(sys.path)
    code = f"NAMES = {NETWORKS!r}\n" + COUNT
    every = interpret(
        code, timeout=300, LD_PRELOAD=counter, GRAFT_HOST_MODE="async", PYTHONPATH=path
    ).value()
    assert len(every) == 3 + len(NETWORKS)
    for network, found in every.items():
        assert found["nothing"] == 0
        assert found["planted"] >= 100
        # Of the driver's queue, where the calls get farther ahead of the device than before.
        most = found["results"] * found["a result"] + 20
        assert found["compiled"] <= most, (network, found)
        assert found["eager"] > 5 * found["compiled"], (network, found)


FAILS = """
from torch import nn
import torch_graft

model = nn.Sequential(nn.Linear(64, 4096), nn.Linear(4096, 4096)).to(D).eval()
x = torch.randn(1024, 64, device=D)
with torch.no_grad():
    made = torch_graft.optimize(model, x)
    right = made(x).cpu()
    graft = torch.graft
    graft.empty_cache()
    before, total = graft.memory_allocated(), graft.mem_get_info()[1]
    failures = 0
    for megabytes in (4, 24):
        graft.set_per_process_memory_fraction((graft.memory_reserved() + megabytes * 2**20) / total)
        try:
            made(x)
        except torch.OutOfMemoryError:
            failures += 1
    graft.set_per_process_memory_fraction(1.0)
    assert torch.equal(made(x).cpu(), right)
print(json.dumps([failures, graft.memory_allocated() - before]))
"""


def test_a_call_without_room_for_its_results_keeps_no_memory() -> None:
    failures, kept = interpret(FAILS).value()
    assert failures == 2
    assert kept == 0
