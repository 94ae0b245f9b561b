#include "engine/llama/chat/call_arguments.hpp"

#include <string>
#include <utility>
#include <vector>

#include "json/json.hpp"
#include "json/parser.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {

Result<void> read_call_arguments(GenerationRequest& request, MemberBudget& budget) {
  JsonParser parser;
  std::size_t left = kMaxCallValues;
  for (std::size_t i = 0; i < request.messages.size(); ++i) {
    std::vector<ChatToolCall>& calls = request.messages[i].tool_calls;
    for (std::size_t j = 0; j < calls.size(); ++j) {
      const std::string at = "the arguments of messages[" + std::to_string(i) + "].tool_calls[" +
                             std::to_string(j) + "]";
      const auto arguments = parser.parse(calls[j].arguments, {}, left);
      if (!arguments && parser.values() > left) {
        return fail(kInvalidParams,
                    at + " are too many: those of all calls together may have 65536 values and "
                         "names; leave out calls or arguments");
      }
      if (!arguments || !arguments->is_object()) {
        return fail(kInvalidParams,
                    at + " must be an object, or the JSON text of one, of at most 128 levels" +
                        (arguments ? "" : ": " + arguments.error().reason));
      }
      left -= parser.values();
      if (auto spent = budget.spend(*arguments, at); !spent) return spent;
      calls[j].arguments = to_json(*arguments);
    }
  }
  return {};
}

}  // namespace sluice
