"""The three metadata levels, byte for byte where clients read them."""

import pytest

from larimar_server import new_name

KEYS = {"PartitionKey": "p'1", "RowKey": "r 1"}
PROPERTIES = {
    "Text": "a",
    "Int": 5,
    "Real": 2.0,
    "Flag": True,
    "Big@odata.type": "Edm.Int64",
    "Big": "5",
    "When@odata.type": "Edm.DateTime",
    "When": "2020-01-02T03:04:05.5Z",
    "Id@odata.type": "Edm.Guid",
    "Id": "c9da6455-213d-42c9-9a79-3e9149a57833",
    "Raw@odata.type": "Edm.Binary",
    "Raw": "AAE=",
    "None@odata.type": "Edm.Double",
    "None": "NaN",
}
VALUES = {name: value for name, value in PROPERTIES.items() if "@" not in name}
ANNOTATIONS = {name: value for name, value in PROPERTIES.items() if "@" in name}


def level(name):
    return f"application/json;odata={name}"


@pytest.fixture
def stored(table, wire):
    answer = wire.send("POST", f"/{table.table_name}", KEYS | PROPERTIES, headers={"Prefer": "return-no-content"})
    assert answer.status == 204
    return table.table_name, f"/{table.table_name}(PartitionKey='p%27%271',RowKey='r%201')", answer.headers["etag"]


def check(entity, expected_level, base, table, etag):
    """All members of an entity at a level, none more."""
    entity = dict(entity)
    stamp = entity.pop("Timestamp")
    assert stamp.endswith("Z")
    for name, value in (KEYS | VALUES).items():
        assert entity.pop(name) == value, name
    if expected_level == "nometadata":
        assert entity == {}
        return
    for name, value in ANNOTATIONS.items():
        assert entity.pop(name) == value, name
    assert entity.pop("odata.etag") == etag
    if expected_level == "fullmetadata":
        account = base.rsplit("/", 1)[1]
        assert entity.pop("Timestamp@odata.type") == "Edm.DateTime"
        assert entity.pop("odata.type") == f"{account}.{table}"
        link = f"{table}(PartitionKey='p''1',RowKey='r%201')"
        assert entity.pop("odata.id") == f"{base}/{link}"
        assert entity.pop("odata.editLink") == link
    assert entity == {}


LEVELS = ["nometadata", "minimalmetadata", "fullmetadata"]


@pytest.mark.parametrize("name", LEVELS)
def test_one_entity(server, wire, stored, name):
    table, target, etag = stored
    answer = wire.send("GET", target, accept=level(name))
    assert answer.status == 200
    assert answer.headers["content-type"] == f"application/json;odata={name};streaming=true;charset=utf-8"
    assert answer.headers["etag"] == etag
    entity = answer.json()
    base = server.endpoint()
    metadata = None if name == "nometadata" else f"{base}/$metadata#{table}/@Element"
    assert entity.pop("odata.metadata", None) == metadata
    check(entity, name, base, table, etag)


@pytest.mark.parametrize("name", LEVELS)
def test_a_list(server, wire, stored, name):
    table, _, etag = stored
    answer = wire.query(f"/{table}()", accept=level(name))
    body = answer.json()
    base = server.endpoint()
    metadata = None if name == "nometadata" else f"{base}/$metadata#{table}"
    assert body.pop("odata.metadata", None) == metadata
    (entity,) = body.pop("value")
    assert body == {}
    check(entity, name, base, table, etag)


@pytest.mark.parametrize("name", LEVELS)
def test_an_inserted_entity(server, wire, table, name):
    answer = wire.send("POST", f"/{table.table_name}", KEYS | PROPERTIES, accept=level(name))
    assert answer.status == 201
    entity = answer.json()
    entity.pop("odata.metadata", None)
    check(entity, name, server.endpoint(), table.table_name, answer.headers["etag"])


@pytest.mark.parametrize("name", LEVELS)
def test_the_format_parameter_beats_the_header(wire, stored, name):
    table, target, _ = stored
    other = LEVELS[LEVELS.index(name) - 1]
    asked = level(name).replace("/", "%2F").replace(";", "%3B").replace("=", "%3D")
    answer = wire.send("GET", f"{target}?$format={asked}", accept=level(other))
    assert answer.status == 200
    assert answer.headers["content-type"].startswith(level(name))


@pytest.mark.parametrize("accept", ["application/json", "*/*", "application/json; odata=minimalmetadata", None])
def test_minimal_is_the_usual_level(wire, stored, accept):
    _, target, etag = stored
    answer = wire.send("GET", target, headers={"Accept": accept})
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("application/json;odata=minimalmetadata")
    assert answer.json()["odata.etag"] == etag


@pytest.mark.parametrize("spelling", ["application/json; odata=fullmetadata", "application/json;odata=fullmetadata;q=1"])
def test_blanks_and_more_parameters_in_accept(wire, stored, spelling):
    _, target, _ = stored
    assert "odata.id" in wire.send("GET", target, accept=spelling).json()


@pytest.mark.parametrize(
    ("accept", "code"),
    [("application/atom+xml", "AtomFormatNotSupported"), ("application/json;odata=verbose", "JsonVerboseFormatNotSupported")],
)
def test_old_formats_are_refused(wire, stored, accept, code):
    _, target, _ = stored
    answer = wire.send("GET", target, accept=accept)
    assert answer.error() == (415, code)


@pytest.mark.parametrize("name", LEVELS)
def test_a_table(server, wire, name):
    table, base = new_name(), server.endpoint()
    created = wire.send("POST", "/Tables", {"TableName": table}, accept=level(name))
    assert created.status == 201
    assert created.headers["location"] == f"{base}/Tables('{table}')"
    read = wire.send("GET", f"/Tables('{table}')", accept=level(name))
    assert read.status == 200
    for answer in (created, read):
        body = answer.json()
        assert body.pop("TableName") == table
        if name != "nometadata":
            assert body.pop("odata.metadata") == f"{base}/$metadata#Tables/@Element"
        if name == "fullmetadata":
            assert body.pop("odata.type") == "devstoreaccount1.Tables"
            assert body.pop("odata.id") == f"{base}/Tables('{table}')"
            assert body.pop("odata.editLink") == f"Tables('{table}')"
        assert body == {}
    body = wire.send("GET", f"/Tables?$filter=TableName%20eq%20'{table}'", accept=level(name)).json()
    assert [item["TableName"] for item in body["value"]] == [table]
    assert body.get("odata.metadata") == (None if name == "nometadata" else f"{base}/$metadata#Tables")
    assert wire.send("DELETE", f"/Tables('{table}')").status == 204


def test_selection_shows_in_the_metadata(server, wire, stored):
    table, target, _ = stored
    answer = wire.send("GET", f"{target}?$select=Text,Int")
    base = server.endpoint()
    assert answer.json()["odata.metadata"] == f"{base}/$metadata#{table}/@Element&$select=Text,Int"
