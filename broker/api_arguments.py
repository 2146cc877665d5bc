"""Checks what an embedding program passes in, because it would fail later with a less helpful error.

Above: what a program calls, as broker.py, sessions.py and recorded_runs.py. Below: nothing but the types. What is wrong
here is a fault of the program: mostly a `TypeError`, and it says what to write instead.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from broker.authorization.grants import Grant
from broker.errors import PatternError
from broker.recordings.recording import Recording
from broker.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

SERVERS_BY_NAME = "servers are named by texts, as ['git']"
"""What `names_of` says of servers."""

_SEVERAL = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def check_servers(servers: object) -> None:
    """Refuse anything but a mapping of names to in-process servers or lists of functions.

    Raises:
        TypeError: The text names the server, and the function.
    """
    if not isinstance(servers, Mapping):
        raise TypeError(f"servers are given by name, as {{'shop': [find_orders]}}, not in a {_kind(servers)}")
    for name, server in servers.items():
        if not isinstance(name, str):
            raise TypeError(f"servers are given by name, as {{'shop': [find_orders]}}, not by a {_kind(name)}")
        if isinstance(server, str | bytes | Mapping):
            raise TypeError(
                f"servers[{name!r}] is a {_kind(server)}: servers to start or to reach go into the config, here go "
                "servers of the MCP SDK and lists of functions"
            )
        if isinstance(server, Sequence):
            _check_functions(name, server)
        elif inspect.isroutine(server):
            raise TypeError(f"servers[{name!r}] is one function: write [{server.__name__}]")
        elif not _is_of_the_sdk(server):
            raise TypeError(
                f"servers[{name!r}] is a {_kind(server)}, and no server of the MCP SDK or list of functions"
            )


def check_store(given: object) -> None:
    """Refuse anything but a `Store`.

    Raises:
        TypeError: The text says how one is made.
    """
    check_kind(given, Store, "a store is a Store, as Store('broker.sqlite3')")


def check_seconds(**given: object) -> None:
    """Refuse what is no time to wait; `math.inf` is one.

    Raises:
        TypeError: The text names the first that is no number.
        ValueError: The same for one that is negative or NaN.
    """
    for name, seconds in given.items():
        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            raise TypeError(f"{name} is a number of seconds, not a {_kind(seconds)}")
        if seconds < 0 or math.isnan(seconds):
            raise ValueError(f"{name} is a number of seconds, 0 for no waiting, not {seconds}")


def check_count(**given: object) -> None:
    """Refuse what is no number of things; None is any number.

    Raises:
        ValueError: The text names the first.
    """
    for name, count in given.items():
        if count is not None and (type(count) is not int or count < 0):
            raise ValueError(f"{name} is a whole number from 0, not {count!r}")


def check_recording(given: object) -> None:
    """Refuse anything but a `Recording`.

    Raises:
        TypeError: The text says where recordings come from.
    """
    check_kind(given, Recording, "a recording is what broker.recordings().get(run_id) or read_recording(path) returns")


def check_kind(given: object, kind: type, wanted: str) -> None:
    """Refuse anything but an object of a class; `wanted` says what it is and where it comes from.

    Raises:
        TypeError: The text is `wanted` and what was given.
    """
    if not isinstance(given, kind):
        raise TypeError(f"{wanted}, not a {_kind(given)}")


def grants_of(given: object) -> list[Grant]:
    """Return a list of grants; texts are read as by `codemode run --allow`.

    Raises:
        TypeError: It is a single grant, or holds something else.
        PatternError: A text is not a grant, or a grant has the scope `run`, which only an answer can have.
    """
    if isinstance(given, str):
        raise TypeError(f"grants are several: write [{given!r}]")
    if isinstance(given, Grant) or not isinstance(given, Iterable):
        raise TypeError(f"grants are several, not one {_kind(given)}: write grants=[…]")
    grants = [Grant.parse(one) if isinstance(one, str) else one for one in given]
    for one in grants:
        if not isinstance(one, Grant):
            raise TypeError(f"a grant is a Grant, or a text like 'git.*', not a {_kind(one)}")
        if one.scope == "run":
            raise PatternError(f"{one}: only an answer to a question can be for one run; leave its scope out")
    return grants


def check_answerer(answerer: object) -> None:
    """Refuse an answerer without `answer`: asking it would fail, and so refuse every call.

    Raises:
        TypeError: It is a function, or something else.
    """
    if inspect.isclass(answerer):
        raise TypeError(f"an answerer is an object, not the class {answerer.__name__}: write {answerer.__name__}()")
    if answerer is not None and not callable(getattr(answerer, "answer", None)):
        raise TypeError(f"an answerer is an object with `async def answer(self, question)`, not a {_kind(answerer)}")


def check_asked(**given: object) -> None:
    """Refuse anything but functions as models and judges: each request to them would fail.

    Raises:
        TypeError: The text names the first.
    """
    for name, function in given.items():
        if function is not None and not callable(function):
            raise TypeError(f"{name} is an `async def` function, not a {_kind(function)}")


def check_told(**given: object) -> None:
    """Refuse anything but plain functions as callbacks: they are told of something while nobody can wait for them.

    Raises:
        TypeError: The text names the first.
    """
    for name, function in given.items():
        if function is not None and (not callable(function) or inspect.iscoroutinefunction(function)):
            raise TypeError(f"{name} is a plain function, called on the event loop: no `async def`")


def check_stop(stop: object) -> None:
    """Refuse what cannot stop a run.

    Raises:
        TypeError: It is neither a cancel scope nor None.
    """
    if stop is not None and not hasattr(stop, "cancelled_caught"):
        raise TypeError(f"stop is an anyio.CancelScope that is not entered, not a {_kind(stop)}")


def check_parks(parks: object, *, keeps_content: bool) -> None:
    """Refuse to park runs from whose recordings none could go on.

    Raises:
        ValueError: The text says how they are recorded so that they can.
    """
    if parks and not keeps_content:
        raise ValueError(
            "parks=True needs runs that are recorded with their content: pass Broker(store=…), and leave "
            "recordings.mode at 'full'"
        )


def names_of(given: object, expected: str = "tools are named by texts, as ['git.git_log']") -> list[str]:
    """Return the names of tools, or of what is `expected`, as a list; one text is one name.

    Raises:
        TypeError: It is something else.
    """
    names = [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else None
    if names is None or not all(isinstance(name, str) for name in names):
        what = _kind(given) if names is None else _kind(next(name for name in names if not isinstance(name, str)))
        raise TypeError(f"{expected}, not by a {what}")
    return names


def check_arguments(given: object) -> None:
    """Refuse anything but a mapping as the arguments of a call.

    Raises:
        TypeError: The text says how arguments are written.
    """
    if not isinstance(given, Mapping):
        raise TypeError(f"the arguments of a call are a dict, as {{'repo_path': '.'}}, not a {_kind(given)}")


def check_texts(**given: object) -> None:
    """Refuse what is no text where a run or a session is named: the audit or the store could not hold it.

    Raises:
        TypeError: The text names the first.
    """
    for name, text in given.items():
        if not isinstance(text, str):
            raise TypeError(f"{name} is text, not a {_kind(text)}")


def _check_functions(server: str, functions: Sequence[object]) -> None:
    names = set()
    for function in functions:
        name = getattr(function, "__name__", "<lambda>")
        if not callable(function) or name == "<lambda>":
            raise TypeError(f"servers[{server!r}] holds a {_kind(function)} without a name: write a def for each tool")
        if name in names:
            raise TypeError(f"servers[{server!r}] holds two functions of the name {name!r}")
        names.add(name)
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"servers[{server!r}]: {name} yields, and a tool returns once: return a list")
        _check_parameters(f"servers[{server!r}]: {name}", function)


def _check_parameters(where: str, function: Callable[..., Any]) -> None:
    try:
        signature = inspect.signature(function)
    except ValueError:  # some of what is written in C
        raise TypeError(f"{where} has no signature that a script could be told: write a def that calls it") from None
    for parameter in signature.parameters.values():
        if parameter.name == "self" and parameter.annotation is parameter.empty:
            raise TypeError(f"{where} is a method without its object: take it from an instance of the class")
        if parameter.kind in _SEVERAL:
            said = f"{_SEVERAL[parameter.kind]}{parameter.name}"
            raise TypeError(f"{where} takes {said}, of which no script can be told: write out its parameters")
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            raise TypeError(f"{where} takes {parameter.name!r} by position alone: scripts pass arguments by name")


def _is_of_the_sdk(server: object) -> bool:
    """Tell whether this is a server of the MCP SDK, which is loaded if it is."""
    sdk = sys.modules.get("mcp.server")
    return sdk is not None and isinstance(server, sdk.Server | sdk.MCPServer)


def _kind(value: object) -> str:
    return type(value).__name__
