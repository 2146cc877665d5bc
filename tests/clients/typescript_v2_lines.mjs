// The TypeScript SDK's newer client behind pipes: `typescript_v2_lines.mjs URL | COMMAND…`, as in answer_lines.mjs.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { answerLines } from "../system/clients/answer_lines.mjs";

const [target, ...args] = process.argv.slice(2);
const headers = process.env.TOKEN ? { Authorization: `Bearer ${process.env.TOKEN}` } : {};
const transport = target.startsWith("http")
  ? new StreamableHTTPClientTransport(new URL(target), { requestInit: { headers } })
  : new StdioClientTransport({ command: target, args, env: process.env, stderr: "inherit" });
const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: "auto" } });
await client.connect(transport);
await answerLines(client, client.getNegotiatedProtocolVersion());
