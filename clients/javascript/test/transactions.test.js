// Entity group transactions through this client's own framing.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { TableTransaction } from "@azure/data-tables";
import { Server, collect, refusal } from "../server.js";

const server = new Server();
before(() => server.start());
after(() => server.close());

const entity = (rowKey, value) => ({ partitionKey: "p", rowKey, value });

async function filled() {
  const table = await server.newTable();
  for (const row of ["1", "2", "3", "4"]) await table.createEntity(entity(row, Number(row)));
  return table;
}

async function state(table) {
  return (await collect(table.listEntities())).map((found) => `${found.rowKey}=${found.value}`).join(" ");
}

test("every operation in one", async () => {
  const table = await filled();
  const transaction = new TableTransaction();
  transaction.createEntity(entity("5", 5));
  transaction.updateEntity(entity("1", 11), "Replace");
  transaction.updateEntity({ partitionKey: "p", rowKey: "2", other: 1 }, "Merge");
  transaction.upsertEntity(entity("3", 33), "Replace");
  transaction.upsertEntity(entity("6", 6), "Merge");
  transaction.deleteEntity("p", "4");
  const answer = await table.submitTransaction(transaction.actions);
  assert.equal(answer.status, 202);
  assert.deepEqual(answer.subResponses.map((one) => one.status), [204, 204, 204, 204, 204, 204]);
  assert.equal(await state(table), "1=11 2=2 3=33 5=5 6=6");
  const etags = Object.fromEntries((await collect(table.listEntities())).map((found) => [found.rowKey, found.etag]));
  const answered = answer.subResponses.map((one) => one.etag);
  assert.deepEqual(answered, [etags["5"], etags["1"], etags["2"], etags["3"], etags["6"], undefined]);
  assert.equal(answer.getResponseForEntity("5").etag, etags["5"]);
});

test("a hundred operations", async () => {
  const table = await server.newTable();
  const rows = Array.from({ length: 100 }, (_, number) => String(number).padStart(3, "0"));
  await table.submitTransaction(rows.map((row) => ["create", entity(row, 1)]));
  assert.equal((await collect(table.listEntities())).length, 100);
});

test("one failure undoes all", async () => {
  const table = await filled();
  const before = await state(table);
  const attempts = [
    [["create", entity("5", 5)], ["create", entity("1", 9)], 409, "EntityAlreadyExists"],
    [["delete", entity("1")], ["update", entity("x", 9), "Merge"], 404, "ResourceNotFound"],
    [["upsert", entity("5", 5)], ["delete", entity("x")], 404, "ResourceNotFound"],
  ];
  for (const [first, second, status, code] of attempts) {
    await assert.rejects(table.submitTransaction([first, second]), (error) => {
      refusal(status, code)(error);
      assert.match(error.details?.odataError?.message?.value ?? error.message, /^1:/);
      return true;
    });
    assert.equal(await state(table), before);
  }
});

test("the table is missing", async () => {
  await assert.rejects(server.table("nowhere").submitTransaction([["create", entity("1", 1)]]), refusal(404, "TableNotFound"));
});
