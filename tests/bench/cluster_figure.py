"""The figure of how long questions take on a cluster, by rows and by workers, as SVG."""

from __future__ import annotations

import math
from html import escape
from typing import Any

WIDTH, HEIGHT = 300, 230
LEFT, TOP, RIGHT, BOTTOM = 46, 34, 10, 40
COLOURS = {1: "#9a6700", 2: "#0969da", 4: "#8250df"}
DASHES = {"dpnb": "", "plain": ' stroke-dasharray="4 3"'}
STYLE = 'font-family="sans-serif" font-size="10" fill="#57606a"'


def drawn(figures: list[dict[str, Any]]) -> str:
    """Panels for each engine and question: seconds by rows, a line for each number of workers."""
    engines = sorted({one["engine"] for one in figures})
    questions = sorted({one["question"] for one in figures}, key=lambda name: (name.startswith("persons"), name))
    seconds = [one[name] for one in figures for name in DASHES]
    rows = [one["rows"] for one in figures]
    bounds = _decades(rows), _decades(seconds)
    parts = []
    for line, engine in enumerate(engines):
        for column, question in enumerate(questions):
            mine = [one for one in figures if (one["engine"], one["question"]) == (engine, question)]
            place = f'<g transform="translate({column * WIDTH},{line * HEIGHT})">'
            parts.append(place + _panel(f"{engine.title()}, {question}", mine, bounds) + "</g>")
    width, height = WIDTH * len(questions), HEIGHT * len(engines) + 24
    legend = "; ".join(f"{_coloured(workers)} {workers} worker{'s' * (workers > 1)}" for workers in _workers(figures))
    text = f'<text x="{LEFT}" y="{height - 8}" {STYLE}>{legend}. Solid: dpnb; dashed: not private.</text>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">\n'
        f'<rect width="{width}" height="{height}" fill="white"/>\n' + "\n".join(parts) + f"\n{text}\n</svg>\n"
    )


def _workers(figures: list[dict[str, Any]]) -> list[int]:
    return sorted({one["workers"] for one in figures})


def _coloured(workers: int) -> str:
    return f'<tspan fill="{COLOURS.get(workers, "black")}">■</tspan>'


def _decades(values: list[float]) -> tuple[int, int]:
    """The powers of ten around some values."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _panel(title: str, figures: list[dict[str, Any]], bounds: tuple[tuple[int, int], tuple[int, int]]) -> str:
    def at(value: float, axis: int) -> float:
        low, high = bounds[axis]
        share = (math.log10(value) - low) / (high - low)
        if axis == 0:
            return LEFT + share * (WIDTH - LEFT - RIGHT)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    parts = [f'<text x="{LEFT}" y="{TOP - 12}" {STYLE}>{escape(title)}</text>']
    for power in range(bounds[0][0], bounds[0][1] + 1):
        parts.append(f'<text x="{at(10**power, 0):.0f}" y="{HEIGHT - BOTTOM + 14}" text-anchor="middle" {STYLE}>')
        parts.append(f'10<tspan dy="-4" font-size="7">{power}</tspan></text>')
    for power in range(bounds[1][0], bounds[1][1] + 1):
        y = at(10.0**power, 1)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.0f}" y2="{y:.0f}" stroke="#d0d7de"/>')
        parts.append(f'<text x="{LEFT - 4}" y="{y + 3:.0f}" text-anchor="end" {STYLE}>{10.0**power:g} s</text>')
    parts.append(f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 10}" text-anchor="end" {STYLE}>rows</text>')
    for workers in _workers(figures):
        mine = sorted((one for one in figures if one["workers"] == workers), key=lambda one: int(one["rows"]))
        colour = COLOURS.get(workers, "black")
        for contender, dashes in DASHES.items():
            points = [(at(one["rows"], 0), at(one[contender], 1)) for one in mine]
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"{dashes}/>')
            parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2" fill="{colour}"/>' for x, y in points]
    return "".join(parts)
