/**
 * A model that is a script: it answers on loopback what an agent asks of the provider of its
 * models, in the provider's own format.
 */
import { createServer } from "node:http";

/** The text of what a provider takes as a string or as parts. */
const textOf = (content) =>
  typeof content === "string" ? content : content.map(({ text = "" }) => text).join("\n");

/** One answer as a stream of server-sent events. */
const stream = (events) => events.map(([event, data]) =>
  `${event === undefined ? "" : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`).join("");

/**
 * The formats. Of a request: the tools that it offers, with their descriptions; the text and the
 * mark of an error of the last result of a tool. Of an answer: its events, for a step of the script
 * that is either a `call` (`name`, `given` and what else the format has) or a `text`, and what ends
 * the stream.
 */
const FORMATS = {
  responses: {
    path: /\/responses$/,
    tools: ({ tools = [] }) => tools.flatMap((tool) => tool.tools ?? [tool])
      .map(({ name, description }) => [name, description]),
    told({ input }) {
      const last = input.filter(({ type }) => type === "function_call_output").at(-1);
      return last && { text: textOf(last.output) };
    },
    events({ call, text }, id) {
      const { given, ...names } = call ?? {};
      const item = call === undefined
        ? { type: "message", role: "assistant", content: [{ type: "output_text", text }] }
        : { type: "function_call", call_id: id, ...names, arguments: JSON.stringify(given) };
      const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
      return [
        { type: "response.created", response: { id } },
        { type: "response.output_item.done", item },
        { type: "response.completed", response: { id, usage } },
      ].map((event) => [event.type, event]);
    },
  },

  messages: {
    path: /\/messages(\?.*)?$/,
    tools: ({ tools = [] }) => tools.map(({ name, description }) => [name, description]),
    told({ messages }) {
      const last = messages.flatMap(({ content }) => content)
        .filter(({ type }) => type === "tool_result").at(-1);
      return last && { text: textOf(last.content), isError: last.is_error === true };
    },
    events({ call, text }, id) {
      const [block, delta, reason] = call === undefined
        ? [{ type: "text", text: "" }, { type: "text_delta", text }, "end_turn"]
        : [{ type: "tool_use", id, name: call.name, input: {} },
          { type: "input_json_delta", partial_json: JSON.stringify(call.given) }, "tool_use"];
      const message = {
        id: `message-${id}`, type: "message", role: "assistant", model: "scripted", content: [],
        stop_reason: null, stop_sequence: null, usage: { input_tokens: 1, output_tokens: 1 },
      };
      return [
        { type: "message_start", message },
        { type: "content_block_start", index: 0, content_block: block },
        { type: "content_block_delta", index: 0, delta },
        { type: "content_block_stop", index: 0 },
        { type: "message_delta", delta: { stop_reason: reason, stop_sequence: null },
          usage: { output_tokens: 1 } },
        { type: "message_stop" },
      ].map((event) => [event.type, event]);
    },
  },

  generateContent: {
    path: /:streamGenerateContent(\?.*)?$/,
    tools: ({ tools = [] }) => tools
      .flatMap(({ functionDeclarations = [] }) => functionDeclarations)
      .map(({ name, description }) => [name, description]),
    told({ contents }) {
      const last = contents.flatMap(({ parts }) => parts)
        .filter(({ functionResponse }) => functionResponse !== undefined).at(-1);
      const { output, error } = last?.functionResponse.response ?? {};
      return last && { text: output ?? error, isError: error !== undefined };
    },
    events({ call, text }, id) {
      const part = call === undefined ? { text }
        : { functionCall: { id, name: call.name, args: call.given } };
      const content = { role: "model", parts: [part] };
      const usageMetadata = { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 };
      return [[undefined,
        { candidates: [{ content, finishReason: "STOP", index: 0 }], usageMetadata }]];
    },
  },

  completions: {
    path: /\/chat\/completions$/,
    end: "data: [DONE]\n\n",
    tools: ({ tools = [] }) => tools.map((tool) => [tool.function.name, tool.function.description]),
    told({ messages }) {
      const last = messages.filter(({ role }) => role === "tool").at(-1);
      return last && { text: textOf(last.content) };
    },
    events({ call, text }, id) {
      const delta = call === undefined ? { content: text }
        : { tool_calls: [{ index: 0, id, type: "function",
          function: { name: call.name, arguments: JSON.stringify(call.given) } }] };
      const chunk = (choice) => [undefined, {
        id: `completion-${id}`, object: "chat.completion.chunk", created: 1, model: "scripted",
        choices: [{ index: 0, finish_reason: null, ...choice }],
        usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
      }];
      return [chunk({ delta: { role: "assistant", ...delta } }),
        chunk({ delta: {}, finish_reason: call === undefined ? "stop" : "tool_calls" })];
    },
  },
};

/**
 * Serves `script`, a generator that yields calls and gets, of the first request of the agent and
 * then of each call, what the model reads: `tools`, a map of their descriptions, `request`, all of
 * it as JSON, and what is told of the call, `text` and `isError`. A request that does not offer the
 * tool `known` is one of the agent's beside its work (a title, say) and gets a word.
 */
export async function serve(formatName, known, script) {
  const format = FORMATS[formatName];
  const model = { calls: 0, done: false, failure: undefined };
  let steps;

  function step(request) {
    const tools = new Map(format.tools(request));
    if (!tools.has(known)) return { text: "ok" };
    const read = { tools, request: JSON.stringify(request), ...format.told(request) };
    try {
      let next;
      if (steps === undefined) {
        steps = script(read);
        next = steps.next();
      } else {
        next = steps.next(read);
      }
      if (!next.done) {
        model.calls += 1;
        return { call: next.value };
      }
      model.done = true;
    } catch (error) {
      model.failure ??= error;
    }
    return { text: model.failure === undefined ? "all done" : "failed" };
  }

  const endpoint = createServer((request, response) => {
    const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => {
      if (!format.path.test(request.url)) {
        response.writeHead(404, { "content-type": "application/json" }).end("{}");
        return;
      }
      const events = format.events(step(JSON.parse(Buffer.concat(parts))), `call-${model.calls}`);
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(stream(events) + (format.end ?? ""));
    });
  });
  await new Promise((done) => endpoint.listen(0, "127.0.0.1", done));
  model.origin = `http://127.0.0.1:${endpoint.address().port}`;
  model.close = () => {
    endpoint.close();
    endpoint.closeAllConnections();
  };
  return model;
}
