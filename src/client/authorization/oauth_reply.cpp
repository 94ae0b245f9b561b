#include "client/authorization/oauth_reply.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/text/text.hpp"
#include "json/members.hpp"
#include "net/http/status_codes.hpp"

namespace sluice {
namespace {

constexpr std::size_t kMaxTexts = 1000;
constexpr std::size_t kMaxDescription = 300;
/// More than what servers take as a header field.
constexpr std::size_t kMaxToken = std::size_t{16} << 10U;
constexpr auto kLongestExpiry = std::chrono::seconds(10LL * 365 * 24 * 3600);
/// Beyond that, times since 1970 do not fit the clocks.
constexpr auto kMostSeconds = std::chrono::seconds(8'000'000'000);

/// A token, as a header field carries it (RFC 6750, section 2.1, and what servers use beyond that).
bool is_sendable(std::string_view text) {
  return text.size() <= kMaxToken &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

/// A number of seconds, which some servers send as text.
std::optional<std::chrono::seconds> seconds_at(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  if (value == nullptr) return std::nullopt;
  double number = 0;
  if (value->is_number()) {
    number = value->to_number<double>();
  } else if (value->is_string()) {
    const Result<json::value> parsed = parse_json(value->get_string());
    if (!parsed || !parsed->is_number()) return std::nullopt;
    number = parsed->to_number<double>();
  } else {
    return std::nullopt;
  }
  if (!(number > 0)) return std::chrono::seconds(0);
  if (number >= static_cast<double>(kMostSeconds.count())) return kMostSeconds;
  return std::chrono::seconds(static_cast<std::int64_t>(number));
}

/// Cut between words, because half a secret would not be known as one.
std::string quote_server(std::string_view text) {
  const bool is_long = text.size() > kMaxDescription;
  if (is_long) text = text.substr(0, text.substr(0, kMaxDescription + 1).find_last_of(' ') + 1);
  std::string out;
  for (const char c : text) out.push_back(c < ' ' || c > '~' ? '?' : c);
  return is_long ? out + "..." : out;
}

/// The object in the reply, if the status says that it went well.
Result<json::object> read_reply(int status, std::string_view body, std::string_view server) {
  Result<json::value> parsed = parse_json(body);
  json::object* const object = parsed ? parsed->if_object() : nullptr;
  if (object != nullptr && status / 100 != 5) {
    // Some servers answer with 200 and an error.
    if (const std::string_view name = text_at(*object, "error"); !name.empty()) {
      return std::unexpected(make_oauth_error(server, name, text_at(*object, "error_description")));
    }
  }
  if (status / 100 != 2) {
    const int code = status / 100 == 4 && status != kTooManyRequests ? kNotAuthorized : kBadGateway;
    return fail(code, "The authorization server " + quote_server(server) + " answers with HTTP " +
                          std::to_string(status));
  }
  if (object == nullptr) {
    return fail(kInternalServerError, "The authorization server " + quote_server(server) +
                                          " does not answer with a JSON object");
  }
  return std::move(*object);
}

Error lacks(std::string_view server, std::string_view member) {
  return {kInternalServerError,
          "The reply of the authorization server " + quote_server(server) + " has no usable '" +
              std::string(member) + "'",
          {}};
}

}  // namespace

Error make_oauth_error(std::string_view server, std::string_view name,
                       std::string_view description) {
  std::string message =
      "The authorization server " + quote_server(server) + " refuses: " + quote_server(name);
  if (!description.empty()) message.append(" (").append(quote_server(description)).append(")");
  if (name == "invalid_target") {
    message.append(
        ". It does not take the parameter 'resource' (RFC 8707): switch send_resource off");
  }
  return {kNotAuthorized, std::move(message), to_json(json::object{{"error", quote_server(name)}})};
}

std::string oauth_error(const Error& error) {
  if (error.data.empty()) return {};
  const Result<json::value> data = parse_json(error.data);
  const json::object* const object = data ? data->if_object() : nullptr;
  return object == nullptr ? std::string() : std::string(text_at(*object, "error"));
}

Result<TokenReply> parse_token_reply(int status, std::string_view body, std::string_view server) {
  const Result<json::object> object = read_reply(status, body, server);
  if (!object) return std::unexpected(object.error());
  TokenReply out;
  out.access_token = text_at(*object, "access_token");
  out.token_type = to_lower(text_at(*object, "token_type"));
  out.refresh_token = text_at(*object, "refresh_token");
  out.issued_token_type = text_at(*object, "issued_token_type");
  if (const auto expiry = seconds_at(*object, "expires_in")) {
    out.expiry = std::min(*expiry, kLongestExpiry);
  }
  if (const json::value* const scope = object->if_contains("scope");
      scope != nullptr && scope->is_string()) {
    out.scope = std::string(scope->get_string());
  }
  if (out.access_token.empty() || !is_sendable(out.access_token)) {
    return std::unexpected(lacks(server, "access_token"));
  }
  if (out.token_type.empty()) return std::unexpected(lacks(server, "token_type"));
  if (out.refresh_token.size() > kMaxToken) return std::unexpected(lacks(server, "refresh_token"));
  return out;
}

Result<RegistrationReply> parse_registration_reply(int status, std::string_view body,
                                                   std::string_view server) {
  const Result<json::object> object = read_reply(status, body, server);
  if (!object) return std::unexpected(object.error());
  RegistrationReply out;
  out.client_id = text_at(*object, "client_id");
  out.client_secret = text_at(*object, "client_secret");
  out.auth_method = text_at(*object, "token_endpoint_auth_method");
  if (const auto expiry = seconds_at(*object, "client_secret_expires_at")) {
    out.secret_expires_at = expiry->count();
  }
  if (out.client_id.empty() || out.client_id.size() > kMaxToken ||
      out.client_secret.size() > kMaxToken) {
    return std::unexpected(lacks(server, "client_id"));
  }
  return out;
}

Result<DeviceReply> parse_device_reply(int status, std::string_view body, std::string_view server) {
  constexpr auto kUsualInterval = std::chrono::seconds(5);  // RFC 8628, section 3.2
  const Result<json::object> object = read_reply(status, body, server);
  if (!object) return std::unexpected(object.error());
  DeviceReply out;
  out.device_code = text_at(*object, "device_code");
  out.user_code = quote_server(text_at(*object, "user_code"));
  out.verification_uri = text_at(*object, "verification_uri");
  out.verification_uri_complete = text_at(*object, "verification_uri_complete");
  const auto expiry = seconds_at(*object, "expires_in");
  out.interval =
      std::max(seconds_at(*object, "interval").value_or(kUsualInterval), std::chrono::seconds(1));
  if (out.device_code.empty()) return std::unexpected(lacks(server, "device_code"));
  if (out.user_code.empty()) return std::unexpected(lacks(server, "user_code"));
  if (out.verification_uri.empty()) return std::unexpected(lacks(server, "verification_uri"));
  if (!expiry) return std::unexpected(lacks(server, "expires_in"));
  out.expiry = std::min(*expiry, kLongestExpiry);
  return out;
}

std::optional<std::vector<std::string>> texts_at(const json::object& object,
                                                 std::string_view name) {
  const json::value* const value = object.if_contains(name);
  const json::array* const array = value == nullptr ? nullptr : value->if_array();
  if (array == nullptr) return std::nullopt;
  std::vector<std::string> out;
  for (const json::value& each : *array) {
    if (each.is_string() && out.size() < kMaxTexts) out.emplace_back(each.get_string());
  }
  return out;
}

}  // namespace sluice
