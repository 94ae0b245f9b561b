#include "engine/openai/openai_engine.hpp"

#include <atomic>
#include <future>
#include <map>
#include <utility>
#include <vector>

#include "client/api/background_loop.hpp"
#include "core/crypto/random.hpp"
#include "core/log/log.hpp"
#include "core/text/secrets.hpp"
#include "core/unique_function.hpp"
#include "engine/openai/chat_request.hpp"
#include "engine/openai/http_source.hpp"
#include "engine/openai/model_error.hpp"
#include "engine/openai/remote_model.hpp"
#include "engine/openai/remote_run.hpp"
#include "engine/openai/response_sockets.hpp"
#include "engine/openai/responses_request.hpp"
#include "engine/openai/websocket_source.hpp"
#include "engine/queue_shares.hpp"
#include "json/json.hpp"
#include "net/client/proxy_settings.hpp"
#include "net/http/status_codes.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

/// Bytes of a list of models.
constexpr std::size_t kMaxList = std::size_t{4} << 20U;
/// How long the list may take.
constexpr Duration kPatience = std::chrono::seconds(10);
/// How long the server may say nothing about an answer. It may compute a long prompt.
constexpr Duration kSilence = std::chrono::minutes(5);
constexpr std::uint32_t kMaxRequests = 256;  // under way

/// Asks for the list of models, once, for at most kPatience. Belongs to the loop.
class Question : public std::enable_shared_from_this<Question> {
 public:
  using Done = std::function<void(Result<json::object>)>;
  Question(EventLoop& loop, Done done) : loop_(&loop), done_(std::move(done)) {}

  void ask(HttpClient& http, const HttpClientRequest& request) {
    self_ = shared_from_this();
    timer_ = loop_->schedule_at(loop_->clock().now() + kPatience, [this] {
      timer_ = 0;
      end(fail(kGatewayTimeout, "it takes too long to list its models"));
    });
    call_ = http.send(request, callbacks_of(weak_from_this()));
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
    if (const auto said = model_error_in(body_)) why.append(": ").append(*said);
    end(fail(status_ < kBadRequest ? kBadGateway : status_, std::move(why)));
  }
  void on_failure(const Error& why) { end(std::unexpected(why)); }

 private:
  void end(Result<json::object> outcome) {
    const auto keep = std::exchange(self_, nullptr);
    loop_->cancel(std::exchange(timer_, 0));
    if (done_) std::exchange(done_, {})(std::move(outcome));
    call_ = {};
  }

  EventLoop* loop_;
  Done done_;
  HttpClient::Call call_;
  Executor::TimerId timer_ = 0;
  int status_ = 0;
  std::string body_;
  std::shared_ptr<Question> self_;  // until it is answered
};

/// What an engine and its runs share. The loop's alone, but for what is atomic.
struct Core {
  std::shared_ptr<BackgroundLoop> background = BackgroundLoop::shared();
  std::unique_ptr<HttpClient> http;
  std::unique_ptr<ResponseSockets> sockets;  // null unless they are what is asked over
  /// A run, and its place among those of all clients.
  struct Placed {
    std::shared_ptr<RemoteRun> run;
    std::unique_ptr<QueueShares::Ticket> ticket;
  };
  std::map<std::uint64_t, Placed> runs;
  std::shared_ptr<QueueShares> shares = std::make_shared<QueueShares>(kMaxRequests, 1);
  AnswerRepairs logged;  // each kind once
  bool is_closed = false;
  std::atomic<std::uint32_t> open = 0;
  std::atomic<std::uint64_t> requests = 0;
  std::atomic<std::uint64_t> cancelled = 0;
  std::atomic<std::uint64_t> prompt_tokens = 0;
  std::atomic<std::uint64_t> cached_tokens = 0;
  std::atomic<std::uint64_t> completion_tokens = 0;

  EventLoop& loop() { return background->loop(); }
  void ended(std::uint64_t number, const Completion& completion, AnswerRepairs repairs) {
    if (completion.reason == Completion::Reason::cancelled) ++cancelled;
    prompt_tokens += completion.usage.prompt_tokens;
    cached_tokens += completion.usage.cached_tokens;
    completion_tokens += completion.usage.completion_tokens;
    runs.erase(number);
    --open;
    const AnswerRepairs unsaid = repairs.without(logged);
    if (unsaid.empty()) return;
    logged.add(unsaid);
    log_warning("the server of the model does not keep to its API; it was made up for",
                {{"what", unsaid.to_string()}});
  }
};

/// Where an API is, behind the base URL.
std::string_view path_of(ModelApi api) {
  return api == ModelApi::chat ? "/chat/completions" : "/responses";
}

/// Names the server at this URL.
std::string name_of_server(const Url& base) {
  return base.scheme + "://" + base.host_and_port();
}

Result<std::string> body_of(const GenerationRequest& request, const RemoteModel& model,
                            const OpenAiOptions& options) {
  if (options.api == ModelApi::chat) {
    return chat_request(request, model.name, *model.dialect, name_of_server(options.base));
  }
  Result<json::object> body = responses_request(request, model.name, *model.dialect);
  if (!body) return std::unexpected(std::move(body.error()));
  if (options.api == ModelApi::responses) (*body)["stream"] = true;
  return to_json(*body);
}

/// What to do if the server does not have the API.
std::string_view hint_of(ModelApi api) {
  switch (api) {
    case ModelApi::chat:
      break;
    case ModelApi::responses:
      return ". If it has no Responses API, ask it with --model-api chat";
    case ModelApi::websocket:
      return ". If it offers no WebSocket, ask it with --model-api responses, or chat";
  }
  return {};
}

/// Bytes of the random part of ids that are made up, so that those of several answers differ.
constexpr std::size_t kMadeIdBytes = 12;

AnswerOptions answer_options(const GenerationRequest& request, const Dialect& dialect,
                             const Url& base) {
  AnswerOptions options{.made_id = "call_" + random_id(kMadeIdBytes) + "_",
                        .has_call_parts = request.stream_calls,
                        .server = name_of_server(base)};
  if (dialect.hides_limit) options.max_tokens = request.max_tokens;
  return options;
}

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
    if (request.is_raw) {
      return fail(kInvalidParams,
                  "the server of the model puts its chat template around every prompt, so it takes "
                  "no raw one");
    }
    Result<std::string> body = body_of(request, model_, options_);
    if (!body) return std::unexpected(std::move(body.error()));
    auto ticket = core_->shares->take(request.principal);
    if (!ticket) return std::unexpected(std::move(ticket.error()));
    ++core_->open;
    const std::uint64_t number = ++core_->requests;
    const auto run = std::make_shared<RemoteRun>(
        core_->loop(),
        RemoteRunOptions{.make_decoder =
                             [api = options_.api,
                              options = answer_options(request, *model_.dialect, options_.base)] {
                               return make_decoder(api, options);
                             },
                         .idle_timeout = kSilence,
                         .secrets = secrets_of(options_.base, options_.key),
                         .hint = hint_of(options_.api)},
        std::move(sink),
        [core = core_.get(), number](const Completion& completion, AnswerRepairs repairs) {
          core->ended(number, completion, repairs);
        });
    core_->loop().post(
        [core = core_, run, number, ticket = *std::move(ticket),
         make_source = source_maker(std::move(request), *std::move(body))]() mutable {
          core->runs.emplace(number, Core::Placed{run, std::move(ticket)});
          core->is_closed ? run->cancel() : run->begin(make_source(*core));
        });
    return std::make_unique<RemoteGeneration>(core_, run);
  }

  [[nodiscard]] EngineInfo info() const override {
    return {.engine = "openai",
            .model = model_.name,
            .context_tokens = model_.context_tokens,
            .slots = kMaxRequests,
            .takes_images = true};
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
      std::vector<std::shared_ptr<RemoteRun>> runs;
      for (const auto& [number, placed] : core->runs) runs.push_back(placed.run);
      for (const auto& run : runs) run->cancel();
      core->sockets.reset();
      core->http.reset();
      done.set_value();
    });
    done.get_future().wait();
  }

 private:
  /// Makes the source of an answer, on the loop.
  UniqueFunction<std::unique_ptr<AnswerSource>(Core&)> source_maker(GenerationRequest request,
                                                                    std::string body) const {
    if (options_.api == ModelApi::websocket) {
      return [request = std::move(request), model = model_](Core& core) mutable {
        return std::make_unique<WebSocketSource>(
            *core.sockets, std::move(request), [model](const GenerationRequest& what) {
              auto body_again = responses_request(what, model.name, *model.dialect);
              return body_again ? *std::move(body_again) : json::object();
            });
      };
    }
    HttpHeaderList headers = key_headers(options_.key);
    headers.emplace_back("Content-Type", "application/json");
    headers.emplace_back("Accept", "text/event-stream");
    return [post = HttpClientRequest{.method = "POST",
                                     .url = api_url(options_.base, path_of(options_.api)),
                                     .headers = std::move(headers),
                                     .body = std::move(body),
                                     .is_patient = true,
                                     .is_trickle = true}](Core& core) mutable {
      return std::make_unique<HttpSource>(*core.http, std::move(post));
    };
  }

  std::shared_ptr<Core> core_;
  const OpenAiOptions options_;
  const RemoteModel model_;
};

}  // namespace

Result<std::unique_ptr<Engine>> make_openai_engine(OpenAiOptions options) {
  const auto core = std::make_shared<Core>();
  HttpClientOptions http{.proxies = environment_proxies(), .connect_timeout = kPatience};
  if (options.base.is_tls()) {
    auto tls = TlsContext::client({});
    if (!tls) return std::unexpected(std::move(tls.error()));
    http.tls = *std::move(tls);
  }
  std::promise<Result<json::object>> listed;
  core->loop().post([&core, &options, &listed, &http] {
    if (options.api == ModelApi::websocket) {
      core->sockets = std::make_unique<ResponseSockets>(
          core->loop(), api_url(options.base, path_of(options.api)), key_headers(options.key),
          WebSocketClientOptions{
              .proxies = http.proxies, .tls = http.tls, .connect_timeout = kPatience});
    }
    core->http = std::make_unique<HttpClient>(core->loop(), std::move(http));
    std::make_shared<Question>(
        core->loop(),
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
    why.message = "The server of the model at " + masked_url(options.base.to_string()) + ": " +
                  without_keys(std::move(why.message), secrets_of(options.base, options.key));
    return std::unexpected(std::move(why));
  }
  log_debug("another server runs the model",
            {{"model", model->name}, {"kind_of_server", model->dialect->name}});
  return engine;
}

}  // namespace sluice
