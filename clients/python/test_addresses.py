"""Host style, path style and the read-only secondary."""

import pytest

from larimar_server import ACCOUNT, Wire, date_in

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
