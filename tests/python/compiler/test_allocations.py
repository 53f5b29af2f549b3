# tests/python/compiler/test_allocations.py: a compiled call takes nothing from the heap.
"""Counted under the allocator of the process, on the thread that calls, for a hundred warm calls."""

from __future__ import annotations

import json
import os
import sys

import pytest

from sandbox import build_c, interpret, program

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


# Attention, embeddings and pooling go to kernels that the compiler did not make.
NETWORKS = ["ResNet-50", "digits", "GPT-2", "BERT", "ViT", "U-Net", "experts"]


@pytest.fixture(scope="module")
def counter(tmp_path_factory: pytest.TempPathFactory) -> str:
    return build_c(tmp_path_factory.mktemp("heap") / "counter.so", COUNTER)


@pytest.mark.seldom
def test_a_call_takes_its_results_from_the_heap_and_nothing_else(counter: str) -> None:
    path = os.pathsep.join(sys.path)
    every = interpret(
        program("tests/python/compiler/heap_calls.py"),
        timeout=300,
        NAMES=json.dumps(NETWORKS),
        LD_PRELOAD=counter,
        GRAFT_HOST_MODE="async",
        PYTHONPATH=path,
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
