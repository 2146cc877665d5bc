"""Two principals of an HTTP server, and requests of the older era."""

from __future__ import annotations

import httpx2

TOKENS = {"ada": "0123456789abcdef" * 2, "bob": "fedcba9876543210" * 2}
ACCEPT = {"Accept": "application/json, text/event-stream"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}


def as_principal(name: str) -> httpx2.AsyncClient:
    """Return an HTTP client with a principal's token."""
    return httpx2.AsyncClient(headers=ACCEPT | {"Authorization": f"Bearer {TOKENS[name]}"}, timeout=60)


async def opened(http: httpx2.AsyncClient, url: str) -> str:
    """Open a connection of the older era; return its id."""
    answer = await http.post(url, json=INITIALIZE)
    assert answer.status_code == 200, answer.text
    return str(answer.headers["mcp-session-id"])
