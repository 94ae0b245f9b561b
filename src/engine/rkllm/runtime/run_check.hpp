#pragma once

#include "core/error.hpp"
#include "engine/model_input.hpp"
#include "engine/rkllm/abi/abi.hpp"
#include "engine/rkllm/abi/common.hpp"

namespace sluice::rkllm {

/// Whether runtimes of this ABI have the mode, and all that is said of images. Null: there are
/// none. Error -32602: what it lacks.
Result<void> check_run(InferMode mode, const MultiModalData* images, const AbiFacts& abi);

}  // namespace sluice::rkllm
