#pragma once

#include <cstddef>
#include <string>
#include <string_view>
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

/// Masks secrets in texts. Both may be of a server's choice, so this is the algorithm of Knuth,
/// Morris and Pratt: it takes time for each character and each secret, whatever they are.
class SecretMask {
 public:
  SecretMask() = default;
  explicit SecretMask(std::vector<std::string> secrets);

  [[nodiscard]] bool empty() const { return words_.empty(); }
  /// `text` with a mask in place of each secret; one for those that overlap or touch.
  [[nodiscard]] std::string masked(std::string text) const;

 private:
  struct Word {
    std::string text;
    /// For each length: how long a shorter beginning of the word is that ends its beginning of
    /// that length.
    std::vector<std::size_t> borders;
    /// A text ends with the first `matched` characters of the word. Returns with how many it ends
    /// once `next` is added.
    [[nodiscard]] std::size_t grow(std::size_t matched, char next) const;
  };

  /// Marks the characters of `text` that belong to `word`. `is_secret` is empty before the first.
  static void find_all(const Word& word, std::string_view text, std::vector<bool>& is_secret);

  std::vector<Word> words_;
};

/// The same of a word that may be meant as a URL: user information with a password goes also if
/// there is no scheme before it.
std::string masked_word(std::string_view word);

}  // namespace sluice
