"""Servers and the load generator as child processes, each pinned to its core."""

import contextlib
import dataclasses
import json
import os
import resource
import socket
import subprocess
import time
from collections.abc import Iterator


class BenchError(Exception):
    """Something could not be measured; the message says what and why."""


@dataclasses.dataclass(frozen=True)
class Paths:
    """Where the programs are. Whoever created `scratch` deletes it."""

    sluice: str
    floor: str
    load: str
    client: str
    agent: str
    reactions: str
    model: str
    micro: str
    npu_runtime: str
    peers: str
    scratch: str


@dataclasses.dataclass(frozen=True)
class Cores:
    server: int
    load: int


def raise_descriptor_limit() -> int:
    """Raises the limit, which children inherit. Returns how many descriptors each may have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def pinned(core: int, command: list[str]) -> list[str]:
    return ["taskset", "-c", str(core), *command]


def last_line(log: str) -> str:
    with open(log, encoding="utf-8", errors="replace") as lines:
        return next(reversed([line.strip() for line in lines if line.strip()]), "no output")


def wait_until_open(
    port: int, process: subprocess.Popen, log: str, seconds: float = 20
) -> None:
    program = process.args[3]
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise BenchError(f"{program} ended with {process.returncode}: {last_line(log)}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.005)
    raise BenchError(f"{program} did not listen within {seconds} s: {last_line(log)}")


def wait_until_ready(port: int, path: str, log: str, seconds: float = 20) -> None:
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    deadline = time.monotonic() + seconds
    while not exchange(port, request).startswith(b"HTTP/1.1 200"):
        if time.monotonic() > deadline:
            raise BenchError(f"{path} is not answered within {seconds} s: {last_line(log)}")
        time.sleep(0.005)


def stop(process: subprocess.Popen) -> None:
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextlib.contextmanager
def running(
    core: int, command: list[str], port: int, log: str, ready_path: str = ""
) -> Iterator[subprocess.Popen]:
    """Starts the server and waits until it listens, and until `ready_path` is answered with 200 if
    there is one; its output goes to the file `log`."""
    with open(log, "wb") as output:
        process = subprocess.Popen(
            pinned(core, command), stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        wait_until_open(port, process, log)
        if ready_path:
            wait_until_ready(port, ready_path, log)
        yield process
        if process.poll() is not None:
            raise BenchError(f"{command[0]} died under load: {last_line(log)}")
    finally:
        stop(process)


def load(paths: Paths, cores: Cores, arguments: list[str], timeout: float = 300) -> dict:
    """Runs the load generator once and returns its report, which may contain errors."""
    command = pinned(cores.load, [paths.load, *arguments])
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    if not done.stdout.startswith("{"):
        raise BenchError(done.stderr.strip() or f"the load ended with status {done.returncode}")
    return json.loads(done.stdout)


@contextlib.contextmanager
def holding(paths: Paths, cores: Cores, arguments: list[str]) -> Iterator[dict]:
    """A run of the load generator that keeps its connections open while the context lasts."""
    command = pinned(cores.load, [paths.load, *arguments, "--hold"])
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        if not line.startswith("{"):
            raise BenchError(f"{' '.join(arguments)}: nothing to hold")
        yield json.loads(line)
    finally:
        process.stdin.close()
        process.wait(60)


def routes(paths: Paths) -> list[dict[str, str]]:
    """All MCP revisions on all transports that support them, as the load generator lists them."""
    done = subprocess.run([paths.load, "routes"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def resident_bytes(pid: int) -> int:
    with open(f"/proc/{pid}/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def proportional_bytes(pid: int) -> int:
    """Resident memory, of which pages that several processes share count in parts."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as rollup:
        [kilobytes] = [int(line.split()[1]) for line in rollup if line.startswith("Pss:")]
    return 1024 * kilobytes


def exchange(port: int, request: bytes, timeout: float = 10) -> bytes:
    """Sends one HTTP request and returns the raw reply: the head and a Content-Length body."""
    with socket.create_connection(("127.0.0.1", port), timeout) as connection:
        connection.sendall(request)
        reply = b""
        while True:
            head, separator, body = reply.partition(b"\r\n\r\n")
            if separator:
                fields = dict(
                    line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:] if b":" in line
                )
                if len(body) >= int(fields.get(b"content-length", b"0")):
                    return reply
            piece = connection.recv(65536)
            if not piece:
                return reply
            reply += piece
