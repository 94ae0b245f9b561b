#include "engine/rkllm/runtime/run_check.hpp"

#include <string>
#include <string_view>

#include "rpc/error_codes.hpp"

namespace sluice::rkllm {

Result<void> check_run(InferMode mode, const MultiModalData* images, const AbiFacts& abi) {
  const auto lacks = [&abi](std::string_view what) {
    return fail(kInvalidParams, "Invalid params: " + std::string(what) + ", and this one is " +
                                    std::string(abi.versions));
  };
  if (mode == InferMode::get_logits && !abi.has_logits) {
    return lacks("mode RKLLM_INFER_GET_LOGITS needs a runtime since 1.2.0");
  }
  if (images == nullptr) return {};
  const bool says_sizes =
      images->n_image != 1 || images->image_width != 0 || images->image_height != 0;
  if (says_sizes && !abi.has_image_sizes) {
    return lacks("n_image other than 1, image_width and image_height need a runtime since 1.2.1");
  }
  const bool says_tags =
      !images->image_start.empty() || !images->image_end.empty() || !images->image_content.empty();
  if (says_tags && !abi.has_image_tags) {
    return lacks("image_start, image_end and image_content need a runtime since 1.3.0");
  }
  return {};
}

}  // namespace sluice::rkllm
