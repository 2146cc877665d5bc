"""Hostile scripts of further kinds, each with the verdict it must have: what is wrong in one must not become another.

A run ends in time, its output is kept, and the sandbox runs a benign script afterwards.
"""

from __future__ import annotations

import anyio
import pytest

from sandbox import Completed, Limits
from sandbox.limits import MIB
from tests.processes import resident_bytes

from .test_hostile_scripts import told

pytestmark = pytest.mark.anyio

LIMITS = Limits(wall_seconds=20, cpu_seconds=1, memory_bytes=128 * MIB)

KINDS = {
    "bytes by repetition": (
        """
b'x' * (1 << 40)
""",
        "raised OverflowError",
    ),
    "a bytearray that grows": (
        """
a = bytearray(b'x')
while True:
    a += a
""",
        "raised BufferError",
    ),
    "a shift of an integer": (
        """
1 << (1 << 40)
""",
        "raised OverflowError",
    ),
    "join over a repeated list": (
        """
','.join(['x' * 1000] * 10_000_000)
""",
        "raised OverflowError",
    ),
    "a list by repetition": (
        """
[0] * (1 << 31)
""",
        "raised OverflowError",
    ),
    "a dict comprehension": (
        """
{n: str(n) * 100 for n in range(100_000_000)}
""",
        "out of memory",
    ),
    "a deque": (
        """
import collections, itertools
try:
    collections.deque(str(n) * 1000 for n in itertools.count())
except (MemoryError, SystemError):  # CPython forgets to say which, at some sizes of memory
    pass
""",
        "completed",
    ),
    "an array": (
        """
import array
array.array('q', [0]) * (1 << 29)
""",
        "out of memory",
    ),
    "struct of a large count": (
        """
import struct
struct.pack(f'{1 << 30}x')
""",
        "out of memory",
    ),
    "a format width": (
        """
f'{1:>999999999999}'
""",
        "raised ValueError",
    ),
    "a percent width": (
        """
'%999999999d' % 1
""",
        "out of memory",
    ),
    "decimal precision": (
        """
import decimal
decimal.getcontext().prec = decimal.MAX_PREC
decimal.Decimal(1) / 3
""",
        "out of memory",
    ),
    "a zlib bomb": (
        """
import zlib
bomb = zlib.compress(bytes(1 << 24))
zlib.decompress(zlib.compress(zlib.decompress(bomb) * 30))
""",
        "out of memory",
    ),
    "an integer of a long string": (
        """
int('9' * 5000)
""",
        "raised ValueError",
    ),
    "a regular expression": (
        """
import re
re.match(r'(a+)+$', 'a' * 60 + 'b')
""",
        "stopped cpu_seconds",
    ),
    "a C loop over an endless iterator": (
        """
import itertools
sum(itertools.repeat(0))
""",
        "stopped cpu_seconds",
    ),
    "a product": (
        """
import itertools
collected = sum(1 for _ in itertools.product(range(100), repeat=10))
""",
        "stopped cpu_seconds",
    ),
    "a power modulo": (
        """
pow(3, 10 ** 200_000, 10 ** 200_001 + 1)
""",
        "stopped cpu_seconds",
    ),
    "pickle of deep lists": (
        """
import pickle
x = []
for _ in range(200_000):
    x = [x]
pickle.dumps(x)
""",
        "stopped stack",
    ),
    "deepcopy of deep lists": (
        """
import copy
x = []
for _ in range(200_000):
    x = [x]
copy.deepcopy(x)
""",
        "raised RecursionError",
    ),
    "comparison of deep lists": (
        """
a, b = [], []
for _ in range(200_000):
    a, b = [a], [b]
a == b
""",
        "stopped stack",
    ),
    "a deep expression": (
        """
eval('-' * 200_000 + '1')
""",
        "out of memory",
    ),
    "deep parentheses": (
        """
compile('(' * 100_000 + ')' * 100_000, 'x', 'eval')
""",
        "out of memory",
    ),
    "a deep regular expression": (
        """
import re
re.compile('(' * 20_000 + ')' * 20_000)
""",
        "raised RecursionError",
    ),
    "freeing deep lists": (
        """
x = []
for _ in range(1_000_000):
    x = [x]
del x
'freed'
""",
        "stopped stack",
    ),
    "a chain of finalizers": (
        """
class A:
    def __del__(self):
        self.next = A()
a = A()
del a
'over'
""",
        "stopped stack",
    ),
    "endless finalizers": (
        """
class A:
    def __del__(self):
        while True: pass
a = A()
del a
""",
        "stopped cpu_seconds",
    ),
    "an evil str": (
        """
class E(Exception):
    def __str__(self):
        raise KeyboardInterrupt
raise E
""",
        "raised E",
    ),
    "an evil class name": (
        """
raise type('\\x1b[31mE' * 3, (Exception,), {})('x')
""",
        "raised \\x1b[31mE\\x1b[31mE\\x1b[31mE",
    ),
    "nested exception groups": (
        """
e = ValueError('in')
for _ in range(10_000):
    e = ExceptionGroup('g', [e])
raise e
""",
        "raised ExceptionGroup",
    ),
    "a cause that is itself": (
        """
e = ValueError('loop')
e.__cause__ = e
raise e
""",
        "raised ValueError",
    ),
    "a storm of cancelled tasks": (
        """
import asyncio
async def f():
    while True:
        try:
            await asyncio.sleep(1e9)
        except asyncio.CancelledError: pass
tasks = [asyncio.create_task(f()) for _ in range(1000)]
for _ in range(5):
    for t in tasks: t.cancel()
    await asyncio.sleep(0)
'over'
""",
        "completed",
    ),
    "asyncio.run inside": (
        """
import asyncio
async def f(): return 5
def g(): return asyncio.run(f())
g()
""",
        "raised RuntimeError",
    ),
    "stopping the loop": (
        """
import asyncio
asyncio.get_running_loop().stop()
""",
        "raised RuntimeError",
    ),
    "closing the loop": (
        """
import asyncio
asyncio.get_running_loop().close()
await asyncio.sleep(0)
'goes on'
""",
        "completed",
    ),
    "exit in finally": (
        """
try:
    1 / 0
finally:
    exit()
""",
        "completed",
    ),
    "atexit": (
        """
import atexit
atexit.register(lambda: print('late'))
'over'
""",
        "completed",
    ),
    "an excepthook": (
        """
import sys
sys.excepthook = lambda *_: print('hook')
1 / 0
""",
        "raised ZeroDivisionError",
    ),
    "a displayhook": (
        """
import sys
sys.displayhook = lambda *_: print('hook')
5
""",
        "completed",
    ),
    "a trace function": (
        """
import sys
sys.settrace(lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
def f(): return 1
f()
""",
        "raised KeyboardInterrupt",
    ),
    "monitoring": (
        """
import sys
m = sys.monitoring
m.use_tool_id(1, 'x')
def stop(*_): raise SystemExit(3)
m.register_callback(1, m.events.PY_START, stop)
m.set_events(1, m.events.PY_START)
def f(): return 1
f()
""",
        "raised SandboxTrap",
    ),
    "a thread": (
        """
import threading
threading.Thread(target=print).start()
""",
        "raised PermissionError",
    ),
    "a process": (
        """
import multiprocessing
multiprocessing.Process(target=print).start()
""",
        "raised PermissionError",
    ),
    "fork": (
        """
import os
os.fork()
""",
        "raised PermissionError",
    ),
    "a signal": (
        """
import signal
signal.alarm(1)
""",
        "raised AttributeError",
    ),
    "raise_signal": (
        """
import signal
signal.raise_signal(signal.SIGTERM)
'on'
""",
        "raised SandboxTrap",
    ),
    "mmap": (
        """
import mmap
""",
        "raised ModuleNotFoundError",
    ),
    "ctypes": (
        """
import ctypes
""",
        "raised ModuleNotFoundError",
    ),
    "json replaced": (
        """
import json
json.dumps = json.loads = json.JSONEncoder.encode = lambda *_: 'evil'
{'a': [1]}
""",
        "completed",
    ),
    "type of dict replaced": (
        """
import builtins
builtins.dict = builtins.list = builtins.str = builtins.isinstance = None
5
""",
        "completed",
    ),
    "sys.modules emptied": (
        """
import sys
sys.modules.clear()
5
""",
        "completed",
    ),
    "sys.modules emptied, then an error": (
        """
import sys
sys.modules.clear()
1 / 0
""",
        "raised ZeroDivisionError",
    ),
    "warnings as errors": (
        """
import warnings
warnings.simplefilter('error')
async def f(): pass
f()
'over'
""",
        "completed",
    ),
    "a value with an evil repr": (
        """
class A:
    def __repr__(self):
        while True: pass
A()
""",
        "stopped cpu_seconds",
    ),
    "a value with an evil mapping": (
        """
import collections.abc
class M(collections.abc.Mapping):
    def __getitem__(self, k): return self
    def __iter__(self): return iter(['a'])
    def __len__(self): return 1
M()
""",
        "raised ValueError",
    ),
    "an endless list subclass": (
        """
class L(list):
    def __iter__(self):
        while True: yield 1
L([1])
""",
        "stopped cpu_seconds",
    ),
    "a str subclass": (
        """
class S(str):
    def __str__(self): return self.nothing
    isascii = None
S('text')
""",
        "completed",
    ),
    "terminal escapes": (
        """
print('\\x1b]0;title\\x07\\x1b[2J\\x9b31m')
""",
        "completed",
    ),
    "frames up to the bridge": (
        """
import sys
f = sys._getframe()
names = []
while f:
    names.append(f.f_code.co_name); f = f.f_back
names[0]
""",
        "completed",
    ),
    "a generator that ignores its end": (
        """
def g():
    while True:
        try: yield
        except BaseException: pass
x = g(); next(x)
x.close()
""",
        "raised RuntimeError",
    ),
    "an async generator left open": (
        """
async def g():
    try:
        while True: yield 1
    finally: print('closed')
async for _ in g(): break
'over'
""",
        "completed",
    ),
    "raising the recursion limit": (
        """
import sys
sys.setrecursionlimit(10 ** 9)
def f(): f()
f()
""",
        "stopped stack",
    ),
    "recursion through C": (
        """
class A:
    def __getattr__(self, n): return getattr(self, n + 'x')
A().a
""",
        "raised RecursionError",
    ),
    "recursion in str.format": (
        """
class A:
    def __format__(self, s): return f'{self:x}'
f'{A()}'
""",
        "raised RecursionError",
    ),
    "closing stdout": (
        """
import sys
sys.stdout.close()
print('still')
sys.stdout.detach()
""",
        "raised io.UnsupportedOperation",
    ),
    "a print to a stream of one's own": (
        """
import sys
class W:
    def write(self, t): raise SystemExit(9)
sys.stdout = W()
print('x')
""",
        "raised SystemExit",
    ),
    "a weak reference's callback": (
        """
import weakref
class A: pass
def forever(_):
    while True: pass
a = A()
r = weakref.ref(a, forever)
del a
""",
        "stopped cpu_seconds",
    ),
    "the collector's callback": (
        """
import gc
def forever(*_):
    while True: pass
gc.callbacks.append(forever)
gc.collect()
""",
        "stopped cpu_seconds",
    ),
    "a signal's handler": (
        """
import signal
def forever(*_):
    while True: pass
signal.signal(signal.SIGINT, forever)
signal.raise_signal(signal.SIGINT)
""",
        "stopped cpu_seconds",
    ),
    "a search for codecs": (
        """
import codecs
def forever(_):
    while True: pass
codecs.register(forever)
'x'.encode('none')
""",
        "stopped cpu_seconds",
    ),
    "an error handler of codecs that stands still": (
        """
import codecs
codecs.register_error('still', lambda e: ('x', e.start))
'\\ud800'.encode('utf-8', 'still')
""",
        "stopped cpu_seconds",
    ),
    "a hook for what can not be raised": (
        """
import sys
def forever(*_):
    while True: pass
sys.unraisablehook = forever
class A:
    def __del__(self): 1 / 0
a = A()
del a
""",
        "stopped cpu_seconds",
    ),
    "finalizers that raise, thousands": (
        """
class A:
    def __del__(self): raise ValueError('x' * 1000)
for _ in range(5000): A()
""",
        "stopped output_bytes",
    ),
    "a type alias": (
        """
def forever():
    while True: pass
type X = forever()
X.__value__
""",
        "stopped cpu_seconds",
    ),
    "annotations": (
        """
class C:
    x: [bytes(100) for _ in iter(int, 1)]
C.__annotations__
""",
        "out of memory",
    ),
    "a template's value": (
        """
class A:
    def __repr__(self):
        while True: pass
t'{A()}'
""",
        "stopped cpu_seconds",
    ),
    "an audit hook that refuses": (
        """
import sys
def refuse(*_): raise RuntimeError('no')
sys.addaudithook(refuse)
1 / 0
""",
        "raised RuntimeError",
    ),
    "a profile function left behind": (
        """
import sys
def forever(*_):
    while True: pass
sys.setprofile(forever)
'over'
""",
        "stopped cpu_seconds",
    ),
    "an exception that says it is an exit": (
        """
class E(Exception):
    __class__ = SystemExit
    code = 0
raise E
""",
        "raised E",
    ),
    "an exception that tells nothing": (
        """
class E(Exception):
    def __getattribute__(self, name): raise SystemExit(0)
raise E
""",
        "raised E",
    ),
    "notes without end": (
        """
class L(list):
    def __iter__(self):
        while True: yield 'n'
e = ValueError()
e.__notes__ = L('a')
raise e
""",
        "stopped cpu_seconds",
    ),
    "a line of a million characters": (
        f"x = '{'a' * 1_000_000}' + 1 / 0",
        "raised ZeroDivisionError",
    ),
    "a separator of a million characters": (
        """
print(*range(100), sep='x' * 1_000_000)
""",
        "out of memory",
    ),
    "printing nothing for ever": (
        """
import wit_world
while True: wit_world.write(1, '')
""",
        "stopped cpu_seconds",
    ),
    "printing one character at a time": (
        """
import sys
while True: sys.stdout.write('x')
""",
        "stopped cpu_seconds",
    ),
    "a sleep without end": (
        """
import asyncio
await asyncio.sleep(float('inf'))
""",
        "raised RuntimeError",
    ),
    "a timer at no time": (
        """
import asyncio
asyncio.get_running_loop().call_later(float('nan'), print)
""",
        "raised ValueError",
    ),
    "an interpreter of one's own": (
        """
from concurrent import interpreters
""",
        "raised ImportError",
    ),
    "processes of an executor": (
        """
from concurrent.futures import ProcessPoolExecutor
ProcessPoolExecutor()
""",
        "raised PermissionError",
    ),
    "a debugger": (
        """
breakpoint()
""",
        "raised PermissionError",
    ),
    "a segmentation fault": (
        """
import faulthandler
faulthandler._sigsegv()
""",
        "raised SandboxTrap",
    ),
    "the file of standard output": (
        """
import _io
_io.FileIO(1, 'w').write(b'x')
""",
        "raised SandboxTrap",
    ),
    "random bytes without end": (
        """
import posix
while True: posix.urandom(65_536)
""",
        "stopped cpu_seconds",
    ),
    "a group that is in itself": (
        """
class G(ExceptionGroup):
    exceptions = property(lambda self: (self, self))
raise G('x', [ValueError()])
""",
        "raised G",
    ),
    "notes without end in an exception": (
        """
e = ValueError('x')
e.__notes__ = type('Notes', (list,), {'__iter__': lambda _: iter(int, 1)})()
raise e
""",
        "stopped cpu_seconds",
    ),
    "a finalizer that is called at the end": (
        """
import weakref
def forever():
    while True:
        pass
class A: ...
a = A()
weakref.finalize(a, forever)
del a
""",
        "stopped cpu_seconds",
    ),
    "suggestions for a name without end": (
        """
class A:
    def __dir__(self):
        while True:
            pass
A().name
""",
        "stopped cpu_seconds",
    ),
    "digits without a limit": (
        """
import sys
sys.set_int_max_str_digits(0)
len(str(7 ** 10 ** 7))
""",
        "stopped cpu_seconds",
    ),
    "a module name that compares for ever": (
        """
class M:
    def __eq__(self, other):
        while True:
            pass
    __hash__ = None
class E(Exception): ...
E.__module__ = M()
raise E
""",
        "stopped cpu_seconds",
    ),
    "an error that is said to be of a line far away": (
        """
raise SyntaxError('x', ('script.py', 10 ** 9, 10 ** 9, 'text' * 100_000, 5, 5))
""",
        "raised SyntaxError",
    ),
    "a representation of sixteen megabytes": (
        """
class A:
    def __repr__(self):
        return 'x' * (16 << 20)
A()
""",
        "stopped value_bytes",
    ),
    "an enum whose value is itself": (
        """
import enum
class E(enum.Enum):
    A = 1
E.A._value_ = E.A
E.A
""",
        "raised RecursionError",
    ),
    "builtins emptied": (
        """
import builtins
builtins.__dict__.clear()
""",
        "raised SandboxTrap",
    ),
    "tasks that make two more each": (
        """
import asyncio
async def twice():
    held = bytearray(100_000)  # memory ends first, on a slow machine too
    async with asyncio.TaskGroup() as group:
        group.create_task(twice())
        group.create_task(twice())
await twice()
""",
        "out of memory",
    ),
    "SQL that matches without end": (
        """
import sqlite3
sqlite3.connect(':memory:').execute('select ? like ?', ('a' * 49_000, '%a' * 24_000 + 'b')).fetchone()
""",
        "stopped stack",
    ),
    "SQL that calls the script that runs it": (
        """
import sqlite3
c = sqlite3.connect(':memory:')
def f(x): return c.execute('select f(?)', (x,)).fetchone()
c.create_function('f', 1, f)
f(1)
""",
        "raised sqlite3.OperationalError",
    ),
    "a stream that is written to far behind its end": (
        """
import io
b = io.BytesIO()
b.seek(1 << 30)
b.write(b'x')
""",
        "out of memory",
    ),
    "a replacement that multiplies": (
        """
('a' * 1_000_000).replace('a', 'b' * 100_000)
""",
        "raised OverflowError",
    ),
    "marshalled data that says it is long": (
        """
import marshal
marshal.loads(b'(\\xff\\xff\\xff\\x7fN')
""",
        "out of memory",
    ),
    "pickled data that says it is long": (
        """
import pickle
pickle.loads(b'\\x80\\x04\\x8e' + b'\\xff' * 7 + b'\\x7fx.')
""",
        "raised OverflowError",
    ),
    "JSON of a cycle, unchecked": (
        """
import json
a = []
a.append(a)
json.dumps(a, check_circular=False)
""",
        "stopped stack",
    ),
    "JSON whose default is never JSON": (
        """
import json
json.dumps(object(), default=lambda _: object())
""",
        "stopped stack",
    ),
    "an object that is its own call": (
        """
class A: ...
A.__call__ = A()
A()()
""",
        "stopped stack",
    ),
    "a hook for the unraisable that makes more of it": (
        """
import sys
class A:
    def __del__(self): 1 / 0
sys.unraisablehook = lambda _: A()
A()
'over'
""",
        "stopped stack",
    ),
    "an audit hook that causes what it audits": (
        """
import sys
sys.addaudithook(lambda *_: compile('1', 'x', 'eval'))
compile('1', 'x', 'eval')
""",
        "raised RuntimeError",
    ),
    "a hook for asynchronous generators": (
        """
import sys
def leave(_): raise SystemExit(3)
sys.set_asyncgen_hooks(firstiter=leave)
async def g(): yield 1
async for _ in g(): pass
""",
        "raised SystemExit",
    ),
    "a task that begins another as it is cancelled": (
        """
import asyncio
async def f():
    try: await asyncio.sleep(1e6)
    finally: asyncio.create_task(f())
asyncio.create_task(f())
await asyncio.sleep(0)
""",
        "completed",
    ),
    "something else than a future to wait for": (
        """
import asyncio
class Future:
    _asyncio_future_blocking = True
    def add_done_callback(self, *_, **__): pass
    def get_loop(self): return asyncio.get_running_loop()
class A:
    def __await__(self): yield Future()
await A()
""",
        "raised RuntimeError",
    ),
    "an exit thrown into the script by itself": (
        """
import asyncio
asyncio.get_running_loop().call_soon(asyncio.current_task().get_coro().throw, SystemExit(5))
await asyncio.sleep(1)
""",
        "raised SystemExit",
    ),
    "an event loop without its parts": (
        """
import asyncio
loop = asyncio.get_running_loop()
for name in list(vars(loop)): setattr(loop, name, None)
await asyncio.sleep(1)
""",
        "raised TypeError",
    ),
    "a clock that tells no time": (
        """
import asyncio
type(asyncio.get_running_loop()).time = lambda _: float('nan')
await asyncio.sleep(1)
""",
        "raised ValueError",
    ),
    "a run inside of the run": (
        """
import json, sys
message = {'script': '1', 'filename': 'x', 'seed': 1, 'manifest': {}, 'kernel': False}
sys.modules['guest.main'].WitWorld().start(json.dumps(message))
""",
        "completed",
    ),
    "a step that is nothing": (
        """
import asyncio, sys
main = sys.modules['guest.main']
main._run = None
await asyncio.sleep(0.01)
""",
        "raised RuntimeError",
    ),
    "our functions with other code": (
        """
import gc, types
for one in gc.get_objects():
    if isinstance(one, types.FunctionType) and one.__module__.startswith('guest'):
        one.__code__ = (lambda *_, **__: None).__code__
""",
        "completed",
    ),
    "every list emptied": (
        """
import gc
for one in gc.get_objects():
    if type(one) is list: one.clear()
""",
        "completed",
    ),
    "every function of the bridge to the host": (
        """
import componentize_py_runtime as runtime
for name in dir(runtime):
    for arguments in ((), (0,), (0, []), (99_999, []), (-1, [])):
        try: getattr(runtime, name)(*arguments)
        except Exception: pass
""",
        "raised SandboxTrap",
    ),
    "text written to what is no stream": (
        """
import wit_world
wit_world.write(99, 'x')
wit_world.write('1', b'x')
""",
        "raised SandboxTrap",
    ),
    "code that names another file": (
        """
exec(compile('1/0', '/etc/passwd', 'exec'))
""",
        "raised ZeroDivisionError",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_script_of_this_kind_ends_as_pinned_and_harms_nobody(kind, sandbox):
    script, verdict = KINDS[kind]
    await sandbox.run("1")
    resident = resident_bytes()
    with anyio.fail_after(60):
        result = await sandbox.run(f"print('before')\n{script}", limits=LIMITS, seed=1)
        after = await sandbox.run("1 + 1")
    assert told(result.outcome) == verdict, result.outcome
    assert result.stdout.startswith("before\n")
    assert "\x1b" not in f"{result.outcome!r}{result.stdout}{result.stderr}"
    assert after.outcome == Completed(2)
    assert resident_bytes() - resident < 64 * MIB
