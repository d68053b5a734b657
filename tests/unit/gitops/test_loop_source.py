"""What the loop takes from a branch: only what moves forward, can be read, and is signed if that is asked for."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from following import Following, brief
from reconciler.gitops.source import Source
from reconciler_specs.errors import SpecError
from reconciler_specs.load import load

# -- what it takes from a branch ---------------------------------------------------------------------------------


def rewound(following: Following) -> tuple[str, str]:
    """Two revisions, of which the second is gone from the branch and another one is there."""
    following.meet(brief("One."))
    following.push(brief("Two."))
    following.round()
    old = following.work.run("rev-parse", "HEAD")
    following.work.run("reset", "-q", "--hard", "HEAD~1")
    return old, following.push(brief("Other."), force=True)


def test_a_branch_that_was_rewound_is_held(following: Following) -> None:
    old, new = rewound(following)
    following.edit("Mine.")
    loop = following.loop()
    assert [loop.round(), loop.round()] == [3, 3]
    [held] = following.events("held")
    assert new[:12] in held["reason"] and old[:12] in held["reason"] and "--allow rewind" in held["command"]
    assert following.jobs() == ["Mine."]
    assert following.events("drift")[0]["was"] == "Two."  # the last good one is still what homes are compared with
    following.edit("Two.")
    assert following.round(allow=frozenset({"rewind"})) == 0
    assert following.jobs() == ["Other."]


def test_a_revision_that_git_has_no_longer_is_a_rewind(following: Following) -> None:
    following.meet(brief("One."))
    following.round()
    path = following.source().folder / "loop.json"
    path.write_text(path.read_text().replace(following.work.run("rev-parse", "HEAD"), "0" * 40))
    assert following.round() == 1 and following.events("held") and following.jobs() == ["One."]
    assert following.round(allow=frozenset({"rewind"})) == 0


def test_a_broken_setup_is_told_with_its_line_and_the_last_good_one_stays(following: Following) -> None:
    following.meet(brief("One."))
    following.round()
    following.edit("Mine.")
    bad = following.push(brief("Two.").replace("prompt", "promt"))
    loop = following.loop()
    assert [loop.round(), loop.round()] == [1, 1]
    told = following.events("error")
    assert told[0]["file"] == "setup.yaml" and told[0]["line"] == 11 and told[0]["revision"] == bad
    assert "promt" in str(told) and "prompt" in told[0]["hint"]
    assert len({str(e) for e in told}) == len(told)
    assert [e["was"] for e in following.events("drift")] == ["One."] and following.jobs() == ["Mine."]
    following.edit("One.")
    following.push(brief("Three."))
    assert following.round() == 0 and following.jobs() == ["Three."]


@pytest.mark.parametrize("text", ["", "version: 1\nname: [\n", "\0", "version: 2\n", "include: [../*.yaml]\n"])
def test_whatever_a_revision_holds_the_loop_goes_on(following: Following, text: str) -> None:
    following.meet(brief("One."))
    following.round()
    following.push(text)
    assert following.round() == 1
    assert following.events("error")
    following.push(brief("Two."))
    assert following.round() == 0


def test_a_setup_that_is_gone_is_said(following: Following) -> None:
    following.meet(brief("One."))
    following.round()
    following.work.run("mv", "setup.yaml", "other.yaml")
    following.push("x\n", file="notes.txt")
    (following.work.root / "setup.yaml").write_text("here, for the person\n")
    assert following.round() == 1
    assert "no such file" in following.events("error")[0]["reason"]


@pytest.mark.parametrize("linked", ["file", "folder"])
def test_a_setup_that_a_commit_puts_elsewhere_by_a_link_is_not_read(following: Following, linked: str) -> None:
    outside = following.root / "outside"
    outside.mkdir()
    (outside / "setup.yaml").write_text("ANOTHER_TOKEN=only-for-this-machine\n")
    following.push(brief("One."), file="conf/setup.yaml")
    source = Source.of(following.work.root / "conf/setup.yaml", following.root / "state" / "gitops")
    source.prepare()
    folder = following.work.root / "conf"
    if linked == "file":
        (folder / "setup.yaml").unlink()
        (folder / "setup.yaml").symlink_to(outside / "setup.yaml")
    else:
        shutil.rmtree(folder)
        folder.symlink_to(outside)
    source.check_out(following.push("x\n", file="notes.txt"))
    with pytest.raises(SpecError, match="link") as caught:
        load(source.setup)
    assert "only-for" not in str(caught.value)


def test_what_a_linked_setup_holds_is_not_told(following: Following) -> None:
    following.meet(brief("One."))
    loop = following.loop()
    assert loop.round() == 0
    (following.root / "outside").write_text("ANOTHER_TOKEN=only-for-this-machine\n")
    (following.work.root / "setup.yaml").unlink()
    (following.work.root / "setup.yaml").symlink_to(following.root / "outside")
    following.push("x\n", file="notes.txt")
    assert loop.round() == 1
    assert [e["file"] for e in following.events("error")] == ["setup.yaml"]
    assert "only-for" not in str(following.told)


def test_a_remote_that_cannot_be_reached(following: Following) -> None:
    following.meet(brief("One."))
    loop = following.loop()
    loop.round()
    away = following.hub.root.with_name("away.git")
    following.hub.root.rename(away)
    following.edit("Mine.")
    times = []
    start = following.time
    while following.time - start < 1000:
        before = len(following.events("unreachable"))
        assert loop.round() == 1
        if len(following.events("unreachable")) > before:
            times.append(following.time - start)
        following.time += 60
    assert times == [0, 60, 180, 420, 900]
    assert len(following.events("drift")) == 1  # what can be looked at is
    following.edit("One.")
    away.rename(following.hub.root)
    following.time += 2000
    assert loop.round() == 0


def test_a_remote_that_was_never_reached(following: Following) -> None:
    following.meet(brief("One."))
    following.hub.root.rename(following.hub.root.with_name("away.git"))
    assert following.round() == 1
    assert [e["event"] for e in following.told] == ["unreachable", "round"]


def test_a_url_shows_no_credential(following: Following) -> None:
    following.meet(brief("One."))
    following.work.run("remote", "set-url", "origin", "https://ann:hunter2hunter2@127.0.0.1:1/x.git")
    assert following.round() == 1
    assert "127.0.0.1" in str(following.told) and "hunter2" not in str(following.told)


def test_its_work_tree_is_made_again(following: Following) -> None:
    following.meet(brief("One."))
    following.round()
    root = following.source().tree.root
    shutil.rmtree(root)
    assert following.round() == 0
    (root / ".git").unlink()
    (root / "setup.yaml").write_text("edited\n")
    assert following.round() == 0
    (root / "setup.yaml").write_text("edited\n")
    (root / "new.yaml").write_text("new\n")
    following.push(brief("Two."))
    assert following.round() == 0 and following.jobs() == ["Two."]
    assert not (root / "new.yaml").exists()


def test_no_program_of_the_repository_runs(following: Following) -> None:
    ran = following.root / "ran"
    hooks = following.work.root / ".git" / "hooks"
    for name in ("post-checkout", "reference-transaction", "pre-push", "pre-commit", "post-merge"):
        hook = hooks / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
        hook.chmod(0o755)
    following.meet(brief("One."))
    following.push(".gitmodules\n", file="x")
    following.push(f'[submodule "x"]\n\tpath = sub\n\turl = ext::sh -c "touch {ran}"\n', file=".gitmodules")
    assert following.round() == 0
    assert not ran.exists()


def test_a_damaged_record_is_said(following: Following) -> None:
    following.meet(brief("One."))
    following.round()
    path = following.source().folder / "loop.json"
    for text in ("", "{", "[]", '{"format": "reconciler.gitops/9"}', '{"format": "reconciler.gitops/1", "tip": 7}'):
        path.write_text(text)
        following.told.clear()
        assert following.round() == 1, text
        assert "loop.json" in following.events("error")[0]["reason"] and following.events("error")[0]["hint"]


# -- signatures --------------------------------------------------------------------------------------------------


def signing(following: Following, *, trusted: bool = True) -> None:
    """Commits of the author are signed with an ssh key that git is told to trust."""
    key = following.root / "key"
    if not key.exists():
        made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "ann", "-f", str(key)]
        subprocess.run(made, check=True, capture_output=True)
    signers = following.root / "signers"
    signers.write_text(f"ann@example.org {key.with_suffix('.pub').read_text()}" if trusted else "")
    for name, value in (
        ("gpg.format", "ssh"),
        ("user.signingkey", str(key)),
        ("commit.gpgsign", "true"),
        ("gpg.ssh.allowedSignersFile", str(signers)),
    ):
        following.work.run("config", name, value)


def test_only_a_signed_tip_is_taken(following: Following) -> None:
    following.meet(brief("One."))
    assert following.round(require_signed=True) == 4
    assert "no signature that git takes for good" in following.events("held")[0]["reason"]
    signing(following)
    following.push(brief("Two."))
    assert following.round(require_signed=True) == 0 and following.jobs() == ["Two."]
    signing(following, trusted=False)
    following.push(brief("Three."))
    assert following.round(require_signed=True) == 4
    following.work.run("config", "commit.gpgsign", "false")
    signing(following)
    following.work.run("config", "commit.gpgsign", "false")
    following.push(brief("Four."))
    assert following.round(require_signed=True) == 4
    assert following.jobs() == ["Two."]
