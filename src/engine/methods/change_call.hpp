#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "core/error.hpp"
#include "engine/engine.hpp"
#include "engine/methods/model_folder.hpp"
#include "json/json.hpp"
#include "sluice/principal.hpp"

namespace sluice {

/// Who may change the model for all callers and name files, and which files these are.
struct OperatorRights {
  /// Whether a caller is an operator; null: nobody is. Called on several loops at the same time.
  std::function<bool(const Principal& caller)> is_operator = {};
  std::shared_ptr<const ModelFolder> folder = {};  // null: no files

  /// Error kInvalidRequest: the caller is none, and how one becomes one. `what` is what it asks
  /// for.
  [[nodiscard]] Result<void> check(const Principal& caller, std::string_view what) const;
  /// The folder for what `what` names. Error kInvalidRequest: there is none.
  [[nodiscard]] Result<const ModelFolder*> folder_for(std::string_view what) const;
};

/// Whether the function, such as "load_lora", changes the model.
bool is_change(std::string_view function);
/// Whether an engine has it.
bool has_change(const EngineInfo& engine, std::string_view function);

/// What a call of such a function asks for; its files are opened. Errors: -32602 for parameters of
/// a wrong type or size, and for files that ModelFolder refuses; those of OperatorRights.
Result<ModelChange> decode_change(std::string_view function, const json::object& params,
                                  const OperatorRights& rights);

}  // namespace sluice
