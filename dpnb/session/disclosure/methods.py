"""The paragraph of a statement for the methods section of a paper, in one piece of plain text."""

from __future__ import annotations

from dpnb._core.accountant.tree import ABOVE_THRESHOLD
from dpnb.accounting.exact import display_up
from dpnb.results.disclosure.parts import ReportedTable
from dpnb.results.disclosure.report import Report
from dpnb.schema import Bounded, Dates
from dpnb.session.disclosure.sentences import is_test

NAMED = 8
"""Columns whose bounds are named."""


def methods_paragraph(report: Report) -> str:
    """The paragraph, which names sources as a reference list has them."""
    total = len(report.releases)
    parts = [
        f"{report.notice}." if report.notice else "",
        _guarantee(report),
        f"The privacy unit is {report.unit.words}: neighbouring tables differ by adding or removing one unit with all "
        "its rows.",
        _composition(report),
        f"The ledger lists {total:,} charged request{'s' if total != 1 else ''}{_versions(report)}; its hash is "
        f"{report.source.head[:16]}.",
        _bounds(report.tables),
        "" if is_test(report.notice) else _noise(report),
        "Stated errors and noise intervals cover the noise that was added for privacy, and population intervals also "
        "the sampling of the privacy units; none covers values and rows beyond the declared bounds and limits.",
    ]
    return " ".join(filter(None, parts))


def _guarantee(report: Report) -> str:
    guarantee, program = report.guarantee, f"{report.written.program} {report.written.version}"
    what = "All statistics" if report.subject.analyst is None else f"All statistics of {report.subject.analyst}"
    if not guarantee.fixed_beforehand:
        return (
            f"{what} were released with {program} without a budget that was fixed beforehand. {report.filter.spent} "
            f"was charged. {report.readings.time_uniform or report.readings.accumulator}"
        )
    words = guarantee.short.replace("-DP", "-differential privacy", 1)
    words = words.replace("-GDP", "-Gaussian differential privacy", 1)
    sources = "Dwork et al. 2006" if guarantee.epsilon is not None else "Dwork et al. 2006; Dong, Roth and Su 2022"
    implied = ""
    if guarantee.implied is not None:
        epsilon, delta = (display_up(one) for one in (guarantee.implied.epsilon, guarantee.implied.delta))
        implied = f", which implies ({epsilon}, {delta})-differential privacy"
    return f"{what} were released with {program} and together satisfy {words} ({sources}){implied}."


def _composition(report: Report) -> str:
    chosen = "Requests and their privacy losses were chosen after earlier answers were seen"
    if not report.guarantee.fixed_beforehand:
        return f"{chosen}."
    found = f"{chosen}; a privacy filter enforces the guarantee ({report.filter.theorem})."
    if report.guarantee.accounting == "individual":
        found += (
            " Each unit had this budget and was charged only for the requests that use its data; answers describe the "
            "units that took part."
        )
    if report.mechanisms:
        found += " Interactive mechanisms ran concurrently (Haney et al. 2023)."
    if report.division.mode != "not divided":
        found += f" The budget was divided among analysts, in {report.division.mode} mode."
    return found


def _noise(report: Report) -> str:
    """The mechanisms, which draw random bits of the operating system."""
    kinds, launched = {one.kind for one in report.releases}, {one.kind for one in report.mechanisms}
    found = []
    if "release" in kinds:
        found.append("exactly rounded Gaussian noise was added to statistics")
    if "selection" in kinds:
        found.append("the largest groups were selected by permute-and-flip (McKenna and Sheldon 2020)")
    if ABOVE_THRESHOLD in launched:
        found.append("comparisons with thresholds were made by above-threshold (Lyu, Su and Li 2017)")
    if not found:
        return ""
    return f"With random bits of the operating system and in exact arithmetic, {', and '.join(found)}."


def _versions(report: Report) -> str:
    versions = report.table_versions
    if not versions:
        return ""
    return f" (table version{'s' if len(versions) > 1 else ''} {', '.join(versions)})"


def _bounds(tables: tuple[ReportedTable, ...]) -> str:
    """The bounds of the numbers and dates, of which the first ones are named."""
    bounded = [
        f"{f'{table.name}.' if table.name else ''}{column.name} {column.values}"
        for table in tables
        for column in table.columns
        if isinstance(column.declared, Bounded | Dates)
    ]
    if not bounded:
        return ""
    more = "" if len(bounded) <= NAMED else f", and {len(bounded) - NAMED} more columns"
    return f"Values were limited to bounds that the curator declared: {', '.join(bounded[:NAMED])}{more}."
