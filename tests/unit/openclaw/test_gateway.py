"""Whether a gateway holds a home, while it restarts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from reconciler.errors import ProviderError
from reconciler_openclaw import authored, gateway, home, rpc, serving

Look = tuple[float, bool, bool]
"""When it is looked, whether a gateway is found then, and whether one counts as there."""


@pytest.mark.parametrize(
    ("held", "looks"),
    [
        (True, [(1, False, True), (4, False, True), (6, False, False)]),  # gone for longer than a restart takes
        (True, [(4, False, True), (4.5, True, True), (9, False, True)]),  # let go of, and taken again
        (False, [(0.1, False, False), (4, False, False)]),  # never seen: it is not waited for
        (False, [(0.1, False, False), (1, True, True), (5, False, True), (7, False, False)]),
    ],
)
def test_one_that_restarts_lets_go_for_a_moment(held: bool, looks: list[Look], monkeypatch: pytest.MonkeyPatch) -> None:
    now, found = [0.0], [False]
    monkeypatch.setattr(serving, "find", lambda _here: object() if found[0] else None)
    here: Any = None
    holds = gateway.alive(here, held, lambda: now[0])
    for now[0], found[0], told in looks:
        assert holds() is told, now


@pytest.mark.parametrize("held", [True, False])
def test_one_that_ends_while_it_is_waited_for_is_none(held: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    there = serving.Gateway(1, 18789, "")
    found = iter([there, there if held else None])
    monkeypatch.setattr(serving, "find", lambda _here: next(found))
    monkeypatch.setattr(serving, "environ", lambda *_: {})
    monkeypatch.setattr(authored, "read", lambda _here: SimpleNamespace(tree={}))
    monkeypatch.setattr(gateway, "credential", lambda *_: None)
    monkeypatch.setattr(home, "locate", lambda *_: None)

    def refused(*_: Any) -> None:
        raise ProviderError("cannot be reached")

    monkeypatch.setattr(rpc, "open_at", refused)
    ref: Any = SimpleNamespace(place=None, path="")
    if held:
        with pytest.raises(ProviderError):
            gateway.attach(ref, lambda _: None)
    else:
        assert gateway.attach(ref, lambda _: None) is None
