"""Imports the standard library while the image is made: there is no file system to import from later.

What does not import in this CPython, or makes no sense without a screen, files or processes, is left out and
listed in docs/limitations.md.
"""

import contextlib
import importlib
import io
import pkgutil
import sys

LEFT_OUT = {
    "antigravity",  # opens a browser
    "idlelib",
    "turtle",
    "turtledemo",
    "tkinter",
    "test",
    "this",  # prints
    "lib2to3",
    "ensurepip",
    "venv",
    "pydoc_data",
    "_pyrepl",
    "_ios_support",
    "_android_support",
    "_apple_support",
    "_aix_support",
    "_osx_support",
}

PACKAGES = (
    "asyncio", "collections", "compression", "concurrent", "concurrent.futures", "dbm", "email", "encodings", "html",
    "http", "importlib", "importlib.metadata", "importlib.resources", "json", "logging", "os", "pathlib", "re",
    "string", "sysconfig", "tomllib", "unittest", "urllib", "wsgiref", "xml", "xml.dom", "xml.etree", "xml.parsers",
    "xml.sax", "xmlrpc", "zipfile", "zipfile._path", "zoneinfo",
)  # fmt: skip


def load() -> None:
    """Import every module that this CPython can import."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        for name in sorted(sys.stdlib_module_names - LEFT_OUT):
            _import(name)
        for package in PACKAGES:
            for module in pkgutil.iter_modules(getattr(sys.modules.get(package), "__path__", ())):
                if module.name != "__main__" and not module.name.startswith("mbcs"):
                    _import(f"{package}.{module.name}")


def _import(name):
    with contextlib.suppress(Exception):
        importlib.import_module(name)
