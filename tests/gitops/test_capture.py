"""An agent changes its own job in a native home: a branch appears, a person merges it, and all is quiet."""

from __future__ import annotations

from gitops.conftest import SETUP, Site, events


def test_an_agents_improvement_arrives_as_a_review(site: Site) -> None:
    site.push(SETUP.replace("policy: {", "policy: {on_drift: capture, "))
    assert site.run("gitops", "run", "--once").returncode == 0
    store = site.home / "cron" / "jobs.json"
    store.write_text(store.read_text().replace("One.", "One. Name the weather first."))

    told = site.run("gitops", "run", "--once")
    assert told.returncode == 3
    assert [e["addresses"] for e in events(told.stdout) if e["event"] == "captured"] == [
        ["main/default/jobs/brief#prompt"]
    ]
    site.git("fetch", "-q")
    diff = site.git("diff", "--stat", "origin/main", "origin/reconciler/capture")
    assert "setup.yaml | 2 +-" in diff

    site.git("merge", "-q", "origin/reconciler/capture")
    site.git("push", "-q")
    before = store.read_bytes()
    assert site.run("gitops", "run", "--once").returncode == 0
    assert store.read_bytes() == before
    assert site.run("plan", "--detailed-exitcode").returncode == 0
    assert [e["event"] for e in events(site.run("gitops", "run", "--once").stdout)] == ["start", "round", "stop"]
    assert site.git("ls-remote", "--heads", "origin").count("refs/heads/") == 1
