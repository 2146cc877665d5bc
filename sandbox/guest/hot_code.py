"""Puts the bytecode that every run executes next to each other.

CPython counts in the bytecode itself how often an instruction ran and which way a branch went, so running a function
costs the instance private copies of its pages. Imports leave the functions of a run scattered over the heap, on a page
or two each; copied one after the other behind it, those of a small script share a dozen.
"""

import gc
import types


def gather(rehearsals) -> None:
    """Copy the bytecode that each rehearsal executes, in their order, and have the functions use the copies.

    A copy is as if it had never run. What changes nothing in its bytecode while it runs stays where it is.
    """
    copies = {}
    everything = _code_of_functions()
    for rehearse in rehearsals:
        before = [hash(code._co_code_adaptive) for code in everything]
        rehearse()
        executed = {
            id(code): code for code, old in zip(everything, before, strict=True) if hash(code._co_code_adaptive) != old
        }
        for code in executed.values():
            _copy(code, executed, copies)
    for function in _functions():
        copy = copies.get(id(function.__code__))
        if copy is not None:  # even its own code would have CPython never again specialise a call of the function
            function.__code__ = copy


def _functions():
    return [item for item in gc.get_objects() if isinstance(item, types.FunctionType)]


def _code_of_functions():
    """Return every code object that is a function's or will be that of one which another makes."""
    found = {}
    waiting = [function.__code__ for function in _functions()]
    while waiting:
        code = waiting.pop()
        if id(code) not in found:
            found[id(code)] = code
            waiting += _inner(code)
    return list(found.values())


def _inner(code):
    return [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]


def _copy(code, executed, copies):
    if id(code) not in copies:
        inner = {id(one): _copy(one, executed, copies) for one in _inner(code) if id(one) in executed}
        constants = tuple(inner.get(id(constant), constant) for constant in code.co_consts)
        copies[id(code)] = code.replace(co_consts=constants)
    return copies[id(code)]
