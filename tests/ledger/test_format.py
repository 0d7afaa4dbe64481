"""What a ledger of this format holds, to the letter: it must not change without another format number.

The files that these tests read were written once and are not to be written again: what differs needs another `FORMAT`.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpnb
from dpnb._core.accountant.granting import freeze, grant, move_cap, revoke
from dpnb._core.accountant.people import approve, decline
from dpnb._core.requesting import request_budget
from dpnb._core.source_files import TableFileCheck
from dpnb._plan.expressions.nodes import Column, Compare, Expression, Literal
from dpnb._plan.identity import query_key
from dpnb._plan.measurements import (
    Count,
    CountActiveUnits,
    CountUnits,
    DeviationProducts,
    Discovery,
    Gradient,
    JointAggregation,
    Mean,
    Measured,
    ModelLoss,
    Moments,
    PlainView,
    QuantileTree,
    Ratio,
    RegressionModel,
    ScoreSums,
    StepView,
    Sum,
    UnitProducts,
    WeightedAggregation,
)
from dpnb._plan.plan import GroupLevel, Join, PartSource, Plan
from dpnb._plan.privacy_unit import ContributionBounds
from dpnb._request import (
    AnyMechanism,
    BatchTable,
    CloseMechanism,
    CompareWithThreshold,
    DelegateBudget,
    DescendGradient,
    LaunchMechanism,
    PartitionTable,
    ReduceNoise,
    Release,
    ReleaseBatch,
    Request,
    RequestBudget,
    ScanThreshold,
    SelectGroups,
    request_from,
)
from dpnb._target import target_from
from dpnb.accounting.losses import GDP, PureGDP
from dpnb.curator.redaction import redact
from dpnb.errors import LedgerError
from dpnb.ledger import Ledger, RequestOrigin, requested_by
from dpnb.ledger.charge import (
    ACT,
    BUDGET_REQUEST,
    CHARGED_COLUMNS,
    COLUMNS,
    GRANT,
    KINDS,
    ORIGIN_COLUMNS,
    REDACTION,
    RESERVED_COLUMNS,
    STATEMENT,
    VERSION,
    chained_hash,
    digest,
    result_hash,
    sealed,
)
from dpnb.ledger.file_format import FORMAT
from ledger.rows import METADATA, filled, opened, refused_unchanged, reserve, tamper
from texts import characters

STORED: dict[str, Any] = json.loads((Path(__file__).parent / f"format_{FORMAT}.json").read_text())
X, Y = Column("x"), Column("y")
MODEL = RegressionModel("logistic", Compare(">", Y, Literal(2.0)), (X,), (Column("town"),))
AGGREGATIONS: dict[str, Measured] = {
    "rows": Count(),
    "rows with a value": Count(X),
    "units": CountUnits(),
    "units that can pay": CountActiveUnits("before lunch"),
    "sum": Sum(X),
    "mean": Mean(X),
    "ratio": Ratio(X, Y),
    "moments": Moments((X, Y), (Column("town"),)),
    "products of units": UnitProducts((X, Y), 5),
    "squares of units": UnitProducts((X,), 5, squares=True),
    "products of deviations": DeviationProducts((X, Y), 5),
    "tree": QuantileTree(X),
    "gradient": Gradient(MODEL, ((0.0, 1.0, -0.5),), 1.5),
    "model loss": ModelLoss(MODEL, (0.0, 1.0, -0.5)),
    "score": ScoreSums(MODEL, (0.0, 1.0, -0.5), "score"),
    "information": ScoreSums(MODEL, (0.0, 1.0, -0.5), "information", 0.125),
    "products of scores": ScoreSums(MODEL, (0.0, 1.0, -0.5), "products", max_rows=5),
    "joint": JointAggregation((WeightedAggregation(Count(), 2.0), WeightedAggregation(Mean(X)))),
    "discovery": Discovery("1/1000000"),
}


def whole_plan() -> Plan:
    """One of every expression, and everything else that a plan may have."""
    from dpnb._plan.expressions import nodes as n

    number: Expression = n.Round(n.Clip(n.Arithmetic("+", Y, n.Apply("abs", X)), 0.0, None), 1)
    condition: Expression = n.And(
        n.Or(n.Not(n.IsNull(X)), n.Compare("<", Literal(3.0), X)), n.IsIn(Column("town"), ("s", "n"))
    )
    value = n.Where(condition, n.FillNull(number, 0), n.AsNumber(condition))
    level = n.Cut(value, (0.0, 1.0, 2.5), ("low", "high"), right=False)
    looked_up = n.Lookup("region", (Column("town"),), (("n",), ("s",)), (1, None), 0.0, 1.0)
    return Plan(
        Sum(value),
        where=condition,
        group_by=(
            GroupLevel("level", level),
            GroupLevel("hour", n.ExtractDatePart("hour", Column("time"))),
            GroupLevel("region", looked_up),
        ),
        group_keys=(("low", 1, 1), ("high", 2.0, 1)),
        contribution_bounds=ContributionBounds(2, 3, 4, 0.5),
        source=Join(PartSource("left", GroupLevel("town", Column("town")), "n", 2), "right"),
    )


@pytest.mark.parametrize("name", AGGREGATIONS)
def test_the_query_key_of_an_aggregation_is_part_of_the_format(name: str) -> None:
    assert query_key(Plan(AGGREGATIONS[name])) == STORED["query_keys"][name]


TARGETS = {
    "all": target_from(mu="1/3"),
    "some": target_from(within="1/2", confidence="9/10", simultaneous=True, final=True, groups=(("n", 1),)),
    "single": target_from(within={("n", 1): 2, "mean": "1/2"}),
}
BY_TOWN = GroupLevel("town", Column("town"))
MECHANISMS: tuple[AnyMechanism, ...] = (
    PartitionTable(Join("left", "right"), BY_TOWN, 2),
    DelegateBudget("gdp", budget={"mu_squared": "1/4"}),
    ScanThreshold(Fraction(3), Fraction(1, 10), 2, monotonic=True, return_values=True),
    ReduceNoise(Plan(Mean(X)), PlainView(), Fraction(1, 100), Fraction(1, 10)),
    DescendGradient(
        *(Plan(Count()), MODEL, ("intercept", "x"), Fraction(1, 10), 3, 1.5, Fraction(1, 4), 8),
        **{"public_size": 30, "check_every": 1, "check_mu": Fraction(1, 20), "patience": 2, "start": (0.0, 0.5)},
    ),
)
RELEASES = {name: Release(Plan(Mean(X)), PlainView(), target) for name, target in TARGETS.items()}
STEP = JointAggregation(
    tuple(WeightedAggregation(AGGREGATIONS[name], 0.5) for name in ("score", "information"))  # type: ignore[arg-type]
)
REQUESTS: dict[str, Request] = {
    **{f"release of {name}": release for name, release in RELEASES.items()},
    "step": Release(Plan(STEP), StepView(("Intercept", "x", "town == 's'")), TARGETS["all"]),
    "batch": ReleaseBatch(tuple(RELEASES.values())),
    "table": BatchTable(Plan(Count()), PlainView(), TARGETS["all"], 1, 3, 0, (2, 4), ((0,), (1,), (0, 1))),
    "selection": SelectGroups(Plan(Count(), group_by=(BY_TOWN,)), 2, Fraction(1, 10)),
    **{f"launch of {type(one).__name__}": LaunchMechanism("line", one) for one in MECHANISMS},
    "close": CloseMechanism("line"),
    "comparison": CompareWithThreshold("line", Plan(CountUnits()), Fraction(-1, 2)),
    "budget request": RequestBudget(tuple(RELEASES.values()), "for the report"),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_the_text_and_the_key_of_a_request_are_part_of_the_format(name: str) -> None:
    request = REQUESTS[name]
    assert [request.text, request.key] == STORED["requests"][name]
    if not isinstance(request, ReleaseBatch):  # whose tables have a row each
        assert request_from(request.text) == request
        assert request.key == hashlib.sha256(request.text.encode()).hexdigest()


def test_the_query_key_and_the_json_of_a_whole_plan_are_part_of_the_format() -> None:
    assert query_key(whole_plan()) == STORED["query_keys"]["whole plan"]
    assert json.loads(whole_plan().to_json()) == STORED["plan"]
    assert Plan.from_json(json.dumps(STORED["plan"])) == whole_plan()


def asked(path: Path) -> None:
    """A ledger with every kind of event and every mechanism."""
    table = pd.DataFrame(
        {"person": [1, 1, 2], "town": ["n", "s", "n"], "x": [1, 2, 3], "y": [0.5, 1.5, 2.5], "note": ["a", "b", "a"]}
    )
    session = dpnb.Session(
        table,
        name="clinic",
        privacy_unit="person",
        max_rows_per_unit=2,
        budget=dpnb.Budget(epsilon=4, delta="1e-6", discovery_delta="1e-7"),
        schema={
            "x": dpnb.Bounded(0, 4, integer=True),
            "y": dpnb.Bounded(0, 4),
            "town": dpnb.Categories(["n", "s"]),
            "note": dpnb.Text(),
        },
        public_size=3,
        ledger=path,
        not_private_test_seed=1,
    )
    TableFileCheck(session.ledger, "1", lambda: "a" * 64)
    frame = session.frame
    frame[frame["x"] > 1].groupby("town")["y"].mean().release(mu="0.1", simultaneous=True)
    frame.agg(rows="count", mean=("y", "mean")).release(rho="0.01", confidence="0.9")
    frame.discover("note").release(mu="0.1")
    session.delegate(share="0.1", name="team").frame.count().release(mu="0.01")
    session.partition("town", name="towns", max_parts_per_unit=1)["n"].frame.count().release(mu="0.01")
    scan = session.above_threshold(3, name="line", epsilon="0.01", return_values=True)
    scan.ask(frame.count(), threshold=-(10**9))
    scan.close()
    session.above_threshold(3, name="Gaussian line", mu="0.01", max_queries=2)
    session.noise_reduction(frame["x"].sum(), initial_mu="0.01", max_mu="0.05")
    frame.fit("y", on=["x"], family="linear", mu="0.01", steps=2, check_every=1, chains=8, name="fit")
    frame.groupby("town").size().top(2).release(epsilon="0.01")
    session.plan([frame.groupby("town").size(), frame["x"].sum()]).release(mu="0.01")
    session.ledger.close()


def rows_of(path: Path) -> dict[str, Any]:
    """What a ledger holds, but for what differs from run to run or between versions of a library."""
    with closing(sqlite3.connect(path)) as file:
        layout = sorted(str(sql) for (sql,) in file.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"))
        metadata = dict(file.execute("SELECT key, value FROM metadata"))
        parameters = dict(file.execute("SELECT key, value FROM parameters"))
        file.row_factory = sqlite3.Row
        events = [dict(row) for row in file.execute("SELECT * FROM events ORDER BY id")]
    for name in ("request", "loss", "details", "result", "words"):
        for event in events:
            event[name] = json.loads(event[name]) if event[name] else event[name]
    for event in events:
        for name in ("time", "hash", "salt", "answer_digest", "result_hash", "total_mu_squared", "tau", "request_key"):
            del event[name]
        for name in ("loss", "sigma", *CHARGED_COLUMNS):
            event[name] = event[name] and "..."
        if event["words"]:
            event["words"] = [event["words"][0], *(None if one is None else "..." for one in event["words"][1:])]
        for content in (event["result"], event["details"]):
            for key in content or ():
                if key in ("values", "value", "half_width", "sigma", "exponent", "noise_token", "budget", "parameters"):
                    content[key] = "..."
    return {
        "layout": layout,
        "metadata": metadata,
        "parameters": sorted(parameters),
        "delta_split": parameters.get("delta_split"),
        "events": events,
    }


def test_what_a_ledger_holds_is_part_of_the_format(tmp_path: Path) -> None:
    asked(tmp_path / "clinic.dpnb")
    found = rows_of(tmp_path / "clinic.dpnb")
    assert {event["kind"] for event in found["events"]} == set(KINDS) - {
        GRANT,
        ACT,
        BUDGET_REQUEST,
        VERSION,
        STATEMENT,
        REDACTION,
    }  # as below
    for name, content in found.items():
        assert content == STORED["ledger"][name], name


def test_parts_of_a_budget_and_acts_are_part_of_the_format(tmp_path: Path) -> None:
    session = dpnb.Session(
        pd.DataFrame({"age": [1]}),
        name="clinic",
        budget=dpnb.Budget.gdp("0.5"),
        schema={"age": dpnb.Bounded(0, 9)},
        ledger=tmp_path / "clinic.dpnb",
    )
    account, half = session._core.account, PureGDP.of(Fraction(1, 8), Fraction(0), Fraction(0))
    part = grant(account, "analyst", "ana", "reserved", half, version="1")
    move_cap(account, part, half, version="1")
    revoke(account, part, version="1")
    freeze(account, "an audit", version="1")
    amount = {"kind": "pure-gdp", "mu_squared": "1/8", "delta": "0", "epsilon": "0"}
    rows = session.ledger.charges()
    assert [(row.kind, row.node, row.query_key, row.launch) for row in rows[1:]] == [
        ("act", "1", "cap", {"act": "cap", "cap": amount}),
        ("act", "1", "revoke", {"act": "revoke"}),
        ("act", "", "freeze", {"act": "freeze", "why": "an audit"}),
    ]
    details = dict(rows[0].launch or {})
    stored = {"mu0_squared", "horizon", "filter_budget", "odometer_gamma", "odometer_delta"}
    assert details.pop("parameters").keys() == stored
    assert details == {"grant": "analyst", "name": "ana", "mode": "reserved", "ceiling": amount, "cap": None}


def test_a_changed_declaration_is_part_of_the_format(tmp_path: Path) -> None:
    def opened(version: str = "7", **columns: dpnb.Bounded) -> dpnb.Session:
        budget, ledger = dpnb.Budget.gdp("0.5"), tmp_path / "clinic.dpnb"
        table = pd.DataFrame({"age": [1], "size": [1]})
        return dpnb.Session(table, name="clinic", budget=budget, schema=columns, version=version, ledger=ledger)

    first = opened(age=dpnb.Bounded(0, 9))
    first.frame.count().release(mu="0.1")
    created, (_, row) = first.ledger.created, opened(size=dpnb.Bounded(0, 5), age=dpnb.Bounded(0, 9)).ledger.charges()
    assert (row.kind, row.node, row.query_key, row.table_version, row.loss) == ("version", " files", "", "7", GDP(0))
    bounded = '{"type":"bounded","low":0.0,"high":%s}'
    schema = f'{{"age":{bounded % "9.0"},"size":{bounded % "5.0"}}}'
    metadata = {**created.metadata, "schema": schema, "added": '[["","size"]]'}
    assert row.launch == {"metadata": metadata, "parameters": created.parameters}
    row = opened("8", age=dpnb.Bounded(0, 4)).ledger.charges()[-1]
    assert (row.kind, row.node, row.query_key, row.table_version, row.loss) == ("version", " files", "", "8", GDP(0))
    metadata = {**created.metadata, "schema": f'{{"age":{bounded % "4.0"}}}'}
    assert row.launch == {"metadata": metadata, "parameters": created.parameters}


def test_what_the_curator_states_and_the_key_of_the_redacted_ledger_are_part_of_the_format(tmp_path: Path) -> None:
    options: dict[str, Any] = {"name": "clinic", "budget": dpnb.Budget.gdp("0.5"), "version": "7"}
    options |= {"schema": {"age": dpnb.Bounded(0, 9)}, "ledger": tmp_path / "clinic.dpnb"}
    table = pd.DataFrame({"age": [1]})
    dpnb.Session(table, statement={"purpose": "research"}, unit_label="stay", **options).ledger.close()
    redact(str(tmp_path / "clinic.dpnb"), str(tmp_path / "redacted.dpnb"))
    with closing(Ledger.read_only_copy(tmp_path / "clinic.dpnb")) as ledger:
        stated, key = ledger.charges()
    assert [(row.kind, row.node, row.query_key, row.loss) for row in (stated, key)] == [
        ("statement", " files", "", GDP(0)),
        ("redaction", " files", "", GDP(0)),
    ]
    assert (stated.table_version, key.table_version) == ("7", "")
    assert stated.launch == {"text": {"purpose": "research"}, "unit_label": "stay"}
    assert [(name, len(text)) for name, text in (key.launch or {}).items()] == [("key", 64)]


def test_requests_for_budget_and_decisions_are_part_of_the_format(tmp_path: Path) -> None:
    session = dpnb.Session(
        pd.DataFrame({"age": [1]}),
        name="clinic",
        budget=dpnb.Budget.gdp("0.5"),
        schema={"age": dpnb.Bounded(0, 9)},
        ledger=tmp_path / "clinic.dpnb",
    )
    core = session._core
    half, small = (PureGDP.of(Fraction(1, part), Fraction(0), Fraction(0)) for part in (8, 100))
    part = grant(core.account, "analyst", "ana", "reserved", half, version="1")
    move_cap(core.account, part, small, version="1")
    ana, query = core.for_analyst(part), session.frame.count()
    with requested_by(RequestOrigin("ana")):
        for mu in ("1/4", "1/5"):
            request_budget(ana, [Release(query.plan, query.view, target_from(mu=Fraction(mu)))], "for the report")
    first, second = core.account.tree.budget_requests().values()
    approve(core.account, first.id, first.digest, None, datetime(3000, 1, 1, tzinfo=UTC), "yes", version="1")
    decline(core.account, second.id, second.digest, "no", version="1")
    *_, asked, _, approval, refusal = session.ledger.charges()
    amount = {"kind": "pure-gdp", "mu_squared": "1/16", "delta": "0", "epsilon": "0"}
    assert (asked.kind, asked.node, asked.query_key, asked.loss) == ("budget_request", "1", "budget request", GDP(0))
    release = Release(query.plan, query.view, target_from(mu="1/4"))
    assert request_from(asked.request) == RequestBudget((release,), "for the report")
    (stored,) = (asked.launch or {})["queries"]
    assert {**(asked.launch or {}), "queries": []} == {"queries": [], "total": amount}
    assert stored.keys() == {"words", "target", "cost", "error"}
    assert (stored["words"], stored["target"], stored["cost"]) == ("count of rows", "mu=0.25", amount)
    assert (approval.kind, approval.node, approval.launch) == (
        "act",
        "1",
        {
            "act": "approve",
            "request": first.id,
            "digest": first.digest,
            "amount": amount,
            "cap": {**amount, "mu_squared": "29/400"},
            "until": "3000-01-01T00:00:00.000Z",
            "why": "yes",
        },
    )
    assert (refusal.kind, refusal.node, refusal.launch) == (
        "act",
        "1",
        {"act": "decline", "request": second.id, "digest": second.digest, "why": "no"},
    )


def test_the_hashes_of_a_row_are_part_of_the_format() -> None:
    row = dict.fromkeys(COLUMNS) | {"id": 1, "kind": "release", "loss": '{"kind": "gdp"}'}
    chained = chained_hash("0" * 64, row)
    _, sealing = sealed('{"above": true}', '["above"]', "0f" * 16)
    assert [chained, sealing, result_hash(chained, "released", sealing)] == STORED["hashes"]


@given(st.lists(st.none() | st.text(characters), min_size=len(RESERVED_COLUMNS), max_size=len(RESERVED_COLUMNS)))
def test_a_row_is_hashed_as_a_json_list(texts: list[str | None]) -> None:
    row = dict(zip(RESERVED_COLUMNS, texts, strict=True)) | {"id": 7}
    chained = chained_hash("0" * 64, row)
    assert chained == digest(["0" * 64, *row.values()])
    assert result_hash(chained, str(texts[1]), texts[2]) == digest([chained, str(texts[1]), texts[2]])
    salt, sealing = sealed(*texts[3:5], "salt")
    has_answer = texts[3:5] != [None, None]
    assert (salt, sealing) == (("salt", digest(["salt", *texts[3:5]])) if has_answer else (None, None))


@pytest.mark.parametrize("older", range(1, FORMAT))
def test_a_ledger_of_an_older_format_is_refused(path: Path, older: int) -> None:
    filled(path)
    tamper(path, f"PRAGMA user_version = {older}")
    match = f"must be a dpnb ledger of format {FORMAT}; it is one of format {older}, written by a development version"
    with refused_unchanged(path.parent, f"{match}; start a new ledger"):
        Ledger(path, METADATA)
    with pytest.raises(LedgerError, match=match):
        Ledger.read_only_copy(path)


def of_later(path: Path, column: str, value: str) -> None:
    """A row that a later version wrote, with all hashes as they should be."""
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute(f"UPDATE events SET {column} = ? WHERE id = 5", (value,))
        ((previous,),) = file.execute("SELECT hash FROM events WHERE id = 4")
        ((*values,),) = file.execute(f"SELECT {', '.join(COLUMNS)} FROM events WHERE id = 5")
        row = dict(zip(COLUMNS, values, strict=True))
        chained = chained_hash(previous, row)
        result = result_hash(chained, row["status"], row["answer_digest"])
        file.execute("UPDATE events SET hash = ?, result_hash = ? WHERE id = 5", (chained, result))
        file.execute("UPDATE head SET hash = ?", (chained,))


LATER = [
    ("actor", ""),
    ("actor", "ana\nnina"),
    *((column, "0") for column in ORIGIN_COLUMNS if column != "actor"),  # an id without an actor, or without a digest
    ("kind", "create_node"),
    *(("node", name) for name in (" later", " files", "x", "07", "7 a", "-1")),  # charges that nobody would count
]


@pytest.mark.parametrize(("column", "value"), LATER)
def test_what_only_a_later_version_can_have_written_is_refused(path: Path, column: str, value: str) -> None:
    filled(path)
    of_later(path, "cell_id", "x")
    with opened(path) as ledger:
        assert len(ledger.charges()) == 5
    of_later(path, column, value)
    with refused_unchanged(path.parent, "row 5 must be one that this version of dpnb understands"):
        Ledger(path, METADATA)
    with pytest.raises(LedgerError, match="use the version that wrote it"):
        Ledger.read_only_copy(path)


def test_a_charge_that_a_later_version_adds_meanwhile_stops_every_charge(path: Path) -> None:
    filled(path)
    with opened(path) as ledger:
        with closing(sqlite3.connect(ledger.path)) as file, file:
            names = [name for name in COLUMNS if name not in ("id", "request_key")]
            copied = f"INSERT INTO events (id, request_key, {', '.join(names)}) SELECT 6, 'f', {', '.join(names)}"
            file.execute(f"{copied} FROM events WHERE id = 5")
            file.execute("UPDATE events SET request_id = '1' WHERE id = 6")
        with pytest.raises(LedgerError, match="row 6"):
            ledger.summaries()
        with pytest.raises(LedgerError):
            reserve(ledger, "g")


def test_the_origin_of_a_request_is_part_of_the_format(path: Path) -> None:
    with opened(path) as ledger:
        with requested_by(RequestOrigin("ana", "7", "a" * 64)):
            reserve(ledger, "a")
            reserve(ledger, "b")  # the same request: its id is stored once in a node
            reserve(ledger, "c", node="1")
        reserve(ledger, "d")
    with closing(sqlite3.connect(path)) as file:
        found = file.execute(f"SELECT {', '.join(ORIGIN_COLUMNS)} FROM events ORDER BY id").fetchall()
    assert found == [("ana", "7", "a" * 64), ("ana", None, None), ("ana", "7", "a" * 64), (None, None, None)]
    with opened(path) as ledger:
        whole, actor = RequestOrigin("ana", "7", "a" * 64), RequestOrigin("ana")
        assert [charge.origin for charge in ledger.charges()] == [whole, actor, whole, None]
        assert [charge.origin for charge in ledger.summaries()] == [whole, actor, whole, None]
        assert [getattr(ledger.by_request_id(node, "7"), "id", None) for node in ("", "1", "2")] == [1, 3, None]
        assert ledger.by_request_id("", "8") is None


def test_a_client_s_request_is_unique_within_its_node(path: Path) -> None:
    filled(path)
    tamper(path, "UPDATE events SET request_id = '7' WHERE id = 1")
    tamper(path, "UPDATE events SET request_id = '7', node = '3' WHERE id = 2")
    with pytest.raises(sqlite3.IntegrityError):
        tamper(path, "UPDATE events SET request_id = '7' WHERE id = 3")
