"""The page about NIST SP 800-226 names fields that a statement has, for each part of the pyramid."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dpnb.results.disclosure.report import SCHEMA_FILE

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "nist-800-226.md"
SCHEMA = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
ROWS = [
    line.split("|")[1:5] for line in PAGE.read_text(encoding="utf-8").splitlines() if re.match(r"\| (\d|final)", line)
]


def resolved(node: dict[str, Any]) -> list[dict[str, Any]]:
    """What a part of the schema refers to, and its alternatives."""
    if "$ref" in node:
        return resolved(SCHEMA["$defs"][node["$ref"].rpartition("/")[2]])
    if "anyOf" in node:
        return [one for each in node["anyOf"] for one in resolved(each)]
    return [node]


def has(path: str) -> bool:
    """Whether the schema has a field, such as ``tables[].columns[].declared``."""
    nodes = resolved(SCHEMA)
    for name in path.split("."):
        nodes = [
            found for node in nodes for found in resolved(node.get("properties", {}).get(name.removesuffix("[]"), {}))
        ]
        if name.endswith("[]"):
            nodes = [found for node in nodes for found in resolved(node.get("items", {}))]
        nodes = [node for node in nodes if node]
    return bool(nodes)


def test_every_field_on_the_page_is_in_the_schema() -> None:
    fields = {field for _, _, cell, _ in ROWS for field in re.findall(r"`([^`]+)`", cell)}
    assert len(fields) > 35
    assert [field for field in sorted(fields) if not has(field)] == []


@pytest.mark.parametrize("wrong", ["guarantee.epsilons", "releases.error", "tables[].column", "releases[].errors"])
def test_a_field_that_does_not_exist_is_found(wrong: str) -> None:
    assert not has(wrong)


def test_every_question_is_answered_by_a_field_or_a_page() -> None:
    for section, question, field, page in ROWS:
        assert question.strip().endswith("?"), section
        assert field.strip() or page.strip(), question
        assert page.strip(), question
    sections = {section.strip() for section, *_ in ROWS}
    assert {
        "2.2",
        "2.3",
        "2.4",
        "2.5",
        "2.6",
        "3.1",
        "3.2",
        "3.3.1",
        "3.3.2",
        "3.3.3",
        "4.1",
        "4.2",
        "4.3",
        "4.4",
        "4.5",
    } <= sections
