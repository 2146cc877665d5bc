"""What a query wants done and what a tool does: read, create, change or remove; one thing or many; which thing.

Above: documents.py reads it from tools, queries.py from queries, second_look.py compares. Below: stop_words.py,
words.py. Tools of one server often share their nouns, so that the verb and the number tell them apart; and people write
other verbs than tools do: "what domains do we have" for `list_domains`, "rename" for `update_domain`. English only.
What is not understood is left open.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import dropwhile, takewhile
from typing import TYPE_CHECKING

from broker.search.stop_words import stop_stems
from broker.search.words import stem, words

if TYPE_CHECKING:
    from collections.abc import Callable


def _each(text: str) -> frozenset[str]:
    return frozenset(text.split())


# A verb may be of several kinds: "add a row" creates one, and changes the table.
_VERBS = {
    "read": "browse check compare count describe discover display download enumerate examine explain export fetch find "
    "get identify inspect list lookup obtain query read retrieve return search see show summarize tell view",
    "check": "check diagnose examine inspect test validate verify",
    "create": "add allow assign attach build create enable generate grant insert make new permit post provision "
    "register set upload upsert write",
    "change": "add adjust allow alter amend assign attach change configure disable downgrade edit enable grant make "
    "modify merge move patch permit put reconfigure rename replace reset resize rotate scale set switch toggle update "
    "upgrade upsert write",
    "remove": "archive clear delete deny deprovision deregister destroy detach disable disconnect drop erase purge "
    "remove revoke unassign uninstall unlink unpin unregister unset unshare unsubscribe untag",
    "run": "execute invoke launch query refresh restart resume run start sync synchronize trigger",
    "stop": "abort cancel disable halt pause stop suspend terminate",
    "send": "draft forward publish reply schedule send submit",
    "buy": "buy purchase reserve",
}

# Verbs of people alone: in the names of tools they are nouns, or rare.
_VERBS_OF_PEOPLE = {
    "read": "audit collect dump estimate explore extract gather grab inventory investigate monitor observe open peek "
    "plot print provide pull review scan study tail track visualize watch",
    "check": "assess confirm ensure evaluate investigate ping probe troubleshoot",
    "create": "append author begin clone commit compile complete compose copy define deploy design draft draw "
    "duplicate establish file fork import initialize instantiate introduce log mint mock open package plot "
    "prepare produce push put record save scaffold schedule spawn stand start store visualize",
    "change": "adapt append apply bump close convert correct customize decrease deploy edit encrypt enlarge "
    "expand extend fix grow increase lower mark merge migrate mute override pause promote put raise reassign "
    "reduce relabel reopen reorder resolve restore resume revise rewrite save shorten shrink suspend swap tag tick "
    "transfer tweak undo",
    "remove": "ban clean decommission discard dismantle eliminate evict expel kill nuke offboard prune retire "
    "scrap scrub strip terminate trash truncate undeploy wipe withdraw",
    "run": "apply begin boot call continue fire kick perform process reboot rerun retry",
    "stop": "cease deactivate discontinue end freeze interrupt kill mute quit shutdown",
    "send": "announce broadcast deliver dispatch email message notify ping push share text",
    "buy": "book order rent",
}
_QUESTIONS = _each("any are did does has have how is was were what whats when where which who whose why")
_STATES = _each("are did has have is was were")
_AMOUNTS = _each("big far fast full great high large long many much often old")
_GREETINGS = _each("hello hey hi kindly lets ok okay")
_SAID_BESIDE = _GREETINGS | _QUESTIONS | _AMOUNTS

# "the details of a queue" are of one queue: these words stand for what follows them.
_ABOUT = _each("all detail details info information list overview state status summary")
_NOUN_ENDS = _each(
    "about am and are as at between by called can could did do does exist exists for from had has have i in inside "
    "into is named of on or should that to under using was we were where which will with within would"
)
_DETERMINERS = _each("her his its my our that the their these this those your")
_SEARCHES = _each("find lookup query search")
_SEVERAL = re.compile(r"\b(?:all|every|lists?|multiple|several)\b", re.IGNORECASE)
_MANNERS = _each("batch bulk double force hard quick soft")
_CONJUNCTIONS = _each("and or")
_EACH = re.compile(r"\b(?:each|every)\b", re.IGNORECASE)
_ONE_OF = re.compile(r"\bone of\b", re.IGNORECASE)
_BATCHES = _each("batch bulk many multi multiple")
_BESIDE_NOUNS = _BATCHES | _ABOUT
_AT_ONCE = re.compile(r"\b(?:batch|bulk|every|many|multiple|several|these|those|\d+ \w+s)\b", re.IGNORECASE)
_VALUE = re.compile(r"<[^<>]{1,60}>|\"[^\"]{1,60}\"|'[^']{1,60}'")
_SENTENCE_END = re.compile(r"[.!?]\s")
_CLAUSE = re.compile(
    r"[,;:.!?]+(?:\s+|$)|\s(?:and|so|please|then|(?:can|could|would|will) you|(?:i|we) (?:want|need|like|have)(?: to)?|"
    r"(?:should|must|can|to) be)\b",
    re.IGNORECASE,
)
_ASIDE = _each(
    "after although as at because before by during for from given if in on since to under until when while with"
)
_OUGHT = re.compile(r"\b(?:have to|has to|must|ought|should)\b", re.IGNORECASE)
_VERB_WITHIN = 5
_THINGS_TRIED = 3
_SHORTEST_PLURAL = 4
_SAID_CHARACTERS = 160
_SAID_WORDS = 25
_QUERY_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Action:
    """What is done to what.

    Attributes:
        kinds: The kinds of action that it may be; empty when that is not known.
        is_many: Whether it is done to many things, or to one; None when that is not known.
        thing: The stems of what it is done to.
        head: That of them which says what kind of thing it is: the last.
        verb: The stem of the verb, where there is one.
    """

    kinds: frozenset[str] = frozenset()
    is_many: bool | None = None
    thing: frozenset[str] = frozenset()
    head: str = ""
    verb: str = ""

    @property
    def is_unknown(self) -> bool:
        """Whether nothing of it is known."""
        return not (self.kinds or self.thing or self.head or self.verb)

    def kinds_agree(self, other: Action) -> bool | None:
        """Tell whether both may do the same; None when that is not known."""
        return not self.kinds.isdisjoint(other.kinds) if self.kinds and other.kinds else None

    def numbers_agree(self, other: Action) -> bool | None:
        """Tell whether both are done to many things, or both to one; None when that is not known."""
        return self.is_many is other.is_many if None not in (self.is_many, other.is_many) else None


def action_of_query(text: str, respell: Callable[[str], str] = str) -> Action:
    """Return what the beginning of a query wants done; words that are not known here are spelt anew before."""
    plain = _VALUE.sub(" of ", text[:_QUERY_CHARACTERS])  # a name in quotes ends the noun before it
    plain = _SENTENCE_END.split(plain.lstrip(), maxsplit=1)[0]
    clauses = [[word if _is_known(word) else respell(word) for word in words(said)] for said in _CLAUSE.split(plain)]
    clauses.sort(key=lambda said: said[:1] != [] and said[0] in _ASIDE)  # "after the test, delete …" deletes
    asked = [_asked(clause, start) for clause in clauses if (start := _start(clause)) < len(clause)]
    if not asked:
        return Action()
    verb, kinds, rest = next((one for one in asked if one[1]), asked[0])
    things = (_first_thing(rest) for rest in (rest, *(rest for _, _, rest in asked)))  # "the disk is old, remove it"
    thing = next(filter(None, things), [])
    is_order = not _DETERMINERS.isdisjoint(rest[1:2]) or _OUGHT.search(text)  # "hydrate our buckets"
    if not (kinds or is_order) and thing and _is_plural(thing[-1]):
        kinds = frozenset({"read"})  # "the buckets of my account"
    is_many = _names_many(thing, kinds, text) if thing and kinds else None
    return Action(kinds, is_many, *_with_head(thing), verb)


def action_of_tool(name: list[str], summary: list[str], text: str) -> Action:
    """Return what a tool does, by the verbs in its name and before its description, and the nouns in both.

    Args:
        name: The words of its name.
        summary: Those of the first sentence of its description.
        text: This sentence.
    """
    parts, said = [word.lower() for word in name], [word.lower() for word in summary[:_SAID_WORDS]]
    known = _kinds()
    verb = next((part for part in (*parts[:1], *parts[-1:], *parts[1:-1]) if stem(part) in known), None)
    thing, head = _with_head(_nouns([part for part in parts if part != verb]))
    begins = takewhile(lambda word: word in _CONJUNCTIONS or stem(word) in known, said)  # "create or update"
    verbs = [word for word in (verb, *said[:1], *begins) if word is not None]  # "plan_get: creates a plan"
    kinds = frozenset[str]().union(*[known.get(stem(word), ()) for word in verbs])
    if not kinds:
        return Action(thing=thing, head=head)
    if "read" not in kinds:
        return Action(kinds, _takes_many(parts), thing, head)
    return Action(kinds, None if verbs[0] in _SEARCHES else _lists(parts, said, text), thing, head)


def _with_head(thing: list[str]) -> tuple[frozenset[str], str]:
    head = next((word for word in reversed(thing) if not word.isdigit()), "")  # "run 12" is a run
    return frozenset(map(stem, thing)), stem(head)


def _nouns(parts: list[str]) -> list[str]:
    """Return the words of a name for what its tool is about; not for where that is: "get_buckets_in_cluster"."""
    thing = list(takewhile(lambda part: part not in _NOUN_ENDS, parts)) or parts
    return [part for part in thing if part not in _BESIDE_NOUNS and stem(part) not in stop_stems()]


@lru_cache(maxsize=8_192)
def _is_known(word: str) -> bool:
    return word in _SAID_BESIDE or stem(word) in stop_stems() or stem(word) in _asked_kinds()


@lru_cache(maxsize=8_192)
def _is_polite(word: str) -> bool:
    return word in _GREETINGS or (word not in _QUESTIONS and stem(word) in stop_stems())


def _start(clause: list[str]) -> int:
    return next((at for at, word in enumerate(clause) if not _is_polite(word)), len(clause))


def _asked(clause: list[str], start: int) -> tuple[str, frozenset[str], list[str]]:
    """Return the verb, the kinds of action that are asked for, and the words after the verb."""
    if start and clause[start - 1] in _DETERMINERS:  # "the scale set"
        return "", frozenset(), clause[start - 1 :]
    said = clause[start:]
    if (said[0].endswith("ly") or said[0] in _MANNERS) and stem("".join(said[1:2])) in _asked_kinds():
        said = said[1:]  # "permanently delete"
    if said[0] == "how" and said[1:2] and said[1] not in _AMOUNTS | _STATES:  # how do I create …
        at = next((at for at, word in enumerate(said[:_VERB_WITHIN]) if stem(word) in _asked_kinds()), 0)
        return stem(said[at]), _asked_kinds().get(stem(said[at]), frozenset()), said[at + 1 :]
    if said[0] in _QUESTIONS:
        return "", frozenset({"read"}), said[2 if said[0] == "how" else 1 :]
    kinds = _asked_kinds().get(stem(said[0]))
    return ("", frozenset(), said) if kinds is None else (stem(said[0]), kinds, said[1:])


def _first_thing(said: list[str]) -> list[str]:
    """Return the words for the first thing that is named; empty when there is none."""
    said = list(dropwhile(lambda word: stem(word) in _kinds(), said))  # "show or list"; later "run" is a noun
    for _ in range(_THINGS_TRIED):
        said = list(dropwhile(_is_before_noun, said))
        thing = _noun(said)
        said = said[len(thing) :]
        while thing and thing[-1] in _ABOUT:
            thing.pop()
        thing = [word for word in thing if stem(word) not in stop_stems()]
        if thing:
            return thing
    return []


def _noun(said: list[str]) -> list[str]:
    """Return the words of the noun that a text begins with; "stored" ends it in "the rows stored in my table"."""
    for at, word in enumerate(said):
        if word in _NOUN_ENDS or (at and word.endswith(("ed", "ing")) and _is_participle(word, said[at + 1 :])):
            return said[:at]
    return said


def _is_participle(word: str, rest: list[str]) -> bool:
    """Tell "boxes holding my books" and "rows stored in it" from "load testing in it" and "a managed disk"."""
    if word.endswith("ed"):
        return not rest or rest[0] in _NOUN_ENDS or rest[0] in _DETERMINERS
    return not _DETERMINERS.isdisjoint(rest[:1])


def _names_many(thing: list[str], kinds: frozenset[str], text: str) -> bool | None:
    if len(thing[-1]) < _SHORTEST_PLURAL and thing[-1].endswith("s"):
        return None  # "vms" are many, "dns" is one
    several = _EACH if "read" in kinds else _AT_ONCE
    return _is_plural(thing[-1]) or several.search(text[:_SAID_CHARACTERS]) is not None


@lru_cache(maxsize=8_192)
def _is_before_noun(word: str) -> bool:
    return word in _NOUN_ENDS or word in _QUESTIONS or stem(word) in stop_stems()


def _takes_many(parts: list[str]) -> bool | None:
    """Tell whether a tool that does something does it to many things; None where the plural may be a name's habit."""
    if not _BATCHES.isdisjoint(parts):
        return True
    return None if any(map(_is_plural, parts)) else False


def _lists(parts: list[str], said: list[str], description: str) -> bool | None:
    """Tell whether a tool that reads returns many things or one; None where it may be either."""
    if "list" in parts or any(map(_is_plural, parts[-1:])):
        return True
    thing = _first_thing(said)
    if thing and _is_plural(thing[-1]):
        return not _ONE_OF.search(description[:_SAID_CHARACTERS])
    return None if _SEVERAL.search(description[:_SAID_CHARACTERS]) else False


def _is_plural(word: str) -> bool:
    is_singular = not word.endswith("s") or word.endswith(("ss", "us", "is")) or stem(word) == word
    return len(word) >= _SHORTEST_PLURAL and not is_singular


@lru_cache(maxsize=1)
def _kinds() -> dict[str, frozenset[str]]:
    return _by_stem(_VERBS)


@lru_cache(maxsize=1)
def _asked_kinds() -> dict[str, frozenset[str]]:
    return _by_stem(_VERBS, _VERBS_OF_PEOPLE)


def _by_stem(*verbs: dict[str, str]) -> dict[str, frozenset[str]]:
    kinds: dict[str, frozenset[str]] = {}
    for kind, listed in (pair for known in verbs for pair in known.items()):
        for verb in listed.split():
            kinds[stem(verb)] = kinds.get(stem(verb), frozenset()) | {kind}
    return kinds
