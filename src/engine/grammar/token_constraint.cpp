#include "engine/grammar/token_constraint.hpp"

#include <algorithm>
#include <utility>

#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

/// Triggers of more bytes are not found.
constexpr std::size_t kTriggerWindow = 1024;

constexpr char32_t kHighestCodePoint = 0x10FFFF;
constexpr char32_t kFirstSurrogate = 0xD800;

/// The smallest code point whose encoding has `length` bytes.
char32_t smallest(std::uint8_t length) {
  return length == 2 ? 0x80 : length == 3 ? 0x800 : length == 4 ? 0x10000 : 0;
}

bool has_token(const std::vector<TokenId>& tokens, TokenId token) {
  return std::ranges::find(tokens, token) != tokens.end();
}

bool is_surrogate(char32_t c) {
  return c >= kFirstSurrogate && c <= 0xDFFF;
}

bool is_code_point(char32_t c, std::uint8_t length) {
  return c >= smallest(length) && c <= kHighestCodePoint && !is_surrogate(c);
}

}  // namespace

TokenConstraint::TokenConstraint(AnswerGrammar grammar, std::shared_ptr<const TokenPieces> pieces,
                                 std::set<TokenId> visible)
    : grammar_(std::move(grammar)),
      pieces_(std::move(pieces)),
      visible_(std::move(visible)),
      matcher_(grammar_.grammar),
      here_{.state = matcher_.start()},
      bound_(!grammar_.lazy) {}

Result<void> TokenConstraint::begin() {
  if (auto bounded = work_bounded(); !bounded) return bounded;
  if (grammar_.lazy || grammar_.begun.empty()) return {};
  return take(grammar_.begun);
}

Result<bool> TokenConstraint::allows(TokenId token) {
  here_.state = matcher_.begin_token(here_.state);
  if (has_token(pieces_->ends(), token)) {
    return here_.left == 0 && matcher_.may_end(here_.state);
  }
  const std::string_view bytes = pieces_->bytes_of(token);
  if (bytes.empty() || hidden(token, pieces_->is_control(token))) return false;
  Position position = here_;
  for (const char byte : bytes) {
    position = after(position, byte);
    if (position.state == GrammarMatcher::kNowhere) break;
  }
  const bool possible = fits(position);
  if (auto bounded = work_bounded(); !bounded) return std::unexpected(bounded.error());
  return possible;
}

Result<std::vector<TokenId>> TokenConstraint::allowed() {
  here_.state = matcher_.begin_token(here_.state);
  std::vector<TokenId> tokens;
  if (here_.left == 0 && matcher_.may_end(here_.state)) tokens = pieces_->ends();
  // path[n] is the position after the first n bytes of the last examined piece. The path ends with
  // the first position that does not match.
  std::vector<Position> path = {here_};
  for (const TokenPieces::Piece& piece : pieces_->sorted()) {
    path.resize(std::min<std::size_t>(path.size(), piece.shared + std::size_t{1}));
    const std::string_view bytes = pieces_->bytes(piece);
    while (path.back().state != GrammarMatcher::kNowhere && path.size() <= bytes.size()) {
      path.push_back(after(path.back(), bytes[path.size() - 1]));
    }
    if (fits(path.back()) && !hidden(piece.token, piece.control)) tokens.push_back(piece.token);
  }
  if (auto bounded = work_bounded(); !bounded) return std::unexpected(bounded.error());
  return tokens;
}

bool TokenConstraint::is_over() const {
  return bound_ && here_.left == 0 && matcher_.must_end(here_.state);
}

Result<TokenId> TokenConstraint::choose(
    TokenId first, const std::function<TokenId(std::span<const TokenId>)>& among) {
  TokenId token = first;
  if (bound_) {
    const auto fits = allows(first);
    if (!fits) return std::unexpected(fits.error());
    // Only where the grammar forbids the first choice is it worth examining all tokens.
    if (!*fits) {
      const auto fitting = allowed();
      if (!fitting) return std::unexpected(fitting.error());
      if (fitting->empty()) {
        return fail(kInvalidParams, "no token of the model matches the grammar at this point");
      }
      token = among(*fitting);
    }
  }
  if (auto accepted = accept(token); !accepted) return std::unexpected(std::move(accepted.error()));
  return token;
}

Result<void> TokenConstraint::accept(TokenId token) {
  here_.state = matcher_.begin_token(here_.state);
  if (has_token(pieces_->ends(), token)) return {};
  const std::string_view bytes = pieces_->bytes_of(token);
  if (bound_) return take(bytes);
  std::string rest;
  look_for_trigger(token, bytes, rest);
  return bound_ ? take(rest) : Result<void>();
}

/// Whether a trigger has been found. If so, `rest` is the text from which on the grammar applies.
void TokenConstraint::look_for_trigger(TokenId token, std::string_view bytes, std::string& rest) {
  if (has_token(grammar_.tokens, token)) {
    bound_ = true;
    rest = bytes;
    return;
  }
  seen_ += bytes;
  if (seen_.size() > kTriggerWindow) {
    seen_.erase(0, seen_.size() - kTriggerWindow);
    seen_is_whole_ = false;
  }
  std::size_t start = std::string::npos;
  for (const std::string& word : grammar_.words) start = std::min(start, seen_.find(word));
  const auto flags =
      seen_is_whole_ ? std::regex_constants::match_default : std::regex_constants::match_not_bol;
  for (const std::regex& pattern : grammar_.patterns) {
    std::smatch match;
    if (!std::regex_search(seen_, match, pattern, flags)) continue;
    std::size_t group = 0;
    for (std::size_t i = match.size() - 1; i > 0; --i) {
      if (match.length(i) > 0) group = i;
    }
    start = std::min(start, static_cast<std::size_t>(match.position(group)));
  }
  if (start == std::string::npos) return;
  bound_ = true;
  rest = seen_.substr(start);
  seen_ = {};
}

Result<void> TokenConstraint::take(std::string_view bytes) {
  for (const char byte : bytes) here_ = after(here_, byte);
  if (auto bounded = work_bounded(); !bounded) return bounded;
  if (here_.state != GrammarMatcher::kNowhere) return {};
  return fail(kInvalidParams, "the answer does not match the grammar");
}

TokenConstraint::Position TokenConstraint::after(Position position, char byte) {
  const auto bits = static_cast<unsigned char>(byte);
  Position next{.state = GrammarMatcher::kNowhere};
  if (position.left > 0) {
    if ((bits & 0xC0U) != 0x80U) return next;
    next = position;
    next.begun = position.begun << 6U | (bits & 0x3FU);
    --next.left;
  } else if (bits < 0x80) {
    next = {.state = position.state, .begun = bits, .length = 1};
  } else if (bits >= 0xC2 && bits < 0xF5) {
    const std::uint8_t length = bits < 0xE0 ? 2 : bits < 0xF0 ? 3 : 4;
    return {.state = position.state,
            .begun = bits & (0x7FU >> length),
            .left = static_cast<std::uint8_t>(length - 1),
            .length = length};
  } else {
    return next;
  }
  if (next.left > 0) return next;
  if (!is_code_point(next.begun, next.length)) return {};
  return {.state = matcher_.next(position.state, next.begun)};
}

/// Whether the position is possible. Within a character, whether some character can continue like
/// this.
bool TokenConstraint::fits(const Position& position) {
  if (position.state == GrammarMatcher::kNowhere) return false;
  if (position.left == 0) return true;
  const unsigned bits = 6U * position.left;
  char32_t low = position.begun << bits;
  char32_t high = low | ((char32_t{1} << bits) - 1);
  high = std::min(high, kHighestCodePoint);
  low = std::max(low, smallest(position.length));
  // The surrogates are the end of the characters that begin with 0xED.
  if (is_surrogate(high)) high = kFirstSurrogate - 1;
  return low <= high && matcher_.may_follow(position.state, low, high);
}

bool TokenConstraint::hidden(TokenId token, bool control) const {
  return control && !visible_.contains(token);
}

Result<void> TokenConstraint::work_bounded() const {
  if (!matcher_.exhausted()) return {};
  return fail(kInvalidParams,
              "the grammar is too ambiguous: it allows too many continuations, which cannot all "
              "be followed; use fewer optional parts in a row, and alternatives that begin "
              "differently");
}

}  // namespace sluice
