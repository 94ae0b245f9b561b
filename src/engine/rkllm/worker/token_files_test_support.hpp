#pragma once

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace sluice::rkllm::test {

/// The token that ends an answer.
inline constexpr int kEndWord = 256;

/// Writes the files of a tokenizer whose tokens are the bytes, by their values, and kEndWord, as
/// the stand-in for librkllmrt has them with `words 257`.
inline void write_byte_vocabulary(const std::string& folder) {
  std::filesystem::create_directories(folder);
  std::string words;
  int next = 256;  // the letters of those that do not stand for themselves
  for (int byte = 0; byte < 256; ++byte) {
    const bool is_own = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    char word[32];
    std::snprintf(word, sizeof word, "%s\"\\u%04x\":%d", byte == 0 ? "" : ",",
                  static_cast<unsigned>(is_own ? byte : next++), byte);
    words += word;
  }
  std::ofstream(folder + "/tokenizer.json")
      << R"({"added_tokens":[{"id":256,"content":"<|end|>","special":true}],)"
      << R"("decoder":{"type":"ByteLevel"},"model":{"type":"BPE","vocab":{)" << words
      << R"(},"merges":[]}})";
  std::ofstream(folder + "/tokenizer_config.json") << R"({"eos_token":"<|end|>"})";
}

}  // namespace sluice::rkllm::test
