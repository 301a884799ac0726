// Visits an MCP server with the second generation of the TypeScript SDK.
// Usage: node v2.mjs URL VISIT MODE, where VISIT is the JSON of what to do and MODE is legacy or auto. Prints the JSON
// of what was seen.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { visit } from "./visit.mjs";

const transport = new StreamableHTTPClientTransport(new URL(process.argv[2]));
const client = new Client(
  { name: "interop-v2", version: "1.0.0" },
  { versionNegotiation: { mode: process.argv[4] } },
);
await client.connect(transport);
await visit(client, client.getNegotiatedProtocolVersion(), JSON.parse(process.argv[3]));
