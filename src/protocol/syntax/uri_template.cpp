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
/// match the rest from which position; so the work is the product of both lengths. It then reads
/// the values from the start.
class UriTemplate::Matcher {
 public:
  Matcher(const std::vector<Part>& parts, std::string_view uri)
      : parts_(parts), uri_(uri), fits_((parts.size() + 1) * (uri.size() + 1)) {}

  /// Adds the positions that it looked at to `steps`.
  bool match(Variables& found, std::size_t& steps) {
    if (!fill(steps) || !fits(0, 0)) return false;
    std::size_t at = 0;
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      const Part& wanted = parts_[part];
      std::size_t end = at + (wanted.kind == Kind::literal ? wanted.text.size() : 1);
      if (wanted.kind != Kind::literal) {
        while (!fits(part + 1, end)) ++end;
        std::optional<std::string> value = percent_decoded(uri_.substr(at, end - at));
        if (!value) return false;
        found.emplace(wanted.text, std::move(*value));
      }
      at = end;
    }
    return true;
  }

 private:
  /// Returns false as soon as a part fits nowhere.
  bool fill(std::size_t& steps) {
    fits_[index(parts_.size(), uri_.size())] = true;
    for (std::size_t part = parts_.size(); part-- > 0;) {
      bool somewhere = false;
      for (std::size_t at = uri_.size() + 1; at-- > 0;) {
        if (!takes(part, at)) continue;
        fits_[index(part, at)] = true;
        somewhere = true;
      }
      steps += uri_.size() + 1;
      if (!somewhere) return false;
    }
    return true;
  }
  [[nodiscard]] std::size_t index(std::size_t part, std::size_t at) const {
    return part * (uri_.size() + 1) + at;
  }
  /// Whether the parts from `part` on can match the URI from `at` on.
  [[nodiscard]] bool fits(std::size_t part, std::size_t at) const { return fits_[index(part, at)]; }
  [[nodiscard]] bool takes(std::size_t part, std::size_t at) const {
    const Part& wanted = parts_[part];
    if (wanted.kind == Kind::literal) {
      return uri_.substr(at).starts_with(wanted.text) && fits(part + 1, at + wanted.text.size());
    }
    if (at == uri_.size()) return false;
    if (wanted.kind == Kind::segment && ends_segment(uri_[at])) return false;
    return fits(part + 1, at + 1) || fits(part, at + 1);
  }

  const std::vector<Part>& parts_;
  std::string_view uri_;
  std::vector<bool> fits_;
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
