// A stand-in for Rockchip's librkllmrt.so: the true symbols of one of its ABIs, and behaviour that
// a script says. FAKE_RKLLM_SCRIPT names the script's file; without it each run says "Hello,
// world." FAKE_RKLLM_LOG names a file that gets a line for each call. README.md has the words of
// scripts.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "rkllm_layouts.hpp"

#if FAKE_RKLLM_ABI == 110
#define FAKE_RKLLM_VERSION "1.1.4"
#elif FAKE_RKLLM_ABI == 120
#define FAKE_RKLLM_VERSION "1.2.0"
#elif FAKE_RKLLM_ABI == 121
#define FAKE_RKLLM_VERSION "1.2.3"
#else
#define FAKE_RKLLM_VERSION "1.3.0"
#endif

namespace {

/// As the runtime logs it; nothing else says its version.
constexpr const char* kVersionLine =
    "rkllm-runtime version: " FAKE_RKLLM_VERSION ", rknpu driver version: 0.9.8, platform: RK3588";

/// One line of a script: a word, and what follows it.
struct Step {
  std::string word;
  std::string rest;
};

Step step_of(const std::string& line) {
  const std::size_t space = line.find(' ');
  return {line.substr(0, space), space == std::string::npos ? "" : line.substr(space + 1)};
}

std::vector<Step> default_script() {
  return {{"say", "Hello"}, {"say", ", "}, {"say", "world"}, {"say", "."}};
}

std::vector<Step> read_script() {
  const char* const path = std::getenv("FAKE_RKLLM_SCRIPT");
  if (path == nullptr) return default_script();
  std::vector<Step> steps;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    Step step = step_of(line);
    if (step.word == "repeat") {
      std::istringstream rest(step.rest);
      std::size_t times = 0;
      std::string word;
      rest >> times >> word;
      std::string text;
      std::getline(rest, text);
      const Step one{word, text.empty() ? text : text.substr(1)};
      steps.insert(steps.end(), times, one);
    } else {
      steps.push_back(step);
    }
  }
  return steps;
}

/// Resolves \n, \\ and \xNN.
std::string unescaped(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
    } else if (text[i + 1] == 'x' && i + 3 < text.size()) {
      out += static_cast<char>(std::stoi(text.substr(i + 2, 2), nullptr, 16));
      i += 3;
    } else {
      out += text[++i] == 'n' ? '\n' : text[i];
    }
  }
  return out;
}

/// What a model with words of its own does: the word `words`, then how many there are, and what is
/// wrong from which run for logits on.
struct Words {
  int count = 0;  // 0: it has none
  std::string fault;
  int fault_from = 1;
};

Words words_of(const std::vector<Step>& script) {
  Words out;
  for (const Step& step : script) {
    if (step.word != "words") continue;
    std::istringstream(step.rest) >> out.count >> out.fault >> out.fault_from;
  }
  return out;
}

/// The same script with a step for each byte that it says.
std::vector<Step> by_bytes(const std::vector<Step>& script) {
  std::vector<Step> out;
  for (const Step& step : script) {
    if (step.word != "say") {
      out.push_back(step);
      continue;
    }
    for (const char byte : unescaped(step.rest)) {
      std::array<char, 8> text{};
      std::snprintf(text.data(), text.size(), "\\x%02x", static_cast<unsigned char>(byte));
      out.push_back({"say", text.data()});
    }
  }
  return out;
}

/// Does what a step says that may come anywhere. False: it is another.
bool misbehave(const Step& step) {
  if (step.word == "crash") std::raise(SIGSEGV);
  if (step.word == "illegal") std::raise(SIGILL);
  if (step.word == "exit") std::exit(std::stoi(step.rest));
  if (step.word == "hang") {
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  }
  if (step.word != "delay") return false;
  std::this_thread::sleep_for(std::chrono::milliseconds(std::stoi(step.rest)));
  return true;
}

/// As the synthetic engine says it, with CLOCK_MONOTONIC in nanoseconds.
std::string numbered(int number) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return "{\"n\":" + std::to_string(number) +
         ",\"t_ns\":" + std::to_string(std::chrono::nanoseconds(now).count()) + "}\n";
}

const char* text_of(const char* text) {
  return text == nullptr ? "" : text;
}

void log(const std::string& line) {
  static std::mutex mutex;
  const char* const path = std::getenv("FAKE_RKLLM_LOG");
  if (path == nullptr) return;
  const std::lock_guard lock(mutex);
  std::ofstream(path, std::ios::app) << line << '\n';
}

/// The model of a handle.
struct Model {
  LLMResultCallback callback = nullptr;
  void* userdata = nullptr;
  int max_new_tokens = 0;
  int batch = 1;
  std::vector<Step> script;
  Words words;
  std::uint64_t told = 0;       // a hash of what a model with words was told
  std::size_t told_tokens = 0;  // behind a prompt
  bool told_prompt = false;
  int logit_runs = 0;
  std::size_t at = 0;     // the next step, of a run that was paused
  std::size_t turns = 0;  // runs that have begun
  bool skips_special = true;
  bool is_paused = false;
  std::int32_t last_token = 0;
#if FAKE_RKLLM_ABI >= 121
  RKLLMCrossAttnParam attention{};
#endif
  std::vector<int> cached;  // tokens, one number for each of the batch
  std::string loaded;       // the prompt of the cache that is loaded; empty: none, or not known
  std::string live;         // the prompt of the run before
  int read = 5;             // tokens of the prompt that were read for this run
  std::atomic<bool> is_running = false;
  std::atomic<bool> is_aborted = false;
  std::atomic<int> aborts = 0;  // calls of rkllm_abort()
};

/// The result of a function that a script says by its name, such as "lora -1". Nothing: it says
/// none.
std::optional<int> scripted_result(const Model& model, const std::string& name) {
  for (const Step& step : model.script) {
    if (step.word != name || misbehave(step_of(step.rest))) continue;
    return std::stoi(step.rest);
  }
  return std::nullopt;
}

int scripted(const Model& model, const std::string& name) {
  return scripted_result(model, name).value_or(0);
}

/// The same of a function that reads a file, which begins with `kind`. A script may say that
/// another one is read, too.
int scripted_load(const Model& model, const std::string& name, const char* path,
                  const std::string& kind) {
  if (const std::optional<int> result = scripted_result(model, name)) return *result;
  std::string first;
  std::ifstream(text_of(path)) >> first;
  return first == kind ? 0 : -1;
}

std::string describe(const RKLLMInput& input) {
  std::string out;
#if FAKE_RKLLM_ABI >= 121
  out += std::string(" role=") + (input.role == nullptr ? "" : input.role) +
         (input.enable_thinking ? " thinking" : "");
#endif
  switch (input.input_type) {
    case RKLLM_INPUT_PROMPT:
      return out + " prompt=" + input.prompt_input;
    case RKLLM_INPUT_TOKEN:
      out += " tokens=";
      for (std::size_t i = 0; i < input.token_input.n_tokens; ++i) {
        out += (i == 0 ? "" : ",") + std::to_string(input.token_input.input_ids[i]);
      }
      return out;
    case RKLLM_INPUT_EMBED:
      return out + " embed=" + std::to_string(input.embed_input.n_tokens);
    case RKLLM_INPUT_MULTIMODAL:
      break;
  }
#if FAKE_RKLLM_ABI == 130
  return out + " multimodal=" + input.multimodal_input.prompt +
         " images=" + std::to_string(input.multimodal_input.image.n_image);
#else
  return out + " multimodal=" + input.multimodal_input.prompt +
         " images=" + std::to_string(input.multimodal_input.n_image_tokens);
#endif
}

/// How many numbers a token has in the embeddings and the hidden states of this model.
constexpr std::size_t kWidth = 4;

/// The embeddings of an input that has some: of images or tokens.
std::vector<float> embeddings_in(const RKLLMInput& input) {
  const float* numbers = nullptr;
  std::size_t tokens = 0;
  if (input.input_type == RKLLM_INPUT_EMBED) {
    numbers = input.embed_input.embed;
    tokens = input.embed_input.n_tokens;
  } else if (input.input_type == RKLLM_INPUT_MULTIMODAL) {
    const auto& given = input.multimodal_input;
#if FAKE_RKLLM_ABI == 130
    numbers = given.image.image_embed;
    tokens = given.image.n_image_tokens * given.image.n_image;
#else
    numbers = given.image_embed;
    tokens = given.n_image_tokens;
#if FAKE_RKLLM_ABI == 121
    tokens *= given.n_image;
#endif
#endif
  }
  return {numbers, numbers + tokens * kWidth};
}

/// What an input is made of, in words: each of its numbers counts, and where it stands.
std::string echo_of(const RKLLMInput& input) {
  std::ostringstream out;
  switch (input.input_type) {
    case RKLLM_INPUT_PROMPT:
      return std::string("prompt ") + input.prompt_input;
    case RKLLM_INPUT_TOKEN:
      out << "tokens";
      for (std::size_t i = 0; i < input.token_input.n_tokens; ++i) {
        out << ' ' << input.token_input.input_ids[i];
      }
      return out.str();
    case RKLLM_INPUT_EMBED:
      out << "embed " << input.embed_input.n_tokens;
      break;
    case RKLLM_INPUT_MULTIMODAL: {
      const auto& given = input.multimodal_input;
      out << "images \"" << given.prompt << "\" ";
#if FAKE_RKLLM_ABI == 130
      const auto tag = [](const char* text) { return text == nullptr ? "-" : text; };
      const auto& image = given.image;
      out << image.n_image << 'x' << image.n_image_tokens << " of " << image.image_width << 'x'
          << image.image_height << ' ' << tag(image.image_start) << tag(image.image_content)
          << tag(image.image_end);
#elif FAKE_RKLLM_ABI == 121
      out << given.n_image << 'x' << given.n_image_tokens << " of " << given.image_width << 'x'
          << given.image_height;
#else
      out << given.n_image_tokens;
#endif
    }
  }
  double sum = 0;
  double place = 0;
  for (const float each : embeddings_in(input)) sum += ++place * static_cast<double>(each);
  out << " sum " << sum;
  return out.str();
}

/// What a hidden layer holds at the end of an input: made of its tokens, or of its embeddings.
std::vector<float> states_of(const RKLLMInput& input) {
  std::vector<float> out;
  const auto add = [&out](int token) {
    for (std::size_t i = 0; i < kWidth; ++i) {
      out.push_back(static_cast<float>(token) + 0.25F * static_cast<float>(i));
    }
  };
  if (input.input_type == RKLLM_INPUT_PROMPT) {
    for (const char* at = input.prompt_input; *at != 0; ++at) add(static_cast<unsigned char>(*at));
  } else if (input.input_type == RKLLM_INPUT_TOKEN) {
    for (std::size_t i = 0; i < input.token_input.n_tokens; ++i) {
      add(input.token_input.input_ids[i]);
    }
  } else {
    out = embeddings_in(input);
    for (float& each : out) each *= 2;
  }
  return out;
}

std::string prompt_of(const RKLLMInput& input) {
  return input.input_type == RKLLM_INPUT_PROMPT ? input.prompt_input : "";
}

bool has_step(const Model& model, const std::string& word) {
  for (const Step& step : model.script) {
    if (step.word == word) return true;
  }
  return false;
}

/// Writes the cache of a prompt, as its text and as many bytes as a script says.
void save_cache(const Model& model, const RKLLMInput& input, const char* path) {
  std::string text = "cache" + describe(input) + '\n';
  for (const Step& step : model.script) {
    if (step.word == "save-cache" && step.rest == "none") return;
    if (step.word == "save-cache" && step.rest == "crash") {
      std::ofstream(path) << text.substr(0, text.size() / 2) << std::flush;
      std::raise(SIGSEGV);
    }
    if (step.word == "cache-bytes") text.resize(std::stoul(step.rest), '#');
  }
  std::ofstream(path) << text;
}

/// The prompt of a cache that save_cache() has written.
std::string prompt_of_cache(const char* path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  const std::string all = text.str();
  const std::string kMark = " prompt=";
  const std::size_t begin = all.find(kMark);
  const std::size_t end = all.rfind('\n');
  if (begin == std::string::npos || end == std::string::npos) return "";
  return all.substr(begin + kMark.size(), end - begin - kMark.size());
}

/// How many tokens of a prompt are read, of one byte each, if a cache is loaded.
int tokens_to_read(const Model& model, const std::string& prompt) {
  std::size_t known = prompt.rfind(model.loaded, 0) == 0 ? model.loaded.size() : 0;
#if FAKE_RKLLM_ABI != 110
  std::size_t same = 0;
  while (same < prompt.size() && same < model.live.size() && prompt[same] == model.live[same]) {
    ++same;
  }
  known = std::max(known, same);
#endif
  return static_cast<int>(prompt.size() - known);
}

std::string describe(const RKLLMInferParam& params) {
  std::string out = " mode=" + std::to_string(params.mode);
  if (params.lora_params != nullptr) {
    out += std::string(" lora=") + params.lora_params->lora_adapter_name;
  }
  if (params.prompt_cache_params != nullptr) {
    out += std::string(" cache=") + params.prompt_cache_params->prompt_cache_path +
           (params.prompt_cache_params->save_prompt_cache != 0 ? " save" : "");
  }
#if FAKE_RKLLM_ABI != 110
  out += " history=" + std::to_string(params.keep_history);
#endif
#if FAKE_RKLLM_ABI == 130
  out += " max=" + std::to_string(params.max_new_tokens);
  if (params.sampling_params != nullptr) {
    out += " temperature=" + std::to_string(params.sampling_params->temperature);
  }
#endif
  return out;
}

/// Where the steps of a run begin: behind the `turn` of that number, or the last one.
std::size_t first_step(const std::vector<Step>& script, std::size_t turn) {
  std::size_t first = 0;
  for (std::size_t i = 0; i < script.size() && turn > 0; ++i) {
    if (script[i].word != "turn") continue;
    first = i + 1;
    --turn;
  }
  return first;
}

/// Returns what the callback returns; 0 where it returns nothing.
int tell(Model& model, void* userdata, RKLLMResult* result, LLMCallState state) {
#if FAKE_RKLLM_ABI >= 121
  return model.callback(result, userdata, state);
#else
  model.callback(result, userdata, state);
  return 0;
#endif
}

/// The tokens of a step, numbered as a script goes on.
struct Teller {
  Model* model;
  void* userdata;
  int said = 0;

  /// `rows`: how many tokens the logits are of.
  int say(const std::string& text, LLMCallState state, const std::vector<float>& logits = {},
          int rows = 1) {
    RKLLMResult result{};
    result.text = text.c_str();
    const bool is_word = model->words.count > 0 && text.size() == 1;
    result.token_id = is_word ? static_cast<unsigned char>(text[0]) : ++model->last_token;
#if FAKE_RKLLM_ABI != 110
    if (!logits.empty()) {
      result.logits = {logits.data(), static_cast<int>(logits.size()) / rows, rows};
    }
#else
    (void)logits;
    (void)rows;
#endif
#if FAKE_RKLLM_ABI >= 121
    result.perf = {10.0F, model->read, 2.0F * static_cast<float>(said), said, 100.0F};
#endif
    ++said;
    return tell(*model, userdata, &result, state);
  }
  int show(const std::vector<float>& states) {
    RKLLMResult result{};
    result.last_hidden_layer = {states.data(), static_cast<int>(kWidth),
                                static_cast<int>(states.size() / kWidth)};
#if FAKE_RKLLM_ABI == 110
    return tell(*model, userdata, &result, static_cast<LLMCallState>(4));
#else
    return tell(*model, userdata, &result, RKLLM_RUN_NORMAL);
#endif
  }
  void end(LLMCallState state) {
    RKLLMResult result{};
#if FAKE_RKLLM_ABI >= 121
    result.perf = {10.0F, model->read, 2.0F * static_cast<float>(said), said, 100.0F};
#endif
    tell(*model, userdata, &result, state);
  }
};

/// One value for each word of a vocabulary of this size, of which the next is the highest.
std::vector<float> logits_of(int size, std::int32_t next) {
  std::vector<float> out(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) {
    out[static_cast<std::size_t>(i)] = i == next % size ? 10.0F : -static_cast<float>(i % 7);
  }
  return out;
}

/// Says what a command of the shell puts out, which has the prompt as its input. Returns what the
/// last callback does.
int say_output(const std::string& command, const RKLLMInput& input, const Model& model,
               Teller& teller) {
  const std::string file = std::string(std::getenv("FAKE_RKLLM_SCRIPT")) + ".prompt";
  std::ofstream(file) << prompt_of(input);
  std::FILE* const output = ::popen((command + " <" + file).c_str(), "r");
  if (output == nullptr) return 0;
  int answer = 0;
  std::array<char, 4096> piece;
  ssize_t got = 0;
  while (answer == 0 && !model.is_aborted &&
         (got = ::read(::fileno(output), piece.data(), piece.size())) > 0) {
    answer = teller.say({piece.data(), static_cast<std::size_t>(got)}, RKLLM_RUN_NORMAL);
  }
  ::pclose(output);
  return answer;
}

/// Any hash of a value and what came before it.
std::uint64_t mixed(std::uint64_t before, std::uint64_t value) {
  std::uint64_t out = (before ^ value) * 0x9E3779B97F4A7C15U;
  out ^= out >> 29U;
  out *= 0xBF58476D1CE4E5B9U;
  return out ^ (out >> 32U);
}

/// Has a model with words read the input.
void tell_words(Model& model, const RKLLMInput& input, bool goes_on, const std::string& fault) {
  if (!goes_on || fault == "forgets") {
    model.told = 1;
    model.told_tokens = 0;
    model.told_prompt = input.input_type == RKLLM_INPUT_PROMPT;
  }
  if (input.input_type == RKLLM_INPUT_PROMPT) {
    for (const char* each = input.prompt_input; *each != '\0'; ++each) {
      model.told = mixed(model.told, static_cast<unsigned char>(*each));
    }
    return;
  }
  if (input.input_type != RKLLM_INPUT_TOKEN || (goes_on && fault == "deaf")) return;
  for (std::size_t i = 0; i < input.token_input.n_tokens; ++i) {
    model.told = mixed(model.told, static_cast<std::uint64_t>(input.token_input.input_ids[i]));
    ++model.told_tokens;
  }
}

/// From -8 to 8, for each word; behind a prompt, that which `prefer` names is the likeliest.
std::vector<float> word_logits(const Model& model) {
  std::vector<float> out;
  for (int i = 0; i < model.words.count; ++i) {
    const std::uint64_t random = mixed(model.told, static_cast<std::uint64_t>(i) + 1) % 16001;
    out.push_back(static_cast<float>(random) / 1000.0F - 8.0F);
  }
  for (const Step& step : model.script) {
    if (step.word != "prefer" || !model.told_prompt) continue;
    std::istringstream words(step.rest);
    std::size_t word = 0;
    for (std::size_t i = 0; words >> word; ++i) {
      if (i == model.told_tokens && word < out.size()) out[word] = 100;
    }
  }
  return out;
}

/// A run for logits, of a model with words.
int run_words(Model& model, const RKLLMInput& input, bool goes_on, Teller& teller) {
  const bool is_faulty = ++model.logit_runs >= model.words.fault_from;
  const std::string fault = is_faulty ? model.words.fault : std::string();
  tell_words(model, input, goes_on, fault);
  if (fault == "crash" || fault == "hang") misbehave({fault, ""});
  if (fault == "refuses") return -7;
  if (fault == "block") model.is_aborted.wait(false);
  if (fault == "error") {
    teller.end(RKLLM_RUN_ERROR);
    return 0;
  }
  if (fault != "none" && fault != "block") {
    std::vector<float> logits =
        fault == "constant" ? std::vector<float>(static_cast<std::size_t>(model.words.count))
                            : word_logits(model);
    if (fault == "nan") logits[logits.size() / 2] = std::numeric_limits<float>::quiet_NaN();
    // Of several tokens there are several rows, of which the last counts.
    const bool has_rows = input.input_type == RKLLM_INPUT_TOKEN && input.token_input.n_tokens > 1;
    if (has_rows) logits.insert(logits.begin(), logits.size(), 50.0F);
    teller.say("", RKLLM_RUN_NORMAL, logits, has_rows ? 2 : 1);
  }
  teller.end(RKLLM_RUN_FINISH);
  return 0;
}

int run(Model& model, const RKLLMInput& input, const RKLLMInferParam& params, void* userdata) {
  std::string line = "run" + describe(input) + describe(params);
#if FAKE_RKLLM_ABI >= 121
  // Read now, so that whoever has let go of it is found out.
  if (const RKLLMCrossAttnParam& given = model.attention; given.encoder_pos != nullptr) {
    const auto last = static_cast<std::size_t>(given.num_tokens) - 1;
    line += " attends=" + std::to_string(given.encoder_pos[last]) + "," +
            std::to_string(given.encoder_mask[last]) + "," +
            std::to_string(given.encoder_k_cache[last]) + "," +
            std::to_string(given.encoder_v_cache[last]);
  }
#endif
  const int aborts = model.aborts;
  log(line);
  if (const RKLLMPromptCacheParam* const cache = params.prompt_cache_params;
      cache != nullptr && cache->save_prompt_cache != 0) {
    save_cache(model, input, cache->prompt_cache_path);
  }
  const bool goes_on = model.is_paused;
  const bool is_by_words = model.words.count > 0 && params.mode == RKLLM_INFER_GET_LOGITS;
  if (!goes_on && !is_by_words) model.at = first_step(model.script, model.turns++);
  const bool is_deaf = model.at < model.script.size() && model.script[model.at].word == "deaf";
  if (is_deaf) model.aborts.wait(aborts);
  if (model.is_running.exchange(true)) return -1;
  model.is_aborted = false;
  model.is_paused = false;
  int limit = model.max_new_tokens;
#if FAKE_RKLLM_ABI == 130
  if (params.max_new_tokens > 0) limit = params.max_new_tokens;
#endif
  Teller teller{&model, userdata};
  const bool counts = has_step(model, "count");
  const std::string prompt = prompt_of(input);
  if (!goes_on && counts) model.read = tokens_to_read(model, prompt);
  if (!goes_on) model.live = prompt;
  if (!goes_on && prompt.rfind(model.loaded, 0) != 0) {
    teller.say("(an answer to another prompt)", RKLLM_RUN_NORMAL);
  }
  const bool wants_logits = params.mode == RKLLM_INFER_GET_LOGITS;
  if (is_by_words) {
#if FAKE_RKLLM_ABI == 110
    const bool has_history = false;
#else
    const bool has_history = params.keep_history != 0;
#endif
    const int result = run_words(model, input, has_history, teller);
    model.is_running = false;
    return result;
  }
  std::string on_abort = "finish";
  bool has_ended = false;
  while (!has_ended && model.at < model.script.size()) {
    const Step& step = model.script[model.at++];
    if (step.word == "on-abort") on_abort = step.rest;
    if (step.word == "turn") break;
    if (step.word == "special" && model.skips_special) continue;
    if (model.is_aborted && step.word != "after-abort") break;
    int answer = 0;
    if (step.word == "run") {
      model.is_running = false;
      return std::stoi(step.rest);
    }
    if (step.word == "say" || step.word == "special" || step.word == "after-abort") {
      if (limit > 0 && teller.said >= limit) break;
      answer = teller.say(unescaped(step.rest), RKLLM_RUN_NORMAL);
    } else if (step.word == "number") {
      if (limit > 0 && teller.said >= limit) break;
      misbehave({"delay", step.rest});
      answer = teller.say(numbered(teller.said), RKLLM_RUN_NORMAL);
    } else if (step.word == "pipe") {
      answer = say_output(step.rest, input, model, teller);
    } else if (step.word == "wait") {
      answer = teller.say("", RKLLM_RUN_WAITING);
    } else if (step.word == "echo") {
      answer = teller.say(echo_of(input), RKLLM_RUN_NORMAL);
    } else if (step.word == "states") {
      // They are gone when the callback has returned.
      if (params.mode == RKLLM_INFER_GET_LAST_HIDDEN_LAYER) {
        std::vector<float> states = states_of(input);
        if (!step.rest.empty()) states.resize(kWidth * std::stoul(step.rest), 1.0F);
        answer = teller.show(states);
        std::ranges::fill(states, -1.0F);
      }
    } else if (step.word == "logits" && wants_logits) {
      answer =
          teller.say("", RKLLM_RUN_NORMAL, logits_of(std::stoi(step.rest), model.last_token + 1));
    } else if (step.word == "error") {
      teller.end(RKLLM_RUN_ERROR);
      has_ended = true;
    } else if (step.word == "block") {
      model.is_aborted.wait(false);
    } else {
      misbehave(step);
    }
    if (answer == 1) {
      model.is_paused = true;
      model.is_running = false;
      return 0;
    }
  }
  for (int& each : model.cached) {
    each = (counts ? static_cast<int>(model.live.size()) : each) + teller.said;
  }
  if (!has_ended && model.is_aborted && on_abort == "error") {
    teller.end(RKLLM_RUN_ERROR);
  } else if (!has_ended && (!model.is_aborted || on_abort == "finish")) {
    teller.end(RKLLM_RUN_FINISH);
  }
  model.is_running = false;
  return 0;
}

Model& model_of(LLMHandle handle) {
  return *static_cast<Model*>(handle);
}

}  // namespace

RKLLMParam rkllm_createDefaultParam() {
  RKLLMParam param;
  std::memset(&param, 0, sizeof(param));
  param.max_context_len = 512;
  param.max_new_tokens = -1;
  param.top_k = 40;
#if FAKE_RKLLM_ABI != 110
  param.n_keep = 0;
#endif
  param.top_p = 0.9F;
  param.temperature = 0.8F;
  param.repeat_penalty = 1.1F;
  param.mirostat_tau = 5.0F;
  param.mirostat_eta = 0.1F;
  param.skip_special_token = true;
#if FAKE_RKLLM_ABI != 130
  param.img_start = "<image>";
  param.img_end = "</image>";
  param.img_content = "<unk>";
#endif
#if FAKE_RKLLM_ABI >= 121
  param.extend_param.n_batch = 1;
#endif
  return param;
}

int rkllm_init(LLMHandle* handle, RKLLMParam* param, RKLLMInitCallback callback) {
  std::cerr << "I rkllm: " << kVersionLine << '\n';
  auto model = std::make_unique<Model>();
  model->script = read_script();
  model->words = words_of(model->script);
  if (model->words.count > 0) model->script = by_bytes(model->script);
  log(std::string("init model=") + text_of(param->model_path) + " context=" +
      std::to_string(param->max_context_len) + " max=" + std::to_string(param->max_new_tokens) +
      " domain=" + std::to_string(param->extend_param.base_domain_id) +
      " temperature=" + std::to_string(param->temperature)
#if FAKE_RKLLM_ABI >= 121
      + (param->extend_param.use_cross_attn != 0 ? " cross-attention" : "")
#endif
  );
  for (const Step& step : model->script) {
    if (step.word != "init") continue;
    if (step.rest == "null") {
      *handle = nullptr;
      return 0;
    }
    if (misbehave(step_of(step.rest))) continue;
    return std::stoi(step.rest);
  }
#if FAKE_RKLLM_ABI == 130
  model->callback = callback->result_callback;
  model->userdata = callback->result_userdata;
#else
  model->callback = callback;
#endif
  model->max_new_tokens = param->max_new_tokens;
  model->skips_special = param->skip_special_token;
#if FAKE_RKLLM_ABI >= 121
  model->batch = param->extend_param.n_batch;
#endif
  model->cached.assign(static_cast<std::size_t>(model->batch), 0);
  *handle = model.release();
  return 0;
}

int rkllm_destroy(LLMHandle handle) {
  log("destroy");
  if (handle == nullptr) return -1;
  delete &model_of(handle);
  return 0;
}

int rkllm_run(LLMHandle handle, RKLLMInput* input, RKLLMInferParam* params, void* userdata) {
  Model& model = model_of(handle);
  return run(model, *input, *params, userdata == nullptr ? model.userdata : userdata);
}

int rkllm_run_async(LLMHandle /*handle*/, RKLLMInput* /*input*/, RKLLMInferParam* /*params*/,
                    void* /*userdata*/) {
  // Releases before 1.2.2 never call back.
  return -1;
}

int rkllm_abort(LLMHandle handle) {
  log("abort");
  Model& model = model_of(handle);
  for (const Step& step : model.script) {
    if (step.word == "abort" && step.rest == "hang") misbehave({"hang", ""});
  }
  if (!model.is_running) {
    ++model.aborts;
    model.aborts.notify_all();
    return -1;
  }
  model.is_aborted = true;
  model.is_aborted.notify_all();
  return 0;
}

int rkllm_is_running(LLMHandle handle) {
  // The comment in the header has changed between releases.
  const bool is_running = model_of(handle).is_running;
  return FAKE_RKLLM_ABI == 130 ? (is_running ? 1 : 0) : (is_running ? 0 : 1);
}

int rkllm_load_lora(LLMHandle handle, RKLLMLoraAdapter* adapter) {
  log(std::string("load_lora ") + text_of(adapter->lora_adapter_path) + " " +
      text_of(adapter->lora_adapter_name) + " " + std::to_string(adapter->scale));
  return scripted_load(model_of(handle), "lora", adapter->lora_adapter_path, "adapter");
}

int rkllm_load_prompt_cache(LLMHandle handle, const char* path) {
  log(std::string("load_prompt_cache ") + text_of(path));
  Model& model = model_of(handle);
  const int result = scripted_load(model, "load-cache", path, "cache");
  if (result == 0) model.loaded = prompt_of_cache(text_of(path));
  return result;
}

int rkllm_release_prompt_cache(LLMHandle handle) {
  log("release_prompt_cache");
  model_of(handle).loaded.clear();
  return scripted(model_of(handle), "release-cache");
}

#if FAKE_RKLLM_ABI == 120
int rkllm_clear_kv_cache(LLMHandle handle, int keep_system_prompt) {
  log("clear_kv_cache " + std::to_string(keep_system_prompt));
  Model& model = model_of(handle);
  for (int& each : model.cached) each = 0;
  model.live.clear();
  return scripted(model, "clear-cache");
}
#elif FAKE_RKLLM_ABI >= 121
int rkllm_clear_kv_cache(LLMHandle handle, int keep_system_prompt, int* start_pos, int* end_pos) {
  Model& model = model_of(handle);
  std::string line = "clear_kv_cache " + std::to_string(keep_system_prompt);
  if (start_pos != nullptr) {
    line += " " + std::to_string(start_pos[0]) + ".." + std::to_string(end_pos[0]);
  }
  log(line);
  for (int& each : model.cached) each = 0;
  model.live.clear();
  return scripted(model, "clear-cache");
}
#endif

#if FAKE_RKLLM_ABI >= 120
int rkllm_set_chat_template(LLMHandle handle, const char* system, const char* prefix,
                            const char* postfix) {
  log(std::string("set_chat_template ") + text_of(system) + "|" + text_of(prefix) + "|" +
      text_of(postfix));
  return scripted(model_of(handle), "template");
}
#endif

#if FAKE_RKLLM_ABI >= 121
int rkllm_get_kv_cache_size(LLMHandle handle, int* sizes) {
  const Model& model = model_of(handle);
  std::memcpy(sizes, model.cached.data(), model.cached.size() * sizeof(int));
  return 0;
}

int rkllm_set_function_tools(LLMHandle handle, const char* system, const char* tools,
                             const char* tool_response) {
  log(std::string("set_function_tools ") + text_of(system) + "|" + text_of(tools) + "|" +
      text_of(tool_response));
  return scripted(model_of(handle), "tools");
}

int rkllm_set_cross_attn_params(LLMHandle handle, RKLLMCrossAttnParam* params) {
  log("set_cross_attn_params " + std::to_string(params->num_tokens));
  model_of(handle).attention = *params;
  return scripted(model_of(handle), "cross-attention");
}
#endif
