// Runs errands with the first generation of the TypeScript SDK.
// Usage: node talk1.mjs URL PLAN, where PLAN is JSON. Prints the JSON of what was told.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  ResourceUpdatedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { Talker, talk } from "./talk.mjs";

const talker = new Talker(JSON.parse(process.argv[3]));
const transport = new StreamableHTTPClientTransport(new URL(process.argv[2]), talker.transport);
const client = new Client({ name: "interop-v1", version: "1.0.0" }, { capabilities: talker.capabilities });
client.setRequestHandler(ElicitRequestSchema, (request) => talker.elicit(request.params));
client.setRequestHandler(CreateMessageRequestSchema, (request) => talker.sample(request.params));
client.setRequestHandler(ListRootsRequestSchema, () => talker.roots);
client.setNotificationHandler(ResourceUpdatedNotificationSchema, (n) => talker.updated(n.params.uri));
await client.connect(transport);
await talk(talker, client, transport.protocolVersion, {
  callTool: (params, options) => client.callTool(params, undefined, options),
  subscribe: async (uri) => {
    await client.subscribeResource({ uri });
    return () => client.unsubscribeResource({ uri });
  },
});
