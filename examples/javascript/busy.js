// A table on a busy server, from JavaScript: what retries and tokens are for.
//
// Start one with `larimar --in-memory --simulate examples/busy.toml`. With `--no-retries` it fails there.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { TableClient } from "@azure/data-tables";

const DEVELOPMENT_ACCOUNT =
  "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;" +
  "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;" +
  "TableEndpoint=http://127.0.0.1:10002/devstoreaccount1;";
const READINGS = 30;

// By default the client tries three times more, and waits longer before each.
const retryOptions = process.argv.includes("--no-retries") ? { maxRetries: 0 } : { retryDelayInMs: 100 };
const table = TableClient.fromConnectionString(
  process.env.AZURE_STORAGE_CONNECTION_STRING ?? DEVELOPMENT_ACCOUNT,
  `readings${randomUUID().replaceAll("-", "")}`,
  { allowInsecureConnection: true, retryOptions },
);
await table.createTable();
try {
  // Written so that twice is the same as once: an answer that is lost says nothing about the write, so the
  // client sends it again.
  const key = (at) => String(at).padStart(4, "0");
  for (let at = 0; at < READINGS; at++) {
    await table.upsertEntity({ partitionKey: "roof", rowKey: key(at), celsius: 20 + at / 10 }, "Replace");
  }

  // A page may be short, or empty, and yet not be the last one: iterating follows its token.
  let pages = 0;
  const found = [];
  const query = { queryOptions: { filter: "PartitionKey eq 'roof'" } };
  for await (const page of table.listEntities(query).byPage()) {
    pages += 1;
    found.push(...page.map((reading) => reading.rowKey));
  }
  assert.deepEqual(found, Array.from({ length: READINGS }, (_, at) => key(at)));
  assert.ok(pages > READINGS / 10, `${pages} pages`);
  console.log(`${found.length} readings are there, in ${pages} pages`);
} finally {
  await table.deleteTable();
}
