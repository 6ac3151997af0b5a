"""Who may ask: signed requests pass, all others are refused, each with its documented error, and change nothing."""

import base64

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import ClientAuthenticationError
from azure.data.tables import TableServiceClient

from larimar_server import KEY, Server, date_in, new_name, signature

ENTITY = {"PartitionKey": "p", "RowKey": "r", "Value": 1}
OTHER_KEY = base64.b64encode(bytes(range(64))).decode("ascii")
MINUTE = 60

# Every kind of request there is: method, target, body, headers.
REQUESTS = {
    "list tables": ("GET", "/Tables", b"", {}),
    "create table": ("POST", "/Tables", {"TableName": "refused"}, {}),
    "delete table": ("DELETE", "/Tables('{table}')", b"", {}),
    "insert": ("POST", "/{table}", ENTITY | {"RowKey": "refused"}, {}),
    "query": ("GET", "/{table}()", b"", {}),
    "get": ("GET", "/{table}(PartitionKey='p',RowKey='r')", b"", {}),
    "get of nothing": ("GET", "/nowhere(PartitionKey='p',RowKey='r')", b"", {}),
    "update": ("PUT", "/{table}(PartitionKey='p',RowKey='r')", {"Value": 2}, {"If-Match": "*"}),
    "merge": ("MERGE", "/{table}(PartitionKey='p',RowKey='r')", {"Value": 2}, {"If-Match": "*"}),
    "delete": ("DELETE", "/{table}(PartitionKey='p',RowKey='r')", b"", {"If-Match": "*"}),
    "batch": ("POST", "/$batch", "--b--\r\n", {"Content-Type": "multipart/mixed; boundary=b"}),
    "policies": ("GET", "/{table}?comp=acl", b"", {}),
    "service properties": ("GET", "/?restype=service&comp=properties", b"", {}),
}

# Ways to be wrong: what to change, and the error.
WRONG = {
    "unsigned": ({"sign": None}, (401, "NoAuthenticationInformation")),
    "another key": ({"key": OTHER_KEY}, (403, "AuthenticationFailed")),
    "another key, Lite": ({"sign": "SharedKeyLite", "key": OTHER_KEY}, (403, "AuthenticationFailed")),
    "an unknown account": ({"account": "someoneelse"}, (403, "AuthenticationFailed")),
    "too old": ({"date": -16 * MINUTE}, (403, "AuthenticationFailed")),
    "too new": ({"date": 16 * MINUTE}, (403, "AuthenticationFailed")),
    "not a date": ({"date": "yesterday"}, (403, "AuthenticationFailed")),
    "no scheme": ({"authorization": "devstoreaccount1:xyz"}, (400, "InvalidAuthenticationInfo")),
    "another scheme": ({"authorization": "Basic YTpi"}, (400, "InvalidAuthenticationInfo")),
    "no signature": ({"authorization": "SharedKey devstoreaccount1"}, (400, "InvalidAuthenticationInfo")),
    "an empty signature": ({"authorization": "SharedKey devstoreaccount1:"}, None),
    "not Base64": ({"authorization": "SharedKey devstoreaccount1:!!!!"}, None),
}


@pytest.fixture
def filled(table):
    table.create_entity(ENTITY)
    return table


@pytest.mark.parametrize("request_kind", REQUESTS)
@pytest.mark.parametrize("wrong", WRONG)
def test_each_request_is_refused_each_time(service, filled, wire, request_kind, wrong):
    method, target, body, headers = REQUESTS[request_kind]
    change, expected = WRONG[wrong]
    change = dict(change)
    if isinstance(change.get("date"), int):
        change["date"] = date_in(change["date"])
    if "authorization" in change:
        headers = headers | {"Authorization": change.pop("authorization")}
        change["sign"] = None
    etag = filled.get_entity("p", "r").metadata["etag"]
    answer = wire.send(method, target.format(table=filled.table_name), body, headers=headers, **change)
    if expected:
        assert answer.error() == expected
    else:
        assert answer.error() in {(400, "InvalidAuthenticationInfo"), (403, "AuthenticationFailed")}
    assert [found.metadata["etag"] for found in filled.list_entities()] == [etag]
    assert "refused" not in [item.name for item in service.list_tables()]


@pytest.mark.parametrize("scheme", ["SharedKey", "SharedKeyLite"])
@pytest.mark.parametrize("request_kind", [kind for kind in REQUESTS if kind not in ("batch", "policies", "service properties")])
def test_each_request_passes_when_signed(service, filled, wire, request_kind, scheme):
    method, target, body, headers = REQUESTS[request_kind]
    answer = wire.send(method, target.format(table=filled.table_name), body, headers=headers, sign=scheme)
    expected = {"list tables": 200, "create table": 201, "insert": 201, "query": 200, "get": 200, "get of nothing": 404}
    assert answer.status == expected.get(request_kind, 204), answer.body
    if request_kind == "create table":
        service.delete_table("refused")


@pytest.mark.parametrize("seconds", [-14 * MINUTE, 14 * MINUTE])
@pytest.mark.parametrize("scheme", ["SharedKey", "SharedKeyLite"])
def test_clocks_may_differ_a_little(wire, scheme, seconds):
    assert wire.send("GET", "/Tables", sign=scheme, date=date_in(seconds)).status == 200


@pytest.mark.parametrize("scheme", ["SharedKey", "SharedKeyLite"])
def test_the_date_header_stands_in(wire, scheme):
    answer = wire.send("GET", "/Tables", sign=scheme, headers={"x-ms-date": None, "Date": date_in(0)})
    assert answer.status == 200
    answer = wire.send("GET", "/Tables", sign=scheme, headers={"x-ms-date": None, "Date": date_in(-16 * MINUTE)})
    assert answer.error() == (403, "AuthenticationFailed")
    # The other header wins when both are there.
    answer = wire.send("GET", "/Tables", sign=scheme, headers={"Date": date_in(-60 * MINUTE)})
    assert answer.status == 200


@pytest.mark.parametrize("scheme", ["SharedKey", "SharedKeyLite"])
def test_no_date_at_all(wire, scheme):
    answer = wire.send("GET", "/Tables", sign=scheme, headers={"x-ms-date": None})
    assert answer.status in (400, 403)
    assert answer.error()[1] in {"AuthenticationFailed", "MissingRequiredHeader", "InvalidAuthenticationInfo"}


def test_what_shared_key_covers(wire, table):
    """A signature for one request opens no other."""
    target = f"/{table.table_name}(PartitionKey='p',RowKey='r')"
    date = date_in(0)
    sent = {"x-ms-date": date, "Content-Type": "application/json", "Content-MD5": ""}
    path = f"/{wire.account}{target}"
    valid = wire.authorization("SharedKey", "PUT", path, sent)

    def put(change=None, method="PUT", sent_target=target):
        headers = {"Authorization": valid, "x-ms-date": date} | (change or {})
        return wire.send(method, sent_target, {"Value": 1}, sign=None, headers=headers)

    assert put().status == 204
    refused = [
        put({"Content-Type": "application/json;odata=nometadata"}),
        put({"Content-MD5": "XrY7u+Ae7tCTyyK7j1rNww=="}),
        put({"x-ms-date": date_in(-1 * MINUTE)}),
        put(method="MERGE"),
        put(sent_target=target.replace("'r'", "'s'")),
        put(sent_target=target + "?comp=acl"),
    ]
    assert [answer.error() for answer in refused] == [(403, "AuthenticationFailed")] * len(refused)


def test_a_signature_for_a_scheme_is_none_for_the_other(wire):
    valid = wire.authorization("SharedKey", "GET", "/devstoreaccount1/Tables", {"x-ms-date": date_in(0)})
    answer = wire.send("GET", "/Tables", sign=None, headers={"Authorization": valid.replace("SharedKey", "SharedKeyLite")})
    assert answer.error() == (403, "AuthenticationFailed")


def test_the_error_says_what_the_server_signed(wire):
    answer = wire.send("GET", "/Tables", key=OTHER_KEY)
    assert answer.error() == (403, "AuthenticationFailed")
    assert wire.last_string_to_sign.splitlines()[-1] in answer.text()
    assert KEY not in answer.text() and signature(KEY, wire.last_string_to_sign) not in answer.text()


def test_the_client_knows_the_refusal(server):
    wrong = AzureNamedKeyCredential("devstoreaccount1", OTHER_KEY)
    with TableServiceClient(server.endpoint(), credential=wrong, retry_total=0) as service:
        with pytest.raises(ClientAuthenticationError) as caught:
            list(service.list_tables())
    assert caught.value.status_code == 403
    assert caught.value.error_code.value == "AuthenticationFailed"


def test_the_path_is_signed_as_it_was_sent(wire, table):
    """Escapes are neither added nor resolved before signing."""
    for written in ("RowKey='a%20b'", "RowKey='a%2Bb'", "RowKey='%E2%82%AC'", "RowKey='(x)'", "RowKey='%28y%29'"):
        answer = wire.send("PUT", f"/{table.table_name}(PartitionKey='p',{written})", {"Value": 1})
        assert answer.status == 204, written
    assert {entity["RowKey"] for entity in table.list_entities()} == {"a b", "a+b", "€", "(x)", "(y)"}


def test_query_parameters_are_not_signed(wire, table):
    assert wire.send("GET", f"/{table.table_name}()?$top=1&$select=A").status == 200


@pytest.mark.parametrize("how", ["flag", "environment", "peer's environment"])
def test_own_accounts_with_two_keys(how):
    account = f"first:{OTHER_KEY}:{KEY}"
    if how == "flag":
        server = Server("--account", account, "--account", f"second:{KEY}")
    else:
        name = "LARIMAR_ACCOUNTS" if how == "environment" else "AZURITE_ACCOUNTS"
        server = Server(environment={name: f"{account};second:{KEY}"})
    with server:
        for key in (OTHER_KEY, KEY):
            assert server.wire("first", key).send("GET", "/Tables").status == 200
        assert server.wire("second", KEY).send("GET", "/Tables").status == 200
        assert server.wire("second", OTHER_KEY).send("GET", "/Tables").error() == (403, "AuthenticationFailed")
        # Own accounts replace the development one.
        assert server.wire().send("GET", "/Tables").error() == (404, "ResourceNotFound")
        # A key of one account opens no other.
        crossed = server.wire("second", KEY).send("GET", "/Tables", account="first")
        assert crossed.error() == (403, "AuthenticationFailed")


def test_accounts_don_t_see_each_other():
    with Server("--account", f"first:{KEY}", "--account", f"second:{KEY}") as server:
        name = new_name()
        assert server.wire("first").send("POST", "/Tables", {"TableName": name}).status == 201
        assert server.wire("first").send("POST", f"/{name}", ENTITY).status == 201
        assert server.wire("second").send("GET", "/Tables").json()["value"] == []
        assert server.wire("second").send("GET", f"/{name}()").error() == (404, "TableNotFound")
        assert server.wire("second").send("POST", "/Tables", {"TableName": name}).status == 201
        assert server.wire("second").send("GET", f"/{name}()").json()["value"] == []
