#include "engine/openai/answer_repairs.hpp"

#include <array>
#include <string_view>
#include <utility>

namespace sluice {
namespace {

constexpr std::array<std::pair<Repair, std::string_view>, 7> kTexts = {{
    {Repair::call_index, "calls without an index of their own"},
    {Repair::call_id, "calls without an id of their own"},
    {Repair::call_name, "the name of a call in each of its pieces"},
    {Repair::call_arguments, "arguments of a call that are no JSON object"},
    {Repair::call_item, "pieces of calls that are not announced or not named"},
    {Repair::finish_reason, "answers that do not say why they end"},
    {Repair::text, "what is said only at the end"},
}};

}  // namespace

std::string AnswerRepairs::to_string() const {
  std::string out;
  for (const auto& [repair, text] : kTexts) {
    if (has(repair)) out.append(out.empty() ? "" : ", ").append(text);
  }
  return out;
}

}  // namespace sluice
