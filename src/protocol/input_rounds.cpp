#include "protocol/input_rounds.hpp"

#include <algorithm>
#include <array>
#include <openssl/evp.h>
#include <stdexcept>
#include <utility>

#include "core/crypto/random.hpp"
#include "core/log/over_limit.hpp"
#include "core/text/base64.hpp"
#include "json/parser.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

constexpr std::array<std::string_view, 3> kNotOfTheRequest = {"_meta", "inputResponses",
                                                              "requestState"};

using Members = std::vector<const json::key_value_pair*>;

void append_members(std::string& out, Members members);

/// Appends `value` as text that does not depend on the order of members.
void append_canonical(std::string& out, const json::value& value) {
  if (const json::array* array = value.if_array()) {
    out.push_back('[');
    for (const json::value& each : *array) {
      append_canonical(out, each);
      out.push_back(',');
    }
    out.push_back(']');
  } else if (const json::object* object = value.if_object()) {
    Members members;
    members.reserve(object->size());
    for (const auto& member : *object) members.push_back(&member);
    append_members(out, std::move(members));
  } else {
    out.append(to_json(value));
  }
}

void append_members(std::string& out, Members members) {
  std::ranges::sort(members, {}, [](const auto* member) { return member->key(); });
  out.push_back('{');
  for (const auto* member : members) {
    append_json_string(out, member->key());
    out.push_back(':');
    append_canonical(out, member->value());
    out.push_back(',');
  }
  out.push_back('}');
}

std::string digest(std::string_view text) {
  std::array<unsigned char, 32> hash;
  if (EVP_Digest(text.data(), text.size(), hash.data(), nullptr, EVP_sha256(), nullptr) != 1) {
    throw std::runtime_error("OpenSSL has no SHA-256");
  }
  std::string out;
  append_base64(out, {reinterpret_cast<const char*>(hash.data()), hash.size()});
  return out;
}

/// Different questions have different digests.
std::string digest_of(const InputRequest& request) {
  std::string text = request.method + "\n";
  append_canonical(text, request.params);
  return digest(text);
}

std::int64_t seconds(InputRounds::Time time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

std::unexpected<Error> bad_state() {
  return fail(
      kInvalidParams,
      "Invalid params: requestState does not belong to this request or has expired; begin again "
      "without it");
}

std::unexpected<Error> too_long_state() {
  return over_limit("The answers so far are too long to ask more: at most " +
                    std::to_string(InputRounds::kMaxState) + " bytes, sealed, and " +
                    std::to_string(InputRounds::kMaxStateValues) +
                    " values can travel with the client");
}

}  // namespace

std::string digest_of(const Message& message) {
  Members members;
  for (const auto& member : params_of(message)) {
    const std::string_view name = member.key();
    if (std::ranges::find(kNotOfTheRequest, name) == kNotOfTheRequest.end()) {
      members.push_back(&member);
    }
  }
  std::string request(message.method);
  request.push_back('\n');
  append_members(request, std::move(members));
  return digest(request);
}

bool may_require_input(std::string_view method) {
  return method == "tools/call" || method == "prompts/get" || method == "resources/read";
}

void append_input_requests(std::string& out, const std::vector<const InputRequest*>& requests) {
  out.append(R"("inputRequests":{)");
  for (const InputRequest* request : requests) {
    if (out.back() != '{') out.push_back(',');
    append_json_string(out, request->key);
    out.append(R"(:{"method":)");
    append_json_string(out, request->method);
    if (!request->params.empty()) out.append(R"(,"params":)").append(to_json(request->params));
    out.push_back('}');
  }
  out.push_back('}');
}

Result<InputRounds> InputRounds::read(const Message& message, const std::string& principal,
                                      const Sealer& sealer, Time now) {
  const json::object& params = params_of(message);
  InputRounds rounds;
  rounds.purpose_ =
      principal + "\n" + (message.digest.empty() ? digest_of(message) : message.digest);
  json::object asked;  // key -> digest of each question of the previous round
  if (const json::value* state = params.if_contains("requestState")) {
    if (!state->is_string()) {
      return fail(kInvalidParams, "Invalid params: requestState must be a string");
    }
    if (state->get_string().size() > kMaxState) return bad_state();
    const auto opened = sealer.open(state->get_string(), rounds.purpose_);
    if (!opened) return bad_state();
    JsonParser parser;
    const auto parsed = parser.parse(*opened);
    rounds.values_ = parser.values();
    if (!parsed || parsed->at("until").as_int64() < seconds(now)) return bad_state();
    rounds.key_ = parsed->at("key").as_string();
    rounds.found_before_ = parsed->at("found").as_int64();
    rounds.fruitless_before_ = parsed->at("fruitless").as_int64();
    rounds.answers_ = parsed->at("answers").as_object();
    asked = parsed->at("asked").as_object();
  } else {
    rounds.key_ = random_id(kKeyLength);
  }
  if (const json::value* given = params.if_contains("inputResponses")) {
    if (!given->is_object()) {
      return fail(kInvalidParams, "Invalid params: inputResponses must be an object");
    }
    for (const auto& [key, answer] : given->get_object()) {
      // Answers to questions that were not asked are ignored (2026-07-28, Multi Round-Trip
      // Requests, Error Handling).
      const json::value* const question = asked.if_contains(key);
      if (question == nullptr) continue;
      if (!answer.is_object()) {
        return fail(kInvalidParams, "Invalid params: inputResponses[\"" + std::string(key) +
                                        "\"] must be an object");
      }
      if (size_of(answer, kMaxAnswerValues).values > kMaxAnswerValues) {
        return fail(kInvalidParams, "Invalid params: inputResponses[\"" + std::string(key) +
                                        "\"] has more than " + std::to_string(kMaxAnswerValues) +
                                        " values and names");
      }
      rounds.answers_[key] = {{"q", *question}, {"a", json::value(answer, json::storage_ptr())}};
    }
  }
  return rounds;
}

const json::value* InputRounds::find(const InputRequest& request) {
  const json::value* const answered = answers_.if_contains(request.key);
  if (answered == nullptr) return nullptr;
  const json::object& entry = answered->get_object();
  if (entry.at("q").get_string() != digest_of(request)) return nullptr;
  ++found_;
  return &entry.at("a");
}

Result<std::string> InputRounds::ask(const std::vector<const InputRequest*>& missing,
                                     const Sealer& sealer, Time now) const {
  json::value whole(json::object_kind);
  json::object& state = whole.get_object();
  state["until"] = seconds(now + kLifetime);
  state["key"] = key_;
  state["found"] = std::max(found_, found_before_);
  state["fruitless"] = fruitless();
  state["answers"] = answers_;
  json::object& asked = state["asked"].emplace_object();
  for (const InputRequest* request : missing) asked[request->key] = digest_of(*request);
  // A state that is far too long is not written at all.
  if (size_of(whole, kMaxStateValues).values > kMaxStateValues ||
      is_longer_than(whole, kMaxState)) {
    return too_long_state();
  }
  const std::string sealed = sealer.seal(to_json(whole), purpose_);
  if (sealed.size() > kMaxState) return too_long_state();
  std::string out;
  append_input_requests(out, missing);
  out.append(R"(,"requestState":)");
  append_json_string(out, sealed);
  return out;
}

}  // namespace sluice
