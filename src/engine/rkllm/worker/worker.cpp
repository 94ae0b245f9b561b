#include "engine/rkllm/worker/worker.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <poll.h>
#include <span>
#include <sys/uio.h>
#include <tuple>
#include <unistd.h>
#include <utility>
#include <variant>
#include <vector>

#include "core/log/log.hpp"
#include "core/text/base64.hpp"
#include "engine/grammar/vocabulary_file.hpp"
#include "engine/rkllm/runtime/run_check.hpp"
#include "engine/rkllm/worker/token_steps.hpp"
#include "engine/rkllm/worker/worker_messages.hpp"
#include "net/io/descriptor_io.hpp"
#include "net/lines/line_reader.hpp"
#include "net/process/child_process.hpp"
#include "rpc/error_codes.hpp"
#include "sluice/schema.hpp"

namespace sluice::rkllm {
namespace {

constexpr std::size_t kReadBytes = std::size_t{64} << 10U;
/// Of numbers that go to the server, in a record.
constexpr std::size_t kMaxPiece = std::size_t{64} << 10U;

json::value returned(int value) {
  return encode(Returned{.returned = value});
}

/// The same of a function that the version may not have.
Result<json::value> returned(std::optional<int> value, const AbiFacts& abi) {
  if (value) return returned(*value);
  return fail(kMethodNotFound,
              "Version " + std::string(abi.versions) + " of the runtime does not have it");
}

/// The parameters of a request. Error: -32602.
template <class Params>
Result<Params> read(const json::object& params) {
  auto given = decode<Params>(params, "params");
  if (given) return *std::move(given);
  return fail(kInvalidParams, given.error().describe());
}

/// Reads the bytes of numbers in Base64. False: it is something else.
template <class Number>
bool read_numbers(std::string_view base64, std::vector<Number>& numbers) {
  const std::optional<std::string> bytes = decode_base64(base64);
  if (!bytes || bytes->empty() || bytes->size() % sizeof(Number) != 0) return false;
  numbers.resize(bytes->size() / sizeof(Number));
  std::memcpy(numbers.data(), bytes->data(), bytes->size());
  return true;
}

/// Puts the numbers of an input in their place. False: they are none.
bool take_numbers(RunRequest& given) {
  const std::string numbers = std::exchange(given.numbers, {});
  if (auto* const embed = std::get_if<EmbedData>(&given.input.input)) {
    return read_numbers(numbers, embed->embed);
  }
  auto* const images = std::get_if<MultiModalData>(&given.input.input);
  return images == nullptr ? numbers.empty() : read_numbers(numbers, images->image_embed);
}

bool ends_run(CallState state) {
  return state == CallState::finish || state == CallState::error;
}

std::string_view bytes_of(std::span<const float> floats) {
  return {reinterpret_cast<const char*>(floats.data()), floats.size_bytes()};
}

}  // namespace

Worker::Worker(TokenRing ring, std::function<void(std::string_view)> reply)
    : ring_(std::move(ring)), reply_(std::move(reply)), thread_([this] { work(); }) {}

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    waiting_.clear();
  }
  changed_.notify_one();
  thread_.join();
}

void Worker::take(std::string_view line) {
  const auto message = parser_.parse(line);
  if (!message) return answer(message.error().id, std::unexpected(message.error().error));
  if (message->kind != MessageKind::request) return;
  const bool is_abort = message->method == method::kAbort;
  if (is_abort || message->method == method::kIsRunning) {
    Runtime* const ready = ready_;
    if (ready == nullptr) return answer(message->id, fail(kInvalidRequest, "There is no model"));
    return answer(message->id,
                  is_abort ? abort(params_of(*message)) : returned(ready->is_running()));
  }
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() < kMaxWaiting) {
      waiting_.push_back({.id = message->id,
                          .method = std::string(message->method),
                          .params = json::object(params_of(*message), json::storage_ptr())});
      changed_.notify_one();
      return;
    }
  }
  answer(message->id, fail(kBusy, "Too many requests wait"));
}

void Worker::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_over_ || !waiting_.empty(); });
    if (is_over_) return;
    const Request request = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    answer(request.id, carry_out(request.method, request.params));
    lock.lock();
  }
}

Worker::Outcome Worker::carry_out(const std::string& method, const json::object& params) {
  if (method == method::kOpen) return open(params);
  if (runtime_ == nullptr) return fail(kInvalidRequest, "No runtime is open");
  if (method == method::kInit) return init(params);
  if (ready_ == nullptr) return fail(kInvalidRequest, "There is no model");
  if (method == method::kTestTokens) return test_tokens(params);
  if (method == method::kRun) return run(params);
  Runtime& runtime = *runtime_;
  /// Decodes the parameters of a function, and calls it.
  const auto with = [&params]<class Params>(auto call) -> Outcome {
    const auto given = read<Params>(params);
    if (!given) return std::unexpected(given.error());
    return call(*given);
  };
  if (method == method::kLoadLora) {
    return with.operator()<LoraParams>([&](const LoraParams& given) -> Outcome {
      return returned(
          runtime.load_lora(given.lora_adapter_path, given.lora_adapter_name, given.scale));
    });
  }
  if (method == method::kLoadPromptCache) {
    return with.operator()<PathParams>([&](const PathParams& given) -> Outcome {
      return returned(runtime.load_prompt_cache(given.prompt_cache_path));
    });
  }
  if (method == method::kReleasePromptCache) return returned(runtime.release_prompt_cache());
  if (method == method::kClearKvCache) {
    return with.operator()<ClearParams>([&](const ClearParams& given) {
      return returned(runtime.clear_kv_cache(given.keep_system_prompt, given.ranges),
                      runtime.abi());
    });
  }
  if (method == method::kGetKvCacheSize) {
    Returned out{};
    std::vector<std::int32_t> sizes;
    const std::optional<int> result = runtime.get_kv_cache_size(sizes);
    if (!result) return returned(result, runtime.abi());
    out.returned = *result;
    out.kv_cache_sizes = std::move(sizes);
    return encode(out);
  }
  if (method == method::kSetChatTemplate) {
    return with.operator()<TemplateParams>([&](const TemplateParams& given) {
      return returned(
          runtime.set_chat_template(given.system_prompt, given.prompt_prefix, given.prompt_postfix),
          runtime.abi());
    });
  }
  if (method == method::kSetFunctionTools) {
    return with.operator()<ToolParams>([&](const ToolParams& given) {
      return returned(
          runtime.set_function_tools(given.system_prompt, given.tools, given.tool_response_str),
          runtime.abi());
    });
  }
  if (method == method::kSetCrossAttnParams) return set_cross_attention(params);
  return fail(kMethodNotFound, "There is no " + method);
}

Worker::Outcome Worker::set_cross_attention(const json::object& params) {
  const auto given = read<CrossAttnParams>(params);
  if (!given) return std::unexpected(given.error());
  if (cross_attention_.size() > kMaxRefused) {
    return fail(kBusy, "The runtime has refused too many of these; start the server again");
  }
  CrossAttention next;
  const bool is_read = read_numbers(given->encoder_k_cache, next.k) &&
                       read_numbers(given->encoder_v_cache, next.v) &&
                       read_numbers(given->encoder_mask, next.mask) &&
                       read_numbers(given->encoder_pos, next.positions);
  if (!is_read || next.mask.size() != next.positions.size() || next.k.size() != next.v.size()) {
    return fail(kInvalidParams, "The arrays do not fit each other");
  }
  const std::optional<int> result = runtime_->set_cross_attn_params(
      {.encoder_k_cache = next.k.data(),
       .encoder_v_cache = next.v.data(),
       .encoder_mask = next.mask.data(),
       .encoder_pos = next.positions.data(),
       .num_tokens = static_cast<std::int32_t>(next.positions.size())});
  if (result == 0) cross_attention_.clear();
  cross_attention_.push_back(std::move(next));
  return returned(result, runtime_->abi());
}

Worker::Outcome Worker::open(const json::object& params) {
  const auto given = read<OpenParams>(params);
  if (!given) return std::unexpected(given.error());
  if (runtime_ != nullptr) return fail(kInvalidRequest, "A runtime is open already");
  const AbiFacts* const named = find_abi(given->abi);
  if (named == nullptr && !given->abi.empty()) {
    return fail(kInvalidParams, "There is no ABI " + given->abi);
  }
  const Result<Abi> abi = named != nullptr ? Result<Abi>(named->abi) : probe_abi(given->library);
  if (!abi) return std::unexpected(abi.error());
  Result<std::unique_ptr<Runtime>> opened = open_runtime(given->library, *abi);
  if (!opened) return std::unexpected(std::move(opened.error()));
  runtime_ = std::move(*opened);
  return encode(
      Opened{.abi = std::string(runtime_->abi().name), .defaults = runtime_->default_params()});
}

Worker::Outcome Worker::init(const json::object& params) {
  const auto given = read<ModelParams>(params);
  if (!given) return std::unexpected(given.error());
  if (ready_ != nullptr) return fail(kInvalidRequest, "There is a model already");
  const int result = runtime_->init(*given);
  if (result == 0) ready_ = runtime_.get();
  shows_special_tokens_ = given->skip_special_token == false;
  return returned(result);
}

Worker::Outcome Worker::test_tokens(const json::object& params) {
  const auto given = read<TestParams>(params);
  if (!given) return std::unexpected(given.error());
  if (const AbiFacts& abi = runtime_->abi(); !abi.has_logits) {
    return fail(kMethodNotFound,
                "Version " + std::string(abi.versions) + " of the runtime gives no logits");
  }
  const auto entries = read_vocabulary(given->folder);
  if (!entries) return std::unexpected(entries.error());
  auto pieces = std::make_shared<const TokenPieces>(*entries);
  if (auto tested = test_token_steps(*runtime_, *pieces); !tested) {
    return std::unexpected(std::move(tested.error()));
  }
  tokens_ = std::move(pieces);
  return returned(0);
}

bool Worker::put_out(std::uint64_t run, const Output& output) {
  TokenRecord record{.run = run, .state = output.state, .token_id = output.token_id};
  const auto put = [&](TokenRecord::Kind kind, std::string_view bytes, std::int32_t columns) {
    record.kind = kind;
    record.bytes = bytes;
    record.columns = static_cast<std::uint32_t>(columns);
    if (unwritten_.empty() && ring_.write(record)) return;
    unwritten_.push_back({.record = record, .bytes = std::string(bytes)});
  };
  const auto put_numbers = [&](TokenRecord::Kind kind, std::span<const float> numbers,
                               std::int32_t columns) {
    const std::size_t piece = std::min(kMaxPiece, ring_.capacity() / 2);
    for (std::string_view rest = bytes_of(numbers); !rest.empty();
         rest.remove_prefix(std::min(piece, rest.size()))) {
      put(kind, rest.substr(0, piece), columns);
    }
  };
  put_numbers(TokenRecord::Kind::logits, output.logits, output.vocab_size);
  put_numbers(TokenRecord::Kind::hidden_states, output.hidden_states, output.embd_size);
  if (ends_run(output.state) && output.perf) {
    put(TokenRecord::Kind::figures,
        {reinterpret_cast<const char*>(&*output.perf), sizeof *output.perf}, 0);
  }
  put(TokenRecord::Kind::text, output.text, 0);
  return unwritten_.empty();
}

bool Worker::put_out_rest() {
  for (Unwritten& each : std::exchange(unwritten_, {})) {
    each.record.bytes = each.bytes;
    while (!ring_.write(each.record)) {
      if (!ring_.can_hold(each.record)) return false;
      ring_.wait_for_room();
    }
  }
  return true;
}

Result<void> Worker::clear_foreign_cache() {
  if (!has_foreign_cache_) return {};
  // A version without the function does not go on from earlier runs.
  if (runtime_->clear_kv_cache(false, {}).value_or(0) != 0) {
    return fail(kInternalError,
                "The runtime does not clear its cache, which holds what no prompt may go on from");
  }
  has_foreign_cache_ = false;
  return {};
}

Worker::Outcome Worker::run(const json::object& params) {
  auto given = read<RunRequest>(params);
  if (!given) return std::unexpected(given.error());
  if (!take_numbers(*given)) return fail(kInvalidParams, "The numbers do not fit the input");
  if (const auto checked = check_run(
          given->params.mode, std::get_if<MultiModalData>(&given->input.input), runtime_->abi());
      !checked) {
    return std::unexpected(checked.error());
  }
  if (const auto cleared = clear_foreign_cache(); !cleared) {
    return std::unexpected(cleared.error());
  }
  if (given->choice) return run_by_tokens(*given);
  const bool wants_numbers = given->params.mode != InferMode::generate;
  has_foreign_cache_ = wants_numbers || !std::holds_alternative<std::string>(given->input.input);
  std::size_t yielded = 0;  // bytes
  const std::uint64_t number = given->number;
  const bool can_pause = runtime_->abi().has_pause;
  std::int32_t last_token = 0;
  bool is_paused = false;
  bool is_lost = false;  // a part of it
  const auto listener = [&](const Output& output) {
    last_token = output.token_id;
    yielded += output.logits.size_bytes() + output.hidden_states.size_bytes();
    if (wants_numbers && yielded > kMaxYield && !std::exchange(is_lost, true)) unwritten_.clear();
    if (ends_run(output.state)) {
      if (!is_lost) put_out(number, output);
      return CallbackReturn::go_on;
    }
    if (is_lost || unwanted_ >= number) {
      // It came when the runtime was not within the run, which takes no notice of it then.
      runtime_->abort();
      return CallbackReturn::go_on;
    }
    // Numbers are not many, and wait. A run for them does not go on after a pause.
    if (put_out(number, output) || wants_numbers) return CallbackReturn::go_on;
    if (can_pause) {
      is_paused = true;
      return CallbackReturn::pause;
    }
    is_lost = true;
    unwritten_.clear();
    runtime_->abort();
    return CallbackReturn::go_on;
  };
  int result = 0;
  // A paused run goes on even if nobody wants the rest: otherwise another run would go on with it.
  while (enter(number, is_paused)) {
    is_paused = false;
    result = runtime_->run(given->input, given->params, listener);
    leave();
    is_lost = !put_out_rest() || is_lost;
    if (!is_paused || result != 0) break;
    // It goes on with what it has said last (rkllm.h: a paused run is resumed by rkllm_run()).
    given->input.input = std::vector{last_token};
    // Its prompt is saved already.
    given->params.prompt_cache_path.clear();
    given->params.save_prompt_cache = false;
  }
  std::ignore = clear_foreign_cache();  // if it fails, so does the next run
  if (wants_numbers && yielded > kMaxYield) {
    return fail(kLimitReached, "Hidden states and logits of an answer must be at most " +
                                   std::to_string(kMaxYield) +
                                   " bytes, four for each number; ask about fewer tokens");
  }
  if (is_lost) return fail(kBusy, "The answer is longer than the memory for it");
  return returned(result);
}

Worker::Outcome Worker::run_by_tokens(const RunRequest& request) {
  if (tokens_ == nullptr) return fail(kInvalidRequest, "Tokens cannot be chosen here");
  auto steps = TokenSteps::begin(*runtime_, tokens_, request);
  if (!steps) return std::unexpected(std::move(steps.error()));
  const auto tell = [&](const Output& output) {
    return put_out(request.number, output) || put_out_rest();
  };
  while (enter(request.number, false)) {
    const auto next = steps->next();
    leave();
    // A step that was aborted may look like one that failed.
    if (unwanted_ >= request.number) break;
    if (!next) return std::unexpected(next.error());
    if (!*next) break;
    const bool is_shown = shows_special_tokens_ || !tokens_->is_control(**next);
    const std::string_view text = is_shown ? tokens_->bytes_of(**next) : std::string_view();
    if (!tell({.text = text, .token_id = **next})) return fail(kBusy, "A token is too long");
  }
  tell({.state = CallState::finish, .perf = steps->figures()});
  return returned(0);
}

bool Worker::enter(std::uint64_t run, bool must) {
  const std::lock_guard lock(run_mutex_);
  running_ = must || unwanted_ < run ? run : 0;
  return running_ != 0;
}

void Worker::leave() {
  const std::lock_guard lock(run_mutex_);
  running_ = 0;
}

Worker::Outcome Worker::abort(const json::object& params) {
  const auto given = read<AbortParams>(params);
  if (!given) return std::unexpected(given.error());
  // The runtime aborts whatever it runs, so the run must not end meanwhile.
  const std::lock_guard lock(run_mutex_);
  unwanted_ = std::max(unwanted_.load(), given->run);
  return returned(running_ == given->run ? runtime_->abort() : 0);
}

void Worker::answer(const RequestId& id, const Outcome& outcome) {
  std::string line;
  if (outcome) {
    append_result(line, id, to_json(*outcome));
  } else {
    append_error(line, id, outcome.error());
  }
  const std::lock_guard lock(reply_mutex_);
  reply_(line);
}

namespace {

/// Waits until the descriptor is ready for `events`.
void wait_for(const Descriptor& descriptor, short events) {
  pollfd ready{.fd = descriptor.get(), .events = events, .revents = 0};
  while (::poll(&ready, 1, -1) < 0 && errno == EINTR) {
  }
}

/// Writes all of it, or ends the process, as nobody reads it any more.
void write_line(const Descriptor& output, std::string_view line) {
  std::string text(line);
  text.push_back('\n');
  const DescriptorIo sink(output.get());
  std::span<char> rest(text);
  while (!rest.empty()) {
    const iovec part{rest.data(), rest.size()};
    const IoResult result = sink.write({&part, 1});
    if (result.status == IoStatus::want_write) {
      wait_for(output, POLLOUT);
    } else if (result.status != IoStatus::ok) {
      ::_exit(0);
    }
    rest = rest.subspan(result.bytes);
  }
}

}  // namespace

Error run_worker() {
  Result<StandardStreams> streams = take_standard_streams();
  if (!streams) return streams.error();
  int next = ChildCommand::kFirstGiven;
  TokenRing::Files files{
      .memory = Descriptor(next++), .filled = Descriptor(next++), .drained = Descriptor(next++)};
  Result<TokenRing> ring = TokenRing::attach(std::move(files));
  if (!ring) return ring.error();
  const Descriptor& output = streams->output;
  Worker worker(std::move(*ring), [&output](std::string_view line) { write_line(output, line); });
  const DescriptorIo source(streams->input.get());
  LineReader lines(kMaxWorkerLine);
  std::array<char, kReadBytes> buffer;
  while (true) {
    const IoResult got = source.read(buffer);
    if (got.status == IoStatus::want_read) {
      wait_for(streams->input, POLLIN);
      continue;
    }
    // The runtime may be anywhere, and nobody waits for it.
    if (got.status != IoStatus::ok || got.bytes == 0) ::_exit(0);
    lines.append({buffer.data(), got.bytes});
    for (LineReader::Next line = lines.next(); line.kind != LineReader::Next::Kind::none;
         line = lines.next()) {
      worker.take(line.line);
    }
  }
}

}  // namespace sluice::rkllm
