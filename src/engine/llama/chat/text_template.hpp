#pragma once

#include <memory>

#include "core/error.hpp"
#include "engine/chat/chat_template.hpp"

namespace sluice {

/// A template for a model of another runtime, which takes text: what looks like a control token in
/// messages and tools gets U+200B behind its first character. `text` has a template. Error: 422, it
/// cannot be used, and why.
Result<std::shared_ptr<const ChatTemplate>> make_chat_template(const ChatTemplateText& text);

}  // namespace sluice
