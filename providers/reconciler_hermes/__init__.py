"""Hermes Agent homes: read from their files, written by a worker under Hermes's own interpreter."""

from __future__ import annotations

from .provider import HermesProvider

PROVIDER = HermesProvider()
