// The TypeScript SDK's client behind pipes: `typescript_client.mjs SDK [URL | COMMAND…]`, as in answer_lines.mjs.
import { answerLines } from "./answer_lines.mjs";

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
await answerLines(client, version);
