#include "engine/llama/lora_adapters.hpp"

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <future>
#include <ggml.h>
#include <gguf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/file_test_support.hpp"
#include "engine/llama/llama_engine_test_support.hpp"
#include "engine/llama/model/gguf_check.hpp"
#include "engine/llama/model/gguf_writer_test_support.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

using test::greedy;
using test::Running;
using ::testing::HasSubstr;

constexpr const char* kTensor = "blk.0.ffn_down.weight";

/// The shape of kTensor in the built-in model.
std::vector<std::uint64_t> shape_of_tensor() {
  ggml_context* tensors = nullptr;
  gguf_context* const file =
      gguf_init_from_file(SLUICE_BUILT_IN_MODEL, {.no_alloc = true, .ctx = &tensors});
  const ggml_tensor* const tensor = ggml_get_tensor(tensors, kTensor);
  std::vector<std::uint64_t> shape;
  if (tensor != nullptr) {
    shape = {static_cast<std::uint64_t>(tensor->ne[0]), static_cast<std::uint64_t>(tensor->ne[1])};
  }
  ggml_free(tensors);
  gguf_free(file);
  return shape;
}

class LoraTest : public test::LlamaEngineFixture {
 protected:
  LoraTest() {
    load();
    shape_ = shape_of_tensor();
  }
  /// An adapter that changes every answer.
  [[nodiscard]] GgufWriter adapter(const std::string& architecture = {}) const {
    GgufWriter out;
    out.add("general.type", "adapter");
    out.add("general.architecture", architecture.empty() ? architecture_ : architecture);
    out.add("adapter.type", "lora");
    out.add("adapter.lora.alpha", 2.0F);
    return out;
  }
  void add_weights(GgufWriter& to, std::uint64_t rank = 2) const {
    to.add_tensor(std::string(kTensor) + ".lora_a", {shape_[0], rank}, wave(shape_[0] * rank));
    to.add_tensor(std::string(kTensor) + ".lora_b", {rank, shape_[1]}, wave(rank * shape_[1]));
  }
  static std::vector<float> wave(std::uint64_t count) {
    std::vector<float> out(count);
    for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(i % 7) - 2.5F;
    return out;
  }
  NamedFile written(const GgufWriter& file) {
    const std::string path = files_.path("adapter" + std::to_string(++count_) + ".gguf");
    std::ofstream out(path, std::ios::binary);
    file.write(out);
    out.close();
    return opened(path);
  }
  NamedFile good_file() {
    GgufWriter file = adapter();
    add_weights(file);
    return written(file);
  }
  static NamedFile opened(const std::string& path) {
    return {.path = path,
            .descriptor =
                std::make_shared<const Descriptor>(::open(path.c_str(), O_RDONLY | O_CLOEXEC))};
  }
  /// "done", or the error's message.
  std::string change(ModelChange wanted) {
    std::promise<std::string> told;
    engine_->change(std::move(wanted), [&told](const Result<void>& outcome) {
      told.set_value(outcome ? "done" : outcome.error().message);
    });
    return told.get_future().get();
  }
  std::string load_lora(NamedFile file, float scale = 1, const std::string& name = "cat") {
    return change(LoadLora{.name = name, .file = std::move(file), .scale = scale});
  }
  static GenerationRequest asked(const std::string& adapter) {
    GenerationRequest request = greedy("The weather is");
    request.max_tokens = 40;
    request.lora_adapter = adapter;
    return request;
  }

  test::TemporaryDirectory files_;
  std::string architecture_ = check_gguf_file(SLUICE_BUILT_IN_MODEL)->architecture;
  std::vector<std::uint64_t> shape_;
  int count_ = 0;
};

TEST_F(LoraTest, AnAdapterChangesTheAnswersThatNameItAndNoOthers) {
  const std::string usual = answer(asked(""));
  ASSERT_EQ(load_lora(good_file()), "done");
  const std::string changed = answer(asked("cat"));
  EXPECT_NE(changed, usual);
  EXPECT_EQ(answer(asked("")), usual) << "nothing of the other is reused";
  EXPECT_EQ(answer(asked("cat")), changed);
  std::vector<Running> together;
  for (int i = 0; i < 3; ++i) {
    together.push_back(start(asked("")));
    together.push_back(start(asked("cat")));
  }
  for (std::size_t i = 0; i < together.size(); ++i) {
    EXPECT_FALSE(together[i].sink->wait().error);
    EXPECT_EQ(together[i].sink->text(), i % 2 == 0 ? usual : changed);
  }
}

TEST_F(LoraTest, TheScaleCounts) {
  const std::string usual = answer(asked(""));
  ASSERT_EQ(load_lora(good_file(), 0), "done");
  EXPECT_EQ(answer(asked("cat")), usual);
}

TEST_F(LoraTest, ANameKeepsItsAdapter) {
  const NamedFile file = good_file();
  ASSERT_EQ(load_lora(file), "done");
  EXPECT_EQ(load_lora(file), "done");
  EXPECT_THAT(load_lora(file, 0.5F), HasSubstr("another adapter has this name"));
  const auto refused = try_start(asked("dog"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, kInvalidParams);
  EXPECT_THAT(refused.error().message, HasSubstr("there is no LoRA adapter of this name"));
}

TEST_F(LoraTest, WhatIsNoAdapterIsRefusedAndTheModelGoesOn) {
  const std::string usual = answer(asked(""));
  EXPECT_THAT(load_lora(opened(SLUICE_BUILT_IN_MODEL)), HasSubstr("general.type"));
  const std::string text = files_.path("text");
  std::ofstream(text) << "hello";
  EXPECT_THAT(load_lora(opened(text)), HasSubstr("not a GGUF file"));
  const NamedFile whole = good_file();
  for (const auto size :
       {std::filesystem::file_size(whole.path) / 2, std::uintmax_t{40}, std::uintmax_t{0}}) {
    std::filesystem::resize_file(whole.path, size);
    EXPECT_THAT(load_lora(whole), HasSubstr("no LoRA adapter for this model")) << size;
  }
  const auto refused = [&](auto make) {
    GgufWriter file = make();
    return load_lora(written(file));
  };
  EXPECT_THAT(refused([&] {
                GgufWriter file = adapter("gpt2");
                add_weights(file);
                return file;
              }),
              HasSubstr("arch mismatch"));
  EXPECT_THAT(refused([&] {
                GgufWriter file = adapter();
                file.add_tensor(std::string(kTensor) + ".lora_a", {shape_[0], 2}, {});
                return file;
              }),
              HasSubstr("missing one component"));
  EXPECT_THAT(refused([&] {
                GgufWriter file = adapter();
                file.add_tensor(std::string(kTensor) + ".lora_a", {shape_[0] + 1, 2}, {});
                file.add_tensor(std::string(kTensor) + ".lora_b", {2, shape_[1]}, {});
                return file;
              }),
              HasSubstr("incorrect shape"));
  EXPECT_THAT(refused([&] {
                GgufWriter file = adapter();
                file.add_tensor("nothing.weight.lora_a", {shape_[0], 2}, {});
                file.add_tensor("nothing.weight.lora_b", {2, shape_[1]}, {});
                return file;
              }),
              HasSubstr("does not exist in base model"));
  EXPECT_THAT(refused([&] {
                GgufWriter file = adapter();
                file.add_tensor(std::string(kTensor) + ".lora_a", {shape_[0], 2, 3}, {});
                file.add_tensor(std::string(kTensor) + ".lora_b", {2, shape_[1], 3}, {});
                return file;
              }),
              HasSubstr("adapters of experts"));
  // An assertion in llama.cpp fails.
  EXPECT_THAT(refused([&] {
                GgufWriter file;
                file.add("general.type", std::uint32_t{7});
                file.add("general.architecture", architecture_);
                add_weights(file);
                return file;
              }),
              HasSubstr("no LoRA adapter for this model"));
  EXPECT_EQ(answer(asked("")), usual);
  EXPECT_EQ(load_lora(good_file()), "done");
}

TEST_F(LoraTest, OtherChangesAreNotWithThisEngine) {
  EXPECT_THAT(change(ReleasePromptCache{}), HasSubstr("not with this engine (llama)"));
}

TEST_F(LoraTest, AdaptersAreLoadedBetweenTheTokensOfARun) {
  GenerationRequest request = greedy("The weather is");
  request.max_tokens = 300;
  Running running = start(std::move(request));
  running.sink->wait_for_deltas(1);
  EXPECT_EQ(load_lora(good_file()), "done");
  EXPECT_FALSE(running.sink->wait().error);
}

}  // namespace
}  // namespace sluice
