"""Imports the packages that were put into this image, all their modules: there is no file system to import from later.

They lie in a folder of their own while the image is made; most images have none.
"""

import contextlib
import importlib
import io
import pkgutil
import sys

FOLDER = "/1"
"""Where componentize-py mounts the second folder of the Python path."""

LEFT_OUT = {"__main__", "conftest", "setup", "test", "tests"}

MARK = "can't be imported: "
"""Begins the line of standard error that says which module failed and why."""

names = []
"""The top-level modules that scripts can import beside the standard library."""


def load() -> None:
    """Imports what is there; a package that can't be imported fails the build."""
    for found in pkgutil.iter_modules([FOLDER]):
        try:
            with _silence():
                module = importlib.import_module(found.name)
        except BaseException as error:
            reason = f"{type(error).__name__}: {error}"
            print(f"{MARK}{found.name}: {reason.splitlines()[0]}", file=sys.stderr, flush=True)
            raise
        names.append(found.name)
        _load_below(module)


def _load_below(module):
    for found in pkgutil.iter_modules(getattr(module, "__path__", ())):
        if found.name in LEFT_OUT:
            continue
        # A part may need what is not there; whoever imports the package does without it, too.
        with contextlib.suppress(BaseException), _silence():
            _load_below(importlib.import_module(f"{module.__name__}.{found.name}"))


@contextlib.contextmanager
def _silence():
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield
