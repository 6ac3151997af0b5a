"""Each documented limit: what just fits is stored, what is one more is refused with its error and not stored."""

import pytest
from azure.core import MatchConditions

KEYS = {"PartitionKey": "p", "RowKey": "r"}
WRITES = ["create", "upsert", "update"]


def write(table, how, properties):
    entity = KEYS | properties
    if how == "create":
        return table.create_entity(entity)
    if how == "upsert":
        return table.upsert_entity(entity)
    table.create_entity(KEYS | {"Old": 1})
    return table.update_entity(entity, match_condition=MatchConditions.Unconditionally)


def check_refused(table, refused, how, properties, code):
    with refused(400, code):
        write(table, how, properties)
    expected = [KEYS | {"Old": 1}] if how == "update" else []
    assert [dict(entity) for entity in table.list_entities()] == expected


def test_the_most_properties(table):
    properties = {f"P{number:03}": number for number in range(252)}
    table.create_entity(KEYS | properties)
    assert dict(table.get_entity("p", "r")) == KEYS | properties


@pytest.mark.parametrize("how", WRITES)
def test_one_property_more(table, refused, how):
    check_refused(table, refused, how, {f"P{number:03}": number for number in range(253)}, "TooManyProperties")


def test_merges_add_up_to_the_limit(table, refused):
    table.create_entity(KEYS | {f"P{number:03}": number for number in range(250)})
    table.update_entity(KEYS | {"P250": 1, "P251": 1})
    with refused(400, "TooManyProperties"):
        table.update_entity(KEYS | {"P252": 1})
    found = table.get_entity("p", "r")
    assert len(found) == 254 and "P252" not in found


@pytest.mark.parametrize("how", WRITES)
def test_too_long_a_text(table, refused, how):
    check_refused(table, refused, how, {"Value": "x" * 32769}, "PropertyValueTooLarge")


@pytest.mark.parametrize("how", WRITES)
def test_too_long_a_text_in_code_units(table, refused, how):
    check_refused(table, refused, how, {"Value": "😀" * 16384 + "x"}, "PropertyValueTooLarge")


@pytest.mark.parametrize("how", WRITES)
def test_too_many_bytes(table, refused, how):
    check_refused(table, refused, how, {"Value": b"x" * 65537}, "PropertyValueTooLarge")


def test_a_large_entity_that_fits(table):
    properties = {f"P{number}": b"x" * 65536 for number in range(15)}
    table.create_entity(KEYS | properties)
    assert dict(table.get_entity("p", "r")) == KEYS | properties


@pytest.mark.parametrize("how", WRITES)
def test_too_large_an_entity(table, refused, how):
    check_refused(table, refused, how, {f"P{number}": b"x" * 65536 for number in range(17)}, "EntityTooLarge")


def test_texts_count_two_bytes_a_character(table, refused):
    """17 texts of 32,768 characters are 17 * 64 KiB: more than 1 MiB, though their JSON is half of it."""
    check_refused(table, refused, "create", {f"P{number}": "x" * 32768 for number in range(17)}, "EntityTooLarge")


def test_merges_add_up_to_the_largest_entity(table, refused):
    table.create_entity(KEYS | {f"P{number}": b"x" * 65536 for number in range(14)})
    with refused(400, "EntityTooLarge"):
        table.update_entity(KEYS | {f"Q{number}": b"x" * 65536 for number in range(3)})
    assert len(table.get_entity("p", "r")) == 16


def test_the_longest_property_name(table):
    name = "N" * 255
    table.create_entity(KEYS | {name: 1})
    assert table.get_entity("p", "r")[name] == 1


@pytest.mark.parametrize("how", WRITES)
def test_too_long_a_property_name(table, refused, how):
    check_refused(table, refused, how, {"N" * 256: 1}, "PropertyNameTooLong")


@pytest.mark.parametrize("name", ["_a", "a1", "Ünïcode", "日本", "a_b"])
def test_legal_property_names(table, name):
    table.create_entity(KEYS | {name: 1})
    assert table.get_entity("p", "r")[name] == 1
    assert [entity[name] for entity in table.query_entities(f"{name} eq 1")] == [1]


@pytest.mark.parametrize("name", ["a-b", "a b", "1a", "a/b", "a'b"])
def test_illegal_property_names(table, refused, name):
    check_refused(table, refused, "create", {name: 1}, "PropertyNameInvalid")


@pytest.mark.parametrize("key", ["PartitionKey", "RowKey"])
def test_keys_of_512_characters_fit_and_of_2048_don_t(table, refused, key):
    table.create_entity(KEYS | {key: "k" * 512})
    with refused(400, "PropertyValueTooLarge"):
        table.create_entity(KEYS | {key: "k" * 2048})
    assert len(list(table.list_entities())) == 1
