#include "engine/rkllm/runtime/runtime.hpp"

#include <atomic>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/rkllm/runtime/fake_rkllm_test_support.hpp"

namespace sluice::rkllm {
namespace {

using test::fake_library;
using test::FakeScript;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class RkllmRuntimeTest : public ::testing::TestWithParam<Abi> {
 protected:
  std::unique_ptr<Runtime> opened() const {
    auto runtime = open_runtime(fake_library(GetParam()), GetParam());
    EXPECT_TRUE(runtime) << runtime.error().message;
    return runtime ? *std::move(runtime) : nullptr;
  }
  const AbiFacts& facts() const { return facts_of(GetParam()); }

  /// The states and texts of a run.
  static std::vector<std::string> outputs(Runtime& runtime, const RunInput& input = {.input = "Hi"},
                                          const RunParams& params = {}) {
    std::vector<std::string> out;
    EXPECT_EQ(runtime.run(input, params,
                          [&out](const Output& output) {
                            out.push_back(std::to_string(static_cast<int>(output.state)) + " " +
                                          std::string(output.text));
                            return CallbackReturn::go_on;
                          }),
              0);
    return out;
  }
};

TEST_P(RkllmRuntimeTest, AnswersAPrompt) {
  const FakeScript script("say Hello\nwait\nsay \\xC3\\xA9\n");
  const auto runtime = opened();
  EXPECT_EQ(runtime->init({.model_path = "m.rkllm", .max_context_len = 256, .base_domain_id = 3}),
            0);
  EXPECT_THAT(outputs(*runtime), ElementsAre("0 Hello", "1 ", "0 \xC3\xA9", "2 "));
  EXPECT_EQ(runtime->destroy(), 0);
  EXPECT_THAT(script.log(), HasSubstr("init model=m.rkllm context=256 max=-1 domain=3"));
  EXPECT_THAT(script.log(), HasSubstr("prompt=Hi mode=0"));
  EXPECT_THAT(script.log(), HasSubstr("destroy"));
}

TEST_P(RkllmRuntimeTest, KnowsWhatTheRuntimeHasByDefault) {
  const auto runtime = opened();
  const ModelParams params = runtime->default_params();
  EXPECT_EQ(params.max_context_len, 512);
  EXPECT_EQ(params.sampling.top_k, 40);
  EXPECT_FLOAT_EQ(params.sampling.mirostat_eta.value(), 0.1F);
  EXPECT_EQ(params.skip_special_token, true);
  EXPECT_EQ(params.n_keep.has_value(), facts().has_history);
  EXPECT_EQ(params.n_batch.has_value(), facts().has_pause);
  EXPECT_EQ(params.ignore_eos_token.has_value(), facts().has_sampling_of_run);
  EXPECT_EQ(params.img_start, facts().has_sampling_of_run ? "" : "<image>");
}

TEST_P(RkllmRuntimeTest, PassesOnWhatTheVersionHas) {
  const FakeScript script("say a\n");
  const std::string cache = ::testing::TempDir() + "p.bin";
  const auto runtime = opened();
  ASSERT_EQ(runtime->init({.model_path = "m"}), 0);
  outputs(*runtime,
          {.role = "tool", .enable_thinking = true, .input = std::vector<std::int32_t>{1, 2, 3}},
          {.mode = InferMode::generate,
           .lora_adapter_name = "cat",
           .prompt_cache_path = cache,
           .save_prompt_cache = true,
           .keep_history = true,
           .sampling = {.temperature = 0.5F},
           .max_new_tokens = 7});
  const std::string log = script.log();
  EXPECT_THAT(log, HasSubstr("tokens=1,2,3 mode=0 lora=cat cache=" + cache + " save"));
  EXPECT_EQ(log.contains("role=tool thinking"), facts().has_thinking);
  EXPECT_EQ(log.contains("history=1"), facts().has_history);
  EXPECT_EQ(log.contains("max=7 temperature=0.500000"), facts().has_sampling_of_run);
  outputs(*runtime, {.input = EmbedData{.embed = {1, 2, 3, 4}, .n_tokens = 2}});
  EXPECT_THAT(script.log(), HasSubstr("embed=2"));
  outputs(*runtime,
          {.input = MultiModalData{.prompt = "What?", .image_embed = {1, 2}, .n_image_tokens = 1}});
  EXPECT_THAT(script.log(), HasSubstr("multimodal=What? images=1"));
}

TEST_P(RkllmRuntimeTest, SaysWhatAVersionDoesNotHave) {
  const FakeScript script("lora -1\nload-cache 0\n");
  const auto runtime = opened();
  ASSERT_EQ(runtime->init({.model_path = "m"}), 0);
  EXPECT_EQ(runtime->load_lora("l.rkllm", "cat", 0.5F), -1);
  EXPECT_EQ(runtime->load_prompt_cache("p.bin"), 0);
  EXPECT_EQ(runtime->release_prompt_cache(), 0);
  const bool has_template = facts().has_chat_template;
  EXPECT_EQ(runtime->set_chat_template("s", "u", "a").has_value(), has_template);
  EXPECT_EQ(runtime->clear_kv_cache(true, {}).has_value(), has_template);
  const bool has_tools = facts().has_function_tools;
  CrossAttnParam attention{};
  attention.num_tokens = 9;
  EXPECT_EQ(runtime->set_function_tools("s", "[]", "r").has_value(), has_tools);
  EXPECT_EQ(runtime->set_cross_attn_params(attention).has_value(), has_tools);
  std::vector<std::int32_t> sizes;
  EXPECT_EQ(runtime->get_kv_cache_size(sizes).has_value(), has_tools);
  EXPECT_EQ(script.log().contains("set_function_tools s|[]|r"), has_tools);
  EXPECT_EQ(script.log().contains("set_chat_template s|u|a"), has_template);
}

TEST_P(RkllmRuntimeTest, PausesWhereTheVersionCan) {
  const FakeScript script("say a\nsay b\nsay c\n");
  const auto runtime = opened();
  ASSERT_EQ(runtime->init({.model_path = "m"}), 0);
  std::string said;
  const auto run = [&] {
    return runtime->run({.input = std::vector<std::int32_t>{1}}, {.keep_history = true},
                        [&said](const Output& output) {
                          said += output.text;
                          return CallbackReturn::pause;
                        });
  };
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(said, facts().has_pause ? "a" : "abc");
  if (!facts().has_pause) return;
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(said, "abc");
}

TEST_P(RkllmRuntimeTest, GivesLogitsAndFiguresWhereTheVersionDoes) {
  const FakeScript script("logits 5\n");
  const auto runtime = opened();
  ASSERT_EQ(runtime->init({.model_path = "m"}), 0);
  std::size_t logits = 0;
  std::optional<PerfStat> perf;
  EXPECT_EQ(runtime->run({.input = "Hi"}, {.mode = InferMode::get_logits},
                         [&](const Output& output) {
                           logits += output.logits.size();
                           perf = output.perf;
                           return CallbackReturn::go_on;
                         }),
            0);
  EXPECT_EQ(logits, facts().has_logits ? 5U : 0U);
  ASSERT_EQ(perf.has_value(), facts().has_figures);
  if (perf) EXPECT_EQ(perf->generate_tokens, 1);
}

TEST_P(RkllmRuntimeTest, IsAborted) {
  const FakeScript script("say a\nblock\nsay b\n");
  const auto runtime = opened();
  ASSERT_EQ(runtime->init({.model_path = "m"}), 0);
  std::atomic<bool> has_begun = false;
  std::jthread aborter([&] {
    has_begun.wait(false);
    while (runtime->abort() != 0) std::this_thread::yield();
  });
  std::string said;
  EXPECT_EQ(runtime->run({.input = "Hi"}, {},
                         [&](const Output& output) {
                           said += output.text;
                           has_begun = true;
                           has_begun.notify_all();
                           return CallbackReturn::go_on;
                         }),
            0);
  EXPECT_EQ(said, "a");
}

TEST_P(RkllmRuntimeTest, FailsAsTheRuntimeDoes) {
  {
    const FakeScript script("init -1\n");
    EXPECT_EQ(opened()->init({.model_path = "m"}), -1);
  }
  {
    const FakeScript script("init null\n");
    EXPECT_EQ(opened()->init({.model_path = "m"}), Runtime::kNoHandle);
  }
  {
    const FakeScript script("run -2\n");
    const auto runtime = opened();
    ASSERT_EQ(runtime->init({.model_path = "m"}), 0);
    EXPECT_EQ(runtime->run({.input = "Hi"}, {}, {}), -2);
  }
  const FakeScript script("say a\nerror\n");
  const auto runtime = opened();
  ASSERT_EQ(runtime->init({.model_path = "m"}), 0);
  EXPECT_THAT(outputs(*runtime), ElementsAre("0 a", "3 "));
}

TEST_P(RkllmRuntimeTest, IsProbedByWhatItWrites) {
  const Result<Abi> abi = probe_abi(fake_library(GetParam()));
  ASSERT_TRUE(abi) << abi.error().message;
  EXPECT_EQ(*abi, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Abis, RkllmRuntimeTest,
                         ::testing::Values(Abi::v1_1, Abi::v1_2_0, Abi::v1_2_1, Abi::v1_3_0),
                         [](const auto& each) {
                           std::string name(facts_of(each.param).name);
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

TEST(RkllmRuntime, LacksFunctionsOfALaterVersion) {
  const auto opened = open_runtime(fake_library(Abi::v1_1), Abi::v1_2_1);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("lacks rkllm_clear_kv_cache"));
  EXPECT_FALSE(open_runtime("/nonexistent/librkllmrt.so", Abi::v1_1));
}

}  // namespace
}  // namespace sluice::rkllm
