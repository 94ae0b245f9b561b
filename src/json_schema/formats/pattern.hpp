#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace re2 {
class RE2;
}

#include "json_schema/formats/ecma.hpp"

namespace sluice {

/// A regular expression of a schema. See translate_ecma_regex() for what it may contain. Immutable;
/// any thread may match with it.
class JsonPattern {
 public:
  /// Compiles `source`. The compiled expression and its matching caches take at most about
  /// `max_memory` bytes. Takes from `work` what compiling costs, in about 0.1
  /// microseconds; an expression for which too little is left is refused.
  static std::expected<JsonPattern, RegexError> compile(std::string_view source,
                                                        std::size_t max_memory,
                                                        std::uint64_t& work);
  JsonPattern(JsonPattern&&) noexcept;
  JsonPattern& operator=(JsonPattern&&) noexcept;
  ~JsonPattern();

  /// Whether `text`, which must be valid UTF-8, contains a match. Takes time linear in its size.
  bool matches(std::string_view text) const;
  /// The cost at worst of matching a text of `size` bytes, in steps of a WorkBudget.
  std::uint64_t cost(std::size_t size) const;
  /// The expression as written in the schema.
  const std::string& source() const { return source_; }

 private:
  struct Part {
    std::unique_ptr<re2::RE2> expression;
    bool wanted = true;
  };

  JsonPattern(std::string source, std::vector<Part> parts, std::uint64_t visits);

  std::string source_;
  std::vector<Part> parts_;
  std::uint64_t visits_;  // TranslatedRegex::visits
};

}  // namespace sluice
