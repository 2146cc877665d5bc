"""Wishes that people put into several words, in the one word that tools use: "get rid of" is "delete".

Above: queries.py. Below: nothing. General English, nothing about one product. A phrase is rewritten before the query is
read as words, because its words by themselves mislead: "get" reads, and "set" changes.
"""

from __future__ import annotations

import re
from string import ascii_lowercase, ascii_uppercase

_PHRASES = {
    "delete": "get rid of, getting rid of, got rid of, throw away, throw out, tear down, wipe out, clean up, clear "
    "out, do away with, no longer need, not need any more, dont need, don't need, do not need",
    "should be removed": "should no longer be, should not be, shouldn't be",
    "remove": "take away, take off, take out, kick out, strip off",
    "create": "set up, setting up, spin up, stand up, come up with, open a new, start a new, begin a new, i need a "
    "new, i want a new, we need a new",
    "add": "jot down, write down, note down",
    "add comment": "leave a comment, leave a remark, leave a note",
    "create issue": "open an issue, file an issue, raise an issue",
    "create ticket": "open a ticket, file a ticket, raise a ticket",
    "create bug": "file a bug, raise a bug",
    "create pull request": "open a pull request, open a pr, open a merge request",
    "enable": "turn on, switch on",
    "disable": "turn off, switch off, shut off",
    "stop": "shut down, power off, power down",
    "start": "kick off, fire up, boot up, power on, power up",
    "run": "carry out",
    "find": "look up, looking up, look for, looking for, track down, hunt for, dig up",
    "show": "bring up, pull up, print out, look at, take a look at, have a look at",
    "what is": "give me, give us, tell me, tell us, let me see, let me know, let us know, what do we know about, give "
    "an overview of",
    "list": "what kind of, what kinds of, what sort of, what sorts of, which kinds of",
    "check": "make sure, find out if, find out whether, see if, see whether",
    "replace": "swap out",
    "rename": "change the name of, change the title of, give a new name to",
    "should be renamed": "should be called, should be named, should be known as",
    "update": "fill in, fill out, bring up to date",
    "restore": "bring back, put back, go back to, roll back, rolling back",
    "backup": "back up, backing up",
    "rollout": "roll out, rolling out",
    "login": "log in to, log into, logged in, sign in, signed in",
    "logout": "log out of, logged out, sign out, signed out",
    "register": "sign up",
    "subscribe": "sign up for",
    "unsubscribe": "opt out",
    "multiple": "at once, in one go, in bulk",
    "get current user myself whoami": "who am i",
    "diagnose": "what is wrong with, what went wrong",
}

# What is meant may stand between: "turn the flag on".
_PARTED = {
    "remove": "take off, take away, take out, kick out, kick from, throw out, throw away, throw from, strip off",
    "enable": "turn on, switch on",
    "disable": "turn off, switch off",
    "stop": "shut down",
    "restore": "bring back, put back, roll back",
    "create": "set up, spin up, stand up",
    "convert": "turn into",
    "rename": "give name",
    "resize": "make bigger, make larger, make smaller",
    "speak": "read aloud, read out",
    "find": "look up, track down",
}


def plain(text: str) -> str:
    """Return a query with the phrases that are known here in plain words."""
    for found in reversed(list(_PHRASE.finditer(text.translate(_LOWER)))):
        text = text[: found.start()] + _WORD_OF[found.group()] + text[found.end() :]
    for found in reversed(list(_PARTED_PHRASE.finditer(text.translate(_LOWER)))):
        verb, _, end = found.groups()
        if word := _PARTED_WORD_OF.get(f"{verb} {end}"):
            text = f"{text[: found.start()]}{word} {text[slice(*found.span(2))].rstrip()}{text[found.end() :]}"
    return text


def _by_phrase(phrases: dict[str, str]) -> dict[str, str]:
    return {phrase: word for word, listed in phrases.items() for phrase in listed.split(", ")}


def _any(words: set[str]) -> str:
    return "|".join(sorted(words, key=lambda word: (-len(word), word)))  # the longest first, or it is never tried


# A search that minds no case takes four times as long. Only ASCII, so that what is found is at the same place.
_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
_WORD_OF = _by_phrase(_PHRASES)
_PARTED_WORD_OF = _by_phrase(_PARTED)
_PHRASE = re.compile(rf"\b(?:{_any(set(_WORD_OF))})\b", re.ASCII)
_PARTED_PHRASE = re.compile(
    rf"\b({_any({phrase.split()[0] for phrase in _PARTED_WORD_OF})}) ((?:[^\s.,;!?]{{1,60}} ){{1,6}}?)"
    rf"({_any({phrase.split()[1] for phrase in _PARTED_WORD_OF})})\b",
    re.ASCII,
)
