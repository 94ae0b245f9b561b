#include "engine/openai/call_collector.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "json/exact_numbers.hpp"
#include "json/json.hpp"
#include "json/lone_surrogates.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

/// The arguments of a call; nothing if they are no object.
std::optional<json::object> object_of(const std::string& arguments) {
  // A call without arguments may have an empty text.
  const auto parsed = parse_json_with_lone_surrogates(arguments.empty() ? "{}" : arguments);
  if (!parsed || !parsed->is_object()) return std::nullopt;
  return parsed->get_object();
}

}  // namespace

void CallCollector::Extent::take(std::string_view text) {
  for (const char c : text) {
    if (is_in_string_) {
      if (is_escaped_) {
        is_escaped_ = false;
      } else if (c == '\\') {
        is_escaped_ = true;
      } else if (c == '"') {
        is_in_string_ = false;
      }
    } else if (c == '"') {
      is_in_string_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
      has_begun_ = true;
    } else if ((c == '}' || c == ']') && depth_ > 0) {
      --depth_;
    }
  }
}

Result<void> CallCollector::hold(std::size_t bytes) {
  bytes_ += bytes;
  if (bytes_ <= kMaxBytes) return {};
  return fail(kLimitReached, "The model's calls of tools are longer than is taken");
}

Result<std::size_t> CallCollector::begin() {
  if (calls_.size() == kMaxCalls) {
    return fail(kLimitReached, "The model calls more tools than are taken");
  }
  calls_.emplace_back();
  return calls_.size() - 1;
}

Result<void> CallCollector::describe(std::size_t at, std::string_view id, std::string_view name) {
  Collected& call = calls_[at];
  const bool takes_id = call.id.empty();
  const bool takes_name = call.name.empty();
  const Result<void> held = hold((takes_id ? id.size() : 0) + (takes_name ? name.size() : 0));
  if (!held) return held;
  if (takes_id) call.id = id;
  if (takes_name) call.name = name;
  return {};
}

Result<void> CallCollector::append(std::size_t at, std::string_view arguments,
                                   std::vector<Delta>& out) {
  Collected& call = calls_[at];
  if (arguments.empty() || call.is_settled) return {};
  if (Result<void> held = hold(arguments.size()); !held) return held;
  call.arguments.append(arguments);
  call.extent.take(arguments);
  // Without a name, nobody could tell what the part is of. The first part then has all so far.
  if (!has_parts_ || call.name.empty()) return {};
  std::string_view part = std::string_view(call.arguments).substr(call.delivered);
  part = part.substr(0, whole_escapes_prefix(part));
  if (part.empty()) return {};
  call.delivered += part.size();
  out.push_back({.kind = Delta::Kind::tool_call_part,
                 .text = without_lone_surrogates(part).value_or(std::string(part)),
                 .call = head_of(call)});
  return {};
}

Result<void> CallCollector::settle(std::size_t at, std::string_view arguments) {
  Collected& call = calls_[at];
  call.is_settled = true;
  if (arguments.empty() || call.arguments == arguments) return {};
  bytes_ -= call.arguments.size();
  if (Result<void> held = hold(arguments.size()); !held) return held;
  call.arguments = arguments;
  return {};
}

bool CallCollector::is_whole(std::size_t at) const {
  return calls_[at].is_settled || calls_[at].extent.is_whole();
}

const std::shared_ptr<const CallHead>& CallCollector::head_of(Collected& call) {
  if (call.head != nullptr) return call.head;
  const bool is_usable = !call.id.empty() && call.id.size() <= kMaxCallId &&
                         std::ranges::none_of(calls_, [&call](const Collected& other) {
                           return other.head != nullptr && other.head->id == call.id;
                         });
  if (!is_usable) repairs_.add(Repair::call_id);
  call.head = std::make_shared<const CallHead>(
      CallHead{.id = is_usable ? call.id : made_id_ + std::to_string(++made_), .name = call.name});
  return call.head;
}

Result<void> CallCollector::end(bool is_cut, std::vector<Delta>& out) {
  for (Collected& call : calls_) {
    const std::optional<json::object> arguments = object_of(call.arguments);
    const bool is_whole = !call.name.empty() && arguments;
    if (!is_whole && is_cut) {
      return fail(kLimitReached,
                  "The answer was cut off within a call of a tool: it reached "
                  "max_tokens, or the context of the model");
    }
    if (call.name.empty()) return fail(kInternalError, "The model called a tool without a name");
    json::object whole{{"name", call.name}};
    // Whoever gets numbers that cannot be read exactly gets them as the model has written them.
    if (arguments && inexact_number_in(call.arguments).empty()) {
      whole["arguments"] = *arguments;
    } else {
      whole["arguments"] = call.arguments;
    }
    if (!arguments) repairs_.add(Repair::call_arguments);
    out.push_back({.kind = Delta::Kind::tool_call, .text = to_json(whole), .call = head_of(call)});
  }
  return {};
}

}  // namespace sluice
