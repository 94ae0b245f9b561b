#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice {

/// What stands in the place of a secret.
inline constexpr std::string_view kMask = "***";

/// Whether what has this name - a field of a head, a member of an object, an option - is likely to
/// be secret, as `api_key`, `accessToken` and `--password` are. Names of MCP that only look so,
/// such as `progressToken`, are not.
bool sounds_secret(std::string_view name);

/// Whether a text by itself is likely to be a secret: a header's value, or a key that says whose it
/// is.
bool looks_like_secret(std::string_view text);

/// A URL, or the path and query of one, without what may be secret in it: the user information, the
/// values of the query, and the fragment. What follows # of a socket is a path and stays.
std::string masked_url(std::string_view url);

/// A shorter one may be found anywhere by chance.
inline constexpr std::size_t kShortestSecret = 4;

/// What is likely to be secret of what masked_url() leaves out of this URL, if it is not shorter
/// than that: as it stands there, and decoded. Words and short numbers are none, unless their name
/// sounds so.
std::vector<std::string> secrets_in_url(std::string_view url);
/// The same of a header field: its value, what stands behind the name of its kind, and its long
/// parts.
std::vector<std::string> secrets_in_header(std::string_view name, std::string_view value);

/// Secrets, and how each stands in JSON too, as common libraries write it: some escape slashes,
/// some signs (\u002B), and some all characters that are not ASCII (\u00e4).
std::vector<std::string> as_in_json(std::vector<std::string> secrets);

/// Masks secrets in texts. Both may be of a server's choice, so this is the algorithm of Aho and
/// Corasick: it takes time for each character, whatever the texts and however many the secrets are.
class SecretMask {
 public:
  SecretMask() = default;
  explicit SecretMask(const std::vector<std::string>& secrets);

  [[nodiscard]] bool empty() const { return nodes_.empty(); }
  /// `text` with a mask in place of each secret; one for those that overlap or touch.
  [[nodiscard]] std::string masked(std::string text) const;

 private:
  /// The beginning of a secret.
  struct Node {
    unsigned char last = 0;      // its last character
    std::uint16_t children = 0;  // so many have one character more
    std::uint32_t first = 0;     // the first of them; the others follow, by their last character
    std::uint32_t shorter = 0;   // the longest other beginning that ends this one
    std::uint32_t longest = 0;   // the length of the longest secret that ends this one; 0: none
  };

  /// The node that one more character leads to from this one; the root, 0, if there is none.
  [[nodiscard]] std::uint32_t child(std::uint32_t node, char c) const;
  /// The longest beginning of a secret that ends a text, if `node` was it before the character.
  [[nodiscard]] std::uint32_t step(std::uint32_t node, char c) const;

  std::vector<Node> nodes_;            // by length, the root first; none if there are no secrets
  std::vector<std::uint32_t> starts_;  // the children of the root, for each character; 0: none
};

/// The secrets of a place, as they stand and in JSON: those that are known from the beginning, and
/// others, such as access tokens, that become known. Thread-safe.
class KnownSecrets {
 public:
  explicit KnownSecrets(std::vector<std::string> secrets = {});

  /// Of what is added, the last are remembered: kMaxAdded, of kMaxAddedBytes in all, with how they
  /// stand in JSON, if they are more than one.
  void add(const std::vector<std::string>& secrets);
  /// For all that are known now.
  [[nodiscard]] std::shared_ptr<const SecretMask> mask() const;

  static constexpr std::size_t kMaxAdded = 8;
  static constexpr std::size_t kMaxAddedBytes = std::size_t{64} << 10U;

 private:
  const std::vector<std::string> first_;
  mutable std::mutex mutex_;
  std::deque<std::string> added_;
  std::shared_ptr<const SecretMask> mask_;
};

/// As masked_url(), of a word that may be meant as a URL: user information with a password goes
/// also if there is no scheme before it.
std::string masked_word(std::string_view word);

}  // namespace sluice
