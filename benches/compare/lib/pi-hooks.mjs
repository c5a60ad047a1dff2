// Lets plain Node load a pi extension: its types are stripped (Node itself refuses to inside
// node_modules) and the packages that pi would lend it come from the stub.
import { readFileSync } from 'node:fs';
import { registerHooks, stripTypeScriptTypes } from 'node:module';
import { fileURLToPath } from 'node:url';

const STUB = new URL('./pi-stub.mjs', import.meta.url).href;
const LENT = /^(@earendil-works|@mariozechner)\/pi-|^typebox$/;

export function installHooks() {
  registerHooks({
    resolve(specifier, context, next) {
      if (LENT.test(specifier)) return { url: STUB, shortCircuit: true };
      return next(specifier, context);
    },
    load(url, context, next) {
      if (!url.endsWith('.ts')) return next(url, context);
      const source = stripTypeScriptTypes(readFileSync(fileURLToPath(url), 'utf8'));
      return { format: 'module', source, shortCircuit: true };
    },
  });
}
