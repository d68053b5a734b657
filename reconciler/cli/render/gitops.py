"""The loop's events in words, for a person who watches it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .style import safe


def words(event: Mapping[str, Any]) -> str:
    """An event on one line, "" for one that says nothing to a person."""

    def said(name: str) -> str:
        return safe(" ".join(str(event.get(name, "")).split()))

    at, what = said("at")[11:19], said("event")
    revision, address = said("revision")[:12], said("address") or said("home")
    where = f"{said('file')}:{said('line')}: " if "line" in event else ""
    line = {
        "start": f"following {said('branch')} of {said('remote')}",
        "serving": f"/healthz and /metrics on port {said('port')}",
        "revision": f"{revision} {said('subject')} ({said('author')})",
        "held": f"held: {address}{': ' if address else ''}{said('reason')}",
        "open": f"open: {address}: {said('reason')}",
        "error": f"error: {where}{said('reason')}",
        "unreachable": f"{said('remote')} cannot be reached: {said('reason')}",
        "drift": f"drift: {address} {said('field')}: {said('was')} → {said('now')}",
        "outcome": f"{said('outcome')}: {address} {said('reason')}",
        "failed": f"{revision} failed (exit {said('exit')}); again at {said('again_at')}",
        "note": f"note: {said('reason')}",
        "not-told": f"not told: {said('reason')}",
        "captured": f"proposed on {said('branch')}: {len(event.get('addresses', ()))} value(s)",
        "withdrawn": f"{said('branch')} is taken away: nothing is proposed any more",
        "not-captured": f"not captured: {address} {said('reason')}",
        "stop": "stopped",
    }.get(what, "")
    if what == "home-end" and "outcome" in event:
        line = f"{said('outcome')}: {address}: {said('reason')}"
    if what == "round" and (event.get("exit") or event.get("outcomes")):
        done = ", ".join(f"{n} {safe(name)}" for name, n in event.get("outcomes", {}).items())
        line = f"{revision} round over, exit {said('exit')}" + (f": {done}" if done else "")
    return f"{at} {line}".rstrip() if line else ""
