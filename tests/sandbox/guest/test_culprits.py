"""What an error leaves out is told beside it: the keys that there are, how long a list is, what was None."""

from __future__ import annotations

import pytest

from sandbox import Returned

pytestmark = pytest.mark.anyio

HELD = """
issue = {"number": 1, "title": "A", "user": None, "labels": []}
page = {"issues": [issue], "next": None}
text = "ab"
"""
KEYS = "has the keys 'number', 'title', 'user', 'labels'"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("issue['name']", f"`issue` {KEYS}"),
        ("page['issues'][0]['name']", f"""`page['issues'][0]` {KEYS}"""),
        ("page.get('issues')[0]['name']", f"""`page.get('issues')[0]` {KEYS}"""),
        ("issue.pop('name')", f"`issue` {KEYS}"),
        ("del issue['name']", f"`issue` {KEYS}"),
        ("for one in page['issues']:\n    print(one['name'])", f"`one` {KEYS}"),
        ("[one['name'] for one in page['issues']]", f"`one` {KEYS}"),
        ("pages = [page]\n[one['name'] for many in pages for one in many['issues']]", f"`one` {KEYS}"),
        ("{one['name']: one for one in page['issues'] if one}", f"`one` {KEYS}"),
        ("sum(one['name'] for one in page['issues'])", f"`one` {KEYS}"),
        ("sorted(page['issues'], key=lambda one: one['name'])", f"`one` {KEYS}"),
        ("def f(inner):\n    return [one['name'] for one in inner]\nf(page['issues'])", f"`one` {KEYS}"),
        ("async def f(inner):\n    return inner['name']\nawait f(issue)", f"`inner` {KEYS}"),
        ("class C:\n    def __init__(self): self.held = issue\nC().held['name']", ""),
        ("class C:\n    def __init__(self): self.held = issue\nc = C()\nc.held['name']", f"`c.held` {KEYS}"),
        ("class C:\n    held = property(lambda self: {})\nc = C()\nc.held['name']", ""),
        ("import types\nc = types.SimpleNamespace(a=[issue])\n[i['name'] for i in c.a]", f"`i` {KEYS}"),
        ("(5).a['name']", ""),
        ("{'a': 1}['b']", ""),
        ("x = {'a': 1}\nx['b']", "`x` has the key 'a'"),
        ("x = {}\nx['b']", "`x` is an empty dict"),
        ("x = {1: 'a', None: 'b', 'c': 0}\nx['b']", "`x` has the keys 1, 'c' and 1 more"),
        ("one = {'a': 1}\n[one['name'] for one in list(page['issues'])]", ""),
        ("issue['labels'][0]", "`issue['labels']` is empty"),
        ("page['issues'][1]", f"`page['issues']` has 1 element, the first with the{KEYS.removeprefix('has the')}"),
        ("rows = [[1, 2, 3, 4], [1, 2]]\n[row[3] for row in rows]", "`row` has 2 elements"),
        ("page['issues']['name']", f"`page['issues']` has 1 element, the first with the{KEYS.removeprefix('has the')}"),
        ("issue.name", f"`issue` {KEYS}"),
        ("page['issues'].name", f"`page['issues']` has 1 element, the first with the{KEYS.removeprefix('has the')}"),
        ("issue['user']['name']", "`issue['user']` is None"),
        ("issue.get('owner').get('name')", "`issue.get('owner')` is None"),
        ("issue['user']['name'] = 1", "`issue['user']` is None"),
        ("for one in page['next']:\n    pass", "`page['next']` is None"),
        ("[one for one in issue.get('all')]", "`issue.get('all')` is None"),
        ("sorted(issue['user'])", ""),
        ("for one in issue:\n    one['name']", f"`issue` {KEYS}: a loop over it gives these"),
        ("[one.get('name') for one in issue]", f"`issue` {KEYS}: a loop over it gives these"),
        ("for one in text:\n    one['name']", "`text` is text: a loop over it gives its characters"),
        ("text['name']", ""),
        ("raise KeyError('name')", ""),
        ("raise KeyError", ""),
        ("raise issue.AttributeError if 0 else AttributeError('a')", ""),
        ("import os\nos.environ['HOME']", "a script has no environment: servers have their own credentials"),
    ],
)
async def test_what_an_error_leaves_out_is_told(raised, script, said):
    told = await raised(HELD + script)
    before, _, note = told.message.partition("\n")
    assert note.startswith(said) if said else not note
    assert told.traceback.endswith(f"{before}\n{note}\n" if note else f"{before}\n".removeprefix("\n"))


ISSUES = Returned({"issues": [{"number": 1}], "next": None})


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("(await good.echo(text='a'))['items']", "`await good.echo(text='a')` has the keys 'issues', 'next'"),
        (
            "(await good.echo(\n    text='a'\n))['issues']['a']",
            "the list has 1 element, the first with the key 'number'",
        ),
        ("from tools.good import echo\n(await echo(text='a')).get('issues')[1]", "has 1 element"),
        ("for one in (await good.echo(text='a'))['issues']:\n    one['a']", "`one` has the key 'number'"),
        ("sum((await good.echo(text='a'))['x'] for _ in 'a')", ""),
        ("f = good.echo\n(await f(text='a'))['x']", ""),
        ("async def echo():\n    await good.echo(text='a')\n    return {}\n(await echo())['x']", ""),
    ],
)
async def test_what_a_call_has_returned_is_told_though_no_variable_holds_it(raised, script, said):
    async def answer(_call):
        return ISSUES

    note = (await raised(f"from tools import good\n{script}", answer=answer)).message.partition("\n")[2]
    assert said in note if said else not note


async def test_a_large_answer_is_not_kept_for_it(raised):
    async def answer(_call):
        return Returned({"text": "x" * 50_000})

    script = "from tools import good\n(await good.echo(text='a'))['x']"
    assert (await raised(script, answer=answer)).message == "'x'"


async def test_it_is_told_of_the_exceptions_in_a_group_and_once_of_those_that_are_alike(raised):
    begin = "import asyncio\nasync def f(n):\n    return {'a': n}[n] if n == 9 else row[n]\nrow = {'a': 1}\n"
    tasks = "async with asyncio.TaskGroup() as tasks:\n    for n in 'xxxxx':\n        tasks.create_task(f(n))"
    told = (await raised(f"{begin}{tasks}")).traceback
    assert told.count("`row` has the key 'a'") == 1
    assert told.count("KeyError: 'x'") == 1
    assert "[and 4 more like this one]" in told
    assert "(5 sub-exceptions)" in told


@pytest.mark.parametrize(
    ("held", "most"),
    [
        ("{f'key_{n}': n for n in range(100_000)}", 400),
        ("{'k' * 1_000_000 + str(n): n for n in range(20)}", 1_000),
        ("{10 ** 4_000 + n: n for n in range(20)}", 1_000),
    ],
)
async def test_of_many_or_long_keys_few_are_told(raised, held, most):
    told = await raised(f"held = {held}\nheld['key_777_']")
    note = told.message.partition("\n")[2]
    assert note.startswith("`held` has the keys ")
    assert " more" in note
    assert len(note) < most


async def test_the_key_most_like_the_one_that_is_missing_comes_first(raised):
    told = await raised("held = {f'key_{n}': n for n in range(500)}\nheld['kye_250']")
    assert "`held` has the keys 'key_250', " in told.message


@pytest.mark.parametrize(
    "script",
    [
        "class D(dict):\n    def __contains__(self, key): print('ran')\n    __iter__ = __contains__\nd = D()\nd['a']",
        "class K(str):\n    def __hash__(self): return print('ran') or 1\nd = {'a': 1}\nd[K('b')]",
    ],
)
async def test_nothing_of_the_script_is_run_for_it(run, script):
    result = await run(script)
    assert result.outcome.type == "KeyError"
    assert "has the key" not in result.outcome.message
    assert result.stdout.count("ran") <= 1


async def test_a_script_too_long_to_be_read_again_is_told_as_it_is(raised):
    assert (await raised(f"x = {{'a': 1}}\n# {'-' * 50_000}\nx['b']")).message == "'b'"
