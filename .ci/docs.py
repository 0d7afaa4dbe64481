"""Build the documentation into ``build/docs/html``, with warnings as errors, and check every link inside it.

The site is built from a copy of ``docs/``, of the example notebooks and of the other pages that it includes, so that
running the notebooks (which write ledgers) leaves the working tree as it was. Arguments pass through to Sphinx:
``-D nb_execution_mode=off`` runs nothing, and ``DPNB_DOCS_NOT_RUN=tutorials/*`` in the environment runs no notebook.
"""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

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
    from dpnb.render.refusals import EXPLANATIONS

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
    """The environment of the kernels: settings of their own, and one thread for each library."""
    home = BUILD / "home"
    startup = home / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    shutil.copy(ROOT / "docs" / "_kernel.py", startup / "docs.py")
    folders = {f"JUPYTER_{name}_DIR": str(home / "jupyter" / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    return {
        **os.environ,
        **folders,
        **threads,
        "IPYTHONDIR": str(home / "ipython"),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }


@contextmanager
def service() -> Iterator[dict[str, str]]:
    """Run the service of the examples, for the pages of analysts who connect; yields their environment.

    It is not a cell's task: the commands of a curator refuse to run in a kernel.  The folder is a temporary one, since
    the path of a Unix socket must be short.
    """
    import statsmodels

    from dpnb.service.access.tokens import new_token

    with tempfile.TemporaryDirectory(prefix="dpnb-") as temporary:
        shutil.copy(ROOT / "examples" / "rand-hie.toml", temporary)
        folder = Path(shutil.copytree(ROOT / "examples" / "curator", Path(temporary) / "curator"))
        shutil.copy(Path(statsmodels.__file__).parent / "datasets" / "randhie" / "src" / "randhie.csv", folder)
        token = new_token(folder / "tokens.json", "ana")
        command, state = [sys.executable, "-m", "dpnb", "serve"], {**os.environ, "XDG_STATE_HOME": temporary}
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True, env=state) as running:
            try:
                print(running.stdout.readline() if running.stdout else "", end="", flush=True)
                yield {"DPNB_SERVICE": f"unix://{folder}/run/dpnb.sock", "DPNB_TOKEN": token}
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


SCRIPT = re.compile(r"(<script\b[^>]*>).*?</script>", re.DOTALL)
ATTRIBUTE = re.compile(r"\s(id|name|href|src)=([\"'])(.*?)\2")


def anchors_and_links(text: str) -> tuple[set[str], set[str]]:
    """The anchors of a page, and the addresses that it links to; in a text between tags, quotes are escaped."""
    anchors, links = {""}, set()
    for name, _, value in ATTRIBUTE.findall(SCRIPT.sub(r"\1", text)):
        (anchors if name in ("id", "name") else links).add(html.unescape(value))
    return anchors, links


def broken_links(folder: Path) -> list[str]:
    """Links between pages of the site that lead nowhere."""
    pages = {
        str(path): anchors_and_links(path.read_text(encoding="utf-8"))
        for path in folder.rglob("*.html")
        if "_static" not in path.parts  # templates of the theme
    }
    broken = []
    is_there = cache(os.path.exists)
    for path, (_, links) in pages.items():
        for link in sorted(links):
            scheme, host, address, _, anchor = urlsplit(link)
            if scheme or host:
                continue
            target = os.path.normpath(os.path.join(os.path.dirname(path), unquote(address))) if address else path
            target = target if target.endswith(".html") or not os.path.isdir(target) else f"{target}/index.html"
            if not is_there(target) or (target in pages and unquote(anchor) not in pages[target][0]):
                broken.append(f"{os.path.relpath(path, folder)}: {link}")
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
