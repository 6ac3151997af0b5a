"""Encrypted connections, and bearer tokens in the development mode: the official client with nothing but a
certificate to trust."""

import base64
import json
import os
import socket
import time
from datetime import datetime, timedelta, timezone

import pytest
from azure.core.credentials import AccessToken, AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError, ServiceRequestError
from azure.data.tables import (
    AccountSasPermissions,
    ResourceTypes,
    TableServiceClient,
    generate_account_sas,
)

from larimar_server import ACCOUNT, CERTIFICATE, CERTIFICATE_KEY, KEY, Server, new_name

pytestmark = pytest.mark.skipif("LARIMAR_ENDPOINT" in os.environ, reason="starts servers of its own")

TLS = ["--tls-cert", CERTIFICATE, "--tls-key", CERTIFICATE_KEY]
STORAGE = "https://storage.azure.com"


@pytest.fixture(scope="module")
def tls_server():
    with Server(*TLS, "--oauth", "basic") as server:
        yield server


def client(server, credential, **more):
    options = {"connection_verify": str(CERTIFICATE), "retry_total": 0} | more
    return TableServiceClient(server.endpoint(), credential=credential, **options)


def round_trip(service):
    name = new_name()
    table = service.create_table(name)
    table.create_entity({"PartitionKey": "p", "RowKey": "r", "Value": "ä" * 5000})
    assert table.get_entity("p", "r")["Value"] == "ä" * 5000
    assert len(list(table.query_entities("PartitionKey eq 'p'"))) == 1
    service.delete_table(name)


def encoded(part):
    return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()


class Tokens:
    """Issues tokens as the identity service would, but for the signature."""

    def __init__(self, audience=STORAGE, lives_for=300, issuer="https://sts.windows.net/tenant/", algorithm="RS256"):
        self.audience, self.lives_for, self.issuer, self.algorithm = audience, lives_for, issuer, algorithm
        self.scopes = []

    def get_token(self, *scopes, **_):
        self.scopes += scopes
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": self.audience, "nbf": now - 60, "iat": now - 60}
        claims["exp"] = now + self.lives_for
        token = f"{encoded({'alg': self.algorithm, 'typ': 'JWT'})}.{encoded(claims)}.AAAA"
        return AccessToken(token, now + max(self.lives_for, 600))


def test_a_shared_key_over_tls(tls_server):
    assert tls_server.ready["table"].startswith("https://")
    with client(tls_server, AzureNamedKeyCredential(ACCOUNT, KEY)) as service:
        round_trip(service)


def test_the_connection_string_is_for_tls(tls_server):
    with TableServiceClient.from_connection_string(
        tls_server.connection_string(), connection_verify=str(CERTIFICATE)
    ) as service:
        round_trip(service)
    assert "DefaultEndpointsProtocol=https;" in tls_server.log_text()


def test_a_signature_for_https_only(tls_server, server):
    token = generate_account_sas(
        AzureNamedKeyCredential(ACCOUNT, KEY),
        ResourceTypes(service=True, container=True, object=True),
        AccountSasPermissions(read=True, write=True, delete=True, list=True, add=True, create=True, update=True),
        datetime.now(timezone.utc) + timedelta(hours=1),
        protocol="https",
    )
    with client(tls_server, AzureSasCredential(token)) as service:
        round_trip(service)
    answer = server.wire().send("GET", f"/Tables?{token}", sign=None)
    assert answer.error() == (403, "AuthorizationProtocolMismatch")


def test_a_stranger_s_certificate_is_not_trusted(tls_server):
    with client(tls_server, AzureNamedKeyCredential(ACCOUNT, KEY), connection_verify=True) as service:
        with pytest.raises(ServiceRequestError):
            list(service.list_tables())


def test_nothing_is_served_in_the_clear(tls_server):
    host, port = tls_server.base.removeprefix("https://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(b"GET /devstoreaccount1/Tables HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = b"".join(iter(lambda: connection.recv(4096), b""))
        assert answer.startswith(b"HTTP/1.1 400 ") and b"\r\nx-ms-error-code: AccountRequiresHttps\r\n" in answer
    assert tls_server.terminate_and_start() == 0


@pytest.mark.parametrize("audience", [STORAGE, STORAGE + "/", f"https://{ACCOUNT}.table.core.windows.net"])
def test_a_token(tls_server, audience):
    tokens = Tokens(audience)
    with client(tls_server, tokens) as service:
        round_trip(service)
    assert tokens.scopes[0] == f"{STORAGE}/.default"


@pytest.mark.parametrize(
    "wrong",
    [
        {"audience": "https://vault.azure.net"},
        {"audience": "https://someoneelse.table.core.windows.net"},
        {"issuer": "https://example.org/"},
        {"lives_for": -1},
        {"algorithm": "none"},
    ],
)
def test_a_wrong_token(tls_server, wrong):
    with client(tls_server, Tokens(**wrong)) as service:
        with pytest.raises((ClientAuthenticationError, HttpResponseError)) as caught:
            list(service.list_tables())
        assert caught.value.status_code == 403
        assert "AuthenticationFailed" in str(caught.value)


def test_tokens_have_to_be_allowed():
    with Server(*TLS) as server, client(server, Tokens()) as service:
        with pytest.raises(HttpResponseError) as caught:
            list(service.list_tables())
        assert caught.value.status_code == 403


def test_tokens_in_the_clear_are_refused(server):
    token = Tokens().get_token().token
    answer = server.wire().send("GET", "/Tables", sign=None, headers={"Authorization": f"Bearer {token}"})
    assert answer.error() == (403, "AuthenticationFailed")


def test_the_server_says_loudly_what_it_does_not_verify(tls_server):
    assert "WARNING" in tls_server.log_text() and "SIGNATURES" in tls_server.log_text()
