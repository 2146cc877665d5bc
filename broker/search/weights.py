"""How signs that a tool fits are weighed against each other.

Above: everything that ranks by words. Below: nothing. The numbers were found on half of the benchmark's queries, and on
queries for tools of other servers; what they are worth is reported on the other half.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Field:
    """How a part of a tool's definition counts.

    Attributes:
        weight: What one word in it is worth.
        typical_words: The length at which it is worth exactly that.
        length_share: How far a longer text makes each of its words worth less; 0 is not at all.
    """

    weight: float
    typical_words: float
    length_share: float = 0.5


@dataclass(frozen=True, slots=True)
class Fields:
    """The parts of a definition that are searched."""

    name: Field = Field(2.0, 4)
    title: Field = Field(4.0, 4)
    server: Field = Field(1.0, 4)
    summary: Field = Field(1.5, 12)
    description: Field = Field(0.6, 40)
    parameters: Field = Field(1.0, 8)
    parameter_texts: Field = Field(0.4, 40)
    initials: float = 3.0
    saturation: float = 1.6


@dataclass(frozen=True, slots=True)
class Ranking:
    """What words of a query are worth, and what the second pass adds.

    Attributes:
        same: A word for a near thing to one of the query, against that word itself.
        alike: A word that means the very same.
        asked: A word for what a question asks for: "how big" for a size.
        weak: A word that people put around what they want.
        joined: Two words of the query, written as one by the tool.
        spelt: A word of which one slip makes a word of the query that no tool says.
        guessed: A word that is part of one of the query that no tool says, or begins with it.
        acronym: The first letters of a name that the tool says.
        form: Another form of what is said: "nsg" for "network security group", or that for "nsg"; a product of the kind
            that is said.
        pair: Two words side by side, as in the query, against the words themselves.
        name: The share of the tool's name that was asked for.
        action: Doing what is asked, as a share of the score; taken away for doing something else.
        number: Reading many things where many are asked for, or one where one is; taken away for the other.
        thing: Having the thing that is asked for, and nothing else, in its name.
        head: Having a name that ends as that thing does.
        parameters: Requiring only what the query names, and taking what it gives a value for.
        part: The best sentence of the query, against the whole of it.
        server: The three best tools of the same server, against the tool itself.
        server_name: Being of a server that the query names.
        crowd: Each better tool of the same server after the first four; taken away.
        candidates: How many tools the second pass looks at.
        postings: Once so many entries were read, the words that are left may only add to tools already found.
    """

    same: float = 0.2
    alike: float = 0.5
    asked: float = 0.4
    weak: float = 0.7
    joined: float = 0.45
    spelt: float = 0.9
    guessed: float = 0.5
    acronym: float = 0.8
    form: float = 0.8
    pair: float = 0.3
    name: float = 0.15
    action: float = 0.16
    number: float = 0.12
    thing: float = 0.3
    head: float = 0.05
    parameters: float = 0.1
    part: float = 0.7
    server: float = 0.3
    server_name: float = 0.3
    crowd: float = 0.1
    candidates: int = 60
    postings: int = 2_000
