"""Tables: create, list, find, delete."""

import pytest
from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.data.tables import TableServiceClient

from larimar_server import new_name, next_page


@pytest.fixture
def few_tables(service):
    """Five tables whose names share a prefix that nothing else has."""
    prefix = new_name()
    names = [f"{prefix}{letter}" for letter in "abcde"]
    for name in reversed(names):
        service.create_table(name)
    yield prefix, names
    for name in names:
        service.delete_table(name)


def test_create_then_use_then_delete(service):
    name = new_name()
    table = service.create_table(name)
    assert table.table_name == name
    assert name in [item.name for item in service.list_tables()]
    table.create_entity({"PartitionKey": "p", "RowKey": "r"})
    service.delete_table(name)
    assert name not in [item.name for item in service.list_tables()]
    with pytest.raises(ResourceNotFoundError) as caught:
        table.get_entity("p", "r")
    assert caught.value.error_code.value == "TableNotFound"


def test_create_twice_is_a_conflict(service, table, refused):
    with refused(409, "TableAlreadyExists"):
        service.create_table(table.table_name)
    service.create_table_if_not_exists(table.table_name)


def test_names_differ_only_by_case_are_the_same(service, refused):
    name = new_name("Mixed")
    service.create_table(name)
    with refused(409, "TableAlreadyExists"):
        service.create_table(name.upper())
    service.get_table_client(name.lower()).create_entity({"PartitionKey": "p", "RowKey": "r"})
    assert service.get_table_client(name.upper()).get_entity("p", "r")["RowKey"] == "r"
    assert [item.name for item in service.query_tables(f"TableName eq '{name}'")] == [name]
    service.delete_table(name.lower())
    assert list(service.query_tables(f"TableName eq '{name}'")) == []


def test_deleting_what_is_not_there(service, wire):
    name = new_name()
    service.delete_table(name)  # The client swallows the 404, so look at the wire too.
    assert wire.send("DELETE", f"/Tables('{name}')").error() == (404, "ResourceNotFound")
    assert wire.send("GET", f"/Tables('{name}')").error() == (404, "ResourceNotFound")


def test_a_table_created_again_is_empty(service):
    name = new_name()
    first = service.create_table(name)
    first.create_entity({"PartitionKey": "p", "RowKey": "r"})
    service.delete_table(name)
    try:
        second = service.create_table(name)
    except ResourceExistsError as error:
        assert error.error_code.value == "TableBeingDeleted"
        pytest.skip("the server keeps deleted names for a while, which is legal")
    assert list(second.list_entities()) == []
    service.delete_table(name)


def test_list_is_in_order_and_paged(service, few_tables):
    prefix, names = few_tables
    within = f"TableName ge '{prefix}a' and TableName le '{prefix}e'"
    pages = [[item.name for item in page] for page in service.query_tables(within, results_per_page=2).by_page()]
    pages = [page for page in pages if page]
    assert all(len(page) <= 2 for page in pages)
    assert [name for page in pages for name in page] == names


def test_a_list_goes_on_from_its_token(server, service, few_tables):
    prefix, names = few_tables
    within = f"TableName ge '{prefix}a' and TableName le '{prefix}e'"
    pages = service.query_tables(within, results_per_page=2).by_page()
    first = [item.name for item in next_page(pages, 2)]
    assert first == names[:2]
    with TableServiceClient.from_connection_string(server.connection_string()) as other:
        rest = other.query_tables(within, results_per_page=2).by_page(continuation_token=pages.continuation_token)
        assert [item.name for page in rest for item in page] == names[2:]


@pytest.mark.parametrize(
    ("operator", "expected"),
    [("eq", "c"), ("ne", "abde"), ("gt", "de"), ("ge", "cde"), ("lt", "ab"), ("le", "abc")],
)
def test_filter_by_name(service, few_tables, operator, expected):
    prefix, _ = few_tables
    within = f"TableName ge '{prefix}' and TableName lt '{prefix}z' and TableName {operator} '{prefix}c'"
    assert [item.name for item in service.query_tables(within)] == [prefix + letter for letter in expected]


def test_filter_with_parameters(service, few_tables):
    prefix, names = few_tables
    found = service.query_tables("TableName eq @name", parameters={"name": f"{prefix}b"})
    assert [item.name for item in found] == [names[1]]


@pytest.mark.parametrize("name", ["abc", "A" + "b1" * 31, "z" * 63])
def test_legal_names(service, name):
    service.create_table_if_not_exists(name)
    assert name.lower() in [item.name.lower() for item in service.list_tables()]
    service.delete_table(name)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("1abc", "InvalidResourceName"),
        ("ab-cd", "InvalidResourceName"),
        ("ab_cd", "InvalidResourceName"),
        ("täble", "InvalidResourceName"),
        ("ab cd", "InvalidResourceName"),
        ("ab", "OutOfRangeInput"),
        ("a" * 64, "OutOfRangeInput"),
        ("tables", "InvalidInput"),
        ("Tables", "InvalidInput"),
    ],
)
def test_illegal_names(wire, name, code):
    assert wire.send("POST", "/Tables", {"TableName": name}).error() == (400, code)


@pytest.mark.parametrize("name", ["1abc", "ab-cd", "ab", "a" * 64])
def test_the_client_knows_the_refusal_of_an_illegal_name(service, name):
    with pytest.raises(ValueError, match="alphanumeric"):
        service.create_table(name)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"TableName":7}', b"{}", b'{"TableName":null}', b"\xff\xfe"])
def test_a_create_body_that_makes_no_sense(wire, body):
    answer = wire.send("POST", "/Tables", body, headers={"Content-Type": "application/json"})
    assert answer.status == 400
    assert answer.error()[1] in {"InvalidInput", "PropertiesNeedValue", "InvalidResourceName", "OutOfRangeInput"}


def test_more_tables_than_a_page(own_server):
    """1,005 tables: a page ends at 1,000, and the rest comes with the token."""
    wire = own_server.wire()
    names = [f"many{number:04}" for number in range(1005)]
    for name in names:
        created = wire.send("POST", "/Tables", {"TableName": name}, headers={"Prefer": "return-no-content"})
        assert created.status == 204
    with TableServiceClient.from_connection_string(own_server.connection_string()) as service:
        pages = service.list_tables().by_page()
        first, second = next_page(pages, 1000), next_page(pages, 5)
        assert [item for page in pages for item in page] == []
    assert (len(first), len(second)) == (1000, 5)
    assert [item.name for item in first + second] == names
