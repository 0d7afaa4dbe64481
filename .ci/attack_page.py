"""Write the rows of ``docs/attacks.md``: one for each file of ``tests/attacks/``, from the fields of its docstring.

The docstring of an attack is its title, then a paragraph of fields: ``Kind``, ``Fault``, ``Reported`` and ``dpnb``.
``Reported`` is a list separated by semicolons, each with a remark in parentheses if that is needed: an issue as
``owner/name#number``, a paper as ``arXiv:number``, an address, or words.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests" / "attacks"
PAGE = ROOT / "docs" / "attacks.md"
BEGIN, END = "<!-- rows: python .ci/attack_page.py -->\n", "<!-- end of rows -->\n"
SOURCE = "https://github.com/dpnb/dpnb/blob/main/tests/attacks"

KINDS = {
    "sums": "Sums and rounding",
    "values": "Values, types and groups",
    "sensitivity": "Sensitivity",
    "noise": "Noise and mechanisms",
    "budget": "Budget",
    "beyond": "Beyond the answers",
}
FIELDS = ("Kind", "Fault", "Reported", "dpnb")
REQUIRED = ("attack", "test_dpnb_resists", "test_the_control_is_caught")

ISSUE = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+)#(?P<number>\d+)")
PAPER = re.compile(r"arXiv:(?P<number>\d{4}\.\d{4,5})")
ADDRESS = re.compile(r"https://[^\s()]+")


class Attack(NamedTuple):
    """What the docstring of a file says."""

    file: str
    title: str
    kind: str
    fault: str
    reported: tuple[str, ...]
    answer: str

    @property
    def row(self) -> str:
        """The row of the page."""
        reports = "; ".join(map(linked, self.reported))
        return f"| [{self.title}]({SOURCE}/{self.file}) | {self.fault} | {reports} | {self.answer} |"


def read(path: Path) -> Attack:
    """The fields of a file.

    Raises
    ------
    ValueError
        A field or a function is missing, or a test does not call the attack.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    title, _, rest = (ast.get_docstring(tree) or "").partition("\n\n")
    paragraph = rest.partition("\n\n")[0]
    parts = re.split(rf"^({'|'.join(FIELDS)}): ", paragraph, flags=re.MULTILINE)[1:]
    fields = {name: " ".join(text.split()) for name, text in zip(parts[::2], parts[1::2], strict=True)}
    if tuple(fields) != FIELDS or fields["Kind"] not in KINDS or "|" in paragraph:
        raise ValueError(
            f"{path.name}: its docstring must have a title, and a paragraph with {', '.join(FIELDS)} in this order, "
            f"without the character |; Kind is one of {', '.join(KINDS)}"
        )
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    calls = {name: {node.id for node in ast.walk(functions[name]) if isinstance(node, ast.Name)} for name in functions}
    wrong = [
        name for name in REQUIRED if name not in functions or (name != REQUIRED[0] and "attack" not in calls[name])
    ]
    if wrong:
        raise ValueError(
            f"{path.name}: needs {', '.join(REQUIRED)}, of which both tests call the attack; see {wrong[0]}"
        )
    reported = tuple(report.strip() for report in fields["Reported"].split(";"))
    return Attack(path.name, title.removesuffix("."), fields["Kind"], fields["Fault"], reported, fields["dpnb"])


def linked(report: str) -> str:
    """A report with the address of its issue or paper."""
    report = ISSUE.sub(r"[\g<repository>#\g<number>](https://github.com/\g<repository>/issues/\g<number>)", report)
    report = PAPER.sub(r"[arXiv:\g<number>](https://arxiv.org/abs/\g<number>)", report)
    address = ADDRESS.match(report)
    if not address:
        return report
    remark = report[address.end() :].strip().removeprefix("(").removesuffix(")")
    return f"[{remark or address[0]}]({address[0]})"


def attacks() -> list[Attack]:
    """All attacks, by kind."""
    found = [read(path) for path in sorted(FOLDER.glob("test_*.py"))]
    return sorted(found, key=lambda attack: list(KINDS).index(attack.kind))


def rows() -> str:
    """All rows, with the heading of each kind."""
    found = attacks()
    parts = []
    for kind, heading in KINDS.items():
        table = [attack.row for attack in found if attack.kind == kind]
        parts.append(
            "\n".join([f"### {heading}\n", "| Attack | Fault | Reported | dpnb |", "|---|---|---|---|", *table])
        )
    return "\n\n".join(parts) + "\n"


def written(page: str) -> str:
    """The page with the rows of today."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{rows()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
