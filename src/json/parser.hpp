#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>

#include <boost/json/storage_ptr.hpp>
#include <boost/json/value.hpp>

#include "json/json.hpp"

namespace sluice {

/// Why a text is not valid JSON, and at which byte.
struct JsonSyntaxError {
  std::string reason;
  std::size_t at = 0;
};

/// Parses JSON texts (RFC 8259): UTF-8 without comments, nothing after the value, nested at most
/// kMaxJsonDepth deep. Integers of up to 64 bits keep their exact value. All other numbers become
/// the nearest double, or infinity if they are too large for a double. The parser reuses its
/// memory. Not thread-safe.
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
  /// How many values, and names of members, the last text has.
  [[nodiscard]] std::size_t found() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
