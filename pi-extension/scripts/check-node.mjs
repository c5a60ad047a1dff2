/**
 * Says what to do when Node is too old to run TypeScript, as the tests and the scripts need. Plain
 * JavaScript, so that every Node gets as far as the message.
 */
const NEEDED = [22, 19];

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < NEEDED[0] || (major === NEEDED[0] && minor < NEEDED[1])) {
  console.error(
    `pi-execd needs Node ${NEEDED.join(".")} or newer; this is ${process.version} ` +
      `(${process.execPath}).\nOn Linux x64, "npm ci" brings one along and "npm test" and ` +
      `"npm run …" use it: was node_modules installed, and is it complete?`,
  );
  process.exit(1);
}
