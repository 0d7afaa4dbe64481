"""Conventions of the project: what files must not contain, what an import loads, that the parts agree."""

from __future__ import annotations

import ast
import gc
import importlib
import importlib.metadata
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "examples").glob("**/*.ipynb"))

# Heavy at import, and not needed before a session is made, something is drawn or an engine is used.
HEAVY = [
    "scipy",
    "mpmath",
    "pandas",
    "pyarrow",
    "httpx",
    "plotly",
    "ipywidgets",
    "anywidget",
    "IPython",
    "matplotlib",
    "statsmodels",
]

# Pasted together, so that this file does not hold what it looks for.
REGISTRY_HOST = re.compile(
    r"https?://[^\s\"']*("
    + "|".join(["registry" + r"\.", "python" + r"hosted\.org", r"pypi\.org/" + "simple", r"deb\." + "debian"])
    + ")"
)
MACHINE_PATH = re.compile(
    r"(?<![\w.$}*-])(/(?:" + "|".join(["work", "root", "farm"]) + r")/|/(?:" + "home|Users" + r")/\w+/)"
)

# Expressions of the early prose that readers stumbled over; each has a plain counterpart, such as "again".
BANNED = ROOT / "tests" / "banned_idioms.txt"
IDIOMS = re.compile(rf"\b({'|'.join(BANNED.read_text().splitlines())})\b", re.IGNORECASE)
UNTYPED = re.compile(r"\*\*\w+: Any\b")


@cache
def tracked_text() -> dict[str, str]:
    """Every tracked text file of the clone, by its path."""
    listing = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False
    )
    if listing.returncode != 0:
        pytest.skip("not a git clone: there is no list of tracked files")
    texts = {}
    for name in filter(None, listing.stdout.decode().split("\0")):
        path = ROOT / name
        if path.is_file():
            content = path.read_bytes()
            if b"\0" not in content:
                texts[name] = content.decode("utf-8")
    return texts


@cache
def parsed(path: Path) -> ast.Module:
    """The tree of a file, for all tests of this module."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """The nodes of its tree."""
    return list(ast.walk(parsed(path)))


@pytest.fixture(scope="module", autouse=True)
def trees_are_forgotten() -> Iterator[None]:
    """Keep the trees for this module; searching them for garbage again and again takes longer than all of its tests."""
    gc.disable()
    yield
    parsed.cache_clear()
    nodes_of.cache_clear()
    gc.enable()


def lines_matching(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{name}:{number}: {line.strip()[:100]}"
        for name, text in tracked_text().items()
        if pattern.search(text)  # most files have none, and are not divided into lines
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (REGISTRY_HOST, 'resolved "https://' + 'registry.npmjs.org/x.tgz"', True),
        (REGISTRY_HOST, "https://files." + "pythonhosted.org/packages/x.whl", True),
        (REGISTRY_HOST, "https://arxiv.org/abs/2103.01379", False),
        (MACHINE_PATH, "open('/" + "home/jo/table.csv')", True),
        (MACHINE_PATH, "cd /" + "work/clone", True),
        (MACHINE_PATH, "examples/" + "work/x, notebook/" + "root/y", False),
        (IDIOMS, "A query is asked ane" + "w.", True),
        (IDIOMS, "A query costs again.", False),
        (UNTYPED, "    def release(self, plan: Plan, **target: Any) -> Answer:", True),
        (UNTYPED, "    def release(self, **target: Unpack[PreviewTarget]) -> Answer:", False),
    ],
)
def test_the_searches_below_can_find_something(pattern: re.Pattern[str], text: str, found: bool) -> None:
    assert bool(pattern.search(text)) is found


def test_no_tracked_file_names_a_package_registry_host() -> None:
    assert lines_matching(REGISTRY_HOST) == []


def test_no_tracked_file_holds_a_path_of_one_machine() -> None:
    assert lines_matching(MACHINE_PATH) == []


def test_no_tracked_file_uses_an_idiom_of_the_early_prose() -> None:
    found = [line for line in lines_matching(IDIOMS) if not line.startswith(BANNED.relative_to(ROOT).as_posix())]
    assert found == []


def test_arguments_are_typed_from_the_method_to_the_ledger() -> None:
    between = ("query", "_core", "interactive", "session", "remote", "wire", "ledger")
    places = (*(f"dpnb/{name}/" for name in between), "dpnb/_target.py", "dpnb/results/answer.py")
    assert [line for line in lines_matching(UNTYPED) if line.startswith(places)] == []


def test_nothing_that_a_build_makes_is_tracked() -> None:
    made = (
        "dpnb/labextension/",
        "dpnb/notebook/static/",
        "dpnb/service/static/",
        "labextension/lib/",
        "labextension/node_modules/",
        "dist/",
    )
    assert [name for name in tracked_text() if name.startswith(made) or name.endswith(".dpnb")] == []


def test_importing_dpnb_and_its_command_line_loads_nothing_heavy() -> None:
    code = "import dpnb.__main__, sys, json; print(json.dumps(sorted(sys.modules)))"
    loaded = set(json.loads(subprocess.check_output([sys.executable, "-c", code], text=True)))
    assert [name for name in HEAVY if name in loaded] == []
    assert "dpnb" in loaded


def test_a_session_has_imported_what_releases_use() -> None:
    code = """
import sys, dpnb
session = dpnb.Session.rehearse(name="t", budget=dpnb.Budget(epsilon=1, delta=1e-6), schema={"x": dpnb.Bounded(0, 1)})
before = {*sys.modules}
session.frame["x"].mean().release(epsilon=0.5)
session.frame.count().release(epsilon=0.1)
print(sorted({name.partition(".")[0] for name in {*sys.modules} - before} & {"scipy", "mpmath", "pandas"}))
"""
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"


def test_public_names_can_be_imported() -> None:
    import dpnb

    for name in ("Session", "Budget", "Bounded", "Categories", "errors"):
        assert hasattr(dpnb, name)
    assert [name for name in dpnb.__all__ if not hasattr(dpnb, name)] == []
    assert issubclass(dpnb.errors.BudgetExceeded, dpnb.errors.DpnbError)


def test_what_benchmarks_load_tests_and_pictures_need_can_be_imported() -> None:
    tests = ROOT / "tests"
    folders = [tests / name for name in ("bench", "service", "soak", "ui")]
    named = ("test_", "conftest.py", "hub_config.py")  # pytest imports tests, JupyterHub its configuration
    paths = [path for folder in folders for path in folder.rglob("*.py") if not path.name.startswith(named)]
    modules = [importlib.import_module(".".join(path.relative_to(tests).with_suffix("").parts)) for path in paths]
    assert "bench.speed" in {module.__name__ for module in modules}


def test_every_exception_derives_from_dpnb_error() -> None:
    from dpnb import errors

    classes = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)]
    classes = [cls for cls in classes if not issubclass(cls, Warning)]
    assert errors.DpnbError in classes
    assert [cls.__name__ for cls in classes if not issubclass(cls, errors.DpnbError)] == []


def test_python_and_typescript_carry_one_version() -> None:
    package = json.loads((ROOT / "labextension" / "package.json").read_text(encoding="utf-8"))
    assert importlib.metadata.version("dpnb") == package["version"]
    assert f"[{package['version']}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def _missing_modules(text: str) -> list[str]:
    """The modules of dpnb that a text refers to or imports from, and that do not exist."""
    names = re.findall(r":mod:`~?(dpnb(?:\.\w+)+)`|^ *from (dpnb(?:\.\w+)*) import ", text, re.MULTILINE)
    paths = {first or second: ROOT.joinpath(*(first or second).split(".")) for first, second in names}
    return [
        name
        for name, path in paths.items()
        if not path.with_suffix(".py").is_file() and not (path / "__init__.py").is_file()
    ]


def test_a_module_that_is_gone_is_found() -> None:
    assert _missing_modules("Components add as in :mod:`dpnb.accounting.gone`.") == ["dpnb.accounting.gone"]
    assert _missing_modules("    from dpnb.accounting.gone import name") == ["dpnb.accounting.gone"]
    assert not _missing_modules("from dpnb import Budget  # see :mod:`dpnb.accounting.conversions.reserve`")


def test_modules_that_docstrings_and_imports_name_exist() -> None:
    files = [one for folder in ("dpnb", "tests", "docs", ".ci", "examples") for one in (ROOT / folder).rglob("*.py")]
    found = {str(one.relative_to(ROOT)): missing for one in files if (missing := _missing_modules(one.read_text()))}
    found.pop("tests/test_conventions.py", None)  # the examples above
    assert not found


def test_no_module_imports_the_package_root() -> None:
    # The root imports the layers; a layer that imports the root gets round the layers without import-linter noticing.
    climbing = []
    children = {child.stem for child in (ROOT / "dpnb").iterdir()}
    for path in sorted((ROOT / "dpnb").rglob("*.py")):
        for node in nodes_of(path):
            if isinstance(node, ast.Import) and any(alias.name == "dpnb" for alias in node.names):
                climbing.append(f"{path.relative_to(ROOT)}:{node.lineno}")
            from_root = isinstance(node, ast.ImportFrom) and node.module == "dpnb"
            if from_root and not {alias.name for alias in node.names} <= children:
                climbing.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert climbing == []


def imported_modules(node: ast.AST) -> list[str]:
    """The full names that an import may load: of `from a import b`, a module b of a as well."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def test_what_mypy_skips_is_imported_only_by_other_libraries() -> None:
    # All that came from there would be Any, without a word.  What has no types either way is beside it.
    overrides = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["overrides"]
    skipped = [name for one in overrides if not one.get("ignore_missing_imports") for name in one["module"]]
    pattern = re.compile("|".join(rf"{re.escape(name.removesuffix('.*'))}(\..*)?" for name in skipped))
    assert all(map(pattern.fullmatch, ("scipy.stats", "scipy.stats.norm", "sqlalchemy.sql.elements")))
    assert not any(map(pattern.fullmatch, ("scipy.special", "scipy.statsmodels", "sqlalchemy.sql")))
    imported = {
        name: str(path.relative_to(ROOT))
        for path in sorted((ROOT / "dpnb").rglob("*.py"))
        for node in nodes_of(path)
        for name in imported_modules(node)
    }
    assert {name: path for name, path in imported.items() if pattern.fullmatch(name)} == {}
    assert "scipy.special.ndtri" in imported


def definitions(root: Path) -> dict[str, dict[str, list[str]]]:
    """What each class name in a folder means, and where: classes, also nested ones, and the type aliases of modules.

    Names that differ only in a leading underscore are equal, and so are aliases of the same type.  What is defined for
    type checkers counts once.
    """
    found: dict[str, dict[str, list[str]]] = {}

    def visit(path: Path, node: ast.AST, *, is_module: bool) -> None:
        for child in ast.iter_child_nodes(node):
            name = meaning = ""
            if isinstance(child, ast.ClassDef):
                name, meaning = child.name, f"class at {path}:{child.lineno}"
            elif is_module and isinstance(child, ast.Assign) and isinstance(child.targets[0], ast.Name):
                target = child.targets[0].id
                if re.fullmatch("_*[A-Z].*[a-z].*", target) and not isinstance(child.value, ast.Call):
                    name, meaning = target, ast.unparse(child.value)
            if name:
                found.setdefault(name.lstrip("_"), {}).setdefault(meaning, []).append(f"{path}:{child.lineno}")
            if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                visit(path, ast.Module(child.body, []), is_module=is_module)
            else:
                visit(path, child, is_module=is_module and isinstance(child, ast.If | ast.Try))

    for path in sorted(root.rglob("*.py")):
        visit(path.relative_to(root), parsed(path), is_module=True)
    return found


def ambiguous(root: Path) -> dict[str, list[str]]:
    """The class names with several meanings, and where each is defined."""
    return {
        name: [place for places in meanings.values() for place in places]
        for name, meanings in definitions(root).items()
        if len(meanings) > 1
    }


HTML_TAG = re.compile(
    r"</[a-z]|<(abbr|b|br|code|details|div|h[1-6]|li|p|pre|small|span|svg|ul)(?![\w-])", re.IGNORECASE
)
"""An end tag or a usual tag of HTML; not the placeholder ``<table>``, or a representation such as ``<query: ...>``."""

WITH_HTML = ("render/", "notebook/", "service/cockpit/page.py", "results/display.py")
"""Where HTML is written: layers that show values, the curator's page, and what is shown without a layer for it."""


def strings_with_html(root: Path) -> list[str]:
    """The lines of a folder with a string, other than a docstring, that contains an HTML tag."""
    found = []
    for path in sorted(root.rglob("*.py")):
        nodes = nodes_of(path)
        bare = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        strings = (node for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
        lines = [node.lineno for node in strings if id(node) not in bare and HTML_TAG.search(str(node.value))]
        found += [f"{path.relative_to(root).as_posix()}:{line}" for line in sorted(lines)]
    return found


def test_the_search_for_html_can_find_some(tmp_path: Path) -> None:
    (tmp_path / "core.py").write_text(
        '"""A module without <b>HTML</b>."""\nname = f"<query: {1}>"\nshown = f\'<div style="x">{name}</div>\'\n'
        'end = "</SPAN>"\nlimit = "a <b"\nother = "a < b, <prepared>, <p-b>, <table>"\n'
    )
    assert strings_with_html(tmp_path) == ["core.py:3", "core.py:3", "core.py:4", "core.py:5"]


def test_html_is_written_only_where_values_are_shown() -> None:
    assert [line for line in strings_with_html(ROOT / "dpnb") if not line.startswith(WITH_HTML)] == []


def test_the_search_for_ambiguous_names_can_find_some(tmp_path: Path) -> None:
    first, second = tmp_path / "first.py", tmp_path / "inner" / "second.py"
    second.parent.mkdir()
    first.write_text(
        "Array = list[float]\nCount = int\n\nclass Part: ...\n\ndef made():\n    class Local: ...\n\n"
        "if TYPE_CHECKING:\n    class Query: ...\nelse:\n    Query = object\n"
    )
    second.write_text(
        "Array = list[float]\nLocal = tuple[int, int]\nT = TypeVar('T')\nLimit = NewType('Limit', int)\n\n"
        "class Outer:\n    class _Part: ...\n\nclass Count: ...\n"
    )
    assert ambiguous(tmp_path) == {
        "Count": ["first.py:2", "inner/second.py:9"],
        "Local": ["first.py:7", "inner/second.py:2"],
        "Part": ["first.py:4", "inner/second.py:7"],
    }


def test_no_class_name_has_two_meanings() -> None:
    assert ambiguous(ROOT / "dpnb") == {}


def test_no_code_outside_accounting_asks_for_the_class_of_a_filter_or_loss() -> None:
    """They describe themselves, so that a new one needs no change elsewhere."""
    package = ROOT / "dpnb"
    outside = [path for path in package.rglob("*.py") if package / "accounting" not in path.parents]
    found = {path: asked_classes(nodes_of(path)) for path in outside}
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "code",
    [
        "isinstance(state.filter, GDPFilter)",
        "isinstance(state.filter, (int, accounting.SumFilter))",
        "issubclass(kind, GDP | ZCDP)",
        "type(loss) is PureDP",
        "budget.__class__ == NoBudget",
        "match budget:\n    case Budget():\n        pass",
        "match loss:\n    case losses.GDP(mu_squared=0) | None:\n        pass",
        "isinstance(odometer, MixtureOdometer)",
        "KINDS = (WorstCaseFilter, GDP)\nisinstance(loss, KINDS)",
    ],
)
def test_a_question_for_a_class_is_found(code: str) -> None:
    assert asked_classes(list(ast.walk(ast.parse(code))))


@pytest.mark.parametrize(
    "code", ["GDP(0.1)", "isinstance(path, Path)", "filter_.admits(GDP(1))", "type(loss).__name__"]
)
def test_what_is_no_such_question_is_not_found(code: str) -> None:
    assert not asked_classes(list(ast.walk(ast.parse(code))))


@cache
def described_classes() -> frozenset[str]:
    """The names of the classes of filters, losses, budgets and odometers."""
    from dpnb import accounting
    from dpnb.accounting import filters, individual, losses, odometers

    kinds = (accounting.Filter, accounting.Loss, accounting.Odometer, accounting.Budget, accounting.NoBudget)
    modules = (accounting, filters, individual, losses, odometers)
    members = [value for module in modules for value in vars(module).values() if isinstance(value, type)]
    return frozenset(value.__name__ for value in members if issubclass(value, kinds))


def asked_classes(nodes: list[ast.AST]) -> set[str]:
    """Those that a module, of which these are all nodes, compares the class of a value with."""

    def names_in(node: ast.AST) -> set[str]:
        names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        return names | {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}

    tuples = {  # of classes, by their names
        node.targets[0].id: names_in(node.value)
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Tuple)
    }

    def named(node: ast.AST) -> set[str]:
        names = names_in(node)
        return names.union(*(tuples[name] for name in names & tuples.keys()))

    found: set[str] = set()
    for node in nodes:
        match node:
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, kind]):
                found |= named(kind)
            case ast.Compare(left=ast.Call(func=ast.Name(id="type")) | ast.Attribute(attr="__class__")):
                found |= named(node)
            case ast.MatchClass():
                found |= named(node.cls)
    return found & described_classes()


def test_dependencies_have_lower_bounds_and_no_exact_pins() -> None:
    recipe = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = recipe["project"]
    tables = [*project["optional-dependencies"].values(), *recipe["dependency-groups"].values()]
    tables += [project["dependencies"], recipe["build-system"]["requires"]]
    requirements = [requirement for table in tables for requirement in table if isinstance(requirement, str)]
    assert [requirement for requirement in requirements if ">=" not in requirement or "==" in requirement] == []


def test_there_are_examples() -> None:
    assert [path.name for path in NOTEBOOKS][:1] == ["01-quickstart.ipynb"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook_is_kept_without_outputs(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code, "a notebook without code is not an example"
    kept = [n for n, cell in enumerate(code) if cell["outputs"] or cell["execution_count"] is not None]
    assert kept == [], "clear the outputs before committing: Kernel > Restart Kernel and Clear Outputs"
