// Routes keys by a shard map that `larimar shard serve-map` serves. Web APIs only: Node 20, browsers, Deno.

type Placed = { shard: string; state: string; since: number };
type Ranged = Placed & { low: string; high: string | null };
type Hashed = { columns: number; count: number; placements: (Placed & { first: number })[] };
type Layers = { pins: Record<string, Placed>; ranges: Ranged[]; hash: Hashed | null };
type Served = Layers & { epoch: number; key: string[] };
/** A number, a bigint (int64), a text (text, guid), bytes (binary) or a Date (date-time). */
export type Value = number | bigint | string | Uint8Array | Date;

export class ShardMap {
  private constructor(private url: string, public map: Served) {}

  /** Fetches a map, such as http://127.0.0.1:10020/v1/maps/tenants. */
  static async open(url: string): Promise<ShardMap> {
    return new ShardMap(url, await (await fetched(url)).json());
  }

  /** Fetches a newer map if there is one within so many seconds (at most 60). */
  async refresh(waitS = 0): Promise<void> {
    const answer = await fetched(`${this.url}?after=${this.map.epoch}&wait=${waitS}`);
    if (answer.status !== 304) this.map = await answer.json();
  }

  /** Where a key is, or undefined. A value for each column. */
  async route(...key: Value[]): Promise<Placed | undefined> {
    if (key.length !== this.map.key.length) throw new Error(`the key is ${this.map.key}`);
    const { pins, ranges, hash } = this.map;
    const encoded = this.encode(key).map((byte) => byte.toString(16).padStart(2, "0")).join("");
    if (Object.hasOwn(pins, encoded)) return pins[encoded];
    const range = before(ranges, (one) => one.low <= encoded);
    if (range && (range.high === null || encoded < range.high)) return range;
    if (!hash) return undefined;
    const bytes = Uint8Array.from(this.encode(key.slice(0, hash.columns)));
    const digest = new DataView(await crypto.subtle.digest("SHA-256", bytes));
    const number = Math.floor((digest.getUint32(0) * hash.count) / 2 ** 32);
    return before(hash.placements, (one) => one.first <= number);
  }

  private encode(key: Value[]): number[] {
    return key.flatMap((value, index) => column(this.map.key[index]!, value, index + 1 === key.length));
  }
}

async function fetched(url: string): Promise<Response> {
  const answer = await fetch(url);
  if (!answer.ok && answer.status !== 304) throw new Error(`${url}: ${answer.status} ${await answer.text()}`);
  return answer;
}

/** The last element of a sorted list that begins early enough. */
function before<T>(list: T[], begins: (one: T) => boolean): T | undefined {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (begins(list[middle]!)) low = middle + 1;
    else high = middle;
  }
  return list[low - 1];
}

function column(kind: string, value: Value, isLast: boolean): number[] {
  const big = (number: bigint, size: number): number[] => {
    if (number < 0n || number >> BigInt(8 * size)) throw new RangeError(`${value} is no ${kind}`);
    const shifts = Array.from({ length: size }, (_, index) => BigInt(8 * (size - 1 - index)));
    return shifts.map((shift) => Number((number >> shift) & 255n));
  };
  if (kind === "int32") return big(BigInt(value as number) + 2n ** 31n, 4);
  if (kind === "int64") return big(BigInt(value as bigint) + 2n ** 63n, 8);
  const pairs = () => (value as string).replaceAll("-", "").match(/../g) ?? [];
  if (kind === "guid") return pairs().map((pair) => parseInt(pair, 16));
  // Milliseconds since 1970 as units of 100 ns since 1601.
  if (kind === "date-time") return big(BigInt((value as Date).getTime()) * 10000n + 116444736000000000n, 8);
  // Half of a surrogate pair has no UTF-8: encodeURIComponent refuses it, TextEncoder would replace it.
  if (kind === "text") encodeURIComponent(value as string);
  const bytes = kind === "text" ? new TextEncoder().encode(value as string) : (value as Uint8Array);
  return isLast ? [...bytes] : [...[...bytes].flatMap((byte) => (byte ? [byte] : [0, 255])), 0, 1];
}
