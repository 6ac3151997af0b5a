"""Six ways to keep entities where they are looked for, each with what happens if it stops half way.

Two rows of an entity in one transaction, an index table with its repair, a change of two tables through a
queue whose worker is killed at every step, hot and cold tables, an archive in blobs, a bucketed log.
docs/partitioning.md says when each is the right one.
"""

import heapq
import json
import os
import uuid
from concurrent.futures import ThreadPoolExecutor

from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.data.tables import TableServiceClient, TableTransactionError
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueServiceClient

DEVELOPMENT_ACCOUNT = (
    "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;"
    "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;"
    "BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;"
    "QueueEndpoint=http://127.0.0.1:10001/devstoreaccount1;"
    "TableEndpoint=http://127.0.0.1:10002/devstoreaccount1;"
)
CONNECTION = os.environ.get("AZURE_STORAGE_CONNECTION_STRING", DEVELOPMENT_ACCOUNT)
NAME = "parts" + uuid.uuid4().hex
TICKS_LAST = 3155378975999999999  # Of 100 ns, in the year 9999: counted down from it, the newest is first.
BUCKETS = 8
WORKER_STEPS = 4


def table(suffix):
    return TableServiceClient.from_connection_string(CONNECTION).create_table_if_not_exists(NAME + suffix)


def rows(of, query_filter):
    return list(of.query_entities(query_filter))


def is_there(of, partition, row):
    try:
        of.get_entity(partition, row)
        return True
    except ResourceNotFoundError:
        return False


def two_rows():
    """An order by number and by time: both rows are in one partition, so one transaction has both or none."""
    orders = table("orders")

    def insert(customer, number, ticks):
        order = {"PartitionKey": customer, "Number": number, "Ticks": str(ticks)}
        by_number = order | {"RowKey": f"number|{number:06}"}
        by_time = order | {"RowKey": f"time|{TICKS_LAST - ticks:019}|{number:06}"}
        orders.submit_transaction([("create", by_number), ("create", by_time)])

    for number in range(50):
        insert("anna", number, 639_000_000_000_000_000 + number)
    try:
        insert("anna", 7, 1)
        raise SystemExit("an order was taken twice")
    except TableTransactionError:
        pass
    newest = next(orders.query_entities("PartitionKey eq 'anna' and RowKey ge 'time|' and RowKey lt 'time}'"))
    assert newest["Number"] == 49 and orders.get_entity("anna", "number|000007")["Ticks"].endswith("7")
    assert len(rows(orders, "PartitionKey eq 'anna'")) == 100
    return "50 orders are found by number and by time"


def index_table():
    """People by region, and by mail in an index table. No transaction has both, so a repair compares them."""
    people, by_mail = table("people"), table("bymail")
    for at in range(20):
        mail = f"p{at}@example.org"
        people.create_entity({"PartitionKey": "milan", "RowKey": f"{at:03}", "Mail": mail})
        if at % 7 != 3:  # The others' writer died before the second write.
            by_mail.create_entity({"PartitionKey": mail, "RowKey": "", "Region": "milan", "Id": f"{at:03}"})
    people.delete_entity("milan", "005")  # Its index row stays behind.

    def repair():
        """Adds what is missing, then removes what names nobody; doing it twice changes nothing more."""
        added = removed = 0
        for person in people.query_entities("PartitionKey eq 'milan'"):
            index = {"PartitionKey": person["Mail"], "RowKey": "", "Region": "milan", "Id": person["RowKey"]}
            try:
                by_mail.create_entity(index)
                added += 1
            except ResourceExistsError:
                pass
        for index in by_mail.list_entities():
            if not is_there(people, index["Region"], index["Id"]):
                by_mail.delete_entity(index)
                removed += 1
        return added, removed

    assert repair() == (3, 1) and repair() == (0, 0)
    found = by_mail.get_entity("p3@example.org", "")
    assert people.get_entity(found["Region"], found["Id"])["Mail"] == "p3@example.org"
    return "3 index rows were missing, 1 was too many"


def work(killed_at):
    """Takes one message and writes two tables. Each step may be done again: keys come from the message."""
    queue = QueueServiceClient.from_connection_string(CONNECTION).get_queue_client(NAME)
    races, runners = table("races"), table("runners")

    def step(number):
        if number == killed_at:
            os._exit(9)

    for message in queue.receive_messages(max_messages=1, visibility_timeout=1):
        entry = json.loads(message.content)
        step(0)
        races.upsert_entity({"PartitionKey": entry["race"], "RowKey": entry["runner"]})
        step(1)
        runners.upsert_entity({"PartitionKey": entry["runner"], "RowKey": entry["race"]})
        step(2)
        queue.delete_message(message)
        step(3)


def in_a_process(killed_at):
    """Whether the worker was killed on its way."""
    child = os.fork()
    if child == 0:
        work(killed_at)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def two_tables():
    """Registrations: a runner's and a race's row, in two tables, by a worker that dies at every step."""
    races, runners = table("races"), table("runners")
    queue = QueueServiceClient.from_connection_string(CONNECTION).create_queue(NAME)
    for killed_at in range(WORKER_STEPS):
        queue.send_message(json.dumps({"race": "rome", "runner": f"runner{killed_at}"}))
        assert in_a_process(killed_at), killed_at
    # The messages of the dead are there again after a second.
    while queue.get_queue_properties().approximate_message_count:
        in_a_process(None)
    entries = [row["RowKey"] for row in rows(races, "PartitionKey eq 'rome'")]
    assert entries == [f"runner{at}" for at in range(WORKER_STEPS)], entries
    assert sorted(row["PartitionKey"] for row in runners.list_entities()) == entries
    return f"a worker that was killed at {WORKER_STEPS} steps lost nothing and did nothing twice"


def hot_and_cold():
    """Old readings move to another table: written there first, deleted here then, so none is ever nowhere."""
    hot, cold = table("hot"), table("cold")
    for day in range(30):
        hot.create_entity({"PartitionKey": "s1", "RowKey": f"2026-11-{day + 1:02}", "Value": day})

    def move(before, count_max):
        moved = 0
        for reading in rows(hot, f"PartitionKey eq 's1' and RowKey lt '{before}'")[:count_max]:
            cold.upsert_entity(reading)
            if moved == count_max - 1:
                return  # It died between the two.
            hot.delete_entity(reading)
            moved += 1

    def read():
        both = rows(cold, "PartitionKey eq 's1'") + rows(hot, "PartitionKey eq 's1'")
        return {reading["RowKey"]: reading["Value"] for reading in both}

    everything = read()
    move("2026-11-21", 10)
    assert read() == everything, "one reading is in both tables, and counts once"
    move("2026-11-21", 1000)
    assert read() == everything and len(rows(hot, "PartitionKey eq 's1'")) == 10
    return "20 readings are cold, 10 are hot"


def archive():
    """A partition as a blob, which is read again before the partition is deleted."""
    log, name = table("archived"), "2026-10.jsonl"
    batch = [("create", {"PartitionKey": "2026-10", "RowKey": f"{at:04}", "Text": f"line {at}"}) for at in range(100)]
    log.submit_transaction(batch)
    blobs = BlobServiceClient.from_connection_string(CONNECTION).create_container(NAME)
    entities = rows(log, "PartitionKey eq '2026-10'")
    text = "".join(json.dumps(dict(entity)) + "\n" for entity in entities)
    blobs.upload_blob(name, text, overwrite=True)
    assert blobs.download_blob(name).readall().decode() == text
    # All or none: an archive that was stopped here has all entities, and does it again.
    log.submit_transaction([("delete", entity) for entity in entities])
    assert rows(log, "PartitionKey eq '2026-10'") == []
    return f"{len(text.splitlines())} entities are in a blob"


def bucketed_log():
    """A log whose writes of one time go to several partitions; its reader merges them by time."""
    log = table("log")
    for at in range(200):
        bucket = at * 2654435761 % 2**32 * BUCKETS // 2**32
        log.create_entity({"PartitionKey": f"{bucket}|2026-11-28", "RowKey": f"{at:019}"})

    def read(bucket):
        return [row["RowKey"] for row in rows(log, f"PartitionKey eq '{bucket}|2026-11-28'")]

    with ThreadPoolExecutor(BUCKETS) as pool:
        parts = list(pool.map(read, range(BUCKETS)))
    merged = list(heapq.merge(*parts))
    assert merged == [f"{at:019}" for at in range(200)]
    largest = max(len(part) for part in parts)
    assert largest < 50, parts
    return f"200 lines are in order; of {BUCKETS} partitions the largest has {largest}"


def clean_up():
    tables = TableServiceClient.from_connection_string(CONNECTION)
    for one in tables.query_tables(f"TableName ge '{NAME}' and TableName lt '{NAME}z'"):
        tables.delete_table(one.name)
    for delete in (
        lambda: QueueServiceClient.from_connection_string(CONNECTION).delete_queue(NAME),
        lambda: BlobServiceClient.from_connection_string(CONNECTION).delete_container(NAME),
    ):
        try:
            delete()
        except ResourceNotFoundError:
            pass


def main():
    try:
        for pattern in (two_rows, index_table, two_tables, hot_and_cold, archive, bucketed_log):
            print(f"{pattern.__name__}: {pattern()}")
    finally:
        clean_up()


if __name__ == "__main__":
    main()
