#include "engine/generation_params.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <optional>

#include "core/text/utf8.hpp"
#include "json/json.hpp"
#include "protocol/parameters.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

constexpr std::size_t kMaxMessages = 4096;  // their calls count like messages
constexpr std::size_t kMaxCalls = 128;      // of one message
constexpr std::size_t kMaxStops = 16;
// Engines may accept less. Longer values are refused before they are converted to text.
constexpr std::size_t kMaxSchemaBytes = std::size_t{64} << 10U;
constexpr std::size_t kMaxToolsBytes = std::size_t{256} << 10U;
constexpr std::size_t kMaxStopCharacters = 256;
constexpr double kMaxCount = 1e9;

template <auto Field>
void set_float(SamplingParams& sampling, float value) {
  sampling.*Field = value;
}

struct FloatField {
  const char* name;
  void (*set)(SamplingParams& sampling, float value);
  double low;
  double high;
};
constexpr std::array<FloatField, 6> kFloats = {
    {{"temperature", set_float<&SamplingParams::temperature>, 0, 10},
     {"top_p", set_float<&SamplingParams::top_p>, 0, 1},
     {"min_p", set_float<&SamplingParams::min_p>, 0, 1},
     {"repeat_penalty", set_float<&SamplingParams::repeat_penalty>, 0.01, 10},
     {"frequency_penalty", set_float<&SamplingParams::frequency_penalty>, -2, 2},
     {"presence_penalty", set_float<&SamplingParams::presence_penalty>, -2, 2}}};

std::unexpected<Error> bad(std::string_view name, std::string_view expected) {
  return fail(kInvalidParams,
              "Invalid params: " + std::string(name) + " must be " + std::string(expected));
}

std::string range(double low, double high) {
  std::array<char, 80> text{};
  std::snprintf(text.data(), text.size(), " from %.10g to %.10g", low, high);
  return text.data();
}

/// Passes the integer `name` to `set`, if it is present.
template <class Set>
Result<void> read_integer(const json::object& params, std::string_view name, double low,
                          double high, Set&& set) {
  const json::value* const value = find_parameter(params, name);
  if (value == nullptr) return {};
  const std::optional<std::int64_t> number = integer_of(*value);
  if (!number || static_cast<double>(*number) < low || static_cast<double>(*number) > high) {
    return bad(name, "an integer" + range(low, high));
  }
  set(*number);
  return {};
}

Result<void> read_text(const json::object& params, std::string_view name, std::string& into) {
  const json::value* const value = find_parameter(params, name);
  if (value == nullptr) return {};
  if (!value->is_string()) return bad(name, "a string");
  into = value->get_string();
  return {};
}

/// Reads the id of a call, if there is one.
Result<void> read_id(const json::object& object, std::string_view name, const std::string& at,
                     std::string& into) {
  const json::value* const id = find_parameter(object, name);
  if (id == nullptr) return {};
  if (!id->is_string() || id->get_string().size() > kMaxCallId) {
    return bad(at + "." + std::string(name), "a string of at most 256 bytes");
  }
  into = id->get_string();
  return {};
}

/// Reads a call in one of two forms: {"name", "arguments"}, as results have it, or that object as
/// the member "function", as common chat APIs have it. Arguments that are text may have millions of
/// values, so they are not parsed here, on the loop.
Result<ChatToolCall> read_call(const json::value& value, const std::string& at) {
  const json::object* const given = value.if_object();
  const json::value* const function = given == nullptr ? nullptr : given->if_contains("function");
  const json::object* const call = function == nullptr ? given : function->if_object();
  if (call == nullptr) return bad(at, "an object with name and arguments");
  ChatToolCall out;
  const json::value* const name = call->if_contains("name");
  if (name == nullptr || !name->is_string() || name->get_string().empty() ||
      name->get_string().size() > kMaxToolName) {
    return bad(at + ".name", "a string of 1 to 256 bytes");
  }
  out.name = name->get_string();
  const json::value* const arguments = call->if_contains("arguments");
  if (arguments == nullptr) {
    out.arguments = "{}";
  } else if (arguments->is_object()) {
    out.arguments = to_json(*arguments);
  } else if (arguments->is_string()) {
    out.arguments = arguments->get_string();
  } else {
    return bad(at + ".arguments", "an object, or the JSON text of one");
  }
  if (Result<void> read = read_id(*given, "id", at, out.id); !read) {
    return std::unexpected(std::move(read.error()));
  }
  return out;
}

/// Reads what a message has besides its content. `asked` is the last message of an assistant before
/// it, or null.
Result<void> read_calls(const json::object& message, const std::string& at,
                        const ChatMessage* asked, ChatMessage& chat) {
  const json::value* const calls =
      chat.role == "assistant" ? find_parameter(message, "tool_calls") : nullptr;
  if (calls != nullptr) {
    const json::array* const list = calls->if_array();
    if (list == nullptr || list->size() > kMaxCalls) {
      return bad(at + ".tool_calls", "an array of at most 128 calls");
    }
    for (std::size_t i = 0; i < list->size(); ++i) {
      Result<ChatToolCall> call =
          read_call((*list)[i], at + ".tool_calls[" + std::to_string(i) + "]");
      if (!call) return std::unexpected(std::move(call.error()));
      chat.tool_calls.push_back(*std::move(call));
    }
  }
  if (chat.role != "tool") return {};
  if (Result<void> read = read_id(message, "tool_call_id", at, chat.tool_call_id); !read) {
    return read;
  }
  // The result follows its call closely, after the results of other calls of the same answer.
  if (asked == nullptr || chat.tool_call_id.empty()) return {};
  const auto call = std::ranges::find(asked->tool_calls, chat.tool_call_id, &ChatToolCall::id);
  if (call != asked->tool_calls.end()) chat.tool_name = call->name;
  return {};
}

Result<void> read_messages(const json::object& params, GenerationRequest& request) {
  const json::value* const value = find_parameter(params, "messages");
  if (value == nullptr) return {};
  const json::array* const messages = value->if_array();
  if (messages == nullptr || messages->empty() || messages->size() > kMaxMessages) {
    return bad("messages", "an array of 1 to 4096 messages");
  }
  request.messages.reserve(messages->size());  // so that `asked` stays where it is
  const ChatMessage* asked = nullptr;
  std::size_t calls = 0;
  for (std::size_t i = 0; i < messages->size(); ++i) {
    const std::string at = "messages[" + std::to_string(i) + "]";
    const json::object* const message = (*messages)[i].if_object();
    if (message == nullptr) return bad(at, "an object with role and content");
    ChatMessage chat;
    const json::value* const role = message->if_contains("role");
    if (role == nullptr || !role->is_string()) return bad(at + ".role", "a string");
    chat.role = role->get_string();
    if (chat.role != "system" && chat.role != "user" && chat.role != "assistant" &&
        chat.role != "tool") {
      return bad(at + ".role", "\"system\", \"user\", \"assistant\" or \"tool\"");
    }
    if (Result<void> read = read_calls(*message, at, asked, chat); !read) return read;
    calls += chat.tool_calls.size();
    if (messages->size() + calls > kMaxMessages) {
      return bad("messages", "at most 4096 messages, their tool_calls included");
    }
    const json::value* const content = find_parameter(*message, "content");
    const bool may_be_missing = !chat.tool_calls.empty();
    if (content == nullptr ? !may_be_missing : !content->is_string()) {
      return bad(at + ".content", "a string");
    }
    if (content != nullptr) chat.content = content->get_string();
    request.messages.push_back(std::move(chat));
    if (request.messages.back().role == "assistant") asked = &request.messages.back();
  }
  return {};
}

Result<void> read_stop(const json::object& params, GenerationRequest& request) {
  const json::value* const value = find_parameter(params, "stop");
  if (value == nullptr) return {};
  const std::string expected = "a string of 1 to 256 characters, or an array of at most 16 of them";
  const auto add = [&](const json::value& stop) -> bool {
    if (!stop.is_string() || stop.get_string().empty()) return false;
    if (count_characters(stop.get_string()) > kMaxStopCharacters) return false;
    request.stop.emplace_back(stop.get_string());
    return true;
  };
  if (const json::array* stops = value->if_array()) {
    if (stops->size() > kMaxStops) return bad("stop", expected);
    for (const json::value& stop : *stops) {
      if (!add(stop)) return bad("stop", expected);
    }
    return {};
  }
  if (!add(*value)) return bad("stop", expected);
  return {};
}

Result<void> read_sampling(const json::object& params, SamplingParams& sampling) {
  for (const FloatField& field : kFloats) {
    const json::value* const value = find_parameter(params, field.name);
    if (value == nullptr) continue;
    if (!value->is_number()) return bad(field.name, "a number" + range(field.low, field.high));
    const double number = value->to_number<double>();
    if (!(number >= field.low && number <= field.high)) {
      return bad(field.name, "a number" + range(field.low, field.high));
    }
    field.set(sampling, static_cast<float>(number));
  }
  const auto set_int = [](int& into) {
    return [&into](std::int64_t number) { into = static_cast<int>(number); };
  };
  Result<void> read = read_integer(params, "top_k", 0, 1e6, set_int(sampling.top_k));
  if (!read) return read;
  read = read_integer(params, "penalty_last_n", -1, 65536, set_int(sampling.penalty_last_n));
  if (!read) return read;
  return read_integer(params, "seed", 0, std::numeric_limits<std::uint32_t>::max(),
                      [&](std::int64_t seed) { sampling.seed = static_cast<std::uint32_t>(seed); });
}

}  // namespace

Result<GenerationRequest> decode_generation(const json::object& params) {
  GenerationRequest request;
  const auto failed = [](Result<void> result) {
    return std::unexpected(std::move(result.error()));
  };
  if (Result<void> r = read_text(params, "prompt", request.prompt); !r) return failed(r);
  if (Result<void> r = read_messages(params, request); !r) return failed(r);
  if (find_parameter(params, "prompt") != nullptr && !request.messages.empty()) {
    return fail(kInvalidParams, "Invalid params: give either prompt or messages, not both");
  }
  if (Result<void> r = read_sampling(params, request.sampling); !r) return failed(r);
  if (Result<void> r = read_stop(params, request); !r) return failed(r);
  if (Result<void> r = read_text(params, "grammar", request.grammar); !r) return failed(r);
  if (const json::value* schema = find_parameter(params, "json_schema"); schema != nullptr) {
    if (!schema->is_object()) return bad("json_schema", "a JSON Schema object");
    if (is_longer_than(*schema, kMaxSchemaBytes)) return bad("json_schema", "at most 64 KiB long");
    request.json_schema = to_json(*schema);
  }
  if (const json::value* tools = find_parameter(params, "tools"); tools != nullptr) {
    if (!tools->is_array() || !std::ranges::all_of(tools->get_array(), [](const auto& tool) {
          return tool.is_object();
        })) {
      return bad("tools", "an array of tool definitions, which are objects");
    }
    if (is_longer_than(*tools, kMaxToolsBytes)) return bad("tools", "at most 256 KiB long");
    request.tools = to_json(*tools);
  }
  if (!request.grammar.empty() && !request.json_schema.empty()) {
    return fail(kInvalidParams, "Invalid params: give either json_schema or grammar, not both");
  }
  Result<void> r = read_integer(params, "max_tokens", 1, 1e9, [&](std::int64_t tokens) {
    request.max_tokens = static_cast<int>(tokens);
  });
  if (!r) return failed(r);
  r = read_integer(params, "priority", -10, 10,
                   [&](std::int64_t priority) { request.priority = static_cast<int>(priority); });
  if (!r) return failed(r);
  r = read_integer(params, "count", 0, kMaxCount,
                   [&](std::int64_t count) { request.count = count; });
  if (!r) return failed(r);
  r = read_integer(params, "interval_us", -1, static_cast<double>(kMaxIntervalUs),
                   [&](std::int64_t interval) { request.interval_us = interval; });
  if (!r) return failed(r);
  return request;
}

std::string generation_schema() {
  return R"({"type":"object","properties":{)"
         R"("prompt":{"type":["string","null"],"description":"The text to answer"},)"
         R"("stream_id":{"type":"string","description":"Follow a stream that run started"},)"
         R"("messages":{"type":["array","null"],"description":"A conversation, instead of prompt",)"
         R"("items":{"type":"object","properties":{"role":{"type":"string",)"
         R"("enum":["system","user","assistant","tool"]},"content":{"type":["string","null"]},)"
         R"("tool_calls":{"type":["array","null"],"items":{"type":"object"},"maxItems":128},)"
         R"("tool_call_id":{"type":["string","null"]}},)"
         R"("required":["role"]},"minItems":1,"maxItems":4096},)"
         R"("max_tokens":{"type":["integer","null"],"minimum":1,"maximum":1000000000},)"
         R"("temperature":{"type":["number","null"],"minimum":0,"maximum":10},)"
         R"("top_k":{"type":["integer","null"],"minimum":0,"maximum":1000000},)"
         R"("top_p":{"type":["number","null"],"minimum":0,"maximum":1},)"
         R"("min_p":{"type":["number","null"],"minimum":0,"maximum":1},)"
         R"("repeat_penalty":{"type":["number","null"],"minimum":0.01,"maximum":10},)"
         R"("frequency_penalty":{"type":["number","null"],"minimum":-2,"maximum":2},)"
         R"("presence_penalty":{"type":["number","null"],"minimum":-2,"maximum":2},)"
         R"("penalty_last_n":{"type":["integer","null"],"minimum":-1,"maximum":65536,)"
         R"("description":"How many last tokens the penalties consider; -1: all of the context"},)"
         R"("seed":{"type":["integer","null"],"minimum":0,"maximum":4294967295},)"
         R"("stop":{"type":["string","array","null"],"minLength":1,"maxLength":256,)"
         R"("items":{"type":"string","minLength":1,"maxLength":256},"maxItems":16},)"
         R"("json_schema":{"type":["object","null"],"description":"Schema of the answer"},)"
         R"("grammar":{"type":["string","null"],"description":"GBNF that the answer must match"},)"
         R"("tools":{"type":["array","null"],"items":{"type":"object"}},)"
         R"("priority":{"type":["integer","null"],"minimum":-10,"maximum":10,)"
         R"("description":"Among your own requests, higher is served earlier"},)"
         R"("count":{"type":["integer","null"],"minimum":0,"maximum":1000000000,)"
         R"("description":"Synthetic engine: number of chunks"},)"
         R"("interval_us":{"type":["integer","null"],"minimum":-1,"maximum":)" +
         std::to_string(kMaxIntervalUs) +
         R"(,"description":"Synthetic engine: us between chunks; )"
         R"(-1: none, each sent separately"}}})";
}

std::string completion_members(const Completion& completion) {
  std::string out;
  out.reserve(192);  // enough for most; a stream stores the text until it is removed
  out.append(R"("finish_reason":")");
  out.append(to_string(completion.reason)).append(R"(","usage":{"prompt_tokens":)");
  append_number(out, completion.usage.prompt_tokens);
  out.append(R"(,"cached_tokens":)");
  append_number(out, completion.usage.cached_tokens);
  out.append(R"(,"completion_tokens":)");
  append_number(out, completion.usage.completion_tokens);
  if (completion.usage.reasoning_tokens != 0) {
    out.append(R"(,"reasoning_tokens":)");
    append_number(out, completion.usage.reasoning_tokens);
  }
  const auto milliseconds = [&out](std::string_view name, std::chrono::microseconds time) {
    std::array<char, 32> digits{};
    std::snprintf(digits.data(), digits.size(), "%.3f", static_cast<double>(time.count()) / 1000.0);
    out.append(name).append(digits.data());
  };
  milliseconds(R"(},"timings":{"queue_ms":)", completion.timings.queue);
  milliseconds(R"(,"prefill_ms":)", completion.timings.prefill);
  milliseconds(R"(,"decode_ms":)", completion.timings.decode);
  out.push_back('}');
  return out;
}

std::string status_members(const GenerationStatus& status) {
  std::string out = R"("phase":")";
  switch (status.phase) {
    case GenerationStatus::Phase::queued:
      out.append(R"(queued","queue_position":)");
      append_number(out, status.queue_position);
      break;
    case GenerationStatus::Phase::prefill:
      out.append(R"(prefill","prefill":{"done":)");
      append_number(out, status.prefill_done);
      out.append(R"(,"total":)");
      append_number(out, status.prefill_total);
      out.push_back('}');
      break;
    case GenerationStatus::Phase::decode:
      out.append(R"(decode","completion_tokens":)");
      append_number(out, status.completion_tokens);
      break;
    case GenerationStatus::Phase::done:
      out.append("done\"");
      break;
  }
  return out;
}

}  // namespace sluice
