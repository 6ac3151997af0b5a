"""Host style, path style and the read-only secondary."""

import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableServiceClient

from larimar_server import ACCOUNT, Wire, date_in, new_name

ENTITY = {"PartitionKey": "p", "RowKey": "r", "Value": 1}


def host_style(server, host, method, path, body=b"", headers=None):
    """A request whose account is in the host name; the address is the same."""
    wire = Wire(server.base, ACCOUNT, server.wire().key)
    sent = {"Host": host, "x-ms-date": date_in(0), "x-ms-version": "2019-02-02", "Accept": "application/json"} | (headers or {})
    sent["Authorization"] = wire.authorization("SharedKey", method, path, sent)
    return wire.send_unsigned(method, path, sent, body)


@pytest.mark.parametrize("host", ["devstoreaccount1.table.example.org", "devstoreaccount1.table.localhost:10002"])
def test_host_style(server, table, host):
    table.create_entity(ENTITY)
    answer = host_style(server, host, "GET", f"/{table.table_name}(PartitionKey='p',RowKey='r')")
    assert answer.status == 200
    assert answer.json()["Value"] == 1
    assert answer.json()["odata.metadata"] == f"http://{host}/$metadata#{table.table_name}/@Element"


def test_a_secondary_reads(server, wire, table):
    table.create_entity(ENTITY)
    path = f"{table.table_name}(PartitionKey='p',RowKey='r')"
    for signed in (f"/{ACCOUNT}/{path}", f"/{ACCOUNT}-secondary/{path}"):
        headers = {"x-ms-date": date_in(0), "x-ms-version": "2019-02-02", "Accept": "application/json"}
        headers["Authorization"] = wire.authorization("SharedKey", "GET", signed, headers)
        answer = wire.send_unsigned("GET", f"/{ACCOUNT}-secondary/{path}", headers)
        assert answer.status == 200 and answer.json()["Value"] == 1


def test_a_secondary_does_not_write(server, wire, table):
    path = f"/{ACCOUNT}-secondary/{table.table_name}"
    headers = {"x-ms-date": date_in(0), "x-ms-version": "2019-02-02", "Content-Type": "application/json"}
    headers["Authorization"] = wire.authorization("SharedKey", "POST", path, headers)
    answer = wire.send_unsigned("POST", path, headers, b'{"PartitionKey":"p","RowKey":"r"}')
    assert answer.error() == (403, "InsufficientAccountPermissions")
    assert list(table.list_entities()) == []


def test_a_secondary_reads_in_a_batch_and_writes_in_none(server, wire, table):
    table.create_entity(ENTITY)
    path = f"/{ACCOUNT}-secondary/$batch"
    address = f"{server.base}/{ACCOUNT}/{table.table_name}(PartitionKey='p',RowKey='r')"
    part = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n{} {} HTTP/1.1\r\nAccept: application/json\r\n\r\n"
    get = "--batch_b\r\n" + part.format("GET", address) + "\r\n--batch_b--\r\n"
    delete = (
        "--batch_b\r\nContent-Type: multipart/mixed; boundary=changeset_c\r\n\r\n--changeset_c\r\n"
        + part.format("DELETE", address).replace("Accept:", "If-Match: *\r\nAccept:")
        + "\r\n--changeset_c--\r\n--batch_b--\r\n"
    )
    for body, expected in [(get, 202), (delete, 403)]:
        headers = {"x-ms-date": date_in(0), "x-ms-version": "2019-02-02", "Content-Type": "multipart/mixed; boundary=batch_b"}
        headers["Authorization"] = wire.authorization("SharedKey", "POST", path, headers)
        answer = wire.send_unsigned("POST", path, headers, body.encode())
        assert answer.status == expected, answer.body
        assert expected == 403 or b'"Value":1' in answer.body
    assert table.get_entity("p", "r")["Value"] == 1


# What users do who give a table's address where an account's is wanted.
WITH_A_TABLE_IN_THE_ADDRESS = {
    "create a table": lambda service, table: service.create_table(table.table_name),
    "list tables": lambda service, table: list(service.list_tables()),
    "delete a table": lambda service, table: service.delete_table(table.table_name),
    "get properties": lambda service, table: service.get_service_properties(),
    "insert": lambda service, table: table.create_entity(ENTITY),
    "upsert": lambda service, table: table.upsert_entity(ENTITY),
    "update": lambda service, table: table.update_entity(ENTITY),
    "get": lambda service, table: table.get_entity("p", "r"),
    "query": lambda service, table: list(table.query_entities("PartitionKey eq 'p'")),
    "delete": lambda service, table: table.delete_entity("p", "r"),
    "set policies": lambda service, table: table.set_table_access_policy({}),
    "transaction": lambda service, table: table.submit_transaction([("upsert", ENTITY)]),
}


# For these the client looks at the answer.
EXPLAINED = {"create a table", "delete a table", "get properties", "set policies"}
# With these the client takes "not found" for done.
CONTENT_WITH_NOTHING = {"delete a table", "delete"}


@pytest.mark.parametrize("exists", [False, True], ids=["missing", "there"])
@pytest.mark.parametrize("operation", WITH_A_TABLE_IN_THE_ADDRESS)
def test_an_account_address_that_names_a_table(server, service, operation, exists):
    """Everything is refused, and nothing changed. The client knows the answers, and tells what the mistake may be."""
    name = new_name()
    if exists:
        service.create_table(name).upsert_entity(ENTITY)
    wrong = TableServiceClient(f"{server.endpoint()}/{name}", credential=service.credential, retry_total=0)
    if operation in CONTENT_WITH_NOTHING and not exists:
        WITH_A_TABLE_IN_THE_ADDRESS[operation](wrong, wrong.get_table_client(name))
        return
    with pytest.raises(HttpResponseError) as refusal:
        WITH_A_TABLE_IN_THE_ADDRESS[operation](wrong, wrong.get_table_client(name))
    if operation in EXPLAINED:
        assert "Please check your account URL" in str(refusal.value)
    assert bool(list(service.query_tables(f"TableName eq '{name}'"))) == exists
    if exists:
        assert [entity["Value"] for entity in service.get_table_client(name).list_entities()] == [1]


@pytest.mark.parametrize(
    ("method", "target", "exists", "refusal"),
    [
        ("POST", "/{table}/Tables", False, (404, "TableNotFound")),
        ("POST", "/{table}/Tables", True, (400, "PropertiesNeedValue")),
        ("DELETE", "/{table}/Tables('x')", True, (400, "InvalidInput")),
        ("DELETE", "/{table}/Tables('x')", False, (404, "TableNotFound")),
        ("PUT", "/{table}//(PartitionKey='p',RowKey='r')", True, (400, "InvalidResourceName")),
        ("GET", "/{table}/{table}(PartitionKey='p',RowKey='r')", True, (400, "InvalidInput")),
        ("GET", "/{table}/?restype=service&comp=properties", True, (400, "InvalidQueryParameterValue")),
        ("GET", "/{table}/{table}?comp=acl", True, (400, "InvalidQueryParameterValue")),
    ],
)
def test_what_is_below_a_table(wire, table, method, target, exists, refusal):
    name = table.table_name if exists else new_name()
    answer = wire.send(method, target.format(table=name), {"TableName": "other"} if method == "POST" else b"")
    assert answer.error() == refusal
