"""`reconciler approve`: agreeing to the rows of a plan file, for an apply that comes later or runs elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .common import File, Json, State

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..workspace import Workspace


def register(app: typer.Typer) -> None:
    app.command("approve", short_help="Approve rows of a saved plan, or list what waits.")(approve)


def approve(
    plan: Annotated[Path | None, typer.Argument(metavar="[PLANFILE]", help="A plan that `plan --out` saved.")] = None,
    targets: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TARGET]...", help="Only these rows: an address, a prefix of one, or a glob."),
    ] = None,
    list_: Annotated[
        bool, typer.Option("--list", help="What waits for a person, and what is approved by whom.")
    ] = False,
    json: Json = False,
    file: File = None,
    state: State = None,
) -> int:
    """Approve the rows of a saved plan, deletes included, or list what waits and what is approved."""
    from ..errors import UsageError
    from .common import workspace

    if list_ is (plan is not None):
        raise UsageError(
            "--list takes no plan file" if list_ else "give a plan file, or --list",
            hint="reconciler plan --out plan.json; reconciler approve plan.json",
        )
    space = workspace(file, state)
    return _approve(space, plan, targets or [], json) if plan is not None else _list(space, json)


def _approve(space: Workspace, path: Path, targets: Sequence[str], json: bool) -> int:
    from reconciler_state.approvals import Approval
    from reconciler_state.decisions import Said

    from ..approval import holds, until
    from ..errors import UsageError
    from .agreed import plan_file, within
    from .render.approve import approved_json, approved_text
    from .render.style import out

    plan = plan_file(path, space)
    rows = _chosen(plan.rows, targets, path)
    if not rows:
        raise UsageError(f"{path}: the plan has no row to approve", hint="reconciler plan")
    who, now = space.caller(), space.now()
    inside = _insider(space)
    if inside:
        why = f"an approval from inside a managed home's own process tree is refused: {inside}"
        _record(space, Said.REFUSED, rows, why)
        raise UsageError(why, hint="approve from a shell of your own")
    approval = Approval(rows, who.actor, who.host, who.run, now, who.pipeline, plan.approved.blocks)
    held = within(space)
    added = space.store.approvals().add(space.setup.name, plan.digest, approval, lambda given: holds(given, now, held))
    if added:
        _record(space, Said.APPROVED, rows, f"plan {plan.digest}")
    ends = until(approval, held)
    if json:
        out(approved_json(plan.digest, approval, ends, added=added))
    else:
        for line in approved_text(path, plan.digest, approval, ends, added=added):
            out(line)
    return 0


def _chosen(rows: Mapping[str, str], targets: Sequence[str], path: Path) -> dict[str, str]:
    """The rows that the targets take in, all without any. Raises UsageError for one that takes in none."""
    from reconciler_specs.address import Address, selects

    from ..errors import UsageError
    from ..planfile import again

    try:
        addresses = {digest: Address.parse(text) for digest, text in rows.items()}
    except ValueError as error:
        raise UsageError(f"{path}: its rows are not in proper form ({error})", hint=again(path)) from error
    for target in targets:
        if not any(selects(target, address) for address in addresses.values()):
            raise UsageError(
                f"{target} selects nothing in {path}", hint=f"rows: {', '.join(sorted(set(rows.values())))}"
            )
    return {d: str(a) for d, a in addresses.items() if not targets or any(selects(t, a) for t in targets)}


def _insider(space: Workspace) -> str:
    """Why we run inside the process tree of a home of this setup, "" if we do not. Pids are of this machine: what is
    not reached from here, or only through a command, has none."""
    import os

    above = space.ancestors()
    for home in space.setup.homes.values():
        if home.at or (home.host and home.host != os.uname().nodename):
            continue
        inside = space.provider(home.harness).insider(space.ref(home.id), above)
        if inside:
            return inside
    return ""


def _record(space: Workspace, said: object, rows: Mapping[str, str], why: str) -> None:
    from reconciler_state.decisions import Said

    from ..apply import decisions
    from ..decide import decision

    who, now, what = space.caller(), space.now(), Said(str(said))
    decisions(space).record([decision(what, address, digest, why, who, now) for digest, address in rows.items()])


def _list(space: Workspace, json: bool) -> int:
    from ..approval import standing
    from ..plan import Options
    from ..planfile import misnamed, moved
    from .agreed import within
    from .render.approve import list_json, list_text
    from .render.style import err, out, safe

    found, wrong = space.store.approvals().read(space.setup.name)
    for why in wrong:
        err(f"note: {safe(why)}")
    plan = space.plan(Options())
    now = standing(found, space.now(), within(space), space.caller().run)
    now = now.without(misnamed(plan, now.rows) | moved(plan, now.blocks))
    if json:
        out(list_json(plan, now, within(space)))
    else:
        for line in list_text(plan, now, within(space)):
            out(line)
    return 4 if any(home.failed for home in plan.homes) else 0
