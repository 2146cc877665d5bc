"""An agent on the Anthropic API that works through the broker: `anthropic_loop.py QUESTION`.

Needs `pip install anthropic` and ANTHROPIC_API_KEY.
"""

import asyncio
import sys

import anthropic

from broker import Broker, Grant, Session, tool_definitions

CONFIG = "examples/history/mcp.json"
MODEL = "claude-sonnet-5-5"


async def ask(session: Session, question: str, **settings) -> str:
    messages = [{"role": "user", "content": question}]
    async with anthropic.AsyncAnthropic(**settings) as client:
        while True:
            answer = await client.messages.create(
                model=MODEL, max_tokens=4_000, messages=messages, tools=tool_definitions("anthropic")
            )
            messages.append({"role": "assistant", "content": answer.content})
            calls = [block for block in answer.content if block.type == "tool_use"]
            if not calls:
                return "".join(block.text for block in answer.content if block.type == "text")
            results = []
            for call in calls:
                reply = await session.dispatch(call.name, call.input)
                results.append(
                    {
                        "type": "tool_result",
                        "tool_use_id": call.id,
                        "is_error": reply.is_error,
                        "content": [{"type": "text", "text": reply.text}, *map(shown, reply.blocks)],
                    }
                )
            messages.append({"role": "user", "content": results})


def shown(block):
    if block["type"] == "image":
        source = {"type": "base64", "media_type": block["mimeType"], "data": block["data"]}
        return {"type": "image", "source": source}
    resource = block.get("resource", block)
    kind = resource.get("mimeType", block["type"])
    return {"type": "text", "text": resource.get("text", f"[{kind} cannot be shown to you]")}


async def main() -> None:
    async with Broker.from_config(CONFIG) as broker:
        session = broker.session(grants=[Grant("git.*")])
        print(await ask(session, " ".join(sys.argv[1:]) or "Who wrote the last ten commits of this repository?"))


if __name__ == "__main__":
    asyncio.run(main())
