"""The module `tools` as a script sees it, made from the manifest.

Manifest: `{namespace: {"doc", "functions": {function: entry}}}`. An entry of a described tool has `"described": true`,
`"doc"`, `"parameters"` (each `[Python name, JSON key, required]`), `"accepts_extra"` and `"types"` (names of its
result types); an entry of a tool that is only listed has `"described": false` and `"fetch"`, the request that
describes it. For a script that looks at tools there is more: `"source"`, the text of a stub, and `"doc"` of a tool that
is only listed. A namespace that is `"partial"` has only the described tools, and any other name may be one of the rest;
one that is `"unimported"` is a builtin too.
Modules and functions are made when they are first used: a manifest may hold thousands, and most scripts use a few.
"""

import builtins
import difflib
import importlib.machinery
import inspect
import json
import sys
import types

from . import arguments, blocks, protocol, stub_sources, tool_errors

MAX_SHOWN = 100
"""Tools of a server that `help` tells of."""

MAX_CHARACTERS = 100
"""Of an argument that is written down in an error."""

_unimported = set()


def prepare() -> None:
    """Have `import tools.git` find a server whose module nothing has asked for yet."""
    sys.meta_path.insert(0, _Servers)


def install(manifest: dict, rest: str, bridge) -> None:
    """Make `tools` and `tools.<namespace>` importable, with the `ToolError` tree beside them.

    `tools` and the tree are builtins too: a script that imports its servers alone still catches `tools.ToolError`.
    In a kernel the modules of earlier scripts learn what has been described since.

    Args:
        manifest: The namespaces that the script's text names; their modules are made at once.
        rest: All others, as JSON that is read when the script asks for one of them.
        bridge: Makes the calls.
    """
    tools = sys.modules.get("tools")
    if type(tools) is not _Tools or tools.__bridge__ is not bridge:
        tools = _Tools(bridge)
    tools.__take__(manifest, rest)
    sys.modules["tools"] = builtins.tools = tools
    builtins.__dict__.update(tool_errors.TREE)
    for name in _unimported:
        builtins.__dict__.pop(name, None)
    _unimported.clear()
    for name, namespace in manifest.items():
        # What Python and the script have beside its tools keeps its name.
        if namespace.get("unimported") and name not in builtins.__dict__:
            _unimported.add(name)
            setattr(builtins, name, getattr(tools, name))


class _Tools(types.ModuleType):
    """Its own attributes have two underscores on both sides, as those of a namespace: no server or tool is named so."""

    def __init__(self, bridge):
        super().__init__("tools", "The tools this script may call, one module for each MCP server.")
        self.__path__ = []
        self.__bridge__ = bridge
        self.__made__ = {}

    def __take__(self, manifest, rest):
        self.__manifest__ = manifest
        self.__rest__ = rest
        if self.__made__:
            self.__renew__()
        for name in manifest:
            self.__make__(name)

    def __renew__(self):
        """Have the modules of a kernel's earlier scripts hold what this one may call."""
        servers = self.__servers__()
        for name, namespace in list(self.__made__.items()):
            if name in servers:
                self.__make__(name)
            else:
                del self.__made__[name]
                self.__dict__.pop(name, None)
                sys.modules.pop(namespace.__name__, None)

    def __servers__(self):
        if self.__rest__:
            self.__manifest__ |= protocol.decode(self.__rest__)
            self.__rest__ = ""
        return self.__manifest__

    def __make__(self, name):
        made = self.__made__.get(name)
        if made is None:
            made = self.__made__[name] = _Namespace(name, self.__bridge__)
        made.__fill__(self.__manifest__[name])
        sys.modules[made.__name__] = made
        self.__dict__[name] = made
        return made

    def __getattr__(self, name):
        if name == "__all__":
            return [*self.__servers__(), *tool_errors.TREE]
        _refuse_dunder(self, name)
        if name in self.__servers__():
            return self.__make__(name)
        if name in tool_errors.TREE:
            return tool_errors.TREE[name]
        if name in blocks.FUNCTIONS:
            return getattr(builtins, name)
        raise tool_errors.ToolNotFoundError(
            f"there is no server {name!r} in tools. {_nearest(name, self.__servers__(), 'Servers')}"
        )

    def __dir__(self):
        return list(self.__servers__())

    def __repr__(self):
        return f"<module 'tools' with {_first(self.__servers__())}>"

    def __help__(self):
        counts = {name: len(dir(getattr(self, name))) for name in dir(self)}
        lines = (f"tools.{name}: {count} tool{'' if count == 1 else 's'}" for name, count in counts.items())
        return "\n".join([self.__doc__, *lines])


class _Servers:
    """Finds and loads what `import tools.git` asks for."""

    @staticmethod
    def find_spec(name, _path=None, _target=None):
        package, _, server = name.partition(".")
        tools = sys.modules.get(package)
        if not isinstance(tools, _Tools) or server not in tools.__servers__():
            return None
        return importlib.machinery.ModuleSpec(name, _Servers)

    @staticmethod
    def create_module(spec):
        return getattr(sys.modules["tools"], spec.name.partition(".")[2])

    @staticmethod
    def exec_module(module):
        """Do nothing: its attributes are made when they are asked for."""


class _Namespace(types.ModuleType):
    def __init__(self, name, bridge):
        super().__init__(f"tools.{name}")
        self.__short_name__ = name
        self.__functions__ = {}
        self.__bridge__ = bridge
        self.__all__ = []

    def __fill__(self, entry):
        for name in self.__all__:
            self.__dict__.pop(name, None)
        self.__doc__ = entry.get("doc")
        self.__functions__ = entry["functions"]
        self.__is_partial__ = entry.get("partial", False)
        self.__types__ = {typed for function in self.__functions__.values() for typed in function.get("types", ())}
        self.__all__ = [*self.__functions__, *self.__types__]

    def __getattr__(self, name):
        entry = self.__functions__.get(name)
        if entry is not None:
            if entry["described"]:
                made = _Described(self.__short_name__, name, entry, self.__bridge__)
            else:
                made = _Listed(self.__short_name__, name, entry)
        elif name in self.__types__:
            made = stub_sources.type_named(name, self.__functions__.values(), self.__name__)
        else:
            _refuse_dunder(self, name)
            if self.__is_partial__:
                asked = json.dumps({"tools": [f"{self.__short_name__}.{name}"]})
                fetch = f"get_tool_details({asked})"
                return _Listed(self.__short_name__, name, {"fetch": fetch})
            near = _nearest(name, self.__functions__, "Tools")
            raise tool_errors.ToolNotFoundError(
                f"there is no tool {name!r} in tools.{self.__short_name__}. {near}",
                server=self.__short_name__,
                tool=name,
            )
        setattr(self, name, made)
        return made

    def __dir__(self):
        return list(self.__functions__)

    def __repr__(self):
        return f"<module {self.__name__!r} with {_first(self.__functions__)}>"

    def __help__(self):
        tools = sorted((getattr(self, name) for name in dir(self)), key=lambda tool: type(tool) is _Listed)
        more = [f"and {len(tools) - MAX_SHOWN} more"] if len(tools) > MAX_SHOWN else []
        return "\n\n".join([self.__doc__ or self.__name__, *(tool.__help__() for tool in tools[:MAX_SHOWN]), *more])


def import_hint(error: BaseException) -> str | None:
    """Return what to import instead, when a script imports a server or tool that does not exist."""
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
    """Give Python's own answer for attributes that it looks for itself."""
    if name.startswith("__"):
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}", name=name, obj=module)


def _nearest(name, known, what):
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if close:
        return f"Did you mean {' or '.join(close)}?"
    return f"{what}: {_first(sorted(known))}."


def _first(names):
    shown = list(names)[:20]
    more = f", and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return f"{', '.join(shown)}{more}" if shown else "none"


class _Stub:
    """What is the same of all stubs: they look like functions to whoever asks."""

    def __init__(self, namespace, name, entry):
        self.__name__ = self.__qualname__ = name
        self.__module__ = f"tools.{namespace}"
        self.__doc__ = stub_sources.text_of(entry)
        self._path = f"{namespace}.{name}"
        self._entry = entry
        inspect.markcoroutinefunction(self)

    @property
    def __signature__(self):
        return stub_sources.signature_of(self._entry, self.__name__, self.__module__)

    @property
    def __annotations__(self):
        signature = self.__signature__
        said = {name: one.annotation for name, one in signature.parameters.items()} | {
            "return": signature.return_annotation
        }
        return {name: annotation for name, annotation in said.items() if annotation is not inspect.Parameter.empty}

    def __repr__(self):
        if self._entry.get("described"):
            return f"<tool {self._path}{self.__signature__}>"
        return f"<tool {self._path}, not described yet: {self._entry['fetch']}>"

    def __help__(self):
        return self._entry.get("source") or f"{self!r}\n{self._entry.get('doc', '')}".strip()


class _Described(_Stub):
    def __init__(self, namespace, name, entry, bridge):
        super().__init__(namespace, name, entry)
        self._call = bridge.caller(self._path)
        self._keys = {parameter: key for parameter, key, _ in entry["parameters"]}
        self._required = [parameter for parameter, _, needed in entry["parameters"] if needed]
        self._own_keys = frozenset(parameter for parameter, key in self._keys.items() if parameter == key)

    def __call__(self, *positional, **given):
        if positional:
            raise tool_errors.ToolArgumentsError(
                f"{self._path}() takes keyword arguments only: {self._by_name(positional, given)}"
            )
        for parameter in self._required:
            if parameter not in given:
                raise self._incomplete(given)
        for parameter in given:
            if parameter not in self._own_keys:
                return self._call(self._converted(given))
        return self._call(given if protocol.are_plain(given.values()) else self._converted(given))

    def _incomplete(self, given):
        missing = ", ".join(parameter for parameter in self._required if parameter not in given)
        return tool_errors.ToolArgumentsError(f"{self._path}() misses {missing}: {_usage(self._path, self._entry)}")

    def _converted(self, given):
        return {
            self._keys.get(parameter) or self._extra(parameter): arguments.converted(self._path, parameter, value)
            for parameter, value in given.items()
        }

    def _by_name(self, positional, given):
        """Return the call as it is probably meant if its values are short, else how any call is written."""
        if len(positional) == 1 and type(positional[0]) is dict and not given:
            return f"await {self._path}(**arguments)"
        names = [parameter for parameter in self._keys if parameter not in given]
        shown = [f"{name}={_literal(value)}" for name, value in zip(names, positional, strict=False)]
        shown += [f"{name}={_literal(value)}" for name, value in given.items()]
        fits = len(positional) <= len(names) and all(len(one) <= MAX_CHARACTERS for one in shown)
        return f"await {self._path}({', '.join(shown)})" if fits else _usage(self._path, self._entry)

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
            f"{self._path} has not been described yet, so it cannot be called. Fetch it first: {self._entry['fetch']}",
            server=self.__module__.partition(".")[2],
            tool=self.__name__,
        )


def _literal(value):
    return repr(value) if type(value) in (str, int, float, bool, type(None)) else "..."


def _usage(path, entry):
    shown = [f"{parameter}=..." for parameter, _, needed in entry["parameters"] if needed]
    shown += [f"[{parameter}=...]" for parameter, _, needed in entry["parameters"] if not needed]
    return f"await {path}({', '.join(shown)})"
