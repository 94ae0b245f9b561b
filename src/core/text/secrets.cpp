#include "core/text/secrets.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "core/text/base64.hpp"
#include "core/text/json_escape.hpp"
#include "core/text/percent_encoding.hpp"
#include "core/text/text.hpp"
#include "core/text/utf8.hpp"

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

namespace {

/// Whether a part of a query without a value is more likely a word than a key.
bool is_flag(std::string_view name) {
  constexpr std::size_t kLongest = 15;
  return name.size() <= kLongest && std::ranges::none_of(name, is_digit);
}

/// Whether the value of a query is more likely a word or a short number than a key.
bool is_harmless(std::string_view value) {
  constexpr std::size_t kLongestNumber = 7;
  return is_flag(value) || (value.size() <= kLongestNumber && std::ranges::all_of(value, is_digit));
}

/// The user and the password of an Authorization field of the kind Basic (RFC 7617).
std::optional<std::string> basic_credentials(std::string_view value) {
  constexpr std::string_view kBasic = "basic ";
  if (!to_lower(value.substr(0, kBasic.size())).starts_with(kBasic)) return std::nullopt;
  // Servers take it without padding, too.
  std::string encoded(value.substr(kBasic.size()));
  encoded.append((4 - encoded.size() % 4) % 4, '=');
  std::optional<std::string> pair = decode_base64(encoded);
  if (!pair || !pair->contains(':')) return std::nullopt;
  return pair;
}

/// Whether a scheme and a host come first, with a port that is a number or user information.
bool has_host(std::string_view url) {
  const auto scheme = url.find("://");
  if (scheme == std::string_view::npos) return false;
  const std::string_view rest = url.substr(scheme + 3);
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
  const auto colon = authority.rfind(':');
  if (authority.contains('@') || colon == std::string_view::npos) return true;
  return std::ranges::all_of(authority.substr(colon + 1), is_digit);
}

}  // namespace

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
    if (equals < pair.size()) {
      out.append(pair.substr(0, equals)).append("=").append(kMask);
    } else {
      out.append(is_flag(pair.substr(1)) ? pair : std::string(pair.substr(0, 1)).append(kMask));
    }
    url.remove_prefix(end);
  }
  return out;
}

std::vector<std::string> secrets_in_url(std::string_view url) {
  std::vector<std::string> secrets;
  const auto add = [&secrets](std::string_view secret) {
    if (secret.size() < kShortestSecret) return;
    secrets.emplace_back(secret);
    // Servers repeat it as they have read it.
    for (const auto& decoded : {percent_decode(secret), form_decode(secret)}) {
      if (!decoded || decoded->size() < kShortestSecret) continue;
      if (std::ranges::find(secrets, *decoded) == secrets.end()) secrets.push_back(*decoded);
    }
  };
  url = url.substr(0, url.find('#'));
  const auto scheme = url.find("://");
  const auto begin = scheme == std::string_view::npos ? 0 : scheme + 3;
  const auto end = std::min(url.find_first_of("/?", begin), url.size());
  const std::string_view authority = url.substr(begin, end - begin);
  if (const auto at = authority.rfind('@'); at != std::string_view::npos) {
    const std::string_view user = authority.substr(0, at);
    add(user.substr(user.find(':') == std::string_view::npos ? 0 : user.find(':') + 1));
  }
  std::string_view query = url.substr(std::min(url.find('?'), url.size()));
  while (!query.empty()) {
    const auto next = std::min(query.find('&', 1), query.size());
    const std::string_view pair = query.substr(1, next - 1);
    const auto equals = pair.find('=');
    const std::string_view value =
        equals == std::string_view::npos ? pair : pair.substr(equals + 1);
    const bool is_named = equals != std::string_view::npos && sounds_secret(pair.substr(0, equals));
    if (is_named || !is_harmless(value)) add(value);
    query.remove_prefix(next);
  }
  return secrets;
}

std::vector<std::string> secrets_in_header(std::string_view name, std::string_view value) {
  constexpr std::size_t kLongPart = 8;
  std::vector<std::string> secrets;
  const auto add = [&secrets](std::string_view secret, std::size_t least) {
    if (secret.size() >= least) secrets.emplace_back(secret);
  };
  if (!sounds_secret(name)) {
    if (!is_harmless(value)) add(value, kLongPart);
    return secrets;
  }
  add(value, kShortestSecret);
  add(value.substr(value.rfind(' ') + 1), kShortestSecret);
  if (const auto pair = basic_credentials(value)) {
    add(*pair, kShortestSecret);
    add(std::string_view(*pair).substr(pair->find(':') + 1), kShortestSecret);
  }
  while (!value.empty()) {
    const auto end = std::min(value.find_first_of(" ;,="), value.size());
    const std::string_view part = value.substr(0, end);
    add(part, is_harmless(part) ? kLongPart : kShortestSecret);
    value.remove_prefix(std::min(end + 1, value.size()));
  }
  return secrets;
}

namespace {

/// What a library escapes in the strings of JSON.
struct JsonStyle {
  std::string_view escaped = {};  // these characters
  std::string_view digits = "0123456789abcdef";
  bool is_ascii = false;  // and all that are not ASCII
};

std::string with_escapes(std::string_view text, const JsonStyle& style) {
  std::string out;
  const auto append = [&](char32_t unit) {
    out.append("\\u");
    for (const unsigned shift : {12U, 8U, 4U, 0U}) out.push_back(style.digits[unit >> shift & 15U]);
  };
  while (!text.empty()) {
    const Utf8Part part = first_utf8_part(text);
    const std::string_view character = text.substr(0, part.length);
    text.remove_prefix(part.length);
    const bool is_escaped =
        part.length > 1 ? style.is_ascii : style.escaped.contains(character.front());
    if (!part.valid || !is_escaped) {
      out.append(character);
      continue;
    }
    const char32_t code = code_point_of(character);
    constexpr char32_t kPairs = 0x10000;  // from here on, two surrogates
    if (code < kPairs) {
      append(code);
    } else {
      append(0xd800 + ((code - kPairs) >> 10U));
      append(0xdc00 + ((code - kPairs) & 0x3ffU));
    }
  }
  return out;
}

}  // namespace

std::vector<std::string> as_in_json(std::vector<std::string> secrets) {
  for (std::size_t i = 0, given = secrets.size(); i < given; ++i) {
    const std::size_t first = secrets.size();
    std::string escaped;
    append_json_escaped(escaped, secrets[i]);
    std::string slashed;
    for (const char c : escaped) {
      if (c == '/') slashed.push_back('\\');
      slashed.push_back(c);
    }
    std::string doubled;
    for (const char c : secrets[i]) doubled.append(c == '\\' ? 2 : 1, c);
    // System.Text.Json of .NET, encoding/json of Go, Gson and Jackson of Java, json of Python, PHP.
    constexpr std::string_view kCapitals = "0123456789ABCDEF";
    const JsonStyle dotnet{.escaped = "\"&'+<>`", .digits = kCapitals, .is_ascii = true};
    std::array<std::string, 8> forms = {
        escaped,
        slashed,
        with_escapes(doubled, dotnet),
        with_escapes(escaped, {.escaped = "&<>"}),
        with_escapes(escaped, {.escaped = "&'<=>"}),
        with_escapes(escaped, {.is_ascii = true}),
        with_escapes(escaped, {.digits = kCapitals, .is_ascii = true}),
        with_escapes(slashed, {.is_ascii = true}),
    };
    for (std::string& form : forms) {
      // Most are all the same.
      const auto begin = secrets.begin() + static_cast<std::ptrdiff_t>(first);
      const bool is_new =
          form != secrets[i] && std::find(begin, secrets.end(), form) == secrets.end();
      if (is_new) secrets.push_back(std::move(form));
    }
  }
  return secrets;
}

SecretMask::SecretMask(const std::vector<std::string>& secrets) {
  std::vector<std::string_view> sorted(secrets.begin(), secrets.end());
  std::ranges::sort(sorted);
  const auto first_secret =
      std::ranges::find_if(sorted, [](std::string_view secret) { return !secret.empty(); });
  sorted.erase(sorted.begin(), first_secret);
  if (sorted.empty()) return;
  // The secrets with the same beginning stand together.
  struct Range {
    std::size_t first;
    std::size_t last;
    std::uint32_t length;  // of the beginning
  };
  std::vector<Range> ranges = {{.first = 0, .last = sorted.size(), .length = 0}};
  nodes_.emplace_back();
  starts_.resize(256);
  // By length: what ends a beginning is shorter.
  for (std::uint32_t node = 0; node < ranges.size(); ++node) {
    const Range range = ranges[node];
    nodes_[node].first = static_cast<std::uint32_t>(nodes_.size());
    std::size_t at = range.first;
    while (at < range.last && sorted[at].size() == range.length) ++at;
    while (at < range.last) {
      const char c = sorted[at][range.length];
      const bool is_whole = sorted[at].size() == range.length + 1;
      std::size_t end = at;
      while (end < range.last && sorted[end][range.length] == c) ++end;
      Node made{.last = static_cast<unsigned char>(c)};
      if (node != 0) made.shorter = step(nodes_[node].shorter, c);
      made.longest = is_whole ? range.length + 1 : nodes_[made.shorter].longest;
      if (node == 0) starts_[made.last] = static_cast<std::uint32_t>(nodes_.size());
      nodes_.push_back(made);
      ++nodes_[node].children;
      ranges.push_back({.first = at, .last = end, .length = range.length + 1});
      at = end;
    }
  }
}

std::uint32_t SecretMask::child(std::uint32_t node, char c) const {
  const auto wanted = static_cast<unsigned char>(c);
  if (node == 0) return starts_[wanted];
  const auto children = std::span(nodes_).subspan(nodes_[node].first, nodes_[node].children);
  const auto found = std::ranges::lower_bound(children, wanted, {}, &Node::last);
  if (found == children.end() || found->last != wanted) return 0;
  return nodes_[node].first + static_cast<std::uint32_t>(found - children.begin());
}

std::uint32_t SecretMask::step(std::uint32_t node, char c) const {
  for (;;) {
    const std::uint32_t next = child(node, c);
    if (next != 0 || node == 0) return next;
    node = nodes_[node].shorter;
  }
}

std::string SecretMask::masked(std::string text) const {
  if (empty()) return text;
  struct Part {
    std::size_t begin;
    std::size_t end;
  };
  std::vector<Part> found;  // in order; they neither overlap nor touch
  std::uint32_t node = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    node = step(node, text[i]);
    if (nodes_[node].longest == 0) continue;
    Part part{.begin = i + 1 - nodes_[node].longest, .end = i + 1};
    while (!found.empty() && found.back().end >= part.begin) {
      part.begin = std::min(part.begin, found.back().begin);
      found.pop_back();
    }
    found.push_back(part);
  }
  if (found.empty()) return text;
  std::string out;
  std::size_t shown = 0;  // of the text
  for (const Part& part : found) {
    out.append(text, shown, part.begin - shown).append(kMask);
    shown = part.end;
  }
  return out.append(text, shown);
}

KnownSecrets::KnownSecrets(std::vector<std::string> secrets)
    : first_(as_in_json(std::move(secrets))), mask_(std::make_shared<SecretMask>(first_)) {}

void KnownSecrets::add(const std::vector<std::string>& secrets) {
  const std::lock_guard lock(mutex_);
  const auto is_known = [this](const std::string& secret) {
    return std::ranges::find(added_, secret) != added_.end();
  };
  // Most requests bring the same.
  if (std::ranges::all_of(secrets, is_known)) return;
  for (const std::string& secret : secrets) {
    if (!is_known(secret)) added_.push_back(secret);
  }
  std::vector<std::string> all;
  const auto is_too_much = [&] {
    all = as_in_json({added_.begin(), added_.end()});
    std::size_t bytes = 0;
    for (const std::string& each : all) bytes += each.size();
    return added_.size() > kMaxAdded || (added_.size() > 1 && bytes > kMaxAddedBytes);
  };
  while (is_too_much()) added_.pop_front();
  all.insert(all.end(), first_.begin(), first_.end());
  mask_ = std::make_shared<SecretMask>(all);
}

std::shared_ptr<const SecretMask> KnownSecrets::mask() const {
  const std::lock_guard lock(mutex_);
  return mask_;
}

std::string masked_word(std::string_view word) {
  const bool is_socket = word.starts_with("unix:") || word.starts_with("http+unix:");
  // A password may have characters that end an authority, and so make the URL none.
  const auto last = word.rfind('@');
  const bool is_web = word.starts_with("http") && !is_socket && last != std::string_view::npos;
  if (is_web && word.substr(0, last).contains(':') && !has_host(word)) {
    return std::string(kMask) + masked_url(word.substr(last));
  }
  const std::string_view authority = word.substr(0, word.find_first_of("/?#"));
  const auto colon = authority.find(':');
  const auto at = authority.rfind('@');
  const bool has_password = !is_socket && at != std::string_view::npos && colon < at;
  if (!has_password) return masked_url(word);
  return std::string(kMask) + masked_url(word.substr(at));
}

}  // namespace sluice
