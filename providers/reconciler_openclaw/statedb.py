"""What OpenClaw's state database says of a home."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reconciler.observe import Store, Unknown
from reconciler_shape import places

from . import home, sqlitefile

_BELOW = "/cron/jobs.json"
SYSTEM = ("heartbeat:", "heartbeat-task:", "skill-collection-review:", "memory-core:")
"""Declaration keys of the jobs that OpenClaw and its plugins make at every start."""
_PEOPLES = " AND ".join(f"coalesce(declaration_key, '') NOT LIKE '{prefix}%'" for prefix in SYSTEM)
_KEYS = f"SELECT store_key, sum({_PEOPLES}) FROM cron_jobs GROUP BY store_key"
_JOBS = "SELECT store_key, job_id, job_json, state_json FROM cron_jobs WHERE store_key = ? ORDER BY sort_order, job_id"
_STARTED = "SELECT app_version FROM schema_meta WHERE meta_key = 'startup-migrations'"


@dataclass(frozen=True, slots=True)
class Row:
    """A cron job as it is stored: `job` is its definition, `state` what its runs left."""

    id: str
    store_key: str
    job: Mapping[str, Any]
    state: Mapping[str, Any]

    @property
    def whole(self) -> dict[str, Any]:
        """As `cron.list` tells it."""
        return {**self.job, "state": dict(self.state)}


@dataclass(frozen=True, slots=True)
class Database:
    """What of a home's state database we go by.

    OpenClaw keys a job by the path of its state directory, as it was given: a home that is moved leaves its jobs
    behind, and one that is reached through a link has them under the link's name. `rows` are the jobs of this home,
    `key` is what they are kept under, "" if nothing is; `others` counts those of other homes by their key. `ran` is the
    version that last started a gateway here, `secrets` the names in its secret store, `broken` the ids of jobs whose
    record cannot be read.
    """

    store: Store = Store.MISSING
    unknown: Unknown | None = None
    rows: Sequence[Row] = ()
    key: str = ""
    others: Mapping[str, int] = field(default_factory=dict)
    ran: str | None = None
    secrets: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    broken: frozenset[str] = frozenset()


def read(here: home.Home) -> Database:
    """Never raises: what cannot be read is `unknown`."""
    path = here.database
    found = places.lstat(here.place, path)
    if found is None:
        return Database()
    if isinstance(found, Unknown):
        return Database(Store.IMPROPER, found)
    if found.kind != "file":
        return Database(Store.IMPROPER, Unknown(f"{path}: a {found.kind}, not a regular file"))
    if found.size == 0:
        return Database(Store.EMPTY)
    try:
        return sqlitefile.read(here.place, path, lambda connection: _database(connection, here))
    except (sqlite3.Error, OSError) as error:
        return Database(Store.IMPROPER, Unknown(f"{path}: {error}; OpenClaw's own `doctor` can say more"))


def _database(connection: sqlite3.Connection, here: home.Home) -> Database:
    tables = {str(name) for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if "cron_jobs" not in tables:
        return Database(Store.EMPTY)
    rows: list[Row] = []
    notes: list[str] = []
    broken: set[str] = set()
    counts = {str(key): int(count) for key, count in connection.execute(_KEYS)}
    ours = [key for key in counts if key == here.store_key or _state_dir(here, key) == here.root]
    key = max(ours, key=lambda name: (counts[name], name == here.store_key), default="")
    if len(ours) > 1:
        names = ", ".join(sorted(name.removesuffix(_BELOW) for name in ours))
        notes.append(
            f"jobs are kept under several names of this home ({names}); those of {key.removesuffix(_BELOW)} count"
        )
    for store_key, job_id, job, state in connection.execute(_JOBS, (key,)):
        definition, left = _object(job), _object(state or "{}")
        if definition is None or left is None:
            broken.add(str(job_id))
            continue
        rows.append(Row(str(job_id), str(store_key), definition, left))
    if broken:
        notes.append(f"{here.database}: {len(broken)} job record(s) cannot be read, and are left alone")
    ran = None
    if "schema_meta" in tables:
        for (version,) in connection.execute(
            "SELECT app_version FROM schema_meta WHERE meta_key = 'startup-migrations'"
        ):
            ran = str(version).partition("\n")[0] if version else None
    secrets = frozenset[str]()
    if "secret_store_entries" in tables:
        # Names only: the values, which stand beside them in the clear, are never selected.
        live = connection.execute("SELECT name FROM secret_store_entries WHERE deleted_at_ms IS NULL")
        secrets = frozenset(str(name) for (name,) in live)
    others = {name: count for name, count in counts.items() if name not in ours}
    return Database(Store.PROPER, None, rows, key, others, ran, secrets, tuple(notes), frozenset(broken))


def _state_dir(here: home.Home, store_key: str) -> str:
    """The state directory that a store key means, links resolved."""
    return here.place.resolve(store_key.removesuffix(_BELOW)) if store_key.endswith(_BELOW) else ""


def named(here: home.Home, database: Database) -> str:
    """The name of the home under which OpenClaw has its jobs: a gateway of ours must be started with this one as its
    `OPENCLAW_STATE_DIR`, or it would see none of them."""
    return database.key.removesuffix(_BELOW) or here.root


def _object(text: Any) -> Mapping[str, Any] | None:
    try:
        found = json.loads(text)
    except (TypeError, ValueError):
        return None
    return found if isinstance(found, dict) else None
