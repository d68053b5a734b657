"""Cron jobs: each row is one call, with our key at the create and the job's own revision at a change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.action import CLEAR, Action, Row
from reconciler.errors import DoorLost, ProviderError
from reconciler.provider import Answer, Code, Step

from . import edits, jobs, jobwords, reading, rpc
from .door_line import Line

PAGE = 200  # jobs of one `cron.list`, OpenClaw's most
_MOST = 500  # pages
_NOT_FOUND = "CRON_JOB_NOT_FOUND"
_CHANGED = "CRON_JOB_CHANGED"

Job = Mapping[str, Any]


def perform(line: Line, step: Step) -> Sequence[Answer]:
    """One answer per row. After a lost answer the rows behind it are not tried."""
    answers: list[Answer] = []
    lost = ""
    found = listed(line)
    profiles = line.look(step.actions).observation.facts["profiles"]
    for action in step.actions:
        address, intent = action.address, step.intents.get(action.address, "")
        if lost:
            answers.append(Answer(address, Code.REFUSED, words=f"not tried: {lost}"))
            continue
        try:
            answer = _one(line, action, intent, str(profiles[address.profile]["agent"]), found)
        except edits.Refused as error:
            answer = Answer(address, Code.REFUSED, words=str(error))
        except rpc.Refusal as refusal:
            stale = refusal.reason in (_CHANGED, _NOT_FOUND)
            answer = Answer(address, Code.STALE if stale else Code.REFUSED, words=str(refusal))
            answer = _settled(line, answer, intent) if refusal.unsure else answer
        except DoorLost as error:
            answer = _settled(line, Answer(address, Code.LOST, words=str(error)), intent)
            lost = answer.words
        except ProviderError as error:
            lost = str(error)
            answer = Answer(address, Code.REFUSED, words=lost)
        answers.append(answer)
    return answers


def listed(line: Line) -> dict[str, Job]:
    """Every job of the home by its id, the switched off ones too."""
    found: dict[str, Job] = {}
    offset = 0
    for _ in range(_MOST):
        page = line.call("cron.list", {"includeDisabled": True, "limit": PAGE, "offset": offset})
        rows = page.get("jobs") if isinstance(page, dict) else None
        if not isinstance(rows, list):
            raise DoorLost("cron.list: an answer of another form")
        found |= {str(job["id"]): job for job in rows if isinstance(job, dict) and job.get("id")}
        after = page.get("nextOffset")
        if not page.get("hasMore") or not isinstance(after, int) or after <= offset:
            return found
        offset = after
    raise ProviderError(f"cron.list: more than {_MOST * PAGE} jobs")


def _one(line: Line, action: Action, intent: str, agent: str, found: Mapping[str, Job]) -> Answer:
    if action.row in (Row.CREATE, Row.MISSING):
        return _create(line, action, intent, agent, found)
    job = _current(line, action, found)
    if action.row is Row.DELETE:
        line.call("cron.remove", {"id": action.id})
        return Answer(action.address, Code.OK, id=action.id)
    patch = jobwords.patch(job, _values(action))
    params: dict[str, Any] = {"id": action.id, "patch": patch}
    if job.get("configRevision"):
        params["expectedConfigRevision"] = job["configRevision"]
    line.call("cron.update", params)
    return Answer(action.address, Code.OK, id=action.id)


def _create(line: Line, action: Action, intent: str, agent: str, found: Mapping[str, Job]) -> Answer:
    """Under our own key: what an earlier try of this very intent made is taken, and never made twice."""
    made = _ours(found, intent)
    if made is None:
        job = {**jobwords.to_native(_values(action)), "agentId": agent}
        answer = line.call("cron.add", {**job, "declarationKey": jobs.declaration_key(intent)})
        made = str(answer["job"]["id"]) if isinstance(answer, dict) and isinstance(answer.get("job"), dict) else ""
    return Answer(action.address, Code.OK, id=made)


def _current(line: Line, action: Action, found: Mapping[str, Job]) -> Job:
    """The job as it is now. Where a revision guards the write the list will do; in 7.1 it is asked for once more."""
    job = found.get(action.id)
    if job is not None and (not job.get("configRevision") or action.row is Row.DELETE):
        job = line.call("cron.get", {"id": action.id})
    if not isinstance(job, dict) or jobs.fingerprint(job, reading.digest_key(line.ref)) != action.fingerprint:
        raise _Stale(f"job {action.id} changed between plan and write")
    why = "it is OpenClaw's own" if jobs.own(job) else jobs.stranger(job)
    if why:
        raise edits.Refused(f"job {action.id}: {why}; it is never touched")
    return job


class _Stale(rpc.Refusal):
    def __init__(self, words: str) -> None:
        super().__init__({"message": words, "details": {"code": _CHANGED}})


def _values(action: Action) -> dict[str, Any]:
    return {name: None if value is CLEAR else value for name, value in edits.written(action).items()}


def _ours(found: Mapping[str, Job], intent: str) -> str | None:
    return next((job_id for job_id, job in found.items() if intent and jobs.marker(job) == intent), None)


def _settled(line: Line, answer: Answer, intent: str) -> Answer:
    """What became of a call that was not answered, or failed under way: our key tells, if the gateway can be asked
    again; else what is said already."""
    try:
        made = _ours(listed(line), intent)
    except (ProviderError, rpc.Refusal):
        made = None
    return answer if made is None else Answer(answer.address, Code.OK, id=made)
