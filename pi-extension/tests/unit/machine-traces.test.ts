/** Which texts tell on the machine that makes a release. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { machineTexts } from "../../scripts/machine-traces.ts";

// A home directory that is `/`, and a checkout in `/src`, failed releases that told on nobody.
it("short paths are in many texts; root's home, and longer paths, tell on a machine", () => {
  const paths = (repo: string, home: string) => {
    Object.assign(process.env, { HOME: home, CARGO_HOME: "/cargo", RUSTUP_HOME: "/usr/local/rustup" });
    return machineTexts(repo, "").filter((text) => text.startsWith("/"));
  };
  assert.deepEqual(paths("/src", "/"), ["/usr/local/rustup/"]);
  assert.deepEqual(paths("/home/ada/execd", "/home/ada"),
    ["/home/ada/execd/", "/home/ada/", "/usr/local/rustup/"]);
  assert.deepEqual(paths("/build/execd", "/root"), ["/build/execd/", "/root/", "/usr/local/rustup/"]);
});
