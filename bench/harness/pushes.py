"""The rows of streams pushed at full speed: events, frames, and one stream to many readers."""

from . import servers
from .checks import CONNECTIONS, SLUICE, Check, Result, at_least_bare, cpu_ratio, rates
from .measure import Bench, Target

# Chunks per write of the floor that represents a coalesced backlog.
_PER_WRITE = 16


def flush_load(via: str) -> list[str]:
    return ["stream", *CONNECTIONS, "--interval-us", "-1", "--via", via]


def backlog_load(via: str) -> list[str]:
    return ["stream", *CONNECTIONS, "--interval-us", "0", "--via", via]


def run_sse(bench: Bench) -> Result:
    paths = bench.paths
    targets = [
        Target(SLUICE, lambda: servers.sluice(paths), flush_load("call")),
        Target("bare epoll", lambda: servers.bare(paths, "--call"), flush_load("call")),
        Target("sluice, GET", lambda: servers.sluice(paths), flush_load("get")),
        Target("bare epoll, GET", lambda: servers.bare(paths), flush_load("get")),
        Target("TypeScript SDK", lambda: servers.typescript(paths), flush_load("call")),
    ]
    progress = at_least_bare("progress events", SLUICE, "bare epoll", 0.85)
    events = at_least_bare("GET events", "sluice, GET", "bare epoll, GET", 0.85)
    return rates(bench, targets, lambda reports: [progress(reports), events(reports)])


def run_sse_backlog(bench: Bench) -> Result:
    paths = bench.paths
    many = ["--per-write", str(_PER_WRITE)]
    targets = [
        Target(SLUICE, lambda: servers.sluice(paths), backlog_load("call")),
        Target("bare epoll", lambda: servers.bare(paths, "--call", *many), backlog_load("call")),
        Target("sluice, GET", lambda: servers.sluice(paths), backlog_load("get")),
        Target("bare epoll, GET", lambda: servers.bare(paths, *many), backlog_load("get")),
        Target("TypeScript SDK", lambda: servers.typescript(paths), backlog_load("call")),
    ]
    progress = at_least_bare("progress events", SLUICE, "bare epoll", 0.6)
    events = at_least_bare("GET events", "sluice, GET", "bare epoll, GET", 0.6)
    return rates(bench, targets, lambda reports: [progress(reports), events(reports)])


def run_ws(bench: Bench) -> Result:
    paths = bench.paths
    targets = [
        Target(SLUICE, lambda: servers.sluice(paths), flush_load("ws")),
        Target("bare epoll", lambda: servers.bare(paths), flush_load("ws")),
        Target("npm ws", lambda: servers.npm_ws(paths), flush_load("ws")),
    ]
    check = at_least_bare("frames", SLUICE, "bare epoll", 0.85)
    return rates(bench, targets, lambda reports: [check(reports)])


def run_ws_backlog(bench: Bench) -> Result:
    paths = bench.paths
    many = ["--per-write", str(_PER_WRITE)]
    targets = [
        Target(SLUICE, lambda: servers.sluice(paths), backlog_load("ws")),
        Target("bare epoll", lambda: servers.bare(paths, *many), backlog_load("ws")),
        Target("npm ws", lambda: servers.npm_ws(paths), backlog_load("ws")),
    ]
    check = at_least_bare("frames", SLUICE, "bare epoll", 0.6)
    return rates(bench, targets, lambda reports: [check(reports)])


def run_fanout(bench: Bench) -> Result:
    paths = bench.paths
    readers = ["fanout", "--connections", "1000", "--count", "100000000"]
    broker = ["--subscribe", "/subscribe", "--publish", "/publish"]
    targets = [
        Target(SLUICE, lambda: servers.sluice(paths), [*readers, "--interval-us", "-1"]),
        Target("nchan", lambda: servers.nchan(paths), [*readers, *broker]),
        Target("bare epoll", lambda: servers.bare(paths, "--shared"), readers),
        Target(
            "sluice, coalesced", lambda: servers.sluice(paths), [*readers, "--interval-us", "0"]
        ),
    ]

    def checks(reports: dict) -> list[Check]:
        ratio = cpu_ratio(reports, SLUICE, "nchan")
        return [Check("events for the same CPU, x nchan", ratio, 1.0, at_least=True)]

    return rates(bench, targets, checks)
