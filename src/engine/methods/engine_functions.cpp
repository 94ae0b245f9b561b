#include "engine/methods/engine_functions.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include "engine/methods/function_table.hpp"
#include "engine/methods/run_call.hpp"
#include "protocol/parameters.hpp"
#include "rpc/error_codes.hpp"
#include "server/calls/pending_request.hpp"

namespace sluice {
namespace {

using SessionPtr = std::shared_ptr<ModelSession>;

/// What a function of the C interface returns, and nothing else.
constexpr std::string_view kSuccess = R"({"ret":0})";

/// Answers functions with what they return.
class EngineFunctions {
 public:
  EngineFunctions(Engine& engine, std::shared_ptr<ModelSessions> sessions, FunctionOptions options)
      : engine_(&engine), sessions_(std::move(sessions)), options_(std::move(options)) {}

  void answer(const FunctionSpec& function, const Function::Call& call, Function::Then then) const {
    if (is_change(function.name)) return change(function, call, std::move(then));
    for (const auto& [name, handler] : kHandlers) {
      if (name == function.name) return then((this->*handler)(call));
    }
  }

 private:
  using Call = Function::Call;
  using Handler = Result<std::string> (EngineFunctions::*)(const Call& call) const;
  static const std::array<std::pair<std::string_view, Handler>, 9> kHandlers;

  void change(const FunctionSpec& function, const Call& call, Function::Then then) const {
    Result<ModelChange> wanted = read_change(function, call);
    if (!wanted) return then(std::unexpected(std::move(wanted.error())));
    engine_->change(*std::move(wanted), [home = &call.home,
                                         then = std::move(then)](Result<void> outcome) mutable {
      home->post([then = std::move(then), outcome = std::move(outcome)]() mutable {
        then(outcome ? Result<std::string>(kSuccess) : std::unexpected(std::move(outcome.error())));
      });
    });
  }

  [[nodiscard]] Result<ModelChange> read_change(const FunctionSpec& function,
                                                const Call& call) const {
    const std::string name = function.full_name();
    const EngineInfo info = engine_->info();
    if (!has_change(info, function.name)) {
      return fail(kMethodNotFound, name + ": not with this engine (" + info.engine + ")");
    }
    if (Result<void> may = options_.rights.check(call.caller.principal, name); !may) {
      return std::unexpected(std::move(may.error()));
    }
    return decode_change(function.name, call.params, options_.rights);
  }

  [[nodiscard]] Result<std::string> init(const Call& call) const {
    Result<InitCall> given = decode_init_call(call.params);
    if (!given) return std::unexpected(std::move(given.error()));
    const EngineInfo info = engine_->info();
    if (!is_served(given->model_path, info)) {
      return fail(kInvalidParams, "Invalid params: this server has one model, " + info.model +
                                      "; leave model_path out, or start a server with the other");
    }
    if (info.context_tokens != 0 && given->max_context_len > info.context_tokens) {
      return fail(kInvalidParams, "Invalid params: max_context_len must be at most " +
                                      std::to_string(info.context_tokens) +
                                      ", the context that the server was started with (--context)");
    }
    Result<ModelSessions::Begun> begun =
        sessions_->begin(call.caller, given->settings, call.memory);
    if (!begun) return std::unexpected(std::move(begun.error()));
    if (!begun->is_new) begun->session->change_settings(given->settings);
    std::string out = R"({"handle_id":")" + begun->handle_id + R"(","status":")" +
                      (begun->is_new ? "initialized" : "already_initialized") + R"(","ret":0)";
    if (!given->ignored.empty()) {
      out.append(R"(,"ignored":[)");
      for (const std::string& each : given->ignored) {
        if (out.back() != '[') out.push_back(',');
        out.append("\"").append(each).append("\"");
      }
      out.push_back(']');
    }
    return out.append("}");
  }

  [[nodiscard]] bool is_served(const std::string& path, const EngineInfo& info) const {
    if (path.empty() || path == options_.model_path || path == info.model) return true;
    const std::filesystem::path served(options_.model_path);
    return !served.empty() && path == served.filename();
  }

  [[nodiscard]] Result<std::string> destroy(const Call& call) const {
    const Result<bool> ended = sessions_->end(call.params, call.caller);
    if (!ended) return std::unexpected(ended.error());
    return *ended ? R"({"status":"destroyed","ret":0})" : R"({"status":"not_initialized","ret":0})";
  }

  [[nodiscard]] Result<std::string> create_default_param(const Call& /*call*/) const {
    const EngineInfo info = engine_->info();
    const SamplingParams usual;
    json::object out;
    out["model_path"] = nullptr;
    out["max_context_len"] = info.context_tokens;
    out["max_new_tokens"] = -1;
    out["top_k"] = usual.top_k;
    out["top_p"] = usual.top_p;
    out["temperature"] = usual.temperature ? json::value(*usual.temperature) : json::value(nullptr);
    out["repeat_penalty"] = usual.repeat_penalty;
    out["frequency_penalty"] = usual.frequency_penalty;
    out["presence_penalty"] = usual.presence_penalty;
    return to_json(out);
  }

  [[nodiscard]] Result<std::string> clear_kv_cache(const Call& call) const {
    return in_session(call, [](ModelSession& session) -> Result<std::string> {
      session.clear();
      return std::string(kSuccess);
    });
  }

  [[nodiscard]] Result<std::string> get_kv_cache_size(const Call& call) const {
    return in_session(call, [](ModelSession& session) -> Result<std::string> {
      return R"({"ret":0,"cache_sizes":[)" + std::to_string(session.tokens()) + "]}";
    });
  }

  [[nodiscard]] Result<std::string> set_chat_template(const Call& call) const {
    std::array<std::string, 3> texts;
    constexpr std::array<std::string_view, 3> kNames = {"system_prompt", "prompt_prefix",
                                                        "prompt_postfix"};
    for (std::size_t i = 0; i < texts.size(); ++i) {
      Result<std::string> text = text_parameter(call.params, kNames[i]);
      if (!text) return text;
      texts[i] = *std::move(text);
    }
    return in_session(call, [&texts](ModelSession& session) -> Result<std::string> {
      Result<void> set =
          session.set_chat_template(std::move(texts[0]), std::move(texts[1]), std::move(texts[2]));
      if (!set) return std::unexpected(std::move(set.error()));
      return std::string(kSuccess);
    });
  }

  [[nodiscard]] Result<std::string> set_function_tools(const Call& call) const {
    Result<std::string> system = text_parameter(call.params, "system_prompt");
    if (!system) return system;
    Result<std::string> tools = tools_of(call.params);
    if (!tools) return tools;
    return in_session(call, [&](ModelSession& session) -> Result<std::string> {
      Result<void> set = session.set_function_tools(*std::move(system), *std::move(tools));
      if (!set) return std::unexpected(std::move(set.error()));
      return std::string(kSuccess);
    });
  }

  /// `tools`: an array of definitions, or its JSON text, as the C function takes it. Its JSON text,
  /// empty for none.
  static Result<std::string> tools_of(const json::object& params) {
    const json::value* const given = find_parameter(params, "tools");
    if (given == nullptr) return std::string();
    if (is_longer_than(*given, ModelSession::kMaxTools)) {
      return fail(kInvalidParams, "Invalid params: tools must be at most " +
                                      std::to_string(ModelSession::kMaxTools) + " bytes long");
    }
    Result<json::value> parsed =
        given->is_string() ? parse_json(given->get_string()) : Result<json::value>(*given);
    const bool is_list = parsed && parsed->is_array();
    if (!is_list || !std::ranges::all_of(parsed->get_array(), &json::value::is_object)) {
      return fail(kInvalidParams,
                  "Invalid params: tools must be an array of tool definitions, or its JSON text");
    }
    return parsed->get_array().empty() ? std::string() : to_json(*parsed);
  }

  [[nodiscard]] Result<std::string> get_functions(const Call& /*call*/) const {
    const EngineInfo info = engine_->info();
    return functions_json(
        [&info](std::string_view name) { return !is_change(name) || has_change(info, name); });
  }
  [[nodiscard]] Result<std::string> get_constants(const Call& /*call*/) const {
    return constants_json();
  }

  /// Does `work` in the caller's session. One that has its own place needs no init.
  template <class Work>
  [[nodiscard]] Result<std::string> in_session(const Call& call, Work work) const {
    const Result<SessionPtr> found = sessions_->find(call.params, call.caller);
    if (!found) return std::unexpected(found.error());
    if (*found != nullptr) return work(**found);
    if (!ModelSessions::has_own_place(call.caller)) {
      return fail(kInvalidParams,
                  "Invalid params: handle_id is missing; call init, and pass the handle_id that it "
                  "returns");
    }
    const Result<ModelSessions::Begun> begun = sessions_->begin(call.caller, {}, call.memory);
    if (!begun) return std::unexpected(begun.error());
    return work(*begun->session);
  }

  Engine* engine_;
  std::shared_ptr<ModelSessions> sessions_;
  FunctionOptions options_;
};

const std::array<std::pair<std::string_view, EngineFunctions::Handler>, 9>
    EngineFunctions::kHandlers = {{
        {"init", &EngineFunctions::init},
        {"destroy", &EngineFunctions::destroy},
        {"create_default_param", &EngineFunctions::create_default_param},
        {"clear_kv_cache", &EngineFunctions::clear_kv_cache},
        {"get_kv_cache_size", &EngineFunctions::get_kv_cache_size},
        {"set_chat_template", &EngineFunctions::set_chat_template},
        {"set_function_tools", &EngineFunctions::set_function_tools},
        {"get_functions", &EngineFunctions::get_functions},
        {"get_constants", &EngineFunctions::get_constants},
    }};

Tool tool_of(const FunctionSpec& function, Function::Handler handler) {
  return {.name = function.full_name(),
          .description = std::string(function.description),
          .input_schema = std::string(R"({"type":"object","properties":{)")
                              .append(function.properties)
                              .append("}}"),
          .handler = Tool::Deferred(
              [handler = std::move(handler)](const json::object& arguments,
                                             std::shared_ptr<PendingRequest> call) -> Result<void> {
                PendingRequest& asked = *call;
                const Principal caller = named_caller(asked.principal());
                handler({.params = arguments,
                         .caller = {.principal = caller, .storage = {}},
                         .memory = asked.memory(),
                         .home = asked.executor()},
                        [call = std::move(call)](Result<std::string> result) {
                          call->complete(result ? ToolResult{.structured_text = *std::move(result)}
                                                : ToolResult{.text = result.error().message,
                                                             .is_error = true});
                        });
                return {};
              })};
}

}  // namespace

Principal named_caller(const Principal& caller) {
  return {.id = caller.id, .isolated = false};
}

void add_engine_functions(ServerDefinition& definition, Engine& engine,
                          std::shared_ptr<ModelSessions> sessions, FunctionOptions options) {
  for (const char* const name : {"abort", "is_running"}) {
    for (const char* const prefix : {"rkllm_", "rkllm."}) {
      definition.stream_aliases.emplace(std::string(prefix) + name, name);
    }
  }
  const bool offers_tools = options.offers_tools;
  const auto functions =
      std::make_shared<const EngineFunctions>(engine, std::move(sessions), std::move(options));
  for (const FunctionSpec& each : function_specs()) {
    const Function::Handler handler = [functions, &each](const Function::Call& call,
                                                         Function::Then then) {
      functions->answer(each, call, std::move(then));
    };
    for (std::string& name : spellings_of(each))
      definition.functions.emplace(std::move(name), handler);
    if (offers_tools) definition.tools.push_back(tool_of(each, handler));
  }
}

}  // namespace sluice
