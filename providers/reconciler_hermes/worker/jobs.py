"""Job changes by Hermes's own functions: one load and one save for a whole batch, inside its lock."""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import inspect
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reconciler_shape import record as records

Op = dict[str, Any]
Result = dict[str, Any]


_TELL = "_notify_provider_jobs_changed_safe"  # 0.18 on


class Refused(Exception):
    """Hermes's words, or ours where it would have said nothing."""


class Stale(Exception):
    """The job is not the one that was planned for."""


class Harmed(Exception):
    """A neighbour is not what it was."""


def perform(request: dict[str, Any]) -> list[Result]:
    """Each operation by itself `ok`, `refused`, `stale` or `harmed`; what was created is known by its `ref`."""
    jobs = importlib.import_module("cron.jobs")
    lock = getattr(jobs, "_jobs_lock", None)
    ids: dict[str, str] = dict(request.get("ids") or {})
    # Without a lock between processes (0.16) the shortest window is one operation at a time.
    groups = [request["ops"]] if lock else [[op] for op in request["ops"]]
    results: list[Result] = []
    for group in groups:
        results += _Batch(jobs, lock, bytes.fromhex(request["key"]), ids).run(group)
    return results


class _Batch:
    """Hermes's functions work on a list in memory, which is saved once by Hermes's own function."""

    def __init__(self, jobs: Any, lock: Any, key: bytes, ids: dict[str, str]) -> None:
        self.jobs, self.lock, self.key, self.ids = jobs, lock, key, ids
        self.tool: Any = importlib.import_module("tools.cronjob_tools")
        self.takes = frozenset(inspect.signature(self.tool.cronjob).parameters)
        self.records: list[dict[str, Any]] = []
        self.removed: set[str] = set()
        self.outputs: list[Path] = []
        self.told = False

    def run(self, ops: list[Op]) -> list[Result]:
        real_save = self.jobs.save_jobs
        with self.lock() if self.lock else contextlib.nullcontext():
            try:
                self._check_lock()
                before = self._bytes()
                self.records = list(self.jobs.load_jobs())
            except Exception as error:  # noqa: BLE001 - Hermes may raise anything; nothing is written
                return _all(ops, "refused", str(error))
            if any(not isinstance(item, dict) or not item.get("id") for item in self.records):
                return _all(ops, "refused", "jobs.json has a job without an id; Hermes's own functions fail on it")
            at_first = list(self.records)
            texts = {id(item): json.dumps(item, sort_keys=True, default=str) for item in at_first}
            with self._in_memory():
                results = [self._one(op) for op in ops]
            done = [result for result in results if result["code"] == "ok"]
            if not done:
                return results
            touched = {result["id"] for result in done}
            try:
                self._check_neighbours(at_first, texts, touched, self.records)
                if self._same(at_first, texts):
                    return results
                named = "removed_ids" in inspect.signature(real_save).parameters
                with contextlib.nullcontext() if self.lock else self._unchanged_since(before):
                    real_save(self.records, **({"removed_ids": self.removed} if named else {}))
                self._check_neighbours(at_first, texts, touched, self.jobs.load_jobs())
            except Harmed as error:
                return _mark(results, "harmed", str(error))
            except Stale as error:
                return _mark(results, "stale", str(error))
            except OSError as error:
                return _mark(results, "refused", str(error))
        for folder in self.outputs:
            shutil.rmtree(folder, ignore_errors=True)
        if self.told:
            getattr(self.tool, _TELL)()
        return results

    @contextlib.contextmanager
    def _unchanged_since(self, before: bytes | None) -> Iterator[None]:
        """Where no lock keeps others out, the store is looked at again as late as can be: when Hermes's own save has
        written and synced its new file, and is about to put it in place."""
        real = self.jobs.atomic_replace

        def replace(*args: Any) -> Any:
            if self._bytes() != before:
                raise Stale("jobs.json changed while it was being worked on")
            return real(*args)

        self.jobs.atomic_replace = replace
        try:
            yield
        finally:
            self.jobs.atomic_replace = real

    def _bytes(self) -> bytes | None:
        try:
            return Path(self._file()).read_bytes()
        except FileNotFoundError:
            return None

    def _file(self) -> Path:
        store = getattr(self.jobs, "_current_cron_store", None)
        return Path(store().jobs_file if store else self.jobs.JOBS_FILE)

    def _check_lock(self) -> None:
        """Hermes goes on without its lock after 30 s; we do not."""
        if not self.lock:
            return
        try:
            fd = os.open(str(self.jobs._jobs_lock_file()), os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise OSError(f"the lock of the job store cannot be had: {error}") from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pass  # held: by Hermes's own function in this process, or by who kept it from us
        else:
            raise OSError("the lock of the job store could not be had (Hermes went on without it)")
        finally:
            os.close(fd)
        if not self._we_hold():
            raise OSError("another process has held the lock of the job store for 30 s")

    def _we_hold(self) -> bool:
        """Whether one of our own descriptors is open on the lock file."""
        opened = Path("/proc/self/fd")
        if not opened.is_dir():
            return True  # that somebody holds it is all we can tell here
        target = Path(self.jobs._jobs_lock_file()).stat()
        for name in opened.iterdir():
            with contextlib.suppress(OSError):  # the folder's own descriptor is gone by now
                if os.path.samestat(name.stat(), target):
                    return True
        return False

    @contextlib.contextmanager
    def _in_memory(self) -> Iterator[None]:
        jobs, tool = self.jobs, self.tool
        real = (jobs.load_jobs, jobs.save_jobs)
        real_tell = getattr(tool, _TELL, None)
        real_output = getattr(jobs, "_job_output_dir", None)

        def save(new: list[dict[str, Any]], *_args: Any, **more: Any) -> None:
            self.removed.update(more.get("removed_ids") or ())
            self.records = new

        def tell() -> None:
            self.told = True

        def output(job_id: str) -> Path:
            # The output goes only once the removal is saved.
            self.outputs.append(Path(real_output(job_id)))  # type: ignore[misc]
            return Path(os.devnull) / "none"

        jobs.load_jobs, jobs.save_jobs = (lambda: self.records), save
        if real_tell:
            setattr(tool, _TELL, tell)
        if real_output:
            jobs._job_output_dir = output
        try:
            yield
        finally:
            jobs.load_jobs, jobs.save_jobs = real
            if real_tell:
                setattr(tool, _TELL, real_tell)
            if real_output:
                jobs._job_output_dir = real_output

    def _one(self, op: Op) -> Result:
        kept, outputs, removed = list(self.records), list(self.outputs), set(self.removed)
        result: Result = {"ref": op["ref"], "code": "ok", "id": op.get("id", ""), "words": "", "inert": ""}
        try:
            result["id"] = getattr(self, "_" + op["op"])(op)
            found = self._find(result["id"])
            if found and found[0].get("enabled", True) and not found[0].get("next_run_at"):
                result["inert"] = "Hermes has computed no next run for it: it will never run"
        except Stale as error:
            result.update(code="stale", words=str(error))
        except Exception as error:  # noqa: BLE001 - the boundary: Hermes's functions may raise anything
            result.update(code="refused", words=str(error) or type(error).__name__)
        if result["code"] != "ok":
            self.records, self.outputs, self.removed = kept, outputs, removed
        return result

    def _find(self, job_id: str) -> list[dict[str, Any]]:
        return [item for item in self.records if item.get("id") == job_id]

    def _planned(self, op: Op) -> dict[str, Any]:
        found = self._find(op["id"])
        if not found:
            raise Stale(f"there is no job {op['id']} any more")
        if len(found) > 1:
            raise Refused(f"{len(found)} jobs have the id {op['id']}: Hermes would change or remove each")
        if op.get("fingerprint") and records.fingerprint(found[0], self.key) != op["fingerprint"]:
            raise Stale("the job has changed since it was looked at")
        return found[0]

    def _call(self, action: str, **args: Any) -> dict[str, Any]:
        unknown = sorted(set(args) - self.takes)
        if unknown:
            raise Refused(f"this Hermes has no {', '.join(unknown)}")
        answer: dict[str, Any] = json.loads(self.tool.cronjob(action=action, **args))
        if not answer.get("success"):
            raise Refused(str(answer.get("error") or answer))
        return answer

    def _refs(self, refs: list[Any], own: str) -> tuple[list[str], bool]:
        """Harness ids, and whether one of them is the job that is being made."""
        found, itself = [], False
        for ref in refs:
            if not isinstance(ref, dict):
                found.append(str(ref))
            elif ref["$ref"] == own:
                itself = True
            elif ref["$ref"] in self.ids:
                found.append(self.ids[ref["$ref"]])
            else:
                raise Refused(f"it needs {ref['$ref']}, which is not there")
        return found, itself

    def _create(self, op: Op) -> str:
        args = {key: value for key, value in op["args"].items() if value is not None}
        context, itself = self._refs(args.pop("context_from", []), op["ref"])
        if context:
            args["context_from"] = context
        job_id = str(self._call("create", **args)["job_id"])
        if itself:
            self._call("update", job_id=job_id, context_from=[*context, job_id])
        self.jobs.update_job(job_id, {records.MARKER: {"intent": op["intent"]}})
        if op.get("paused"):
            self.jobs.pause_job(job_id, reason="paused by its setup")
        self.ids[op["ref"]] = job_id
        return job_id

    def _update(self, op: Op) -> str:
        item, job_id, args = self._planned(op), str(op["id"]), dict(op["args"])
        was = (item.get("enabled", True), item.get("state"))
        forget_session = "attach_to_session" in args and args["attach_to_session"] is None
        if forget_session:
            del args["attach_to_session"]
        if "context_from" in args:
            context, itself = self._refs(args["context_from"] or [], op["ref"])
            args["context_from"] = [*context, job_id] if itself else context
        if args.get("prompt") and item.get("no_agent") and "no_agent" not in args:
            # A script that is the job would go on running, and the prompt would lie beside it unread.
            args["script"], args["no_agent"] = None, False
        self._schedule(item, args)
        for name, value in list(args.items()):
            if value is None:
                args[name] = self._label(item, args) if name == "name" else _EMPTY.get(name, "")
        if args:
            self._call("update", job_id=job_id, **args)
        if forget_session:
            # Hermes has no way back to “as the home's settings say”, which is the key's absence.
            self.records = [_without_session(r) if r.get("id") == job_id else r for r in self.records]
        self._settle(item, op, was, "schedule" in args)
        return job_id

    def _schedule(self, item: dict[str, Any], args: dict[str, Any]) -> None:
        """An identical schedule would move the next run; a change of kind would keep the old kind's repeat."""
        if args.get("schedule") is None:
            args.pop("schedule", None)
            return
        new, old = self.jobs.parse_schedule(args["schedule"]), item.get("schedule") or {}
        if _bare(new) == _bare(old):
            del args["schedule"]
            return
        once = [isinstance(s, dict) and s.get("kind") == "once" for s in (old, new)]
        if once[0] != once[1] and "repeat" not in args:
            args["repeat"] = 1 if once[1] else 0
        if args.get("repeat", 1) is None and once[1]:
            args["repeat"] = 1

    def _label(self, item: dict[str, Any], args: dict[str, Any]) -> str:
        merged = {**item, **args}
        skills = merged.get("skills") or []
        text = merged.get("prompt") or (skills[0] if skills else "") or merged.get("script") or "cron job"
        return str(text)[:50].strip()

    def _settle(self, item: dict[str, Any], op: Op, was: tuple[Any, Any], rescheduled: bool) -> None:
        """What `cronjob()` changes by the way is put back; then what was asked for beside its arguments."""
        job_id = op["id"]
        if rescheduled and was[1] == "completed":
            repeat = dict(self._find(job_id)[0].get("repeat") or {})
            self.jobs.update_job(job_id, {"repeat": {**repeat, "completed": 0}})
        elif rescheduled and was[0] is False and was[1] != "paused":
            self.jobs.update_job(job_id, {"enabled": False, "state": was[1]})
        if op.get("paused") is True:
            self.jobs.pause_job(job_id, reason="paused by its setup")
        elif op.get("paused") is False and records.paused(self._find(job_id)[0]):
            self.jobs.resume_job(job_id)
        if op.get("follow"):
            self._snapshot(job_id)

    def _follow(self, op: Op) -> str:
        self._planned(op)
        self._snapshot(op["id"])
        return str(op["id"])

    def _snapshot(self, job_id: str) -> None:
        compute = getattr(self.jobs, "_compute_provider_model_snapshots", None)
        if not compute:
            return
        item = self._find(job_id)[0]
        provider, model = compute(**{key: item.get(key) for key in ("provider", "model", "base_url", "no_agent")})
        self.jobs.update_job(job_id, {"provider_snapshot": provider, "model_snapshot": model})

    def _delete(self, op: Op) -> str:
        self._planned(op)
        self._call("remove", job_id=op["id"])
        return str(op["id"])

    def _check_neighbours(
        self, first: list[dict[str, Any]], texts: dict[int, str], touched: set[str], now: list[dict[str, Any]]
    ) -> None:
        theirs = [(item["id"], texts[id(item)]) for item in first if item["id"] not in touched]
        left: dict[Any, list[records.Record]] = {}  # two records may have one id
        for item in now:
            if isinstance(item, dict):
                left.setdefault(item.get("id"), []).append(records.intent(item))
        for name, text in theirs:
            if not left.get(name):
                raise Harmed(f"the job {name}, which is not ours to change, is gone from jobs.json")
            intent = records.intent(json.loads(text))
            if intent not in left[name]:
                raise Harmed(f"the job {name}, which is not ours to change, has changed")
            left[name].remove(intent)

    def _same(self, first: list[dict[str, Any]], texts: dict[int, str]) -> bool:
        now = [json.dumps(item, sort_keys=True, default=str) for item in self.records]
        return now == [texts[id(item)] for item in first]


# What `cronjob()` takes as “clear it”; for texts it is the empty one.
_EMPTY: dict[str, Any] = {"deliver": "local", "skills": [], "enabled_toolsets": [], "repeat": 0}


def _without_session(item: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key != "attach_to_session"}


def _bare(schedule: Any) -> Any:
    return {k: v for k, v in schedule.items() if k != "display"} if isinstance(schedule, dict) else schedule


def _all(ops: list[Op], code: str, words: str) -> list[Result]:
    return [{"ref": op["ref"], "code": code, "id": op.get("id", ""), "words": words, "inert": ""} for op in ops]


def _mark(results: list[Result], code: str, words: str) -> list[Result]:
    return [{**r, "code": code, "words": words, "inert": ""} if r["code"] == "ok" else r for r in results]
