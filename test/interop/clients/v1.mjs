// Visits an MCP server with the first generation of the TypeScript SDK.
// Usage: node v1.mjs URL VISIT, where VISIT is the JSON of what to do. Prints the JSON of what was seen.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { visit } from "./visit.mjs";

const transport = new StreamableHTTPClientTransport(new URL(process.argv[2]));
const client = new Client({ name: "interop-v1", version: "1.0.0" });
await client.connect(transport);
await visit(client, transport.protocolVersion, JSON.parse(process.argv[3]));
