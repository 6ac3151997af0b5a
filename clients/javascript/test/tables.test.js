// Tables: create, list, find, delete.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server, collect, newName, odata } from "../server.js";

const server = new Server();
before(() => server.start());
after(() => server.close());

test("create, list, delete", async () => {
  const service = server.service();
  const name = newName();
  await service.createTable(name);
  const names = async () => (await collect(service.listTables())).map((table) => table.name);
  assert.ok((await names()).includes(name));
  await service.deleteTable(name);
  assert.ok(!(await names()).includes(name));
});

test("creating twice and deleting nothing are fine for this client", async () => {
  const service = server.service();
  const name = newName();
  const statuses = [];
  const onResponse = (response) => statuses.push(response.status);
  await service.createTable(name, { onResponse });
  await service.createTable(name, { onResponse });
  assert.ok([201, 204].includes(statuses[0]));
  assert.equal(statuses[1], 409);
  await service.deleteTable(name);
  await service.deleteTable(name);
});

test("find by filter, in pages", async () => {
  const service = server.service();
  const prefix = newName();
  const expected = ["a", "b", "c", "d", "e"].map((letter) => prefix + letter);
  for (const name of [...expected].reverse()) await service.createTable(name);
  const filter = odata`TableName ge ${prefix} and TableName lt ${`${prefix}z`}`;
  const pages = [];
  for await (const page of service.listTables({ queryOptions: { filter } }).byPage({ maxPageSize: 2 })) {
    assert.ok(page.length <= 2);
    pages.push(page.map((table) => table.name));
  }
  assert.ok(pages.length >= 3);
  assert.deepEqual(pages.flat(), expected);
  const one = service.listTables({ queryOptions: { filter: odata`TableName eq ${expected[2]}` } });
  assert.deepEqual((await collect(one)).map((table) => table.name), [expected[2]]);
  for (const name of expected) await service.deleteTable(name);
});

test("illegal names are refused", async () => {
  const service = server.service();
  for (const [name, code] of [
    ["1abc", "InvalidResourceName"],
    ["ab-cd", "InvalidResourceName"],
    ["ab", "OutOfRangeInput"],
  ]) {
    await assert.rejects(service.createTable(name), (error) => {
      assert.equal(error.statusCode, 400);
      assert.match(JSON.stringify(error.details ?? error.message), new RegExp(code));
      return true;
    });
  }
});
