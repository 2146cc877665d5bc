"""Every text that the broker writes for a model: what happened, what was or was not executed, what to do next.

Nothing here decides anything. tests/broker/surface_texts.txt has all of them, word for word. Beside them a model reads
only what is written where it is known: the type checker's mistakes (codegen/checking), the tracebacks of the guest
(sandbox/guest), and what a server said (broker/upstreams).
"""
