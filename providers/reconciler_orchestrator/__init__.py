"""Homes of the orchestrator, through its own operator door: the socket where a daemon serves, else cold verbs."""

from .provider import OrchestratorProvider

PROVIDER = OrchestratorProvider()
