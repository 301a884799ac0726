// What both TypeScript clients do once they are connected. Their methods have the same names.

// text joins the text of a list of content blocks or resource contents.
function text(items) {
  return items.map((item) => item.text ?? "").join("\n");
}

// all follows the cursors of a paged list.
async function all(list, member) {
  const items = [];
  let cursor;
  do {
    const page = await list(cursor === undefined ? {} : { cursor });
    items.push(...page[member]);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return items;
}

export async function visit(client, protocol, wanted) {
  const tools = await all((params) => client.listTools(params), "tools");
  const prompts = await all((params) => client.listPrompts(params), "prompts");
  const texts = {};
  for (const call of wanted.calls) {
    const result = await client.callTool({ name: call.name, arguments: call.arguments });
    texts[call.name] = (result.isError ? "ERROR: " : "") + text(result.content);
  }
  const prompt = await client.getPrompt({ name: wanted.prompt });
  const resource = await client.readResource({ uri: wanted.resource });
  console.log(
    JSON.stringify({
      protocol,
      tools: tools.map((tool) => tool.name),
      prompts: prompts.map((item) => item.name),
      texts,
      prompt: text(prompt.messages.map((message) => message.content)),
      resource: text(resource.contents),
    }),
  );
  await client.close();
}
