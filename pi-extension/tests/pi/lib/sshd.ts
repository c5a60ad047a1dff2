/** A real sshd on the loopback interface, for tests of commands on another machine. */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { userInfo } from "node:os";
import type { TestContext } from "node:test";
import { execdBinary } from "./paths.ts";
import { FAR_VARIABLE, TAG_VARIABLE, waitNoneFar } from "./processes.ts";
import type { Scratch } from "./scratch.ts";
import { PATIENCE_MS, until } from "./waiting.ts";

const SSHD = "/usr/sbin/sshd";
/** How often another port is tried: between the choice and sshd's start somebody may take it. */
const PORTS_TRIED = 5;
/** How long all that ran there may take to end, once the connection is closed. */
const GONE_MS = 20_000;

/** An sshd of one test. */
export interface Sshd {
  /** The value of EXECD_COMMAND that runs execd there; `flags` are execd's. */
  line(flags?: string): string;
  /** The home of whoever logs in there: not that of pi. */
  home: string;
}

/** Starts one; undefined, with a word, where there is none to start. */
export async function startSshd(t: TestContext, place: Scratch): Promise<Sshd | undefined> {
  if (!existsSync(SSHD)) {
    if (process.env["CI"]) throw new Error(`${SSHD} is not installed on CI`);
    t.skip(`${SSHD} is not installed`);
    return undefined;
  }
  // sshd of root wants it; a machine where sshd runs has it.
  if (process.getuid?.() === 0) mkdirSync("/run/sshd", { recursive: true });
  const home = place.path("far-home");
  for (const dir of [home, place.path("far-tmp"), place.path("far-run")]) mkdirSync(dir);
  for (const name of ["key", "host_key"]) {
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", place.path(name)]);
  }
  place.atEnd(() => waitNoneFar(place.tag, GONE_MS));
  await listening(place, home);
  // sshd refuses every login of an account that is locked, say, with a key too.
  const words = ["-F", place.path("ssh_config"), "far", "true"];
  if (spawnSync("ssh", words, { stdio: "ignore", timeout: PATIENCE_MS }).status !== 0) {
    t.skip(`sshd lets nobody in: ${readFileSync(place.path("sshd.log"), "utf8")}`);
    return undefined;
  }
  return {
    line: (flags = "") => `ssh -F '${place.path("ssh_config")}' far '${execdBinary()}' ${flags}`,
    home,
  };
}

/** Starts sshd on a free port; resolves once it listens. */
async function listening(place: Scratch, home: string): Promise<void> {
  const log = place.path("sshd.log");
  const said = () => readFileSync(log, "utf8");
  for (let tried = 0; tried < PORTS_TRIED; tried++) {
    writeConfigs(place, await freePort(), home);
    const out = openSync(log, "w");
    const sshd = spawn(SSHD, ["-D", "-e", "-f", place.path("sshd_config")], {
      stdio: ["ignore", "ignore", out],
    });
    closeSync(out);
    place.atEnd(() => void sshd.kill());
    let ended = false;
    sshd.once("exit", () => {
      ended = true;
    });
    await until("sshd listens", () => ended || said().includes("Server listening on"), 20_000, said);
    if (!ended) return;
  }
  throw new Error(`sshd does not start: ${said()}`);
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (typeof address !== "object" || address === null) throw new Error("no port");
  return address.port;
}

/**
 * Lines by which bash runs what ssh asks for, as its .bashrc is part of the tests; none where the
 * login shell is bash.
 */
function bashAtLogin(): string[] {
  const isBash = userInfo().shell?.endsWith("/bash");
  return isBash ? [] : ['ForceCommand exec env -u SHLVL bash -c "$SSH_ORIGINAL_COMMAND"'];
}

function writeConfigs(place: Scratch, port: number, home: string): void {
  const set = [
    `HOME=${home}`, `TMPDIR=${place.path("far-tmp")}`, `XDG_RUNTIME_DIR=${place.path("far-run")}`,
    `${TAG_VARIABLE}=${place.tag}`, `${FAR_VARIABLE}=${place.tag}`, "LC_ALL=C.UTF-8",
  ];
  writeFileSync(place.path("sshd_config"), [
    `Port ${port}`, "ListenAddress 127.0.0.1", `HostKey ${place.path("host_key")}`,
    `AuthorizedKeysFile ${place.path("key.pub")}`, "PidFile none", "StrictModes no", "UsePAM no",
    "PasswordAuthentication no", "KbdInteractiveAuthentication no",
    "PermitRootLogin prohibit-password", `SetEnv ${set.join(" ")}`, ...bashAtLogin(), "",
  ].join("\n"));
  const host = readFileSync(place.path("host_key.pub"), "utf8");
  writeFileSync(place.path("known_hosts"), `[127.0.0.1]:${port} ${host}`);
  writeFileSync(place.path("ssh_config"), [
    "Host far", "HostName 127.0.0.1", `Port ${port}`, `User ${userInfo().username}`,
    `IdentityFile ${place.path("key")}`, "IdentitiesOnly yes", "BatchMode yes", "LogLevel ERROR",
    `UserKnownHostsFile ${place.path("known_hosts")}`, "StrictHostKeyChecking yes", "",
  ].join("\n"));
}
