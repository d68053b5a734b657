"""Copy: every thing of a home is carried, carried with what changes, or refused with the reason; nothing is silent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from reconciler.copy import Copy, Fidelity, Target, copy
from reconciler.draft import Survey, draft
from reconciler.observe import Observation, Observed, Unknown
from reconciler.place import LocalPlace
from reconciler.provider import Behind, Canon, HomeRef, Portable, Resolve
from reconciler.testing.memory import MemoryProvider
from reconciler_specs.address import Address, Kind
from reconciler_specs.resource import Resource
from reconciler_specs.shape import Json

JOB: dict[str, Any] = {"schedule": {"every": "30m"}, "prompt": "Look.", "deliver": "local"}


class Picky(MemoryProvider):
    """A harness that refuses some fields, and means its own by a schedule."""

    refuses: Mapping[str, str] = {}
    zone = ""
    config = "a.yaml"

    def canon(self, resource: Resource, observation: Observation, resolve: Resolve) -> Canon:
        refused = {name: why for name, why in self.refuses.items() if name in resource.fields}
        if resource.address.kind is Kind.PROFILE and resource.address.profile in self.refuses:
            refused = {"": self.refuses[resource.address.profile]}
        return replace(super().canon(resource, observation, resolve), refused=refused)

    def express(self, thing: Observed, observation: Observation) -> Mapping[str, Json]:
        said = super().express(thing, observation)
        return {name: value for name, value in said.items() if "$" not in str(value)}

    def implied(self, resource: Resource, observation: Observation) -> Mapping[str, str]:
        return {"time zone": self.zone} if resource.address.kind is Kind.JOB and self.zone else {}

    def behind(self, home: HomeRef) -> Sequence[Behind]:
        return [Behind("memories", "memories", 2, 300)]


def copied(provider: MemoryProvider, target: MemoryProvider, home: str = "/old") -> Copy:
    ref = HomeRef("main", "hermes", LocalPlace(), home)
    observation = provider.observe(ref, None)  # type: ignore[arg-type]  # it reads everything anyway
    found = Survey(ref, provider, observation)
    there = HomeRef("work", "native", LocalPlace(), "/new")
    behind = provider.behind(ref) if isinstance(provider, Portable) else None
    return copy(found, draft(found, "work", "/new"), Target(there, target, target.blank(there), blank=True), behind)


def said(made: Copy) -> dict[str, tuple[str, tuple[str, ...]]]:
    return {item.address.path: (str(item.fidelity), item.changes) for item in made.items}


def homes(**jobs: Mapping[str, Any]) -> Picky:
    provider = Picky()
    for name, fields in jobs.items():
        provider.home("/old").add_job(name, **fields)
    return provider


def test_what_both_keep_is_exact() -> None:
    made = copied(homes(brief=JOB), Picky())
    assert said(made) == {"default/jobs/brief": ("exact", ())}
    assert made.block["harness"] == "native" and made.block["path"] == "/new"
    assert made.block["profiles"]["default"]["jobs"]["brief"]["prompt"] == "Look."
    assert made.behind == [Behind("memories", "memories", 2, 300)]


def test_a_field_that_work_does_not_need_is_dropped_and_said() -> None:
    target = Picky()
    target.refuses = {"metadata": "no room for it"}
    made = copied(homes(brief={**JOB, "metadata": {"a": 1}}), target)
    assert said(made) == {"default/jobs/brief": ("semantic", ("without metadata: no room for it",))}
    assert "metadata" not in made.block["profiles"]["default"]["jobs"]["brief"]


def test_a_field_that_the_work_hangs_on_takes_the_thing_with_it_and_what_stood_on_it() -> None:
    provider = homes(page={**JOB, "workdir": "/w"}, other=JOB)
    page = next(iter(provider.home("/old").jobs()))
    provider.home("/old").add_job("sum", **{**JOB, "context_from": [page]})
    provider.home("/old").add_job("last", **{**JOB, "context_from": ["nobody"]})
    target = Picky()
    target.refuses = {"workdir": "one folder for all"}
    made = copied(provider, target)
    assert said(made) == {
        "default/jobs/last": ("refused", ("its context comes from nobody, which is not in the home",)),
        "default/jobs/other": ("exact", ()),
        "default/jobs/page": ("refused", ("one folder for all",)),
        "default/jobs/sum": ("refused", ("its context comes from page, which is refused",)),
    }
    assert set(made.block["profiles"]["default"]["jobs"]) == {"other"}


def test_equal_words_with_another_meaning() -> None:
    source, target = homes(brief=JOB), Picky()
    source.zone, target.zone = "UTC", "the machine's"
    assert said(copied(source, target)) == {"default/jobs/brief": ("semantic", ("time zone: UTC → the machine's",))}


def test_settings_are_not_carried_to_another_config() -> None:
    source, target = homes(brief=JOB), Picky()
    source.home("/old").things["default", Kind.SETTING] = {"a.b": {"value": 1}, "a.c": {"value": 2}}
    assert said(copied(source, target))["default/settings/a.b"] == ("exact", ())
    target.config = "b.yaml"
    made = copied(source, target)
    why = "paths of a.yaml, and the new home has b.yaml: a.b, a.c"
    assert said(made) == {"default/jobs/brief": ("exact", ()), "default/settings": ("refused", (why,))}
    assert "settings" not in made.block["profiles"]["default"]


def test_a_profile_that_is_refused_takes_all_that_is_in_it() -> None:
    provider = homes(brief=JOB)
    provider.home("/old").things["", Kind.PROFILE]["coder"] = {}
    provider.home("/old").add_job("code", "coder", **JOB)
    target = Picky()
    target.refuses = {"coder": "a word of its own"}
    made = copied(provider, target)
    assert said(made)["coder"] == ("refused", ("a word of its own", "all that is in it stays behind with it"))
    assert set(made.block["profiles"]) == {"default"}


def test_secrets_go_by_name_and_what_holds_one_in_the_clear_is_refused_by_name() -> None:
    hidden = {"$hidden": "0" * 32}
    provider = homes(leaky={**JOB, "prompt": hidden}, odd={**JOB, "workdir": hidden}, open=JOB)
    things = provider.home("/old").things
    things["default", Kind.SETTING] = {
        "a.token": {"value": {"secret": "A_TOKEN"}},
        "b.list": {"value": [{"x": hidden}]},
    }
    made = copied(provider, Picky())
    rows = said(made)
    assert rows["default/jobs/leaky"] == ("refused", ("its prompt holds a secret in the clear",))
    assert rows["default/jobs/odd"][0] == "refused" and "workdir holds a secret" in rows["default/jobs/odd"][1][0]
    assert rows["default/settings/b.list"][0] == "refused"
    assert rows["default/settings/a.token"] == ("exact", ())
    assert made.secrets == {"default": ["A_TOKEN"]}
    assert "$hidden" not in str(made.block)


def test_where_an_answer_went_that_has_no_words() -> None:
    """A job whose answer would go elsewhere does something else: it is refused, and what stood on it."""
    provider = homes(brief={**JOB, "deliver": {"$native": "origin"}}, keep=JOB)
    brief, keep = provider.home("/old").jobs()
    provider.home("/old").add_job("sum", **{**JOB, "context_from": [brief]})
    provider.home("/old").add_job("both", **{**JOB, "context_from": [keep]})
    made = copied(provider, Picky())
    rows = said(made)
    assert rows["default/jobs/brief"][0] == "refused" and "deliver" in rows["default/jobs/brief"][1][0]
    assert rows["default/jobs/sum"] == ("refused", ("its context comes from brief, which is refused",))
    jobs = made.block["profiles"]["default"]["jobs"]
    assert set(jobs) == {"keep", "both"} and jobs["both"]["context_from"] == ["keep"]


def test_no_field_that_work_needs_is_ever_dropped() -> None:
    """The closed list of the docs: a thing is without a field only if the field is on it; else it is refused."""
    whole = {
        **JOB, "context_from": ["self"], "skills": ["a"], "workdir": "/w", "model": {"provider": "p", "model": "m"},
        "toolsets": ["t"], "repeat": 3, "before": "x.sh", "paused": True, "metadata": {"a": 1}, "session": "main",
        "monitor": {"url": "https://x.example"}, "failure_deliver": "local",
    }  # fmt: skip
    for name in whole:
        target = Picky()
        target.refuses = {name: "no room"}
        made = copied(homes(brief=whole), target)
        [(fidelity, changes)] = said(made).values()
        droppable = name in ("metadata", "session", "failure_deliver")
        assert (fidelity, changes) == (
            ("semantic", (f"without {name}: no room",)) if droppable else ("refused", ("no room",))
        ), name
        for odd in ({"$hidden": "0" * 32}, {"$native": "x"}):
            [(fidelity, changes)] = said(copied(homes(brief={**whole, name: odd}), Picky())).values()
            assert fidelity == ("semantic" if droppable else "refused") and changes, name


def test_a_block_that_a_setup_declares_goes_as_a_block(tmp_path: Path) -> None:
    (tmp_path / "rules.md").write_text("Be kind.")
    for text, kind in (("Be kind.\n", "exact"), ("Be cruel.\n", "semantic")):
        provider = homes()
        provider.home("/old").things["default", Kind.FILE] = {"SOUL.md": {"block": text}, "A.md": {"block": "stray"}}
        ref = HomeRef("main", "hermes", LocalPlace(), "/old")
        found = Survey(ref, provider, provider.observe(ref, None))  # type: ignore[arg-type]
        there = HomeRef("work", "native", LocalPlace(), "/new")
        target = Picky()
        drafted = draft(found, "work", "/new", blocks={("default", "SOUL.md"): "rules.md"}, folder=tmp_path)
        made = copy(found, drafted, Target(there, target, target.blank(there), blank=True), None)
        assert made.block["profiles"]["default"]["files"] == {"SOUL.md": {"block": "rules.md"}}
        assert said(made)["default/files/SOUL.md"][0] == kind
        assert said(made)["default/files/A.md"][0] == "refused"


def test_a_store_that_cannot_be_read_is_no_empty_one() -> None:
    provider = homes(brief=JOB)
    provider.home("/old").unreadable["default", Kind.JOB] = "jobs.json:1: broken"
    made = copied(provider, Picky())
    assert [(i.address, i.fidelity, i.changes) for i in made.items] == [
        (Address("work", "default", Kind.JOB), Fidelity.REFUSED, ("jobs.json:1: broken",))
    ]


def test_a_one_shot_that_is_over_stays() -> None:
    made = copied(homes(once={**JOB, "schedule": {"at": "2020-01-01T00:00:00Z"}}), Picky())
    assert said(made) == {"default/jobs/once": ("refused", ("its only time has passed",))}


def test_a_field_that_cannot_be_read() -> None:
    provider = homes(brief={**JOB, "skills": Unknown("jobs.json: half a list")})
    assert said(copied(provider, Picky())) == {"default/jobs/brief": ("refused", ("skills: jobs.json: half a list",))}


def test_a_provider_that_tells_nothing_more() -> None:
    provider = MemoryProvider()
    provider.home("/old").add_job("brief", **JOB)
    made = copied(provider, MemoryProvider())
    assert made.behind is None
    assert said(made) == {"default/jobs/brief": ("exact", ())}
