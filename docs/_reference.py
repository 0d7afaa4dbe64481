"""The parts of the reference that are derived from the code when the site is built.

Class pages list their members (`sections`, which the template ``class.rst`` uses).  The options of the commands, the
keys of a declaration and the settings of JupyterLab are written as Markdown into ``reference/generated``, for the pages
that include them.
"""

from __future__ import annotations

import argparse
import html
import importlib
import inspect
import json
import logging
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpydoc.docscrape import NumpyDocString, Parameter

import dpnb
from dpnb.__main__ import _parser
from dpnb.accounting.filters import FILTERS, SumFilter, UnboundedFilter
from dpnb.accounting.individual import WorstCaseFilter
from dpnb.frame.columns.column_expr import ColumnExpr
from dpnb.frame.columns.column_methods import ColumnMethods, NamedOperators
from dpnb.frame.columns.series import GroupedSeries
from dpnb.results.disclosure.report import report_schema
from dpnb.session.declaration import COLUMN_TYPES
from dpnb.session.toml_file import NOT_STATED, VALUES_FILE

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(dpnb.__file__).parent.parent
ATTRIBUTES, QUERIES, EXPRESSIONS, METHODS = "Attributes", "Queries", "Expressions and views", "Methods"
MANY = 5
"""With at least as many methods that return a query, the methods of a class are grouped by what they return."""

QUERY_TYPES = re.compile(r"\bQuery\b")
EXPRESSION_TYPES = re.compile(r"\b(Self|Series|Frame|GroupBy|GroupedSeries|C|F)\b")


# --- the members of a class ------------------------------------------------------------------------------------------


def locate(name: str) -> Any:
    """The object with a dotted name."""
    module, _, rest = name.rpartition(".")
    try:
        return getattr(importlib.import_module(module), rest)
    except ModuleNotFoundError:
        return getattr(locate(module), rest)


ASKED_BY_SESSIONS = (
    "after_repeated", "counted_filters", "from_budget", "guarantee", "interleaving_obstacle", "label",
    "largest_launch", "loss_of_release", "mu_squared_left", "partition_obstacle", "recorded_charge", "recorded_loss",
    "shared_delta", "spent_words", "sums_up_for_every_budget", "theorem",
)  # fmt: skip
"""What a session asks of a filter, which describes itself by these."""

NOT_OFFERED: dict[type, tuple[str, ...]] = {
    GroupedSeries: (
        *("dot", "find_bounds", "groupby", "hist", "histogram", "plot"),
        # Row-wise functions and what has no effect: a grouped column can only be aggregated.
        *(name for base in (ColumnExpr, ColumnMethods, NamedOperators) for name in vars(base) if name != "apply"),
    ),
    dpnb.GroupBy: ("corr", "cov"),
    **dict.fromkeys((SumFilter, UnboundedFilter, WorstCaseFilter, *FILTERS.values()), ASKED_BY_SESSIONS),
}
"""Members that a class inherits, or defines, and refuses; of filters those that only the page of `Filter` has."""


def members(cls: type) -> dict[str, Any]:
    """The public members of a class that are defined in dpnb, have a docstring and are not refused.

    Fields without one are described among the parameters of the class.
    """
    found = {}
    for base in reversed(cls.__mro__):
        if not base.__module__.startswith("dpnb"):
            continue
        for name, value in vars(base).items():
            if name.startswith("_"):
                continue
            member = _function(value)
            is_described = isinstance(member, property | cached_property) or inspect.isroutine(member)
            if is_described and (getattr(member, "__doc__", None) or name in found):  # or that of a base class
                found[name] = member
            else:
                found.pop(name, None)
    return {name: member for name, member in found.items() if name not in NOT_OFFERED.get(cls, ())}


def _function(value: Any) -> Any:
    return value.__func__ if isinstance(value, classmethod | staticmethod) else value


def sections(name: str) -> list[tuple[str, list[str]]]:
    """The members of a class for its page: attributes and methods; if many, by what the methods return."""
    cls = locate(name)
    found = members(cls)
    grouped: dict[str, list[str]] = {ATTRIBUTES: [], QUERIES: [], EXPRESSIONS: [], METHODS: []}
    has_groups = sum(bool(QUERY_TYPES.search(_returned(member))) for member in found.values()) >= MANY
    for each, member in sorted(found.items()):
        returned = _returned(member)
        if isinstance(member, property | cached_property):
            grouped[ATTRIBUTES].append(each)
        elif has_groups and QUERY_TYPES.search(returned):
            grouped[QUERIES].append(each)
        elif has_groups and EXPRESSION_TYPES.search(returned):
            grouped[EXPRESSIONS].append(each)
        else:
            grouped[METHODS].append(each)
    return [(title, names) for title, names in grouped.items() if names]


def summary(name: str) -> str:
    """The first sentence of a class."""
    return summary_of(locate(name))


def summary_of(described: Any) -> str:
    """The first line of a docstring."""
    return (inspect.getdoc(described) or "").partition("\n")[0]


def _returned(member: Any) -> str:
    return str(getattr(member, "__annotations__", {}).get("return", ""))


# --- docstrings ------------------------------------------------------------------------------------------------------

MADE_BY_DPNB = re.compile(
    r"dpnb\.(Answer|Batch|Frame|GroupBy|LargestGroups|MarginsQuery|Preview|Query|Series|(frame|remote|results|session\.base)\..+"
    r"|interactive\.(descent|noise_reduction|partition|threshold\.scan)\..+)"
)
"""Classes whose objects are returned by methods; nobody calls their constructors."""
INTERNAL = frozenset(
    ["anytime_arrays", "arrays", "core", "frame", "launch", "measurement_ids", "mechanism", "origin", "plan", "runner",
     "source", "view"]
)  # fmt: skip
"""Parameters of these classes that are of no use to an analyst."""


def _attributes(cls: type) -> list[Parameter]:
    """The parameters, also those of base classes, that are readable attributes of an object."""
    fields = getattr(cls, "__dataclass_fields__", {})
    kept: dict[str, Parameter] = {}
    for base in reversed(cls.__mro__):
        if not base.__module__.startswith("dpnb"):
            continue
        described = NumpyDocString(inspect.cleandoc(vars(base).get("__doc__") or ""))
        for parameter in described["Parameters"]:
            names = parameter.name.split(", ")
            readable = (name in fields or inspect.ismemberdescriptor(getattr(cls, name, None)) for name in names)
            if INTERNAL.isdisjoint(names) and all(readable):
                kept[parameter.name] = parameter
        kept |= {attribute.name: attribute for attribute in described["Attributes"]}
    return list(kept.values())


def class_text(cls: type, lines: Iterable[str]) -> list[str]:
    """The docstring of a class whose constructor nobody calls, with attributes in place of parameters."""
    described = NumpyDocString("\n".join(lines))
    described["Parameters"], described["Attributes"] = [], _attributes(cls)
    return str(described).strip().splitlines()


def member_text(cls: type, name: str, lines: Iterable[str]) -> list[str]:
    """The docstring of a member for the page of a class: without an example that shows another class or member.

    An example of a function with two names, such as `div` and `divide`, shows the one that the page describes.
    """
    described = NumpyDocString("\n".join(lines))
    example = "\n".join(described["Examples"])
    defined = next((base for base in cls.__mro__ if name in vars(base)), cls)
    function = _function(vars(defined).get(name))
    own_name = getattr(getattr(function, "fget", function), "__name__", name)
    example = re.sub(rf"\.{own_name}\b", f".{name}", example)
    is_shared = defined is not cls and cls.__module__.startswith(("dpnb.accounting.", "dpnb.interactive."))
    is_of_another = f".{name}" not in example or (is_shared and cls.__name__ not in example)
    described["Examples"] = [] if is_of_another else example.splitlines()
    return str(described).strip().splitlines()


# --- tables ----------------------------------------------------------------------------------------------------------


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    header = [*header]
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def _prose(lines: Iterable[str]) -> str:
    """Text of a docstring as Markdown."""
    return " ".join(line.strip() for line in lines).strip().replace("``", "`")


def _parameters(described: Any) -> Iterator[tuple[str, str]]:
    """The parameters of a docstring: name and description."""
    for parameter in NumpyDocString(inspect.getdoc(described) or "")["Parameters"]:
        for name in parameter.name.split(","):
            yield name.strip(), _prose(parameter.desc)


def _defaults(make: Any) -> dict[str, str]:
    return {
        name: "required" if one.default is one.empty else "" if one.default is None else f"`{json.dumps(one.default)}`"
        for name, one in inspect.signature(make).parameters.items()
    }


def _keys(make: Any, left_out: Iterable[str] = ()) -> str:
    defaults, described = _defaults(make), dict(_parameters(make))
    return _table(
        ("Key", "Default", "Meaning"),
        [
            (f"`{name}`", default, described.get(name, summary_of(make)))
            for name, default in defaults.items()
            if name not in left_out
        ],
    )


def declaration_keys() -> str:
    """The keys of a declaration: the arguments of a session, of a budget and of each type of column."""
    first = next(iter(inspect.signature(dpnb.Session).parameters))
    parts = ["## Top level\n", _keys(dpnb.Session, (first, NOT_STATED))]
    parts += ["## `[budget]`\n", _keys(dpnb.Budget)]
    parts += [
        "Instead of `epsilon` and `delta`, the budget can be stated as the `mu` of Gaussian differential privacy. "
        'The text `"none"` instead of the section declares that there is no budget.\n'
    ]
    parts += [_keys(dpnb.Budget.gdp)]
    parts += ["## `[statement]`\n", _keys(dpnb.StatementText)]
    for tag, kind in COLUMN_TYPES.items():
        parts += [f'## `[schema.<column>]` with `type = "{tag}"`\n', _prose([summary_of(kind)]) + "\n", _keys(kind)]
        if kind is dpnb.Categories:
            parts += [
                f"Instead of `values`, `{VALUES_FILE}` names a file with one category on each line, relative to the "
                "declaration's folder.\n"
            ]
    return "\n".join(parts)


def commands() -> dict[str, argparse.ArgumentParser]:
    """The parser of each command."""
    subparsers = next(each for each in _parser()._actions if isinstance(each, argparse._SubParsersAction))
    return dict(subparsers.choices)


def command_options(parser: argparse.ArgumentParser) -> str:
    """Usage, description and arguments of a command, also those of its parts, such as ``token new``."""
    parts = [
        part
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
        for part in action.choices.values()
    ] or [parser]
    rows: dict[tuple[str, str], None] = {}
    for action in (action for part in parts for action in part._actions):
        if not isinstance(action, argparse._HelpAction):
            shown = ", ".join(action.option_strings) or str(action.metavar)
            value = f" {action.metavar or '{' + ','.join(map(str, action.choices or ())) + '}'}"
            meaning = html.escape(action.help or "", quote=False) + _required(action)
            rows[f"`{shown}{value if action.option_strings and action.nargs != 0 else ''}`", meaning] = None
    usage, description = "\n".join(map(_usage, parts)), (parser.description or "").strip()
    return f"```text\n{usage}\n```\n\n{description}\n\n{_table(('Argument', 'Meaning'), rows)}"


def _usage(parser: argparse.ArgumentParser) -> str:
    parser.color = False  # Python 3.14 colours the usage on a terminal
    return textwrap.dedent(parser.format_usage().replace("usage: ", " " * len("usage: "), 1)).rstrip()


def _required(action: argparse.Action) -> str:
    return "; required" if action.option_strings and action.required else ""


def settings() -> str:
    """The settings of the JupyterLab extension, from the schemas that JupyterLab reads."""
    parts = []
    for path in sorted((ROOT / "labextension" / "schema").glob("*.json")):
        schema = json.loads(path.read_text(encoding="utf-8"))
        for name, one in schema["properties"].items():
            values = [(f"`{json.dumps(each['const'])}`", each["title"]) for each in one.get("oneOf", ())]
            parts += [f"### {one['title']}", one["description"]]
            parts += [
                f"`{name}` of the plugin `dpnb:{path.stem}`; {one['type']}; by default `{json.dumps(one['default'])}`."
            ]
            if values:
                parts.append(_table(("Value", "Meaning"), values))
    return "\n\n".join(parts)


def report_fields() -> str:
    """The fields of a disclosure statement, from its JSON schema."""
    schema = json.loads(report_schema())
    return _table(("Field", "Type", "Meaning"), _fields(schema, schema, ""))


def _fields(schema: dict[str, Any], node: dict[str, Any], path: str) -> Iterator[tuple[str, str, str]]:
    inner = schema["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node
    if "properties" in inner:
        for name, one in inner["properties"].items():
            below = f"{path}.{name}" if path else name
            alternatives = [each for each in one.get("anyOf", [one]) if each.get("type") != "null"]
            nullable = " or null" if len(alternatives) < len(one.get("anyOf", [one])) else ""
            of = alternatives[0] if len(alternatives) == 1 else {}
            referred = schema["$defs"].get(of.get("$ref", "").rpartition("/")[2], {})
            meaning = one.get("description") or of.get("description") or referred.get("description", "")
            kind = "declaration of a column" if name == "declared" else _kind(of, referred)
            yield f"`{below}`", html.escape(kind + nullable, quote=False), html.escape(meaning, quote=False)
            if of.get("type") == "array":
                yield from _fields(schema, of.get("items", {}), f"{below}[]")
            elif referred:
                yield from _fields(schema, of, below)


def _kind(of: dict[str, Any], referred: dict[str, Any]) -> str:
    if referred:
        return "object"
    values = of.get("enum", [of["const"]] if "const" in of else [])
    return " or ".join(f"`{json.dumps(each)}`" for each in values) or str(of.get("type", "any"))


COMMAND = re.compile(r"label: [^\n]*?trans\.__\(\s*'([^']+)'\s*\)[^\n]*?,\s*caption: trans\.__\(\s*'([^']+)'")
"""Label and caption of a command; of two labels the first, which the command palette shows."""


def lab_commands() -> str:
    """The commands of the JupyterLab extension: label and caption, from its source."""
    found = {}
    for path in sorted((ROOT / "labextension" / "src").rglob("*.ts")):
        if "__tests__" not in path.parts:
            found |= dict(COMMAND.findall(path.read_text(encoding="utf-8")))
    return _table(("Command", "What it does"), sorted(found.items()))


# --- Sphinx ----------------------------------------------------------------------------------------------------------


def write_parts(app: Sphinx) -> None:
    """Write the generated parts of pages."""
    folder = Path(app.srcdir) / "reference" / "generated"
    folder.mkdir(parents=True, exist_ok=True)
    parts = {"declaration": declaration_keys(), "settings": settings(), "lab-commands": lab_commands()}
    parts["report-fields"] = report_fields()
    parts |= {f"command-{name}": command_options(parser) for name, parser in commands().items()}
    for name, text in parts.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")


def process_docstring(_: Sphinx, what: str, name: str, described: Any, __: Any, lines: list[str]) -> None:
    """Adapt the docstring of a class, or of a member to the class whose page it is on."""
    if what == "class" and MADE_BY_DPNB.fullmatch(name):
        lines[:] = class_text(described, lines)
    elif what in ("method", "property", "attribute"):
        owner, _, member = name.rpartition(".")
        lines[:] = member_text(locate(owner), member, lines)


def process_signature(_: Sphinx, what: str, name: str, *__: Any) -> tuple[str, None] | None:
    """Leave out the arguments of a constructor that nobody calls."""
    return ("", None) if what == "class" and MADE_BY_DPNB.fullmatch(name) else None


class StatesWhenNeeded(dict[str, Any]):
    """The states of a machine of docutils, which would make a dozen for each nested text and uses one or two."""

    def __init__(self, machine: Any, classes: Iterable[type]) -> None:
        super().__init__()
        self.machine, self.classes = machine, {cls.__name__: cls for cls in classes}

    def __missing__(self, name: str) -> Any:
        """Make it, ready if the machine is running."""
        state = self[name] = self.classes[name](self.machine, self.machine.debug)
        if getattr(self.machine, "memo", None) is not None:
            state.runtime_init()
        return state


def keep_what_is_computed_often() -> None:
    """Do what a build does for each docstring, word or nested text only once, or only if it is needed.

    A third of the time of a build without cells.
    """
    from docutils.statemachine import StateMachine
    from jinja2.sandbox import SandboxedEnvironment
    from numpydoc import docscrape_sphinx, numpydoc
    from sphinx.pycode.parser import Parser
    from sphinx.search.en import SearchEnglish

    environments: dict[type, SandboxedEnvironment] = {}
    docscrape_sphinx.SandboxedEnvironment = lambda loader: environments.setdefault(
        type(loader), SandboxedEnvironment(loader=loader)
    )
    SearchEnglish.stem = cache(SearchEnglish.stem)
    StateMachine.add_states = lambda self, classes: setattr(self, "states", StatesWhenNeeded(self, classes))
    Parser.parse_definition = lambda _: None  # in which lines a definition is, by its tokens; no page asks
    numpydoc.mangle_docstrings = each_docstring_once(numpydoc.mangle_docstrings)
    logging.disable(logging.DEBUG)  # fifty thousand records, which nobody reads


def each_docstring_once(handler: Callable[..., None]) -> Callable[..., None]:
    """A handler of docstrings, which are asked for twice: for a table of members, and for the pages of these."""
    done: dict[tuple[str, ...], list[str]] = {}

    def process(app: Sphinx, what: str, name: str, described: Any, options: Any, lines: list[str]) -> None:
        given = (what, name, *lines)
        if given not in done:
            handler(app, what, name, described, options, lines)
            done[given] = [*lines]
        lines[:] = done[given]

    return process


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the parts before pages are read, adapt docstrings, and give the templates of classes their members."""
    keep_what_is_computed_often()
    app.connect("builder-inited", write_parts, priority=100)
    # Before numpydoc's handlers (500), which read the sections.
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", each_docstring_once(process_docstring), priority=100)
    app.connect("autodoc-process-signature", process_signature, priority=100)
    # Around autosummary's own handler (500): Sphinx cannot keep functions in a configuration between two builds.
    names = {"sections": sections, "summary": summary}
    app.connect("builder-inited", lambda app: app.config.autosummary_context.update(names), priority=100)
    app.connect("builder-inited", lambda app: app.config.autosummary_context.clear(), priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
