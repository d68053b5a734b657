"""Files: includes, sources and their limits; homes, places, policy; where values come from."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reconciler_specs.address import Address
from reconciler_specs.errors import SpecError, Where
from reconciler_specs.load import load, load_text
from reconciler_specs.policy import Policy
from reconciler_specs.resource import Mode
from reconciler_specs.sources import MAX_SOURCE

HEAD = "version: 1\nname: solo\nhomes:\n  main:\n    harness: hermes\n    path: ~/.hermes\n"


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_yaml", ".yaml").replace("_md", ".md")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "setup.yaml"


def messages(error: pytest.ExceptionInfo[SpecError]) -> str:
    return str(error.value)


# --- files ---------------------------------------------------------------------------------------------------------


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"no such file.*\n.*reconciler init"):
        load(tmp_path / "setup.yaml")


def test_a_folder(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="not a regular file"):
        load(tmp_path)


def test_files_read_and_root(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        setup_yaml="include: [more/*.yaml]\n" + HEAD + "    profiles: {default: {files: {A.md: {source: a.md}}}}\n",
        a_md="Hello.\n",
        more__b_yaml="homes: {b: {harness: hermes, path: /b}}\n",
    )
    setup = load(path)
    real = tmp_path.resolve()
    assert setup.root == real / "setup.yaml"
    assert setup.files == (real / "setup.yaml", real / "more/b.yaml", real / "a.md")
    assert list(setup.homes) == ["main", "b"]


def test_a_linked_setup_is_read_where_it_lies(tmp_path: Path) -> None:
    write(tmp_path / "real", setup_yaml=HEAD + "    profiles: {default: {files: {A: {source: a.md}}}}\n", a_md="x")
    (tmp_path / "setup.yaml").symlink_to("real/setup.yaml")
    assert load(tmp_path / "setup.yaml").desired("main")[Address.parse("main/default/files/A")].fields == {"text": "x"}


def test_a_link_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "out.md").write_text("outside")
    (tmp_path / "out.yaml").write_text("homes: {b: {harness: hermes, path: /b}}")
    path = write(
        tmp_path / "in",
        setup_yaml="include: [in.yaml]\n" + HEAD + "    profiles: {default: {files: {A: {source: in.md}}}}\n",
    )
    (path.parent / "in.md").symlink_to("../out.md")
    (path.parent / "in.yaml").symlink_to("../out.yaml")
    with pytest.raises(SpecError) as caught:
        load(path)
    assert [r.message.endswith("outside the setup's folder") for r in caught.value.reasons] == [True, True]


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    path = write(tmp_path, setup_yaml=HEAD + "    profiles: {default: {files: {A: {source: pipe}}}}\n")
    with pytest.raises(SpecError, match="not a regular file"):
        load(path)


@pytest.mark.parametrize(
    ("data", "why"),
    [(b"\xff", "not UTF-8"), (b"a\x00b", "not UTF-8"), (b"x" * (MAX_SOURCE + 1), "too large")],
    ids=["latin", "nul", "large"],
)
def test_a_source_that_is_no_text(tmp_path: Path, data: bytes, why: str) -> None:
    (tmp_path / "a").write_bytes(data)
    path = write(tmp_path, setup_yaml=HEAD + "    profiles: {default: {files: {A: {source: a}}}}\n")
    with pytest.raises(SpecError, match=why):
        load(path)


def test_a_source_is_kept_byte_for_byte(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfa\r\n\x1b[0m\t\n")
    path = write(tmp_path, setup_yaml=HEAD + "    profiles: {default: {files: {A: {source: a}}}}\n")
    text = load(path).desired("main")[Address.parse("main/default/files/A")].fields["text"]
    assert text.encode() == b"\xef\xbb\xbfa\r\n\x1b[0m\t\n"


def test_a_source_with_a_credential(tmp_path: Path) -> None:
    token = "ghp" + "_" + "FAKE0NOT0A0REAL0TOKEN"
    (tmp_path / "a").write_text(f"export X={token}\n")
    path = write(tmp_path, setup_yaml=HEAD + "    profiles: {default: {files: {A: {source: a}}}}\n")
    with pytest.raises(SpecError, match="credential") as caught:
        load(path)
    assert token not in messages(caught)


def test_an_included_file_may_be_wrong_in_any_way(tmp_path: Path) -> None:
    path = write(tmp_path, setup_yaml="include: [a.yaml, b.yaml, c.yaml]\n" + HEAD)
    (tmp_path / "a.yaml").write_bytes(b"\xff")
    (tmp_path / "b.yaml").write_text("- a\n")
    (tmp_path / "c.yaml").write_text("homes: [x")
    with pytest.raises(SpecError) as caught:
        load(path)
    assert [Path(r.where.file).name for r in caught.value.reasons] == ["a.yaml", "b.yaml", "c.yaml"]


# --- homes ---------------------------------------------------------------------------------------------------------


def test_home_and_places() -> None:
    setup = load_text(
        """
version: 1
name: fleet
formerly: [old]
places: {here: {}, nas: {exec: [docker, exec, hermes]}, far: {host: nas2}}
homes:
  a: {harness: hermes, path: state/a, at: here, timezone: Europe/Vienna, harness_version: ">=0.19"}
  b: {harness: hermes, path: /data, at: nas, first_contact: adopt, shared: true, restart: never, door: {python: /p}}
  c: {harness: openclaw, path: /data, at: far}
  d: {harness: native, path: ~/x}
released: [a/default/jobs/x, a]
moved: [{from: a/default/jobs/x, to: a/default/jobs/y}]
""".replace("released: [a/default/jobs/x, a]", "released: [a/default/jobs/x]"),
        base_dir="/srv/setup",
    )
    a, b, c, d = setup.homes.values()
    assert (a.path, a.place, a.at, a.host) == ("/srv/setup/state/a", "here", None, "")
    assert (a.timezone, a.harness_version, a.first_contact, a.restart) == ("Europe/Vienna", ">=0.19", "ask", "ask")
    assert (b.path, b.at, b.shared, b.restart, b.door) == (
        "/data",
        ("docker", "exec", "hermes"),
        True,
        "never",
        {"python": "/p"},
    )
    assert (c.at, c.host, c.harness) == (None, "nas2", "openclaw")
    assert d.path == "~/x"
    assert setup.formerly == ("old",)
    assert setup.moved == ((Address.parse("a/default/jobs/x"), Address.parse("a/default/jobs/y")),)
    assert setup.released == (Address.parse("a/default/jobs/x"),)


def test_only() -> None:
    text = HEAD + "  two: {harness: nonsense}\n"
    assert list(load_text(text, only={"main"}).homes) == ["main"]
    with pytest.raises(SpecError, match='no home "mian"'):
        load_text(text, only={"mian"})


def test_policy_of() -> None:
    setup = load_text(
        HEAD
        + "    policy: {on_drift: watch, raise: {update jobs: refuse}, limits: {deletes: 2}}\n"
        + "  two: {harness: hermes, path: /two}\n"
        + "policy: {unattended: [restore jobs, adopt homes], raise: {create profile: confirm}, limits: {minutes: 9},"
        + " confirm_within: 4h, on_removed: delete}\n"
    )
    assert setup.policy_of("main") == Policy(
        Mode.WATCH,
        "recreate",
        "delete",
        ("restore jobs", "adopt home"),
        {"update jobs": "refuse", "create profile": "confirm"},
        {"minutes": 9, "deletes": 2},
        4 * 3600,
    )
    assert setup.policy_of("two").on_drift is Mode.HOLD
    with pytest.raises(KeyError):
        setup.policy_of("three")


def test_order_of_desired() -> None:
    setup = load_text(
        HEAD
        + """    profiles:
      coder: {jobs: {b: {schedule: {every: 2h}, prompt: x, deliver: local}}, description: x}
      default:
        jobs: {b: {schedule: {every: 2h}, prompt: x, deliver: local}}
        inference: {models: {m: {provider: p, model: m}}, default: m}
        settings: {a: 1}
        files: {A: {text: x}}
"""
    )
    assert [str(a) for a in setup.desired("main")] == [
        "main/coder", "main/coder/jobs/b", "main/default", "main/default/files/A", "main/default/settings/a",
        "main/default/inference", "main/default/jobs/b",
    ]  # fmt: skip


def test_models_by_name() -> None:
    profile = "{inference: {models: {m: {provider: p, model: x}}, default: m}}"
    setup = load_text(HEAD + f"    profiles: {{default: {profile}, coder: {{}}}}\n")
    assert setup.homes["main"].models == {"default": {"m": {"provider": "p", "model": "x"}}}


# --- where values come from ----------------------------------------------------------------------------------------

TEMPLATE = """version: 1
name: agency
parameters: {chat: {type: string}}
templates:
  base: {profiles: {default: {settings: {a: 1}}}}
  client:
    extends: [base]
    harness: openclaw
    profiles:
      default:
        jobs:
          standup:
            schedule: {every: 1d}
            prompt: Hello.
            deliver: {to: slack, chat: $(chat)}
homes:
  bolt:
    extends: [client]
    path: /srv/bolt
    with: {chat: C0}
    profiles:
      default:
        jobs:
          standup:
            prompt: Bye.
"""


def test_origins() -> None:
    job = load_text(TEMPLATE, "s.yaml").desired("bolt")[Address.parse("bolt/default/jobs/standup")]
    assert job.origin("prompt").where == Where("s.yaml", 25, 21)
    assert job.origin("prompt").via == ""
    assert job.origin("schedule").where == Where("s.yaml", 13, 23)
    assert job.origin("schedule").via == "template client"
    assert job.origin("name").where == Where("s.yaml", 24, 11)
    assert job.fields["deliver"] == {"to": "slack", "chat": "C0"}


def test_origin_of_a_template_of_a_template() -> None:
    setting = load_text(TEMPLATE, "s.yaml").desired("bolt")[Address.parse("bolt/default/settings/a")]
    assert setting.origin("value").via == "template base"
    assert setting.origin("").where == Where("s.yaml", 5, 42)


def test_a_fault_of_a_template_is_told_once() -> None:
    text = TEMPLATE.replace("every: 1d", "every: 1x") + "  two: {extends: [client], path: /two, with: {chat: C1}}\n"
    with pytest.raises(SpecError) as caught:
        load_text(text)
    assert len(caught.value.reasons) == 1


def test_parameters_keep_their_type() -> None:
    setup = load_text(
        """
version: 1
name: a
parameters: {n: {type: integer, default: 3}, f: {type: boolean, default: true}, s: {type: string, default: "7"}}
homes:
  m: {harness: hermes, path: /x, profiles: {default: {settings: {
    n: $(n), quoted: "$(n)", inside: a$(n)b$(f), f: $(f), s: $(s), literal: "$$(n) $$$(n) $(n)", list: [$(n), 1]}}}}
"""
    )
    values = {a.key: r.fields["value"] for a, r in setup.desired("m").items() if a.key}
    assert values == {
        "n": 3, "quoted": "3", "inside": "a3btrue", "f": True, "s": "7", "literal": "$(n) $$(n) 3", "list": [3, 1],
    }  # fmt: skip


def test_a_template_file_is_relative_to_itself(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        setup_yaml="version: 1\nname: a\ninclude: [t/t.yaml]\nhomes: {m: {extends: [t], path: /x}}\n",
        t__t_yaml="templates: {t: {harness: hermes, profiles: {default: {files: {A: {source: a.md}}}}}}\n",
        t__a_md="from t",
    )
    assert load(path).desired("m")[Address.parse("m/default/files/A")].fields == {"text": "from t"}
