"""An agent on the OpenAI Responses API that works through the broker: `openai_loop.py QUESTION`.

Needs `pip install openai` and OPENAI_API_KEY.
"""

import asyncio
import sys

import openai

from broker import Broker, Grant, Session, tool_definitions

CONFIG = "examples/history/mcp.json"
MODEL = "gpt-5"


async def ask(session: Session, question: str, **settings) -> str:
    items = [{"role": "user", "content": question}]
    async with openai.AsyncOpenAI(**settings) as client:
        while True:
            answer = await client.responses.create(model=MODEL, input=items, tools=tool_definitions("openai"))
            items += [item.model_dump(exclude_none=True) for item in answer.output]
            calls = [item for item in answer.output if item.type == "function_call"]
            if not calls:
                return answer.output_text
            for call in calls:
                reply = await session.dispatch(call.name, call.arguments)
                output = [{"type": "input_text", "text": reply.text}, *map(shown, reply.blocks)]
                items.append({"type": "function_call_output", "call_id": call.call_id, "output": output})


def shown(block):
    if block["type"] == "image":
        return {"type": "input_image", "image_url": f"data:{block['mimeType']};base64,{block['data']}"}
    resource = block.get("resource", block)
    kind = resource.get("mimeType", block["type"])
    return {"type": "input_text", "text": resource.get("text", f"[{kind} cannot be shown to you]")}


async def main() -> None:
    async with Broker.from_config(CONFIG) as broker:
        session = broker.session(grants=[Grant("git.*")])
        print(await ask(session, " ".join(sys.argv[1:]) or "Who wrote the last ten commits of this repository?"))


if __name__ == "__main__":
    asyncio.run(main())
