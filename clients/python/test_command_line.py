"""The program as its user meets it: what it prints, where it listens, how it ends, and what it refuses."""

import json
import os
import re
import signal
import socket
import subprocess
import time

import pytest
from azure.core.exceptions import AzureError, HttpResponseError
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient

from larimar_server import BINARY, KEY, Server, clean_environment

pytestmark = pytest.mark.skipif("LARIMAR_ENDPOINT" in os.environ, reason="starts servers of its own")


def run(*arguments, environment=None, folder=None, timeout=20):
    """Runs to the end, which must come by itself."""
    return subprocess.run(
        [str(BINARY), *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=clean_environment(environment or {}),
        cwd=folder,
        timeout=timeout,
    )


def check_refused(finished, *words):
    """One clear line, and an exit code that is neither success nor a crash."""
    assert finished.returncode > 0 and finished.returncode < 128, finished
    assert finished.returncode != 101, "that was a panic"
    text = finished.stderr.strip()
    assert text and "panicked" not in text
    assert "\n" not in text
    for word in words:
        assert word in text
    return text


PORTS = ["--table-port", "0", "--queue-port", "0"]


def test_the_ready_file_names_addresses_and_process(own_server):
    assert own_server.ready["pid"] == own_server.process.pid
    host, port = re.fullmatch(r"http://([0-9.]+):(\d+)/?", own_server.ready["table"]).groups()
    assert (host, int(port) > 0) == ("127.0.0.1", True)


def test_it_prints_a_connection_string_that_works(tmp_path):
    ready = tmp_path / "ready.json"
    command = [str(BINARY), "serve", "--data", str(tmp_path / "data"), *PORTS, "--ready-file", str(ready)]
    with open(tmp_path / "output", "wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=clean_environment({}))
    try:
        deadline = time.monotonic() + 30
        while "DefaultEndpointsProtocol" not in (tmp_path / "output").read_text():
            assert process.poll() is None and time.monotonic() < deadline, (tmp_path / "output").read_text()
            time.sleep(0.01)
        printed = (tmp_path / "output").read_text()
        connection = re.search(r"DefaultEndpointsProtocol=\S+", printed).group(0)
        with TableServiceClient.from_connection_string(connection) as service:
            service.create_table("printed")
            assert [table.name for table in service.list_tables()] == ["printed"]
        assert json.loads(ready.read_text())["table"].rstrip("/") in printed
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_cleanly(own_server, how):
    own_server.process.send_signal(how)
    assert own_server.process.wait(30) == 0


def test_it_stops_with_idle_connections_open(own_server):
    host, port = own_server.base.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))), socket.create_connection((host, int(port))) as half:
        half.sendall(b"GET /devstoreaccount1/Tables HTTP/1.1\r\nHost: x\r\n")
        assert own_server.terminate() == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["--nonsense"],
        ["brew"],
        ["--table-port", "70000"],
        ["--table-port", "x"],
        ["--account", "nokey"],
        ["--account", "name:not base64!"],
        ["--account", f"UPPER:{KEY}"],
        ["--account", f"ab:{KEY}"],
        ["--host", "not a host"],
        ["--tls-cert", "missing.pem"],
        ["--tls-cert", "missing.pem", "--tls-key", "missing.pem"],
        ["--oauth", "basic"],
    ],
)
def test_bad_flags(tmp_path, arguments):
    data = tmp_path / "data"
    ports = [] if "--table-port" in arguments else PORTS
    check_refused(run("--data", data, *ports, *arguments))
    assert not data.exists() or list(data.iterdir()) == []


@pytest.mark.parametrize("name", ["LARIMAR_ACCOUNTS", "AZURITE_ACCOUNTS"])
def test_a_bad_environment(tmp_path, name):
    check_refused(run("--data", tmp_path / "data", *PORTS, environment={name: "nokey"}), name)


def test_a_taken_port(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        finished = run("--data", tmp_path / "data", "--host", "127.0.0.1", "--table-port", port)
        check_refused(finished, str(port))


def test_a_folder_serves_one_process(own_server):
    check_refused(run("--data", own_server.data, *PORTS), str(own_server.data))
    assert own_server.wire().send("GET", "/Tables").status == 200
    assert own_server.terminate() == 0
    own_server.start()


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_foreign_folder_is_left_alone(tmp_path):
    foreign = tmp_path / "foreign"
    (foreign / "photos").mkdir(parents=True)
    (foreign / "photos" / "cat.jpg").write_bytes(b"meow")
    before = contents(foreign)
    check_refused(run("--data", foreign, *PORTS), str(foreign))
    assert contents(foreign) == before


def test_a_file_in_place_of_the_folder(tmp_path):
    file = tmp_path / "file"
    file.write_text("not a folder")
    check_refused(run("--data", file, *PORTS), str(file))
    assert file.read_text() == "not a folder"


def test_a_folder_that_can_t_be_made():
    check_refused(run("--data", "/proc/larimar/data", *PORTS), "/proc/larimar")


def test_damaged_data_is_told_and_stops_nothing_else(own_server):
    """Bytes in the middle of what is stored are turned over: what they may have changed is not answered, all else is."""
    wire = own_server.wire()
    assert wire.send("POST", "/Tables", {"TableName": "damaged"}).status == 201
    for number in range(200):
        entity = {"PartitionKey": "p", "RowKey": f"{number}", "Value": "needle" * 50}
        assert wire.send("POST", "/damaged", entity).status == 201
    assert own_server.terminate() == 0
    damaged = 0
    for path in own_server.data.rglob("*"):
        stored = path.read_bytes() if path.is_file() else b""
        places = [match.start() for match in re.finditer(b"needle", stored)]
        if places:
            at = places[len(places) // 2]
            path.write_bytes(stored[:at] + b"NEEDLE" + stored[at + 6 :])
            damaged += 1
    assert damaged, "the test does not know where the data is"
    own_server.start()
    assert "is damaged" in own_server.log_text()
    assert own_server.wire().send("GET", "/damaged").status == 500
    with BlobServiceClient.from_connection_string(own_server.connection_string(), retry_total=0) as service:
        service.create_container("box").upload_blob("a.bin", b"whole")
    assert own_server.terminate() == 0
    checked = run("check", own_server.data)
    assert checked.returncode == 3 and "larimar repair" in checked.stdout, checked


def turn_over(server, needle, turned):
    """Turns over those bytes wherever they are stored; the server has ended."""
    found = 0
    for path in server.data.rglob("*"):
        stored = path.read_bytes() if path.is_file() else b""
        at = stored.find(needle)
        if at >= 0:
            path.write_bytes(stored[:at] + turned + stored[at + len(turned) :])
            found += 1
    assert found, "the test does not know where the data is"


@pytest.mark.parametrize("needle, is_first", [(b"first bytes", True), (b"last bytes", False)])
def test_a_blob_that_can_t_be_read_is_told_by_its_name(own_server, needle, is_first):
    """While nothing is sent there is an answer that says so; later the connection breaks off."""
    # So large that none of it goes through the journal.
    content = b"first bytes" + bytes(6_000_000) + b"last bytes"
    with BlobServiceClient.from_connection_string(own_server.connection_string(), retry_total=0) as service:
        service.create_container("box").upload_blob("a.bin", content)
    assert own_server.terminate() == 0
    turn_over(own_server, needle, needle.upper())
    own_server.start()
    with BlobServiceClient.from_connection_string(own_server.connection_string(), retry_total=0) as service:
        blob = service.get_blob_client("box", "a.bin")
        with pytest.raises(HttpResponseError if is_first else AzureError) as refused:
            blob.download_blob().readall()
        assert blob.download_blob(500_000, 100).readall() == bytes(100), "the rest can be read"
    if is_first:
        assert (refused.value.status_code, refused.value.error_code) == (500, "InternalError")
    assert "blob devstoreaccount1/box/a.bin can't be read" in own_server.log_text()


@pytest.mark.parametrize("power_loss", [True, False])
def test_a_last_record_that_is_not_whole_is_told(own_server, power_loss):
    """After a power loss a crash may have cut it short, or the disk has damaged it since: nobody can tell, but it must not go
    unnoticed. A process that was only killed has left word that it was whole."""
    wire = own_server.wire()
    assert wire.send("POST", "/Tables", {"TableName": "last"}).status == 201
    assert wire.send("POST", "/last", {"PartitionKey": "p", "RowKey": "1", "Value": "needle"}).status == 201
    own_server.kill()
    journal = own_server.data / "journal"
    (path,) = [path for path in journal.iterdir() if b"needle" in path.read_bytes()]
    stored = path.read_bytes()
    # What follows it shows that it was whole, if the server has lived to write that.
    begins = stored.rfind(b"needle") // 4096 * 4096
    follows = begins + 4096
    stored = stored[:follows] + bytes(4096) + stored[follows + 4096 :]
    path.write_bytes(stored.replace(b"needle", b"NEEDLE"))
    if power_loss:
        (journal / "synced").write_bytes(bytes(32))
    checked = run("check", own_server.data)
    told = f"byte {begins}) is not whole" if power_loss else f"from byte {begins} on were synced and do not read"
    assert checked.returncode == (0 if power_loss else 3) and told in checked.stdout, checked
    own_server.start()
    assert told in own_server.log_text()
    assert own_server.wire().send("GET", "/last").status == (200 if power_loss else 500)


def test_nobody_else_may_look_into_a_new_data_folder(own_server):
    assert own_server.data.stat().st_mode & 0o777 == 0o700


def test_help_and_version():
    finished = run("--help")
    assert finished.returncode == 0
    for flag in ("--data", "--host", "--table-port", "--in-memory", "--ready-file", "--account"):
        assert flag in finished.stdout
    assert run("--version").returncode == 0


def test_the_data_folder_has_a_usual_place(tmp_path):
    process = subprocess.Popen(
        [str(BINARY), *PORTS, "--ready-file", str(tmp_path / "ready.json")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=clean_environment({}),
        cwd=tmp_path,
    )
    try:
        deadline = time.monotonic() + 30
        while not (tmp_path / "ready.json").exists():
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)
        assert (tmp_path / "larimar-data").is_dir()
    finally:
        process.terminate()
        assert process.wait(30) == 0


def test_a_server_can_be_used_by_name(own_server):
    """The base URL of the ready file is all that a client needs."""
    with Server() as other:
        assert other.base != own_server.base
        assert other.wire().send("POST", "/Tables", {"TableName": "other"}).status == 201
        assert own_server.wire().send("GET", "/Tables").json()["value"] == []
