"""How a table's budget is divided among its analysts: read from the settings, and written into the ledger."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.cap import left_of
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
from dpnb.accounting.exact import exact
from dpnb.accounting.losses import PureGDP
from dpnb.errors import DpnbError, InvalidValueError
from dpnb.ledger.origin import MAX_ACTOR, RequestOrigin, requested_by
from dpnb.service.configuration.reading import SettingError, choice, fault, keys_of, matching, read_struct
from dpnb.session.toml_file import KeyPath, TomlFile
from dpnb.wire.messages import Level

T = TypeVar("T")
NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._@-]{{,{MAX_ACTOR - 1}}}", re.ASCII)
"""The name of a person or a project."""

EXAMPLE = "for example { share = 0.25 } or { mu = 0.1, discovery_delta = 1e-8, pure_epsilon = 0.05 }"


def _component(value: Any, folder: Path) -> Fraction:
    try:
        number = exact(value)
    except DpnbError:
        number = Fraction(-1)
    if number >= 0:
        return number
    raise SettingError("must be a number of at least 0", EXAMPLE)


@dataclass(frozen=True)
class AmountSettings:
    """A part of a budget: a share of each component of what the part is taken from, or the components."""

    share: Annotated[Fraction | None, _component] = None
    mu: Annotated[Fraction | None, _component] = None
    discovery_delta: Annotated[Fraction | None, _component] = None
    pure_epsilon: Annotated[Fraction | None, _component] = None

    @property
    def problem(self) -> str:
        """Which rule it breaks; empty for none."""
        parts = (self.mu, self.discovery_delta, self.pure_epsilon)
        if (self.share is None) == (parts == (None,) * 3):
            return "must be a share, or components without a share"
        return "" if self.share is None or 0 < self.share <= 1 else "must have a share above 0 and at most 1"

    def of(self, outer: PureGDP) -> PureGDP:
        """The amount, taken from another one."""
        if self.share is not None:
            return share_of(outer, self.share)
        return PureGDP(self.pure_epsilon or 0, self.mu or 0, self.discovery_delta or 0)


@dataclass(frozen=True)
class PartSettings:
    """The part of one project or analyst."""

    level: Level
    name: str
    project: Annotated[str | None, matching(NAME, "the name of a project", "flu")] = None  # of an analyst
    ceiling: Annotated[AmountSettings | None, AmountSettings] = None  # in reserved mode
    cap: Annotated[AmountSettings | None, AmountSettings] = None
    place: str = field(default="", compare=False)  # file and line in the settings, for errors


@dataclass(frozen=True)
class DivisionSettings:
    """How a budget is divided; without parts, in pooled mode, every analyst may use the whole budget."""

    mode: Annotated[Mode, choice(*get_args(Mode))] = "pooled"
    parts: tuple[PartSettings, ...] = ()  # projects, and then analysts

    @property
    def analysts(self) -> tuple[str, ...]:
        """The names of the analysts."""
        return tuple(one.name for one in self.parts if one.level == "analyst")


DIVISION_KEYS = keys_of(DivisionSettings) | {"projects": False, "analysts": False}


def read_division(file: TomlFile, entry: Mapping[str, Any], at: KeyPath) -> DivisionSettings:
    """Read the keys ``mode``, ``projects`` and ``analysts`` of a table of the settings."""
    own = {key: value for key, value in entry.items() if key in DIVISION_KEYS}
    division = read_struct(file, DivisionSettings, own, at, others=DIVISION_KEYS)
    levels: tuple[Level, ...] = ("project", "analyst")
    for level in levels:
        above = (*at, f"{level}s")
        entries = own.get(f"{level}s", {})
        if not isinstance(entries, dict):
            remedy = f"write a line [{'.'.join(above)}.<name>] for each"
            raise fault(file, above, entries, f"must be a table for each {level}", remedy)
        parts = [_read_part(file, one, level, (*above, name), division) for name, one in entries.items()]
        division = replace(division, parts=(*division.parts, *parts))
    if (division.parts or division.mode == "reserved") and not division.analysts:
        key = ".".join((*at, "analysts"))
        rule = "must be given where a budget is reserved or has projects"
        message = f"{key}: {rule}; got none; add for example [{key}.ana]"
        raise file.fault(InvalidValueError, (*at, "mode" if "mode" in own else "projects"), message)
    return division


def _read_part(file: TomlFile, entry: Any, level: Level, at: KeyPath, known: DivisionSettings) -> PartSettings:
    """Read a part; the projects of an analyst are those that are known."""
    name, is_reserved = at[-1], known.mode == "reserved"
    if not NAME.fullmatch(name):
        rule = f"must have a name of at most {MAX_ACTOR} letters, digits, '.', '_', '@' and '-'"
        raise fault(file, at, name, rule, "rename it; it begins with a letter or digit")
    given: dict[str, Any] = {"project": None} if level == "project" else {}  # a project is in no other
    part = read_struct(file, PartSettings, entry, at, level=level, name=name, **given)
    projects = [one.name for one in known.parts]
    if part.project is not None and part.project not in projects:
        rule = f"must be one of the table's projects, {', '.join(map(repr, projects)) or 'of which there are none'}"
        raise fault(file, (*at, "project"), part.project, rule, "correct it, or add the project")
    if is_reserved and part.ceiling is None:
        raise fault(file, at, None, "must have a ceiling in reserved mode", f"add ceiling, {EXAMPLE}", got="none")
    if not is_reserved and part.ceiling is not None:
        raise fault(file, (*at, "ceiling"), entry["ceiling"], "is only for mode = 'reserved'", "give cap")
    if is_reserved and level == "project" and part.cap is not None:
        rule = "is not for a project in reserved mode, since an analyst's limit would depend on what others are charged"
        raise fault(file, (*at, "cap"), entry["cap"], rule, "give the analysts caps")
    for key, amount in (("ceiling", part.ceiling), ("cap", part.cap)):
        if amount is not None and amount.problem:
            raise fault(file, (*at, key), entry[key], amount.problem, EXAMPLE)
    return part


def apply_division(account: Accountant, division: DivisionSettings, version: str) -> None:
    """Write a division into the ledger, as far as it differs from what it was when it was last written.

    An analyst or project that the settings no longer have is revoked, and restored when they have it again.  What the
    settings say as before is left as a curator may have changed it: a cap, an approval, a revocation, who has a part.
    """
    if division.mode == "reserved":
        _refuse_excess(account, division)
    with requested_by(RequestOrigin(SETTINGS_ACTOR)):
        projects: dict[str | None, Grant] = {}
        kept = set[int]()
        for part in division.parts:
            made = _located(part, lambda part=part: _granted(account, division.mode, part, projects, version))  # type: ignore[misc]
            kept.add(made.id)
            if part.level == "project":
                projects[part.name] = made
        for known in account.tree.grants().values():
            if known.id not in kept:
                leave_settings(account, known, version=version)


def _refuse_excess(account: Accountant, division: DivisionSettings) -> None:
    """Refuse ceilings that add up to too much before one of them is written, since it is fixed then.

    What else is wrong with a part is found when it is written.
    """
    outer: dict[str | None, PureGDP] = {}
    left: dict[str | None, PureGDP] = {}
    for part in division.parts:
        if not outer:
            outer[None], left[None] = _located(part, lambda: (whole_of(account), unreserved(account)))
        made, project = account.tree.named_by_settings(part.level, part.name), part.project
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
        raise InvalidValueError(f"{part.place}: {error}") from None
