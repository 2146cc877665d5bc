"""A config or a policy as it is written: the text of a file, and the JSON object in it.

Above: config.py, and the command line for a policy alone. Below: other_forms.py, for what was written for another
program. A text has bounds, since its name may be that of a device, and no two values for one key.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from broker.config import other_forms
from broker.errors import ConfigError
from broker.named_file import read_named
from broker.unique_keys import DuplicateKeyError, loads_unique
from sandbox.json_bounds import is_within_depth

MAX_BYTES = 16 * 1024 * 1024
TOO_DEEP = "is nested too deep"
TOO_LONG = "has a number that is too long"  # Python reads 4,300 digits

_MAX_LEVELS = 100
_CONFIG = '{"mcpServers": {…}}'


def read_text(path: Path) -> str:
    """Return the text of a file.

    Raises:
        ConfigError: It cannot be read, is too large, or is no text.
    """
    source = str(path)
    try:
        data = read_named(path, MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ConfigError(source, [f"has more than the {MAX_BYTES:,} bytes that are allowed"])
        return data.decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(source, [missing(path)]) from None
    except IsADirectoryError:
        raise ConfigError(source, ["is a directory; name the file in it"]) from None
    except UnicodeDecodeError:
        raise ConfigError(source, ["is not UTF-8 text; save it as UTF-8"]) from None
    except OSError as error:
        raise ConfigError(source, [f"cannot be read: {error.strerror}"]) from None


def decoded(text: str, source: str, example: str = _CONFIG) -> dict[str, Any]:
    """Return the object that a text is.

    Raises:
        ConfigError: It is none; the error says where, and what to write for `example`.
    """
    wanted = f"must be a JSON object, as in {example}"
    if not text.strip():
        raise ConfigError(source, [f"is empty; {wanted}"])
    try:
        document = loads_unique(text)
    except json.JSONDecodeError as error:
        hint = other_forms.of_text(text, error.pos, source)
        problem = f"is not JSON: {error.msg.lower()}{f'; {hint}' if hint else ''}"
        raise ConfigError(f"{source}:{error.lineno}:{error.colno}", [problem]) from None
    except RecursionError:
        raise ConfigError(source, [TOO_DEEP]) from None
    except DuplicateKeyError as error:
        raise ConfigError(source, [str(error)]) from None
    except ValueError:
        raise ConfigError(source, [TOO_LONG]) from None
    if not is_within_depth(text, _MAX_LEVELS):
        raise ConfigError(source, [TOO_DEEP])
    if not isinstance(document, dict):
        raise ConfigError(source, [wanted])
    return document


def missing(path: Path) -> str:
    """Say that there is no file, and in which folder if its path does not: a client may have chosen another one."""
    try:
        where = "" if path.is_absolute() else f" in {Path.cwd()}"
    except OSError:
        where = ": the folder it counts from was removed"
    return f"there is no such file{where}"
