"""A run that is recorded, and what can be done with its recording: read it, replay it, try another script, export it.

Run it with: python examples/recorded_runs.py
"""

import tempfile
from pathlib import Path

import anyio

from broker import Broker, Store, compare_recordings, read_recording

SCRIPT = """
cities = ["Oslo", "Rome", "Lima"]
found = {}
for city in cities:
    found[city] = await weather.temperature(city=city)
print("looked up", len(found), "cities")
max(found, key=found.get)
"""


def temperature(city: str) -> int:
    """Says how warm it is in a city, in degrees Celsius."""
    return {"Oslo": 4, "Rome": 19, "Lima": 22}[city]


async def main(folder):
    with Store(folder / "broker.sqlite3") as store:
        async with Broker(servers={"weather": [temperature]}, store=store) as broker:
            session = broker.session(grants=["weather.*"], principal="ada")
            result = await session.execute_code(SCRIPT, describe_references=True)

            runs = broker.recordings(principal="ada")
            recording = runs.get(result.run_id)
            print(f"{recording.state}: {len(recording.calls)} calls, printed {recording.stdout.strip()!r}")
            for call in recording.calls.values():
                print(f"  line {call.line}: {call.function} {call.arguments} -> {call.result}")

            replayed = await broker.replay(read_recording(runs.export(result.run_id, folder)))
            print("replayed without a server:", replayed.difference or "the same")

            again = await broker.rerun(recording, SCRIPT.replace(', "Lima"', ""))
            compared = compare_recordings(recording, again, ignored=["/printed"])
            for change in compared.changes:
                print(f"another script: {change.kind} {change.function} in line {change.line}")
            for other in compared.others:
                print(f"another script: {other.what} is different")

            count = len(runs.list())
            runs.remove(result.run_id)
            print(f"{count} run is recorded, {len(runs.list())} after it was removed")


with tempfile.TemporaryDirectory() as folder:
    anyio.run(main, Path(folder))
