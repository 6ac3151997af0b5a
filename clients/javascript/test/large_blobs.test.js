// A blob of 1 GiB through the official blob client: blocks in parallel up, ranges in parallel down, nothing kept whole.

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { after, before, test } from "node:test";
import { Server } from "../server.js";

const server = new Server();
before(() => server.start());
after(() => server.close());

const MIB = 1 << 20;
const SIZE = 1024 * MIB;
const BLOCK = 8 * MIB;
const RANGE = 64 * MIB;

// Blocks of which none is like another; the digest sees them as they leave.
function* blocks(digest) {
  const base = randomBytes(BLOCK);
  for (let turn = 0; turn < SIZE / BLOCK; turn++) {
    const block = Buffer.from(base);
    block.writeUInt32BE(turn);
    digest.update(block);
    yield block;
  }
}

test("parallel blocks up and ranges down have one digest", async () => {
  const container = await server.newContainer();
  const blob = container.getBlockBlobClient("large");
  const sent = createHash("sha256");
  await blob.uploadStream(Readable.from(blocks(sent)), BLOCK, 4);
  assert.equal((await blob.getProperties()).contentLength, SIZE);
  const list = await blob.getBlockList("all");
  assert.equal(list.committedBlocks.length, SIZE / BLOCK);
  const found = createHash("sha256");
  for (let offset = 0; offset < SIZE; offset += RANGE) {
    found.update(await blob.downloadToBuffer(offset, RANGE, { blockSize: BLOCK, concurrency: 4 }));
  }
  assert.equal(found.digest("hex"), sent.digest("hex"));
  await container.delete();
});
