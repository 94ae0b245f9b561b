"""The row of a cold start."""

import os
import statistics
import subprocess
import time

from . import processes, servers
from .calls import echo_reply, echo_request
from .checks import SLUICE, Check, Result
from .measure import Bench
from .processes import BenchError


def _cold_start(bench: Bench, server: servers.Server, request: bytes) -> tuple[float, int]:
    """Milliseconds from the start to the first valid reply, and resident memory a second later."""
    begin = time.perf_counter()
    process = subprocess.Popen(
        processes.pinned(bench.cores.server, server.command),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        while True:
            try:
                reply = processes.exchange(server.port, request)
                break
            except ConnectionRefusedError:
                if time.perf_counter() - begin > 20:
                    raise BenchError(f"{server.name} does not start") from None
                time.sleep(0.0002)
        elapsed = time.perf_counter() - begin
        if not reply.startswith((b"HTTP/1.1 200", b"HTTP/1.1 101")):
            raise BenchError(f"{server.name}: {reply[:200]!r}")
        time.sleep(1)
        return elapsed * 1000, processes.resident_bytes(process.pid)
    finally:
        processes.stop(process)


def run_start(bench: Bench) -> Result:
    paths = bench.paths
    reply = echo_reply(bench)
    reply_file = os.path.join(paths.scratch, "echo.reply")
    with open(reply_file, "wb") as target:
        target.write(reply)
    body = reply.partition(b"\r\n\r\n")[2].decode()
    # Started without the limits that the other rows set.
    port = processes.free_port()
    plain = [
        paths.sluice, "serve", "--engine", "synthetic", "--host", "127.0.0.1", "--port", str(port),
    ]  # fmt: skip
    starts = {
        SLUICE: lambda: servers.Server(SLUICE, plain, port),
        "bare epoll": lambda: servers.bare(paths, "--echo-reply", reply_file),
        "nginx": lambda: servers.nginx(paths, body),
        "TypeScript SDK": lambda: servers.typescript(paths),
    }
    found: dict[str, list[tuple[float, int]]] = {label: [] for label in starts}
    for _ in range(3 if bench.quick else 7):
        for label, start in starts.items():
            found[label].append(_cold_start(bench, start(), echo_request()))
    figures = {
        label: {
            "first reply, ms": statistics.median(ms for ms, _ in runs),
            "resident, MB": statistics.median(resident for _, resident in runs) / 1e6,
        }
        for label, runs in found.items()
    }
    for label, cells in figures.items():
        bench.say(f"  {label}: {cells['first reply, ms']:.1f} ms, {cells['resident, MB']:.1f} MB")
    checks = [
        Check("cold start, ms", figures[SLUICE]["first reply, ms"], 15),
        Check("idle resident, MB", figures[SLUICE]["resident, MB"], 10),
    ]
    return Result(figures, checks)
