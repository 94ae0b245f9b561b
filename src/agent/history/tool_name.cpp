#include "agent/history/tool_name.hpp"

#include "core/text/text.hpp"

namespace sluice {

std::string name_for_model(std::string_view name) {
  std::string out(name.substr(0, kMaxNameForModel));
  for (char& c : out) {
    if (!is_letter(c) && !is_digit(c) && c != '_' && c != '-') c = '_';
  }
  return out.empty() ? "tool" : out;
}

}  // namespace sluice
