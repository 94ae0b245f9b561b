#pragma once

#include <cstdint>
#include <string>

#include "core/error.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {

/// Why an answer that ended in a call of a tool (AnswerReader::Ending::cut_call) has none to give:
/// `because`, which also says what to do.
inline Error cut_call_error(const std::string& because) {
  return {kLimitReached, "The answer was cut off in a tool call, because " + because};
}

/// The same at its limit.
inline Error cut_call_at_limit(std::uint32_t max_tokens) {
  return cut_call_error("it reached max_tokens, which is " + std::to_string(max_tokens) +
                        "; raise it");
}

}  // namespace sluice
