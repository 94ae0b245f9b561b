// Measures reading a request and writing its reply.

#include <benchmark/benchmark.h>
#include <string>
#include <string_view>

#include "net/http/http_parser.hpp"
#include "rpc/message.hpp"

namespace sluice {
namespace {

constexpr std::string_view kToolCall =
    R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo",)"
    R"("arguments":{"text":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"},"_meta":{)"
    R"("io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
    R"("io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},)"
    R"("io.modelcontextprotocol/clientCapabilities":{},"progressToken":1}}})";

constexpr std::string_view kPoll =
    R"({"jsonrpc":"2.0","id":1,"method":"run","params":{"stream_id":"abcdefghijklmnop",)"
    R"("from_seq":123456,"wait_ms":10000}})";

constexpr std::string_view kHead =
    "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n"
    "Mcp-Method: tools/call\r\nMcp-Name: echo\r\nContent-Length: 345\r\n\r\n";

void parse_message(benchmark::State& state, std::string_view text) {
  MessageParser parser;
  for (auto _ : state) {
    const auto message = parser.parse(text);
    if (!message) state.SkipWithError("not a message");
    benchmark::DoNotOptimize(message->params);
  }
  state.SetItemsProcessed(state.iterations());
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}
BENCHMARK_CAPTURE(parse_message, tools_call, kToolCall);
BENCHMARK_CAPTURE(parse_message, poll, kPoll);

void parse_http_head(benchmark::State& state) {
  HttpHeadParser parser({});
  for (auto _ : state) {
    bool found = false;
    HttpRequestHead head;
    if (!parser.parse(kHead, found, head) || !found) state.SkipWithError("not a head");
    benchmark::DoNotOptimize(head.size);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(parse_http_head);

void write_result(benchmark::State& state) {
  std::string out;
  for (auto _ : state) {
    out.clear();
    append_result(out, "1", R"({"content":[{"type":"text","text":"x"}],"resultType":"complete"})");
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(write_result);

}  // namespace
}  // namespace sluice
