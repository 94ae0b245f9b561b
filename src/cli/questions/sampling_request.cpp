#include "cli/questions/sampling_request.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "cli/terminal/terminal.hpp"
#include "core/text/text.hpp"
#include "engine/generation_params.hpp"
#include "json/members.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

std::unexpected<Error> unfit(const std::string& what) {
  return fail(kInvalidParams, "This client's model " + what);
}

/// Adds the text of one block of content.
Result<void> add_block(std::string& text, const json::value& block) {
  const json::object* const members = block.if_object();
  if (members == nullptr || text_at(*members, "type") != "text") return unfit("reads only text");
  text.append(text.empty() ? "" : "\n").append(text_at(*members, "text"));
  return {};
}

/// The text of a message, whose content is a block or an array of them.
Result<std::string> text_of(const json::object& message) {
  std::string text;
  const json::value* const content = message.if_contains("content");
  if (content == nullptr || !content->is_array()) {
    const auto added = add_block(text, content == nullptr ? json::value() : *content);
    if (!added) return std::unexpected(added.error());
    return text;
  }
  for (const json::value& block : content->get_array()) {
    if (const auto added = add_block(text, block); !added) return std::unexpected(added.error());
  }
  return text;
}

void move_member(json::object& to, std::string_view name, const json::object& from,
                 std::string_view theirs) {
  if (const json::value* const value = from.if_contains(theirs)) to[name] = *value;
}

}  // namespace

Result<GenerationRequest> sampling_request(const json::object& params) {
  if (params.contains("tools")) return unfit("calls no tools");
  json::array messages;
  if (const std::string_view system = text_at(params, "systemPrompt"); !system.empty()) {
    messages.push_back({{"role", "system"}, {"content", system}});
  }
  const json::value* const asked = params.if_contains("messages");
  if (asked == nullptr || !asked->is_array()) return unfit("needs an array \"messages\"");
  for (const json::value& each : asked->get_array()) {
    const json::object* const message = each.if_object();
    if (message == nullptr) return unfit("needs messages that are objects");
    const std::string_view role = text_at(*message, "role");
    if (role != "user" && role != "assistant") return unfit("knows the roles user and assistant");
    auto text = text_of(*message);
    if (!text) return std::unexpected(text.error());
    messages.push_back({{"role", role}, {"content", *std::move(text)}});
  }
  json::object out{{"messages", std::move(messages)}};
  move_member(out, "temperature", params, "temperature");
  move_member(out, "stop", params, "stopSequences");
  move_member(out, "max_tokens", params, "maxTokens");
  Result<GenerationRequest> request = decode_generation(out);
  if (!request) return request;
  const auto most = static_cast<int>(kMaxSampledTokens);
  request->max_tokens = std::min(request->max_tokens.value_or(most), most);
  return request;
}

json::object sampling_result(const std::string& text, const std::string& model,
                             Completion::Reason reason) {
  return {{"role", "assistant"},
          {"content", {{"type", "text"}, {"text", text}}},
          {"model", model},
          {"stopReason", reason == Completion::Reason::length ? "maxTokens" : "endTurn"}};
}

SamplingConsent ask_sampling(const GenerationRequest& request, const std::string& model,
                             const AskedUser& user) {
  std::string shown = "\nThe server asks your model:\n";
  for (const ChatMessage& message : request.messages) {
    shown.append("  ").append(message.role).append(": ").append(printable(message.content));
    shown.push_back('\n');
  }
  user.show(shown);
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    user.show("Is " + model + " to answer, and the server to get that? [yes, no or always] ");
    const auto line = user.read_line();
    if (!line) return SamplingConsent::refused;
    const std::string word = to_lower(trim(*line));
    if (word == "a" || word == "always") return SamplingConsent::always;
    if (word.empty()) return SamplingConsent::refused;
    if (const auto is_yes = said_yes(word)) {
      return *is_yes ? SamplingConsent::once : SamplingConsent::refused;
    }
  }
  return SamplingConsent::refused;
}

}  // namespace sluice
