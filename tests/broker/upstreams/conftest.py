"""What tests of servers share: one type checker, and a folder for logins."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def one_checker(kept_checker):
    """No test here is about the process that checks scripts."""


@pytest.fixture
def own_folder(monkeypatch, tmp_path):
    """Tokens go to a file of the test: this machine's keyring, if it has one, is left alone."""
    monkeypatch.setattr("broker.upstreams.kept_tokens.tokens_folder", lambda: tmp_path / "tokens")
    monkeypatch.setattr("broker.keyrings.password", lambda *_: None)
    monkeypatch.setattr("broker.keyrings.keep", lambda *_: False)
    monkeypatch.setattr("broker.keyrings.forget", lambda *_: None)
    return tmp_path
