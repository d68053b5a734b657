"""The write door: settings as one patch of what changed, and kits one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reconciler.action import CLEAR, Action
from reconciler.errors import DoorLost, ProviderError
from reconciler.provider import Answer, Code, HomeRef, Step
from reconciler_specs.address import Address, Kind
from reconciler_specs.shape import Json

from . import reading
from .review import kit_of
from .wire import Api


class ViableDoor:
    """Nothing is tried twice. Raises DoorLost where nobody knows what came of a call."""

    name = "viable connector"

    def __init__(self, home: HomeRef) -> None:
        self._api = Api(home)
        self._hidden = reading.hider(home)

    def deadline(self, step: Step) -> float:
        """What is saved is there when the platform answers."""
        return 0.0

    def perform(self, step: Step) -> Sequence[Answer]:
        try:
            if step.actions[0].address.kind is Kind.SETTING:
                return self._settings(step.actions)
            return [self._kit(action, step.wanted) for action in step.actions]
        except DoorLost:
            raise
        except ProviderError as error:
            words = f"{error}; {error.hint}" if error.hint else str(error)
            return [Answer(action.address, Code.REFUSED, words=words) for action in step.actions]

    def _settings(self, actions: Sequence[Action]) -> list[Answer]:
        now = self._api.settings()
        answers: list[Answer] = []
        patch: dict[str, str] = {}
        for action in actions:
            key = action.address.key
            current = getattr(now, key)
            if reading.fingerprint(current, self._hidden) != action.fingerprint:
                words = "it changed on the platform since the plan"
                answers.append(Answer(action.address, Code.STALE, words=words))
                continue
            answers.append(Answer(action.address, Code.OK))
            value = next(c.write for c in action.changes if c.writes)
            said = "" if value is CLEAR else str(value)
            if said != (current or ""):
                patch[key] = said
        if patch:
            self._api.save(patch)
        return answers

    def _kit(self, action: Action, wanted: Mapping[Address, Mapping[str, Json]]) -> Answer:
        whole = wanted[action.address]
        kit = kit_of(whole["source"])
        types = whole.get("types")
        if types is None:
            # Always said, so that a newer version of the kit brings nothing along by itself.
            offered = next((k for k in self._api.offer().kits if k.id == kit), None)
            if offered is None:
                return Answer(action.address, Code.STALE, words=f"the platform offers no kit {kit} any more")
            types = [item.key for item in offered.types]
        done = self._api.apply(kit, types)
        missing = [item for item in types if item not in done.applied and item not in done.skipped]
        notes = [f"there already: {', '.join(done.skipped)}"] if done.skipped else []
        notes += [f"the platform warns: {text}" for text in done.warnings]
        said = self._hidden.text("; ".join(notes))
        if missing:
            words = f"the platform wrote no {', '.join(missing)}" + (f" ({said})" if said else "")
            return Answer(action.address, Code.REFUSED, words=words)
        return Answer(action.address, Code.OK, said=said, shown=dict(whole))
