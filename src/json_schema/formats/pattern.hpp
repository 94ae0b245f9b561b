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

namespace sluice {

/// A regular expression of a schema: see translate_ecma_regex for what it may contain. Immutable;
/// any thread may match with it.
class JsonPattern {
 public:
  /// Compiles `source` into at most about `max_memory` bytes, which also bound what matching
  /// caches. Errors are a phrase that says what is wrong with it.
  static std::expected<JsonPattern, std::string> compile(std::string_view source,
                                                         std::size_t max_memory);
  JsonPattern(JsonPattern&&) noexcept;
  JsonPattern& operator=(JsonPattern&&) noexcept;
  ~JsonPattern();

  /// Whether `text` (valid UTF-8) contains a match. Takes time linear in its size.
  bool matches(std::string_view text) const;
  /// What matching a text of `size` bytes costs at worst, in steps of a WorkBudget.
  std::uint64_t cost(std::size_t size) const;
  /// As the schema writes it.
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
