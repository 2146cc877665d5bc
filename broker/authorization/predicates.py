"""Tests on the arguments of a call: a small language in which every question has an answer.

Above: policy rules and grants. Below: pydantic. A predicate is a JSON object from JSON pointers (RFC 6901) to
tests, all of which must hold. There are no variables, loops or references, so that a test ends after one look at
the value; an argument that is missing, or has another type than a test speaks of, fails the test. Nothing is
converted: `1` is not `"1"`, and `true` is not `1`.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StrictFloat, StrictInt, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from broker.authorization.argument_checks import ABSENT, all_of, compile_test
from broker.authorization.patterns import can_match, matcher
from broker.authorization.policy_problems import predicate_problem
from broker.errors import PatternError
from codegen.tool_spec import canonical_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.authorization.argument_checks import Check

_WILDCARD = re.compile(r"[*?\[]")
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
"""Of an item in a list (RFC 6901); none has more digits."""
Pointer = Annotated[str, Field(pattern=r"^(/([^~/]|~[01])*)*$")]
"""`""` is all arguments together."""
Number: TypeAlias = StrictInt | Annotated[StrictFloat, Field(allow_inf_nan=False)]
_Glob = Annotated[str, Field(min_length=1, max_length=1_000)]


class ArgumentTest(BaseModel):
    """What one argument must be; every test that is given must hold.

    Attributes:
        equals: Equal as JSON: types count, and an object's order of keys does not.
        one_of: `in`: equal to one of these.
        glob: A string in which `*` is anything, `?` one character and `[…]` a set; case counts.
        path: A string with `/` between segments: `*` stays within one, `**` crosses them, `?` is one character of a
            segment, and `[` is itself. A path with a `.` or `..` segment, a backslash or a NUL matches nothing, also
            when it has one only once it is normalised or what is percent-encoded in it is decoded; nor does one of
            more than `MAX_PATH` characters. A rule that does not allow may match all of these, and what is another
            spelling of a path that it matches.
        min: A number of at least this.
        max: A number of at most this.
        present: Whether the argument is given at all, whatever its value.
        each: A list or object all of whose values pass this test.
        some: `any`: a list or object one of whose values passes this test.
        keys: An object that has no other keys than these.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    equals: JsonValue = None
    one_of: Annotated[tuple[JsonValue, ...], Field(min_length=1)] | None = Field(default=None, alias="in")
    glob: _Glob | None = None
    path: _Glob | None = None
    min: Number | None = None
    max: Number | None = None
    present: bool | None = None
    each: ArgumentTest | None = None
    some: ArgumentTest | None = Field(default=None, alias="any")
    keys: tuple[str, ...] | None = None

    @model_validator(mode="after")
    def _possible(self) -> ArgumentTest:
        if not self.model_fields_set:
            raise PydanticCustomError("impossible", "is empty, and so tests nothing; remove it or give a test")
        if self.present is False and len(self.model_fields_set) > 1:
            raise PydanticCustomError("impossible", "can never hold: an absent argument passes no other test")
        if self.glob is not None and not can_match(self.glob):
            raise PydanticCustomError("impossible", "can never hold: 'glob' has a set of no characters, as '[z-a]'")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise PydanticCustomError("impossible", "can never hold: 'min' is greater than 'max'")
        kinds = {"a string": self.glob or self.path, "a number": self.min is not None or self.max is not None}
        is_of_values = self.each is not None or self.some is not None
        kinds["a list" if self.keys is None else "an object"] = is_of_values or self.keys is not None
        if len(named := [kind for kind, is_tested in kinds.items() if is_tested]) > 1:
            raise PydanticCustomError("impossible", f"can never hold: no value is {' and '.join(named)}")
        self._check_values()
        return self

    def _check_values(self) -> None:
        """Refuse values that the other tests rule out, all of them."""
        values = [self.equals] if "equals" in self.model_fields_set else list(self.one_of or ())
        if not values:
            return
        check = compile_test(self)
        if not any(check(value) for value in values):
            raise PydanticCustomError("impossible", "can never hold: the other tests rule out every value given")


class Predicate:
    """A compiled predicate. Equal to another one that says the same."""

    __slots__ = ("_source", "holds", "may_hold", "tests")

    def __init__(self, tests: Mapping[str, ArgumentTest]) -> None:
        """Compile tests that are valid; `parse` takes them from JSON.

        Raises:
            PatternError: Two of the tests exclude each other.
            TypeError: One is no `ArgumentTest`.
        """
        self.tests = dict(tests)
        for place, test in self.tests.items():
            if not isinstance(test, ArgumentTest):
                raise TypeError(f"tests as JSON are read by Predicate.parse({{{place!r}: {test!r}}})")
        self._source = canonical_json({key: _dump(test) for key, test in self.tests.items()})
        self.holds: Check = all_of([_at(path, test) for path, test in self.tests.items()])
        """Tells whether the arguments of a call pass every test."""
        self.may_hold: Check = self.holds
        """Tells whether they may pass: servers read some paths in several ways."""
        if any(map(_has_path, self.tests.values())):
            self.may_hold = all_of([_at(path, test, in_doubt=True) for path, test in self.tests.items()])
        _check_nested(self.tests)

    @classmethod
    def parse(cls, tests: Mapping[str, Any]) -> Predicate:
        """Read JSON, as in `{"/path": {"glob": "notes/*"}}`.

        Raises:
            PatternError: It is no predicate, or can never hold.
        """
        try:
            return cls(_Tests.model_validate({"arguments": tests}).arguments)
        except ValidationError as error:
            raise PatternError(predicate_problem(error)) from None

    def __eq__(self, other: object) -> bool:
        """Compare what is tested."""
        return isinstance(other, Predicate) and self._source == other._source

    def __hash__(self) -> int:
        """Hash what is tested."""
        return hash(self._source)

    def __str__(self) -> str:
        """Return the predicate as JSON, sorted."""
        return self._source

    def __repr__(self) -> str:
        """Return how to make it again."""
        return f"Predicate.parse({self.document()!r})"

    def document(self) -> dict[str, Any]:
        """Return the predicate as a JSON object."""
        document: dict[str, Any] = json.loads(self._source)
        return document


class _Tests(BaseModel):
    arguments: dict[Pointer, ArgumentTest]


def check_predicate(given: object) -> None:
    """Refuse what is given in the place of a predicate: it could be asked nothing when a call comes.

    Raises:
        TypeError: It is neither a predicate nor None.
    """
    if given is not None and not isinstance(given, Predicate):
        raise TypeError(f"the arguments of a grant are a Predicate, as Predicate.parse({given!r})")


def anything(_arguments: dict[str, Any]) -> bool:
    """Hold for any arguments."""
    return True


def nothing(_arguments: dict[str, Any]) -> bool:
    """Hold for no arguments."""
    return False


def pointer(*parts: str) -> str:
    """Return the JSON pointer to a value."""
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in parts)


def _dump(test: ArgumentTest) -> dict[str, Any]:
    return test.model_dump(by_alias=True, exclude_unset=True, mode="json")


def _has_path(test: ArgumentTest) -> bool:
    return test.path is not None or any(_has_path(inner) for inner in (test.each, test.some) if inner is not None)


def _at(path: str, test: ArgumentTest, *, in_doubt: bool = False) -> Check:
    """Return a test of what is at a pointer, as a function of all arguments."""
    check, parts = compile_test(test, in_doubt=in_doubt), pointer_parts(path)
    if len(parts) != 1:
        return lambda arguments: check(_find(arguments, parts))
    # By far the most frequent ones, without a call for each. What is missing is None, which is no string.
    name, wanted = parts[0], test.equals
    if isinstance(wanted, str) and test.model_fields_set == {"equals"}:
        return lambda arguments: bool(arguments.get(name) == wanted)
    if test.glob is not None and test.model_fields_set == {"glob"}:
        begins, matches = _WILDCARD.split(test.glob, maxsplit=1)[0], matcher(test.glob)
        return lambda arguments: (
            isinstance(value := arguments.get(name), str) and value.startswith(begins) and bool(matches(value))
        )
    return lambda arguments: check(arguments.get(name, ABSENT))


def pointer_parts(path: str) -> list[str]:
    """Return the keys that a JSON pointer goes through; none for the empty one, which is all arguments (RFC 6901)."""
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def _find(value: Any, parts: list[str]) -> Any:
    for part in parts:
        if isinstance(value, dict):
            value = value.get(part, ABSENT)
        elif isinstance(value, list) and _INDEX.fullmatch(part) and int(part) < len(value):
            value = value[int(part)]
        else:
            return ABSENT
    return value


def _check_nested(tests: Mapping[str, ArgumentTest]) -> None:
    """Refuse a test of something inside a value that must equal one without it, or may not have it."""
    for outer, test in tests.items():
        values = [test.equals] if "equals" in test.model_fields_set else test.one_of
        if test.present is False:
            values = [ABSENT]
        for inner in tests if values or test.keys is not None else ():
            if not inner.startswith(f"{outer}/"):
                continue
            check, parts = compile_test(tests[inner]), pointer_parts(inner[len(outer) :])
            left_out = test.keys is not None and parts[0] not in test.keys and not check(ABSENT)
            if left_out or (values and not any(check(_find(value, parts)) for value in values)):
                raise PatternError(f"arguments: {inner}: can never hold beside the test of {outer or 'all arguments'}")
