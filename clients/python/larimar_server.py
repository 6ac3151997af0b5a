"""A server as a user would run it, and requests that no client library would send.

`Server` starts the release binary on a free port and a data folder of its own. `Wire` sends one raw request, signed
as asked, and shows the raw answer. Both know nothing of the server's insides.
"""

import base64
import hashlib
import hmac
import http.client
import json
import os
import pathlib
import re
import signal
import ssl
import subprocess
import tempfile
import time
import uuid
from dataclasses import dataclass, field
from email.utils import formatdate
from urllib.parse import urlencode, urlsplit

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("LARIMAR_BIN", ROOT / "target" / "release" / "larimar"))

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

# A certificate for localhost and 127.0.0.1 that signs itself, and its key.
CERTIFICATE = ROOT / "crates" / "front_end" / "tests" / "certificates" / "server.pem"
CERTIFICATE_KEY = CERTIFICATE.with_name("server-key.pem")

# Whether the servers of this run end every page early, as the step `boundaries` has them do.
PAGES_END_EARLY = "LARIMAR_SIMULATE" in os.environ
TOKENS = {
    "x-ms-continuation-nextpartitionkey": "NextPartitionKey",
    "x-ms-continuation-nextrowkey": "NextRowKey",
}

# Where the servers of this run keep their bytes and metadata if each is a process of a stamp of its own, as
# `cargo xtask stamp --clients` has it: more arguments, with spaces between.
STAMP_ARGUMENTS = os.environ.get("LARIMAR_STAMP_ARGUMENTS", "").split()

START_TIMEOUT_S = 30
STOP_TIMEOUT_S = 30


class Server:
    """One server process. Its data folder is a temporary one unless given, and outlives restarts."""

    def __init__(self, *arguments, data=None, environment=None):
        self.arguments = arguments
        self.environment = environment or {}
        self._folder = tempfile.TemporaryDirectory(prefix="larimar-test-")
        self.folder = pathlib.Path(self._folder.name)
        self.data = pathlib.Path(data) if data else self.folder / "data"
        # It outlives restarts, as the folder does.
        self.stamp = uuid.uuid4().hex
        self.process = None
        self.ready = None
        self.start()

    def start(self):
        ready_file = self.folder / "ready.json"
        ready_file.unlink(missing_ok=True)
        self.log = open(self.folder / "server.log", "ab")
        command = [BINARY, "--host", "127.0.0.1"]
        if STAMP_ARGUMENTS and "--in-memory" not in self.arguments:
            command += ["--stamp", self.stamp, *STAMP_ARGUMENTS]
            command += ["--admin-token-file", self.folder / "tokens"]
        elif "--in-memory" not in self.arguments:
            command += ["--data", self.data]
        # Rules that every server of a run follows, such as boundaries at every page.
        if PAGES_END_EARLY:
            command += ["--simulate", os.environ["LARIMAR_SIMULATE"]]
        command += ["--table-port", "0", "--blob-port", "0", "--queue-port", "0"]
        if "--admin-port" not in self.arguments:
            command += ["--admin-port", "none"]
        command += ["--ready-file", ready_file]
        self.process = subprocess.Popen(
            [str(part) for part in command + list(self.arguments)],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            env=clean_environment(self.environment),
        )
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                ready = json.loads(ready_file.read_text())
                if ready["pid"] == self.process.pid:
                    break
            except (FileNotFoundError, json.JSONDecodeError):
                pass
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended with {self.process.returncode}:\n{self.log_text()}")
            if time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"the server was not ready in time:\n{self.log_text()}")
            time.sleep(0.005)
        self.ready = ready
        self.base = ready["table"].rstrip("/")
        self.queue_base = ready["queue"].rstrip("/")
        self.blob_base = ready["blob"].rstrip("/")
        self.wait_until_served(deadline)

    def wait_until_served(self, deadline):
        """A process of a stamp stands by first: as long as the lease of one that was killed lives."""
        while STAMP_ARGUMENTS and is_standing_by(self.base):
            if time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"the server stands by for too long:\n{self.log_text()}")
            time.sleep(0.02)

    def log_text(self):
        return (self.folder / "server.log").read_text(errors="replace")

    def terminate(self):
        """SIGTERM; returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(STOP_TIMEOUT_S)
        self.log.close()
        return code

    def terminate_and_start(self):
        """A clean stop, and a start on what is stored; returns the exit code of the stop."""
        code = self.terminate()
        self.start()
        return code

    def kill(self):
        self.process.kill()
        self.process.wait(STOP_TIMEOUT_S)
        self.log.close()

    def close(self):
        if self.process.poll() is None:
            self.kill()
        self._folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def endpoint(self, account=ACCOUNT):
        return f"{self.base}/{account}"

    def queue_endpoint(self, account=ACCOUNT):
        return f"{self.queue_base}/{account}"

    def connection_string(self, account=ACCOUNT, key=KEY):
        return (
            f"DefaultEndpointsProtocol={urlsplit(self.base).scheme};AccountName={account};AccountKey={key};"
            f"BlobEndpoint={self.blob_base}/{account};QueueEndpoint={self.queue_endpoint(account)};"
            f"TableEndpoint={self.endpoint(account)};"
        )

    def wire(self, account=ACCOUNT, key=KEY):
        return Wire(self.base, account, key)


class RunningServer:
    """A server that someone else started, named by LARIMAR_ENDPOINT (base URL without account). It can't be restarted.
    LARIMAR_QUEUE_ENDPOINT and LARIMAR_BLOB_ENDPOINT name its other services, else they are on the peer's ports."""

    def __init__(self, base):
        self.base = base.rstrip("/")
        default = f"{urlsplit(base).scheme}://{urlsplit(base).hostname}"
        self.queue_base = os.environ.get("LARIMAR_QUEUE_ENDPOINT", f"{default}:10001").rstrip("/")
        self.blob_base = os.environ.get("LARIMAR_BLOB_ENDPOINT", f"{default}:10000").rstrip("/")

    endpoint = Server.endpoint
    queue_endpoint = Server.queue_endpoint
    connection_string = Server.connection_string
    wire = Server.wire

    def close(self):
        pass


def is_standing_by(base):
    """Whether a server says that another process of its stamp serves, or nobody yet."""
    address = urlsplit(base)
    if address.scheme == "https":
        # Only its status counts.
        context = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection(address.netloc, timeout=5, context=context)
    else:
        connection = http.client.HTTPConnection(address.netloc, timeout=5)
    try:
        connection.request("GET", f"/{ACCOUNT}/Tables")
        return connection.getresponse().status == 503
    except OSError:
        return True
    finally:
        connection.close()


def clean_environment(more):
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_ACCOUNTS")}
    return environment | more


@dataclass
class Answer:
    status: int
    headers: dict
    body: bytes

    def json(self):
        return json.loads(self.body)

    def text(self):
        return self.body.decode("utf-8")

    def error(self):
        """The error's (status, code), read from a JSON or an XML body; the header must not contradict it."""
        code = None
        if self.body.lstrip().startswith(b"{"):
            error = self.json()["odata.error"]
            assert set(error) == {"code", "message"}, "clients fail on further members"
            assert set(error["message"]) == {"lang", "value"}
            code = error["code"]
        else:
            found = re.search(r"<(?:m:)?code>([^<]*)</", self.text(), re.IGNORECASE)
            code = found and found.group(1)
        assert self.headers.get("x-ms-error-code", code) == code
        return self.status, code

    def message(self):
        return self.json()["odata.error"]["message"]["value"]


@dataclass
class Wire:
    """Raw requests to one account."""

    base: str
    account: str
    key: str
    version: str = "2019-02-02"
    last_string_to_sign: str = field(default="", init=False)

    def send(self, method, target, body=b"", *, accept=None, sign="SharedKey", date=None, headers=None, **other):
        """`target` is what follows the account, such as `/Tables`. `sign` is a scheme, or None for no signature.

        `headers` with a value of None take a default header away.
        """
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        if isinstance(body, str):
            body = body.encode("utf-8")
        date = date or formatdate(usegmt=True)
        sent = {
            "x-ms-version": self.version,
            "x-ms-date": date,
            "DataServiceVersion": "3.0",
            "Accept": accept or "application/json;odata=minimalmetadata",
        }
        if body:
            sent["Content-Type"] = "application/json"
        for name, value in (headers or {}).items():
            for known in [known for known in sent if known.lower() == name.lower()]:
                del sent[known]
            if value is not None:
                sent[name] = value
        path = f"/{self.account}{target}"
        if sign:
            sent["Authorization"] = self.authorization(sign, method, path, sent, **other)
        return self.send_unsigned(method, path, sent, body)

    def query(self, target, **more):
        """The answer to a query; where every page ends early, with the rows of all its pages."""
        answer = self.send("GET", target, **more)
        rows = []
        while PAGES_END_EARLY and answer.status == 200:
            rows += answer.json()["value"]
            token = {name: answer.headers[header] for header, name in TOKENS.items() if header in answer.headers}
            if not token:
                answer.body = json.dumps(answer.json() | {"value": rows}).encode()
                break
            separator = "&" if "?" in target else "?"
            answer = self.send("GET", f"{target}{separator}{urlencode(token)}", **more)
        return answer

    def send_unsigned(self, method, path, headers, body=b""):
        connection = http.client.HTTPConnection(urlsplit(self.base).netloc, timeout=40)
        try:
            connection.request(method, path, body or None, headers)
            response = connection.getresponse()
            lower = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, lower, response.read())
        finally:
            connection.close()

    def authorization(self, scheme, method, path, headers, *, account=None, key=None):
        lower = {name.lower(): value for name, value in headers.items()}
        account = account or self.account
        date = lower.get("x-ms-date") or lower.get("date", "")
        path, _, query = path.partition("?")
        resource = f"/{account}{path}"
        for parameter in query.split("&"):
            if parameter.startswith("comp="):
                resource += f"?{parameter}"
        if scheme == "SharedKey":
            lines = [method, lower.get("content-md5", ""), lower.get("content-type", ""), date, resource]
        else:
            lines = [date, resource]
        self.last_string_to_sign = "\n".join(lines)
        return f"{scheme} {account}:{signature(key or self.key, self.last_string_to_sign)}"

    def batch(self, operations, *, boundary="batch_b", change_set="changeset_c", **more):
        """Sends operations `(method, target, body[, headers])` as one change set."""
        body = batch_body(self.base + "/" + self.account, operations, boundary, change_set)
        headers = {"Content-Type": f"multipart/mixed; boundary={boundary}"} | more.pop("headers", {})
        return self.send("POST", "/$batch", body, headers=headers, **more)


def batch_body(base, operations, boundary="batch_b", change_set="changeset_c"):
    parts = []
    for operation in operations:
        method, target, body, *headers = operation
        lines = ["Content-Type: application/http", "Content-Transfer-Encoding: binary", ""]
        lines += [f"{method} {base}{target} HTTP/1.1", "Accept: application/json;odata=minimalmetadata"]
        if body is not None:
            lines += ["Content-Type: application/json"]
        lines += [f"{name}: {value}" for name, value in (headers[0] if headers else {}).items()]
        lines += ["", json.dumps(body) if body is not None else "", ""]
        parts.append("\r\n".join(lines))
    text = f"--{boundary}\r\nContent-Type: multipart/mixed; boundary={change_set}\r\n\r\n"
    text += "".join(f"--{change_set}\r\n{part}" for part in parts)
    return text + f"--{change_set}--\r\n--{boundary}--\r\n"


@dataclass
class Part:
    """One operation's answer inside a batch answer."""

    status: int
    headers: dict
    body: str

    def error(self):
        return self.status, json.loads(self.body)["odata.error"]["code"]

    def message(self):
        return json.loads(self.body)["odata.error"]["message"]["value"]


def batch_parts(answer):
    """The parts of a batch answer, read strictly: both boundaries must open and close."""
    assert answer.status == 202, answer.body
    outer = boundary_of(answer.headers["content-type"])
    text = answer.text()
    assert text.startswith(f"--{outer}\r\n") and text.rstrip().endswith(f"--{outer}--")
    head, _, rest = text[len(outer) + 4 :].partition("\r\n\r\n")
    inner = boundary_of(head)
    assert f"--{inner}--" in rest
    parts = []
    for part in rest.split(f"--{inner}--")[0].split(f"--{inner}\r\n")[1:]:
        part_head, _, response = part.partition("\r\n\r\n")
        assert "application/http" in part_head and "binary" in part_head
        response_head, _, body = response.partition("\r\n\r\n")
        status_line, *lines = response_head.split("\r\n")
        assert status_line.startswith("HTTP/1.1 ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        parts.append(Part(int(status_line.split(" ")[1]), headers, body.strip()))
    return parts


def boundary_of(text):
    return re.search(r'boundary="?([^";\r\n]+)', text).group(1)


def signature(key, string_to_sign):
    digest = hmac.new(base64.b64decode(key), string_to_sign.encode("utf-8"), hashlib.sha256).digest()
    return base64.b64encode(digest).decode("ascii")


def date_in(seconds):
    return formatdate(time.time() + seconds, usegmt=True)


def next_page(pages, size):
    """The next page as a list; where every page ends early, of so many pages that it has that size."""
    items = list(next(pages))
    while PAGES_END_EARLY and len(items) < size:
        items += next(pages)
    return items


def new_name(prefix="t"):
    return prefix + uuid.uuid4().hex[:16]
