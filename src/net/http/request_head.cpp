#include "net/http/request_head.hpp"

#include <algorithm>

#include "core/text/text.hpp"
#include "core/version.hpp"
#include "net/http/http_types.hpp"

namespace sluice {
namespace {

/// A token (RFC 9110, section 5.6.2).
bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_char);
}

bool is_target(std::string_view text) {
  return text.starts_with('/') &&
         std::none_of(text.begin(), text.end(), [](char c) { return c <= ' ' || c > '~'; });
}

bool is_host(std::string_view field) {
  return equals_ignoring_case(field, "Host");
}

std::string target_of(const Url& url, TargetForm form) {
  switch (form) {
    case TargetForm::origin:
      return url.target;
    case TargetForm::absolute:
      return url.to_string();
    case TargetForm::authority:
      return url.host_and_port();
  }
  return {};
}

}  // namespace

Result<std::string> make_request_head(std::string_view method, const Url& url,
                                      std::span<const std::pair<std::string, std::string>> headers,
                                      TargetForm form, std::size_t room) {
  if (!is_token(method)) return fail(400, "The request's method is not a token");
  if (!is_target(url.target)) {
    return fail(400, "The request's target has characters that must be percent-encoded");
  }
  const std::string target = target_of(url, form);
  std::string host = form == TargetForm::authority ? target : url.authority();
  for (const auto& [name, value] : headers) {
    if (is_host(name)) host = value;
  }
  // Room for all of it at once, with what stands between the parts.
  std::size_t size = method.size() + target.size() + host.size() + kVersion.size() + 64 + room;
  for (const auto& [name, value] : headers) size += name.size() + value.size() + 4;
  std::string out;
  out.reserve(size);
  out.append(method).append(" ").append(target).append(" HTTP/1.1\r\nHost: ");
  out.append(host).append("\r\nUser-Agent: sluice/").append(kVersion).append("\r\n");
  for (const auto& [name, value] : headers) {
    if (!is_token(name)) return fail(400, "A header field's name is not a token");
    if (!is_field_value(value)) {
      return fail(400, "The header field " + name + " has a control character in its value");
    }
    if (is_host(name)) continue;
    out.append(name).append(": ").append(value).append("\r\n");
  }
  return out;
}

}  // namespace sluice
