"""Tokens (o200k) of stub text beside those of the same tools' JSON definitions."""

from __future__ import annotations

import importlib
import json

from benchmarks.codegen.corpus import definitions, spec_of
from codegen import assign_identifiers
from codegen.stubs.generate import build_stub

_SHOWN = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")


def run(every: int) -> None:
    """Print the figures."""
    encoding = importlib.import_module("bpe_openai").get_encoding("o200k_base")
    stub_tokens = compact = spaced = indented = text = 0
    for definition in definitions(every):
        spec = spec_of(definition)
        function = assign_identifiers([spec.name])[spec.name]
        shown = {key: definition[key] for key in _SHOWN if key in definition}
        stub_tokens += len(encoding.encode(build_stub(spec, namespace="n", function=function).source))
        compact += len(encoding.encode(json.dumps(shown, ensure_ascii=False, separators=(",", ":"))))
        spaced += len(encoding.encode(json.dumps(shown, ensure_ascii=False)))
        indented += len(encoding.encode(json.dumps(shown, ensure_ascii=False, indent=2)))
        text += sum(len(encoding.encode(one)) for one in _descriptions(shown))
    print(f"stubs {stub_tokens}; descriptions alone {text}")
    for name, tokens in {"indented": indented, "with spaces": spaced, "without spaces": compact}.items():
        print(f"JSON {name} {tokens}: stubs {stub_tokens / tokens:.1%}, descriptions {text / tokens:.1%}")


def _descriptions(value: object) -> list[str]:
    if isinstance(value, list):
        return [one for element in value for one in _descriptions(element)]
    if not isinstance(value, dict):
        return []
    own = [value["description"]] if isinstance(value.get("description"), str) else []
    return own + [one for element in value.values() for one in _descriptions(element)]
