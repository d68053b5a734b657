"""What carrying out a row would do to the world, for the gate: facts, never words in a name. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.action import Action, Fact
from reconciler.observe import Observation
from reconciler_shape import review
from reconciler_specs.shape import Json

from . import ops_files
from .pasted import is_pasted

_RULES = review.Rules(ops_files.CODE, is_pasted, security=("worker",))


def facts(action: Action, desired: Mapping[str, Json], observation: Observation) -> frozenset[Fact]:
    """What `action` would do."""
    return review.facts(action, desired, observation, _RULES)
