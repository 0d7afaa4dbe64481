"""The wheel as `make dist` builds it, installed into an empty environment: all of dpnb works without the repository."""

from __future__ import annotations

import json
import math
import subprocess
import urllib.request
import zipfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

import nbformat
import pytest
from packaging.metadata import Metadata
from playwright.sync_api import expect

import environments
import release
from ui.lab import Lab, expect_reading
from ui.server import TOKEN, running_lab
from waiting import LIMIT

pytestmark = pytest.mark.slow

CELLS = {
    "load": "%load_ext dpnb\nimport pandas as pd\nimport dpnb",
    "session": """table = pd.DataFrame({"person": [i // 2 for i in range(600)], "visits": [i % 11 for i in range(600)]})
session = dpnb.Session(
    table,
    name="clinic",
    privacy_unit="person",
    max_rows_per_unit=2,
    budget=dpnb.Budget(epsilon=1.0, delta=1e-6),
    schema={"visits": dpnb.Bounded(0, 10)},
    ledger="clinic.dpnb",
)
session""",
    "release": "session.frame.count_units().release(mu=0.05)",
    "question": "session.frame['visits'].sum()",
    "picture": "session.frame.groupby(dpnb.cut(session.frame['visits'], [0, 5, 10])).count().release(mu=0.05).plot()",
}
CELL = {name: index for index, name in enumerate(CELLS)}


class Release(NamedTuple):
    """What was built, and from which clone."""

    wheel: Path
    sdist: Path
    clone: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """A release of the last commit, built without a network."""
    out, scratch = tmp_path_factory.mktemp("dist"), tmp_path_factory.mktemp("scratch")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("YARN_ENABLE_NETWORK", "0")
        return Release(*release.build_release(out, scratch), scratch / "clone")


@pytest.fixture(scope="module")
def python(built: Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with nothing but the wheel, JupyterLab and what they require."""
    return environments.environment_for(built.wheel, "lab", tmp_path_factory.mktemp("empty") / "environment")


# --- what the tests of this folder share, for this JupyterLab ---------------------------------------------------------


@pytest.fixture(scope="module")
def lab_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lab-of-the-wheel")


@pytest.fixture(scope="module")
def lab_url(chromium: str, lab_home: Path, python: Path) -> Iterator[str]:
    with running_lab(lab_home / "home", lab_home / "root", python, environments.variables(python)) as url:
        yield url


@pytest.fixture
def lab_root(lab_home: Path) -> Path:
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in CELLS.values()],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    )
    folder = lab_home / "root" / "clinic"
    folder.mkdir(parents=True)
    nbformat.write(notebook, folder / "clinic.ipynb")
    return folder


@pytest.fixture(autouse=True)
def no_kernel_left() -> None:
    """One test here has a kernel, and its server ends with the file: what needs no browser is to start none."""


# --- what was built ---------------------------------------------------------------------------------------------------


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_release_holds_the_extension_and_nothing_of_a_development_build(built: Release) -> None:
    assert release.faults(release.names(built.wheel), release.names(built.sdist)) == []


def test_wheel_of_the_clone_is_the_wheel_of_the_sdist(built: Release, tmp_path: Path) -> None:
    assert contents(release.build(built.clone, "wheel", tmp_path)) == contents(built.wheel)


def test_wheel_holds_every_file_of_the_package_and_what_was_built_beside_it(built: Release) -> None:
    listed = subprocess.run(["git", "ls-files", "dpnb"], cwd=built.clone, check=True, capture_output=True, text=True)
    bundles = ("notebook/static/gauges", "notebook/static/picker", "service/static/cockpit")
    widgets = {f"dpnb/{name}.{kind}" for name in bundles for kind in ("js", "css")}
    names = {name for name in release.names(built.wheel) if name.startswith("dpnb/")}
    assert names == set(listed.stdout.split()) | widgets


def test_wheel_holds_no_path_of_the_machine_that_built_it(built: Release) -> None:
    places = [str(place).encode() for place in (release.ROOT / "labextension" / "node_modules", built.clone)]
    assert [name for name, data in contents(built.wheel).items() if any(place in data for place in places)] == []


class Addresses(HTMLParser):
    """Where links and pictures of a page lead to."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.pictures: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value or "" for name, value in attrs if (tag, name) == ("a", "href")]
        self.pictures += [value or "" for name, value in attrs if (tag, name) == ("img", "src")]


def test_package_page_is_rendered_with_absolute_links_that_lead_to_files_of_the_release(built: Release) -> None:
    from readme_renderer import markdown

    text = environments.metadata(built.wheel).read_text("METADATA")
    assert text is not None
    said = Metadata.from_email(text, validate=True)
    home = (said.project_urls or {})["Homepage"]
    page = markdown.render(said.description or "")
    assert page is not None
    found = Addresses(page)
    assert len(found.pictures) == (built.clone / "README.md").read_text(encoding="utf-8").count("![") > 0
    assert [address for address in found.links + found.pictures if not address.startswith(("https://", "#"))] == []
    for kind, addresses in (("blob", found.links), ("raw", found.pictures)):
        start = f"{home}/{kind}/v{said.version}/"
        inside = [address.removeprefix(start) for address in addresses if address.startswith(home)]
        assert inside
        assert [path for path in inside if not (built.clone / path).is_file()] == []


# --- and installed ----------------------------------------------------------------------------------------------------


def test_jupyter_lists_the_extension_as_working(python: Path) -> None:
    listed = environments.run_there(python, "-m", "jupyterlab.labextensions", "list")
    said = listed.stdout + listed.stderr
    [line] = [line for line in said.splitlines() if " dpnb " in line] or [said]
    assert [word for word in ("enabled", "OK", "(python, dpnb)") if word not in line] == [], said


def expect_wheel_in_the_page(lab: Lab, url: str, wheel: Path) -> None:
    """Check that the page has loaded the wheel's bundle and not the one of a development install."""
    shared = {
        name.partition(release.EXTENSION)[2]: data
        for name, data in contents(wheel).items()
        if release.EXTENSION in name
    }
    config = json.loads(lab.page.locator("#jupyter-config-data").text_content() or "")
    [loaded] = [extension for extension in config["federated_extensions"] if extension["name"] == "dpnb"]
    assert loaded["load"] == json.loads(shared["package.json"])["jupyterlab"]["_build"]["load"]
    for name in shared:
        if name.startswith("static/"):
            with urllib.request.urlopen(f"{url}/lab/extensions/dpnb/{name}?token={TOKEN}", timeout=LIMIT) as reply:
                assert reply.read() == shared[name], name


def expect_kernel_of_the_environment(lab: Lab, python: Path) -> None:
    """Check that the kernel has nothing of the repository, nor of the environment in which the tests run."""
    prefix, modules, path = lab.value(
        "(lambda sys: (sys.prefix, [str(getattr(m, '__file__', '')) for n, m in sys.modules.items() if"
        " n.partition('.')[0] == 'dpnb'], [p for p in sys.path if p]))(__import__('sys'))"
    )  # type: ignore[misc]
    environment = python.parents[1]
    assert Path(prefix) == environment
    assert len(modules) > 50
    assert [file for file in modules if not Path(file).is_relative_to(environment)] == []
    assert [entry for entry in path if Path(entry).is_relative_to(release.ROOT)] == []


def left(lab: Lab) -> str:
    """What the session says is left, checked against gauges and status bar."""
    words = f"{math.floor(1000 * float(str(lab.value('session.headroom')))) / 10:.1f}% left"
    for gauge in (lab.cell_gauge("headroom"), lab.panel_gauge("headroom")):
        expect_reading(gauge, words)
    expect(lab.status).to_have_text(f"dpnb {words}")
    return words


def test_panel_gauge_status_picker_and_picture_work_without_the_repository(
    lab: Lab, lab_url: str, built: Release, python: Path
) -> None:
    lab.open("clinic.ipynb")
    expect_wheel_in_the_page(lab, lab_url, built.wheel)
    lab.run(CELL["load"])
    lab.run(CELL["session"])
    expect(lab.panel).to_be_visible()
    readings = [left(lab)]
    lab.run(CELL["release"])
    readings.append(left(lab))
    lab.run(CELL["question"])
    cell = lab.page.locator(".jp-Cell").nth(CELL["question"])
    cell.locator(".dpnb-picker").get_by_role("button", name="Release").click()
    expect(lab.panel.locator(".dpnb-release")).to_have_count(2)
    readings.append(left(lab))
    lab.run(CELL["picture"])
    expect(lab.page.locator(".jp-OutputArea .js-plotly-plot")).to_be_visible()
    readings.append(left(lab))
    assert readings[0] == "100.0% left"
    assert len(set(readings)) == len(readings), "each of the three releases is seen"
    expect(lab.page.locator(".dpnb-badge")).to_have_count(3)
    expect_kernel_of_the_environment(lab, python)
