#include "engine/rkllm/worker/token_steps.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/text/text.hpp"
#include "core/text/utf8.hpp"
#include "rpc/error_codes.hpp"

namespace sluice::rkllm {
namespace {

std::unexpected<Error> is_unfit(std::string why) {
  return fail(kInternalError, std::move(why));
}

}  // namespace

Result<std::span<const float>> LogitRuns::run(const RunInput& input, RunParams params) {
  params.mode = InferMode::get_logits;
  params.sampling = {};
  params.max_new_tokens = std::nullopt;
  logits_.clear();
  figures_ = std::nullopt;
  std::int32_t columns = 0;
  bool has_failed = false;
  const int result = runtime_->run(input, params, [&](const Output& output) {
    has_failed |= output.state == CallState::error;
    if (output.perf) figures_ = output.perf;
    // They are valid within the callback. The last row is that of the last token.
    if (!output.logits.empty()) {
      columns = output.vocab_size;
      const auto last = output.logits.last(static_cast<std::size_t>(columns));
      logits_.assign(last.begin(), last.end());
    }
    return CallbackReturn::go_on;
  });
  if (result != 0) {
    return is_unfit("rkllm_run() for logits returned " + std::to_string(result));
  }
  if (has_failed) return is_unfit("The runtime reports an error instead of logits");
  if (logits_.empty()) return is_unfit("The runtime gives no logits");
  if (logits_.size() < words_) {
    return is_unfit("The model has " + std::to_string(columns) +
                    " tokens, and the vocabulary in its tokenizer.json " + std::to_string(words_));
  }
  if (!std::ranges::all_of(logits_, [](float each) { return std::isfinite(each); })) {
    return is_unfit("The runtime gives logits that are no numbers");
  }
  return logits_;
}

Result<TokenSteps> TokenSteps::begin(Runtime& runtime, std::shared_ptr<const TokenPieces> pieces,
                                     const RunRequest& request) {
  std::unique_ptr<TokenConstraint> constraint;
  if (const std::string& text = request.choice->grammar; !text.empty()) {
    auto grammar = Grammar::parse(text);
    if (!grammar) return std::unexpected(std::move(grammar.error()));
    AnswerGrammar answer;
    answer.grammar = std::make_shared<const Grammar>(*std::move(grammar));
    constraint = std::make_unique<TokenConstraint>(std::move(answer), pieces, std::set<TokenId>());
    if (auto begun = constraint->begin(); !begun) return std::unexpected(std::move(begun.error()));
  }
  return TokenSteps(runtime, std::move(pieces), std::move(constraint), request);
}

TokenSteps::TokenSteps(Runtime& runtime, std::shared_ptr<const TokenPieces> pieces,
                       std::unique_ptr<TokenConstraint> constraint, const RunRequest& request)
    : runs_(runtime, pieces->size()),
      choice_(pieces, request.choice->sampling, std::move(constraint)),
      pieces_(std::move(pieces)),
      input_(request.input),
      params_(request.params) {}

Result<std::optional<TokenId>> TokenSteps::next() {
  if (choice_.is_over()) return std::nullopt;
  const auto logits = runs_.run(input_, params_);
  if (!logits) return std::unexpected(logits.error());
  if (!figures_) figures_ = runs_.figures();
  const auto token = choice_.next(*logits);
  if (!token) return std::unexpected(token.error());
  if (std::ranges::find(pieces_->ends(), *token) != pieces_->ends().end()) return std::nullopt;
  // From here on it goes on with what it has been told.
  input_.input = std::vector{*token};
  params_.keep_history = true;
  params_.prompt_cache_path.clear();
  params_.save_prompt_cache = false;
  return *token;
}

// --- the test -----------------------------------------------------------------------------------

namespace {

/// What a model is asked to say for its tokens to be compared.
constexpr std::string_view kTestPrompt = "Hello";
constexpr std::int32_t kTestTokens = 8;

/// Compares what the runtime says with the vocabulary.
Result<void> test_texts(Runtime& runtime, const TokenPieces& pieces) {
  std::string fault;
  bool is_whole = true;  // what has been said ends with a character
  std::int32_t said = 0;
  const int result = runtime.run(
      {.role = "user", .input = std::string(kTestPrompt)},
      {.sampling = {}, .max_new_tokens = kTestTokens}, [&](const Output& output) {
        if (output.state == CallState::normal) {
          const std::string_view piece = pieces.bytes_of(output.token_id);
          // A runtime leaves out special tokens, and the blank at the beginning.
          const bool is_comparable = is_whole && !piece.empty() && !output.text.empty() &&
                                     is_valid_utf8(piece) && is_valid_utf8(output.text) &&
                                     !pieces.is_control(output.token_id);
          if (is_comparable && trim(piece, " ") != trim(output.text, " ")) {
            fault = "The model's token " + std::to_string(output.token_id) +
                    " is another text than in its tokenizer.json";
          }
        }
        is_whole = output.state == CallState::normal && is_valid_utf8(output.text);
        if (++said >= kTestTokens) runtime.abort();
        return CallbackReturn::go_on;
      });
  if (result != 0) return is_unfit("rkllm_run() returned " + std::to_string(result));
  if (!fault.empty()) return is_unfit(fault);
  return {};
}

/// How much two rows of logits differ.
double distance(const std::vector<float>& one, const std::vector<float>& other) {
  double sum = 0;
  for (std::size_t i = 0; i < std::min(one.size(), other.size()); ++i) {
    sum += std::abs(static_cast<double>(one[i]) - static_cast<double>(other[i]));
  }
  return sum;
}

/// Some tokens of one letter each; fewer than `count`: there are no more.
std::vector<TokenId> letters(const TokenPieces& pieces, std::size_t count) {
  std::vector<TokenId> found;
  for (const TokenPieces::Piece& each : pieces.sorted()) {
    const std::string_view text = pieces.bytes(each);
    if (found.size() == count) break;
    if (!each.control && text.size() == 1 && text >= "A" && text <= "Z") {
      found.push_back(each.token);
    }
  }
  return found;
}

}  // namespace

Result<void> test_token_steps(Runtime& runtime, const TokenPieces& pieces) {
  const std::vector<TokenId> text = letters(pieces, 3);
  if (text.size() < 3) return is_unfit("The vocabulary has no letters");
  if (auto tested = test_texts(runtime, pieces); !tested) return tested;
  LogitRuns runs(runtime, pieces.size());
  Result<void> outcome;
  const auto told = [&](auto given, bool goes_on) -> std::vector<float> {
    if (!outcome) return {};
    const auto logits = runs.run({.role = "user", .input = std::move(given)},
                                 {.keep_history = goes_on, .sampling = {}});
    if (logits) return {logits->begin(), logits->end()};
    outcome = std::unexpected(logits.error());
    return {};
  };
  told(std::string(kTestPrompt), false);
  const auto begun = told(std::vector{text[0], text[1]}, false);
  const auto step = told(std::vector{text[2]}, true);
  const auto whole = told(text, false);
  const auto alone = told(std::vector{text[2]}, false);
  if (!outcome) return outcome;
  // The NPU does not compute a step exactly as a whole text.
  constexpr double kNear = 0.25;
  const double off = distance(step, whole);
  const double least = std::min(distance(step, alone), distance(step, begun));
  if (least == 0 || off > least * kNear) {
    return is_unfit("The model does not go on from a token that it is told as from the whole text");
  }
  return {};
}

}  // namespace sluice::rkllm
