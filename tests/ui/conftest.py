"""A browser and a JupyterLab server for the tests in this folder."""

from __future__ import annotations

import itertools
import json
import shutil
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
import pytest

from waiting import LIMIT

if TYPE_CHECKING:
    from ui.lab import Lab
    from ui.tab import Tab

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "examples"

# What the fake notebook's cells do, by the name under which the tests ask for their number.
CELLS = {
    "load": "from fake_session import Budget, hold",
    "start": "budget = Budget()\nbudget.show()",
    "spend": "budget.set(0.75, 'mean of visits by plan')",
    "slowly": "for step in (1, 2):\n    budget.set(0.75 - step / 10)\n    hold(f'step-{step}')\nbudget.set(0.35)",
    "silently": "hold()",
    "rehearse": "budget = Budget('fake rehearsal', notice='REHEARSAL: mock data, not real')",
}
NUMBER = {name: index for index, name in enumerate(CELLS)}

# The notebook of an analyst at the real table.
COCKPIT = {
    "load": "%load_ext dpnb\nfrom importlib import resources\nimport pandas as pd\nimport dpnb",
    "session": """table = pd.read_csv(resources.files("statsmodels") / "datasets/randhie/src/randhie.csv")
session = dpnb.Session(
    table,
    name="rand-hie",
    privacy_unit="zper",
    max_rows_per_unit=3,
    budget=dpnb.Budget(epsilon=2.0, delta=1e-6),
    schema={"mdvis": dpnb.Bounded(0, 10), "coins": dpnb.Categories([0, 25, 50, 95, 100])},
    public_size=6000,
    version="1982",
    ledger="cockpit.dpnb",
)
hie = session.frame
session""",
    "question": "visits = hie.groupby('coins')['mdvis'].mean()\nvisits",
    "count": "hie.count_units()",
    "release": "hie['mdvis'].sum().release(mu=0.05)",
    "refused": "hie['mdvis'].sum().release(mu=9)",
    "spare": "",
}
CELL = {name: index for index, name in enumerate(COCKPIT)}


@pytest.fixture(scope="session")
def tab(browser: object) -> Iterator[Tab]:
    """Where one test after another has its page."""
    from ui.tab import Tab

    tab = Tab(browser)
    yield tab
    tab.close()


@pytest.fixture
def new_page(tab: Tab) -> None:
    """No page, for a test of what a page does when it is loaded."""
    tab.empty()


@pytest.fixture(scope="session")
def lab_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the server keeps its own state (`home`) and what the Lab shows (`root`)."""
    return tmp_path_factory.mktemp("lab")


@pytest.fixture(scope="session")
def lab_url(chromium: str, lab_home: Path) -> Iterator[str]:
    """Address of a running JupyterLab.  (Asks for Chromium first: without it no server is needed.)"""
    from ui.server import running_lab

    with running_lab(lab_home / "home", lab_home / "root") as url:
        yield url


@pytest.fixture(scope="session")
def folder_names() -> Iterator[str]:
    """Names for the folders of tests."""
    return (f"test-{number}" for number in itertools.count(1))


@pytest.fixture
def lab_root(lab_home: Path, folder_names: Iterator[str]) -> Path:
    """A folder of the test's own, as a newcomer finds it: the examples without outputs or ledgers, fake notebooks.

    What one test saves, another must not find, and the kernel of the test before may still be on its way out.  The
    user's choice of a theme is forgotten too.
    """
    root = lab_home / "root" / next(folder_names)
    # One declaration alone: the launcher takes the first of a folder.
    ignored = shutil.ignore_patterns("*.dpnb*", ".ipynb_checkpoints", "images", "scale-tables", "clinic.toml")
    shutil.copytree(EXAMPLES, root, ignore=ignored)
    shutil.copy(HERE / "fake_session.py", root)
    for name in ("waiting.py", "fake_connection.py"):
        shutil.copy(HERE.parent / name, root)
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in CELLS.values()],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    )
    for name in ("fake.ipynb", "other.ipynb"):
        nbformat.write(notebook, root / name)
    cockpit = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source, id=f"the-{name}-cell") for name, source in COCKPIT.items()],
        metadata=notebook.metadata,
    )
    nbformat.write(cockpit, root / "cockpit.ipynb")
    for name in ("themes", "status", "badges"):
        for setting in (lab_home / "home").rglob(f"{name}.jupyterlab-settings"):
            setting.unlink()
    return root


ON_THE_SCREEN = pytest.StashKey["Lab"]()


@pytest.fixture
def lab(tab: Tab, lab_url: str, lab_root: Path, kernels: None, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """JupyterLab with nothing open; the test fails if the page complains or talks to the outside."""
    from ui.lab import Lab

    lab = request.node.stash[ON_THE_SCREEN] = Lab(tab.take(lab_url), lab_url, lab_root.parent, lab_root.name)
    yield lab
    seen = lab.console.on_the_screen(request.node.name) if lab.troubles else ""
    lab.console.close()
    if lab.has_changed_the_tab or lab.troubles:
        tab.close()
    tab.give_back(is_as_it_was=not lab.has_changed_the_page)
    request.node.user_properties += [("let off", words) for words in lab.console.let_off]
    assert not lab.troubles, seen


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[pytest.TestReport]:
    """Say what was on the screen when a test failed."""
    report: pytest.TestReport = yield
    if report.failed and report.when != "teardown" and (lab := item.stash.get(ON_THE_SCREEN, None)):
        report.sections.append(("on the screen", lab.console.on_the_screen(item.name)))
    return report


@pytest.fixture
def fake(lab: Lab) -> Lab:
    """The fake notebook, its session just made."""
    lab.open("fake.ipynb")
    lab.run(NUMBER["load"])
    lab.run(NUMBER["start"])
    return lab


@pytest.fixture
def cockpit(lab: Lab) -> Lab:
    """The analyst's notebook, its session just made."""
    lab.open("cockpit.ipynb")
    lab.run(CELL["load"])
    lab.run(CELL["session"])
    return lab


@pytest.fixture(scope="module")
def leaving(lab_url: str) -> Iterator[ThreadPoolExecutor]:
    """Runs what need not be waited for: how kernels shut down.  One that does not is the server's to end."""
    with ThreadPoolExecutor(max_workers=2) as threads:
        yield threads


@pytest.fixture
def kernels(lab_url: str, leaving: ThreadPoolExecutor) -> Iterator[None]:
    """Shut every kernel down after a test, while the next one begins."""
    yield
    for kernel in json.loads(_call(lab_url, "GET", "/api/kernels")):
        leaving.submit(_call, lab_url, "DELETE", f"/api/kernels/{kernel['id']}")


def _call(url: str, method: str, path: str) -> bytes:
    """Ask the server."""
    from ui.server import TOKEN

    request = urllib.request.Request(f"{url}{path}", method=method, headers={"Authorization": f"token {TOKEN}"})
    with urllib.request.urlopen(request, timeout=LIMIT) as reply:
        return bytes(reply.read())
