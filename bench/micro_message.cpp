#include <benchmark/benchmark.h>
#include <string>
#include <string_view>

#include "core/json.hpp"
#include "net/http_parser.hpp"
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

void BM_ParseMessage(benchmark::State& state, std::string_view text) {
  MessageParser parser;
  for (auto _ : state) {
    const auto message = parser.parse(text);
    if (!message) state.SkipWithError("not a message");
    benchmark::DoNotOptimize(message->params);
  }
  state.SetItemsProcessed(state.iterations());
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}
BENCHMARK_CAPTURE(BM_ParseMessage, tools_call, kToolCall);
BENCHMARK_CAPTURE(BM_ParseMessage, poll, kPoll);

void BM_ParseHead(benchmark::State& state) {
  HttpHeadParser parser({});
  for (auto _ : state) {
    bool found = false;
    HttpRequestHead head;
    if (!parser.parse(kHead, found, head) || !found) state.SkipWithError("not a head");
    benchmark::DoNotOptimize(head.size);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_ParseHead);

void BM_AppendResult(benchmark::State& state) {
  std::string out;
  for (auto _ : state) {
    out.clear();
    append_result(out, "1", R"({"content":[{"type":"text","text":"x"}],"resultType":"complete"})");
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_AppendResult);

/// Text of a model's delta (`range(0)` bytes, one in sixteen to be escaped).
void BM_EscapeText(benchmark::State& state) {
  std::string text(static_cast<std::size_t>(state.range(0)), 'a');
  for (std::size_t i = 15; i < text.size(); i += 16) text[i] = '\n';
  std::string out;
  for (auto _ : state) {
    out.clear();
    append_json_escaped(out, text);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_EscapeText)->Arg(8)->Arg(40)->Arg(1024);

}  // namespace
}  // namespace sluice
