"""The texts of a statement to copy: the paragraph for a paper, and the entry for the registry of deployments.

The registry is the public one of deployments of differential privacy; the fields are those of
``deployments-schema.yaml`` of its data (OpenDP, with Oblivious and NIST; arXiv 2509.13509).  What a ledger does not
know has the text `OPEN`, for the curator to complete.  Nothing that an analyst can write is in the entry, and names
that a curator chose are escaped, since the registry displays all texts as Markdown.
"""

from __future__ import annotations

import re
from typing import Any

from dpnb._core.accountant.tree import ABOVE_THRESHOLD
from dpnb.accounting.exact import display_up
from dpnb.results.disclosure.parts import ReportedTable, StatementText
from dpnb.results.disclosure.report import Report
from dpnb.schema import Bounded, Dates
from dpnb.session.disclosure.sentences import is_test

# --- the paragraph for the methods section of a paper -----------------------------------------------------------------


NAMED = 20
"""Columns whose bounds are named; the statement has all of them."""


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
        _public_units(report.unit.public_units),
        "" if is_test(report.notice) else _noise(report),
        "Stated errors and noise intervals cover the noise that was added for privacy, and population intervals, "
        "hypothesis tests and standard errors of regressions also the sampling of the privacy units; none covers "
        "values and rows beyond the declared bounds and limits.",
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
    chosen = "Requests and their privacy losses could be chosen after earlier answers were seen"
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
    left = len(bounded) - NAMED
    more = (
        f", and those of {left} more column{'s' if left > 1 else ''}, as listed in the disclosure statement"
        if left > 0
        else ""
    )
    return f"Values were limited to bounds that the curator declared: {', '.join(bounded[:NAMED])}{more}."


def _public_units(number: int | None) -> str:
    return "" if number is None else f"The curator declared the number of units as {number:,}."


# --- the entry for the registry of deployments ------------------------------------------------------------------------


OPEN = "TO BE COMPLETED BY THE CURATOR"
WIDTH = 100
MARKDOWN = re.compile(r"[<>`*\[\]$|]")


def registry_entry(report: Report) -> str:
    """The entry as YAML."""
    import yaml  # only for a statement

    text: str = yaml.safe_dump(_entry(report), sort_keys=False, allow_unicode=True, width=WIDTH)
    return text


def _entry(report: Report) -> dict[str, Any]:
    text = StatementText() if report.stated is None else report.stated.text
    times = [one.time[:10] for one in report.releases] or [report.written.time[:10]]
    name = _escaped(report.subject.session)
    columns = sum(len(table.columns) for table in report.tables)
    data = OPEN if text.data is None else _escaped(text.data)
    test = [f"{report.notice}."] if report.notice else []
    return {
        "url_slug": _slug(report.subject.session, times[0]),
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": name,
                "data_curators": [OPEN if text.controller is None else _escaped(text.controller)],
                "intended_use": OPEN if text.purpose is None else _escaped(text.purpose),
                "data_product_type": "Interactive API"
                if report.division.mode != "not divided"
                else "Summary statistics",
                "data_product_region": OPEN,
                "description": " ".join([*test, f"Statistics with added noise of the table {name}. {data}"]),
                "publication_date": times[0],
            },
            "dp_variant": {
                "variant_name": _variant(report),
                "data_domain": f"All tables with the {columns} declared columns, whatever their rows; values outside "
                "the bounds are limited.",
                "unprotected_quantities": _public(report),
            },
            "privacy_loss": {
                "privacy_unit": _escaped(report.unit.words),
                "privacy_unit_details": f"{report.unit.neighbours} The relation is unbounded: add or remove a unit.",
                **_parameters(report),
            },
            "deployment_model": _model(report),
            "accounting": {
                "post_processing": "Estimates and intervals are computed from the noisy values. Intervals, but not "
                "estimates, are limited to the possible values.",
                "composition": _escaped(f"{report.filter.theorem}. Every request may be chosen after earlier answers."),
            },
            "implementation": _implementation(report),
            "administrative": {
                "sources": OPEN,
                "notes": f"From a disclosure statement of {report.written.program} {report.written.version}: "
                f"{report.source.rows} rows of a ledger whose hash is {report.source.head}.",
                "registry_authors": [OPEN],
            },
        },
    }


def _variant(report: Report) -> str:
    guarantee = report.guarantee
    if guarantee.epsilon is None:
        return "Custom"
    return "Approximate DP" if guarantee.delta else "Pure DP"


def _public(report: Report) -> str:
    number = report.unit.public_units
    known = f" The number of units, {number:,}." if number is not None else ""
    return f"What the curator declared: the columns, their bounds and categories, and the limits.{known}"


def _parameters(report: Report) -> dict[str, Any]:
    guarantee = report.guarantee
    epsilon, delta = guarantee.epsilon, guarantee.delta
    if guarantee.implied is not None:
        epsilon, delta = guarantee.implied.epsilon, guarantee.implied.delta
    numbers = {} if epsilon is None else {"epsilon": epsilon, **({"delta": delta} if delta else {})}
    return {
        **({"privacy_parameters": numbers} if numbers else {}),
        "privacy_parameters_details": _escaped(f"{guarantee.short}. {guarantee.words}"),
    }


def _model(report: Report) -> dict[str, Any]:
    many, versions = len(report.releases) != 1, len(report.table_versions)
    left = report.filter.left_share
    return {
        "model_name": "Central",
        "actors": "The curator has the table, the ledger and the computer, and is trusted. Analysts request statistics "
        "and see their answers. Everyone who sees an answer is a possible adversary with any knowledge from elsewhere.",
        "release_type": "Many releases" if many else "One release",
        "release_type_details": f"{len(report.releases)} charged requests; "
        + ("there is no budget." if left is None else f"{left} of a budget that is never renewed is left."),
        "data_source_type": "Dynamic" if versions > 1 else "Static",
        "access_type": "Interactive",
        "access_type_details": f"The budget is {report.division.mode}. " + " ".join(report.division.assumptions),
    }


def _implementation(report: Report) -> dict[str, Any]:
    kinds = sorted({one.kind for one in report.mechanisms})
    also = f" Interactive mechanisms: {', '.join(kinds)}." if kinds else ""
    return {
        "preprocessing_and_hyperparameter_tuning": "Queries are charged from the first one on, also those that explore "
        f"or tune. How the bounds and limits were chosen: {OPEN}",
        "mechanisms": f"{report.written.program} {report.written.version}: Gaussian noise, exactly rounded to integers "
        "of a grid, from random bits of the operating system; permute-and-flip selections and above-threshold scans "
        f"in integers.{also} No low-order bits of floating-point numbers are released. Times of answers are not "
        f"protected. Access controls: {OPEN}",
        "justification": OPEN,
    }


def _slug(name: str, date: str) -> str:
    words = [name.lower(), OPEN.lower(), date[:4]]
    return "-".join(re.sub(r"[\W_]+", "-", word) for word in words)


def _escaped(text: str) -> str:
    """A text without Markdown; a backslash of `printable` would look like a formula."""
    return MARKDOWN.sub(lambda found: f"\\{found[0]}", text.replace("\\", "/"))
