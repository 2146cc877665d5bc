"""Text of one server's results, found in the arguments for another."""

from __future__ import annotations

import tracemalloc

from broker.authorization.fingerprints import Fingerprints

TEXT = "the quick brown fox jumps over the lazy dog, twice"


def test_what_two_servers_gave_is_found_for_each_of_them_and_for_a_third():
    fingerprints = Fingerprints()
    fingerprints.add("a", "a.read", TEXT)
    fingerprints.add("b", "b.read", {"text": TEXT})
    sources = {
        server: [copy.source for copy in fingerprints.find(server, {"x": f"see: {TEXT}!"})]
        for server in ("a", "b", "c")
    }
    assert sources == {"a": ["b.read"], "b": ["a.read"], "c": ["a.read"]}


def test_what_a_server_gave_itself_is_no_copy():
    fingerprints = Fingerprints()
    fingerprints.add("a", "a.read", TEXT)
    assert fingerprints.find("a", TEXT) == ()


def test_a_copy_says_where_it_is():
    fingerprints = Fingerprints()
    fingerprints.add("a", "a.read", TEXT)
    [copy] = fingerprints.find("b", {"to": ["x", {"body": f"see: {TEXT}"}]})
    assert (copy.argument, copy.sample) == ("/to/1/body", "thequickbrownfoxjumpsoverthelazydogtwice")


def test_many_values_under_a_long_key_take_no_more_memory_than_they_have():
    fingerprints = Fingerprints()
    fingerprints.add("a", "a.read", TEXT)
    value = {"k" * 20_000: list(range(5_000))}
    tracemalloc.start()
    try:
        fingerprints.add("b", "b.read", value)
        fingerprints.find("c", value)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
