// Runs errands with the second generation of the TypeScript SDK.
// Usage: node talk2.mjs URL PLAN MODE, where PLAN is JSON and MODE is legacy or auto. Prints the JSON of what was told.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Talker, talk } from "./talk.mjs";

const [, , url, plan, mode] = process.argv;
const talker = new Talker(JSON.parse(plan));
const transport = new StreamableHTTPClientTransport(new URL(url), talker.transport);
const client = new Client(
  { name: "interop-v2", version: "1.0.0" },
  { versionNegotiation: { mode }, capabilities: talker.capabilities },
);
client.setRequestHandler("elicitation/create", (request) => talker.elicit(request.params));
client.setRequestHandler("sampling/createMessage", (request) => talker.sample(request.params));
client.setRequestHandler("roots/list", () => talker.roots);
client.setNotificationHandler("notifications/resources/updated", (n) => talker.updated(n.params.uri));
await client.connect(transport);
const session = async (uri) => {
  await client.subscribeResource({ uri });
  return () => client.unsubscribeResource({ uri });
};
// In the stateless revisions a subscription is a request that stays open.
const stateless = async (uri) => {
  const subscription = await client.listen({ resourceSubscriptions: [uri] });
  return () => subscription.close();
};
await talk(talker, client, client.getNegotiatedProtocolVersion(), {
  callTool: (params, options) => client.callTool(params, options),
  subscribe: mode === "legacy" ? session : stateless,
});
