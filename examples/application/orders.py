"""A small application: orders in a table, their documents in blobs, the work in a queue.

A shop takes orders; a worker makes each one's receipt. A message names an order and is deleted once the
order's state says that the work is done: a worker that dies in between leaves the message to the next one,
and doing the work twice does no harm.
"""

import json
import os
import uuid

from azure.core import MatchConditions
from azure.core.exceptions import ResourceModifiedError
from azure.data.tables import TableServiceClient, UpdateMode
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueServiceClient

DEVELOPMENT_ACCOUNT = (
    "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;"
    "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;"
    "BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;"
    "QueueEndpoint=http://127.0.0.1:10001/devstoreaccount1;"
    "TableEndpoint=http://127.0.0.1:10002/devstoreaccount1;"
)
ORDER_COUNT = 12


class Shop:
    """One shop: a table, a container and a queue of its own."""

    def __init__(self, connection_string):
        name = "shop" + uuid.uuid4().hex
        self.tables = TableServiceClient.from_connection_string(connection_string)
        self.orders = self.tables.create_table(name)
        self.documents = BlobServiceClient.from_connection_string(connection_string).create_container(name)
        self.work = QueueServiceClient.from_connection_string(connection_string).create_queue(name)

    def close(self):
        self.tables.delete_table(self.orders.table_name)
        self.documents.delete_container()
        self.work.delete_queue()

    def take(self, customer, number, lines):
        """The order is there before anybody is told to work on it."""
        document = f"orders/{customer}/{number}.json"
        self.documents.upload_blob(document, json.dumps(lines))
        order = {"PartitionKey": customer, "RowKey": f"{number:06}", "State": "new", "Document": document}
        self.orders.create_entity(order)
        self.work.send_message(json.dumps([customer, f"{number:06}"]))

    def work_once(self):
        """Works on what is in the queue; returns how many receipts were made."""
        made = 0
        # For a minute nobody else sees these messages.
        for message in self.work.receive_messages(messages_per_page=8, visibility_timeout=60):
            order = self.orders.get_entity(*json.loads(message.content))
            if order["State"] == "new":
                lines = json.loads(self.documents.download_blob(order["Document"]).readall())
                receipt = order["Document"].replace("orders/", "receipts/")
                total = sum(line["price"] for line in lines)
                self.documents.upload_blob(receipt, json.dumps({"total": total}), overwrite=True)
                made += self.finish(order, receipt, total)
            self.work.delete_message(message)
        return made

    def finish(self, order, receipt, total):
        """Of two workers with the same order one is counted: the other's ETag is old."""
        done = order | {"State": "done", "Receipt": receipt, "Total": total}
        try:
            etag, condition = order.metadata["etag"], MatchConditions.IfNotModified
            self.orders.update_entity(done, mode=UpdateMode.REPLACE, etag=etag, match_condition=condition)
            return 1
        except ResourceModifiedError:
            return 0


def main():
    shop = Shop(os.environ.get("AZURE_STORAGE_CONNECTION_STRING", DEVELOPMENT_ACCOUNT))
    try:
        for number in range(ORDER_COUNT):
            lines = [{"article": "tea", "price": 5}, {"article": "cup", "price": number}]
            shop.take("anna" if number % 2 else "bruno", number, lines)
        made = shop.work_once()
        assert made == ORDER_COUNT and shop.work_once() == 0, made
        totals = [order["Total"] for order in shop.orders.query_entities("PartitionKey eq 'anna'")]
        assert totals == [6, 8, 10, 12, 14, 16], totals
        receipts = [blob.name for blob in shop.documents.list_blobs(name_starts_with="receipts/")]
        assert len(receipts) == ORDER_COUNT, receipts
        print(f"{made} orders have receipts; Anna paid {sum(totals)}")
    finally:
        shop.close()


if __name__ == "__main__":
    main()
