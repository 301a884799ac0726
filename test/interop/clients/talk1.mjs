// Runs errands with the first generation of the TypeScript SDK.
// Usage: node talk1.mjs URL ERRANDS, where ERRANDS is the JSON of what to do. Prints the JSON of what was told.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  ResourceUpdatedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { Updates, elicited, roots, sampled, talk } from "./talk.mjs";

const transport = new StreamableHTTPClientTransport(new URL(process.argv[2]));
const client = new Client(
  { name: "interop-v1", version: "1.0.0" },
  { capabilities: { elicitation: { form: {} }, sampling: {}, roots: {} } },
);
const asked = [];
const updates = new Updates();
client.setRequestHandler(ElicitRequestSchema, (request) => {
  asked.push(request.params.message);
  return elicited;
});
client.setRequestHandler(CreateMessageRequestSchema, () => sampled);
client.setRequestHandler(ListRootsRequestSchema, () => roots);
client.setNotificationHandler(ResourceUpdatedNotificationSchema, (n) => updates.tell(n.params.uri));
await client.connect(transport);
const methods = {
  callTool: (params, options) => client.callTool(params, undefined, options),
  subscribe: (uri) => client.subscribeResource({ uri }),
  unsubscribe: (uri) => client.unsubscribeResource({ uri }),
};
console.log(JSON.stringify(await talk(client, methods, updates, asked, JSON.parse(process.argv[3]))));
await client.close();
