"""How fast dpnb has to be, and whether it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from bench.measures.engines import ENGINES
from bench.measures.parts import CLUSTERS
from bench.measures.questions import IN_ENGINES, PEOPLE, ROWS
from bench.measures.scale import QUESTIONS
from bench.page.cells import DASH, GIGABYTE, digits, over, unit

FULL = 10_000_000
"""Rows for which they are meant."""

THREADS = {"one thread": "one thread", "table": "all threads"}
"""Where rows in memory are measured, and how many threads that is."""


@dataclass(frozen=True)
class Bar:
    """One of them.

    Parameters
    ----------
    words : str
    most : float
    figure : float or None
        None where it was not measured.
    unit : str
    is_least : bool
        Whether the figure is more than that: the measurement was ended.
    """

    words: str
    most: float
    figure: float | None
    unit: str = "×"
    is_least: bool = False

    @property
    def verdict(self) -> str:
        """Whether it is met."""
        if self.figure is None:
            return "not measured"
        return "met" if self.figure <= self.most and not self.is_least else "**not met**"

    def cells(self) -> list[str]:
        """Its row in the page's table."""
        unit = "×" if self.unit == "×" else f" {self.unit}"
        figure = DASH if self.figure is None else f"{'> ' if self.is_least else ''}{digits(self.figure)}{unit}"
        return [self.words, f"{self.most:g}{unit}", figure, self.verdict]


def bars(found: dict[str, Any], most: int) -> dict[str, list[Bar]]:
    """Every bar, by topic, with its figure at the largest table."""
    costs, many, starts, picker = (found.get(name, {}) for name in ("costs", "many", "starts", "picker"))
    return {
        "Rows in memory": list(_rows(found, most)),
        "Rows in memory beside the memory's limit (aims)": list(_aims(found, most)),
        "Persons in memory": [
            Bar(f"{question}, beside pandas", 2, over(took.get("dpnb"), took.get("pandas")))
            for question, took in _questions(found, f"table {most} True", PEOPLE)
        ],
        "Tables that an engine holds": list(_engines(found, most)),
        "Spark and Dask": list(_clusters(found)),
        "A Parquet file larger than memory": list(_scale(found)),
        "Set-up and memory": list(_setups(found, most)),
        "One release": [
            Bar("a release on a small table, ledger on disk", 1.2, _milli(costs.get("release, ledger on disk")), "ms"),
            Bar("the same, ledger in memory", 0.6, _milli(costs.get("release, ledger in memory")), "ms"),
            Bar("a charge with its durable row", 2, _milli(costs.get("charge, disk")), "ms"),
            Bar("noise for a million cells", 0.15, costs.get("noise"), "s"),
            *_individual(found.get("individual", {})),
        ],
        "Many requests, and starting": [
            Bar(f"`session.log` of {many.get('requests', 100_000):,} requests", 1, many.get("log"), "s"),
            Bar("opening their ledger", 1, many.get("restart"), "s"),
            Bar("a snapshot for the panel", 10, _milli(many.get("snapshot")), "ms"),
            Bar("`import dpnb`", 0.35, starts.get("import"), "s"),
            Bar("`%load_ext dpnb`", 0.6, starts.get("extension"), "s"),
            Bar(
                "the first picker, from the start of its cell to its last message",
                150,
                _milli(picker.get("first sight")),
                "ms",
            ),
        ],
    }


def _questions(found: dict[str, Any], name: str, questions: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for question in questions:
        yield question, found.get(name, {}).get("questions", {}).get(question, {})


def _rows(found: dict[str, Any], most: int) -> Iterator[Bar]:
    for question, took in _questions(found, f"table {most} False", ROWS):
        yield Bar(f"{question}, beside pandas", 1, over(took.get("dpnb"), took.get("pandas")))
    for place, words in THREADS.items():
        for question, took in _questions(found, place_of(place, most), ROWS):
            yield Bar(f"{question}, beside polars, {words}", 1, over(took.get("dpnb"), took.get("polars")))


def _aims(found: dict[str, Any], most: int) -> Iterator[Bar]:
    for place, words in THREADS.items():
        for question, took in _questions(found, place_of(place, most), ROWS):
            figure = over(took.get("dpnb"), limit(found, place, took))
            yield Bar(f"{question}, {words}", 2, figure)


def place_of(place: str, most: int) -> str:
    """The name under which the measurement of rows in memory is kept."""
    return f"one thread {most}" if place == "one thread" else f"table {most} False"


def limit(found: dict[str, Any], place: str, took: dict[str, Any]) -> float | None:
    """Seconds in which the machine copies what a query reads."""
    return over(took.get("bytes"), found.get("bandwidth", {}).get(THREADS[place]))


def _engines(found: dict[str, Any], most: int) -> Iterator[Bar]:
    for engine in ENGINES:
        for person in (False, True):
            for question in IN_ENGINES if person else [name for name in IN_ENGINES if name != "units"]:
                took = found.get(f"engine {most} {engine} {person} {question}", {})
                words = f"{engine}, {unit(person)}, {question}, beside the plain query"
                yield beside_plain(words, 3 if person else 2, took, took.get("dpnb"), took.get("plain"))


def beside_plain(words: str, most: float, took: dict[str, Any], ours: float | None, plain: float | None) -> Bar:
    """A bar whose measurement may have been ended, because of dpnb: the plain query is measured first."""
    ended = ours is None and "over" in took
    return Bar(words, most, over(took["over"] if ended else ours, plain), is_least=ended and plain is not None)


def _scale(found: dict[str, Any]) -> Iterator[Bar]:
    for question, (person, _, _) in QUESTIONS.items():
        for engine in ENGINES if person else ["duckdb"]:
            ours, plain = (found.get(f"scale {question} {engine} {contender}", {}) for contender in ("dpnb", "plain"))
            which = "first" if person else "second"
            words = f"{engine}, {question}, beside the plain query"
            if person or "by" in question:
                yield beside_plain(words, 2, ours, ours.get(which), plain.get(which))
    for engine in ENGINES:
        peaks = [found.get(f"scale {question} {engine} dpnb", {}).get("peak") for question in QUESTIONS]
        worst = None if None in peaks else max(peaks) / GIGABYTE
        yield Bar(f"{engine}, the worst peak of memory", 4, worst, "GiB")


def _clusters(found: dict[str, Any]) -> Iterator[Bar]:
    for engine in CLUSTERS:
        for question in (*(f"rows: {name}" for name in ROWS), *(f"persons: {name}" for name in PEOPLE)):
            took = found.get(f"cluster {engine} {question}", {})
            words = f"{engine}, {question}, beside the plain query"
            yield Bar(words, 1.5, over(took.get("dpnb"), took.get("plain")))


def _setups(found: dict[str, Any], most: int) -> Iterator[Bar]:
    for person in (False, True):
        table = found.get(f"table {most} {person}", {})
        for words, name in (("a copy of the columns", "read"), ("reading them from Parquet", "file")):
            yield Bar(f"set-up for {unit(person)} beside {words}", 3, over(table.get("setup"), table.get(name)))
    for person in (False, True):
        kept = [said for name, said in found.items() if name.startswith(f"memory {most} {person} ")]
        worst = _worst(said["peak"] / said["columns"] for said in kept if "peak" in said)
        yield Bar(f"memory beside the columns used, the worst of the queries about {unit(person)}", 2, worst)


def _individual(found: dict[str, Any]) -> Iterator[Bar]:
    for name in ("rows", "people"):
        questions = found.get("units", {}).get(name, {}).get("questions", {}).values()
        worst = _worst(figures[mode] / figures["worst case"] for figures in questions for mode in ("skip", "clip"))
        words = f"individual accounting of {name}, {found.get('rows', 1_000_000):,} rows, the worst query"
        yield Bar(f"{words}, beside worst-case accounting", 2, worst)


def _milli(seconds: float | None) -> float | None:
    return None if seconds is None else 1000 * seconds


def _worst(figures: Iterable[float]) -> float | None:
    return max(figures, default=None)
