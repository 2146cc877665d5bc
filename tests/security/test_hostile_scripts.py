"""Every script of the corpus ends exactly as the table says, and leaves no trace.

The oracle holds for each, whatever its verdict: nothing it shows contains `PWNED:` or the canary; the servers received
what was granted and nothing else; the host's memory, threads and descriptors are what they were before; the next run
succeeds.
"""

from __future__ import annotations

import gc
import os
import secrets
import threading
from pathlib import Path

import anyio
import pytest

from sandbox import Completed, Limits, Raised, Stopped
from sandbox.limits import MIB
from tests.processes import resident_bytes

from .corpus import GRANTED, MANIFEST, Broker, read_corpus

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("heap_of_its_own")]

CORPUS = read_corpus()
ROOM = Limits(wall_seconds=120, cpu_seconds=120, memory_bytes=96 * MIB)
"""For scripts that end by themselves or at another limit, however busy the machine is."""

BRIEF = Limits(wall_seconds=1, cpu_seconds=120, memory_bytes=96 * MIB)
"""For scripts that would never end."""

DONE = ("ok-contained", "completed", ROOM)
DENIED = ("denied", "completed", ROOM)
MEMORY = ("memory", "out of memory", ROOM)
STACK = ("error", "stopped stack", ROOM)
FOREVER = ("timeout", "stopped wall_seconds", BRIEF)
FLOOD = ("truncated", "stopped output_bytes", ROOM)


def error(kind: str) -> tuple[str, str, Limits]:
    return "error", f"raised {kind}", ROOM


# name: (verdict of the corpus, the exact end of the run, the limits it ran with)
TABLE: dict[str, tuple[str, str, Limits]] = {
    "br_001_unknown_tool": DENIED,
    "br_003_homoglyph": DENIED,
    "br_005_raw_forged_identity": DENIED,
    "br_007_raw_tight_loop": ("denied", "stopped calls", ROOM),
    "br_009_find_bridge": ("denied", "raised SandboxTrap", ROOM),
    "br_011_after_end_task": DONE,
    "br_013_args_types": error("TypeError"),
    "br_015_tool_output_eval": DONE,
    "br_017_exfil_encoded": DENIED,
    "br_019_isError_spoof": DONE,
    "conc_001_gather_100k": ("denied", "stopped calls", Limits(wall_seconds=120, cpu_seconds=120)),
    "conc_003_cancel_storm": DONE,
    "conc_005_suppress_cancel": FOREVER,
    "conc_007_slow_tools": FOREVER,
    "conc_009_thread_calls": error("PermissionError"),
    "cpu_001_while_true": FOREVER,
    "cpu_003_finally_restart": FOREVER,
    "cpu_005_int_to_str": FOREVER,
    "cpu_007_regex_backtrack": FOREVER,
    # The corpus expects a timeout; here the nested sorts meet the end of the C stack first.
    "cpu_009_evil_lt_sort": error("RecursionError"),
    "cpu_011_str_format_width": MEMORY,
    "cpu_013_float_format": MEMORY,
    "cpu_015_deque_maxlen": FOREVER,
    "cpu_017_str_replace_quadratic": FOREVER,
    "cpu_019_pbkdf2": error("AttributeError"),
    "cpu_021_fractions": FOREVER,
    "cpu_023_settrace_loop": FOREVER,
    "cpu_025_json_number": error("ValueError"),
    "cpu_027_sched_gc": FOREVER,
    "crash_001_codetype_garbage": error("SandboxTrap"),
    "crash_003_marshal_fuzz": error("SandboxTrap"),
    "crash_005_dict_mutation_eq": DONE,
    "crash_007_underlying_type_dict": error("AttributeError"),
    "crash_009_structseq_new": DONE,
    "cred_001_globals": DONE,
    "cred_003_schema_leak": DONE,
    "esc_001_open_files": DENIED,
    "esc_003_write_files": DENIED,
    "esc_005_os_system": DENIED,
    "esc_007_env": DONE,
    "esc_009_frame_walk": DONE,
    "esc_011_gc_objects": DONE,
    "esc_013_wasi_paths": DENIED,
    "esc_015_threads": error("PermissionError"),
    "esc_017_js_pyodide": DENIED,
    "esc_019_format_attr": DONE,
    "esc_021_audit_hook": DONE,
    "esc_023_entropy": DONE,
    "esc_025_stdin": DONE,
    "exc_001_giant_message": MEMORY,
    "exc_003_group_bomb": error("ExceptionGroup"),
    "exc_005_evil_str_exit": error("E"),
    "exc_007_keyboardinterrupt": error("KeyboardInterrupt"),
    "exc_009_generatorexit": error("B"),
    "exc_011_syntaxerror_payload": error("SyntaxError"),
    "exc_013_bad_encoding_cookie": error("SyntaxError"),
    "exc_015_nested_exception_context": error("ValueError"),
    "imp_001_missing_ext": error("ModuleNotFoundError"),
    "imp_003_shadow_stubs": DONE,
    "mem_001_list_append": MEMORY,
    "mem_003_swallow_memoryerror": FOREVER,
    "mem_005_set_str_intern": MEMORY,
    "mem_007_nested_json": STACK,
    "mem_009_class_storm": MEMORY,
    "mem_011_traceback_ref": MEMORY,
    "mem_013_string_multiply_eval": MEMORY,
    "mem_015_recursion_list_repr": STACK,
    "out_001_stdout_flood": FLOOD,
    "out_003_stderr_flood": FLOOD,
    "out_005_bad_utf8": DONE,
    "out_007_nul": DONE,
    "out_009_flush_raises": DONE,
    "out_011_prompt_injection": DONE,
    "parse_001_huge_source": MEMORY,
    "parse_003_tabs_formfeed": error("SyntaxError"),
    "parse_005_wrapper_escape": DONE,
    "parse_007_unclosed_string_wrapper": error("SyntaxError"),
    "rec_001_plain": error("RecursionError"),
    "rec_003_setrecursionlimit_c": STACK,
    "rec_005_parser_unary": STACK,
    "rec_007_literal_eval": MEMORY,
    "rec_009_deepcopy": STACK,
    "rec_011_itertools_chain": ("memory", "out of memory", ROOM),
    "rec_013_re_nested": STACK,
    "rec_015_yield_from": ("memory", "out of memory", ROOM),
    "rec_017_fstring_nest": MEMORY,
    "res_001_huge_string": MEMORY,
    "res_003_circular": error("ValueError"),
    "res_005_huge_int": DONE,
    "res_007_evil_repr_loop": FOREVER,
    "res_009_class_spoof": error("AttributeError"),
    "res_011_deep_nested": error("RecursionError"),
    "res_013_dup_and_odd_keys": DONE,
    "st_001_pollute": error("TypeError"),
    "st_001_probe": DONE,
    "st_003_hook_bridge": DONE,
    "st_003_probe": DONE,
    "st_005_memory_residue": DONE,
    "st_005_probe": DONE,
    "tm_001_time_sleep": FOREVER,
    "tm_003_sleep_chunks": FOREVER,
    "tm_005_lock_deadlock": error("RuntimeError"),
    # The corpus wants to see what happens at the deadline, so the number of calls must not end it before.
    "tm_007_preemption_at_boundary": (
        "timeout",
        "stopped wall_seconds",
        Limits(wall_seconds=1, calls=1_000_000, steps=1_000_000),
    ),
    "uni_001_identifiers": DONE,
    "uni_003_tool_args_unicode": DONE,
}

DEVIATIONS = {"cpu_009_evil_lt_sort"}
"""Scripts whose verdict is none that the corpus foresaw; each is explained in the table."""


def test_the_table_has_each_script_once():
    assert list(TABLE) == list(CORPUS)


def test_every_pinned_verdict_is_one_that_the_corpus_accepts():
    wrong = {name for name, script in CORPUS.items() if TABLE[name][0] not in script.accepted}
    assert wrong == DEVIATIONS


def told(outcome) -> str:
    match outcome:
        case Completed():
            return "completed"
        case Raised("MemoryError") | Stopped("memory_bytes"):
            # Which of the two depends on how much room an image's layout leaves for telling.
            return "out of memory"
        case Raised(kind):
            return f"raised {kind}"
        case Stopped(limit):
            return f"stopped {limit}"
    raise AssertionError(outcome)


POOLED = ("wasm-", "Trio thread", "AnyIO worker thread")


def host_state() -> tuple[int, list[str], list[str]]:
    """Child processes, open descriptors and threads, but for those of pools, which come and go by themselves."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    threads = [thread.name for thread in threading.enumerate() if not thread.name.startswith(POOLED)]
    return len(children), sorted(path.name for path in Path("/proc/self/fd").iterdir()), sorted(threads)


@pytest.fixture(scope="module", autouse=True)
def canary():
    """A value that must not be seen in a run: in the host's environment, on its stack, behind a refused tool.

    It is there before the sandbox, and so before the processes that the sandbox starts.
    """
    value = f"hostile-canary-{secrets.token_hex(16)}"
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("HOSTILE_CANARY", value)
        yield value


@pytest.mark.parametrize("name", CORPUS)
async def test_a_hostile_script_ends_as_pinned_and_leaves_no_trace(name, sandbox, canary):
    _, expected, limits = TABLE[name]
    broker = Broker(canary)
    await benign(sandbox, canary)
    gc.collect()  # what earlier tests left is not of this one
    before, resident = host_state(), resident_bytes()
    pieces: list[str] = []
    with anyio.fail_after(limits.wall_seconds + 60):
        result = await sandbox.run(
            CORPUS[name].code,
            answer=broker.answer,
            manifest=MANIFEST,
            limits=limits,
            seed=1,
            on_output=lambda _output, text: pieces.append(text),
        )
    gc.collect()
    assert told(result.outcome) == expected, result.outcome
    shown = f"{result.outcome!r}{result.stdout}{result.stderr}{''.join(pieces)}"
    assert "PWNED:" not in shown
    assert canary not in shown
    assert broker.received == [function for function, is_allowed in broker.audit if is_allowed]
    assert {function.partition(".")[0] for function in broker.received} <= GRANTED
    assert len(broker.audit) <= limits.calls
    assert len(result.stdout.encode()) + len(result.stderr.encode()) <= 4 * limits.output_bytes
    assert len(shown) < 8 * MIB
    assert resident_bytes() - resident < 64 * MIB
    assert host_state() == before
    await benign(sandbox, canary)


@pytest.mark.parametrize("pair", ["st_001_pollute", "st_003_hook_bridge", "st_005_memory_residue"])
async def test_what_a_run_leaves_behind_is_not_found_by_the_next(pair, sandbox, canary):
    probe = CORPUS[f"{pair[:6]}_probe"]
    await sandbox.run(CORPUS[pair].code, answer=Broker(canary).answer, manifest=MANIFEST, limits=ROOM)
    result = await sandbox.run(probe.code, answer=Broker(canary).answer, manifest=MANIFEST, limits=ROOM)
    assert result.stdout == "SAFE:clean\n"


async def test_hostile_scripts_beside_each_other_do_not_disturb_a_benign_one(sandbox, canary):
    names = ["cpu_001_while_true", "mem_001_list_append", "rec_003_setrecursionlimit_c", "out_001_stdout_flood"]
    ends: dict[str, str] = {}

    async def hostile(name: str) -> None:
        _, _, limits = TABLE[name]
        ends[name] = told((await sandbox.run(CORPUS[name].code, limits=limits)).outcome)

    with anyio.fail_after(300):
        async with anyio.create_task_group() as tasks:
            for name in names:
                tasks.start_soon(hostile, name)
            for _ in range(5):
                await benign(sandbox, canary)
    assert ends == {name: TABLE[name][1] for name in names}


async def test_a_granted_server_does_what_the_same_script_is_refused_elsewhere(sandbox, canary):
    script = "import tools\nprint(await tools.notes.read())\nawait tools.vault.read_secret()"
    broker = Broker(canary)
    result = await sandbox.run(script, answer=broker.answer, manifest=MANIFEST)
    assert result.stdout == "remember the milk\n"
    assert isinstance(result.outcome, Raised)
    assert (result.outcome.type, result.outcome.message) == ("ToolRefusedError", "the call was refused")
    assert broker.audit == [("notes.read", True), ("vault.read_secret", False)]


async def benign(sandbox, canary) -> None:
    with anyio.fail_after(60):
        result = await sandbox.run(
            "import tools\nawait tools.good.add(a=2, b=3)", answer=Broker(canary).answer, manifest=MANIFEST
        )
    assert result.outcome == Completed(5)
