// Queues and messages through the official queue client: every operation, and what it refuses.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  AccountSASPermissions,
  AccountSASResourceTypes,
  QueueClient,
  QueueSASPermissions,
  QueueServiceClient,
  StorageSharedKeyCredential,
  generateAccountSASQueryParameters,
  generateQueueSASQueryParameters,
} from "@azure/storage-queue";
import { ACCOUNT, KEY, Server, collect, newName, options, refusal } from "../server.js";

const server = new Server();
before(() => server.start());
after(() => server.close());

const credential = new StorageSharedKeyCredential(ACCOUNT, KEY);
const once = { retryOptions: { maxTries: 1 } };
const inMinutes = (minutes) => new Date(Date.now() + minutes * 60_000);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

test("queues are created, listed and deleted", async () => {
  const queues = server.queues();
  const prefix = newName();
  const names = ["a", "b", "c"].map((letter) => prefix + letter);
  for (const name of names) await queues.createQueue(name, { metadata: { key: "value" } });
  const listed = await collect(queues.listQueues({ prefix, includeMetadata: true }));
  assert.deepEqual(listed.map((queue) => [queue.name, queue.metadata]), names.map((name) => [name, { key: "value" }]));
  const pages = await collect(queues.listQueues({ prefix }).byPage({ maxPageSize: 2 }));
  assert.deepEqual(pages.map((page) => page.queueItems.length), [2, 1]);
  assert.ok(pages[0].serviceEndpoint.endsWith(`/${ACCOUNT}/`));
  for (const name of names) await queues.deleteQueue(name);
  assert.deepEqual(await collect(queues.listQueues({ prefix })), []);
  await assert.rejects(queues.deleteQueue(names[0]), refusal(404, "QueueNotFound"));
  await assert.rejects(queues.createQueue("Upper"), refusal(400, "InvalidResourceName"));
  await assert.rejects(queues.createQueue("ab"), refusal(400, "OutOfRangeInput"));
});

test("a name that is taken", async () => {
  const queue = await server.newQueue();
  assert.equal((await queue.create())._response.status, 204);
  assert.equal((await queue.createIfNotExists()).succeeded, false);
  await assert.rejects(queue.create({ metadata: { other: "x" } }), refusal(409, "QueueAlreadyExists"));
});

test("metadata and count", async () => {
  const queue = await server.newQueue();
  await queue.setMetadata({ key0: "val0", keya: "vala" });
  await queue.sendMessage("a");
  const found = await queue.getProperties();
  assert.deepEqual(found.metadata, { key0: "val0", keya: "vala" });
  assert.equal(found.approximateMessagesCount, 1);
  assert.equal(await queue.exists(), true);
});

test("policies", async () => {
  const queue = await server.newQueue();
  const policies = [
    { id: "MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI=",
      accessPolicy: { startsOn: new Date("2017-12-31T11:22:33.456Z"), expiresOn: new Date("2038-12-31T11:22:33.456Z"), permissions: "raup" } },
    { id: "policy2",
      accessPolicy: { startsOn: new Date("2017-12-31T11:22:33.456Z"), expiresOn: new Date("2030-11-30T11:22:33.456Z"), permissions: "a" } },
  ];
  await queue.setAccessPolicy(policies);
  assert.deepEqual((await queue.getAccessPolicy()).signedIdentifiers, policies);
  policies[0].accessPolicy.permissions = "rwdl";
  await assert.rejects(queue.setAccessPolicy(policies), refusal(400, "InvalidXmlDocument"));
});

test("settings and statistics", async () => {
  const queues = server.queues();
  const rule = { allowedOrigins: "https://a.example", allowedMethods: "GET", allowedHeaders: "*", exposedHeaders: "*" };
  await queues.setProperties({ cors: [{ ...rule, maxAgeInSeconds: 60 }] });
  const { cors } = await queues.getProperties();
  assert.equal(cors[0].maxAgeInSeconds, 60);
  const preflight = (origin) =>
    fetch(`${server.queueEndpoint}/any`, {
      method: "OPTIONS",
      headers: { Origin: origin, "Access-Control-Request-Method": "GET" },
    });
  assert.equal((await preflight("https://a.example")).status, 200);
  assert.equal((await preflight("https://b.example")).status, 403);
  // The primary has none to tell.
  await assert.rejects(queues.getStatistics(), { statusCode: 400 });
  const key = new StorageSharedKeyCredential(ACCOUNT, KEY);
  const secondary = new QueueServiceClient(`${server.queueEndpoint}-secondary`, key, options());
  // This version of the client reads the answer and loses it on the way to its caller.
  const { _response: answer } = await secondary.getStatistics();
  assert.match(answer.bodyAsText, /<GeoReplication><Status>live<\/Status>/);
});

test("a message through its life", async () => {
  const queue = await server.newQueue();
  const sent = await queue.sendMessage("one", { messageTimeToLive: Number.MAX_SAFE_INTEGER });
  assert.ok(sent.popReceipt && sent.nextVisibleOn && sent.expiresOn && sent.insertedOn);
  assert.deepEqual((await queue.peekMessages()).peekedMessageItems.map((item) => item.messageText), ["one"]);
  const [got] = (await queue.receiveMessages({ visibilityTimeout: 10 })).receivedMessageItems;
  assert.deepEqual([got.messageId, got.dequeueCount, got.messageText], [sent.messageId, 1, "one"]);
  assert.equal((await queue.receiveMessages()).receivedMessageItems.length, 0);
  await assert.rejects(queue.deleteMessage(sent.messageId, sent.popReceipt), refusal(404, "MessageNotFound"));
  const updated = await queue.updateMessage(got.messageId, got.popReceipt, "", 0);
  assert.ok(updated.popReceipt && updated.nextVisibleOn);
  assert.equal((await queue.peekMessages()).peekedMessageItems[0].messageText, "");
  await queue.deleteMessage(got.messageId, updated.popReceipt);
  await assert.rejects(queue.deleteMessage(got.messageId, updated.popReceipt), refusal(404, "MessageNotFound"));
  await assert.rejects(queue.deleteMessage(got.messageId, "invalid"), refusal(400, "InvalidQueryParameterValue"));
});

test("a message comes back after its time", async () => {
  const queue = await server.newQueue();
  await queue.sendMessage("again");
  const [first] = (await queue.receiveMessages({ visibilityTimeout: 1 })).receivedMessageItems;
  await pause(1200);
  const [second] = (await queue.receiveMessages()).receivedMessageItems;
  assert.deepEqual([second.messageId, second.dequeueCount], [first.messageId, 2]);
});

test("texts come back as they were, up to 64 KiB", async () => {
  const queue = await server.newQueue();
  for (const text of ["", " <a>&amp;</a>\n ", "漢字 🦄 \u00e9", "a".repeat(64 * 1024)]) {
    await queue.sendMessage(text);
    const [got] = (await queue.receiveMessages()).receivedMessageItems;
    assert.equal(got.messageText, text);
  }
  await assert.rejects(queue.sendMessage("a".repeat(64 * 1024 + 1)), refusal(413, "RequestBodyTooLarge"));
});

test("bounds of numbers", async () => {
  const queue = await server.newQueue();
  await assert.rejects(queue.peekMessages({ numberOfMessages: 100 }), refusal(400, "OutOfRangeQueryParameterValue"));
  await assert.rejects(
    queue.sendMessage("x", { messageTimeToLive: 30, visibilityTimeout: 30 }),
    refusal(400, "InvalidQueryParameterValue"),
  );
});

test("clearing", async () => {
  const queue = await server.newQueue();
  for (let index = 0; index < 5; index++) await queue.sendMessage("x");
  await queue.receiveMessages({ numberOfMessages: 2 });
  await queue.clearMessages();
  assert.equal((await queue.getProperties()).approximateMessagesCount, 0);
});

test("signatures", async () => {
  const queue = await server.newQueue();
  await queue.sendMessage("x");
  const sas = (permissions) =>
    generateQueueSASQueryParameters(
      { queueName: queue.name, expiresOn: inMinutes(10), permissions: QueueSASPermissions.parse(permissions) },
      credential,
    );
  const opened = (permissions) => new QueueClient(`${server.queueEndpoint}/${queue.name}?${sas(permissions)}`, undefined, once);
  assert.equal((await opened("r").peekMessages()).peekedMessageItems.length, 1);
  await opened("a").sendMessage("y");
  await assert.rejects(opened("ra").receiveMessages(), refusal(403, "AuthorizationPermissionMismatch"));
  await assert.rejects(opened("raup").clearMessages(), refusal(403, "AuthorizationFailure"));
  const account = (permissions, resourceTypes, services = "btqf") =>
    new QueueServiceClient(
      `${server.queueEndpoint}?${generateAccountSASQueryParameters(
        {
          expiresOn: inMinutes(10),
          permissions: AccountSASPermissions.parse(permissions),
          resourceTypes: AccountSASResourceTypes.parse(resourceTypes).toString(),
          services,
        },
        credential,
      )}`,
      undefined,
      once,
    );
  await account("r", "s").getProperties();
  await assert.rejects(account("r", "co").getProperties(), refusal(403, "AuthorizationResourceTypeMismatch"));
  await assert.rejects(account("r", "s", "bt").getProperties(), refusal(403, "AuthorizationServiceMismatch"));
  await account("c", "c").createQueue(newName());
});
