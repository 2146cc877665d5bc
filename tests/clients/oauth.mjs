// A TypeScript client that logs in: `oauth.mjs v1|v2 URL`. Prints what it was given as one JSON object.
const [line, target] = process.argv.slice(2);
const sdk =
  line === "v1"
    ? {
        ...(await import("@modelcontextprotocol/sdk/client/index.js")),
        ...(await import("@modelcontextprotocol/sdk/client/streamableHttp.js")),
        ...(await import("@modelcontextprotocol/sdk/client/auth.js")),
      }
    : await import("@modelcontextprotocol/client");

const kept = {};
const back = "http://127.0.0.1:9/callback";
let came = null;

const provider = {
  redirectUrl: back,
  clientMetadata: { client_name: line, redirect_uris: [back], token_endpoint_auth_method: "none" },
  clientInformation: () => kept.client,
  saveClientInformation: (client) => void (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => void (kept.tokens = tokens),
  saveCodeVerifier: (verifier) => void (kept.verifier = verifier),
  codeVerifier: () => kept.verifier,
  async redirectToAuthorization(url) {
    const answer = await fetch(url, { redirect: "manual" });
    came = new URL(answer.headers.get("location")).searchParams;
  },
};

async function connected() {
  const client = new sdk.Client({ name: line, version: "1" }, { versionNegotiation: { mode: "auto" } });
  const transport = new sdk.StreamableHTTPClientTransport(new URL(target), { authProvider: provider });
  try {
    await client.connect(transport);
    return client;
  } catch (error) {
    if (!came) throw error;
    await (line === "v1" ? transport.finishAuth(came.get("code")) : transport.finishAuth(came));
    came = null;
    return null;
  }
}

const client = (await connected()) ?? (await connected());
const { tools } = await client.listTools();
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), scope: kept.tokens.scope }));
await client.close();
