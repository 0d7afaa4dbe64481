"""Tab offers columns, tables, groups and categories in IPython's own completer and in a kernel, and reads no row."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pandas as pd
import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from jupyter_client.manager import start_new_kernel

import dpnb
from dpnb._backends.memory import execute
from dpnb.notebook import column_completion
from dpnb.notebook.column_completion import at_cursor
from kernel_pool.forked_kernels import forking_here
from shells import terminal_shell
from waiting import LIMIT

SCHEMA: dict[str, Any] = {
    "wage": dpnb.Bounded(0, 100),
    "town x": dpnb.Categories(["Aberdeen", "Bergen"]),
    "town": dpnb.Categories(["Aberdeen", "Bergen"]),
}
COLUMNS = {"wage", "town x", "town"}
MOST = {"visits": 1, "drugs": 1}
TABLE = pd.DataFrame({"p": [1], "wage": [1.0], "town x": ["Aberdeen"], "town": ["Aberdeen"]})


def opened_shell(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A terminal shell with the extension, a session and some answers."""
    with ExitStack() as stack:
        stack.enter_context(pytest.MonkeyPatch.context()).setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))
        shell = stack.enter_context(terminal_shell(jedi=request.param))
        dpnb.load_ipython_extension(shell)
        arguments: dict[str, Any] = {"budget": dpnb.Budget.gdp(100), "ledger": ":memory:", "not_private_test_seed": 1}
        session = dpnb.Session(TABLE, name="people", schema=SCHEMA, **arguments)
        both = {"table": {"visits": TABLE, "drugs": TABLE}, "schema": {"visits": SCHEMA, "drugs": SCHEMA}}
        several = dpnb.Session(**both, name="two", privacy_unit="p", max_rows_per_unit=MOST, **arguments)
        frame = session.frame
        shell.user_ns.update(
            session=session,
            several=several,
            df=frame,
            groups=frame.groupby("town"),
            counts=frame.groupby("town").count().release(mu=1),
            summary=frame.groupby("town")["wage"].describe().release(mu=1),
            limit=50,
        )
        yield shell


COMPLETERS: dict[str, Any] = {"params": [False, True], "ids": ["plain", "jedi"]}
shell = pytest.fixture(opened_shell, scope="module", name="shell", **COMPLETERS)
own_shell = pytest.fixture(opened_shell, name="own_shell", **COMPLETERS)  # for what changes it


def offered(shell: InteractiveShell, line: str) -> set[str]:
    with provisionalcompleter():
        return {one.text for one in shell.Completer.completions(line, len(line))}


@pytest.mark.parametrize(
    "line",
    [
        'df["',
        "df['",
        'print(df["',
        'df[["',
        'df[["wage", "',
        'session.frame["',
        'df.groupby("',
        'df.groupby(["',
        'df.groupby(by=["wage", "',
        'df.groupby("town")["',
        'groups["',
        'df[df["wage"] > 2]["',
        'df[(df["wage"] > limit) & (df["town"] == "Bergen")]["',
        'df[~(df["wage"] > 2)]["',
        'df[df["',
        'df[df["wage"].between(1, 2)]["',
        '%time df["',
        'df.agg(mean=("',
        'several.table("visits")["',
        'session.schema["',
        'several.schema["drugs"]["',
        'x = 1\nif x:\n    y = (df\n        .groupby("town")["',
        "# it's a comment\ndf['",
    ],
)
def test_columns_are_offered(shell: InteractiveShell, line: str) -> None:
    assert offered(shell, line) == COLUMNS


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('df["wa', {"wage"}),
        ('df["town ', {"town x"}),
        ('session.frame.groupby("town")["w', {"wage"}),
        ('several.table("', {"visits", "drugs"}),
        ('several.schema["', {"visits", "drugs"}),
        ('df[df["town"] == "', {"Aberdeen", "Bergen"}),
        ('df[df["town"].isin(["Aberdeen", "B', {"Bergen"}),
        ('counts["', {"Aberdeen", "Bergen"}),
        ('summary["Bergen"]["m', {"max", "mean", "min"}),
        ("df.wa", {"wage"}),
        ("session.frame.wa", {"wage"}),
        ('df[df["wage"] > 2].grou', {"groupby"}),
        ("session.sche", {"schema"}),
        ("session.fra", {"frame"}),
    ],
)
def test_what_fits_is_offered(shell: InteractiveShell, line: str, expected: set[str]) -> None:
    assert {text.lstrip(".") for text in offered(shell, line)} == expected


def test_a_dot_offers_methods_and_the_columns_that_are_names(shell: InteractiveShell) -> None:
    found = {text.lstrip(".") for text in offered(shell, "df.")}
    assert {"groupby", "count", "wage", "town"} <= found
    assert "town x" not in found
    assert not any(name.startswith("_") for name in found)


@pytest.mark.parametrize(
    "line",
    ['df["nothing"]["', 'unknown["', "df[1][", 'f"{df["', "df[", "", "(", '"', 'df["wage"]["', 'df["""', "\x00",
     "df[\\", 'open("', 'df.where(session.frame.count().release(mu=1))["', 'df[df["wage"].mean().release(mu=1)]["',
     "1 +\n]["],
)  # fmt: skip
def test_other_code_neither_fails_nor_charges(
    shell: InteractiveShell, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    spent = shell.user_ns["session"].spent
    offered(shell, line)
    assert shell.user_ns["session"].spent == spent
    assert "Traceback" not in capsys.readouterr().err


def test_completion_calls_nothing_of_the_analyst(own_shell: InteractiveShell) -> None:
    called: list[str] = []

    class Other:
        @property
        def frame(self) -> Any:
            called.append("frame")
            return own_shell.user_ns["df"]

        def __getitem__(self, key: str) -> Any:
            called.append("item")
            return own_shell.user_ns["df"]

        def groupby(self, key: str) -> Any:
            called.append("call")
            return own_shell.user_ns["df"]

    own_shell.user_ns["other"] = Other()
    complete = column_completion.matcher(own_shell)

    class At:
        full_text, cursor_line, cursor_position = "", 0, 0

    for line in ('other.frame["', 'other["x"]["', 'other.groupby("x")["', 'df[other["x"]]["', 'print(df)["', 'df == "'):
        At.full_text, At.cursor_position = line, len(line)
        assert complete(At)["completions"] == []
    assert not called


def test_completion_reads_no_row(shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise AssertionError("rows were read")

    monkeypatch.setattr(execute, "execute", refused)
    monkeypatch.setattr(pd.DataFrame, "__getitem__", refused)
    assert offered(shell, 'df[df["wage"] > 2]["') == COLUMNS


def test_without_the_extension_plain_names_have_their_keys(own_shell: InteractiveShell) -> None:
    column_completion.remove(own_shell)
    assert offered(own_shell, 'df["') == COLUMNS
    assert offered(own_shell, 'groups["') == COLUMNS
    assert offered(own_shell, 'counts["') == {"Aberdeen", "Bergen"}
    assert offered(own_shell, 'session.frame["') != COLUMNS  # the control: this needs the matcher


def test_loading_twice_and_unloading_leave_one_matcher_and_none(own_shell: InteractiveShell) -> None:
    dpnb.load_ipython_extension(own_shell)
    ours = [one for one in own_shell.Completer.custom_matchers if getattr(one, "matcher_identifier", "") == "dpnb"]
    assert len(ours) == 1
    dpnb.unload_ipython_extension(own_shell)
    assert not own_shell.Completer.custom_matchers


# --- the code before the cursor --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ('df["wa', ("wa", "[", "df")),
        ("a.b(1)[2]['", ("", "[", "a.b(1)[2]")),
        ('f(x, a.b([("', ("", "b", "a")),
        ('f(x, [("', None),
        ('x = {"', None),
        ('df["a"] != "b', ("b", "==", "df['a']")),
        ('(df["a"]) == "', ("", "==", "df['a']")),
        ("df[\"it's", ("it's", "[", "df")),
        ('r"a" + b["', ("", "[", "b")),
        ('df["""a\nb', ("a\nb", "[", "df")),
        ('%time x = df["', ("", "[", "df")),
        ("for x in df.groupby(by='", ("", "groupby", "df")),
        ('a = "(\nb["', ("", "[", "b")),  # a string that was not closed
        ('df[f"', None),
        ('x + "', None),
        ('df["a" + "', None),
        ("# df.", None),
        ("df.wa", ("wa", ".", "df")),
        ("f(df[1].", ("", ".", "df[1]")),
        ("1.", None),
        ("df .", ("", ".", "df")),
        ("wa", None),
        (f"x = [{'1, ' * 1000}df['", None),  # too long a statement
    ],
)
def test_code_before_the_cursor(code: str, expected: tuple[str, str, str] | None) -> None:
    typed = at_cursor(code)
    assert (typed and (typed.text, typed.place, ast.unparse(typed.owner))) == expected


# --- a real kernel ---------------------------------------------------------------------------------------------------

OPEN = """
%load_ext dpnb
import pandas as pd, dpnb
session = dpnb.Session.rehearse(name="people", budget=dpnb.Budget.gdp(1), schema={
    "wage": dpnb.Bounded(0, 100), "town": dpnb.Categories(["Aberdeen", "Bergen"])})
df = session.frame
"""


@pytest.mark.notebook
@pytest.mark.waits
def test_a_kernel_answers_complete_requests() -> None:
    with forking_here():
        manager, client = start_new_kernel(startup_timeout=LIMIT)
    try:
        reply = client.execute_interactive(OPEN, timeout=LIMIT)
        assert reply["content"]["status"] == "ok", json.dumps(reply["content"], default=str)
        for code, expected in {
            'df["': {"wage", "town"},
            "df.wa": {"wage"},
            'session.frame["t': {"town"},
            'df.groupby("': {"wage", "town"},
            'df[df["town"] == "B': {"Bergen"},
            "session.fra": {"frame"},
        }.items():
            content = client.complete(code, reply=True, timeout=LIMIT)["content"]
            assert set(content["matches"]) == expected, code
            typed = code[content["cursor_start"] : content["cursor_end"]]
            assert all(match.startswith(typed) for match in expected)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
