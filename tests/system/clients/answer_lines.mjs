// Carries out requests for a client of the TypeScript SDK: one a line, `[method, params]`, and an answer a line.
import { createInterface } from "node:readline";

const say = (message) => process.stdout.write(JSON.stringify(message) + "\n");

export async function answerLines(client, version) {
  say({ instructions: client.getInstructions(), version });
  for await (const line of createInterface({ input: process.stdin })) {
    const [method, params] = JSON.parse(line);
    const ask = {
      "tools/list": () => client.listTools(),
      "resources/list": () => client.listResources(),
      "resources/read": () => client.readResource(params),
      "tools/call": () => client.callTool(params),
    };
    try {
      say({ result: await ask[method]() });
    } catch (error) {
      say({ error: { code: error.code, message: error.message } });
    }
  }
  await client.close();
}
