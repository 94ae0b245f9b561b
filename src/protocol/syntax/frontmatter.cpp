#include "protocol/syntax/frontmatter.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/text/text.hpp"
#include "core/text/utf8.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

struct Line {
  std::size_t number;  // in the document, from 1
  std::size_t indent;
  std::string_view text;  // after the indent, without trailing blanks; empty for a blank line
};

std::unexpected<Error> refuse(std::size_t line, const std::string& why) {
  return fail(kInvalidParams, "frontmatter, line " + std::to_string(line) + ": " + why);
}

/// Where a comment begins in `text`, or the end of `text`. Must not be used for text that begins
/// with a quote.
std::size_t comment_at(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '#' && (at == 0 || text[at - 1] == ' ')) return at;
  }
  return text.size();
}

std::string_view trim_spaces(std::string_view text) {
  return trim(text, " ");
}

/// The value of a plain scalar by the rules of YAML's core schema.
json::value resolve(std::string_view text) {
  const auto is_one_of = [&](std::initializer_list<std::string_view> words) {
    return std::ranges::find(words, text) != words.end();
  };
  if (is_one_of({"", "~", "null", "Null", "NULL"})) return nullptr;
  if (is_one_of({"true", "True", "TRUE"})) return true;
  if (is_one_of({"false", "False", "FALSE"})) return false;
  std::int64_t integer = 0;
  for (const auto& [prefix, base] : {std::pair("0x", 16), std::pair("0o", 8)}) {
    if (!text.starts_with(prefix)) continue;
    const auto [stop, error] =
        std::from_chars(text.data() + 2, text.data() + text.size(), integer, base);
    const bool whole = error == std::errc() && stop == text.data() + text.size();
    return whole && text[2] != '-' ? json::value(integer) : json::value(text);
  }
  const std::string_view digits = text.substr(text[0] == '+' ? 1 : 0);
  const bool is_number = digits.find_first_not_of("+-.0123456789eE") == std::string_view::npos &&
                         digits.find_first_of("0123456789") != std::string_view::npos;
  if (!is_number || digits.starts_with('+')) return json::value(text);
  const char* const end = digits.data() + digits.size();
  if (const auto [stop, error] = std::from_chars(digits.data(), end, integer);
      error == std::errc() && stop == end) {
    return integer;
  }
  double number = 0;
  if (const auto [stop, error] = std::from_chars(digits.data(), end, number);
      error == std::errc() && stop == end) {
    return number;
  }
  return json::value(text);
}

class Parser {
 public:
  explicit Parser(std::vector<Line> lines) : lines_(std::move(lines)) {}

  Result<json::object> parse() {
    skip_blank();
    if (at_end()) return json::object();
    if (is_item(line()))
      return refuse(line().number, "expected a name and a value, such as 'name: value'");
    Result<json::value> root = mapping(line().indent, 0);
    if (!root) return std::unexpected(std::move(root.error()));
    skip_blank();
    if (!at_end()) return refuse(line().number, "the indent differs from that of the lines before");
    return std::move(root->get_object());
  }

 private:
  [[nodiscard]] bool at_end() const { return next_ == lines_.size(); }
  [[nodiscard]] const Line& line() const { return lines_[next_]; }
  static bool is_item(const Line& line) { return line.text == "-" || line.text.starts_with("- "); }
  /// Skips blank lines and comments.
  void skip_blank() {
    while (!at_end() && (line().text.empty() || line().text[0] == '#')) ++next_;
  }

  Result<json::value> mapping(std::size_t indent, std::size_t depth) {
    if (depth > kMaxFrontmatterDepth)
      return refuse(line().number, "the value is nested too deeply");
    json::object out;
    for (skip_blank(); !at_end() && line().indent == indent && !is_item(line()); skip_blank()) {
      const std::size_t number = line().number;
      std::string_view rest = line().text;
      Result<std::string> key = take_key(rest);
      if (!key) return std::unexpected(std::move(key.error()));
      ++next_;
      Result<json::value> value = value_of(rest, number, indent, depth, false);
      if (!value) return value;
      if (!out.emplace(*key, std::move(*value)).second) {
        return refuse(number, "'" + *key + "' appears twice");
      }
    }
    return out;
  }

  Result<json::value> sequence(std::size_t indent, std::size_t depth) {
    if (depth > kMaxFrontmatterDepth)
      return refuse(line().number, "the value is nested too deeply");
    json::array out;
    for (skip_blank(); !at_end() && line().indent == indent && is_item(line()); skip_blank()) {
      const std::size_t number = line().number;
      const std::string_view rest = trim_spaces(line().text.substr(1));
      // A mapping may begin on the line of the dash.
      const std::size_t inner = indent + (line().text.size() - rest.size());
      if (!rest.empty() && rest[0] != '"' && rest[0] != '\'' && rest[0] != '[' &&
          find_colon(rest) != std::string_view::npos) {
        lines_[next_].indent = inner;
        lines_[next_].text = rest;
        Result<json::value> entry = mapping(inner, depth + 1);
        if (!entry) return entry;
        out.push_back(std::move(*entry));
        continue;
      }
      ++next_;
      Result<json::value> value = value_of(rest, number, indent, depth, true);
      if (!value) return value;
      out.push_back(std::move(*value));
    }
    return out;
  }

  /// The position of the colon that ends a plain name.
  static std::size_t find_colon(std::string_view text) {
    const std::string_view code = text.substr(0, comment_at(text));
    for (std::size_t at = 0; at < code.size(); ++at) {
      if (code[at] == ':' && (at + 1 == code.size() || code[at + 1] == ' ')) return at;
    }
    return std::string_view::npos;
  }

  /// Takes the name from the beginning of `rest`, and leaves what follows its colon.
  Result<std::string> take_key(std::string_view& rest) const {
    std::string key;
    if (rest[0] == '"' || rest[0] == '\'') {
      Result<std::string> quoted = take_quoted(rest, line().number);
      if (!quoted) return quoted;
      key = std::move(*quoted);
      if (!rest.starts_with(':')) return refuse(line().number, "expected a colon after the name");
      rest = trim_spaces(rest.substr(1));
      return key;
    }
    const std::size_t colon = find_colon(rest);
    if (colon == std::string_view::npos) {
      return refuse(line().number, "expected a name, a colon and a value");
    }
    if (Result<void> plain = check_plain(rest, line().number); !plain) {
      return std::unexpected(std::move(plain.error()));
    }
    key = trim_spaces(rest.substr(0, colon));
    rest = trim_spaces(rest.substr(colon + 1));
    return key;
  }

  /// The value after a name or after the dash of an item, both indented by `indent`: it is in
  /// `rest` or on the lines below.
  Result<json::value> value_of(std::string_view rest, std::size_t number, std::size_t indent,
                               std::size_t depth, bool of_item) {
    if (rest.empty() || rest[0] == '#') {
      skip_blank();
      if (at_end() || line().indent < indent) return nullptr;
      if (line().indent == indent) {
        // The items of a name may have the same indent as the name.
        if (of_item || !is_item(line())) return nullptr;
        return sequence(indent, depth + 1);
      }
      return is_item(line()) ? sequence(line().indent, depth + 1)
                             : block_below(line().indent, depth);
    }
    if (rest[0] == '|' || rest[0] == '>') return block_scalar(rest, number, indent);
    if (rest[0] == '"' || rest[0] == '\'') {
      Result<std::string> text = take_quoted(rest, number);
      if (!text) return std::unexpected(std::move(text.error()));
      if (!rest.empty() && rest[0] != '#')
        return refuse(number, "there is text after the closing quote");
      return json::value(*text);
    }
    if (rest[0] == '[') return flow_sequence(rest, number);
    return plain_scalar(rest, number, indent);
  }

  Result<json::value> block_below(std::size_t indent, std::size_t depth) {
    const Line& first = line();
    const bool names = first.text[0] == '"' || first.text[0] == '\'' ||
                       find_colon(first.text) != std::string_view::npos;
    if (!names) return refuse(first.number, "a value must begin on the same line as its name");
    return mapping(indent, depth + 1);
  }

  static Result<void> check_plain(std::string_view text, std::size_t number) {
    static constexpr std::string_view kIndicators = "[]{},&*!|>'\"%@`";
    const bool indicator = kIndicators.find(text[0]) != std::string_view::npos ||
                           ((text[0] == '?' || text[0] == ':' || text[0] == '-') &&
                            (text.size() == 1 || text[1] == ' '));
    if (!indicator) return {};
    return refuse(number,
                  std::string("a value that begins with ") + text[0] +
                      " must be quoted; YAML's other uses of this character are not supported");
  }

  Result<json::value> plain_scalar(std::string_view rest, std::size_t number, std::size_t indent) {
    if (Result<void> plain = check_plain(rest, number); !plain) {
      return std::unexpected(std::move(plain.error()));
    }
    std::string text;
    bool commented = false;
    const auto append = [&](std::string_view part, std::size_t at) -> Result<void> {
      const std::size_t end = comment_at(part);
      commented = end < part.size();
      part = trim_spaces(part.substr(0, end));
      if (find_colon(part) != std::string_view::npos) {
        return refuse(at, "a value with a colon and a space must be quoted");
      }
      text.append(part);
      return {};
    };
    if (Result<void> first = append(rest, number); !first) {
      return std::unexpected(std::move(first.error()));
    }
    while (!commented) {
      // Lines with a larger indent continue the scalar. A line break becomes a space, and a blank
      // line becomes a line break.
      std::size_t next = next_;
      while (next < lines_.size() && lines_[next].text.empty()) ++next;
      if (next == lines_.size() || lines_[next].indent <= indent) break;
      if (lines_[next].text[0] == '#') break;
      text.append(next == next_ ? std::string(" ") : std::string(next - next_, '\n'));
      next_ = next + 1;
      if (Result<void> more = append(lines_[next].text, lines_[next].number); !more) {
        return std::unexpected(std::move(more.error()));
      }
    }
    return resolve(text);
  }

  Result<json::value> block_scalar(std::string_view header, std::size_t number,
                                   std::size_t indent) {
    const bool folded = header[0] == '>';
    header = trim_spaces(header.substr(0, comment_at(header)));
    const std::string_view chomping = header.substr(1);
    if (!chomping.empty() && chomping != "-" && chomping != "+") {
      return refuse(number, "only + or - may follow the | or > of a block of text");
    }
    std::optional<std::size_t> inner;
    std::vector<std::string> texts;
    for (; !at_end() && (line().text.empty() || line().indent > indent); ++next_) {
      if (line().text.empty()) {
        texts.emplace_back();
        continue;
      }
      if (!inner) inner = line().indent;
      if (line().indent < *inner) {
        return refuse(line().number,
                      "the line is indented less than the block of text it belongs to");
      }
      texts.push_back(std::string(line().indent - *inner, ' ').append(line().text));
    }
    std::size_t blank = 0;  // blank lines at the end
    while (blank < texts.size() && texts[texts.size() - 1 - blank].empty()) ++blank;
    texts.resize(texts.size() - blank);
    std::string text;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      text.append(texts[i]);
      if (i + 1 == texts.size()) break;
      text.append(folded ? fold(texts, i) : "\n");
    }
    if (!texts.empty() && chomping != "-") text.push_back('\n');
    if (chomping == "+") text.append(blank, '\n');
    return json::value(text);
  }

  /// What separates lines `i` and `i + 1` of a folded block. Lines with a larger indent, and those
  /// next to them, keep their line breaks.
  static std::string_view fold(const std::vector<std::string>& texts, std::size_t i) {
    const auto kept = [](const std::string& text) { return text.starts_with(' '); };
    if (texts[i].empty()) return "\n";
    std::size_t next = i + 1;
    while (texts[next].empty()) ++next;
    if (kept(texts[i]) || kept(texts[next])) return "\n";
    return next == i + 1 ? " " : "";
  }

  Result<json::value> flow_sequence(std::string_view rest, std::size_t number) const {
    json::array out;
    rest = trim_spaces(rest.substr(1));
    while (!rest.empty() && rest[0] != ']') {
      if (rest[0] == '"' || rest[0] == '\'') {
        Result<std::string> text = take_quoted(rest, number);
        if (!text) return std::unexpected(std::move(text.error()));
        out.emplace_back(*text);
      } else {
        const std::size_t end = std::min(rest.find_first_of(",]"), rest.size());
        const std::string_view item = trim_spaces(rest.substr(0, end));
        if (item.empty() || item.find_first_of("[]{}#:&*!|>%@`\"'") != std::string_view::npos) {
          return refuse(number, "a list in brackets may contain only plain and quoted values");
        }
        out.push_back(resolve(item));
        rest.remove_prefix(end);
      }
      if (rest.empty()) break;
      if (rest.starts_with(',')) {
        rest = trim_spaces(rest.substr(1));
      } else if (!rest.starts_with(']')) {
        return refuse(number, "expected a comma or the end of the list");
      }
    }
    if (rest.empty())
      return refuse(number, "a list in brackets must end on the line on which it begins");
    rest = trim_spaces(rest.substr(1));
    if (!rest.empty() && rest[0] != '#') return refuse(number, "there is text after the list");
    return out;
  }

  /// Takes the quoted text from the beginning of `rest`, and leaves what follows it.
  static Result<std::string> take_quoted(std::string_view& rest, std::size_t number) {
    const char quote = rest[0];
    std::string out;
    for (std::size_t at = 1; at < rest.size(); ++at) {
      if (rest[at] == quote) {
        if (quote == '\'' && at + 1 < rest.size() && rest[at + 1] == quote) {
          out.push_back(quote);
          ++at;
          continue;
        }
        if (quote == '"') {
          // YAML's escapes are those of JSON, except a few that are unusual in frontmatter.
          Result<json::value> text = parse_json(rest.substr(0, at + 1));
          if (!text) return refuse(number, "the escape is not supported; use one of JSON's");
          out = text->get_string();
        }
        rest = trim_spaces(rest.substr(at + 1));
        return out;
      }
      if (quote == '"' && rest[at] == '\\') ++at;
      if (quote == '\'') out.push_back(rest[at]);
    }
    return refuse(number, "quotes must be closed on the line on which they begin");
  }

  std::vector<Line> lines_;
  std::size_t next_ = 0;
};

}  // namespace

Result<json::object> parse_frontmatter(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::vector<Line> lines;
  std::size_t number = 0;
  std::size_t taken = 0;
  for (;;) {
    const std::size_t end = text.find('\n');
    std::string_view raw = text.substr(0, end);
    if (raw.ends_with('\r')) raw.remove_suffix(1);
    ++number;
    taken += raw.size() + 1;
    if (taken > kMaxFrontmatter) {
      return refuse(number,
                    "the frontmatter has more than " + std::to_string(kMaxFrontmatter) + " bytes");
    }
    const std::size_t last = raw.find_last_not_of(" \t");
    const std::string_view code = raw.substr(0, last == std::string_view::npos ? 0 : last + 1);
    if (number == 1) {
      if (code != "---") return refuse(1, "the document must begin with the line ---");
    } else if (code == "---" && raw.starts_with('-')) {
      return Parser(std::move(lines)).parse();
    } else {
      if (!is_valid_utf8(code)) return refuse(number, "the line is not valid UTF-8");
      const std::size_t indent = std::min(code.find_first_not_of(' '), code.size());
      if (indent < code.size() && code[indent] == '\t') {
        return refuse(number, "lines must be indented with spaces, not tabs");
      }
      if (std::ranges::any_of(code, [](unsigned char c) { return c < 0x20 && c != '\t'; })) {
        return refuse(number, "the line contains control characters");
      }
      lines.push_back({number, indent, code.substr(indent)});
    }
    if (end == std::string_view::npos)
      return refuse(number, "the frontmatter must end with the line ---");
    text.remove_prefix(end + 1);
  }
}

}  // namespace sluice
