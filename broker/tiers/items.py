"""Tools and categories as the items of tiers: one JSON object each, in the detail of the tier.

Above: tiers.py. Below: the catalog's entries. All text in an item was written by a server; it is made inert and
bounded, but for a whole definition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.disclosure.tool_details import definition
from broker.search.words import words
from broker.texts import search_texts
from codegen.plain_text import few, one_line, sentences
from codegen.schemas.keywords import properties_of, required_of, type_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker.tiers.scores import ToolScore
    from broker.tiers.statistics import ToolStatistics
    from broker.tools.catalog import CatalogEntry

SENTENCE_CHARACTERS = 160
HOT_CHARACTERS = 260
_NAME_CHARACTERS = 200
_PARAMETERS = 20
_BASIC_PARAMETERS = 6
_PARAMETER_CHARACTERS = 60
_FIELDS = 8
_BRANCHES = 8
_SERVERS = 3
_SERVER_CHARACTERS = 64


def hot_item(entry: CatalogEntry, tool_score: ToolScore) -> dict[str, Any]:
    """Return a tool of the hot list: one or two sentences, and its first parameters, those that a call needs first.

    While its parameters are not known, there is no `parameters`.
    """
    item: dict[str, Any] = {"name": _name(entry), "about": sentences(entry.spec.about, 2, HOT_CHARACTERS)}
    if _has_known_parameters(entry):
        parameters = sorted(_parameters(entry), key=lambda one: not one[2])[:_BASIC_PARAMETERS]
        item["parameters"] = [f"{name}{'' if needed else '?'}: {kind}" for name, kind, needed in parameters]
    return {**item, "tier": tool_score.tier}


def hot_line(item: dict[str, Any]) -> str:
    """Return a tool of the hot list on one line; a parameter with a ? is optional, and … stands for unknown ones."""
    return f"{item['name']}({', '.join(item.get('parameters', ['…']))}): {item['about']}"


def category_item(
    name: str,
    entries: Sequence[CatalogEntry],
    popular: Sequence[CatalogEntry],
    asleep: Sequence[str] = (),
    *,
    about: str = "",
    telling: Sequence[str] = (),
) -> dict[str, Any]:
    """Return a category: what is in it, counts, its most popular tools, and whose tools are not known yet.

    What is in it are the operator's words `about` it, or else its servers, and those of the words that tell its tools
    apart that are not in the names of the popular ones.
    """
    servers = sorted({entry.spec.server for entry in entries})
    asleep = [one_line(server, _SERVER_CHARACTERS) for server in asleep]
    shown = {word for entry in popular for word in words(entry.spec.name)}
    more = [word for word in telling if word not in shown]
    item = {
        "name": one_line(name, _NAME_CHARACTERS),
        "about": one_line(about, SENTENCE_CHARACTERS) or search_texts.tools_of(servers or asleep, more),
        "tools": len(entries),
        "servers": len(servers),
        "popular": [one_line(entry.spec.name, 60) for entry in popular],
    }
    return item | ({"asleep": few(asleep, _SERVERS)} if asleep else {})


def category_line(item: dict[str, Any]) -> str:
    """Return a category on one line."""
    asleep = item.get("asleep")
    about = item["about"].removesuffix(".")
    if asleep and not item["tools"]:
        is_said = about != f"Tools of {asleep}"
        search = f"{about}. A search" if is_said else "a search"
        return f"{item['name']} (asleep): {search} with this category connects {asleep}."
    also = f" A search with this category also connects {asleep} (asleep)." if asleep else ""
    counts = ", ".join(f"{item[what]} {what if item[what] != 1 else what[:-1]}" for what in ("tools", "servers"))
    return f"{item['name']} ({counts}): {about}. Popular: {', '.join(item['popular'])}.{also}"


def summary_item(entry: CatalogEntry, calls: ToolStatistics) -> dict[str, Any]:
    """Return a tool in a sentence: its top-level parameters, what it returns, and how long a call takes.

    While its parameters are not known, there is no `required` and no `optional`, and the same goes for `returns`.
    """
    item: dict[str, Any] = {"name": _name(entry), "about": _sentence(entry)}
    if _has_known_parameters(entry):
        parameters = list(_parameters(entry))
        item["required"] = [name for name, _, is_required in parameters if is_required][:_PARAMETERS]
        item["optional"] = [name for name, _, is_required in parameters if not is_required][:_PARAMETERS]
    if entry.is_complete or entry.spec.output_schema is not None:
        item["returns"] = _returns(entry.spec.output_schema)
    if calls.average_milliseconds is not None:
        item["average_ms"] = round(calls.average_milliseconds, 1)
    return item


def summary_line(item: dict[str, Any]) -> str:
    """Return a summary on one line; a parameter with a ? is optional, and … stands for parameters not known yet."""
    parameters = "…"
    if "required" in item:
        parameters = ", ".join([*item["required"], *(f"{name}?" for name in item["optional"])])
    returns = f" -> {item['returns']}" if "returns" in item else ""
    took = f" ({item['average_ms']:g} ms)" if "average_ms" in item else ""
    return f"{item['name']}({parameters}){returns}: {item['about']}{took}"


def full_item(entry: CatalogEntry) -> dict[str, Any]:
    """Return a tool's whole definition."""
    return definition(entry.spec, entry.qualified_name)


def listed_item(entry: CatalogEntry) -> dict[str, Any]:
    """Return what stands for a definition of which the server has told no more than a line."""
    text = "Its server has told no more of it yet; get_tool_details asks it for the full definition."
    return {"name": _name(entry), "about": _sentence(entry), "note": text}


def too_long_item(entry: CatalogEntry, tokens: int) -> dict[str, Any]:
    """Return what stands for a definition that is larger than a page."""
    text = f"Its full definition has {tokens} tokens and was left out; get_tool_details fetches it."
    return {"name": _name(entry), "about": _sentence(entry), "note": text}


def _name(entry: CatalogEntry) -> str:
    return one_line(entry.qualified_name, _NAME_CHARACTERS)


def _sentence(entry: CatalogEntry) -> str:
    return sentences(entry.spec.about, 1, SENTENCE_CHARACTERS)


def _has_known_parameters(entry: CatalogEntry) -> bool:
    """Tell whether a tool's schema says something of its parameters, if only that there are none."""
    return entry.is_complete or bool(properties_of(entry.spec.input_schema))


def _parameters(entry: CatalogEntry) -> Iterator[tuple[str, str, bool]]:
    """Each top-level parameter with its type and whether it is required; the schema is of any shape."""
    schema = entry.spec.input_schema
    required = set(required_of(schema))
    for name, about in properties_of(schema).items():
        yield one_line(name, _PARAMETER_CHARACTERS), _kind(about), name in required


def _kind(schema: Any) -> str:
    kinds = _kinds(schema)
    branches = schema.get("anyOf") if isinstance(schema, dict) and not kinds else None
    if isinstance(branches, list) and len(branches) <= _BRANCHES:
        of_branches = [_kinds(one) for one in branches]
        kinds = list(dict.fromkeys(kind for one in of_branches for kind in one)) if all(of_branches) else []
    return one_line("|".join(kinds), 40) or "any"


def _kinds(schema: Any) -> list[str]:
    return type_names(schema) if isinstance(schema, dict) else []


def _returns(schema: Any) -> str:
    if not isinstance(schema, dict):
        return "text"
    names = [one_line(name, 40) for name in properties_of(schema)]
    if not names:
        return _kind(schema)
    return ", ".join(names[:_FIELDS]) + (", …" if len(names) > _FIELDS else "")
