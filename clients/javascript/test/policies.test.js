// Shared access signatures and stored policies through this client.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  AzureNamedKeyCredential,
  AzureSASCredential,
  TableClient,
  generateAccountSas,
  generateTableSas,
} from "@azure/data-tables";
import { ACCOUNT, KEY, Server, collect, options, refusal } from "../server.js";

const server = new Server();
before(() => server.start());
after(() => server.close());

const credential = new AzureNamedKeyCredential(ACCOUNT, KEY);

function withSas(table, sas) {
  return new TableClient(server.endpoint, table.tableName, new AzureSASCredential(sas), options());
}

test("a table SAS allows what it says", async () => {
  const table = await server.newTable();
  await table.createEntity({ partitionKey: "p", rowKey: "1" });
  const expiresOn = new Date(Date.now() + 60_000);
  const reader = withSas(table, generateTableSas(table.tableName, credential, { permissions: { query: true }, expiresOn }));
  assert.equal((await collect(reader.listEntities())).length, 1);
  const attempt = reader.createEntity({ partitionKey: "p", rowKey: "2" });
  await assert.rejects(attempt, refusal(403, "AuthorizationPermissionMismatch"));
  assert.equal((await collect(table.listEntities())).length, 1);
});

test("an account SAS", async () => {
  const table = await server.newTable();
  const permissions = { query: true, add: true, update: true };
  const sas = generateAccountSas(credential, { permissions, expiresOn: new Date(Date.now() + 60_000) });
  const client = withSas(table, sas);
  await client.upsertEntity({ partitionKey: "p", rowKey: "1", value: 1 });
  assert.equal((await client.getEntity("p", "1")).value, 1);
});

test("stored policies", async () => {
  const table = await server.newTable();
  const policy = { start: new Date("2020-01-01T00:00:00Z"), expiry: new Date("2040-01-01T00:00:00Z"), permission: "r" };
  await table.setAccessPolicy([{ id: "readers", accessPolicy: policy }]);
  const [found] = await table.getAccessPolicy();
  assert.deepEqual([found.id, found.accessPolicy.permission], ["readers", "r"]);
  const sas = generateTableSas(table.tableName, credential, { identifier: "readers" });
  assert.deepEqual(await collect(withSas(table, sas).listEntities()), []);
});
