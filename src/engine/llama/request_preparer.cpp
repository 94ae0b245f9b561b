#include "engine/llama/request_preparer.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <common/common.h>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <utility>

#include "core/crypto/random.hpp"
#include "core/log/log.hpp"
#include "engine/chat/request_limits.hpp"
#include "engine/grammar/grammar.hpp"
#include "engine/llama/chat/answer_schema.hpp"
#include "engine/llama/chat/call_arguments.hpp"
#include "engine/llama/model/llama_log.hpp"
#include "engine/llama/model/vocabulary_pieces.hpp"
#include "engine/llama/sampling/token_sampler.hpp"
#include "json/json.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

/// The bytes and turns that take a few milliseconds to render and tokenize.
constexpr std::size_t kQuickPrompt = std::size_t{4} << 10U;
constexpr std::size_t kQuickTurns = 16;

std::size_t longest_text(const llama_vocab* vocab) {
  std::size_t longest = 1;
  for (llama_token token = 0; token < llama_vocab_n_tokens(vocab); ++token) {
    longest = std::max(longest, std::strlen(llama_vocab_get_text(vocab, token)));
  }
  return longest;
}

std::vector<std::string> end_texts(const llama_vocab* vocab, const TokenPieces& pieces) {
  std::vector<std::string> out;
  for (const llama_token token : pieces.ends()) {
    if (std::string text = common_token_to_piece(vocab, token, true); !text.empty()) {
      out.push_back(std::move(text));
    }
  }
  return out;
}

/// The temperature that the model's file recommends, if it is valid.
std::optional<float> recommended_temperature(const llama_model* model) {
  std::array<char, 32> text{};
  const int length =
      llama_model_meta_val_str(model, llama_model_meta_key_str(LLAMA_MODEL_META_KEY_SAMPLING_TEMP),
                               text.data(), text.size());
  float value = 0;
  if (length <= 0 || std::from_chars(text.data(), text.data() + length, value).ec != std::errc()) {
    return std::nullopt;
  }
  SamplingParams params;
  params.temperature = value;
  return check_sampling(params) ? params.temperature : std::nullopt;
}

/// The bytes of what every template shows.
std::size_t shown_bytes(const GenerationRequest& request) {
  std::size_t bytes = request.prompt.size();
  for (const ChatMessage& message : request.messages) {
    bytes += message.content.size();
    for (const ChatToolCall& call : message.tool_calls) bytes += call.arguments.size();
  }
  return bytes;
}

std::unexpected<Error> invalid(std::string message) {
  return fail(kInvalidParams, std::move(message));
}

std::unexpected<Error> too_long(std::string_view has, std::uint32_t context) {
  std::string message = "the prompt is too long: it has ";
  message += has;
  message += " tokens, and the context holds ";
  append_number(message, context);
  message += ", including the answer; shorten the prompt";
  return invalid(std::move(message));
}

}  // namespace

RequestPreparer::RequestPreparer(const llama_model* model, std::uint32_t context_tokens,
                                 const ChatTemplateText& own)
    : vocab_(llama_model_get_vocab(model)),
      context_tokens_(context_tokens),
      pieces_(std::make_shared<const TokenPieces>(pieces_of(vocab_))),
      longest_piece_(longest_text(vocab_)),
      ends_(end_texts(vocab_, *pieces_)),
      temperature_(recommended_temperature(model)),
      format_(model, own),
      quick_format_(model, own) {}

Result<void> RequestPreparer::check(const GenerationRequest& request) const {
  if (auto checked = check_request(request); !checked) return checked;
  if (auto sampling = check_sampling(request.sampling); !sampling) return sampling;
  if (count_turns(request) >= context_tokens_) {
    std::string message =
        "messages must have fewer elements, their tool_calls included, than the number of tokens "
        "in the context, which is ";
    append_number(message, context_tokens_);
    return invalid(std::move(message));
  }
  if (shown_bytes(request) / longest_piece_ >= context_tokens_) {
    std::string at_least = "at least ";
    append_number(at_least, shown_bytes(request) / longest_piece_);
    return too_long(at_least, context_tokens_);
  }
  return {};
}

bool RequestPreparer::is_quick(const GenerationRequest& request) const {
  std::size_t bytes = request.prompt.size();
  for (const ChatMessage& message : request.messages) bytes += text_bytes(message);
  return request.grammar.empty() && request.json_schema.empty() && request.tools.empty() &&
         bytes <= kQuickPrompt && count_turns(request) <= kQuickTurns && !format_.is_large();
}

/// The grammar of the request itself, which must have a grammar or a schema.
Result<Grammar> RequestPreparer::grammar_of(const GenerationRequest& request) const {
  const bool has_schema = !request.json_schema.empty();
  const Result<std::string> grammar =
      has_schema ? grammar_of_schema(request.json_schema) : request.grammar;
  if (!grammar) return std::unexpected(grammar.error());
  auto parsed = Grammar::parse(*grammar);
  if (!parsed && has_schema) {
    return invalid("json_schema cannot be followed: as a " + parsed.error().message);
  }
  return parsed;
}

/// What constrains the answer: the request's own grammar, or the tool grammar of `prompt` if there
/// is one.
Result<AnswerGrammar> RequestPreparer::answer_grammar(const GenerationRequest& request,
                                                      const ChatPrompt* prompt,
                                                      const std::set<llama_token>& visible) const {
  AnswerGrammar answer;
  if (!request.grammar.empty() || !request.json_schema.empty()) {
    auto grammar = grammar_of(request);
    if (!grammar) return std::unexpected(std::move(grammar).error());
    answer.grammar = std::make_shared<const Grammar>(std::move(*grammar));
    return answer;
  }
  if (prompt == nullptr || prompt->tool_grammar == nullptr) return answer;
  answer.grammar = prompt->tool_grammar;
  answer.lazy = prompt->grammar_lazy;
  answer.begun = prompt->generation_prompt;
  for (const common_grammar_trigger& trigger : prompt->grammar_triggers) {
    switch (trigger.type) {
      case COMMON_GRAMMAR_TRIGGER_TYPE_TOKEN:
        answer.tokens.push_back(trigger.token);
        break;
      case COMMON_GRAMMAR_TRIGGER_TYPE_WORD: {
        // A trigger word that is a control token is recognized as that token.
        const auto ids = common_tokenize(vocab_, trigger.value, false, true);
        if (ids.size() == 1 && visible.contains(ids.front())) {
          answer.tokens.push_back(ids.front());
        } else {
          answer.words.push_back(trigger.value);
        }
        break;
      }
      case COMMON_GRAMMAR_TRIGGER_TYPE_PATTERN:
        answer.patterns.emplace_back(trigger.value);
        break;
      case COMMON_GRAMMAR_TRIGGER_TYPE_PATTERN_FULL:
        answer.patterns.emplace_back("^(?:" + trigger.value + ")$");
        break;
    }
  }
  return answer;
}

Result<void> RequestPreparer::add_tokens(std::string_view text, bool special, bool begins,
                                         std::vector<llama_token>& tokens) const {
  const std::size_t before = tokens.size();
  // No tokenizer produces fewer tokens than this, so a text that cannot fit need not be tokenized.
  const std::size_t least = before + (text.size() / longest_piece_);
  if (least >= context_tokens_) {
    std::string at_least = "at least ";
    append_number(at_least, least);
    return too_long(at_least, context_tokens_);
  }
  const auto size = static_cast<std::int32_t>(text.size());
  const auto fill = [&](std::size_t room) {
    tokens.resize(before + room);
    return llama_tokenize(vocab_, text.data(), size, tokens.data() + before,
                          static_cast<std::int32_t>(room), begins, special);
  };
  std::int32_t count = fill(text.size() + 8);
  if (count < 0 && count != std::numeric_limits<std::int32_t>::min()) {
    count = fill(static_cast<std::size_t>(-count));
  }
  if (count < 0) return invalid("the prompt cannot be tokenized");
  tokens.resize(before + static_cast<std::size_t>(count));
  return {};
}

Result<std::vector<llama_token>> RequestPreparer::tokenize(std::string_view text,
                                                           std::string_view mark, bool special,
                                                           bool begins) const {
  std::vector<llama_token> tokens;
  for (std::size_t end = 0; end != std::string_view::npos; begins = false) {
    end = mark.empty() ? std::string_view::npos : text.find(mark);
    if (auto added = add_tokens(text.substr(0, end), special, begins, tokens); !added) {
      return std::unexpected(std::move(added).error());
    }
    if (end != std::string_view::npos) text.remove_prefix(end + mark.size());
  }
  tokens.shrink_to_fit();  // they may wait for long
  return tokens;
}

Result<PreparedRequest> RequestPreparer::prepare(GenerationRequest request,
                                                 std::size_t continued) const {
  const bool quick = is_quick(request);
  const LlamaGuard guard;
  try {
    MemberBudget budget;
    if (auto read = read_call_arguments(request, budget); !read) {
      return std::unexpected(std::move(read).error());
    }
    return translate(request, quick ? quick_format_ : format_, budget, continued);
  } catch (const std::exception& error) {
    log_warning("the model failed to tokenize a prompt",
                {{"error", std::string_view(error.what())}});
    return fail(kInternalError, "the model failed to tokenize this prompt");
  }
}

/// Renders the end of the conversation with a mark in the place of the answer, and takes what the
/// template writes behind it. Nothing if that is not certain, or would not fit.
std::optional<RequestPreparer::Continuation> RequestPreparer::continuation(
    const GenerationRequest& request, const ChatFormat& format, MemberBudget budget,
    std::size_t continued) const {
  const std::vector<ChatMessage>& all = request.messages;
  if (request.new_messages == 0 || request.new_messages >= all.size()) return std::nullopt;
  const std::size_t answer = all.size() - request.new_messages - 1;
  if (all[answer].role != "assistant") return std::nullopt;
  // A template may demand that a user's message comes first.
  std::size_t first = answer;
  while (first > 0 && all[first].role != "user") --first;
  GenerationRequest end;
  end.json_schema = request.json_schema;
  end.grammar = request.grammar;
  end.tools = request.tools;
  end.messages.assign(all.begin() + static_cast<std::ptrdiff_t>(first), all.end());
  for (std::size_t i = first; i < answer; ++i) end.messages[i - first].content = "-";
  ChatMessage& said = end.messages[answer - first];
  const std::string mark = random_id(16);
  said.content = mark;
  auto prompt = format.render(end, budget);
  if (!prompt) return std::nullopt;
  std::size_t at = prompt->text.find(mark);
  if (at == std::string::npos) return std::nullopt;
  at += mark.size();
  if (!said.tool_calls.empty()) {
    // The calls stand between the mark and the end of the answer, and have no such text.
    std::size_t nearest = std::string::npos;
    for (const std::string& text : ends_) {
      nearest = std::min(nearest, prompt->text.find(text, at));
    }
    if (nearest == std::string::npos) return std::nullopt;
    at = nearest;
  }
  auto tokens = tokenize(std::string_view(prompt->text).substr(at), prompt->mark, true, false);
  if (!tokens || tokens->empty()) return std::nullopt;
  // Only such a token is the same whatever stands before it.
  const llama_token next = tokens->front();
  if (!llama_vocab_is_control(vocab_, next) && !llama_vocab_is_eog(vocab_, next)) {
    return std::nullopt;
  }
  const std::size_t room = context_tokens_ / 4;  // for the answer
  if (continued + tokens->size() + room > context_tokens_) return std::nullopt;
  return Continuation{.prompt = *std::move(prompt), .tokens = *std::move(tokens)};
}

Result<PreparedRequest> RequestPreparer::translate(const GenerationRequest& request,
                                                   const ChatFormat& format, MemberBudget budget,
                                                   std::size_t continued) const {
  PreparedRequest prepared;
  prepared.sampling = request.sampling;
  if (!prepared.sampling.temperature) prepared.sampling.temperature = temperature_;
  prepared.max_tokens = static_cast<std::uint32_t>(request.max_tokens.value_or(0));

  std::string text = request.prompt;
  std::string mark;
  const bool chat = !request.is_raw &&
                    (!request.messages.empty() || !request.tools.empty() || format_.is_explicit());
  std::optional<ChatPrompt> prompt;
  if (continued > 0) {
    if (auto rest = continuation(request, format, budget, continued)) {
      prompt = std::move(rest->prompt);
      prepared.tokens = std::move(rest->tokens);
      prepared.continues = true;
    }
  }
  if (chat) {
    if (!prompt) {
      auto rendered = format.render(request, budget);
      if (!rendered) return std::unexpected(std::move(rendered).error());
      prompt = std::move(*rendered);
      text = std::move(prompt->text);
      mark = std::move(prompt->mark);
    }
    prepared.reader = std::move(prompt->reader);
    for (const std::string& name : prompt->visible_tokens) {
      const auto ids = common_tokenize(vocab_, name, false, true);
      if (ids.size() == 1) prepared.visible.insert(ids.front());
    }
  } else {
    prepared.reader.marks = {.start = "", .ends = {}};
  }
  prepared.reader.stops = request.stop;
  auto grammar = answer_grammar(request, prompt ? &*prompt : nullptr, prepared.visible);
  if (!grammar) return std::unexpected(std::move(grammar).error());
  if (grammar->grammar != nullptr) {
    prepared.constraint =
        std::make_unique<TokenConstraint>(std::move(*grammar), pieces_, prepared.visible);
    if (auto begun = prepared.constraint->begin(); !begun) {
      return std::unexpected(std::move(begun).error());
    }
  }

  if (prepared.continues) return prepared;
  auto tokens = tokenize(text, mark, chat || request.is_raw, true);
  if (!tokens) return std::unexpected(std::move(tokens).error());
  // A prompt that begins as the model's sequences do is not given that token once more.
  const llama_token first = llama_vocab_bos(vocab_);
  if (request.is_raw && tokens->size() > 1 && (*tokens)[0] == first && (*tokens)[1] == first) {
    tokens->erase(tokens->begin());
  }
  if (tokens->empty()) return invalid("the prompt has no tokens; give a prompt that is not empty");
  if (tokens->size() >= context_tokens_) {
    std::string has;
    append_number(has, tokens->size());
    return too_long(has, context_tokens_);
  }
  prepared.tokens = std::move(*tokens);
  return prepared;
}

}  // namespace sluice
