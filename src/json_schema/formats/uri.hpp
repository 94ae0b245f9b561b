#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice {

/// The parts of a URI reference (RFC 3986 appendix B), as views into it. Nothing is decoded.
struct UriParts {
  std::optional<std::string_view> scheme;
  std::optional<std::string_view> authority;
  std::string_view path;
  std::optional<std::string_view> query;
  std::optional<std::string_view> fragment;
};

/// Splits any text; does not check the characters.
UriParts split_uri(std::string_view text);

/// Resolves `reference` against `base` (RFC 3986 section 5.2, strict). An empty base leaves the
/// reference unchanged.
std::string resolve_uri(std::string_view base, std::string_view reference);

}  // namespace sluice
