#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>

#include <boost/json/storage_ptr.hpp>
#include <boost/json/value.hpp>

#include "core/json.hpp"

namespace sluice {

/// Why a text is not JSON, and at which byte.
struct JsonSyntaxError {
  std::string reason;
  std::size_t at = 0;
};

/// Parses JSON texts (RFC 8259; UTF-8, no comments, nothing after the value, at most kMaxJsonDepth
/// deep). Numbers are exact: integers up to 64 bits as they are, all others as the double that is
/// nearest; one too large for a double is infinite. Reuses its memory; not thread-safe.
class JsonParser {
 public:
  JsonParser();
  JsonParser(JsonParser&& other) noexcept;
  JsonParser& operator=(JsonParser&& other) noexcept;
  ~JsonParser();

  /// The value, with `storage` behind it. More than `max_values` values, and names of members, are
  /// an error: each takes memory and time, however short its text is.
  std::expected<json::value, JsonSyntaxError> parse(std::string_view text,
                                                    json::storage_ptr storage = {},
                                                    std::size_t max_values = SIZE_MAX);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
