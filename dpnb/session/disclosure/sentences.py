"""The sections of a statement in plain language; figures are rounded as in the rest of it."""

from __future__ import annotations

from collections import Counter

from dpnb._core.history.words import RESTORED
from dpnb._core.ledger_metadata import NO_BUDGET
from dpnb.accounting.exact import display_up, percent_up
from dpnb.results.disclosure.parts import Guarantee, Section
from dpnb.results.disclosure.report import Report
from dpnb.session.disclosure.figures import outcome_with_unit

STATED = "What the curator states"
"""The section in the curator's own words."""

OUTCOME = 0.1
"""The probability of the outcome in the example."""

KINDS = {
    "release": ("release of a statistic", "releases of statistics"),
    "comparison": ("comparison with a threshold", "comparisons with a threshold"),
    "selection": ("selection of the largest groups", "selections of the largest groups"),
    "launch": ("launch of an interactive mechanism", "launches of interactive mechanisms"),
}
EXHAUSTED = {
    "skip": "A unit that cannot pay for a request is left out of it, and may take part in a cheaper one.",
    "drop": "A unit that cannot pay for a request is left out of it and of all later ones.",
    "clip": "The contribution of a unit that cannot pay for a request is scaled down to what it can pay for.",
}
MEASURE = " It adds up the squares of the mu of the requests, in the measure of Gaussian differential privacy (GDP)."
NOT_COVERED = (
    "What is known about people in general. The answers may show that something holds for most people, and this may "
    "then be concluded about a person whether or not that person is in the table.",
    "Time. How long an answer took may depend on the rows of the table.",
    "The curator. Those who have the table, the ledger or the computer that holds them can see more than the answers; "
    "protection against that is a matter of access control and law, and no part of the guarantee.",
    "The collection of the data. How they were collected, sent and stored before the table was opened.",
    "Other releases about the same people. What is disclosed by other ledgers, by published tables, and by versions of "
    "the table under another ledger, adds to what this ledger discloses.",
    "What the curator declared. Bounds, categories, limits and public numbers, which are listed below, are public. If "
    "they were taken from the rows of this table, the guarantee does not cover that.",
    "Legal judgement. Whether answers are personal data, and whether they may be published, is for those to decide who "
    "are responsible for the data; this statement has facts for that.",
    "Accuracy. Errors and noise intervals account for the noise; population intervals also for the sampling of the "
    "units. Neither accounts for values and rows beyond the declared bounds and limits. Where a table stays in a "
    "database and changes there, each answer is about the rows at its time, and the guarantee about all that a person "
    "had there.",
)


def is_test(notice: str | None) -> bool:
    """Whether a notice says that the answers are not real or not private."""
    return notice is not None and notice != NO_BUDGET


def sections_of(report: Report) -> tuple[Section, ...]:
    """The statement in sentences."""
    return (
        *_stated(report),
        Section("Who is protected", _protected(report)),
        Section("What is guaranteed", _guaranteed(report)),
        Section("What has been released", _released(report)),
        Section("How the budget is divided", _divided(report)),
        Section("What is not covered", (*NOT_COVERED, _sampled(report), _where(report), *_missing(report))),
        Section("How to check this statement", _check(report)),
    )


def _stated(report: Report) -> tuple[Section, ...]:
    """What the curator states: a paragraph of name and text for each, and one that says since when."""
    stated = report.stated
    if stated is None or not stated.text.facts:
        return ()
    facts = [f"{name}: {text}" for name, text in stated.text.facts]
    days = list(dict.fromkeys(time[:10] for time in stated.times))
    earlier = len(stated.times) - 1
    since = f"The curator has stated this in these words since {days[-1]}"
    if earlier:
        since += (
            f"; what was stated before, first on {days[0]}, was replaced {earlier:,} time{'s' if earlier > 1 else ''}"
        )
    return (Section(STATED, (*facts, f"{since}. The program that wrote this statement cannot check it.")),)


def _protected(report: Report) -> tuple[str, ...]:
    unit = report.unit
    if all(table.unit_column is None for table in report.tables):
        words = (
            f"Each single row of the table is protected: the privacy unit is one row{_unit_in_words(report)}. Where a "
            "person has several rows, the guarantee is about each of these rows, and weaker for the person as a whole."
        )
    else:
        column = report.tables[0].unit_column
        words = (
            f"The privacy unit is {unit.words}: all rows with the same value in the column {column} are protected "
            f"together{_unit_in_words(report)}. Whatever a unit has beyond the limits in brackets has no effect on any "
            "answer."
        )
    if unit.public_units is None:
        number = "The number of units is protected too."
    else:
        number = f"The curator declared the number of units, {unit.public_units:,}, to be public."
    return (
        words,
        f"{unit.neighbours} The guarantee compares the answers from neighbouring tables, so it is about whether a unit "
        f"is in the table at all, and therefore about everything that its rows say. {number}",
        "The guarantee is about one unit at a time. What the answers say about several units together, such as the "
        "members of a family, is limited less: for two units epsilon or mu is twice as large, and delta at least that.",
    )


def _unit_in_words(report: Report) -> str:
    """What a unit is, where the curator has a word for it."""
    label = None if report.stated is None else report.stated.unit_label
    return "" if label is None else f", and a unit is one {label} wherever this statement says unit"


def _guaranteed(report: Report) -> tuple[str, ...]:
    guarantee, filter_ = report.guarantee, report.filter
    found = [guarantee.words]
    if is_test(report.notice):
        found.insert(0, f"{report.notice}. So nothing below is true of the answers of this session.")
    if guarantee.implied is not None:
        found.append(
            f"To compare it with other guarantees, at the delta {display_up(guarantee.implied.delta)}, which was fixed "
            "when the budget was: it implies that each probability changes by a factor of at most e to the "
            f"{display_up(guarantee.implied.epsilon)}, plus at most that delta."
        )
    example = _example(guarantee)
    if example is not None:
        found.append(example)
    if guarantee.on_exhausted is not None:
        found.append(EXHAUSTED[guarantee.on_exhausted])
    if guarantee.fixed_beforehand:
        found.append(
            "The guarantee was fixed when the ledger was created, before the first answer, and cannot be changed for "
            "this ledger. Each request is charged before anything is computed from the table for it, and "
            f"{_beyond(guarantee)}. The rule is the {filter_.label} filter ({filter_.theorem})."
            f"{MEASURE if guarantee.mu is not None else ''}"
        )
    found.append(
        "The guarantee holds against anyone who sees the answers, whatever else they know, even all other rows of the "
        "table, whatever they compute from the answers, and however each request was chosen after the earlier answers."
        if guarantee.fixed_beforehand
        else "No (epsilon, delta) was fixed beforehand. The figures below are readings of what was charged, which hold "
        "in the way that each of them says, and are no promise about further requests."
    )
    return tuple(found)


def _example(guarantee: Guarantee) -> str | None:
    """What the guarantee says of one outcome; None if that is nothing."""
    probability = outcome_with_unit(guarantee, OUTCOME)
    if probability is None:
        return None
    return (
        f"For example, an outcome that has a probability of {OUTCOME:.0%} when a unit is not in the table has one of "
        f"at most {percent_up(probability)} when it is. This is computed from {_enforced(guarantee)}, and in the same "
        "way in the statement about a part of a budget, so that both can be compared."
    )


def _enforced(guarantee: Guarantee) -> str:
    """The guarantee from which the example is computed; see `outcome_with_unit`."""
    if guarantee.mu is None:
        return "the epsilon and delta of the guarantee"
    reserve = f" and the reserve of epsilon {display_up(guarantee.pure_epsilon)}" if guarantee.pure_epsilon else ""
    return f"the mu that the filter enforces, {display_up(guarantee.mu)}{reserve}"


def _beyond(guarantee: Guarantee) -> str:
    if guarantee.accounting == "individual":
        return "no unit is charged more than the budget"
    return "a request that would exceed the budget is refused"


def _released(report: Report) -> tuple[str, ...]:
    counts = Counter(one.kind for one in report.releases)
    whose = "" if report.subject.analyst is None else f" of {report.subject.analyst}"
    found = []
    if counts:
        kinds = ", ".join(f"{n:,} {KINDS.get(kind, (kind, kind))[n != 1]}" for kind, n in counts.items())
        total = sum(counts.values())
        first, last = report.releases[0].time[:10], report.releases[-1].time[:10]
        when = f"on {first}" if first == last else f"between {first} and {last}"
        found.append(
            f"The ledger has {total:,} charged request{'s' if total != 1 else ''}{whose}, made {when}: {kinds}. Each "
            "of them used up a part of the budget, and is listed below with what it cost. A request that is repeated "
            "returns the recorded answer, costs nothing and is not listed again."
        )
    else:
        found.append(f"Nothing has been released: the ledger has no charged request{whose}.")
    if report.filter.spent_share is not None:
        found.append(
            f"Charged so far: {report.filter.spent_share} of the budget ({report.filter.spent}); "
            f"{report.filter.left_share} is left. What is guaranteed is the whole budget, also while only a part of it "
            "is charged: how much was charged may depend on the answers, and was not fixed beforehand."
        )
    else:
        found.append(f"Charged so far: {report.filter.spent}.")
    if len(report.table_versions) > 1:
        found.append(
            f"Several versions of the table were used ({', '.join(report.table_versions)}). The guarantee is about all "
            "of them together: their losses are added up. No answer combines two of them."
        )
        others = [one.version for one in report.versions if one.tables is not None]
        if others:
            found.append(
                f"{'Version' if len(others) == 1 else 'Versions'} {', '.join(others)} had other columns or row limits, "
                "which are listed below. The cost of each request follows from those of its own version."
            )
    readings = report.readings
    if readings.participation is not None:
        found.append(readings.participation)
    if readings.time_uniform is not None:
        found.append(
            f"What has been lost so far, at any moment: {readings.time_uniform} The privacy loss is the logarithm of "
            "the factor by which the presence of one unit changed the probability of these very answers. This also "
            "holds at a moment that was chosen because of an answer."
        )
    elif readings.paused is not None:
        found.append(readings.paused)
    found.append(
        f"What has been charged so far, against a budget: {readings.accumulator} This is no bound at any moment: it "
        "says nothing about a moment, or a budget, that was chosen because of an answer."
    )
    return tuple(found)


def _divided(report: Report) -> tuple[str, ...]:
    division = report.division
    if division.mode == "not divided":
        return division.assumptions
    if report.subject.analyst is not None:
        first = f"This statement is about the part of the budget that is reserved for {report.subject.analyst}."
    elif division.mode == "reserved":
        first = "The budget is divided, and a part is reserved for each analyst."
    else:
        first = "Several analysts share the budget."
    return (first, *division.assumptions)


def _sampled(report: Report) -> str:
    drawn = report.unit.sampled
    words = {
        "population": "a random sample of a large population",
        "census": "the whole population, so that population intervals are noise intervals",
    }.get(drawn, f"a random sample of a fraction {drawn} of the population")
    return f"The sampling of the units. The curator declared that they are {words}. No row can show that this is true."


def _where(report: Report) -> str:
    """What a session protects against, by where the table is."""
    total = len(report.releases)
    # The rows of a reserved part do not repeat its name; only a service charges it.
    local = 0 if report.subject.analyst is not None else sum(one.analyst is None for one in report.releases)
    notebook = (
        "made in a process that also held the table. There the software protects against mistakes, and not against an "
        "analyst who reads the table in another way"
    )
    service = (
        "made through a service that holds the table in a process of the curator's. The guarantee then also holds "
        "against an analyst who runs other programs, as far as the computer of the service is secure"
    )
    if not total:
        return "Access to the table itself. What an analyst could see in another way than through answers."
    if local == total:
        return f"Access to the table itself. All requests were {notebook}."
    if not local:
        return f"Access to the table itself. All requests were {service}."
    return f"Access to the table itself. {local:,} of the requests were {notebook}. The others were {service}."


def _missing(report: Report) -> tuple[str, ...]:
    """What a ledger that was accepted as an older copy may lack."""
    rows = [str(one.row) for one in report.acts if one.words.startswith(RESTORED)]
    if not rows:
        return ()
    return (
        f"Charges that the ledger lacks. It was accepted as one that may be an older copy (row {', '.join(rows)}): "
        "what was released after that copy was made is not in it, and adds to what is stated here.",
    )


def _check(report: Report) -> tuple[str, ...]:
    source = report.source
    rows = f"{source.rows:,} row{'s' if source.rows != 1 else ''}"
    of = {
        "ledger": "of the ledger",
        "redacted": "of the redacted ledger",
        "copy": "of the ledger that the analyst may see",
    }[source.rows_of]
    redacted = (
        "The redacted ledger has all rows of the curator's, without answers. Names of people, reasons and digests of "
        "files are replaced by digests with a key that only the curator has; the same name has the same digest. An "
        "answer is replaced by its salted digest, so that the curator could prove later which one it was."
    )
    return (
        *((redacted,) if source.rows_of == "redacted" else ()),
        f"Everything here, apart from the time and the program that wrote it, follows from {rows} {of}; the hash "
        f"{source.head} depends on every one of them, and on the declaration of the table. With the ledger, "
        "this command computes the statement again: python -m dpnb verify STATEMENT LEDGER",
        "This shows that the statement is what the ledger says, up to that row. It cannot show that the ledger is "
        "complete, that nothing was released without it, or that the declaration suits the table: the curator answers "
        "for that.",
    )
