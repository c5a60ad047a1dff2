// As much of pi as pi-unified-exec touches while its tools run. Drawing does nothing, schemas are
// only collected, and there is no model.
import { MAX_BYTES, MAX_LINES, truncateTail } from './tail.mjs';

export { truncateTail };
export const DEFAULT_MAX_BYTES = MAX_BYTES;
export const DEFAULT_MAX_LINES = MAX_LINES;
export const keyHint = () => '';
export const truncateToVisualLines = () => ({ visualLines: [], skippedCount: 0 });
export const truncateToWidth = (text) => text;

export function formatSize(bytes) {
  if (bytes < 1024) return `${bytes}B`;
  if (bytes < 1024 * 1024) return `${(bytes / 1024).toFixed(1)}KB`;
  return `${(bytes / 1024 / 1024).toFixed(1)}MB`;
}

export class Container {}
export class Text {}

const schema = (...parts) => ({ parts });
export const Type = new Proxy({}, { get: () => schema });

export function createPi(cwd) {
  const handlers = new Map();
  const tools = new Map();
  const nothing = () => {};
  const ui = new Proxy({}, { get: () => nothing });
  const ctx = { ui, cwd, mode: 'tui', hasUI: true };
  let calls = 0;

  const emit = async (event, data = {}) => {
    for (const handler of handlers.get(event) ?? []) await handler({ type: event, ...data }, ctx);
  };

  const pi = {
    on: (event, handler) => {
      handlers.set(event, [...(handlers.get(event) ?? []), handler]);
      return nothing;
    },
    registerTool: (tool) => tools.set(tool.name, tool),
    registerCommand: nothing,
    registerFlag: nothing,
    getFlag: () => false,
    getActiveTools: () => [...tools.keys()],
    setActiveTools: nothing,
    sendMessage: nothing,
  };

  // pi hands every tool an update callback and tells it afterwards that its result was taken.
  async function result(name, params, onUpdate = nothing) {
    const toolCallId = `call-${++calls}`;
    let isError = true;
    try {
      const tool = tools.get(name);
      const result = await tool.execute(toolCallId, params, undefined, onUpdate, ctx);
      isError = false;
      return result;
    } finally {
      await emit('tool_execution_end', { toolCallId, toolName: name, isError });
    }
  }

  const call = async (...params) => (await result(...params)).details;

  return { pi, call, result, emit };
}
