#include "cli/agent/server_label.hpp"

#include <algorithm>

#include "core/crypto/digest.hpp"
#include "json/json.hpp"
#include "net/http/url.hpp"

namespace sluice {

std::string server_label(std::string_view word, const std::vector<std::string>& taken) {
  const Result<Url> url = parse_url(word);
  // What is no URL may end with one: http+unix:SOCKET#/path?query.
  const std::string label =
      url ? url->authority() : std::string(word.substr(0, word.find_first_of("#?")));
  std::string numbered = label;
  for (int i = 2; std::ranges::find(taken, numbered) != taken.end(); ++i)
    numbered = label + "-" + std::to_string(i);
  return numbered;
}

std::string server_identity(const TargetArguments& target) {
  if (target.word.empty()) {
    json::array words;
    for (const std::string& word : target.command) words.emplace_back(word);
    return sha256_hex(to_json(words));
  }
  const Result<Url> url = parse_url(target.word);
  const std::string text = url ? url->to_string() : target.word;
  return sha256_hex(text.substr(0, text.find('?')));
}

}  // namespace sluice
