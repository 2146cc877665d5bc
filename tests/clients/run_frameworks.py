"""Runs the examples for agent frameworks with a model that is a script: `run_frameworks.py FRAMEWORK COMMAND…`."""

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
SCRIPT = "from tools import odd\nawait odd.echo(text='hi')"


def scripted():
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import FunctionModel

    def answer(messages, _info):
        turn = sum(isinstance(part, ToolReturnPart) for message in messages for part in message.parts)
        if turn == 0:
            return ModelResponse([ToolCallPart("get_tool_details", {"tools": ["odd.echo"]})])
        if turn == 1:
            return ModelResponse([ToolCallPart("execute_code", {"code": SCRIPT})])
        return ModelResponse([TextPart(f"done: {messages[-1].parts[-1].content}")])

    return FunctionModel(answer)


async def main(framework, command, *arguments):
    if framework == "langchain":
        import langchain_agent

        await langchain_agent.main(command, list(arguments), "odd.echo", SCRIPT)
    else:
        import pydantic_ai_agent

        print(await pydantic_ai_agent.ask("Say hi.", scripted(), command, list(arguments)))


asyncio.run(main(*sys.argv[1:]))
