#include "engine/rkllm/run_preparation.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/text/base64.hpp"
#include "core/text/utf8.hpp"
#include "engine/chat/request_limits.hpp"
#include "engine/grammar/grammar.hpp"
#include "engine/rkllm/chat_text.hpp"
#include "engine/rkllm/runtime/run_check.hpp"
#include "json/json.hpp"
#include "rpc/error_codes.hpp"

namespace sluice::rkllm {
namespace {

/// The largest context that the runtime has.
constexpr std::uint32_t kLargestContext = 16384;

/// Whether the sampling is what a request has that names nothing.
bool is_usual(const SamplingParams& given) {
  const SamplingParams usual;
  return !given.temperature && !given.seed && given.top_k == usual.top_k &&
         given.top_p == usual.top_p && given.min_p == usual.min_p &&
         given.repeat_penalty == usual.repeat_penalty &&
         given.frequency_penalty == usual.frequency_penalty &&
         given.presence_penalty == usual.presence_penalty &&
         given.penalty_last_n == usual.penalty_last_n;
}

/// The most tokens of a conversation.
std::uint32_t context_of(const RkllmOptions& options) {
  return options.context_tokens == 0 ? kLargestContext : options.context_tokens;
}

std::unexpected<Error> refuse_raw() {
  return fail(kInvalidParams, "a raw prompt cannot be asked again, so it takes no json_schema");
}

/// An error for what a request may not have, at this place.
std::unexpected<Error> refuse_nul(const std::string& where) {
  return fail(kInvalidParams,
              where +
                  " has the character U+0000, at which a text ends for this runtime; leave it "
                  "out");
}

/// What a run is given in place of a text. The numbers go another way, since they are many.
void take_input(const ModelInput& given, RkllmRun& run) {
  const auto take_numbers = [&run](std::vector<float>& numbers) {
    append_base64(run.input_numbers,
                  {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float)});
    numbers = {};
  };
  if (const auto* const ids = std::get_if<TokenIds>(&given)) {
    run.input.input = *ids;
  } else if (const auto* const embed = std::get_if<EmbedData>(&given)) {
    take_numbers(run.input.input.emplace<EmbedData>(*embed).embed);
  } else {
    const auto& images = std::get<MultiModalData>(given);
    take_numbers(run.input.input.emplace<MultiModalData>(images).image_embed);
  }
}

/// Of what the model is told, but for what a template makes of it.
Result<void> check_texts(const GenerationRequest& request) {
  if (request.prompt.contains('\0')) return refuse_nul("prompt");
  for (std::size_t i = 0; i < request.messages.size(); ++i) {
    if (!request.messages[i].content.contains('\0')) continue;
    return refuse_nul("messages[" + std::to_string(i) + "].content");
  }
  return {};
}

/// What the answer to `request` must match, in GBNF; empty: nothing that can be expressed.
std::string answer_grammar_of(const GenerationRequest& request, const RkllmOptions& options) {
  if (request.json_schema.empty()) return request.grammar;
  if (options.schema_grammar == nullptr) return {};
  const Result<std::string> made = options.schema_grammar(request.json_schema);
  return made && Grammar::parse(*made) ? *made : std::string();
}

}  // namespace

Error lost_choice() {
  return {
      kBusy,
      "The process of the model has died, and in the next one tokens cannot be chosen: leave out "
      "grammar, seed and sampling"};
}

Sampling sampling_of(const SamplingParams& given) {
  const SamplingParams usual;
  Sampling out{.temperature = given.temperature};
  if (given.top_k != usual.top_k) out.top_k = given.top_k;
  if (given.top_p != usual.top_p) out.top_p = given.top_p;
  if (given.repeat_penalty != usual.repeat_penalty) out.repeat_penalty = given.repeat_penalty;
  if (given.frequency_penalty != usual.frequency_penalty) {
    out.frequency_penalty = given.frequency_penalty;
  }
  if (given.presence_penalty != usual.presence_penalty) {
    out.presence_penalty = given.presence_penalty;
  }
  return out;
}

bool needs_choice(const SamplingParams& given, const AbiFacts* abi) {
  const bool has_own_sampling = abi != nullptr && abi->has_sampling_of_run;
  if (!has_own_sampling) return !is_usual(given);
  const SamplingParams usual;
  return given.seed.has_value() || given.min_p != usual.min_p ||
         given.penalty_last_n != usual.penalty_last_n;
}

Result<void> check(const GenerationRequest& request, const RkllmOptions& options,
                   const AbiFacts* abi, bool chooses_tokens) {
  const auto refuse = [](std::string why) { return fail(kInvalidParams, std::move(why)); };
  if (auto checked = check_request(request); !checked) return checked;
  if (auto checked = check_sampling(request.sampling); !checked) return checked;
  if (auto checked = check_texts(request); !checked) return checked;
  if (!is_valid_utf8(request.prompt_cache)) {
    return refuse(
        "prompt_cache_path must lead to a path that is UTF-8, and that of its folder is not");
  }
  if (!request.grammar.empty() && !chooses_tokens) {
    return refuse(
        "this model is not constrained token by token, so it takes no grammar; a json_schema is "
        "checked when the answer is whole; the server's log says why");
  }
  const bool has_template = options.chat_template != nullptr;
  if (!request.tools.empty() && !has_template) {
    return refuse(
        "tools need the model's chat template; put its tokenizer_config.json beside the model, or "
        "give --chat-template FILE");
  }
  if (!request.tools.empty() && !(request.json_schema.empty() && request.grammar.empty())) {
    return refuse("give either tools or json_schema or grammar, not several of them");
  }
  if (request.is_raw && !request.json_schema.empty() && !chooses_tokens) return refuse_raw();
  const bool has_own_template = abi == nullptr || abi->has_chat_template;
  if (request.is_raw && !has_template && has_own_template) {
    return refuse(
        "the runtime puts a chat template of its own around every prompt; put the model's "
        "tokenizer_config.json beside the model, or give --chat-template FILE, to turn it off");
  }
  const std::uint32_t context = context_of(options);
  if (request.input != nullptr && count_tokens(*request.input) >= context) {
    return refuse("Invalid params: n_tokens must be less than " + std::to_string(context) +
                  ", the number of tokens in the context");
  }
  if (abi != nullptr) {
    const auto* const images =
        request.input == nullptr ? nullptr : std::get_if<MultiModalData>(request.input.get());
    if (auto checked = check_run(mode_of(request.yields), images, *abi); !checked) return checked;
  }
  if (count_turns(request) >= context) {
    return refuse("messages must have fewer elements, their tool_calls included, than " +
                  std::to_string(context) + ", the number of tokens in the context");
  }
  const bool has_images = std::ranges::any_of(
      request.messages, [](const ChatMessage& each) { return !each.images.empty(); });
  if (has_images) return refuse("This engine takes no images yet");
  const bool is_text = request.input == nullptr && request.yields == Yield::text;
  if (!(chooses_tokens && is_text) && needs_choice(request.sampling, abi)) {
    const bool has_own_sampling = abi != nullptr && abi->has_sampling_of_run;
    return refuse(has_own_sampling
                      ? "This runtime has no seed, min_p and penalty_last_n; leave them out"
                      : "This runtime samples as it was set at its start; of single requests only "
                        "max_tokens and stop can be given (since runtime 1.3.0 more)");
  }
  return {};
}

Result<void> prepare(RkllmRun& run, const RkllmOptions& options, const AbiFacts* abi,
                     bool chooses_tokens) {
  GenerationRequest& request = run.request;
  const ChatTemplate* const chat_template = options.chat_template.get();
  const auto read_as_it_is = [&run, &request] {
    run.reader.emplace(
        AnswerReader::Options{.stops = request.stop, .marks = {.start = "", .ends = {}}});
  };
  if (const auto input = std::exchange(request.input, nullptr)) {
    run.input.role = "user";
    take_input(*input, run);
    read_as_it_is();
    return {};
  }
  const bool has_schema = !request.json_schema.empty();
  if (!chooses_tokens && (!request.grammar.empty() || needs_choice(request.sampling, abi))) {
    return std::unexpected(lost_choice());
  }
  std::string grammar;
  if (chooses_tokens && !run.check) grammar = answer_grammar_of(request, options);
  if (!has_schema && !grammar.empty()) {
    if (const auto parsed = Grammar::parse(grammar); !parsed) {
      return std::unexpected(parsed.error());
    }
  }
  run.choice.reset();
  const bool is_text = request.yields == Yield::text;
  if (chooses_tokens && is_text && (!grammar.empty() || needs_choice(request.sampling, abi))) {
    run.choice = {.grammar = std::move(grammar), .sampling = request.sampling};
    // Nothing else ends an answer that its grammar does not.
    if (run.max_tokens == 0) run.max_tokens = context_of(options);
  }
  const bool is_constrained = run.choice && !run.choice->grammar.empty();
  if (has_schema && !is_constrained && !run.check) {
    if (request.is_raw) return refuse_raw();
    auto check = AnswerCheck::begin(request);
    if (!check) return std::unexpected(std::move(check.error()));
    run.check = *std::move(check);
  }
  run.input.role = "user";
  if (request.is_raw) {
    run.input.input = request.prompt;
    read_as_it_is();
  } else if (chat_template != nullptr) {
    Result<RenderedChat> chat =
        chat_template->render(has_schema ? request : std::exchange(request, {}));
    if (!chat) return std::unexpected(std::move(chat.error()));
    run.input.input = std::move(chat->text);
    run.reader.emplace(std::move(chat->reader));
  } else {
    run.input.input = request.messages.empty() ? request.prompt : chat_text(request.messages);
    AnswerReader::Options reader{.stops = request.stop};
    if (is_constrained) reader.marks = {.start = "", .ends = {}};
    run.reader.emplace(std::move(reader));
  }
  if (std::get<std::string>(run.input.input).contains('\0')) return refuse_nul("tools or a call");
  return {};
}

InferMode mode_of(Yield yields) {
  switch (yields) {
    case Yield::text:
      break;
    case Yield::hidden_states:
      return InferMode::get_last_hidden_layer;
    case Yield::logits:
      return InferMode::get_logits;
  }
  return InferMode::generate;
}

Result<Delta> take_yield(RkllmRun& run) {
  const bool is_logits = run.params.mode == InferMode::get_logits;
  const std::string numbers = std::exchange(run.yielded, {});
  const std::size_t row = std::size_t{run.yield_columns} * sizeof(float);
  if (numbers.empty() || row == 0 || numbers.size() % row != 0) {
    return fail(kInternalError, is_logits ? "The runtime has given no logits"
                                          : "The runtime has given no hidden states");
  }
  std::string json =
      is_logits ? R"("logits":{"logits":")" : R"("last_hidden_layer":{"hidden_states":")";
  append_base64(json, numbers);
  json.append(is_logits ? R"(","vocab_size":)" : R"(","embd_size":)");
  append_number(json, run.yield_columns);
  json.append(R"(,"num_tokens":)");
  append_number(json, numbers.size() / row);
  json.push_back('}');
  return Delta{.kind = Delta::Kind::members, .text = std::move(json)};
}

}  // namespace sluice::rkllm
