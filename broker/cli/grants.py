"""`codemode grants`: the permanent grants, and revoking them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

from broker.authorization.kept_grants import KeptGrant, KeptGrants
from broker.authorization.shown import shown_name, shown_text
from broker.cli.exit_codes import ExitCode
from broker.cli.stored import open_store
from broker.cli.terminal import Problem, local_time, note, write_result, write_table
from broker.store_files import is_there, user_store

_ARGUMENT_CHARACTERS = 200


@dataclass(frozen=True)
class ListRequest:
    """The arguments of `grants list`."""

    as_json: bool


@dataclass(frozen=True)
class RevokeRequest:
    """The arguments of `grants revoke`."""

    ids: tuple[str, ...]


async def list_grants(request: ListRequest) -> ExitCode:
    """Print every kept grant."""
    kept: list[KeptGrant] = []
    if is_there(user_store()):
        with open_store() as store:
            kept = KeptGrants(store).every()
    if request.as_json:
        write_result(json.dumps([_document(one) for one in kept], indent=2))
        return ExitCode.COMPLETED
    rows = [
        (
            shown_name(one.id),
            shown_name(one.definition.qualified_name),
            shown_text(str(one.grant.arguments or "any"), _ARGUMENT_CHARACTERS),
            shown_text("; ".join(one.grant.bounds), _ARGUMENT_CHARACTERS),
            shown_text(one.principal, _ARGUMENT_CHARACTERS) or "you",
            local_time(datetime.fromisoformat(one.given_at))[:10],
            shown_text(one.by, _ARGUMENT_CHARACTERS),
        )
        for one in kept
    ]
    if rows:
        write_table(("id", "tool", "arguments", "bounds", "for", "given", "by"), rows, whole={"id"})
    else:
        note("nothing is allowed permanently")
    return ExitCode.COMPLETED


def _document(kept: KeptGrant) -> dict[str, object]:
    grant = kept.grant
    return {
        "id": kept.id,
        "tool": kept.definition.qualified_name,
        "digest": grant.digest,
        "arguments": None if grant.arguments is None else grant.arguments.document(),
        "calls": grant.calls,
        "expires_at": None if grant.expires_at is None else grant.expires_at.isoformat(),
        "after": sorted(grant.after),
        "principal": kept.principal,
        "given_at": kept.given_at,
        "by": kept.by,
    }


async def revoke_grants(request: RevokeRequest) -> ExitCode:
    """Take grants back; running scripts are refused from the next call on."""
    with open_store() as store:
        kept = KeptGrants(store)
        unknown = [grant_id for grant_id in request.ids if not kept.revoke(grant_id)]
    if unknown:
        raise Problem(f"there is no grant {', '.join(unknown)}", "`codemode grants list` has all of them.")
    return ExitCode.COMPLETED
