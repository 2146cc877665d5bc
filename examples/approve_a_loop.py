"""A loop of forty writes, approved by one answer with a predicate; what lies outside it is refused.

The host below answers like a careful person: it looks at what the first waiting calls have in common and allows calls
like them until the run ends. Run it with: python examples/approve_a_loop.py
"""

import anyio
from mcp.server import MCPServer

from broker import Broker, Verdict

SCRIPT = """
import asyncio

from tools import files

await asyncio.gather(*(files.write(path=f"notes/{n:02}.md", text=f"Note {n}") for n in range(40)))
try:
    await files.write(path="notes/../.profile", text="echo hello")
except PermissionError as error:
    print(error)
"""

written = {}
server = MCPServer("files")


@server.tool()
def write(path: str, text: str) -> int:
    """Writes a file."""
    written[path] = text
    return len(text)


class CarefulPerson:
    """Allows calls like those of the first question, and nothing else."""

    name = "careful person"

    def __init__(self):
        self.questions = 0

    async def answer(self, question):
        self.questions += 1
        [group] = question.groups
        if self.questions > 1:
            return [Verdict(group.indices, allow=False, note="only notes are written here")]
        grant = group.grant(group.suggestion())
        print("allowed:", grant.pattern, grant.arguments)
        return [grant]


async def main():
    person = CarefulPerson()
    async with Broker(servers={"files": server}) as broker:
        session = broker.session(answerer=person)
        result = await session.execute_code(SCRIPT, describe_references=True)
    print(result.stdout, end="")
    print(f"{len(written)} files written after {person.questions} questions, {len(result.calls)} calls attempted")


anyio.run(main)
