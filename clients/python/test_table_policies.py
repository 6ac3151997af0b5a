"""Stored access policies of a table."""

from datetime import datetime, timezone

import pytest
from azure.data.tables import TableAccessPolicy

START = datetime(2020, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
EXPIRY = datetime(2040, 1, 2, 3, 4, 5, tzinfo=timezone.utc)


def plain(policies):
    return {
        name: policy and (policy.permission, policy.start and policy.start.isoformat(), policy.expiry and policy.expiry.isoformat())
        for name, policy in policies.items()
    }


def test_none_at_first(table):
    assert table.get_table_access_policy() == {}


def test_set_get_replace_clear(table):
    policy = TableAccessPolicy(permission="raud", start=START, expiry=EXPIRY)
    table.set_table_access_policy({"one": policy, "two": TableAccessPolicy(permission="r")})
    found = plain(table.get_table_access_policy())
    assert found["one"] == ("raud", START.isoformat(), EXPIRY.isoformat())
    assert found["two"] == ("r", None, None)
    table.set_table_access_policy({"three": None})
    assert list(table.get_table_access_policy()) == ["three"]
    table.set_table_access_policy({})
    assert table.get_table_access_policy() == {}


def test_five_are_the_most(table):
    policies = {f"p{number}": TableAccessPolicy(permission="r", expiry=EXPIRY) for number in range(5)}
    table.set_table_access_policy(policies)
    with pytest.raises(ValueError, match="Too many access policies"):
        table.set_table_access_policy(policies | {"p5": None})
    assert len(table.get_table_access_policy()) == 5


def test_a_missing_table(service, refused):
    with refused(404, "TableNotFound"):
        service.get_table_client("nowhere").get_table_access_policy()


@pytest.mark.parametrize("body", ["<SignedIdentifiers>", "nonsense", "<Other/>"])
def test_bodies_that_make_no_sense(wire, table, body):
    answer = wire.send("PUT", f"/{table.table_name}?comp=acl", body, headers={"Content-Type": "application/xml"})
    assert answer.error() == (400, "InvalidXmlDocument")


def test_they_outlive_a_restart(own_server):
    from azure.data.tables import TableClient

    with TableClient.from_connection_string(own_server.connection_string(), "policies") as table:
        table.create_table()
        table.set_table_access_policy({"one": TableAccessPolicy(permission="r", expiry=EXPIRY)})
        before = plain(table.get_table_access_policy())
    own_server.kill()
    own_server.start()
    with TableClient.from_connection_string(own_server.connection_string(), "policies") as table:
        assert plain(table.get_table_access_policy()) == before
