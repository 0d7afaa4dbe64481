"""Build a release from a clean clone of the last commit, and find what must not be in it.

``make dist`` runs this file, and the tests of the wheel call its functions: what is tested is what is released. It
clones because the build leaves a browser bundle alone if there is one, so that a wheel made in a used folder may ship
an old or a development bundle. The clone lies outside this folder because hatchling gives up .gitignore below an
ignored one.

Nothing is downloaded that is here already: the build runs with this environment's tools and borrows `node_modules`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
UNWANTED = ("build_log", ".map", "node_modules")
EXTENSION = ".data/data/share/jupyter/labextensions/dpnb/"


def _borrow_packages(clone: Path) -> None:
    """Link the npm packages of this folder into a clone that asks for the very same ones; else jlpm downloads them.

    Folders are linked and not copied, for they have half a gigabyte. Files, jlpm's notes of what is there, are copied.
    """
    ours, theirs = ROOT / "labextension", clone / "labextension"
    same = all((ours / name).read_bytes() == (theirs / name).read_bytes() for name in ("package.json", "yarn.lock"))
    if not (same and (ours / "node_modules" / ".yarn-state.yml").exists()):
        return
    for name in ("node_modules", ".yarn"):
        (theirs / name).mkdir()
        for entry in (ours / name).iterdir() if (ours / name).exists() else ():
            if entry.is_dir():
                (theirs / name / entry.name).symlink_to(entry.resolve(), target_is_directory=True)
            else:
                shutil.copy(entry, theirs / name)


def clone(folder: Path) -> Path:
    """Clone the last commit into a new folder."""
    subprocess.run(["git", "clone", "--quiet", "--depth=1", ROOT.as_uri(), folder], check=True)
    _borrow_packages(folder)
    return folder


def build(source: Path, target: str, out: Path) -> Path:
    """Build the `wheel` or the `sdist` of a folder with this environment's tools; an error holds the build's output."""
    environment = {**os.environ, "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))}
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(out)]
    done = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the {target} was not built:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    [built] = out.glob("*.whl" if target == "wheel" else "*.tar.gz")
    return built


def unpack(sdist: Path, folder: Path) -> Path:
    """Unpack an sdist and return its only folder."""
    with tarfile.open(sdist) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # which Python 3.11.2 of Debian 12 has not
        archive.extractall(folder)
    [source] = folder.iterdir()
    return source


def build_release(out: Path, scratch: Path) -> tuple[Path, Path]:
    """Build the sdist from a clean clone, and the wheel from the sdist, as an installer without a wheel does."""
    sdist = build(clone(scratch / "clone"), "sdist", out)
    return build(unpack(sdist, scratch / "sdist"), "wheel", out), sdist


def names(archive: Path) -> list[str]:
    """Names of the files in a wheel or an sdist."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return sorted(wheel.namelist())
    with tarfile.open(archive) as sdist:
        return sorted(member.name for member in sdist if member.isfile())


def faults(wheel: list[str], sdist: list[str]) -> list[str]:
    """What is wrong with a release, from the names of its files."""
    found = [f"{name}: of a development build" for name in wheel + sdist if any(part in name for part in UNWANTED)]
    if not any(name.endswith(f"{EXTENSION}package.json") for name in wheel):
        found.append("the wheel has no Lab extension")
    return found


def main(out: Path) -> None:
    """Replace what is in `out` by a release of the last commit."""
    shutil.rmtree(out, ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch:
        built = build_release(out, Path(scratch))
    if found := faults(*map(names, built)):
        sys.exit("\n".join(("not a release:", *found)))
    for path in built:
        print(f"{path.stat().st_size:>10,} {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
