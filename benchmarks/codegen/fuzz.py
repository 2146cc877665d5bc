"""Definitions that no server would send: half arbitrary JSON, half real tools changed at random places."""

from __future__ import annotations

import time
from collections import Counter
from copy import deepcopy
from random import Random
from typing import Any

from benchmarks.codegen.corpus import definitions, spec_of
from codegen import Stub, assign_identifiers, render_module
from codegen.stubs.generate import build_stub
from codegen.stubs.source_check import check_stub_source

DEFINITIONS = 100_000
_LONGEST_MODULE = 65_536
# How often what is drawn is a keyword or word, a plain value, and no more than a list.
_MOSTLY, _PLAIN, _LIST = 0.7, 0.3, 0.45
_KEYWORDS = """
    type properties items prefixItems additionalProperties patternProperties anyOf oneOf allOf not if then else enum
    const default required description title format pattern minimum maxLength $ref $defs definitions $id $anchor
    $dynamicRef nullable discriminator unevaluatedProperties dependentSchemas propertyNames contains x-python-import
    customTypePath
""".split()  # noqa: SIM905  # reads better than so many quoted words
_TEXTS = """
    object array string integer number boolean null any # #/$defs/a #/properties/a file:///etc/passwd a b
    https://x.example/y result class self __class__ None Any list {{x}} {%x%} $filter a-b a.b 日本 ﬁ x]\\nimport$os
""".split()  # noqa: SIM905  # reads better than so many quoted words
_NASTY = (
    '"""',
    "'''",
    "\\",
    "\n",
    "\r",
    "\0",
    "\ud800",
    "\u202e",
    "\u2028",
    "\U000e0101",
    "",
    "a" * 500,
    "')\nimport os\n#",
)
_NUMBERS = (0, 1, -1, 2**31, 2**64, 10**400, 1.5, 1e308, float("inf"), float("nan"))


def run(every: int) -> None:
    """Print the figures."""
    random = Random(2026)  # noqa: S311  # nothing secret
    real = definitions()
    counts: Counter[str] = Counter()
    times = []
    faults(real[0])
    for number in range(DEFINITIONS // every):
        definition = _arbitrary(random) if number % 2 else changed(random, random.choice(real))
        began = time.process_time()
        counts.update(faults(definition))
        times.append(time.process_time() - began)
    print(f"{len(times)} definitions; faults: {dict(counts) or 'none'}; most processor time {max(times) * 1000:.0f} ms")


def faults(definition: dict[str, Any]) -> list[str]:
    """Make a stub of a definition and return what is wrong with it."""
    try:
        spec = spec_of(definition)
        stub = build_stub(spec, namespace="n", function=assign_identifiers([spec.name])[spec.name])
        module = render_module("n", [stub])
        check_stub_source(module)
        compile(module, "stub", "exec")
    except Exception as error:  # noqa: BLE001  # any at all is what is looked for
        print("  ", type(error).__name__, str(error)[:100], repr(definition)[:300])
        return [type(error).__name__]
    return [name for name, is_so in _claims(stub, module).items() if not is_so]


def _claims(stub: Stub, module: str) -> dict[str, bool]:
    names = [one.name for one in stub.parameters]
    return {
        "parameters share a name": len(set(names)) == len(names) == len({one.key for one in stub.parameters}),
        "too long": len(module) <= _LONGEST_MODULE,
        "not printable": all(one.isprintable() or one == "\n" for one in module),
        "the generator failed": not any(reason.startswith("the type generator") for reason in stub.degradations),
    }


def _arbitrary(random: Random) -> dict[str, Any]:
    return {
        "server": "s",
        "name": _text(random),
        "description": _text(random),
        "inputSchema": {"type": "object", "properties": _value(random, 5)}
        if random.random() < _MOSTLY
        else _value(random, 6),
        "outputSchema": _value(random, 6),
    }


def _value(random: Random, depth: int) -> Any:
    kind = random.random()
    if depth == 0 or kind < _PLAIN:
        return random.choice((_text(random), _text(random), random.choice(_NUMBERS), True, False, None))
    if kind < _LIST:
        return [_value(random, depth - 1) for _ in range(random.randrange(4))]
    return {_key(random): _value(random, depth - 1) for _ in range(random.randrange(6))}


def _key(random: Random) -> str:
    return random.choice(_KEYWORDS) if random.random() < _MOSTLY else _text(random)


def _text(random: Random) -> str:
    return random.choice(_TEXTS) if random.random() < _MOSTLY else random.choice(_NASTY) + random.choice(_NASTY)


def changed(random: Random, definition: dict[str, Any]) -> dict[str, Any]:
    """Return a definition with up to six of its places changed."""
    other = deepcopy(
        {key: definition.get(key) for key in ("server", "name", "description", "inputSchema", "outputSchema")}
    )
    for _ in range(random.randint(1, 6)):
        places = _places(other["inputSchema"]) + _places(other["outputSchema"])
        if places:
            _change(random, random.choice(places), places)
    return other


def _change(random: Random, place: dict[str, Any], places: list[dict[str, Any]]) -> None:
    key = random.choice(list(place))
    match random.randrange(7):
        case 0:
            place[key] = _value(random, 2)
        case 1:
            place[_key(random)] = place.pop(key)
        case 2:
            del place[key]
        case 3:
            place[key] = deepcopy(random.choice(places))
        case 4:
            place[key] = {random.choice(("anyOf", "oneOf", "allOf")): [place[key], deepcopy(random.choice(places))]}
        case 5:
            place[key] = {"$ref": random.choice(("#", f"#/properties/{key}", "#/$defs/a", "#a"))}
        case _:
            place[_key(random)] = place[key]


def _places(value: Any) -> list[dict[str, Any]]:
    """Return every object in a value that is not empty."""
    found, waiting = [], [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            found += [one] if one else []
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    return found
