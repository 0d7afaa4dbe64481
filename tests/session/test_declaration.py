"""A session stated in a TOML file: it is the same session, and what is wrong is said with file and line."""

from __future__ import annotations

import inspect
import json
import os
import traceback
import warnings
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpnb
from dpnb.errors import DpnbError, InvalidValueError, LedgerError, SchemaError
from dpnb.session.declaration import COLUMN_TYPES, read_declaration

EXAMPLE = Path(__file__).parents[2] / "examples" / "rand-hie.toml"

GOOD = """\
name = "clinic"
privacy_unit = "person"
max_rows_per_unit = 2
public_size = 100
version = "1982"
filter = "gdp"
accounting = "individual"
on_exhausted = "drop"

[budget]
epsilon = 1.0
delta = 1e-6
discovery_delta = 1e-7

[schema]
visits = { type = "bounded", low = 0, high = 10, integer = true }
town = { type = "categories", values = ["north", "south"] }
street = { type = "text" }
[schema.born]
type = "dates"
first = 1950-01-01
last = "2000-12-31"
"""

SEVERAL = """\
name = "clinic"
privacy_unit = "person"
[max_rows_per_unit]
seen = 2
paid = 1
[budget]
mu = 0.5
[schema.seen]
visits = { type = "bounded", low = 0, high = 10 }
type = { type = "categories", values = ["x"] }
[schema.paid.income]
type = "bounded"
low = 0
high = 100
"""


def table() -> pd.DataFrame:
    return pd.DataFrame(
        {"person": ["ada", "bea"], "visits": [1, 2], "town": ["north"] * 2, "street": ["elm"] * 2, "born": "1960-01-01"}
    )


def tables() -> dict[str, pd.DataFrame]:
    seen = pd.DataFrame({"person": ["ada"], "visits": [1], "type": ["x"]})
    return {"seen": seen, "paid": pd.DataFrame({"person": ["ada"], "income": [1]})}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "clinic.toml"
    path.write_text(GOOD, encoding="utf-8")
    return path


# --- the same session ------------------------------------------------------------------------------------------------


def test_a_file_states_what_the_arguments_state(file: Path, tmp_path: Path) -> None:
    stated = dpnb.Session.from_toml(file, table())
    written = dpnb.Session(
        table(),
        name="clinic",
        privacy_unit="person",
        max_rows_per_unit=2,
        public_size=100,
        version="1982",
        filter="gdp",
        accounting="individual",
        on_exhausted="drop",
        budget=dpnb.Budget(epsilon=1.0, delta=1e-6, discovery_delta=1e-7),
        schema={
            "visits": dpnb.Bounded(0, 10, integer=True),
            "town": dpnb.Categories(["north", "south"]),
            "street": dpnb.Text(),
            "born": dpnb.Dates("1950-01-01", "2000-12-31"),
        },
        ledger=tmp_path / "clinic.dpnb",  # serves one promise only: it is refused for any other
    )
    assert repr(stated) == repr(written)
    assert stated.ledger.path == written.ledger.path
    assert (stated.public_size, stated.version) == (100, "1982")


def test_several_tables_are_stated_by_their_names(file: Path) -> None:
    file.write_text(SEVERAL, encoding="utf-8")
    session = dpnb.Session.from_toml(file, tables())
    assert session.budget == dpnb.Budget.gdp(0.5)
    assert session.table("seen")["type"].count() is not None  # a column that is called type
    assert session.privacy_unit_description == "one person (at most 2 rows of seen; at most 1 row of paid)"
    assert session.table("paid")["income"].mean().preview(mu=0.1).fits


def test_a_table_may_be_its_file_which_is_read_as_declared(tmp_path: Path) -> None:
    for name, unit in (("seen", "visits;x"), ("paid", "income;x")):
        (tmp_path / f"{name}.csv").write_text(f"person;{unit}\n007;2,5;x\n7;2,5;x\n", encoding="utf-8")
    path = tmp_path / "clinic.toml"
    text = SEVERAL.replace('"clinic"\n', '"clinic"\nseparator = ";"\ndecimal = ","\n').replace("0.5", "200")
    path.write_text(text.replace('type = { type = "categories", values = ["x"] }\n', ""), encoding="utf-8")
    files = {name: tmp_path / f"{name}.csv" for name in ("seen", "paid")}
    session = dpnb.Session.from_toml(path, files)
    assert round(float(session.table("seen")["visits"].sum().release(mu=100))) == 5
    assert round(float(session.table("seen").count_units().release(mu=100))) == 2
    with pytest.raises(SchemaError, match=r"give the file instead, as in Session\.from_toml"):
        dpnb.Session.from_toml(path, tables())
    with pytest.raises(SchemaError, match=r"table: must be an existing file; got .*none\.csv"):
        dpnb.Session.from_toml(path, {**files, "paid": str(tmp_path / "none.csv")})


def test_a_rehearsal_needs_no_table_and_leaves_no_ledger(file: Path) -> None:
    session = dpnb.Session.from_toml(file, rehearse=True)
    assert "REHEARSAL" in str(session)
    assert list(file.parent.iterdir()) == [file]
    file.write_text(SEVERAL, encoding="utf-8")
    assert dpnb.Session.from_toml(file, rehearse=True).table("seen").count() is not None


def test_the_ledger_is_beside_the_file_wherever_it_is_opened_from(
    file: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    here = dpnb.Session.from_toml("clinic.toml", table()).ledger.path
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert here == str(file.parent / "clinic.dpnb") == dpnb.Session.from_toml(file, table()).ledger.path
    for stated, where in (
        ("kept/x.dpnb", file.parent / "kept" / "x.dpnb"),
        (str(file.parent / "y.dpnb"), file.parent / "y.dpnb"),
        (":memory:", Path(":memory:")),
    ):
        where.parent.mkdir(exist_ok=True)
        file.write_text(f"ledger = {stated!r}\n{GOOD}", encoding="utf-8")
        assert dpnb.Session.from_toml(file, table()).ledger.path == str(where)


def test_a_ledger_of_another_promise_is_refused_as_ever(file: Path) -> None:
    dpnb.Session.from_toml(file, table()).frame.count().release(mu=0.01)
    file.write_text(GOOD.replace("epsilon = 1.0", "epsilon = 2.0"), encoding="utf-8")
    with pytest.raises(LedgerError):
        dpnb.Session.from_toml(file, table())


def test_the_keys_are_the_arguments_of_a_session(file: Path) -> None:
    parameters = inspect.signature(dpnb.Session).parameters
    declaration = read_declaration(file, dpnb.Session)
    assert set(declaration.known) == set(parameters) - {"table", "not_private_test_seed"}
    arguments = declaration.arguments()
    assert set(arguments) <= set(declaration.known)


@pytest.mark.parametrize(("tag", "kind"), COLUMN_TYPES.items(), ids=COLUMN_TYPES)
def test_the_keys_of_a_column_are_the_arguments_of_its_type(tag: str, kind: Any, tmp_path: Path) -> None:
    needed = {
        "bounded": {"low": 0, "high": 9},
        "categories": {"values": [1]},
        "dates": {"first": "1950-01-01", "last": "2000-12-31"},
        "text": {"max_length": 80},
    }
    given = dict(needed.get(tag, {}))
    for field in msgspec.structs.fields(kind):
        if not field.required:
            given.setdefault(field.name, field.default)
    written = "\n".join(f"{name} = {json.dumps(value)}" for name, value in given.items())
    path = tmp_path / "x.toml"
    path.write_text(f'name = "x"\n[budget]\nmu = 1\n[schema.x]\ntype = "{tag}"\n{written}', encoding="utf-8")
    stated = read_declaration(path, dpnb.Session).arguments()
    assert stated["schema"] == {"x": kind(**given)}


def test_the_example_opens(tmp_path: Path) -> None:
    copy = tmp_path / EXAMPLE.name
    copy.write_bytes(EXAMPLE.read_bytes())
    statsmodels = pytest.importorskip("statsmodels")
    real = pd.read_csv(Path(statsmodels.__file__).parent / "datasets/randhie/src/randhie.csv")
    session = dpnb.Session.from_toml(copy, real)
    assert session.privacy_unit_description == "one zper (at most 5 rows)"
    assert session.frame.groupby("coins")["mdvis"].mean().preview(mu=0.1).fits


# --- what is wrong, and on which line --------------------------------------------------------------------------------

Change = tuple[str, str, int | None, str]
"""What stands in the good file, what instead, the line at fault, and what is said."""

FAULTS: dict[str, Change] = {
    "no TOML": ("public_size = 100", "public_size 100", 4, "must be TOML; Expected '='"),
    "a text without an end": ('last = "2000-12-31"\n', 'last = """2000', 22, "must be TOML"),
    "a key twice": ("public_size = 100", 'name = "b"', 4, "must be TOML"),
    "a number of many digits": ("public_size = 100", f"public_size = {'9' * 5000}", None, "must be TOML"),
    "an unknown key": ("max_rows_per_unit", "max_row_per_unit", 3, "did you mean 'max_rows_per_unit'"),
    "a key far from all": ("public_size", "zzz", 4, "'zzz' is not a key; the keys are name, budget"),
    "a seed of tests": ("public_size", "not_private_test_seed", 4, "is only for tests"),
    "a table": ("public_size", "table", 4, "'table' is not a key"),
    "no name": ('name = "clinic"\n', "", None, "'name' is missing; add it"),
    "a bad name": ('"clinic"', '"a/b"', 1, "name: must be letters"),
    "a name that is a date": ('"clinic"', "1982-01-01", 1, "name: must be letters"),
    "a version that is a number": ('"1982"', "1982", 5, "version: must be a non-empty str"),
    "no persons": ("= 100", "= 0", 4, "public_size: must be a positive"),
    "no rows": ("unit = 2", "unit = 0", 3, "max_rows_per_unit: must be a whole number"),
    "no limit": ("max_rows_per_unit = 2\n", "", None, "max_rows_per_unit: required"),
    "no unit": ("privacy_unit", "# privacy_unit", None, "privacy_unit: required with max_rows"),
    "a unit in the schema": ('"person"', '"town"', 2, "privacy_unit: 'town' is also in the schema"),
    "a unit that is not there": ('"person"', '"persons"', 2, "column 'persons': is not in the table"),
    "an unknown filter": ('"gdp"', '"strict"', 6, "filter"),
    "a filter that cannot": ('"gdp"', '"basic"', None, "."),
    "unknown accounting": ('"individual"', '"all"', 7, "accounting: must be"),
    "an unknown end": ('"drop"', '"stop"', 8, "on_exhausted: must be"),
    "no budget": ("[budget]", "[budge]", 10, "did you mean 'budget'"),
    "a budget that is a number": ("[budget]\nepsilon = 1.0", "[schema]\nx = 1", None, "TOML"),
    "epsilon 0": ("epsilon = 1.0", "epsilon = 0", 11, "budget: epsilon must be greater than 0"),
    "epsilon a list": ("epsilon = 1.0", "epsilon = [1]", 11, "epsilon"),
    "no delta": ("delta = 1e-6\n", "", 10, "'delta' is missing in budget"),
    "a large discovery_delta": ("1e-7", "1e-5", 13, "discovery_delta must be"),
    "an unknown measure": ("epsilon = 1.0", "epsilom = 1.0", 11, "did you mean 'epsilon'"),
    "two measures": ("epsilon = 1.0", "mu = 1.0", 12, "'delta' is not a key in budget"),
    "bounds reversed": ("low = 0", "low = 20", 16, "schema.visits: Bounded: low must be below high"),
    "a bound that is nan": ("high = 10", "high = nan", 16, "schema.visits: Bounded: high must be a finite"),
    "no bound": ("low = 0, ", "", 16, "'low' is missing in schema.visits"),
    "an unknown key of a column": ("low = 0, ", "lower = 0, ", 16, "'lower' is not a key in schema.visits; did you"),
    "an unknown type": ('"bounded"', '"bound"', 16, "schema.visits.type: must be one of .* mean 'bounded'"),
    "a type that is a number": ('"bounded"', "3", 16, "must be one of"),
    "no type": ('type = "text"', "", 18, 'schema.street: must be a table with a type, one of "bounded"'),
    "a column that is a number": ('{ type = "text" }', "3", 18, "schema.street: must be a table with a type"),
    "a category twice": ('"south"', '"north"', 17, "schema.town: Categories: values must differ"),
    "categories that are no list": ('["north", "south"]', "3", 17, "schema.town: Categories: must be a list"),
    "a date that is none": ('"2000-12-31"', '"2000-02-31"', 22, "schema.born: Dates: last: must be a date"),
    "dates reversed": ("first = 1950-01-01", "first = 2050-01-01", 21, "schema.born: Dates: first must be before"),
    "a time of day": ("first = 1950-01-01", "first = 07:00:00", 21, "schema.born: Dates: first: must be a date"),
    "a column that is not there": ("visits =", "visit =", 16, "column 'visit': is not in the table"),
    "a ledger that is a number": ('name = "clinic"', 'ledger = 3\nname = "clinic"', 1, "ledger: must be the path"),
    "a schema that is a number": (GOOD, 'schema = 3\nname = "a"\n[budget]\nmu = 1', 1, "schema: must map"),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after", "line", "says"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_said_with_file_and_line(
    before: str, after: str, line: int | None, says: str, tmp_path: Path
) -> None:
    assert before in GOOD
    path = tmp_path / "clinic.toml"
    path.write_text(GOOD.replace(before, after, 1), encoding="utf-8")
    place = f"{path}: " if line is None else f"{path}, line {line}: "
    with pytest.raises((SchemaError, InvalidValueError), match=says) as refused:
        dpnb.Session.from_toml(path, table())
    said = str(refused.value)
    if line is not None:
        assert said.startswith(place)
    assert ", line None" not in said
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None
    assert list(tmp_path.iterdir()) == [path]


def test_without_lines_these_tests_fail(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpnb.session.toml_file.lines_of", lambda text: {})
    file.write_text(GOOD.replace("low = 0", "low = 20"), encoding="utf-8")
    with pytest.raises(SchemaError) as refused:
        dpnb.Session.from_toml(file, table())
    assert ", line " not in str(refused.value)


SEVERAL_FAULTS: dict[str, Change] = {
    "a limit of another table": ("paid = 1", "payed = 1", 5, "max_rows_per_unit: 'payed' is not one of the tables"),
    "a column of the second table": ("paid.income", "paid.incomes", 11, "column 'incomes': is not in the table 'paid'"),
    "a column without a type": ("low = 0\n", "low = 0\nx = 1\n", 14, "'x' is not a key in schema.paid.income"),
    "no type": ('type = "bounded"\n', "", 11, "schema.paid.income: must be a table with a type"),
    "a column beside tables": ("[schema.seen]", '[schema.age]\ntype = "text"\n[schema.seen]', 8, "schema"),
    "another table": ("[schema.paid.income]", "[schema.bills.income]", 8, "tables: must be those of the schema"),
}


@pytest.mark.parametrize(("before", "after", "line", "says"), SEVERAL_FAULTS.values(), ids=SEVERAL_FAULTS)
def test_a_fault_in_several_tables_is_said_with_its_line(
    before: str, after: str, line: int, says: str, tmp_path: Path
) -> None:
    assert before in SEVERAL
    path = tmp_path / "clinic.toml"
    changed = SEVERAL.replace(before, after, 1)
    path.write_text(changed.replace("paid = 1", "bills = 1") if "bills" in after else changed, encoding="utf-8")
    with pytest.raises((SchemaError, InvalidValueError), match=says) as refused:
        dpnb.Session.from_toml(path, tables())
    assert str(refused.value).startswith(f"{path}, line {line}: ")


def test_the_table_has_to_be_of_the_shape_that_is_stated(file: Path) -> None:
    with pytest.raises(SchemaError, match="line 15: schema: must map each table's name"):
        dpnb.Session.from_toml(file, tables())
    file.write_text(SEVERAL, encoding="utf-8")
    with pytest.raises(SchemaError, match="line 8: schema: has the tables 'seen', 'paid'; got one table; pass a dict"):
        dpnb.Session.from_toml(file, table())
    file.write_text(GOOD, encoding="utf-8")
    with pytest.raises(SchemaError, match=r"^table: must be a data frame"):
        dpnb.Session.from_toml(file)


@pytest.mark.parametrize("path", [None, 3, b"x.toml", "", "none.toml", "."])
def test_a_file_that_cannot_be_read_is_refused(path: Any) -> None:
    with pytest.raises(InvalidValueError, match="TOML file"):
        dpnb.Session.from_toml(path, table())


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    deep = (b"a = " + b"[" * 100_000, b"a." * 2_000 + b"b = 1")
    for content, says in ((b"\xff\xfe", "UTF-8"), *((one, "nested too deeply|TOML") for one in deep)):
        path.write_bytes(content)
        with pytest.raises(InvalidValueError, match=says):
            dpnb.Session.from_toml(path, table())


@pytest.mark.parametrize("control", [False, True])
def test_a_traceback_with_variables_shows_no_row(control: bool, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if control:
        monkeypatch.setattr("dpnb._core.tables.UnreadTables.__repr__", lambda unread: repr(unread.tables))
    file.write_text(GOOD.replace("visits =", "visit ="), encoding="utf-8")
    with pytest.raises(SchemaError) as refused:
        dpnb.Session.from_toml(file, table().assign(town="sekret"))
    shown = traceback.TracebackException.from_exception(refused.value, capture_locals=True)
    ours = [str(frame.locals) for frame in shown.stack if f"{os.sep}tests{os.sep}" not in frame.filename]
    assert len(ours) > 1
    assert ("sekret" in "".join(ours)) == control


LINES = GOOD.split("\n")
VALUES = st.sampled_from(["1", "-1", "1e400", "nan", '""', '"x"', "true", "[]", "[1]", "{}", "1950-01-01", "07:00:00"])


@given(st.integers(0, len(LINES) - 1), VALUES)
def test_whatever_stands_in_a_line_is_a_session_or_an_error_of_dpnb(line: int, value: str) -> None:
    changed = [*LINES]
    changed[line] = f"{LINES[line].partition('=')[0]}= {value}"
    path = Path(f"{os.devnull}.toml")
    text = "\n".join(changed)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a budget that has nothing to discover texts with
        patch.setattr(Path, "read_bytes", lambda self: text.encode())
        try:
            dpnb.Session.from_toml(path, rehearse=True)
        except DpnbError as error:
            assert str(error).startswith(str(path))  # noqa: PT017
