#pragma once

#include <cstdint>
#include <string_view>

namespace sluice {

/// Why a model cannot be used. The value is the `code` of the Error that says so in a sentence.
enum class ModelFault : std::uint8_t {
  none,
  missing,      // no such file
  unreadable,   // a directory, no permission, an I/O error
  not_gguf,     // something else
  unsupported,  // a GGUF version, byte order, architecture or kind of model that cannot run here
  truncated,    // shorter than its own header says
  corrupt,      // contradicts itself
  no_device,    // the backend that was asked for does not exist
  no_memory,    // not enough for the weights or the context
};

/// "missing", "not_gguf", ...
std::string_view to_string(ModelFault fault);

}  // namespace sluice
