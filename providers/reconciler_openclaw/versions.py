"""What each OpenClaw version can store; a declared field that it cannot is an error at plan time (L15)."""

from __future__ import annotations

from . import home

TESTED = ("2026.9.6", "2026.7.1-2")

OVER = " over "
"""Between the installed version and the home's, where they differ: such a pair is no tested version."""

_NOT_A_JOBS = {
    "before": "OpenClaw has no script that leads a job's prompt; let the prompt say which command to run",
    "skills": "OpenClaw has no skills per job: an agent has all that are in its workspace",
    "context_from": "OpenClaw gives a job no other job's answer; let both run in one session (`session: session:NAME`)",
    "monitor": "OpenClaw's triggers are scripts of its own kind, which a setup cannot name",
    "id": "OpenClaw draws the ids itself",
    "metadata": "OpenClaw keeps no free values with a job",
}


def supported(version: str | None) -> str:
    """ "" if this version is tested, else why the home is plan-only."""
    if version is None:
        return "OpenClaw's version cannot be told: no install was found (say door: {openclaw: PATH})"
    if version in TESTED:
        return ""
    installed, _, other = version.partition(OVER)
    if other:
        return _two(installed, other)
    return f"OpenClaw {version} is not tested (tested: {', '.join(TESTED)})"


def missing(field: str) -> str:
    """Why a job's `field` cannot be stored in any version, "" if it can."""
    return _NOT_A_JOBS.get(field, "")


def _two(installed: str, other: str) -> str:
    """Why nothing may be written to a home of another version: it would be refused, or changed on the way in."""
    if home.version(installed) > home.version(other):
        return (
            f"OpenClaw {installed} is installed, and the home is one of {other}: start its gateway once with the "
            "installed version, which moves the home over (openclaw.json is written anew, without its comments; the "
            "old database stays beside the new one), and plan again"
        )
    return f"OpenClaw {installed} is installed, and the home is one of {other}, which an older one refuses to write"


def of_home(ran: str | None, written: str | None) -> str | None:
    """The version that a home is of: the newest that has served it, or written its config; None for a new one."""
    return max((version for version in (ran, written) if version), key=home.version, default=None)


_NOT_OURS = {
    "channels admins": "OpenClaw has its owners for all channels together (the setting commands.ownerAllowFrom)",
    "channels owner_chat, adapter": "OpenClaw keeps none",
    "channels of another profile": "held until a route leads the account there",
    "routes order": "OpenClaw takes the binding that says most; routes match, once made: give the route a new name",
    "webhooks secret": "one for all webhooks (hooks.token)",
    "webhooks events, skills, deliver_only": "OpenClaw's mappings have none",
    "mcp_servers, plugins, skills": "for all agents: declared for profile default",
    "toolsets": "only `default`, the agent's tools.allow",
    "skills source": "a skill's files are files of a workspace (skills/NAME/SKILL.md)",
    "planning_kits": "boards of the plugin workboard for profile default, the key their slug; its statuses (degrade)",
    "secrets": "written into .env; one in OpenClaw's own store can be kept, and not compared",
}


def limits() -> list[str]:
    """What cannot be declared, or means something of its own here: a line each."""
    lines = [f"tested versions: {', '.join(TESTED)}; another one is plan-only until --allow unknown-version"]
    lines += [f"jobs {field}: {why}" for field, why in _NOT_A_JOBS.items()]
    return [
        *lines,
        "jobs run: a command of its own, without arguments; its path is below scripts/ of the workspace, or absolute",
        "jobs repeat: 1 with `at` only; jobs workdir: with `run` only; jobs toolsets: with `prompt` only",
        "jobs schedule: OpenClaw spreads full hours over 5 minutes by itself",
        "profiles are agents; the default one's settings are the home's own",
        "jobs of OpenClaw itself, of plugins, of Claws and of agents in chats are never touched",
        *(f"{where}: {why}" for where, why in _NOT_OURS.items()),
    ]
