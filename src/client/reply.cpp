#include "client/reply.hpp"

#include <utility>

#include "net/http/http_types.hpp"
#include "net/http/status_codes.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
std::optional<Error> error_of(const json::object& message) {
  const json::value* error = message.if_contains("error");
  // Some write null beside a result.
  if (error == nullptr || error->is_null()) return std::nullopt;
  Error out{kInternalError, "The server reported an error without a message"};
  const json::object* members = error->if_object();
  if (members == nullptr) return out;
  if (const json::value* code = members->if_contains("code");
      code != nullptr && code->is_int64() && std::in_range<int>(code->get_int64())) {
    out.code = static_cast<int>(code->get_int64());
  }
  if (const json::value* text = members->if_contains("message");
      text != nullptr && text->is_string()) {
    out.message = std::string(text->get_string());
  }
  if (const json::value* data = members->if_contains("data")) out.data = to_json(*data);
  return out;
}

Result<json::object> parse_reply(int status, std::string_view body) {
  const auto not_a_reply = [&] {
    if (status == kContentTooLarge) return fail(kInternalError, std::string(kRequestTooLarge));
    if (is_passing_trouble(status)) {
      return fail(status, "a proxy in front of it answers " + std::to_string(status) + " " +
                              std::string(reason_phrase(status)));
    }
    return fail(kInternalError, "The server answered with HTTP status " + std::to_string(status) +
                                    " and no JSON-RPC response; is this the URL of sluice?");
  };
  auto parsed = parse_json(body);
  if (!parsed || !parsed->is_object()) return not_a_reply();
  json::object& message = parsed->get_object();
  if (auto error = error_of(message)) return std::unexpected(*std::move(error));
  json::value* result = message.if_contains("result");
  if (result == nullptr || !result->is_object()) return not_a_reply();
  return std::move(result->get_object());
}

bool is_passing_trouble(int status) {
  return status == 429 || (status >= 502 && status <= 504);
}

void ReplyBody::begin(int status) {
  status_ = status;
  text_.clear();
}

bool ReplyBody::append(std::string_view bytes) {
  if (bytes.size() > kMaxBytes - text_.size()) return false;
  text_.append(bytes);
  return true;
}

}  // namespace sluice
