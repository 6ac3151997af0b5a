"""A table on a busy server, from Python: what retries and tokens are for.

Start one with `larimar --in-memory --simulate examples/busy.toml`. With `--no-retries` it fails there.
"""

import os
import sys
import uuid

from azure.data.tables import TableServiceClient, UpdateMode

DEVELOPMENT_ACCOUNT = (
    "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;"
    "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;"
    "TableEndpoint=http://127.0.0.1:10002/devstoreaccount1;"
)
READINGS = 30


def main():
    connection_string = os.environ.get("AZURE_STORAGE_CONNECTION_STRING", DEVELOPMENT_ACCOUNT)
    # By default the client tries three times more, and waits longer before each.
    retries = {"retry_total": 0} if "--no-retries" in sys.argv else {"retry_backoff_factor": 0.1}
    service = TableServiceClient.from_connection_string(connection_string, **retries)
    table = service.create_table("readings" + uuid.uuid4().hex)
    try:
        # Written so that twice is the same as once: an answer that is lost says nothing about the write, so
        # the client sends it again. A replacement is a PUT, which it repeats after a broken connection; a
        # merge or an insert it would not.
        for at in range(READINGS):
            reading = {"PartitionKey": "roof", "RowKey": f"{at:04}", "Celsius": 20 + at / 10}
            table.upsert_entity(reading, mode=UpdateMode.REPLACE)

        # A page may be short, or empty, and yet not be the last one: iterating follows its token.
        pages, found = 0, []
        for page in table.query_entities("PartitionKey eq 'roof'").by_page():
            pages += 1
            found += [reading["RowKey"] for reading in page]
        assert found == [f"{at:04}" for at in range(READINGS)], found
        assert pages > READINGS // 10, pages
        print(f"{len(found)} readings are there, in {pages} pages")
    finally:
        service.delete_table(table.table_name)


if __name__ == "__main__":
    main()
