"""Consent: a value that `apply` checks for each row before its intent is journaled. Nobody passes round it."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from reconciler_specs.address import Kind, selects, split_field
from reconciler_specs.policy import NEVER

from .action import Action, Fact, FieldRow, Row, Tier
from .gate import verbs
from .planfile import again

_REVIEW = "without a terminal a delete needs a plan that was reviewed: apply --plan plan.json --reviewed"
_OWN_RUN = "what this very run has planned or approved is no review: that takes another run, or a terminal"
# What `policy.unattended` may never cover (laws, “Gate and consent”), nor any secret.
_NEVER_UNATTENDED = frozenset(
    {Fact.WIDENS_ACCESS, Fact.LOOSENS_SECURITY, Fact.NEW_CREDENTIAL, Fact.NEW_ADDRESS, Fact.SECRET_IN_CLEAR}
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a row may not be carried out, and the command that would permit it. `waits` tells a missing consent
    (exit 5) from a refusal (exit 4); `expired` says that an approval was there, and is over."""

    why: str
    command: str = ""
    waits: bool = True
    expired: bool = False


@dataclass(frozen=True, slots=True)
class Consent:
    """What the person, or the pipeline, has agreed to. `Consent()` permits nothing.

    `yes` is --yes. `approved` are row digests: all rows of a plan that a person said yes to at a terminal, of a
    plan file, of a plan whose digest was given with --expect, or approved with `reconciler approve`. `only_approved`
    is set for a plan file or digest: rows outside it are refused. `reviewed` is --reviewed; at a `terminal` it needs
    no file. `elsewhere` are those of the approved that were agreed to in another run than this one: without a terminal
    only they are a review. `named` are the command's targets, `restore` and `allow` its flags. `insider` says why the
    caller runs inside the home's own process tree. `vouched` and `over` say in words, per row digest, by what a row is
    approved, and whose approval of it has expired. `file` is the path of the plan file, if there is one, and `undo` the
    run that is undone: the next command names them.
    """

    yes: bool = False
    approved: frozenset[str] = frozenset()
    only_approved: bool = False
    terminal: bool = False
    reviewed: bool = False
    named: tuple[str, ...] = ()
    restore: tuple[str, ...] = ()
    allow: frozenset[str] = frozenset()
    insider: str = ""
    elsewhere: frozenset[str] = frozenset()
    vouched: Mapping[str, str] = field(default_factory=dict)
    over: Mapping[str, str] = field(default_factory=dict)
    file: str = ""
    undo: str = ""

    def basis(self, action: Action, digest: str) -> str:
        """By what a permitted row is permitted, in words."""
        if digest in self.approved:
            return self.vouched.get(digest, "seen and agreed to" if self.terminal else "an approved plan")
        if action.tier is Tier.AUTO:
            return "--yes" if self.yes else "named on the command line"
        return "named on the command line" if self._names(action) else "policy.unattended"

    def refusal(self, action: Action, digest: str, unattended: Collection[str]) -> Refusal | None:
        """None iff the row may be carried out."""
        refusal = self._refusal(action, digest, unattended)
        if refusal is None or not refusal.waits or digest not in self.over:
            return refusal
        return replace(refusal, why=f"{refusal.why}; {self.over[digest]}, which is over", expired=True)

    def _refusal(self, action: Action, digest: str, unattended: Collection[str]) -> Refusal | None:
        address = action.address
        if action.tier is Tier.REFUSE:
            return Refusal(f"never done: {action.rule}", waits=False)
        if self.only_approved and digest not in self.approved:
            return Refusal("not in the approved plan, or changed since", self._again(), waits=False)
        if action.tier is Tier.CONFIRM and self.insider:
            return Refusal(
                f"an approval from inside the home's own process tree is refused ({self.insider})", waits=False
            )
        if action.row is Row.DELETE:
            if digest not in self.approved:
                return Refusal(_REVIEW, self._again())
            if not self.reviewed:
                seen = ["--plan", self.file] if self.file else [str(address)] if self.terminal else []
                undo = ["--undo", self.undo] if self.undo else []
                return Refusal("deletes need a review", shlex.join(["reconciler", "apply", *undo, *seen, "--reviewed"]))
            if not (self.terminal or digest in self.elsewhere):
                return Refusal(
                    _OWN_RUN, shlex.join(["reconciler", "approve", self.file]) if self.file else self._again()
                )
            return None
        if digest in self.approved:
            return None
        if action.tier is Tier.CONFIRM:
            covered = all(part & set(unattended) for part in verbs(action))
            if covered and action.address.kind.value not in NEVER and not action.facts & _NEVER_UNATTENDED:
                return None
            if self._names(action):
                return None
            word = "provision" if action.row is Row.PROVISION else "apply"
            if any(c.row is FieldRow.RESTORE for c in action.changes):
                word = "apply --restore"
            return Refusal(f"needs a person: {action.rule}", f"reconciler {word} {address} --yes")
        if self.yes or self._names(action):
            return None
        return Refusal("needs --yes", "reconciler apply --yes")

    def _again(self) -> str:
        return again(self.file, self.undo)

    def _names(self, action: Action) -> bool:
        """Whether the same command names this very row: `TARGET --yes`, `--restore TARGET` or `--allow rebuild`."""
        if self.yes and any(_exact(t, action) for t in self.named):
            return True
        restarts = Fact.RESTARTS in action.facts
        if restarts and "restart" not in self.allow:
            return False
        return self._restores(action) or (restarts and action.facts == {Fact.RESTARTS})

    def _restores(self, action: Action) -> bool:
        """Whether `--restore` or `--allow rebuild` names every change of the row: a flag consents to what it names,
        and to nothing else that the row would do besides."""
        lifted = self.allow & {"rebuild", "replaced-home"}
        if lifted and (action.rebuilt or action.row in (Row.MISSING, Row.PROVISION)):
            return True
        targets = [split_field(t) for t in self.restore if selects(t, action.address)]
        if action.row is Row.MISSING:
            return bool(targets)
        writing = [c for c in action.changes if c.writes]
        return bool(writing) and all(
            c.row is FieldRow.RESTORE and any(field is None or field == c.field for _, field in targets)
            for c in writing
        )


def _exact(target: str, action: Action) -> bool:
    """A glob or the thing's own address names it; a mere prefix does not, except a home for its first contact."""
    text = str(action.address)
    if action.address.kind is Kind.HOME:
        return split_field(target)[0] == text
    return fnmatchcase(text, split_field(target)[0])
