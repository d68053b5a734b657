"""A folder of texts as one short digest, the same for whoever looks at it. Standard library only."""

from __future__ import annotations

import hashlib


def digest(files: dict[str, str]) -> str:
    """What a skill's folder holds, as one short text: file by file, path and content."""
    whole = hashlib.sha256()
    for path in sorted(files):
        whole.update(f"{path}\0{len(files[path].encode())}\0{files[path]}".encode())
    return whole.hexdigest()[:24]
