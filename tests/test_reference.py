"""The reference has every public name, and every public method an example; links to the repository lead to files."""

from __future__ import annotations

import importlib
import inspect
import re
import runpy
import sys
from collections.abc import Callable
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dpnb
from dpnb._target import Target
from dpnb.errors import DpnbError
from dpnb.frame.compatibility.options import NO_DEFAULT

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"
LINK = re.compile(r"https://github\.com/dpnb/dpnb/(?:blob|tree)/main/([^)#\s]+)")
LISTED = re.compile(r"^(?: {3}|\.\. auto\w+:: )(dpnb\.[\w.]+)$", re.MULTILINE)
PUBLIC = (
    "dpnb",
    "dpnb.interactive",
    "dpnb.accounting",
    "dpnb.accounting.conversions",
    "dpnb.accounting.individual",
)

reference = SimpleNamespace(**runpy.run_path(str(ROOT / "docs" / "_reference.py")))
NAMES = sorted({name for page in REFERENCE.glob("*.md") for name in LISTED.findall(page.read_text(encoding="utf-8"))})
CLASSES = [name for name in NAMES if inspect.isclass(reference.locate(name))]


def test_the_reference_has_every_public_name() -> None:
    listed = {id(reference.locate(name)) for name in NAMES}
    public = [(package, name) for package in PUBLIC for name in importlib.import_module(package).__all__]
    errors = importlib.import_module("dpnb.errors")
    public += [("dpnb.errors", name) for name, value in vars(errors).items() if inspect.isclass(value)]
    missing = []
    for package, name in public:
        value = getattr(importlib.import_module(package), name)
        if (inspect.isclass(value) or inspect.isroutine(value)) and id(value) not in listed:
            missing.append(f"{package}.{name}")
    assert missing == []


def public_members(cls: type) -> dict[str, Any]:
    """The methods and properties of a class that dpnb defines, found by another way than the reference's."""
    found = {}
    for name in dir(cls):
        member = inspect.getattr_static(cls, name)
        member = getattr(member, "__func__", member)
        function = getattr(member, "fget", getattr(member, "func", member))
        is_ours = str(getattr(function, "__module__", "")).startswith("dpnb")
        if not name.startswith("_") and is_ours and isinstance(member, property | cached_property | type(lambda: 0)):
            found[name] = member
    return found


def classes_of_dpnb() -> dict[str, type]:
    """The imported classes of dpnb; no two have the same name."""
    modules = [vars(module) for name, module in list(sys.modules.items()) if name.partition(".")[0] == "dpnb"]
    found = [value for names in modules for value in names.values() if inspect.isclass(value)]
    return {value.__name__: value for value in found if value.__module__.startswith("dpnb.")}


def private_modules(described: Any, known: dict[str, type]) -> set[str]:
    """The classes and functions in private modules among a name and what is known of what it or its methods return."""
    members = [described, *(public_members(described).values() if inspect.isclass(described) else ())]
    functions = [getattr(member, "fget", getattr(member, "func", member)) for member in members]
    annotations = [str(getattr(function, "__annotations__", {}).get("return", "")) for function in functions]
    returned = [known[word] for text in annotations for word in re.findall(r"\w+", text) if word in known]
    return {
        f"{value.__module__}.{value.__name__}"
        for value in (described, *returned)
        if any(part.startswith("_") for part in getattr(value, "__module__", "dpnb").split("."))
    }


def test_public_names_and_what_their_methods_return_are_in_public_modules() -> None:
    public = {f"dpnb.{name}": getattr(dpnb, name) for name in dpnb.__all__}
    assert dpnb.Query.__module__ == "dpnb.query.query"
    described = {**public, **{name: reference.locate(name) for name in NAMES}}
    known = classes_of_dpnb()
    assert {name: found for name, value in described.items() if (found := private_modules(value, known))} == {}


def test_a_private_class_that_a_method_returns_is_found() -> None:
    class Finder:
        """Its method returns a class of a private module."""

        def target(self) -> Target | None:
            """A target."""

    Finder.__module__ = Finder.target.__module__ = "dpnb.finder"
    assert private_modules(Finder, classes_of_dpnb()) == {"dpnb._target.Target"}


def test_the_page_of_a_class_has_every_public_member() -> None:
    found = {}
    for name in CLASSES:
        cls = reference.locate(name)
        listed = {each for _, names in reference.sections(name) for each in names}
        members = public_members(cls).keys()
        found[name] = (members - listed) ^ (members & set(reference.NOT_OFFERED.get(cls, ())))
    assert {name: members for name, members in found.items() if members} == {}


GROUPED: dict[str, Callable[[Any], Any]] = {
    "dpnb.GroupBy": lambda df: df.groupby("plan"),
    "dpnb.frame.columns.series.GroupedSeries": lambda df: df.groupby("plan")["age"],
}
ARGUMENTS: dict[str, Callable[[Any], Any]] = {
    "func": lambda df: np.mean,
    "other": lambda df: df["cost"],
    "map func": lambda df: {1: 2},
    "denominator": lambda df: df["cost"],
    "cond": lambda df: df["cost"] > 1,
    "to_replace": lambda df: {1: 2},
    "by": lambda df: df["plan"],
    "bins": lambda df: 4,
    "dtype": lambda df: int,
    "value": lambda df: 0,
    "values": lambda df: [1],
    "left": lambda df: 1,
    "right": lambda df: 2,
}
"""Values of the arguments that a method needs, by the names of its parameters, or by method and parameter."""
ACCEPTED = {"copy", "dt", "dtype", "name", "plot", "reset_index", "sort_index", "sort_values", "str"}
"""What a grouped column accepts although its page leaves it out: it has no effect, or its methods are refused."""


@cache
def frame_of_examples() -> Any:
    """The frame that the examples use; nothing here charges its session."""
    return runpy.run_path(str(REFERENCE / "names.py"))["df"]


def call_on_groups(name: str, member: str) -> Any:
    df = frame_of_examples()
    value = getattr(GROUPED[name](df), member)
    if not inspect.ismethod(value):
        return value
    parameters = inspect.signature(value).parameters
    chosen = {one: ARGUMENTS.get(f"{member} {one}", ARGUMENTS.get(one)) for one in parameters}
    return value(**{one: make(df) for one, make in chosen.items() if make is not None})


GROUPED_MEMBERS = [(name, member) for name in GROUPED for member in sorted(public_members(reference.locate(name)))]


@pytest.mark.parametrize(("name", "member"), GROUPED_MEMBERS)
def test_the_page_of_groups_shows_exactly_what_works_on_groups(name: str, member: str) -> None:
    if any(member in names for _, names in reference.sections(name)):
        assert call_on_groups(name, member) is not None
    elif name == "dpnb.GroupBy" or member not in ACCEPTED:
        with pytest.raises(DpnbError):
            call_on_groups(name, member)


def sections_of(lines: list[str]) -> list[str]:
    return [title for title, line in pairwise(lines) if re.fullmatch("-{3,}", line)]


@pytest.mark.parametrize("name", [name for name in CLASSES if reference.MADE_BY_DPNB.fullmatch(name)])
def test_the_page_of_a_class_that_nobody_constructs_has_no_parameters(name: str) -> None:
    cls = reference.locate(name)
    lines = (inspect.getdoc(cls) or "").splitlines()
    text = reference.class_text(cls, lines)
    assert "Parameters" not in sections_of(text)
    assert text[0] == lines[0]
    assert ("Examples" in sections_of(text)) == ("Examples" in sections_of(lines))


def test_the_attributes_of_an_answer_are_those_that_it_has() -> None:
    text = "\n".join(reference.class_text(dpnb.Answer, (inspect.getdoc(dpnb.Answer) or "").splitlines()))
    answer = runpy.run_path(str(REFERENCE / "names.py"))["df"].count().release(mu=0.1)
    names = re.findall(r"^(\w+) : ", text, re.MULTILINE)
    assert {"description", "confidence", "cost", "total_loss"} <= set(names)
    assert [name for name in names if not hasattr(answer, name)] == []
    assert {"plan", "view", "origin"}.isdisjoint(names)


def test_an_example_is_of_the_class_and_the_name_that_the_page_describes() -> None:
    def shown(name: str, member: str) -> str:
        cls = reference.locate(name)
        return "\n".join(reference.member_text(cls, member, (inspect.getdoc(getattr(cls, member)) or "").splitlines()))

    assert ".divide(" in shown("dpnb.Series", "divide")
    assert ".div(" not in shown("dpnb.Series", "divide")
    assert "GDPFilter" in shown("dpnb.accounting.GDPFilter", "step")
    assert ">>>" not in shown("dpnb.accounting.RDPFilter", "step")
    assert ">>>" not in shown("dpnb.interactive.sub_session.Partition", "close")


def test_tables_are_made_of_what_the_code_reads() -> None:
    assert "`--unit ID`" in reference.command_options(reference.commands()["statement"])
    assert '`"max_repetitions"`' in reference.settings()
    assert "Export the Log of Releases as CSV" in reference.lab_commands()
    assert "New Private Analysis" in reference.lab_commands()
    assert "| `tables[].columns[].declared` | declaration of a column |" in reference.report_fields()
    assert "|  |" not in reference.report_fields()  # each field has a meaning
    assert set(reference.commands()) == {
        *(
            "draft",
            "check",
            "statement",
            "report",
            "verify",
            "redact",
            "audit",
            "backup",
            "refresh",
            "serve",
            "token",
            "history",
            "freeze",
            "unfreeze",
        ),
        *("requests", "approve", "decline", "grant", "revoke", "restore", "people", "end", "resume"),
    }


def test_the_page_of_the_service_has_every_key_and_limit() -> None:
    from dpnb.service.configuration.parts import PartSettings
    from dpnb.service.configuration.ports import Certificate, PortAddress
    from dpnb.service.configuration.reading import keys_of
    from dpnb.service.configuration.settings import SERVICE_KEYS, TABLE_KEYS, HubSettings, Limits
    from dpnb.wire import limits

    structs = (Certificate, PortAddress, HubSettings, Limits, PartSettings)
    keys = (*SERVICE_KEYS, *TABLE_KEYS, *keys_of(*structs))
    text = (REFERENCE / "service.md").read_text(encoding="utf-8")
    assert [key for key in keys if f"`{key}`" not in text] == []
    for limit in (limits.MAX_BODY, limits.MAX_DEPTH, limits.MAX_VALUES, limits.MAX_LIST, limits.MAX_TEXT):
        assert f"| {limit:,} |" in text


def test_links_to_the_repository_lead_to_files() -> None:
    broken = []
    for page in [ROOT / "README.md", ROOT / "SECURITY.md", *(ROOT / "docs").rglob("*.md")]:
        for path in LINK.findall(page.read_text(encoding="utf-8")):
            if not (ROOT / path).exists():
                broken.append(f"{page.relative_to(ROOT)}: {path}")
    assert broken == []
    assert len(LINK.findall((ROOT / "docs" / "security.md").read_text(encoding="utf-8"))) > 40


NEEDS_NO_EXAMPLE = {"begin", "compare", "end", "refuse_ended"}
"""Steps that other methods take: an example would show nothing that an analyst writes."""

ON_A_PAGE = {"dpnb.remote.RemoteSession": {"close"}}
"""Methods that need a service, which a docstring does not start; `docs/how-to/connect.md` shows them."""


SHOWN = [
    name
    for name in CLASSES
    if not name.startswith("dpnb.accounting.") and not getattr(reference.locate(name), "_is_protocol", False)
]
"""Classes each of whose methods has an example."""


def methods_without_example(name: str) -> set[str]:
    methods = {each: member for each, member in public_members(reference.locate(name)).items() if callable(member)}
    return {each for each, method in methods.items() if ">>>" not in (inspect.getdoc(method) or "")}


@pytest.mark.parametrize("name", SHOWN)
def test_every_method_has_an_example(name: str) -> None:
    """Pytest runs the examples: see `--doctest-modules` in pyproject.toml."""
    assert methods_without_example(name) - NEEDS_NO_EXAMPLE == ON_A_PAGE.get(name, set())


def test_methods_that_need_no_example_have_none() -> None:
    without = [name for cls in SHOWN for name in methods_without_example(cls)]
    assert set(without) >= NEEDS_NO_EXAMPLE


WITHOUT_EXAMPLE = {
    *(
        "AccessDenied",
        "ChargesStopped",
        "CheckError",
        "ConfirmationRequired",
        "CostIncreased",
        "ExecutionError",
        "ExecutionStopped",
        "LedgerReplaced",
        "RemoteSession",
    ),
    *("ServiceError", "StatementError", "StorageExceeded", "StorageFull", "TablesSchema"),
}
"""What only a service, a second table, a terminal, the mouse or a failing engine brings about."""


@pytest.mark.parametrize("name", sorted(WITHOUT_EXAMPLE))
def test_a_class_that_is_exempted_has_no_example(name: str) -> None:
    (found,) = {reference.locate(each) for each in NAMES if each.split(".")[-1] == name}
    assert ">>>" not in (inspect.getdoc(found) or "")


def test_every_class_and_function_has_an_example() -> None:
    names = [name for name in NAMES if name.split(".")[-1] not in WITHOUT_EXAMPLE]
    assert [name for name in names if ">>>" not in (inspect.getdoc(reference.locate(name)) or "")] == []


def documented(described: Any) -> dict[str, str]:
    """The parameters of a docstring, each with its type."""
    found = reference.NumpyDocString(inspect.getdoc(described) or "")["Parameters"]
    return {name.strip(): parameter.type for parameter in found for name in parameter.name.split(",")}


def parameters(described: Any) -> dict[str, inspect.Parameter]:
    """The parameters of a function or class as they are written in a docstring."""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    given = inspect.signature(described).parameters.items()
    return {stars.get(one.kind, "") + name: one for name, one in given if name not in ("self", "cls")}


def unstated_defaults(described: Any) -> list[str]:
    """The documented parameters whose default is not None and not stated."""
    types = documented(described)
    return [
        name
        for name, one in parameters(described).items()
        if one.default not in (one.empty, None, NO_DEFAULT)
        and name in types
        and not re.search("optional|default", types[name])
    ]


CALLED = [name for name in NAMES if not reference.MADE_BY_DPNB.fullmatch(name)]
METHODS = sorted(
    {
        (name, each)
        for name in CLASSES
        for title, names in reference.sections(name)
        if title != "Attributes"
        for each in names
    }
)


def test_every_argument_of_a_method_is_documented() -> None:
    found = {}
    for name, method in METHODS:
        described = getattr(reference.locate(name), method)
        differences = documented(described).keys() ^ parameters(described).keys()
        found[f"{name}.{method}"] = [*differences, *unstated_defaults(described)]
    assert {name: arguments for name, arguments in found.items() if arguments} == {}


def test_a_constructor_or_function_states_its_defaults() -> None:
    found = {name: unstated_defaults(reference.locate(name)) for name in CALLED if not name.startswith("dpnb.errors.")}
    assert {name: arguments for name, arguments in found.items() if arguments} == {}


def test_a_default_that_is_not_stated_is_found() -> None:
    def scaled(x: float, by: float = 2, to: float = 1) -> float:
        """A number.

        Parameters
        ----------
        x : float
        by : float
        to : float, default 1
        """
        return x * by + to

    assert unstated_defaults(scaled) == ["by"]
    assert documented(scaled).keys() == {"x", "by", "to"}
