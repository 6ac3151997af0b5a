// Containers and blobs through the official blob client.

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import {
  BlobClient,
  BlobSASPermissions,
  StorageSharedKeyCredential,
  generateBlobSASQueryParameters,
} from "@azure/storage-blob";
import { ACCOUNT, KEY, Server, collect, newName, refusal } from "../server.js";

const server = new Server();
before(() => server.start());
after(() => server.close());

const MIB = 1 << 20;
const PAGE = 512;
const digest = (bytes) => createHash("sha256").update(bytes).digest("hex");

test("containers are created, listed and deleted", async () => {
  const blobs = server.blobs();
  const prefix = newName();
  const names = ["a", "b", "c"].map((letter) => prefix + letter);
  for (const name of names) await blobs.createContainer(name, { metadata: { key: "value" } });
  const listed = await collect(blobs.listContainers({ prefix, includeMetadata: true }));
  assert.deepEqual(listed.map((one) => [one.name, one.metadata]), names.map((name) => [name, { key: "value" }]));
  const pages = await collect(blobs.listContainers({ prefix }).byPage({ maxPageSize: 2 }));
  assert.deepEqual(pages.map((page) => page.containerItems.length), [2, 1]);
  await assert.rejects(blobs.createContainer(names[0]), refusal(409, "ContainerAlreadyExists"));
  for (const name of names) await blobs.deleteContainer(name);
  await assert.rejects(blobs.deleteContainer(names[0]), refusal(404, "ContainerNotFound"));
});

test("block blobs of all sizes come back", async () => {
  const container = await server.newContainer();
  for (const size of [0, 1, 8 << 10, 100_000, 9 * MIB]) {
    const data = randomBytes(size);
    const blob = container.getBlockBlobClient(`of/${size}`);
    await blob.uploadData(data, { blockSize: MIB, maxSingleShotSize: MIB, concurrency: 4 });
    assert.equal(digest(await blob.downloadToBuffer()), digest(data), `${size} bytes`);
  }
  const part = await container.getBlobClient("of/100000").downloadToBuffer(50_000, 10);
  assert.equal(part.length, 10);
  assert.equal((await collect(container.listBlobsFlat({ prefix: "of/" }))).length, 5);
  const [folder] = await collect(container.listBlobsByHierarchy("/"));
  assert.deepEqual([folder.kind, folder.name], ["prefix", "of/"]);
});

test("block lists, conditions and leases", async () => {
  const container = await server.newContainer();
  const blob = container.getBlockBlobClient("blocks");
  const ids = ["0", "1", "2"].map((id) => Buffer.from(id).toString("base64"));
  for (const id of ids) await blob.stageBlock(id, id, id.length);
  await blob.commitBlockList([ids[2], ids[0]]);
  assert.equal((await blob.downloadToBuffer()).toString(), ids[2] + ids[0]);
  const { etag } = await blob.getProperties();
  await blob.upload("new", 3, { conditions: { ifMatch: etag } });
  await assert.rejects(blob.upload("x", 1, { conditions: { ifMatch: etag } }), refusal(412, "ConditionNotMet"));
  const lease = blob.getBlobLeaseClient();
  await lease.acquireLease(-1);
  await assert.rejects(blob.delete(), refusal(412, "LeaseIdMissing"));
  await lease.breakLease(0);
  await blob.delete();
  assert.equal(await blob.exists(), false);
});

test("append blobs", async () => {
  const blob = (await server.newContainer()).getAppendBlobClient("log");
  await blob.create();
  await blob.appendBlock("abc", 3);
  const second = await blob.appendBlock("def", 3, { conditions: { appendPosition: 3 } });
  assert.equal(second.blobAppendOffset, "3");
  const again = blob.appendBlock("x", 1, { conditions: { appendPosition: 3 } });
  await assert.rejects(again, refusal(412, "AppendPositionConditionNotMet"));
  assert.equal((await blob.downloadToBuffer()).toString(), "abcdef");
});

test("page blobs and snapshots", async () => {
  const blob = (await server.newContainer()).getPageBlobClient("disk");
  await blob.create(4 * PAGE);
  await blob.uploadPages(Buffer.alloc(PAGE, "a"), PAGE, PAGE);
  const { snapshot } = await blob.createSnapshot();
  await blob.uploadPages(Buffer.alloc(PAGE, "b"), 3 * PAGE, PAGE);
  await blob.clearPages(PAGE, PAGE);
  const ranges = await blob.getPageRanges(0, 4 * PAGE);
  // The client takes the inclusive end for an exclusive one.
  assert.deepEqual(ranges.pageRange, [{ offset: 3 * PAGE, count: PAGE - 1 }]);
  assert.equal((await blob.withSnapshot(snapshot).downloadToBuffer())[PAGE], "a".charCodeAt(0));
  await assert.rejects(blob.delete(), refusal(409, "SnapshotsPresent"));
  await blob.delete({ deleteSnapshots: "include" });
});

test("metadata, tags and copies", async () => {
  const container = await server.newContainer();
  const source = container.getBlockBlobClient("source");
  await source.upload("hello", 5, { metadata: { key: "value" }, tags: { kind: "test" } });
  assert.deepEqual((await source.getTags()).tags, { kind: "test" });
  const copy = container.getBlobClient("copy");
  const poller = await copy.beginCopyFromURL(source.url);
  assert.equal((await poller.pollUntilDone()).copyStatus, "success");
  assert.deepEqual((await copy.getProperties()).metadata, { key: "value" });
  assert.equal((await copy.downloadToBuffer()).toString(), "hello");
});

test("a signature reads its blob and no other", async () => {
  const container = await server.newContainer();
  const blob = container.getBlockBlobClient("one");
  await blob.upload("1", 1);
  await container.getBlockBlobClient("two").upload("2", 1);
  const signature = generateBlobSASQueryParameters(
    {
      containerName: container.containerName,
      blobName: "one",
      permissions: BlobSASPermissions.parse("r"),
      expiresOn: new Date(Date.now() + 600_000),
    },
    new StorageSharedKeyCredential(ACCOUNT, KEY),
  );
  const reader = new BlobClient(`${blob.url}?${signature}`);
  assert.equal((await reader.downloadToBuffer()).toString(), "1");
  await assert.rejects(reader.delete(), refusal(403, "AuthorizationPermissionMismatch"));
  const other = new BlobClient(`${container.getBlobClient("two").url}?${signature}`);
  await assert.rejects(other.download(), refusal(403, "AuthenticationFailed"));
});
