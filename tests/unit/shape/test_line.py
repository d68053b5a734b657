import socket
import tempfile
from pathlib import Path

import pytest

from reconciler_shape import line
from reconciler_shape.lease import SOCKET


@pytest.mark.parametrize("opened", [line._OPENED, Path("/nowhere")], ids=["linux", "macos"])
@pytest.mark.parametrize("depth", [0, 2])
def test_a_socket_has_an_address_however_deep_its_home_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Path, depth: int
) -> None:
    """Also where the system does not show a process's open files (macOS)."""
    monkeypatch.setattr(line, "_OPENED", opened)
    monkeypatch.setattr(tempfile, "tempdir", "/tmp")
    home = tmp_path.joinpath(*["d" * 100] * depth)
    home.mkdir(parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        with line.address(home) as where:
            server.bind(where)
        server.listen(1)
        assert (home / SOCKET).is_socket()
        with line.address(home) as where:
            client.connect(where)
