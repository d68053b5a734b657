"""What a command line agrees to, as the Consent that `apply` checks: a plan file, a digest, approvals, or an answer."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..approval import ReviewedPlan
    from ..consent import Consent
    from ..plan import Options, Plan
    from ..workspace import Workspace


Note = Callable[[str], None]


def _said(words: str) -> None:
    from .render.style import err, safe

    err(f"note: {safe(words)}")


def within(space: Workspace) -> int:
    """Seconds that a plan file and an approval hold."""
    from ..planfile import WITHIN

    return space.setup.policy.confirm_within or WITHIN


def plan_file(path: Path, space: Workspace) -> ReviewedPlan:
    """A plan file as a review. Raises UsageError."""
    from ..approval import reviewed_plan

    return reviewed_plan(path, space.setup.name, space.now(), within(space))


def agreed(
    made: Plan,
    space: Workspace,
    options: Options,
    *,
    file: ReviewedPlan | None,
    expect: str | None,
    reviewed: bool,
    yes: bool,
    json: bool,
    note: Note = _said,
) -> Consent | None:
    """What was agreed to; None when a person at a terminal said no. `note` is told what does not count, and why. Raises
    UsageError for an `expect` that is not the plan's digest."""
    from ..approval import is_other
    from ..errors import UsageError

    everything = [digest for h in made.homes for digest in h.asked]
    consent = _approved(made, space, options, note, reviewed=reviewed, yes=yes)
    screen = sys.stdin.isatty() and sys.stdout.isatty()
    if file is not None:
        by = f"the plan file {file.digest}" + (f", made by {file.run}" if file.run else "")
        other = is_other(file.run, space.caller().run)
        rows = file.approved.standing(made)
        # What was approved otherwise makes a row of the file a review, and adds none to it (L8).
        return replace(
            _with(consent, rows, by, other=other),
            approved=rows,
            only_approved=True,
            terminal=screen,
            file=file.approved.path,
        )
    if expect is not None:
        if expect != made.digest:
            raise UsageError(
                f"The plan is no longer the expected one: its digest is {made.digest}, not {expect}.",
                hint="reconciler plan",
            )
        consent = _with(consent, everything, "--expect", other=True)
        return replace(consent, approved=frozenset(everything), only_approved=True, terminal=screen)
    if not everything or yes or json or not screen:
        return _by_commit(consent, made, space, everything, note) if reviewed and everything else consent
    from .render.ask import ask

    if not ask(made, reviewed=reviewed):
        return None
    return replace(_with(consent, everything, "seen and agreed to at a terminal", other=False), yes=yes, terminal=True)


def _approved(made: Plan, space: Workspace, options: Options, note: Note, *, reviewed: bool, yes: bool) -> Consent:
    """The flags of the command line, and the approvals that were given before."""
    from ..approval import said, standing
    from ..consent import Consent
    from ..planfile import misnamed, moved

    found, wrong = space.store.approvals().read(space.setup.name)
    for why in wrong:
        note(why)
    now = standing(found, space.now(), within(space), space.caller().run)
    now = now.without(misnamed(made, now.rows) | moved(made, now.blocks))
    return Consent(
        yes=yes,
        approved=frozenset(now.valid),
        reviewed=reviewed,
        named=options.targets,
        restore=options.restore,
        allow=options.allow,
        elsewhere=now.elsewhere,
        vouched={digest: said(approval) for digest, approval in now.valid.items()},
        over={digest: said(approval) for digest, approval in now.over.items()},
        undo=options.undo,
    )


def _with(consent: Consent, digests: Iterable[str], by: str, *, other: bool) -> Consent:
    """The consent with more rows agreed to, by something that is (or is not) of another run."""
    more = frozenset(digests)
    vouched: Mapping[str, str] = {**dict.fromkeys(more, by), **consent.vouched}
    elsewhere = consent.elsewhere | more if other else consent.elsewhere
    return replace(consent, approved=consent.approved | more, elsewhere=elsewhere, vouched=vouched)


def _by_commit(consent: Consent, made: Plan, space: Workspace, everything: Iterable[str], note: Note) -> Consent:
    """With what the trailer of the setup's commit has reviewed, if that is this very plan."""
    from ..trailer import TRAILER, of_head

    found = of_head(space.setup.root)
    if made.digest not in found.digests:
        if found.digests:
            note(f"the commit's {TRAILER} is not of this plan ({made.digest})")
        return consent
    if found.why:
        note(f"the commit's {TRAILER} does not count: {found.why}")
        return consent
    return _with(consent, everything, f"{TRAILER} of commit {found.commit[:12]}", other=True)
