#include "client/link/reply_head.hpp"

#include <algorithm>

#include "core/text/secrets.hpp"

namespace sluice {
namespace {

constexpr std::size_t kQuoted = 200;

}  // namespace

std::string_view quotable(std::string_view text) {
  const bool is_printable = std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
  return is_printable && text.size() <= kQuoted ? text : std::string_view();
}

std::string redirect_of(const HttpReplyHead& head) {
  // Servers repeat the query of the request, which may have a key.
  const std::string place = masked_url(quotable(head.header("Location")));
  std::string text = "The server redirects to ";
  text.append(place.empty() ? "another place" : place);
  return text.append(" (HTTP ").append(std::to_string(head.status)) +
         "), which is not followed; use the URL of the endpoint itself";
}

std::string_view media_type_of(const HttpReplyHead& head) {
  const std::string_view field = head.header("Content-Type");
  const std::string_view type = quotable(field.substr(0, field.find(';')));
  return type.empty() ? "of no known media type" : type;
}

}  // namespace sluice
