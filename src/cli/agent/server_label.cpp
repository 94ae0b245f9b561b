#include "cli/agent/server_label.hpp"

#include <algorithm>

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

}  // namespace sluice
