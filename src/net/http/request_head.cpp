#include "net/http/request_head.hpp"

#include <algorithm>
#include <array>

#include "core/text/field_value.hpp"
#include "core/text/text.hpp"
#include "core/version.hpp"
#include "net/http/http_types.hpp"

namespace sluice {
namespace {

/// A token (RFC 9110, section 5.6.2).
bool is_token(std::string_view text) {
  bool is_good = !text.empty();
  for (const char c : text) is_good &= is_token_char(c);
  return is_good;
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
  const std::string own_host = form == TargetForm::authority ? target : url.authority();
  std::string_view host = own_host;
  std::size_t size = 0;
  for (const auto& [name, value] : headers) {
    if (!is_token(name)) return fail(400, "A header field's name is not a token");
    if (!is_field_value(value)) {
      return fail(400, "The header field " + name + " has a control character in its value");
    }
    if (is_host(name)) host = value;
    size += name.size() + value.size() + 4;
  }
  const std::array<std::string_view, 8> first = {
      method,   " ",   target, " HTTP/1.1\r\nHost: ", host, "\r\nUser-Agent: sluice/",
      kVersion, "\r\n"};
  for (const std::string_view part : first) size += part.size();
  std::string out;
  out.reserve(size + room);
  out.resize_and_overwrite(size, [&](char* const begin, std::size_t) {
    char* end = begin;
    const auto add = [&end](std::string_view part) { end = std::ranges::copy(part, end).out; };
    for (const std::string_view part : first) add(part);
    for (const auto& [name, value] : headers) {
      if (is_host(name)) continue;
      add(name);
      add(": ");
      add(value);
      add("\r\n");
    }
    return static_cast<std::size_t>(end - begin);
  });
  return out;
}

}  // namespace sluice
