"""Times language models of about a billion parameters: tokens one by one and prompts, beside torch's CPU.

Weights are random, so nothing is downloaded. Each side has a process of its own.
"""

from __future__ import annotations

import argparse
import re
import sys
from contextlib import ExitStack
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "examples")]

import language_worker  # noqa: E402
from language_worker import SHAPES, Way  # noqa: E402
from pairs import Row, ratio_row  # noqa: E402
from record import Side  # noqa: E402
from table import Show, Table, command_line  # noqa: E402

TABLE = Table(
    "language", HERE.parent / "docs/measurements/language-speed.md", ("graft", "cpu"), "log"
)
OURS = {name: Way(name, "graft") for name in ("bf16", "int8", "int4")}
OTHERS = {
    "torch eager bf16": Way("bf16", ""),
    "torch frozen bf16": Way("bf16", "frozen"),
    "torch int8": Way("int8", "inductor"),
    "torch int4": Way("int4", "inductor"),
}
SHARE, PEAK_GOAL = 0.75, 1.05
Samples = dict[str, dict[str, list[float]]]


def sampled(sides: dict[str, Side], pairs: int) -> Samples:
    """By what is timed and side: seconds, taken in turn."""
    found: Samples = {"decoding": {}, "prefill": {}}
    for what, by_side in found.items():
        wanted = [name for name in sides if what == "decoding" or "bf16" in name]
        for turn in range(pairs):
            for name in wanted if turn % 2 else reversed(wanted):
                taken = sides[name].call(language_worker.sample, what)
                by_side.setdefault(name, []).append(taken)
    return found


def best(samples: dict[str, list[float]], *weights: str) -> str | None:
    """The fastest of torch's sides with these weights."""
    known = [name for name in samples if name in OTHERS and OTHERS[name].weights in weights]
    return min(known, key=lambda name: median(samples[name]), default=None)


def rows_of(shape: str, samples: Samples, facts: dict[str, dict[str, float]]) -> list[Row]:
    decoding, prefill = samples["decoding"], samples["prefill"]
    rows = []

    def row(what: str, goal: float, ours: str, theirs: str | None) -> None:
        taken = prefill if what == "prefill" else decoding
        if ours in taken and theirs in taken:
            name = f"{shape}: {what}, {ours} / {theirs}"
            rows.append(ratio_row(name, goal, taken[ours], taken[theirs]))

    row("decoding", 0.9, "bf16", best(decoding, "bf16"))
    row("decoding", 0.6, "int8", "bf16")
    row("decoding", 0.9, "int8", best(decoding, "int8"))
    row("decoding", 0.4, "int4", "bf16")
    row("decoding", 0.8, "int4", best(decoding, "int4", "int8"))
    row("prefill", 0.95, "bf16", best(prefill, "bf16"))
    for name in OURS:
        if name in decoding:
            reads = facts[name]["plain read"]
            rows.append(
                ratio_row(f"{shape}: decoding, {name} / a plain read of the weights", 1 / SHARE,
                          decoding[name], [reads] * len(decoding[name]))
            )  # fmt: skip
            peak, least = facts[name]["peak"], facts[name]["weights"] + facts[name]["cache"]
            share = peak / least
            rows.append(Row(f"{shape}: peak memory, {name} / weights and cache", PEAK_GOAL, share,
                            share, share, peak, least, "peak"))  # fmt: skip
    return rows


def run_shape(shape: str, options: argparse.Namespace) -> list[Row]:
    """The rows of a model."""
    facts: dict[str, dict[str, float]] = {}
    with ExitStack() as stack:
        sides: dict[str, Side] = {}
        for name, way in (OURS | OTHERS).items():
            left = way.weights != "bf16" and language_worker.has_experts(shape)
            if left or not re.search(options.sides, name):
                continue
            side = stack.enter_context(Side("graft" if name in OURS else "cpu"))
            try:
                facts[name] = side.call(language_worker.prepare, shape, way, options.threads)
            except Exception as error:
                print(f"  {name} failed: {(str(error) or repr(error)).splitlines()[0]}", flush=True)
                continue
            sides[name] = side
            print(f"  {name}: first token after {facts[name]['first']:.1f} s", flush=True)
        reader = stack.enter_context(Side("cpu"))
        for name in sides:
            count = int(facts[name]["read"])
            facts[name]["plain read"] = reader.call(language_worker.plain_read, count)
        samples = sampled(sides, options.pairs)
    for what, by_side in samples.items():
        for name, taken in by_side.items():
            unit = language_worker.PROMPT if what == "prefill" else 1
            print(f"  {what}, {name}: {unit / median(taken):.1f} tokens/s", flush=True)
    return rows_of(shape, samples, facts)


def measure(options: argparse.Namespace, show: Show) -> None:
    for shape in SHAPES:
        if re.search(options.pattern, shape):
            print(shape, flush=True)
            for row in run_shape(shape, options):
                show(row)


def main() -> int:
    parser = command_line("Times language models beside torch's CPU.", "the models")
    parser.add_argument("--sides", default="", help="regular expression on the sides")
    return TABLE.run(parser, measure)


if __name__ == "__main__":
    raise SystemExit(main())
