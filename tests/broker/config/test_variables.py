"""Secrets that a config names and does not hold: from the environment and from a keyring."""

from __future__ import annotations

from pathlib import Path

import keyring
import keyring.backend
import pytest
from keyring.errors import KeyringLocked

from broker import Config, ConfigError

TEXT = '{{"mcpServers": {{"hub": {{"url": "https://hub.example/mcp", "headers": {{"Authorization": "{value}"}}}}}}}}'


class InMemory(keyring.backend.KeyringBackend):
    """A keyring of one password."""

    priority = -1  # chosen by hand alone: what is defined is found wherever a keyring is looked for

    def get_password(self, service, username):
        if service == "locked":
            raise KeyringLocked("no")
        return "tok3n-of-the-hub" if (service, username) == ("codemode/hub", "me") else None

    def set_password(self, service, username, password):
        raise NotImplementedError


@pytest.fixture
def in_memory():
    before = keyring.get_keyring()
    keyring.set_keyring(InMemory())
    yield
    keyring.set_keyring(before)


def parse(value: str, **environment: str) -> Config:
    return Config.parse(TEXT.format(value=value), source="mcp.json", folder=Path(), environment=environment)


def test_a_value_comes_from_the_environment_and_is_a_secret():
    config = parse("env://HUB_TOKEN", HUB_TOKEN="tok3n-of-the-hub")  # noqa: S106  # what must not be seen
    assert config.servers["hub"].headers == {"Authorization": "tok3n-of-the-hub"}
    assert "tok3n-of-the-hub" in config.secrets


@pytest.mark.usefixtures("in_memory")
def test_a_value_comes_from_the_keyring_and_is_a_secret():
    config = parse("keyring://codemode/hub/me")
    assert config.servers["hub"].headers == {"Authorization": "tok3n-of-the-hub"}
    assert "tok3n-of-the-hub" in config.secrets


WRONG = {
    "not set": ("env://HUB_TOKEN", "the environment variable HUB_TOKEN is not set, or empty; set it"),
    "not in the keyring": (
        "keyring://hub/you",
        "the keyring holds no password of you for hub; put it there with: keyring set hub you",
    ),
    "no place": ("keyring://hub", "is not a place in a keyring; write keyring://SERVICE/USER"),
    "locked": ("keyring://locked/me", "the keyring cannot be read (KeyringLocked); unlock it"),
}


@pytest.mark.usefixtures("in_memory")
@pytest.mark.parametrize(("value", "problem"), WRONG.values(), ids=WRONG.keys())
def test_a_secret_that_cannot_be_had_is_named_with_its_field(value, problem):
    with pytest.raises(ConfigError) as caught:
        parse(value)
    assert str(caught.value) == f"mcp.json: server 'hub': headers.Authorization: {problem}"
