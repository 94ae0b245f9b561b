#pragma once

#include <string>
#include <vector>

#include "sluice/chat.hpp"

namespace sluice::rkllm {

/// A conversation as one text for a user's turn, for a runtime that puts the model's own template
/// around it, and knows no other turns. A single message of a user is its text alone.
std::string chat_text(const std::vector<ChatMessage>& messages);

}  // namespace sluice::rkllm
