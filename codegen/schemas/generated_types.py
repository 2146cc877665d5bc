"""The types that the generator answered for a closed document, with their tokens replaced by names and values.

Above: generate.py. Below: the closed document's tables, and names for its classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codegen.errors import GenerationError
from codegen.schemas.brevity import worth_saying
from codegen.schemas.class_names import assign_class_names
from codegen.schemas.closed_types import EXTRA, ClosedDocument, ClosedField, ClosedModel, ClosedType
from codegen.schemas.type_tree import ANY, Alias, Choice, DictOf, Field, ListOf, Model, Named, Type, Union

if TYPE_CHECKING:
    from codegen.schemas.type_generator import Definitions
    from codegen.schemas.type_tree import LiteralValue


@dataclass(frozen=True, slots=True)
class TypedCount:
    """How many parameters and fields have a schema that restricts them, and how many of those got a type."""

    said: int = 0
    typed: int = 0


class GeneratedTypes:
    """The types of one tool."""

    def __init__(self, document: ClosedDocument, answer: Definitions) -> None:
        """Take the generator's answer to a document; every token in it is from the document's tables."""
        self._document = document
        self._answer = answer
        self._names = _class_names(document)

    def properties(self, token: str) -> dict[str, Type]:
        """Return the types of an object's property tokens."""
        properties = self._answer.get(token)
        if not isinstance(properties, dict):
            raise GenerationError("the type generator left out an object")
        return {name: self._meant(type_) for name, type_ in properties.items()}

    def definitions(self) -> tuple[Model | Alias, ...]:
        """Return every class and alias."""
        aliases = [
            Alias(self._names[token], self._alias(token))
            for token in self._document.aliases
            if _target_token(self._document.definitions[token]) is None
        ]
        return (*aliases, *map(self._model, self._document.models.values()))

    def count(self, arguments: tuple[tuple[ClosedField, Type], ...], returns: Type | None) -> TypedCount:
        """Count the parameters and fields whose schema says something, and those with a type."""
        fields = list(arguments)
        for model in self._document.models.values():
            types = self.properties(model.token)
            fields += [(one, types[one.token]) for one in model.fields]
        said = [type_ for one, type_ in fields if one.says_something]
        if returns is not None:
            said.append(returns)
        return TypedCount(len(said), sum(type_ != ANY for type_ in said))

    def _alias(self, token: str) -> Type:
        type_ = self._answer.get(token)
        if type_ is None or isinstance(type_, dict):
            raise GenerationError("the type generator left out an alias")
        return self._meant(type_)

    def _model(self, model: ClosedModel) -> Model:
        types = self.properties(model.token)
        words = " ".join(model.words)
        fields = tuple(
            Field(one.key, types[one.token], one.required, worth_saying(one.note, one.key, words))
            for one in model.fields
        )
        return Model(self._names[model.token], fields, types.get(EXTRA), worth_saying(model.note, words))

    def _meant(self, type_: Type) -> Type:
        match type_:
            case Named(token):
                if token not in self._names:
                    raise GenerationError("the type generator named something unknown")
                return Named(self._names[token])
            case Choice(tokens):
                return Choice(tuple(self._literal(token) for token in tokens))
            case ListOf(item):
                return ListOf(self._meant(item))
            case DictOf(value):
                return DictOf(self._meant(value))
            case Union(members):
                return Union(tuple(map(self._meant, members)))
            case _:
                return type_

    def _literal(self, token: LiteralValue) -> LiteralValue:
        return self._document.literals[int(str(token)[1:])]


def _class_names(document: ClosedDocument) -> dict[str, str]:
    """Return the class name of each token; an alias that only leads to an object has the object's name."""
    leads_to = {token: _target_token(document.definitions[token]) for token in document.aliases}
    leads_to = {token: leads_to.get(target or "") or target for token, target in leads_to.items()}
    words = {one.token: one.words for one in document.models.values()}
    words |= {token: path for token, path in document.aliases.items() if leads_to[token] is None}
    names = assign_class_names(words)
    for token, target in leads_to.items():
        if target is not None:
            names[token] = names[target]
    return names


def _target_token(closed: ClosedType) -> str | None:
    reference = closed.get("$ref")
    return str(reference).rsplit("/", 1)[-1] if reference is not None else None
