// A container from JavaScript: upload, list, ranged download, snapshot.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { BlobServiceClient } from "@azure/storage-blob";

const DEVELOPMENT_ACCOUNT =
  "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;" +
  "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;" +
  "BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;";

const service = BlobServiceClient.fromConnectionString(
  process.env.AZURE_STORAGE_CONNECTION_STRING ?? DEVELOPMENT_ACCOUNT,
);
const container = service.getContainerClient(`photos-${randomUUID()}`);
await container.create();
try {
  const text = "one two three";
  const blob = container.getBlockBlobClient("2026/notes.txt");
  await blob.upload(text, text.length, {
    blobHTTPHeaders: { blobContentType: "text/plain" },
    metadata: { camera: "none" },
  });
  await container.getBlockBlobClient("2027/empty").upload("", 0);

  // Folders are a way of listing: what lies behind the delimiter is one prefix.
  const listed = [];
  for await (const item of container.listBlobsByHierarchy("/")) {
    listed.push(`${item.kind} ${item.name}`);
  }
  assert.deepEqual(listed, ["prefix 2026/", "prefix 2027/"]);

  const part = await blob.downloadToBuffer(4, 3);
  assert.equal(part.toString(), "two");

  // A snapshot stays as it is when the blob is written again.
  const { snapshot } = await blob.createSnapshot();
  await blob.upload("four", 4);
  const before = await blob.withSnapshot(snapshot).downloadToBuffer();
  const now = await blob.downloadToBuffer();
  assert.deepEqual([before.toString(), now.toString()], [text, "four"]);
  console.log(`${listed.length} folders; the blob had ${before.length} bytes and has ${now.length}`);
} finally {
  await container.delete();
}
