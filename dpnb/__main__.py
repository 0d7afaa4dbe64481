"""The curator's command line: ``python -m dpnb statement``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from dpnb.errors import DpnbError
from dpnb.session.statement import statement
from dpnb.session.statement_words import statement_text

ABOUT = """\
What one person has spent, under accounting="individual", with a line for each question. For that person alone: do not
show it to the analyst. Everything but the table comes from the ledger, which is only read; nothing is charged.

It refuses to run inside a notebook's kernel. That protects against mistakes; the real protection is that analysts
cannot read the table's file and the ledger.
"""


INTERRUPTED = 130
"""The exit code by which shells know an interrupt."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, and give its exit code."""
    given = _parser().parse_args(arguments)
    try:
        made = statement(given.ledger, given.table, given.unit, version=given.version, unit_type=given.unit_type)
        text = statement_text(made)
    except DpnbError as error:
        sys.stderr.write(f"dpnb: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("dpnb: interrupted; nothing was written\n")
        return INTERRUPTED
    coding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(coding, "backslashreplace").decode(coding) + "\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m dpnb", description="The curator's command line.")
    commands = parser.add_subparsers(required=True, metavar="command")
    one = commands.add_parser(
        "statement",
        help="what one person has spent, for that person alone",
        description=ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
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
    return parser


if __name__ == "__main__":
    sys.exit(main())
