"""The size of the package and of its parts; `import-linter` checks the layers and the absence of cycles."""

from __future__ import annotations

from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "dpnb"
MAX_MODULES = 440
MAX_MODULES_OF_A_PACKAGE = 15
MAX_LINES = 400


def too_large(package: Path) -> list[str]:
    """What of a package has more modules or lines than a reader can keep in mind."""
    modules = sorted(package.rglob("*.py"))
    found = [f"{len(modules)} modules"] if len(modules) > MAX_MODULES else []
    for folder in sorted({module.parent for module in modules}):
        count = len(list(folder.glob("*.py")))
        if count > MAX_MODULES_OF_A_PACKAGE:
            found.append(f"{folder.relative_to(package.parent)}: {count} modules")
    for module in modules:
        count = len(module.read_text(encoding="utf-8").splitlines())
        if count > MAX_LINES:
            found.append(f"{module.relative_to(package.parent)}: {count} lines")
    return found


def test_no_package_and_no_file_is_too_large() -> None:
    assert too_large(PACKAGE) == []


@pytest.mark.parametrize("inside", ["", "room"])
def test_a_large_package_and_a_long_file_are_found(tmp_path: Path, inside: str) -> None:
    folder = tmp_path / "package" / inside
    folder.mkdir(parents=True)
    for number in range(MAX_MODULES_OF_A_PACKAGE):
        (folder / f"module_{number}.py").write_text("x = 1\n" * MAX_LINES)
    assert too_large(tmp_path / "package") == []
    (folder / "__init__.py").write_text("x = 1\n" * (MAX_LINES + 1))
    name = folder.relative_to(tmp_path)
    assert too_large(tmp_path / "package") == [
        f"{name}: {MAX_MODULES_OF_A_PACKAGE + 1} modules",
        f"{name / '__init__.py'}: {MAX_LINES + 1} lines",
    ]
