#include "engine/llama/chat/template_parser.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <common/chat-peg-parser.h>

#include "engine/llama/model/llama_log.hpp"
#include "json/json.hpp"

namespace sluice {
namespace {

/// The rules that llama.cpp's parsers have for calls, the smallest first.
constexpr std::array<std::string_view, 3> kCallRules = {"tool-call", "tool-call-root",
                                                        "tool-calls"};

/// How many texts that begin a call may turn out to be none. What follows is text.
constexpr int kMaxFaults = 64;

/// Converts what llama.cpp has found to calls. False: one of them is not complete.
bool append_calls(const common_chat_msg& message, std::vector<ParsedCall>& out) {
  for (const common_chat_tool_call& call : message.tool_calls) {
    const auto arguments = parse_json(call.arguments.empty() ? "{}" : call.arguments);
    if (!arguments) return false;
    std::string text = R"({"name":)";
    append_json_string(text, call.name);
    text += R"(,"arguments":)";
    append_json(text, *arguments);
    text += '}';
    out.push_back({.name = call.name, .json = std::move(text)});
  }
  return true;
}

ParsedAnswer answer_of(common_chat_msg& message) {
  ParsedAnswer answer;
  answer.reasoning = std::move(message.reasoning_content);
  answer.text = std::move(message.content);
  return answer;
}

/// What reads the tree of a parser of this format.
std::unique_ptr<common_chat_peg_mapper> mapper_for(common_chat_format format,
                                                   common_chat_msg& message) {
  if (format == COMMON_CHAT_FORMAT_PEG_GEMMA4) {
    return std::make_unique<common_chat_peg_gemma4_mapper>(message);
  }
  if (format == COMMON_CHAT_FORMAT_PEG_MINIMAX_M3) {
    return std::make_unique<common_chat_peg_minimax_m3_mapper>(message);
  }
  return std::make_unique<common_chat_peg_mapper>(message);
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

}  // namespace

/// Reads the calls at places of a text.
class TemplateParser::CallReader {
 public:
  CallReader(const TemplateParser& of, const std::string& raw)
      : of_(&of), rule_(of.params_.parser.get_rule(of.call_rule_)), strict_(raw) {}

  /// Reads the calls that begin at `at`, and returns where they end; `at`: there is none.
  std::size_t read(std::size_t at, std::vector<ParsedCall>& out) {
    if (const std::size_t end = read_with(strict_, at, out); end != at) return end;
    // The last call may lack the mark of its end, which may be a token that is not shown.
    if (!lenient_) lenient_.emplace(strict_.input, COMMON_PEG_PARSE_FLAG_LENIENT);
    return read_with(*lenient_, at, out);
  }

 private:
  std::size_t read_with(common_peg_parse_context& context, std::size_t at,
                        std::vector<ParsedCall>& out) {
    context.ast.clear();
    const common_peg_parse_result result = of_->params_.parser.parse(rule_, context, at);
    if (result.fail()) return at;
    common_chat_msg message;
    mapper_for(of_->params_.format, message)->from_ast(context.ast, result);
    std::vector<ParsedCall> calls;
    if (!append_calls(message, calls) || calls.empty()) return at;
    std::ranges::move(calls, std::back_inserter(out));
    return result.need_more_input() ? context.input.size() : result.end;
  }

  const TemplateParser* of_;
  common_peg_parser_id rule_;
  common_peg_parse_context strict_;
  std::optional<common_peg_parse_context> lenient_;
};

TemplateParser::TemplateParser(const common_chat_params& params) : params_(params) {
  params_.reasoning_format = COMMON_REASONING_FORMAT_DEEPSEEK;
  if (!params.parser.empty()) params_.parser.load(params.parser);
  for (const common_grammar_trigger& trigger : params.grammar_triggers) {
    const bool is_text = trigger.type == COMMON_GRAMMAR_TRIGGER_TYPE_WORD ||
                         trigger.type == COMMON_GRAMMAR_TRIGGER_TYPE_TOKEN;
    if (is_text) call_starts_.push_back(trigger.value);
  }
  for (const std::string_view rule : kCallRules) {
    if (call_rule_.empty() && params_.parser.has_rule(std::string(rule))) call_rule_ = rule;
  }
}

std::optional<ParsedAnswer> TemplateParser::parse(const std::string& raw, bool whole) try {
  const LlamaGuard guard;
  return whole ? parse_whole(raw) : parse_part(raw);
} catch (const std::exception&) {
  return std::nullopt;
}

ParsedAnswer TemplateParser::parse_part(const std::string& raw) const {
  common_chat_msg message = common_chat_parse(raw, true, params_);
  ParsedAnswer answer = answer_of(message);
  answer.has_calls = !message.tool_calls.empty();
  answer.begins_call = answer.has_calls || next_start(raw, 0) != std::string::npos;
  return answer;
}

ParsedAnswer TemplateParser::parse_whole(const std::string& raw) const {
  const std::size_t first = call_rule_.empty() ? std::string::npos : first_start(raw);
  if (first == std::string::npos) return parse_at_once(raw);
  ParsedAnswer answer = parse_part(raw.substr(0, first));
  answer.begins_call = false;
  CallReader calls(*this, raw);
  std::size_t text = first;  // where what is no call begins
  const auto end_text = [&](std::size_t end) {
    const std::string_view between = std::string_view(raw).substr(text, end - text);
    if (!is_blank(between)) answer.text += between;
  };
  int faults = 0;
  for (std::size_t at = first; at != std::string::npos && faults < kMaxFaults;) {
    const std::size_t end = calls.read(at, answer.tool_calls);
    if (end == at) {
      ++faults;
      at = next_start(raw, at + 1);
      continue;
    }
    end_text(at);
    text = end;
    at = next_start(raw, end);
  }
  end_text(raw.size());
  return answer;
}

ParsedAnswer TemplateParser::parse_at_once(const std::string& raw) const try {
  common_chat_msg message = common_chat_parse(raw, false, params_);
  ParsedAnswer answer = answer_of(message);
  if (!append_calls(message, answer.tool_calls)) throw std::runtime_error("a call is cut off");
  return answer;
} catch (const std::exception&) {
  ParsedAnswer answer = parse_part(raw);
  answer.begins_call = false;
  const std::string& last = answer.text.empty() ? answer.reasoning : answer.text;
  const std::size_t at = raw.find(last);
  if (at == std::string::npos) throw;
  answer.text += std::string_view(raw).substr(at + last.size());
  return answer;
}

std::size_t TemplateParser::next_start(const std::string& raw, std::size_t from) const {
  std::size_t next = std::string::npos;
  for (const std::string& start : call_starts_) next = std::min(next, raw.find(start, from));
  return next;
}

std::size_t TemplateParser::first_start(const std::string& raw) const {
  std::size_t at = next_start(raw, 0);
  for (int i = 0; i < kMaxFaults && at != std::string::npos; ++i) {
    const auto start = std::ranges::find_if(call_starts_, [&](const std::string& each) {
      return raw.compare(at, each.size(), each) == 0;
    });
    const std::size_t behind = at + start->size();
    // Reasoning goes on behind it; text and calls do not.
    const std::size_t before = parse_part(raw.substr(0, at)).reasoning.size();
    if (parse_part(raw.substr(0, behind)).reasoning.size() == before) break;
    at = next_start(raw, behind);
  }
  return at;
}

}  // namespace sluice
