// The TypeScript SDK's client behind pipes: `typescript_client.mjs SDK [URL | COMMAND…]`. A request a line, an answer a line.
import { createInterface } from "node:readline";

const [sdk, target, ...args] = process.argv.slice(2);
const { Client } = await import(`${sdk}/dist/esm/client/index.js`);
const { StdioClientTransport } = await import(`${sdk}/dist/esm/client/stdio.js`);
const { StreamableHTTPClientTransport } = await import(`${sdk}/dist/esm/client/streamableHttp.js`);

const headers = process.env.TOKEN ? { Authorization: `Bearer ${process.env.TOKEN}` } : {};
const transport = target.startsWith("http")
  ? new StreamableHTTPClientTransport(new URL(target), { requestInit: { headers } })
  : new StdioClientTransport({ command: target, args, env: process.env, stderr: "inherit" });
let version = null;
transport.onmessage = (message) => (version ??= message.result?.protocolVersion);
const client = new Client({ name: "test", version: "1" });
await client.connect(transport);

const say = (message) => process.stdout.write(JSON.stringify(message) + "\n");
say({ instructions: client.getInstructions(), version });
for await (const line of createInterface({ input: process.stdin })) {
  const [method, params] = JSON.parse(line);
  try {
    const ask = {
      "tools/list": () => client.listTools(),
      "resources/list": () => client.listResources(),
      "resources/read": () => client.readResource(params),
      "tools/call": () => client.callTool(params),
    };
    say({ result: await ask[method]() });
  } catch (error) {
    say({ error: { code: error.code, message: error.message } });
  }
}
await client.close();
