"""Settings and kits of a project through the engine: made, kept, changed, refused, and never taken out."""

from __future__ import annotations

import pytest

from reconciler.action import FieldRow, Row
from reconciler.plan import Options
from viable.conftest import Make
from viable.lab import Shop

SETTINGS = 'project_settings: {copyright: "© Mine", termsUrl: /terms, googleTag: G-1}\n'
KITS = 'planning_kits:\n  delivery: {source: "viable:project", types: [task]}\n'


def test_settings_and_kits_are_written_once_and_stay(shop: Shop) -> None:
    text = shop.text(SETTINGS + KITS)
    shop.converge(text)
    assert shop.app.settings["shop"]["copyright"] == "© Mine" and shop.app.applied["shop"] == [("project", "task")]
    # One patch with what differs only (S4-11), and explicit types (S4-08).
    assert shop.posts() == [
        ("/connect/project/shop/branding", {"copyright": "© Mine", "googleTag": "G-1"}),
        ("/connect/project/shop/kits", {"kit": "project", "types": ["task"]}),
    ]
    before = shop.kept()
    for _ in range(5):
        assert shop.apply(text) == {}
    assert len(shop.posts()) == 2 and shop.kept() == before
    assert not [path for _, path, _ in shop.app.seen if "session" in path]


def test_types_are_said_though_the_setup_says_none(shop: Shop) -> None:
    shop.converge(shop.text('planning_kits: {desk: {source: "viable:project"}}'))
    assert shop.posts() == [("/connect/project/shop/kits", {"kit": "project", "types": ["task", "bug", "idea"]})]


def test_a_kit_grows_and_what_is_there_already_is_told(shop: Shop) -> None:
    shop.converge(shop.text(KITS))
    shop.app.applied["shop"].append(("project", "bug"))
    done = shop.apply(shop.text(KITS.replace("[task]", "[task, bug, idea]")))
    assert done["planning_kits/delivery"] == (
        "applied",
        "there already: task, bug; the platform warns: the preview is rebuilt",
    )
    assert shop.posts()[-1][1] == {"kit": "project", "types": ["task", "bug", "idea"]}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (KITS.replace("[task]", "[bug]"), "task would go, and the platform has no way"),
        (KITS.replace("viable:project", "viable:helpdesk").replace("task", "ticket"), "under a key of its own"),
        (KITS.replace("[task]", "[task, epic]"), "has no type epic; it has task, bug, idea"),
    ],
)
def test_a_kit_never_shrinks(shop: Shop, body: str, why: str) -> None:
    shop.converge(shop.text(KITS))
    row = shop.rows(shop.text(body))["planning_kits/delivery"]
    assert row.row is Row.REFUSED and why in row.reason
    assert shop.apply(shop.text(body)) == {} and len(shop.posts()) == 1


def test_a_kit_that_left_is_let_go_of_and_never_taken_out(shop: Shop) -> None:
    shop.converge(shop.text(KITS))
    row = shop.rows(shop.text())["planning_kits/delivery"]
    assert row.row is Row.DELETE and row.hold is not None and "no way to take a kit" in row.hold.why
    assert row.hold.command == "reconciler release shop/planning_kits/delivery"
    shop.converge(shop.text("") + "released: [shop/planning_kits/delivery]\n")
    assert len(shop.posts()) == 1 and shop.rows(shop.text()) == {}


def test_types_that_the_setup_no_longer_says_are_let_go_of(shop: Shop) -> None:
    shop.converge(shop.text(KITS))
    shop.converge(shop.text(KITS.replace(", types: [task]", "")))
    assert len(shop.posts()) == 1


@pytest.mark.parametrize(
    ("kit", "why"),
    [
        ('{source: "viable:crm"}', "offers no kit crm; it offers helpdesk, project"),
        ('{source: "kit:kanban"}', "kits of its own only"),
        ('{source: "viable:project", board: {slug: a}}', "no boards"),
    ],
)
def test_what_the_platform_cannot_do_is_refused_by_the_plan(shop: Shop, kit: str, why: str) -> None:
    row = shop.rows(shop.text(f"planning_kits: {{own: {kit}}}"))["planning_kits/own"]
    assert row.row is Row.REFUSED and why in row.reason


def test_what_others_change_is_drift_and_what_left_the_setup_stays(shop: Shop) -> None:
    shop.converge(shop.text(SETTINGS))
    shop.app.settings["shop"]["copyright"] = "© Theirs"
    row = shop.rows(shop.text(SETTINGS))["settings/copyright"]
    assert [c.row for c in row.changes] == [FieldRow.DRIFT]
    done = shop.apply(shop.text(SETTINGS), Options(restore=("shop/settings/copyright",)))
    assert done["settings/copyright"][0] == "applied" and shop.app.settings["shop"]["copyright"] == "© Mine"
    # Only the tag can be taken away, and only it is: it was not there before us.
    shop.converge(shop.text())
    assert shop.app.settings["shop"]["copyright"] == "© Mine" and "googleTag" not in shop.app.settings["shop"]


def test_a_tag_that_was_there_is_taken_away_by_unset_only(shop: Shop) -> None:
    shop.app.settings["shop"]["googleTag"] = "G-OLD"
    text = shop.text("project_settings: {unset: [googleTag]}")
    assert [c.row for c in shop.rows(text)["settings/googleTag"].changes] == [FieldRow.CLAIM]
    shop.converge(text)
    assert shop.posts() == [("/connect/project/shop/branding", {"googleTag": ""})]


def test_a_refusal_names_the_setting_and_nothing_is_changed(shop: Shop) -> None:
    """S4-12: the platform checks, and says which."""
    done = shop.apply(shop.text('project_settings: {copyright: "© New", termsUrl: "http://example.org"}'))
    assert {outcome for path, (outcome, _) in done.items() if path != "home"} == {"refused"}
    assert done["settings/termsUrl"][1].startswith("termsUrl is refused: an https:// address without credentials")
    assert shop.app.settings["shop"]["copyright"] == "© 2031"


def test_what_changed_since_the_plan_is_not_written_over(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    from reconciler_viable.door import ViableDoor

    shop.converge(shop.text(SETTINGS))
    text = shop.text(SETTINGS.replace("Mine", "Ours"))
    inner = ViableDoor.perform

    def meanwhile(door: ViableDoor, step: object) -> object:
        shop.app.settings["shop"]["copyright"] = "© Theirs"
        return inner(door, step)  # type: ignore[arg-type]

    monkeypatch.setattr(ViableDoor, "perform", meanwhile)
    assert shop.apply(text)["settings/copyright"] == ("refused", "it changed on the platform since the plan")
    assert shop.app.settings["shop"]["copyright"] == "© Theirs"


@pytest.mark.parametrize(
    ("project", "words"),
    [
        ("broke", "top it up at https://owlmeans.com/billing"),
        ("consent", "agree to the spending at https://owlmeans.com/consent/7"),
        ("limited", "does not have this capability"),
    ],
)
def test_what_only_a_person_can_do_is_said_with_the_link_and_tried_once(make: Make, project: str, words: str) -> None:
    """S4-15: never tried again by itself: each write asks for consent, the next one too."""
    shop = make(project=project)
    text = shop.text(KITS)
    done = shop.apply(text)["planning_kits/delivery"]
    assert done[0] == "refused" and done[1].startswith("needs a person: ") and words in done[1]
    assert len(shop.posts()) == 1
    assert str(shop.rows(text)["planning_kits/delivery"].tier) == "confirm"


def test_a_project_that_is_not_shown_is_unknown_and_never_gone(make: Make) -> None:
    """S4-30: 404 may as well be another account's project."""
    shop = make()
    shop.converge(shop.text(KITS))
    gone = make("hostile", "not-found")
    gone.url = shop.url
    shop.app._tricks = gone.app._tricks
    shop.app.mood = "hostile"
    assert "does not mean it is gone" in shop.failed(shop.text(KITS))
    assert "does not mean it is gone" in make(project="nobody").failed(make(project="nobody").text())
