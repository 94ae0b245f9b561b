// The decoders of answers that a model's server streams. Any split of the bytes gives the same
// answer. Calls have ids of their own, and their parts are those of their calls.

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/openai/answer_decoder.hpp"
#include "json/json.hpp"
#include "net/http/sse.hpp"
#include "require.hpp"

namespace {

using namespace sluice;

struct Reading {
  std::vector<Delta> deltas;
  std::string end;
  AnswerRepairs repairs;
};

void describe(std::string& out, const Delta& delta) {
  out.append(std::to_string(static_cast<int>(delta.kind))).append(delta.text).append("\n");
  if (delta.call != nullptr) out.append(delta.call->id).append(delta.call->name).append("\n");
}

std::string describe(const Reading& reading) {
  std::string out;
  for (const Delta& delta : reading.deltas) describe(out, delta);
  return out + reading.end + reading.repairs.to_string();
}

Reading read(ModelApi api, std::string_view bytes, std::size_t step) {
  SseDecoder events;
  const auto decoder = make_decoder(api, {.has_call_parts = true, .max_tokens = 5});
  Reading reading;
  Result<void> taken;
  for (std::size_t at = 0; at < bytes.size() && taken; at += step) {
    const Result<void> fed = events.feed(bytes.substr(at, step), [&](const SseEvent& event) {
      if (taken) taken = decoder->take(event.type, event.data, reading.deltas);
    });
    if (!fed) break;
  }
  if (!taken) {
    reading.end = taken.error().message;
  } else if (const Result<Completion> end = decoder->end(reading.deltas); end) {
    reading.end = to_string(end->reason);
    reading.end.append(std::to_string(end->usage.completion_tokens));
    require(end->reason != Completion::Reason::error && !end->error);
  } else {
    reading.end = end.error().message;
    require(!reading.end.empty());
  }
  reading.repairs = decoder->repairs();
  return reading;
}

void check(const Reading& reading) {
  std::set<std::string> whole;
  std::set<const CallHead*> heads;
  for (const Delta& delta : reading.deltas) {
    const bool is_call = delta.kind == Delta::Kind::tool_call;
    const bool is_part = delta.kind == Delta::Kind::tool_call_part;
    require((delta.call != nullptr) == (is_call || is_part));
    require(!delta.text.empty());
    if (!is_call && !is_part) continue;
    require(!delta.call->id.empty() && delta.call->id.size() <= kMaxCallId);
    require(!delta.call->name.empty());
    heads.insert(delta.call.get());
    if (!is_call) continue;
    require(whole.insert(delta.call->id).second);
    const Result<json::value> call = parse_json(delta.text);
    require(call && call->is_object());
    // What is no object comes as the text it is, to be answered.
    const json::value& arguments = call->as_object().at("arguments");
    if (arguments.is_string()) {
      const Result<json::value> read = parse_json(arguments.as_string());
      require(!read || !read->is_object());
    } else {
      require(arguments.is_object());
    }
    require(call->as_object().at("name").as_string() == delta.call->name);
  }
  require(heads.size() <= CallCollector::kMaxCalls);
}

}  // namespace

/// The first byte chooses the API, and the size of the pieces.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const ModelApi api = (data[0] & 1U) == 0 ? ModelApi::chat : ModelApi::responses;
  const std::size_t step = 1U + data[0] / 2U;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Reading whole = read(api, bytes, bytes.size() + 1);
  check(whole);
  require(describe(whole) == describe(read(api, bytes, step)));
  return 0;
}
