"""What is built into the Wasm image: runs on CPython 3.14 inside the sandbox, never imported by the host.

`main` is the component; everything else is reached from there. Nothing in this package is a security
boundary: a script can read and change all of it. What must hold, the host checks.
"""
