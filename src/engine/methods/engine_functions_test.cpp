#include "engine/methods/engine_functions.hpp"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tuple>

#include "core/file_test_support.hpp"
#include "engine/methods/engine_methods.hpp"
#include "rpc/error_codes.hpp"
#include "server/dispatch/server_test_support.hpp"
#include "server/sessions/session_storage.hpp"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// An engine that keeps what it is asked, and answers when the test says so.
class AskedEngine final : public Engine {
 public:
  struct Run final : Generation {
    void cancel() override {}
    void resume() override {}
    [[nodiscard]] GenerationStatus status() const override { return {}; }
  };
  Result<std::unique_ptr<Generation>> start(GenerationRequest request,
                                            std::shared_ptr<GenerationSink> sink,
                                            Executor& /*home*/) override {
    asked.push_back(std::move(request));
    sinks.push_back(std::move(sink));
    return std::make_unique<Run>();
  }
  void change(ModelChange change, ChangeDone then) override {
    changes.push_back(std::move(change));
    waiting = std::move(then);
  }
  [[nodiscard]] EngineInfo info() const override { return facts; }
  [[nodiscard]] EngineStats stats() const override { return {}; }
  void shutdown() override {}

  void answer(const std::string& text, Completion::Reason reason = Completion::Reason::stop) {
    if (!text.empty()) sinks.back()->on_delta({.text = text});
    Completion completion;
    completion.reason = reason;
    completion.usage.prompt_tokens = 10;
    completion.usage.completion_tokens = 2;
    sinks.back()->on_complete(std::move(completion));
  }

  EngineInfo facts = {.engine = "asked", .model = "a model", .context_tokens = 2048};
  std::vector<GenerationRequest> asked;
  std::vector<ModelChange> changes;
  ChangeDone waiting;
  std::vector<std::shared_ptr<GenerationSink>> sinks;
};

class EngineFunctionsTest : public ::testing::Test {
 protected:
  EngineFunctionsTest() {
    FunctionOptions options;
    options.model_path = "/models/a.gguf";
    options.offers_tools = true;
    options.rights.is_operator = [this](const Principal& caller) {
      return caller.id == operator_name;
    };
    options.rights.folder = folder;
    std::ofstream(files.path("a.lora")) << "an adapter";
    add_engine_methods(bench.definition, engine, std::move(options));
    bench.serve();
  }
  /// The result or the error of a method, as JSON.
  std::string ask(std::string_view method, std::string_view params, Caller& caller) {
    std::string now = bench.request(method, params, caller);
    bench.run_all();
    return now.empty() ? static_cast<RecordingCaller&>(caller).channel().replies.at(0) : now;
  }
  std::string ask(std::string_view method, std::string_view params = {}) {
    return ask(method, params, alice);
  }
  /// Runs a prompt whose answer is `text`.
  GenerationRequest run(std::string_view params, const std::string& text = "yes") {
    EXPECT_THAT(ask("rkllm_run_async", params), HasSubstr("streaming_started"));
    GenerationRequest asked = engine.asked.back();
    engine.answer(text);
    bench.run_all();
    return asked;
  }
  static std::vector<std::string> said(const GenerationRequest& request) {
    std::vector<std::string> out;
    for (const ChatMessage& each : request.messages) out.push_back(each.role + ": " + each.content);
    return out;
  }

  /// Asks for a change, which the engine makes with this outcome.
  std::string ask_change(std::string_view method, std::string_view params,
                         Result<void> outcome = {}) {
    EXPECT_EQ(bench.request(method, params, alice), "");
    if (engine.waiting != nullptr) std::exchange(engine.waiting, nullptr)(std::move(outcome));
    bench.run_all();
    return alice.channel().replies.at(0);
  }
  void have_all() {
    operator_name = "alice";
    engine.facts.loads_adapters = true;
    engine.facts.loads_prompt_caches = true;
    engine.facts.takes_cross_attention = true;
  }

  std::string operator_name;
  test::TemporaryDirectory files;
  std::shared_ptr<const ModelFolder> folder =
      std::make_shared<const ModelFolder>(*ModelFolder::open(files.path()));
  AskedEngine engine;
  ServerBench bench;
  RecordingCaller alice{"alice"};
  RecordingCaller shared{"127.0.0.1", false};
};

TEST_F(EngineFunctionsTest, EachFunctionHasThreeSpellings) {
  for (const std::string_view name :
       {"get_constants", "rkllm_get_constants", "rkllm.get_constants"}) {
    EXPECT_THAT(ask(name), HasSubstr(R"("RKLLM_RUN_FINISH":2)")) << name;
  }
  for (const std::string_view name :
       {"create_default_param", "rkllm_createDefaultParam", "rkllm.createDefaultParam"}) {
    EXPECT_THAT(ask(name), HasSubstr(R"("max_context_len":2048)")) << name;
  }
  for (const std::string_view name : {"rkllm_run", "rkllm.run"}) {
    EXPECT_EQ(bench.request(name, R"("prompt":"a")", alice), "") << name;
  }
  for (const std::string_view name : {"run_async", "rkllm_run_async", "rkllm.run_async"}) {
    EXPECT_THAT(ask(name, R"("prompt":"a")"), HasSubstr("streaming_started")) << name;
  }
  EXPECT_THAT(ask("rkllm.is_running"), HasSubstr(R"("status":"running","streams":5)"));
  EXPECT_THAT(ask("rkllm_abort"), HasSubstr(R"("status":"aborted","streams":5)"));
}

TEST_F(EngineFunctionsTest, AsyncRunsMayBeWholeToo) {
  EXPECT_EQ(bench.request("run_async", R"("prompt":"a","stream":false)", alice), "");
  engine.answer("yes");
  bench.run_all();
  EXPECT_THAT(alice.channel().replies.at(0), HasSubstr(R"("text":"yes")"));
}

TEST_F(EngineFunctionsTest, WhatInitSetsHoldsForRunsThatSayNothingElse) {
  EXPECT_THAT(ask("init", R"("param":{"model_path":"a.gguf","max_new_tokens":7,"top_k":3,)"
                          R"("temperature":0.5,"is_async":true})"),
              AllOf(HasSubstr(R"("status":"initialized","ret":0,"ignored":["is_async"])")));
  EXPECT_THAT(ask("init", R"("top_p":0.5)"), HasSubstr("already_initialized"));
  GenerationRequest usual = run(R"("prompt":"a")");
  EXPECT_EQ(usual.max_tokens, 7);
  EXPECT_EQ(usual.sampling.top_k, 3);
  EXPECT_EQ(usual.sampling.top_p, 0.5F);
  EXPECT_EQ(usual.sampling.temperature, 0.5F);
  GenerationRequest own = run(R"("input":{"role":"user","input_type":0,"prompt_input":"b"},)"
                              R"("infer_params":{"mode":"RKLLM_INFER_GENERATE","max_new_tokens":9,)"
                              R"("sampling_params":{"temperature":0}})");
  EXPECT_EQ(own.prompt, "b");
  EXPECT_EQ(own.max_tokens, 9);
  EXPECT_EQ(own.sampling.top_k, 3);
  EXPECT_EQ(own.sampling.temperature, 0.0F);
  EXPECT_THAT(ask("destroy"), HasSubstr("destroyed"));
  EXPECT_THAT(ask("destroy"), HasSubstr("not_initialized"));
  EXPECT_EQ(run(R"("prompt":"a")").max_tokens, std::nullopt);
}

TEST_F(EngineFunctionsTest, InitRefusesAnotherModelAndALongerContext) {
  EXPECT_THAT(ask("init", R"("model_path":"/models/b.gguf")"),
              AllOf(HasSubstr("-32602"), HasSubstr("this server has one model, a model")));
  EXPECT_THAT(ask("init", R"("max_context_len":4096)"), HasSubstr("at most 2048"));
  EXPECT_THAT(ask("init", R"("param":[])"), HasSubstr("param must be an object"));
  EXPECT_THAT(ask("init", R"("temperature":99)"), HasSubstr("temperature must be"));
}

TEST_F(EngineFunctionsTest, WhatIsSaidIsKeptIfARunAsksForIt) {
  ask("init");
  EXPECT_EQ(run(R"("prompt":"one","keep_history":true)", "1").prompt, "one");
  EXPECT_THAT(said(run(R"("prompt_input":"two","infer_params":{"keep_history":1})", "2")),
              ElementsAre("user: one", "assistant: 1", "user: two"));
  EXPECT_EQ(run(R"("prompt":"alone")").prompt, "alone");
  EXPECT_THAT(ask("get_kv_cache_size"), HasSubstr(R"("cache_sizes":[12])"));
  EXPECT_THAT(ask("clear_kv_cache"), HasSubstr(R"("ret":0)"));
  EXPECT_THAT(ask("get_kv_cache_size"), HasSubstr(R"("cache_sizes":[0])"));
  EXPECT_EQ(run(R"("prompt":"three","keep_history":1)").prompt, "three");
}

TEST_F(EngineFunctionsTest, WhatWasCancelledIsNotKept) {
  ask("init");
  ask("run_async", R"("prompt":"one","keep_history":true)");
  EXPECT_THAT(ask("run_async", R"("prompt":"two","keep_history":true)"),
              HasSubstr("A run with keep_history is under way"));
  engine.answer("half", Completion::Reason::cancelled);
  bench.run_all();
  EXPECT_EQ(run(R"("prompt":"two","keep_history":true)").prompt, "two");
}

TEST_F(EngineFunctionsTest, OwnTemplatesTakeThePlaceOfTheModels) {
  EXPECT_THAT(ask("set_chat_template",
                  R"("system_prompt":"S","prompt_prefix":"<u>","prompt_postfix":"</u>")"),
              HasSubstr(R"("ret":0)"));
  const GenerationRequest first = run(R"("prompt":"a","keep_history":1)", "x");
  EXPECT_TRUE(first.is_raw);
  EXPECT_EQ(first.prompt, "S<u>a</u>");
  EXPECT_EQ(run(R"("prompt":"b","keep_history":1)").prompt, "S<u>a</u>x<u>b</u>");
}

TEST_F(EngineFunctionsTest, ToolsAreOfferedInEachRun) {
  ask("set_function_tools", R"("system_prompt":"S","tools":"[{\"name\":\"f\"}]")");
  const GenerationRequest asked = run(R"("prompt":"a")");
  EXPECT_EQ(asked.tools, R"([{"name":"f"}])");
  EXPECT_THAT(said(asked), ElementsAre("system: S", "user: a"));
  EXPECT_THAT(ask("set_function_tools", R"("tools":"{")"), HasSubstr("tools must be an array"));
  EXPECT_THAT(ask("set_function_tools", R"("tools":[1])"), HasSubstr("tools must be an array"));
  EXPECT_THAT(said(run(R"("input":{"role":"tool","prompt_input":"42"})")),
              ElementsAre("system: S", "tool: 42"));
}

TEST_F(EngineFunctionsTest, WhoeverSharesAnAddressNamesItsSession) {
  EXPECT_THAT(ask("set_chat_template", R"("prompt_prefix":"x")", shared),
              AllOf(HasSubstr("-32602"), HasSubstr("call init, and pass the handle_id")));
  EXPECT_THAT(ask("rkllm_run", R"("prompt":"a","keep_history":1)", shared),
              HasSubstr("keep_history needs a session, and handle_id is missing; call init"));
  EXPECT_THAT(ask("rkllm_run", R"("prompt":"a","keep_history":1)"),
              HasSubstr("keep_history needs a session; call init first"));
  const std::string begun = ask("init", "", shared);
  const std::string id = begun.substr(begun.find(R"("handle_id":)") + 13, 16);
  const std::string named = R"("handle_id":")" + id + "\"";
  EXPECT_THAT(ask("set_chat_template", named + R"(,"prompt_prefix":"x")", shared),
              HasSubstr(R"("ret":0)"));
  ask("run_async", R"("prompt":"a")", shared);
  EXPECT_EQ(engine.asked.back().prompt, "a") << "a run that names no session has none";
  ask("run_async", named + R"(,"prompt":"a")", shared);
  EXPECT_EQ(engine.asked.back().prompt, "xa");
  EXPECT_THAT(ask("get_kv_cache_size", named), HasSubstr("you have no session of this handle_id"))
      << "somebody else has found it";
  EXPECT_THAT(ask("get_kv_cache_size", R"("handle_id":[])"), HasSubstr("handle_id must be"));
}

TEST_F(EngineFunctionsTest, AClientThatSharesItsAddressHasSixteenSessions) {
  std::vector<std::string> named;
  for (std::size_t i = 0; i < ModelSessions::kMaxOfPrincipal + 1; ++i) {
    const std::string begun = ask("init", "", shared);
    named.push_back(R"("handle_id":")" + begun.substr(begun.find(R"("handle_id":)") + 13, 16) +
                    "\"");
  }
  EXPECT_THAT(ask("get_kv_cache_size", named.front(), shared), HasSubstr("-32602"));
  EXPECT_THAT(ask("get_kv_cache_size", named.at(1), shared), HasSubstr(R"("ret":0)"));
  EXPECT_THAT(ask("get_kv_cache_size", named.back(), shared), HasSubstr(R"("ret":0)"));
}

TEST_F(EngineFunctionsTest, WhatTheEngineDoesNotHaveIsSaid) {
  EXPECT_THAT(ask("rkllm_load_lora", R"("lora_adapter_path":"x")"),
              AllOf(HasSubstr("-32601"), HasSubstr("not with this engine (asked)")));
}

TEST_F(EngineFunctionsTest, OnlyOperatorsChangeTheModel) {
  have_all();
  operator_name = "bob";
  for (const std::string_view name : {"load_lora", "rkllm_load_prompt_cache",
                                      "rkllm.release_prompt_cache", "set_cross_attn_params"}) {
    EXPECT_THAT(ask(name, R"("lora_adapter_path":"../x","lora_adapter_name":"a")"),
                AllOf(HasSubstr("-32600"), HasSubstr("is for operators: start the server with "
                                                     "--operator NAME")))
        << name;
  }
  EXPECT_THAT(ask("run_async", R"("prompt":"a","infer_params":{"prompt_cache_params":)"
                               R"({"prompt_cache_path":"p","save_prompt_cache":1}})"),
              HasSubstr("prompt_cache_path is for operators"));
  EXPECT_THAT(engine.changes, IsEmpty());
  EXPECT_THAT(ask("get_functions"), HasSubstr(R"("scale":{"type":"number"}}},"available":true})"));
}

TEST_F(EngineFunctionsTest, AdaptersAreLoadedFromTheFolderAndNamedByRuns) {
  have_all();
  EXPECT_THAT(ask_change("rkllm.load_lora", R"("lora_adapter_path":"a.lora",)"
                                            R"("lora_adapter_name":"cat","scale":0.5)"),
              HasSubstr(R"("result":{"ret":0})"));
  const auto& lora = std::get<LoadLora>(engine.changes.at(0));
  EXPECT_EQ(lora.name, "cat");
  EXPECT_EQ(lora.scale, 0.5F);
  EXPECT_TRUE(lora.file.path.ends_with("/a.lora"));
  EXPECT_THAT(ask_change("load_lora", R"("lora_adapter_path":"a.lora","lora_adapter_name":"dog")",
                         fail(kInvalidParams, "it does not fit")),
              AllOf(HasSubstr("-32602"), HasSubstr("it does not fit")));
  EXPECT_EQ(run(R"("prompt":"a","infer_params":{"lora_params":{"lora_adapter_name":"cat"}})")
                .lora_adapter,
            "cat");
  EXPECT_EQ(run(R"("prompt":"a")").lora_adapter, "");
}

TEST_F(EngineFunctionsTest, PromptCachesAreSavedAndLoaded) {
  have_all();
  const GenerationRequest asked = run(R"("prompt":"a","infer_params":{"prompt_cache_params":)"
                                      R"({"prompt_cache_path":"p","save_prompt_cache":1}})");
  EXPECT_EQ(asked.prompt_cache, std::filesystem::canonical(files.path()).string() + "/p");
  EXPECT_THAT(ask("load_prompt_cache", R"("prompt_cache_path":"p")"), HasSubstr("there is no p"));
  ask_change("load_prompt_cache", R"("prompt_cache_path":"a.lora")");
  EXPECT_TRUE(std::holds_alternative<LoadPromptCache>(engine.changes.back()));
  ask_change("release_prompt_cache", "");
  EXPECT_TRUE(std::holds_alternative<ReleasePromptCache>(engine.changes.back()));
}

TEST_F(EngineFunctionsTest, WhatAnOperatorSaysIsChecked) {
  have_all();
  const std::string arrays = R"("encoder_v_cache":[1,2],"encoder_mask":[0],"encoder_pos":[0])";
  for (const auto& [method, params, why] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {"load_lora", R"("lora_adapter_path":"a.lora")", "lora_adapter_name must be a name"},
           {"load_lora", R"("lora_adapter_name":"a\u0000b")", "lora_adapter_name must be a name"},
           {"load_lora", R"("lora_adapter_name":["a"])", "lora_adapter_name must be a string"},
           {"load_lora", R"("lora_adapter_name":"a")", "lora_adapter_path must be a path"},
           {"load_lora", R"("lora_adapter_name":"a","scale":"1")", "scale must be a number"},
           {"load_lora", R"("lora_adapter_name":"a","scale":1e300)", "scale must be a number"},
           {"load_lora", R"("lora_adapter_name":"a","lora_adapter_path":"../a")",
            "lora_adapter_path must have no"},
           {"load_prompt_cache", R"("prompt_cache_path":7)", "prompt_cache_path must be a string"},
           {"set_cross_attn_params", arrays, "encoder_k_cache must be an array of numbers"},
           {"set_cross_attn_params", R"("encoder_k_cache":{},)" + arrays, "encoder_k_cache must"},
           {"set_cross_attn_params", R"("encoder_k_cache":["x"],)" + arrays,
            "encoder_k_cache must"},
           {"set_cross_attn_params", R"("encoder_k_cache":[1e39],)" + arrays,
            "encoder_k_cache must"},
           {"set_cross_attn_params", R"("encoder_k_cache":"AAA=",)" + arrays,
            "encoder_k_cache must"},
           {"set_cross_attn_params", R"("encoder_k_cache":"?",)" + arrays, "encoder_k_cache must"},
           {"set_cross_attn_params", R"("encoder_k_cache":[1],)" + arrays, "as long as encoder_v"},
           {"set_cross_attn_params", R"("encoder_k_cache":[1,2],"num_tokens":2,)" + arrays,
            "num_tokens must be"},
           {"set_cross_attn_params",
            R"("encoder_k_cache":[1],"encoder_v_cache":[1],"encoder_mask":[],"encoder_pos":[])",
            "not empty"},
           {"set_cross_attn_params",
            R"("encoder_k_cache":[1],"encoder_v_cache":[1],"encoder_mask":[1],"encoder_pos":[0.5])",
            "encoder_pos must"}}) {
    EXPECT_THAT(ask(method, params), AllOf(HasSubstr("-32602"), HasSubstr(why))) << params;
  }
  EXPECT_THAT(engine.changes, IsEmpty());
  ask_change("set_cross_attn_params",
             R"("encoder_k_cache":"AACAPwAAAEA=","num_tokens":1,)" + arrays);
  const auto& set = std::get<SetCrossAttention>(engine.changes.at(0));
  EXPECT_THAT(set.k, ElementsAre(1.0F, 2.0F));
  EXPECT_THAT(set.v, ElementsAre(1.0F, 2.0F));
  EXPECT_THAT(set.positions, ElementsAre(0));
}

TEST(ChangeCallTest, ArraysAreLimited) {
  const std::string long_text((SetCrossAttention::kMaxBytes / 3 + 1) * 4, 'A');
  json::object params;
  params["encoder_k_cache"] = long_text;
  const auto change = decode_change("set_cross_attn_params", params, {});
  ASSERT_FALSE(change);
  EXPECT_THAT(change.error().message, HasSubstr("must be at most 67108864 bytes"));
}

TEST(ChangeCallTest, FilesNeedAFolder) {
  const json::object params = {{"lora_adapter_name", "a"}, {"lora_adapter_path", "a"}};
  const auto change = decode_change("load_lora", params, {});
  ASSERT_FALSE(change);
  EXPECT_THAT(change.error().message, HasSubstr("start the server with --model-dir DIR"));
}

TEST_F(EngineFunctionsTest, McpClientsSeeThemAsTools) {
  const auto call = [&](std::string_view tool, const std::string& arguments) {
    return ask("tools/call",
               R"("name":")" + std::string(tool) + R"(","arguments":{)" + arguments + "}");
  };
  const std::string begun = call("rkllm_init", R"("max_new_tokens":5)");
  const std::string at = R"("structuredContent":{"handle_id":")";
  const std::string named =
      R"("handle_id":")" + begun.substr(begun.find(at) + at.size(), 16) + "\"";
  EXPECT_THAT(call("rkllm_set_chat_template", named + R"(,"prompt_prefix":"<u>")"),
              HasSubstr(R"("structuredContent":{"ret":0})"));
  EXPECT_THAT(call("rkllm_set_chat_template", R"("prompt_prefix":"<u>")"),
              HasSubstr("handle_id is missing"))
      << "connections of one client do not share a session";
  EXPECT_EQ(
      bench.request(
          "tools/call",
          R"("name":"rkllm_run","arguments":{"prompt":"a","keep_history":1,)" + named + "}", alice),
      "");
  EXPECT_EQ(engine.asked.back().prompt, "<u>a");
  EXPECT_EQ(engine.asked.back().max_tokens, 5);
  engine.answer("yes");
  bench.run_all();
  EXPECT_THAT(alice.channel().replies.at(0), HasSubstr(R"("text":"yes")"));
  EXPECT_THAT(call("rkllm_get_kv_cache_size", named), HasSubstr(R"("cache_sizes":[12])"));
  EXPECT_THAT(call("rkllm_load_lora", ""), HasSubstr(R"("isError":true)"));
}

TEST_F(EngineFunctionsTest, RunsWithoutTextStandAlone) {
  engine.facts.takes_inputs = true;
  ask("init", R"("param":{"max_new_tokens":7})");
  ask("set_function_tools", R"("system_prompt":"S","tools":[{"name":"t"}])");
  ask("set_chat_template", R"("prompt_prefix":"<u>")");
  const GenerationRequest tokens =
      run(R"("input":{"input_type":1,"token_input":{"input_ids":[1,2]}})");
  EXPECT_EQ(std::get<TokenIds>(*tokens.input), (TokenIds{1, 2}));
  EXPECT_EQ(tokens.max_tokens, 7);
  EXPECT_TRUE(tokens.tools.empty() && tokens.messages.empty() && tokens.prompt.empty());
  EXPECT_THAT(ask("run_async", R"("prompt":"a","keep_history":1,"infer_params":{"mode":1})"),
              HasSubstr("keep_history goes with RKLLM_INPUT_PROMPT"));
  ask("destroy");
  ask("set_function_tools", R"("tools":[{"name":"t"}])");
  const GenerationRequest states =
      run(R"("prompt":"a","infer_params":{"mode":"RKLLM_INFER_GET_LAST_HIDDEN_LAYER"})");
  EXPECT_EQ(states.yields, Yield::hidden_states);
  EXPECT_TRUE(states.tools.empty());
  EXPECT_EQ(ask("get_kv_cache_size"),
            R"({"jsonrpc":"2.0","id":1,"result":{"ret":0,"cache_sizes":[0]}})");
}

TEST_F(EngineFunctionsTest, HiddenStatesAndLogitsAreMembersOfWhatIsAnswered) {
  engine.facts.takes_inputs = true;
  const std::string member = R"("logits":{"logits":"AACAPw==","vocab_size":1,"num_tokens":1})";
  const auto answer = [&] {
    engine.sinks.back()->on_delta({.kind = Delta::Kind::members, .text = member});
    engine.answer("");
    bench.run_all();
    return alice.channel().replies.at(0);
  };
  constexpr std::string_view kAsked = R"("prompt":"a","infer_params":{"mode":2})";
  EXPECT_EQ(bench.request("rkllm_run", kAsked, alice), "");
  EXPECT_THAT(answer(), HasSubstr(R"("text":"",)" + member + R"(,"finish_reason":"stop")"));
  EXPECT_EQ(bench.request("tools/call",
                          R"("name":"rkllm_run","arguments":{)" + std::string(kAsked) + "}", alice),
            "");
  EXPECT_THAT(answer(), HasSubstr("}," + member + "}"));
}

TEST_F(EngineFunctionsTest, AsksForWhatIsNotThereAreRefused) {
  for (const auto& [params, why] : std::vector<std::pair<std::string, std::string>>{
           {R"("input":{"input_type":4,"prompt_input":"a"})", "input_type must be"},
           {R"("input":{"input_type":"RKLLM_INPUT"})",
            "RKLLM_INPUT_PROMPT (0), RKLLM_INPUT_TOKEN (1), RKLLM_INPUT_EMBED (2) or "
            "RKLLM_INPUT_MULTIMODAL (3)"},
           {R"("input":{"role":"system","prompt_input":"a"})", "role must be"},
           {R"("input":{"prompt_input":7})", "prompt_input must be a string"},
           {R"("prompt":"a","input":{"prompt_input":"b"})", "not several"},
           {R"("prompt":"a","infer_params":{"mode":3})", "mode must be"},
           {R"("prompt":"a","infer_params":{"mode":2})",
            "mode other than RKLLM_INFER_GENERATE: not with this engine (asked)"},
           {R"("input":{"input_type":1,"token_input":{"input_ids":[1]}})",
            "input_type other than RKLLM_INPUT_PROMPT: not with this engine (asked)"},
           {R"("prompt":"a","infer_params":{"lora_params":{"lora_adapter_name":"x"}})",
            "lora_params: not with this engine (asked)"},
           {R"("prompt":"a","infer_params":{"prompt_cache_params":{"prompt_cache_path":"p"}})",
            "give both"},
           {R"("prompt":"a","infer_params":{"prompt_cache_params":{"save_prompt_cache":1}})",
            "give both"},
           {R"("prompt":"a","infer_params":{"prompt_cache_params":)"
            R"({"prompt_cache_path":"p","save_prompt_cache":1}})",
            "prompt_cache_params: not with this engine (asked)"},
           {R"("prompt":"a","infer_params":{"sampling_params":{"top_k":"x"}})", "top_k must be"},
           {R"("prompt":"a","max_new_tokens":1e12)", "max_new_tokens must be"},
           {R"("prompt":"a","keep_history":"x")", "keep_history must be 0 or 1"}}) {
    EXPECT_THAT(ask("run_async", params), AllOf(HasSubstr("-32602"), HasSubstr(why))) << params;
  }
  EXPECT_THAT(engine.asked, IsEmpty());
}

TEST_F(EngineFunctionsTest, TheListOfFunctionsSaysWhichAreThere) {
  const std::string list = ask("get_functions");
  EXPECT_THAT(list, HasSubstr(R"({"name":"rkllm_set_chat_template",)"));
  EXPECT_THAT(list, HasSubstr(R"("scale":{"type":"number"}}},"available":false})"));
  EXPECT_THAT(list, Not(HasSubstr(R"("name":"rkllm_create_default_param")")));
}

TEST(ModelSessionsTest, EndAfterAnHourAndWithTheirConnection) {
  ManualClock clock;
  ModelSessions sessions(clock);
  const Principal principal{.id = "a", .isolated = true};
  const MethodCaller alone{.principal = principal, .storage = {}};
  const auto memory = std::shared_ptr<MemoryShare>();
  ASSERT_TRUE(sessions.begin(alone, {}, memory));
  clock.advance(std::chrono::minutes(59));
  EXPECT_NE(sessions.find({}, alone).value(), nullptr);
  clock.advance(std::chrono::minutes(59));
  EXPECT_NE(sessions.find({}, alone).value(), nullptr) << "it was used";
  clock.advance(std::chrono::hours(1));
  EXPECT_EQ(sessions.find({}, alone).value(), nullptr);

  auto storage = std::make_shared<SessionStorage>();
  const MethodCaller connected{.principal = principal, .storage = [&] { return storage; }};
  const std::string id = sessions.begin(connected, {}, memory)->handle_id;
  const json::object named = {{"handle_id", id}};
  EXPECT_NE(sessions.find(named, alone).value(), nullptr);
  storage = std::make_shared<SessionStorage>();
  EXPECT_EQ(sessions.find({}, connected).value(), nullptr) << "another connection has its own";
  EXPECT_FALSE(sessions.find(named, alone)) << "the session has outlived its connection";
}

TEST(ModelSessionTest, TextsAreLimited) {
  const auto session = std::make_shared<ModelSession>(RunSettings(), nullptr);
  EXPECT_FALSE(session->set_chat_template(std::string(ModelSession::kMaxTemplate, 'x'), "y", ""));
  EXPECT_FALSE(session->set_function_tools("", std::string(ModelSession::kMaxTools + 1, 'x')));
  RunCall call;
  call.keep_history = true;
  for (std::size_t turns = 0; turns < 3; ++turns) {
    call.request.prompt = std::string(ModelSession::kMaxHistory / 2, 'x');
    call.request.messages.clear();
    auto turn = session->prepare(call);
    if (turns == 2) {
      EXPECT_THAT(turn.error().message, HasSubstr("call clear_kv_cache"));
      break;
    }
    ASSERT_TRUE(turn);
    (*turn)->end({});
  }
}

TEST(ModelSessionTest, CallsOfToolsAreKeptAndCount) {
  const auto session = std::make_shared<ModelSession>(RunSettings(), nullptr);
  RunCall call;
  call.keep_history = true;
  call.request.prompt = "Rain?";
  auto turn = session->prepare(call);
  ASSERT_TRUE(turn);
  (*turn)->append(
      {.kind = Delta::Kind::tool_call, .text = R"({"name":"rain","arguments":{"in":"Rome"}})"});
  (*turn)->end({});
  turn->reset();
  call.request = {};
  call.request.messages = {{.role = "tool", .content = "yes"}};
  turn = session->prepare(call);
  ASSERT_TRUE(turn);
  ASSERT_EQ(call.request.messages.size(), 3U);
  const ChatMessage& asked = call.request.messages[1];
  ASSERT_EQ(asked.tool_calls.size(), 1U);
  EXPECT_EQ(asked.tool_calls[0].name, "rain");
  EXPECT_EQ(asked.tool_calls[0].arguments, R"({"in":"Rome"})");
  turn->reset();
  call.request = {};
  call.request.messages = {{.role = "user", .content = "a"}};
  call.request.messages[0].tool_calls = {{.arguments = std::string(5U << 20U, 'x')}};
  turn = session->prepare(call);
  ASSERT_TRUE(turn);
  (*turn)->end({});
  turn->reset();
  call.request = {};
  call.request.prompt = "b";
  EXPECT_FALSE(session->prepare(call)) << "what is kept is too long now";
}

TEST(ModelSessionTest, ATemplateMakesNoPromptBeyondALimit) {
  const auto session = std::make_shared<ModelSession>(RunSettings(), nullptr);
  ASSERT_TRUE(session->set_chat_template("", std::string(ModelSession::kMaxTemplate, 'x'), ""));
  RunCall call;
  call.request.messages.assign(257, {.role = "user", .content = "a"});
  EXPECT_FALSE(session->prepare(call));
  call.request.messages.assign(255, {.role = "user", .content = "a"});
  EXPECT_TRUE(session->prepare(call));
}

}  // namespace
}  // namespace sluice
