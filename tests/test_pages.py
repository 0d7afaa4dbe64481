"""The blocks on the pages of the documentation and in the README are of kinds that are executed, and are right.

Cells are executed when the site is built (``test_documentation.py``); commands, declarations and the README here.
"""

from __future__ import annotations

import inspect
import json
import re
import shlex
import shutil
import tomllib
from contextlib import closing
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import dpnb
from dpnb.service.configuration.settings import SERVICE_KEYS, read_settings
from forked import Forked, python
from waiting import LIMIT

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
README = "README.md"
PAGES = sorted(str(path.relative_to(ROOT)) for path in [ROOT / README, *(ROOT / "docs").rglob("*.md")])

FENCE = re.compile(r"^(?P<fence>`{3,}|:{3,})(?P<name>\S*).*?\n(?P<code>.*?)^(?P=fence) *$", re.DOTALL | re.MULTILINE)
FENCE_LINE = re.compile(r"^(?:[ \t>]|[-*+] |\d+[.)] )*(?:`{3,}|~{3,}|:{3,}).*", re.MULTILINE)
"""The first or last line of a block, also of one that is indented, in a list or in a quotation."""

DIRECTIVES = ("{toctree}", "{include}", "{literalinclude}", "{eval-rst}")
TESTED = ("{code-cell}", "console", "toml", "json")
HEAD = "---\nfile_format: mystnb\nkernelspec:\n  name: python3\n  language: python\n"
"""How a page with cells begins: otherwise they are not executed, or not recognised as Python if nothing is executed."""

CODE_IN_TEXT = re.compile(r"\bimport |dpnb\.(?!sock\b)|^[%$]", re.MULTILINE)
CODE_IN_RST = re.compile(r"^\s*\.\. (code|code-block|sourcecode)::", re.MULTILINE)

RUN, NOT_RUN = ("python",), ("pip", "make")
"""Programs of commands: test_wheel.py installs, and this test is a part of what the Makefile does."""

A_YEAR = "docs/tutorials/a-year.md"
"""The page whose commands need a running service: service/test_year.py runs them."""

EXAMPLE_TABLE = '[tables.rand-hie]\ndeclaration = "rand-hie.toml"\ndata = "randhie.csv"\n'

CHANGING = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|(?<=ledger)\s.*?(?=[\w-]+\.dpnb)|(?<=head )[0-9a-f]{64}",
    re.DOTALL | re.IGNORECASE,
)
"""Times, the folder of a ledger, which may fill several lines, and the hash of its last row."""


def source(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(text: str) -> list[tuple[str, str]]:
    """The fenced blocks of a text: what stands behind the fence, and the content."""
    return [(found["name"], found["code"]) for found in FENCE.finditer(text)]


def not_tested(text: str, *also: str) -> list[str]:
    """Fences of blocks that no test reads: those of other kinds, and any that are indented or inside another block."""

    def without_tested(found: re.Match[str]) -> str:
        is_tested = found["name"] in (*DIRECTIVES, *TESTED, "text", *also) and not FENCE_LINE.search(found["code"])
        return "" if is_tested else found[0]

    return FENCE_LINE.findall(FENCE.sub(without_tested, text))


def commands(code: str) -> list[tuple[str, str]]:
    """The commands of a `console` block, each with the output below it."""
    parts = re.split(r"^\$ ", code, flags=re.MULTILINE)
    assert not parts[0], f"{parts[0]!r} is not a command"
    return [(command, output) for command, _, output in (part.partition("\n") for part in parts[1:])]


def program(command: str) -> str:
    return shlex.split(command)[0]


WITH_COMMANDS = [
    page
    for page in PAGES
    if any(
        program(command) in RUN
        for name, code in blocks(source(page))
        if name == "console"
        for command, _ in commands(code)
    )
]


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_a_page_is_tested(page: str) -> None:
    text = source(page)
    assert not_tested(text, *(("python",) if page in (README, *WITH_COMMANDS) else ())) == []
    assert not CODE_IN_RST.search(text)
    found = blocks(text)
    if "{code-cell}" in dict(found):
        assert text.startswith(HEAD)
    for name, code in found:
        if name == "text":
            assert not CODE_IN_TEXT.search(code), code
        if name == "console":
            assert {program(command) for command, _ in commands(code)} <= {*RUN, *NOT_RUN}


@pytest.mark.parametrize(
    "block",
    [
        "```python\n1 / 0\n```",
        "```\n1 / 0\n```",
        "~~~python\n1 / 0\n~~~",
        "1. In a list:\n\n   ```console\n   $ python -c 1/0\n   ```",
        "- ```toml\n  a = 0\n  ```",
        "> ```toml\n> a = 0\n> ```",
        "````{eval-rst}\n```python\n```\n````",
        ":::{note}\n```toml\n```\n:::",
    ],
)
def test_a_block_that_no_test_reads_is_found(block: str) -> None:
    page = "# Title\n\n```toml\na = 1\n```\n\n{}\n\n```text\nmore\n```\n"
    assert not_tested(page.format("text")) == []
    assert not_tested(page.format(block))


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in WITH_COMMANDS if page != A_YEAR])
def test_the_commands_of_a_page_run(page: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """With the output that the page shows, and the page's scripts between them; in a copy of the examples."""
    folder = tmp_path_factory.mktemp("s") / "examples"  # a short path: the socket of a service is below it
    errors = folder.with_name("errors.txt")
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns("*.dpnb*"))

    def output_of(*arguments: str) -> str:
        with closing(Forked(python, str(folder), str(errors), *arguments)) as process:
            printed = process.stdout.read()
            assert process.wait(LIMIT) == 0, f"{arguments}\n{printed}\n{errors.read_text()}"
        return printed

    for name, code in blocks(source(page)):
        if name == "python":
            output_of("-c", code)
        for command, shown in commands(code) if name == "console" else ():
            if program(command) in RUN:
                printed = output_of(*shlex.split(command)[1:])
                assert not shown or CHANGING.sub("", shown) == CHANGING.sub("", printed)


TOML = [(page, code) for page in PAGES for name, code in blocks(source(page)) if name == "toml"]
OF_THE_SERVICE = [(page, code) for page, code in TOML if tomllib.loads(code).keys() <= SERVICE_KEYS.keys()]
DECLARATIONS = [block for block in TOML if block not in OF_THE_SERVICE]


@pytest.mark.parametrize(("page", "code"), DECLARATIONS)
def test_a_declaration_on_a_page_is_accepted(page: str, code: str, tmp_path: Path) -> None:
    path = tmp_path / "declaration.toml"
    path.write_text(code, encoding="utf-8")
    assert isinstance(dpnb.Session.from_toml(path, rehearse=True), dpnb.Session)


@pytest.mark.parametrize(("page", "code"), OF_THE_SERVICE)
def test_settings_of_the_service_on_a_page_are_accepted(page: str, code: str, tmp_path: Path) -> None:
    content = tomllib.loads(code)
    settings = tmp_path / "curator.toml"
    settings.write_text(code if "tables" in content else f"{code}\n{EXAMPLE_TABLE}", encoding="utf-8")
    for table in tomllib.loads(settings.read_text("utf-8"))["tables"].values():
        for key in ("declaration", "data"):
            (tmp_path / table[key]).touch()
    read = read_settings(settings)
    limits, analysts = content.get("limits", {}), content.get("tables", {}).get("rand-hie", {}).get("analysts", {})
    assert {key: getattr(read.limits, key) for key in limits} == limits
    assert set(read.tables["rand-hie"].division.analysts) == set(analysts)


def test_the_declaration_that_curators_learn_from_is_the_example() -> None:
    shown = [code for page, code in DECLARATIONS if page == "docs/start/curators.md"]
    assert [tomllib.loads(code) for code in shown] == [tomllib.loads((EXAMPLES / "rand-hie.toml").read_text("utf-8"))]


SETTINGS = [(page, code) for page in PAGES for name, code in blocks(source(page)) if name == "json"]


@pytest.mark.parametrize(("page", "code"), SETTINGS)
def test_settings_on_a_page_are_those_of_the_extension(page: str, code: str) -> None:
    for plugin, values in json.loads(code).items():
        schema = ROOT / "labextension" / "schema" / f"{plugin.removeprefix('dpnb:')}.json"
        jsonschema.validate(values, json.loads(schema.read_text(encoding="utf-8")))


def test_the_code_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for name, code in blocks(source(README)):
        if name == "python":
            magic, _, rest = code.partition("\n")
            assert magic == "%load_ext dpnb"  # without it, a query shows no slider
            exec(rest, names)
    assert any(isinstance(value, dpnb.Session) and value.headroom < 1 for value in names.values())


def test_the_first_screen_of_the_readme_shows_both_ways_to_begin() -> None:
    screen = source(README).partition("## ")[0]
    assert "dpnb.Session(table, ...)" in screen
    (arguments,) = re.findall(r"dpnb\.connect\((.*?)\)", screen)
    call = eval(f"bind({arguments})", {"bind": inspect.signature(dpnb.connect).bind}).arguments
    assert call["address"].startswith("https://")
    assert call["table"] == tomllib.loads((EXAMPLES / "rand-hie.toml").read_text("utf-8"))["name"]


def test_what_the_readme_says_first_needs_no_theory() -> None:
    """Up to the guarantee, which names its terms, a new reader meets only the words of the first analysis."""
    first = source(README).partition("## What is guaranteed")[0]
    assert not re.search(r"filter|odometer|\bmu\b|theorem|\b(GDP|zCDP)\b", first, re.IGNORECASE)


def test_the_readme_fits_on_two_screens() -> None:
    assert len(source(README)) <= 6000
