"""What explains an error of a script and is not in it: which keys a dict has, how long a list is, what was None.

Above: `run`. Below: `failures`. The expression is read, not run again: values are those that variables hold, what the
last call returned, and parts of plain dicts and lists in them.
"""

import ast
import difflib
import functools
import itertools
import linecache

from . import failures

MAX_SOURCE = 50_000
"""Characters of a script that is read for this; parsing 50,000 takes a fifth of a second."""

MAX_VALUES = 10_000
"""Values of a loop, or keys of a dict, that are looked at."""

MAX_KEYS = 12
MAX_CHARACTERS = 60
"""Of an expression or of a key that is shown."""

_KEY_KINDS = (str, int)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_NONE_IN_PART = ("'NoneType' object is not subscriptable", "'NoneType' object does not support item assignment")


def explain(errors: list, filenames: set, answered: tuple | None) -> None:
    """Add to errors what a script could not see of them; nothing where one was not raised by the script's own code.

    `answered` is the last call that was answered, and the value: no variable may hold it.
    """
    parse = functools.cache(ast.parse)  # those of a group are often of the same script
    for error in errors:
        failures.add_notes(error, [_note(error, filenames, parse, answered)])


def _note(error, filenames, parse, answered):
    place = failures.innermost(error)
    if type(error) not in _FOUND or place is None or place.tb_frame.f_code.co_filename not in filenames:
        return None
    source = "".join(linecache.getlines(place.tb_frame.f_code.co_filename))
    if len(source) > MAX_SOURCE:
        return None
    return _FOUND[type(error)](error, _Expression(source, parse(source), place, answered))


def _of_key(error, expression):
    """Say which keys there are."""
    node, key = expression.node(ast.Subscript) or expression.owner_of("pop"), error.args[0]
    if node is None or type(key) not in _KEY_KINDS:
        return None
    held = expression.first(node.value, lambda value: type(value) is dict and key not in value)
    return None if held is None else f"{expression.name(node.value, 'the dict')} {_shape(held, key)}"


def _of_index(_error, expression):
    node = expression.node(ast.Subscript)
    if node is None:
        return None
    index = node.slice.value if type(node.slice) is ast.Constant and type(node.slice.value) is int else 0
    held = expression.first(node.value, lambda value: type(value) in (list, tuple) and len(value) <= index)
    return None if held is None else f"{expression.name(node.value, 'the list')} {_shape(held)}"


def _of_attribute(error, expression):
    node = expression.node(ast.Attribute)
    if node is None:
        return None
    if str(error).startswith("'NoneType' object has no attribute "):
        return expression.is_none(node.value)
    if type(error.obj) is str:
        return expression.of_loop(node.value)
    if type(error.obj) not in (dict, list):
        return None
    return f"{expression.name(node.value, 'the value')} {_shape(error.obj, error.name)}"


def _of_type(error, expression):
    message, node = str(error), expression.node(ast.Subscript)
    if message in _NONE_IN_PART and node is not None:
        return expression.is_none(node.value)
    if message.startswith("string indices must be integers") and node is not None:
        return expression.of_loop(node.value)
    if message.startswith("list indices must be integers") and node is not None:
        held = expression.first(node.value, lambda value: type(value) is list)
        return None if held is None else f"{expression.name(node.value, 'the list')} {_shape(held)}"
    if message == "'NoneType' object is not iterable" and (looped := expression.looped_over()) is not None:
        return expression.is_none(looped)
    return None


_FOUND = {KeyError: _of_key, IndexError: _of_index, AttributeError: _of_attribute, TypeError: _of_type}


class _Expression:
    """The part of a script that an exception was raised at, in its syntax tree."""

    def __init__(self, source, tree, place, answered):
        self._source = source
        self._answered = answered
        self._frame = place.tb_frame
        self._tree = tree
        positions = place.tb_frame.f_code.co_positions()
        begin, end, column, end_column = next(itertools.islice(positions, place.tb_lasti // 2, None))
        self._place = (begin, column), (end, end_column)
        self._end = (end, end_column)

    def node(self, kind):
        """Return the node of this kind that ends there; Python begins methods of several lines elsewhere."""
        return next((one for one in ast.walk(self._tree) if type(one) is kind and _end(one) == self._end), None)

    def owner_of(self, method):
        """Return the attribute that is called there, if it has this name."""
        match self.node(ast.Call):
            case ast.Call(ast.Attribute(_, name) as function) if name == method:
                return function
        return None

    def looped_over(self):
        """Return what a loop there runs over."""
        loops = [one for one in ast.walk(self._tree) if isinstance(one, (ast.For, ast.comprehension))]
        return next((one.iter for one in loops if (_begin(one.iter), _end(one.iter)) == self._place), None)

    def name(self, node, otherwise):
        text = ast.get_source_segment(self._source, node)
        return f"`{text}`" if text is not None and len(text) <= MAX_CHARACTERS and "\n" not in text else otherwise

    def is_none(self, node):
        name = self.name(node, "")
        return f"{name} is None" if name else None

    def of_loop(self, node):
        """Return what a loop runs over whose variable is text."""
        for loop in self._loops(node, (*_COMPREHENSIONS, ast.For)):
            held = self.first(loop.iter, lambda value: type(value) in (dict, str))
            if type(held) is dict:
                return f"{self.name(loop.iter, 'what is looped over')} {_shape(held)}: a loop over it gives these"
            if type(held) is str:
                return f"{self.name(loop.iter, 'what is looped over')} is text: a loop over it gives its characters"
        return None

    def first(self, node, fits):
        """Return the first value that an expression may have had and that fits."""
        return next(filter(fits, itertools.islice(self._values(node), MAX_VALUES)), None)

    def _values(self, node):
        match node:
            case ast.Constant(value):
                yield value
            case ast.Name():
                yield from self._of_variable(node)
            case ast.Attribute(owner, name):
                for held in self._values(owner):
                    yield from _field(held, name)
            case ast.Subscript(container, index) | ast.Call(ast.Attribute(container, "get"), [index, *_]):
                for held in self._values(container):
                    for at in self._values(index):
                        if _has(held, at):
                            yield held[at]
            case ast.Await(ast.Call(ast.Name(name) | ast.Attribute(_, name)) as call) if self._answered is not None:
                (_, function, line, _), value = self._answered
                if function.rpartition(".")[2] == name and call.lineno <= line <= call.end_lineno:
                    yield value

    def _of_variable(self, node):
        loop = next(self._loops(node, _COMPREHENSIONS), None)
        if loop is not None and self._frame.f_code.co_name != "<genexpr>":
            # The variable went with the comprehension, or has again the value from before it.
            for held in self._values(loop.iter):
                yield from held if type(held) in (list, tuple) else ()
            return
        for names in (self._frame.f_locals, self._frame.f_globals):
            if node.id in names:
                yield names[node.id]
                return

    def _loops(self, node, kinds):
        """Return the loops around a name that give it its values, the innermost first."""
        around = [one for one in ast.walk(self._tree) if isinstance(one, kinds) and _is_inside(node, one)]
        for one in reversed(around):
            for loop in getattr(one, "generators", [one]):
                if type(node) is ast.Name and type(loop.target) is ast.Name and loop.target.id == node.id:
                    yield loop


def _field(held, name):
    """Return the attribute of an object, if it is one that the object itself keeps."""
    fields = object.__getattribute__(held, "__dict__") if hasattr(type(held), "__dict__") else None
    if type(fields) is dict and name in fields:
        yield fields[name]


def _has(held, at):
    if type(held) is dict:
        return type(at) in _KEY_KINDS and at in held
    return type(held) in (list, tuple) and type(at) is int and -len(held) <= at < len(held)


def _begin(node):
    return node.lineno, node.col_offset


def _end(node):
    return node.end_lineno, node.end_col_offset


def _is_inside(node, outer):
    return _begin(outer) <= _begin(node) and _end(node) <= _end(outer)


def _shape(value, wanted=None):
    """Return what there is in a dict or list; the keys most like the wanted one come first."""
    if type(value) is dict:
        return f"has the {_keys(value, wanted)}" if value else "is an empty dict"
    if not value:
        return "is empty"
    count = f"has {len(value)} element{_s(value)}"
    return f"{count}, the first with the {_keys(value[0])}" if type(value[0]) is dict and value[0] else count


def _keys(held, wanted=None):
    keys = [key for key in itertools.islice(held, MAX_VALUES) if type(key) in _KEY_KINDS]
    texts = [key for key in keys if type(key) is str and len(key) <= MAX_CHARACTERS]
    near = []
    if len(keys) > MAX_KEYS and type(wanted) is str:
        near = difflib.get_close_matches(wanted[:MAX_CHARACTERS], texts[:1_000], n=3)
    shown = list(dict.fromkeys([*near, *keys[:MAX_KEYS]]))[:MAX_KEYS]
    more = f" and {len(held) - len(shown)} more" if len(held) > len(shown) else ""
    return f"key{_s(held)} {', '.join(_shown(key) for key in shown)}{more}"


def _s(several):
    return "" if len(several) == 1 else "s"


def _shown(key):
    text = repr(key) if type(key) is str else str(key)[: MAX_CHARACTERS + 1]
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}…"
