"""Entity group transactions: all or nothing, in order, with the index of what failed."""

import json
import threading

import pytest
from azure.core import MatchConditions
from azure.data.tables import RequestTooLargeError, TableTransactionError, UpdateMode

from larimar_server import batch_parts


def entity(row, **properties):
    return {"PartitionKey": "p", "RowKey": row} | properties


def state(table):
    return {found["RowKey"]: found.get("Value") for found in table.list_entities()}


@pytest.fixture
def filled(table):
    """Rows 1 to 5 with their number as value, and their ETags."""
    etags = {row: table.create_entity(entity(row, Value=int(row)))["etag"] for row in "12345"}
    return table, etags


def test_every_operation_in_one(filled):
    table, etags = filled
    answers = table.submit_transaction(
        [
            ("create", entity("new", Value=10)),
            ("update", entity("1", Value=11), {"mode": UpdateMode.REPLACE}),
            ("update", entity("2", Other=12), {"mode": UpdateMode.MERGE}),
            ("upsert", entity("3", Other=13), {"mode": UpdateMode.REPLACE}),
            ("upsert", entity("other", Value=14), {"mode": UpdateMode.MERGE}),
            ("delete", entity("4")),
            ("delete", entity("5"), {"etag": etags["5"], "match_condition": MatchConditions.IfNotModified}),
        ]
    )
    assert state(table) == {"new": 10, "1": 11, "2": 2, "3": None, "other": 14}
    assert table.get_entity("p", "2")["Other"] == 12
    assert len(answers) == 7
    found = {one["RowKey"]: one.metadata["etag"] for one in table.list_entities()}
    rows = ["new", "1", "2", "3", "other"]
    assert [answer["etag"] for answer in answers[:5]] == [found[row] for row in rows]
    assert all("etag" not in answer for answer in answers[5:])


def test_a_hundred_operations(table):
    table.submit_transaction([("create", entity(f"{number:03}", Value=number)) for number in range(100)])
    assert state(table) == {f"{number:03}": number for number in range(100)}


def test_a_hundred_and_one_operations(table):
    with pytest.raises(TableTransactionError) as caught:
        table.submit_transaction([("create", entity(f"{number:03}")) for number in range(101)])
    assert (caught.value.status_code, caught.value.error_code, caught.value.index) == (400, "InvalidInput", 99)
    assert state(table) == {}


FAILURES = {
    "insert of what exists": ("create", {"PartitionKey": "p", "RowKey": "1", "Value": 99}, {}, 409, "EntityAlreadyExists"),
    "update of what is missing": ("update", {"PartitionKey": "p", "RowKey": "x"}, {}, 404, "ResourceNotFound"),
    "delete of what is missing": ("delete", {"PartitionKey": "p", "RowKey": "x"}, {}, 404, "ResourceNotFound"),
    "old ETag": (
        "update",
        {"PartitionKey": "p", "RowKey": "1", "Value": 99},
        {"etag": "W/\"datetime'2001-01-01T00%3A00%3A00Z'\"", "match_condition": MatchConditions.IfNotModified},
        412,
        "UpdateConditionNotSatisfied",
    ),
    "too many properties": (
        "create",
        {"PartitionKey": "p", "RowKey": "x"} | {f"P{number}": number for number in range(253)},
        {},
        400,
        "TooManyProperties",
    ),
}


@pytest.mark.parametrize("position", [0, 1, 3])
@pytest.mark.parametrize("failure", FAILURES)
def test_one_failure_undoes_all(filled, refused, failure, position):
    table, etags = filled
    kind, bad, options, status, code = FAILURES[failure]
    operations = [
        ("create", entity("new", Value=10)),
        ("update", entity("2", Value=12), {"mode": UpdateMode.REPLACE}),
        ("delete", entity("3")),
    ]
    operations.insert(position, (kind, bad, options))
    with refused(status, code, index=position) as caught:
        table.submit_transaction(operations)
    assert isinstance(caught.value, TableTransactionError)
    assert state(table) == {row: int(row) for row in "12345"}
    assert {found["RowKey"]: found.metadata["etag"] for found in table.list_entities()} == etags


def test_the_table_is_missing(service, refused):
    with refused(404, "TableNotFound", index=0):
        service.get_table_client("nowhere").submit_transaction([("create", entity("1")), ("create", entity("2"))])


def test_the_same_row_twice(filled, wire):
    table, _ = filled
    name = table.table_name
    operations = [
        ("POST", f"/{name}", entity("new")),
        ("PUT", f"/{name}(PartitionKey='p',RowKey='1')", {"Value": 8}),
        ("MERGE", f"/{name}(PartitionKey='p',RowKey='1')", {"Value": 9}),
    ]
    (part,) = batch_parts(wire.batch(operations))
    assert part.error() == (400, "InvalidDuplicateRow")
    assert part.message().startswith("2:")
    assert state(table) == {row: int(row) for row in "12345"}


def test_two_partitions(table, wire):
    operations = [("POST", f"/{table.table_name}", {"PartitionKey": key, "RowKey": "r"}) for key in ("a", "a2", "a")]
    operations[2][2]["RowKey"] = "r2"
    (part,) = batch_parts(wire.batch(operations))
    assert part.error() == (400, "CommandsInBatchActOnDifferentPartitions")
    assert part.message().startswith("1:")
    assert state(table) == {}


def test_an_insert_without_a_key(table, wire):
    operations = [("POST", f"/{table.table_name}", entity("1")), ("POST", f"/{table.table_name}", {"PartitionKey": "p"})]
    (part,) = batch_parts(wire.batch(operations))
    assert part.error() == (400, "PropertiesNeedValue")
    assert part.message().startswith("1:")
    assert state(table) == {}


def test_too_large_a_body(table):
    large = [("create", entity(f"{number:03}", Value=b"x" * 60000)) for number in range(100)]
    with pytest.raises(RequestTooLargeError) as caught:
        table.submit_transaction(large)
    assert caught.value.status_code in (202, 413)
    assert caught.value.error_code == "RequestBodyTooLarge"
    assert state(table) == {}


def test_the_largest_body_that_fits(table):
    large = [("create", entity(f"{number:03}", Value=b"x" * 30000)) for number in range(95)]
    table.submit_transaction(large)
    assert len(state(table)) == 95


def test_parts_of_an_answer(filled, wire, server):
    table, _ = filled
    name = table.table_name
    one = f"/{name}(PartitionKey='p',RowKey='1')"
    operations = [
        ("POST", f"/{name}", entity("a", Value=1), {"Prefer": "return-no-content", "Content-ID": "7"}),
        ("POST", f"/{name}", entity("b", Value=2), {"Prefer": "return-content"}),
        ("POST", f"/{name}", entity("c", Value=3)),
        ("PUT", one, {"Value": 4}),
        ("DELETE", one.replace("'1'", "'2'"), None, {"If-Match": "*"}),
    ]
    answer = wire.batch(operations)
    parts = batch_parts(answer)
    assert [part.status for part in parts] == [204, 201, 201, 204, 204]
    assert parts[0].headers["content-id"] == "7"
    assert parts[0].headers["location"] == f"{server.endpoint()}/{name}(PartitionKey='p',RowKey='a')"
    assert parts[0].headers["dataserviceid"] == parts[0].headers["location"]
    assert [json.loads(part.body)["Value"] for part in parts[1:3]] == [2, 3]
    etags = {found["RowKey"]: found.metadata["etag"] for found in table.list_entities()}
    assert [part.headers["etag"] for part in parts[:4]] == [etags[row] for row in ("a", "b", "c", "1")]
    assert "etag" not in parts[4].headers
    assert "content-id" not in parts[1].headers


def test_a_lone_get(filled, wire, server):
    table, etags = filled
    base = server.endpoint()
    one = f"/{table.table_name}(PartitionKey='p',RowKey='1')"
    for target, status in ((one, 200), (one.replace("'1'", "'x'"), 404)):
        body = (
            "--batch_b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
            f"GET {base}{target} HTTP/1.1\r\nAccept: application/json;odata=minimalmetadata\r\n\r\n\r\n--batch_b--\r\n"
        )
        answer = wire.send("POST", "/$batch", body, headers={"Content-Type": "multipart/mixed; boundary=batch_b"})
        assert answer.status == 202
        assert f"HTTP/1.1 {status} " in answer.text()
        if status == 200:
            assert etags["1"] in answer.text().replace('\\"', '"')
            assert '"Value":1' in answer.text()
        else:
            assert '"ResourceNotFound"' in answer.text()


def as_sent(base, name, **change):
    """A change set of two inserts; `change` bends one of its forms."""
    form = {"boundary": "batch_b", "quote": "", "target": f"{base}/{name}", "end": "--\r\n", "gap": "", "names": str} | change
    parts = "".join(
        f"--changeset_c\r\n{form['names']('Content-Type')}: application/http\r\n"
        f"{form['names']('Content-Transfer-Encoding')}: binary\r\n\r\n"
        f"POST {form['target']} HTTP/1.1\r\n{form['names']('Content-Type')}: application/json\r\n"
        f"{form['names']('Prefer')}: return-no-content\r\n\r\n{form['gap']}{json.dumps(entity(row))}\r\n{form['gap']}"
        for row in "ab"
    )
    body = (
        f"--{form['boundary']}\r\nContent-Type: multipart/mixed; boundary={form['quote']}changeset_c{form['quote']}\r\n\r\n"
        f"{parts}--changeset_c--\r\n--{form['boundary']}{form['end']}"
    )
    return body, f"multipart/mixed; boundary={form['quote']}{form['boundary']}{form['quote']}"


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"quote": '"'},
        {"end": "--"},
        {"end": ""},
        {"gap": "\r\n"},
        {"names": str.lower},
        {"names": str.upper},
        {"target": "path only"},
        {"boundary": "batch_0f8fad5b-d9cb-469f-a165-70867728950e"},
    ],
    ids=lambda change: "-".join(f"{name}" for name in change) or "plain",
)
def test_forms_that_clients_send(server, table, wire, change):
    if "target" in change:
        change = {"target": f"/devstoreaccount1/{table.table_name}"}
    body, content_type = as_sent(server.endpoint(), table.table_name, **change)
    answer = wire.send("POST", "/$batch", body, headers={"Content-Type": content_type})
    assert [part.status for part in batch_parts(answer)] == [204, 204]
    assert set(state(table)) == {"a", "b"}


@pytest.mark.parametrize(
    "body",
    [
        "",
        "nonsense",
        "--batch_b--\r\n",
        "--batch_b\r\nContent-Type: multipart/mixed; boundary=changeset_c\r\n\r\n--batch_b--\r\n",
        "--batch_b\r\nContent-Type: multipart/mixed; boundary=changeset_c\r\n\r\nx\r\n--changeset_c--\r\n--batch_b--\r\n",
        "--batch_b\r\nContent-Type: multipart/mixed\r\n\r\n--changeset_c--\r\n--batch_b--\r\n",
        "--batch_b\r\nContent-Type: multipart/mixed; boundary=changeset_c\r\n\r\n--changeset_c\r\n"
        "Content-Type: application/http\r\n\r\nPOST\r\n\r\n--changeset_c--\r\n--batch_b--\r\n",
    ],
)
def test_bodies_that_make_no_sense(table, wire, body):
    answer = wire.send("POST", "/$batch", body, headers={"Content-Type": "multipart/mixed; boundary=batch_b"})
    assert answer.error() == (400, "InvalidInput")


def test_two_change_sets(server, table, wire):
    change_set = as_sent(server.endpoint(), table.table_name)[0].removesuffix("--batch_b--\r\n")
    body = change_set + change_set.replace('"a"', '"c"').replace('"b"', '"d"') + "--batch_b--\r\n"
    answer = wire.send("POST", "/$batch", body, headers={"Content-Type": "multipart/mixed; boundary=batch_b"})
    assert answer.status in (202, 400)
    if answer.status == 202:
        assert "HTTP/1.1 400" in answer.text()
    assert state(table) == {}


def test_no_reader_sees_half_of_a_transaction(table):
    """All rows of the partition carry the same number after each transaction, so in each query's answer too."""
    rows = [f"{number:02}" for number in range(20)]
    table.submit_transaction([("create", entity(row, Value=0)) for row in rows])
    done = threading.Event()
    torn, reads = [], []

    def read():
        while not done.is_set():
            values = {found["Value"] for found in table.query_entities("PartitionKey eq 'p'")}
            reads.append(values)
            if len(values) != 1:
                torn.append(values)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(1, 60):
        table.submit_transaction([("update", entity(row, Value=number), {"mode": UpdateMode.REPLACE}) for row in rows])
    done.set()
    for reader in readers:
        reader.join()
    assert torn == []
    assert len(reads) > 10
