"""Instances drawn from each schema: through the stub and back unchanged, and accepted by the stub's types."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import jsonschema
from pydantic import ValidationError

from benchmarks.codegen.corpus import definitions, spec_of
from benchmarks.codegen.instances import Instances
from benchmarks.codegen.loaded import adapters
from codegen import assign_identifiers
from codegen.stubs.generate import build_stub

if TYPE_CHECKING:
    from codegen import Stub

INSTANCES = 20


def run(every: int) -> None:
    """Print the figures."""
    warnings.simplefilter("ignore")
    counts = dict.fromkeys(
        ("tools", "inputs", "outputs", "no instances", "changed", "invalid", "refused", "wrong accepted"), 0
    )
    for definition in definitions(every):
        spec = spec_of(definition)
        stub = build_stub(spec, namespace="n", function=assign_identifiers([spec.name])[spec.name])
        inputs, result = adapters(stub)
        counts["tools"] += 1
        typed = [adapter for adapter in (*inputs.values(), result) if not _accepts(adapter, None)]
        counts["wrong accepted"] += sum(_accepts(adapter, object()) for adapter in typed)
        for instance in _instances(_closed_root(spec.input_schema, stub), counts):
            counts["inputs"] += 1
            arrived = _through(stub, instance)
            counts["changed"] += arrived != instance
            counts["invalid"] += not _is_valid(arrived, spec.input_schema)
            accepted = all(_accepts(inputs[key], value) for key, value in instance.items() if key in inputs)
            _count_refused(counts, definition["id"], instance, accepted=accepted)
        if spec.output_schema is not None:
            for instance in _instances(spec.output_schema, counts):
                counts["outputs"] += 1
                value = instance["result"] if stub.unwraps_result else instance
                _count_refused(counts, definition["id"], value, accepted=_accepts(result, value))
    print(", ".join(f"{name} {count}" for name, count in counts.items()))


def _instances(schema: Any, counts: dict[str, int]) -> list[Any]:
    try:
        found = Instances(schema, seed=counts["tools"]).draw(INSTANCES)
    except Exception:  # noqa: BLE001  # a schema may be broken in any way
        found = []
    counts["no instances"] += not found
    return [one for one in found if isinstance(one, dict)]


def _closed_root(schema: Any, stub: Stub) -> Any:
    """Leave out keys that the schema does not name, unless it says that it takes them."""
    if stub.accepts_extra or not isinstance(schema, dict) or any(key in schema for key in ("allOf", "anyOf", "oneOf")):
        return schema
    return {**schema, "additionalProperties": False}


def _through(stub: Stub, instance: dict[str, Any]) -> dict[str, Any]:
    """Call the stub with Python names and collect what it sends."""
    rows = stub.manifest_entry()["parameters"]
    by_key = {key: name for name, key, _ in rows}
    given_arguments = {by_key.get(key, key): value for key, value in instance.items()}
    by_name = {name: key for name, key, _ in rows}
    return {by_name.get(name, name): value for name, value in given_arguments.items()}


def _is_valid(instance: Any, schema: Any) -> bool:
    try:
        jsonschema.validate(instance, schema)
    except jsonschema.ValidationError:
        return False
    except Exception:  # noqa: BLE001  # the schema itself is broken; there is nothing to hold the instance to
        return True
    return True


def _accepts(adapter: Any, value: Any) -> bool:
    try:
        adapter.validate_python(value)
    except ValidationError:
        return False
    return True


def _count_refused(counts: dict[str, int], name: str, value: Any, *, accepted: bool) -> None:
    if not accepted:
        counts["refused"] += 1
        if counts["refused"] <= 5:  # noqa: PLR2004  # a few are enough to look into
            print("  refused:", name, repr(value)[:160])
