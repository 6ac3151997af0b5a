"""One server for all tests that don't need their own, and a fresh table for each that asks."""

import os
import re
from contextlib import contextmanager

import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueServiceClient

from larimar_server import RunningServer, Server, new_name

# A server error that a client retries away would go unseen.
STRICT = {"retry_total": 0}


@pytest.fixture(scope="session")
def server():
    endpoint = os.environ.get("LARIMAR_ENDPOINT")
    server = RunningServer(endpoint) if endpoint else Server()
    yield server
    server.close()


@pytest.fixture
def own_server():
    """A server that a test may stop, kill and start again."""
    if os.environ.get("LARIMAR_ENDPOINT"):
        pytest.skip("needs a server of its own")
    with Server() as server:
        yield server


@pytest.fixture
def service(server):
    with TableServiceClient.from_connection_string(server.connection_string(), **STRICT) as service:
        yield service


@pytest.fixture
def table(service):
    """An empty table's client."""
    name = new_name()
    service.create_table(name)
    with service.get_table_client(name) as table:
        yield table
    try:
        service.delete_table(name)
    except HttpResponseError:
        pass


@pytest.fixture
def queues(server):
    """The Queue service's client."""
    with QueueServiceClient.from_connection_string(server.connection_string(), **STRICT) as queues:
        yield queues


@pytest.fixture
def queue(queues):
    """An empty queue's client."""
    name = new_name()
    queues.create_queue(name)
    with queues.get_queue_client(name) as queue:
        yield queue
    try:
        queues.delete_queue(name)
    except HttpResponseError:
        pass


@pytest.fixture
def blobs(server):
    """The Blob service's client, with small blocks so that tests see many."""
    sizes = {"max_block_size": 1 << 20, "max_single_put_size": 2 << 20}
    with BlobServiceClient.from_connection_string(server.connection_string(), **sizes, **STRICT) as blobs:
        yield blobs


@pytest.fixture
def container(blobs):
    """An empty container's client."""
    name = new_name()
    with blobs.create_container(name) as container:
        yield container
    try:
        blobs.delete_container(name)
    except HttpResponseError:
        pass


@pytest.fixture
def wire(server):
    return server.wire()


@pytest.fixture
def refused():
    return expect_refusal


@contextmanager
def expect_refusal(status, code, index=None):
    """The block must fail with this status and this error code (and, in a batch, at this operation)."""
    with pytest.raises(HttpResponseError) as caught:
        yield caught
    error = caught.value
    assert (error.status_code, error_code(error)) == (status, code), str(error)
    if index is not None:
        assert error.index == index


def error_code(error):
    """The client sets the code on most errors, but leaves that of an insert in the body."""
    code = getattr(error, "error_code", None)
    if code is None:
        found = re.search(r'"code":"(\w+)"|<(?:m:)?code>(\w+)</', error.response.text(), re.IGNORECASE)
        code = found and (found.group(1) or found.group(2))
    return getattr(code, "value", code)
