"""The rows of docs/performance.md: what is measured for each, and against what."""

import dataclasses
import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable

from . import processes, servers
from .measure import Bench, Target, compare, medians, run_once, run_quietly, summary
from .processes import BenchError, Paths

SLUICE = "sluice"
_CONNECTIONS = ["--connections", "64"]


@dataclasses.dataclass
class Check:
    """One target: `value` must not be above (or, with `at_least`, below) `limit`."""

    what: str
    value: float
    limit: float
    unit: str = ""
    at_least: bool = False

    @property
    def passed(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit


@dataclasses.dataclass
class Result:
    """`figures` are lines of a table, each a name and its cells by column."""

    figures: dict[str, dict[str, float]]
    checks: list[Check]
    errors: int = 0


@dataclasses.dataclass(frozen=True)
class Row:
    key: str
    title: str
    run: Callable[[Bench], Result]


def _rate_figures(reports: dict[str, dict]) -> dict[str, dict[str, float]]:
    figures = {}
    for label, report in reports.items():
        cells = {
            "per second": report["units_per_s"],
            "server CPU, us each": report["server_us_per_unit"],
            "of it user, us": report["server_user_us_per_unit"],
        }
        latency = report.get("round_trip_us") or report.get("added_us")
        if latency:
            cells["p50, us"] = latency["p50"]
            cells["p99, us"] = latency["p99"]
        cells["load cores"] = report["load_cores"]
        cells["foreign cores"] = report["foreign_cores"]
        figures[label] = cells
    return figures


def _sluice_errors(reports: dict[str, dict]) -> int:
    """Errors of sluice and its floor count against the run; a peer's are only told."""
    ours = [report for label, report in reports.items() if label.startswith((SLUICE, "bare"))]
    return sum(report["errors"] + int(report.get("stalled", 0)) for report in ours)


def _cpu_ratio(reports: dict[str, dict], label: str, other: str) -> float:
    """How many of its units sluice does with the CPU time that the other needs for one."""
    return reports[other]["server_us_per_unit"] / reports[label]["server_us_per_unit"]


def _rates(bench: Bench, targets: list[Target], checks: Callable[[dict], list[Check]]) -> Result:
    reports = compare(bench, targets)
    return Result(_rate_figures(reports), checks(reports), _sluice_errors(reports))


# --- tools/call ------------------------------------------------------------------------------


def _echo_reply(bench: Bench) -> bytes:
    """What sluice answers to the load's request: the floors return the same bytes."""
    server = servers.sluice(bench.paths)
    log = os.path.join(bench.paths.scratch, "server.log")
    with processes.running(bench.cores.server, server.command, server.port, log):
        reply = processes.exchange(server.port, _echo_request())
    if not reply.startswith(b"HTTP/1.1 200"):
        raise BenchError(f"tools/call echo: {reply[:300]!r}")
    return reply


def _echo_request() -> bytes:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    call = {"name": "echo", "arguments": {"text": "x" * 32}, "_meta": meta}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    body = json.dumps(message, separators=(",", ":")).encode()
    return (
        b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n"
        b"Mcp-Method: tools/call\r\nMcp-Name: echo\r\n"
        b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    )


def _run_echo(bench: Bench) -> Result:
    reply = _echo_reply(bench)
    reply_file = os.path.join(bench.paths.scratch, "echo.reply")
    with open(reply_file, "wb") as target:
        target.write(reply)
    body = reply.partition(b"\r\n\r\n")[2].decode()
    load = ["echo", *_CONNECTIONS]
    paths = bench.paths
    targets = [
        Target(SLUICE, lambda: servers.sluice(paths), load),
        Target("nginx", lambda: servers.nginx(paths, body), load),
        Target("bare epoll", lambda: servers.bare(paths, "--echo-reply", reply_file), load),
        Target("TypeScript SDK", lambda: servers.typescript(paths), load),
    ]

    def checks(reports: dict) -> list[Check]:
        return [
            Check("CPU per request, x nginx", 1 / _cpu_ratio(reports, SLUICE, "nginx"), 1.25),
            Check(
                "requests for the same CPU, x TypeScript",
                _cpu_ratio(reports, SLUICE, "TypeScript SDK"),
                40,
                at_least=True,
            ),
        ]

    return _rates(bench, targets, checks)


# --- pushed streams --------------------------------------------------------------------------

# Chunks in one write of the floor that stands for a coalesced backlog.
_PER_WRITE = 16


def _flush_load(via: str) -> list[str]:
    return ["stream", *_CONNECTIONS, "--interval-us", "-1", "--via", via]


def _backlog_load(via: str) -> list[str]:
    return ["stream", *_CONNECTIONS, "--interval-us", "0", "--via", via]


def _at_least_bare(name: str, label: str, floor: str, limit: float) -> Callable[[dict], Check]:
    return lambda reports: Check(
        f"{name} for the same CPU, x {floor}", _cpu_ratio(reports, label, floor), limit, at_least=True
    )


def _run_sse(bench: Bench) -> Result:
    paths = bench.paths
    targets = [
        Target(SLUICE, lambda: servers.sluice(paths), _flush_load("call")),
        Target("bare epoll", lambda: servers.bare(paths, "--call"), _flush_load("call")),
        Target("sluice, GET", lambda: servers.sluice(paths), _flush_load("get")),
        Target("bare epoll, GET", lambda: servers.bare(paths), _flush_load("get")),
        Target("TypeScript SDK", lambda: servers.typescript(paths), _flush_load("call")),
    ]
    progress = _at_least_bare("progress events", SLUICE, "bare epoll", 0.85)
    events = _at_least_bare("GET events", "sluice, GET", "bare epoll, GET", 0.85)
    return _rates(bench, targets, lambda reports: [progress(reports), events(reports)])


def _run_sse_backlog(bench: Bench) -> Result:
    paths = bench.paths
    many = ["--per-write", str(_PER_WRITE)]
    targets = [
        Target(SLUICE, lambda: servers.sluice(paths), _backlog_load("call")),
        Target("bare epoll", lambda: servers.bare(paths, "--call", *many), _backlog_load("call")),
        Target("sluice, GET", lambda: servers.sluice(paths), _backlog_load("get")),
        Target("bare epoll, GET", lambda: servers.bare(paths, *many), _backlog_load("get")),
        Target("TypeScript SDK", lambda: servers.typescript(paths), _backlog_load("call")),
    ]
    progress = _at_least_bare("progress events", SLUICE, "bare epoll", 0.6)
    events = _at_least_bare("GET events", "sluice, GET", "bare epoll, GET", 0.6)
    return _rates(bench, targets, lambda reports: [progress(reports), events(reports)])


def _run_ws(bench: Bench) -> Result:
    paths = bench.paths
    targets = [
        Target(SLUICE, lambda: servers.sluice(paths), _flush_load("ws")),
        Target("bare epoll", lambda: servers.bare(paths), _flush_load("ws")),
        Target("npm ws", lambda: servers.npm_ws(paths), _flush_load("ws")),
    ]
    check = _at_least_bare("frames", SLUICE, "bare epoll", 0.85)
    return _rates(bench, targets, lambda reports: [check(reports)])


def _run_ws_backlog(bench: Bench) -> Result:
    paths = bench.paths
    many = ["--per-write", str(_PER_WRITE)]
    targets = [
        Target(SLUICE, lambda: servers.sluice(paths), _backlog_load("ws")),
        Target("bare epoll", lambda: servers.bare(paths, *many), _backlog_load("ws")),
        Target("npm ws", lambda: servers.npm_ws(paths), _backlog_load("ws")),
    ]
    check = _at_least_bare("frames", SLUICE, "bare epoll", 0.6)
    return _rates(bench, targets, lambda reports: [check(reports)])


def _run_fanout(bench: Bench) -> Result:
    paths = bench.paths
    readers = ["fanout", "--connections", "1000", "--count", "100000000"]
    broker = ["--subscribe", "/subscribe", "--publish", "/publish"]
    targets = [
        Target(SLUICE, lambda: servers.sluice(paths), [*readers, "--interval-us", "-1"]),
        Target("nchan", lambda: servers.nchan(paths), [*readers, *broker]),
        Target("bare epoll", lambda: servers.bare(paths, "--shared"), readers),
        Target("sluice, coalesced", lambda: servers.sluice(paths), [*readers, "--interval-us", "0"]),
    ]

    def checks(reports: dict) -> list[Check]:
        ratio = _cpu_ratio(reports, SLUICE, "nchan")
        return [Check("events for the same CPU, x nchan", ratio, 1.0, at_least=True)]

    return _rates(bench, targets, checks)


# --- long poll -------------------------------------------------------------------------------


def _poll_targets(bench: Bench, chunks: int) -> list[Target]:
    # What a stream may hold is what a poll can find: that is how sluice is made to answer with so
    # many chunks, and its engine to refill the stream between two polls.
    paths = bench.paths
    load = ["poll", *_CONNECTIONS]
    several = f", {chunks} a reply" if chunks > 1 else ""
    return [
        Target(
            SLUICE + several, lambda: servers.sluice(paths, "--max-chunks", str(chunks)), load
        ),
        Target(
            "bare epoll" + several, lambda: servers.bare(paths, "--per-write", str(chunks)), load
        ),
        Target("node" + several, lambda: servers.node_poll(paths, chunks), load),
    ]


def _run_poll(bench: Bench) -> Result:
    reports = compare(bench, [*_poll_targets(bench, 1), *_poll_targets(bench, 16)])
    figures = _rate_figures(reports)
    for label, report in reports.items():
        figures[label]["chunks a reply"] = report["units"] / max(report["replies"], 1)
    one = _at_least_bare("chunks", SLUICE, "bare epoll", 0.8)
    many = _at_least_bare("chunks", "sluice, 16 a reply", "bare epoll, 16 a reply", 0.6)
    return Result(figures, [one(reports), many(reports)], _sluice_errors(reports))


# --- latency ---------------------------------------------------------------------------------

_PACE_US = 20_000  # 50 chunks a second


def _paced_load(streams: int, via: str) -> list[str]:
    pace = ["--interval-us", str(_PACE_US), "--stagger"]
    return ["paced", "--connections", str(streams), *pace, "--via", via]


def _paced_bare(paths: Paths, *options: str) -> servers.Server:
    pace = ["--interval-us", str(_PACE_US), "--count", "1000000000"]
    return servers.bare(paths, *pace, *options)


def _run_latency(bench: Bench) -> Result:
    paths = bench.paths
    longer = dataclasses.replace(bench, seconds=bench.seconds if bench.quick else 10)
    reports = compare(
        longer,
        [
            Target("sluice, SSE", lambda: servers.sluice(paths), _paced_load(200, "call")),
            Target("bare epoll, SSE", lambda: _paced_bare(paths, "--call"), _paced_load(200, "call")),
            Target("TypeScript SDK, SSE", lambda: servers.typescript(paths), _paced_load(200, "call")),
            Target("sluice, WebSocket", lambda: servers.sluice(paths), _paced_load(200, "ws")),
            Target("bare epoll, WebSocket", lambda: _paced_bare(paths), _paced_load(200, "ws")),
            Target("npm ws, WebSocket", lambda: servers.npm_ws(paths), _paced_load(200, "ws")),
        ],
    )
    figures = {}
    for label, report in reports.items():
        added, schedule = report["added_us"], report["schedule_us"]
        figures[label] = {
            "per second": report["units_per_s"],
            "added p50, us": added["p50"],
            "added p99, us": added["p99"],
            "added p99.9, us": added["p999"],
            "behind schedule p99, us": schedule["p99"],
            "gap p99, us": report["gap_us"]["p99"],
            "foreign cores": report["foreign_cores"],
        }
    checks = [
        Check(
            f"{via} added {name}, x bare",
            reports[f"sluice, {via}"]["added_us"][key] / reports[f"bare epoll, {via}"]["added_us"][key],
            1.5,
        )
        for via in ("SSE", "WebSocket")
        for key, name in (("p50", "p50"), ("p99", "p99"), ("p999", "p99.9"))
    ]
    return Result(figures, checks, _sluice_errors(reports))


# A stream count is held if so much of the pace is kept, with p99 below the limit.
_HELD_SHARE = 0.97
_HELD_P99_US = 8000


def _held(bench: Bench, target: Callable[[int], Target], ladder: list[int]) -> tuple[int, dict]:
    """The highest count of the ladder before the first that is not held, and its report."""
    best, best_report = 0, {}
    for streams in ladder:
        report = medians([run_quietly(bench, target(streams)) for _ in range(bench.rounds)])
        share = report["units_per_s"] / (streams * 1e6 / _PACE_US)
        p99 = report["added_us"]["p99"]
        bench.say(f"  {target(streams).label}, {streams} streams: {share:.1%} of the pace, p99 {p99} us")
        if share < _HELD_SHARE or p99 > _HELD_P99_US:
            break
        best, best_report = streams, report
    return best, best_report


def _run_held(bench: Bench) -> Result:
    paths = bench.paths
    ladder = [2500] if bench.quick else [1500, 2000, 2500, 3000, 3500, 4000, 4500]

    def sluice_at(streams: int) -> Target:
        return Target(SLUICE, lambda: servers.sluice(paths), _paced_load(streams, "call"))

    def bare_at(streams: int) -> Target:
        return Target("bare epoll", lambda: _paced_bare(paths, "--call"), _paced_load(streams, "call"))

    def typescript_at(streams: int) -> Target:
        return Target("TypeScript SDK", lambda: servers.typescript(paths), _paced_load(streams, "call"))

    figures = {}
    errors = 0
    held = {}
    for label, target, steps in (
        (SLUICE, sluice_at, ladder),
        ("bare epoll", bare_at, ladder),
        ("TypeScript SDK", typescript_at, [100] if bench.quick else [100, 200, 300, 400, 500]),
    ):
        held[label], report = _held(bench, target, steps)
        figures[label] = {"streams held": held[label]}
        if report:
            errors += _sluice_errors({label: report})
            figures[label]["per second"] = report["units_per_s"]
            figures[label]["added p50, us"] = report["added_us"]["p50"]
            figures[label]["added p99, us"] = report["added_us"]["p99"]
            figures[label]["behind schedule p99, us"] = report["schedule_us"]["p99"]
            figures[label]["server cores"] = report["server_cores"]
    return Result(figures, [Check("streams held", held[SLUICE], 2500, at_least=True)], errors)


# --- memory ----------------------------------------------------------------------------------


def _memory_run(bench: Bench, target: Target) -> dict:
    """Like run_once, without the options of modes that measure for a time."""
    server = target.start()
    log = os.path.join(bench.paths.scratch, "server.log")
    with processes.running(bench.cores.server, server.command, server.port, log) as process:
        arguments = [*target.load, "--port", str(server.port), "--server-pid", str(process.pid)]
        report = processes.load(bench.paths, bench.cores, arguments)
    if report["errors"]:
        bench.say(f"  {target.label}: {report['errors']} errors, first: {report['first_error']}")
    return report


def _run_idle(bench: Bench) -> Result:
    paths = bench.paths
    many = "1000" if bench.quick else "10000"
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
        Target("TypeScript SDK, progress SSE", lambda: servers.typescript(paths), idle("call", "1000")),
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
    return Result(figures, checks, _sluice_errors(reports))


def _text_bytes(port: int) -> float:
    """The mean length of a chunk's text, as a reader gets it."""
    start = {"prompt": "x", "stream": True, "count": 10000, "interval_us": 0}
    stream_id = _rpc(port, "run", start)["stream_id"]
    time.sleep(0.2)
    chunks = _rpc(port, "run", {"stream_id": stream_id, "from_seq": 0, "wait_ms": 1000})["chunks"]
    return statistics.mean(len(chunk["delta"].encode()) for chunk in chunks if not chunk["end"])


def _rpc(port: int, method: str, params: dict) -> dict:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
    reply = processes.exchange(port, head.encode() + body)
    message = json.loads(reply.partition(b"\r\n\r\n")[2])
    if "result" not in message:
        raise BenchError(f"{method}: {message}")
    return message["result"]


def _run_session(bench: Bench) -> Result:
    paths = bench.paths
    sessions = "2000" if bench.quick else "20000"
    roomy = ["--max-chunks", "100000", "--max-stream-bytes", "64MiB"]
    chunks = 10_000
    started = Target(
        "session", lambda: servers.sluice(paths),
        ["sessions", "--connections", sessions, "--count", "1000", "--interval-us", "60000000"],
    )  # fmt: skip
    ended = Target(
        "ended session", lambda: servers.sluice(paths),
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
    chunk = (each["buffered"] - each["session"]) / chunks
    figures = {
        "session with its generator and first chunk": {"bytes": each["session"]},
        "ended session, not yet read": {"bytes": each["ended session"]},
        "buffered chunk": {"bytes": chunk},
        "text of a chunk": {"bytes": text},
    }
    checks = [
        Check("bytes of a session", each["session"], 512),
        Check("bytes of a buffered chunk above its text", chunk - text, 16),
    ]
    return Result(figures, checks, sum(report["errors"] for report in reports.values()))


# --- growth ----------------------------------------------------------------------------------


def _with_idle_streams(bench: Bench, idle: int, load: list[str]) -> dict:
    """Runs `load` while so many other streams are open and quiet."""
    server = servers.sluice(bench.paths)
    log = os.path.join(bench.paths.scratch, "server.log")
    with processes.running(bench.cores.server, server.command, server.port, log) as process:
        common = ["--port", str(server.port), "--server-pid", str(process.pid)]
        hold = ["idle", "--connections", str(idle), "--via", "get", *common]
        with processes.holding(bench.paths, bench.cores, hold) as held:
            if held["errors"]:
                raise BenchError(f"{idle} idle streams: {held['first_error']}")
            measured = [*load, *common, "--seconds", str(bench.seconds), "--warmup", "1"]
            return processes.load(bench.paths, bench.cores, measured)


def _run_growth(bench: Bench) -> Result:
    few, many = (64, 1000) if bench.quick else (64, 10_000)
    shallow, deep = (1000, 10_000) if bench.quick else (1000, 100_000)
    paths = bench.paths

    def backlog(chunks: int) -> Target:
        roomy = ["--max-chunks", str(chunks), "--max-stream-bytes", "256MiB"]
        load = ["poll", "--connections", "4", "--count", "100000000"]
        label = f"{chunks} chunks buffered, polled"
        return Target(label, lambda: servers.sluice(paths, *roomy), load)

    cases: dict[str, Callable[[], dict]] = {}
    for idle in (few, many):
        for name, load in (
            ("pushed", _flush_load("call")),
            ("tools/call", ["echo", *_CONNECTIONS]),
        ):
            cases[f"{idle} streams open, {name}"] = (
                lambda idle=idle, load=load: _with_idle_streams(bench, idle, load)
            )
    for chunks in (shallow, deep):
        target = backlog(chunks)
        cases[target.label] = lambda target=target: run_once(bench, target)

    runs: dict[str, list[dict]] = {label: [] for label in cases}
    for _ in range(bench.rounds):
        for label, run in cases.items():
            runs[label].append(run())
            bench.say(f"  {label}: {summary(runs[label][-1])}")
    reports = {label: medians(found) for label, found in runs.items()}

    def grown(low: str, high: str) -> float:
        return reports[high]["server_us_per_unit"] / reports[low]["server_us_per_unit"]

    checks = [
        Check(
            f"CPU per unit, {many} / {few} streams, {name}",
            grown(f"{few} streams open, {name}", f"{many} streams open, {name}"),
            1.1,
        )
        for name in ("pushed", "tools/call")
    ]
    checks.append(
        Check(
            f"CPU per chunk, {deep} / {shallow} buffered",
            grown(backlog(shallow).label, backlog(deep).label),
            1.1,
        )
    )
    errors = sum(report["errors"] for report in reports.values())
    return Result(_rate_figures(reports), checks, errors)


# --- start -----------------------------------------------------------------------------------


def _cold_start(bench: Bench, server: servers.Server, request: bytes) -> tuple[float, int]:
    """Milliseconds from the start to the first valid reply, and what is resident a second later."""
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


def _run_start(bench: Bench) -> Result:
    paths = bench.paths
    reply = _echo_reply(bench)
    reply_file = os.path.join(paths.scratch, "echo.reply")
    with open(reply_file, "wb") as target:
        target.write(reply)
    body = reply.partition(b"\r\n\r\n")[2].decode()
    # As it is started without the bench's limits.
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
            found[label].append(_cold_start(bench, start(), _echo_request()))
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


ROWS = [
    Row("echo", "tools/call echo, 2026-07-28, 64 keep-alive connections", _run_echo),
    Row("sse", "SSE, one event per write, 64 streams", _run_sse),
    Row("sse-backlog", "SSE, backlog coalesced, 64 streams", _run_sse_backlog),
    Row("fanout", "One stream to 1,000 readers", _run_fanout),
    Row("ws", "WebSocket push, a frame per write, 64 streams", _run_ws),
    Row("ws-backlog", "WebSocket push, backlog coalesced, 64 streams", _run_ws_backlog),
    Row("poll", "Long poll, 1 and 16 chunks a reply, 64 streams", _run_poll),
    Row("latency", "Added latency, 200 streams of 50 chunks/s", _run_latency),
    Row("held", "Streams of 50 chunks/s held by one core, p99 <= 8 ms", _run_held),
    Row("idle", "User-space memory of an open idle stream and its connection", _run_idle),
    Row("session", "Memory of a stream session and of a buffered chunk", _run_session),
    Row("growth", "Growth: CPU per unit, from few to many sessions and chunks", _run_growth),
    Row("start", "Cold start to the first reply, and idle memory", _run_start),
]
