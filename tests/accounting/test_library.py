"""What `dpnb.accounting` exports is a documented library."""

from __future__ import annotations

import doctest
import importlib
import inspect
from typing import Any

import pytest

PACKAGES = (
    *("dpnb.accounting", "dpnb.accounting.conversions", "dpnb.accounting.filters", "dpnb.accounting.individual"),
    *("dpnb.accounting.losses", "dpnb.accounting.odometers"),
)


def exported() -> dict[str, Any]:
    """Classes and functions, under one name each; an alias of a type has no docstring of its own."""
    found = {}
    for package in map(importlib.import_module, PACKAGES):
        for name in package.__all__:
            member = getattr(package, name)
            if inspect.isclass(member) or inspect.isfunction(member):
                found[f"{member.__module__}.{name}"] = member
    return found


EXPORTED = exported()


@pytest.mark.parametrize("name", EXPORTED)
def test_a_docstring_of_the_library_has_an_example(name: str) -> None:
    text = EXPORTED[name].__doc__ or ""
    examples = doctest.DocTestParser().get_examples(text)
    assert any(example.want for example in examples), f"{name}: add Examples with an output"
    assert text.count("Examples\n    --------") == 1


@pytest.mark.parametrize("name", EXPORTED)
def test_a_docstring_of_the_library_names_every_parameter(name: str) -> None:
    """Those of a class are in its docstring; a protocol and a base class that nobody makes have none."""
    member = EXPORTED[name]
    if inspect.isclass(member) and (getattr(member, "_is_protocol", False) or "__init__" not in vars(member)):
        return
    text = inspect.getdoc(member) or ""
    assert inspect.isclass(member) or "Returns\n-------\n" in text, f"{name}: describe what it returns"
    _, _, described = text.partition("Parameters\n----------\n")
    for parameter in inspect.signature(member).parameters:
        assert f"{parameter}" in described.partition("\n\n")[0], f"{name}: describe {parameter}"


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_of_the_library_exports_what_it_says(package: str) -> None:
    module = importlib.import_module(package)
    assert module.__doc__
    assert all(hasattr(module, name) for name in module.__all__)
