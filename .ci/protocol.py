"""Writes the TypeScript types and guards of the protocol between kernel and browser: `python .ci/protocol.py`.

Each module of `dpnb/_browser/` becomes one file in `labextension/src/protocol/`, in the format of prettier.
`tests/notebook/test_protocol.py` fails where these are out of date.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import textwrap
from pathlib import Path
from types import ModuleType
from typing import get_args

import msgspec
from msgspec import inspect as shapes

FOLDER = Path(__file__).parents[1] / "labextension" / "src" / "protocol"
MODULES = ("glossary", "snapshot", "messages", "curation")
WIDTH = 120
FIELD = re.compile(r"^((?:    # .*\n)*)    (\w+): [^#\n]+(?:# (.*))?$", re.MULTILINE)
"""A field with the comment above it or after it, which the interface has too."""


def sources() -> dict[Path, str]:
    """Text of every generated file."""
    modules = {name: importlib.import_module(f"dpnb._browser.{name}") for name in MODULES}
    return {FOLDER / f"{name}.ts": _source(module) for name, module in modules.items()}


def _source(module: ModuleType) -> str:
    """One module in TypeScript: constants, interfaces, guards and unions."""
    structs = [one for one in vars(module).values() if isinstance(one, type) and issubclass(one, msgspec.Struct)]
    structs = [one for one in structs if one.__module__ == module.__name__]
    unions = {
        name: [_name(one) for one in get_args(value)]
        for name, value in vars(module).items()
        if get_args(value) and all(isinstance(one, type) and issubclass(one, msgspec.Struct) for one in get_args(value))
    }
    constants = [
        f"export const {name} = {_table(value) if isinstance(value, dict) else _literal(value)};"
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, str | int | dict) and name in module.__annotations__
    ]
    blocks = [*constants, *(_interface(one) for one in structs)]
    # A message from the browser has a `method`: the browser sends it and never checks one.
    blocks += [_guard(one) for one in structs if not one.__struct_config__.tag]
    blocks += [_union(name, members) for name, members in unions.items()]
    body = "\n\n".join(blocks)
    note = (
        f"// Generated from dpnb/_browser/{module.__name__.rpartition('.')[2]}.py by .ci/protocol.py: edit that file."
    )
    return "\n\n".join([note, *_imports(body, structs, module), body]) + "\n"


def _imports(body: str, own: list[type[msgspec.Struct]], module: ModuleType) -> list[str]:
    """What a file uses of the others."""
    used = sorted(set(re.findall(r"\b(?:is[A-Z]\w*|listOf|mapOf|oneOf|orNull)\b", body)))
    guards = [name for name in used if name[2:] in BASIC or not name.startswith("is")]
    lines = [f"import {{ {', '.join(guards)} }} from './guards';"] if guards else []
    foreign = [name for name in used if name not in guards and name[2:] not in {one.__name__ for one in own}]
    for name in foreign:
        source = vars(module)[name[2:]].__module__.rpartition(".")[2]
        lines.append(f"import {{ type I{name[2:]}, {name} }} from './{source}';")
    return ["\n".join(lines)] if lines else []


def _name(struct: type) -> str:
    return f"I{struct.__name__}"


def _interface(struct: type[msgspec.Struct]) -> str:
    summary = (inspect.getdoc(struct) or "").split("\n\n")[0]
    fields = FIELD.findall(inspect.getsource(struct))
    notes = {name: after or " ".join(re.sub("^ +# ", "", above, flags=re.M).split()) for above, name, after in fields}
    lines = [_comment(summary, ""), f"export interface {_name(struct)} {{"]
    config = struct.__struct_config__
    if config.tag:
        lines.append(f"  {config.tag_field}: {_literal(config.tag)};")
    for field in _fields(struct):
        if notes.get(field.name):
            lines.append(_comment(notes[field.name], "  "))
        lines.append(f"  {field.name}: {_type(field.type)};")
    return "\n".join([*lines, "}"])


def _guard(struct: type[msgspec.Struct]) -> str:
    """The guard, broken into lines as prettier does."""
    head = f"export const is{struct.__name__} = (value: unknown): value is {_name(struct)} =>"
    checks = ["isFields(value)", *(f"{_check(field.type)}(value.{field.name})" for field in _fields(struct))]
    line = " && ".join(checks) + ";"
    for space in (" ", "\n  "):
        if len(f"{head}{space}{line}".splitlines()[-1]) <= WIDTH:
            return f"{head}{space}{line}"
    return f"{head}\n" + " &&\n".join(f"  {one}" for one in checks) + ";"


def _union(name: str, members: list[str]) -> str:
    """A union: on one line, on a line of its own, or with a line for each member, as prettier does."""
    head, on_one_line = f"export type {name} =", f"{' | '.join(members)};"
    if len(f"{head} {on_one_line}") <= WIDTH:
        return f"{head} {on_one_line}"
    if len(f"  {on_one_line}") <= WIDTH:
        return f"{head}\n  {on_one_line}"
    return "\n".join([head, *(f"  | {member}" for member in members)]) + ";"


def _fields(struct: type[msgspec.Struct]) -> tuple[shapes.Field, ...]:
    found = shapes.type_info(struct)
    if not isinstance(found, shapes.StructType):
        raise TypeError(struct.__name__)
    return found.fields


BASIC = {"Fields", "Text", "Boolean", "Number", "Count", "Proportion"}
"""Guards that are written by hand, in `guards.ts`."""


def _type(kind: shapes.Type) -> str:
    """A type in TypeScript."""
    match kind:
        case shapes.StrType():
            return "string"
        case shapes.BoolType():
            return "boolean"
        case shapes.IntType() | shapes.FloatType():
            return "number"
        case shapes.AnyType():
            return "unknown"
        case shapes.LiteralType():
            return " | ".join(map(_literal, _values(kind)))
        case shapes.StructType():
            return _name(kind.cls)
        case shapes.ListType() | shapes.VarTupleType():
            item = _type(kind.item_type)
            return f"({item})[]" if " " in item else f"{item}[]"
        case shapes.DictType():
            return f"Record<string, {_type(kind.value_type)}>"
        case shapes.UnionType():
            return " | ".join([_type(_one_or_none(kind)), "null"])
    raise TypeError(f"no TypeScript for {kind}")


def _check(kind: shapes.Type) -> str:
    """The guard of a type in TypeScript."""
    match kind:
        case shapes.StrType():
            return "isText"
        case shapes.BoolType():
            return "isBoolean"
        case shapes.IntType(ge=0):
            return "isCount"
        case shapes.FloatType(ge=0, le=1):
            return "isProportion"
        case shapes.FloatType():
            return "isNumber"
        case shapes.LiteralType():
            return f"oneOf({', '.join(map(_literal, _values(kind)))})"
        case shapes.StructType():
            return f"is{kind.cls.__name__}"
        case shapes.ListType() | shapes.VarTupleType():
            return f"listOf({_check(kind.item_type)})"
        case shapes.DictType():
            return f"mapOf({_check(kind.value_type)})"
        case shapes.UnionType():
            return f"orNull({_check(_one_or_none(kind))})"
    raise TypeError(f"no guard for {kind}")


def _values(kind: shapes.LiteralType) -> list[str | int]:
    return sorted(kind.values, key=lambda value: (isinstance(value, str), value), reverse=True)


def _one_or_none(kind: shapes.UnionType) -> shapes.Type:
    """The type of a field that may be None instead."""
    first, *others = [one for one in kind.types if not isinstance(one, shapes.NoneType)]
    if others or len(kind.types) != 2:
        raise TypeError(f"no TypeScript for {kind}: a field has one type, or that type or None")
    return first


def _table(texts: dict[str, str]) -> str:
    """Texts by name, as an object; a line that would be too long is broken after the name, unless that is short."""
    lines = []
    for name, text in texts.items():
        head = f"  {name if name.isidentifier() else _literal(name)}:"
        line = f"{head} {_literal(text)},"
        lines.append(line if len(line) <= WIDTH or len(name) <= 3 else f"{head}\n    {_literal(text)},")
    return "\n".join(["{", *lines]).removesuffix(",") + "\n} as const"


def _literal(value: str | int) -> str:
    return "'" + json.dumps(value)[1:-1] + "'" if isinstance(value, str) else json.dumps(value)


def _comment(text: str, indent: str) -> str:
    """A comment in TypeScript's words."""
    text = re.sub(r"\bNone\b", "null", " ".join(text.split()).replace("``", "`"))
    if len(indent) + len(text) + 7 <= WIDTH:
        return f"{indent}/** {text} */"
    lines = textwrap.wrap(text, WIDTH - len(indent) - 3)
    return "\n".join([f"{indent}/**", *(f"{indent} * {line}" for line in lines), f"{indent} */"])


if __name__ == "__main__":
    for path, text in sources().items():
        path.write_text(text, encoding="utf-8")
