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

/// A URI template (RFC 6570), used backwards: which values of its variables give a URI. Values are
/// percent-decoded. Immutable; thread-safe.
///
/// `{x}` and `{.x}` take at least one character of a segment, `{+x}` and `{#x}` any characters,
/// `{/x}` a segment, `{/x*}` and `{+x}` several; `{?x,y}` and `{&x,y}`, which only `{#x}` may
/// follow, take parameters in any order, each of which may be absent. Where several values would
/// do, earlier variables take as little as they can.
class UriTemplate {
 public:
  using Variables = sluice::Variables;

  /// Errors: -32602 saying what is wrong where. At most kMaxVariables.
  static Result<UriTemplate> parse(std::string_view text);

  /// The variables that give `uri`, or nothing. URIs longer than kMaxUri never match.
  [[nodiscard]] std::optional<Variables> match(std::string_view uri) const;
  [[nodiscard]] bool has_variable(std::string_view name) const;

  static constexpr std::size_t kMaxVariables = 32;
  static constexpr std::size_t kMaxUri = 8192;

 private:
  enum class Kind : std::uint8_t { literal, segment, anything };
  struct Part {
    Kind kind;
    std::string text;  // of a literal, or the variable's name
  };
  class Matcher;

  Result<void> parse_expression(std::string_view expression);
  [[nodiscard]] std::optional<Variables> match_query(std::string_view query) const;

  std::vector<Part> parts_;         // of what stands before the query
  std::vector<std::string> query_;  // names of parameters
  std::string fragment_;            // the variable behind the query, or empty
};

}  // namespace sluice
