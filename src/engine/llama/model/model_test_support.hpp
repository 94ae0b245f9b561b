#pragma once

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "core/file_test_support.hpp"
#include "engine/llama/model/gguf_writer_test_support.hpp"

namespace sluice::test {

/// A model of the llama architecture whose weights are all zero: every token is equally likely.
/// Suitable for tests that do not look at the answer: templates, speed, broken files.
struct ZeroModel {
  std::uint32_t width = 32;
  std::uint32_t layers = 1;
  std::uint32_t hidden = 32;
  std::uint32_t context = 512;
  std::string chat_template = {};
  std::vector<std::string> control_tokens = {};  // besides <unk>, <s> and </s>

  [[nodiscard]] GgufWriter build() const {
    std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
    std::vector<std::int32_t> types = {2, 3, 3};
    for (const std::string& token : control_tokens) {
      tokens.push_back(token);
      types.push_back(3);
    }
    for (unsigned value = 0; value < 256; ++value) {
      char text[8];
      std::snprintf(text, sizeof text, "<0x%02X>", value);
      tokens.emplace_back(text);
      types.push_back(6);
    }
    tokens.emplace_back("\u2581");
    types.push_back(1);
    const auto words = static_cast<std::uint32_t>(tokens.size());

    GgufWriter file;
    file.add("general.architecture", "llama");
    file.add("general.name", "zero");
    file.add("llama.context_length", context);
    file.add("llama.embedding_length", width);
    file.add("llama.block_count", layers);
    file.add("llama.feed_forward_length", hidden);
    file.add("llama.attention.head_count", std::uint32_t{1});
    file.add("llama.attention.layer_norm_rms_epsilon", 1e-5F);
    file.add("llama.rope.dimension_count", width);
    file.add("llama.vocab_size", words);
    file.add("tokenizer.ggml.model", "llama");
    file.add("tokenizer.ggml.tokens", tokens);
    file.add("tokenizer.ggml.scores", std::vector<float>(words, 0.0F));
    file.add("tokenizer.ggml.token_type", types);
    file.add("tokenizer.ggml.unknown_token_id", std::uint32_t{0});
    file.add("tokenizer.ggml.bos_token_id", std::uint32_t{1});
    file.add("tokenizer.ggml.eos_token_id", std::uint32_t{2});
    file.add("tokenizer.ggml.add_space_prefix", false);
    if (!chat_template.empty()) file.add("tokenizer.chat_template", chat_template);

    file.add_tensor("token_embd.weight", {width, words}, {});
    for (std::uint32_t layer = 0; layer < layers; ++layer) {
      const std::string block = "blk." + std::to_string(layer) + ".";
      file.add_tensor(block + "attn_norm.weight", {width}, {});
      for (const char* const name : {"attn_q", "attn_k", "attn_v", "attn_output"}) {
        file.add_tensor(block + name + ".weight", {width, width}, {});
      }
      file.add_tensor(block + "ffn_norm.weight", {width}, {});
      file.add_tensor(block + "ffn_gate.weight", {width, hidden}, {});
      file.add_tensor(block + "ffn_up.weight", {width, hidden}, {});
      file.add_tensor(block + "ffn_down.weight", {hidden, width}, {});
    }
    file.add_tensor("output_norm.weight", {width}, {});
    file.add_tensor("output.weight", {width, words}, {});
    return file;
  }
};

inline void write(const TemporaryFile& file, const GgufWriter& model) {
  std::ofstream out(file.path(), std::ios::binary | std::ios::trunc);
  model.write(out);
}

}  // namespace sluice::test
