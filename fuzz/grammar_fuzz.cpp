// A request's grammar. Neither parsing nor following it may take long, whatever it is. The first
// line of the input is a text to follow, the rest is the grammar.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "engine/grammar/grammar.hpp"
#include "engine/grammar/grammar_matcher.hpp"

namespace {

constexpr std::size_t kMostCharacters = 24;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t line = input.find('\n');
  if (line == std::string_view::npos) return 0;
  auto grammar = sluice::Grammar::parse(input.substr(line + 1));
  if (!grammar) return 0;
  sluice::GrammarMatcher matcher(std::make_shared<const sluice::Grammar>(std::move(*grammar)),
                                 {.work = 20'000, .positions = 2000, .kept = 500});
  auto state = matcher.start();
  for (const char c : input.substr(0, std::min(line, kMostCharacters))) {
    if (matcher.exhausted()) return 0;
    state = matcher.begin_token(state);
    const auto code_point = static_cast<unsigned char>(c);
    // Caching results must not change them.
    const auto next = matcher.next(state, code_point);
    if (matcher.exhausted()) return 0;
    if (matcher.next(state, code_point) != next) std::abort();
    if ((next != sluice::GrammarMatcher::kNowhere) !=
        matcher.may_follow(state, code_point, code_point)) {
      // An accepted character leads to kNowhere only if whatever follows can never be accepted.
      if (next != sluice::GrammarMatcher::kNowhere) std::abort();
    }
    state = next;
  }
  return 0;
}
