"""Jobs through the real Hermes: every field there and back, batches, refusals, and neighbours left alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import reconciler_hermes
from hermes.lab import KEY, Lab, address, create, delete, resource, step, update
from reconciler.action import CLEAR, Action, Row
from reconciler.observe import Observed
from reconciler.provider import Code
from reconciler_specs.address import Kind
from reconciler_specs.shape import Json

pytestmark = pytest.mark.hermes

PROVIDERS = Path(reconciler_hermes.__file__).parents[1]

BRIEF: dict[str, Json] = {
    "name": "Brief",
    "schedule": {"cron": "0 8 * * 1-5"},
    "prompt": "Write the brief.\n",
    "deliver": "local",
}


def test_create_shows_what_was_declared(each: Lab) -> None:
    fields = {
        **BRIEF,
        "before": "disk.sh",
        "skills": ["calendar", "news"],
        "toolsets": ["web"],
        "workdir": str(each.root),
        "repeat": 5,
        "deliver": {"to": "telegram", "chat": "-100", "thread": "7"},
        "model": {"provider": "openrouter", "model": "m/x"},
        "paused": True,
    }
    answer = each.create("brief", fields)
    assert (answer.code, answer.words) == (Code.OK, "")
    seen = each.job(answer.id)
    assert {k: seen.fields[k] for k in fields} == fields
    assert seen.marker == "intent-0"
    assert each.hermes("import cron.jobs as c, json; print(json.dumps(c.load_jobs()))") == each.jobs()


@pytest.mark.parametrize(
    "when",
    [{"every": "120m"}, {"cron": "*/5 1,2 * * *"}, {"at": "2031-02-03T14:00:00Z"}],
    ids=["every", "cron", "at"],
)
def test_each_schedule(each: Lab, when: Json) -> None:
    answer = each.create("x", {**BRIEF, "schedule": when})
    assert answer.code is Code.OK, answer.words
    seen = each.job(answer.id)
    assert seen.fields["schedule"] == when
    assert ("repeat" in seen.defaults) == ("at" in when)


CHANGES: list[dict[str, Json]] = [
    {"name": "Other"},
    {"prompt": "Do something else."},
    {"schedule": {"every": "30m"}},
    {"schedule": {"at": "2031-02-03T14:00:00Z"}},
    {"deliver": {"to": "telegram"}},
    {"model": {"provider": "openrouter", "model": "m/y"}},
    {"skills": ["one"]},
    {"toolsets": ["web", "terminal"]},
    {"repeat": 3},
    {"paused": True},
    {"before": "disk.sh"},
    {"workdir": "/"},
]


@pytest.mark.parametrize("new", CHANGES, ids=lambda c: "-".join(c))
def test_update_and_back(each: Lab, new: dict[str, Json]) -> None:
    """A field is set, read back, and cleared again where it was not there; nothing else of the job changes."""
    job_id = each.create("brief", BRIEF).id
    first = each.job(job_id)
    answer = each.update(job_id, new)
    assert answer.code is Code.OK, answer.words
    after = each.job(job_id)
    changed = {k for k in after.fields.keys() | first.fields.keys() if after.get(k) != first.get(k)}
    assert {k: after.fields[k] for k in new} == new
    assert changed - {"follows"} <= new.keys() | ({"repeat"} if "at" in str(new) else set())
    back = {name: first.fields.get(name, CLEAR) for name in new}
    assert each.update(job_id, back).code is Code.OK
    last = each.job(job_id)
    assert last.fields == first.fields
    assert last.fingerprint == first.fingerprint


def test_session_and_its_absence(lab: Lab) -> None:
    job_id = lab.create("brief", BRIEF).id
    for value in ("main", "isolated"):
        lab.update(job_id, {"session": value})
        assert lab.job(job_id).fields["session"] == value
    lab.update(job_id, {"session": CLEAR})
    assert "attach_to_session" not in lab.jobs()[0]


def test_a_script_job_becomes_a_prompt_job(each: Lab) -> None:
    job_id = each.create("disk", {"schedule": {"every": "30m"}, "run": "disk.sh", "deliver": "local"}).id
    assert each.job(job_id).fields["run"] == "disk.sh"
    assert each.update(job_id, {"run": CLEAR, "prompt": "Look at the disk.", "before": "disk.sh"}).code is Code.OK
    seen = each.job(job_id)
    assert (seen.fields.get("run"), seen.fields["before"], seen.fields["prompt"]) == (
        None,
        "disk.sh",
        "Look at the disk.",
    )


def test_a_prompt_takes_the_place_of_the_script_that_is_the_job(each: Lab) -> None:
    """The script may be somebody else's doing, or was adopted: then nothing clears `run`."""
    job_id = each.create("brief", BRIEF).id
    script = f"action='update', job_id={job_id!r}, script='disk.sh', no_agent=True"
    each.hermes(f"import tools.cronjob_tools as t; t.cronjob({script}); print(1)")
    seen = each.job(job_id)
    assert (seen.fields.get("prompt"), seen.fields["run"]) == (None, "disk.sh")
    assert each.update(job_id, {"prompt": BRIEF["prompt"]}).code is Code.OK
    seen = each.job(job_id)
    assert (seen.fields["prompt"], seen.fields.get("run"), seen.fields.get("before")) == (BRIEF["prompt"], None, None)


def test_update_that_says_the_same_moves_no_run(lab: Lab) -> None:
    job_id = lab.create("brief", {**BRIEF, "schedule": {"every": "30m"}}).id
    before = (lab.root / "cron" / "jobs.json").read_bytes()
    lab.update(job_id, {"schedule": {"every": "30m"}, "name": "Brief"})
    record = json.loads(before)["jobs"][0]
    assert lab.jobs()[0]["next_run_at"] == record["next_run_at"]


def test_batch_resolves_references(each: Lab) -> None:
    actions = [
        create("default/jobs/a", BRIEF),
        create("default/jobs/b", {**BRIEF, "context_from": [{"$ref": "default/jobs/a"}]}),
        create("default/jobs/c", {**BRIEF, "context_from": [{"$ref": "default/jobs/c"}]}),
        create("default/jobs/d", {**BRIEF, "context_from": [{"$ref": "default/jobs/zz"}]}),
    ]
    answers = each.perform(*actions)
    assert [a.code for a in answers] == [Code.OK, Code.OK, Code.OK, Code.REFUSED]
    assert each.job(answers[1].id).fields["context_from"] == [answers[0].id]
    assert each.job(answers[2].id).fields["context_from"] == [answers[2].id]
    assert answers[3].words == "it needs default/jobs/zz, which is not there"
    assert len(each.jobs()) == 3


def test_references_reach_over_chunks(lab: Lab) -> None:
    fields = {**BRIEF, "model": {"provider": "openrouter", "model": "m/x"}}
    actions = [create(f"default/jobs/j{n}", fields) for n in range(205)]
    actions.append(create("default/jobs/last", {**fields, "context_from": [{"$ref": "default/jobs/j0"}]}))
    answers = lab.perform(*actions)
    assert {a.code for a in answers} == {Code.OK}
    assert lab.job(answers[-1].id).fields["context_from"] == [answers[0].id]


def test_one_refused_leaves_the_others(each: Lab) -> None:
    answers = each.perform(
        create("default/jobs/a", BRIEF),
        create("default/jobs/bad", {**BRIEF, "prompt": "cat ~/.hermes/.env"}),
        create("default/jobs/worse", {**BRIEF, "schedule": {"cron": "99 * * * *"}}),
        create("default/jobs/b", BRIEF),
    )
    assert [a.code for a in answers] == [Code.OK, Code.REFUSED, Code.REFUSED, Code.OK]
    assert answers[1].words.startswith("Blocked: prompt matches threat pattern")
    assert "99 * * * *" in answers[2].words
    assert [a.id for a in answers if a.code is Code.OK] == [job["id"] for job in each.jobs()]


def test_a_past_time_is_refused_or_inert(each: Lab) -> None:
    answer = each.create("old", {**BRIEF, "schedule": {"at": "2020-01-01T00:00:00Z"}})
    if each.version != "0.16.0":
        assert answer.code is Code.REFUSED
        assert "in the past" in answer.words
    else:
        assert answer.code is Code.OK
        assert "never run" in answer.inert


def test_delete_takes_the_job_and_its_output(each: Lab) -> None:
    keep = each.create("keep", BRIEF)
    gone = each.create("gone", BRIEF)
    output = each.root / "cron" / "output" / gone.id
    output.mkdir(parents=True)
    (output / "2026.md").write_text("x")
    assert each.perform(delete("default/jobs/gone", each.job(gone.id)))[0].code is Code.OK
    assert [job["id"] for job in each.jobs()] == [keep.id]
    assert not output.exists()


def test_stale_is_told_by_the_fingerprint(each: Lab) -> None:
    job_id = each.create("brief", BRIEF).id
    seen = each.job(job_id)
    each.hermes(f"import cron.jobs as c; c.update_job({job_id!r}, {{'prompt': 'by hand'}}); print(1)")
    assert each.perform(update("default/jobs/brief", seen, {"name": "x"}))[0].code is Code.STALE
    assert each.perform(delete("default/jobs/brief", seen))[0].code is Code.STALE
    gone = Observed(Kind.JOB, "default", "0123456789ab", fingerprint="x")
    assert each.perform(delete("default/jobs/gone", gone))[0].code is Code.STALE
    assert each.job(job_id).fields["prompt"] == "by hand"


def test_a_run_is_not_stale(each: Lab) -> None:
    job_id = each.create("brief", BRIEF).id
    seen = each.job(job_id)
    each.hermes(f"import cron.jobs as c; c.mark_job_run({job_id!r}, True); print(1)")
    after = each.job(job_id)
    assert after.fingerprint == seen.fingerprint
    assert after.about["last_status"] == "ok"
    assert each.perform(update("default/jobs/brief", seen, {"name": "x"}))[0].code is Code.OK


def test_neighbours_and_unknown_fields_stay(each: Lab) -> None:
    theirs = each.create("theirs", BRIEF).id
    each.hermes(f"import cron.jobs as c; c.update_job({theirs!r}, {{'zzz': {{'a': 1}}}}); print(1)")
    before = each.jobs()
    mine = each.create("mine", BRIEF).id
    each.update(mine, {"name": "Mine"})
    each.perform(delete("default/jobs/mine", each.job(mine)))
    assert each.jobs() == before


@pytest.mark.parametrize("each", ["0.16.0"], indirect=True)
def test_without_a_lock_what_another_saves_meanwhile_stays(each: Lab) -> None:
    """0.16 has no lock between processes: a neighbour is changed while Hermes syncs the file that we have it save."""
    mine, theirs = each.create("mine", BRIEF).id, each.create("theirs", BRIEF).id
    op = {"op": "update", "ref": "mine", "id": mine, "intent": "", "args": {"name": "Mine"}}
    answers = each.hermes(
        f"""
import json, os, sys, types
for name in ("reconciler_hermes", "reconciler_shape"):
    package = sys.modules[name] = types.ModuleType(name)
    package.__path__ = [os.path.join({str(PROVIDERS)!r}, name)]
from reconciler_hermes.worker import jobs as worker
import cron.jobs as jobs
sync, load, save = os.fsync, jobs.load_jobs, jobs.save_jobs

def also_by_another(fd):
    sync(fd)
    os.fsync = sync
    save([{{**job, "prompt": "by the agent"}} if job["id"] == {theirs!r} else job for job in load()])

os.fsync = also_by_another
print(json.dumps(worker.perform({{"key": {KEY!r}, "ops": [{op!r}]}})))
"""
    )
    assert [answer["code"] for answer in answers] == ["stale"]
    assert {job["id"]: job["prompt"] for job in each.jobs()} == {mine: BRIEF["prompt"], theirs: "by the agent"}
    assert [file.name for file in (each.root / "cron").glob("*.tmp")] == []


def test_a_paused_job_stays_paused(each: Lab) -> None:
    job_id = each.create("brief", BRIEF).id
    each.hermes(f"import cron.jobs as c; c.pause_job({job_id!r}, reason='holiday'); print(1)")
    assert each.update(job_id, {"schedule": {"every": "30m"}, "prompt": "New."}).code is Code.OK
    assert each.job(job_id).fields["paused"] is True
    assert each.update(job_id, {"paused": False}).code is Code.OK
    assert each.job(job_id).fields["paused"] is False
    assert each.jobs()[0]["next_run_at"]


def test_a_kind_of_schedule_brings_its_own_repeat(lab: Lab) -> None:
    job_id = lab.create("x", {**BRIEF, "schedule": {"at": "2031-02-03T14:00:00Z"}}).id
    lab.update(job_id, {"schedule": {"every": "30m"}})
    assert lab.jobs()[0]["repeat"]["times"] is None


def test_follow_renews_the_snapshot(lab: Lab) -> None:
    job_id = lab.create("brief", BRIEF).id
    assert lab.job(job_id).fields["follows"] == {"provider": "openrouter", "model": "a/b"}
    lab.config("_config_version: 33\nmodel: {default: c/d, provider: openrouter}\n")
    assert lab.job(job_id).fields["follows"] == {"provider": "openrouter", "model": "a/b"}
    new = {"provider": "openrouter", "model": "c/d"}
    assert lab.update(job_id, {"follows": new}).code is Code.OK
    assert lab.job(job_id).fields["follows"] == new
    lab.config("_config_version: 33\nmodel: {default: e/f, provider: openrouter}\n")
    seen = lab.job(job_id)
    row = Action(Row.FOLLOW, address(f"default/jobs/{job_id}"), id=job_id, fingerprint=seen.fingerprint)
    assert lab.perform(row)[0].code is Code.OK
    assert lab.job(job_id).fields["follows"] == {"provider": "openrouter", "model": "e/f"}


def test_a_store_with_a_job_without_id_is_refused(lab: Lab) -> None:
    lab.create("brief", BRIEF)
    path = lab.root / "cron" / "jobs.json"
    data = json.loads(path.read_text())
    data["jobs"].append({"name": "no id", "schedule": {"kind": "interval", "minutes": 5}})
    path.write_text(json.dumps(data))
    before = path.read_bytes()
    answer = lab.create("other", BRIEF)
    assert answer.code is Code.REFUSED
    assert "without an id" in answer.words
    assert path.read_bytes() == before


def test_an_unreadable_store_is_refused_in_hermes_words(lab: Lab) -> None:
    path = lab.root / "cron" / "jobs.json"
    path.parent.mkdir()
    path.write_text('{"jobs": [')
    answer = lab.create("other", BRIEF)
    assert answer.code is Code.REFUSED
    assert "Cron database corrupted" in answer.words
    assert path.read_text() == '{"jobs": ['


def test_declared_job_round_trip(lab: Lab) -> None:
    """canon → create → observe satisfies what was declared, and express gives it back."""
    declared = {
        "name": "Night watch",
        "schedule": {"every": "2h"},
        "prompt": "Look.",
        "before": "scripts/disk.sh",
        "deliver": "owner_chat",
        "skills": ["x"],
        "paused": False,
    }
    found = lab.canon(resource("default/jobs/watch", declared))
    assert (found.refused, found.held) == ({}, "")
    answer = lab.create("watch", found.fields)
    seen = lab.job(answer.id)
    assert {k: seen.fields[k] for k in found.fields} == found.fields
    assert lab.provider.express(seen, lab.observe()) == {
        "name": "Night watch",
        "schedule": {"every": "2h"},
        "prompt": "Look.",
        "before": "disk.sh",
        "deliver": {"to": "telegram"},
        "skills": ["x"],
    }


def test_one_door_serves_many_steps(lab: Lab) -> None:
    with lab.provider.open(lab.ref, None) as door:
        first = door.perform(step(lab.ref, [create("default/jobs/a", BRIEF)]))[0]
        later = create("default/jobs/b", {**BRIEF, "context_from": [{"$ref": "default/jobs/a"}]})
        second = door.perform(step(lab.ref, [later]))[0]
    assert lab.job(second.id).fields["context_from"] == [first.id]
