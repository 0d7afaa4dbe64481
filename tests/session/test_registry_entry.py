"""The entry for the registry of deployments: YAML with the registry's fields, and no text of an analyst."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
import yaml

import dpnb
from dpnb.accounting.exact import exact
from session.statements import KINDS, Divided, opened, used

FIELDS: dict[str, set[str]] = {
    "basic": {
        *("name", "data_curators", "intended_use", "data_product_type", "data_product_region", "description"),
        *("publication_date", "data_product_sector"),
    },
    "dp_variant": {"variant_name", "data_domain", "unprotected_quantities"},
    "privacy_loss": {"privacy_unit", "privacy_unit_details", "privacy_parameters", "privacy_parameters_details"},
    "deployment_model": {
        *("model_name", "model_name_details", "actors", "release_type", "release_type_details", "data_source_type"),
        *("data_source_type_details", "access_type", "access_type_details"),
    },
    "accounting": {"post_processing", "composition"},
    "implementation": {"preprocessing_and_hyperparameter_tuning", "mechanisms", "justification"},
    "administrative": {"sources", "notes", "registry_authors"},
}
"""The parts of a deployment in the registry's schema, and their fields."""

REQUIRED = FIELDS["basic"] - {"data_product_sector"}
CHOICES = {
    ("basic", "data_product_type"): {"Summary statistics", "Interactive API"},
    ("dp_variant", "variant_name"): {"Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"},
    ("deployment_model", "model_name"): {"Local", "Central", "Shuffle", "Federated", "Varies"},
    ("deployment_model", "release_type"): {"One release", "Many releases"},
    ("deployment_model", "data_source_type"): {"Static", "Dynamic"},
    ("deployment_model", "access_type"): {"Interactive", "Non-interactive"},
}
LISTS = {("basic", "data_curators"), ("administrative", "registry_authors")}


def entry_of(session: Any) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(session.report().registry_entry)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_an_entry_has_the_fields_of_the_registry(kind: str) -> None:
    session = used(opened(**KINDS[kind]))
    entry = entry_of(session)
    assert entry.keys() == {"url_slug", "status", "tier", "deployment"}
    assert (entry["status"], entry["tier"]) == ("Draft", 3)
    deployment = entry["deployment"]
    assert deployment.keys() == FIELDS.keys()
    for part, content in deployment.items():
        assert content.keys() <= FIELDS[part]
        for name, value in content.items():
            if (part, name) in LISTS:
                assert value
                assert all(isinstance(one, str) for one in value)
            elif name == "privacy_parameters":
                assert value.keys() <= {"epsilon", "delta", "rho"}
                assert all(type(number) is float for number in value.values()), value
            else:
                assert type(value) is str, (name, value)
    assert deployment["basic"].keys() >= REQUIRED
    date.fromisoformat(deployment["basic"]["publication_date"])
    for (part, name), choices in CHOICES.items():
        assert deployment[part][name] in choices


VARIANTS = {"gdp": "Approximate DP", "pure": "Pure DP", "mu": "Custom", "none": "Custom", "zcdp": "Approximate DP"}


@pytest.mark.parametrize(("kind", "variant"), VARIANTS.items())
def test_an_entry_states_the_guarantee(kind: str, variant: str) -> None:
    report = used(opened(**KINDS[kind])).report()
    deployment = yaml.safe_load(report.registry_entry)["deployment"]
    assert deployment["dp_variant"]["variant_name"] == variant
    parameters = deployment["privacy_loss"].get("privacy_parameters", {})
    guarantee = report.guarantee.implied or report.guarantee
    assert parameters.get("epsilon") == guarantee.epsilon
    assert exact(parameters.get("delta", 0.0)) == exact(guarantee.delta or 0.0)


def test_no_text_that_an_analyst_wrote_is_in_an_entry() -> None:
    session = opened(budget=dpnb.Budget.gdp(1))
    session.above_threshold(50, epsilon=0.02, name="analysts-name")
    session.frame.groupby("g").size().release(mu=0.1)
    entry = session.report().registry_entry
    assert "above-threshold" in entry
    assert "analysts-name" not in entry
    assert "count of rows" not in entry


def test_names_that_a_curator_chose_are_no_markdown() -> None:
    session = dpnb.Session.rehearse(
        name="clinic",
        privacy_unit="<b>[x](y)`$z$",
        max_rows_per_unit=1,
        budget=dpnb.Budget.gdp(1),
        schema={"age": dpnb.Bounded(0, 9)},
    )
    unit = entry_of(session)["deployment"]["privacy_loss"]["privacy_unit"]
    assert unit.startswith(r"one \<b\>\[x\](y)\`\$z\$ ")


def test_a_divided_budget_is_an_interactive_deployment(tmp_path: Any) -> None:
    entry = entry_of(Divided(tmp_path / "clinic.dpnb", "reserved").session)
    model = entry["deployment"]["deployment_model"]
    assert "nothing but that analyst's own requests" in model["access_type_details"]
    assert entry["deployment"]["basic"]["data_product_type"] == "Interactive API"
