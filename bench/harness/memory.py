"""The rows of memory: open idle streams, sessions and chunks."""

import json
import os
import statistics
import time

from . import processes, servers
from .checks import Check, Result, micro, sluice_errors
from .measure import Bench, Target, medians
from .processes import BenchError


FIRST = "16"  # connections


def _memory_run(bench: Bench, target: Target) -> dict:
    """Like run_once, without the options for modes that measure for a time. A few connections
    are opened and closed first, so that one-time costs, such as loading code, are not counted."""
    server = target.start()
    log = os.path.join(bench.paths.scratch, "server.log")
    with processes.running(bench.cores.server, server.command, server.port, log) as process:
        arguments = [*target.load, "--port", str(server.port), "--server-pid", str(process.pid)]
        first = list(arguments)
        first[first.index("--connections") + 1] = FIRST
        processes.load(bench.paths, bench.cores, first)
        report = processes.load(bench.paths, bench.cores, arguments)
    if report["errors"]:
        bench.say(f"  {target.label}: {report['errors']} errors, first: {report['first_error']}")
    return report


def _many(bench: Bench) -> str:
    return "1000" if bench.quick else "10000"


def run_idle(bench: Bench) -> Result:
    paths = bench.paths
    many = _many(bench)
    hour = ["--interval-us", "3600000000"]

    def idle(via: str, connections: str = many) -> list[str]:
        return ["idle", "--connections", connections, "--via", via]

    targets = [
        Target("sluice, progress SSE", lambda: servers.sluice(paths), idle("call")),
        Target("sluice, GET SSE", lambda: servers.sluice(paths), idle("get")),
        Target("sluice, WebSocket", lambda: servers.sluice(paths), idle("ws")),
        Target("bare epoll, SSE", lambda: servers.bare(paths, *hour), idle("get")),
        Target("bare epoll, WebSocket", lambda: servers.bare(paths, *hour), idle("ws")),
        Target("npm ws, WebSocket", lambda: servers.npm_ws(paths), idle("ws")),
        Target(
            "TypeScript SDK, progress SSE",
            lambda: servers.typescript(paths),
            idle("call", "1000"),
        ),
    ]
    figures = {}
    reports = {}
    for target in targets:
        report = medians([_memory_run(bench, target) for _ in range(bench.rounds)])
        each = report["memory"]["resident_each"]
        bench.say(f"  {target.label}: {each:,.0f} B each")
        reports[target.label] = report
        figures[target.label] = {
            "open": report["units"],
            "bytes each": each,
            "of it heap": report["memory"]["anonymous_each"],
        }
    checks = [
        Check(f"{via} bytes", reports[f"sluice, {via}"]["memory"]["resident_each"], 2048)
        for via in ("progress SSE", "GET SSE", "WebSocket")
    ]
    return Result(figures, checks, sluice_errors(reports))


def _text_bytes(port: int) -> float:
    """The mean length of a chunk's text as a reader receives it."""
    start = {"prompt": "x", "stream": True, "count": 10000, "interval_us": 0}
    stream_id = rpc(port, "run", start)["stream_id"]
    time.sleep(0.2)
    chunks = rpc(port, "run", {"stream_id": stream_id, "from_seq": 0, "wait_ms": 1000})["chunks"]
    return statistics.mean(len(chunk["delta"].encode()) for chunk in chunks if not chunk["end"])


def rpc(port: int, method: str, params: dict) -> dict:
    """The result of a method at a server that speaks HTTP."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
    reply = processes.exchange(port, head.encode() + body)
    message = json.loads(reply.partition(b"\r\n\r\n")[2])
    if "result" not in message:
        raise BenchError(f"{method}: {message}")
    return message["result"]


def run_session(bench: Bench) -> Result:
    paths = bench.paths
    sessions = "2000" if bench.quick else "20000"
    roomy = ["--max-chunks", "100000", "--max-stream-bytes", "64MiB"]
    chunks = 10_000
    started = Target(
        "started", lambda: servers.sluice(paths),
        ["sessions", "--connections", sessions, "--count", "1000", "--interval-us", "60000000"],
    )  # fmt: skip
    ended = Target(
        "ended", lambda: servers.sluice(paths),
        ["sessions", "--connections", sessions, "--count", "0"],
    )  # fmt: skip
    buffered = Target(
        "buffered", lambda: servers.sluice(paths, *roomy),
        ["sessions", "--connections", "100", "--count", str(chunks), "--settle-ms", "2000"],
    )  # fmt: skip
    reports = {
        target.label: medians([_memory_run(bench, target) for _ in range(bench.rounds)])
        for target in (started, ended, buffered)
    }
    server = servers.sluice(paths)
    log = os.path.join(paths.scratch, "server.log")
    with processes.running(bench.cores.server, server.command, server.port, log):
        text = _text_bytes(server.port)
    each = {label: report["memory"]["resident_each"] for label, report in reports.items()}
    [session] = micro(bench, "^start_stream").values()
    chunk = (each["buffered"] - each["started"]) / chunks
    figures = {
        "stream session: its stream and its place in the registry": {
            "bytes": session["bytes_each"]
        },
        "process grown by a running session with generator and a first chunk": {
            "bytes": each["started"]
        },
        "process grown by an ended session that nobody has read": {"bytes": each["ended"]},
        "process grown by a buffered chunk": {"bytes": chunk},
        "text of that chunk": {"bytes": text},
    }
    checks = [
        Check("bytes of a stream session", session["bytes_each"], 512),
        Check("bytes of a buffered chunk above its text", chunk - text, 16),
    ]
    return Result(figures, checks, sum(report["errors"] for report in reports.values()))


def _metric(port: int, name: str) -> float:
    reply = processes.exchange(port, b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    for line in reply.decode().splitlines():
        if line.startswith(f"{name} "):
            return float(line.split()[1])
    raise BenchError(f"/metrics has no {name}")


def _sessions_run(bench: Bench, load: list[str]) -> dict:
    """The report has the number of `sessions` that the server counts while the load holds them.
    As in _memory_run(), a few are opened first; they stay open."""
    server = servers.sluice(bench.paths)
    log = os.path.join(bench.paths.scratch, "server.log")
    with processes.running(bench.cores.server, server.command, server.port, log) as process:
        where = ["--port", str(server.port), "--server-pid", str(process.pid)]
        first = [*load, *where]
        first[first.index("--connections") + 1] = FIRST
        processes.load(bench.paths, bench.cores, first)
        with processes.holding(bench.paths, bench.cores, [*load, *where]) as report:
            sessions = _metric(server.port, "sluice_sessions")
    if report["errors"]:
        raise BenchError(f"{' '.join(load)}: {report['first_error']}")
    return {**report, "sessions": sessions}


def run_mcp_sessions(bench: Bench) -> Result:
    # The newest revision that has HTTP with SSE and sessions of Streamable HTTP.
    [revision, *_] = [
        route["revision"]
        for route in processes.routes(bench.paths)
        if route["transport"] == "sse"
    ]
    which = ["--connections", _many(bench), "--revision", revision]
    idle, listening, with_sse = "idle session", "session with GET /mcp open", "HTTP with SSE session"
    cases = {
        idle: ["idle-sessions", *which],
        listening: ["listeners", "--transport", "http", *which],
        with_sse: ["listeners", "--transport", "sse", *which],
    }
    reports = {}
    figures = {}
    for label, load in cases.items():
        report = medians([_sessions_run(bench, load) for _ in range(bench.rounds)])
        each = report["memory"]["resident_each"]
        bench.say(f"  {label}: {each:,.0f} B each")
        reports[label] = report
        figures[label] = {
            "open": report["units"],
            "sessions of the server": report["sessions"],
            "bytes each": each,
            "of it heap": report["memory"]["anonymous_each"],
        }
    limits = {idle: 1024, listening: 3072, with_sse: 3072}
    checks = [
        Check(f"{label}: bytes", reports[label]["memory"]["resident_each"], limit)
        for label, limit in limits.items()
    ]
    checks += [
        Check(f"{label}: sessions open", report["sessions"], report["units"], at_least=True)
        for label, report in reports.items()
    ]
    return Result(figures, checks)
