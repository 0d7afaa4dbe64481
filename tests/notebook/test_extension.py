"""``%load_ext dpnb`` and its magics: in a plain terminal shell, and in notebooks that a program executes."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from nbclient import NotebookClient

import dpnb
from dpnb.errors import BudgetExceeded, DpnbError, RequestError
from dpnb.notebook import extension, magics
from dpnb.notebook.extension import explain_error
from dpnb.notebook.panel import EXPLAINED
from dpnb.render.refusals import explanation_for
from dpnb.results.answer import Answer
from dpnb.results.preview import Preview, Previews
from kernel_pool.forked_kernels import forking_here
from shells import terminal_shell

Session = Callable[[], dpnb.Session]


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    """A terminal shell with the extension loaded and one session, `s`."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    with terminal_shell(jedi=False) as shell:
        dpnb.load_ipython_extension(shell)
        shell.user_ns["s"] = dpnb.Session(
            pd.DataFrame({"x": [1.0]}),
            name="terminal",
            budget=dpnb.Budget.gdp(1),
            schema={"x": dpnb.Bounded(0, 5)},
            ledger=tmp_path / "terminal.dpnb",
        )
        yield shell


def run(shell: InteractiveShell, source: str) -> object:
    """The value of a cell; its error is raised."""
    with capture_output():
        result = shell.run_cell(source)
    result.raise_error()
    return result.result


def completions(shell: InteractiveShell, line: str) -> set[str]:
    """What Tab offers at the end of a line."""
    with provisionalcompleter():
        return {completion.text for completion in shell.Completer.completions(line, len(line))}


def test_the_magic_shows_every_session_as_text(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    run(shell, "s.frame.count().release(mu=0.6)")
    shell.run_line_magic("dpnb", "")
    assert "dpnb session terminal" in capsys.readouterr().out
    shell.run_line_magic("dpnb", "log")
    assert "count of rows" in capsys.readouterr().out
    shell.run_line_magic("dpnb", "explain")
    assert "the guarantee:" in capsys.readouterr().out
    shell.run_line_magic("dpnb", "nonsense")
    told = capsys.readouterr().out
    assert "there is no command %dpnb nonsense" in told
    assert "%dpnb what-if" in told


def test_a_session_whose_ledger_is_gone_hides_no_other(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    run(shell, "s.frame.count().release(mu=0.6)")
    table = pd.DataFrame({"x": [1.0]})
    schema = {"x": dpnb.Bounded(0, 5)}
    other = dpnb.Session(table, name="gone", budget=dpnb.Budget.gdp(1), schema=schema, ledger=":memory:")
    other.ledger.close()
    shell.run_line_magic("dpnb", "log")
    told = capsys.readouterr().out
    assert "dpnb session gone: ledger ':memory:': cannot be used" in told
    assert "count of rows" in told


def test_what_if_previews_the_last_question_or_the_one_that_is_named(shell: InteractiveShell) -> None:
    run(shell, "q = s.frame['x'].sum()")
    run(shell, "s.frame.count()")
    last = run(shell, "%dpnb what-if mu=0.5 confidence=0.9")
    assert isinstance(last, Preview)
    assert (last.description, last.request, last.confidence) == ("count of rows", "mu=0.5", 0.9)
    named = run(shell, "%dpnb what-if q mu=[0.1, 0.2]")
    assert isinstance(named, Previews)
    assert [preview.description for preview in named.previews] == ["sum of x"] * 2
    assert isinstance(run(shell, "%dpnb what-if q"), Previews)
    assert shell.user_ns["s"].headroom == 1, "what-if is free"


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("s.frame.count()", "count of rows"),
        ("frame = s.frame\nq = frame['x'].sum()", "sum of x"),
        ("1\nq: object = s.frame['x'].sum()\n# that was it", "sum of x"),
    ],
)
def test_cell_magic_releases_the_cells_last_question(shell: InteractiveShell, cell: str, words: str) -> None:
    answer = run(shell, f"%%dpnb mu=0.5, confidence=0.9 --yes\n{cell}")
    assert isinstance(answer, Answer)
    assert (answer.description, answer.confidence) == (words, 0.9)
    assert shell.user_ns["s"].spent.mu == 0.5
    if "q" in cell.split():
        assert shell.user_ns["q"].description == words


def test_targets_may_use_the_notebooks_names_and_lists(shell: InteractiveShell) -> None:
    run(shell, "half = 0.5\ng = s.frame.groupby('x', keys=[1]) if False else None")
    assert run(shell, "%%dpnb mu=half / 2 simultaneous=True\ns.frame.count()").simultaneous
    assert shell.user_ns["s"].spent.mu == 0.25


@pytest.mark.parametrize(
    ("source", "error", "match"),
    [
        ("%%dpnb mu=0.5\n3", RequestError, "must be a query.*got a int"),
        ("%%dpnb mu=0.5\npass", RequestError, "got None"),
        ("%%dpnb\ns.frame.count()", RequestError, "give exactly one of"),
        ("%%dpnb 0.5\ns.frame.count()", RequestError, "as in within=0.2"),
        ("%%dpnb mu=\ns.frame.count()", RequestError, "as in within=0.2"),
        ("%%dpnb nu=0.5\ns.frame.count()", RequestError, "'nu' is not an argument"),
        ("%%dpnb mu=5\ns.frame.count()", BudgetExceeded, "the largest that fits"),
        ("%dpnb what-if 3 mu=1", RequestError, "must be a query"),
        ("%dpnb what-if unheard mu=1", RequestError, "must be a query"),
        ("%%dpnb mu=0.5\nunheard", NameError, "unheard"),
    ],
)
def test_what_cannot_be_released_is_refused_in_words_and_costs_nothing(
    shell: InteractiveShell, source: str, error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        run(shell, source)
    assert shell.user_ns["s"].headroom == 1


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("%dpnb ", {"log", "explain", "what-if"}),
        ("%dpnb ex", {"explain"}),
        ("%dpnb what-if w", {"within="}),
        ("%dpnb what-if vis", {"visits"}),
        ("%dpnb what-if visits sh", {"share="}),
        ("%%dpnb con", {"confidence="}),
        ("%%dpnb mu=0.1 m", set()),
    ],
)
def test_tab_completes(shell: InteractiveShell, line: str, expected: set[str]) -> None:
    run(shell, "visits = s.frame.count()")
    ours = {"log", "explain", "what-if", "visits", "within=", "share=", "confidence=", "mu="}
    assert completions(shell, line) & ours == expected


def test_question_mark_shows_the_commands(shell: InteractiveShell) -> None:
    words = shell.object_inspect("%dpnb")["docstring"]
    for command in ("%dpnb log", "%dpnb what-if", "%%dpnb within=0.2"):
        assert command in words


def test_unloading_takes_everything_back(shell: InteractiveShell) -> None:
    dpnb.unload_ipython_extension(shell)
    assert "dpnb" not in {**shell.magics_manager.magics["line"], **shell.magics_manager.magics["cell"]}
    assert "log" not in completions(shell, "%dpnb ")
    dpnb.load_ipython_extension(shell)
    assert "dpnb" in shell.magics_manager.magics["cell"]


def test_below_an_error_of_ours_stands_one_sentence_and_below_others_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Result:
        error_in_exec: BaseException = BudgetExceeded("x")

    explain_error(Result())
    assert "a cheaper query may still fit" in capsys.readouterr().out
    Result.error_in_exec = ZeroDivisionError()
    explain_error(Result())
    assert capsys.readouterr().out == ""


def test_below_the_cell_that_made_a_session_stands_once_for_what_its_promise_holds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = {
        "name": "promised",
        "budget": dpnb.Budget.gdp(1),
        "schema": {"x": dpnb.Bounded(0, 5)},
        "ledger": ":memory:",
    }
    extension.say_promises(None)
    capsys.readouterr()
    table = pd.DataFrame({"x": [1.0], "person": [1]})
    session = dpnb.Session(table, privacy_unit="person", max_rows_per_unit=3, **made)
    inside = session.delegate(share=0.1, name="inside")
    extension.say_promises(None)
    said = capsys.readouterr().out
    assert said == (
        "dpnb session promised: for one person (at most 3 rows), what all answers together reveal about one unit is "
        "limited, whatever is asked\n"
    )
    extension.say_promises(None)
    assert capsys.readouterr().out == ""
    assert inside.headroom == 1.0


def test_a_link_to_the_panel_leads_to_more_than_the_sentence_below_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[dict[str, str]] = []
    monkeypatch.setattr(extension, "display", lambda bundle, raw: shown.append(bundle))
    monkeypatch.setattr(extension.cell_context, "has_live_widgets", lambda: True)
    panel_texts = {explained.id: explained.text for explained in EXPLAINED}
    for kind in DpnbError.__subclasses__():

        class Result:
            error_in_exec = kind("x")

        shown.clear()
        explain_error(Result())
        explanation = explanation_for(Result.error_in_exec)
        assert explanation.text in shown[0]["text/plain"]
        has_more = panel_texts[explanation.id] != explanation.text
        assert ("dpnb-explain" in shown[0]["text/html"]) == has_more


# --- a notebook that a program executes -------------------------------------------------------------------------------

CELLS = [
    "%load_ext dpnb\nimport pandas as pd, dpnb\nsession = dpnb.Session(pd.DataFrame({'x': [1.0, 2.0]}), name='t', "
    "budget=dpnb.Budget.gdp(1), schema={'x': dpnb.Bounded(0, 5)}, ledger=':memory:')\nsession",
    "session.frame['x'].sum()",
    "%%dpnb mu=0.5 --yes\nsession.frame['x'].sum()",
]


@pytest.fixture(scope="module")
def executed() -> nbformat.NotebookNode:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    with forking_here():
        NotebookClient(notebook, kernel_name="python3").execute()
    return notebook


@pytest.mark.notebook
def test_executed_notebook_holds_dated_still_faces_and_no_widget(executed: nbformat.NotebookNode) -> None:
    shown = [[output for output in cell.outputs if output.output_type != "stream"] for cell in executed.cells]
    faces = [outputs[-1].data for outputs in shown]
    assert [set(face) for face in faces] == [{"text/plain", "text/html"}] * 3
    session, question, answer = (face["text/html"] for face in faces)
    assert "100.0% left" in session
    assert "not released" in question
    assert "share=0.05" in question
    assert "as of 20" in session
    assert "as of 20" in question
    assert "95% noise interval" in answer


@pytest.mark.notebook
def test_exported_page_shows_the_still_faces_and_asks_the_network_for_none_of_them(
    executed: nbformat.NotebookNode,
) -> None:
    from nbconvert import HTMLExporter

    page, _ = HTMLExporter().from_notebook_node(executed)
    for words in ("100.0% left", "not released", "95% noise interval"):
        assert words in page
    assert "widget-view" not in page


def test_error_of_ours_points_at_the_notebooks_line_and_says_nothing_of_our_own(shell: InteractiveShell) -> None:
    with capture_output() as shown:
        shell.run_cell("def ask():\n    return s.frame.count().release(mu=7)\nask()")
    assert "return s.frame.count().release(mu=7)" in re.sub(r"\x1b\[[0-9;]*m", "", shown.stdout)
    assert "BudgetExceeded" in shown.stdout
    assert "releases.py" not in shown.stdout
    with capture_output() as shown:
        shell.run_cell("1 / 0")
    assert "ZeroDivisionError" in shown.stdout
    dpnb.unload_ipython_extension(shell)
    with capture_output() as shown:
        shell.run_cell("s.frame.count().release(mu=7)")
    assert "releases.py" in shown.stdout


@pytest.mark.parametrize(
    ("source", "error", "match"),
    [
        ("%%dpnb witin=0.3\ns.frame.count().release(mu=0.5)", RequestError, "'witin' is not an argument"),
        ("%%dpnb mu=0.3\nfor z in [s.frame.count()]: pass", RequestError, "got None"),
        ("%%dpnb mu=0.3\nq = s.frame.count()\nq: object", RequestError, "got None"),
    ],
)
def test_cell_magic_reads_its_line_first_and_releases_only_a_last_question(
    shell: InteractiveShell, source: str, error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        run(shell, source)
    assert shell.user_ns["s"].headroom == 1


def test_what_if_can_be_asked_again_and_again_about_the_same_question(shell: InteractiveShell) -> None:
    run(shell, "s.frame.count()")
    for mu in (0.1, 0.2, 0.3, 0.4):
        assert run(shell, f"%dpnb what-if mu={mu}").description == "count of rows"
    assert run(shell, "%dpnb what-if\tmu = 0.5  # all of it").request == "mu=0.5"
    assert (
        run(shell, "%dpnb what-if s.frame[s.frame['x'] > 3].count() mu=0.1").description == "count of rows where x > 3"
    )
    assert run(shell, "%dpnb what-if mu=0.1").description == "count of rows where x > 3"


def test_what_if_needs_no_underscore_which_doctest_takes_from_ipython(
    shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builtins, "_", None, raising=False)
    run(shell, "s.frame.count()")
    for mu in (0.1, 0.2):
        assert run(shell, f"%dpnb what-if mu={mu}").description == "count of rows"


def test_values_may_hold_spaces_commas_and_equal_signs() -> None:
    written = magics._parsed("groups=['a b=c', \"d, e\"], mu=0.1 final = 1 == 1")
    values = {name: ast.literal_eval(node) for name, node in written.items() if name != "final"}
    assert values == {"groups": ["a b=c", "d, e"], "mu": 0.1}
    assert ast.unparse(written["final"]) == "1 == 1"
