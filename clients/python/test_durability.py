"""What was acknowledged is there after a clean stop, after `kill -9`, and after both in turn."""

import threading

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import AzureError
from azure.data.tables import TableClient, TableServiceClient, UpdateMode

from larimar_server import Server

STOPS = ["terminate", "kill"]


def stop(server, how):
    if how == "kill":
        server.kill()
    else:
        assert server.terminate() == 0


def state(server, table):
    with TableClient.from_connection_string(server.connection_string(), table, retry_total=0) as client:
        return {(e["PartitionKey"], e["RowKey"]): (e["Value"], e.metadata["etag"]) for e in client.list_entities()}


@pytest.mark.parametrize("how", STOPS)
def test_everything_is_there_after_a_restart(own_server, how):
    with TableServiceClient.from_connection_string(own_server.connection_string(), retry_total=0) as service:
        for name in ("kept", "gone", "empty"):
            service.create_table(name)
        service.delete_table("gone")
        kept = service.get_table_client("kept")
        for number in range(20):
            kept.create_entity({"PartitionKey": f"p{number % 3}", "RowKey": f"{number}", "Value": number, "Raw": b"\x00x"})
        kept.update_entity({"PartitionKey": "p0", "RowKey": "0", "Value": 100}, mode=UpdateMode.REPLACE)
        kept.update_entity({"PartitionKey": "p1", "RowKey": "1", "Value": 101}, mode=UpdateMode.MERGE)
        kept.delete_entity("p2", "2")
        operations = [("upsert", {"PartitionKey": "p0", "RowKey": f"t{number}", "Value": -number}) for number in range(50)]
        kept.submit_transaction(operations)
    before = state(own_server, "kept")
    assert len(before) == 69 and before["p0", "0"][0] == 100 and before["p1", "1"][0] == 101

    for _ in range(2):
        stop(own_server, how)
        own_server.start()
        assert state(own_server, "kept") == before
        assert state(own_server, "empty") == {}
        with TableServiceClient.from_connection_string(own_server.connection_string()) as service:
            assert [table.name for table in service.list_tables()] == ["empty", "kept"]
            found = service.get_table_client("kept").get_entity("p1", "1")
            assert (found["Value"], found["Raw"]) == (101, b"\x00x")


@pytest.mark.parametrize("how", STOPS)
def test_writing_goes_on_after_each_restart(own_server, how):
    expected = {}
    for round_number in range(4):
        with TableClient.from_connection_string(own_server.connection_string(), "rounds", retry_total=0) as table:
            if round_number == 0:
                table.create_table()
            written = table.upsert_entity({"PartitionKey": "p", "RowKey": "same", "Value": round_number})
            expected["p", "same"] = (round_number, written["etag"])
            created = table.create_entity({"PartitionKey": "p", "RowKey": f"{round_number}", "Value": round_number})
            expected["p", f"{round_number}"] = (round_number, created["etag"])
        stop(own_server, how)
        own_server.start()
        assert state(own_server, "rounds") == expected


def test_an_etag_from_before_a_crash_still_counts(own_server, refused):
    entity = {"PartitionKey": "p", "RowKey": "r", "Value": 1}
    with TableClient.from_connection_string(own_server.connection_string(), "etags") as table:
        table.create_table()
        old = table.create_entity(entity)["etag"]
        current = table.upsert_entity(entity)["etag"]
    own_server.kill()
    own_server.start()
    with TableClient.from_connection_string(own_server.connection_string(), "etags") as table:
        condition = {"match_condition": MatchConditions.IfNotModified}
        with refused(412, "UpdateConditionNotSatisfied"):
            table.update_entity(entity, etag=old, **condition)
        newest = table.update_entity(entity, etag=current, **condition)["etag"]
        assert newest not in (old, current)


def test_killed_while_writing(own_server):
    """Eight writers until the server dies: each acknowledged write is there, and of the last ones all or nothing."""
    with TableClient.from_connection_string(own_server.connection_string(), "killed") as table:
        table.create_table()
    acknowledged = [{} for _ in range(8)]

    def write(number):
        connection = own_server.connection_string()
        with TableClient.from_connection_string(connection, "killed", retry_total=0) as table:
            try:
                for value in range(100_000):
                    rows = [f"{value}-{part}" for part in range(3)]
                    entities = [{"PartitionKey": f"p{number}", "RowKey": row, "Value": value} for row in rows]
                    table.submit_transaction([("create", entity) for entity in entities])
                    acknowledged[number] |= {(f"p{number}", row): value for row in rows}
            except AzureError:
                pass

    writers = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for writer in writers:
        writer.start()
    threading.Timer(1.0, own_server.process.kill).start()
    for writer in writers:
        writer.join()
    own_server.kill()
    own_server.start()
    found = {key: value for key, (value, _) in state(own_server, "killed").items()}
    for number, mine in enumerate(acknowledged):
        assert len(mine) > 3
        in_partition = {key: value for key, value in found.items() if key[0] == f"p{number}"}
        assert mine.items() <= in_partition.items()
        more = in_partition.keys() - mine.keys()
        assert len(more) in (0, 3), "a transaction was applied by half"


def test_in_memory_keeps_nothing():
    with Server("--in-memory") as server:
        with TableClient.from_connection_string(server.connection_string(), "memory") as table:
            table.create_table()
            table.create_entity({"PartitionKey": "p", "RowKey": "r", "Value": 1})
            assert table.get_entity("p", "r")["Value"] == 1
        assert server.terminate() == 0
        assert not server.data.exists()
        server.start()
        with TableServiceClient.from_connection_string(server.connection_string()) as service:
            assert list(service.list_tables()) == []
