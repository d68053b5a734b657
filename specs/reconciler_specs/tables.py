"""The kinds that are read by a field table, in the order in which things are made where nothing else decides."""

from __future__ import annotations

from collections.abc import Mapping

from . import channel, mcp_server, planning_kit, plugin, route, skill, toolset, webhook
from .address import Kind
from .table import Table

TABLES: Mapping[Kind, Table] = {
    table.kind: table
    for table in (
        skill.TABLE,
        plugin.TABLE,
        mcp_server.TABLE,
        toolset.TABLE,
        channel.TABLE,
        route.TABLE,
        webhook.TABLE,
        planning_kit.TABLE,
    )
}
