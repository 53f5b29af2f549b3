# tests/python/compiler/fuzz/search.py: Hypothesis draws a program by a seed, and makes smaller what fails.
"""No setting depends on time: the machine that is loaded draws and shrinks as the idle one does. Nothing is
kept between runs: the seed says all, but for the constants of the modules that are loaded, of which Hypothesis
draws some. So one command draws the same programs each time, and another one perhaps others."""

from __future__ import annotations

from collections.abc import Callable

import hypothesis
from hypothesis import HealthCheck, Phase, given

from program import Program
from strategies import programs, ways
from trial import Mismatch, Way, trial

SETTINGS = hypothesis.settings(
    max_examples=1,
    phases=(Phase.generate, Phase.shrink),
    database=None,
    deadline=None,
    derandomize=False,
    print_blob=True,
    report_multiple_bugs=False,
    # The others stay: too much refused, or a simplest program that is large, is a fault of the strategies.
    suppress_health_check=(HealthCheck.too_slow,),
)


def search(seed: int, judge: Callable[[Program, list[Way]], None]) -> None:
    """Judges the program of a seed. What the judge raises comes from the smallest one that it raises for."""

    @hypothesis.seed(seed)
    @SETTINGS
    @given(programs(), ways())
    def judged(program: Program, both: list[Way]) -> None:
        judge(program, both)

    judged()


class Judge:
    """Raises the first Mismatch of a program that Hypothesis draws, and lets it make that program smaller:
    from then on what differs in another kind, or compiled the other way, counts as equal. No program is
    compiled twice in one way, and `most` smaller ones at most: all others count as equal, too."""

    def __init__(self, device: str, seed: int, most: int = 120) -> None:
        self.device, self.seed = device, seed
        self.left = most
        self.first: tuple[str, bool] | None = None
        self.known: dict[tuple[str, Way], Mismatch | None] = {}

    def __call__(self, program: Program, both: list[Way]) -> None:
        for way in both:
            if self.first and self.first[1] != way.optimized:
                continue
            mismatch = self._outcome(program, way)
            if mismatch is None:
                continue
            self.first = self.first or (mismatch.kind, way.optimized)
            if self.first[0] == mismatch.kind:
                raise Mismatch(mismatch.kind, self._message(program, way, str(mismatch)))

    def _outcome(self, program: Program, way: Way) -> Mismatch | None:
        key = (program.code(), way)
        if key not in self.known and self.left:
            self.left -= self.first is not None
            self.known[key] = None
            try:
                trial(program, way, self.device)
            except Mismatch as mismatch:
                self.known[key] = mismatch
        return self.known.get(key)

    def _message(self, program: Program, way: Way, why: str) -> str:
        call = "torch.compile(program, fullgraph=True)"
        inputs = f"*inputs({self.device!r})"
        return (f"seed {self.seed}, {way}: {why}\nThe smallest program that fails so, as torch code:\n\n"
                f"# seed {self.seed}\n{program.code()}\n"
                f"print(program({inputs}))\nprint({call}({inputs}))\n")  # fmt: skip
