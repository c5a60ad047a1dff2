// A client of execd in one file: Node.js 18 or newer, no packages.
//
//   const execd = new Execd();
//   const reply = await execd.call("exec_command", { cmd: "make", yield_time_ms: 30000 });
//   console.log(reply.output, reply.exit_code);
//   await execd.close();
//
// `new Execd()` starts an execd of its own; `close()` ends it with all of its sessions.
// `new Execd({ socketPath })` talks to one that runs already, and leaves it alone.
// Copy this file into your project and change it as you like.

import { spawn } from "node:child_process";
import { connect } from "node:net";
import { createInterface } from "node:readline";

/** execd refused a request. `data.reason` may be a stable word. */
export class ExecdError extends Error {
  constructor(method, { code, message, data = {} }) {
    super(`${method}: ${message}`);
    Object.assign(this, { name: "ExecdError", code, data });
  }
}

/** The connection ended before the reply came. The command may have been started. */
export class ExecdGone extends Error {
  name = "ExecdGone";
}

export class Execd {
  #to; // the stream that takes requests
  #nextId = 1;
  #waiting = new Map(); // id -> { method, resolve, reject }
  #open = true;
  #closed; // resolves to the exit status

  constructor({ flags = [], program = "execd", socketPath, onNotification = () => {} } = {}) {
    let from;
    if (socketPath === undefined) {
      const child = spawn(program, flags, { stdio: ["pipe", "pipe", "inherit"] });
      this.#to = child.stdin;
      from = child.stdout;
      this.#closed = new Promise((resolve) => {
        child.on("close", (status) => resolve(status ?? 1));
        child.on("error", (error) => resolve(this.#end(error.message) ?? 127));
      });
    } else {
      this.#to = from = connect(socketPath);
      this.#closed = new Promise((resolve) => from.on("close", () => resolve(0)));
    }
    this.#to.on("error", (error) => this.#end(error.message));
    const lines = createInterface({ input: from, crlfDelay: Infinity });
    lines.on("line", (line) => this.#take(line, onNotification));
    lines.on("close", () => this.#end("the connection has ended"));
  }

  /** Sends a request; resolves to its result, rejects with ExecdError or ExecdGone. */
  call(method, params = {}) {
    return new Promise((resolve, reject) => {
      if (!this.#open) {
        reject(new ExecdGone(`${method}: the connection has ended`));
        return;
      }
      const id = this.#nextId++;
      this.#waiting.set(id, { method, resolve, reject });
      this.#to.write(`${JSON.stringify({ id, method, params })}\n`);
    });
  }

  /** Ends the connection. An execd of our own ends every session; resolves to its exit status. */
  close() {
    this.#to.end();
    return this.#closed;
  }

  #take(line, onNotification) {
    let message;
    try {
      message = JSON.parse(line);
    } catch {
      return; // the connection broke within a line
    }
    if (message.method !== undefined) {
      onNotification(message.method, message.params);
      return;
    }
    const call = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    if (message.error) call?.reject(new ExecdError(call.method, message.error));
    else call?.resolve(message.result);
  }

  #end(why) {
    this.#open = false;
    for (const { method, reject } of this.#waiting.values()) {
      reject(new ExecdGone(`${method}: ${why}`));
    }
    this.#waiting.clear();
  }
}
