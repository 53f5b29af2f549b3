# conformance/tests/support/synthetic.py: results as a run writes them, of any size, from a seed.
"""Stands in for a run where a test needs many cells, many dates or every status."""

from __future__ import annotations

import random
from typing import Any

DTYPES = ["float32", "float64", "float16", "bfloat16", "complex64", "complex128", "int8", "int16",
          "int32", "int64", "uint8", "bool"]  # fmt: skip
ASPECTS = ["forward", "backward", "out", "inplace", "view", "noncontiguous", "channels_last",
           "empty", "zero_dim", "autocast", "errors"]  # fmt: skip
RARE = ["crash", "hang", "error", "fail", "xpass", "xfail"]
TEXTS = {
    "crash": "the worker process died with SIGSEGV",
    "hang": "no answer within 60 s",
    "error": "RuntimeError: expected a tensor on cpu, but found <npu:0> & \"x\"",
    "fail": "sample 3: greatest difference 0.25 at (0, 1), allowed 1.3e-06\n  input: (5, 5)",
    "xpass": "",
    "xfail": "sample 0: nan where 1.0 was expected",
}  # fmt: skip


def results(
    seed: int = 1,
    entries: int = 40,
    bad: float = 0.02,
    away: float = 0.2,
    label: str = "npu on board",
    started: str = "2026-11-21T12:00:00Z",
) -> dict[str, Any]:
    """One cell for each entry, dtype and aspect; `bad` and `away` are shares of the cells."""
    chance = random.Random(seed)
    cells = []
    for number in range(entries):
        suite = "op" if number % 10 else chance.choice(["module", "optim"])
        name = f"{suite}.entry_{number:05}" + (".variant" if number % 7 == 0 else "")
        for dtype in DTYPES:
            cells += [_cell(chance, suite, name, dtype, aspect, bad, away) for aspect in ASPECTS]
    return {
        "schema": "torch-conformance/1",
        "device": {
            "name": label.split()[0],
            "label": label,
            "hardware": "simulated accelerator",
            "torch": "2.13.0",
            "package": "torch-npu 0.1.0",
            "machine": "2 x synthetic",
            "options": {"fallback": "allow", "seed": seed},
        },
        "started": started,
        "seconds": 75.5,
        "complete": True,
        "shard": [1, 1],
        "cells": cells,
    }


def _cell(
    chance: random.Random, suite: str, name: str, dtype: str, aspect: str, bad: float, away: float
) -> dict[str, Any]:
    draw = chance.random()
    status = chance.choice(RARE) if draw < bad else "skip" if draw < bad + 0.05 else "pass"
    fallen = status == "pass" and chance.random() < away
    reasons = {"skip": "the device declares no " + dtype, "xfail": "known: see the list of reasons"}
    return {
        "suite": suite,
        "entry": name,
        "dtype": dtype,
        "aspect": aspect,
        "status": status,
        "samples": 0 if status == "skip" else chance.randrange(1, 40),
        "seconds": round(chance.random() / 10, 4),
        "message": TEXTS.get(status, ""),
        "reason": reasons.get(status, ""),
        "fallbacks": {"aten::" + chance.choice(["svd", "qr", "lu"]): 3} if fallen else {},
        "native": None if fallen or chance.random() < 0.1 else True,
    }
