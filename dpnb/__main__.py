"""The curator's command line: ``python -m dpnb statement`` and ``python -m dpnb check``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from dpnb.curator.check import check
from dpnb.curator.check_text import check_text
from dpnb.curator.statement import statement
from dpnb.curator.statement_text import statement_text
from dpnb.errors import DpnbError

ABOUT = "The curator's command line. Neither command runs in a notebook's kernel: what they show is not for analysts."

ABOUT_STATEMENT = """\
What one person has spent, under accounting="individual", with a line for each question. For that person alone: do not
show it to the analyst. Everything but the table comes from the ledger, which is only read; nothing is charged.

It refuses to run inside a notebook's kernel. That protects against mistakes; the real protection is that analysts
cannot read the table's file and the ledger.
"""

ABOUT_CHECK = """\
Whether a table holds what its declaration says: how many values of each column count, are clamped, are missing, or do
not count, and what to do about it. Computed from the rows without noise, for the curator alone: do not give it to the
analyst. No ledger is opened, and nothing is charged or written.

The exit status is 0 if all is well, 1 if something should be fixed, and 2 if the declaration or a file cannot be used.
It refuses to run inside a notebook's kernel. That protects against mistakes; the real protection is that analysts
cannot read the table's file.
"""


INTERRUPTED = 130
"""The exit code by which shells know an interrupt."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, and give its exit code."""
    given = _parser().parse_args(arguments)
    try:
        text, code = given.run(given)
    except DpnbError as error:
        sys.stderr.write(f"dpnb: {error}\n")
        return int(given.refused)
    except KeyboardInterrupt:
        sys.stderr.write("dpnb: interrupted; nothing was written\n")
        return INTERRUPTED
    coding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(coding, "backslashreplace").decode(coding) + "\n")
    return int(code)


def _statement(given: argparse.Namespace) -> tuple[str, int]:
    made = statement(given.ledger, given.table, given.unit, version=given.version, unit_type=given.unit_type)
    return statement_text(made), 0


def _check(given: argparse.Namespace) -> tuple[str, int]:
    made = check(given.declaration, given.table)
    return check_text(made), 0 if made.fine else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m dpnb", description=ABOUT)
    commands = parser.add_subparsers(required=True, metavar="command")

    def command(
        name: str, run: Callable[[argparse.Namespace], tuple[str, int]], refused: int, about: str, short: str
    ) -> argparse.ArgumentParser:
        one = commands.add_parser(
            name,
            help=short,
            description=about,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        one.set_defaults(run=run, refused=refused)
        return one

    one = command("statement", _statement, 1, ABOUT_STATEMENT, "what one person has spent, for that person alone")
    one.add_argument("ledger", metavar="LEDGER", help="the session's ledger, <name>.dpnb")
    one.add_argument(
        "--table",
        action="append",
        required=True,
        metavar="FILE",
        help="the table, .csv or .parquet, as the session was given it; NAME=FILE for each of several tables",
    )
    one.add_argument(
        "--unit",
        required=True,
        metavar="ID",
        help="what names the person in the privacy unit's column; the row's place, from 0, where rows are units",
    )
    one.add_argument("--version", metavar="V", help="of the table in the file, where the ledger names several")
    one.add_argument("--unit-type", choices=("text", "number", "time"), help="of ID, where it could be several")

    two = command("check", _check, 2, ABOUT_CHECK, "whether a table holds what its declaration says")
    two.add_argument("declaration", metavar="DECLARATION", help="the TOML file that Session.from_toml opens")
    two.add_argument(
        "table", nargs="+", metavar="TABLE", help="the table, .csv or .parquet; NAME=FILE for each of several tables"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
