// The TypeScript SDK's older client: `typescript_v1.mjs URL | COMMAND…`. Prints what it was told as one JSON object.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CreateMessageRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { CAPABILITIES, drive, sample } from "./drive.mjs";

const [target, ...args] = process.argv.slice(2);
const transport = target.startsWith("http")
  ? new StreamableHTTPClientTransport(new URL(target))
  : new StdioClientTransport({ command: target, args, env: process.env });
let version;
const told = transport.setProtocolVersion?.bind(transport);
transport.setProtocolVersion = (negotiated) => {
  version = negotiated; // this client says it to its transport alone
  told?.(negotiated);
};
const client = new Client({ name: "typescript-v1", version: "1" }, { capabilities: CAPABILITIES });
client.setRequestHandler(CreateMessageRequestSchema, sample);
await client.connect(transport);
await drive(client, (call) => client.callTool(call), version);
