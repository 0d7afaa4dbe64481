"""On which line of a TOML file a key is: whatever stands between, around and inside."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpnb.session.toml_file import KeyPath, lines_of

KEYS = st.sampled_from(
    ["a", "b", "c", "type", "a-b", "1", "", " ", ".", "a.b", "=", "#", "[", "]", '"', "'", "\n", "é", "\x7f"]
)
FILLERS = ["", "# a = 1", "   # [x]", "\t", '# """']
INSIDE = ["x", "a = 1", "[b]", "# no comment", "", "\u2028", "= [", "]", "'''"]
"""Lines inside a text of several, which are no statements."""


def key(text: str) -> str:
    """As TOML writes it: a basic string has JSON's escapes, but for those of half characters."""
    bare = text.isascii() and text != "" and all(one.isalnum() or one in "-_" for one in text)
    return text if bare else json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


@st.composite
def values(draw: st.DrawFn, inline: bool = False, depth: int = 1) -> tuple[str, Any]:
    """A value as TOML writes it, on one line or on several, and what it reads as."""
    kind = draw(st.sampled_from(["number", "text", "list"] + ["table"] * depth))
    if kind == "number":
        return "1", 1
    if kind == "text":
        lines = draw(st.lists(st.sampled_from(INSIDE), max_size=3))
        if inline or "'''" in lines:
            return '"]}\\n[a]#"', "]}\n[a]#"
        return f'"""\n{chr(10).join(lines)}"""', "\n".join(lines)
    if kind == "list":
        gap = "" if inline else draw(st.sampled_from(["", "\n", "  # ]\n\n"]))
        items = draw(st.lists(values(inline=inline, depth=0), max_size=3))
        return f"[{gap}" + "".join(f"{text},{gap}" for text, _ in items) + "]", [value for _, value in items]
    inner = draw(st.dictionaries(KEYS, values(inline=True, depth=0), max_size=3))
    return (
        "{ " + ", ".join(f"{key(name)} = {text}" for name, (text, _) in inner.items()) + " }",
        {name: value for name, (_, value) in inner.items()},
    )


class File:
    """A file that is written statement by statement, and the line of each of its keys."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.expected: dict[KeyPath, int] = {}

    def write(self, statement: str) -> int:
        line = len(self.lines) + 1
        self.lines += statement.split("\n")
        return line

    def note(self, path: KeyPath, value: Any, line: int) -> None:
        self.expected.setdefault(path, line)
        if isinstance(value, dict):
            for name, inner in value.items():
                self.note((*path, name), inner, line)


@st.composite
def files(draw: st.DrawFn) -> File:
    file = File()
    tables = draw(st.lists(st.lists(KEYS, min_size=1, max_size=2).map(tuple), max_size=4, unique=True))
    for table in [(), *tables]:
        for filler in draw(st.lists(st.sampled_from(FILLERS), max_size=2)):
            file.write(filler)
        if table:
            line = file.write(f"[{' . '.join(map(key, table))}]  # header")
            for length in range(1, len(table) + 1):
                file.expected.setdefault(table[:length], line)
        pairs = draw(st.dictionaries(st.lists(KEYS, min_size=1, max_size=2).map(tuple), values(), max_size=3))
        for name, (text, value) in pairs.items():
            line = file.write(f" {'.'.join(map(key, name))} = {text}")
            for length in range(1, len(name)):
                file.expected.setdefault((*table, *name[:length]), line)
            file.note((*table, *name), value, line)
    return file


def valid(file: File) -> str | None:
    """The text, unless keys collide."""
    text = "\n".join(file.lines)
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
    return text


@given(files())
def test_every_key_has_the_line_on_which_it_was_written(file: File) -> None:
    text = valid(file)
    if text is not None:
        assert lines_of(text) == file.expected
        assert lines_of(text.replace("\n", "\r\n")) == file.expected
        assert lines_of(text + "\n") == file.expected


def by_pattern(text: str) -> dict[KeyPath, int]:
    """A control: keys looked for line by line, as one would with a regular expression."""
    found: dict[KeyPath, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        name, equals, _ = line.partition("=")
        if equals:
            found.setdefault((name.strip(),), number)
    return found


TRICKY = '''# name = "a"
text = """
name = 1
[name]
"""
list = [ # [name]
  "name = 2",
]

name = 3
[table]
name = { name = 4 }
[other . "na.me"]
name = 5\
'''


def test_what_looks_like_a_key_inside_a_value_is_none() -> None:
    expected = {
        ("text",): 2,
        ("list",): 6,
        ("name",): 10,
        ("table",): 11,
        ("table", "name"): 12,
        ("table", "name", "name"): 12,
        ("other",): 13,
        ("other", "na.me"): 13,
        ("other", "na.me", "name"): 14,
    }
    assert lines_of(TRICKY) == expected
    assert by_pattern(TRICKY)[("name",)] == 3  # the control is wrong


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing"])
def test_a_file_of_nothing_has_no_keys(text: str) -> None:
    assert lines_of(text) == {}
