"""The rows of `sluice proxy`, beside nginx in front of the same server."""

import contextlib
import dataclasses
import os
from collections.abc import Iterator

from . import processes, servers
from .checks import CONNECTIONS, SLUICE, Check, Result, cpu_ratio, rate_figures, sluice_errors
from .measure import Bench, Target, compare
from .pacing import paced_load

NGINX = "nginx proxy_pass"
DIRECT = "without a proxy"


@contextlib.contextmanager
def upstream_of(bench: Bench) -> Iterator[servers.Server]:
    """The server behind the proxies. It is not measured, so it shares the load's core."""
    server = servers.sluice(bench.paths)
    log = os.path.join(bench.paths.scratch, "upstream.log")
    with processes.running(bench.cores.load, server.command, server.port, log):
        yield server


def _targets(bench: Bench, upstream: servers.Server, load: list[str]) -> list[Target]:
    paths, port = bench.paths, upstream.port
    return [
        Target(SLUICE, lambda: servers.sluice_proxy(paths, port), load),
        Target(NGINX, lambda: servers.nginx_proxy(paths, port), load),
    ]


def run_proxy_calls(bench: Bench) -> Result:
    with upstream_of(bench) as upstream:
        reports = compare(bench, _targets(bench, upstream, ["echo", *CONNECTIONS]))
    ratio = Check("CPU of the proxy a call, x nginx", 1 / cpu_ratio(reports, SLUICE, NGINX), 1.5)
    return Result(rate_figures(reports), [ratio], sluice_errors(reports))


def run_proxy_latency(bench: Bench) -> Result:
    longer = dataclasses.replace(bench, seconds=bench.seconds if bench.quick else 10)
    load = paced_load(20, "call")
    with upstream_of(bench) as upstream:
        direct = Target(DIRECT, lambda: servers.sluice(bench.paths), load)
        reports = compare(longer, [*_targets(bench, upstream, load), direct])
    figures = {
        label: {
            "added p50, us": report["added_us"]["p50"],
            "added p99, us": report["added_us"]["p99"],
            "added p99.9, us": report["added_us"]["p999"],
            "foreign cores": report["foreign_cores"],
        }
        for label, report in reports.items()
    }
    p99 = {label: report["added_us"]["p99"] for label, report in reports.items()}
    more = Check("p99 that the proxy adds, us", p99[SLUICE] - p99[DIRECT], 200)
    return Result(figures, [more], sluice_errors(reports))
