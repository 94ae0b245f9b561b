#pragma once

#include <string_view>
#include <utility>

#include "json/json.hpp"

namespace sluice {

// A message of an assistant, as the Responses API has it.

inline json::object text_part(std::string_view text) {
  return {{"type", "output_text"},
          {"text", text},
          {"annotations", json::array()},
          {"logprobs", json::array()}};
}

inline json::object message_item(std::string_view id, std::string_view status,
                                 json::array content) {
  return {{"id", id},
          {"type", "message"},
          {"status", status},
          {"role", "assistant"},
          {"content", std::move(content)}};
}

}  // namespace sluice
