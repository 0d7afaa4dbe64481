"""What a ledger fixes for later sessions: its computed parameters, and what they may declare otherwise."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction

from dpnb._core.ledger_metadata import MAX_VALUE, Difference, LedgerMetadata, as_text, differences, in_short, tables_of
from dpnb._core.tables import PrivateTables
from dpnb._plan.join import schema_of
from dpnb._request import request_from
from dpnb.accounting.budget import budget_from_json
from dpnb.accounting.exact import decimal_down, from_text, to_text
from dpnb.accounting.guarantee import PrivacyGuarantee, make_guarantee
from dpnb.accounting.odometers import MixtureOdometer
from dpnb.errors import LedgerError, PlanError
from dpnb.ledger import Ledger, refuse_unreadable
from dpnb.ledger.declared import ADDED, OF_VERSION, Declared, added_to, extends, of_version, shape_of
from dpnb.ledger.queries import LedgerQueries, stored_ledger
from dpnb.schema import Schema

Tables = dict[str, Schema]

ABOUT_ROWS = (*OF_VERSION, "session_name")
"""The metadata that the parts of a divided budget do not depend on."""

KEPT = ("public_size", "sampled")
"""Parameters that a ledger keeps if a session that may change it does not declare them."""

ODOMETER_DELTA = Fraction(1, 10**6)
"""Probability that the statement of an odometer is wrong, for a budget without a delta."""


# --- what a later session may declare ---------------------------------------------------------------------------------


def expected_tables(path: str, wanted: Mapping[str, str], version: str) -> PrivateTables:
    """The tables that a ledger will declare once a session with these metadata is open; before their rows are read."""
    with stored_ledger(path) as ledger, refuse_unreadable("the metadata"):  # which are not verified yet
        metadata = wanted if ledger is None else declared_next(ledger, Declared(wanted, {}), version).metadata
    return LedgerMetadata.from_dict(metadata, path).tables


def refuse_changed(ledger: Ledger, expected: PrivateTables) -> None:
    """Refuse to go on if another session has changed the tables of a ledger while this one read their rows."""
    now = LedgerMetadata.from_dict(ledger.valid.metadata, ledger.path).tables
    if (now.schemas, now.units, now.added) != (expected.schemas, expected.units, expected.added):
        ledger.close()
        raise LedgerError(
            f"ledger {ledger.path!r}: must not be changed while its tables are read; another session has used or "
            "changed what it declares; nothing was charged; create the session again"
        )


def _schemas(metadata: Mapping[str, str]) -> Tables:
    return tables_of(metadata["schema"], metadata["privacy_unit"]).schemas


def declared_next(ledger: LedgerQueries, wanted: Declared, version: str) -> Declared:
    """What a ledger declares from now on if a session declares `wanted` for a version of the table.

    Raises `LedgerError` if that is impossible.  Until the first request anything may change; only how the budget is
    determined stays once it is divided.  A request that was charged fixes what was declared then, the columns and
    limits for its own version of the table only.  Columns can be added; added columns that no request has seen, since
    they came after the last one, can be changed or dropped by a session that changes the schema.  A session may lack
    added columns, and cannot use them; but not under individual accounting, where what each unit has paid is computed
    from all requests.
    """
    known, fixed = ledger.declared, ledger.declared_at_last_request()
    is_same = known.metadata == wanted.metadata or not any(differences(known.metadata, wanted.metadata, with_new=True))
    if fixed is None:
        return known if is_same else _replaced(ledger, known, wanted)
    own = ledger.declared_at_last_request(version)
    if is_same and (own is None or extends(known, own)):
        return known
    base = fixed if own is None else own
    found = list(differences(base.metadata, wanted.metadata))
    _refuse(ledger, [one for one in found if not one.may_change])
    problem = _changed(found, version) if found else _extension_problem(ledger, base, wanted)
    if problem is None:
        return _extended(known, base, wanted)
    if own is not None:
        raise LedgerError(f"ledger {ledger.path!r}: {problem}")
    others = {name: text for name, text in fixed.metadata.items() if name not in OF_VERSION}
    return Declared({**others, **of_version(wanted.metadata)}, fixed.parameters)


def _extended(known: Declared, base: Declared, wanted: Declared) -> Declared:
    """A declaration with the columns that a session adds to it, where `known` is declared now."""
    after = _schemas(wanted.metadata)
    if extends(known, base) and not any(differences(known.metadata, wanted.metadata)):
        unseen = added_to(known.metadata)[len(added_to(base.metadata)) :]
        if all(name in after[table] for table, name in unseen):
            base = known  # so that sessions that have these columns can go on
    before, new = _schemas(base.metadata), _new_columns(base, wanted)
    extended = {table: {**before[table], **columns} for table, columns in after.items()}
    metadata = {**base.metadata, "schema": as_text(extended)}
    if new:
        metadata[ADDED] = as_text({"": (*added_to(base.metadata), *new)})
    return Declared(metadata, base.parameters)


def _new_columns(base: Declared, wanted: Declared) -> list[tuple[str, str]]:
    before, after = _schemas(base.metadata), _schemas(wanted.metadata)
    return [(table, name) for table, columns in after.items() for name in sorted(columns.keys() - before[table].keys())]


def _extension_problem(ledger: LedgerQueries, base: Declared, wanted: Declared) -> str | None:
    """Why the new columns cannot be added to a declaration that some answers are about; None if they can."""
    before, after = _schemas(base.metadata), _schemas(wanted.metadata)
    new = _new_columns(base, wanted)
    common = (_common_name(table, name, before, after) for table, name in new)
    problem = next(filter(None, common), None)
    if problem is None and new:
        extended = {table: {**before[table], **columns} for table, columns in after.items()}
        problem = _changed_join(ledger, base, before, extended)
    return problem


def _replaced(ledger: LedgerQueries, known: Declared, wanted: Declared) -> Declared:
    """Another declaration before the first request."""
    found = differences(known.metadata, wanted.metadata) if ledger.is_divided else ()
    _refuse(ledger, [one for one in found if one.name not in ABOUT_ROWS])
    kept = {name: known.parameters[name] for name in KEPT if name in known.parameters}
    return Declared(wanted.metadata, {**kept, **wanted.parameters})


def _refuse(ledger: LedgerQueries, found: list[Difference]) -> None:
    """Refuse other metadata than those that stay for ever."""
    if found:
        name = found[0].name
        words = in_short([one.words for one in found if one.name == name])
        raise LedgerError(
            f"ledger {ledger.path!r}: was created for another {name}; {words}; once something was charged, this stays: "
            "declare it as the ledger has it, put the right file back if it is the ledger of another table, or give "
            "this session another ledger= (its budget is then spent in addition)"
        )


def _changed(found: list[Difference], version: str) -> str:
    """That a used version declares something else, and the ways on."""
    words = in_short([one.words for one in found])
    return (
        f"version {version!r} of its table was used with another declaration; {words}; give a new version=, which "
        f"reuses no old answers, or declare it as the ledger has it{_copy_of(found[0])}"
    )


def _copy_of(found: Difference) -> str:
    """The way to another declaration of a column under the same version: a copy of it, since columns can be added."""
    table, column = found.table or "table", found.column
    if not column or len(column) > MAX_VALUE:
        return ""
    return f", or add a copy of the column, {table}[{f'{column}_new'!r}] = {table}[{column!r}]"


def _common_name(table: str, name: str, before: Tables, after: Tables) -> str | None:
    """Why a column with a name that another table has cannot be added: in their joins others would have other names."""
    others = [of for of in after if of != table and name in {*before[of], *after[of]}]
    if not others:
        return None
    return (
        f"column {name!r} cannot be added to table {table!r}, since table {others[0]!r} has a column of that name, so "
        "that columns of their joins would be renamed; add it under another name, or with a new version="
    )


def _changed_join(ledger: LedgerQueries, base: Declared, before: Tables, after: Tables) -> str | None:
    """Why columns cannot be added with which a join that was queried would not be as it was.

    Its columns have names of their own.  Its answers could not be read any more, and under individual accounting not
    what each unit has paid for them.  Requests about other declarations are read with those.
    """
    shape = shape_of(base.metadata)
    for row, texts in ledger.requests_of_joins.items():
        if shape_of(ledger.declaration(row).metadata) == shape:
            for text in texts:
                problem = _changed_join_of(text, before, after)
                if problem is not None:
                    return (
                        f"these columns cannot be added, since a join that was queried could not be made any more; "
                        f"{problem}; add them under other names, or with a new version="
                    )
    return None


def _changed_join_of(text: str, before: Tables, after: Tables) -> str | None:
    with refuse_unreadable("a request"):
        request = request_from(text)
    source = getattr(getattr(request, "plan", getattr(request, "mechanism", None)), "source", "")
    try:
        known, columns = schema_of(source, before), schema_of(source, after)
    except PlanError as error:
        return str(error)
    return None if columns.items() >= known.items() else "its columns would be others"


# --- computed parameters ----------------------------------------------------------------------------------------------


def computed_parameters(
    guarantee: PrivacyGuarantee,
    public_size: int | None,
    delta: Fraction | None = None,
    sampled: Fraction = Fraction(0),
) -> dict[str, str]:
    """The parameters of a new ledger, or of a part of a budget whose delta is given.

    A part has a budget in GDP, without a delta of its own: its odometer has the delta that was declared for the whole.
    """
    slack = guarantee.budget.discovery_delta
    declared = guarantee.budget.delta or (ODOMETER_DELTA + slack if delta is None else delta)
    delta = declared - slack
    odometer = MixtureOdometer.tuned(guarantee.horizon, delta, slack_delta=slack)
    return {
        **guarantee.to_json(),
        "odometer_gamma": odometer.gamma.hex(),
        "odometer_delta": to_text(odometer.delta),
        **({} if public_size is None else {"public_size": str(public_size)}),
        **({"sampled": to_text(sampled)} if sampled else {}),
    }


def sampled_text(fraction: Fraction) -> str:
    """A declared fraction as the curator writes it."""
    return {Fraction(0): "'population'", Fraction(1): "'census'"}.get(fraction) or repr(decimal_down(fraction))


def sampled_of(parameters: Mapping[str, str]) -> Fraction:
    """The declared fraction of the population that the units are: 0 of a large one, 1 in a census."""
    with refuse_unreadable("the parameters"):
        fraction = from_text(parameters.get("sampled", "0"))
        if not 0 <= fraction <= 1:
            raise ValueError(fraction)
    return fraction


def with_sampled(ledger: LedgerQueries, wanted: Declared, sampled: Fraction | None, version: str) -> Declared:
    """What a ledger declares from now on; before its first request also with another declaration of `sampled`.

    Afterwards another one is refused, before anything is written; None is none.
    """
    metadata, parameters = declared_next(ledger, wanted, version)
    if sampled is None or sampled == (known := sampled_of(parameters)):
        return Declared(metadata, parameters)
    if ledger.declared_at_last_request() is not None:
        raise LedgerError(
            f"sampled: the ledger was created with sampled={sampled_text(known)}, as its disclosure statement says; "
            f"got {sampled_text(sampled)}; leave it out, or use another ledger"
        )
    others = {name: text for name, text in parameters.items() if name != "sampled"}
    return Declared(metadata, {**others, **({"sampled": to_text(sampled)} if sampled else {})})


def stored_parameters(
    parameters: Mapping[str, str], guarantee: PrivacyGuarantee
) -> tuple[PrivacyGuarantee, MixtureOdometer, int | None]:
    """The guarantee with the stored parameters, the odometer in its initial state, and the public number of units."""
    with refuse_unreadable("the parameters"):
        restored = guarantee.with_parameters(parameters)
        gamma = Fraction(float.fromhex(parameters["odometer_gamma"]))
        slack = guarantee.budget.discovery_delta
        odometer = MixtureOdometer(gamma, from_text(parameters["odometer_delta"]), slack_delta=slack)
        size = int(parameters["public_size"]) if "public_size" in parameters else None
    return restored, odometer, size


def parameters_of(ledger: Ledger) -> tuple[PrivacyGuarantee, MixtureOdometer, int | None]:
    """The guarantee of the session that a ledger was created for, and the rest as for `stored_parameters`."""
    metadata = ledger.metadata
    with refuse_unreadable("the metadata"):
        budget = budget_from_json(json.loads(metadata["budget"]))
        guarantee = make_guarantee(metadata["filter"], budget, individual="on_exhausted" in metadata)
    return stored_parameters(ledger.parameters, guarantee)
