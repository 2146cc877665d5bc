import anyio

from broker import Broker, Grant

SCRIPT = "from tools import git\nawait git.git_log(repo_path='.', max_count=1)"


async def main():
    async with Broker.from_config("examples/history/mcp.json") as broker:
        session = broker.session(grants=[Grant("git.git_log")])
        result = await session.execute_code(SCRIPT, describe_references=True)
        print(result.outcome, result.value, [call.status for call in result.calls])


anyio.run(main)
