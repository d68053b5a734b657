"""Installs the real harnesses that tests run against: `python tools/harness.py hermes 0.19.0 0.18.2 0.16.0`.

Each version gets a virtual environment of its own under `$XDG_CACHE_HOME/agent-home-reconciler/`. The first version
brings the dependencies; the others are installed without any and borrow the first one's by a `.pth` file. An install
counts only once its mark is written, so that an interrupted one is made again.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

MARK = ".complete"
PACKAGES = {"hermes": "hermes-agent"}
PYTHONS = ("3.11", "3.12", "3.13")  # hermes-agent says <3.14


def cache() -> Path:
    """Where the environments lie."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "agent-home-reconciler"


def folder(harness: str, version: str) -> Path:
    return cache() / f"{harness}-{version}"


def python(harness: str, version: str) -> Path:
    """The interpreter that has this version; it need not be there."""
    return folder(harness, version) / "bin" / "python"


def is_complete(harness: str, version: str) -> bool:
    return (folder(harness, version) / MARK).is_file() and python(harness, version).exists()


def install(harness: str, versions: Sequence[str], say: bool = True) -> None:
    """Installs what is missing. Raises SystemExit with a sentence, and CalledProcessError where pip fails."""
    cache().mkdir(parents=True, exist_ok=True)
    with _alone():
        first = versions[0]
        for version in versions:
            if is_complete(harness, version):
                continue
            if say:
                print(f"installing {PACKAGES[harness]} {version} …", file=sys.stderr)
            _install(harness, version, borrow=None if version == first else first)


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """One installer at a time: test workers side by side must not build one environment twice."""
    with (cache() / ".harness.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _install(harness: str, version: str, borrow: str | None) -> None:
    place = folder(harness, version)
    if not _works(harness, version, place):
        shutil.rmtree(place, ignore_errors=True)
        subprocess.run([_find_python(), "-m", "venv", str(place)], check=True)
        pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        if borrow is None:
            subprocess.run([*pip, f"{PACKAGES[harness]}=={version}"], check=True)
        else:
            subprocess.run([*pip, "--no-deps", f"{PACKAGES[harness]}=={version}"], check=True)
            # Its own folder comes first on sys.path, so that only what it lacks is borrowed.
            (_site(place) / "borrowed.pth").write_text(f"{_site(folder(harness, borrow))}\n", encoding="utf-8")
        if not _works(harness, version, place):
            raise SystemExit(f"{PACKAGES[harness]} {version} was installed in {place}, but it does not start")
    (place / MARK).write_text(f"{version}\n", encoding="utf-8")


def _works(harness: str, version: str, place: Path) -> bool:
    """Whether this very version can be imported there (an environment without the mark may still be whole)."""
    interpreter = place / "bin" / "python"
    if not interpreter.exists():
        return False
    code = (
        "import importlib.metadata as m, cron.jobs, tools.cronjob_tools, ruamel.yaml;"
        f"raise SystemExit(m.version({PACKAGES[harness]!r}) != {version!r})"
    )
    env = {"PATH": os.environ.get("PATH", ""), "HOME": str(place), "HERMES_HOME": str(place / "no-home")}
    result = subprocess.run([str(interpreter), "-I", "-c", code], env=env, capture_output=True, check=False)
    return result.returncode == 0


def _site(place: Path) -> Path:
    return next((place / "lib").glob("python3*")) / "site-packages"


def _find_python() -> str:
    """This interpreter if Hermes takes it, else one that it takes."""
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    if ours in PYTHONS:
        return sys.executable
    for series in PYTHONS:
        found = shutil.which(f"python{series}")
        # A shim may stand for a version that is not installed.
        if found and subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode == 0:
            return found
    raise SystemExit(
        f"hermes-agent needs Python 3.11 to 3.13; this is {ours}, and no python3.11, python3.12 or python3.13 "
        "was found on PATH"
    )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("harness", choices=sorted(PACKAGES))
    parser.add_argument("version", nargs="+")
    chosen = parser.parse_args(argv)
    install(chosen.harness, chosen.version)
    for version in chosen.version:
        print(python(chosen.harness, version))
    return 0


if __name__ == "__main__":
    sys.exit(main())
