"""How the suite is spread over the workers of pytest-xdist (`--dist loadgroup`): what shares a running program stays
together, since one takes ten seconds to start; and the longest come first, so that none is left with one at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

_REAL = ("openclaw", "hermes", "orchestrator")
# Fixtures that keep a real OpenClaw running for all who use them, the longest story first; "" are tests with their own.
_OPENCLAWS = ("house", "", "shared", "home")
_TOGETHER = 25  # tests of a module that goes to no single worker


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    seen: Counter[str] = Counter()
    groups = {item: _group(item, seen) for item in items}
    for item, (_, name) in groups.items():
        item.add_marker(pytest.mark.xdist_group(name))
    yield
    # Where pytest itself has put those that share a fixture beside each other.
    places: dict[str, int] = {}
    for item in items:
        places.setdefault(groups[item][1], len(places))
    items.sort(key=lambda item: (groups[item][0], places[groups[item][1]]))


def _group(item: pytest.Item, seen: Counter[str]) -> tuple[int, str]:
    """When it comes, and with whom: OpenClaw's with all that share its home, the others with some of their module."""
    module = item.nodeid.partition("::")[0]
    real = next((place for place, name in enumerate(_REAL) if item.get_closest_marker(name)), len(_REAL))
    if real:
        seen[module] += 1
        return len(_OPENCLAWS) + real, f"{module}-{seen[module] // _TOGETHER}"
    params = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    for place, fixture in enumerate(_OPENCLAWS):
        if fixture in params:
            found = params[fixture]
            parts = found if isinstance(found, tuple) else (found,)
            return place, "-".join([fixture, *(getattr(part, "__name__", str(part)) for part in parts)])
    return _OPENCLAWS.index(""), item.nodeid
