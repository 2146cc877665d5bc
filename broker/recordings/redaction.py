"""Secrets taken out of what is written down.

Above: writing.py. Below: the redactor of all that leaves, which finds encoded forms as well. A script is not given
secrets in the first place: what it would see of them is redacted before. This finds those that somebody wrote into a
script.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from broker.redacted_places import MARK as REDACTED
from broker.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Iterable


class Redaction:
    """Replaces secrets in texts and JSON texts, and counts how often."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        """Take the values to look for."""
        self.count = 0
        self._redactor = Redactor(secrets := tuple(secrets))
        self._secrets = sorted({secret for secret in secrets if secret}, key=len, reverse=True)
        # Inside JSON a secret may be escaped.
        self._written = sorted(
            {form for secret in self._secrets for form in (secret, _escaped(secret), _escaped(secret, is_ascii=False))}
        )

    def json_text(self, text: str) -> str:
        """Return a JSON text without the secrets; it is decoded only if one of them is in it."""
        if any(form in text for form in self._written):
            text = json.dumps(self._value(json.loads(text)), separators=(",", ":"))
        cleaned = self._redactor(text)
        if cleaned == text:
            return text
        self.count += 1
        return cleaned if _is_json(cleaned) else f'"{REDACTED}"'

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list):
            return [self._value(item) for item in value]
        if isinstance(value, dict):
            return {self._text(key): self._value(item) for key, item in value.items()}
        # A secret may be a number.
        written = json.dumps(value)
        return self._text(written) if any(secret in written for secret in self._secrets) else value

    def _text(self, text: str) -> str:
        for secret in self._secrets:
            if secret in text:
                self.count += text.count(secret)
                text = text.replace(secret, REDACTED)
        return text


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _escaped(secret: str, *, is_ascii: bool = True) -> str:
    return json.dumps(secret, ensure_ascii=is_ascii)[1:-1]
