"""The small client of `larimar shard serve-map`, and the command line that makes the map it reads."""

import datetime
import http.client
import json
import os
import random
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid
from contextlib import contextmanager
from urllib.parse import quote, urlsplit

import pytest

from larimar_server import BINARY, ROOT, clean_environment

sys.path.insert(0, str(ROOT / "examples" / "sharding"))

from shard_map import ShardMap  # noqa: E402

pytestmark = pytest.mark.skipif("LARIMAR_ENDPOINT" in os.environ, reason="starts servers of its own")

DESCRIPTIONS = ROOT / "examples" / "sharding"
KEYS = 10_000
SEED = 42


def shard(*arguments, code=0):
    command = [str(BINARY), "shard", *map(str, arguments)]
    finished = subprocess.run(command, capture_output=True, text=True, env=clean_environment({}), timeout=30)
    assert finished.returncode == code, finished
    return finished.stdout if code == 0 else finished.stderr or finished.stdout


@contextmanager
def served(home):
    command = [str(BINARY), "shard", "serve-map", "--home", home, "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=clean_environment({}))
    try:
        yield process.stdout.readline().strip().removesuffix("/v1/catalog")
    finally:
        process.terminate()
        assert process.wait(20) == 0


@pytest.fixture
def home(tmp_path):
    return f"file:{tmp_path / 'routes.map'}"


def text_of(value):
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime.datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return str(value)


def value_of(kind, chance):
    if kind in ("int32", "int64"):
        bits = int(kind[3:])
        full = chance.randrange(-(1 << (bits - 1)), 1 << (bits - 1))
        bounds = [-500, 99, 100, 299, 300, -(1 << (bits - 1)), (1 << (bits - 1)) - 1]
        return chance.choice([full, chance.randrange(-1000, 1000), chance.choice(bounds)])
    if kind == "guid":
        return uuid.UUID(int=chance.getrandbits(128))
    if kind == "date-time":
        start = datetime.datetime(1990, 1, 1, tzinfo=datetime.timezone.utc)
        return start + datetime.timedelta(microseconds=chance.randrange(60 * 365 * 86400 * 10**6))
    size = chance.randrange(6)
    if kind == "binary":
        return bytes(chance.choice([0, 1, 255, chance.randrange(256)]) for _ in range(size))
    characters = "".join(chance.choice("\0\1amnz ü€😀+&%") for _ in range(size))
    return chance.choice(["eu", "us", "us\0", "a\0", "m", "n\0", characters])


def test_ten_thousand_keys_are_routed_as_rust_routes_them(home):
    shard("map", "init", DESCRIPTIONS / "routes.toml", "--home", home)
    chance = random.Random(SEED)
    with served(home) as address:
        with urllib.request.urlopen(f"{address}/v1/catalog") as answer:
            names = [one["name"] for one in json.load(answer)["maps"]]
        maps = {name: ShardMap(f"{address}/v1/maps/{name}") for name in names}
        connection = http.client.HTTPConnection(urlsplit(address).netloc)
        mappings = set()
        for number in range(KEYS):
            name = names[number % len(names)]
            key = [value_of(kind, chance) for kind in maps[name].map["key"]]
            query = "&".join("key=" + quote(text_of(value), safe="") for value in key)
            connection.request("GET", f"/v1/maps/{name}/route?{query}")
            expected = json.load(connection.getresponse())
            found = maps[name].route(*key) or {}
            for field in ("shard", "state", "since"):
                assert found.get(field) == expected[field], (name, key, SEED)
            mappings.add((name, expected["mapping"]))
        # Pins, ranges and virtual shards all had keys.
        assert {mapping.split("-")[0] for _, mapping in mappings} == {"pin", "range", "virtual"}


def test_a_change_wakes_those_who_wait(home):
    shard("map", "init", DESCRIPTIONS / "routes.toml", "--home", home)
    with served(home) as address:
        tenants = ShardMap(f"{address}/v1/maps/tenants")
        assert tenants.route("eu", 5)["shard"] == "b"
        request = urllib.request.Request(tenants.url, headers={"If-None-Match": '"1"'})
        with pytest.raises(urllib.error.HTTPError) as unchanged:
            urllib.request.urlopen(request)
        assert unchanged.value.code == 304
        started_at = time.monotonic()
        change = threading.Timer(0.5, shard, ["map", "pin", "tenants", "c", "eu", "5", "--no-data", "--home", home])
        change.start()
        tenants.refresh(wait_s=30)
        assert time.monotonic() - started_at < 20
        change.join()
        assert tenants.route("eu", 5)["shard"] == "c"


def test_the_book_catalogue_asks_three_databases(home):
    books = DESCRIPTIONS / "books.toml"
    assert "dry run" in shard("map", "init", books, "--home", home, "--dry-run")
    assert "there is no shard map here" in shard("map", "show", "--home", home, code=1)
    shard("map", "init", books, "--home", home)
    assert shard("map", "lint", books) == "no advice\n"
    with served(home) as address:
        catalogue = ShardMap(f"{address}/v1/maps/books")
        digits = [catalogue.route(digit)["shard"] for digit in "0123456789X"]
    assert "".join(digits) == "aaaabbbbccc"
    history = json.loads(shard("map", "history", "--home", home, "--json"))
    assert [entry["change"]["to"] for entry in history] == [1]


def test_only_reads_of_this_machine_are_answered(home):
    shard("map", "init", DESCRIPTIONS / "books.toml", "--home", home)
    with served(home) as address:
        connection = http.client.HTTPConnection(urlsplit(address).netloc)

        def ask(method, path, headers={}):
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read(), answer.headers

        status, body, headers = ask("GET", "/v1/maps/books")
        assert (status, headers["ETag"]) == (200, '"1"')
        status, nothing, headers = ask("HEAD", "/v1/maps/books")
        assert (status, nothing, int(headers["Content-Length"])) == (200, b"", len(body))
        status, _, headers = ask("DELETE", "/v1/maps/books")
        assert (status, headers["Allow"]) == (405, "GET, HEAD")
        assert ask("GET", "/v1/catalog", {"Host": "evil.example"})[0] == 403
        assert ask("GET", "/v1/catalog", {"Origin": "http://localhost"})[0] == 403
        assert ask("GET", "/v1/maps/films")[0] == 404


def test_what_makes_no_sense_is_one_clear_line(home, tmp_path):
    mistaken = tmp_path / "mistaken.toml"
    mistaken.write_text('catalog = "a"\n[maps.m]\nkeys = "int32"\n')
    line = f"larimar: {mistaken}: line 3: a map has no key \"keys\"; did you mean key?\n"
    assert shard("map", "init", mistaken, "--home", home, code=2) == line
    assert "has a password" in shard("map", "show", "--home", "postgres://a:SECRET@db/x", code=2)
    assert "--features postgres" in shard("map", "show", "--home", "postgres://a@db/x", code=2)
    assert "--features sqlite" in shard("map", "show", "--home", "sqlite:x.db", code=2)
    assert "LARIMAR_SHARD_CONNECTION" in shard("map", "show", "--home", "table:maps", code=2)
    assert "give --shards" in shard("map", "recover", "--home", home, code=2)
    assert "does nothing alone" in shard("map", code=2)
