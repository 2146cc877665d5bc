// What both TypeScript clients do: list, describe, run, read what was cut, and lend their model to a script.
const CODE = "from tools import odd\nprint('x ' * 15_000)\nawait odd.echo(text='hi')";
const EXTRACT = "await extract('Ada is 36', int)";

export const CAPABILITIES = { sampling: {} };

// The model of these clients: it answers with the number that the text tells.
export async function sample({ params }) {
  const [{ content }] = params.messages;
  return { role: "assistant", content: { type: "text", text: content.text.match(/Ada is (\d+)/)[1] }, model: "stub" };
}

export async function drive(client, call, version) {
  const { tools } = await client.listTools();
  const described = await call({ name: "get_tool_details", arguments: { tools: ["odd.echo"] } });
  const handle = described.content[0].text.match(/session: "(s_[0-9a-f]+)"/);
  const session = handle ? { session: handle[1] } : {};
  const result = await call({ name: "execute_code", arguments: { code: CODE, ...session } });
  const { resource } = result.structuredContent.truncated;
  const read = await client.readResource({ uri: resource.replace("offset=0", "offset=24000") });
  const extracted = await call({ name: "execute_code", arguments: { code: EXTRACT, ...session } });
  console.log(
    JSON.stringify({
      version,
      tools: tools.map((tool) => tool.name),
      instructions: client.getInstructions(),
      value: result.structuredContent.value,
      calls: result.structuredContent.calls.length,
      rest: read.contents[0].text.length,
      extracted: extracted.structuredContent.value,
    }),
  );
  await client.close();
}
