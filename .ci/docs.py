"""Build the documentation into ``build/docs/html``, with warnings as errors, and check every link inside it.

The site is built from a copy of ``docs/``, of the example notebooks and of the other pages that it includes, so that
running the notebooks (which write ledgers) leaves the working tree as it was. Arguments pass through to Sphinx:
``-D nb_execution_mode=off`` runs nothing, and ``DPNB_DOCS_NOT_RUN=tutorials/*`` in the environment runs no notebook.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import expressions

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "docs"
SOURCE, HTML = BUILD / "source", BUILD / "html"
MESSAGES, EXPLAIN = "how-to/messages", "#dpnb-explain-"
NOT_COPIED = shutil.ignore_patterns("*.dpnb*", ".ipynb_checkpoints", "__pycache__")
WIDE = "---\nhtml_theme.sidebar_secondary.remove: true\n---\n\n"
"""Front matter of a page whose tables need the whole width."""


def stage() -> None:
    """Copy what the site is made of."""
    if BUILD.exists():
        shutil.rmtree(BUILD)
    shutil.copytree(ROOT / "docs", SOURCE, ignore=NOT_COPIED)
    shutil.copytree(ROOT / "examples", SOURCE / "tutorials", ignore=NOT_COPIED, dirs_exist_ok=True)
    for notebook in (SOURCE / "tutorials").glob("*.ipynb"):  # whose links lead to files of the repository
        text = notebook.read_text(encoding="utf-8").replace("](../tests/bench/RESULTS.md)", "](../benchmarks.md)")
        notebook.write_text(text.replace("](../docs/", "](../"), encoding="utf-8")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    (SOURCE / "changelog.md").write_text(changelog.replace("](docs/", "]("), encoding="utf-8")
    results = (ROOT / "tests" / "bench" / "RESULTS.md").read_text(encoding="utf-8")
    (SOURCE / "benchmarks.md").write_text(WIDE + results, encoding="utf-8")
    write_messages()
    expressions.write(SOURCE / "start" / "expressions.md")
    make_plotly_local()


def write_messages() -> None:
    """Write the page with the explanations that the panel of the Lab shows, to which links in outputs lead."""
    from dpnb.render.explanations import EXPLANATIONS

    head = (
        "# What messages mean\n\n"
        "The explanations of refusals and warnings. In JupyterLab, a link below the message opens them in the panel.\n"
    )
    parts = [f"({EXPLAIN[1:]}{each.id})=\n## {each.title}\n\n{each.full_text}\n" for each in EXPLANATIONS]
    (SOURCE / MESSAGES).with_suffix(".md").write_text("\n".join([head, *parts]), encoding="utf-8")


def link_messages(folder: Path) -> None:
    """Let the links below messages, which open the panel in the Lab, lead to the page of messages."""
    messages = (folder / MESSAGES).with_suffix(".html")
    for path in folder.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        if path != messages and f'href="{EXPLAIN}' in text:
            address = os.path.relpath(messages, path.parent)
            path.write_text(text.replace(f'href="{EXPLAIN}', f'href="{address}{EXPLAIN}'), encoding="utf-8")


def make_plotly_local() -> None:
    """Give the pages the copy of plotly.js that is in plotly's wheel, so that pictures need no network."""
    import plotly

    static = SOURCE / "_static"
    static.mkdir(exist_ok=True)
    shutil.copy(Path(plotly.__file__).parent / "package_data" / "plotly.min.js", static)


def environment() -> dict[str, str]:
    """The environment of the kernels: settings of their own, one thread for each library, and one import for all."""
    sys.path.append(str(ROOT / "tests" / "kernel_pool"))
    from forked_kernels import forking

    home = BUILD / "home"
    startup = home / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    shutil.copy(ROOT / "docs" / "_kernel.py", startup / "docs.py")
    folders = {f"JUPYTER_{name}_DIR": str(home / "jupyter" / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    others = {"IPYTHONDIR": str(home / "ipython"), "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    return forking({**os.environ, **folders, **threads, **others}, "scipy.stats", "plotly.graph_objs._figure")


@contextmanager
def service() -> Iterator[dict[str, str]]:
    """Run the service of the examples, for the pages of analysts who connect; yields their environment.

    It is not a cell's task: the commands of a curator refuse to run in a kernel.  The folder is a temporary one, since
    the path of a Unix socket must be short.
    """
    import statsmodels

    with tempfile.TemporaryDirectory(prefix="dpnb-") as temporary:
        shutil.copy(ROOT / "examples" / "rand-hie.toml", temporary)
        folder = Path(shutil.copytree(ROOT / "examples" / "curator", Path(temporary) / "curator"))
        shutil.copy(Path(statsmodels.__file__).parent / "datasets" / "randhie" / "src" / "randhie.csv", folder)
        dpnb = [sys.executable, "-m", "dpnb"]
        new = subprocess.run([*dpnb, "token", "new", "ana"], cwd=folder, check=True, capture_output=True, text=True)
        state = {**os.environ, "XDG_STATE_HOME": temporary}
        with subprocess.Popen([*dpnb, "serve"], cwd=folder, stdout=subprocess.PIPE, text=True, env=state) as running:
            try:
                print(running.stdout.readline() if running.stdout else "", end="", flush=True)
                yield {"DPNB_SERVICE": f"unix://{folder}/run/dpnb.sock", "DPNB_TOKEN": new.stdout.strip()}
            finally:
                running.terminate()
                running.communicate()


def build() -> int:
    """Run Sphinx; its exit code."""
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-b", "html", "-d", BUILD / "doctrees"]
    with service() as variables:
        return subprocess.run(
            [*command, *sys.argv[1:], SOURCE, HTML], cwd=ROOT, env={**environment(), **variables}, check=False
        ).returncode


class Page(HTMLParser):
    """The anchors of a page, and the addresses that it links to."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = {""}
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect ids and addresses."""
        for name, value in attrs:
            if name in ("id", "name"):
                self.anchors.add(value or "")
            elif name in ("href", "src"):
                self.links.append(value or "")


def broken_links(folder: Path) -> list[str]:
    """Links between pages of the site that lead nowhere."""
    pages = {}
    for path in folder.rglob("*.html"):
        if "_static" in path.parts:  # templates of the theme
            continue
        pages[path] = page = Page()
        page.feed(path.read_text(encoding="utf-8"))
    broken = []
    for path, page in pages.items():
        for link in page.links:
            if urlsplit(link).scheme or link.startswith("//"):
                continue
            address, anchor = urldefrag(link)
            target = (path.parent / unquote(urlsplit(address).path)).resolve() if address else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists() or (target in pages and unquote(anchor) not in pages[target].anchors):
                broken.append(f"{path.relative_to(folder)}: {link}")
    return broken


def main() -> int:
    """Build the site and check it; return the exit code."""
    stage()
    code = build()
    link_messages(HTML)
    broken = broken_links(HTML)
    for each in broken:
        print(f"broken link in {each}", file=sys.stderr)
    if not code and not broken:
        print(f"dpnb documentation: {HTML / 'index.html'}")
    return code or bool(broken)


if __name__ == "__main__":
    sys.exit(main())
