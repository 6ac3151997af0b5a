// Routes keys by a shard map that `larimar shard serve-map` serves. Web APIs only: Node 20, browsers, Deno.

type Place = { shard: string; state: string; since: number; low: string; high?: string | null; first: number };
type Hashed = { columns: number; count: number; placements: Place[] };
type Served = { epoch: number; key: string[]; pins: Record<string, Place>; ranges: Place[]; hash: Hashed | null };
/** A number, a bigint (int64), a text (text, guid), bytes (binary) or a Date (date-time). */
export type Value = number | bigint | string | Uint8Array | Date;

export class ShardMap {
  map = { epoch: 0 } as Served;
  private constructor(private url: string) {}

  /** Fetches a map, such as http://127.0.0.1:10020/v1/maps/tenants. */
  static async open(url: string): Promise<ShardMap> {
    const opened = new ShardMap(url);
    await opened.refresh();
    return opened;
  }

  /** Fetches a newer map if there is one within so many seconds (at most 60). */
  async refresh(waitS = 0): Promise<void> {
    const answer = await fetch(`${this.url}?after=${this.map.epoch}&wait=${waitS}`);
    if (answer.ok) this.map = await answer.json();
    else if (answer.status !== 304) throw new Error(`${this.url}: ${answer.status} ${await answer.text()}`);
  }

  /** Where a key is, or undefined. A value for each column. */
  async route(...key: Value[]): Promise<Place | undefined> {
    const { key: kinds, pins, ranges, hash } = this.map;
    if (key.length !== kinds.length) throw new Error(`the key is ${kinds}`);
    const encoded = encode(kinds, key).map((byte) => byte.toString(16).padStart(2, "0")).join("");
    const found = Object.hasOwn(pins, encoded) ? pins[encoded] : last(ranges, (one) => one.low <= encoded);
    if (found && (found.high == null || encoded < found.high)) return found;
    if (!hash) return undefined;
    const bytes = Uint8Array.from(encode(kinds, key.slice(0, hash.columns)));
    const digest = new DataView(await crypto.subtle.digest("SHA-256", bytes));
    const number = Math.floor((digest.getUint32(0) * hash.count) / 2 ** 32);
    return last(hash.placements, (one) => one.first <= number);
  }
}

/** The last of sorted places that begins early enough. */
function last(places: Place[], begins: (one: Place) => boolean): Place | undefined {
  let [low, high] = [0, places.length];
  for (let middle = high >> 1; low < high; middle = (low + high) >> 1) {
    if (begins(places[middle]!)) low = middle + 1;
    else high = middle;
  }
  return places[low - 1];
}

/** Bytes in the order of keys; what has no fixed length has an end before further columns. */
function encode(kinds: string[], key: Value[]): number[] {
  const ended = (bytes: number[]) => [...bytes.flatMap((byte) => (byte ? [byte] : [0, 255])), 0, 1];
  const isEnded = (at: number) => at + 1 < key.length && ["text", "binary"].includes(kinds[at]!);
  return key.map((value, at) => column(kinds[at]!, value)).flatMap((bytes, at) => (isEnded(at) ? ended(bytes) : bytes));
}

function column(kind: string, value: Value): number[] {
  const unhex = (digits: string) => (digits.match(/../g) ?? []).map((pair) => parseInt(pair, 16));
  if (kind === "binary") return [...(value as Uint8Array)];
  if (kind === "guid") return unhex((value as string).replaceAll("-", ""));
  // Half of a surrogate pair has no UTF-8: encodeURIComponent refuses it, TextEncoder would replace it.
  const utf8 = (text: string) => (encodeURIComponent(text), [...new TextEncoder().encode(text)]);
  if (kind === "text") return utf8(value as string);
  // A Date has milliseconds since 1970: units of 100 ns since 1601.
  const number = value instanceof Date ? BigInt(value.getTime()) * 10000n + 116444736000000000n
    : BigInt(value as bigint) + (kind === "int32" ? 2n ** 31n : 2n ** 63n);
  const digits = number.toString(16).padStart(kind === "int32" ? 8 : 16, "0");
  if (number < 0n || digits.length > (kind === "int32" ? 8 : 16)) throw new RangeError(`${value} is no ${kind}`);
  return unhex(digits);
}
