"""The rows of requests that are answered at once: tools/call and long polls."""

import json
import os

from . import processes, servers
from .checks import (
    CONNECTIONS,
    SLUICE,
    Check,
    Result,
    at_least_bare,
    cpu_ratio,
    rate_figures,
    rates,
    sluice_errors,
)
from .measure import Bench, Target, compare
from .processes import BenchError


# The target for this peer was set with Node.js 20. A newer version is shown beside it.
_ON_NODE_20 = "TypeScript SDK, Node.js 20"


def echo_reply(bench: Bench) -> bytes:
    """Sluice's answer to the load generator's request; the floors return the same bytes."""
    server = servers.sluice(bench.paths)
    log = os.path.join(bench.paths.scratch, "server.log")
    with processes.running(bench.cores.server, server.command, server.port, log):
        reply = processes.exchange(server.port, echo_request())
    if not reply.startswith(b"HTTP/1.1 200"):
        raise BenchError(f"tools/call echo: {reply[:300]!r}")
    return reply


def echo_request() -> bytes:
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


def run_echo(bench: Bench) -> Result:
    reply = echo_reply(bench)
    reply_file = os.path.join(bench.paths.scratch, "echo.reply")
    with open(reply_file, "wb") as target:
        target.write(reply)
    body = reply.partition(b"\r\n\r\n")[2].decode()
    load = ["echo", *CONNECTIONS]
    paths = bench.paths
    targets = [
        Target(SLUICE, lambda: servers.sluice(paths), load),
        Target("nginx", lambda: servers.nginx(paths, body), load),
        Target("bare epoll", lambda: servers.bare(paths, "--echo-reply", reply_file), load),
        Target("TypeScript SDK", lambda: servers.typescript(paths), load),
        Target(_ON_NODE_20, lambda: servers.typescript_on_node_20(paths), load),
    ]

    def checks(reports: dict) -> list[Check]:
        return [
            Check("CPU per request, x nginx", 1 / cpu_ratio(reports, SLUICE, "nginx"), 1.25),
            Check(
                "requests for the same CPU, x TypeScript on Node.js 20",
                cpu_ratio(reports, SLUICE, _ON_NODE_20),
                40,
                at_least=True,
            ),
        ]

    return rates(bench, targets, checks)


def _poll_targets(bench: Bench, chunks: int) -> list[Target]:
    paths = bench.paths
    load = ["poll", *CONNECTIONS]
    asking = [*load, "--max-chunks", str(chunks)]
    several = f", {chunks} a reply" if chunks > 1 else ""
    return [
        Target(SLUICE + several, lambda: servers.sluice(paths), asking),
        Target(
            "bare epoll" + several, lambda: servers.bare(paths, "--per-write", str(chunks)), load
        ),
        Target("node" + several, lambda: servers.node_poll(paths, chunks), load),
    ]


def run_poll(bench: Bench) -> Result:
    reports = compare(bench, [*_poll_targets(bench, 1), *_poll_targets(bench, 16)])
    figures = rate_figures(reports)
    for label, report in reports.items():
        figures[label]["chunks a reply"] = report["units"] / max(report["replies"], 1)
    one = at_least_bare("chunks", SLUICE, "bare epoll", 0.8)
    many = at_least_bare("chunks", "sluice, 16 a reply", "bare epoll, 16 a reply", 0.6)
    return Result(figures, [one(reports), many(reports)], sluice_errors(reports))
