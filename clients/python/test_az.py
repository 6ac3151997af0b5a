"""What `az storage blob copy start --source-container … --source-blob …` sends, by the client that it brings along.

The command makes the source's address of the account, of the cloud's suffix and of the quoted names, whatever endpoint it was
given, and signs with the account's key."""

from urllib.parse import quote

import pytest
from azure.core.exceptions import HttpResponseError
from azure.multiapi.storagev2.blob.v2022_11_02 import BlobServiceClient

from larimar_server import ACCOUNT, new_name

SUFFIX = "core.windows.net"


def source_url(container, blob, account=ACCOUNT, snapshot=None):
    url = f"https://{account}.blob.{SUFFIX}/{quote(container)}/{quote(blob)}"
    return f"{url}?snapshot={snapshot}" if snapshot else url


@pytest.fixture
def container(server):
    with BlobServiceClient.from_connection_string(server.connection_string(), retry_total=0) as service:
        yield service.create_container(new_name())


def copied(container, source, **more):
    copy = container.get_blob_client(new_name())
    answer = copy.start_copy_from_url(source, metadata=None, incremental_copy=False, **more)
    assert answer["copy_status"] == "success"
    return copy.download_blob().readall()


@pytest.mark.parametrize("name", ["plain", "dir/a b ä+%.txt"])
def test_a_copy_by_names(container, name):
    container.upload_blob(name, b"hello")
    assert copied(container, source_url(container.container_name, name)) == b"hello"


def test_a_copy_of_a_snapshot(container):
    blob = container.upload_blob("source", b"former")
    snapshot = blob.create_snapshot()["snapshot"]
    blob.upload_blob(b"present", overwrite=True)
    assert copied(container, source_url(container.container_name, "source", snapshot=snapshot)) == b"former"
    assert copied(container, source_url(container.container_name, "source")) == b"present"


@pytest.mark.parametrize(
    "account, name, refusal",
    [
        (ACCOUNT, "none", (404, "CannotVerifyCopySource")),
        # An account that this server does not have may be one of Azure, which is not asked.
        ("someoneelse", "source", (400, "CopyAcrossAccountsNotSupported")),
    ],
)
def test_a_source_that_is_not_here(container, account, name, refusal):
    container.upload_blob("source", b"hello")
    with pytest.raises(HttpResponseError) as refused:
        copied(container, source_url(container.container_name, name, account))
    assert (refused.value.status_code, refused.value.error_code) == refusal
