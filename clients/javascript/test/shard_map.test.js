// The small client of `larimar shard serve-map`: its types are checked and taken away by the compiler, then it routes
// as the server does.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import ts from "typescript";
import { BINARY } from "../server.js";

const EXAMPLES = new URL("../../../examples/sharding/", import.meta.url);
const SOURCE = fileURLToPath(new URL("shard_map.ts", EXAMPLES));
const KEYS = 10_000;
const AT_ONCE = 50;

const folder = mkdtempSync(join(tmpdir(), "larimar-shard-"));
const home = `file:${join(folder, "routes.map")}`;
const options = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, strict: true, noUncheckedIndexedAccess: true };
let server, address, ShardMap;

before(async () => {
  const description = fileURLToPath(new URL("routes.toml", EXAMPLES));
  const made = spawnSync(BINARY, ["shard", "map", "init", description, "--home", home], { encoding: "utf8" });
  assert.equal(made.status, 0, made.stderr);
  server = spawn(BINARY, ["shard", "serve-map", "--home", home, "--port", "0"], { stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface(server.stdout)) {
    address = line.replace("/v1/catalog", "");
    break;
  }
  const compiled = ts.transpileModule(readFileSync(SOURCE, "utf8"), { compilerOptions: options }).outputText;
  const module = join(folder, "shard_map.mjs");
  writeFileSync(module, compiled);
  ({ ShardMap } = await import(pathToFileURL(module)));
});

after(() => {
  server?.kill();
  rmSync(folder, { recursive: true });
});

test("its types are right", () => {
  const checked = { ...options, noEmit: true, types: [], lib: ["lib.es2022.d.ts", "lib.dom.d.ts"] };
  const program = ts.createProgram([SOURCE], checked);
  const found = ts.getPreEmitDiagnostics(program).map((one) => ts.flattenDiagnosticMessageText(one.messageText, " "));
  assert.deepEqual(found, []);
});

// A generator with a seed: xorshift of 32 bits.
let state = 42;
const below = (count) => {
  state ^= state << 13;
  state ^= state >>> 17;
  state ^= state << 5;
  return (state >>> 0) % count;
};
const pick = (...values) => values[below(values.length)];
const bytes = (size) => Uint8Array.from({ length: size }, () => pick(0, 1, 255, below(256)));
const hex = (value) => Buffer.from(value).toString("hex");

// A value, and its text.
function valueOf(kind) {
  if (kind === "int32") {
    const value = pick(below(2 ** 32) - 2 ** 31, below(2000) - 1000, pick(-500, 99, 100, 299, 300, -(2 ** 31), 2 ** 31 - 1));
    return [value, String(value)];
  }
  if (kind === "int64") {
    const value = BigInt.asIntN(64, (BigInt(below(2 ** 32)) << 32n) | BigInt(below(2 ** 32)));
    const chosen = pick(value, BigInt(below(2000) - 1000), pick(-1n, 99n, 100n, -(2n ** 63n), 2n ** 63n - 1n));
    return [chosen, String(chosen)];
  }
  if (kind === "guid") {
    const text = hex(bytes(16)).replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
    return [text, text];
  }
  if (kind === "date-time") {
    const at = new Date(below(2 ** 31) * 1000 + below(1000));
    return [at, at.toISOString()];
  }
  if (kind === "binary") {
    const value = bytes(below(6));
    return [value, hex(value)];
  }
  const characters = Array.from({ length: below(6) }, () => pick("\0", "\u0001", "a", "m", "n", " ", "ü", "€", "😀", "+", "&"));
  const text = pick("eu", "us", "us\0", "a\0", "m", "n\0", characters.join(""));
  return [text, text];
}

test("10,000 keys are routed as Rust routes them", async () => {
  const { maps } = await (await fetch(`${address}/v1/catalog`)).json();
  const clients = await Promise.all(maps.map(({ name }) => ShardMap.open(`${address}/v1/maps/${name}`)));
  const layers = new Set();
  const check = async (number) => {
    const client = clients[number % clients.length];
    const { name, key: kinds } = maps[number % maps.length];
    const key = kinds.map(valueOf);
    const query = key.map(([, text]) => `key=${encodeURIComponent(text)}`).join("&");
    const expected = await (await fetch(`${address}/v1/maps/${name}/route?${query}`)).json();
    const found = await client.route(...key.map(([value]) => value));
    assert.deepEqual([found?.shard, found?.since], [expected.shard, expected.since], `${name} ${query}`);
    layers.add(expected.mapping.split("-")[0]);
  };
  for (let first = 0; first < KEYS; first += AT_ONCE) {
    await Promise.all(Array.from({ length: AT_ONCE }, (_, index) => check(first + index)));
  }
  assert.deepEqual([...layers].sort(), ["pin", "range", "virtual"]);
});

test("a value that is none of its kind is refused, and nothing newer is no error", async () => {
  const numbers = await ShardMap.open(`${address}/v1/maps/numbers`);
  await assert.rejects(numbers.route(2 ** 31), RangeError);
  await assert.rejects(numbers.route(1, 2));
  const { map } = numbers;
  await numbers.refresh();
  assert.equal(numbers.map, map);
  const texts = await ShardMap.open(`${address}/v1/maps/texts`);
  await assert.rejects(texts.route("\ud800"), URIError);
});
