"""Jobs as they are shown, kept with what hiding has to know of them: a daemon is asked for the same ones again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from reconciler_shape.hiding import Hider

from . import record

_NOBODY = Hider(b"")


class Shown(dict[str, Any]):
    """A job's view, not to be changed. `plain` iff no key and no look in it is a secret's; `text` is its JSON, `zone`
    the home's that it was made with."""

    __slots__ = ("plain", "text", "zone")

    def __init__(self, job: dict[str, Any], zone: str) -> None:
        super().__init__(record.view(job, zone))
        self.zone = zone
        self.text = json.dumps(self, ensure_ascii=False)
        self.plain = _NOBODY.whole(self) is self


def hidden(result: dict[str, Any], hider: Hider, secrets: Sequence[str]) -> dict[str, Any]:
    """A verb's result with every secret in it hidden; of listed jobs only those are walked through that need it.

    `secrets` are those that the hider knows.
    """
    jobs = result.get("jobs")
    if not isinstance(jobs, list) or not all(isinstance(job, Shown) for job in jobs):
        whole: dict[str, Any] = hider.whole(result)
        return whole
    # One that JSON writes with an escape is not found in a text of JSON.
    odd = any(json.dumps(secret, ensure_ascii=False)[1:-1] != secret for secret in secrets)
    return {
        **hider.whole({**result, "jobs": []}),
        "jobs": [
            job if job.plain and not odd and not any(secret in job.text for secret in secrets) else hider.value(job)
            for job in jobs
        ],
    }
