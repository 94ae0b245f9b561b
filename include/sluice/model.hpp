#pragma once

// Models that an agent can ask: those of other servers, and your own code. Those in files are in
// sluice/local_model.hpp.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/chat.hpp"
#include "sluice/json.hpp"

namespace sluice {

class Engine;

/// A model. Copies are handles of the same one. Thread-safe.
class Model {
 public:
  /// remote_model(), custom_model() and local_model() make them.
  explicit Model(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}

  /// As its server or its maker names it.
  std::string name() const;
  /// For the library's own use.
  const std::shared_ptr<Engine>& engine() const { return engine_; }

 private:
  std::shared_ptr<Engine> engine_;
};

/// Which API of a model's server is asked.
enum class ModelApi : std::uint8_t {
  chat,       // POST /v1/chat/completions
  responses,  // POST /v1/responses
  websocket,  // the same API over a WebSocket to /v1/responses
};

/// A model that another server runs: OpenAI, llama-server, vLLM, Ollama, or what else has one of
/// these APIs.
struct RemoteModelOptions {
  std::string url;         // of the API, such as https://host/v1
  std::string model = {};  // its name there; empty: the only one that the server has
  std::string key = {};    // is sent to this server alone; empty: none
  ModelApi api = ModelApi::chat;
};

/// Asks the server for its models, at most for 10 seconds. Goes by the proxies of the environment,
/// as ClientOptions::uses_environment_proxies says. At most 256 answers are under way; more fail
/// with kBusy, and so does one whose server is silent for 5 minutes. An answer that the server did
/// not begin is asked for again, at most twice.
/// Throws Error: 400 if the URL is none, or there is no such model; 401 and 403 if the key is not
/// taken; 502 and 504 if the server cannot be reached, redirects or speaks something else; another
/// status from 400 on if the server says so.
Model remote_model(const RemoteModelOptions& options);

/// What a model is asked.
struct ModelRequest {
  /// Valid for a strict chat API: behind a message with calls stands one result for each of them.
  std::vector<ChatMessage> messages = {};
  /// Of the tools: {"type": "function", "function": {"name", "description", "parameters"}}.
  json::array tools = {};
  SamplingParams sampling = {};
  std::optional<int> max_tokens = {};  // of the answer
};

/// The answer of a custom_model(). Its functions may be called on one thread at a time. Each waits
/// while the answer cannot be taken on, and returns false once nobody wants it any more.
class ModelAnswer {
 public:
  ModelAnswer(const ModelAnswer&) = delete;
  ModelAnswer& operator=(const ModelAnswer&) = delete;

  /// A piece of the text. UTF-8 characters must be complete.
  virtual bool text(std::string_view piece) = 0;
  /// A piece of the model's reasoning.
  virtual bool reasoning(std::string_view piece) = 0;
  /// Asks for the call of a tool. An empty `id` is replaced by a new one.
  virtual bool call(std::string_view tool, json::object arguments, std::string_view id = {}) = 0;
  /// What the answer has cost. If it is not called, it has cost nothing.
  virtual void usage(std::uint32_t prompt_tokens, std::uint32_t completion_tokens) = 0;
  /// Says that the answer ends here because it is too long.
  virtual void cut() = 0;
  /// Asks for a stop when nobody wants the answer any more.
  virtual std::stop_token stop() const = 0;

 protected:
  ModelAnswer() = default;
  ~ModelAnswer() = default;
};

/// Answers a request: writes to `answer`, and returns at its end. Runs on a thread of its own and
/// may block; several run at once. Error: the model cannot answer, which is what the run says. Of
/// other exceptions the text is only logged.
using ModelFunction = std::function<void(const ModelRequest& request, ModelAnswer& answer)>;

/// A model of the program itself: its own inference, or a script for a test. Gives at most 64
/// answers at a time. At most 10,000 requests wait; more fail with kBusy. A function that waits for
/// an answer of its own model holds up one of the 64, so that 64 of them wait for ever: give the
/// agents within it another model. The end of the last handle waits for answers that are being
/// given, whose stop() asks for a stop then. It waits for no answer that ends the handle itself,
/// and not within callbacks of clients, where the model ends later.
Model custom_model(std::string name, ModelFunction answer);

}  // namespace sluice
