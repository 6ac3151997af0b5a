// Properties and statistics of the service through this client.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { AzureNamedKeyCredential, TableServiceClient } from "@azure/data-tables";
import { ACCOUNT, KEY, Server, options } from "../server.js";

const server = new Server();
before(() => server.start());
after(() => server.close());

test("properties", async () => {
  const service = server.service();
  const rule = { allowedOrigins: "https://a.example", allowedMethods: "GET,PUT", allowedHeaders: "x-*", exposedHeaders: "x-*" };
  await service.setProperties({ cors: [{ ...rule, maxAgeInSeconds: 60 }] });
  const { cors } = await service.getProperties();
  assert.equal(cors.length, 1);
  assert.equal(cors[0].allowedOrigins, rule.allowedOrigins);
  assert.equal(cors[0].maxAgeInSeconds, 60);
});

test("statistics", async () => {
  // The primary has none to tell.
  await assert.rejects(server.service().getStatistics(), { statusCode: 400 });
  const credential = new AzureNamedKeyCredential(ACCOUNT, KEY);
  const secondary = new TableServiceClient(`${server.endpoint}-secondary`, credential, options());
  const { geoReplication } = await secondary.getStatistics();
  assert.ok(["live", "bootstrap", "unavailable"].includes(geoReplication.status));
});
