// Queries: filters that the client writes, selection, pages, tokens.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server, collect, nextPage, odata, refusal } from "../server.js";

const server = new Server();
let table;
before(async () => {
  await server.start();
  table = await server.newTable();
  for (let number = 0; number < 5; number++) {
    await table.createEntity({
      partitionKey: "p",
      rowKey: `r${number}`,
      number,
      big: BigInt(number) * 10n ** 15n,
      real: number + 0.5,
      flag: number >= 2,
      text: `it's ${number}`,
      instant: new Date(Date.UTC(2026, 0, 1 + number)),
      guid: { type: "Guid", value: `0000000${number}-213d-42c9-9a79-3e9149a57833` },
      bytes: new Uint8Array([number, 255]),
    });
  }
});
after(() => server.close());

async function rows(filter) {
  const found = await collect(table.listEntities({ queryOptions: { filter } }));
  return found.map((entity) => entity.rowKey).join(" ");
}

test("a filter of each type", async () => {
  assert.equal(await rows(odata`number eq ${3}`), "r3");
  assert.equal(await rows("big gt 2000000000000000L"), "r3 r4");
  assert.equal(await rows(odata`big eq ${0n}`), "r0");
  assert.equal(await rows(odata`real lt ${1.5}`), "r0");
  assert.equal(await rows(odata`flag eq ${true}`), "r2 r3 r4");
  assert.equal(await rows(odata`text eq ${"it's 2"}`), "r2");
  assert.equal(await rows("instant ge datetime'2026-01-04T00:00:00Z'"), "r3 r4");
  assert.equal(await rows("guid eq guid'00000001-213d-42c9-9a79-3e9149a57833'"), "r1");
  assert.equal(await rows("bytes eq X'04ff'"), "r4");
});

test("logic", async () => {
  assert.equal(await rows(odata`number gt ${0} and number lt ${3}`), "r1 r2");
  assert.equal(await rows(odata`number eq ${0} or flag eq ${true} and number ne ${3}`), "r0 r2 r4");
  assert.equal(await rows(odata`not (number eq ${0} or number eq ${1})`), "r2 r3 r4");
  assert.equal(await rows(odata`PartitionKey eq ${"p"} and RowKey ge ${"r3"}`), "r3 r4");
  assert.equal(await rows(odata`missing ne ${1}`), "");
});

test("a filter that makes no sense", async () => {
  await assert.rejects(rows("number eq"), refusal(400, "InvalidInput"));
  await assert.rejects(rows("number eq null"), refusal(400, "InvalidInput"));
});

test("select", async () => {
  const options = { queryOptions: { filter: odata`number eq ${3}`, select: ["number", "flag"] } };
  const [found] = await collect(table.listEntities(options));
  assert.deepEqual([found.number, found.flag, found.text, found.partitionKey], [3, true, undefined, undefined]);
});

test("pages and tokens", async () => {
  const pages = table.listEntities().byPage({ maxPageSize: 2 });
  const first = await nextPage(pages, 2);
  assert.deepEqual(first.map((entity) => entity.rowKey), ["r0", "r1"]);
  assert.ok(first.continuationToken);
  const rest = [];
  const following = table.listEntities().byPage({ maxPageSize: 2, continuationToken: first.continuationToken });
  for await (const page of following) {
    assert.ok(page.length <= 2);
    rest.push(...page.map((entity) => entity.rowKey));
  }
  assert.deepEqual(rest, ["r2", "r3", "r4"]);
});

test("more than a page", async () => {
  const large = await server.newTable();
  for (let start = 0; start < 1300; start += 100) {
    const actions = [];
    for (let number = start; number < start + 100; number++) {
      actions.push(["create", { partitionKey: "p", rowKey: String(number).padStart(5, "0"), number }]);
    }
    await large.submitTransaction(actions);
  }
  const found = await collect(large.listEntities());
  assert.deepEqual(found.map((entity) => entity.number), Array.from({ length: 1300 }, (_, number) => number));
  const sizes = [];
  for await (const page of large.listEntities().byPage()) sizes.push(page.length);
  assert.ok(sizes.length >= 2 && Math.max(...sizes) <= 1000);
});
