// Encrypted connections, and bearer tokens in the development mode.

import { after, before, describe, test } from "node:test";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { AzureNamedKeyCredential, TableClient, TableServiceClient } from "@azure/data-tables";
import { ACCOUNT, CERTIFICATE, CERTIFICATE_KEY, KEY, Server, collect, newName, refusal } from "../server.js";

const STORAGE = "https://storage.azure.com";
const options = () => ({
  retryOptions: { maxRetries: 0 },
  tlsOptions: { ca: readFileSync(CERTIFICATE, "utf8") },
});

// Issues tokens as the identity service would, but for the signature.
function tokens({ audience = STORAGE, livesFor = 300, issuer = "https://sts.windows.net/tenant/" } = {}) {
  const encoded = (part) => Buffer.from(JSON.stringify(part)).toString("base64url");
  const now = Math.floor(Date.now() / 1000);
  const claims = { iss: issuer, aud: audience, nbf: now - 60, iat: now - 60, exp: now + livesFor };
  const token = `${encoded({ alg: "RS256", typ: "JWT" })}.${encoded(claims)}.AAAA`;
  return { getToken: async () => ({ token, expiresOnTimestamp: (now + 3600) * 1000 }) };
}

describe("TLS", { skip: Boolean(process.env.LARIMAR_ENDPOINT) }, () => {
  const server = new Server("--tls-cert", CERTIFICATE, "--tls-key", CERTIFICATE_KEY, "--oauth", "basic");
  before(() => server.start());
  after(() => server.close());

  for (const [how, credential] of [
    ["a shared key", () => new AzureNamedKeyCredential(ACCOUNT, KEY)],
    ["a token", () => tokens()],
    ["a token for the account", () => tokens({ audience: `https://${ACCOUNT}.table.core.windows.net/` })],
  ]) {
    test(`${how} over TLS`, async () => {
      assert.match(server.base, /^https:/);
      const table = new TableClient(server.endpoint, newName(), credential(), options());
      await table.createTable();
      await table.createEntity({ partitionKey: "p", rowKey: "r", value: "ä".repeat(5000) });
      const [entity] = await collect(table.listEntities());
      assert.equal(entity.value, "ä".repeat(5000));
      await table.deleteTable();
    });
  }

  for (const wrong of [{ audience: "https://vault.azure.net" }, { issuer: "https://example.org/" }, { livesFor: -1 }]) {
    test(`a wrong token: ${Object.keys(wrong)[0]}`, async () => {
      const service = new TableServiceClient(server.endpoint, tokens(wrong), options());
      await assert.rejects(() => collect(service.listTables()), refusal(403, "AuthenticationFailed"));
    });
  }

  test("a stranger's certificate is not trusted", async () => {
    const credential = new AzureNamedKeyCredential(ACCOUNT, KEY);
    const service = new TableServiceClient(server.endpoint, credential, { retryOptions: { maxRetries: 0 } });
    await assert.rejects(() => collect(service.listTables()), /certificate/);
  });
});
