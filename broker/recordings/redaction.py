"""Takes secrets out of recordings.

Above: writing.py. Below: the redactor of all that leaves, which has the whole rule; here it is applied to JSON text. A
script is not given secrets in the first place: what it would see of them is redacted before. This finds those that
somebody wrote into a script.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from broker.redacted_places import MARK
from broker.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Iterable


class Redaction:
    """Replaces secrets in JSON texts, and counts how often.

    Attributes:
        count: How many were replaced so far.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        """Take the values to look for."""
        self.count = 0
        given = frozenset(secret for secret in secrets if secret)
        self._redact = Redactor(given)
        self._escaped = tuple(
            json.dumps(secret, ensure_ascii=is_ascii)[1:-1] for secret in given for is_ascii in (True, False)
        )

    def json_text(self, text: str) -> str:
        """Return a JSON text without the secrets; it is decoded only if one of them is in it.

        Of one that has a secret across several values nothing is left.
        """
        if not self._is_in(text):
            return text
        decoded = json.loads(text, parse_int=self._number, parse_float=self._number)
        cleaned = json.dumps(self._redact.value(decoded), separators=(",", ":"))
        if self._is_in(cleaned):
            cleaned = json.dumps(MARK)
        self.count += max(1, cleaned.count(MARK) - text.count(MARK))
        return cleaned

    def _number(self, written: str) -> Any:
        """Read a number; one with a secret in it becomes text."""
        cleaned = self._redact(written)
        return json.loads(written) if cleaned == written else cleaned

    def _is_in(self, text: str) -> bool:
        return any(form in text for form in self._escaped) or self._redact(text) != text
