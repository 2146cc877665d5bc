"""Makes the objects of the snapshot immortal, so that using them does not write to them.

CPython counts references in the object itself: reading a shared object costs the instance a private copy of its page.
"""

import contextlib
import gc
import importlib
import sys
import types


def make_immortal() -> None:
    """Do so for everything that can be reached; what scripts make later is counted as ever."""
    found = _reachable()
    sys.immortal = found
    # It does its work when it is initialised, and is no module that Python would keep.
    with contextlib.suppress(SystemError, ImportError):
        importlib.import_module("immortal")
    done = sys.getrefcount(found[0])
    del sys.immortal
    sys.modules.pop("immortal", None)
    if done < 1 << 30:
        raise RuntimeError("objects of the image could not be made immortal")


def _reachable():
    found = {id(item): item for item in gc.get_objects()}
    waiting = list(found.values())
    while waiting:
        item = waiting.pop()
        inner = gc.get_referents(item)
        if isinstance(item, types.FunctionType):
            inner.append(item.__code__)
        if isinstance(item, types.CodeType):
            inner += [
                item.co_consts,
                item.co_names,
                item.co_filename,
                item.co_name,
                item.co_qualname,
                item.co_linetable,
            ]
            inner.append(item.co_exceptiontable)
        for one in inner:
            if id(one) not in found:
                found[id(one)] = one
                waiting.append(one)
    return list(found.values())
