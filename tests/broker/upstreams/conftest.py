"""What tests of logins share."""

from __future__ import annotations

import pytest


@pytest.fixture
def own_folder(monkeypatch, tmp_path):
    """Tokens go to a file of the test: this machine's keyring, if it has one, is left alone."""
    monkeypatch.setattr("broker.upstreams.kept_tokens.tokens_folder", lambda: tmp_path / "tokens")
    monkeypatch.setattr("broker.keyrings.password", lambda *_: None)
    monkeypatch.setattr("broker.keyrings.keep", lambda *_: False)
    monkeypatch.setattr("broker.keyrings.forget", lambda *_: None)
    return tmp_path
