#pragma once

#include <optional>
#include <string>

#include "cli/options/serve_config.hpp"
#include "cli/questions/sampling_request.hpp"
#include "cli/serve/engine_factory.hpp"
#include "core/error.hpp"
#include "json/json.hpp"

namespace sluice {

/// Answers a server's sampling requests with a model that runs in this program. It is loaded when
/// the first request is answered. For one thread at a time.
class LocalSampler {
 public:
  /// `consent`: what the user has allowed so far. Who is asked otherwise is the user at the
  /// terminal.
  LocalSampler(ServeConfig config, SamplingConsent consent);
  ~LocalSampler();
  LocalSampler(const LocalSampler&) = delete;
  LocalSampler& operator=(const LocalSampler&) = delete;

  /// The result of sampling/createMessage. Waits for the user and for the model, until nobody waits
  /// for the answer (question_stop()). Errors: -1 if the user does not allow it (2025-11-25,
  /// Sampling, Error Handling), those of sampling_request(), and what the model has failed with.
  Result<json::object> answer(const json::object& params);

 private:
  [[nodiscard]] bool is_allowed(const GenerationRequest& request);
  Result<void> load();
  Result<json::object> generate(GenerationRequest request);
  [[nodiscard]] std::string model_name() const;

  ServeConfig config_;
  SamplingConsent consent_;
  std::optional<EngineHandle> engine_;  // once it is loaded
};

}  // namespace sluice
