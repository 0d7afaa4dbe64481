"""The curator's command line; the commands about a running service are in `dpnb.remote.commands`."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from dpnb.curator.audit import audit
from dpnb.curator.audit_result import audit_text
from dpnb.curator.kernel import refuse_in_kernel
from dpnb.curator.redaction import redact
from dpnb.curator.verification import verification_text, verify, write_report
from dpnb.errors import CheckError, DpnbError, InvalidValueError
from dpnb.remote.commands import add_commands
from dpnb.remote.deciding import say, token_handed_over
from dpnb.service.access.tokens import ROLES, StoredToken, new_token, now, read_tokens, revoke_tokens
from dpnb.service.configuration.settings import read_settings
from dpnb.session.backup import back_up
from dpnb.session.disclosure.together import SAME_UNIT, SET_BEFOREHAND, write_sum

ABOUT = "The curator's command line. The commands refuse to run in a notebook kernel: their output is not for analysts."

ABOUT_DRAFT = """\
Write the declaration of a table, to be completed by the curator: its column names and storage types, and a placeholder
for everything that must come from knowledge outside the table. The values in the rows are not used, because analysts
may read the file. A summary of the rows is printed here, for the curator alone: do not give it to the analyst, and do
not copy it into the file.

Afterwards complete the file, and run check. The command refuses to run in a notebook kernel, and never overwrites a
file. That protects against mistakes; the real protection is that analysts have no access to the table's file.
"""

ABOUT_STATEMENT = """\
Show what one person has been charged under accounting="individual", with a line for each query: the charge, and a bound
on what the person has lost so far, beside the worst case that the analyst sees. For that person alone: do not show it
to the analyst. Everything except the table comes from the ledger, which is only read; nothing is charged.

The command refuses to run in a notebook kernel. That protects against mistakes; the real protection is that analysts
have no access to the table's file and the ledger.
"""

ABOUT_CHECK = """\
Check a table against its declaration: how many values of each column count, are clamped, are missing or do not count,
and what to do about it. The output is computed from the rows without noise, for the curator alone: do not give it to
the analyst. No ledger is opened, and nothing is charged or written.

The exit status is 0 if nothing has to be fixed, 1 if something should be fixed, and 2 if the declaration or a file
cannot be used. The command refuses to run in a notebook kernel. That protects against mistakes; the real protection is
that analysts have no access to the table's file.
"""

ABOUT_SERVE = """\
Serve the tables of a settings file to analysts, who open them with dpnb.connect(...). Tables, ledgers and noise stay in
this process. The settings name where to listen, the access tokens and the tables, each with its declaration and its
file; examples/curator/curator.toml explains them.

A ledger that lacks its last row, as after it was restored from an older copy, is refused. --restored accepts it, and
records that in the ledger: what was charged after the copy was made is not counted.

SIGTERM and Ctrl-C stop the service after the running requests, a second one at once; no charge is lost. SIGHUP reads
the settings again: tables are added and removed, and an invalid file changes nothing.

Run it as a user whose files analysts cannot read. The command refuses to run in a notebook kernel.
"""

ABOUT_ACCESS = """\
Make, list and revoke the access tokens of a service, in the file that its settings name. A token is shown once; the
file has only its hash. A revoked token is refused from the next request on, also by a running service.
"""

ABOUT_AUDIT = """\
Audit a ledger from its rows alone: that its chain of hashes is intact, that the ceilings add up to at most the budget,
and that every charge was within the budget, the ceilings and the caps that held when it was made, by somebody who could
make it. The ledger is only read.

The exit status is 0 if no problem was found, 1 if one was, and 2 if the ledger cannot be read or was altered.
"""

ABOUT_REPORT = """\
Write the disclosure statement of a ledger: who is protected, what is guaranteed, what was released at which loss, and
what is not covered, with a paragraph for a paper and an entry for the registry of deployments. It is computed from the
ledger alone, which is only read, and has no answers unless --answers asks for them. With --analyst it is about the part
of the budget that is reserved for one analyst, from that analyst's own rows.

Of several ledgers, it states what they guarantee together, as a text, if their units are the same: --same-unit says so.
A copy or an earlier state of a ledger is refused. If a budget was set after answers of another ledger had been given,
the sum is a reading and not a promise that was made beforehand; the times of the rows tell, or --set-beforehand.

The statement for one person under individual accounting is another command, statement.
"""

ABOUT_VERIFY = """\
Verify a disclosure statement, as a page or as JSON: compute it again from the ledger, up to the row that it names, and
compare every field. The chain of hashes of the ledger is verified too. Later rows are no difference.

The exit status is 0 if the statement is what the ledger says, 1 if a field differs, and 2 if one of the files cannot be
read or the ledger was altered.
"""

ABOUT_REDACT = """\
Write a redacted ledger for somebody outside: every plan, cost and decision, without answers, names of people, reasons
and digests of files, which are replaced by salted or keyed digests. Report and verify read it like the whole ledger, so
that its statement can be checked without the answers. Plans, names of mechanisms and the texts of [statement] are shown
as they were written.

The key of the digests is written into the ledger the first time. Nobody who has the redacted ledger alone can find what
was replaced by trying values. Redacting again gives the same rows, with later ones after them.
"""

ABOUT_BACKUP = """\
Copy a ledger, which may be in use, and the secret beside it into a folder that nobody else can read: the folder is made
with mode 0700, the files have mode 0600, whatever the mask of the process is. A copy from before is replaced, unless it
has rows that the ledger lacks. The file of the folder heads, with the last row that is known of the ledger, is not
copied: restored together with the ledger, it would fit an older copy. Nor are snapshots of databases, which have rows
of the table. The chain of hashes is verified first.

The exit status is 0 if the copy was written, and 2 if not.
"""

ABOUT_REFRESH = """\
Read the databases of a table again, into the snapshot of a new version, while the service goes on with the version that
it has. Then the version is written into the declaration, and the new snapshot is checked, as check does. The service
serves it when it is restarted. The output is for the curator alone.

The exit status is 0 if nothing has to be fixed, 1 if something should be fixed before the restart, and 2 if no snapshot
was taken; then nothing was changed. The command refuses to run in a notebook kernel.
"""

SETTINGS = "curator.toml"

SERVICE_LIBRARIES = ("starlette", "uvicorn", "pyrate_limiter", "prometheus_client", "httpx", "pyarrow")

INTERRUPTED = 130
"""The exit code that shells use for an interrupt."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        text, code = options.run(options)
    except DpnbError as error:
        sys.stderr.write(f"dpnb: {error}\n")
        return int(options.refused)
    except KeyboardInterrupt:
        sys.stderr.write("dpnb: interrupted; nothing was written\n")
        return INTERRUPTED
    say(text)
    return int(code)


def _statement(options: argparse.Namespace) -> tuple[str, int]:
    # Only now, here and in the commands below that read tables: pandas takes a third of the time of all others.
    from dpnb.curator.personal_statement import statement
    from dpnb.curator.personal_statement_text import statement_text

    result = statement(
        options.ledger, options.table, options.unit, version=options.version, unit_type=options.unit_type
    )
    return statement_text(result), 0


def _check(options: argparse.Namespace) -> tuple[str, int]:
    from dpnb.curator.check import check
    from dpnb.curator.check_text import check_text

    result = check(options.declaration, options.table)
    return check_text(result), 0 if result.fine else 1


def _draft(options: argparse.Namespace) -> tuple[str, int]:
    from dpnb.curator.check_text import draft_text
    from dpnb.curator.draft import draft

    return draft_text(draft(options.table, options.output)), 0


def _audit(options: argparse.Namespace) -> tuple[str, int]:
    result = audit(options.ledger)
    return audit_text(result), 0 if result.is_fine else 1


def _report(options: argparse.Namespace) -> tuple[str, int]:
    if len(options.ledger) == 1:
        if options.same_unit or options.set_beforehand:
            raise InvalidValueError(
                f"report: of one ledger has no {SAME_UNIT} or {SET_BEFOREHAND}; leave them out, or give several ledgers"
            )
        return write_report(options.ledger[0], options.analyst, options.format, options.output, answers=options.answers)
    if options.analyst or options.format or options.answers:
        raise InvalidValueError(
            "report: of several ledgers has no --analyst, --format or --answers; leave them out, or give one ledger"
        )
    words = {"same_unit": options.same_unit, "set_beforehand": options.set_beforehand}
    return write_sum(options.ledger, options.output, **words)


def _verify(options: argparse.Namespace) -> tuple[str, int]:
    result = verify(options.report, options.ledger)
    return verification_text(result), 0 if result.is_fine else 1


def _redact(options: argparse.Namespace) -> tuple[str, int]:
    return redact(options.ledger, options.output), 0


def _backup(options: argparse.Namespace) -> tuple[str, int]:
    return back_up(options.ledger, options.folder), 0


def _refresh(options: argparse.Namespace) -> tuple[str, int]:
    from dpnb.curator.check import FROM_ROWS, check
    from dpnb.curator.check_text import check_text
    from dpnb.service.database_snapshots import take_next

    refuse_in_kernel("refresh", FROM_ROWS, CheckError)
    taken = take_next(options.settings, options.table, options.version)
    result = check(taken.declaration, taken.files)
    return f"{taken.words}\n{check_text(result)}", 0 if result.fine else 1


def _serve(options: argparse.Namespace) -> tuple[str, int]:
    if not options.check:
        refuse_in_kernel("serve", "analysts can read the memory of what they start", CheckError)
    missing = [name for name in SERVICE_LIBRARIES if importlib.util.find_spec(name) is None]
    if missing:
        raise InvalidValueError(
            f'serve: needs {" and ".join(missing)}, which are not installed; pip install "dpnb[serve]"'
        )
    from dpnb.service.server import check_service, serve  # only now, since the extra may be missing

    path = Path(options.settings)
    if options.check:
        return check_service(path), 0
    code = serve(
        path,
        lambda url: _say(f"dpnb: serving at {url}; Ctrl-C stops"),
        lambda url: _say(f"dpnb: the curator's page is at {url}; log in with a token of a curator"),
        restored=options.restored,
    )
    return "dpnb: stopped", code


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _token(options: argparse.Namespace) -> tuple[str, int]:
    refuse_in_kernel("token", "a token in a notebook is read by everyone who gets the notebook", CheckError)
    file, name, time = read_settings(options.settings).tokens, getattr(options, "name", ""), now()
    if options.action == "list":
        lines = [_token_line(one, time) for one in read_tokens(file)]
        return "\n".join(lines) or "no tokens; make one with python -m dpnb token new NAME", 0
    if options.action == "revoke":
        number = revoke_tokens(file, name)
        return f"revoked {number} {'token' if number == 1 else 'tokens'} of {name}; what was released stays recorded", 0
    token = new_token(file, name, options.expires, options.role)
    valid = sum(one.name == name and one.is_valid(time) for one in read_tokens(file))
    if valid > 1:
        sys.stderr.write(f"{name} has {valid} valid tokens now; python -m dpnb token revoke {name} takes all back.\n")
    sys.stderr.write(token_handed_over(name))
    return token, 0


def _token_line(one: StoredToken, time: datetime) -> str:
    """A token, without its hash."""
    if one.revoked is not None:
        state = f"revoked {one.revoked}"
    elif one.expires is not None:
        state = f"{'valid until' if one.is_valid(time) else 'expired'} {one.expires}"
    else:
        state = "valid until it is revoked"
    return f"{one.name}, {one.role}: {state}; made {one.created}"


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

    one = command("statement", _statement, 1, ABOUT_STATEMENT, "show what one person has been charged, for that person")
    one.add_argument("ledger", metavar="LEDGER", help="the session's ledger, <name>.dpnb")
    one.add_argument(
        "--table",
        action="append",
        required=True,
        metavar="FILE",
        help="the file of the session's table; NAME=FILE for each of several tables",
    )
    one.add_argument(
        "--unit",
        required=True,
        metavar="ID",
        help="the person's value in the privacy unit's column; the row number, from 0, if each row is a unit",
    )
    one.add_argument("--version", metavar="V", help="version of the table in the file, if the ledger has several")
    one.add_argument("--unit-type", choices=("text", "number", "time"), help="type of ID, if it is ambiguous")

    one = command("check", _check, 2, ABOUT_CHECK, "check a table against its declaration")
    one.add_argument("declaration", metavar="DECLARATION", help="the TOML file that Session.from_toml opens")
    one.add_argument("table", nargs="+", metavar="TABLE", help="the table's file; NAME=FILE for each of several tables")

    one = command("draft", _draft, 2, ABOUT_DRAFT, "write the declaration of a table, to be completed")
    one.add_argument(
        "table",
        nargs="+",
        metavar="TABLE",
        help="the table: a file such as visits.csv, or visits.xlsx#SHEET; NAME=FILE for several",
    )
    one.add_argument("--output", metavar="FILE", help="the file to write; by default <table>.toml in this folder")

    one = command("audit", _audit, 2, ABOUT_AUDIT, "audit a ledger: whether every charge was within the budgets")
    one.add_argument("ledger", metavar="LEDGER", help="the session's ledger, <name>.dpnb")

    one = command("report", _report, 2, ABOUT_REPORT, "write the disclosure statement of a ledger, to hand over")
    one.add_argument("ledger", nargs="+", metavar="LEDGER", help="the session's ledger, <name>.dpnb; or several")
    one.add_argument("--analyst", metavar="NAME", help="an analyst for whom a part of the budget is reserved")
    one.add_argument("--format", choices=("html", "json"), help="by default that of the file's name, or html")
    one.add_argument("--output", metavar="FILE", help="the file to write; by default the statement is printed")
    one.add_argument("--answers", action="store_true", help="include the released answers")
    one.add_argument(
        SAME_UNIT, action="store_true", help="of several ledgers: the same value names the same unit in all of them"
    )
    one.add_argument(
        SET_BEFOREHAND,
        action="store_true",
        help="of several ledgers: all budgets were set before any of them gave an answer, although no row shows it",
    )

    one = command("verify", _verify, 2, ABOUT_VERIFY, "verify a disclosure statement against its ledger")
    one.add_argument("report", metavar="STATEMENT", help="the file of the statement, .html or .json")
    one.add_argument("ledger", metavar="LEDGER", help="the session's ledger, <name>.dpnb")

    one = command("redact", _redact, 2, ABOUT_REDACT, "write a ledger without answers and names, to verify outside")
    one.add_argument("ledger", metavar="LEDGER", help="the session's ledger, <name>.dpnb")
    one.add_argument("output", metavar="OUTPUT", help="the file to write, which must not exist yet")

    one = command("backup", _backup, 2, ABOUT_BACKUP, "copy a ledger and its secret into a private folder")
    one.add_argument("ledger", metavar="LEDGER", help="the session's ledger, <name>.dpnb")
    one.add_argument("folder", metavar="FOLDER", help="the folder of the copy, on another disk")

    one = command("serve", _serve, 2, ABOUT_SERVE, "serve tables to analysts, who connect from their notebooks")
    one.add_argument("settings", nargs="?", default=SETTINGS, metavar="SETTINGS", help=f"by default {SETTINGS}")
    one.add_argument("--check", action="store_true", help="only check the settings and declarations, and open nothing")
    one.add_argument(
        "--restored",
        action="store_true",
        help="accept a ledger that lacks its last row, such as one restored from a copy, and record that in it",
    )

    one = command("refresh", _refresh, 2, ABOUT_REFRESH, "read a table's databases again, for a new version")
    one.add_argument("settings", metavar="SETTINGS", help="the settings of the service, curator.toml")
    one.add_argument("table", nargs="?", metavar="TABLE", help="name of the table, if there are several")
    one.add_argument("--version", required=True, metavar="NEW", help="the version that the declaration gets")

    add_commands(command)

    one = command("token", _token, 2, ABOUT_ACCESS, "make, list and revoke the access tokens of a service")
    actions = one.add_subparsers(required=True, dest="action", metavar="action")
    for action, short in (("new", "make a token and show it"), ("list", "list them"), ("revoke", "revoke them")):
        one = actions.add_parser(action, help=short, allow_abbrev=False)
        if action != "list":
            one.add_argument("name", metavar="NAME", help="name of the person, which the ledger records")
        if action == "new":
            one.add_argument("--expires", metavar="WHEN", help="a date, or a period such as 12h, 30d or 8w")
            one.add_argument(
                "--role", choices=ROLES, default="analyst", help="what the person may do; an analyst by default"
            )
        one.add_argument("--settings", default=SETTINGS, metavar="SETTINGS", help=f"by default {SETTINGS}")
    return parser


if __name__ == "__main__":
    sys.exit(main())
