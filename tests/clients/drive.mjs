// What both TypeScript clients do: list, describe, run, read what was cut.
const CODE = "from tools import odd\nprint('x ' * 15_000)\nawait odd.echo(text='hi')";

export async function drive(client, call) {
  const { tools } = await client.listTools();
  const described = await call({ name: "get_tool_details", arguments: { tools: ["odd.echo"] } });
  const handle = described.content[0].text.match(/session: "(s_[0-9a-f]+)"/);
  const session = handle ? { session: handle[1] } : {};
  const result = await call({ name: "execute_code", arguments: { code: CODE, ...session } });
  const { resource } = result.structuredContent.truncated;
  const read = await client.readResource({ uri: resource.replace("offset=0", "offset=24000") });
  console.log(
    JSON.stringify({
      tools: tools.map((tool) => tool.name),
      instructions: client.getInstructions(),
      value: result.structuredContent.value,
      calls: result.structuredContent.calls.length,
      rest: read.contents[0].text.length,
    }),
  );
  await client.close();
}
