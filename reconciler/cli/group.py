"""A group of commands that answers a word which is none with the nearest that is."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup


class Group(TyperGroup):
    """As typer's, but for unknown commands."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Raises UsageError, with “did you mean”."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            from difflib import get_close_matches

            from ..errors import UsageError

            close = get_close_matches(args[0], self.commands, 1)
            path = ctx.command_path
            raise UsageError(
                f"{path} {args[0]}: no such command", hint=f"did you mean {close[0]}?" if close else f"{path} --help"
            )
        return super().resolve_command(ctx, args)
