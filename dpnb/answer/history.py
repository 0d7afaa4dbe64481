"""What was known of a question after each look at it, as a table, as text and HTML, and as a small drawing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, overload

import numpy as np

from dpnb.answer import faces

if TYPE_CHECKING:
    import pandas as pd

    from dpnb.answer.answer import Answer

MOST_LINES = 60
"""Of a table that is shown unasked."""

FAN_HEIGHT = 56


@dataclass(frozen=True, repr=False)
class History:
    """What was known of a question after each look at it.

    Each entry is the answer as it was then, at the confidence of the answer whose history this is: `cost` is what that
    look was charged, `known` how well the groups that were looked at were known with it.

    Parameters
    ----------
    answers : tuple of Answer
        In the order of the looks.
    """

    answers: tuple[Answer, ...]

    def __len__(self) -> int:
        return len(self.answers)

    @overload
    def __getitem__(self, place: int) -> Answer: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Answer, ...]: ...

    def __getitem__(self, place: int | slice) -> Answer | tuple[Answer, ...]:
        return self.answers[place]

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.answers)

    @property
    def looked_at(self) -> list[tuple[bool, ...]]:
        """For each look, whether each group was in it."""
        sources = [answer.sources for answer in self.answers]
        before = [(frozenset[tuple[int, int]](),) * len(sources[0]), *sources]
        return [tuple(x != y for x, y in zip(*pair, strict=True)) for pair in zip(before, sources, strict=False)]

    def to_pandas(self) -> pd.DataFrame:
        """One row for each number after each look: what the look cost, what was known with it, and the number.

        Columns ``time``, ``cost_mu``, ``cost_share``, ``known_mu``, ``looked_at`` (whether the group was in that look)
        and those of an answer.
        """
        import pandas as pd  # imported when first used

        tables = []
        for answer, inside in zip(self.answers, self.looked_at, strict=True):
            about = {
                "time": answer.time,
                "cost_mu": answer.cost.mu,
                "cost_share": answer.cost_share,
                "known_mu": answer.known.mu,
                "looked_at": np.repeat(inside, answer.cells.value.shape[1]),
            }
            table = answer.to_pandas()
            tables.append(pd.concat([pd.DataFrame(about, index=table.index), table], axis=1))
        whole = pd.concat(tables, keys=range(1, len(tables) + 1), names=["look"])
        return whole.droplevel(1) if self.answers[0].single else whole

    def __repr__(self) -> str:
        last, table = self.answers[-1], self._table()
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ["  " + "  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)) for row in table]
        lines = [f"{last.words} (history)", *lines, *(f"  {text}" for text in self._left_out())]
        return "\n".join([*([last.notice] if last.notice else []), *lines])

    def _repr_html_(self) -> str:
        last, (head, *body) = self.answers[-1], self._table()
        heads = "".join(f'<th style="{faces.NUMBER}">{escape(text)}</th>' for text in head)
        rows = "".join(
            "<tr>" + "".join(f'<td style="{faces.NUMBER}">{escape(text)}</td>' for text in row) + "</tr>"
            for row in body
        )
        more = "".join(f'<div style="{faces.FAINT}">{escape(text)}</div>' for text in self._left_out())
        return (
            f'<div style="{faces.STYLE}">{faces.notice_html(last.notice)}<div><b>{escape(last.words)}</b> '
            f'<span style="{faces.FAINT}">history</span></div>'
            f'<table style="margin:4px 0"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>{more}</div>'
        )

    def _table(self) -> list[list[str]]:
        """Head and lines; of many groups the first lines, and of each look the groups that were in it."""
        last = self.answers[-1]
        labels = [*last.names, *([last.outputs[0]] if last.outputs else [])]
        table = [["look", "time (UTC)", "cost", "known", *labels, "estimate", faces.interval_name(last)]]
        each = last.cells.value.shape[1]
        for number, (answer, inside) in enumerate(zip(self.answers, self.looked_at, strict=True), start=1):
            known = f"mu {faces.mu_up(answer.known)}"
            about = [str(number), faces.moment(answer.time), faces.cost_up(answer.cost), known]
            for place, (key, value, interval) in enumerate(faces.rows_of(answer)):
                if inside[place // each] and len(table) <= MOST_LINES:
                    table.append([*about, *key, value, interval])
                    about = [""] * len(about)
        return table

    def _left_out(self) -> list[str]:
        """What the table does not show, in words."""
        inside, words = self.looked_at, []
        if not all(map(all, inside)):
            words.append("of each look only the groups that were in it; the others stayed as they were")
        more = sum(map(sum, inside)) * self.answers[-1].cells.value.shape[1] - MOST_LINES
        return [*words, f"{more:,} more lines: .to_pandas() has them all"] if more > 0 else words


def fan_html(history: History) -> str:
    """How one number narrowed from look to look, as a small drawing that says the same in words."""
    ends = [(float(one.cells.low[0, 0]), float(one.cells.high[0, 0])) for one in history]
    values = [float(one.cells.value[0, 0]) for one in history]
    finite = [x for x in (*values, *(end for pair in ends for end in pair)) if math.isfinite(x)]
    least, most = min(finite, default=0.0), max(finite, default=1.0)
    step = (faces.PICTURE_WIDTH - 12) / max(len(history) - 1, 1)

    def at(look: int, value: float) -> tuple[str, str]:
        width, share = most - least, 0.5
        if width and math.isfinite(width) and not math.isnan(value):
            share = min(max((value - least) / width, 0.0), 1.0)
        return f"{6 + look * step:.1f}", f"{FAN_HEIGHT - 6 - share * (FAN_HEIGHT - 12):.1f}"

    def path(places: list[tuple[str, str]]) -> str:
        return " ".join(map(",".join, places))

    looks = range(len(history))
    band = [at(look, ends[look][1]) for look in looks] + [at(look, ends[look][0]) for look in reversed(looks)]
    seen = [at(look, values[look]) for look in looks if not math.isnan(values[look])]
    dots = "".join(f'<circle cx="{x}" cy="{y}" r="2.5" fill="{faces.ACCENT}"/>' for x, y in seen)
    each = (
        (faces.mu_up(one.known), *faces.told(value, low, high))
        for one, value, (low, high) in zip(history, values, ends, strict=True)
    )
    said = "; ".join(f"at mu {mu} {value}, interval {interval}" for mu, value, interval in each)
    text = escape(f"{faces.interval_name(history[-1])} after each of {len(history)} looks: {said}")
    return (
        f'<svg role="img" aria-label="{text}" width="{faces.PICTURE_WIDTH}" height="{FAN_HEIGHT}" '
        f'style="display:block"><title>{text}</title>'
        f'<polygon points="{path(band)}" fill="{faces.ACCENT}" fill-opacity="0.25"/>'
        f'<polyline points="{path(seen)}" fill="none" stroke="{faces.ACCENT}" stroke-width="1.5"/>{dots}</svg>'
    )
