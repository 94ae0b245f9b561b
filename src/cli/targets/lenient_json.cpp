#include "cli/targets/lenient_json.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "cli/options/exit_code.hpp"
#include "json/parser.hpp"

namespace sluice {
namespace {

void blank(std::string& text, std::size_t begin, std::size_t end) {
  for (std::size_t at = begin; at < end; ++at) {
    if (text[at] != '\n' && text[at] != '\r') text[at] = ' ';
  }
}

/// The end of the string that begins at `at`.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return std::min(at + 1, text.size());
}

/// The end of the comment that begins at `at`; `at` if none does.
std::size_t end_of_comment(std::string_view text, std::size_t at) {
  const std::string_view begin = text.substr(at, 2);
  if (begin == "//") return std::min(text.find('\n', at), text.size());
  if (begin != "/*") return at;
  const auto end = text.find("*/", at + 2);
  return end == std::string_view::npos ? at : end + 2;
}

}  // namespace

std::string plain_json(std::string_view text, JsonDialect dialect) {
  std::string out(text);
  if (dialect == JsonDialect::strict) return out;
  std::optional<std::size_t> comma;  // with nothing but blanks and comments since
  for (std::size_t at = 0; at < out.size();) {
    const char c = out[at];
    if (const std::size_t end = end_of_comment(out, at); end != at) {
      blank(out, at, end);
      at = end;
      continue;
    }
    if (c == '}' || c == ']') {
      if (comma && dialect == JsonDialect::comments_and_commas) out[*comma] = ' ';
    }
    if (c == ',') {
      comma = at;
    } else if (c != ' ' && c != '\t' && c != '\n' && c != '\r') {
      comma.reset();
    }
    at = c == '"' ? end_of_string(out, at) : at + 1;
  }
  return out;
}

Result<json::value> parse_config_json(std::string_view text, JsonDialect dialect,
                                      std::string_view name) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const std::string plain = plain_json(text, dialect);
  auto value = JsonParser().parse(plain, {}, kMaxConfigValues);
  if (value) return *std::move(value);
  const auto end = static_cast<std::ptrdiff_t>(std::min(value.error().at, plain.size()));
  const auto line = 1 + std::count(plain.begin(), plain.begin() + end, '\n');
  return fail(kExitUsage,
              std::string(name) + ":" + std::to_string(line) + ": " + value.error().reason);
}

}  // namespace sluice
