"""The asynchronous client: the same service through another transport and other code."""

import asyncio

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceModifiedError, ResourceNotFoundError
from azure.data.tables import TableTransactionError, UpdateMode
from azure.data.tables.aio import TableServiceClient

from larimar_server import new_name


@pytest.fixture
def with_table(server):
    """Runs a coroutine function with a service client and an empty table's client."""

    def run(scenario):
        async def inner():
            connection = server.connection_string()
            async with TableServiceClient.from_connection_string(connection, retry_total=0) as service:
                name = new_name()
                table = await service.create_table(name)
                async with table:
                    await scenario(service, table)
                await service.delete_table(name)

        asyncio.run(inner())

    return run


def test_tables(with_table):
    async def scenario(service, table):
        with pytest.raises(ResourceExistsError):
            await service.create_table(table.table_name)
        found = [item.name async for item in service.query_tables(f"TableName eq '{table.table_name}'")]
        assert found == [table.table_name]
        assert table.table_name in [item.name async for item in service.list_tables()]

    with_table(scenario)


def test_entities(with_table):
    entity = {"PartitionKey": "p'1", "RowKey": "r 1", "Text": "a", "Int": 5, "Real": 2.0, "Raw": b"\x00", "Flag": True}

    async def scenario(_, table):
        created = await table.create_entity(entity)
        found = await table.get_entity("p'1", "r 1")
        assert dict(found) == entity and found.metadata["etag"] == created["etag"]
        keys = {"PartitionKey": "p'1", "RowKey": "r 1"}
        await table.update_entity(keys | {"Int": 6}, mode=UpdateMode.MERGE)
        assert dict(await table.get_entity("p'1", "r 1")) == entity | {"Int": 6}
        with pytest.raises(ResourceModifiedError):
            condition = {"etag": created["etag"], "match_condition": MatchConditions.IfNotModified}
            await table.update_entity(keys | {"Int": 7}, **condition)
        await table.upsert_entity(keys | {"New": 1}, mode=UpdateMode.REPLACE)
        assert dict(await table.get_entity("p'1", "r 1")) == keys | {"New": 1}
        await table.delete_entity("p'1", "r 1")
        with pytest.raises(ResourceNotFoundError):
            await table.get_entity("p'1", "r 1")

    with_table(scenario)


def test_many_at_once(with_table):
    async def scenario(_, table):
        entities = [{"PartitionKey": f"p{number % 7}", "RowKey": f"{number:03}", "Number": number} for number in range(200)]
        await asyncio.gather(*(table.create_entity(entity) for entity in entities))
        found = [entity async for entity in table.list_entities()]
        assert sorted(entity["Number"] for entity in found) == list(range(200))
        answers = await asyncio.gather(*(table.get_entity(e["PartitionKey"], e["RowKey"]) for e in entities))
        assert [dict(answer) for answer in answers] == entities

    with_table(scenario)


def test_pages(with_table):
    async def scenario(_, table):
        for number in range(10):
            await table.create_entity({"PartitionKey": "p", "RowKey": f"{number}", "Number": number})
        query = table.query_entities("Number ge @least", parameters={"least": 3}, select=["Number"], results_per_page=3)
        pages = [[dict(entity) async for entity in page] async for page in query.by_page()]
        assert sum(pages, []) == [{"Number": number} for number in range(3, 10)]
        assert all(len(page) <= 3 for page in pages) and len(pages) >= 3

    with_table(scenario)


def test_transactions(with_table):
    async def scenario(_, table):
        rows = [{"PartitionKey": "p", "RowKey": f"{number}", "Value": number} for number in range(5)]
        await table.submit_transaction([("create", row) for row in rows])
        with pytest.raises(TableTransactionError) as caught:
            await table.submit_transaction([("delete", rows[0]), ("create", rows[1])])
        assert (caught.value.index, caught.value.status_code, caught.value.error_code) == (1, 409, "EntityAlreadyExists")
        assert [entity["Value"] async for entity in table.list_entities()] == list(range(5))

    with_table(scenario)


def test_errors(with_table):
    async def scenario(_, table):
        with pytest.raises(HttpResponseError) as caught:
            _ = [entity async for entity in table.query_entities("Number eq")]
        assert (caught.value.status_code, caught.value.error_code) == (400, "InvalidInput")

    with_table(scenario)
