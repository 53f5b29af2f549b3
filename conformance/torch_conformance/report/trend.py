# conformance/torch_conformance/report/trend.py: draws shares over time as inline SVG.
"""A chart is for reading; a spark is a chart of one line that fits into a table."""

from __future__ import annotations

import html
from datetime import datetime
from typing import NamedTuple

WIDTH, HEIGHT = 420, 150
LEFT, RIGHT, TOP, BOTTOM = 40, 84, 10, 24


class Point(NamedTuple):
    started: str  # 2026-11-21T12:00:00Z
    share: float | None  # 0 to 1; None leaves a gap in the line
    title: str
    link: str  # "" where there is nothing to show


def chart(lines: dict[str, list[Point]], name: str) -> str:
    """A line for each name, with its last value at its end and a link at each point."""
    points = [p for line in lines.values() for p in line if p.share is not None]
    if not points:
        return f'<p class="quiet">{html.escape(name)}: nothing to draw</p>'
    low = min(int(min(p.share or 0 for p in points) * 10) / 10, 0.9)
    times = [_time(p) for p in points]
    plot = _Plot(min(times), max(times), low)
    parts = [plot.frame()]
    ends: list[float] = []
    for number, (label, line) in enumerate(lines.items()):
        drawn = [p for p in line if p.share is not None]
        if drawn:
            parts.append(plot.line(drawn, f"line{number}"))
            parts.append(plot.label(drawn[-1], f"line{number}", label, ends))
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{html.escape(name)}">{"".join(parts)}</svg>'
    )


def spark(points: list[Point]) -> str:
    """The line alone, 100 by 20."""
    drawn = [p for p in points if p.share is not None]
    if len(drawn) < 2:
        return ""
    shares = [p.share or 0 for p in drawn]
    low, high = min(shares), max(shares)
    start, span = _time(drawn[0]), _time(drawn[-1]) - _time(drawn[0]) or 1
    places = " ".join(
        f"{2 + 96 * (_time(p) - start) / span:.1f},"
        f"{17 - 14 * ((s - low) / (high - low) if high > low else 0.5):.1f}"
        for p, s in zip(drawn, shares, strict=True)
    )
    words = f"from {shares[0]:.1%} to {shares[-1]:.1%}"
    return (
        f'<svg class="spark" viewBox="0 0 100 20" role="img" aria-label="{words}">'
        f'<title>{words}</title><polyline class="line0" points="{places}"/></svg>'
    )


def _time(point: Point) -> float:
    return datetime.fromisoformat(point.started.replace("Z", "+00:00")).timestamp()


class _Plot:
    def __init__(self, first: float, last: float, low: float) -> None:
        self.first, self.last, self.low = first, last, low

    def x(self, time: float) -> float:
        span = self.last - self.first
        part = (time - self.first) / span if span else 0.5
        return LEFT + part * (WIDTH - LEFT - RIGHT)

    def y(self, share: float) -> float:
        return TOP + (1 - share) / (1 - self.low) * (HEIGHT - TOP - BOTTOM)

    def frame(self) -> str:
        parts = []
        for share in (self.low, (1 + self.low) / 2, 1.0):
            y = self.y(share)
            parts.append(
                f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
                f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{share * 100:.4g} %</text>'
            )
        ends = [(self.first, "start"), (self.last, "end")]
        for time, anchor in ends if self.last > self.first else [(self.first, "middle")]:
            day = datetime.fromtimestamp(time).strftime("%Y-%m-%d")
            parts.append(
                f'<text x="{self.x(time):.1f}" y="{HEIGHT - 6}" text-anchor="{anchor}">{day}</text>'
            )
        return "".join(parts)

    def line(self, points: list[Point], kind: str) -> str:
        places = [(self.x(_time(p)), self.y(p.share or 0), p) for p in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in places)
        dots = []
        for x, y, p in places:
            dot = f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="3"><title>{html.escape(p.title)}</title></circle>'
            link = html.escape(p.link)
            dots.append(
                f'<a href="{link}" aria-label="{html.escape(p.title)}">{dot}</a>' if link else dot
            )
        return f'<polyline class="{kind}" points="{path}"/>' + "".join(dots)

    def label(self, point: Point, kind: str, text: str, taken: list[float]) -> str:
        y = self.y(point.share or 0) + 4
        while any(abs(y - other) < 12 for other in taken):
            y += 12
        taken.append(y)
        x = self.x(_time(point)) + 8
        return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{html.escape(text)} {point.share or 0:.1%}</text>'
