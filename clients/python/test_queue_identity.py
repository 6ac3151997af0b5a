"""Who may use a queue: bearer tokens, user delegation keys and what is signed with them, the short form of shared keys."""

import base64
import json
import os
import time
from datetime import datetime, timedelta, timezone
from email.utils import formatdate

import pytest
from azure.core.credentials import AccessToken
from azure.core.exceptions import HttpResponseError
from azure.storage.queue import AccessPolicy, QueueClient, QueueSasPermissions, QueueServiceClient, generate_queue_sas

from larimar_server import ACCOUNT, CERTIFICATE, CERTIFICATE_KEY, KEY, Server, Wire, new_name, signature

TENANT = "ab1f708d-50f6-404c-a006-d71b2ac7a606"
ALICE = "23657296-5cd5-45b0-a809-d972a7f4dfe1"
BOB = "dd0d0df1-06c3-436c-8034-4b9a153097ce"


@pytest.fixture(scope="module")
def tls_server():
    if "LARIMAR_ENDPOINT" in os.environ:
        pytest.skip("starts a server of its own")
    with Server("--tls-cert", CERTIFICATE, "--tls-key", CERTIFICATE_KEY, "--oauth", "basic") as server:
        yield server


class Tokens:
    """Issues tokens for one user as the identity service would, but for the signature."""

    def __init__(self, user=ALICE):
        self.user = user

    def get_token(self, *_, **__):
        def encoded(part):
            return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()

        now = int(time.time())
        claims = {"iss": f"https://sts.windows.net/{TENANT}/", "aud": "https://storage.azure.com", "nbf": now - 60}
        claims |= {"iat": now - 60, "exp": now + 600, "oid": self.user, "tid": TENANT}
        return AccessToken(f"{encoded({'alg': 'RS256'})}.{encoded(claims)}.AAAA", now + 600)


def options():
    return {"connection_verify": str(CERTIFICATE), "retry_total": 0}


def service(server, credential):
    return QueueServiceClient(server.queue_endpoint(), credential=credential, **options())


def in_minutes(minutes):
    return datetime.now(timezone.utc) + timedelta(minutes=minutes)


def delegated(server, queue, key, permissions="rap", user=None):
    return generate_queue_sas(
        ACCOUNT,
        queue,
        permission=QueueSasPermissions.from_string(permissions),
        expiry=in_minutes(10),
        user_delegation_key=key,
        user_delegation_oid=user,
    )


def code_of(action):
    with pytest.raises(HttpResponseError) as caught:
        action()
    return (caught.value.status_code, caught.value.error_code)


def test_a_token_may_do_everything(tls_server):
    queue = service(tls_server, Tokens()).create_queue(new_name("q"))
    queue.send_message("by token")
    assert [message.content for message in queue.receive_messages()] == ["by token"]
    queue.set_queue_access_policy({"p": AccessPolicy(QueueSasPermissions(read=True), in_minutes(5))})
    assert queue.get_queue_access_policy()["p"].permission == "r"
    queue.delete_queue()


def test_a_user_delegation_key_signs_for_one_queue(tls_server):
    by_token = service(tls_server, Tokens())
    start, expiry = in_minutes(-5), in_minutes(60)
    key = by_token.get_user_delegation_key(start=start, expiry=expiry)
    assert (key.signed_oid, key.signed_tid, key.signed_service) == (ALICE, TENANT, "q")
    assert by_token.get_user_delegation_key(start=start, expiry=expiry).value == key.value
    assert service(tls_server, Tokens(BOB)).get_user_delegation_key(start=start, expiry=expiry).value != key.value
    name, other = new_name("q"), new_name("q")
    by_token.create_queue(name)
    by_token.create_queue(other)
    sas = delegated(tls_server, name, key)
    queue = QueueClient(tls_server.queue_endpoint(), name, credential=sas, **options())
    queue.send_message("delegated")
    assert [message.content for message in queue.receive_messages()] == ["delegated"]
    assert code_of(queue.clear_messages) == (403, "AuthorizationFailure")
    elsewhere = QueueClient(tls_server.queue_endpoint(), other, credential=sas, **options())
    assert code_of(lambda: elsewhere.send_message("x")) == (403, "AuthenticationFailed")
    key.signed_expiry = "2099-01-01T00:00:00Z"
    forged = delegated(tls_server, name, key)
    queue = QueueClient(tls_server.queue_endpoint(), name, credential=forged, **options())
    assert code_of(lambda: queue.send_message("x")) == (403, "AuthenticationFailed")


def test_a_signature_for_one_user_needs_their_token(tls_server):
    by_token = service(tls_server, Tokens())
    key = by_token.get_user_delegation_key(start=in_minutes(-5), expiry=in_minutes(60), delegated_user_tid=TENANT)
    assert key.signed_delegated_user_tid == TENANT
    name = new_name("q")
    queue = by_token.create_queue(name)
    url = f"{queue.url}?{delegated(tls_server, name, key, 'a', BOB)}"
    assert code_of(lambda: QueueClient.from_queue_url(url, **options()).send_message("x"))[0] == 403
    alice = QueueClient.from_queue_url(url, credential=Tokens(ALICE), **options())
    assert code_of(lambda: alice.send_message("x")) == (403, "AuthenticationFailed")
    bob = QueueClient.from_queue_url(url, credential=Tokens(BOB), **options())
    bob.send_message("for Bob alone")
    # The signature says what Bob may do, and it says no more than that.
    assert code_of(lambda: list(bob.receive_messages())) == (403, "AuthorizationPermissionMismatch")


def test_keys_are_for_those_with_tokens_and_for_seven_days(tls_server):
    by_key = service(tls_server, KEY)
    assert code_of(lambda: by_key.get_user_delegation_key(expiry=in_minutes(60), start=in_minutes(0)))[0] == 403
    by_token = service(tls_server, Tokens())
    eight_days = in_minutes(8 * 24 * 60)
    assert code_of(lambda: by_token.get_user_delegation_key(expiry=eight_days, start=in_minutes(0)))[0] == 400


def test_the_short_form_of_shared_keys(server):
    name = new_name("q")
    wire = Wire(server.queue_base, ACCOUNT, KEY)

    def send(method, path, key=KEY):
        date = formatdate(usegmt=True)
        path = f"/{ACCOUNT}/{name}{path}"
        resource = f"/{ACCOUNT}{path.partition('?')[0]}" + ("?comp=metadata" if "comp=" in path else "")
        text = f"{method}\n\n\n\nx-ms-date:{date}\nx-ms-version:2026-06-06\n{resource}"
        headers = {"x-ms-date": date, "x-ms-version": "2026-06-06"}
        headers["Authorization"] = f"SharedKeyLite {ACCOUNT}:{signature(key, text)}"
        return wire.send_unsigned(method, path, headers)

    assert send("PUT", "").status == 201
    assert send("GET", "?comp=metadata").status == 200
    assert send("GET", "/messages").status == 200
    assert send("GET", "/messages", base64.b64encode(b"another key").decode()).status == 403
    assert send("DELETE", "").status == 204
