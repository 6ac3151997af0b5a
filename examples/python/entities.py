"""A table from Python: insert, conditional update, query, transaction."""

import os
import uuid

from azure.core import MatchConditions
from azure.core.exceptions import ResourceModifiedError
from azure.data.tables import TableServiceClient, UpdateMode

DEVELOPMENT_ACCOUNT = (
    "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;"
    "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;"
    "TableEndpoint=http://127.0.0.1:10002/devstoreaccount1;"
)


def main():
    connection_string = os.environ.get("AZURE_STORAGE_CONNECTION_STRING", DEVELOPMENT_ACCOUNT)
    service = TableServiceClient.from_connection_string(connection_string)
    table = service.create_table("people" + uuid.uuid4().hex)
    try:
        # The partition key says what is stored and transacted together, the row key orders it.
        table.create_entity({"PartitionKey": "milan", "RowKey": "rossi", "Age": 41})

        # The ETag of a read lets one update through, not two.
        seen = table.get_entity("milan", "rossi")
        condition = {"etag": seen.metadata["etag"], "match_condition": MatchConditions.IfNotModified}
        table.update_entity(seen | {"Age": 42}, mode=UpdateMode.REPLACE, **condition)
        try:
            table.update_entity(seen | {"Age": 43}, mode=UpdateMode.REPLACE, **condition)
            raise SystemExit("an update with an old ETag went through")
        except ResourceModifiedError:
            pass

        # All of a transaction, or nothing; its entities share a partition key.
        people = [{"PartitionKey": "milan", "RowKey": f"person{at:02}", "Age": 20 + at} for at in range(30)]
        table.submit_transaction([("create", person) for person in people])

        # A filter on both keys is a range of rows; one on a property reads the partition.
        old = table.query_entities("PartitionKey eq 'milan' and Age ge 40", select=["RowKey", "Age"])
        found = {entity["RowKey"]: entity["Age"] for entity in old}
        assert found["rossi"] == 42 and len(found) == 11, found
        print(f"{len(found)} people in Milan are 40 or older")
    finally:
        service.delete_table(table.table_name)


if __name__ == "__main__":
    main()
