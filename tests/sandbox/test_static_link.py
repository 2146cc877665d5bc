"""A component whose libraries were linked does what it did before, with one module instead of them."""

from __future__ import annotations

import pytest
import wasmtime
from wasmtime import component as wasm

from sandbox.image_loading import COMPONENT
from sandbox.static_link import binary
from sandbox.static_link.__main__ import link
from sandbox.static_link.binary import Reader
from sandbox.static_link.code import UnknownCodeError, uses
from sandbox.static_link.component import CORE_MODULE, INSTANCE, read_component, write_component
from sandbox.static_link.module import UnsupportedModuleError, read_module

COMPONENT_TEXT = """
(component
  (core module $base
    (type $number (func (param i32) (result i32)))
    (table (export "__indirect_function_table") 16 funcref)
    (memory (export "memory") 1)
    (global (export "base_of_one") i32 (i32.const 64))
    (global (export "table_of_one") i32 (i32.const 2))
    (global (export "table_of_two") i32 (i32.const 4))
    (global (export "known_address") (mut i32) (i32.const 68))
    (global (export "count") (mut i32) (i32.const 100))
    (func (export "double") (param i32) (result i32) local.get 0 i32.const 4 call_indirect (type $number))
    (data (i32.const 64) "\\03\\00\\00\\00\\05\\00\\00\\00"))
  (core module $one
    (type $unused (func (param f64)))
    (type $number (func (param i32) (result i32)))
    (import "env" "memory" (memory 1))
    (import "env" "__indirect_function_table" (table 2 funcref))
    (import "env" "__memory_base" (global $base i32))
    (import "env" "__table_base" (global $table i32))
    (import "env" "count" (global $count (mut i32)))
    (import "GOT.mem" "address" (global $address (mut i32)))
    (import "env" "double" (func $double (param i32) (result i32)))
    (global $second i32 (i32.add (global.get $table) (i32.const 1)))
    (func $never (export "never") (result i32) i32.const 1)
    (func $add_three (param i32) (result i32) global.get $base i32.load local.get 0 i32.add)
    (func $add_five (param i32) (result i32) global.get $address i32.load local.get 0 i32.add)
    (func (export "one") (param i32) (result i32)
      global.get $count i32.const 1 i32.add global.set $count
      (block (param) (br_table 0 0 (i32.const 1)))
      local.get 0
      (call_indirect (type $number) (global.get $table))
      (call_indirect (type $number) (global.get $second))
      call $double
      global.get $count
      i32.add)
    (elem (global.get $table) func $add_three $add_five))
  (core module $two
    (import "env" "memory" (memory 1))
    (import "env" "__indirect_function_table" (table 4 funcref))
    (import "env" "__table_base" (global $table i32))
    (import "one" "one" (func $one (param i32) (result i32)))
    (func $double (param i32) (result i32) local.get 0 i32.const 2 i32.mul)
    (func (export "run") (param i32) (result i32) local.get 0 call $one)
    (elem (global.get $table) func $double))
  (core instance $base (instantiate $base))
  (core instance $env_of_one
    (export "memory" (memory $base "memory"))
    (export "__indirect_function_table" (table $base "__indirect_function_table"))
    (export "__memory_base" (global $base "base_of_one"))
    (export "__table_base" (global $base "table_of_one"))
    (export "count" (global $base "count"))
    (export "double" (func $base "double")))
  (core instance $got (export "address" (global $base "known_address")))
  (core instance $one (instantiate $one (with "env" (instance $env_of_one)) (with "GOT.mem" (instance $got))))
  (core instance $env_of_two
    (export "memory" (memory $base "memory"))
    (export "__indirect_function_table" (table $base "__indirect_function_table"))
    (export "__table_base" (global $base "table_of_two")))
  (core instance $two (instantiate $two (with "env" (instance $env_of_two)) (with "one" (instance $one))))
  (func (export "run") (param "x" u32) (result u32) (canon lift (core func $two "run"))))
"""


def changed(changes):
    text = COMPONENT_TEXT
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return text


def outcome(component):
    engine = wasmtime.Engine()
    store = wasmtime.Store(engine)
    instance = wasm.Linker(engine).instantiate(store, wasm.Component(engine, component))
    run = instance.get_func(store, "run")
    assert run is not None
    results = []
    for number in (0, 1, 7):
        results.append(run(store, number))
        run.post_return(store)
    return results


def instances(component):
    return [one for one in read_component(component) if one.sort == INSTANCE and one.of is not None]


def test_a_linked_component_gives_the_results_it_gave_before():
    before = bytes(wasmtime.wat2wasm(COMPONENT_TEXT))
    after = link(before)
    # (x + 3 + 5) * 2, and how often it was called beyond a hundred.
    assert outcome(before) == outcome(after) == [117, 120, 133]
    assert (len(instances(before)), len(instances(after))) == (3, 2)


def counts(module):
    """How many functions and how many globals a module defines."""
    found = {kind: Reader(content).number() for kind, content in binary.sections(module)}
    return found.get(3, 0), found.get(6, 0)


def test_functions_that_nobody_calls_and_numbers_that_nobody_changes_are_left_out():
    linked = instances(link(bytes(wasmtime.wat2wasm(COMPONENT_TEXT))))[-1]
    assert counts(linked.of.module) == (5, 1)


def test_a_function_that_swaps_its_arguments_does_more_than_pass_them_on():
    changes = {
        "  (core module $one\n": """
  (core module $one
    (import "env" "apart" (func $apart (param i32 i32) (result i32)))
""",
        "    (table (export": "    (type $pair (func (param i32 i32) (result i32)))\n    (table (export",
        "    (data (i32.const 64)": """
    (func (export "apart") (param i32 i32) (result i32)
      local.get 1 local.get 0 i32.const 5 call_indirect (type $pair))
    (data (i32.const 64)""",
        "      call $double\n": "      call $double i32.const 1 call $apart\n",
        "func $double))": """func $double $minus)
    (func $minus (param i32 i32) (result i32) local.get 0 local.get 1 i32.sub))""",
        '    (export "count" (global $base "count"))\n': """
    (export "apart" (func $base "apart"))
    (export "count" (global $base "count"))""",
    }
    before = bytes(wasmtime.wat2wasm(changed(changes)))
    # 1 - (x + 3 + 5) * 2, and how often it was called beyond a hundred.
    assert outcome(before) == outcome(link(before)) == [86, 85, 74]


@pytest.mark.parametrize(("name", "kind"), [("count", "(mut i32)"), ("base_of_one", "i32")])
def test_a_global_that_may_change_is_not_given_to_two_modules(name, kind):
    watcher = f"""
  (core module $watch
    (import "base" "{name}" (global {kind}))
    (func (export "seen") (result i32) global.get 0))
  (core instance $of_watch (export "{name}" (global $base "{name}")))
  (core instance $watch (instantiate $watch (with "base" (instance $of_watch))))
  (func (export "seen") (result u32) (canon lift (core func $watch "seen")))
  (func (export "run") (param "x" u32)"""
    component = bytes(wasmtime.wat2wasm(changed({'  (func (export "run") (param "x" u32)': watcher})))
    if name == "count":
        with pytest.raises(UnsupportedModuleError, match="count, which may change, is used outside of the libraries"):
            link(component)
    else:
        assert outcome(link(component)) == outcome(component)


def test_a_component_is_written_as_it_was_read():
    component = bytes(wasmtime.wat2wasm(COMPONENT_TEXT))
    assert outcome(write_component(component, read_component(component))) == outcome(component)


def test_the_installed_image_has_its_libraries_in_one_module():
    sizes = sorted(counts(one.of.module)[0] for one in instances(COMPONENT.read_bytes()))
    assert sizes[-1] > 5_000
    assert sizes[-2] < 500


@pytest.mark.parametrize("body", [b"\0\xfd\x0c" + bytes(16) + b"\x1a\x0b", b"\0\x06\x40\x0b\x0b", b"\0\xfe\x03\0\x0b"])
def test_code_that_is_not_known_is_an_error_and_not_passed_over(body):
    with pytest.raises(UnknownCodeError):
        uses(body)


def test_code_that_is_known_is_read_to_its_end():
    assert [(use.instruction, use.index) for use in uses(b"\1\2\x7f\x20\0\x10\x85\x01\x23\3\x0b")] == [
        (0x10, 133),
        (0x23, 3),
    ]


def test_a_module_that_starts_by_itself_is_refused():
    with pytest.raises(UnsupportedModuleError, match="start"):
        read_module(bytes(wasmtime.wat2wasm("(module (func $f) (start $f))")))


def test_a_component_has_the_modules_it_was_made_of():
    assert sum(one.section == CORE_MODULE for one in read_component(bytes(wasmtime.wat2wasm(COMPONENT_TEXT)))) == 3
