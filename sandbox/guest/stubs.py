"""The module `tools` as a script sees it, made from the manifest.

Manifest: `{namespace: {"doc", "functions": {function: entry}}}`. An entry of a described tool has `"described": true`,
`"doc"`, `"parameters"` (each `[Python name, JSON key, required]`), `"accepts_extra"` and `"types"` (names of its
result types); an entry of a tool that is only listed has `"described": false` and `"fetch"`, the request that
describes it. A namespace that is `"partial"` has only the described tools, and any other name may be one of the rest.
Functions are made when they are first used: a manifest may hold thousands.
"""

import difflib
import inspect
import json
import sys
import types
import typing

from . import protocol, tool_errors


def install(manifest: dict, bridge) -> None:
    """Makes `tools` and `tools.<namespace>` importable, with the `ToolError` tree beside them.

    In a kernel the modules of earlier scripts learn what has been described since.
    """
    tools = sys.modules.get("tools")
    if not (isinstance(tools, _Tools) and tools.serves(bridge)):
        tools = _Tools(bridge)
    tools.fill(manifest)
    sys.modules["tools"] = tools
    for name, namespace in tools.namespaces.items():
        sys.modules[f"tools.{name}"] = namespace


class _Tools(types.ModuleType):
    def __init__(self, bridge):
        super().__init__("tools", "The tools this script may call, one module for each MCP server.")
        self.__path__ = []
        self.__dict__.update(tool_errors.TREE)
        self._bridge = bridge
        self.namespaces = {}

    def serves(self, bridge):
        return self._bridge is bridge

    def fill(self, manifest):
        for name in self.namespaces.keys() - manifest.keys():
            self.__dict__.pop(name, None)
            sys.modules.pop(f"tools.{name}", None)
        self.namespaces = {name: self.namespaces.get(name) or _Namespace(name, self._bridge) for name in manifest}
        for name, namespace in self.namespaces.items():
            namespace.fill(manifest[name])
        self.__all__ = [*self.namespaces, *tool_errors.TREE]
        self.__dict__.update(self.namespaces)

    def __getattr__(self, name):
        _refuse_dunder(self, name)
        raise tool_errors.ToolNotFoundError(
            f"there is no server {name!r} in tools. {_nearest(name, self.namespaces, 'Servers')}"
        )

    def __dir__(self):
        return self.__all__


class _Namespace(types.ModuleType):
    def __init__(self, name, bridge):
        super().__init__(f"tools.{name}")
        self._short_name = name
        self._functions = {}
        self._bridge = bridge
        self.__all__ = []

    def fill(self, entry):
        for name in self.__all__:
            self.__dict__.pop(name, None)
        self.__doc__ = entry.get("doc")
        self._functions = entry["functions"]
        self._is_partial = entry.get("partial", False)
        self._types = {typed for function in self._functions.values() for typed in function.get("types", ())}
        self.__all__ = [*self._functions, *self._types]

    def __getattr__(self, name):
        entry = self._functions.get(name)
        if entry is not None:
            if entry["described"]:
                made = _Described(self._short_name, name, entry, self._bridge)
            else:
                made = _Listed(self._short_name, name, entry)
        elif name in self._types:
            made = typing.TypedDict(name, {})
        else:
            _refuse_dunder(self, name)
            if self._is_partial:
                fetch = f"get_tool_details({json.dumps([f'{self._short_name}.{name}'])})"
                return _Listed(self._short_name, name, {"fetch": fetch})
            raise tool_errors.ToolNotFoundError(
                f"there is no tool {name!r} in tools.{self._short_name}. {_nearest(name, self._functions, 'Tools')}",
                server=self._short_name,
                tool=name,
            )
        setattr(self, name, made)
        return made

    def __dir__(self):
        return self.__all__


def import_hint(error: BaseException) -> str | None:
    """What to import instead, when a script imports a server or tool that does not exist."""
    if not isinstance(error, ImportError) or not (error.name or "").startswith("tools"):
        return None
    module, wanted = error.name, error.name_from
    if wanted is None:
        module, _, wanted = error.name.rpartition(".")
    try:
        getattr(sys.modules[module], wanted)
    except (tool_errors.ToolNotFoundError, KeyError) as found:
        return str(found)
    return None


def _refuse_dunder(module, name):
    """Attributes that Python itself looks for get Python's own answer."""
    if name.startswith("__"):
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}", name=name, obj=module)


def _nearest(name, known, what):
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if close:
        return f"Did you mean {' or '.join(close)}?"
    shown = sorted(known)[:20]
    more = f", and {len(known) - len(shown)} more" if len(known) > len(shown) else ""
    return f"{what}: {', '.join(shown)}{more}." if shown else f"{what}: none."


class _Stub:
    """What is the same of all stubs: they look like functions to whoever asks."""

    def __init__(self, namespace, name, entry):
        self.__name__ = self.__qualname__ = name
        self.__module__ = f"tools.{namespace}"
        self.__doc__ = entry.get("doc")
        self._path = f"{namespace}.{name}"
        self._entry = entry
        inspect.markcoroutinefunction(self)

    @property
    def __signature__(self):
        kind = inspect.Parameter.KEYWORD_ONLY
        parameters = [
            inspect.Parameter(parameter, kind, default=inspect.Parameter.empty if needed else ...)
            for parameter, _, needed in self._entry.get("parameters", ())
        ]
        return inspect.Signature(parameters)

    def __repr__(self):
        return f"<tool {self._path}>"


class _Described(_Stub):
    def __init__(self, namespace, name, entry, bridge):
        super().__init__(namespace, name, entry)
        self._bridge = bridge
        self._keys = {parameter: key for parameter, key, _ in entry["parameters"]}
        self._required = [parameter for parameter, _, needed in entry["parameters"] if needed]

    def __call__(self, *positional, **given):
        if positional:
            raise tool_errors.ToolArgumentsError(
                f"{self._path}() takes keyword arguments only: {_usage(self._path, self._entry)}"
            )
        missing = [parameter for parameter in self._required if parameter not in given]
        if missing:
            raise tool_errors.ToolArgumentsError(
                f"{self._path}() misses {', '.join(missing)}: {_usage(self._path, self._entry)}"
            )
        arguments = {
            self._keys.get(parameter) or self._extra(parameter): value
            if protocol.is_plain(value)
            else _argument(self._path, parameter, value)
            for parameter, value in given.items()
        }
        return self._bridge.call(self._path, arguments)

    def _extra(self, parameter):
        if parameter in self._keys:
            return self._keys[parameter]
        if self._entry["accepts_extra"]:
            return parameter
        raise tool_errors.ToolArgumentsError(
            f"{self._path}() has no parameter {parameter!r}. {_nearest(parameter, self._keys, 'Parameters')}"
        )


class _Listed(_Stub):
    async def __call__(self, *_, **__):
        raise tool_errors.ToolDescriptionRequired(
            f"{self._path} has not been described yet, so it can't be called. Fetch it first: {self._entry['fetch']}",
            server=self.__module__.partition(".")[2],
            tool=self.__name__,
        )


def _usage(path, entry):
    shown = [f"{parameter}=..." for parameter, _, needed in entry["parameters"] if needed]
    shown += [f"[{parameter}=...]" for parameter, _, needed in entry["parameters"] if not needed]
    return f"await {path}({', '.join(shown)})"


def _argument(path, parameter, value):
    def unknown(found):
        if inspect.isawaitable(found):
            raise tool_errors.ToolArgumentsError(
                f"{path}(): {parameter} holds a call that was not awaited: write `await ...` around it"
            )
        raise tool_errors.ToolArgumentsError(
            f"{path}(): {parameter} holds a {type(found).__qualname__}, which JSON can't carry"
        )

    try:
        return protocol.to_unicode_json(value, unknown)
    except ValueError as error:
        raise tool_errors.ToolArgumentsError(f"{path}(): {parameter}: {error}") from None
