// The TypeScript SDK's newer client: `typescript_v2.mjs URL | COMMAND…`. Prints what it was told as one JSON object.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { drive } from "./drive.mjs";

const [target, ...args] = process.argv.slice(2);
const transport = target.startsWith("http")
  ? new StreamableHTTPClientTransport(new URL(target))
  : new StdioClientTransport({ command: target, args, env: process.env });
const client = new Client({ name: "typescript-v2", version: "1" }, { versionNegotiation: { mode: "auto" } });
await client.connect(transport);
await drive(client, (call) => client.callTool(call));
