"""The rows of the client, beside the official TypeScript one and on the same server."""

import json
import os
import statistics
import subprocess

from . import processes, servers
from .checks import SLUICE, Check, Result
from .measure import Bench
from .processes import BenchError

PEER = "TypeScript SDK"
WEBSOCKET = "sluice, WebSocket"  # which all calls share
# How long Node.js needs to reach full speed.
_WARMUP_S = {SLUICE: 1.0, WEBSOCKET: 1.0, PEER: 5.0}


def _client(bench: Bench, label: str) -> list[str]:
    if label != PEER:
        return [bench.paths.client]
    script = os.path.join(bench.paths.peers, "client.mjs")
    # It warns of the listeners of many calls.
    return ["node", "--no-warnings", "--expose-gc", script]


def _run(bench: Bench, label: str, mode: str, calls: int) -> dict:
    """One run of a client on a server of its own."""
    server = servers.sluice(bench.paths)
    log = os.path.join(bench.paths.scratch, "server.log")
    warmup = min(_WARMUP_S[label], 1.0) if bench.quick else _WARMUP_S[label]
    measured = [] if mode == "open" else [str(warmup), str(bench.seconds)]
    with processes.running(bench.cores.server, server.command, server.port, log):
        scheme, path = ("ws", "ws") if label == WEBSOCKET else ("http", "mcp")
        url = f"{scheme}://127.0.0.1:{server.port}/{path}"
        words = [*_client(bench, label), mode, url, str(calls), *measured]
        done = subprocess.run(
            processes.pinned(bench.cores.load, words),
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
    if done.returncode != 0:
        raise BenchError(f"{label}, {mode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def _compare(bench: Bench, mode: str, calls: int, *more: str) -> dict[str, dict]:
    """The median of each figure of both clients, and of `more`, which take turns."""
    runs: dict[str, list[dict]] = {label: [] for label in (SLUICE, *more, PEER)}
    for _ in range(bench.rounds):
        for label, reports in runs.items():
            reports.append(_run(bench, label, mode, calls))
            bench.say(f"  {mode}, {label}: {reports[-1]}")
    return {
        label: {key: statistics.median(report[key] for report in reports) for key in reports[0]}
        for label, reports in runs.items()
    }


def _figures(found: dict[str, dict]) -> dict[str, dict[str, float]]:
    return {
        label: {
            "per second": report["per_second"],
            "client CPU, us each": report["cpu_us_each"],
            "client cores": report["cores"],
        }
        for label, report in found.items()
    }


def _cpu_ratio(found: dict[str, dict]) -> float:
    return found[PEER]["cpu_us_each"] / found[SLUICE]["cpu_us_each"]


def run_client_calls(bench: Bench) -> Result:
    found = _compare(bench, "calls", 64)
    ratio = Check("calls for the same CPU, x TypeScript", _cpu_ratio(found), 20, at_least=True)
    return Result(_figures(found), [ratio])


def run_client_streams(bench: Bench) -> Result:
    calls = 1000
    found = _compare(bench, "streams", calls)
    rate = Check("chunks a second", found[SLUICE]["per_second"], 0.98 * 50 * calls, at_least=True)
    return Result(_figures(found), [rate])


def run_client_memory(bench: Bench) -> Result:
    found = _compare(bench, "open", 1000, WEBSOCKET)
    figures = {
        label: {"open": report["units"], "bytes each": report["bytes_each"]}
        for label, report in found.items()
    }
    shared = found[WEBSOCKET]["bytes_each"]
    return Result(figures, [Check("bytes of an open call that shares its connection", shared, 2048)])
