// What was acknowledged is there after a clean stop and after `kill -9`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Server, collect } from "../server.js";

const skip = process.env.LARIMAR_ENDPOINT ? "needs a server of its own" : false;

for (const signal of ["SIGTERM", "SIGKILL"]) {
  test(`everything is there after ${signal}`, { skip }, async () => {
    const server = await new Server().start();
    try {
      const table = server.table("kept");
      await table.createTable();
      for (let number = 0; number < 20; number++) {
        await table.createEntity({ partitionKey: "p", rowKey: String(number).padStart(2, "0"), number });
      }
      await table.updateEntity({ partitionKey: "p", rowKey: "00", number: 100 }, "Replace");
      await table.deleteEntity("p", "01");
      const actions = [20, 21, 22].map((number) => ["create", { partitionKey: "p", rowKey: `${number}`, number }]);
      await table.submitTransaction(actions);
      const before = await collect(table.listEntities());
      assert.deepEqual(before.map((entity) => entity.number), [100, ...Array.from({ length: 21 }, (_, at) => at + 2)]);

      const ended = await server.stop(signal);
      assert.deepEqual(ended, signal === "SIGTERM" ? { code: 0, signal: null } : { code: null, signal });
      await server.start();
      assert.deepEqual(await collect(server.table("kept").listEntities()), before);
    } finally {
      await server.close();
    }
  });
}
