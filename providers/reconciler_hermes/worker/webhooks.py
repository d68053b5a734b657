"""Webhooks: records of the subscriptions' file by Hermes's own writer. A secret is copied from the profile's `.env`
here, and goes nowhere else."""

from __future__ import annotations

import importlib
import time
from pathlib import Path
from typing import Any

from reconciler_shape import webhooks as shape
from reconciler_shape.plain import digest, same

from . import channels


def perform(request: dict[str, Any]) -> list[dict[str, Any]]:
    """All operations in one write; one that is refused or stale leaves the others alone."""
    path = Path(request["home"]) / shape.FILE
    data = path.read_bytes() if path.exists() else None
    try:
        records = shape.parse(data, str(path))
    except shape.NotReadable as error:
        # Hermes would take it for an empty one, and its next write would end every webhook.
        return [_result(op, "refused", f"{error}; so it is not written") for op in request["ops"]]
    env, key = channels.read_env(), bytes.fromhex(request["key"])
    made = dict(records)
    results = [_one(op, made, env, key) for op in request["ops"]]
    if same(made, records):
        return results
    if (path.read_bytes() if path.exists() else None) != data:
        return [_result(op, "stale", f"{path} was changed while it was being worked on") for op in request["ops"]]
    try:
        importlib.import_module("hermes_cli.webhook")._save_subscriptions(made)
    except OSError as error:
        return [_result(op, "refused", f"{path}: {error.strerror or error}") for op in request["ops"]]
    return results


def _one(op: dict[str, Any], made: dict[str, Any], env: dict[str, str], key: bytes) -> dict[str, Any]:
    name = op["name"]
    old = made.get(name)
    if ("" if old is None else digest(old, key)) != op["fingerprint"]:
        return _result(op, "stale", f"the webhook {name} has changed since it was looked at")
    if op["op"] == "delete":
        made.pop(name, None)
        return _result(op, "ok", "")
    secret = None
    said = op["fields"].get("secret")
    if said is not None:
        secret = env.get(said["secret"])
        if not secret:
            return _result(op, "refused", f"the home's .env has no {said['secret']}")
    if not secret and not (old or {}).get("secret"):
        return _result(op, "refused", "a webhook without a secret would let anyone in")
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    made[name] = shape.record(old, name, op["fields"], secret, now)
    return _result(op, "ok", "")


def _result(op: dict[str, Any], code: str, words: str) -> dict[str, Any]:
    return {"ref": op["ref"], "code": code, "id": op["id"], "words": words, "inert": ""}
