"""OpenClaw's program as a child that hangs, ends, lies or is left alone: a shell script stands in for it."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from openclaw.fake_gateway import TOKEN, Fake, served
from openclaw.test_door import change, codes, made, perform, setting
from reconciler.action import Action, Row
from reconciler.errors import DoorLost, ProviderError
from reconciler.place import LocalPlace
from reconciler.provider import Code
from reconciler_openclaw import cli, quiet
from reconciler_shape.hiding import Hider
from reconciler_specs.address import Address, Kind

CONFIG = f"{{gateway: {{auth: {{token: '{TOKEN}'}}}}, tools: {{profile: 'coding'}}}}"
Script = Callable[[str], None]


@pytest.fixture
def stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fake]:
    """A home that no gateway serves."""
    monkeypatch.setenv("HOME", str(tmp_path))
    with served(tmp_path, text=CONFIG) as fake:
        for lock in (fake.root / "tmp").rglob("*.lock"):
            lock.unlink()
        yield fake


@pytest.fixture
def script(stopped: Fake) -> Script:
    """What OpenClaw does when it is started (`node` is a shell here)."""

    def write(text: str) -> None:
        (stopped.root.parent / "package" / "openclaw.mjs").write_text(text)

    return write


def test_the_environment_is_of_one_home_whatever_the_caller_has(
    stopped: Fake, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENCLAW_STATE_DIR", "OPENCLAW_PROFILE", "OPENCLAW_GATEWAY_TOKEN", "NODE_OPTIONS"):
        monkeypatch.setenv(name, "/somewhere/else")
    script("env")
    lines = set(cli.openclaw(stopped.ref(), []).out.splitlines())
    assert not [line for line in lines if "/somewhere/else" in line]
    root = str(stopped.root)
    assert {f"OPENCLAW_STATE_DIR={root}", f"OPENCLAW_CONFIG_PATH={root}/openclaw.json"} <= lines


def test_one_that_hangs_is_stopped_and_its_doing_is_lost(stopped: Fake) -> None:
    began = time.monotonic()
    with pytest.raises(DoorLost, match=r"did not end within 0 s, and was stopped"):
        cli.run(stopped.ref(), ["/bin/sleep", "60"], {}, seconds=0.2)
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    ("out", "err", "words"),
    [
        ('{"ok": false, "error": {"message": "No such key."}}', "Error: other", "No such key."),
        ("", "one\n\ntwo\n", "one / two"),
        ("", "", "it ended with 3 and said nothing"),
    ],
)
def test_the_words_of_a_failure(out: str, err: str, words: str) -> None:
    assert cli.Done(3, out, err).words == words


def test_a_long_output_is_read_to_its_end(stopped: Fake, script: Script) -> None:
    script("i=0; while [ $i -lt 20000 ]; do echo 0123456789; echo 0123456789 >&2; i=$((i+1)); done")
    done = cli.openclaw(stopped.ref(), [])
    assert (done.code, len(done.out), len(done.err)) == (0, 220_000, 220_000)


def test_a_refused_patch_comes_back_in_its_words_without_the_token(stopped: Fake, script: Script) -> None:
    script(f"cat >/dev/null; echo 'Config invalid: tools.profile ({TOKEN})' >&2; exit 1")
    (answer,) = perform(stopped, [setting(stopped, "tools.profile", "full")])
    assert answer.code is Code.REFUSED
    assert answer.words.startswith("Config invalid: tools.profile")
    assert TOKEN not in answer.words


PATCH = """
[ "$1 $2 $3" = "config patch --stdin" ] || exit 2
cat > {root}/got
cp {root}/openclaw.json {root}/openclaw.json.bak
{also}
printf '%s' '{{"tools": {{"profile": "full"}}}}' > {root}/openclaw.json
"""


def test_the_patch_is_sent_on_stdin(stopped: Fake, script: Script) -> None:
    script(PATCH.format(root=stopped.root, also=""))
    assert codes(perform(stopped, [setting(stopped, "tools.profile", "full")])) == ["ok"]
    assert json.loads((stopped.root / "got").read_text()) == {"tools": {"profile": "full"}}


INCLUDING = """
cp {root}/tools.json5 {root}/tools.json5.bak
printf '%s' '{{"profile": "full"}}' > {root}/tools.json5
"""


def test_an_edit_that_the_command_line_wrote_over_is_found_and_said(stopped: Fake, script: Script) -> None:
    script(PATCH.format(root=stopped.root, also=f"echo '{{}}' > {stopped.root}/openclaw.json.bak"))
    (answer,) = perform(stopped, [setting(stopped, "tools.profile", "full")])
    assert answer.code is Code.HARMED
    assert answer.words.endswith("openclaw.json.bak")


@pytest.mark.parametrize(("edit", "code"), [("", "ok"), ("echo '{profile: 1}' > tools.json5", "harmed")])
def test_an_edit_of_an_included_file_that_it_wrote_over_too(
    stopped: Fake, script: Script, edit: str, code: str
) -> None:
    config, included = stopped.root / "openclaw.json", stopped.root / "tools.json5"
    config.write_text("{tools: {$include: './tools.json5'}}")
    included.write_text("{profile: 'minimal'}")
    for copy in ("openclaw.json.bak", "tools.json5.bak"):  # of an earlier write, and of this very text
        (stopped.root / copy).write_text("{profile: 1}\n")
    script(f"cat > /dev/null; cd {stopped.root}; {edit}\n{INCLUDING.format(root=stopped.root)}")
    (answer,) = perform(stopped, [setting(stopped, "tools.profile", "full")])
    assert answer.code == code, answer
    assert code == "ok" or answer.words.endswith("tools.json5.bak")


def test_a_quiet_gateway_that_ends_says_why(stopped: Fake, script: Script) -> None:
    script(f"echo 'another gateway holds the lock {TOKEN}'; exit 78")
    hider = Hider(b"k", [TOKEN])
    with (
        pytest.raises(ProviderError, match=r"ended with 78: another gateway holds the lock") as found,
        quiet.started(stopped.ref(), None, hider, lambda words: None),
    ):
        pass
    assert TOKEN not in str(found.value)


def test_a_quiet_gateway_ends_with_us(tmp_path: Path) -> None:
    """However we end: the system closes our end of the pipe. What it was let in with goes, too."""
    said, folder = tmp_path / "pid", tmp_path / "quiet ours"
    folder.mkdir()
    (folder / "password").write_text("once")
    body = f"echo $$ > {said}; exec sleep 600"
    process = LocalPlace().start(["/bin/sh", "-c", quiet._KEEPER, "sh", str(folder), "sh", "-c", body], {})
    pid = int(_eventually(lambda: said.read_text() if said.exists() else ""))
    assert process.stdin is not None
    process.stdin.close()
    process.wait(10)
    for pipe in (process.stdout, process.stderr):
        assert pipe is not None
        pipe.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert not folder.exists()


def test_a_quiet_gateway_that_does_not_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quiet, "STOP", 0.3)
    said, folder = tmp_path / "pid", tmp_path / "quiet"
    folder.mkdir()
    body = f"trap '' TERM; echo $$ > {said}; while :; do sleep 0.1; done"
    process = LocalPlace().start(["/bin/sh", "-c", quiet._KEEPER, "sh", str(folder), "sh", "-c", body], {})
    pid = int(_eventually(lambda: said.read_text() if said.exists() else ""))
    quiet._stop(process)
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    assert state.strip() in ("", "Z")


def _eventually(look: Callable[[], str]) -> str:
    until = time.monotonic() + 10
    while not (found := look()).endswith("\n"):
        assert time.monotonic() < until
        time.sleep(0.02)
    return found


def test_a_model_that_openclaw_does_not_know_is_refused_before_a_gateway_takes_it(tmp_path: Path) -> None:
    answer = {
        "ok": False,
        "errors": [{"kind": "resolvability", "message": "x"}, {"kind": "model", "message": "No a/b."}],
    }
    with served(tmp_path, text=CONFIG) as fake:
        program = fake.root.parent / "package" / "openclaw.mjs"
        program.write_text(f"cat >/dev/null; echo '{json.dumps(answer)}'; exit 1")
        address = Address("main", "default", Kind.INFERENCE)
        row = Action(Row.UPDATE, address, changes=(change("default", {"provider": "a", "model": "b"}),))
        (answered,) = perform(fake, [row])
        assert (answered.code, answered.words) == (Code.REFUSED, "No a/b.")
        assert fake.sent("config.patch") == []
        program.write_text('cat >/dev/null; echo \'{"ok": true, "errors": []}\'')
        assert codes(perform(fake, [row])) == ["ok"]
        (sent,) = fake.sent("config.patch")
    assert json.loads(sent["raw"]) == {"agents": {"defaults": {"model": {"primary": "a/b"}}}}


def test_no_gateway_of_ours_carries_out_a_boot_file(stopped: Fake, script: Script) -> None:
    script("touch started")
    hooks = "hooks: {internal: {entries: {'boot-md': {enabled: true}}}}"
    (stopped.root / "openclaw.json").write_text(f"{CONFIG[:-1]}, {hooks}}}")
    (stopped.root / "workspace").mkdir()
    (stopped.root / "workspace" / "BOOT.md").write_text("Write to everybody.")
    with pytest.raises(ProviderError, match=r"would carry out .*/workspace/BOOT\.md"):
        perform(stopped, [made("brief")])
