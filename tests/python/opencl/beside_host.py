"""Devices of two drivers in one process: what each check of opencl/test_beside_host.py runs there."""

from __future__ import annotations

import copy
import json
import sys
import traceback
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.testing import assert_close

DTYPES = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8,
    torch.int16, torch.int32, torch.int64, torch.bool, torch.complex64, torch.complex128,
]  # fmt: skip
RANDOM: dict[str, Callable[[str], torch.Tensor]] = {
    "rand": lambda d: torch.rand(10007, device=d),
    "rand in bfloat16": lambda d: torch.rand(1003, device=d, dtype=torch.bfloat16),
    "rand in float64": lambda d: torch.rand(1003, device=d, dtype=torch.float64),
    "randint": lambda d: torch.randint(-9, 2**40, (1003,), device=d),
    "random_": lambda d: torch.empty(1003, device=d, dtype=torch.int32).random_(),
    "randperm": lambda d: torch.randperm(1003, device=d),
    "bernoulli": lambda d: torch.bernoulli(torch.full((1003,), 0.3, device=d)),
    "dropout": lambda d: nn.functional.dropout(torch.ones(77, 31, device=d), 0.4),
    "multinomial": lambda d: torch.multinomial(torch.ones(100, device=d), 50),
}


class TwoKinds:
    """first and second are devices of different drivers."""

    def __init__(self, first: str, second: str) -> None:
        self.first, self.second = first, second
        self.ways = ((first, second), (second, first))

    def there_is_one_of_each(self) -> None:
        drivers = [torch.graft.get_device_properties(d).driver for d in (self.first, self.second)]
        assert sorted(drivers) == ["host", "opencl"]
        assert torch.accelerator.device_count() == torch.graft.device_count() == 2
        assert torch.graft.get_device_name(self.first) != torch.graft.get_device_name(self.second)

    def copies_keep_every_dtype(self) -> None:
        for dtype in DTYPES:
            given = torch.randn(33, 17, dtype=torch.complex64).mul(5)
            given = given.to(dtype) if dtype.is_complex else given.real.to(dtype)
            for source, target in self.ways:
                for non_blocking in (False, True):
                    there = given.to(source)
                    moved = there.to(target, non_blocking=non_blocking)
                    assert str(moved.device) == target
                    assert torch.equal(moved.cpu(), given), (dtype, source)
                    turned = there.t()[::2, 3:].to(target, non_blocking=non_blocking)
                    assert torch.equal(turned.cpu(), given.t()[::2, 3:]), (dtype, source)

    def copies_into_strides_and_other_dtypes(self) -> None:
        given = torch.arange(7 * 5).reshape(7, 5)
        for source, target in self.ways:
            for non_blocking in (False, True):
                room = torch.full((5, 14), -1.0, device=target)
                room[:, ::2].copy_(given.to(source).t(), non_blocking=non_blocking)
                wanted = torch.full((5, 14), -1.0)
                wanted[:, ::2].copy_(given.t())
                assert torch.equal(room.cpu(), wanted)
                empty = torch.empty(0, 3, device=source).to(target, non_blocking=non_blocking)
                assert empty.shape == (0, 3)
                assert torch.equal(given[2, 2].to(source).to(target).cpu(), given[2, 2])

    def large_copies_follow_what_was_enqueued(self) -> None:
        for source, target in self.ways:
            one = torch.zeros(3_000_000, device=source)
            for _ in range(20):
                one += 1
            two = one.to(target, non_blocking=True)
            one.zero_()  # after the copy on its own stream
            two *= 2
            assert two.cpu().eq(40).all()
            assert one.cpu().eq(0).all()

    def streams_and_events_wait_across(self) -> None:
        for source, target in self.ways:
            one, two = torch.zeros(100_000, device=source), torch.zeros(100_000, device=target)
            torch.accelerator.synchronize(source)
            torch.accelerator.synchronize(target)
            there, here = torch.Stream(device=source), torch.Stream(device=target)
            written, read = torch.Event(device=source), torch.Event(device=target)
            with there:
                for _ in range(50):
                    one += 1
                written.record(there)
            here.wait_event(written)
            with here:
                two.copy_(one, non_blocking=True)
                two *= 2
                read.record(here)
            there.wait_event(read)
            there.wait_stream(here)
            there.synchronize()
            assert read.query()
            assert two.cpu().eq(100).all()

    def operators_refuse_to_mix_them(self) -> None:
        text = ""
        try:
            torch.ones(2, device=self.first) + torch.ones(2, device=self.second)
        except RuntimeError as error:
            text = str(error)
        assert self.first in text, text
        assert self.second in text, text

    def the_current_device_may_be_either(self) -> None:
        before = torch.accelerator.current_device_index()
        for name in (self.first, self.second):
            index = torch.device(name).index
            with torch.accelerator.device_index(index):
                assert torch.ones(1, device="graft").device == torch.device(name)
                assert torch.accelerator.current_device_index() == index
            with torch.graft.device(name):
                assert torch.graft.current_device() == index
            base = torch.graft.memory_allocated(name)
            held = torch.empty(2**20, device=name)
            assert torch.graft.memory_allocated(name) - base >= held.nbytes
            torch.accelerator.synchronize(index)
        assert torch.accelerator.current_device_index() == before

    def random_bits_are_the_same(self) -> None:
        for name, draw in RANDOM.items():
            drawn = []
            for device in (self.first, self.second):
                torch.manual_seed(11)
                drawn.append([draw(device).cpu() for _ in range(2)])
            assert torch.equal(drawn[0][0], drawn[1][0]), name
            assert torch.equal(drawn[0][1], drawn[1][1]), name
        generators = [torch.Generator(d).manual_seed(5) for d in (self.first, self.second)]
        generators[1].set_state(generators[0].get_state())
        one, two = (torch.rand(9, device=g.device, generator=g).cpu() for g in generators)
        assert torch.equal(one, two)

    def gradients_cross(self) -> None:
        torch.manual_seed(0)
        given = [torch.randn(8, 8) for _ in range(2)]

        def gradients(first: str, second: str) -> list[torch.Tensor]:
            w, v = given[0].to(first, copy=True), given[1].to(second, copy=True)
            w.requires_grad_()
            v.requires_grad_()
            middle = ((w @ w).to(second, non_blocking=True) @ v).relu()
            (middle.to(first) * w).sum().backward()
            assert str(w.grad.device) == first
            assert str(v.grad.device) == second
            return [w.grad.cpu(), v.grad.cpu()]

        for way in self.ways:
            assert_close(gradients(*way), gradients("cpu", "cpu"))

    def a_model_split_over_both_trains_as_on_the_cpu(self) -> None:
        torch.manual_seed(1)
        plain = nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 3))
        rows, wanted = torch.randn(16, 12), torch.randint(3, (16,))

        def losses(model: nn.Sequential, first: str, second: str) -> list[float]:
            model[:2].to(first)
            model[2:].to(second)
            optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
            found = []
            for _ in range(6):
                hidden = model[:2](rows.to(first)).to(second)
                loss = nn.functional.cross_entropy(model[2:](hidden), wanted.to(second))
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                found.append(loss.item())
            return found

        expected = losses(copy.deepcopy(plain), "cpu", "cpu")
        assert expected[-1] < 0.8 * expected[0]
        for way in self.ways:
            assert_close(losses(copy.deepcopy(plain), *way), expected, rtol=1e-4, atol=1e-5)


def outcomes() -> dict[str, str | None]:
    """By check: None, or the text of what it raised."""
    checks = TwoKinds("graft:0", "graft:1")
    found: dict[str, str | None] = {}
    for name in NAMES:
        try:
            getattr(checks, name)()
            found[name] = None
        except Exception:
            found[name] = traceback.format_exc()
    return found


NAMES = [name for name, value in vars(TwoKinds).items() if callable(value) and name[0] != "_"]


def main() -> Any:
    json.dump(outcomes(), sys.stdout)


if __name__ == "__main__":
    main()
