#include "engine/rkllm/worker/worker.hpp"

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <tuple>
#include <unistd.h>
#include <vector>

#include "core/text/base64.hpp"
#include "engine/rkllm/runtime/fake_rkllm_test_support.hpp"
#include "engine/rkllm/worker/token_files_test_support.hpp"
#include "engine/rkllm/worker/worker_messages.hpp"
#include "json/json.hpp"
#include "sluice/schema.hpp"

namespace sluice::rkllm {
namespace {

using test::fake_library;
using test::FakeScript;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> split_lines(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> out;
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

std::string base64(std::string_view bytes) {
  std::string out;
  append_base64(out, bytes);
  return out;
}

TokenRing other_end(const TokenRing& ring) {
  const TokenRing::Files& files = ring.files();
  return *TokenRing::attach({.memory = Descriptor(::dup(files.memory.get())),
                             .filled = Descriptor(::dup(files.filled.get())),
                             .drained = Descriptor(::dup(files.drained.get()))});
}

/// A worker in this process, and its server.
class WorkerTest : public ::testing::TestWithParam<Abi> {
 protected:
  /// Asks, and returns the response.
  json::object ask(std::string_view method, const json::object& params = {}) {
    send(++last_id_, method, params);
    return response(last_id_);
  }
  void send(int id, std::string_view method, const json::object& params = {}) {
    worker.take(to_json(
        json::object{{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", params}}));
  }
  json::object response(int id) {
    std::unique_lock lock(mutex);
    json::object found;
    const bool has_come = changed.wait_for(lock, std::chrono::seconds(10), [&] {
      for (const std::string& line : lines) {
        const json::object each = parse_json(line)->as_object();
        const json::value* const its = each.if_contains("id");
        if (its != nullptr && *its == id) found = each;
      }
      return !found.empty();
    });
    EXPECT_TRUE(has_come);
    return found;
  }
  /// The result of a function of the runtime; the error's message, if that is the answer.
  static std::string outcome(const json::object& response) {
    if (const json::value* const error = response.if_contains("error")) {
      return std::string(error->at("message").as_string());
    }
    return to_json(response.at("result"));
  }
  void open() {
    const json::object answer =
        ask(method::kOpen, encode(OpenParams{.library = fake_library(GetParam()),
                                             .abi = std::string(facts_of(GetParam()).name)})
                               .get_object());
    ASSERT_EQ(answer.at("result").at("abi").as_string(), facts_of(GetParam()).name);
  }
  void load() {
    open();
    ASSERT_EQ(outcome(ask(method::kInit, encode(ModelParams{.model_path = "m"}).get_object())),
              R"({"returned":0})");
  }
  json::object abort(std::uint64_t run) { return ask(method::kAbort, {{"run", run}}); }
  static json::object run_request(std::uint64_t number = 1) {
    return encode(
               RunRequest{.number = number, .input = {.role = "user", .input = "Hi"}, .params = {}})
        .get_object();
  }
  /// Takes the first output of the run that was sent, and waits until the run is paused. Nobody
  /// reads the others, so the ring is full soon.
  void wait_for_pause() {
    for (bool has_begun = false; !has_begun; std::this_thread::yield()) {
      const auto first = reader.read();
      has_begun = first && *first;
    }
    const std::string is_paused =
        GetParam() == Abi::v1_3_0 ? R"({"returned":0})" : R"({"returned":1})";
    while (outcome(ask(method::kIsRunning)) != is_paused) std::this_thread::yield();
  }
  /// What is in the ring: states and texts.
  std::vector<std::string> outputs() {
    std::vector<std::string> out;
    for (auto next = reader.read(); next && *next; next = reader.read()) {
      if ((*next)->kind != TokenRecord::Kind::text) continue;
      out.push_back(std::to_string(static_cast<int>((*next)->state)) + " " +
                    std::string((*next)->bytes));
    }
    return out;
  }

  static constexpr std::size_t kRing = 4096;
  TokenRing reader = *TokenRing::make(kRing);
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> lines;
  Worker worker{other_end(reader), [this](std::string_view line) {
                  const std::lock_guard lock(mutex);
                  lines.emplace_back(line);
                  changed.notify_all();
                }};

 private:
  int last_id_ = 0;
};

TEST_P(WorkerTest, PutsOutWhatARunSaysBeforeItsResponse) {
  const FakeScript script("say Hello\nwait\nsay  you\n");
  load();
  EXPECT_EQ(outcome(ask(method::kRun, run_request())), R"({"returned":0})");
  EXPECT_THAT(outputs(), ElementsAre("0 Hello", "1 ", "0  you", "2 "));
}

TEST_P(WorkerTest, ChoosesTokensOnlyAfterTheTest) {
  const FakeScript script("words 257\nprefer 72 105 256\n");
  load();
  const std::string folder = ::testing::TempDir() + "worker_words";
  RunRequest request{.number = 1, .input = {.role = "user", .input = "Hi"}, .params = {}};
  request.choice = ChoiceParams{.grammar = "", .sampling = {.temperature = 0.0F}};
  const json::object asked = encode(request).get_object();
  EXPECT_EQ(outcome(ask(method::kRun, asked)), "Tokens cannot be chosen here");
  std::filesystem::remove_all(folder);
  const auto tested = [&] { return outcome(ask(method::kTestTokens, {{"folder", folder}})); };
  const bool has_logits = facts_of(GetParam()).has_logits;
  EXPECT_THAT(tested(), HasSubstr(has_logits ? "There is no " : "gives no logits"));
  test::write_byte_vocabulary(folder);
  if (!has_logits) return;
  EXPECT_EQ(tested(), R"({"returned":0})");
  EXPECT_EQ(outcome(ask(method::kRun, asked)), R"({"returned":0})");
  EXPECT_THAT(outputs(), ElementsAre("0 H", "0 i", "2 "));
  // One that was aborted before it has begun puts out its end alone.
  request.number = 2;
  abort(2);
  EXPECT_EQ(outcome(ask(method::kRun, encode(request).get_object())), R"({"returned":0})");
  EXPECT_THAT(outputs(), ElementsAre("2 "));
}

TEST_P(WorkerTest, PassesOnWhatTheRuntimeReturns) {
  const FakeScript script("lora -3\nload-cache 4\nsay a\n");
  load();
  EXPECT_EQ(outcome(ask(method::kLoadLora,
                        {{"lora_adapter_path", "p"}, {"lora_adapter_name", "n"}, {"scale", 1.0}})),
            R"({"returned":-3})");
  EXPECT_EQ(outcome(ask(method::kLoadPromptCache, {{"prompt_cache_path", "p"}})),
            R"({"returned":4})");
  EXPECT_EQ(outcome(ask(method::kReleasePromptCache)), R"({"returned":0})");
  const std::string tools =
      outcome(ask(method::kSetFunctionTools,
                  {{"system_prompt", ""}, {"tools", "[]"}, {"tool_response_str", ""}}));
  EXPECT_EQ(tools == R"({"returned":0})", facts_of(GetParam()).has_function_tools) << tools;
  const std::string sizes = outcome(ask(method::kGetKvCacheSize));
  EXPECT_EQ(sizes == R"({"returned":0,"kv_cache_sizes":[0]})",
            facts_of(GetParam()).has_function_tools)
      << sizes;
}

TEST_P(WorkerTest, AbortsARunThatWaits) {
  const FakeScript script("say a\nblock\nsay b\n");
  load();
  send(100, method::kRun, run_request());
  while (outputs().empty()) std::this_thread::yield();
  EXPECT_EQ(outcome(abort(1)), R"({"returned":0})");
  EXPECT_EQ(outcome(response(100)), R"({"returned":0})");
}

TEST_P(WorkerTest, AnAbortIsOfItsRunAlone) {
  const FakeScript script("say a\nblock\n");
  load();
  send(100, method::kRun, run_request(1));
  send(200, method::kRun, run_request(2));
  while (outputs().empty()) std::this_thread::yield();
  EXPECT_EQ(outcome(abort(1)), R"({"returned":0})");
  EXPECT_EQ(outcome(response(100)), R"({"returned":0})");
  while (std::ranges::count(outputs(), "0 a") == 0) std::this_thread::yield();
  EXPECT_EQ(outcome(abort(1)), R"({"returned":0})");
  EXPECT_EQ(std::ranges::count(split_lines(script.log()), "abort"), 1) << "it is over";
  EXPECT_EQ(outcome(abort(2)), R"({"returned":0})");
  EXPECT_EQ(outcome(response(200)), R"({"returned":0})");
}

TEST_P(WorkerTest, ARunIsNotBegunAfterItsAbort) {
  const FakeScript script("say a\nblock\n");
  load();
  EXPECT_EQ(outcome(abort(1)), R"({"returned":0})");
  EXPECT_EQ(outcome(ask(method::kRun, run_request(1))), R"({"returned":0})");
  EXPECT_THAT(script.log(), Not(HasSubstr("run ")));
  EXPECT_THAT(script.log(), Not(HasSubstr("abort")));
}

TEST_P(WorkerTest, AnAbortBeforeTheRuntimeListensIsNotLost) {
  const FakeScript script("deaf\nsay a\nblock\nsay b\n");
  load();
  send(100, method::kRun, run_request());
  while (!script.log().contains("run ")) std::this_thread::yield();
  EXPECT_EQ(outcome(abort(1)), R"({"returned":-1})");
  EXPECT_EQ(outcome(response(100)), R"({"returned":0})");
  EXPECT_THAT(outputs(), ElementsAre("2 "));
}

TEST_P(WorkerTest, ARunIsAbortedWhileItIsPaused) {
  if (!facts_of(GetParam()).has_pause) return;
  const FakeScript script("repeat 400 say 0123456789\nturn\nsay next\n");
  load();
  send(100, method::kRun, run_request(1));
  wait_for_pause();
  EXPECT_EQ(outcome(abort(1)), R"({"returned":0})");
  std::vector<std::string> all;
  while (all.empty() || all.back() != "2 ") {
    for (std::string& each : outputs()) all.push_back(std::move(each));
    std::this_thread::yield();
  }
  EXPECT_EQ(outcome(response(100)), R"({"returned":0})");
  EXPECT_LT(all.size(), 200U);
  EXPECT_EQ(outcome(ask(method::kRun, run_request(2))), R"({"returned":0})");
  EXPECT_THAT(outputs(), ElementsAre("0 next", "2 ")) << "it does not go on with the first";
}

TEST_P(WorkerTest, AnAnswerThatIsTooLongDoesNotHarmTheNext) {
  if (facts_of(GetParam()).has_pause) return;
  const FakeScript script("repeat 200 say 0123456789\nturn\nsay next\n");
  load();
  EXPECT_THAT(outcome(ask(method::kRun, run_request(1))), HasSubstr("longer than the memory"));
  std::ignore = outputs();
  EXPECT_EQ(outcome(ask(method::kRun, run_request(2))), R"({"returned":0})");
  EXPECT_THAT(outputs(), ElementsAre("0 next", "2 "));
}

TEST_P(WorkerTest, NumbersWaitForTheReaderOfASmallRing) {
  const FakeScript script("states 2000\nsay a\n");
  load();
  json::object asked = run_request();
  asked["params"] = encode(RunParams{.mode = InferMode::get_last_hidden_layer});
  send(100, method::kRun, asked);
  std::size_t bytes = 0;
  std::string text;
  while (text != "a") {
    for (auto next = reader.read(); next && *next; next = reader.read()) {
      if ((*next)->kind == TokenRecord::Kind::hidden_states) bytes += (*next)->bytes.size();
      if ((*next)->kind == TokenRecord::Kind::text) text += (*next)->bytes;
    }
    std::this_thread::yield();
  }
  EXPECT_EQ(bytes, 2000U * 4 * sizeof(float)) << "eight times what the ring holds";
  EXPECT_EQ(outcome(response(100)), R"({"returned":0})");
}

TEST_P(WorkerTest, RefusesNumbersThatAreNone) {
  const FakeScript script("echo\n");
  load();
  RunRequest wanted{.number = 1,
                    .input = {.input = EmbedData{.embed = {}, .n_tokens = 1}},
                    .params = {},
                    .numbers = "AAA"};
  EXPECT_THAT(outcome(ask(method::kRun, encode(wanted).get_object())), HasSubstr("do not fit"));
  wanted.numbers = "";
  EXPECT_THAT(outcome(ask(method::kRun, encode(wanted).get_object())), HasSubstr("do not fit"));
  wanted.numbers = base64(std::string(8, '\0'));
  EXPECT_EQ(outcome(ask(method::kRun, encode(wanted).get_object())), R"({"returned":0})");
  wanted.input.input = "a prompt";
  EXPECT_THAT(outcome(ask(method::kRun, encode(wanted).get_object())), HasSubstr("do not fit"));
  EXPECT_THAT(script.log(), Not(HasSubstr("prompt=")));
}

TEST_P(WorkerTest, TheRuntimeMayKeepWhatItHasRefused) {
  if (!facts_of(GetParam()).has_function_tools) return;
  const FakeScript script("cross-attention -1\nsay a\n");
  load();
  // So much memory goes back to the system as soon as it is free.
  const std::string numbers = base64(std::string(std::size_t{1} << 20U, '\0'));
  const json::object params{{"encoder_k_cache", numbers},
                            {"encoder_v_cache", numbers},
                            {"encoder_mask", numbers},
                            {"encoder_pos", numbers}};
  for (std::size_t i = 0; i <= Worker::kMaxRefused; ++i) {
    EXPECT_EQ(outcome(ask(method::kSetCrossAttnParams, params)), R"({"returned":-1})");
  }
  EXPECT_THAT(outcome(ask(method::kSetCrossAttnParams, params)), HasSubstr("refused too many"));
  EXPECT_EQ(outcome(ask(method::kRun, run_request())), R"({"returned":0})");
  EXPECT_THAT(script.log(), HasSubstr("attends=0,"));
}

TEST_P(WorkerTest, SaysWhatItCannotDo) {
  EXPECT_THAT(outcome(ask(method::kRun, run_request())), HasSubstr("No runtime is open"));
  EXPECT_THAT(outcome(abort(1)), HasSubstr("no model"));
  open();
  EXPECT_THAT(outcome(ask(method::kRun, run_request())), HasSubstr("no model"));
  EXPECT_THAT(outcome(ask(method::kInit, {{"model_path", 3}})), HasSubstr("model_path"));
  EXPECT_THAT(outcome(ask("rkllm_sing")), HasSubstr("no model"));
  EXPECT_THAT(outcome(ask(method::kOpen, {{"library", "x"}, {"abi", ""}})), HasSubstr("already"));
  worker.take("{");
  worker.take("[]");
  worker.take(R"({"jsonrpc":"2.0","method":"rkllm_run"})");
  EXPECT_EQ(lines.size(), 9U);
}

TEST_P(WorkerTest, AFullRingPausesTheRuntimeOrEndsTheRun) {
  const FakeScript script("repeat 200 say 0123456789\n");
  load();
  send(100, method::kRun, run_request());
  if (!facts_of(GetParam()).has_pause) {
    EXPECT_THAT(outcome(response(100)), HasSubstr("longer than the memory"));
    return;
  }
  std::vector<std::string> all;
  while (all.size() < 201) {
    for (std::string& each : outputs()) all.push_back(std::move(each));
    std::this_thread::yield();
  }
  EXPECT_EQ(outcome(response(100)), R"({"returned":0})");
  EXPECT_EQ(std::ranges::count(all, "0 0123456789"), 200);
  EXPECT_EQ(all.back(), "2 ");
}

TEST_P(WorkerTest, ARunThatGoesOnAfterAPauseDoesNotSaveItsPromptAgain) {
  if (!facts_of(GetParam()).has_pause) return;
  const FakeScript script("repeat 400 say 0123456789\n");
  load();
  const std::string path = ::testing::TempDir() + "saved." + std::to_string(::getpid());
  RunRequest request{.number = 1, .input = {.role = "user", .input = "Hi"}, .params = {}};
  request.params.prompt_cache_path = path;
  request.params.save_prompt_cache = true;
  send(100, method::kRun, encode(request).get_object());
  wait_for_pause();
  std::size_t said = 0;
  while (said < 400) {
    said += outputs().size();
    std::this_thread::yield();
  }
  EXPECT_EQ(outcome(response(100)), R"({"returned":0})");
  const std::string log = script.log();
  EXPECT_THAT(log, HasSubstr("tokens="));
  EXPECT_EQ(log.find(" save"), log.rfind(" save"));
  ::unlink(path.c_str());
}

INSTANTIATE_TEST_SUITE_P(Abis, WorkerTest,
                         ::testing::Values(Abi::v1_1, Abi::v1_2_0, Abi::v1_2_1, Abi::v1_3_0));

}  // namespace
}  // namespace sluice::rkllm
