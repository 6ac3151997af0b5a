"""The admin side against its description: Schemathesis makes requests from it, good and bad ones, and checks each answer:
none is a server's error, each has a status, a type and a shape that are described."""

import pathlib
import subprocess
import sys

import pytest

from larimar_server import PAGES_END_EARLY, ROOT, Server

DESCRIPTION = ROOT / "crates" / "larimar" / "src" / "admin" / "api" / "openapi.json"
EXAMPLES = 12
TIMEOUT_S = 120


@pytest.fixture
def admin_server():
    if PAGES_END_EARLY:
        pytest.skip("it simulates something else")
    with Server("--admin-port", "0", "--simulate", "azure") as server:
        yield server


def run(server, *arguments):
    tokens = (pathlib.Path(server.data) / "admin-tokens").read_text().splitlines()
    [token] = [line.split()[1] for line in tokens if line.startswith("admin")]
    command = [pathlib.Path(sys.executable).with_name("schemathesis"), "run", DESCRIPTION]
    command += ["--url", server.ready["admin"], "--header", f"Authorization: Bearer {token}"]
    # Wrong tokens wait for seconds, and a test of the crate sends one to each path.
    command += ["--checks", "all", "--exclude-checks", "ignored_auth", "--max-examples", str(EXAMPLES)]
    command += ["--generation-deterministic", "--no-color", *arguments]
    run = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, cwd=server.folder)
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]


def test_every_answer_is_described(admin_server):
    # First, as its answer while the server drains counts as an error of it.
    run(admin_server, "--include-operation-id", "ready")
    run(admin_server, "--exclude-operation-id", "ready", "--exclude-operation-id", "rotateToken")
    # Last, as it takes the token away that it is called with.
    run(admin_server, "--include-operation-id", "rotateToken", "--phases", "examples,coverage")
    assert admin_server.process.poll() is None
