#include "engine/llama/llama_model.hpp"

#include <cstring>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <sstream>
#include <string>

#include "engine/llama/model/model_test_support.hpp"

namespace sluice {
namespace {

using test::TemporaryFile;
using test::ZeroModel;
using testing::HasSubstr;

const auto kNoProgress = [](float) { return true; };

struct Outcome {
  ModelFault fault = ModelFault::none;
  std::string message;
};

Outcome load(const std::string& path, std::uint32_t context = 256, std::string backend = "cpu") {
  LlamaOptions options;
  options.model_path = path;
  options.backend = std::move(backend);
  options.context_tokens = context;
  options.slots = 1;
  const auto loaded = load_model(options, kNoProgress);
  if (loaded) return {};
  return {static_cast<ModelFault>(loaded.error().code), loaded.error().message};
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return std::move(out).str();
}

TEST(LoadModel, LoadsTheBuiltInModel) {
  LlamaOptions options;
  options.model_path = SLUICE_BUILT_IN_MODEL;
  options.backend = "cpu";
  float last = 0;
  const auto loaded = load_model(options, [&](float progress) {
    EXPECT_GE(progress, last);
    last = progress;
    return true;
  });
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(last, 1.0F);
  EXPECT_EQ(loaded->context_tokens, 2048U);  // the context that the model was made for
  EXPECT_EQ(loaded->slots, 4U);
  EXPECT_TRUE(loaded->can_copy);
}

TEST(LoadModel, GivesUpWhenToldTo) {
  LlamaOptions options;
  options.model_path = SLUICE_BUILT_IN_MODEL;
  const auto loaded = load_model(options, [](float) { return false; });
  ASSERT_FALSE(loaded);
  EXPECT_EQ(static_cast<ModelFault>(loaded.error().code), ModelFault::none);
}

TEST(LoadModel, SaysWhatIsWrongWithTheFile) {
  EXPECT_EQ(load("/no/such/model.gguf").fault, ModelFault::missing);
  EXPECT_EQ(load(testing::TempDir()).fault, ModelFault::unreadable);

  const TemporaryFile file("broken.gguf");
  file.write("");
  EXPECT_EQ(load(file.path()).fault, ModelFault::not_gguf);
  file.write("PK\x03\x04 this is an archive");
  EXPECT_EQ(load(file.path()).fault, ModelFault::not_gguf);

  const std::string whole = read_file(SLUICE_BUILT_IN_MODEL);
  for (const std::size_t length : {std::size_t{20}, std::size_t{5000}, whole.size() / 2}) {
    file.write(whole.substr(0, length));
    const Outcome outcome = load(file.path());
    EXPECT_EQ(outcome.fault, ModelFault::truncated) << length;
    EXPECT_THAT(outcome.message, HasSubstr(file.path()));
    EXPECT_THAT(outcome.message, HasSubstr("incomplete"));
  }
}

TEST(LoadModel, RefusesWhatItCannotRun) {
  const TemporaryFile file("odd.gguf");
  GgufWriter unknown;
  unknown.add("general.architecture", "teapot");
  unknown.add_tensor("t", {1}, {1.0F});
  write(file, unknown);
  const Outcome outcome = load(file.path());
  EXPECT_EQ(outcome.fault, ModelFault::unsupported) << outcome.message;
  EXPECT_THAT(outcome.message, HasSubstr("teapot"));

  GgufWriter empty;
  empty.add("general.architecture", "llama");
  empty.add_tensor("t", {1}, {1.0F});
  write(file, empty);
  EXPECT_EQ(load(file.path()).fault, ModelFault::corrupt);
}

TEST(LoadModel, RefusesMissingTensorsAndWrongShapes) {
  const TemporaryFile file("shapes.gguf");
  write(file, ZeroModel{}.build());
  const std::string whole = read_file(file.path());
  std::string renamed = whole;
  renamed.replace(renamed.find("ffn_gate"), 8, "ffn_gaze");
  file.write(renamed);
  const Outcome missing = load(file.path());
  EXPECT_EQ(missing.fault, ModelFault::corrupt);
  EXPECT_THAT(missing.message, HasSubstr("ffn_gate"));

  std::string reshaped = whole;
  const std::uint64_t width = 16;
  std::memcpy(reshaped.data() + reshaped.find("ffn_gate.weight") + 15 + 4, &width, sizeof width);
  file.write(reshaped);
  EXPECT_EQ(load(file.path()).fault, ModelFault::corrupt);
}

TEST(LoadModel, SaysWhenTheContextDoesNotFitIntoMemory) {
  for (const std::uint32_t context : {100'000'000U, std::numeric_limits<std::uint32_t>::max()}) {
    const Outcome outcome = load(SLUICE_BUILT_IN_MODEL, context);
    EXPECT_EQ(outcome.fault, ModelFault::no_memory) << outcome.message;
    EXPECT_THAT(outcome.message, testing::AnyOf(HasSubstr("smaller context"), HasSubstr("fewer")));
  }
}

TEST(LoadModel, NamesTheDevicesThereAre) {
  const Outcome outcome = load(SLUICE_BUILT_IN_MODEL, 256, "gpu7");
  EXPECT_EQ(outcome.fault, ModelFault::no_device);
  EXPECT_THAT(outcome.message, HasSubstr("\"gpu7\""));
  EXPECT_THAT(outcome.message, HasSubstr("auto, cpu"));
  EXPECT_EQ(load(SLUICE_BUILT_IN_MODEL, 256, "auto").fault, ModelFault::none);
}

/// Whatever a file contains, loading it succeeds or returns an error, and never ends the process.
TEST(LoadModel, SurvivesEveryKindOfCorruption) {
  const TemporaryFile file("mutated.gguf");
  write(file,
        ZeroModel{.chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}"}.build());
  const std::string whole = read_file(file.path());
  ASSERT_EQ(load(file.path()).fault, ModelFault::none);
  const std::size_t header = whole.find("output.weight") + 64;
  std::mt19937 random(1);
  int refused = 0;
  for (int round = 0; round < 400; ++round) {
    std::string bytes = whole;
    const std::size_t at = 8 + random() % (header - 8);
    switch (round % 4) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << (random() % 8)));
        break;
      case 2:
        bytes[at] = 0;
        break;
      default:
        for (std::size_t i = at; i < std::min(at + 8, bytes.size()); ++i) bytes[i] = '\xFF';
    }
    file.write(bytes);
    if (load(file.path(), 256).fault != ModelFault::none) ++refused;
  }
  EXPECT_GT(refused, 100);
}

TEST(LoadModel, SurvivesNumbersThatMakeNoSense) {
  const TemporaryFile file("numbers.gguf");
  write(file, ZeroModel{}.build());
  const std::string whole = read_file(file.path());
  for (const std::string key :
       {"llama.context_length", "llama.embedding_length", "llama.block_count",
        "llama.feed_forward_length", "llama.attention.head_count", "llama.rope.dimension_count",
        "llama.vocab_size", "tokenizer.ggml.unknown_token_id", "tokenizer.ggml.bos_token_id",
        "tokenizer.ggml.eos_token_id"}) {
    for (const std::uint32_t value : {0U, 1U, 3U, 1000U, 0x7FFFFFFFU, 0x80000000U, 0xFFFFFFFFU}) {
      std::string bytes = whole;
      std::memcpy(bytes.data() + bytes.find(key) + key.size() + 4, &value, sizeof value);
      file.write(bytes);
      const Outcome outcome = load(file.path());
      EXPECT_EQ(outcome.fault == ModelFault::none, outcome.message.empty()) << key << value;
    }
  }
}

}  // namespace
}  // namespace sluice
