#include "core/text/secrets.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "core/text/text.hpp"

namespace sluice {

bool sounds_secret(std::string_view name) {
  static constexpr std::array<std::string_view, 12> kWords = {
      {"key", "token", "secret", "pass", "pwd", "authorization", "bearer", "cred", "cookie", "jwt",
       "dpop", "assertion"}};
  static constexpr std::array<std::string_view, 4> kHarmless = {
      {"progresstoken", "maxtokens", "max_tokens", "keywords"}};
  const std::string lower = to_lower(name);
  if (std::ranges::find(kHarmless, lower) != kHarmless.end()) return false;
  // "author" is no secret.
  return lower.ends_with("auth") ||
         std::ranges::any_of(kWords, [&](std::string_view word) { return lower.contains(word); });
}

bool looks_like_secret(std::string_view text) {
  static constexpr std::array<std::string_view, 10> kBeginnings = {
      {"bearer ", "basic ", "sk-", "ghp_", "gho_", "github_pat_", "glpat-", "xox", "akia", "eyj"}};
  const std::string lower = to_lower(text);
  return std::ranges::any_of(kBeginnings,
                             [&](std::string_view each) { return lower.starts_with(each); });
}

std::string masked_url(std::string_view url) {
  const bool is_socket = url.starts_with("unix:") || url.starts_with("http+unix:");
  if (!is_socket) url = url.substr(0, url.find('#'));
  std::string out;
  const auto scheme = url.find("://");
  if (scheme != std::string_view::npos) {
    const auto begin = scheme + 3;
    const auto end = std::min(url.find_first_of("/?#", begin), url.size());
    const auto at = url.substr(begin, end - begin).rfind('@');
    out.append(url.substr(0, begin));
    if (at != std::string_view::npos) out.append(kMask).append("@");
    url.remove_prefix(at == std::string_view::npos ? begin : begin + at + 1);
  }
  const auto question = std::min(url.find('?'), url.size());
  out.append(url.substr(0, question));
  url.remove_prefix(question);
  while (!url.empty()) {  // each begins with ? or &
    const auto end = std::min(url.find('&', 1), url.size());
    const std::string_view pair = url.substr(0, end);
    const auto equals = std::min(pair.find('='), pair.size());
    out.append(pair.substr(0, equals));
    if (equals < pair.size()) out.append("=").append(kMask);
    url.remove_prefix(end);
  }
  return out;
}

std::string masked_word(std::string_view word) {
  const bool is_socket = word.starts_with("unix:") || word.starts_with("http+unix:");
  const std::string_view authority = word.substr(0, word.find_first_of("/?#"));
  const auto colon = authority.find(':');
  const auto at = authority.rfind('@');
  const bool has_password = !is_socket && at != std::string_view::npos && colon < at;
  if (!has_password) return masked_url(word);
  return std::string(kMask) + masked_url(word.substr(at));
}

}  // namespace sluice
