#include "client/authorization/challenge.hpp"

#include <algorithm>
#include <cstddef>

#include "core/text/text.hpp"

namespace sluice {
namespace {

constexpr std::size_t kMaxChallenges = 16;
constexpr std::size_t kMaxParameters = 32;
constexpr std::size_t kMaxScopes = 256;

/// Reads the grammar of challenges from the front of a text.
class ChallengeReader {
 public:
  explicit ChallengeReader(std::string_view text) : rest_(text) {}

  [[nodiscard]] bool is_done() const { return rest_.empty(); }
  void skip_blanks() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t')) {
      rest_.remove_prefix(1);
    }
  }
  void skip_separators() {
    while (!rest_.empty() &&
           (rest_.front() == ' ' || rest_.front() == '\t' || rest_.front() == ',')) {
      rest_.remove_prefix(1);
    }
  }
  /// Skips to what follows the next comma outside of quotes.
  void skip_element() {
    bool quoted = false;
    std::size_t at = 0;
    for (; at < rest_.size() && (quoted || rest_[at] != ','); ++at) {
      if (rest_[at] == '"') quoted = !quoted;
      if (quoted && rest_[at] == '\\') ++at;
    }
    rest_.remove_prefix(std::min(at + 1, rest_.size()));
  }
  std::string_view token() {
    std::size_t size = 0;
    while (size < rest_.size() && is_token_char(rest_[size])) ++size;
    const std::string_view out = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return out;
  }
  bool take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  [[nodiscard]] char peek() const { return rest_.empty() ? '\0' : rest_.front(); }
  /// A token or a quoted string. Quotes that do not end take all that is left.
  std::string value() {
    if (!take('"')) return std::string(token());
    std::string out;
    while (!rest_.empty() && !take('"')) {
      take('\\');
      if (rest_.empty()) break;
      out.push_back(rest_.front());
      rest_.remove_prefix(1);
    }
    return out;
  }
  /// Whether what follows is `token "="`, and not the padding of a token68.
  [[nodiscard]] bool has_parameter() const {
    ChallengeReader ahead(rest_);
    if (ahead.token().empty()) return false;
    ahead.skip_blanks();
    if (!ahead.take('=')) return false;
    ahead.skip_blanks();
    return ahead.peek() == '"' || is_token_char(ahead.peek());
  }

 private:
  std::string_view rest_;
};

}  // namespace

std::string_view AuthChallenge::parameter(std::string_view name) const {
  const auto found =
      std::ranges::find(parameters, name, &std::pair<std::string, std::string>::first);
  return found == parameters.end() ? std::string_view() : found->second;
}

std::vector<AuthChallenge> parse_challenges(std::string_view value) {
  std::vector<AuthChallenge> out;
  ChallengeReader reader(value);
  for (reader.skip_separators(); !reader.is_done(); reader.skip_separators()) {
    if (reader.has_parameter()) {
      std::string name = to_lower(reader.token());
      reader.skip_blanks();
      reader.take('=');
      reader.skip_blanks();
      std::string text = reader.value();
      // A parameter before any scheme belongs to nothing.
      if (out.empty() || out.back().parameters.size() >= kMaxParameters) continue;
      if (out.back().parameter(name).data() == nullptr) {
        out.back().parameters.emplace_back(std::move(name), std::move(text));
      }
      continue;
    }
    const std::string_view scheme = reader.token();
    const bool is_scheme = !scheme.empty() && (reader.is_done() || reader.peek() == ' ' ||
                                               reader.peek() == '\t' || reader.peek() == ',');
    if (!is_scheme) {
      reader.skip_element();
      continue;
    }
    if (out.size() == kMaxChallenges) break;
    out.push_back({.scheme = to_lower(scheme), .parameters = {}});
  }
  return out;
}

ServerChallenge read_challenge(const HeaderFields& headers) {
  ServerChallenge out;
  for (const HeaderField& field : headers) {
    if (!equals_ignoring_case(field.name, "WWW-Authenticate")) continue;
    for (const AuthChallenge& challenge : parse_challenges(field.value)) {
      if (challenge.scheme != "bearer" && challenge.scheme != "dpop") continue;
      out.is_present = true;
      (challenge.scheme == "dpop" ? out.has_dpop : out.has_bearer) = true;
      const auto fill = [&challenge](std::string& member, std::string_view name) {
        if (member.empty()) member = challenge.parameter(name);
      };
      fill(out.error, "error");
      fill(out.error_description, "error_description");
      fill(out.resource_metadata, "resource_metadata");
      add_scopes(out.scopes, split_scopes(challenge.parameter("scope")));
    }
  }
  return out;
}

std::vector<std::string> split_scopes(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty() && out.size() < kMaxScopes) {
    const std::size_t space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    if (!word.empty() && std::ranges::find(out, word) == out.end()) out.emplace_back(word);
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
  }
  return out;
}

std::string join_scopes(const std::vector<std::string>& scopes) {
  std::string out;
  for (const std::string& scope : scopes) {
    if (!out.empty()) out.push_back(' ');
    out.append(scope);
  }
  return out;
}

void add_scopes(std::vector<std::string>& scopes, const std::vector<std::string>& more) {
  for (const std::string& scope : more) {
    if (std::ranges::find(scopes, scope) == scopes.end()) scopes.push_back(scope);
  }
}

}  // namespace sluice
