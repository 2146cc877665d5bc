"""Checks the texts of a config that the system or HTTP has to carry to a server, before anything is started.

Above: server_config.py, the settings of the HTTP server. Below: pydantic. No sentence here holds a text: many are
secrets.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

KIND = "carried_text"
"""Of the errors raised here: each is a whole sentence."""

IN_A_HEADER = "printable ASCII characters, with no space or line break at either end"
HALF_A_PAIR = "must not hold half of a surrogate pair"

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_HEADER_VALUE = re.compile(r"(?:[!-~](?:[\t -~]*[!-~])?)?")


def _for_the_system(text: str) -> str:
    if "\0" in text:
        raise PydanticCustomError(KIND, "must not hold a NUL character")
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        raise PydanticCustomError(KIND, HALF_A_PAIR) from None
    return text


def _path_for_the_system(path: Path) -> Path:
    _for_the_system(str(path))
    return path


def _variable_name(text: str) -> str:
    if "=" in text:
        raise PydanticCustomError(KIND, "must be the name of a variable, without '='")
    return _for_the_system(text)


def _header_name(text: str) -> str:
    if not _HEADER_NAME.fullmatch(text):
        raise PydanticCustomError(KIND, "must be the name of a header: letters, digits and '-'")
    return text


def header_value(text: str) -> str:
    """Return a text that a header can have as its value, or at the end of it.

    Raises:
        PydanticCustomError: It is none.
    """
    if not fits_a_header(text):
        raise PydanticCustomError(KIND, f"must be {IN_A_HEADER}")
    return text


def fits_a_header(text: str) -> bool:
    """Tell whether a text is such a value."""
    return _HEADER_VALUE.fullmatch(text) is not None


def _http_url(text: str) -> str:
    if _CONTROL.search(text):
        raise PydanticCustomError(KIND, "must not hold a line break or another control character")
    try:
        parts = urlsplit(text)
        is_usable = bool(parts.hostname) and parts.port != 0
    except ValueError:  # of the port, or of brackets that hold no IPv6 address
        is_usable = False
    if not is_usable:
        raise PydanticCustomError(KIND, "must name a host, and a port only from 1 to 65535")
    return text


SystemText = Annotated[str, AfterValidator(_for_the_system)]
SystemPath = Annotated[Path, AfterValidator(_path_for_the_system)]
VariableName = Annotated[str, AfterValidator(_variable_name)]
HeaderName = Annotated[str, AfterValidator(_header_name)]
HeaderValue = Annotated[str, AfterValidator(header_value)]
HttpUrl = Annotated[str, Field(pattern=r"^https?://[^/\s]+"), AfterValidator(_http_url)]
