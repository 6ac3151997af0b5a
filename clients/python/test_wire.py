"""HTTP itself: headers of every answer, forms of requests that some clients send, and errors as clients parse them."""

import http.client
import json
import re
import socket
import uuid
from urllib.parse import urlsplit

import pytest

from larimar_server import date_in

ENTITY = {"PartitionKey": "p", "RowKey": "r", "Value": 1}
GUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def test_headers_of_every_answer(wire, table):
    answers = [
        wire.send("GET", "/Tables"),
        wire.send("POST", f"/{table.table_name}", ENTITY),
        wire.send("PUT", f"/{table.table_name}(PartitionKey='p',RowKey='r')", ENTITY),
        wire.send("GET", f"/{table.table_name}(PartitionKey='p',RowKey='r')"),
        wire.send("GET", f"/{table.table_name}(PartitionKey='p',RowKey='none')"),
        wire.send("GET", "/Tables", sign=None),
    ]
    assert [answer.status for answer in answers] == [200, 201, 204, 200, 404, 401]
    for answer in answers:
        assert answer.headers["date"].endswith("GMT")
        assert GUID.fullmatch(answer.headers["x-ms-request-id"])
        assert answer.headers["x-ms-version"] == "2019-02-02"
        assert answer.headers["cache-control"] == "no-cache"
    assert len({answer.headers["x-ms-request-id"] for answer in answers}) == len(answers)


def test_the_request_id_of_the_client_comes_back(wire):
    own = str(uuid.uuid4())
    answer = wire.send("GET", "/Tables", headers={"x-ms-client-request-id": own})
    assert answer.headers["x-ms-client-request-id"] == own
    answer = wire.send("GET", "/nowhere()", headers={"x-ms-client-request-id": own})
    assert (answer.status, answer.headers["x-ms-client-request-id"]) == (404, own)
    assert "x-ms-client-request-id" not in wire.send("GET", "/Tables").headers


@pytest.mark.parametrize("version", ["2019-02-02", "2019-07-07", "2020-12-06", "2026-10-06", "2031-01-01"])
def test_newer_versions_are_served(wire, version):
    answer = wire.send("GET", "/Tables", headers={"x-ms-version": version})
    assert (answer.status, answer.headers["x-ms-version"]) == (200, version)


@pytest.mark.parametrize("version", ["newest", "2019-2-2", ""])
def test_a_version_that_makes_no_sense(wire, version):
    assert wire.send("GET", "/Tables", headers={"x-ms-version": version}).error() == (400, "InvalidHeaderValue")


@pytest.mark.parametrize(
    "headers",
    [
        {"DataServiceVersion": None},
        {"DataServiceVersion": "3.0;NetFx", "MaxDataServiceVersion": "3.0;NetFx"},
        {"DataServiceVersion": "1.0", "MaxDataServiceVersion": "3.0"},
        {"Accept-Charset": "UTF-8", "Accept-Encoding": "gzip, deflate"},
    ],
)
def test_protocol_headers_in_all_forms(wire, headers):
    answer = wire.send("GET", "/Tables", headers=headers)
    assert answer.status == 200 and "value" in answer.json()


def test_an_error_as_clients_parse_it(wire, table):
    answer = wire.send("GET", f"/{table.table_name}(PartitionKey='p',RowKey='none')")
    assert answer.headers["content-type"].startswith("application/json")
    error = answer.json()
    assert set(error) == {"odata.error"}
    assert set(error["odata.error"]) == {"code", "message"}
    message = error["odata.error"]["message"]
    assert message["lang"] == "en-US"
    text, request_id, time = message["value"].split("\n")
    assert text == "The specified resource does not exist."
    assert request_id == f"RequestId:{answer.headers['x-ms-request-id']}"
    assert re.fullmatch(r"Time:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,7})?Z", time)


def start_insert(wire, table, lines):
    """Sends the head of an insert with further header lines; returns the socket, for the body and the answer."""
    date = date_in(0)
    path = f"/{wire.account}/{table.table_name}"
    headers = {"x-ms-date": date, "Content-Type": "application/json"}
    head = [f"POST {path} HTTP/1.1", f"Host: {urlsplit(wire.base).netloc}", "x-ms-version: 2019-02-02"]
    head += ["Accept: application/json"]
    head += [f"{name}: {value}" for name, value in headers.items()]
    head += [f"Authorization: {wire.authorization('SharedKey', 'POST', path, headers)}", "Prefer: return-no-content"]
    host, _, port = urlsplit(wire.base).netloc.partition(":")
    connection = socket.create_connection((host, int(port)), timeout=20)
    connection.sendall(("\r\n".join(head + lines) + "\r\n\r\n").encode())
    return connection


def test_a_chunked_body(wire, table):
    body = json.dumps(ENTITY).encode()
    parts = [body[:5], body[5:6], body[6:], b""]
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
    connection = start_insert(wire, table, ["Transfer-Encoding: chunked"])
    with connection:
        connection.sendall(chunks)
        assert connection.recv(65536).startswith(b"HTTP/1.1 204")
    assert table.get_entity("p", "r")["Value"] == 1


def test_expect_100_continue(wire, table):
    body = json.dumps(ENTITY).encode()
    connection = start_insert(wire, table, ["Expect: 100-continue", f"Content-Length: {len(body)}"])
    with connection:
        assert connection.recv(65536).startswith(b"HTTP/1.1 100 Continue\r\n\r\n")
        connection.sendall(body)
        assert connection.recv(65536).startswith(b"HTTP/1.1 204")
    assert table.get_entity("p", "r")["Value"] == 1


def test_a_body_that_stops_halfway_stores_nothing(wire, table):
    body = json.dumps(ENTITY).encode()
    connection = start_insert(wire, table, [f"Content-Length: {len(body) + 10}"])
    with connection:
        connection.sendall(body)
        connection.shutdown(socket.SHUT_WR)
        connection.recv(65536)
    assert list(table.list_entities()) == []


def test_a_connection_serves_many_requests(wire, table):
    connection = http.client.HTTPConnection(urlsplit(wire.base).netloc, timeout=20)
    connection.connect()
    own_port = connection.sock.getsockname()[1]
    path = f"/{wire.account}/{table.table_name}"
    for number in range(50):
        headers = {"x-ms-date": date_in(0), "x-ms-version": "2019-02-02", "Content-Type": "application/json"}
        headers["Accept"] = "application/json"
        headers["Authorization"] = wire.authorization("SharedKey", "POST", path, headers)
        # Every second request is refused, which must not cost the connection.
        row = number if number % 2 else number - 1
        connection.request("POST", path, json.dumps({"PartitionKey": "p", "RowKey": f"{row}"}), headers)
        response = connection.getresponse()
        response.read()
        assert response.status == (201 if number % 2 or number == 0 else 409)
        assert connection.sock.getsockname()[1] == own_port
    connection.close()


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ("/{table}()", 200),
        ("/{table}", 200),
        ("/{table}(PartitionKey='p',RowKey='r')", 200),
        ("/{table}(PartitionKey='p',%20RowKey='r')", 200),
        ("/{table}(RowKey='r',PartitionKey='p')", 200),
        ("/Tables", 200),
        ("/Tables()", 200),
        ("/Tables('{table}')", 200),
        ("/{table}(PartitionKey='p')", 400),
        ("/{table}(PartitionKey='p',RowKey='r'", 400),
        ("/{table}(PartitionKey=p,RowKey=r)", 400),
        ("/{table}(PartitionKey='p',RowKey='r',More='x')", 400),
    ],
)
def test_forms_of_addresses(wire, table, form, status):
    table.create_entity(ENTITY)
    answer = wire.send("GET", form.format(table=table.table_name))
    assert answer.status == status
    if status == 400:
        assert answer.error()[1] in {"InvalidInput", "InvalidUri"}


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("PUT", "/Tables"),
        ("DELETE", "/Tables"),
        ("PUT", "/{table}"),
        ("DELETE", "/{table}"),
        ("GET", "/$batch"),
        ("TRACE", "/{table}()"),
        ("BREW", "/{table}()"),
    ],
)
def test_verbs_that_a_resource_does_not_know(wire, table, method, target):
    table.create_entity(ENTITY)
    answer = wire.send(method, target.format(table=table.table_name), headers={"If-Match": "*"})
    assert answer.status in (400, 405)
    assert answer.error()[1] in {"MethodNotAllowed", "UnsupportedHttpVerb", "InvalidInput"}
    assert table.get_entity("p", "r")["Value"] == 1


@pytest.mark.parametrize("content_type", ["application/atom+xml", "application/xml", "text/plain"])
def test_bodies_of_other_types(wire, table, content_type):
    answer = wire.send("POST", f"/{table.table_name}", "<entry/>", headers={"Content-Type": content_type})
    assert answer.status in (400, 415)
    assert list(table.list_entities()) == []


def test_a_gap_in_the_json_is_no_matter(wire, table):
    body = '\n {\t"PartitionKey" : "p" ,\r\n "RowKey":"\\u0072", "Value" : 1 }\n'
    assert wire.send("POST", f"/{table.table_name}", body).status == 201
    assert dict(table.get_entity("p", "r")) == ENTITY
