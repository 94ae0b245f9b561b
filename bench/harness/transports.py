"""The rows of the echo over all transports: the cost of a call, and fairness between connections."""

import os

from . import processes, servers
from .checks import CONNECTIONS, Check, Result, rate_figures, sluice_errors
from .measure import Bench, Target, compare
from .pushes import backlog_load

# The most CPU time that a call may take, relative to one over Streamable HTTP in the newest
# revision. HTTP with SSE has a POST and an event per call; the others have no head to read and
# write.
_MOST = {"http": 1.25, "sse": 2.0, "ws": 1.0, "unix": 1.0, "stdio": 0.5}


def _socket_path(bench: Bench) -> str:
    return os.path.join(bench.paths.scratch, "sluice.sock")


def _load(bench: Bench, route: dict[str, str]) -> list[str]:
    where = ["--unix", _socket_path(bench)] if route["transport"] == "unix" else []
    which = ["--transport", route["transport"], "--revision", route["revision"]]
    return ["echo", *CONNECTIONS, *which, *where]


def _label(route: dict[str, str]) -> str:
    return f"sluice, {route['title']}, {route['revision']}"


def run_transports(bench: Bench) -> Result:
    paths = bench.paths
    routes = processes.routes(paths)

    def target(route: dict[str, str]) -> Target:
        def start() -> servers.Server:
            if route["transport"] == "stdio":
                return servers.sluice_stdio(paths)
            return servers.sluice(paths, "--unix", _socket_path(bench))

        return Target(_label(route), start, _load(bench, route))

    reports = compare(bench, [target(route) for route in routes])
    cost = {label: report["server_us_per_unit"] for label, report in reports.items()}
    plain = cost[_label(routes[0])]
    checks = [
        Check(
            f"CPU per call over {title}, its costliest revision, x Streamable HTTP",
            max(cost[_label(route)] for route in routes if route["title"] == title) / plain,
            _MOST[transport],
        )
        for transport, title in {route["transport"]: route["title"] for route in routes}.items()
    ]
    figures = rate_figures(reports)
    for label, cells in figures.items():
        cells["CPU, x HTTP"] = cost[label] / plain
    return Result(figures, checks, sluice_errors(reports))


def run_fairness(bench: Bench) -> Result:
    paths = bench.paths

    # Uses the default number of loops on this machine. They share the server's core evenly. On a
    # core that the load generator uses too, a loop would get only what the scheduler leaves it.
    def start() -> servers.Server:
        return servers.sluice(paths, "--unix", _socket_path(bench), threads=os.cpu_count() or 1)

    newest: dict[str, dict[str, str]] = {}
    for route in processes.routes(paths):
        newest.setdefault(route["transport"], route)
    del newest["stdio"]  # stdio has only one client
    targets = [Target(_label(route), start, _load(bench, route)) for route in newest.values()]
    targets += [
        Target(f"sluice, {title}", start, backlog_load(via))
        for via, title in (
            ("call", "streams as progress SSE"),
            ("get", "streams as GET SSE"),
            ("ws", "streams as WebSocket push"),
        )
    ]
    reports = compare(bench, targets)
    figures = {
        label: {
            "per second": report["units_per_s"],
            "mean of a connection": report["connection"]["mean_per_s"],
            "slowest connection": report["connection"]["slowest_per_s"],
            "slowest / mean, worst round": report["slowest_share"],
            "foreign cores": report["foreign_cores"],
        }
        for label, report in reports.items()
    }
    checks = [
        Check(f"{label}: slowest connection, x mean", report["slowest_share"], 0.5, at_least=True)
        for label, report in reports.items()
    ]
    return Result(figures, checks, sluice_errors(reports))
