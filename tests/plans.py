"""Plans made by hand, for tests of what is printed of one: every sort of row, hostile names, and many of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reconciler.action import Action, Fact, FieldChange, FieldRow, Hold, Row, Tier
from reconciler.observe import ABSENT
from reconciler.place import LocalPlace
from reconciler.plan import HomePlan, Plan
from reconciler.provenance import Provenance
from reconciler.provider import HomeRef
from reconciler_specs.address import Address
from reconciler_specs.resource import Mode
from reconciler_specs.shape import Shape
from reconciler_state.record import Base

ORIGIN = Provenance(
    commit="4f1d0c2b7a9e8d6c5b4a39281706f5e4d3c2b1a0",
    ref="brief-on-sundays",
    author="Ann Author",
    subject="The brief comes on Sundays, too",
    actor="ann",
    host="runner",
    run="ci 17.1",
    pipeline="https://git.example.org/team/agents/actions/runs/17",
)
CANARY = "sk-canary-" + "0123456789abcdef" * 2
HOSTILE = (
    "a|b",
    "`tick` ```fence```",
    "<script>alert(1)</script>",
    "</details></summary><img src=x onerror=alert(1)>",
    "@everyone @ann #12 !3 team/agents#7",
    "two\nlines\r\n| with | a row |",
    "**bold** _under_ [link](https://example.org) ![i](//example.org/x.png)",
    "\u202eright to left\u202c \u200bhidden\u200b \x1b[31mred\x07",
    "https://example.org www.example.org ann@example.org",
    "]]>--><!-- &amp; &#64;ann",
    "~~~\n$$\n---\n# head",
    "é" * 500,
    "\"quoted\" 'single' \\back\\ #quot; %% ;",
)


def home(
    name: str, actions: Sequence[Action] = (), harness: str = "native", keyed: bool = True, **more: Any
) -> HomePlan:
    """One home of a plan, at a place that is nobody's."""
    ref = HomeRef(name, harness, LocalPlace(), f"/srv/agents/{name}", keyed=keyed)
    return HomePlan(ref, "team", tuple(actions), version="1", **more)


def change(name: str, row: FieldRow, before: Any, after: Any, base: Any = None, **more: Any) -> FieldChange:
    known = Base(base, base) if base is not None else None
    return FieldChange(name, row, after, before, known, Shape(), write=after, **more)


def at(path: str) -> Address:
    return Address.parse(path)


def every_sort() -> Plan:
    """Five homes: one of every risk, and at least one row of every sort."""
    rules = "# House rules\n" + "".join(f"{n}. Rule number {n} of the house.\n" for n in range(1, 9))
    changed = rules.replace("Rule number 3", "The third rule").replace("8. Rule number 8 of the house.\n", "")
    main = [
        Action(
            Row.CREATE,
            at("main/default/files/scripts/collect.sh"),
            changes=(change("text", FieldRow.SET, ABSENT, "#!/bin/sh\ncurl -s localhost:9100 > /tmp/x\n"),),
            reason="not in the home",
            tier=Tier.CONFIRM,
            rule=str(Fact.RUNS_CODE),
        ),
        Action(
            Row.CREATE,
            at("main/default/jobs/collect"),
            changes=(
                change("schedule", FieldRow.SET, ABSENT, {"every": "30m"}),
                change("run", FieldRow.SET, ABSENT, "scripts/collect.sh"),
            ),
            reason="not in the home",
            needs=(at("main/default/files/scripts/collect.sh"),),
            tier=Tier.CONFIRM,
            rule=str(Fact.RUNS_CODE),
        ),
        Action(
            Row.UPDATE,
            at("main/default/jobs/brief"),
            "j1",
            (
                change("schedule", FieldRow.SET, {"cron": "0 8 * * 1-5"}, {"cron": "0 8 * * 0-5"}),
                change("prompt", FieldRow.SET, "Write the brief.", "Write the brief. Name three things, not ten."),
                change("context_from", FieldRow.SET, ABSENT, [{"$ref": "default/jobs/collect"}]),
            ),
            fingerprint="f1",
            needs=(at("main/default/jobs/collect"),),
            notes=("its next run moves from Mon 08:00 to Sun 08:00",),
        ),
        Action(
            Row.UPDATE,
            at("main/default/files/AGENTS.md"),
            "AGENTS.md",
            (change("text", FieldRow.SET, rules, changed),),
            fingerprint="f2",
        ),
        Action(
            Row.UPDATE,
            at("main/secrets/TELEGRAM_BOT_TOKEN"),
            "TELEGRAM_BOT_TOKEN",
            (change("value", FieldRow.SET, {"$hidden": "0" * 32}, {"$hidden": "1" * 32}),),
            reason="present, another value at its source",
            source="op read op://team/telegram/token",
            tier=Tier.CONFIRM,
            rule=str(Fact.NEW_CREDENTIAL),
        ),
        Action(
            Row.UPDATE,
            at("main/default/settings/gateway.token"),
            "gateway.token",
            (change("value", FieldRow.SET, {"$hidden": "2" * 32}, {"secret": "GATEWAY_TOKEN"}),),
            needs=(at("main/secrets/TELEGRAM_BOT_TOKEN"),),
        ),
        Action(
            Row.UPDATE,
            at("main/default/jobs/plants"),
            "j2",
            (change("prompt", FieldRow.DRIFT, "Water the plants twice.", "Water the plants.", "Water the plants."),),
            notes=("changed by the agent at 09:12",),
        ),
        Action(
            Row.UPDATE,
            at("main/default/inference"),
            "",
            (
                change(
                    "default", FieldRow.CONFLICT, {"model": "vendor/c"}, {"model": "vendor/b"}, {"model": "vendor/a"}
                ),
            ),
        ),
        Action(
            Row.DELETE, at("main/default/jobs/old"), "j3", reason="left the setup", tier=Tier.CONFIRM, rule="deletes"
        ),
        Action(
            Row.DELETE,
            at("main/default/files/scripts/old.sh"),
            "scripts/old.sh",
            reason="left the setup; not made by us",
            tier=Tier.CONFIRM,
            rule="deletes",
        ),
    ]
    work = [
        Action(
            Row.UNOWNED,
            at("work/default/jobs/weekly"),
            "j9",
            reason="already in the home, and not ours yet",
            hold=Hold("already in the home, and not ours yet", "reconciler adopt work/default/jobs/weekly"),
        ),
        Action(
            Row.REFUSED,
            at("work/default/jobs/watch"),
            reason="monitor: this version cannot store it",
            hold=Hold("monitor: this version cannot store it"),
        ),
    ]
    quiet = [
        Action(
            Row.UPDATE,
            at("lab/default/settings/agent.max_turns"),
            "agent.max_turns",
            (change("value", FieldRow.DRIFT, 90, 120, 120, mode=Mode.WATCH),),
        ),
        Action(
            Row.UPDATE,
            at("lab/default/settings/agent.name"),
            "agent.name",
            (change("value", FieldRow.SET, "lab", "Lab"),),
        ),
    ]
    return Plan(
        "team",
        (
            home("main", main, unchanged=14, notes=("another setup, ops, declares things here",)),
            home("work", work, unchanged=3),
            home("lab", quiet, unchanged=7),
            home("far", failed="/srv/agents/far: Permission denied"),
            home(
                "gone",
                hold=Hold(
                    "its block left the setup, and 3 thing(s) in it are ours; nothing is deleted",
                    "reconciler release gone",
                ),
            ),
            home("rest", unchanged=9),
        ),
    )


def hostile() -> Plan:
    """Names, reasons and values that would break a page, a table or a terminal if they could."""
    actions = [
        Action(
            Row.UPDATE,
            Address("main", "default", at("main/default/jobs/x").kind, words),
            words,
            (change("prompt", FieldRow.SET, words, f"{words}\n```\n{words}"), change(words, FieldRow.SET, words, 1)),
            reason=words,
            notes=(words,),
            tier=Tier.CONFIRM,
            rule=words,
            needs=tuple(Address("main", "default", at("main/default/jobs/x").kind, other) for other in HOSTILE[:place]),
            hold=Hold(words, f"reconciler adopt {words}") if place % 3 == 0 else None,
        )
        for place, words in enumerate(HOSTILE)
    ]
    return Plan(
        "team", (home("main", actions, notes=HOSTILE), *(home(f"h{n}", failed=w) for n, w in enumerate(HOSTILE)))
    )


def many(homes: int = 40, changes: int = 500) -> Plan:
    """Many changes over many homes; every tenth deletes, and every seventh home runs code."""
    found = []
    for number in range(homes):
        name = f"agent-{number:02}"
        actions = []
        for place in range(changes // homes + (number < changes % homes)):
            path = f"{name}/default/jobs/job-{place:02}"
            if (number + place) % 10 == 0:
                actions.append(
                    Action(Row.DELETE, at(path), "x", reason="left the setup", tier=Tier.CONFIRM, rule="deletes")
                )
                continue
            tier, rule = (Tier.CONFIRM, str(Fact.RUNS_CODE)) if number % 7 == 0 else (Tier.AUTO, "")
            fields = (
                change("prompt", FieldRow.SET, "Summarise what came in.", "Summarise what came in, in three lines."),
                change("schedule", FieldRow.SET, {"cron": "0 8 * * 1-5"}, {"cron": f"{place} 7 * * 1-5"}),
            )
            actions.append(Action(Row.UPDATE, at(path), "x", fields, fingerprint="f", tier=tier, rule=rule))
        found.append(home(name, actions, unchanged=number))
    return Plan("team", tuple(found))


def secrets_in_the_clear() -> Plan:
    """What no provider should let through: a token in names, values, reasons and words. Nothing of it may be shown."""
    key = (
        "-----BEGIN PRIVATE KEY-----\n"
        + "\n".join(CANARY[10:] + str(n) for n in range(3))
        + "\n-----END PRIVATE KEY-----"
    )
    hidden = {"$hidden": "3" * 32}
    actions = [
        Action(
            Row.UPDATE,
            at("main/default/jobs/brief"),
            "j1",
            (
                change(
                    "prompt", FieldRow.SET, f"Use {CANARY} for it.", f"Never use {CANARY}, please, for anything at all."
                ),
                change("env", FieldRow.SET, {"A": hidden}, {"A": CANARY}),
                change("text", FieldRow.SET, "none\n", f"{key}\n"),
            ),
            reason=f"the harness said {CANARY}",
            notes=(f"seen: {CANARY}",),
            tier=Tier.CONFIRM,
            rule=f"uses {CANARY}",
        ),
        Action(
            Row.CREATE,
            at("main/default/files/key.pem"),
            changes=(change("text", FieldRow.SET, ABSENT, key),),
            reason="not in the home",
        ),
        Action(
            Row.UPDATE,
            at("main/secrets/TOKEN"),
            "TOKEN",
            (change("value", FieldRow.SET, hidden, {"$hidden": "4" * 32}),),
            source="env TOKEN",
        ),
    ]
    return Plan("team", (home("main", actions), home("far", failed=f"cannot log in with {CANARY}")))
