"""Notes: what a person should know of a home before its rows. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from reconciler_specs.address import Address

from . import secret
from .observe import Observation
from .plan import HomeInputs
from .provider import Canon


def notes(inputs: HomeInputs, observation: Observation, canons: Mapping[Address, Canon]) -> Collection[str]:
    unchecked = [a.key for a, r in inputs.resources.items() if secret.UNCHECKED in r.options and not canons[a].held]
    found = (
        [f"not checked here, but by an apply that you agree to: {', '.join(sorted(set(unchecked)))}"]
        if unchecked
        else []
    )
    found += inputs.undo.notes()
    found += [f"state: the record of {path} was damaged and is not used" for path in inputs.damaged]
    before = inputs.state.version if inputs.state else ""
    if before and observation.version and before != observation.version:
        found.append(f"the harness was {before} when we last wrote here, and is {observation.version} now")
    if inputs.state and not inputs.shared:
        mine = {inputs.owner, *inputs.formerly}
        others = sorted(o for o, things in inputs.state.owners.items() if things and o not in mine)
        found += [f"setup {other} declares things here too; if that is meant: shared: true" for other in others]
    return found
