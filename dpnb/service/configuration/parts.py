"""How a table's budget is divided among its analysts: read from the settings, and written into the ledger."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, TypeVar, get_args

from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.grant import SETTINGS_ACTOR, Grant, Mode
from dpnb._core.accountant.granting import (
    follow_settings,
    grant,
    leave_settings,
    refuse_excess,
    share_of,
    unreserved,
    whole_of,
)
from dpnb._core.accountant.limit import left_of
from dpnb.accounting.exact import exact
from dpnb.accounting.losses import PureGDP
from dpnb.errors import DpnbError, InvalidValueError
from dpnb.ledger.origin import RequestOrigin, requested_by
from dpnb.service.access.tokens import MAX_NAME, NAME
from dpnb.session.toml_file import KeyPath, TomlFile
from dpnb.wire.acts import Level

T = TypeVar("T")

COMPONENTS = ("mu", "discovery_delta", "pure_epsilon")
PART_KEYS = {"project": dict.fromkeys(("ceiling", "cap"), False)}
PART_KEYS["analyst"] = {"project": False, **PART_KEYS["project"]}


@dataclass(frozen=True)
class AmountSettings:
    """A part of a budget, as the settings state it."""

    share: Fraction | None = None  # of each component of what the part is taken from
    amount: PureGDP | None = None  # instead, the components

    def of(self, outer: PureGDP) -> PureGDP:
        """The amount, taken from another one."""
        if self.amount is not None:
            return self.amount
        return share_of(outer, self.share or Fraction(0))


@dataclass(frozen=True)
class PartSettings:
    """The part of one project or analyst."""

    level: Level
    name: str
    project: str | None = None  # of an analyst
    ceiling: AmountSettings | None = None  # in reserved mode
    cap: AmountSettings | None = None
    place: str = field(default="", compare=False)  # file and line in the settings, for errors


@dataclass(frozen=True)
class DivisionSettings:
    """How a budget is divided; without parts, in pooled mode, every analyst may use the whole budget."""

    mode: Mode = "pooled"
    parts: tuple[PartSettings, ...] = ()  # projects, and then analysts

    @property
    def analysts(self) -> tuple[str, ...]:
        """The names of the analysts."""
        return tuple(one.name for one in self.parts if one.level == "analyst")


def read_division(file: TomlFile, entry: dict[str, Any], at: KeyPath) -> DivisionSettings:
    """Read the keys ``mode``, ``projects`` and ``analysts`` of a table of the settings."""
    return _DivisionReader(file, at).division(entry)


class _DivisionReader:
    def __init__(self, file: TomlFile, at: KeyPath) -> None:
        self._file, self._at = file, at

    def division(self, entry: dict[str, Any]) -> DivisionSettings:
        mode = entry.get("mode", "pooled")
        if mode not in get_args(Mode):
            raise self._fault(("mode",), f"mode: must be 'reserved' or 'pooled'; got {mode!r}")
        projects = self._parts(entry, "projects", "project", mode, ())
        analysts = self._parts(entry, "analysts", "analyst", mode, tuple(one.name for one in projects))
        if (projects or mode == "reserved") and not analysts:
            raise self._fault(
                ("mode",) if "mode" in entry else ("projects",),
                "analysts: must be given where a budget is reserved or has projects; got none; add for example "
                f"[{'.'.join(self._at)}.analysts.ana]",
            )
        return DivisionSettings(mode, (*projects, *analysts))

    def _parts(
        self, entry: dict[str, Any], key: str, level: Level, mode: Mode, projects: tuple[str, ...]
    ) -> tuple[PartSettings, ...]:
        entries = entry.get(key, {})
        if not isinstance(entries, dict) or not all(isinstance(one, dict) for one in entries.values()):
            raise self._fault((key,), f"{key}: must be a table for each {level}; got {entries!r}")
        return tuple(self._part(level, name, one, (key, name), mode, projects) for name, one in entries.items())

    def _part(
        self, level: Level, name: str, entry: dict[str, Any], at: KeyPath, mode: Mode, projects: tuple[str, ...]
    ) -> PartSettings:
        if not NAME.fullmatch(name) or len(name) > MAX_NAME:
            raise self._fault(at, f"{level}: must have a name of letters, digits, '.', '_', '@' and '-'; got {name!r}")
        self._file.refuse_keys(entry, PART_KEYS[level], (*self._at, *at))
        project = entry.get("project")
        if project is not None and project not in projects:
            known = ", ".join(map(repr, projects)) or "there are none"
            raise self._fault(
                (*at, "project"), f"project: must be one of the table's projects; got {project!r}; {known}"
            )
        if (mode == "reserved") != ("ceiling" in entry):
            needs = (
                "must be given in reserved mode" if mode == "reserved" else "is only for mode = 'reserved'; give cap"
            )
            raise self._fault(at, f"ceiling: {needs}; for example {{ share = 0.25 }}")
        if mode == "reserved" and level == "project" and "cap" in entry:
            raise self._fault(
                (*at, "cap"),
                "cap: a project has none in reserved mode, since what one analyst could be charged would depend on "
                "what the others were charged; give the analysts caps",
            )
        ceiling, cap = (self._amount(entry[key], (*at, key)) if key in entry else None for key in ("ceiling", "cap"))
        return PartSettings(level, name, project, ceiling, cap, self._file.locate(*self._at, *at))

    def _amount(self, entry: Any, at: KeyPath) -> AmountSettings:
        example = "{ share = 0.25 } or { mu = 0.1, discovery_delta = 1e-8, pure_epsilon = 0.05 }"
        if not isinstance(entry, dict) or not entry or not (entry.keys() == {"share"} or "share" not in entry):
            raise self._fault(at, f"{at[-1]}: must be a share or amounts; got {entry!r}; for example {example}")
        self._file.refuse_keys(entry, dict.fromkeys(("share", *COMPONENTS), False), (*self._at, *at))
        try:
            numbers = {key: exact(value, name=key) for key, value in entry.items()}
            if not all(number >= 0 for number in numbers.values()) or not 0 < numbers.get("share", 1) <= 1:
                raise InvalidValueError(f"{at[-1]}: must have amounts of at least 0, and a share of at most 1")
            amount = PureGDP(*(numbers.get(key, Fraction(0)) for key in ("pure_epsilon", "mu", "discovery_delta")))
        except DpnbError as error:
            message = str(error)
        else:
            return AmountSettings(numbers["share"]) if "share" in numbers else AmountSettings(amount=amount)
        raise self._fault(at, f"{message}; for example {example}")

    def _fault(self, at: KeyPath, message: str) -> DpnbError:
        return self._file.fault(InvalidValueError, (*self._at, *at), message)


def apply_division(account: Accountant, division: DivisionSettings, version: str) -> dict[str, Grant]:
    """Write a division into the ledger, as far as it differs from what it was when it was last written.

    An analyst or project that the settings no longer have is revoked, and restored when they have it again.  What the
    settings say as before is left as a curator may have changed it: a cap, an approval, a revocation.  Returns the
    analysts' parts by name.
    """
    if division.mode == "reserved":
        _refuse_excess(account, division)
    with requested_by(RequestOrigin(SETTINGS_ACTOR)):
        projects: dict[str | None, Grant] = {}
        analysts: dict[str, Grant] = {}
        for part in division.parts:
            made = _located(part, lambda part=part: _granted(account, division.mode, part, projects, version))  # type: ignore[misc]
            if part.level == "project":
                projects[part.name] = made
            else:
                analysts[part.name] = made
        kept = {one.id for one in (*projects.values(), *analysts.values())}
        for known in account.tree.grants().values():
            if known.id not in kept:
                leave_settings(account, known, version=version)
    return analysts


def _refuse_excess(account: Accountant, division: DivisionSettings) -> None:
    """Refuse ceilings that add up to too much before one of them is written, since it is fixed then.

    What else is wrong with a part is found when it is written.
    """
    known = {(one.level, one.name): one for one in account.tree.grants().values()}
    outer: dict[str | None, PureGDP] = {}
    left: dict[str | None, PureGDP] = {}
    for part in division.parts:
        if not outer:
            outer[None], left[None] = _located(part, lambda: (whole_of(account), unreserved(account)))
        made, project = known.get((part.level, part.name)), part.project
        ceiling = (part.ceiling or AmountSettings()).of(outer[project])
        if made is None:
            _located(part, partial(refuse_excess, part.level, part.name, ceiling, outer[project], left[project]))
            left[project] = left_of(left[project], ceiling)
        if part.level == "project":
            outer[part.name] = ceiling if made is None else made.ceiling or ceiling
            left[part.name] = ceiling if made is None else unreserved(account, made)


def _granted(
    account: Accountant, mode: Mode, part: PartSettings, projects: dict[str | None, Grant], version: str
) -> Grant:
    project = projects.get(part.project)
    outer = None if project is None else project.ceiling or account.tree.from_settings(project).cap
    outer = outer or whole_of(account)
    ceiling = None if part.ceiling is None else part.ceiling.of(outer)
    cap = None if part.cap is None else part.cap.of(outer if ceiling is None else ceiling)
    made = grant(
        account, part.level, part.name, mode, cap if ceiling is None else ceiling, version=version, project=project
    )
    follow_settings(account, made, cap, version=version)
    return made


def _located(part: PartSettings, work: Callable[[], T]) -> T:
    try:
        return work()
    except InvalidValueError as error:
        message = str(error)
    raise InvalidValueError(f"{part.place}: {message}")
