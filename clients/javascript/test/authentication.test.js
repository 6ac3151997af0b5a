// Who may ask, as this client signs.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { AzureNamedKeyCredential, TableServiceClient } from "@azure/data-tables";
import { ACCOUNT, KEY, Server, collect, newName, options, refusal } from "../server.js";

const server = new Server();
before(() => server.start());
after(() => server.close());

test("the right key passes, another is refused", async () => {
  const list = (name, key) =>
    collect(new TableServiceClient(server.endpoint, new AzureNamedKeyCredential(name, key), options()).listTables());
  assert.ok(Array.isArray(await list(ACCOUNT, KEY)));
  const other = Buffer.from("another key").toString("base64");
  await assert.rejects(list(ACCOUNT, other), refusal(403, "AuthenticationFailed"));
  await assert.rejects(list("someoneelse", KEY), refusal(403, "AuthenticationFailed"));
});

test("no signature is refused, and changes nothing", async () => {
  const name = newName();
  const answer = await fetch(`${server.endpoint}/Tables`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "x-ms-version": "2019-02-02" },
    body: JSON.stringify({ TableName: name }),
  });
  assert.equal(answer.status, 401);
  assert.match(await answer.text(), /NoAuthenticationInformation/);
  assert.ok(!(await collect(server.service().listTables())).some((table) => table.name === name));
});
