#include "json/path.hpp"

#include "core/text/utf8.hpp"
#include "json/json.hpp"

namespace sluice {
namespace {

constexpr std::size_t kMaxQuoted = 40;  // bytes

bool is_plain_name(std::string_view name) {
  constexpr std::string_view kFirst = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_$";
  constexpr std::string_view kRest =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_$0123456789-";
  return !name.empty() && name.size() <= kMaxQuoted && kFirst.contains(name.front()) &&
         name.find_first_not_of(kRest) == std::string_view::npos;
}

}  // namespace

void append_json_path(std::string& path, std::size_t index) {
  path.append("[").append(std::to_string(index)).append("]");
}

void append_json_path(std::string& path, std::string_view name) {
  if (is_plain_name(name)) {
    if (!path.empty()) path += '.';
    path += name;
  } else {
    path.append("[").append(describe_text(name)).append("]");
  }
}

std::string describe_text(std::string_view text) {
  std::string out;
  if (text.size() <= kMaxQuoted) {
    append_json_string(out, text);
    return out;
  }
  const std::string_view head = text.substr(0, kMaxQuoted);
  append_json_string(out, std::string(head.substr(0, complete_utf8_prefix(head))) + "...");
  return out;
}

}  // namespace sluice
