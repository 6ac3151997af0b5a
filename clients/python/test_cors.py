"""Cross-origin requests: preflight and the headers of real answers."""

import pytest
from azure.data.tables import TableClient, TableCorsRule, TableServiceClient

ORIGIN = "https://app.example"


@pytest.fixture
def open_server(own_server):
    with TableServiceClient.from_connection_string(own_server.connection_string(), retry_total=0) as service:
        rule = TableCorsRule([ORIGIN], ["GET", "MERGE"], allowed_headers=["x-ms-*"], exposed_headers=["x-ms-*"], max_age_in_seconds=60)
        service.set_service_properties(cors=[rule])
        service.create_table("open")
    return own_server


def preflight(server, origin=ORIGIN, method="GET", headers=None):
    sent = {"Origin": origin, "Access-Control-Request-Method": method}
    if headers:
        sent["Access-Control-Request-Headers"] = headers
    sent = {name: value for name, value in sent.items() if value}
    return server.wire().send_unsigned("OPTIONS", "/devstoreaccount1/anything", sent)


def test_a_preflight_that_matches(open_server):
    answer = preflight(open_server, headers="x-ms-date,x-ms-version")
    assert answer.status == 200
    assert answer.headers["access-control-allow-origin"] == ORIGIN
    assert answer.headers["access-control-allow-methods"] == "GET"
    assert answer.headers["access-control-allow-headers"] == "x-ms-date,x-ms-version"
    assert answer.headers["access-control-max-age"] == "60"
    assert answer.headers["access-control-allow-credentials"] == "true"


@pytest.mark.parametrize(
    "asked", [{"origin": "https://other.example"}, {"method": "DELETE"}, {"headers": "authorization"}, {"origin": ORIGIN.upper()}]
)
def test_a_preflight_that_does_not(open_server, asked):
    answer = preflight(open_server, **asked)
    assert answer.error() == (403, "CorsPreflightFailure")
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("missing", ["origin", "method"])
def test_half_a_preflight(open_server, missing):
    assert preflight(open_server, **{missing: None}).error() == (400, "InvalidHeaderValue")


def test_real_answers(open_server):
    wire = open_server.wire()
    answer = wire.send("GET", "/open()", headers={"Origin": ORIGIN})
    assert answer.headers["access-control-allow-origin"] == ORIGIN
    assert answer.headers["access-control-allow-credentials"] == "true"
    assert answer.headers["vary"] == "Origin"
    answer = wire.send("GET", "/open()", headers={"Origin": "https://other.example"})
    assert answer.status == 200 and "access-control-allow-origin" not in answer.headers
    assert answer.headers["vary"] == "Origin"
    # No cache keeps what says "no-cache", so nobody has to be told.
    assert "vary" not in wire.send("GET", "/open()").headers


def test_no_rules_no_headers(own_server):
    with TableClient.from_connection_string(own_server.connection_string(), "plain") as table:
        table.create_table()
    assert preflight(own_server).error() == (403, "CorsPreflightFailure")
    answer = own_server.wire().send("GET", "/plain()", headers={"Origin": ORIGIN})
    assert answer.status == 200
    assert not [name for name in answer.headers if name.startswith("access-control") or name == "vary"]
