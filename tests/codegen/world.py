"""A small world of described tools for scripts to be checked against."""

from __future__ import annotations

from functools import cache
from typing import Any

from codegen import Stub, ToolAnnotations, ToolSpec, generate_stub

_STRING = {"type": "string"}
_INTEGER = {"type": "integer"}
_NUMBER = {"type": "number"}
_STRINGS = {"type": "array", "items": _STRING}


def _object(required: str = "", **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required.split()}


def _list(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _wrapped(schema: Any) -> dict[str, Any]:
    return {**_object("result", result=schema), "x-fastmcp-wrap-result": True}


def _nullable(schema: Any) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


_ISSUE = _object(
    "number title state labels author created_at",
    number=_INTEGER,
    title=_STRING,
    state={"enum": ["open", "closed"]},
    labels=_list(_object("name", name=_STRING, color=_STRING)),
    author=_object("login", login=_STRING, email=_nullable(_STRING)),
    body=_nullable(_STRING),
    comments=_INTEGER,
    created_at={"type": "string", "format": "date-time"},
)
_ENTITY = _object("name entityType observations", name=_STRING, entityType=_STRING, observations=_STRINGS)
_RELATION = _object("from to relationType", **{"from": _STRING, "to": _STRING, "relationType": _STRING})
_GRAPH = _object("entities relations", entities=_list(_ENTITY), relations=_list(_RELATION))
_REPO = {"repo": _STRING}

TOOLS: dict[str, tuple[Any, Any]] = {
    "hub.list_issues": (
        _object(
            "repo",
            **_REPO,
            state={"enum": ["open", "closed", "all"], "default": "open"},
            labels=_STRINGS,
            limit={"type": "integer", "default": 30},
        ),
        _object("issues total", issues=_list(_ISSUE), total=_INTEGER, next_cursor=_STRING),
    ),
    "hub.get_issue": (_object("repo number", **_REPO, number=_INTEGER), _ISSUE),
    "hub.create_issue": (
        _object("repo title", **_REPO, title=_STRING, body=_STRING, labels=_STRINGS, assignee=_nullable(_STRING)),
        _object("number url", number=_INTEGER, url=_STRING),
    ),
    "hub.add_comment": (
        _object("repo number body", **_REPO, number=_INTEGER, body=_STRING),
        _object("id", id=_INTEGER),
    ),
    "hub.search": (_object("query", query=_STRING, **{"from": _STRING}), _wrapped(_list(_ISSUE))),
    "files.read_file": (_object("path", path=_STRING, head=_INTEGER), _wrapped(_STRING)),
    "files.write_file": (_object("path content", path=_STRING, content=_STRING), _object("bytes", bytes=_INTEGER)),
    "files.list_directory": (
        _object("path", path=_STRING, recursive={"type": "boolean", "default": False}),
        _wrapped(_list(_object("name type", name=_STRING, type={"enum": ["file", "directory"]}, size=_INTEGER))),
    ),
    "files.search": (_object("path pattern", path=_STRING, pattern=_STRING, exclude=_STRINGS), _wrapped(_STRINGS)),
    "memory.create_entities": (
        _object("entities", entities=_list(_ENTITY)),
        _object("entities", entities=_list(_ENTITY)),
    ),
    "memory.create_relations": (_object("relations", relations=_list(_RELATION)), None),
    "memory.read_graph": (_object(), _GRAPH),
    "memory.search_nodes": (_object("query", query=_STRING), _GRAPH),
    "weather.forecast": (
        _object("city", city=_STRING, days={"type": "integer", "default": 3}, unit={"enum": ["celsius", "fahrenheit"]}),
        _object(
            "city days",
            city=_STRING,
            days=_list(_object("date high low", date=_STRING, high=_NUMBER, low=_NUMBER, rain=_nullable(_NUMBER))),
        ),
    ),
    "weather.place": (_object("lat lon", lat=_NUMBER, lon=_NUMBER), _wrapped(_nullable(_STRING))),
    "db.query": (_object("sql", sql=_STRING, params={"type": "array"}), None),
    "db.tables": (_object(), _wrapped(_STRINGS)),
    "db.count": (_object("table", table=_STRING, where={"type": "object"}), _wrapped(_INTEGER)),
    "mail.send": (
        _object(
            "to subject body",
            to={"anyOf": [_STRING, _STRINGS]},
            subject=_STRING,
            body=_STRING,
            urgent={"type": "boolean"},
        ),
        {
            "oneOf": [
                _object("status id", status={"const": "sent"}, id=_STRING),
                _object("status reason", status={"const": "failed"}, reason=_STRING),
            ]
        },
    ),
    "sheet.append_rows": (
        _object("sheet rows", sheet=_STRING, rows=_list(_list({"type": ["string", "number", "boolean", "null"]}))),
        _object("updated", updated=_INTEGER),
    ),
    "sheet.read_range": (_object("sheet", sheet=_STRING, range=_STRING), _object("values", values=_list(_list({})))),
    "sheet.info": (
        _object("sheet", sheet=_STRING),
        _object("sheet-id row-count", **{"sheet-id": _STRING, "row-count": _INTEGER}),
    ),
    "sheet.totals": (_object("sheet", sheet=_STRING), {"type": "object", "additionalProperties": _NUMBER}),
    "clock.now": (
        _object(timezone=_STRING),
        {**_object("iso unix", iso=_STRING, unix=_INTEGER), "additionalProperties": _STRING},
    ),
    "clock.wait": (_object("seconds", seconds=_NUMBER), {"type": "null"}),
}


@cache
def stubs() -> tuple[Stub, ...]:
    """Return the stubs of every tool."""
    made = []
    for qualified, (input_schema, output_schema) in TOOLS.items():
        server, name = qualified.split(".")
        spec = ToolSpec(server, name, None, "", input_schema, output_schema, ToolAnnotations())
        made.append(generate_stub(spec, namespace=server, function=name))
    return tuple(made)
