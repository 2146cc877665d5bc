"""Imports the packages that were put into this image, all their modules: there is no file system to import from later.

They lie in a folder of their own while the image is made; most images have none. Their data files are kept in memory.
"""

import contextlib
import importlib
import io
import os
import pathlib
import pkgutil
import sys

FOLDER = "/1/packages"
"""Below the second folder of the Python path, where componentize-py mounts it: Python does not start from packages."""

LEFT_OUT = {"__main__", "conftest", "setup", "test", "tests"}

MARK = "cannot be imported: "
"""Begins the line of standard error that says which module failed and why."""

SHADOWS = "a module of Python's standard library has this name"

MAX_DATA_BYTES = 16 * 1024 * 1024
"""Of all data files together: every instance has to have room for them."""

names = []
"""The top-level modules that scripts can import beside the standard library."""

_data = {}


def read_data(path) -> bytes | None:
    """Return a data file of a package, or None."""
    return _data.get(os.fspath(path)) if isinstance(path, (str, os.PathLike)) else None


def load() -> None:
    """Import what is there; a package that cannot be imported fails the build."""
    sys.path.append(FOLDER)
    for found in pkgutil.iter_modules([FOLDER]):
        if found.name in LEFT_OUT:
            continue
        if found.name in sys.stdlib_module_names:
            _fail(found.name, SHADOWS)
            raise ImportError
        try:
            with _silence():
                module = importlib.import_module(found.name)
        except BaseException as error:
            if found.name.startswith("_"):  # not for scripts to import; `_yaml` stands for a compiled part
                continue
            _fail(found.name, f"{type(error).__name__}: {error}")
            raise
        names.append(found.name)
        _load_below(module)
        _keep_data(found.name, module)


def _load_below(module):
    for found in pkgutil.iter_modules(getattr(module, "__path__", ())):
        if found.name in LEFT_OUT:
            continue
        # A part may need what is not there; whoever imports the package does without it, too.
        with contextlib.suppress(BaseException), _silence():
            _load_below(importlib.import_module(f"{module.__name__}.{found.name}"))


def _keep_data(name, module):
    for folder in map(pathlib.Path, getattr(module, "__path__", ())):
        for path in sorted(folder.rglob("*")):
            if path.suffix not in (".py", ".pyi", ".pyc") and path.is_file():
                _data[str(path)] = path.read_bytes()
    if sum(map(len, _data.values())) > MAX_DATA_BYTES:
        _fail(name, f"its data files have more than {MAX_DATA_BYTES >> 20} MiB")
        raise MemoryError


def _fail(name, reason):
    print(f"{MARK}{name}: {reason.splitlines()[0]}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def _silence():
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield
