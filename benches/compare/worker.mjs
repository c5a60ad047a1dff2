// Runs one measure on one peer and sends the result to run.mjs. A process for each, because a peer
// may take its whole process down, and because memory never shrinks back to where it was.
import { measures, sizes } from './lib/measures.mjs';
import { within } from './lib/time.mjs';

const { peerFile, measure, sizeName, options } = JSON.parse(process.argv[2]);
const peerModule = await import(peerFile);
const lacks = measures[measure].needs.filter((need) => !peerModule.can[need]);

if (lacks.length > 0) {
  process.send({ absent: lacks });
} else {
  const peer = await within(10_000, 'start of the peer', peerModule.open(options));
  let message;
  try {
    const result = await measures[measure].run({ peer, size: sizes[sizeName] });
    message = { version: peer.version, result };
  } catch (error) {
    message = { version: peer.version, result: { failed: error.message } };
  }
  await new Promise((resolve) => process.send(message, resolve));
  const closed = within(8000, 'end of the peer', peer.close());
  await closed.catch((error) => console.error(error.message));
}
// What a peer left open, a timer or a stream, must not keep this process.
process.exit(0);
