"""What `pip install dpnb` brings, read from the build recipe and from this environment's own installation.

`ui/test_wheel.py` builds the wheel, installs it into an empty environment and uses it there.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import tomllib
from pathlib import Path

import pytest

import release

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def recipe() -> dict[str, dict[str, object]]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_wheel_puts_the_bundle_where_jupyterlab_looks(recipe: dict) -> None:
    shared = recipe["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    package = json.loads((ROOT / "labextension" / "package.json").read_text(encoding="utf-8"))
    assert shared == {"dpnb/labextension": f"share/jupyter/labextensions/{package['name']}"}
    assert (ROOT / "labextension" / package["jupyterlab"]["outputDir"]).resolve() == ROOT / "dpnb" / "labextension"


def test_build_fails_without_the_bundle_and_the_widget(recipe: dict) -> None:
    # A target that the build does not insist on is a target that a wheel may lack without anyone noticing.
    ensured = recipe["tool"]["hatch"]["build"]["hooks"]["jupyter-builder"]["ensured-targets"]
    assert {"dpnb/labextension/package.json", "dpnb/labextension/static/style.js"} <= set(ensured)
    assert {"dpnb/notebook/static/gauges.js", "dpnb/service/static/cockpit.js"} <= set(ensured)


def test_labextension_path_that_python_declares_is_the_one_that_is_shipped() -> None:
    import dpnb

    assert dpnb._jupyter_labextension_paths() == [{"src": "labextension", "dest": "dpnb"}]


def test_install_json_tells_jupyterlab_who_manages_the_extension() -> None:
    install = json.loads((ROOT / "labextension" / "install.json").read_text(encoding="utf-8"))
    assert install["packageManager"] == "python"
    assert install["packageName"] == "dpnb"


def test_installed_package_names_its_licence_and_needs_no_notebook() -> None:
    metadata = importlib.metadata.metadata("dpnb")
    assert metadata["License-Expression"] == "BSD-3-Clause"
    plain = {line for line in metadata.get_all("Requires-Dist") or [] if "extra ==" not in line}
    assert plain
    front_end = ("jupyter", "ipywidgets", "anywidget", "plotly", "statsmodels", "ipython")
    assert [line for line in plain if line.lower().startswith(front_end)] == []


def test_types_are_shipped() -> None:
    assert (ROOT / "dpnb" / "py.typed").is_file()


def test_development_build_is_no_release() -> None:
    wheel = [f"dpnb-0.1.0{release.EXTENSION}package.json", "dpnb/__init__.py"]
    assert release.faults(wheel, ["dpnb-0.1.0/README.md"]) == []
    assert len(release.faults(wheel[1:], [])) == 1
    for name in ("static/lib_index_js.0b05.js.map", "build_log.json", "node_modules/esbuild/package.json"):
        assert len(release.faults([*wheel, name], [name])) == 2


# --- the package page -------------------------------------------------------------------------------------------------

TARGET = re.compile(r"\]\(([^)]*)\)")
"""Where a link or a picture of a Markdown page leads to."""


@pytest.fixture(scope="module")
def substitutions(recipe: dict) -> list[dict[str, str]]:
    return recipe["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]


def test_every_address_of_the_project_begins_with_its_homepage(recipe: dict, substitutions: list) -> None:
    urls = recipe["project"]["urls"]
    assert set(urls) == {"Homepage", "Documentation", "Source", "Issues", "Changelog"}
    addresses = [*urls.values(), *(rule["replacement"].removeprefix("](") for rule in substitutions)]
    assert [address for address in addresses if not address.startswith(urls["Homepage"])] == []


def test_readme_leads_to_files_of_a_clone_and_its_package_page_to_the_same_files(
    recipe: dict, substitutions: list
) -> None:
    readme = page = (ROOT / "README.md").read_text(encoding="utf-8")
    inside = [target for target in TARGET.findall(readme) if not target.startswith("https://")]
    assert inside
    assert [target for target in inside if not (ROOT / target).is_file()] == []
    for rule in substitutions:
        page = re.sub(rule["pattern"], rule["replacement"], page)
    assert [target for target in TARGET.findall(page) if not target.startswith("https://")] == []
    addition = re.escape(recipe["project"]["urls"]["Homepage"]) + r"/(?:blob|raw)/v\$HFPR_VERSION/"
    assert re.sub(addition, "", page) == readme, "nothing but links and pictures was changed"


def test_classifiers_name_the_oldest_python_that_is_allowed(recipe: dict) -> None:
    minor = re.compile(r"Programming Language :: Python :: 3\.(\d+)")
    named = [int(match[1]) for text in recipe["project"]["classifiers"] if (match := minor.fullmatch(text))]
    assert recipe["project"]["requires-python"] == f">=3.{min(named)}"
    assert named == list(range(min(named), max(named) + 1))
