// Runs errands with the second generation of the TypeScript SDK.
// Usage: node talk2.mjs URL ERRANDS MODE, where ERRANDS is the JSON of what to do and MODE is legacy or auto. Prints the
// JSON of what was told.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Updates, elicited, roots, sampled, talk } from "./talk.mjs";

const [, , url, errands, mode] = process.argv;
const transport = new StreamableHTTPClientTransport(new URL(url));
const client = new Client(
  { name: "interop-v2", version: "1.0.0" },
  { versionNegotiation: { mode }, capabilities: { elicitation: { form: {} }, sampling: {}, roots: {} } },
);
const asked = [];
const updates = new Updates();
client.setRequestHandler("elicitation/create", (request) => {
  asked.push(request.params.message);
  return elicited;
});
client.setRequestHandler("sampling/createMessage", () => sampled);
client.setRequestHandler("roots/list", () => roots);
client.setNotificationHandler("notifications/resources/updated", (n) => updates.tell(n.params.uri));
await client.connect(transport);
let subscription;
const old = {
  subscribe: (uri) => client.subscribeResource({ uri }),
  unsubscribe: (uri) => client.unsubscribeResource({ uri }),
};
// In the stateless revisions a subscription is a request that stays open.
const stateless = {
  subscribe: async (uri) => (subscription = await client.listen({ resourceSubscriptions: [uri] })),
  unsubscribe: () => subscription.close(),
};
const methods = {
  callTool: (params, options) => client.callTool(params, options),
  ...(mode === "legacy" ? old : stateless),
};
console.log(JSON.stringify(await talk(client, methods, updates, asked, JSON.parse(errands))));
await client.close();
