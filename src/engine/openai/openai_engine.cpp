#include "engine/openai/openai_engine.hpp"

#include <atomic>
#include <future>
#include <map>
#include <mutex>
#include <utility>

#include "client/api/background_loop.hpp"
#include "core/log/log.hpp"
#include "engine/openai/chat_request.hpp"
#include "engine/openai/remote_model.hpp"
#include "engine/openai/remote_run.hpp"
#include "json/json.hpp"
#include "net/client/proxy_settings.hpp"
#include "net/http/status_codes.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

/// Bytes of a list of models.
constexpr std::size_t kMaxList = std::size_t{4} << 20U;

/// Asks for the list of models, once. Belongs to the loop.
class Question : public std::enable_shared_from_this<Question> {
 public:
  using Done = std::function<void(Result<json::object>)>;
  explicit Question(Done done) : done_(std::move(done)) {}

  void ask(HttpClient& http, HttpClientRequest request) {
    self_ = shared_from_this();
    call_ = http.send(std::move(request), callbacks_of(weak_from_this()));
  }
  void on_head(const HttpReplyHead& head) { status_ = head.status; }
  void on_body(std::string_view bytes) {
    if (body_.size() + bytes.size() <= kMaxList) return void(body_.append(bytes));
    end(fail(kBadGateway, "the list of models is too long"));
  }
  void on_complete() {
    const Result<json::value> body = parse_json(body_);
    if (status_ == 200 && body && body->is_object()) return end(body->get_object());
    if (status_ == 200) return end(fail(kBadGateway, "it lists no models as JSON"));
    std::string why = "it answers with HTTP " + std::to_string(status_);
    if (body && body->is_object()) {
      if (const auto said = model_error_of(body->get_object())) why.append(": ").append(*said);
    }
    end(fail(status_, std::move(why)));
  }
  void on_failure(const Error& why) { end(std::unexpected(why)); }

 private:
  void end(Result<json::object> outcome) {
    const auto keep = std::exchange(self_, nullptr);
    if (done_) std::exchange(done_, {})(std::move(outcome));
    call_ = {};
  }

  Done done_;
  HttpClient::Call call_;
  int status_ = 0;
  std::string body_;
  std::shared_ptr<Question> self_;  // until it is answered
};

/// What an engine and its runs share. The loop's alone, but for what is atomic.
struct Core {
  std::shared_ptr<BackgroundLoop> background = BackgroundLoop::shared();
  std::unique_ptr<HttpClient> http;
  std::map<std::uint64_t, std::shared_ptr<RemoteRun>> runs;
  ChatRepairs logged;
  bool is_closed = false;
  std::atomic<std::uint32_t> open = 0;
  std::atomic<std::uint64_t> requests = 0;
  std::atomic<std::uint64_t> cancelled = 0;
  std::atomic<std::uint64_t> prompt_tokens = 0;
  std::atomic<std::uint64_t> cached_tokens = 0;
  std::atomic<std::uint64_t> completion_tokens = 0;

  EventLoop& loop() { return background->loop(); }
  void ended(std::uint64_t number, const Completion& completion, const ChatRepairs& repairs) {
    if (completion.reason == Completion::Reason::cancelled) ++cancelled;
    prompt_tokens += completion.usage.prompt_tokens;
    cached_tokens += completion.usage.cached_tokens;
    completion_tokens += completion.usage.completion_tokens;
    runs.erase(number);
    --open;
    if (repairs == ChatRepairs() || repairs == logged) return;
    logged = repairs;
    log_warning("the server of the model leaves out what its API demands; it was made up for",
                {{"index_of_calls", repairs.index},
                 {"name_once", repairs.name_repeated},
                 {"finish_reason", repairs.finish_reason}});
  }
};

class RemoteGeneration final : public Generation {
 public:
  RemoteGeneration(std::shared_ptr<Core> core, std::shared_ptr<RemoteRun> run)
      : core_(std::move(core)), run_(std::move(run)) {}
  ~RemoteGeneration() override { RemoteGeneration::cancel(); }
  RemoteGeneration(const RemoteGeneration&) = delete;
  RemoteGeneration& operator=(const RemoteGeneration&) = delete;

  void cancel() override {
    core_->loop().post([run = run_] { run->cancel(); });
  }
  void resume() override {
    core_->loop().post([run = run_] { run->resume(); });
  }
  [[nodiscard]] GenerationStatus status() const override { return run_->status(); }

 private:
  std::shared_ptr<Core> core_;
  std::shared_ptr<RemoteRun> run_;
};

class OpenAiEngine final : public Engine {
 public:
  OpenAiEngine(std::shared_ptr<Core> core, OpenAiOptions options, RemoteModel model)
      : core_(std::move(core)), options_(std::move(options)), model_(std::move(model)) {}
  ~OpenAiEngine() override { OpenAiEngine::shutdown(); }
  OpenAiEngine(const OpenAiEngine&) = delete;
  OpenAiEngine& operator=(const OpenAiEngine&) = delete;

  Result<std::unique_ptr<Generation>> start(GenerationRequest request,
                                            std::shared_ptr<GenerationSink> sink,
                                            Executor& /*home*/) override {
    Result<std::string> body = chat_request(request, model_.name, *model_.dialect);
    if (!body) return std::unexpected(std::move(body.error()));
    if (core_->open.fetch_add(1) >= options_.max_requests) {
      --core_->open;
      return fail(kBusy, std::to_string(options_.max_requests) +
                             " requests to the model's server are under way");
    }
    const std::uint64_t number = ++core_->requests;
    HttpHeaderList headers = key_headers(options_.key);
    headers.emplace_back("Content-Type", "application/json");
    headers.emplace_back("Accept", "text/event-stream");
    const auto run = std::make_shared<RemoteRun>(
        core_->loop(), *core_->http,
        HttpClientRequest{.method = "POST",
                          .url = api_url(options_.base, "/chat/completions"),
                          .headers = std::move(headers),
                          .body = *std::move(body),
                          .is_patient = true},
        options_.idle_timeout, std::move(sink),
        [core = core_.get(), number](const Completion& completion, const ChatRepairs& repairs) {
          core->ended(number, completion, repairs);
        });
    core_->loop().post([core = core_, run, number] {
      core->runs.emplace(number, run);
      core->is_closed ? run->cancel() : run->begin();
    });
    return std::make_unique<RemoteGeneration>(core_, run);
  }

  [[nodiscard]] EngineInfo info() const override {
    return {.engine = "openai",
            .model = model_.name,
            .context_tokens = model_.context_tokens,
            .slots = options_.max_requests};
  }
  [[nodiscard]] EngineStats stats() const override {
    return {.slots_busy = core_->open,
            .requests = core_->requests,
            .cancelled = core_->cancelled,
            .prompt_tokens = core_->prompt_tokens,
            .cached_tokens = core_->cached_tokens,
            .completion_tokens = core_->completion_tokens};
  }
  void shutdown() override {
    std::promise<void> done;
    core_->loop().post([core = core_, &done] {
      core->is_closed = true;
      for (const auto& [number, run] : std::map(core->runs)) run->cancel();
      core->http.reset();
      done.set_value();
    });
    done.get_future().wait();
  }

 private:
  std::shared_ptr<Core> core_;
  const OpenAiOptions options_;
  const RemoteModel model_;
};

}  // namespace

Result<std::unique_ptr<Engine>> make_openai_engine(OpenAiOptions options) {
  const auto core = std::make_shared<Core>();
  HttpClientOptions http{.proxies = environment_proxies(),
                         .connect_timeout = options.connect_timeout,
                         .idle_timeout = options.connect_timeout};
  if (options.base.is_tls()) {
    auto tls = TlsContext::client({.ca_file = options.ca_file});
    if (!tls) return std::unexpected(std::move(tls.error()));
    http.tls = *std::move(tls);
  }
  std::promise<Result<json::object>> listed;
  core->loop().post([&core, &options, &listed, &http] {
    core->http = std::make_unique<HttpClient>(core->loop(), std::move(http));
    std::make_shared<Question>(
        [&listed](Result<json::object> outcome) { listed.set_value(std::move(outcome)); })
        ->ask(*core->http, {.method = "GET",
                            .url = api_url(options.base, "/models"),
                            .headers = key_headers(options.key)});
  });
  const Result<json::object> reply = listed.get_future().get();
  Result<RemoteModel> model =
      reply ? find_model(*reply, options.model, options.base) : std::unexpected(reply.error());
  // Not all servers list their models.
  if (!reply && reply.error().code == kNotFound && !options.model.empty()) {
    model = RemoteModel{.name = options.model, .dialect = &dialect_of(options.base.host, {})};
  }
  auto engine = std::make_unique<OpenAiEngine>(core, options, model ? *model : RemoteModel());
  if (!model) {
    Error why = std::move(model.error());
    why.message = "The server of the model at " + options.base.to_string() + ": " + why.message;
    return std::unexpected(std::move(why));
  }
  return engine;
}

}  // namespace sluice
