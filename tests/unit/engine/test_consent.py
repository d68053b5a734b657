"""Gate and consent: tiers from facts, and what each form of consent permits (laws, “Gate and consent”)."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.action import Action, Fact, FieldChange, FieldRow, Hold, Row, Tier
from reconciler.consent import Consent
from reconciler.fields import FOUND
from reconciler.gate import rule, verbs
from reconciler.observe import ABSENT
from reconciler_specs.address import Address
from reconciler_specs.policy import ATTENDED, VERBS
from reconciler_specs.shape import SCALAR

JOB = Address.parse("main/default/jobs/brief")
HOME = Address.parse("main")


def change(row: FieldRow, note: str = "", **more: Any) -> FieldChange:
    return FieldChange("prompt", row, "new", "old", None, SCALAR, "new", note=note, **more)


def action(row: Row = Row.CREATE, *changes: FieldChange, address: Address = JOB, **more: Any) -> Action:
    return Action(row, address, changes=changes, **more)


TIERS = [
    ("a prompt job that delivers locally", action(), {}, Tier.AUTO),
    ("a setting", action(Row.UPDATE, change(FieldRow.SET)), {}, Tier.AUTO),
    ("unset", action(Row.UPDATE, change(FieldRow.UNSET)), {}, Tier.AUTO),
    ("stamp", action(Row.UPDATE, change(FieldRow.STAMP)), {}, Tier.AUTO),
    ("forget", action(Row.FORGET), {}, Tier.AUTO),
    ("moved", action(Row.MOVED), {}, Tier.AUTO),
    ("runs code", action(facts=frozenset({Fact.RUNS_CODE})), {}, Tier.CONFIRM),
    ("reaches people", action(facts=frozenset({Fact.REACHES_PEOPLE})), {}, Tier.CONFIRM),
    (
        "loosens security",
        action(Row.UPDATE, change(FieldRow.SET), facts=frozenset({Fact.LOOSENS_SECURITY})),
        {},
        Tier.CONFIRM,
    ),
    ("a new address", action(facts=frozenset({Fact.NEW_ADDRESS})), {}, Tier.CONFIRM),
    ("running now", action(Row.UPDATE, change(FieldRow.SET), facts=frozenset({Fact.RUNNING})), {}, Tier.CONFIRM),
    ("overwrites drift", action(Row.UPDATE, change(FieldRow.RESTORE)), {}, Tier.CONFIRM),
    ("overwrites a found value", action(Row.UPDATE, change(FieldRow.CLAIM, FOUND)), {}, Tier.CONFIRM),
    ("claims what is absent or default", action(Row.UPDATE, change(FieldRow.CLAIM)), {}, Tier.AUTO),
    ("removes found members", action(Row.UPDATE, change(FieldRow.SET, removes_found=True)), {}, Tier.CONFIRM),
    ("unsets found members", action(Row.UPDATE, change(FieldRow.UNSET, removes_found=True)), {}, Tier.CONFIRM),
    ("recreates", action(Row.MISSING), {}, Tier.CONFIRM),
    ("deletes", action(Row.DELETE), {}, Tier.CONFIRM),
    ("provision", action(Row.PROVISION, address=HOME), {}, Tier.CONFIRM),
    ("adopt", action(Row.ADOPT, address=HOME), {}, Tier.CONFIRM),
    ("follows", action(Row.FOLLOW, change(FieldRow.SET)), {}, Tier.CONFIRM),
    ("deletes the default profile", action(Row.DELETE, facts=frozenset({Fact.PERMANENT})), {}, Tier.REFUSE),
    ("a secret in the clear", action(facts=frozenset({Fact.SECRET_IN_CLEAR})), {}, Tier.REFUSE),
    ("raised", action(), {"create jobs": "confirm"}, Tier.CONFIRM),
    ("raised to refuse", action(), {"create jobs": "refuse"}, Tier.REFUSE),
    ("raised by update", action(Row.UPDATE, change(FieldRow.SET)), {"update jobs": "confirm"}, Tier.CONFIRM),
    ("never lowered", action(Row.DELETE, facts=frozenset({Fact.PERMANENT})), {"delete jobs": "confirm"}, Tier.REFUSE),
    ("a name is no fact", action(address=Address.parse("main/default/jobs/delete-everything")), {}, Tier.AUTO),
    ("held rows need nothing", action(Row.DELETE, hold=Hold("why")), {}, Tier.AUTO),
]


@pytest.mark.parametrize(("what", "row", "raised", "tier"), TIERS, ids=[t[0] for t in TIERS])
def test_tiers(what: str, row: Action, raised: dict[str, str], tier: Tier) -> None:
    assert rule(row, raised)[0] is tier


AUTO = action(tier=Tier.AUTO)
CONFIRM = action(Row.UPDATE, change(FieldRow.SET), tier=Tier.CONFIRM, rule="runs code on the host")
RESTORE = action(Row.UPDATE, change(FieldRow.RESTORE), tier=Tier.CONFIRM)
DELETE = action(Row.DELETE, tier=Tier.CONFIRM)
REFUSED = action(tier=Tier.REFUSE)
ADOPT = action(Row.ADOPT, address=HOME, tier=Tier.CONFIRM)
MISSING = action(Row.MISSING, tier=Tier.CONFIRM)
RESTARTS = action(Row.UPDATE, change(FieldRow.SET), tier=Tier.CONFIRM, facts=frozenset({Fact.RESTARTS}))
WIDENS = action(Row.UPDATE, change(FieldRow.SET), tier=Tier.CONFIRM, facts=frozenset({Fact.WIDENS_ACCESS}))
SECRET = action(
    Row.UPDATE, change(FieldRow.SET), tier=Tier.CONFIRM, address=Address.parse("main/default/secrets/BOT_TOKEN")
)
D = "d" * 32
SEEN = frozenset({D})

# (what, the row, the consent, policy.unattended, permitted?)
PERMITS = [
    ("nothing permits nothing", AUTO, Consent(), (), False),
    ("--yes permits auto", AUTO, Consent(yes=True), (), True),
    ("--yes does not permit confirm", CONFIRM, Consent(yes=True), (), False),
    ("a plan file permits confirm", CONFIRM, Consent(approved=SEEN, only_approved=True), (), True),
    ("a row outside the file", AUTO, Consent(yes=True, approved=frozenset({"x"}), only_approved=True), (), False),
    ("at a terminal", CONFIRM, Consent(approved=SEEN, terminal=True), (), True),
    ("unattended", CONFIRM, Consent(), ("set jobs",), True),
    ("unattended update covers set", CONFIRM, Consent(), ("update jobs",), True),
    ("unattended update does not cover restore", RESTORE, Consent(), ("update jobs",), False),
    ("unattended restore", RESTORE, Consent(), ("restore jobs",), True),
    ("unattended never deletes", DELETE, Consent(reviewed=True), ("delete jobs",), False),
    ("named with --yes", CONFIRM, Consent(yes=True, named=(str(JOB),)), (), True),
    ("named by a glob", CONFIRM, Consent(yes=True, named=("main/*/jobs/br*",)), (), True),
    ("a prefix does not name", CONFIRM, Consent(yes=True, named=("main",)), (), False),
    ("a home names its first contact", ADOPT, Consent(yes=True, named=("main",)), (), True),
    ("named without --yes", CONFIRM, Consent(named=(str(JOB),)), (), False),
    ("--restore names", RESTORE, Consent(restore=(str(JOB),)), (), True),
    ("--restore of a field names", RESTORE, Consent(restore=(f"{JOB}#prompt",)), (), True),
    ("--restore of another does not", RESTORE, Consent(restore=("main/default/jobs/x",)), (), False),
    ("--allow rebuild names what is made again", MISSING, Consent(allow=frozenset({"rebuild"})), (), True),
    ("a delete without review", DELETE, Consent(yes=True, approved=SEEN, terminal=True), (), False),
    ("a delete reviewed at a terminal", DELETE, Consent(reviewed=True, approved=SEEN, terminal=True), (), True),
    ("a delete reviewed in a pipeline, without a plan", DELETE, Consent(yes=True, reviewed=True), (), False),
    ("a delete reviewed with a plan of another run", DELETE,
     Consent(reviewed=True, approved=SEEN, only_approved=True, elsewhere=SEEN), (), True),
    ("a delete reviewed with a plan of this run", DELETE,
     Consent(reviewed=True, approved=SEEN, only_approved=True), (), False),
    ("a delete reviewed with a plan of this run, at a terminal", DELETE,
     Consent(reviewed=True, approved=SEEN, only_approved=True, terminal=True), (), True),
    ("a delete approved in another run", DELETE, Consent(reviewed=True, approved=SEEN, elsewhere=SEEN), (), True),
    ("a delete approved, and not --reviewed", DELETE, Consent(yes=True, approved=SEEN, elsewhere=SEEN), (), False),
    ("a confirm row approved", CONFIRM, Consent(approved=SEEN), (), True),
    ("an approval that is over", CONFIRM, Consent(over={D: "approved by ann"}), (), False),
    ("restart by its own name", RESTARTS, Consent(), ("set jobs", "restart home"), True),
    ("restart is not covered by the change", RESTARTS, Consent(), ("set jobs",), False),
    ("restart does not cover the change", RESTARTS, Consent(), ("restart home",), False),
    ("access is never unattended", WIDENS, Consent(), ("set jobs",), False),
    ("a secret is never unattended", SECRET, Consent(), ("set secrets", "update secrets"), False),
    ("a delete named and --yes, not reviewed", DELETE, Consent(yes=True, named=(str(JOB),)), (), False),
    ("refuse is final", REFUSED, Consent(True, SEEN, False, True, True, (str(JOB),)), (), False),
    ("an insider approves nothing", CONFIRM, Consent(approved=SEEN, terminal=True, insider="pid 7"), (), False),
    ("an insider's auto", AUTO, Consent(yes=True, insider="pid 7"), (), True),
]  # fmt: skip


@pytest.mark.parametrize(("what", "row", "consent", "unattended", "permitted"), PERMITS, ids=[p[0] for p in PERMITS])
def test_consent(what: str, row: Action, consent: Consent, unattended: tuple[str, ...], permitted: bool) -> None:
    refusal = consent.refusal(row, D, unattended)
    assert (refusal is None) is permitted, refusal


def test_each_refusal_says_why_and_what_next() -> None:
    for _what, row, consent, unattended, permitted in PERMITS:
        refusal = consent.refusal(row, D, unattended)
        if not permitted:
            assert refusal is not None and refusal.why
            assert refusal.command or not refusal.waits


def test_verbs_of_every_row_name_the_kind() -> None:
    for row in Row:
        for part in verbs(action(row, change(FieldRow.SET))):
            assert all(name.endswith(" jobs") for name in part)


def test_every_verb_of_a_writing_row_can_be_said_in_a_policy() -> None:
    """A row that no `policy.raise` could name would be out of its reach."""
    words = {*VERBS, *ATTENDED}
    for row in Row:
        for field_row in FieldRow:
            made = action(row, change(field_row), facts=frozenset({Fact.RESTARTS}))
            if made.writes or row is Row.ADOPT:
                assert {name.split()[0] for part in verbs(made) for name in part} <= words, (row, field_row)


RULES = [
    ("raised from nothing", action(), {"create jobs": "confirm"}, "policy.raise: create jobs"),
    ("raised from a rule", action(Row.DELETE), {"delete jobs": "refuse"}, "deletes; policy.raise: delete jobs"),
    ("what changes nothing is not said", action(Row.DELETE), {"delete jobs": "confirm"}, "deletes"),
    ("a restart raised", RESTARTS, {"restart home": "refuse"}, "restarts the harness; policy.raise: restart home"),
]


@pytest.mark.parametrize(("what", "row", "raised", "said"), RULES, ids=[r[0] for r in RULES])
def test_the_rule_and_the_policy_that_raised_it_are_said(
    what: str, row: Action, raised: dict[str, str], said: str
) -> None:
    assert rule(row, raised)[1] == said


def test_every_row_that_needs_more_than_auto_says_why() -> None:
    for _what, row, raised, _tier in TIERS:
        tier, why = rule(row, raised)
        assert bool(why) or tier is Tier.AUTO


def test_an_expired_approval_is_named() -> None:
    refusal = Consent(over={D: "approved by ann (host) at noon"}).refusal(CONFIRM, D, ())
    assert (
        refusal is not None
        and refusal.expired
        and refusal.why.endswith("approved by ann (host) at noon, which is over")
    )


BASES = [
    ("a plan", CONFIRM, Consent(approved=SEEN), "an approved plan"),
    ("an approval", CONFIRM, Consent(approved=SEEN, vouched={D: "approved by ann"}), "approved by ann"),
    ("a terminal", CONFIRM, Consent(approved=SEEN, terminal=True), "seen and agreed to"),
    ("--yes", AUTO, Consent(yes=True), "--yes"),
    ("by name", CONFIRM, Consent(yes=True, named=(str(JOB),)), "named on the command line"),
    ("policy", CONFIRM, Consent(), "policy.unattended"),
]


@pytest.mark.parametrize(("what", "row", "consent", "said"), BASES, ids=[b[0] for b in BASES])
def test_a_permitted_row_says_by_what(what: str, row: Action, consent: Consent, said: str) -> None:
    assert consent.basis(row, D) == said


def test_an_absent_claim_is_told_from_a_found_one() -> None:
    absent = FieldChange("prompt", FieldRow.CLAIM, "new", ABSENT, None, SCALAR, "new")
    assert rule(action(Row.UPDATE, absent), {})[0] is Tier.AUTO
