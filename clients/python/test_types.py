"""Property types to the edge: what goes in comes out, with its type."""

import math
import uuid
from datetime import datetime, timezone

import pytest
from azure.data.tables import EdmType, EntityProperty

KEYS = {"PartitionKey": "p", "RowKey": "r"}


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        "text",
        "line\r\nbreak\ttab",
        "quote ' and \" and \\",
        "null",
        "ümläut 日本語 😀",
        "\ufffe\uffff",
        "<xml>&amp;</xml>",
        "x" * 32768,
        "😀" * 16384,
        True,
        False,
        0,
        -1,
        2**31 - 1,
        -(2**31),
        0.0,
        2.0,
        0.1,
        -1.5e-7,
        1.7976931348623157e308,
        -1.7976931348623157e308,
        5e-324,
        2.0**53,
        123456789012345680.0,
        math.inf,
        -math.inf,
        b"",
        b"\x00\xff",
        bytes(range(256)),
        b"x" * 65536,
        uuid.UUID("c9da6455-213d-42c9-9a79-3e9149a57833"),
        uuid.UUID(int=0),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_a_value_comes_back_the_same(table, value):
    table.create_entity(KEYS | {"Value": value})
    found = table.get_entity("p", "r")["Value"]
    assert type(found) is type(value)
    assert found == value
    listed = next(iter(table.list_entities()))["Value"]
    assert type(listed) is type(value) and listed == value


def test_not_a_number(table):
    table.create_entity(KEYS | {"Value": math.nan})
    assert math.isnan(table.get_entity("p", "r")["Value"])


@pytest.mark.parametrize("value", [0, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)])
def test_int64(table, value):
    table.create_entity(KEYS | {"Value": EntityProperty(value, EdmType.INT64)})
    assert table.get_entity("p", "r")["Value"] == EntityProperty(value, EdmType.INT64)


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ("1601-01-01T00:00:00Z", "1601-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.9999999Z"),
        ("2020-02-29T12:34:56Z", "2020-02-29T12:34:56Z"),
        ("2020-01-02T03:04:05.1234567Z", "2020-01-02T03:04:05.1234567Z"),
        ("2020-01-02T03:04:05.1230000Z", "2020-01-02T03:04:05.123Z"),
        ("2020-01-02T03:04:05.0000001Z", "2020-01-02T03:04:05.0000001Z"),
        ("2020-01-02T03:04:05+02:00", "2020-01-02T01:04:05Z"),
        ("2020-01-02T03:04:05-11:30", "2020-01-02T14:34:05Z"),
        ("2020-01-02T03:04:05", "2020-01-02T03:04:05Z"),
    ],
)
def test_instants(table, sent, stored):
    table.create_entity(KEYS | {"Value": (sent, EdmType.DATETIME)})
    assert table.get_entity("p", "r")["Value"].tables_service_value == stored


def test_an_instant_of_the_language(table):
    instant = datetime(2026, 3, 4, 5, 6, 7, 891011, tzinfo=timezone.utc)
    table.create_entity(KEYS | {"Value": instant})
    found = table.get_entity("p", "r")["Value"]
    assert (found.tables_service_value, found) == ("2026-03-04T05:06:07.891011Z", instant)


@pytest.mark.parametrize(
    ("edm_type", "value", "code"),
    [
        ("Edm.DateTime", "1600-12-31T23:59:59Z", "OutOfRangeInput"),
        ("Edm.DateTime", "yesterday", "InvalidInput"),
        ("Edm.Int64", "9223372036854775808", "InvalidInput"),
        ("Edm.Int64", "-9223372036854775809", "InvalidInput"),
        ("Edm.Int64", "12.5", "InvalidInput"),
        ("Edm.Int64", "", "InvalidInput"),
        ("Edm.Int32", "x", "InvalidInput"),
        ("Edm.Guid", "not-a-guid", "InvalidInput"),
        ("Edm.Guid", "c9da6455-213d-42c9-9a79-3e9149a5783", "InvalidInput"),
        ("Edm.Binary", "*", "InvalidInput"),
        ("Edm.Binary", 7, "InvalidInput"),
        ("Edm.Boolean", "maybe", "InvalidInput"),
        ("Edm.Double", "many", "InvalidInput"),
        ("Edm.String", 7, "InvalidInput"),
        ("Edm.Nonsense", "x", "InvalidInput"),
    ],
)
def test_a_value_that_is_not_of_its_type(table, wire, edm_type, value, code):
    body = KEYS | {"Value@odata.type": edm_type, "Value": value}
    assert wire.send("POST", f"/{table.table_name}", body).error() == (400, code)
    assert list(table.list_entities()) == []


@pytest.mark.parametrize("value", [{"a": 1}, [1, 2]])
def test_values_are_not_nested(table, wire, value):
    assert wire.send("POST", f"/{table.table_name}", KEYS | {"Value": value}).error() == (400, "InvalidInput")


def test_a_double_that_overflows(table, wire):
    body = '{"PartitionKey":"p","RowKey":"r","Value":1e309}'
    assert wire.send("POST", f"/{table.table_name}", body).error() == (400, "InvalidInput")


def test_the_same_property_twice(table, wire):
    body = '{"PartitionKey":"p","RowKey":"r","Value":1,"Value":2}'
    assert wire.send("POST", f"/{table.table_name}", body).error() == (400, "DuplicatePropertiesSpecified")


def test_a_null_is_not_stored(table, wire):
    body = KEYS | {"Nothing": None, "Typed@odata.type": "Edm.Int64", "Typed": None, "Value": 1}
    assert wire.send("POST", f"/{table.table_name}", body).status == 201
    assert dict(table.get_entity("p", "r")) == KEYS | {"Value": 1}


def test_a_null_in_a_merge_leaves_the_old_value(table, wire):
    table.create_entity(KEYS | {"Value": 1})
    target = f"/{table.table_name}(PartitionKey='p',RowKey='r')"
    assert wire.send("MERGE", target, {"Value": None}, headers={"If-Match": "*"}).status == 204
    assert table.get_entity("p", "r")["Value"] == 1


def test_a_timestamp_that_is_sent_is_ignored(table, wire):
    body = KEYS | {"Timestamp@odata.type": "Edm.DateTime", "Timestamp": "2001-01-01T00:00:00Z"}
    assert wire.send("POST", f"/{table.table_name}", body).status == 201
    assert table.get_entity("p", "r").metadata["timestamp"].year > 2020


def test_unknown_annotations_are_ignored(table, wire):
    body = {"odata.type": "x.y", "odata.etag": "old", "odata.unknown": 7} | KEYS | {"Value": 1}
    assert wire.send("POST", f"/{table.table_name}", body).status == 201
    assert dict(table.get_entity("p", "r")) == KEYS | {"Value": 1}


def test_annotations_on_keys(table, wire):
    body = KEYS | {"PartitionKey@odata.type": "Edm.String", "RowKey@odata.type": "Edm.String"}
    assert wire.send("POST", f"/{table.table_name}", body).status == 201
    body = {"PartitionKey": "p", "RowKey": "5", "RowKey@odata.type": "Edm.Int64"}
    assert wire.send("POST", f"/{table.table_name}", body).status == 400


def test_numbers_as_json(table, wire):
    """A whole double keeps its point, an Int64 is a string: else readers take them for Int32 or lose digits."""
    body = KEYS | {"Whole@odata.type": "Edm.Double", "Whole": 2, "Big@odata.type": "Edm.Int64", "Big": "5", "Int": 5}
    assert wire.send("POST", f"/{table.table_name}", body).status == 201
    text = wire.send("GET", f"/{table.table_name}(PartitionKey='p',RowKey='r')").text()
    assert '"Whole":2.0' in text
    assert '"Big@odata.type":"Edm.Int64","Big":"5"' in text
    assert '"Int":5' in text and '"Int":5.' not in text


def test_a_guid_is_stored_in_lower_case_form(table, wire):
    body = KEYS | {"Value@odata.type": "Edm.Guid", "Value": "C9DA6455-213D-42C9-9A79-3E9149A57833"}
    assert wire.send("POST", f"/{table.table_name}", body).status == 201
    assert table.get_entity("p", "r")["Value"] == uuid.UUID("c9da6455-213d-42c9-9a79-3e9149a57833")
