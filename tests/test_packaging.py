"""What `pip install dpnb` brings, read from the build recipe and from this environment's own installation."""

from __future__ import annotations

import importlib.metadata
import json
import tomllib
from pathlib import Path

import pytest

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
    assert "dpnb/notebook/static/gauges.js" in ensured


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
