"""Homes of OpenClaw (2026.9.6 and 2026.7.1-2): their config, agents, jobs and workspaces, read as they are authored."""

from .provider import OpenClawProvider

PROVIDER = OpenClawProvider()
