// What an unmodified client gets of a server that simulates the published targets.
//
// `node targets.js [SECONDS]` starts the release binary with `--simulate`, measures for about a minute and prints four
// lines; it ends with 1 if one is off. Timings are no tests: the same limits are tested in virtual time in
// crates/front_end/tests/simulation.rs.
//
// 1. One partition takes 2,000 entities a second, by batches of 100 without retries.
// 2. Two partitions at the same time take as much each.
// 3. With the client's own retries every row arrives, and is there once.
// 4. Eleven partitions together take as much as their account, whose target is lowered to what a client can exceed.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { AzureNamedKeyCredential, TableClient } from "@azure/data-tables";
import { ACCOUNT, KEY, Server, options } from "./server.js";

const PARTITION_TARGET = 2000;
const ACCOUNT_TARGET = 1000;
const TOLERANCE = 0.05;
const BATCH = 100;
// A bucket is full at first: what it holds beyond a second's refill is spent before the measurement.
const WARM_UP_MS = 3000;
const SECONDS = Number(process.argv[2] ?? 15);
// Requests that one client has under way: enough that a refused one is followed at once by another.
const AT_ONCE = 2;

const client = (server, some = options()) =>
  new TableClient(server.endpoint, "Targets", new AzureNamedKeyCredential(ACCOUNT, KEY), {
    allowInsecureConnection: true,
    ...some,
  });

const batch = (partitionKey, first) =>
  Array.from({ length: BATCH }, (_, at) => [
    "create",
    { partitionKey, rowKey: String(first + at).padStart(9, "0"), V: first + at },
  ]);

// Offers requests one after another until the end; gives how many a second were taken within the measurement. Each
// lane has a client of its own: one client mixes transactions that are under way at the same time.
async function rate(newOffer, worth) {
  const start = performance.now() + WARM_UP_MS;
  const end = start + SECONDS * 1000;
  let taken = 0;
  await Promise.all(
    Array.from({ length: AT_ONCE }, async (_, lane) => {
      const offer = newOffer();
      for (let number = lane; performance.now() < end; number += AT_ONCE) {
        try {
          await offer(number);
        } catch (error) {
          if (error.statusCode !== 404) {
            if (error.statusCode !== 503) throw error;
            continue;
          }
        }
        const now = performance.now();
        if (now >= start && now < end) taken += worth;
      }
    }),
  );
  return taken / SECONDS;
}

const insertBatches = (server, partition) =>
  rate(() => {
    const table = client(server);
    return (number) => table.submitTransaction(batch(partition, number * BATCH));
  }, BATCH);

// Point gets of what is not there: each is a request of the account.
const getRows = (server, partition) =>
  rate(() => {
    const table = client(server);
    return () => table.getEntity(partition, "r");
  }, 1);

let isRight = true;
const say = (text, isSo) => {
  isRight &&= isSo;
  console.log(`${text}: ${isSo ? "as it should be" : "OFF"}`);
};
const isNear = (rate, target) => Math.abs(rate - target) <= TOLERANCE * target;

let server = await new Server("--simulate", "azure").start();
await client(server).createTable();
const one = await insertBatches(server, "one");
say(`one partition: ${one.toFixed(0)} entities/s`, isNear(one, PARTITION_TARGET));
const two = await Promise.all(["two", "three"].map((partition) => insertBatches(server, partition)));
const each = two.map((rate) => rate.toFixed(0)).join(" and ");
say(`two partitions: ${each} entities/s`, two.every((rate) => isNear(rate, PARTITION_TARGET)));

const ROWS = 20_000;
const retrying = client(server, {});
const started = performance.now();
for (let first = 0; first < ROWS; first += BATCH) await retrying.submitTransaction(batch("whole", first));
const tookS = (performance.now() - started) / 1000;
const found = [];
const query = { queryOptions: { filter: "PartitionKey eq 'whole'", select: ["RowKey"] } };
for await (const row of retrying.listEntities(query)) found.push(Number(row.rowKey));
const isWhole = found.length === ROWS && found.every((row, at) => row === at);
say(`with retries: ${ROWS} rows in ${tookS.toFixed(1)} s, each there once`, isWhole);
await server.close();

server = new Server();
const rules = join(server.folder, "rules.toml");
writeFileSync(rules, `profile = "azure"\n[limits]\naccount_requests_per_second = ${ACCOUNT_TARGET}\n`);
server.args.push("--simulate", rules);
await server.start();
await client(server).createTable();
const eleven = await Promise.all(Array.from({ length: 11 }, (_, number) => getRows(server, `p${number}`)));
const sum = eleven.reduce((sum, rate) => sum + rate, 0);
say(`eleven partitions: ${sum.toFixed(0)} requests/s of their account`, isNear(sum, ACCOUNT_TARGET));
await server.close();
process.exit(isRight ? 0 : 1);
