// A server as a user would run it: the release binary on a free port, with a data folder of its own.

import { spawn } from "node:child_process";
import { mkdtempSync, openSync, closeSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { randomBytes } from "node:crypto";
import { fileURLToPath } from "node:url";
import { TableClient, TableServiceClient, odata } from "@azure/data-tables";
import { BlobServiceClient } from "@azure/storage-blob";
import { QueueServiceClient } from "@azure/storage-queue";

export const BINARY =
  process.env.LARIMAR_BIN ?? fileURLToPath(new URL("../../target/release/larimar", import.meta.url));
const START_TIMEOUT_MS = 30_000;

export const ACCOUNT = "devstoreaccount1";
export const KEY =
  "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

// A server error that a client retries away would go unseen. (A client keeps its endpoint in the options it is given,
// so each needs its own.)
export const options = () => ({ allowInsecureConnection: true, retryOptions: { maxRetries: 0 } });

const CERTIFICATES = new URL("../../crates/front_end/tests/certificates/", import.meta.url);

// A certificate for localhost and 127.0.0.1 that signs itself, and its key.
export const CERTIFICATE = fileURLToPath(new URL("server.pem", CERTIFICATES));
export const CERTIFICATE_KEY = fileURLToPath(new URL("server-key.pem", CERTIFICATES));

export class Server {
  constructor(...args) {
    this.args = args;
    this.folder = mkdtempSync(join(tmpdir(), "larimar-test-"));
  }

  async start() {
    if (process.env.LARIMAR_ENDPOINT) {
      this.base = process.env.LARIMAR_ENDPOINT;
      const host = `http://${new URL(this.base).hostname}`;
      this.queueBase = process.env.LARIMAR_QUEUE_ENDPOINT ?? `${host}:10001`;
      this.blobBase = process.env.LARIMAR_BLOB_ENDPOINT ?? `${host}:10000`;
      return this;
    }
    const readyFile = join(this.folder, "ready.json");
    rmSync(readyFile, { force: true });
    const log = openSync(join(this.folder, "server.log"), "a");
    const args = ["--data", join(this.folder, "data"), "--host", "127.0.0.1", "--ready-file", readyFile];
    // Rules that every server of a run follows, such as boundaries at every page.
    if (process.env.LARIMAR_SIMULATE) args.push("--simulate", process.env.LARIMAR_SIMULATE);
    args.push("--table-port", "0", "--blob-port", "0", "--queue-port", "0");
    args.push("--admin-port", "none", ...this.args);
    const env = { ...process.env };
    delete env.LARIMAR_ACCOUNTS;
    delete env.AZURITE_ACCOUNTS;
    this.process = spawn(BINARY, args, { stdio: ["ignore", log, log], env });
    closeSync(log);
    this.exited = new Promise((resolve, reject) => {
      this.process.once("exit", (code, signal) => resolve({ code, signal }));
      this.process.once("error", reject);
    });
    const deadline = Date.now() + START_TIMEOUT_MS;
    for (;;) {
      try {
        const ready = JSON.parse(readFileSync(readyFile, "utf8"));
        if (ready.pid === this.process.pid) {
          this.base = ready.table.replace(/\/$/, "");
          this.queueBase = ready.queue.replace(/\/$/, "");
          this.blobBase = ready.blob.replace(/\/$/, "");
          return this;
        }
      } catch (error) {
        if (error.code !== "ENOENT" && !(error instanceof SyntaxError)) throw error;
      }
      if (this.process.exitCode !== null || Date.now() > deadline) {
        throw new Error(`the server did not get ready:\n${readFileSync(join(this.folder, "server.log"), "utf8")}`);
      }
      await Promise.race([new Promise((resolve) => setTimeout(resolve, 5)), this.exited]);
    }
  }

  // Sends a signal; resolves to how the process ended.
  async stop(signal = "SIGTERM") {
    this.process.kill(signal);
    return this.exited;
  }

  async close() {
    if (this.process && this.process.exitCode === null && this.process.signalCode === null) {
      await this.stop("SIGKILL");
    }
    rmSync(this.folder, { recursive: true, force: true });
  }

  get endpoint() {
    return `${this.base}/${ACCOUNT}`;
  }

  get queueEndpoint() {
    return `${this.queueBase}/${ACCOUNT}`;
  }

  get connectionString() {
    return (
      `DefaultEndpointsProtocol=http;AccountName=${ACCOUNT};AccountKey=${KEY};` +
      `BlobEndpoint=${this.blobBase}/${ACCOUNT};QueueEndpoint=${this.queueEndpoint};TableEndpoint=${this.endpoint};`
    );
  }

  service() {
    return TableServiceClient.fromConnectionString(this.connectionString, options());
  }

  table(name) {
    return TableClient.fromConnectionString(this.connectionString, name, options());
  }

  queues() {
    return QueueServiceClient.fromConnectionString(this.connectionString, { retryOptions: { maxTries: 1 } });
  }

  blobs() {
    return BlobServiceClient.fromConnectionString(this.connectionString, { retryOptions: { maxTries: 1 } });
  }

  async newContainer() {
    const container = this.blobs().getContainerClient(newName());
    await container.create();
    return container;
  }

  async newQueue() {
    const queue = this.queues().getQueueClient(newName());
    await queue.create();
    return queue;
  }

  async newTable() {
    const table = this.table(newName());
    await table.createTable();
    return table;
  }
}

// The next page; where every page ends early, as the step `boundaries` has them do, of so many pages that it has that
// size. It has the token of the last one.
export async function nextPage(pages, size) {
  const page = (await pages.next()).value;
  while (process.env.LARIMAR_SIMULATE && page.length < size) {
    const next = (await pages.next()).value;
    page.push(...next);
    page.continuationToken = next.continuationToken;
  }
  return page;
}

export function newName() {
  return `t${randomBytes(8).toString("hex")}`;
}

export async function collect(iterator) {
  const items = [];
  for await (const item of iterator) items.push(item);
  return items;
}

// What `assert.rejects` compares with: the status and the code that the service answered.
export function refusal(statusCode, code) {
  return (error) => {
    const inBody = /<code>([^<]*)<\/code>/i.exec(error.response?.bodyAsText ?? "")?.[1];
    const found = error.details?.odataError?.code ?? inBody ?? error.code;
    if (error.statusCode !== statusCode || found !== code) {
      throw new Error(`expected ${statusCode} ${code}, got ${error.statusCode} ${found}: ${error.message}`);
    }
    return true;
  };
}

export { odata };
