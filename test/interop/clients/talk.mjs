// What both TypeScript clients do with servers that ask them something. The methods that differ are handed over.

// Talker is who answers what servers ask, and keeps what it was shown. A plan is what a test wants: who the client is, the
// token it shows, if any, and its errands.
export class Talker {
  #waiting = new Map();
  #asked = [];

  constructor(plan) {
    this.plan = plan;
    this.capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };
    this.transport = plan.token ? { requestInit: { headers: { Authorization: `Bearer ${plan.token}` } } } : {};
    this.roots = { roots: [{ uri: plan.root, name: "home" }] };
  }

  elicit(params) {
    if (params.mode === "url") {
      this.#asked.push(`url: ${params.message} ${params.url}`);
      return { action: "accept" };
    }
    this.#asked.push(`form: ${params.message}`);
    return { action: "accept", content: { name: this.plan.who } };
  }

  sample(params) {
    const content = [params.messages[0].content].flat();
    this.#asked.push(`sample: ${content.map((item) => item.text).join("")}`);
    return { role: "assistant", model: "none", content: { type: "text", text: `a thought of ${this.plan.who}` } };
  }

  // asked gives what was shown since the last time.
  asked() {
    return this.#asked.splice(0);
  }

  // next resolves when the resource is updated.
  next(uri) {
    return new Promise((resolve) => this.#waiting.set(uri, resolve));
  }

  updated(uri) {
    this.#waiting.get(uri)?.(uri);
  }
}

function text(result) {
  return (result.isError ? "ERROR: " : "") + result.content.map((item) => item.text ?? "").join("\n");
}

// giveUp begins a call, waits for its first progress and cancels it. It gives what became of the call.
async function giveUp(callTool, call) {
  const abort = new AbortController();
  const options = { signal: abort.signal, onprogress: () => abort.abort("not needed any more") };
  try {
    return "answered: " + text(await callTool(call, options));
  } catch (error) {
    return abort.signal.aborted ? "cancelled" : "failed: " + error;
  }
}

// talk runs the errands and prints what came of them. methods has callTool(call, options), and subscribe(uri), which
// gives what ends it.
export async function talk(talker, client, protocol, methods) {
  const call = async (c) => (c ? text(await methods.callTool(c, { onprogress: () => {} })) : "");
  const told = Object.fromEntries(talker.plan.errands.map((e) => [e.server, {}]));
  const watch = async (e) => {
    const updated = talker.next(e.subscribe);
    const end = await methods.subscribe(e.subscribe);
    return async () => {
      told[e.server].updated = await updated;
      await end();
    };
  };
  // Those that update by themselves do so in their own time, and the streams that are cut wait for no other.
  const own = [];
  for (const e of talker.plan.errands.filter((e) => e.subscribe && !e.touch)) {
    own.push(await watch(e));
  }
  const resumed = talker.plan.errands.map(async (e) => (told[e.server].resumed = await call(e.resume)));
  for (const e of talker.plan.errands) {
    const t = told[e.server];
    t.elicit = await call(e.elicit);
    t.page = await call(e.page);
    t.sample = await call(e.sample);
    t.roots = await call(e.roots);
    t.asked = talker.asked();
    if (e.touch) {
      const end = await watch(e);
      await call(e.touch);
      await end();
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
  await Promise.all(resumed);
  for (const end of own) {
    await end();
  }
  console.log(JSON.stringify({ protocol, told }));
  await client.close();
}
