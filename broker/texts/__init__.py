"""Every text that the broker writes for a model: what happened, what was or was not executed, what to do next.

Nothing here decides anything. tests/broker/surface_texts.txt has all of them, word for word. Beside them a model reads
only what is written where it is known: the type checker's mistakes (codegen/checking), the tracebacks of the guest
(sandbox/guest), what is wrong with a server or was said by it (broker/upstreams), and what a value has that its JSON
Schema forbids (calls/alternatives.py, calls/bounded_validator.py, calls/json_schema.py).
"""
