"""What is learned of results, and where it shows."""

from __future__ import annotations

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker import Grant
from broker.recordings.showing.inference import Shape, infer
from broker.tools.inferred_results import InferredResults

pytestmark = pytest.mark.anyio

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(JSON, min_size=1, max_size=6))
def test_every_value_fits_the_schema_inferred_from_it(values):
    shape = Shape()
    for value in values:
        shape.add(value)
    for value in values:
        jsonschema.validate(value, shape.schema())


def test_keys_that_are_not_always_there_are_optional():
    shape = Shape()
    shape.add({"id": 1, "tags": ["a"]})
    shape.add({"id": 2.5, "note": None})
    assert shape.schema() == {
        "type": "object",
        "properties": {
            "id": {"type": "number"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "note": {"type": "null"},
        },
        "required": ["id"],
    }


async def test_a_stored_type_is_in_the_stub_and_marked_and_changes_no_result(run, opened, recordings, store):
    script = "from tools import desk\nawait desk.echo(text='x')"
    await run(script)
    await run("from tools import desk\ntry:\n    await desk.fail(reason='x')\nexcept Exception: pass")
    (found,) = infer(recordings, "desk.[ef]*")
    assert (found.qualified_name, found.schema, found.results) == ("desk.echo", {"type": "string"}, 1)
    InferredResults(store).keep([found])
    async with opened() as broker:
        entry = broker.catalog.lookup("desk.echo")
        assert "-> str" in entry.stub().source
        assert "The type of its result is inferred from 1 recorded results." in entry.stub().source
        assert entry.spec.output_schema is None
        session = broker.session(grants=[Grant("desk.echo")])
        result = await session.execute_code(script, describe_references=True)
        assert (result.outcome, result.value) == ("completed", "x")
    assert InferredResults(store).forget("desk.*") == 1
    async with opened() as broker:
        assert "inferred" not in broker.catalog.lookup("desk.echo").stub().source
