"""Shared access signatures: what they open, what they don't, and when."""

from datetime import datetime, timedelta, timezone

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.data.tables import (
    AccountSasPermissions,
    ResourceTypes,
    TableAccessPolicy,
    TableClient,
    TableSasPermissions,
    TableServiceClient,
    generate_account_sas,
    generate_table_sas,
)

from larimar_server import ACCOUNT, KEY

CREDENTIAL = AzureNamedKeyCredential(ACCOUNT, KEY)
ENTITY = {"PartitionKey": "p", "RowKey": "r", "Value": 1}


def in_minutes(minutes):
    return datetime.now(timezone.utc) + timedelta(minutes=minutes)


def table_sas(table, permission, **more):
    more.setdefault("expiry", in_minutes(10))
    return generate_table_sas(CREDENTIAL, table.table_name, permission=permission, **more)


def opened(server, table, sas):
    return TableClient(server.endpoint(), table.table_name, credential=AzureSasCredential(sas), retry_total=0)


@pytest.fixture
def filled(table):
    table.create_entity(ENTITY)
    return table


OPERATIONS = {
    "get": ("read", lambda client: client.get_entity("p", "r")),
    "query": ("read", lambda client: list(client.list_entities())),
    "insert": ("add", lambda client: client.create_entity(ENTITY | {"RowKey": "new"})),
    "update": ("update", lambda client: client.update_entity(ENTITY)),
    "delete": ("delete", lambda client: client.delete_entity("p", "r")),
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("permission", ["read", "add", "update", "delete"])
def test_a_table_sas_opens_what_it_says(server, filled, refused, operation, permission):
    needed, call = OPERATIONS[operation]
    client = opened(server, filled, table_sas(filled, TableSasPermissions(**{permission: True})))
    if permission == needed:
        call(client)
    else:
        with refused(403, "AuthorizationPermissionMismatch"):
            call(client)
        assert [dict(entity) for entity in filled.list_entities()] == [ENTITY]


def test_an_upsert_needs_two(server, filled, refused):
    for permission in ({"add": True}, {"update": True}):
        client = opened(server, filled, table_sas(filled, TableSasPermissions(**permission)))
        with refused(403, "AuthorizationPermissionMismatch"):
            client.upsert_entity(ENTITY)
    opened(server, filled, table_sas(filled, TableSasPermissions(add=True, update=True))).upsert_entity(ENTITY)


def test_each_operation_of_a_transaction_counts(server, filled, refused):
    client = opened(server, filled, table_sas(filled, TableSasPermissions(add=True)))
    client.submit_transaction([("create", ENTITY | {"RowKey": "a"}), ("create", ENTITY | {"RowKey": "b"})])
    with pytest.raises(Exception) as caught:
        client.submit_transaction([("create", ENTITY | {"RowKey": "c"}), ("delete", ENTITY)])
    assert caught.value.status_code == 403
    assert {entity["RowKey"] for entity in filled.list_entities()} == {"r", "a", "b"}


def test_key_ranges(server, filled, refused):
    for row in ("1", "2", "3", "4"):
        filled.create_entity({"PartitionKey": "p", "RowKey": row})
    everything = TableSasPermissions(read=True, add=True, update=True, delete=True)
    sas = table_sas(filled, everything, start_pk="p", start_rk="2", end_pk="p", end_rk="3")
    client = opened(server, filled, sas)
    assert [entity["RowKey"] for entity in client.list_entities()] == ["2", "3"]
    client.get_entity("p", "2")
    client.upsert_entity({"PartitionKey": "p", "RowKey": "25"})
    for keys in (("p", "1"), ("p", "4"), ("q", "2"), ("o", "2")):
        with pytest.raises(Exception) as caught:
            client.upsert_entity({"PartitionKey": keys[0], "RowKey": keys[1], "Value": 2})
        assert caught.value.status_code == 403
    assert "Value" not in filled.get_entity("p", "1")


@pytest.mark.parametrize(
    "window", [{"expiry": in_minutes(-1)}, {"start": in_minutes(5), "expiry": in_minutes(10)}], ids=["over", "not yet"]
)
def test_outside_its_time(server, filled, refused, window):
    client = opened(server, filled, table_sas(filled, TableSasPermissions(read=True), **window))
    with refused(403, "AuthenticationFailed"):
        client.get_entity("p", "r")


def test_another_table(server, service, filled, refused):
    other = service.create_table(filled.table_name + "x")
    sas = table_sas(filled, TableSasPermissions(read=True))
    with pytest.raises(Exception) as caught:
        list(opened(server, other, sas).list_entities())
    assert caught.value.status_code == 403
    service.delete_table(other.table_name)


def test_a_changed_signature(server, filled, refused):
    sas = table_sas(filled, TableSasPermissions(read=True)).replace("sp=r", "sp=raud")
    with refused(403, "AuthenticationFailed"):
        opened(server, filled, sas).get_entity("p", "r")


@pytest.mark.parametrize(("ip", "fine"), [("127.0.0.1", True), ("127.0.0.0-127.0.0.9", True), ("10.0.0.1", False)])
def test_addresses(server, filled, refused, ip, fine):
    client = opened(server, filled, table_sas(filled, TableSasPermissions(read=True), ip_address_or_range=ip))
    if fine:
        client.get_entity("p", "r")
    else:
        with refused(403, "AuthorizationSourceIPMismatch"):
            client.get_entity("p", "r")


def test_https_only(server, filled, refused):
    client = opened(server, filled, table_sas(filled, TableSasPermissions(read=True), protocol="https"))
    with refused(403, "AuthorizationProtocolMismatch"):
        client.get_entity("p", "r")


def test_a_stored_policy(server, filled, refused):
    policy = TableAccessPolicy(permission="r", start=in_minutes(-5), expiry=in_minutes(10))
    filled.set_table_access_policy({"readers": policy})
    sas = generate_table_sas(CREDENTIAL, filled.table_name, policy_id="readers")
    client = opened(server, filled, sas)
    assert client.get_entity("p", "r")["Value"] == 1
    with refused(403, "AuthorizationPermissionMismatch"):
        client.create_entity(ENTITY | {"RowKey": "new"})
    filled.set_table_access_policy({})
    with refused(403, "AuthenticationFailed"):
        client.get_entity("p", "r")


def account_sas(**more):
    return AzureSasCredential(generate_account_sas(CREDENTIAL, expiry=in_minutes(10), **more))


def test_an_account_sas(server, filled):
    everything = AccountSasPermissions(read=True, write=True, delete=True, list=True, add=True, create=True, update=True)
    types = ResourceTypes(service=True, container=True, object=True)
    credential = account_sas(resource_types=types, permission=everything)
    with TableServiceClient(server.endpoint(), credential=credential, retry_total=0) as service:
        assert filled.table_name in [table.name for table in service.list_tables()]
        table = service.get_table_client(filled.table_name)
        table.upsert_entity(ENTITY | {"Value": 2})
        assert table.get_entity("p", "r")["Value"] == 2


@pytest.mark.parametrize(
    ("types", "permission", "code"),
    [
        (ResourceTypes(service=True), AccountSasPermissions(read=True), "AuthorizationResourceTypeMismatch"),
        (ResourceTypes(object=True), AccountSasPermissions(write=True), "AuthorizationPermissionMismatch"),
    ],
)
def test_an_account_sas_that_says_too_little(server, filled, refused, types, permission, code):
    credential = account_sas(resource_types=types, permission=permission)
    with TableClient(server.endpoint(), filled.table_name, credential=credential, retry_total=0) as table:
        with refused(403, code):
            table.get_entity("p", "r")
