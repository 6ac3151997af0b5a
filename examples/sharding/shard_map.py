"""Routes keys by a shard map that `larimar shard serve-map` serves. Python's standard library only."""

import bisect
import datetime
import hashlib
import json
import urllib.error
import urllib.request
import uuid

EPOCH = datetime.datetime(1601, 1, 1, tzinfo=datetime.timezone.utc)


class ShardMap:
    def __init__(self, url):  # http://127.0.0.1:10020/v1/maps/tenants
        self.url, self.map = url, None
        self.refresh()

    def refresh(self, wait_s=0):
        """Fetches the map; later, fetches a newer one if there is one within so many seconds (at most 60)."""
        query = f"?after={self.map['epoch']}&wait={wait_s}" if self.map else ""
        try:
            with urllib.request.urlopen(self.url + query, timeout=wait_s + 10) as answer:
                self.map = json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code != 304:  # Not Modified
                raise

    def route(self, *key):
        """Where a key is: a dict with shard, state and since, or None. A value for each column."""
        if len(key) != len(self.map["key"]):
            raise ValueError(f"the key is {self.map['key']}")
        encoded, hashed = self._encode(key).hex(), self.map["hash"]
        if pin := self.map["pins"].get(encoded):
            return pin
        for found in _before(self.map["ranges"], "low", encoded):
            if found["high"] is None or encoded < found["high"]:
                return found
        if hashed:
            digest = hashlib.sha256(self._encode(key[: hashed["columns"]])).digest()
            number = int.from_bytes(digest[:4], "big") * hashed["count"] >> 32
            return _before(hashed["placements"], "first", number)[0]
        return None

    def _encode(self, key):
        columns = enumerate(zip(self.map["key"], key), start=1)
        return b"".join(_column(kind, value, at == len(key)) for at, (kind, value) in columns)


def _before(sorted_list, field, value):
    """The last element that begins at or before a value, as a list of one or none."""
    at = bisect.bisect_right(sorted_list, value, key=lambda one: one[field])
    return sorted_list[at - 1 : at] if at else []


def _column(kind, value, is_last):
    if kind in ("int32", "int64"):
        bits = int(kind[3:])
        return (value + (1 << (bits - 1))).to_bytes(bits // 8, "big")
    if kind == "guid":
        return uuid.UUID(str(value)).bytes
    if kind == "date-time":  # a datetime with its zone; finer than 1 µs it is not
        return ((value - EPOCH) // datetime.timedelta(microseconds=1) * 10).to_bytes(8, "big")
    raw = value.encode() if kind == "text" else bytes(value)
    return raw if is_last else raw.replace(b"\0", b"\0\xff") + b"\0\x01"
