#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "sluice/model.hpp"

namespace sluice {

/// A model that gives its answers in their order, whatever it is asked. What it is asked is kept.
class ScriptedModel {
 public:
  using Answer = std::function<void(const ModelRequest& request, ModelAnswer& answer)>;

  explicit ScriptedModel(std::vector<Answer> answers) : script_(std::make_shared<Script>()) {
    script_->answers = std::move(answers);
  }

  [[nodiscard]] Model model() const {
    return custom_model("script", [script = script_](const ModelRequest& request, ModelAnswer& to) {
      Answer answer;
      {
        const std::lock_guard lock(script->mutex);
        script->asked.push_back(request);
        const std::size_t number = script->asked.size() - 1;
        if (number < script->answers.size()) answer = script->answers[number];
      }
      script->changed.notify_all();
      if (answer) {
        answer(request, to);
      } else {
        to.text("There is nothing more to say.");
      }
    });
  }
  /// What it was asked in its answer number `number`, once it was.
  [[nodiscard]] ModelRequest asked(std::size_t number) const {
    std::unique_lock lock(script_->mutex);
    script_->changed.wait(lock, [&] { return script_->asked.size() > number; });
    return script_->asked[number];
  }
  [[nodiscard]] std::size_t answers() const {
    const std::lock_guard lock(script_->mutex);
    return script_->asked.size();
  }

 private:
  struct Script {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<Answer> answers;
    std::vector<ModelRequest> asked;
  };
  std::shared_ptr<Script> script_;
};

/// An answer that is this text.
inline ScriptedModel::Answer says(std::string text) {
  return [text = std::move(text)](const ModelRequest& /*request*/, ModelAnswer& answer) {
    answer.text(text);
  };
}

/// An answer that calls a tool. An empty `id` is replaced by a new one.
inline ScriptedModel::Answer calls(std::string tool, json::object arguments = {},
                                   std::string id = {}) {
  return [tool = std::move(tool), arguments = std::move(arguments), id = std::move(id)](
             const ModelRequest& /*request*/, ModelAnswer& answer) {
    answer.call(tool, arguments, id);
  };
}

}  // namespace sluice
