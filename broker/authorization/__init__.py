"""Who may call what: policy of the operator, grants of people, the flow of data, and one decision for each call.

Above: tool_calls.py, which asks before every call, sessions and the command line. Below: pydantic, and `store.py`
for what is kept. `decision.py` decides without I/O; `desk.py` asks people; the other modules are what they work with.
"""
