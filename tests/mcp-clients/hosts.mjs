/**
 * The agents that are hosts of `execd mcp`: how each is pointed at a model on loopback, and what it
 * calls the tools of execd. The lines that set execd up are those of docs/mcp.md, word for word, and
 * so are those by which nobody is asked about a call.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const PAGE = readFileSync(new URL("../../docs/mcp.md", import.meta.url), "utf8");

/** The block of code in `language` that the page has for `host`, by its place there. */
function lines(host, language, place = 1) {
  const section = PAGE.split(`\n**${host}**`)[1]?.split("\n**")[0];
  const block = section?.split(`\`\`\`${language}\n`)[place]?.split("```")[0];
  if (block === undefined) throw new Error(`docs/mcp.md has no ${language} for ${host}`);
  return block;
}

function write(path, text) {
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, text);
}

const PROMPT = "Do what you are told.";

/** The tools for resources that Codex and OpenCode have of their own. */
const OF_SERVER = {
  list: { name: "list_mcp_resources", given: { server: "execd" } },
  read: (uri) => ({ name: "read_mcp_resource", given: { server: "execd", uri } }),
};

/** Sets Claude Code up by the lines at `place` of the page. */
function setClaude({ origin, env, program, cwd }, place) {
  const all = {
    ...env, ANTHROPIC_BASE_URL: origin, ANTHROPIC_API_KEY: "none",
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  };
  const run = lines("Claude Code", "sh", place).replaceAll(/^claude /gm, '"$CLAUDE" ');
  execFileSync("sh", ["-ec", run], { env: { ...all, CLAUDE: program }, cwd, encoding: "utf8" });
  write(join(env.HOME, ".claude/settings.json"), lines("Claude Code", "json"));
  return { words: ["-p", PROMPT], env: all };
}

const CLAUDE = {
  program: `agents/node_modules/@anthropic-ai/claude-code-linux-${process.arch}/claude`,
  format: "messages",
  marks: true,
  ours: (name) => ({ name: `mcp__execd__${name}` }),
  load: (names) => ({ name: "ToolSearch", given: { query: `select:${names}`, max_results: 20 } }),
  // Its list is that of the connection's begin: there is nothing in it.
  read: (uri) => ({ name: "ReadMcpResourceTool", given: { server: "execd", uri } }),
};
/** Its own tool for resources is not described before it is asked for. */
const CLAUDE_LATE = ["ReadMcpResourceTool"];

/**
 * Each: the format of its model's provider; `known`, a tool that each request offers which is for
 * the script; the names of execd's tools, and of its own ones for resources; and `set`, which writes
 * its files below `home` and gives the words that run it and its environment. `marks` says that the
 * provider is told which results are errors, `late` names tools that `load` has described, and
 * `added` is a param that the host adds to each tool.
 */
export const HOSTS = {
  codex: {
    program: "node_modules/.bin/codex",
    format: "responses",
    known: "exec_command",
    ours: (name) => ({ namespace: "mcp__execd", name }),
    ...OF_SERVER,
    set({ origin, home, env }) {
      // It hands on of its environment what is named here, and a short list of its own.
      const names = JSON.stringify(Object.keys(env));
      write(join(home, "config.toml"), `
model = "scripted"
model_provider = "local"
# What the models have that it knows.
tool_output_token_limit = 10000
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.local]
name = "local"
base_url = "${origin}/v1"
wire_api = "responses"
${lines("Codex", "toml")}
default_tools_approval_mode = "approve"
env_vars = ${names}
`);
      return { words: ["exec", "--skip-git-repo-check", PROMPT], env: { CODEX_HOME: home } };
    },
  },

  claude: {
    ...CLAUDE,
    known: "mcp__execd__exec_command",
    late: CLAUDE_LATE,
    set: (given) => setClaude(given, 2),
  },

  "claude-late": {
    ...CLAUDE,
    known: "ToolSearch",
    late: [...["exec_command", "write_stdin", "kill_session"].map((name) => `mcp__execd__${name}`),
      ...CLAUDE_LATE],
    set: (given) => setClaude(given, 1),
  },

  gemini: {
    program: "agents/node_modules/.bin/gemini",
    format: "generateContent",
    known: "mcp_execd_exec_command",
    marks: true,
    ours: (name) => ({ name: `mcp_execd_${name}` }),
    added: { wait_for_previous: true },
    set({ origin, home }) {
      const settings = JSON.parse(lines("Gemini CLI", "json"));
      settings.mcpServers.execd.trust = true;
      write(join(home, ".gemini/settings.json"), JSON.stringify({
        ...settings,
        security: { auth: { selectedType: "gemini-api-key" } },
        privacy: { usageStatisticsEnabled: false },
        general: { enableAutoUpdate: false, enableAutoUpdateNotification: false },
      }));
      return {
        words: ["-p", PROMPT, "--skip-trust", "-m", "gemini-2.5-flash"],
        env: { GEMINI_API_KEY: "none", GOOGLE_GEMINI_BASE_URL: origin },
      };
    },
  },

  opencode: {
    program: `agents/node_modules/opencode-linux-${process.arch}/bin/opencode`,
    format: "completions",
    known: "execd_exec_command",
    ours: (name) => ({ name: `execd_${name}` }),
    ...OF_SERVER,
    set({ origin, cwd }) {
      write(join(cwd, "opencode.json"), JSON.stringify({
        ...JSON.parse(lines("OpenCode", "json")),
        autoupdate: false,
        share: "disabled",
        model: "local/scripted",
        provider: {
          local: {
            npm: "@ai-sdk/openai-compatible", name: "local",
            options: { baseURL: `${origin}/v1`, apiKey: "none" },
            models: { scripted: { name: "scripted" } },
          },
        },
      }));
      return { words: ["run", PROMPT], env: {
        OPENCODE_DISABLE_MODELS_FETCH: "1", OPENCODE_DISABLE_AUTOUPDATE: "1",
        OPENCODE_DISABLE_LSP_DOWNLOAD: "1", OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
      } };
    },
  },
};
