"""The `state:` block: what may be the remote of a branch."""

from __future__ import annotations

import pytest

from reconciler_specs.errors import SpecError
from reconciler_specs.load import load_text

SETUP = "version: 1\nname: solo\nstate: {{backend: git, remote: '{}'}}\n"
HOMES = "homes:\n  main: {harness: native, path: ./home}\n"


@pytest.mark.parametrize(
    "remote",
    [
        "https://ann:hunter2@git.example/x",
        "https://hunter2@git.example/x",
        "HTTP://hunter2@git.example/x",
        "https://git.example/x?token=hunter2",
        "https://git.example/x#hunter2",
        "ssh://ann:hunter2@git.example/x",
    ],
)
def test_a_credential_in_a_remote_is_refused_and_not_shown(remote: str) -> None:
    with pytest.raises(SpecError, match="a credential stands in it") as caught:
        load_text(SETUP.format(remote) + HOMES)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "remote",
    ["origin", "../state.git", "https://git.example/~ann/x@1", "ssh://git@git.example/x", "git@git.example:ann/x.git"],
)
def test_what_has_none_is_taken(remote: str) -> None:
    load_text(SETUP.format(remote) + HOMES)
