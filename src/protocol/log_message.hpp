#pragma once

#include <string>

#include "json/json.hpp"

namespace sluice {

/// The text of a content block (ContentBlock): of a text or of an embedded text resource, and of
/// others what they are, in brackets.
std::string text_of_block(const json::value& block);

/// The text of `params` of notifications/message, in both forms that servers use: `data` as text or
/// a text block, and `content` as blocks. Empty: there is none.
std::string text_of_log_message(const json::object& params);

}  // namespace sluice
