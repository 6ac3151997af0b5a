"""Queries: every operator and literal type, logic and precedence, selection, order, pages."""

import operator
import uuid
from datetime import datetime, timezone
from urllib.parse import quote

import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import EdmType, EntityProperty, TableClient

from larimar_server import new_name, next_page

OPERATORS = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "ge": operator.ge,
    "lt": operator.lt,
    "le": operator.le,
}
TURNED = {"eq": "eq", "ne": "ne", "gt": "lt", "ge": "le", "lt": "gt", "le": "ge"}

GUIDS = [uuid.UUID(int=number << 96) for number in (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)]
INSTANTS = ["1601-01-01T00:00:00Z", "2020-01-01T00:00:00Z", "2020-01-01T00:00:00.0000001Z", "2020-01-02T00:00:00Z"]
INSTANTS.append("9999-12-31T23:59:59.9999999Z")

# For each type five values in ascending order, and the literals that stand for the middle one.
TYPES = {
    "Int32": ([-(2**31), -1, 0, 7, 2**31 - 1], ["0", "-0"]),
    "Int64": ([-(2**63), -(2**40), 2**40, 2**40 + 1, 2**63 - 1], ["1099511627776L"]),
    "Double": ([-1.7e308, -1.5, 0.5, 1e10, 1.7e308], ["0.5", "5e-1", "5E-1", "0.05e1"]),
    "Instant": (INSTANTS, ["datetime'2020-01-01T00:00:00.0000001Z'"]),
    "Guid": (GUIDS, [f"guid'{GUIDS[2]}'", f"guid'{str(GUIDS[2]).upper()}'"]),
    "Bytes": ([b"", b"\x00", b"\x00\x01", b"\x01", b"\xff\x00"], ["X'0001'", "binary'0001'"]),
    "Text": (["", "A", "it's", "iu", "é"], ["'it''s'"]),
}


def typed(kind, value):
    if kind == "Int64":
        return EntityProperty(value, EdmType.INT64)
    if kind == "Instant":
        return (value, EdmType.DATETIME)
    return value


@pytest.fixture(scope="module")
def typed_rows(server):
    """Rows r0 to r4 with each type's values in order, and a row without any of them."""
    with TableClient.from_connection_string(server.connection_string(), new_name(), retry_total=0) as table:
        table.create_table()
        for index in range(5):
            own = {kind: typed(kind, values[index]) for kind, (values, _) in TYPES.items()}
            table.create_entity({"PartitionKey": "p", "RowKey": f"r{index}", "Flag": index >= 2} | own)
        table.create_entity({"PartitionKey": "p", "RowKey": "none", "Other": 1})
        yield table
        table.delete_table()


def rows(table, query_filter, **more):
    return [entity["RowKey"] for entity in table.query_entities(query_filter, **more)]


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("kind", TYPES)
def test_comparisons(typed_rows, kind, name):
    """A row without the property satisfies no comparison, `ne` included."""
    expected = [f"r{index}" for index in range(5) if OPERATORS[name](index, 2)]
    for literal in TYPES[kind][1]:
        assert rows(typed_rows, f"{kind} {name} {literal}") == expected
        assert rows(typed_rows, f"{literal} {TURNED[name]} {kind}") == expected


@pytest.mark.parametrize("kind", TYPES)
def test_each_value_is_found_by_its_parameter(typed_rows, kind):
    """The client writes the literals."""
    if kind == "Instant":
        values = [datetime(2020, 1, 1, tzinfo=timezone.utc), datetime(2020, 1, 2, tzinfo=timezone.utc)]
        indexes = [1, 3]
    else:
        values, indexes = TYPES[kind][0], range(5)
    for value, index in zip(values, indexes):
        if value == 0 and type(value) is int:
            continue  # The client writes `false` for 0.
        assert rows(typed_rows, f"{kind} eq @value", parameters={"value": value}) == [f"r{index}"]


@pytest.mark.parametrize(
    ("query_filter", "expected"),
    [
        ("Flag eq true", "234"),
        ("Flag eq false", "01"),
        ("Flag ne true", "01"),
        ("true eq Flag", "234"),
        ("Flag", "234"),
        ("not Flag", "01n"),
        ("Flag gt false", "234"),
        ("Int32 eq 7", "3"),
        ("Int32 ge -1 and Int32 le 7", "123"),
        ("Int32 eq -1 or Int32 eq 7", "13"),
        ("not (Int32 eq 7)", "0124n"),
        ("not Int32 eq 7", "0124n"),
        ("not (Int32 ne 7)", "3n"),
        ("not not Int32 eq 7", "3"),
        # `and` binds tighter than `or`, `not` tighter than both.
        ("Int32 eq 7 or Int32 eq -1 and Flag eq true", "3"),
        ("(Int32 eq 7 or Int32 eq -1) and Flag eq true", "3"),
        ("Int32 eq -1 or Int32 eq 7 and Flag eq true", "13"),
        ("(Int32 eq -1 or Int32 eq 7) and Flag eq false", "1"),
        ("not Flag eq true and Int32 eq -1", "1"),
        ("not (Flag eq true or Int32 eq -1)", "0n"),
        ("((Int32 eq 7))", "3"),
        ("(Int32 eq 7)and(Flag eq true)", "3"),
        ("Other eq 1", "n"),
        ("Missing eq 1", ""),
        ("Missing ne 1", ""),
        ("not (Missing eq 1)", "01234n"),
        # Numbers of different width compare by value where the property is the wider one.
        ("Int64 gt 0", "234"),
        ("Double gt 0", "234"),
        ("Double eq 10000000000L", "3"),
        ("Double lt 1L", "012"),
        # A text is not a number.
        ("Text eq 1", ""),
        ("Int32 eq '7'", ""),
        ("Guid eq '00000001-0000-0000-0000-000000000000'", ""),
        ("PartitionKey eq 'p' and RowKey eq 'r1'", "1"),
        ("PartitionKey eq 'p' and RowKey ge 'r1' and RowKey lt 'r3'", "12"),
        ("PartitionKey eq 'P'", ""),
        ("RowKey gt 'r2'", "34"),
        ("RowKey eq 'r0' or RowKey eq 'r4' and PartitionKey eq 'p'", "04"),
        ("PartitionKey lt 'p'", ""),
        ("PartitionKey ge 'p' and Flag eq true", "234"),
        ("Timestamp gt datetime'2020-01-01T00:00:00Z'", "01234n"),
        ("Timestamp lt datetime'2020-01-01T00:00:00Z'", ""),
        ("", "01234n"),
    ],
)
def test_logic(typed_rows, query_filter, expected):
    names = {"n": "none"}
    expected_rows = sorted(names.get(letter, f"r{letter}") for letter in expected)
    assert rows(typed_rows, query_filter) == expected_rows


@pytest.mark.parametrize(
    "query_filter",
    [
        "Int32 eq",
        "eq 7",
        "Int32 7",
        "Int32 == 7",
        "Int32 EQ 7",
        "Int32 eq 7 AND Flag eq true",
        "(Int32 eq 7",
        "Int32 eq 7)",
        "Int32 eq 7 and",
        "and Int32 eq 7",
        "not",
        "Int32 eq 'seven",
        "Int32 eq 7 Flag eq true",
        "Int32 eq datetime'yesterday'",
        "Guid eq guid'nonsense'",
        "Bytes eq X'0'",
        "Bytes eq X'zz'",
        "Int32 eq 2147483648",
        "Int32 eq null",
        "Int32 ne null",
        "Int32 eq 1.5.5",
        "()",
        "'",
    ],
)
def test_filters_that_make_no_sense(wire, typed_rows, query_filter):
    answer = wire.send("GET", f"/{typed_rows.table_name}()?$filter={quote(query_filter)}")
    assert answer.error() == (400, "InvalidInput")


@pytest.mark.parametrize("query_filter", ["Int32 eq Int64", "1 eq 1", "'a' eq 'b'"])
def test_only_a_property_with_a_constant(wire, typed_rows, query_filter):
    answer = wire.send("GET", f"/{typed_rows.table_name}()?$filter={quote(query_filter)}")
    assert answer.error() == (501, "NotImplemented")


def test_a_deep_filter_is_answered(wire, typed_rows):
    """Nesting must not exhaust the parser, whichever way it is answered."""
    for depth in (10, 2000):
        deep = "(" * depth + "Int32 eq 7" + ")" * depth
        answer = wire.query(f"/{typed_rows.table_name}()?$filter={quote(deep)}")
        assert answer.status in (200, 400)
        if depth == 10:
            assert [entity["RowKey"] for entity in answer.json()["value"]] == ["r3"]
    assert rows(typed_rows, "Int32 eq 7") == ["r3"]


def test_select(typed_rows):
    found = list(typed_rows.query_entities("RowKey eq 'r3'", select=["Int32", "Flag"]))
    assert [dict(entity) for entity in found] == [{"Int32": 7, "Flag": True}]
    assert found[0].metadata["etag"], "the ETag comes with any selection"
    found = list(typed_rows.query_entities("RowKey eq 'r3'", select=["PartitionKey", "RowKey"]))
    assert [dict(entity) for entity in found] == [{"PartitionKey": "p", "RowKey": "r3"}]
    found = list(typed_rows.query_entities("RowKey eq 'none'", select="Other"))
    assert [dict(entity) for entity in found] == [{"Other": 1}]


def test_select_of_what_an_entity_lacks(typed_rows):
    found = next(iter(typed_rows.query_entities("RowKey eq 'none'", select=["Other", "Int32"])))
    assert found["Other"] == 1
    assert found.get("Int32") is None


def test_select_everything(typed_rows):
    assert set(next(iter(typed_rows.query_entities("RowKey eq 'none'", select="*")))) >= {"PartitionKey", "RowKey", "Other"}


def test_encoded_commas_in_select(wire, typed_rows):
    answer = wire.query(f"/{typed_rows.table_name}()?$filter=RowKey%20eq%20'r3'&$select=Int32%2CFlag")
    (entity,) = answer.json()["value"]
    assert {name for name in entity if not name.startswith("odata.")} == {"Int32", "Flag"}


def test_top_is_the_size_of_a_page(typed_rows):
    pages = [[entity["RowKey"] for entity in page] for page in typed_rows.list_entities(results_per_page=4).by_page()]
    pages = [page for page in pages if page]
    assert all(len(page) <= 4 for page in pages)
    assert sum(pages, []) == ["none", "r0", "r1", "r2", "r3", "r4"]
    assert len(pages) >= 2


@pytest.mark.parametrize("top", ["1001", "-1", "x", "1.5"])
def test_tops_that_make_no_sense(wire, typed_rows, top):
    answer = wire.send("GET", f"/{typed_rows.table_name}()?$top={top}")
    assert answer.error() == (400, "InvalidInput")


def test_the_largest_top(wire, typed_rows):
    answer = wire.query(f"/{typed_rows.table_name}()?$top=1000")
    assert answer.status == 200 and len(answer.json()["value"]) == 6


def test_no_rows_is_an_empty_list(table, wire):
    answer = wire.send("GET", f"/{table.table_name}()")
    assert answer.json()["value"] == []
    assert not [name for name in answer.headers if name.startswith("x-ms-continuation")]


def test_order_is_by_partition_then_row_ordinal(table):
    names = ["", "!", "0", "10", "9", "A", "B", "Z", "_", "a", "aa", "ab", "b", "~", "é", "日", "\uff5e"]
    expected = []
    for partition in names:
        for row in ("2", "10", "1"):
            table.create_entity({"PartitionKey": partition, "RowKey": row})
        expected += [(partition, row) for row in ("1", "10", "2")]
    assert [(entity["PartitionKey"], entity["RowKey"]) for entity in table.list_entities()] == expected


@pytest.fixture(scope="module")
def many(server):
    """2,500 entities in two partitions, written as group transactions."""
    with TableClient.from_connection_string(server.connection_string(), new_name(), retry_total=0) as table:
        table.create_table()
        keys = [("a", number) for number in range(1200)] + [("b", number) for number in range(1300)]
        for start in range(0, len(keys), 100):
            chunk = keys[start : start + 100]
            entities = [{"PartitionKey": p, "RowKey": f"{n:05}", "Number": n} for p, n in chunk]
            table.submit_transaction([("create", entity) for entity in entities])
        yield table
        table.delete_table()


def keys_of(entities):
    return [(entity["PartitionKey"], entity["Number"]) for entity in entities]


def test_a_page_ends_at_a_thousand(many):
    pages = [keys_of(page) for page in many.list_entities().by_page()]
    assert all(len(page) <= 1000 for page in pages) and len(pages) >= 3
    assert sum(pages, []) == [("a", n) for n in range(1200)] + [("b", n) for n in range(1300)]


def test_pages_of_a_filter(many):
    pages = many.query_entities("PartitionKey eq 'b' and Number ge 100", results_per_page=7).by_page()
    pages = [keys_of(page) for page in pages]
    assert all(len(page) <= 7 for page in pages)
    assert sum(pages, []) == [("b", n) for n in range(100, 1300)]


def test_pages_of_a_filter_that_finds_little(many):
    assert keys_of(many.query_entities("Number eq 1150", results_per_page=1)) == [("a", 1150), ("b", 1150)]
    assert keys_of(many.query_entities("Number eq 99999")) == []


def test_going_on_from_a_token_in_another_client(server, many):
    pages = many.list_entities(results_per_page=500).by_page()
    first = keys_of(next(pages))
    with TableClient.from_connection_string(server.connection_string(), many.table_name) as other:
        rest = other.list_entities(results_per_page=500).by_page(continuation_token=pages.continuation_token)
        rest = sum((keys_of(page) for page in rest), [])
    assert first + rest == [("a", n) for n in range(1200)] + [("b", n) for n in range(1300)]


def test_a_token_outlives_a_restart(own_server):
    with TableClient.from_connection_string(own_server.connection_string(), "tokens") as table:
        table.create_table()
        for number in range(10):
            table.create_entity({"PartitionKey": "p", "RowKey": f"{number}", "Number": number})
        pages = table.list_entities(results_per_page=4).by_page()
        first = keys_of(next(pages))
    assert own_server.terminate() == 0
    own_server.start()
    with TableClient.from_connection_string(own_server.connection_string(), "tokens") as table:
        rest = table.list_entities(results_per_page=4).by_page(continuation_token=pages.continuation_token)
        rest = sum((keys_of(page) for page in rest), [])
    assert first + rest == [("p", number) for number in range(10)]


def test_rows_that_go_while_paging(table):
    """Going on from a token whose row is gone skips nothing and repeats nothing."""
    for number in range(10):
        table.create_entity({"PartitionKey": "p", "RowKey": f"{number}", "Number": number})
    pages = table.list_entities(results_per_page=4).by_page()
    first = keys_of(next_page(pages, 4))
    for row in ("3", "4", "5"):
        table.delete_entity("p", row)
    rest = sum((keys_of(page) for page in pages), [])
    assert first == [("p", n) for n in range(4)]
    assert rest == [("p", n) for n in range(6, 10)]


def test_large_entities_end_a_page_early(table):
    """About 4 MiB end a page: 100 entities of 128 KiB don't come in one."""
    for number in range(100):
        keys = {"PartitionKey": "p", "RowKey": f"{number:03}"}
        table.create_entity(keys | {"One": b"x" * 65536, "Two": b"y" * 65536})
    pages = [[entity["RowKey"] for entity in page] for page in table.list_entities().by_page()]
    assert sum(pages, []) == [f"{number:03}" for number in range(100)]
    assert len(pages) > 1


@pytest.mark.parametrize("token", ["NextPartitionKey=nonsense&NextRowKey=nonsense", "NextPartitionKey=1!4!!!!!"])
def test_tokens_that_make_no_sense(wire, many, token):
    assert wire.send("GET", f"/{many.table_name}()?{token}").error() == (400, "InvalidInput")


def test_an_error_names_the_filter(many):
    with pytest.raises(HttpResponseError) as caught:
        list(many.query_entities("Number eq"))
    assert caught.value.status_code == 400
    assert "Syntax error at position" in caught.value.message
