"""The rows of docs/performance.md, in its order."""

import dataclasses
from collections.abc import Callable

from .agents import (
    run_agent_latency,
    run_agent_peers,
    run_agent_peers_backlog,
    run_agent_reactions,
    run_agent_runs,
)
from .calls import run_echo, run_poll
from .checks import Result, run_micro
from .clients import run_client_calls, run_client_memory, run_client_streams
from .growth import run_growth
from .measure import Bench
from .memory import run_idle, run_mcp_sessions, run_session
from .npus import run_npu_latency, run_npu_memory
from .pacing import run_held, run_latency
from .proxies import run_proxy_calls, run_proxy_latency
from .pushes import run_fanout, run_sse, run_sse_backlog, run_ws, run_ws_backlog
from .start import run_start
from .transports import run_fairness, run_transports


@dataclasses.dataclass(frozen=True)
class Row:
    key: str
    title: str
    run: Callable[[Bench], Result]


ROWS = [
    Row("echo", "tools/call echo, 2026-07-28, 64 keep-alive connections", run_echo),
    Row("transports", "tools/call echo over every transport and revision, 64 calls", run_transports),
    Row("fairness", "Fairness: 64 connections at once, as many threads as cores", run_fairness),
    Row("sse", "SSE, one event per write, 64 streams", run_sse),
    Row("sse-backlog", "SSE, backlog coalesced, 64 streams", run_sse_backlog),
    Row("fanout", "One stream to 1,000 readers", run_fanout),
    Row("ws", "WebSocket push, a frame per write, 64 streams", run_ws),
    Row("ws-backlog", "WebSocket push, backlog coalesced, 64 streams", run_ws_backlog),
    Row("poll", "Long poll, 1 and 16 chunks a reply, 64 streams", run_poll),
    Row("latency", "Added latency, 200 streams of 50 chunks/s", run_latency),
    Row("held", "Streams of 50 chunks/s held by one core, p99 <= 8 ms", run_held),
    Row("idle", "User-space memory of an open idle stream and its connection", run_idle),
    Row("session", "Memory of a stream session and of a buffered chunk", run_session),
    Row("mcp-sessions", "Memory of an MCP session, idle or listening", run_mcp_sessions),
    Row("growth", "Growth: CPU per unit, from few to many sessions and chunks", run_growth),
    Row("client-calls", "The client: tools/call echo, 64 calls at once", run_client_calls),
    Row("client-streams", "The client: 1,000 calls of 50 chunks/s on one thread", run_client_streams),
    Row("client-memory", "The client: memory of an open call, over HTTP with its connection", run_client_memory),
    Row("proxy-calls", "The proxy: tools/call echo through it, 64 connections", run_proxy_calls),
    Row("proxy-latency", "The proxy: added latency, 20 streams of 50 chunks/s", run_proxy_latency),
    Row("agent-latency", "The agent: 100 runs with a tool of 2 chunks/s", run_agent_latency),
    Row("agent-runs", "The agent: 1,000 runs with 10 tools of 2 chunks/s, on one core", run_agent_runs),
    Row("agent-peers", "The agent: 100 runs with a tool of 50 chunks/s, beside OpenAI's agents SDK", run_agent_peers),
    Row("agent-peers-backlog", "The agent: 100 runs with a tool as fast as it is read, beside the same", run_agent_peers_backlog),
    Row("agent-reactions", "The agent: what a reaction costs the built-in model, with half a context before it", run_agent_reactions),
    Row("npu-latency", "A model for an NPU: from the runtime's callback to a reader, 50 tokens/s", run_npu_latency),
    Row("npu-memory", "A model for an NPU: memory of the server beside its idle process", run_npu_memory),
    Row("start", "Cold start to the first reply, and idle memory", run_start),
    Row("micro", "Hot paths by themselves (Google Benchmark)", run_micro),
]
