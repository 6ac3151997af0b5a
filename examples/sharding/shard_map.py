"""Routes keys by a shard map that `larimar shard serve-map` serves. Python's standard library only."""

import bisect, datetime, hashlib, json, urllib.error, urllib.request, uuid

START = datetime.datetime(1601, 1, 1, tzinfo=datetime.timezone.utc)
COLUMN = {
    "int32": lambda number: (number + (1 << 31)).to_bytes(4, "big"),
    "int64": lambda number: (number + (1 << 63)).to_bytes(8, "big"),
    "guid": lambda guid: uuid.UUID(str(guid)).bytes,
    "date-time": lambda at: ((at - START) // datetime.timedelta(microseconds=1) * 10).to_bytes(8, "big"),
    "text": lambda text: text.encode(),
    "binary": lambda raw: bytes(raw),
}


class ShardMap:
    def __init__(self, url):  # http://127.0.0.1:10020/v1/maps/tenants
        self.url, self.map = url, {"epoch": 0}
        self.refresh()

    def refresh(self, wait_s=0):
        """Fetches the map, or a newer one if there is one within so many seconds (at most 60)."""
        query = f"?after={self.map['epoch']}&wait={wait_s}"
        try:
            with urllib.request.urlopen(self.url + query, timeout=wait_s + 10) as answer:
                self.map = json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code != 304:  # Not Modified
                raise

    def route(self, *key):  # a value for each column
        """Where a key is: a dict with shard, state and since, or None."""
        kinds, hashed, encoded = self.map["key"], self.map["hash"], encode(self.map["key"], key).hex()
        found = self.map["pins"].get(encoded) or last(self.map["ranges"], "low", encoded)
        if found and (found.get("high") is None or encoded < found["high"]):
            return found
        if not hashed:
            return None
        digest = hashlib.sha256(encode(kinds[: hashed["columns"]], key[: hashed["columns"]])).digest()
        return last(hashed["placements"], "first", int.from_bytes(digest[:4], "big") * hashed["count"] >> 32)


def last(places, field, value):  # the last one that begins at or before a value
    at = bisect.bisect_right(places, value, key=lambda place: place[field])
    return places[at - 1] if at else None


def encode(kinds, key):  # bytes in the order of keys; what has no fixed length has an end before further columns
    columns = [(kind, COLUMN[kind](value)) for kind, value in zip(kinds, key, strict=True)]
    ended = [raw.replace(b"\0", b"\0\xff") + b"\0\1" if kind in ("text", "binary") else raw for kind, raw in columns]
    return b"".join(ended[:-1]) + columns[-1][1]
