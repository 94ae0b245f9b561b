#include "json_schema/formats/pattern.hpp"

#include <algorithm>
#include <re2/re2.h>
#include <utility>

#include "json_schema/formats/ecma.hpp"

namespace sluice {
namespace {

std::string describe_error(const re2::RE2& expression) {
  switch (expression.error_code()) {
    case re2::RE2::ErrorPatternTooLarge:
      return "it is too large once compiled";
    case re2::RE2::ErrorRepeatSize:
      return "it repeats too often: at most 1000 times when repetitions are nested";
    case re2::RE2::ErrorBadCharRange:
      return "it has a character range or class that is not supported";
    default:
      return "it is not supported";
  }
}

std::unexpected<RegexError> unsupported(std::string why) {
  return std::unexpected(RegexError{.message = std::move(why), .may_be_valid = true});
}

constexpr const char* kTooMuch = "compiling it takes too long";

bool spend(std::uint64_t& work, std::uint64_t cost) {
  if (cost > work) return false;
  work -= cost;
  return true;
}

}  // namespace

JsonPattern::JsonPattern(std::string source, std::vector<Part> parts, std::uint64_t visits)
    : source_(std::move(source)), parts_(std::move(parts)), visits_(visits) {}
JsonPattern::JsonPattern(JsonPattern&&) noexcept = default;
JsonPattern& JsonPattern::operator=(JsonPattern&&) noexcept = default;
JsonPattern::~JsonPattern() = default;

std::expected<JsonPattern, RegexError> JsonPattern::compile(std::string_view source,
                                                            std::size_t max_memory,
                                                            std::uint64_t& work) {
  std::expected<TranslatedRegex, RegexError> translated = translate_ecma_regex(source);
  if (!translated) return std::unexpected(std::move(translated).error());
  if (!spend(work, translated->work)) return unsupported(kTooMuch);

  re2::RE2::Options options(re2::RE2::Quiet);
  options.set_never_capture(true);
  options.set_max_mem(static_cast<std::int64_t>(max_memory / translated->parts.size()));
  std::vector<Part> parts;
  for (const RegexPart& part : translated->parts) {
    auto expression = std::make_unique<re2::RE2>(part.expression, options);
    if (!expression->ok()) return unsupported(describe_error(*expression));
    constexpr std::uint64_t kWorkOfInstruction = 5;
    const auto size = static_cast<std::uint64_t>(expression->ProgramSize());
    if (!spend(work, size * kWorkOfInstruction)) return unsupported(kTooMuch);
    parts.push_back({std::move(expression), part.wanted});
  }
  return JsonPattern(std::string(source), std::move(parts), translated->visits);
}

bool JsonPattern::matches(std::string_view text) const {
  return std::ranges::all_of(parts_, [text](const Part& part) {
    return re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *part.expression) ==
           part.wanted;
  });
}

std::uint64_t JsonPattern::cost(std::size_t size) const {
  // A visit takes 3 to 8 ns when a text reaches all states of the expression, and 20 ns if the
  // states match many characters.
  constexpr std::uint64_t kVisitsPerStep = 4;
  return 1 + static_cast<std::uint64_t>(size) * visits_ / kVisitsPerStep;
}

}  // namespace sluice
