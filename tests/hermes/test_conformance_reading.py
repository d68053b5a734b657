"""Our reading of a home equals Hermes's own, on every sample home, and changes no byte of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.lab import KEY, Lab, tree
from reconciler.observe import Store, Unknown, Wanted
from reconciler.place import LocalPlace
from reconciler_hermes import dotenv, home, jobs
from reconciler_shape import configfile
from reconciler_specs.address import Kind

pytestmark = pytest.mark.hermes

SAMPLES = Path(__file__).parents[3] / "shared" / "homes" / "hermes-homes.tar.gz"

# Small homes of our own, so that the test says something where the samples are not at hand.
OURS = {
    "plain": {
        "config.yaml": "_config_version: 33\nmodel: {default: a/b, provider: openrouter}\nflag: yes\noctal: 0755\n",
        ".env": "export A_TOKEN=abc\n# x\nB = 'y z'\nA_TOKEN=def\n"
        "OPENROUTER_API_KEY=sk-or-aTELEGRAM_BOT_TOKEN=123:abc\n",
        "cron/jobs.json": '{"jobs": [{"id": "0a1b2c3d4e5f", "name": "x", "prompt": "p", "schedule": '
        '{"kind": "interval", "minutes": 5}, "skill": "old", "deliver": ["telegram"], "enabled": true}]}',
    },
    "bare list": {"config.yaml": "{}\n", "cron/jobs.json": '[{"id": "0a", "name": "x"}]'},
    "control characters": {"config.yaml": "", "cron/jobs.json": '{"jobs": [{"id": "0a", "prompt": "a\tb\nc"}]}'},
    "byte order mark": {"config.yaml": "a: 1\n", "cron/jobs.json": '\ufeff{"jobs": [{"id": "0a"}]}'},
    "truncated": {"config.yaml": "a: [\n", "cron/jobs.json": '{"jobs": [{"id": "0a"'},
    "text": {"config.yaml": "- a\n", "cron/jobs.json": '"x"'},
    "empty": {"config.yaml": "", "cron/jobs.json": ""},
    "nothing in it": {"SOUL.md": "x", "cron/jobs.json": "{}"},
    "jobs is a map": {"SOUL.md": "x", "cron/jobs.json": '{"jobs": {"a": 1}}'},
}


def _unpack(folder: Path) -> list[Path]:
    for name, files in OURS.items():
        for path, text in files.items():
            target = folder / f"ours {name}" / ".hermes" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
    if SAMPLES.is_file():
        with tarfile.open(SAMPLES) as archive:
            archive.extractall(folder, filter="data")
    return sorted(path.parent for path in folder.glob("*/.hermes"))


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Path]]:
    folder = tmp_path_factory.mktemp("homes")
    yield _unpack(folder)
    shutil.rmtree(folder)


def _profiles(root: Path) -> list[Path]:
    return [root, *sorted(p for p in (root / "profiles").glob("*") if p.is_dir())]


CODE = """
import json, os, sys
def tell(read):
    try: return read()
    except Exception as error: return {'error': str(error)}
from hermes_cli.config import read_raw_config, load_env
import cron.jobs as c
out = {'config': tell(read_raw_config), 'env': list(load_env()), 'jobs': tell(c.load_jobs)}
print(json.dumps(out, default=str))
"""


def test_reading_equals_hermes_own(homes: list[Path], tmp_path: Path) -> None:
    seen_jobs = 0
    for sample in homes:
        for folder in _profiles(sample / ".hermes"):
            name = f"{sample.name}/{folder.name}"
            config = home.config(LocalPlace(), str(folder))
            env = home.env(LocalPlace(), str(folder))
            store = folder / "cron" / "jobs.json"
            # Hermes changes what it reads, so it gets a copy; links in it stay links.
            copy = tmp_path / name.replace("/", "_")
            shutil.copytree(sample, copy, symlinks=True)
            theirs = Lab(copy / folder.relative_to(sample)).hermes(CODE)
            assert isinstance(env, dotenv.DotEnv)
            assert list(env.names) == theirs["env"], name
            if config.unknown:
                assert theirs["config"] == {}, name
            else:
                assert config.raw == theirs["config"], name
            try:
                ours = jobs.load(store.read_bytes(), str(store))[0] if store.exists() else []
            except ValueError:
                # What we cannot read Hermes fails on, at once or when it lists the jobs.
                assert "error" in theirs["jobs"] or not isinstance(theirs["jobs"], list), name
                continue
            assert ours == theirs["jobs"], name
            seen_jobs += len(ours)
    assert seen_jobs


def test_observe_starts_nothing_and_changes_nothing(homes: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **more: object) -> None:
        raise AssertionError(f"a process was started: {args}")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr(os, "posix_spawn", refuse)
    for sample in homes:
        root = sample / ".hermes"
        before = tree(sample)
        times = {p: p.stat().st_mtime_ns for p in sample.rglob("*") if p.is_dir()}
        lab = Lab(root)
        observation = lab.provider.observe(lab.ref, Wanted(everything=True))
        for thing in observation.all():
            lab.provider.express(thing, observation)
        assert tree(sample) == before
        assert {p: p.stat().st_mtime_ns for p in sample.rglob("*") if p.is_dir()} == times


def test_a_run_is_no_change(homes: list[Path]) -> None:
    sample = next((s for s in homes if s.name == "07-after-gateway"), None)
    if sample is None:
        return
    lab = Lab(sample / ".hermes")
    after = lab.observe().things["default", Kind.JOB]
    shutil.copy(sample / "jobs-before-run.json", sample / ".hermes" / "cron" / "jobs.json")
    before = lab.observe()
    things = before.things["default", Kind.JOB]
    assert isinstance(after, dict) and isinstance(things, dict)
    shared = after.keys() & things.keys()
    assert shared
    for name in shared:
        assert after[name].fingerprint == things[name].fingerprint
        assert after[name].fields == things[name].fields
    assert before.ended["default", Kind.JOB]


def test_stores_are_told_apart(homes: list[Path]) -> None:
    found = {}
    for sample in homes:
        if sample.name.startswith("ours "):
            observation = Lab(sample / ".hermes").observe()
            things = observation.things["default", Kind.JOB]
            found[sample.name.removeprefix("ours ")] = observation.stores["default", Kind.JOB]
            assert isinstance(things, Unknown) == (observation.stores["default", Kind.JOB] is Store.IMPROPER)
    assert found == {
        "plain": Store.PROPER,
        "bare list": Store.PROPER,
        "control characters": Store.PROPER,
        "byte order mark": Store.PROPER,
        "truncated": Store.IMPROPER,
        "text": Store.IMPROPER,
        "empty": Store.IMPROPER,
        "nothing in it": Store.EMPTY,
        "jobs is a map": Store.IMPROPER,
    }


def test_no_secret_leaves_the_provider(homes: list[Path]) -> None:
    """Not one value of a credential in `.env` is in anything that an observation holds."""
    checked = 0
    for sample in homes:
        lab = Lab(sample / ".hermes")
        observation = lab.provider.observe(lab.ref, Wanted(everything=True))
        text = repr(observation)
        for folder in _profiles(sample / ".hermes"):
            env = home.env(LocalPlace(), str(folder))
            assert isinstance(env, dotenv.DotEnv)
            for secret in env.secrets:
                if len(secret) >= 8:
                    checked += 1
                    assert secret not in text, sample.name
    assert checked
    assert KEY not in text


def test_config_reading_names_the_line() -> None:
    with pytest.raises(configfile.NotReadable, match=r"^/h/config\.yaml:2:4: "):
        configfile.parse(b"a: 1\nb: - c\n", "/h/config.yaml")
