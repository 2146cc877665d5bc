// The TypeScript SDK's newer client: `typescript_v2.mjs URL | COMMAND…`. Prints what it was told as one JSON object.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { CAPABILITIES, drive, sample } from "./drive.mjs";

const [target, ...args] = process.argv.slice(2);
const transport = target.startsWith("http")
  ? new StreamableHTTPClientTransport(new URL(target))
  : new StdioClientTransport({ command: target, args, env: process.env });
const options = { capabilities: CAPABILITIES, versionNegotiation: { mode: "auto" } };
const client = new Client({ name: "typescript-v2", version: "1" }, options);
client.setRequestHandler("sampling/createMessage", sample);
await client.connect(transport);
await drive(client, (call) => client.callTool(call), client.getNegotiatedProtocolVersion());
