"""History: the runs of a home as its journal tells them (L12). Reads what the journal gives, and writes nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from reconciler_specs.shape import Json

from .journal import Journal


@dataclass(frozen=True, slots=True)
class Done:
    """One row of a run. `outcome` is "" while nobody knows it. `before` is what undo would declare, by field;
    `rows` the field rows of an update; `door` how it was written, "" if only state was."""

    path: str
    kind: str
    row: str
    tier: str
    outcome: str
    reason: str
    door: str
    id: str
    at: str
    fields: tuple[str, ...]
    before: Mapping[str, Json]
    rows: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Run:
    """One run of one home: `run` is its id, the same in all homes that one command applied to; `who` is the
    provenance as it was recorded, `seen` what stood in the home that nobody declared, by store, when it ended."""

    run: str
    owner: str
    began: str
    ended: str
    host: str
    version: str
    who: Mapping[str, Json]
    seen: Mapping[str, Sequence[str]]
    rows: Sequence[Done] = field(default_factory=tuple)

    @property
    def seconds(self) -> float:
        """From its first record to its last, 0.0 if that is not known."""
        try:
            return max(0.0, (datetime.fromisoformat(self.ended) - datetime.fromisoformat(self.began)).total_seconds())
        except ValueError:
            return 0.0


def runs(journal: Journal) -> list[Run]:
    """All runs over all parts of a journal, oldest first. Raises StateDamaged, StateTooNew."""
    return told(journal.all_entries())


def told(entries: Iterable[Mapping[str, Any]]) -> list[Run]:
    """The runs that journal entries tell of. What a later run settled of an earlier one stands in the earlier one."""
    heads: dict[str, dict[str, Any]] = {}
    rows: dict[str, dict[str, Any]] = {}  # by intent
    for entry in entries:
        what, run = entry["what"], _text(entry, "run")
        if what == "run":
            heads.setdefault(run, {**entry, "ended": _text(entry, "at")})
        elif what == "begin":
            rows[_text(entry, "intent")] = {**entry, "outcome": "", "reason": "", "door": "", "fields": []}
        elif what == "outcome" and (row := rows.get(_text(entry, "intent"))) is not None:
            row.update({k: entry.get(k, row.get(k)) for k in ("outcome", "reason", "door", "fields")})
            row["id"] = _text(entry, "id") or row.get("id", "")
        if run in heads:
            heads[run]["ended"] = _text(entry, "at")
            if what == "seen":
                heads[run]["seen"] = entry.get("seen", {})
    return [_run(head, [r for r in rows.values() if r.get("run") == run]) for run, head in heads.items()]


def _run(head: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Run:
    return Run(
        run=_text(head, "run"),
        owner=_text(head, "owner"),
        began=_text(head, "at"),
        ended=_text(head, "ended"),
        host=_text(head, "host"),
        version=_text(head, "version"),
        who=_map(head.get("who")),
        seen={k: [str(i) for i in v] for k, v in _map(head.get("seen")).items() if isinstance(v, list)},
        rows=tuple(_row(r) for r in rows),
    )


def _row(entry: Mapping[str, Any]) -> Done:
    texts = {n: _text(entry, n) for n in ("path", "kind", "row", "tier", "outcome", "reason", "door", "id", "at")}
    fields = entry.get("fields", [])
    return Done(
        **texts,
        fields=tuple(str(f) for f in fields) if isinstance(fields, list) else (),
        before=_map(entry.get("before")),
        rows={k: str(v) for k, v in _map(entry.get("rows")).items()},
    )


def restored(found: Sequence[Run], owners: Collection[str]) -> Mapping[tuple[str, str], int]:
    """How often the last runs of `owners` restored a field and nothing else, by (path, field): something in the home
    goes on changing it back. A field that the setup changed in between begins anew."""
    counts: dict[tuple[str, str], int] = {}
    for run in found:
        for row in run.rows:
            if run.owner not in owners or row.outcome != "applied":
                continue
            for name, what in row.rows.items():
                key = (row.path, name)
                counts[key] = counts.get(key, 0) + 1 if what == "restore" else 0
    return {key: count for key, count in counts.items() if count}


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(entry: Mapping[str, Any], name: str) -> str:
    value = entry.get(name, "")
    return value if isinstance(value, str) else ""
