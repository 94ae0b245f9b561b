"""How often each part of sluice runs under load, as a profile for the compiler (Clang, PGO)."""

import glob
import os
import subprocess

from . import against, processes, proxies, servers
from .measure import Bench

# The micro-benchmarks, for what the loads do not vary: texts, schemas, sizes of streams.
MICRO_SECONDS = "0.05"
# What the proxies and the client run counts ten times. Their calls are fewer than those of a server,
# and without that the compiler would not take their code for hot.
WEIGHTS = {"servers": 1, "proxies": 10, "clients": 10, "micro": 1}


def _built(root: str, prefix: str) -> str:
    """The folder of a build that counts what it runs."""
    build = os.path.join(root, "build/profile")
    configure = ["cmake", "--preset", "release", "-B", build, "-DSLUICE_PROFILE=write",
                 "-DSLUICE_BUILD_TESTS=OFF", "-DSLUICE_BUILD_EXAMPLES=OFF",
                 f"-DSLUICE_LLAMA_PREFIX={prefix}"]  # fmt: skip
    subprocess.run(configure, cwd=root, check=True, stdout=subprocess.DEVNULL)
    targets = ["--target", "sluice", "sluice_micro", "sluice_bench_client"]
    subprocess.run(["cmake", "--build", build, *targets], check=True, stdout=subprocess.DEVNULL)
    return build


def _load(bench: Bench, server: servers.Server, program: str, load: list[str]) -> None:
    """Puts a server of this program under load."""
    log = os.path.join(bench.paths.scratch, "server.log")
    with processes.running(bench.cores.server, [program, *server.command[1:]], server.port, log):
        arguments = ["--seconds", str(bench.seconds), "--warmup", "0", "--port", str(server.port)]
        report = processes.load(bench.paths, bench.cores, [*load, *arguments])
    if report["errors"]:
        raise processes.BenchError(f"{report['errors']} errors: {report['first_error']}")


def _call(bench: Bench, program: str, client: str, mode: str) -> None:
    """Runs the client against a server of this program."""
    server = servers.sluice(bench.paths)
    log = os.path.join(bench.paths.scratch, "server.log")
    with processes.running(bench.cores.server, [program, *server.command[1:]], server.port, log):
        url = f"http://127.0.0.1:{server.port}/mcp"
        command = [client, mode, url, "64", "0", str(bench.seconds)]
        subprocess.run(processes.pinned(bench.cores.load, command), check=True,
                       stdout=subprocess.DEVNULL, timeout=120)  # fmt: skip


def write(bench: Bench, root: str, path: str) -> None:
    prefix = subprocess.run([os.path.join(root, "scripts/llama-cpp"), "prefix"],
                            check=True, capture_output=True, text=True).stdout.strip()  # fmt: skip
    bench.say("  building")
    build = _built(root, prefix)
    counts = os.path.join(bench.paths.scratch, "counts")

    def count(kind: str) -> None:
        os.environ["LLVM_PROFILE_FILE"] = os.path.join(counts, kind, "%p.profraw")

    count("servers")
    program = os.path.join(build, "bin/sluice")
    for label, (_, load) in against.LOADS.items():
        bench.say(f"  {label}")
        _load(bench, servers.sluice(bench.paths), program, load)
    count("proxies")
    with proxies.upstream_of(bench) as upstream:
        for label in against.PROXIED:
            bench.say(f"  {label}, through the proxy")
            proxy = servers.sluice_proxy(bench.paths, upstream.port)
            _load(bench, proxy, program, against.LOADS[label][1])
    count("clients")
    for mode in ("calls", "streams"):
        bench.say(f"  the client: {mode}")
        _call(bench, program, os.path.join(build, "bin/sluice_bench_client"), mode)
    bench.say("  micro-benchmarks")
    count("micro")
    micro = [os.path.join(build, "bin/sluice_micro"), f"--benchmark_min_time={MICRO_SECONDS}"]
    subprocess.run(micro, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    merge = ["llvm-profdata-19", "merge", "--sparse", "-o", path]
    for kind, weight in WEIGHTS.items():
        files = sorted(glob.glob(os.path.join(counts, kind, "*.profraw")))
        merge += [f"--weighted-input={weight},{file}" for file in files]
    subprocess.run(merge, check=True)
