"""A declared job in the harness's terms: the parts that mean the same wherever a home is Hermes-shaped."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Generic, Protocol, TypeVar

from reconciler.provider import Resolve
from reconciler_specs.address import Address, Kind
from reconciler_specs.resource import Resource
from reconciler_specs.shape import Json, Shape

SELF = "self"
"""The word in `context_from` for the job itself."""


class Surroundings(Protocol):
    """What the profile around a job holds."""

    @property
    def scripts(self) -> Sequence[str]: ...

    @property
    def declared_files(self) -> Sequence[str]: ...

    @property
    def ids(self) -> Collection[str]: ...


Around = TypeVar("Around", bound=Surroundings)


class JobCanon(Generic[Around]):
    """Collects one job's canonical fields, what is refused of them, and what its row has to wait for."""

    def __init__(self, resource: Resource, around: Around, resolve: Resolve) -> None:
        self.resource, self.around, self.resolve = resource, around, resolve
        self.fields: dict[str, Json] = {}
        self.shapes: dict[str, Shape] = {}
        self.refused: dict[str, str] = {}
        self.held: list[str] = []
        self.notes: list[str] = []
        self.needs: list[Address] = []

    def script(self, name: str, script: str) -> str:
        """A script below `scripts/`, in the home or declared; the row waits for one that is neither."""
        script = script.removeprefix("scripts/")
        if script.startswith(("/", "~")) or ".." in script.split("/"):
            self.refused[name] = f"{script}: scripts lie under scripts/ in the home"
            return script
        path = f"scripts/{script}"
        declared = Address(self.resource.address.home, self.resource.address.profile, Kind.FILE, path)
        if declared in self.resource.needs or path in self.around.declared_files:
            self.needs.append(declared)
        elif path not in self.around.scripts:
            self.held.append(f"{path} is neither in the home nor declared")
        return script

    def context(self, refs: Sequence[str]) -> list[Json]:
        """`context_from` by harness ids. A job that is not there yet is `{"$ref": path}`; one that nobody knows holds
        the row."""
        return [found for ref in refs if (found := self._reference(ref)) is not None]

    def _reference(self, ref: str) -> Json:
        path = self.resource.address.path if ref == SELF else ref
        found = self.resolve(path)
        if found:
            return found
        if "/" in path:
            return {"$ref": path}
        if ref in self.around.ids:
            return ref  # a harness id, as adopt writes it for a job that no setup names
        self.held.append(f"context_from: there is no job {ref}")
        return None
