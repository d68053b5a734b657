"""The laws' consent table (tests/cases/gate/consent.yaml) against random rows, and against what apply really writes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.action import Action, Fact, FieldChange, FieldRow, Row, Tier
from reconciler.consent import Consent
from reconciler.fields import FOUND
from reconciler.gate import rule
from reconciler.plan import Options
from reconciler_specs.address import Address, Kind
from reconciler_specs.shape import SCALAR
from world import World, outcomes

LAW: dict[str, Any] = yaml.safe_load((Path(__file__).parents[2] / "cases" / "gate" / "consent.yaml").read_text())
DIGEST, OTHER = "d" * 32, "e" * 32
ACCESS = {Fact.WIDENS_ACCESS, Fact.LOOSENS_SECURITY, Fact.NEW_CREDENTIAL, Fact.NEW_ADDRESS, Fact.SECRET_IN_CLEAR}


@dataclass(frozen=True)
class Case:
    """A row, its digest, what was agreed to, and policy.unattended."""

    row: Action
    digest: str
    consent: Consent
    unattended: tuple[str, ...]

    @property
    def words(self) -> list[str]:
        """What the row does, in the words of policies; its own reading of the laws, not the gate's."""
        kind = self.row.address.kind.value
        if self.row.row is not Row.UPDATE:
            return [{Row.MISSING: "recreate"}.get(self.row.row, str(self.row.row)) + f" {kind}"]
        return [f"{c.row} {kind}" for c in self.row.changes if c.writes]


def _restore_named(case: Case) -> bool:
    named = {target.partition("#")[0] for target in case.consent.restore}
    if str(case.row.address) not in named or (Fact.RESTARTS in case.row.facts and "restart" not in case.consent.allow):
        return False
    return case.row.row is Row.MISSING or (
        case.row.row is Row.UPDATE
        and any(c.writes for c in case.row.changes)
        and all(c.row is FieldRow.RESTORE for c in case.row.changes if c.writes)
    )


def _guard_named(case: Case) -> bool:
    restarts = Fact.RESTARTS in case.row.facts
    if restarts and "restart" not in case.consent.allow:
        return False
    again = "rebuild" in case.consent.allow and case.row.row in (Row.MISSING, Row.PROVISION)
    return again or (restarts and case.row.facts == {Fact.RESTARTS})


def _unattended(case: Case) -> bool:
    covered = {
        *case.unattended,
        *(w.replace("update ", f"{v} ") for w in case.unattended for v in ("set", "claim", "unset")),
    }
    restart = Fact.RESTARTS not in case.row.facts or "restart home" in case.unattended
    return bool(case.words) and restart and all(word in covered for word in case.words)


HOLDS: dict[str, Callable[[Case], bool]] = {
    "any": lambda c: True,
    "refuse": lambda c: c.row.tier is Tier.REFUSE,
    "confirm": lambda c: c.row.tier is Tier.CONFIRM,
    "auto": lambda c: c.row.tier is Tier.AUTO,
    "delete": lambda c: c.row.row is Row.DELETE,
    "access": lambda c: bool(c.row.facts & ACCESS),
    "secret": lambda c: c.row.address.kind is Kind.SECRET,
    "reviewed": lambda c: c.consent.reviewed,
    "agreed": lambda c: c.digest in c.consent.approved,
    "terminal": lambda c: c.consent.terminal,
    "another-run": lambda c: c.digest in c.consent.elsewhere,
    "--yes": lambda c: c.consent.yes,
    "named": lambda c: str(c.row.address) in c.consent.named,
    "restore-named": _restore_named,
    "guard-named": _guard_named,
    "unattended": _unattended,
    "insider": lambda c: bool(c.consent.insider),
    "not-in-the-file": lambda c: c.consent.only_approved and c.digest not in c.consent.approved,
}


def lawful(case: Case) -> bool:
    """Whether the table permits the row."""

    def hold(words: list[str]) -> bool:
        return all(HOLDS[word](case) for word in words)

    if any(hold(but["when"]) and hold(but["refuses"]) for but in LAW["but"]):
        return False
    entry = next(entry for entry in LAW["table"] if hold(entry["when"]))
    return any(hold(needs) for needs in entry["needs"])


# -- random rows ------------------------------------------------------------------------------------------------------

ADDRESSES = [
    Address.parse(f"main/default/{path}") for path in ("jobs/a", "settings/b", "secrets/C", "channels/telegram")
]
VERBS = ("create", "update", "set", "claim", "unset", "restore", "recreate", "delete", "provision", "adopt")
KINDS = ("jobs", "settings", "secrets", "channels", "home")


def rows(dice: random.Random) -> Action:
    row = dice.choice([Row.UPDATE] * 4 + [Row.CREATE, Row.MISSING, Row.DELETE, Row.DELETE, Row.PROVISION, Row.ADOPT])
    address = Address("main") if row in (Row.PROVISION, Row.ADOPT) else dice.choice(ADDRESSES)
    writing = [FieldRow.SET, FieldRow.CLAIM, FieldRow.UNSET, FieldRow.RESTORE]
    changes = tuple(
        FieldChange(f"f{n}", dice.choice(writing), "new", "old", None, SCALAR, "new", note=dice.choice(["", FOUND]))
        for n in range(dice.randint(1, 2))
    )
    facts = frozenset(f for f in Fact if dice.random() < 0.12)
    action = Action(row, address, changes=changes if row is Row.UPDATE else (), facts=facts)
    raised = {f"{dice.choice(VERBS)} {address.kind}": dice.choice(["confirm", "refuse"])} if dice.random() < 0.2 else {}
    tier, why = rule(action, raised)
    return replace(action, tier=tier, rule=why)


def consents(dice: random.Random, address: Address) -> Consent:
    def some(*choices: Any) -> tuple[Any, ...]:
        return tuple(c for c in choices if dice.random() < 0.3)

    agreed = frozenset(some(DIGEST, OTHER))
    restore = some(str(address), f"{address}#f0", f"{address}#f1", "main/default/jobs/else")
    if any("#" in target for target in restore):
        restore = tuple(t for t in restore if "#" not in t)  # fields have cases of their own in test_consent.py
    return Consent(
        yes=dice.random() < 0.5,
        approved=agreed,
        only_approved=dice.random() < 0.2,
        terminal=dice.random() < 0.3,
        reviewed=dice.random() < 0.5,
        named=some(str(address), "main/default/jobs/else"),
        restore=restore,
        allow=frozenset(some("rebuild", "restart", "many-deletes")),
        insider=dice.choice(["", "", "", "pid 7"]),
        elsewhere=frozenset(d for d in agreed if dice.random() < 0.5),
    )


def cases(seed: int, count: int) -> Iterator[Case]:
    dice = random.Random(seed)
    for _ in range(count):
        row = rows(dice)
        names = [f"{verb} {kind}" for verb in VERBS for kind in KINDS] + ["restart home"] * 20
        yield Case(row, DIGEST, consents(dice, row.address), tuple(dice.sample(names, dice.randint(0, 40))))


@pytest.mark.parametrize("seed", range(8))
def test_the_consent_is_what_the_table_says(seed: int) -> None:
    told = {True: 0, False: 0}
    for case in cases(seed, 2500):
        permitted = case.consent.refusal(case.row, case.digest, case.unattended) is None
        assert permitted is lawful(case), case
        told[permitted] += 1
    assert min(told.values()) > 300


def test_every_entry_of_the_table_decides_some_row() -> None:
    """A table that nothing reaches would hold nothing."""
    met: set[tuple[int, bool]] = set()
    for case in cases(99, 6000):
        index = next(i for i, e in enumerate(LAW["table"]) if all(HOLDS[w](case) for w in e["when"]))
        met.add((index, lawful(case)))
    assert met >= {(i, True) for i, e in enumerate(LAW["table"]) if e["needs"]} | {(i, False) for i in range(6)}


# -- random plans, carried out ----------------------------------------------------------------------------------------

HEAD = "version: 1\nname: solo\npolicy: {POLICY}\nhomes:\n  main:\n    harness: hermes\n    path: HOME/main\n"
HEAD += "    first_contact: adopt\n    profiles:\n      default:\n"
HEAD += "        settings: {agent.max_turns: TURNS}\n        jobs:\n"
JOB = "          NAME: {schedule: {every: 1d}, prompt: PROMPT, deliver: WHERE}\n"


def text(dice: random.Random, names: list[str], policy: str = "{}") -> str:
    jobs = [
        JOB.replace("NAME", name)
        .replace("PROMPT", dice.choice(["x", "y"]))
        .replace("WHERE", dice.choice(["local", "local", "owner_chat"]))
        for name in names
    ]
    return HEAD.replace("{POLICY}", policy).replace("TURNS", str(dice.randint(1, 3))) + "".join(jobs)


@pytest.mark.parametrize("seed", range(40))
def test_nothing_is_carried_out_that_the_table_forbids(seed: int, tmp_path: Path) -> None:
    dice, world = random.Random(seed), World(tmp_path)
    world.home()
    names = [f"j{n}" for n in range(5)]
    world.setup(text(dice, names))
    world.apply()
    for name in dice.sample(names, 2):
        world.edit([{"set": f"default/jobs/{name}", "prompt": "somebody's"}])
    world.edit([{"delete": f"default/jobs/{names[dice.randrange(5)]}"}])
    unattended = tuple(dice.sample(["restore jobs", "set jobs", "create jobs", "recreate jobs", "update settings"], 2))
    policy = f"{{on_drift: restore, unattended: [{', '.join(unattended)}], raise: {{set settings: confirm}}}}"
    world.setup(text(dice, [n for n in names if dice.random() < 0.7] + ["new"], policy))
    options = Options(restore=tuple(f"main/default/jobs/{n}" for n in names if dice.random() < 0.2))
    home = world.plan(options).homes[0]
    digests = {str(a.address): home.digests[a.address] for a in home.open}
    agreed = frozenset(d for d in digests.values() if dice.random() < 0.4)
    consent = Consent(
        yes=dice.random() < 0.5,
        approved=agreed,
        only_approved=dice.random() < 0.2,
        terminal=dice.random() < 0.2,
        reviewed=dice.random() < 0.6,
        named=tuple(a for a in digests if dice.random() < 0.2),
        restore=options.restore,
        elsewhere=frozenset(d for d in agreed if dice.random() < 0.5),
    )
    permitted = {str(a.address) for a in home.open if lawful(Case(a, digests[str(a.address)], consent, unattended))}
    before = {i: dict(job) for i, job in world.home().jobs().items()}
    done = outcomes(world.apply(consent, options))
    assert {a for a, outcome in done.items() if outcome == "applied"} <= permitted
    assert {
        a for a, outcome in done.items() if outcome in ("waits for consent", "refused")
    } == digests.keys() - permitted
    # And the home itself: whatever was not permitted is as it was.
    now = world.home().jobs()
    for action in home.open:
        if str(action.address) not in permitted and action.id in before:
            assert now[action.id] == before[action.id], action
