"""A system that gives little: address space, open files, threads. The limit is named, and nothing is left behind."""

from __future__ import annotations

import errno
import resource
import sys
from functools import partial

import pytest

from broker.cli.start import _report
from broker.shortage import shortage

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits as Linux has them")


@pytest.fixture
def limited(codemode):
    """Runs `codemode` under a limit of the system."""

    def run(limit, amount, *arguments):
        first = partial(resource.setrlimit, limit, (amount, amount))
        return codemode("run", "-", *arguments, stdin="print('ran')", first=first)

    return run


@pytest.mark.parametrize("isolation", ["process", "thread"])
def test_too_little_address_space_is_told_as_that(limited, isolation):
    finished = limited(resource.RLIMIT_AS, 1024**3, "--isolation", isolation)
    assert (finished.returncode, finished.stdout) == (2, "")
    assert "scripts need more address space than this process may have: 1024 MiB" in finished.stderr
    assert "`ulimit -v unlimited`" in finished.stderr
    assert "child processes" not in finished.stderr


def test_a_worker_for_which_there_is_no_address_space_is_told_with_the_limit(limited):
    finished = limited(resource.RLIMIT_AS, 0x1_0400_0000)
    assert (finished.returncode, finished.stdout) == (2, "")
    assert "raise the limits of this process, which are 4160 MiB of address space (ulimit -v)" in finished.stderr
    assert "--isolation thread" not in finished.stderr


def test_servers_for_which_there_are_too_few_open_files_are_told_with_the_limit_and_leave_enough_for_the_run(
    limited, write_config, odd
):
    config = write_config({f"odd{number}": odd for number in range(30)})
    finished = limited(resource.RLIMIT_NOFILE, 64, "--config", config)
    assert "the system gives it no more open files, so it was not started. Raise the limits: 64 open" in finished.stderr
    assert (finished.returncode, finished.stdout) == (0, "ran\n")


@pytest.mark.parametrize("command", [("show", "last"), ("run", "-"), ("tools", "list"), ("doctor",), ("serve",)])
@pytest.mark.parametrize(
    ("limit", "amount", "said"),
    [
        ("RLIMIT_AS", 200_000 * 1024, "512 MiB of address space, and this process may have 195\n"),
        ("RLIMIT_NOFILE", 8, "64 files at once, and this process may open 8\n"),
    ],
)
def test_what_is_too_little_for_any_command_is_named(codemode, command, limit, amount, said):
    number = getattr(resource, limit)
    finished = codemode(*command, first=lambda: resource.setrlimit(number, (amount, amount)))
    assert (finished.returncode, finished.stdout) == (2, "")
    assert said in finished.stderr
    assert "Call `ulimit -" in finished.stderr
    assert len(finished.stderr.splitlines()) == 2


def test_doctor_says_that_no_interpreter_fits_before_it_compiles_one(codemode):
    amount = 1024**3
    finished = codemode("doctor", first=lambda: resource.setrlimit(resource.RLIMIT_AS, (amount, amount)))
    assert "wrong  image: scripts need more address space than this process may have: 1024 MiB" in finished.stdout


def test_of_several_faults_the_one_of_the_system_is_told(capsys):
    error = ExceptionGroup("", [ValueError("x"), ExceptionGroup("", [OSError(errno.EMFILE, "Too many")])])
    assert _report(error, None) == 70
    assert "the system gives codemode no more open files" in capsys.readouterr().err


def test_with_room_enough_the_script_runs(limited):
    assert limited(resource.RLIMIT_AS, 16 * 1024**3).stdout == "ran\n"


@pytest.mark.parametrize(
    ("error", "missing"),
    [
        (RuntimeError("can't start new thread"), "threads"),
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), "processes or threads"),
        (OSError(errno.EMFILE, "Too many open files"), "open files"),
        (MemoryError(), "memory"),
    ],
)
def test_what_the_system_has_not_given_is_told_from_a_fault_of_ours(error, missing, capsys):
    assert shortage(error) == missing
    assert _report(ExceptionGroup("", [error]), None) == 70
    said = capsys.readouterr().err
    assert said.startswith(f"error: the system gives codemode no more {missing}: ")
    assert "Raise the limits: " in said


@pytest.mark.parametrize("error", [RuntimeError("something"), OSError(errno.EPERM, "no"), ValueError("x")])
def test_a_fault_of_ours_is_still_told_as_one(error, capsys):
    assert shortage(error) == ""
    assert _report(error, None) == 70
    assert "This is a fault of codemode" in capsys.readouterr().err
