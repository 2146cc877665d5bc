"""The system's keyring, where the `keyring` package is installed: passwords read, kept and removed.

Above: variables.py for `keyring://`, and kept_tokens.py. Below: `keyring`. Nothing here is logged.
"""

from __future__ import annotations

from contextlib import suppress


class KeyringError(Exception):
    """The keyring cannot be used; the text is for the operator and holds no secret."""


def password(service: str, user: str) -> str | None:
    """Return a password, or None where there is none.

    Raises:
        KeyringError: There is no keyring, or it is locked.
    """
    try:
        import keyring  # noqa: PLC0415  # an extra: most configs need none
        import keyring.errors  # noqa: PLC0415
    except ModuleNotFoundError:
        raise KeyringError("the keyring package is not installed: pip install 'codemode-broker[keyring]'") from None
    try:
        return keyring.get_password(service, user)
    except keyring.errors.NoKeyringError:
        raise KeyringError("this machine has no keyring; use env://VARIABLE instead") from None
    except keyring.errors.KeyringError as error:
        raise KeyringError(f"the keyring cannot be read ({type(error).__name__}); unlock it") from None


def forget(service: str, user: str) -> None:
    """Remove a password, where there is one."""
    try:
        import keyring  # noqa: PLC0415
        import keyring.errors  # noqa: PLC0415
    except ModuleNotFoundError:
        return
    with suppress(keyring.errors.KeyringError):
        keyring.delete_password(service, user)


def keep(service: str, user: str, value: str) -> bool:
    """Keep a password; tell whether there is a keyring that took it."""
    try:
        import keyring  # noqa: PLC0415
        import keyring.errors  # noqa: PLC0415
    except ModuleNotFoundError:
        return False
    try:
        keyring.set_password(service, user, value)
    except keyring.errors.KeyringError:
        return False
    return True
