"""The older package form (`setup.json`, `schema_version: 1`) → a setup's text, and what could not be carried over."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .document import Document, shown
from .errors import Reason, SpecError, Where
from .load import load_text
from .render import render_setup
from .secrets import looks_secret, secret_key
from .shape import Json
from .values import NAME, SECRET

# Stand for `$(` and `)` until the text is written, so that a literal `$(` of the old form can be told apart.
_OPEN, _CLOSE = "\ue000", "\ue001"
_USE = re.compile(r"\{\{\s*([A-Za-z0-9_.-]+)\s*\}\}")
_JOB_SAME = frozenset({"name", "prompt", "skills", "toolsets", "workdir", "context_from", "id", "metadata"})


@dataclass(frozen=True, slots=True)
class Upgraded:
    """A setup's YAML text, and a note for whatever a person has to look at."""

    text: str
    notes: tuple[str, ...]


def upgrade(
    data: bytes | str,
    file: str = "setup.json",
    *,
    name: str = "solo",
    home_id: str = "main",
    path: str = "~/.hermes",
) -> Upgraded:
    """Convert; pure. `name`, `home_id` and `path` are what the old form did not say.

    Raises SpecError if the text is not the older form. No note and no text holds a credential.
    """
    document = Document.parse(data, file)
    old = document.root.plain()
    if not isinstance(old, dict) or not ({"schema_version", "profiles"} & old.keys()):
        raise SpecError([Reason(Where(file), "this is not the older setup.json (schema_version: 1)")])
    version = old.get("schema_version", 1)
    if version != 1 or isinstance(version, bool):
        raise SpecError([Reason(document.root.descend(("schema_version",)).where, "schema_version: 1 is expected")])
    return _Upgrade(old, home_id).run(name, path)


class _Upgrade:
    def __init__(self, old: Mapping[str, Any], home_id: str) -> None:
        self.old = old
        self.home_id = home_id
        self.harness = str(old.get("harness", "hermes"))
        self.notes: list[str] = []
        self.parameters: dict[str, Json] = {}
        self.moved: list[Json] = []

    def run(self, name: str, path: str) -> Upgraded:
        packages = self.old.get("profiles")
        if not isinstance(packages, dict):
            packages = {"default": {k: v for k, v in self.old.items() if k not in ("harness", "schema_version")}}
        else:
            self._left_over(self.old, {"schema_version", "harness", "profiles", "parameters", "moved"}, "the setup")
            self._parameters(self.old.get("parameters"))
            self._moved(self.old.get("moved"), "default")
        profiles = {key: self._package(key, value) for key, value in packages.items() if isinstance(value, dict)}
        home: dict[str, Json] = {"harness": self.harness, "path": path, "profiles": profiles}
        head = {k: v for k, v in (("parameters", self.parameters), ("moved", self.moved)) if v}
        needed = [p for p, v in self.parameters.items() if "default" not in v]
        if needed:
            home["with"] = dict.fromkeys(needed, "TODO")
            self.note(f"fill in the parameters of {self.home_id} below with: {', '.join(needed)}")
        text = render_setup(name, {self.home_id: home}, head)
        text = text.replace(_OPEN, "$(").replace(_CLOSE, ")")
        try:
            load_text(text, "setup.yaml")
        except SpecError as error:
            for reason in error.reasons:
                self.note(f"line {reason.where.line} needs a hand: {reason.message}")
        return Upgraded(text, tuple(dict.fromkeys(self.notes)))

    def note(self, text: str) -> None:
        self.notes.append(text)

    def _left_over(self, old: Mapping[str, Any], known: set[str] | frozenset[str], what: str) -> None:
        for key in old:
            if key not in known:
                self.note(f"{what}: {shown(key)} was not carried over")

    def _free(self, value: Any, what: str) -> Json:
        """A value with `{{x}}` as parameters, without anything that looks like a credential."""
        if isinstance(value, str):
            if looks_secret(value):
                self.note(f"{what}: what looks like a credential was left out; name it with {{secret: NAME}}")
                return ""
            return _USE.sub(lambda m: f"{_OPEN}{m[1]}{_CLOSE}", value)
        if isinstance(value, dict):
            kept = {}
            for k, v in value.items():
                if secret_key(k) and isinstance(v, str):
                    self.note(f"{what}.{k}: a credential was left out; name it with {{secret: NAME}}")
                else:
                    kept[k] = self._free(v, f"{what}.{k}")
            return kept
        return [self._free(v, what) for v in value] if isinstance(value, list) else value

    def _parameters(self, old: Any) -> None:
        for name, given in (old or {}).items() if isinstance(old, dict) else ():
            if not NAME.match(name):
                self.note(f"parameters: {shown(name)} is no name here; rename it")
                continue
            made: dict[str, Json] = {"type": "string"}
            if isinstance(given, dict):
                if given.get("type") in ("string", "integer", "number", "boolean"):
                    made["type"] = given["type"]
                made.update(
                    {k: self._free(given[k], f"parameters.{name}") for k in ("default", "description") if k in given}
                )
            self.parameters[name] = made

    def _moved(self, old: Any, profile: str) -> None:
        for item in old if isinstance(old, list) else ():
            ends = [item.get("from"), item.get("to")] if isinstance(item, dict) else []
            if len(ends) == 2 and all(isinstance(e, str) for e in ends):
                source, to = (f"{self.home_id}/{profile}/jobs/{e}" for e in ends)
                self.moved.append({"from": source, "to": to})
            else:
                self.note("moved: an entry without from and to was not carried over")

    def _package(self, profile: str, old: Mapping[str, Any]) -> dict[str, Json]:
        known = {"schema_version", "description", "parameters", "inference", "jobs", "extensions", "moved", "removed"}
        self._left_over(old, known, f"profile {profile}")
        self._parameters(old.get("parameters"))
        self._moved(old.get("moved"), profile)
        if old.get("removed"):
            self.note(
                f"profile {profile}: removed needs no entry; what we own and leaves the setup is deleted on review"
            )
        made: dict[str, Json] = {}
        if isinstance(old.get("description"), str):
            made["description"] = self._free(old["description"], "description")
        models: set[str] = set()
        if isinstance(old.get("inference"), dict):
            made["inference"], models = self._inference(profile, old["inference"])
        settings = self._settings(profile, old.get("extensions"))
        if settings:
            made["settings"] = settings
        jobs = old.get("jobs")
        if isinstance(jobs, dict) and jobs:
            made["jobs"] = {
                k: self._job(f"{profile}/jobs/{k}", v, models) for k, v in jobs.items() if isinstance(v, dict)
            }
        return made

    def _settings(self, profile: str, extensions: Any) -> dict[str, Json]:
        settings: dict[str, Json] = {}
        for harness, extension in extensions.items() if isinstance(extensions, dict) else ():
            if harness != self.harness or not isinstance(extension, dict):
                self.note(f"profile {profile}: extensions of {shown(harness)} were not carried over")
                continue
            self._left_over(extension, {"config"}, f"profile {profile} extensions.{harness}")
            config = extension.get("config")
            free = self._free(config, f"{profile}/settings") if isinstance(config, dict) else {}
            settings.update(free)
        return settings

    def _inference(self, profile: str, old: Mapping[str, Any]) -> tuple[dict[str, Json], set[str]]:
        what = f"profile {profile} inference"
        self._left_over(old, {"models", "default", "unattended", "fallbacks", "auxiliary"}, what)
        models: dict[str, Json] = {}
        for name, given in (old.get("models") or {}).items():
            if not isinstance(given, dict):
                continue
            where = f"{what}.models.{name}"
            self._left_over(
                given,
                {"provider", "model", "endpoint", "base_url", "credential", "api_mode", "placeholder_key"},
                where,
            )
            made = {k: self._free(given[k], where) for k in ("provider", "model", "api_mode") if k in given}
            address = given.get("base_url", given.get("endpoint"))
            if address is not None:
                made["base_url"] = self._free(address, where)
            credential = given.get("credential")
            if isinstance(credential, dict):
                credential = credential.get("env", credential.get("dotenv", credential.get("secret")))
            if isinstance(credential, str) and SECRET.match(credential) and not looks_secret(credential):
                made["key"] = {"secret": credential}
            elif credential is not None:
                self.note(f"{where}: the credential was left out; name it with key: {{secret: NAME}}")
            if "placeholder_key" in given:
                self.note(f"{where}: placeholder_key was not carried over")
            models[name] = made
        result: dict[str, Json] = {"models": models}
        for key in ("default", "fallbacks", "auxiliary", "unattended"):
            if key in old:
                result[key] = self._free(old[key], what)
        return result, set(models)

    def _job(self, what: str, old: Mapping[str, Any], models: set[str]) -> dict[str, Json]:
        made: dict[str, Json] = {k: self._free(v, what) for k, v in old.items() if k in _JOB_SAME}
        used = {"schedule", "deliver", "failure_deliver", "model", "script", "no_agent", "repeat", "enabled"}
        used |= {"monitor_script", "monitor_url", "attach_to_session", "enabled_toolsets"}
        self._left_over(old, _JOB_SAME | used, what)
        made["schedule"] = self._schedule(what, old.get("schedule"))
        made["deliver"] = self._target(f"{what} deliver", old.get("deliver"))
        if "failure_deliver" in old:
            made["failure_deliver"] = self._target(f"{what} failure_deliver", old["failure_deliver"])
        if "enabled_toolsets" in old:
            made["toolsets"] = old["enabled_toolsets"]
        if "model" in old:
            if isinstance(old["model"], str) and old["model"] not in models:
                self.note(f"{what}: the model {shown(old['model'])} is not one of the profile's inference.models")
            made["model"] = self._free(old["model"], what)
        if "script" in old:
            made["run" if old.get("no_agent") else "before"] = self._free(old["script"], what)
            if old.get("no_agent") and made.pop("prompt", None):
                self.note(f"{what}: its prompt was left out: the script is the job")
        for key, word in (("monitor_script", "script"), ("monitor_url", "url")):
            if key in old:
                made["monitor"] = {word: self._free(old[key], what)}
        if isinstance(old.get("attach_to_session"), str):
            made["session"] = self._free(old["attach_to_session"], what)
        elif "attach_to_session" in old:
            self.note(f"{what}: attach_to_session was not carried over; name the session with session:")
        repeat = old.get("repeat")
        times = repeat.get("times") if isinstance(repeat, dict) else repeat
        if times is not None:
            made["repeat"] = times
        if old.get("enabled") is False:
            made["paused"] = True
        return made

    def _schedule(self, what: str, old: Any) -> Json:
        kind = old.get("kind") if isinstance(old, dict) else None
        if kind == "interval" and isinstance(old.get("minutes"), int):
            return {"every": f"{old['minutes']}m"}
        if kind == "cron" and isinstance(old.get("expr"), str):
            return {"cron": old["expr"], **({"tz": old["tz"]} if isinstance(old.get("tz"), str) else {})}
        if kind == "once" and isinstance(old.get("run_at"), str):
            return {"at": old["run_at"]}
        self.note(f"{what}: its schedule needs a hand")
        return self._free(old, what) if old is not None else {}

    def _target(self, what: str, old: Any) -> Json:
        if isinstance(old, dict):
            platform = old.get("platform")
            if not isinstance(platform, str):
                self.note(f"{what}: was not understood; it is local now")
                return "local"
            ids = {k: str(old[o]) for k, o in (("chat", "chat_id"), ("thread", "thread_id")) if old.get(o) is not None}
            return {"to": platform, **{k: self._free(v, what) for k, v in ids.items()}}
        if old in ("local", "owner_chat"):
            return old
        if old in ("home", None, "origin", ""):
            said = {"home": "owner_chat"}.get(str(old), "local")
            self.note(f"{what}: {shown(old) if old else 'was not said'}; it is {said} now: check it")
            return said
        to, *rest = str(old).split(":", 2)
        parts = {k: self._free(v, what) for k, v in zip(("chat", "thread"), rest, strict=False) if v}
        return {"to": self._free(to, what), **parts}
