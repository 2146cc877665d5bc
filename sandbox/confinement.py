"""How a worker process gives up what it does not need, before the first script: files, sockets, processes, privileges.

Each part is applied where the kernel has it, and what was applied is reported. On Linux a Landlock domain without
rules and a seccomp filter close the same doors twice; elsewhere resource limits alone are left.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import platform
import struct
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

if sys.platform != "win32":
    import resource

RESERVED_DESCRIPTORS = 3
"""Standard input, output and error stay open on /dev/null, so a limit of as many leaves room for none."""


@dataclass(frozen=True, slots=True)
class Confinement:
    """What holds a worker beside the absence of secrets in it.

    Attributes:
        resource_limits: No new descriptors, no growing files, no core dumps, and (not for root) no processes.
        no_new_privileges: No set-user-id program gives anything.
        seccomp: A filter lets through only the system calls that computing and answering take.
        landlock: Version of the kernel's Landlock that denies all files and TCP; 0 if it is not active.
    """

    resource_limits: bool = False
    no_new_privileges: bool = False
    seccomp: bool = False
    landlock: int = 0

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the parts that are not active."""
        return tuple(field.name for field in dataclasses.fields(self) if not getattr(self, field.name))


def deny_files(readable: Path | None) -> int:
    """Deny this thread, and those it starts, all files but one for reading; return Landlock's version or 0.

    Landlock is about files in folders: one that is in memory alone needs no permission, and is given as None.

    Also sets `no_new_privs`, which Landlock asks for.
    """
    if sys.platform != "linux" or not _deny_new_privileges():
        return 0
    version = _syscall(_LANDLOCK_CREATE, None, 0, _LANDLOCK_VERSION)
    if version < 1:
        return 0
    rules = struct.pack("=QQQ", _fs_rights(version), _TCP if version >= _TCP_SINCE else 0, _scopes(version))
    ruleset = _syscall(_LANDLOCK_CREATE, rules, _ruleset_size(version), 0)
    if ruleset < 0:
        return 0
    with contextlib.ExitStack() as open_files:
        open_files.callback(os.close, ruleset)
        if readable is not None:
            file = os.open(readable, os.O_PATH | os.O_CLOEXEC)
            open_files.callback(os.close, file)
            allowed = struct.pack("=Qi", _READ_FILE, file)
            if _syscall(_LANDLOCK_ADD_RULE, ruleset, _PATH_BENEATH, allowed, 0) < 0:
                return 0
        return version if _syscall(_LANDLOCK_RESTRICT, ruleset, 0) == 0 else 0


def confine(landlock: int) -> Confinement:
    """Apply the rest, to all threads; return what is active, given what `deny_files` returned."""
    limited = _limit_resources()
    no_new_privileges = _deny_new_privileges()
    return Confinement(limited, no_new_privileges, no_new_privileges and _filter_system_calls(), landlock)


def _limit_resources() -> bool:
    if sys.platform != "win32":
        for kind, amount in (
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_FSIZE, 0),
            (resource.RLIMIT_NPROC, 0),
            (resource.RLIMIT_NOFILE, RESERVED_DESCRIPTORS),
        ):
            resource.setrlimit(kind, (amount, amount))
    return sys.platform != "win32"


def _deny_new_privileges() -> bool:
    return sys.platform == "linux" and bool(_libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)


def _filter_system_calls() -> bool:
    names = _MACHINES.get(platform.machine())
    if names is None or sys.platform != "linux":
        return False
    program = filter_program(*names)
    instructions = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(instructions))
    return _syscall(names[2]["seccomp"], _SET_MODE_FILTER, _ALL_THREADS, header) == 0


def filter_program(architecture: int, first_foreign: int | None, numbers: dict[str, int]) -> bytes:
    """Return the filter in the kernel's instructions: a list of what may be called; all else is `EPERM`.

    Memory may not be made executable, and calls in another architecture's numbering end the process.
    """
    guarded = [numbers[name] for name in _NOT_EXECUTABLE]
    allowed = [numbers[name] for name in _ALLOWED]
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_IF_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if first_foreign is not None:
        program += [(_IF_AT_LEAST, 0, 1, first_foreign), (_RETURN, 0, 0, _KILL)]
    for number in guarded:
        program += [
            (_IF_EQUAL, 0, 4, number),
            (_LOAD, 0, 0, _THIRD_ARGUMENT),
            (_IF_ANY_BIT, 0, 1, _PROT_EXEC),
            (_RETURN, 0, 0, _DENY),
            (_RETURN, 0, 0, _ALLOW),
        ]
    for number in allowed:
        program += [(_IF_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ALLOW)]
    return _assemble([*program, (_RETURN, 0, 0, _DENY)])


def _assemble(program: Iterable[tuple[int, int, int, int]]) -> bytes:
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _syscall(number: int, *arguments: int | bytes | None) -> int:
    """Make a system call that libc has no function for."""
    words = [ctypes.c_long(item) if isinstance(item, int) else ctypes.c_char_p(item) for item in arguments]
    return int(_libc().syscall(ctypes.c_long(number), *words))


def _fs_rights(version: int) -> int:
    """All rights on files that a version of Landlock knows."""
    bits = {1: 13, 2: 14, 3: 15, 4: 15}.get(version, 16)
    return (1 << bits) - 1


def _scopes(version: int) -> int:
    return _ABSTRACT_SOCKETS_AND_SIGNALS if version >= _SCOPES_SINCE else 0


def _ruleset_size(version: int) -> int:
    """Return the bytes of the structure as a version of Landlock knows it: an older kernel refuses a longer one."""
    if version >= _SCOPES_SINCE:
        return 24
    return 16 if version >= _TCP_SINCE else 8


_PR_SET_NO_NEW_PRIVS = 38

# linux/landlock.h; the numbers are the same on all architectures.
_LANDLOCK_CREATE, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT = 444, 445, 446
_LANDLOCK_VERSION = 1
_PATH_BENEATH = 1
_READ_FILE = 1 << 2
_TCP, _TCP_SINCE = 0b11, 4
_ABSTRACT_SOCKETS_AND_SIGNALS, _SCOPES_SINCE = 0b11, 6

# linux/filter.h and linux/seccomp.h
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _THIRD_ARGUMENT = 0, 4, 32
_ALLOW, _DENY, _KILL = 0x7FFF0000, 0x00050001, 0x80000000  # deny: EPERM
_SET_MODE_FILTER, _ALL_THREADS = 1, 1
_PROT_EXEC = 4

_NOT_EXECUTABLE = ("mmap", "mprotect")
_ALLOWED = (
    "sendto", "recvfrom", "futex", "clock_gettime", "clock_nanosleep", "munmap", "madvise", "mremap", "brk", "close",
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "sched_yield", "getpid", "gettid", "getrusage",
    "getrandom", "restart_syscall", "set_robust_list", "rseq", "membarrier", "exit", "exit_group",
)  # fmt: skip

_X86_64 = {
    "mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15,
    "sched_yield": 24, "mremap": 25, "madvise": 28, "getpid": 39, "sendto": 44, "recvfrom": 45, "exit": 60, "close": 3,
    "getrusage": 98, "sigaltstack": 131, "gettid": 186, "futex": 202, "restart_syscall": 219, "clock_gettime": 228,
    "clock_nanosleep": 230, "exit_group": 231, "set_robust_list": 273, "seccomp": 317, "getrandom": 318,
    "membarrier": 324, "rseq": 334,
}  # fmt: skip
_AARCH64 = {
    "mmap": 222, "mprotect": 226, "munmap": 215, "brk": 214, "rt_sigaction": 134, "rt_sigprocmask": 135,
    "rt_sigreturn": 139, "sched_yield": 124, "mremap": 216, "madvise": 233, "getpid": 172, "sendto": 206,
    "recvfrom": 207, "exit": 93, "close": 57, "getrusage": 165, "sigaltstack": 132, "gettid": 178, "futex": 98,
    "restart_syscall": 128, "clock_gettime": 113, "clock_nanosleep": 115, "exit_group": 94, "set_robust_list": 99,
    "seccomp": 277, "getrandom": 278, "membarrier": 283, "rseq": 293,
}  # fmt: skip

_MACHINES: dict[str, tuple[int, int | None, dict[str, int]]] = {
    "x86_64": (0xC000003E, 0x40000000, _X86_64),  # from the second number on: x32
    "aarch64": (0xC00000B7, None, _AARCH64),
}
"""Machine to the architecture's name in an audit record, where foreign numbers begin, and its numbers."""
