#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "sluice/content.hpp"

namespace sluice {

/// A URI template (RFC 6570), used in reverse: it finds the values of the variables that give a
/// URI. Values are percent-decoded. Immutable, therefore thread-safe.
///
/// `{x}` and `{.x}` match one or more characters of a segment, `{+x}` and `{#x}` one or more
/// characters of any kind, `{/x}` a segment, and `{/x*}` and `{+x}` several segments. `{?x,y}` and
/// `{&x,y}` match parameters in any order, each of which may be absent; only `{#x}` may follow
/// them. If several matches are possible, earlier variables match as little as they can.
class UriTemplate {
 public:
  using Variables = sluice::Variables;

  /// Error: -32602, which says what is wrong and where. A template may have at most kMaxVariables
  /// variables.
  static Result<UriTemplate> parse(std::string_view text);

  /// The variables with which the template gives `uri`, or nothing. A URI of more than kMaxUri
  /// bytes never matches.
  /// Adds to `steps` how many comparisons that took; each takes a few nanoseconds.
  [[nodiscard]] std::optional<Variables> match(std::string_view uri, std::size_t& steps) const;
  /// The names of the variables, as views into this object.
  [[nodiscard]] std::vector<std::string_view> variables() const;
  [[nodiscard]] bool has_variable(std::string_view name) const;

  static constexpr std::size_t kMaxVariables = 32;
  static constexpr std::size_t kMaxUri = 8192;

 private:
  enum class Kind : std::uint8_t { literal, segment, anything };
  struct Part {
    Kind kind;
    std::string text;  // the literal, or the variable's name
  };
  class Matcher;

  Result<void> parse_expression(std::string_view expression);
  // Whether a URI has the literal at the start, or its path the one at the end.
  [[nodiscard]] bool begins(std::string_view uri) const;
  [[nodiscard]] bool ends(std::string_view path) const;
  [[nodiscard]] std::optional<Variables> match_query(std::string_view query) const;

  std::vector<Part> parts_;         // everything before the query
  std::vector<std::string> query_;  // names of the query parameters
  std::string fragment_;            // the variable of a fragment after the query, or empty
};

}  // namespace sluice
