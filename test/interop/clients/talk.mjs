// What both TypeScript clients do with servers that ask them something. The methods that differ are handed over.

// What the servers are told. The tests look for it in what they answer.
export const elicited = { action: "accept", content: { name: "Ada" } };
export const sampled = {
  role: "assistant",
  model: "none",
  content: { type: "text", text: "a thought of my own" },
};
export const roots = { roots: [{ uri: "file:///home/ada", name: "home" }] };

function text(result) {
  return (result.isError ? "ERROR: " : "") + result.content.map((item) => item.text ?? "").join("\n");
}

// Updates hands out the URIs of updated resources to who waits for them.
export class Updates {
  #waiting = new Map();

  // next resolves when the resource is updated.
  next(uri) {
    return new Promise((resolve) => this.#waiting.set(uri, resolve));
  }

  tell(uri) {
    this.#waiting.get(uri)?.(uri);
  }
}

// giveUp begins a call, waits for its first progress and cancels it. It gives what became of the call.
async function giveUp(callTool, call) {
  const abort = new AbortController();
  const options = { signal: abort.signal, onprogress: () => abort.abort("not needed any more") };
  try {
    return "answered: " + text(await callTool({ name: call.name, arguments: call.arguments }, options));
  } catch {
    return abort.signal.aborted ? "cancelled" : "failed";
  }
}

// talk runs the errands. methods has callTool(params, options), subscribe(uri) and unsubscribe(uri); asked holds the
// messages that the client was shown, and is emptied.
export async function talk(client, methods, updates, asked, errands) {
  const params = (c) => ({ name: c.name, arguments: c.arguments });
  const call = async (c) => (c ? text(await methods.callTool(params(c), { onprogress: () => {} })) : "");
  const told = {};
  for (const e of errands) {
    const t = (told[e.server] = {});
    t.elicit = await call(e.elicit);
    t.sample = await call(e.sample);
    t.roots = await call(e.roots);
    t.asked = asked.splice(0);
    if (e.subscribe) {
      const updated = updates.next(e.subscribe);
      await methods.subscribe(e.subscribe);
      await call(e.touch);
      t.updated = await updated;
      await methods.unsubscribe(e.subscribe);
    }
    if (e.complete) {
      const ref = { type: "ref/prompt", name: e.complete.prompt };
      const argument = { name: e.complete.argument, value: e.complete.value };
      t.completed = (await client.complete({ ref, argument })).completion.values;
    }
    if (e.wait) {
      t.waited = await giveUp(methods.callTool, e.wait);
    }
    t.gone = await call(e.gone);
  }
  return told;
}
