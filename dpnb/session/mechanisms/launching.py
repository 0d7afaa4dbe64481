"""Launching interactive mechanisms: named, charged before anything is read, found again under the same name."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dpnb.accounting.budget import Budget
from dpnb.accounting.exact import Number, decimal_sqrt_down, exact, to_text
from dpnb.accounting.interleaving import why_not_interleaved, why_not_parallel
from dpnb.accounting.losses import GDP, Loss
from dpnb.accounting.promise import promise
from dpnb.answer.faces import cost_up, floor_percent
from dpnb.copying import NotCopyable
from dpnb.errors import BudgetExceeded, InvalidValueError, PlanError, RequestError
from dpnb.ledger import branch_of, launch_of
from dpnb.ledger.charge import digest
from dpnb.mechanisms.randomness import Source
from dpnb.query.aggregations import Discovery, Model, view_from_json, view_to_json
from dpnb.query.expressions.nodes import Column
from dpnb.query.expressions.words import words
from dpnb.query.frame.expressed import Expressed
from dpnb.query.part import part_keys, parts_of_unit, parts_to_json
from dpnb.query.plan import Group, Plan, question_words
from dpnb.query.plan import Source as Rows
from dpnb.query.regression import model_words
from dpnb.query.schema import Key, encodable
from dpnb.query.unit import limits_in_force
from dpnb.session import live
from dpnb.session.account import settings_of
from dpnb.session.arguments import checked_amount
from dpnb.session.mechanisms.descent import Descent
from dpnb.session.mechanisms.descent_terms import DescentTerms
from dpnb.session.mechanisms.mechanism import Mechanism, own_question
from dpnb.session.mechanisms.partition import Partition
from dpnb.session.mechanisms.reduction import NoiseReduction
from dpnb.session.mechanisms.scan import Scan, discard, drawn, scan_terms, terms_from
from dpnb.session.mechanisms.sub_session import NOT_BACK, Sub, budget_from, charged_for, filter_for, one_way
from dpnb.session.plain_words import Explanation
from dpnb.session.questions import Questions
from dpnb.session.releases import Releases
from dpnb.session.target import target_from
from dpnb.session.tree import ABOVE_THRESHOLD, GRADIENT_DESCENT, NOISE_REDUCTION, PARTITION, SUB_SESSION, Launch

if TYPE_CHECKING:
    from dpnb.session.query import Query
    from dpnb.session.session import Part, SubSession

LONGEST_NAME = 100
FIRST_SHARE = exact(0.01)
"""Of what is left, that a noise reduction looks at first."""


class Mechanisms(NotCopyable):
    """What is launched in one session.

    Parameters
    ----------
    questions : Questions
    releases : Releases
    source : Source
        Of noise.
    sub_session, part : callable
        Make the sessions inside.
    words : str
        Which part this is, if it is one.
    """

    def __init__(
        self,
        questions: Questions,
        releases: Releases,
        source: Source,
        sub_session: Callable[[Launch, Sub], SubSession],
        part: Callable[[Launch, Key], Part],
        words: str = "",
    ) -> None:
        self.words = words
        self._questions, self._releases, self._source = questions, releases, source
        self._account = questions.account
        self._sub_session, self._part = sub_session, part
        self._made: dict[int, Mechanism] = {}
        self._sub_sessions: dict[int, SubSession] = {}

    # --- finding ------------------------------------------------------------------------------------------------

    def all(self) -> Launched:
        """By name; of one name the newest."""
        return Launched((launch.name, self._attached(launch)) for launch in self._here())

    def told(self) -> list[dict[str, Any]]:
        """What the panel is told, also of what was launched in parts of the table."""
        told = []
        for launch in self._account.tree.launched_in(self._account.trunk):
            inside = self._at(launch.branch)
            where = "" if inside is self else f"{inside.words}: "
            one = inside._of(launch).told()
            told.append({**one, "name": where + one["name"]})
        return told

    def _at(self, branch: str) -> Mechanisms:
        """Those of this session, or of a part that is reached from it."""
        step = launch_of(branch)
        if branch == self._account.trunk or step is None:
            return self
        outer = self._account.tree.sync()[step[0]]
        partition = self._at(outer.branch)._of(outer)
        key = next(key for key in partition if branch_of(outer.id, (key,)) == branch)  # type: ignore[attr-defined]
        part: Part = partition[key]  # type: ignore[index]
        return part._mechanisms

    def _here(self) -> list[Launch]:
        launches = self._account.tree.sync().values()
        return [launch for launch in launches if launch.branch == self._account.trunk]

    def _attached(self, launch: Launch) -> Any:
        """As the analyst holds it."""
        made = self._of(launch)
        if not isinstance(made, Sub):
            return made
        if launch.id not in self._sub_sessions:
            self._sub_sessions[launch.id] = self._sub_session(launch, made)
        return self._sub_sessions[launch.id]

    def _of(self, launch: Launch) -> Mechanism:
        if launch.id not in self._made:
            self._made[launch.id] = self._make(launch)
        return self._made[launch.id]

    def _make(self, launch: Launch) -> Mechanism:
        if launch.kind == SUB_SESSION:
            return Sub(launch, self._releases, self._account.of_sub_session(launch))
        if launch.kind == PARTITION:
            keys = tuple(launch.about["keys"])
            return Partition(launch, self._releases, keys, self._part)
        if launch.kind == NOISE_REDUCTION:
            asked = launch.about["asked"]
            plan, view = Plan.from_json(asked["plan"]), view_from_json(asked["view"])
            said = question_words(plan, view)
            return NoiseReduction(
                launch,
                self._releases,
                said,
                lambda squared: self._releases.release(
                    plan, view, target_from(rho=squared / 2), inside=branch_of(launch.id), combined=True
                ),
            )
        if launch.kind == GRADIENT_DESCENT:
            return Descent(launch, self._releases, self._questions.tables)
        return Scan(launch, self._questions, self._releases)

    # --- launching ----------------------------------------------------------------------------------------------

    def _launch(self, kind: str, name: object, asked: Mapping[str, Any], loss: Loss, **more: Any) -> Launch:
        """The launch of that name, written now if there is none; durable and charged when this returns."""
        checked = _checked_name(name, kind)
        try:
            launch = self._found_or_charged(kind, checked, json.loads(json.dumps(asked)), loss, more)
        except (BudgetExceeded, InvalidValueError, PlanError, RequestError) as error:
            self._releases.refused(f"{kind} {checked}", error)
            raise
        self._releases.changed()
        return launch

    def _found(self, kind: str, name: str, asked: Mapping[str, Any]) -> Launch | None:
        """The launch of that name, if there is one that goes on with this version of the table.

        Raises
        ------
        RequestError
            The name was given to something else.
        """
        found = self._named(name)
        if found is None or not found.serves(self._questions.version):
            return None
        if (found.kind, found.about["asked"]) != (kind, asked):
            raise RequestError(
                f"{name}: was launched before as a {found.kind} with other arguments, and a launch is remembered by "
                "its name; give the same arguments, or another name"
            )
        return found

    def _named(self, name: object) -> Launch | None:
        """The launch of a name that goes on with this version of the table; without one the newest."""
        found = [launch for launch in self._here() if launch.name == name]
        serving = [launch for launch in found if launch.serves(self._questions.version)]
        best = serving or found
        return best[-1] if best else None

    def _refuse(self, kind: str, name: str, loss: Loss) -> None:
        """Refuse a launch that may not be, or does not fit; call inside the ledger's transaction."""
        account = self._account
        account.tree.refuse_ended(account.trunk, self._questions.version)
        if loss:
            self._refuse_for_everybody(kind, name)
        why = why_not_interleaved(account.filter)
        if why is not None:
            raise RequestError(f"{kind} {name}: {why}")
        if loss:
            account.admit_launch(f"{kind} {name}", loss)

    def _refuse_for_everybody(self, kind: str, name: str) -> None:
        """Refuse what is paid for by everybody beforehand, where each unit pays only for what touches it."""
        if self._account.individual:
            raise RequestError(
                f"{kind} {name}: would be paid by everybody at its launch, also by those whom nothing in it touches; "
                "under accounting='individual' ask the questions themselves, of which each costs only those it touches"
            )

    def _found_or_charged(
        self, kind: str, name: str, asked: Mapping[str, Any], loss: Loss, more: Mapping[str, Any]
    ) -> Launch:
        account, version = self._account, self._questions.version
        old = self._named(name)
        if old is not None and not old.serves(version):
            self._of(old).close()  # nobody can reach it behind the new one, and a unit may be elsewhere by now
        with account.ledger.transaction():
            found = self._found(kind, name, asked)
            if found is not None:
                return found
            self._refuse(kind, name, loss)
            number = account.ledger.reserve(
                key=digest(["launch", account.trunk, version, name]),
                branch=account.trunk,
                version=version,
                question=name,
                loss=loss,
                launch={"kind": kind, "name": name, "asked": asked, **more},
                cell=live.asking_cell(),
            ).id
        return account.tree.sync()[number]  # not before it is on disk: what was undone must not be remembered

    def _preview(
        self, kind: str, name: object, asked: Mapping[str, Any], loss: Loss, facts: list[tuple[str, str]]
    ) -> Explanation:
        """What a launch would cost, by the very rules of a launch."""
        checked = _checked_name(name, kind)
        self._refuse_for_everybody(kind, checked)
        title = f"{kind} {checked}"
        with self._account.ledger.transaction():
            if self._found(kind, checked, json.loads(json.dumps(asked))) is not None:
                return Explanation(title, [("cost", "nothing: it was launched before, and is found again."), *facts])
            self._refuse(kind, checked, loss)
        after = self._account.filter.step(self._account.promise.enters(loss))
        left = f"{floor_percent(after.headroom)} of the budget would be left"
        return Explanation(
            title, [("cost", f"{cost_up(loss)}, all of it at launch; {left}. Nothing was charged yet."), *facts]
        )

    # --- the kinds ----------------------------------------------------------------------------------------------

    def delegate(
        self,
        budget: Budget | None,
        *,
        name: str,
        mu: Number | None,
        rho: Number | None,
        share: Number | None,
        filter_: str | None,
        dry_run: bool,
    ) -> Any:
        """A sub-session; see :meth:`Session.delegate`."""
        way = one_way(budget=budget, mu=mu, rho=rho, share=share)
        known = self._named(name)
        if way == "share" and known is not None and known.kind == SUB_SESSION:
            given = Budget.from_json(known.about["budget"])  # a share is of what was left when it was first asked for
        else:
            given = budget_from(self._account, way, {"budget": budget, "mu": mu, "rho": rho, "share": share}[way])
        kind = filter_for(self._account, given, filter_)
        made = promise(kind, given)
        loss = charged_for(self._account.promise, made)
        # A share is of what is left at the time: another kernel that asks for the same share launches the same.
        amount = to_text(checked_amount(share, "share")) if share is not None else given.to_json()
        asked = {way if way == "share" else "budget": amount, "filter": kind}
        if dry_run:
            facts = [
                ("what it keeps", f"{made.words}: a filter, odometers and a log of its own"),
                ("what is not used", f"{NOT_BACK} To pay as you go instead, ask here, or in a partition."),
            ]
            return self._preview(SUB_SESSION, name, asked, loss, facts)
        settings = settings_of(made, self._questions.public.units)
        launch = self._launch(SUB_SESSION, name, asked, loss, budget=given.to_json(), filter=kind, settings=settings)
        return self._attached(launch)

    def partition(self, by: Any, *, name: str | None, table: Rows, limit: int | None) -> Partition:
        """A partition; see :meth:`Session.partition`."""
        schema, unit = self._questions.tables.schema(table), self._questions.tables.unit(table)
        group = _group(by)
        keys = part_keys(group.of, schema)
        most, enforced = parts_of_unit(unit, len(keys), limit)
        why = why_not_parallel(self._account.filter)
        if why is not None:
            raise RequestError(f"partition: {why}")
        asked = {"parts": parts_to_json(table, group, enforced)}
        about = {"by": group.name, "keys": list(keys), "parts per unit": most}
        title = f"by {group.name}" if name is None else name
        launch = self._launch(PARTITION, title, asked, GDP(0), **about)
        return self._attached(launch)  # type: ignore[no-any-return]

    def above_threshold(self, threshold: Number, *, name: str, dry_run: bool, **given: Any) -> Any:
        """A stream of comparisons; see :meth:`Session.above_threshold`."""
        terms = terms_from(threshold, **given)
        if dry_run:
            return self._preview(ABOVE_THRESHOLD, name, terms.to_json(), terms.loss, scan_terms(terms))
        token, launch = drawn(terms, self._source), None
        try:
            launch = self._launch(ABOVE_THRESHOLD, name, terms.to_json(), terms.loss, token=token)
        finally:
            if launch is None or launch.about["token"] != token:  # refused, or launched before
                discard(token)
        return self._attached(launch)

    def noise_reduction(
        self, query: Query, *, name: str | None, first: Number | None, most: Number | None
    ) -> NoiseReduction:
        """One answer refined; see :meth:`Session.noise_reduction`."""
        plan, view = own_question(query, self._account.trunk, self._account.ledger)
        if isinstance(plan.aggregation, Discovery):
            raise RequestError("noise_reduction: which groups are found differs from look to look; discover them anew")
        allowed = None if most is None else to_text(checked_amount(most, "most") ** 2)
        given = None if first is None else to_text(checked_amount(first, "first") ** 2)
        asked = {"plan": plan.to_json(), "view": view_to_json(view), "first": given, "most": allowed}
        title = question_words(plan, view)[:LONGEST_NAME] if name is None else name
        known = self._named(title)
        start = given if given is not None else known.about.get("first") if known is not None else None
        if start is None:
            left = self._account.promise.left(self._account.filter, FIRST_SHARE)
            if not left.mu_squared:
                raise BudgetExceeded("noise_reduction: nothing is left of the budget; nothing was charged")
            start = to_text(exact(decimal_sqrt_down(left.mu_squared)) ** 2)
        made: NoiseReduction = self._attached(self._launch(NOISE_REDUCTION, title, asked, GDP(0), first=start))
        made.begin()
        return made

    def descent(
        self, rows: Plan, model: Model, terms: tuple[str, ...], *, name: str | None, dry_run: bool, **given: Any
    ) -> Descent | Explanation:
        """A regression fitted by noisy gradients; see :meth:`Frame.fit`."""
        tables = self._questions.tables
        schema, limits = tables.schema(rows.source), limits_in_force(tables.unit(rows.source), rows.limits)
        made = DescentTerms.checked(rows, model, terms, schema, limits, self._questions.public.units, given)
        tables.compile(made.first)  # refuses what cannot be asked where the rows are
        title = f"{model_words(model)}{rows.scope}"[:LONGEST_NAME] if name is None else name
        if dry_run:
            return self._preview_steps(GRADIENT_DESCENT, title, made.asked, made.facts(self._account))
        found: Descent = self._attached(self._launch(GRADIENT_DESCENT, title, made.asked, GDP(0), **made.about))
        found.begin()
        return found

    def _preview_steps(
        self, kind: str, name: object, asked: Mapping[str, Any], facts: list[tuple[str, str]]
    ) -> Explanation:
        """What a launch that is charged step by step would cost, by the very rules of a launch."""
        checked = _checked_name(name, kind)
        with self._account.ledger.transaction():
            if self._found(kind, checked, json.loads(json.dumps(asked))) is not None:
                facts = [("launched", "before: it is found again, and its steps so far are free"), *facts]
            else:
                self._refuse(kind, checked, GDP(0))
        return Explanation(f"{kind} {checked}", facts, self._releases.notice)


class Launched(dict[str, Any]):
    """Mechanisms by name, a line each."""

    def __repr__(self) -> str:
        return "\n".join(f"{name}: {one.kind}, {one.state}, charged {one.charged}" for name, one in self.items())


def _checked_name(name: object, kind: str) -> str:
    if isinstance(name, str) and name.strip() and len(name) <= LONGEST_NAME and encodable(name):
        return name
    raise InvalidValueError(f"name: a {kind} must have one, a str of at most {LONGEST_NAME} characters; got {name!r}")


def _group(by: Any) -> Group:
    """What a partition is by: a column's name, or an expression of columns."""
    if isinstance(by, str):
        return Group(by, Column(by))
    if isinstance(by, Expressed):
        return Group(words(by._node), by._node)
    raise PlanError(f"partition: must be by a column's name, or an expression of columns; got {type(by).__name__}")
