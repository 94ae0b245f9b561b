"""The servers under test and how to start each."""

import dataclasses
import functools
import glob
import os
import subprocess

from .processes import BenchError, Paths, free_port


@dataclasses.dataclass(frozen=True)
class Server:
    """A command that listens on `port`. If it is 0, the load generator starts it and uses stdio.

    `warmup_s` is how long its runtime needs to reach full speed. It can be used once `ready_path`, if
    it has one, is answered with 200.
    """

    name: str
    command: list[str]
    port: int
    warmup_s: float = 1.0
    ready_path: str = ""


# Raises limits that would otherwise stop a single client at these loads.
_SLUICE_LIMITS = [
    "--streams-per-client", "1000000",
    "--calls-per-client", "1000000",
    "--sessions-per-client", "1000000",
    "--max-connections", "19500",
    "--queue", "1000000",
    "--max-total-bytes", "1GiB",
    "--shutdown-deadline", "100ms",
]  # fmt: skip


@functools.cache
def _limits(program: str) -> list[str]:
    """Without those that an older program does not have."""
    known = subprocess.run([program, "serve", "--help"], capture_output=True, text=True).stdout
    pairs = zip(_SLUICE_LIMITS[::2], _SLUICE_LIMITS[1::2])
    return [word for option, value in pairs if f"{option} " in known for word in (option, value)]


def _sluice(paths: Paths, threads: int, *options: str, engine: str = "synthetic") -> list[str]:
    return [
        paths.sluice, "serve", "--engine", engine, "--threads", str(threads),
        "--log-level", "error", *_limits(paths.sluice), *options,
    ]  # fmt: skip


def sluice(paths: Paths, *options: str, threads: int = 1) -> Server:
    port = free_port()
    listening = ["--host", "127.0.0.1", "--port", str(port)]
    return Server("sluice", _sluice(paths, threads, *listening, *options), port)


def sluice_npu(paths: Paths, pace_ms: int) -> Server:
    """With a model for an NPU, whose tokens are those of the synthetic engine."""
    port = free_port()
    model, script = (os.path.join(paths.scratch, f"npu.{end}") for end in ("rkllm", "script"))
    with open(model, "w", encoding="utf-8") as target:
        target.write("no real model")
    with open(script, "w", encoding="utf-8") as target:
        target.write(f"repeat 100000 number {pace_ms}\n")
    listening = ["--host", "127.0.0.1", "--port", str(port)]
    engine = ["--model", model, "--rkllm-library", paths.npu_runtime]
    command = _sluice(paths, 1, *listening, *engine, engine="llama")
    command = ["env", f"FAKE_RKLLM_SCRIPT={script}", *command]
    return Server("sluice", command, port, ready_path="/readyz")


def sluice_stdio(paths: Paths) -> Server:
    return Server("sluice", _sluice(paths, 1, "--stdio"), port=0)


def sluice_proxy(paths: Paths, upstream: int) -> Server:
    port = free_port()
    listening = ["--host", "127.0.0.1", "--port", str(port), "--log-level", "error"]
    target = f"http://127.0.0.1:{upstream}/mcp"
    return Server("sluice proxy", [paths.sluice, "proxy", *listening, target], port)


def bare(paths: Paths, *options: str) -> Server:
    port = free_port()
    return Server("bare epoll", [paths.floor, "--port", str(port), *options], port)


def _node(paths: Paths, name: str, script: str, *options: str, node: str = "node") -> Server:
    if not os.path.isdir(os.path.join(paths.peers, "node_modules")):
        raise BenchError("bench/peers/node_modules is missing: run scripts/setup --bench")
    port = free_port()
    command = [node, os.path.join(paths.peers, script), str(port), *options]
    return Server(name, command, port, warmup_s=5.0)


def typescript(paths: Paths) -> Server:
    return _node(paths, "TypeScript SDK", "mcp.mjs")


def typescript_on_node_20(paths: Paths) -> Server:
    node = os.path.join(paths.peers, "node_modules", "node-20", "bin", "node")
    return _node(paths, "TypeScript SDK, Node.js 20", "mcp.mjs", node=node)


def npm_ws(paths: Paths) -> Server:
    return _node(paths, "npm ws", "ws.mjs")


def node_poll(paths: Paths, chunks_per_reply: int) -> Server:
    return _node(paths, "node poll", "poll.mjs", str(chunks_per_reply))


def _nginx(paths: Paths, name: str, template: str, values: dict[str, str]) -> Server:
    port = free_port()
    directory = os.path.join(paths.scratch, f"{template}.{port}")
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(paths.peers, template), encoding="utf-8") as source:
        text = source.read()
    for key, value in {"DIR": directory, "PORT": str(port), **values}.items():
        text = text.replace(f"@{key}@", value)
    conf = os.path.join(directory, "nginx.conf")
    with open(conf, "w", encoding="utf-8") as target:
        target.write(text)
    return Server(name, ["nginx", "-p", directory, "-c", conf], port)


def nginx(paths: Paths, body: str) -> Server:
    if "'" in body or "$" in body or "\\" in body:
        raise BenchError("nginx cannot return a body with quotes, dollars or backslashes")
    return _nginx(paths, "nginx", "nginx.conf.in", {"BODY": body})


def nginx_proxy(paths: Paths, upstream: int) -> Server:
    return _nginx(paths, "nginx", "nginx_proxy.conf.in", {"UPSTREAM": str(upstream)})


def nchan(paths: Paths) -> Server:
    modules = glob.glob("/usr/lib/nginx/modules/ngx_nchan_module.so")
    if not modules:
        raise BenchError("nchan is missing: run scripts/setup --bench")
    return _nginx(paths, "nchan", "nchan.conf.in", {"MODULE": modules[0]})
