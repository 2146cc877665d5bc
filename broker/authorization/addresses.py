"""Checks addresses to which servers send people: one must look like where it leads, and one nearby is marked.

Above: forms.py. Below: nothing. An address is shown to a person and never opened by us.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from typing import Any
from urllib.parse import urlsplit

URL_CHARACTERS = 2_000

_URL = re.compile(r"https?://[!-~]{1,1990}")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_NEARBY = (".localhost", ".local", ".internal", ".home.arpa")


def checked_url(url: Any) -> str:
    """Return an address that looks like where it leads.

    Raises:
        ValueError: It does not; the text says why.
    """
    if not isinstance(url, str) or not _URL.fullmatch(url):
        raise ValueError(f"its address is not an https address of at most {URL_CHARACTERS} ASCII characters")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise ValueError("its address cannot be read") from None
    if not parts.hostname or {"@", "%"} & set(parts.netloc) or "\\" in url:
        raise ValueError("its address hides where it leads")
    if parts.scheme != "https" and parts.hostname not in _LOOPBACK:
        raise ValueError("its address is not an https one")
    return url


def is_nearby(host: str) -> bool:
    """Tell whether a host is this machine or in its own network, as far as its name says."""
    name = host.lower().rstrip(".")
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        try:
            # As browsers read it: `127.1`, `0x7f000001` and `2130706433` are all this machine.
            address = ipaddress.ip_address(socket.inet_aton(name))
        except OSError:
            return "." not in name or name.endswith(_NEARBY)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return not address.is_global
