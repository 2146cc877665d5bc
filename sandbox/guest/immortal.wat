;; A Python extension module for the time while the image is made: importing it makes every object in the list
;; `sys.immortal` immortal, so that nobody counts references to it. Python itself has no way to ask for that.
(module
  (@dylink.0
    (mem-info (memory 16 0)))
  (import "env" "memory" (memory 0))
  (import "env" "__memory_base" (global $data i32))
  (import "env" "PySys_GetObject" (func $object_of_sys (param i32) (result i32)))
  (import "env" "PyList_Size" (func $size (param i32) (result i32)))
  (import "env" "PyList_GetItem" (func $item (param i32 i32) (result i32)))
  (import "env" "PyModule_New" (func $new_module (param i32) (result i32)))
  (func (export "PyInit_immortal") (result i32)
    (local $list i32)
    (local $left i32)
    (local.set $list (call $object_of_sys (global.get $data)))
    (local.set $left (call $size (local.get $list)))
    (loop $next
      (if (local.get $left)
        (then
          (local.set $left (i32.sub (local.get $left) (i32.const 1)))
          ;; The first word of an object is its reference count; this is _Py_IMMORTAL_INITIAL_REFCNT of 32-bit builds.
          (i32.store (call $item (local.get $list) (local.get $left)) (i32.const 0x50000000))
          (br $next))))
    (call $new_module (global.get $data)))
  (data (global.get $data) "immortal\00"))
