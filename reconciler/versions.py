"""Version pins: whether a harness's version lies in the range that a setup says was tested (L15)."""

from __future__ import annotations


def outside(version: str | None, pinned: str) -> str:
    """Why the version is not within `pinned` (`>=0.19,<0.20`), "" if it is or nothing is pinned."""
    if not pinned:
        return ""
    # Only a setup that pins pays for the import.
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion, Version

    try:
        wanted = SpecifierSet(pinned)
    except InvalidSpecifier:
        return f'harness_version: {pinned!r} is no range (write ">=0.19,<0.20")'
    try:
        within = version is not None and wanted.contains(Version(version), prereleases=True)
    except InvalidVersion:
        within = False
    return "" if within else f"version {version or 'unknown'} is outside the pinned harness_version {pinned}"
