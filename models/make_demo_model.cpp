// Writes the demonstration model: make_demo_model OUT.gguf
//
// A transformer of the llama architecture whose weights are not trained but set by counting. From
// the sentences below it counts which word follows which two words (a second-order Markov chain)
// and spells that table out as one layer:
//
//   - The embedding of a token is a fixed code in the dimensions kCurrent, and 1 in kConstant.
//   - Two attention heads look exactly one token back (their queries and keys are constants that
//     only the rotary position embedding tells apart) and copy that token's code to kPrevious.
//   - Each hidden unit of the feed-forward network stands for one pair of words: it opens only when
//     both codes are there, and adds the codes of the words that follow to kNext.
//   - The output row of a token is its code in kNext; kConstant gives the tokens that close a JSON
//     text a head start where no pair is known, so that grammar-constrained output comes to an end.
//
// See README.md beside this file.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/llama/gguf_writer.hpp"

namespace {

/// The answer: one sentence of each stage after the other. The first of a stage is the likeliest.
const std::vector<std::vector<std::string_view>> kStages = {
    {"Hello! I am a demonstration model, counted rather than trained.",
     "Hi there! I am a tiny demonstration model, made from word counts."},
    {"I cannot answer questions, but each word you see was computed from the two before it.",
     "Questions are beyond me, but every word you see was computed while you waited."},
    {"A stream is an ordered sequence of chunks, numbered from zero.",
     "In a stream, chunks arrive in order, each with its number."},
    {"Each reader moves a cursor over it at its own pace, so nobody waits for a slow neighbour.",
     "Readers come and go; every reader has its own place, so nobody holds up another."},
    {"Broken connections resume where they stopped, and not one character is lost.",
     "When the buffer is full the model pauses; when there is room again, it goes on."},
    {"Start me with --model FILE to let something larger speak in my place.",
     "For real answers, give me --model FILE."},
};

/// Logarithms of the odds that a later sentence of a stage is taken, relative to the first.
constexpr float kAlternative = -0.7F;

constexpr std::size_t kCode = 128;      // dimensions of a token's code
constexpr std::size_t kHead = 64;       // dimensions of an attention head
constexpr std::size_t kCurrent = 0;     // where the codes stand in the residual stream
constexpr std::size_t kPrevious = 128;  //
constexpr std::size_t kNext = 256;      //
constexpr std::size_t kConstant = 384;  //
constexpr std::size_t kWidth = 448;     // of the residual stream; a multiple of kHead
constexpr std::uint32_t kContext = 4096;
constexpr float kRopeBase = 100.0F;
constexpr float kLikely = 34.0F;  // logit of a word that follows for certain

constexpr std::string_view kTemplate =
    "{%- for message in messages -%}"
    "{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|assistant|>' }}{%- endif -%}";

using Token = std::int32_t;

enum TokenType : std::int32_t { kNormal = 1, kUnknown = 2, kControl = 3, kByte = 6 };

/// A SentencePiece vocabulary: special tokens, all 256 bytes, the space, and each word with all its
/// beginnings, over which the tokenizer merges its way to the word.
struct Vocabulary {
  std::vector<std::string> texts;
  std::vector<float> scores;
  std::vector<std::int32_t> types;
  std::map<std::string, Token, std::less<>> ids;
  Token unknown, begin, end, assistant;

  Vocabulary() {
    unknown = add("<unk>", kUnknown);
    begin = add("<s>", kControl);
    end = add("<|end|>", kControl);
    add("<|system|>", kControl);
    add("<|user|>", kControl);
    assistant = add("<|assistant|>", kControl);
    add("<|tool|>", kControl);
    for (int value = 0; value < 256; ++value) {
      std::array<char, 8> text{};
      std::snprintf(text.data(), text.size(), "<0x%02X>", static_cast<unsigned>(value));
      add(text.data(), kByte);
    }
    add("\u2581", kNormal);
  }

  Token add(std::string text, std::int32_t type) {
    if (const auto known = ids.find(text); known != ids.end()) return known->second;
    const auto id = static_cast<Token>(texts.size());
    ids.emplace(text, id);
    texts.push_back(std::move(text));
    scores.push_back(type == kNormal ? -static_cast<float>(id) : 0.0F);
    types.push_back(type);
    return id;
  }

  Token add_word(std::string_view word) {
    const std::size_t space = word.starts_with("\u2581") ? 3 : 0;
    for (std::size_t length = space + 1; length < word.size(); ++length) {
      add(std::string(word.substr(0, length)), kNormal);
    }
    return add(std::string(word), kNormal);
  }

  [[nodiscard]] Token byte(char value) const {
    std::array<char, 8> text{};
    std::snprintf(text.data(), text.size(), "<0x%02X>", static_cast<unsigned char>(value));
    return ids.find(text.data())->second;
  }
};

/// Words with the space before them, and punctuation, as the vocabulary writes them.
std::vector<std::string> split(std::string_view sentence, bool first) {
  std::vector<std::string> words;
  bool starts = true;
  for (std::size_t i = 0; i < sentence.size(); ++i) {
    const char c = sentence[i];
    if (c == ' ') {
      starts = true;
      continue;
    }
    const bool mark = c == '.' || c == ',' || c == '!' || c == ';' || c == ':';
    if (starts || mark) {
      words.emplace_back(starts && !(first && words.empty()) ? "\u2581" : "");
    }
    words.back() += c;
    starts = false;
  }
  return words;
}

/// What follows a context, with the logarithm of its weight.
using Followers = std::map<Token, float>;
/// A context is the previous and the current token; any previous one if that is kAny.
constexpr Token kAny = -1;
using Table = std::map<std::pair<Token, Token>, Followers>;

void put(Table& table, std::pair<Token, Token> context, Token next, float weight) {
  float& known = table[context].try_emplace(next, weight).first->second;
  known = std::max(known, weight);
}

Table count(Vocabulary& vocabulary) {
  Table table;
  const Token quote = vocabulary.byte('"');
  std::set<std::pair<Token, Token>> ends = {{kAny, vocabulary.assistant}, {kAny, quote}};
  for (std::size_t stage = 0; stage < kStages.size(); ++stage) {
    std::set<std::pair<Token, Token>> next_ends;
    for (const std::string_view sentence : kStages[stage]) {
      const float weight = sentence == kStages[stage].front() ? 0 : kAlternative;
      auto contexts = ends;
      for (const std::string& word : split(sentence, stage == 0)) {
        const Token token = vocabulary.add_word(word);
        std::set<std::pair<Token, Token>> moved;
        for (const auto& context : contexts) {
          put(table, context, token, weight);
          moved.emplace(context.second, token);
        }
        contexts = std::move(moved);
      }
      next_ends.merge(contexts);
    }
    ends = std::move(next_ends);
  }
  for (const auto& context : ends) {
    put(table, context, vocabulary.end, 0);
    // Where a grammar does not let it end; with its head start, some 8 below the end.
    put(table, context, quote, -18);
  }
  return table;
}

/// The most tokens an answer can have from `context` on; no value if it need not end.
std::optional<int> longest(const Table& table, std::pair<Token, Token> context, int depth = 0) {
  constexpr int kMaxTokens = 200;
  if (depth > kMaxTokens) return std::nullopt;
  const auto row = table.find(context);
  if (row == table.end()) return 0;
  int most = 0;
  for (const auto& [next, weight] : row->second) {
    if (table.contains({kAny, next})) continue;  // the quote
    const auto rest = longest(table, {context.second, next}, depth + 1);
    if (!rest) return std::nullopt;
    most = std::max(most, 1 + *rest);
  }
  return most;
}

using Code = std::array<float, kCode>;

/// Pseudo-random signs, the same on every machine: two codes have next to nothing in common.
std::vector<Code> make_codes(std::size_t count) {
  std::mt19937 random(20260728);  // NOLINT: not for secrets, and it must repeat
  std::vector<Code> codes(count);
  for (Code& code : codes) {
    for (float& sign : code) sign = (random() & 1U) != 0 ? 1.0F : -1.0F;
  }
  return codes;
}

/// A matrix of `rows` outputs by `columns` inputs, zero but for what is set.
class Matrix {
 public:
  Matrix(std::size_t columns, std::size_t rows) : columns_(columns), values_(columns * rows) {}
  float& at(std::size_t row, std::size_t column) { return values_[row * columns_ + column]; }
  std::vector<float> take() { return std::move(values_); }

 private:
  std::size_t columns_;
  std::vector<float> values_;
};

/// The factor that RMS normalization applies to a vector with this sum of squares.
float norm_factor(float squares) {
  return 1.0F / std::sqrt(squares / static_cast<float>(kWidth));
}

void add_tensors(sluice::GgufWriter& file, const Vocabulary& vocabulary, const Table& table) {
  const std::size_t words = vocabulary.texts.size();
  const std::vector<Code> codes = make_codes(words);
  const std::uint64_t hidden = (table.size() + 31) / 32 * 32;
  constexpr float kSquares = kCode;  // of one code

  // The residual stream before attention holds one code and the constant, then two codes.
  const float before_attention = norm_factor(kSquares + 1);
  const float before_network = norm_factor(2 * kSquares + 1);

  Matrix embedding(kWidth, words);
  for (std::size_t token = 0; token < words; ++token) {
    for (std::size_t i = 0; i < kCode; ++i) embedding.at(token, kCurrent + i) = codes[token][i];
    embedding.at(token, kConstant) = 1;
  }

  // Pair i of a head's dimensions turns by base^(-i/pairs) per position. A query turned back by
  // one position meets the key of the token before it head-on, and others at an angle.
  Matrix query(kWidth, kWidth);
  Matrix key(kWidth, kWidth);
  Matrix value(kWidth, kWidth);
  Matrix attention(kWidth, kWidth);
  constexpr std::size_t kPairs = kHead / 2;
  const float strength = 9.0F / before_attention;
  for (std::size_t head = 0; head < kCode / kHead; ++head) {
    for (std::size_t pair = 0; pair < kPairs; ++pair) {
      const float turn =
          std::pow(kRopeBase, -static_cast<float>(pair) / static_cast<float>(kPairs));
      const std::size_t row = head * kHead + 2 * pair;
      key.at(row, kConstant) = strength;
      query.at(row, kConstant) = strength * std::cos(turn);
      query.at(row + 1, kConstant) = -strength * std::sin(turn);
    }
  }
  for (std::size_t i = 0; i < kCode; ++i) {
    value.at(i, kCurrent + i) = 1.0F / before_attention;
    attention.at(kPrevious + i, i) = 1;
  }

  // Two codes match with 2 * kCode, one with kCode, each give or take the codes' noise.
  Matrix gate(kWidth, hidden);
  Matrix up(kWidth, hidden);
  Matrix down(hidden, kWidth);
  constexpr float kOpen = 10;  // what a unit's gate sees when its pair is there
  constexpr float kThreshold = 1.625F * kCode;
  const float slope = kOpen / (2 * kCode - kThreshold) / before_network;
  std::size_t unit = 0;
  for (const auto& [context, followers] : table) {
    const auto& [previous, current] = context;
    for (std::size_t i = 0; i < kCode; ++i) {
      const float sign = codes[static_cast<std::size_t>(current)][i];
      if (previous == kAny) {
        gate.at(unit, kCurrent + i) = 2 * slope * sign;
      } else {
        gate.at(unit, kCurrent + i) = slope * sign;
        gate.at(unit, kPrevious + i) = slope * codes[static_cast<std::size_t>(previous)][i];
      }
    }
    gate.at(unit, kConstant) = -slope * kThreshold;
    up.at(unit, kConstant) = 2.0F / kOpen / before_network;  // makes an open unit worth 2
    for (const auto& [next, weight] : followers) {
      const float share = (kLikely + weight) / kLikely;
      for (std::size_t i = 0; i < kCode; ++i) {
        down.at(kNext + i, unit) += share * codes[static_cast<std::size_t>(next)][i];
      }
    }
    ++unit;
  }

  // With a unit open, kNext holds twice a code: four times its squares.
  const float with_unit = norm_factor(6 * kSquares + 1);
  const float without = norm_factor(2 * kSquares + 1);
  Matrix output(kWidth, words);
  for (std::size_t token = 0; token < words; ++token) {
    for (std::size_t i = 0; i < kCode; ++i) {
      output.at(token, kNext + i) = kLikely / (2 * kSquares * with_unit) * codes[token][i];
    }
  }
  const auto head_start = [&](char byte, float logit) {
    output.at(static_cast<std::size_t>(vocabulary.byte(byte)), kConstant) = logit / without;
  };
  for (const auto& [byte, logit] :
       {std::pair('"', 14.0F), std::pair('}', 13.0F), std::pair(']', 12.0F), std::pair(',', 11.0F),
        std::pair(':', 10.0F), std::pair('t', 8.0F), std::pair('1', 7.0F)}) {
    head_start(byte, logit);
  }

  const std::vector<float> ones(kWidth, 1.0F);
  file.add_tensor("token_embd.weight", {kWidth, words}, embedding.take());
  file.add_tensor("blk.0.attn_norm.weight", {kWidth}, ones);
  file.add_tensor("blk.0.attn_q.weight", {kWidth, kWidth}, query.take());
  file.add_tensor("blk.0.attn_k.weight", {kWidth, kWidth}, key.take());
  file.add_tensor("blk.0.attn_v.weight", {kWidth, kWidth}, value.take());
  file.add_tensor("blk.0.attn_output.weight", {kWidth, kWidth}, attention.take());
  file.add_tensor("blk.0.ffn_norm.weight", {kWidth}, ones);
  file.add_tensor("blk.0.ffn_gate.weight", {kWidth, hidden}, gate.take());
  file.add_tensor("blk.0.ffn_up.weight", {kWidth, hidden}, up.take());
  file.add_tensor("blk.0.ffn_down.weight", {hidden, kWidth}, down.take());
  file.add_tensor("output_norm.weight", {kWidth}, ones);
  file.add_tensor("output.weight", {kWidth, words}, output.take());
}

void add_metadata(sluice::GgufWriter& file, const Vocabulary& vocabulary, const Table& table) {
  const auto id = [](Token token) { return static_cast<std::uint32_t>(token); };
  file.add("general.architecture", "llama");
  file.add("general.type", "model");
  file.add("general.name", "Sluice demonstration model");
  file.add("general.author", "The Sluice authors");
  file.add("general.license", "apache-2.0");
  file.add("general.description",
           "Recites a few sentences about streams, with variations, whatever it is asked: a "
           "second-order Markov chain written as a one-layer transformer. Not trained; cannot "
           "answer questions.");
  file.add("general.file_type", std::uint32_t{0});
  file.add("llama.context_length", kContext);
  file.add("llama.embedding_length", std::uint32_t{kWidth});
  file.add("llama.block_count", std::uint32_t{1});
  file.add("llama.feed_forward_length", static_cast<std::uint32_t>((table.size() + 31) / 32 * 32));
  file.add("llama.attention.head_count", std::uint32_t{kWidth / kHead});
  file.add("llama.attention.head_count_kv", std::uint32_t{kWidth / kHead});
  file.add("llama.attention.layer_norm_rms_epsilon", 1e-6F);
  file.add("llama.rope.dimension_count", std::uint32_t{kHead});
  file.add("llama.rope.freq_base", kRopeBase);
  file.add("llama.vocab_size", static_cast<std::uint32_t>(vocabulary.texts.size()));
  file.add("tokenizer.ggml.model", "llama");
  file.add("tokenizer.ggml.pre", "default");
  file.add("tokenizer.ggml.tokens", vocabulary.texts);
  file.add("tokenizer.ggml.scores", vocabulary.scores);
  file.add("tokenizer.ggml.token_type", vocabulary.types);
  file.add("tokenizer.ggml.unknown_token_id", id(vocabulary.unknown));
  file.add("tokenizer.ggml.bos_token_id", id(vocabulary.begin));
  file.add("tokenizer.ggml.eos_token_id", id(vocabulary.end));
  file.add("tokenizer.ggml.add_bos_token", true);
  file.add("tokenizer.ggml.add_eos_token", false);
  file.add("tokenizer.ggml.add_space_prefix", false);
  file.add("tokenizer.chat_template", kTemplate);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: make_demo_model OUT.gguf\n", stderr);
    return 2;
  }
  Vocabulary vocabulary;
  const Table table = count(vocabulary);
  const auto most = longest(table, {kAny, vocabulary.assistant});
  if (!most) {
    std::fputs("make_demo_model: the sentences repeat a pair of words, so an answer need not end\n",
               stderr);
    return 1;
  }
  sluice::GgufWriter file;
  add_metadata(file, vocabulary, table);
  add_tensors(file, vocabulary, table);
  std::ofstream out(argv[1], std::ios::binary | std::ios::trunc);
  file.write(out);
  out.close();
  if (!out) {
    std::fprintf(stderr, "make_demo_model: cannot write %s\n", argv[1]);
    return 1;
  }
  std::printf("%s: %zu tokens, %zu pairs, answers of up to %d tokens\n", argv[1],
              vocabulary.texts.size(), table.size(), *most);
  return 0;
}
