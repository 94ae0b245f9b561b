#include "engine/llama/chat/chat_format.hpp"

#include <algorithm>
#include <common/common.h>
#include <exception>
#include <initializer_list>
#include <optional>
#include <utility>

#include <common/chat-auto-parser.h>

#include "core/crypto/random.hpp"
#include "core/log/log.hpp"
#include "engine/llama/chat/template_bounds.hpp"
#include "engine/llama/chat/template_parser.hpp"
#include "engine/llama/grammar/followable_schema.hpp"
#include "engine/llama/grammar/schema_bounds.hpp"
#include "engine/llama/grammar/schema_grammar.hpp"
#include "engine/llama/model/llama_log.hpp"
#include "json/json.hpp"
#include "json/members.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

constexpr std::size_t kMaxTools = 128;
constexpr std::size_t kLargeTemplate = 4096;  // bytes
constexpr std::size_t kMarkLength = 16;

/// Whether `name` can be part of a prompt and a grammar, and come back in a call: llama.cpp trims
/// the names of calls.
bool is_tool_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxToolName && name.front() != ' ' &&
         name.back() != ' ' &&
         std::ranges::none_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7F; });
}

/// Converts tools from OpenAI's or MCP's form to the form that the template expects.
Result<std::vector<common_chat_tool>> parse_tools(const std::string& text, MemberBudget& members) {
  auto parsed = parse_json(text);
  if (!parsed) {
    return fail(kInvalidParams, "tools must be JSON: " + parsed.error().message);
  }
  if (!parsed->is_array())
    return fail(kInvalidParams, "tools must be an array of tool definitions");
  if (parsed->as_array().size() > kMaxTools) {
    return fail(kInvalidParams, "tools must have at most 128 definitions");
  }
  std::vector<common_chat_tool> tools;
  double budget = kSchemaBudget;
  for (const json::value& element : parsed->as_array()) {
    if (!element.is_object()) return fail(kInvalidParams, "each tool in tools must be an object");
    const json::object* definition = &element.as_object();
    if (const json::value* const function = definition->if_contains("function");
        function != nullptr && function->is_object()) {
      definition = &function->as_object();
    }
    common_chat_tool tool;
    tool.name = text_at(*definition, "name");
    tool.description = text_at(*definition, "description");
    if (!is_tool_name(tool.name)) {
      return fail(
          kInvalidParams,
          "each tool in tools must have a name of 1 to 256 bytes, without control characters "
          "and without spaces at its ends");
    }
    for (const std::string_view key : {"parameters", "inputSchema"}) {
      const json::value* const schema = definition->if_contains(key);
      if (schema == nullptr || !schema->is_object()) continue;
      if (auto bounded = check_schema_bounds(*schema, "the tool \"" + tool.name + "\"", budget);
          !bounded) {
        return std::unexpected(std::move(bounded).error());
      }
      if (auto spent = members.spend(*schema, "the parameters of the tool \"" + tool.name + "\"");
          !spent) {
        return std::unexpected(std::move(spent).error());
      }
      tool.parameters = to_json(followable_schema(*schema, Inexpressible::passed_over).value());
    }
    if (tool.parameters.empty()) tool.parameters = R"({"type":"object","properties":{}})";
    tools.push_back(std::move(tool));
  }
  return tools;
}

/// The error for the first of `tools` whose parameters cannot be followed; nothing if all can.
std::optional<Error> fault_of(const std::vector<common_chat_tool>& tools) {
  for (const common_chat_tool& tool : tools) {
    const auto refused = [&](std::string_view why) {
      return fail(kInvalidParams,
                  "the tool \"" + tool.name + "\" cannot be followed: " + std::string(why))
          .error();
    };
    try {
      const auto grammar = Grammar::parse(schema_grammar(parse_json(tool.parameters).value()));
      if (!grammar) return refused("as a " + grammar.error().message);
    } catch (const std::exception& error) {
      return refused(error.what());
    }
  }
  return std::nullopt;
}

/// Whether `prompt` ends inside a reasoning section.
bool leaves_open(const std::string& prompt, const ReasoningMarks& marks) {
  if (marks.start.empty()) return false;
  const auto start = prompt.rfind(marks.start);
  if (start == std::string::npos) return false;
  for (const std::string& end : marks.ends) {
    if (!end.empty() && prompt.find(end, start) != std::string::npos) return false;
  }
  return true;
}

/// Whether a template may take something out of the middle of a text.
bool may_take_out(std::string_view source) {
  return source.contains("replace") || source.contains("split");
}

common_chat_msg chat_message(std::string role, std::string content) {
  common_chat_msg message;
  message.role = std::move(role);
  message.content = std::move(content);
  return message;
}

}  // namespace

ChatFormat::ChatFormat(const llama_model* model, const ChatTemplateText& own)
    : controls_(std::vector<std::string>()) {
  try {
    if (own.text.empty()) {
      for (const char* const name : std::initializer_list<const char*>{nullptr, "tool_use"}) {
        const char* const of_model = llama_model_chat_template(model, name);
        if (of_model != nullptr) check_template_bounds(of_model);
      }
    }
    check_template_bounds(own.text);
    check_template_bounds(own.tool_text);
    templates_ = common_chat_templates_init(model, own.text, own.bos, own.eos);
    explicit_ = common_chat_templates_was_explicit(templates_.get());
    if (!own.tool_text.empty()) {
      tool_templates_ = common_chat_templates_init(model, own.tool_text, own.bos, own.eos);
    }
  } catch (const std::exception& error) {
    if (!own.text.empty()) throw;
    log_warning("the model's chat template cannot be used; ChatML is used instead",
                {{"error", std::string_view(error.what())}});
    templates_ = common_chat_templates_init(model, "chatml");
  }
  const std::string source = common_chat_templates_source(templates_.get());
  large_ = source.size() > kLargeTemplate;
  const bool may_join = may_take_out(source) || may_take_out(own.tool_text) ||
                        may_take_out(common_chat_templates_source(templates_.get(), "tool_use"));
  const llama_vocab* const vocab = model == nullptr ? nullptr : llama_model_get_vocab(model);
  const auto piece = [&](llama_token token) {
    return token == LLAMA_TOKEN_NULL ? std::string() : common_token_to_piece(vocab, token, true);
  };
  controls_ = vocab == nullptr ? ControlTexts::of(own, may_join) : ControlTexts(vocab, may_join);
  try {
    if (vocab == nullptr) {
      learn_marks(own.bos, own.eos);
    } else {
      learn_marks(piece(llama_vocab_bos(vocab)), piece(llama_vocab_eos(vocab)));
    }
  } catch (const std::exception& error) {
    log_warning("the model's chat template does not say how it marks reasoning",
                {{"error", std::string_view(error.what())}});
  }
}

/// Asks llama.cpp once which marks the template uses, instead of for every request.
void ChatFormat::learn_marks(const std::string& bos, const std::string& eos) {
  common_chat_templates_inputs inputs;
  inputs.messages = {chat_message("user", "Hello")};
  inputs.reasoning_format = COMMON_REASONING_FORMAT_DEEPSEEK;
  const common_chat_params params = common_chat_templates_apply(templates_.get(), inputs);
  if (params.supports_thinking && !params.thinking_start_tag.empty() &&
      !params.thinking_end_tags.empty()) {
    marks_ = {.start = params.thinking_start_tag, .ends = params.thinking_end_tags};
  }
  stops_ = params.additional_stops;
  visible_tokens_ = params.preserved_tokens;
  visible_tokens_.push_back(marks_.start);
  visible_tokens_.insert(visible_tokens_.end(), marks_.ends.begin(), marks_.ends.end());

  const std::string source = common_chat_templates_source(templates_.get());
  const common_chat_template parsed(source, bos, eos);
  autoparser::generation_params generation;
  generation.messages = common_json::array();
  generation.tools = common_json::array();
  generation.add_generation_prompt = true;
  needs_parser_ =
      common_chat_try_specialized_template(parsed, parsed.source(), generation).has_value();
}

bool ChatFormat::break_up(std::vector<common_chat_tool>& tools, std::string_view mark) const {
  bool is_broken = false;
  for (common_chat_tool& tool : tools) {
    is_broken |= controls_.break_up(tool.name, mark);
    is_broken |= controls_.break_up(tool.description, mark);
    is_broken |= controls_.break_up_json(tool.parameters, mark);
  }
  return is_broken;
}

bool ChatFormat::alternates() const {
  const auto takes = [this](std::initializer_list<std::string_view> roles) {
    GenerationRequest request;
    for (const std::string_view role : roles) {
      request.messages.push_back({.role = std::string(role), .content = "Hello"});
    }
    return render(request).has_value();
  };
  return !takes({"user", "user"}) && takes({"user", "assistant", "user"});
}

Result<ChatPrompt> ChatFormat::render(const GenerationRequest& request, MemberBudget budget) const {
  const bool constrained = !request.json_schema.empty() || !request.grammar.empty();
  // Nobody knows it before, so nobody writes it.
  const std::string mark = random_id(kMarkLength);
  bool is_broken = false;
  const auto broken = [&](std::string text) {
    is_broken |= controls_.break_up(text, mark);
    return text;
  };
  common_chat_templates_inputs inputs;
  for (const ChatMessage& message : request.messages) {
    common_chat_msg& said =
        inputs.messages.emplace_back(chat_message(message.role, broken(message.content)));
    for (const ChatToolCall& call : message.tool_calls) {
      std::string arguments = call.arguments;
      is_broken |= controls_.break_up_json(arguments, mark);
      said.tool_calls.push_back(
          {.name = broken(call.name), .arguments = std::move(arguments), .id = broken(call.id)});
    }
    said.tool_call_id = broken(message.tool_call_id);
    said.tool_name = broken(message.tool_name);
  }
  if (request.messages.empty()) {
    inputs.messages.push_back(chat_message("user", broken(request.prompt)));
  }
  if (!request.tools.empty()) {
    auto tools = parse_tools(request.tools, budget);
    if (!tools) return std::unexpected(std::move(tools).error());
    inputs.tools = std::move(*tools);
  }
  if (constrained && !inputs.tools.empty()) {
    return fail(kInvalidParams, "give either tools or json_schema or grammar, not several of them");
  }
  const bool parser = !constrained && (needs_parser_ || !inputs.tools.empty());
  inputs.enable_thinking = !constrained;
  inputs.reasoning_format = COMMON_REASONING_FORMAT_DEEPSEEK;
  inputs.parallel_tool_calls = true;
  inputs.force_pure_content = !parser;

  common_chat_params params;
  try {
    const std::lock_guard lock(mutex_);
    const common_chat_templates* const templates = templates_for(!inputs.tools.empty());
    params = common_chat_templates_apply(templates, inputs);
    // The answer is read with the tools as they are, but they are shown as text.
    if (std::vector<common_chat_tool> shown = inputs.tools; break_up(shown, mark)) {
      is_broken = true;
      common_chat_templates_inputs with_shown = inputs;
      with_shown.tools = std::move(shown);
      params.prompt = common_chat_templates_apply(templates, with_shown).prompt;
    }
  } catch (const std::exception& error) {
    log_debug("a chat template refused a request", {{"error", std::string_view(error.what())}});
    if (auto fault = fault_of(inputs.tools)) return std::unexpected(std::move(*fault));
    return fail(kInvalidParams,
                "the model's chat template refuses these messages: check their roles and order");
  }

  ChatPrompt prompt;
  prompt.text = std::move(params.prompt);
  if (is_broken) prompt.mark = mark;
  prompt.visible_tokens = visible_tokens_;
  prompt.reader.raw_stops = stops_;
  if (parser) {
    prompt.reader.raw_stops = params.additional_stops;
    prompt.reader.parser = std::make_unique<TemplateParser>(params);
    prompt.visible_tokens.insert(prompt.visible_tokens.end(), params.preserved_tokens.begin(),
                                 params.preserved_tokens.end());
    if (!params.grammar.empty()) {
      auto grammar = Grammar::parse(params.grammar);
      if (!grammar) {
        if (auto fault = fault_of(inputs.tools)) return std::unexpected(std::move(*fault));
        return fail(kInvalidParams, "tools cannot be followed: as a " + grammar.error().message);
      }
      prompt.tool_grammar = std::make_shared<const Grammar>(std::move(*grammar));
      prompt.grammar_lazy = params.grammar_lazy;
      prompt.grammar_triggers = std::move(params.grammar_triggers);
      prompt.generation_prompt = params.generation_prompt;
    }
  } else if (constrained) {
    prompt.reader.marks = {.start = "", .ends = {}};
  } else {
    prompt.reader.marks = marks_;
    prompt.reader.reasoning_open = leaves_open(params.generation_prompt, marks_);
  }
  return prompt;
}

}  // namespace sluice
