#include "protocol/syntax/uri_template.hpp"

#include <algorithm>
#include <utility>

#include "core/text/percent_encoding.hpp"
#include "core/text/utf8.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

bool is_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
  });
}

bool ends_segment(char c) {
  return c == '/' || c == '?' || c == '#';
}

/// Returns nothing if an escape is malformed or the result is not UTF-8.
std::optional<std::string> percent_decoded(std::string_view text) {
  std::optional<std::string> out = percent_decode(text);
  if (out && !is_valid_utf8(*out)) return std::nullopt;
  return out;
}

std::unexpected<Error> bad_template(std::string_view text, std::string why) {
  return fail(kInvalidParams, "URI template '" + std::string(text) + "': " + std::move(why));
}

}  // namespace

Result<UriTemplate> UriTemplate::parse(std::string_view text) {
  UriTemplate made;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t open = rest.find_first_of("{}");
    const std::string_view literal = rest.substr(0, open);
    if (!literal.empty()) {
      if (!made.query_.empty() || !made.fragment_.empty()) {
        return bad_template(text, "only {&...} and {#...} may follow {?...}");
      }
      made.parts_.push_back({Kind::literal, std::string(literal)});
    }
    if (open == std::string_view::npos) break;
    const std::size_t close = rest.find('}', open);
    if (rest[open] == '}' || close == std::string_view::npos)
      return bad_template(text, "a brace has no counterpart");
    if (Result<void> parsed = made.parse_expression(rest.substr(open + 1, close - open - 1));
        !parsed) {
      return bad_template(text, std::move(parsed.error().message));
    }
    rest.remove_prefix(close + 1);
  }
  std::vector<std::string_view> names = made.variables();
  if (names.size() > kMaxVariables) {
    return bad_template(text, "more than " + std::to_string(kMaxVariables) + " variables");
  }
  std::ranges::sort(names);
  if (const auto twice = std::ranges::adjacent_find(names); twice != names.end()) {
    return bad_template(text, "the variable '" + std::string(*twice) + "' appears twice");
  }
  return made;
}

Result<void> UriTemplate::parse_expression(std::string_view expression) {
  static constexpr std::string_view kOperators = "+#./;?&";
  char kind = 0;
  if (!expression.empty() && kOperators.contains(expression.front())) {
    kind = expression.front();
    expression.remove_prefix(1);
  }
  if (kind == ';') return fail(kInvalidParams, "{;...} is not supported");
  const bool in_query = kind == '?' || kind == '&';
  if (!fragment_.empty() || (!query_.empty() && !in_query && kind != '#')) {
    return fail(kInvalidParams, "only {&...} and {#...} may follow {?...}");
  }
  for (bool first = true; first || !expression.empty(); first = false) {
    const std::size_t comma = expression.find(',');
    std::string_view name = expression.substr(0, comma);
    expression.remove_prefix(comma == std::string_view::npos ? expression.size() : comma + 1);
    const bool several = name.ends_with('*');
    if (several) name.remove_suffix(1);
    if (!is_name(name)) {
      return fail(kInvalidParams, "'" + std::string(name) + "' is not a valid variable name");
    }
    if (in_query) {
      query_.emplace_back(name);
      continue;
    }
    if (kind == '#' && !query_.empty()) {
      if (!expression.empty())
        return fail(kInvalidParams, "a fragment after {?...} may have only one variable");
      fragment_ = name;
      return {};
    }
    if (kind == '#' || kind == '/' || kind == '.') {
      parts_.push_back({Kind::literal, std::string(1, first || kind != '#' ? kind : ',')});
    } else if (!first) {
      parts_.push_back({Kind::literal, ","});
    }
    const bool anything = kind == '+' || kind == '#' || several;
    parts_.push_back({anything ? Kind::anything : Kind::segment, std::string(name)});
  }
  return {};
}

/// Matches a URI against the parts. It first works out, from the end of the URI, which parts can
/// match the rest from which position; so the work is at most the product of both lengths, and
/// hardly more than a segment for a variable that stays within one. It then reads the values from
/// the start.
class UriTemplate::Matcher {
 public:
  Matcher(const std::vector<Part>& parts, std::string_view uri)
      : parts_(parts), uri_(uri), fits_((parts.size() + 1) * (uri.size() + 1)) {}

  /// Adds the positions that it looked at to `steps`.
  bool match(Variables& found, std::size_t& steps) {
    steps += fits_.size() / kClearedPerStep;
    if (!fill(steps) || row(0)[0] == 0) return false;
    std::size_t at = 0;
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      const Part& wanted = parts_[part];
      std::size_t end = at + (wanted.kind == Kind::literal ? wanted.text.size() : 1);
      if (wanted.kind != Kind::literal) {
        while (row(part + 1)[end] == 0) ++end;
        std::optional<std::string> value = percent_decoded(uri_.substr(at, end - at));
        if (!value) return false;
        found.emplace(wanted.text, std::move(*value));
      }
      at = end;
    }
    return true;
  }

 private:
  /// As many bytes are cleared in the time that a comparison takes.
  static constexpr std::size_t kClearedPerStep = 64;

  /// Positions that were found, and everything between them.
  struct Range {
    void add(std::size_t at) {
      first = std::min(first, at);
      last = std::max(last, at);
    }
    [[nodiscard]] bool empty() const { return first > last; }

    std::size_t first = std::string_view::npos;
    std::size_t last = 0;
  };

  /// For each position of the URI, its end included, 1 if the parts from `part` on can match the
  /// rest from there, otherwise 0.
  char* row(std::size_t part) { return fits_.data() + part * (uri_.size() + 1); }

  /// Returns false as soon as a part fits nowhere.
  bool fill(std::size_t& steps) {
    Range range;
    range.add(uri_.size());
    row(parts_.size())[uri_.size()] = 1;
    for (std::size_t part = parts_.size(); part-- > 0 && !range.empty();) {
      range = parts_[part].kind == Kind::literal ? fill_literal(part, range, steps)
                                                 : fill_variable(part, range, steps);
    }
    return !range.empty();
  }
  /// Fills the row of `part`. The next row has ones only in `next`. Returns where this one has.
  Range fill_literal(std::size_t part, Range next, std::size_t& steps) {
    const std::string_view text = parts_[part].text;
    Range found;
    for (std::size_t end = std::max(next.first, text.size()); end <= next.last; ++end, ++steps) {
      const std::size_t at = end - text.size();
      if (row(part + 1)[end] == 0 || uri_.substr(at, text.size()) != text) continue;
      row(part)[at] = 1;
      found.add(at);
    }
    return found;
  }
  Range fill_variable(std::size_t part, Range next, std::size_t& steps) {
    const bool takes_all = parts_[part].kind == Kind::anything;
    Range found;
    bool fits = false;  // one position later
    for (std::size_t end = next.last; end > 0 && (fits || end >= next.first); --end, ++steps) {
      const std::size_t at = end - 1;
      fits = (fits || row(part + 1)[end] != 0) && (takes_all || !ends_segment(uri_[at]));
      if (!fits) continue;
      row(part)[at] = 1;
      found.add(at);
    }
    return found;
  }

  const std::vector<Part>& parts_;
  std::string_view uri_;
  std::vector<char> fits_;
};

std::optional<UriTemplate::Variables> UriTemplate::match(std::string_view uri,
                                                         std::size_t& steps) const {
  ++steps;
  if (uri.size() > kMaxUri || !begins(uri)) return std::nullopt;
  Variables found;
  std::string_view path = uri;
  if (!fragment_.empty()) {
    const std::size_t hash = path.find('#');
    if (hash != std::string_view::npos) {
      std::optional<std::string> value = percent_decoded(path.substr(hash + 1));
      if (!value) return std::nullopt;
      found.emplace(fragment_, std::move(*value));
      path = path.substr(0, hash);
    }
  }
  if (!query_.empty()) {
    // A template that has a literal query continues it with {&...}.
    const bool goes_on = std::ranges::any_of(parts_, [](const Part& part) {
      return part.kind == Kind::literal && part.text.contains('?');
    });
    std::size_t mark = path.find('?');
    if (goes_on && mark != std::string_view::npos) mark = path.find('&', mark);
    if (mark != std::string_view::npos) {
      std::optional<Variables> parameters = match_query(path.substr(mark + 1));
      if (!parameters) return std::nullopt;
      found.merge(*parameters);
      path = path.substr(0, mark);
    }
  }
  if (!ends(path) || !Matcher(parts_, path).match(found, steps)) return std::nullopt;
  return found;
}

bool UriTemplate::begins(std::string_view uri) const {
  return parts_.empty() || parts_.front().kind != Kind::literal ||
         uri.starts_with(parts_.front().text);
}

bool UriTemplate::ends(std::string_view path) const {
  return parts_.empty() || parts_.back().kind != Kind::literal ||
         path.ends_with(parts_.back().text);
}

std::optional<UriTemplate::Variables> UriTemplate::match_query(std::string_view query) const {
  Variables found;
  while (!query.empty()) {
    const std::size_t end = query.find('&');
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(end == std::string_view::npos ? query.size() : end + 1);
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string_view name = pair.substr(0, equals);
    std::optional<std::string> value = percent_decoded(pair.substr(equals + 1));
    if (!value || std::ranges::find(query_, name) == query_.end()) return std::nullopt;
    if (!found.emplace(name, std::move(*value)).second) return std::nullopt;
  }
  return found;
}

std::vector<std::string_view> UriTemplate::variables() const {
  std::vector<std::string_view> names;
  for (const Part& part : parts_) {
    if (part.kind != Kind::literal) names.push_back(part.text);
  }
  names.insert(names.end(), query_.begin(), query_.end());
  if (!fragment_.empty()) names.push_back(fragment_);
  return names;
}

bool UriTemplate::has_variable(std::string_view name) const {
  return name == fragment_ || std::ranges::find(query_, name) != query_.end() ||
         std::ranges::any_of(parts_, [name](const Part& part) {
           return part.kind != Kind::literal && part.text == name;
         });
}

}  // namespace sluice
