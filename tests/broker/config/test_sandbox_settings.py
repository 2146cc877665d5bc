"""The `sandbox` section of the config says where scripts run, and what they may use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from broker import Broker, Config
from broker.errors import ConfigError
from sandbox import Limits, Pool

pytestmark = pytest.mark.anyio


def parsed(section):
    return Config.parse(
        json.dumps({"mcpServers": {}, "sandbox": section}), source="mcp.json", folder=Path(), environment={}
    )


def test_a_section_left_out_means_confined_processes_and_the_sandboxes_own_bounds():
    settings = parsed({}).sandbox
    assert (settings.isolation, settings.pool, settings.limits) == ("process", Pool().size, Limits())


@pytest.mark.parametrize(
    ("section", "sentence"),
    [
        ({"isolation": "vm"}, "sandbox.isolation: must be 'process' or 'thread'"),
        ({"pool": -1}, "sandbox.pool: must be greater than or equal to 0"),
        ({"limits": {"wall_second": 3}}, "sandbox.limits: unknown key 'wall_second'; known are wall_seconds"),
        ({"limits": {"calls": 0}}, "sandbox.limits: calls must be positive and finite, not 0"),
        ({"limits": {"calls": "many"}}, "sandbox.limits: calls must be an integer, not 'many'"),
        ({"limits": {"memory_bytes": 1}}, "sandbox.limits: memory_bytes must be at least"),
        ({"limits": []}, "sandbox.limits: must be a JSON object"),
        ({"limit": {}}, "sandbox: unknown key 'limit'; did you mean 'limits'?"),
    ],
)
def test_a_wrong_setting_is_named_with_its_place(section, sentence):
    with pytest.raises(ConfigError) as raised:
        parsed(section)
    assert sentence in str(raised.value)


async def test_a_run_is_bounded_by_the_config_where_it_brings_no_bounds_of_its_own():
    config = parsed({"isolation": "thread", "pool": 0, "limits": {"output_bytes": 10}})
    async with Broker(config) as broker:
        result = await broker.session().execute_code("print('x' * 100)")
        wider = await broker.session().execute_code("print('x' * 100)", limits=Limits())
    assert "output_bytes" in result.model_dump_json()
    assert wider.stdout == "x" * 100 + "\n"
