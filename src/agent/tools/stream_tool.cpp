#include "sluice/stream_tool.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/log/log.hpp"
#include "json/json.hpp"
#include "json/members.hpp"
#include "sluice/stream.hpp"

namespace sluice {
namespace {

constexpr std::size_t kMaxStreamText = std::size_t{8} << 20U;
constexpr int kPollMilliseconds = 20'000;

/// Aborts a stream that is not read to its end.
class StreamGuard {
 public:
  StreamGuard(Client from, std::string id) : from_(std::move(from)), id_(std::move(id)) {}
  ~StreamGuard() {
    if (is_over_) return;
    try {
      const auto asked =
          std::make_shared<PendingCall<json::object>>(from_.request("abort", {{"stream_id", id_}}));
      asked->on_answer([asked](const auto& /*answer*/) {});
    } catch (const Error& error) {
      log_debug("a stream could not be aborted", {{"why", std::string_view(error.message)}});
    }
  }
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

  void end() { is_over_ = true; }

 private:
  Client from_;
  std::string id_;
  bool is_over_ = false;
};

/// Why the stream's last chunk is not the end of a whole text; empty: it is.
std::string why_broken(const json::object& last) {
  if (const json::object* const error = object_at(last, "error")) {
    return std::string(text_at(*error, "message"));
  }
  return text_at(last, "finish_reason") == "cancelled" ? "The stream was aborted" : "";
}

Stream<std::string> follow(Client from, std::string method, json::object params, Call& call) {
  params["stream"] = true;
  auto beginning = from.request(method, std::move(params));
  const json::object begun = co_await beginning.result(call);
  const std::string id(text_at(begun, "stream_id"));
  if (id.empty()) throw ToolError("The server has begun no stream");
  StreamGuard guard(from, id);
  std::string whole;
  for (std::uint64_t next = 0;;) {
    auto poll = from.request(
        method, {{"stream_id", id}, {"from_seq", next}, {"wait_ms", kPollMilliseconds}});
    const json::object reply = co_await poll.result(call);
    const json::value* const chunks = reply.if_contains("chunks");
    if (chunks == nullptr || !chunks->is_array()) throw ToolError("The stream has no chunks");
    std::string said;
    for (const json::value& each : chunks->get_array()) {
      const json::object* const chunk = each.if_object();
      if (chunk == nullptr) throw ToolError("A chunk of the stream is no object");
      ++next;
      said += text_at(*chunk, "delta");
      const json::value* const is_last = chunk->if_contains("end");
      if (is_last == nullptr || *is_last != true) continue;
      guard.end();
      if (!said.empty()) co_yield text(said);
      if (const std::string why = why_broken(*chunk); !why.empty()) throw ToolError(why);
      co_return whole + said;
    }
    if (said.empty()) continue;
    whole += said;
    if (whole.size() > kMaxStreamText) throw ToolError("The stream has more than 8 MiB");
    co_yield text(std::move(said));
  }
}

}  // namespace

void add_stream_tool(Server& server, std::string_view name, std::string_view description,
                     Client from, StreamToolOptions options) {
  if (options.tool.input_schema.is_null()) {
    options.tool.input_schema = {{"type", "object"},
                                 {"properties", {{"prompt", {{"type", "string"}}}}},
                                 {"required", json::array{"prompt"}},
                                 {"additionalProperties", false}};
  }
  ToolOptions tool = std::move(options.tool);
  server.tool(
      name, description,
      [from = std::move(from), method = std::move(options.method),
       fixed = std::move(options.params)](json::object params, Call& call) -> Stream<std::string> {
        for (const auto& [key, value] : fixed) params[key] = value;
        return follow(from, method, std::move(params), call);
      },
      std::move(tool));
}

}  // namespace sluice
