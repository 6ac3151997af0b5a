"""Entities one at a time: insert, get, update, merge, upsert, delete; ETags and conditions."""

import threading
from datetime import datetime, timedelta, timezone

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceModifiedError, ResourceNotFoundError
from azure.data.tables import UpdateMode

ENTITY = {"PartitionKey": "p", "RowKey": "r", "Name": "Ada", "Age": 36}
WRITES = ["update", "merge", "delete"]


def own_properties(entity):
    return {name: value for name, value in entity.items() if name not in ("PartitionKey", "RowKey")}


def write(table, how, entity, **condition):
    if how == "delete":
        return table.delete_entity(entity["PartitionKey"], entity["RowKey"], **condition)
    mode = UpdateMode.REPLACE if how == "update" else UpdateMode.MERGE
    return table.update_entity(entity, mode=mode, **condition)


def test_insert_then_get(table):
    before = datetime.now(timezone.utc) - timedelta(minutes=1)
    created = table.create_entity(ENTITY)
    found = table.get_entity("p", "r")
    assert dict(found) == ENTITY
    assert found.metadata["etag"] == created["etag"]
    assert created["etag"].startswith("W/\"datetime'")
    assert before < found.metadata["timestamp"] < datetime.now(timezone.utc) + timedelta(minutes=1)


def test_insert_twice_is_a_conflict_and_changes_nothing(table, refused):
    table.create_entity(ENTITY)
    with refused(409, "EntityAlreadyExists"):
        table.create_entity(ENTITY | {"Name": "Grace"})
    assert table.get_entity("p", "r")["Name"] == "Ada"


def test_insert_can_return_the_entity(table, wire):
    answer = wire.send("POST", f"/{table.table_name}", ENTITY, headers={"Prefer": "return-content"})
    assert answer.status == 201
    assert answer.headers["preference-applied"] == "return-content"
    body = answer.json()
    assert {name: body[name] for name in ENTITY} == ENTITY
    assert answer.headers["etag"] == body["odata.etag"]
    assert answer.headers["location"].endswith(f"/{table.table_name}(PartitionKey='p',RowKey='r')")

    answer = wire.send("POST", f"/{table.table_name}", ENTITY | {"RowKey": "2"})
    assert answer.status == 201, "without Prefer the entity comes back"

    answer = wire.send("POST", f"/{table.table_name}", ENTITY | {"RowKey": "3"}, headers={"Prefer": "return-no-content"})
    assert (answer.status, answer.body) == (204, b"")
    assert answer.headers["preference-applied"] == "return-no-content"
    assert answer.headers["etag"]
    assert answer.headers["location"].endswith("(PartitionKey='p',RowKey='3')")
    assert answer.headers["dataserviceid"] == answer.headers["location"]


def test_what_is_not_there(service, table, wire, refused):
    with refused(404, "ResourceNotFound"):
        table.get_entity("p", "missing")
    for how in ("update", "merge"):
        with refused(404, "ResourceNotFound"):
            write(table, how, ENTITY)
    table.delete_entity("p", "r")  # The client swallows the 404, so look at the wire too.
    gone = wire.send("DELETE", f"/{table.table_name}(PartitionKey='p',RowKey='r')", headers={"If-Match": "*"})
    assert gone.error() == (404, "ResourceNotFound")

    nowhere = service.get_table_client("nowhere")
    for call in (
        lambda: nowhere.get_entity("p", "r"),
        lambda: nowhere.create_entity(ENTITY),
        lambda: nowhere.upsert_entity(ENTITY),
        lambda: write(nowhere, "update", ENTITY),
        lambda: list(nowhere.list_entities()),
    ):
        with refused(404, "TableNotFound"):
            call()


def test_update_drops_what_is_not_sent(table):
    table.create_entity(ENTITY)
    table.update_entity({"PartitionKey": "p", "RowKey": "r", "City": "London"}, mode=UpdateMode.REPLACE)
    assert own_properties(table.get_entity("p", "r")) == {"City": "London"}


def test_merge_keeps_what_is_not_sent(table):
    table.create_entity(ENTITY)
    table.update_entity({"PartitionKey": "p", "RowKey": "r", "Age": 37, "City": "London"}, mode=UpdateMode.MERGE)
    assert own_properties(table.get_entity("p", "r")) == {"Name": "Ada", "Age": 37, "City": "London"}


def test_a_property_may_change_its_type(table):
    table.create_entity(ENTITY)
    table.update_entity({"PartitionKey": "p", "RowKey": "r", "Age": "old"}, mode=UpdateMode.MERGE)
    assert own_properties(table.get_entity("p", "r")) == {"Name": "Ada", "Age": "old"}
    table.update_entity({"PartitionKey": "p", "RowKey": "r", "Age": True}, mode=UpdateMode.REPLACE)
    assert own_properties(table.get_entity("p", "r")) == {"Age": True}


@pytest.mark.parametrize("mode", [UpdateMode.REPLACE, UpdateMode.MERGE])
def test_upsert_inserts_and_updates(table, mode):
    table.upsert_entity(ENTITY, mode=mode)
    assert dict(table.get_entity("p", "r")) == ENTITY
    table.upsert_entity({"PartitionKey": "p", "RowKey": "r", "Age": 37}, mode=mode)
    expected = {"Age": 37} if mode == UpdateMode.REPLACE else {"Name": "Ada", "Age": 37}
    assert own_properties(table.get_entity("p", "r")) == expected


def test_merge_with_keys_only_moves_the_etag(table):
    created = table.create_entity(ENTITY)
    merged = table.update_entity({"PartitionKey": "p", "RowKey": "r"}, mode=UpdateMode.MERGE)
    assert merged["etag"] != created["etag"]
    assert own_properties(table.get_entity("p", "r")) == {"Name": "Ada", "Age": 36}


def test_delete_then_insert_again(table, refused):
    table.create_entity(ENTITY)
    table.delete_entity("p", "r")
    with refused(404, "ResourceNotFound"):
        table.get_entity("p", "r")
    table.create_entity({"PartitionKey": "p", "RowKey": "r", "New": True})
    assert own_properties(table.get_entity("p", "r")) == {"New": True}


def test_every_write_moves_etag_and_timestamp_forward(table):
    etags = [table.create_entity(ENTITY)["etag"]]
    stamps = [table.get_entity("p", "r").metadata["timestamp"].tables_service_value]
    for number in range(20):
        mode = UpdateMode.REPLACE if number % 2 else UpdateMode.MERGE
        etags.append(table.update_entity(ENTITY | {"Age": number}, mode=mode)["etag"])
        found = table.get_entity("p", "r")
        assert found.metadata["etag"] == etags[-1]
        stamps.append(found.metadata["timestamp"].tables_service_value)
    assert len(set(etags)) == len(etags)
    padded = [stamp[:-1].ljust(27 if "." in stamp else 19, "0") for stamp in stamps]
    assert padded == sorted(padded) and len(set(padded)) == len(padded)


@pytest.mark.parametrize("how", WRITES)
def test_the_current_etag_lets_a_write_through(table, how):
    created = table.create_entity(ENTITY)
    write(table, how, ENTITY, etag=created["etag"], match_condition=MatchConditions.IfNotModified)


@pytest.mark.parametrize("how", WRITES)
def test_an_old_etag_stops_a_write(table, refused, how):
    created = table.create_entity(ENTITY)
    table.upsert_entity(ENTITY | {"Age": 37})
    with refused(412, "UpdateConditionNotSatisfied") as caught:
        write(table, how, ENTITY | {"Age": 1}, etag=created["etag"], match_condition=MatchConditions.IfNotModified)
    assert isinstance(caught.value, ResourceModifiedError)
    assert table.get_entity("p", "r")["Age"] == 37


@pytest.mark.parametrize("how", WRITES)
def test_an_etag_of_something_that_is_gone(table, wire, how):
    created = table.create_entity(ENTITY)
    table.delete_entity("p", "r")
    method = {"update": "PUT", "merge": "MERGE", "delete": "DELETE"}[how]
    body = b"" if how == "delete" else ENTITY
    target = f"/{table.table_name}(PartitionKey='p',RowKey='r')"
    answer = wire.send(method, target, body, headers={"If-Match": created["etag"]})
    assert answer.error() == (404, "ResourceNotFound")


@pytest.mark.parametrize("method", ["PUT", "MERGE", "PATCH", "DELETE"])
def test_an_etag_must_have_the_weak_form(table, wire, method):
    table.create_entity(ENTITY)
    body = b"" if method == "DELETE" else ENTITY | {"Age": 1}
    target = f"/{table.table_name}(PartitionKey='p',RowKey='r')"
    for etag in ('"strong"', "bare"):
        assert wire.send(method, target, body, headers={"If-Match": etag}).error() == (400, "InvalidInput")
    assert table.get_entity("p", "r")["Age"] == 36


def test_delete_needs_a_condition(table, wire):
    table.create_entity(ENTITY)
    answer = wire.send("DELETE", f"/{table.table_name}(PartitionKey='p',RowKey='r')")
    assert answer.error() == (400, "InvalidInput")
    assert table.get_entity("p", "r")["Age"] == 36


def test_two_writers_with_the_same_etag_exactly_one_wins(table):
    etag = table.create_entity(ENTITY)["etag"]
    for _ in range(10):
        outcomes = []
        barrier = threading.Barrier(8)

        def race(number, etag=etag, barrier=barrier, outcomes=outcomes):
            barrier.wait()
            try:
                condition = {"etag": etag, "match_condition": MatchConditions.IfNotModified}
                outcomes.append((number, table.update_entity(ENTITY | {"Age": number}, **condition)["etag"]))
            except ResourceModifiedError:
                outcomes.append((number, None))

        racers = [threading.Thread(target=race, args=(number,)) for number in range(8)]
        for racer in racers:
            racer.start()
        for racer in racers:
            racer.join()
        assert len(outcomes) == 8
        winners = [(number, new_etag) for number, new_etag in outcomes if new_etag]
        assert len(winners) == 1
        found = table.get_entity("p", "r")
        assert (found["Age"], found.metadata["etag"]) == winners[0]
        etag = winners[0][1]


@pytest.mark.parametrize("method", ["MERGE", "PATCH", "PUT"])
@pytest.mark.parametrize("tunnelled", [False, True])
def test_every_verb_form(table, wire, method, tunnelled):
    table.create_entity(ENTITY)
    target = f"/{table.table_name}(PartitionKey='p',RowKey='r')"
    headers = {"If-Match": "*"} | ({"X-HTTP-Method": method} if tunnelled else {})
    answer = wire.send("POST" if tunnelled else method, target, {"City": "London"}, headers=headers)
    assert (answer.status, answer.body) == (204, b"")
    assert answer.headers["etag"] == table.get_entity("p", "r").metadata["etag"]
    expected = {"City": "London"} if method == "PUT" else {"Name": "Ada", "Age": 36, "City": "London"}
    assert own_properties(table.get_entity("p", "r")) == expected


def test_delete_can_be_tunnelled(table, wire):
    table.create_entity(ENTITY)
    target = f"/{table.table_name}(PartitionKey='p',RowKey='r')"
    answer = wire.send("POST", target, headers={"If-Match": "*", "X-HTTP-Method": "DELETE", "Content-Length": "0"})
    assert answer.status == 204
    assert "etag" not in answer.headers
    with pytest.raises(ResourceNotFoundError):
        table.get_entity("p", "r")


def test_wrong_tunnelling(table, wire):
    target = f"/{table.table_name}(PartitionKey='p',RowKey='r')"
    answer = wire.send("POST", target, {}, headers={"X-HTTP-Method": "BREW"})
    assert answer.error() == (400, "XMethodIncorrectValue")
    answer = wire.send("PUT", target, {}, headers={"X-HTTP-Method": "MERGE"})
    assert answer.error() == (400, "XMethodNotUsingPost")


KEYS = [
    "",
    " ",
    "plain",
    "with space",
    "o'clock",
    "''",
    "100%",
    "%20",
    "a+b",
    "a&b=c",
    "comma,separated",
    "(paren)",
    "semi;colon:",
    '"quoted"',
    "ümläut",
    "日本語",
    "😀",
    "..",
    "$batch",
    "Tables",
    "\xa0",
    "x" * 512,
]


@pytest.mark.parametrize("key", KEYS)
def test_odd_keys(table, key):
    for keys in ({"PartitionKey": key, "RowKey": "r"}, {"PartitionKey": "p", "RowKey": key}):
        table.create_entity(keys | {"Step": 1})
        pair = (keys["PartitionKey"], keys["RowKey"])
        assert dict(table.get_entity(*pair)) == keys | {"Step": 1}
        table.update_entity(keys | {"Step": 2}, mode=UpdateMode.REPLACE)
        quoted = {name: value.replace("'", "''") for name, value in keys.items()}
        only = f"PartitionKey eq '{quoted['PartitionKey']}' and RowKey eq '{quoted['RowKey']}'"
        assert [entity["Step"] for entity in table.query_entities(only)] == [2]
        table.delete_entity(*pair)
    assert list(table.list_entities()) == []


def test_keys_are_case_sensitive(table):
    table.create_entity({"PartitionKey": "p", "RowKey": "r", "Which": "lower"})
    table.create_entity({"PartitionKey": "P", "RowKey": "r", "Which": "upper"})
    assert table.get_entity("p", "r")["Which"] == "lower"
    assert table.get_entity("P", "r")["Which"] == "upper"


def test_property_names_are_case_sensitive(table):
    table.create_entity({"PartitionKey": "p", "RowKey": "r", "name": 1, "Name": 2, "NAME": 3})
    assert own_properties(table.get_entity("p", "r")) == {"name": 1, "Name": 2, "NAME": 3}


@pytest.mark.parametrize("key", ["a/b", "a\\b", "a#b", "a?b", "a\tb", "a\nb", "\x00", "\x1f", "\x7f", "\x85", "\x9f"])
def test_forbidden_characters_in_keys(table, refused, key):
    with refused(400, "OutOfRangeInput"):
        table.create_entity({"PartitionKey": key, "RowKey": "r"})
    with refused(400, "OutOfRangeInput"):
        table.create_entity({"PartitionKey": "p", "RowKey": key})
    assert list(table.list_entities()) == []


@pytest.mark.parametrize("missing", ["PartitionKey", "RowKey"])
def test_insert_without_a_key(table, wire, missing):
    entity = {name: value for name, value in ENTITY.items() if name != missing}
    assert wire.send("POST", f"/{table.table_name}", entity).error() == (400, "PropertiesNeedValue")


def test_select_on_a_point_get(table):
    table.create_entity(ENTITY)
    found = table.get_entity("p", "r", select=["Name"])
    assert dict(found) == {"Name": "Ada"}
    assert found.metadata["etag"]
    found = table.get_entity("p", "r", select=["PartitionKey", "Age"])
    assert dict(found) == {"PartitionKey": "p", "Age": 36}


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"null", b"[]", b'"text"', b'{"PartitionKey":"p","RowKey":"r"', b'{"PartitionKey":"p","RowKey":"r"}}'],
)
def test_a_body_that_is_not_an_entity_changes_nothing(table, wire, body):
    table.create_entity(ENTITY)
    json_type = {"Content-Type": "application/json"}
    inserted = wire.send("POST", f"/{table.table_name}", body, headers=json_type)
    assert inserted.error()[0] == 400 and inserted.error()[1] in {"InvalidInput", "PropertiesNeedValue"}
    if body:  # An empty body is an entity without properties to some readers.
        target = f"/{table.table_name}(PartitionKey='p',RowKey='r')"
        updated = wire.send("PUT", target, body, headers=json_type | {"If-Match": "*"})
        assert updated.error()[0] == 400 and updated.error()[1] in {"InvalidInput", "PropertiesNeedValue"}
    assert dict(table.get_entity("p", "r")) == ENTITY


def test_what_an_error_tells(table):
    with pytest.raises(HttpResponseError) as caught:
        table.get_entity("p", "missing")
    assert "The specified resource does not exist" in caught.value.message
    assert "RequestId:" in caught.value.message and "Time:" in caught.value.message
