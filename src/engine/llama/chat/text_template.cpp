#include "engine/llama/chat/text_template.hpp"

#include <algorithm>
#include <exception>
#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/log/log.hpp"
#include "engine/llama/chat/call_arguments.hpp"
#include "engine/llama/chat/chat_format.hpp"
#include "engine/llama/model/llama_log.hpp"
#include "net/http/status_codes.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

/// Stands between the first character of a control token's text and the rest, so that it stays
/// text. Nobody sees it.
constexpr std::string_view kZeroWidthSpace = "\u200B";

/// The tokens that answers may have, with tools and without. Throws if the template does not even
/// render one message.
std::set<std::string, std::less<>> tokens_of_answers(const ChatFormat& format) {
  std::set<std::string, std::less<>> out;
  GenerationRequest sample;
  sample.prompt = "Hello";
  for (const std::string_view tools : {"", R"([{"name":"f"}])"}) {
    sample.tools = tools;
    if (auto prompt = format.render(sample)) {
      out.insert(prompt->visible_tokens.begin(), prompt->visible_tokens.end());
    } else if (tools.empty()) {
      throw std::runtime_error("it refuses a single message of a user");
    }
  }
  return out;
}

class TextTemplate final : public ChatTemplate {
 public:
  explicit TextTemplate(const ChatTemplateText& text)
      : format_(nullptr, text), hidden_(text.special_tokens.begin(), text.special_tokens.end()) {
    for (const std::string& token : tokens_of_answers(format_)) {
      needs_special_tokens_ |= hidden_.erase(token) != 0;
    }
  }

  [[nodiscard]] Result<RenderedChat> render(GenerationRequest request) const override {
    const LlamaGuard guard;
    try {
      MemberBudget budget;
      if (auto read = read_call_arguments(request, budget); !read) {
        return std::unexpected(std::move(read).error());
      }
      Result<ChatPrompt> prompt = format_.render(request, budget);
      if (!prompt) return std::unexpected(std::move(prompt).error());
      prompt->reader.stops = std::move(request.stop);
      return RenderedChat{.text = format_.joined_text(*prompt, kZeroWidthSpace),
                          .reader = std::move(prompt->reader)};
    } catch (const std::exception& error) {
      log_warning("a chat template failed", {{"error", std::string_view(error.what())}});
      return fail(kInternalError, "the chat template failed on this request");
    }
  }
  [[nodiscard]] bool needs_special_tokens() const override { return needs_special_tokens_; }
  [[nodiscard]] bool hides(std::string_view piece) const override {
    return hidden_.contains(piece);
  }

 private:
  const ChatFormat format_;
  std::set<std::string, std::less<>> hidden_;
  bool needs_special_tokens_ = false;
};

}  // namespace

Result<std::shared_ptr<const ChatTemplate>> make_chat_template(const ChatTemplateText& text) {
  initialize_llama();
  const LlamaGuard guard;
  try {
    return std::make_shared<const TextTemplate>(text);
  } catch (const std::exception& error) {
    return fail(kUnprocessableContent,
                "the chat template of " + text.path + " cannot be used: " + error.what());
  }
}

}  // namespace sluice
