"""`larimar table export` with Parquet, as pyarrow reads it, and pyarrow's files, as `larimar table import` reads them."""

import json
import math
import os
import subprocess
import uuid
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from larimar_server import BINARY, Server, clean_environment

pytestmark = pytest.mark.skipif("LARIMAR_ENDPOINT" in os.environ, reason="starts a server of its own")

# The program with the feature `parquet`, as `cargo xtask test python` builds it.
FULL_BINARY = os.environ.get("LARIMAR_FULL_BIN")
needs_parquet = pytest.mark.skipif(FULL_BINARY is None, reason="no program with the feature (LARIMAR_FULL_BIN)")

GUID = "c9da6455-213d-42c9-9a79-3e9149a57833"
ENTITIES = [
    {
        "PartitionKey": "p", "RowKey": "1", "Text": "ü\n\U0001f600", "Empty": "", "Flag": True, "Int": -(2**31),
        "Long@odata.type": "Edm.Int64", "Long": str(-(2**63)), "Double": 0.1,
        "At@odata.type": "Edm.DateTime", "At": "1601-01-01T00:00:00Z",
        "Guid@odata.type": "Edm.Guid", "Guid": GUID, "Bytes@odata.type": "Edm.Binary", "Bytes": "AQI=", "Mixed": "a",
    },
    {
        "PartitionKey": "p", "RowKey": "2", "Flag": False, "Int": 2**31 - 1,
        "Long@odata.type": "Edm.Int64", "Long": str(2**63 - 1), "Double@odata.type": "Edm.Double", "Double": "NaN",
        "At@odata.type": "Edm.DateTime", "At": "9999-12-31T23:59:59.9999999Z",
        "Bytes@odata.type": "Edm.Binary", "Bytes": "", "Mixed": 5,
    },
    {
        "PartitionKey": "q", "RowKey": "1", "Double@odata.type": "Edm.Double", "Double": "-Infinity",
        "At@odata.type": "Edm.DateTime", "At": "2026-11-29T10:00:00.1234567Z", "Mixed": 2.5,
    },
]  # fmt: skip


class Tables:
    """A folder, a server, and the program that works on its tables."""

    def __init__(self, folder, server):
        self.folder = folder
        self.environment = {"AZURE_STORAGE_CONNECTION_STRING": server.connection_string()}

    def run(self, *arguments, binary=FULL_BINARY):
        command = [str(binary), "table", *map(str, arguments)]
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=clean_environment(self.environment),
            cwd=self.folder,
            timeout=60,
        )

    def fine(self, *arguments):
        finished = self.run(*arguments)
        assert finished.returncode == 0, finished
        return finished.stdout


@pytest.fixture
def tables(tmp_path):
    with Server() as server:
        yield Tables(tmp_path, server)


def instant(ticks):
    """The time of ticks of 100 ns since 1601, and what is left of a microsecond."""
    return datetime(1601, 1, 1) + timedelta(microseconds=ticks // 10), ticks % 10


@needs_parquet
def test_pyarrow_reads_the_values_that_were_exported(tables):
    (tables.folder / "in.jsonl").write_text("".join(json.dumps(entity) + "\n" for entity in ENTITIES))
    tables.fine("import", "First", "in.jsonl", "--create")
    tables.fine("export", "First", "out.parquet", "--ordered")
    table = pq.read_table(tables.folder / "out.parquet")
    metadata = pq.read_metadata(tables.folder / "out.parquet").metadata
    types = json.loads(metadata[b"larimar.columns"])
    assert types["At@DateTime"] == "Edm.DateTime" and types["Mixed@Int32"] == "Edm.Int32"
    values = {name: table.column(name).to_pylist() for name in table.column_names}
    assert values["PartitionKey"] == ["p", "p", "q"] and values["RowKey"] == ["1", "2", "1"]
    assert values["Text"] == ["ü\n\U0001f600", None, None] and values["Empty"] == ["", None, None]
    assert values["Flag"] == [True, False, None]
    assert values["Int"] == [-(2**31), 2**31 - 1, None] and table.schema.field("Int").type == pa.int32()
    assert values["Long"] == [-(2**63), 2**63 - 1, None] and table.schema.field("Long").type == pa.int64()
    assert values["Double"][0] == 0.1 and math.isnan(values["Double"][1]) and values["Double"][2] == -math.inf
    assert values["Bytes"] == [b"\x01\x02", b"", None] and table.schema.field("Bytes").type == pa.binary()
    guid = values["Guid"][0]
    assert (guid if isinstance(guid, uuid.UUID) else uuid.UUID(bytes=guid)) == uuid.UUID(GUID)
    assert [instant(ticks) for ticks in values["At@DateTime"]] == [
        (datetime(1601, 1, 1), 0),
        (datetime(9999, 12, 31, 23, 59, 59, 999999), 9),
        (datetime(2026, 11, 29, 10, 0, 0, 123456), 7),
    ]
    assert values["Mixed@String"] == ["a", None, None] and values["Mixed@Int32"] == [None, 5, None]
    assert values["Mixed@Double"] == [None, None, 2.5] and "Mixed" not in values

    # The other way: pyarrow keeps the metadata, but not the row groups that checksums are of.
    pq.write_table(table, tables.folder / "rewritten.parquet", row_group_size=2)
    tables.fine("import", "Second", "rewritten.parquet", "--create")
    assert tables.fine("diff", "First", "Second").startswith("3 entities are the same, 0 differ, 0 are only")


@needs_parquet
def test_a_file_of_pyarrow_is_imported(tables):
    rows = list(range(3000))
    keys = {"PartitionKey": ["p"] * 3000, "RowKey": [f"{row:04}" for row in rows]}
    columns = {
        "Int": pa.array([row if row % 3 else None for row in rows], pa.int32()),
        "Long": pa.array(rows, pa.int64()),
        "Half": pa.array([row / 4 for row in rows], pa.float32()),
        "At": pa.array([row * 1_000_000 for row in rows], pa.timestamp("us", "UTC")),
        "Day": pa.array(rows, pa.date32()),
        "Word": pa.array([f"word {row % 7}" for row in rows]).dictionary_encode(),
        "Nothing": pa.nulls(3000),
    }
    expected = tables.folder / "expected.jsonl"
    with open(expected, "w") as lines:
        for row in rows:
            second, day = datetime(1970, 1, 1) + timedelta(seconds=row), datetime(1970, 1, 1) + timedelta(days=row)
            entity = {
                "PartitionKey": "p", "RowKey": keys["RowKey"][row], "Long@odata.type": "Edm.Int64", "Long": str(row),
                "Half": row / 4, "At@odata.type": "Edm.DateTime", "At": second.isoformat() + "Z",
                "Day@odata.type": "Edm.DateTime", "Day": day.isoformat() + "Z", "Word": f"word {row % 7}",
            }  # fmt: skip
            lines.write(json.dumps(entity | ({"Int": row} if row % 3 else {})) + "\n")
    tables.fine("import", "Expected", expected, "--create")
    others = {"compression": "gzip", "data_page_version": "2.0"}, {"compression": "none"}
    for number, options in enumerate(({}, *others)):
        file = tables.folder / f"in{number}.parquet"
        pq.write_table(pa.table(keys | columns), file, row_group_size=1100, **options)
        tables.fine("import", f"Found{number}", file, "--create")
        difference = tables.fine("diff", "Expected", f"Found{number}")
        assert difference.startswith("3000 entities are the same, 0 differ, 0 are")

    pq.write_table(pa.table(keys), tables.folder / "zstd.parquet", compression="zstd")
    finished = tables.run("import", "Found0", "zstd.parquet")
    assert finished.returncode == 2 and "it is compressed with ZSTD, which can't be read" in finished.stderr
    pq.write_table(pa.table(keys | {"Tags": pa.array([["a"]] * 3000)}), tables.folder / "list.parquet")
    finished = tables.run("import", "Found0", "list.parquet")
    assert finished.returncode == 2 and "column Tags: it is a list or a group" in finished.stderr


@pytest.mark.skipif(FULL_BINARY == str(BINARY), reason="the program has the feature")
def test_a_build_without_parquet_says_so(tables):
    (tables.folder / "in.parquet").write_bytes(b"PAR1")
    for arguments in (("export", "Tab", "out.parquet"), ("import", "Tab", "in.parquet")):
        finished = tables.run(*arguments, binary=BINARY)
        line = "larimar: this build has no Parquet; build it with cargo build --release --features parquet\n"
        assert (finished.returncode, finished.stderr) == (2, line)
    assert [file.name for file in tables.folder.iterdir()] == ["in.parquet"]
