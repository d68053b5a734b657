"""By what a folder is told to be one harness's home, where several keep the same files."""

from __future__ import annotations

NATIVE = ".orchestrator.write"
"""The lock file that only a native home has; in everything else it may pass for a home of Hermes."""
